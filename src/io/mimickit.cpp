#include "tarsus/io/mimickit.hpp"

#include <fmt/format.h>

#include <cmath>

#include "clip_json.hpp"
#include "pickle.hpp"
#include "tarsus/io/bvh.hpp"

namespace tarsus {
namespace {

using PickleKind = PickleValue::Kind;

[[noreturn]] void refuse_motion(const std::string& file, const std::string& what) {
  throw InputError(Location{file, 0, 0, {}}, what);
}

struct PickledRows {
  std::size_t width = 0;
  std::vector<double> values;
};

/// The rows of a list of lists of numbers or of an array.
PickledRows motion_rows(const PickleValue& frames, const std::string& file) {
  PickledRows out;
  if (frames.kind == PickleKind::array && frames.shape.size() == 2) {
    out.width = frames.shape[1], out.values = frames.numbers;
  } else if (frames.kind == PickleKind::list || frames.kind == PickleKind::tuple) {
    for (std::size_t i = 0; i < frames.items.size(); ++i) {
      const PickleValue& row = *frames.items[i];
      const std::size_t width = row.kind == PickleKind::array ? row.numbers.size() : row.items.size();
      if (i == 0) out.width = width;
      if (width != out.width)
        refuse_motion(file, fmt::format("frame {} has {} numbers, but the first frame has {}", i, width, out.width));
      for (std::size_t k = 0; k < width; ++k) {
        if (row.kind != PickleKind::array && row.items[k]->kind != PickleKind::number)
          refuse_motion(file, fmt::format("frame {}: not a number", i));
        out.values.push_back(row.kind == PickleKind::array ? row.numbers[k] : row.items[k]->number);
      }
    }
  }
  if (out.values.empty()) refuse_motion(file, "\"frames\" must be a list of at least one frame");
  if (out.values.size() > kMaxBvhNumbers)
    refuse_motion(file, fmt::format("{} numbers, expected at most {}", out.values.size(), kMaxBvhNumbers));
  return out;
}

constexpr std::size_t kHumanoidWidth = 34;

struct HumanoidJoint {
  const char* name;
  Vec3d axis;  ///< the axis of a hinge; zero for a joint with three degrees of freedom
};

const std::vector<HumanoidJoint>& humanoid_joints() {
  static const std::vector<HumanoidJoint> kAll = {
      {"chest", {0, 0, 0}},       {"neck", {0, 0, 0}},          {"right_shoulder", {0, 0, 0}},
      {"right_elbow", {0, 0, 1}}, {"left_shoulder", {0, 0, 0}}, {"left_elbow", {0, 0, 1}},
      {"right_hip", {0, 0, 0}},   {"right_knee", {0, 1, 0}},    {"right_ankle", {0, 0, 0}},
      {"left_hip", {0, 0, 0}},    {"left_knee", {0, 1, 0}},     {"left_ankle", {0, 0, 0}}};
  return kAll;
}

/// MimicKit's humanoid with the lengths of DeepMimic's, arms stretched out to the sides.
std::vector<ClipBone> humanoid_skeleton() {
  std::vector<ClipBone> bones = {{"root", -1, {0, 0, 0}},
                                 {"chest", 0, {0, 0, 0.236151}},
                                 {"neck", 1, {0, 0, 0.223894}},
                                 {"head", 2, {0, 0, 0.175}}};
  for (const auto& [side, y] : {std::pair<std::string, double>("right_", -1), {"left_", 1}}) {
    const int first = int(bones.size());
    bones.push_back({side + "hip", 0, {0, 0.084887 * y, 0}});
    bones.push_back({side + "knee", first, {0, 0, -0.421546}});
    bones.push_back({side + "ankle", first + 1, {0, 0, -0.40987}});
    bones.push_back({side + "toe", first + 2, {0.1335, 0, -0.0225}});
    bones.push_back({side + "shoulder", 1, {-0.02405, 0.18311 * y, 0.2435}});
    bones.push_back({side + "elbow", first + 4, {0, 0.274788 * y, 0}});
    bones.push_back({side + "wrist", first + 5, {0, 0.258947 * y, 0}});
  }
  return bones;
}

}  // namespace

MotionClip parse_mimickit(std::string_view bytes, const std::string& name) {
  const std::shared_ptr<const PickleValue> file = read_pickle(bytes, name);
  const PickleValue *frames = file->find("frames"), *fps = file->find("fps"), *loop = file->find("loop_mode");
  if (!frames || !fps || !loop)
    refuse_motion(
        name, "this pickle is not a MimicKit motion: a dict with \"frames\", \"fps\" and \"loop_mode\" is expected");
  if (fps->kind != PickleKind::number || !(fps->number > 0) || !std::isfinite(fps->number))
    refuse_motion(name, "\"fps\" must be a positive number");
  if (loop->kind != PickleKind::number || (loop->number != 0 && loop->number != 1))
    refuse_motion(name, "\"loop_mode\" must be 0 (it ends) or 1 (it loops)");
  const PickledRows rows = motion_rows(*frames, name);
  if (rows.width < 7)
    refuse_motion(name,
                  fmt::format("a frame has {} numbers, expected six of the root and those of the joints", rows.width));

  MotionClip clip;
  clip.file = name, clip.name = stem(name), clip.loop = loop->number == 1, clip.cycle_heading = false;
  const bool humanoid = rows.width == kHumanoidWidth;
  clip.format = humanoid ? "mimickit_humanoid" : "mimickit";
  if (humanoid) clip.skeleton = humanoid_skeleton();
  clip.add_channel("root.position", ChannelKind::position), clip.add_channel("root", ChannelKind::rotation);
  if (humanoid) {
    for (const HumanoidJoint& j : humanoid_joints())
      clip.add_channel(j.name, norm(j.axis) > 0 ? ChannelKind::angle : ChannelKind::rotation, j.axis);
  } else {
    for (std::size_t k = 6; k < rows.width; ++k) clip.add_channel(fmt::format("joint.{}", k - 5), ChannelKind::angle);
  }
  const std::size_t count = rows.values.size() / rows.width;
  for (std::size_t i = 0; i < count; ++i) {
    clip.times.push_back(double(i) / fps->number);
    const double* in = &rows.values[i * rows.width];
    for (const ClipChannel& c : clip.channels) {
      if (c.kind == ChannelKind::rotation) {
        add_rotation(clip, in, c.name);
        in += 3;
      } else {
        clip.values.insert(clip.values.end(), in, in + width(c.kind));
        in += width(c.kind);
      }
    }
  }
  clean_clip(clip, [&](int frame, int) { return Location{name, 0, 0, fmt::format("frame {}", frame)}; });
  return clip;
}

ClipMapping mimickit_mapping(const Model& model, const MotionClip& clip) {
  ClipMapping mapping;
  mapping.name = "joints in the model's order", mapping.format = "mimickit";
  if (clip.channels.size() < 2) return mapping;
  const std::size_t angles = clip.channels.size() - 2;
  if (model.joints.size() != angles + 1 || !moves_freely(model.joints[0].type)) return mapping;
  for (std::size_t j = 1; j < model.joints.size(); ++j) {
    if (model.joints[j].nv() != 1) return mapping;
  }
  for (const Body& body : model.bodies) {
    if (body.joint_count > 1) return mapping;
  }
  for (std::size_t j = 0; j < model.joints.size(); ++j) {
    JointMapping joint;
    joint.joint = joint_label(model, int(j));
    joint.from = {clip.channels[j + 1].name};
    if (j == 0) joint.position = clip.channels[0].name;
    mapping.joints.push_back(std::move(joint));
  }
  return mapping;
}

}  // namespace tarsus
