#include "control/skeleton.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "tarsus/control/retarget.hpp"

namespace tarsus {

namespace {

struct PointNames {
  const char* point;
  bool deepest;                    ///< of several nodes with one name (a hip of three hinges), take the last
  std::vector<std::string> names;  ///< in order of preference: "shoulder" is the collar bone if there is an "arm"
};

const std::vector<PointNames>& point_names() {
  static const std::vector<PointNames> kNames = {
      {"hip", true, {"upleg", "upperleg", "thigh", "femur", "hip"}},
      {"knee", false, {"lowleg", "lowerleg", "shin", "calf", "tibia", "knee", "leg"}},
      {"ankle", true, {"ankle", "foot"}},
      {"toe", false, {"toebase", "toe", "toes", "ball", "foot"}},
      {"shoulder", true, {"upperarm", "uparm", "arm", "humerus", "shldr", "shoulder"}},
      {"elbow", false, {"forearm", "lowerarm", "lowarm", "radius", "elbow"}},
      {"wrist", false, {"hand", "wrist"}},
      {"neck", false, {"neck"}},
      {"head", false, {"head"}}};
  return kNames;
}

bool is_word(const std::string& core) {
  return std::any_of(point_names().begin(), point_names().end(), [&](const PointNames& p) {
    return std::find(p.names.begin(), p.names.end(), core) != p.names.end();
  });
}

/// Words of a name. It is split at other characters and at capitals that follow a lower-case letter or precede one.
std::vector<std::string> words_of(const std::string& name) {
  const std::size_t colon = name.find_last_of(":|");
  const std::string text = colon == std::string::npos ? name : name.substr(colon + 1);
  std::vector<std::string> words;
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto upper = [&](std::size_t k) {
      return k < text.size() && std::isupper(static_cast<unsigned char>(text[k]));
    };
    const auto lower = [&](std::size_t k) {
      return k < text.size() && std::islower(static_cast<unsigned char>(text[k]));
    };
    if (!std::isalnum(static_cast<unsigned char>(text[i]))) {
      open = false;
      continue;
    }
    if (upper(i) && i > 0 && (!upper(i - 1) || lower(i + 1))) open = false;
    if (!open) words.emplace_back();
    open = true;
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(text[i])));
  }
  return words;
}

}  // namespace

PlainName plain_name(const std::string& name) {
  static const std::vector<std::string> kNoise = {
      "mixamorig", "character1", "character", "bip01", "bip001", "bip", "def",   "org",  "avg", "m",    "f",
      "link",      "joint",      "jnt",       "bone",  "body",   "yaw", "pitch", "roll", "x",   "y",    "z",
      "rx",        "ry",         "rz",        "bend",  "motor",  "1",   "01",    "b",    "j",   "robot"};
  PlainName out;
  for (std::string word : words_of(name)) {
    if (word == "left" || word == "l" || word == "right" || word == "r") {
      out.side = word[0] == 'l' ? 1 : -1;
      continue;
    }
    if (std::find(kNoise.begin(), kNoise.end(), word) != kNoise.end()) continue;
    for (const auto& [prefix, side] : {std::pair<std::string, int>("left", 1), {"right", -1}}) {
      if (out.side == 0 && word.size() > prefix.size() && word.rfind(prefix, 0) == 0)
        out.side = side, word = word.substr(prefix.size());
    }
    out.core += word;
  }
  while (out.core.size() > 1 && std::isdigit(static_cast<unsigned char>(out.core.back()))) out.core.pop_back();
  // "lfemur", "rShldr": a letter before a word that has a left and right version.
  if (out.side == 0 && !is_word(out.core) && out.core.size() > 3 && (out.core[0] == 'l' || out.core[0] == 'r') &&
      is_word(out.core.substr(1))) {
    out.side = out.core[0] == 'l' ? 1 : -1;
    out.core = out.core.substr(1);
  }
  return out;
}

namespace {

int depth_of(const std::vector<SkeletonNode>& nodes, int node) {
  int depth = 0;
  for (; nodes[std::size_t(node)].parent >= 0; node = nodes[std::size_t(node)].parent) ++depth;
  return depth;
}

bool hangs_on(const std::vector<SkeletonNode>& nodes, int node, int ancestor) {
  for (; node >= 0; node = nodes[std::size_t(node)].parent) {
    if (node == ancestor) return true;
  }
  return false;
}

/// The node whose name matches `wanted` best; -1 if none does.
int by_name(const std::vector<SkeletonNode>& nodes, const std::vector<std::vector<PlainName>>& plain,
            const PointNames& wanted, int side) {
  int best = -1, best_rank = int(wanted.names.size()), best_depth = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const PlainName& name : plain[i]) {
      if (name.side != side) continue;
      const int rank = int(std::find(wanted.names.begin(), wanted.names.end(), name.core) - wanted.names.begin());
      if (rank == int(wanted.names.size())) continue;
      const int depth = depth_of(nodes, int(i));
      const bool better = rank < best_rank || (rank == best_rank && wanted.deepest && depth > best_depth);
      if (better) best = int(i), best_rank = rank, best_depth = depth;
      break;  // the names of a body's joints are used only if its own name matches nothing
    }
  }
  return best;
}

