// Skeletons of clips and models alike: joints with names and places, and which of them are knees.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tarsus/control/clip.hpp"

namespace tarsus {

struct SkeletonNode {
  std::vector<std::string> names;  ///< the best first: a body's, then its joints'
  int parent = -1;                 ///< before its children
  Vec3d position{0, 0, 0};         ///< in one pose of the whole
};

struct FoundPoint {
  int node = -1;
  bool tip = false;  ///< beyond the node: the end of what hangs on it
  double sure = 1;
};
using FoundPoints = std::map<std::string, FoundPoint>;

/// Points of skeleton_points() that the nodes' names tell, and where legs are missing, those that their places tell.
/// @param up of the pose's axes
FoundPoints find_points(const std::vector<SkeletonNode>& nodes, const Vec3d& up);

/// Hips, knees and ankles, left and right.
bool has_legs(const FoundPoints& points);

/// Left or right (1, -1, 0) and what remains of a name: "mixamorig:LeftUpLeg" → 1, "upleg".
struct PlainName {
  int side = 0;
  std::string core;
};
PlainName plain_name(const std::string& name);

/// Joint positions of a clip's skeleton in a frame, source axes and units.
/// @param turns if given, the orientation of what each joint carries, source axes
std::vector<Vec3d> joint_positions(const MotionClip& clip, int frame, std::vector<Quatd>* turns = nullptr);
/// The axis of the source that points up. BVH files do not say: there, hips are above ankles; y where nothing
/// contradicts it.
Vec3d detect_up(const MotionClip& clip, const FoundPoints& points);

}  // namespace tarsus
