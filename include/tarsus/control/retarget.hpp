// A motion of one skeleton on the model of another: which of their points belong together, and the poses that follow.
//
// Neither the source's rest pose nor the axes of its joints matter. A frame's pose is that of least squares over:
//
// - directions of the segments between points (bones, the axes through hips and shoulders, the trunk);
// - positions of the ankles and of the middle of the hips in the source, scaled by leg length;
// - axes, weakly, where directions do not settle the pose: those that knees and elbows bend about, and the pelvis's up.
//   Each is the direction, fixed in a bone of the source, that fits the positions of all frames best (the axis of the
//   bend, or where the shoulders are). The bone carries it also through frames in which the limb is straight;
// - a weak pull to the model's own pose.
//
// Gauss-Newton with Levenberg's damping, started from the frame before; the first from bent limbs, since a limb that
// starts turned the wrong way about itself bends against the end of its range and stays there.
// A foot that stands is held where it stands, and lifted until no shape of it is below the ground.
#pragma once

#include <string>
#include <vector>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Points that a pair of legs must have, on both sides; arms, neck and head are used where both skeletons have them.
/// Names: hip knee ankle toe shoulder elbow wrist with left_ or right_ before, neck and head.
const std::vector<std::string>& skeleton_points();

/// The mapping from a clip's skeleton to a humanoid model: by names (Mixamo, CMU, DAZ, LAFAN1, SMPL, Blender, Unreal,
/// MVN, Biovision and what is like them), else by where branches end (feet low, hands wide, head high).
/// @throws InputError without a skeleton in the clip, or legs that cannot be told in one of the two; says which names
///   were tried
ClipMapping map_skeleton(const Model& model, const MotionClip& clip);
/// From 0 to 1: the mean over the points of how each was found (name 1, topology 0.5), lowered where left and right
/// differ in length.
double confidence(const ClipMapping& mapping);

struct RetargetReport {
  double scale = 1;                      ///< model's leg length over the source's
  double direction_error = 0;            ///< mean angle between a segment and its source's [rad]
  double direction_worst = 0;            ///< the largest mean of a segment [rad]
  std::string worst;                     ///< that segment
  int stances = 0;                       ///< of a foot on the ground, 0.1 s or longer
  double slide_mean = 0, slide_max = 0;  ///< way of an ankle from its place during a stance, horizontally [m]
  double sink_max = 0;                   ///< lowest point of a foot below the ground [m]
};

/// The figures in a sentence.
std::string text(const RetargetReport& report);

struct Retargeted {
  MotionClip clip;  ///< of format "tarsus", a channel for each joint of the model
  RetargetReport report;
};

/// @param mapping with points, as map_skeleton() makes it  @throws InputError naming points that do not exist
Retargeted retarget(const Model& model, const MotionClip& clip, const ClipMapping& mapping);

}  // namespace tarsus