void find_by_names(const std::vector<SkeletonNode>& nodes, FoundPoints& found) {
  std::vector<std::vector<PlainName>> plain;
  for (const SkeletonNode& node : nodes) {
    plain.emplace_back();
    for (const std::string& name : node.names) {
      const PlainName p = plain_name(name);
      if (is_word(p.core)) plain.back().push_back(p);
    }
  }
  for (const PointNames& wanted : point_names()) {
    const bool middle = std::string(wanted.point) == "neck" || std::string(wanted.point) == "head";
    for (const int side : {1, -1}) {
      const int node = by_name(nodes, plain, wanted, middle ? 0 : side);
      const std::string point = middle ? wanted.point : (side > 0 ? "left_" : "right_") + std::string(wanted.point);
      if (node >= 0) found[point] = {node, false, 1};
    }
  }
}

/// The three joints of a limb, outward: the ends of the two longest consecutive bones on the path to `leaf`.
std::array<int, 3> limb_to(const std::vector<SkeletonNode>& nodes, int leaf) {
  std::array<int, 3> best{-1, -1, -1};
  double longest = 0;
  const auto at = [&](int i) { return nodes[std::size_t(i)]; };
  for (int c = leaf; c >= 0; c = at(c).parent) {
    const int b = at(c).parent, a = b >= 0 ? at(b).parent : -1;
    if (a < 0) break;
    const double lower = norm(at(c).position - at(b).position), upper = norm(at(b).position - at(a).position);
    if (std::min(lower, upper) > 0.4 * std::max(lower, upper) && lower + upper > longest)
      longest = lower + upper, best = {a, b, c};
  }
  return best;
}

void put_limb(const std::vector<SkeletonNode>& nodes, int leaf, const std::string& side,
              const std::array<const char*, 4>& points, FoundPoints& found) {
  const std::array<int, 3> limb = limb_to(nodes, leaf);
  if (limb[0] < 0) return;
  for (std::size_t i = 0; i < 3; ++i) found[side + points[i]] = {limb[i], false, 0.5};
  if (points[3] && leaf != limb[2]) found[side + points[3]] = {leaf, false, 0.5};
}

/// Finds points by position: feet are the lowest ends, hands the widest, the head the highest.
void find_by_places(const std::vector<SkeletonNode>& nodes, const Vec3d& up, FoundPoints& found) {
  std::vector<bool> has_child(nodes.size(), false);
  for (const SkeletonNode& node : nodes) {
    if (node.parent >= 0) has_child[std::size_t(node.parent)] = true;
  }
  std::vector<int> leaves;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!has_child[i]) leaves.push_back(int(i));
  }
  const auto at = [&](int i) { return nodes[std::size_t(i)].position; };
  std::sort(leaves.begin(), leaves.end(), [&](int a, int b) { return dot(at(a), up) < dot(at(b), up); });
  if (leaves.size() < 2) return;
  const int first = leaves[0];
  const std::array<int, 3> leg = limb_to(nodes, first);
  if (leg[0] < 0) return;
  // The other foot: the lowest end that is not on the same leg.
  const auto other = std::find_if(leaves.begin() + 1, leaves.end(), [&](int l) { return !hangs_on(nodes, l, leg[0]); });
  if (other == leaves.end()) return;
  const std::array<int, 3> leg2 = limb_to(nodes, *other);
  if (leg2[0] < 0) return;
  const Vec3d ahead = at(first) - at(leg[2]) + at(*other) - at(leg2[2]);  // toes are in front of ankles
  Vec3d forward = ahead - up * dot(up, ahead);
  const Vec3d across = at(leg[0]) - at(leg2[0]);
  const bool known = norm(forward) > 0.05 * norm(at(leg[1]) - at(leg[0]));
  const bool first_is_left = known ? dot(cross(up, forward), across) > 0 : true;
  const double sure_sides = known ? 1 : 0.3;
  put_limb(nodes, first, first_is_left ? "left_" : "right_", {"hip", "knee", "ankle", "toe"}, found);
  put_limb(nodes, *other, first_is_left ? "right_" : "left_", {"hip", "knee", "ankle", "toe"}, found);
  const Vec3d left = across * ((first_is_left ? 1 : -1) / std::max(norm(across), 1e-12));
  const Vec3d middle = (at(leg[0]) + at(leg2[0])) * 0.5;
  int left_hand = -1, right_hand = -1;
  double widest_left = 0, widest_right = 0;
  for (const int leaf : leaves) {
    if (hangs_on(nodes, leaf, leg[0]) || hangs_on(nodes, leaf, leg2[0])) continue;
    const double width = dot(at(leaf) - middle, left);
    if (width > widest_left) widest_left = width, left_hand = leaf;
    if (-width > widest_right) widest_right = -width, right_hand = leaf;
  }
  if (left_hand >= 0) put_limb(nodes, left_hand, "left_", {"shoulder", "elbow", "wrist", nullptr}, found);
  if (right_hand >= 0) put_limb(nodes, right_hand, "right_", {"shoulder", "elbow", "wrist", nullptr}, found);
  for (auto& [name, point] : found) point.sure *= sure_sides;
}

}  // namespace

