// Matches the joints of a clip's skeleton and the bodies of a model to the same points of a figure.
#include <fmt/format.h>

#include <algorithm>

#include "control/figure.hpp"
#include "control/skeleton.hpp"
#include "tarsus/control/retarget.hpp"

namespace tarsus {

namespace {

using Points = std::map<std::string, Vec3d>;

std::vector<SkeletonNode> source_nodes(const MotionClip& clip, const std::vector<Vec3d>& positions) {
  std::vector<SkeletonNode> nodes;
  for (std::size_t i = 0; i < clip.skeleton.size(); ++i)
    nodes.push_back({{clip.skeleton[i].name}, clip.skeleton[i].parent, positions[i]});
  return nodes;
}

std::string names_of(const std::vector<SkeletonNode>& nodes) {
  std::string out;
  for (std::size_t i = 0; i < nodes.size() && i < 80; ++i)
    out += (i ? ", " : "") + (nodes[i].names.empty() ? std::string("?") : nodes[i].names[0]);
  return out;
}

/// Similarity of left and right lengths, 0 to 1. Where the rest pose has no length, because the file gives positions
/// instead of offsets, that of the first frame counts.
double symmetry(const Points& rest, const Points& first) {
  double least = 1;
  const std::pair<std::string, std::string> segments[] = {
      {"hip", "knee"}, {"knee", "ankle"}, {"shoulder", "elbow"}, {"elbow", "wrist"}};
  for (const auto& segment : segments) {
    const std::string &a = segment.first, &b = segment.second;
    const auto known = [&](const std::string& side) { return rest.count(side + a) && rest.count(side + b); };
    if (!known("left_") || !known("right_")) continue;
    const auto length = [&](const std::string& side) {
      const double at_rest = norm(rest.at(side + a) - rest.at(side + b));
      return at_rest > 0 ? at_rest : norm(first.at(side + a) - first.at(side + b));
    };
    const double l = length("left_"), r = length("right_");
    least = std::min(least, l + r > 0 ? std::min(l, r) / std::max(l, r) : 0.0);
  }
  return least;
}

}  // namespace

ClipMapping map_skeleton(const Model& model, const MotionClip& clip) {
  if (clip.skeleton.empty())
    throw InputError(
        Location{clip.file, 0, 0, {}},
        fmt::format("the clip (format '{}') contains no skeleton: it cannot be retargeted without a mapping file",
                    clip.format));
  std::vector<Vec3d> positions = rest_positions(clip);
  FoundPoints source = find_points(source_nodes(clip, positions), clip.up);
  if (!has_legs(source)) {  // in some files the rest pose is not a real pose; use the first frame
    positions = joint_positions(clip, 0);
    source = find_points(source_nodes(clip, positions), clip.up);
  }
  const Figure figure(model);
  const FoundPoints target = find_points(figure.nodes(), {0, 0, 1});
  if (!has_legs(source)) {
    throw InputError(Location{clip.file, 0, 0, {}},
                     "no two legs were found in the clip's skeleton, by names or positions: write a mapping file "
                     "(docs/clips.md). Its joints: " +
                         names_of(source_nodes(clip, positions)));
  }
  if (!has_legs(target)) {
    throw InputError(Location{model.spec.bodies.back().where.file, 0, 0, {}},
                     fmt::format("no two legs were found in model '{}', by names or positions: write a mapping file "
                                 "(docs/clips.md). Its bodies: {}",
                                 model.name, names_of(figure.nodes())));
  }
  ClipMapping mapping;
  mapping.name = "skeleton of " + clip.name, mapping.file = clip.file, mapping.format = clip.format;
  const std::vector<Vec3d> posed = joint_positions(clip, 0);
  Points rest, first;
  for (const auto& [name, found] : source) {
    rest[name] = positions[std::size_t(found.node)], first[name] = posed[std::size_t(found.node)];
  }
  const double alike = symmetry(rest, first);
  for (const std::string& point : skeleton_points()) {
    const auto from = source.find(point);
    const auto to = target.find(point);
    if (from == source.end() || to == target.end()) continue;
    PointMapping p;
    p.point = point;
    int node = from->second.node;
    if (from->second.tip) {  // the source's own far end, if it has one
      for (std::size_t i = 0; i < clip.skeleton.size(); ++i) {
        if (clip.skeleton[i].parent == from->second.node && norm(clip.skeleton[i].offset) > 0) node = int(i);
      }
      if (node == from->second.node) continue;
    }
    p.from = clip.skeleton[std::size_t(node)].name;
    p.body = model.bodies[std::size_t(figure.body(to->second.node))].name;
    p.tip = to->second.tip;
    p.sure = std::min(from->second.sure, to->second.sure) * alike;
    mapping.points.push_back(std::move(p));
  }
  return mapping;
}

double confidence(const ClipMapping& mapping) {
  double sum = 0;
  for (const PointMapping& p : mapping.points) sum += p.sure;
  return mapping.points.empty() ? 0 : sum / double(mapping.points.size());
}

std::optional<Diagnostic> check_match(const ClipMapping& mapping) {
  constexpr double kUnsure = 0.7, kGuess = 0.3;  // limbs without known names reach about 0.5
  const double sure = confidence(mapping);
  const Location where{mapping.file, 0, 0, {}};
  const char* remedy =
      "check the table of tarsus map; write it with --out, correct it, and pass it with --mapping (in Python mapping=)";
  if (sure < kGuess)
    throw InputError(where,
                     fmt::format("the two skeletons do not seem to match (confidence {:.2f}): {}", sure, remedy));
  if (sure >= kUnsure) return {};
  return Diagnostic{Severity::warning, where,
                    fmt::format("the mapping is uncertain (confidence {:.2f}): {}", sure, remedy)};
}

}  // namespace tarsus
