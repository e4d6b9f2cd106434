// Forces along generalised directions as terms: γ = clamp(h f - D (J v - J v_start)). R is 1/D, and the target b is the
// velocity at which the force is zero. Rigid rows have the smallest R. Rows on one hinge or slide are rows of that
// joint; the others are extra rows of the operator.
#pragma once

#include <algorithm>

#include "constraint/contact_force.hpp"
#include "constraint/term_constants.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/constraint/step_terms.hpp"

namespace tarsus {

/// Inverse mass that a row feels.
template <class R>
double StepTerms<R>::path_inverse_mass(const ForceRow& row) const {
  if (row.on_link >= 0) {
    const ReferenceMass& mass = masses_.now()[row.on_link];
    return mass.angular * dot(row.wrench.n, row.wrench.n) + mass.linear * dot(row.wrench.f, row.wrench.f);
  }
  double sum = 0;
  for (std::size_t k = 0; k < row.dofs.size(); ++k) {
    const int link = model_.dof_joint[row.dofs[k]];
    const Joint& joint = model_.joints[link];
    const bool linear = moves_freely(joint.type) && row.dofs[k] < joint.qvel + 3;
    sum += row.arm[k] * row.arm[k] * joint_inverse_mass(link, linear);
  }
  return sum;
}

template <class R>
void StepTerms<R>::add_force_row(std::size_t index, const ForceRow& row, bool of_joint) {
  const PathRow path{row.dofs, row.arm, row.on_link, row.wrench};
  const double mass = path_inverse_mass(row), speed = along(path, step_.qvel), free = along(path, step_.free);
  // A wrench may act along directions that the link's joints block.
  const double slope = row.on_link >= 0 ? row.slope : std::max(row.slope, kLeastStiffness / mass);
  if (of_joint)
    geometry_.joints.push_back({model_.dof_joint[row.dofs[0]], JointRows::Part::axial, 1, {row.arm[0], 0, 0}});
  else
    geometry_.paths.push_back(path);
  add_term({Kind::path, index}, step_.h * row.low, step_.h * row.high);
  add_row(row.rigid ? kLeastCompliance<R> * mass : 1 / slope,
          row.rigid ? row.target : speed + step_.h * row.force / slope, mass, speed, free);
}

template <class R>
void StepTerms<R>::add_force_rows(std::span<const ForceRow> rows) {
  for (const bool of_joint : {true, false}) {  // the operator's order
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool one = rows[i].dofs.size() == 1 && model_.joints[model_.dof_joint[rows[i].dofs[0]]].nv() == 1;
      if (one == of_joint && path_inverse_mass(rows[i]) > 0) add_force_row(i, rows[i], of_joint);
    }
  }
}

}  // namespace tarsus