bool has_legs(const FoundPoints& found) {
  for (const char* point : {"left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle"}) {
    if (!found.count(point)) return false;
  }
  return true;
}

namespace {

/// Drops limbs whose joints do not follow one another outward, and both limbs of a pair that share a joint.
void drop_broken_limbs(const std::vector<SkeletonNode>& nodes, FoundPoints& found) {
  const std::array<std::array<std::string, 3>, 2> limbs{{{"hip", "knee", "ankle"}, {"shoulder", "elbow", "wrist"}}};
  for (const auto& limb : limbs) {
    const auto at = [&](const std::string& side, const std::string& joint) {
      const auto point = found.find(side + joint);
      return point == found.end() ? -1 : point->second.node;
    };
    const bool shared = std::any_of(limb.begin(), limb.end(), [&](const std::string& left) {
      return std::any_of(limb.begin(), limb.end(), [&](const std::string& right) {
        return at("left_", left) >= 0 && at("left_", left) == at("right_", right);
      });
    });
    for (const std::string& joint : limb) {
      if (shared) found.erase("left_" + joint), found.erase("right_" + joint);
    }
  }
  for (const std::string side : {"left_", "right_"}) {
    for (const auto& limb : limbs) {
      for (std::size_t i = 1; i < 3; ++i) {
        const auto before = found.find(side + limb[i - 1]), after = found.find(side + limb[i]);
        if (after == found.end()) continue;
        const bool good = before != found.end() && before->second.node != after->second.node &&
                          hangs_on(nodes, after->second.node, before->second.node);
        if (!good) found.erase(after);
      }
    }
    const auto ankle = found.find(side + "ankle"), toe = found.find(side + "toe");
    const bool good = toe == found.end() || (ankle != found.end() && toe->second.node != ankle->second.node &&
                                             hangs_on(nodes, toe->second.node, ankle->second.node));
    if (!good) found.erase(toe);
  }
}

/// Uses the far end of the shin for a foot that is welded to it.
void add_fixed_feet(const std::vector<SkeletonNode>& nodes, FoundPoints& found) {
  for (const std::string side : {"left_", "right_"}) {
    const auto knee = found.find(side + "knee");
    if (knee == found.end() || found.count(side + "ankle")) continue;
    const int node = knee->second.node;
    if (std::none_of(nodes.begin(), nodes.end(), [&](const SkeletonNode& n) { return n.parent == node; }))
      found[side + "ankle"] = {node, true, knee->second.sure};
  }
}

}  // namespace

const std::vector<std::string>& skeleton_points() {
  static const std::vector<std::string> kPoints = [] {
    std::vector<std::string> out;
    for (const std::string side : {"left_", "right_"}) {
      for (const PointNames& p : point_names()) {
        if (std::string(p.point) != "neck" && std::string(p.point) != "head") out.push_back(side + p.point);
      }
    }
    out.insert(out.end(), {"neck", "head"});
    return out;
  }();
  return kPoints;
}

FoundPoints find_points(const std::vector<SkeletonNode>& nodes, const Vec3d& up) {
  FoundPoints found;
  find_by_names(nodes, found);
  drop_broken_limbs(nodes, found);
  add_fixed_feet(nodes, found);
  if (!has_legs(found)) {
    found.clear();
    find_by_places(nodes, up, found);
    drop_broken_limbs(nodes, found);
  }
  // If the head turns about the neck itself, its position is its far end.
  const auto neck = found.find("neck"), head = found.find("head");
  if (neck != found.end() && head != found.end() && neck->second.node == head->second.node) head->second.tip = true;
  // A foot without a toe or a forearm without a hand: use the far end.
  for (const std::string side : {"left_", "right_"}) {
    for (const auto& [last, beyond] : {std::pair<std::string, std::string>("ankle", "toe"), {"elbow", "wrist"}}) {
      const auto at = found.find(side + last);
      if (at != found.end() && !at->second.tip && !found.count(side + beyond))
        found[side + beyond] = {at->second.node, true, at->second.sure};
    }
  }
  return found;
}

