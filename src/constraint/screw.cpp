// A screw: a slide that a hinge drives by its thread. One bilateral row,
//
//     φ = (x - x₀) - p/(2π) (θ - θ₀),    J = (1, -p/(2π)) on (x, θ),    J̇ q̇ = 0
//
// with the pitch p [m a turn], positive for a right-handed thread if both joints have the same axis, and x₀, θ₀ at
// qpos0. The row's force is that of the thread on the nut [N]; the torque is p/(2π) times that force. The thread has no
// friction. The hinge and the slide may belong to different bodies, such as a lead screw and its nut.
//
// The row is a linear polynomial between two joints, and the same kernel evaluates it, in lanes and in single
// precision.
#include <cmath>

#include "tarsus/base/number_text.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

int EqualitySet::add_screw(const std::string& name, int slide, int hinge, double pitch) {
  const auto refuse = [&](const char* what, const std::string& value, const char* wanted) {
    throw ValueError(std::string(what) + " of \"" + name + "\"", value, wanted);
  };
  check_joint(name, slide), check_joint(name, hinge);
  if (!slides_on_axis(model_->joints[slide].type)) refuse("slide", model_->joints[slide].name, "a slide");
  if (!turns_on_axis(model_->joints[hinge].type)) refuse("hinge", model_->joints[hinge].name, "a hinge");
  if (!std::isfinite(pitch) || pitch == 0) refuse("pitch", number_text(pitch), "a number of metres a turn, not 0");
  const int index = add_joint(name, slide, hinge, {0, pitch / (2 * kPi), 0, 0, 0});
  equalities_[index].kind = EqualityKind::screw;
  return index;
}

}  // namespace tarsus
