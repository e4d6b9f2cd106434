// A user's limits: g(q) >= 0 of one joint, one row each, solved with the joints' own ranges in every step.
//
//     ġ = e · q̇,    γ >= 0,    generalised impulse e γ
//
// e is in qvel's axes: of a hinge or slide its first number, of a ball the three in the link's axes.
// docs/add_a_constraint.md builds one from nothing.
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
    Vec3d e{0, 0, 0};  ///< its gradient
  };
  std::string name{};
  int joint = -1;  ///< hinge, slide or ball
  /// From the joint's own part of qpos; nothing: no row in this step, where g has no gradient or is far.
  std::function<std::optional<Value>(std::span<const double> qpos)> evaluate{};
};

/// @throws ValueError unless the joint is one of the model's and not free, and the function is given
void check(const UserLimit& limit, const Model& model);

/// A cone: an axis of a ball joint's link stays within `angle` of where it is at rest.
/// @param axis unit, in the body's frame  @param angle half the cone's opening, 0 to π [rad]
/// @throws ValueError naming what is wrong
UserLimit cone_limit(const Model& model, const std::string& name, int joint, const Vec3d& axis, double angle);

}  // namespace tarsus
