// Retargets a motion from one skeleton to a model with another: finds corresponding points and solves for the poses.
//
// The result does not depend on the source's rest pose or on the axes of its joints. The pose of a frame is the
// least-squares fit of:
//
// - directions of the segments between points (bones, the axes through hips and shoulders, the trunk);
// - positions of the ankles and of the middle of the hips in the source, scaled by leg length;
// - with a low weight, axes that the directions leave undetermined: the bending axes of knees and elbows, and the
//   pelvis's up. Each axis is the direction, fixed in a bone of the source, that best fits the positions of all frames
//   (the axis of the bend, or the direction of the shoulders). The bone carries the axis through frames in which the
//   limb is straight;
// - with a low weight, the model's own pose.
//
// The solver is Gauss-Newton with Levenberg damping, started from the previous frame. The first frame starts from bent
// limbs, because a limb that starts rotated the wrong way about its own axis bends against the end of its range and
// stays there. A foot in stance is held in place and lifted until none of its shapes is below the ground.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Names of the points: hip knee ankle toe shoulder elbow wrist with left_ or right_ before, neck and head. Both
/// skeletons must have the points of a pair of legs; arms, neck and head are used if both have them.
const std::vector<std::string>& skeleton_points();

/// Maps a clip's skeleton to a humanoid model: by names (Mixamo, CMU, DAZ, LAFAN1, SMPL, Blender, Unreal, MVN,
/// Biovision and similar), else by where branches end (feet low, hands wide, head high).
/// @throws InputError if the clip has no skeleton or if the legs of one skeleton cannot be identified; lists the names
/// tried
ClipMapping map_skeleton(const Model& model, const MotionClip& clip);
/// Confidence from 0 to 1: the mean over the points by how each was found (name 1, topology 0.5), reduced if left and
/// right differ in length.
double confidence(const ClipMapping& mapping);
/// What a mapping that was found, not given, is worth: a warning of a confidence under 0.7, otherwise nothing.
/// @throws InputError for a confidence under 0.3: the skeletons do not seem to match
std::optional<Diagnostic> check_match(const ClipMapping& mapping);

struct RetargetReport {
  Vec3d up{0, 0, 1}, forward{1, 0, 0};   ///< axes of the source, as the mapping gives them or as detected
  double scale = 1;                      ///< the model's leg length over the source's
  double direction_error = 0;            ///< mean angle between a segment and the source's [rad]
  double direction_worst = 0;            ///< largest mean of a single segment [rad]
  std::string worst;                     ///< that segment
  int stances = 0;                       ///< number of times a foot stood on the ground for 0.1 s or longer
  double slide_mean = 0, slide_max = 0;  ///< horizontal displacement of an ankle during a stance [m]
  double sink_max = 0;                   ///< largest depth of a foot below the ground [m]
};

/// The report as a sentence.
std::string text(const RetargetReport& report);

struct Retargeted {
  MotionClip clip;  ///< of format "tarsus", with one channel for each joint of the model
  RetargetReport report;
};

/// @param mapping with points, as from map_skeleton()  @throws InputError naming points that do not exist
Retargeted retarget(const Model& model, const MotionClip& clip, const ClipMapping& mapping);

}  // namespace tarsus
