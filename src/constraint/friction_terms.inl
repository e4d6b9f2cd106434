// Dry joint friction as terms: |γ| <= h f against each DoF's velocity, with b = 0. c is the last step's impulse, so
// that a joint that sticks does not creep.
#pragma once

#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

template <class R>
void StepTerms<R>::add_friction_loss() {
  const WorldTable<R>* const own = step_.data->own;
  for (int i = 0; i < model_.njoint(); ++i) {
    const Joint& joint = model_.joints[i];
    const double loss = own && !own->friction_loss.empty() ? double(own->friction_loss[i]) : joint.friction_loss;
    if (!(loss > 0)) continue;
    for (int k = 0; k < joint.nv(); ++k) {
      JointRows rows{i, JointRows::Part::axial, 1, {1, 0, 0}};
      if (joint.nv() > 1) {
        const bool linear = k < scalar_count(joint.type);
        const Vec3d unit{k % 3 == 0 ? 1.0 : 0.0, k % 3 == 1 ? 1.0 : 0.0, k % 3 == 2 ? 1.0 : 0.0};
        rows.part = linear ? JointRows::Part::linear : JointRows::Part::angular;
        rows.e = linear ? unit : widen(step_.data->links()[i].R) * unit;
      }
      const double mass = joint_inverse_mass(rows), most = step_.h * loss;
      add_joint_term({Kind::friction_loss, 8 * std::uint64_t(i) + k}, -most, most, rows, compliance(0, mass), 0, mass);
    }
  }
}

}  // namespace tarsus
