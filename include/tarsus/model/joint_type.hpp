#pragma once

namespace tarsus {

/// free: 7 qpos (position; quaternion w x y z), 6 qvel (linear in world axes; angular in body axes). ball: 4 and 3
/// (angular, in the child's axes). slide and hinge: 1 and 1.
enum class JointType : int { free, ball, slide, hinge };

inline constexpr int qpos_count(JointType type) {
  return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1;
}
inline constexpr int qvel_count(JointType type) {
  return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1;
}
const char* name(JointType type);

}  // namespace tarsus
