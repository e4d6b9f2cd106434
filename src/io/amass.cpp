#include "tarsus/io/amass.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "clip_json.hpp"
#include "tarsus/io/bvh.hpp"

namespace tarsus {
namespace {

struct SmplJoint {
  const char* name;
  int parent;
  Vec3d offset;  ///< from the parent's joint in the T-pose: x left, y up, z ahead [m]
};

constexpr std::size_t kSmplJoints = 22;
const std::array<SmplJoint, kSmplJoints>& smpl_joints() {
  static const std::array<SmplJoint, kSmplJoints> kAll = {{{"pelvis", -1, {0, 0, 0}},
                                                           {"left_hip", 0, {0.07, -0.09, 0}},
                                                           {"right_hip", 0, {-0.07, -0.09, 0}},
                                                           {"spine1", 0, {0, 0.12, -0.03}},
                                                           {"left_knee", 1, {0.03, -0.38, 0}},
                                                           {"right_knee", 2, {-0.03, -0.38, 0}},
                                                           {"spine2", 3, {0, 0.14, 0.03}},
                                                           {"left_ankle", 4, {-0.01, -0.40, -0.04}},
                                                           {"right_ankle", 5, {0.01, -0.40, -0.04}},
                                                           {"spine3", 6, {0, 0.06, 0}},
                                                           {"left_foot", 7, {0.03, -0.06, 0.12}},
                                                           {"right_foot", 8, {-0.03, -0.06, 0.12}},
                                                           {"neck", 9, {0, 0.21, -0.03}},
                                                           {"left_collar", 9, {0.07, 0.11, -0.02}},
                                                           {"right_collar", 9, {-0.07, 0.11, -0.02}},
                                                           {"head", 12, {0, 0.09, 0.05}},
                                                           {"left_shoulder", 13, {0.12, 0.05, -0.02}},
                                                           {"right_shoulder", 14, {-0.12, 0.05, -0.02}},
                                                           {"left_elbow", 16, {0.26, -0.01, -0.02}},
                                                           {"right_elbow", 17, {-0.26, -0.01, -0.02}},
                                                           {"left_wrist", 18, {0.25, 0.01, 0}},
                                                           {"right_wrist", 19, {-0.25, 0.01, 0}}}};
  return kAll;
}

double rate_of(NpzReader& file, const std::string& name) {
  for (const char* key : {"mocap_framerate", "mocap_frame_rate", "fps"}) {
    if (!file.has(key)) continue;
    const double rate = file.read_number(key);
    if (rate > 0 && std::isfinite(rate)) return rate;
    throw InputError(Location{name, 0, 0, {}}, fmt::format("\"{}\" is {}, expected a positive rate", key, rate));
  }
  throw InputError(Location{name, 0, 0, {}},
                   "the frame rate is missing: there is no \"mocap_framerate\" or \"mocap_frame_rate\"");
}

/// Rotation vectors of the joints, in frames of `width` numbers as in the file. The first 22 joints are used.
struct SmplPoses {
  std::size_t frames = 0, width = 0;
  std::vector<double> values;
};

SmplPoses smpl_poses(NpzReader& file, const std::string& name) {
  SmplPoses out;
  if (file.has("poses")) {
    const NpzInfo info = file.info("poses");
    if (info.shape.size() != 2 || info.shape[1] % 3 != 0 || info.shape[1] < 3 * kSmplJoints) {
      throw InputError(Location{name, 0, 0, {}},
                       fmt::format("\"poses\" has the shape {}; expected (frames, 3 k) with k of at least {}",
                                   tarsus::text(info.shape), kSmplJoints));
    }
    out.frames = info.shape[0], out.width = info.shape[1];
    out.values = file.read_real("poses", {NpzReader::kAny, out.width});
    return out;
  }
  if (!file.has("root_orient") || !file.has("pose_body")) {
    std::string names;
    for (const std::string& n : file.names()) names += (names.empty() ? "" : ", ") + n;
    throw InputError(Location{name, 0, 0, {}},
                     "this .npz is not an AMASS motion: expected \"poses\", or \"root_orient\" and \"pose_body\"; it "
                     "contains " +
                         names);
  }
  const std::vector<double> root = file.read_real("root_orient", {NpzReader::kAny, 3});
  out.frames = root.size() / 3, out.width = 3 * kSmplJoints;
  const std::vector<double> body = file.read_real("pose_body", {out.frames, out.width - 3});
  for (std::size_t i = 0; i < out.frames; ++i) {
    out.values.insert(out.values.end(), root.begin() + std::ptrdiff_t(3 * i), root.begin() + std::ptrdiff_t(3 * i + 3));
    const auto from = body.begin() + std::ptrdiff_t(i * (out.width - 3));
    out.values.insert(out.values.end(), from, from + std::ptrdiff_t(out.width - 3));
  }
  return out;
}

}  // namespace

MotionClip read_amass(NpzReader& file, const std::string& name) {
  MotionClip clip;
  clip.file = name, clip.name = stem(name), clip.format = "amass";
  const SmplPoses poses = smpl_poses(file, name);
  if (poses.frames == 0) throw InputError(Location{name, 0, 0, {}}, "the clip has no frames");
  const double rate = rate_of(file, name);
  const std::vector<double> places = file.read_real("trans", {poses.frames, 3});

  clip.add_channel("pelvis.position", ChannelKind::position);
  for (const SmplJoint& joint : smpl_joints()) {
    clip.skeleton.push_back({joint.name, joint.parent, joint.offset});
    clip.add_channel(joint.name, ChannelKind::rotation);
  }
  if (poses.frames * std::size_t(clip.width) > kMaxBvhNumbers) {
    throw InputError(Location{name, 0, 0, {}}, fmt::format("{} frames, expected at most {}", poses.frames,
                                                           kMaxBvhNumbers / std::size_t(clip.width)));
  }
  for (std::size_t i = 0; i < poses.frames; ++i) {
    clip.times.push_back(double(i) / rate);
    for (std::size_t k = 0; k < 3; ++k) clip.values.push_back(places[3 * i + k]);
    for (std::size_t j = 0; j < kSmplJoints; ++j)
      add_rotation(clip, &poses.values[i * poses.width + 3 * j], smpl_joints()[j].name);
  }
  clip.diagnostics.push_back({Severity::note,
                              {name, 0, 0, {}},
                              "the body's shape is not used: the skeleton has the lengths of an average adult"});
  clean_clip(clip, [&](int frame, int) { return Location{name, 0, 0, fmt::format("frame {}", frame)}; });
  return clip;
}

}  // namespace tarsus