std::vector<Vec3d> joint_positions(const MotionClip& clip, int frame, std::vector<Quatd>* turns_out) {
  const double* values = clip.frame(frame);
  std::vector<Vec3d> positions(clip.skeleton.size());
  std::vector<Quatd> turns(clip.skeleton.size());
  for (std::size_t i = 0; i < clip.skeleton.size(); ++i) {
    const ClipBone& bone = clip.skeleton[i];
    const Quatd above = bone.parent < 0 ? Quatd{1, 0, 0, 0} : turns[std::size_t(bone.parent)];
    const Vec3d from = bone.parent < 0 ? Vec3d{0, 0, 0} : positions[std::size_t(bone.parent)];
    Vec3d offset = bone.offset;
    if (const ClipChannel* c = clip.find(bone.name + ".position")) {
      offset = {values[c->column], values[c->column + 1], values[c->column + 2]};
    }
    positions[i] = from + rotate(above, offset);
    turns[i] = above;
    if (const ClipChannel* c = clip.find(bone.name)) {
      const double* v = values + c->column;
      turns[i] = normalized(
          above * (c->kind == ChannelKind::rotation ? Quatd{v[0], v[1], v[2], v[3]} : axis_angle(c->axis, v[0])));
    }
  }
  if (turns_out) *turns_out = std::move(turns);
  return positions;
}

std::vector<Vec3d> rest_positions(const MotionClip& clip) {
  std::vector<Vec3d> out;
  for (const ClipBone& b : clip.skeleton)
    out.push_back(b.parent < 0 ? Vec3d{0, 0, 0} : out[std::size_t(b.parent)] + b.offset);
  return out;
}

namespace {

/// The axis closest to a direction, if the cosine of the angle between them is above `least`.
std::optional<Vec3d> axis_along(const Vec3d& direction, double least) {
  int k = std::abs(direction.y) > std::abs(direction.x) ? 1 : 0;
  if (std::abs(direction.z) > std::abs(direction[k])) k = 2;
  Vec3d axis{0, 0, 0};
  axis[k] = direction[k] > 0 ? 1 : -1;
  return dot(direction, axis) > least * norm(direction) ? std::optional(axis) : std::nullopt;
}

Vec3d legs_up(const std::vector<Vec3d>& p, const FoundPoints& points) {
  const auto at = [&](const char* name) { return p[std::size_t(points.at(name).node)]; };
  return (at("left_hip") + at("right_hip") - at("left_ankle") - at("right_ankle")) * 0.5;
}

/// The axis in which a pose stands, with hips above ankles and shoulders, neck or head above the hips.
std::optional<Vec3d> standing_axis(const std::vector<Vec3d>& p, const FoundPoints& points) {
  const auto at = [&](const char* name) { return p[std::size_t(points.at(name).node)]; };
  const Vec3d hips = (at("left_hip") + at("right_hip")) * 0.5;
  Vec3d trunk{0, 0, 0};
  for (const char* point : {"left_shoulder", "right_shoulder", "neck", "head"}) {
    if (points.count(point)) trunk = trunk + at(point) - hips;
  }
  const std::optional<Vec3d> axis = axis_along(legs_up(p, points), 0.9);
  return axis && dot(trunk, *axis) > 0.7 * norm(trunk) ? axis : std::nullopt;
}

}  // namespace

Vec3d detect_up(const MotionClip& clip, const FoundPoints& points) {
  if (clip.format != "bvh") return clip.up;  // other formats specify it
  const int frames = clip.frame_count(), step = std::max(1, frames / 50);
  Vec3d sum{0, 0, 0};
  for (int i = 0; i < frames; i += step) {
    const Vec3d legs = legs_up(joint_positions(clip, i), points);
    if (norm(legs) > 0) sum = sum + legs * (1 / norm(legs));
  }
  const double least = 0.7;  // of the cosine between the mean and an axis; below it the direction is undecided
  const Vec3d moving = dot(sum, clip.up) > least * norm(sum) ? clip.up : axis_along(sum, least).value_or(clip.up);
  const std::vector<Vec3d> rest = rest_positions(clip);
  const Vec3d standing = standing_axis(rest, points).value_or(moving);
  if (dot(standing, moving) > 0.5) return moving;
  const auto height_of_lowest = [&](const Vec3d& up) {
    double total = 0;
    for (int i = 0; i < frames; i += step) {
      double low = kInfinity;
      for (const Vec3d& p : joint_positions(clip, i)) low = std::min(low, dot(p, up));
      total += std::abs(low);
    }
    return total / double((frames + step - 1) / step);
  };
  const double margin = 0.1 * norm(legs_up(rest, points));
  return height_of_lowest(moving) + margin < height_of_lowest(standing) ? moving : standing;
}

}  // namespace tarsus
