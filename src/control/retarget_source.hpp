// Positions of the points of a clip's skeleton that a mapping names, frame by frame, and directions fixed in its bones.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/skeleton.hpp"

namespace tarsus {

using Points = std::map<std::string, Vec3d>;

inline Location place_of(const MotionClip& clip) { return {clip.file, 0, 0, {}}; }

inline std::string joint_names(const MotionClip& clip) {
  std::string out;
  for (const ClipBone& bone : clip.skeleton) out += (out.empty() ? "" : ", ") + bone.name;
  return out;
}

/// The points that a mapping names, and the "pelvis" in the middle of the hips, in the model's world: z up, metres of
/// the model, ground at z = 0.
class RetargetSource {
 public:
  RetargetSource(const MotionClip& clip, const ClipMapping& mapping) : clip_(clip) {
    for (const PointMapping& p : mapping.points) {
      const auto at =
          std::find_if(clip.skeleton.begin(), clip.skeleton.end(), [&](const ClipBone& b) { return b.name == p.from; });
      if (at == clip.skeleton.end())
        throw InputError(p.where.file.empty() ? place_of(clip) : p.where,
                         fmt::format("point '{}': the clip's skeleton has no joint '{}'; its joints: {}", p.point,
                                     p.from, joint_names(clip)));
      for (const auto& [name, other] : found_) {
        if (other.node == int(at - clip.skeleton.begin()))
          throw InputError(p.where.file.empty() ? place_of(clip) : p.where,
                           fmt::format("points '{}' and '{}' are both joint '{}'", name, p.point, p.from));
      }
      found_[p.point] = {int(at - clip.skeleton.begin()), false, p.sure};
    }
    for (const char* part : {"hip", "knee", "ankle"}) {
      for (const std::string side : {"left_", "right_"}) {
        if (found_.count(side + part)) continue;
        throw InputError(mapping.file.empty() ? place_of(clip) : Location{mapping.file, 0, 0, {}},
                         fmt::format("a mapping of points needs hips, knees and ankles: there is no {}{}", side, part));
      }
    }
    up_ = mapping.up ? *mapping.up : detect_up(clip, found_), forward_ = mapping.forward.value_or(clip.forward);
    if (std::abs(dot(up_, forward_)) > 1e-9) forward_ = std::abs(up_.z) > 0.5 ? Vec3d{1, 0, 0} : Vec3d{0, 0, 1};
    basis_ = from_rows(forward_, cross(up_, forward_), up_);
    for (int i = 0; i < clip.frame_count(); ++i) {
      std::vector<Quatd> turns;
      const std::vector<Vec3d> p = joint_positions(clip, i, &turns);
      turns_.push_back(std::move(turns));
      Points at;
      for (const auto& [name, found] : found_) at[name] = basis_ * p[std::size_t(found.node)];
      at["pelvis"] = (at.at("right_hip") + at.at("left_hip")) * 0.5;
      frames_.push_back(std::move(at));
    }
  }

  /// The bone that ends in a point; -1 for a point of the root.
  int bone_above(const std::string& point) const { return parent(found_.at(point).node); }
  /// The bone that carries both hips; -1 without.
  int pelvis_bone() const {
    return common_ancestor(found_.at("left_hip").node, found_.at("right_hip").node, [&](int i) { return parent(i); });
  }

  /// Adds the point `at`_axis, displaced from `at` in the direction that is fixed in `bone` and fits `axes` best. There
  /// is one axis per frame; a longer one has more weight. The direction is also defined in frames without an axis, as
  /// with a straight limb.
  /// @return agreement of the axes, 0 to 1; 0 without a bone
  double add_axis(const std::string& at, int bone, const std::vector<Vec3d>& axes) {
    if (bone < 0) return 0;
    const auto turn = [&](std::size_t i) { return basis_ * rotation(turns_[i][std::size_t(bone)]); };
    Vec3d sum{0, 0, 0};
    double total = 0;
    for (std::size_t i = 0; i < axes.size(); ++i) sum = sum + transpose_mul(turn(i), axes[i]), total += norm(axes[i]);
    if (!(norm(sum) > 1e-9)) return 0;
    const Vec3d axis = sum * (1 / norm(sum));
    for (std::size_t i = 0; i < frames_.size(); ++i) frames_[i][at + "_axis"] = frames_[i].at(at) + turn(i) * axis;
    return norm(sum) / total;
  }

  void set_scale(double scale) {
    for (Points& frame : frames_) {
      for (auto& [name, p] : frame) p = p * scale;
    }
  }
  const Vec3d& up() const { return up_; }
  const Vec3d& forward() const { return forward_; }
  const Points& frame(int i) const { return frames_[std::size_t(i)]; }
  int count() const { return int(frames_.size()); }
  double time(int i) const { return clip_.times[std::size_t(i)]; }
  double leg(const std::string& side) const {
    const Points& p = frames_.front();
    return norm(p.at(side + "hip") - p.at(side + "knee")) + norm(p.at(side + "knee") - p.at(side + "ankle"));
  }
  /// The given quantile of the point's height over the frames.
  double low(const std::string& point, double share) const {
    std::vector<double> z;
    for (const Points& p : frames_) z.push_back(p.at(point).z);
    const auto at = z.begin() + std::ptrdiff_t(share * double(z.size() - 1));
    std::nth_element(z.begin(), at, z.end());
    return *at;
  }

 private:
  int parent(int bone) const { return clip_.skeleton[std::size_t(bone)].parent; }

  const MotionClip& clip_;
  FoundPoints found_;
  Vec3d up_, forward_;  ///< source axes
  Mat3d basis_ = identity3<double>();
  std::vector<Points> frames_;
  std::vector<std::vector<Quatd>> turns_;  ///< [frame][bone]
};

}  // namespace tarsus
