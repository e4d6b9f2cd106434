// Skeletons of clips and models: joints with names and positions, and detection of their anatomical points.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tarsus/control/clip.hpp"

namespace tarsus {

struct SkeletonNode {
  std::vector<std::string> names;  ///< in order of preference: a body's, then those of its joints
  int parent = -1;                 ///< precedes its children
  Vec3d position{0, 0, 0};         ///< in one pose of the whole skeleton
};

struct FoundPoint {
  int node = -1;
  bool tip = false;  ///< the far end beyond the node
  double sure = 1;
};
using FoundPoints = std::map<std::string, FoundPoint>;

/// Finds the points of skeleton_points() by the nodes' names and, if legs are missing, by their positions.
/// @param up direction in the axes of the pose
FoundPoints find_points(const std::vector<SkeletonNode>& nodes, const Vec3d& up);

/// Whether hips, knees and ankles are there, left and right.
bool has_legs(const FoundPoints& points);

/// Side (1: left, -1: right, 0) and remainder of a name: "mixamorig:LeftUpLeg" → 1, "upleg".
struct PlainName {
  int side = 0;
  std::string core;
};
PlainName plain_name(const std::string& name);

/// Nearest common ancestor of two nodes of a tree (a node itself counts), if parents have lower indices than children.
template <class Parent>
int common_ancestor(int a, int b, const Parent& parent) {
  while (a != b) (a > b ? a : b) = parent(a > b ? a : b);
  return a;
}

/// Joint positions of a clip's skeleton in a frame, source axes and units.
/// @param turns if given, receives the orientation of each joint's frame, source axes
std::vector<Vec3d> joint_positions(const MotionClip& clip, int frame, std::vector<Quatd>* turns = nullptr);
/// Joint positions at rest: those of the bones' offsets, with the root at the origin.
std::vector<Vec3d> rest_positions(const MotionClip& clip);
/// The upward axis of the source. BVH files do not specify it. There it is the axis in which the rest pose stands. If
/// that stands in none, it is the axis in which hips are above ankles in the motion, and y if nothing contradicts it.
/// If the two differ, the character lies, or its root is turned from the axes of the rest pose to those of the world;
/// then it is the axis in which the lowest joint is closer to zero, where the ground is.
Vec3d detect_up(const MotionClip& clip, const FoundPoints& points);

}  // namespace tarsus
