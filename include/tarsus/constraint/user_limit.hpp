// User-defined limits: g(q) >= 0 of one joint, one row each, solved with the joints' ranges in every step.
//
//     ġ = e · q̇,    γ >= 0,    generalised impulse e γ
//
// e is in qvel's axes: its first number for a hinge or slide, three numbers in the link's axes for a ball joint.
// docs/add_a_constraint.md builds a limit step by step.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tarsus/model/model.hpp"

namespace tarsus {

struct UserLimit {
  struct Value {
    double gap = 0;    ///< g [rad | m]
    Vec3d e{0, 0, 0};  ///< gradient of g
  };
  std::string name{};
  int joint = -1;  ///< hinge, slide or ball
  /// Called with the joint's part of qpos. Returns nothing if there is no row in this step: g has no gradient, or the
  /// limit is far. The threads of a Batch call it at the same time.
  std::function<std::optional<Value>(std::span<const double> qpos)> evaluate{};
};

/// @throws ValueError unless the joint is one of the model's and not free, and `evaluate` is set
void check(const UserLimit& limit, const Model& model);

/// A cone limit: an axis fixed to a ball joint's link stays within `angle` of its rest direction.
/// @param axis unit, in the body's frame  @param angle half the cone's opening, 0 to π [rad]
/// @throws ValueError naming what is wrong
UserLimit cone_limit(const Model& model, const std::string& name, int joint, const Vec3d& axis, double angle);

}  // namespace tarsus
