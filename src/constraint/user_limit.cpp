// A cone limit on a ball joint: the angle between an axis a of the link and its rest direction a₀ is at most α.
//
//     g = α - θ,    θ = atan2(|a₀ × a|, a₀ · a),    n = a₀ × a / |a₀ × a|
//     ġ = -n · ω                                     ω of the link against its parent
//
// Rotation about a itself is free: a swing limit, as shoulders and hips have beside a twist limit. If a is along a₀, no
// direction increases θ, and the limit is far. If a is opposite to a₀, every direction decreases θ. All vectors are in
// the link's axes, in which a is constant and a₀ = q⁻¹ a.
#include <cmath>

#include "tarsus/base/check_index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/constraint/user_limit.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

void check(const UserLimit& limit, const Model& model) {
  const std::string what = " of limit \"" + limit.name + "\"";
  check_index("joint" + what, limit.joint, model.njoint());
  if (moves_freely(model.joints[limit.joint].type))
    throw ValueError("joint" + what, "\"" + model.joints[limit.joint].name + "\"", "a hinge, a slide or a ball joint");
  if (!limit.evaluate) throw ValueError("function" + what, "none", "a function of the joint's qpos");
}

UserLimit cone_limit(const Model& model, const std::string& name, int joint, const Vec3d& axis, double angle) {
  const auto refuse = [&](const std::string& what, const std::string& value, const std::string& wanted) {
    throw ValueError(what + " of \"" + name + "\"", value, wanted);
  };
  if (joint < 0 || joint >= model.njoint() || !turns_freely(model.joints[joint].type))
    refuse("joint", std::to_string(joint), "a ball joint");
  if (!(std::abs(norm(axis) - 1) <= 1e-9)) refuse("axis", number_text(norm(axis)) + " long", "a unit vector");
  if (!(angle > 0 && angle < kPi)) refuse("angle", number_text(angle), "more than 0, less than pi [rad]");
  const auto evaluate = [axis, angle](std::span<const double> q) -> std::optional<UserLimit::Value> {
    const Quatd turn = normalized(Quatd{q[0], q[1], q[2], q[3]});
    const Vec3d rest = rotate(conjugate(turn), axis), across = cross(rest, axis);
    const double sine = norm(across);
    if (sine < 1e-9) return {};
    return UserLimit::Value{angle - elementary::atan2(sine, dot(rest, axis)), across * (-1 / sine)};
  };
  return {name, joint, evaluate};
}

}  // namespace tarsus
