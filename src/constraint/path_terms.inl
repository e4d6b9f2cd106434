// Forces along generalised directions as terms: γ = clamp(h f - D (J v - J v_start)). R is 1/D, and the target b is the
// velocity at which the force is zero. Rigid rows have a small R, dry friction the smallest. Rows on one hinge or slide
// are rows of that joint; the others are extra rows of the operator.
#pragma once

#include <algorithm>

#include "constraint/contact_force.hpp"
#include "constraint/term_constants.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/constraint/step_terms.hpp"

namespace tarsus {

template <class R>
bool StepTerms<R>::is_of_joint(const ForceRow& row) const {
  return row.dofs.size() == 1 && model_.joints[model_.dof_joint[row.dofs[0]]].nv() == 1;
}

template <class R>
bool StepTerms<R>::needs_factors(std::span<const ForceRow> rows) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_weighed(rows[i]) && acts(i, rows[i])) return true;
  }
  return false;
}

/// Whether the row is a term: ends of ranges that are far away are not, unless they have joined the step.
template <class R>
bool StepTerms<R>::acts(std::size_t index, const ForceRow& row) const {
  return !row.far || joined({Kind::path, index});
}

/// Makes the ends of tendons' ranges that v⁺ passes rows.
template <class R>
void StepTerms<R>::join_force_rows(In<R> velocity) {
  for (std::size_t i = 0; i < paths_.given.size(); ++i) {
    const ForceRow& row = paths_.given[i];
    if (acts(i, row)) continue;
    const double miss = (row.target - along(row, velocity)) * (row.low < 0 ? -1 : 1);
    if (miss > 0) limits_.joined.push_back({{Kind::path, i}, {}, 0, miss});
  }
}

/// The sum of the inverse masses of the row's joints, or of its link.
template <class R>
double StepTerms<R>::reference_inverse_mass(const ForceRow& row) const {
  if (row.on_link >= 0) {
    const ReferenceMass& mass = masses_.now()[row.on_link];
    return dot(row.wrench.f, row.wrench.f) * mass.linear + dot(row.wrench.n, row.wrench.n) * mass.angular;
  }
  double sum = 0;
  for (std::size_t k = 0; k < row.dofs.size(); ++k) {
    const Joint& joint = model_.joints[model_.dof_joint[row.dofs[k]]];
    const bool moves = moves_freely(joint.type) && row.dofs[k] - joint.qvel < 3;
    const auto part = moves ? JointRows::Part::linear : JointRows::Part::axial;
    sum += row.arm[k] * row.arm[k] * joint_inverse_mass({model_.dof_joint[row.dofs[k]], part, 1, {}});
  }
  return sum;
}

/// The inverse mass of each row: of those that are weighed J M̂⁻¹ Jᵀ, from the factors in data.
template <class R>
void StepTerms<R>::find_force_row_masses(std::span<const ForceRow> rows) {
  paths_.rows.clear(), paths_.inverse_mass.clear(), paths_.swept.clear();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const bool weighed = is_weighed(rows[r]);
    const bool acts = this->acts(r, rows[r]);
    paths_.inverse_mass.push_back(weighed || !acts ? 0 : reference_inverse_mass(rows[r]));
    if (!weighed || !acts) continue;
    paths_.swept.push_back(r);
    add_path<R>(model_, {rows[r].dofs, rows[r].arm}, paths_.rows, paths_.joints);
  }
  if (paths_.swept.empty()) return;
  paths_.rows.sweep(model_, *step_.data);
  paths_.felt.resize(paths_.swept.size());
  paths_.rows.diagonal(paths_.felt);
  for (std::size_t i = 0; i < paths_.swept.size(); ++i) paths_.inverse_mass[paths_.swept[i]] = double(paths_.felt[i]);
}

template <class R>
void StepTerms<R>::add_force_row(std::size_t index, const ForceRow& row, bool of_joint) {
  const PathRow path{row.dofs, row.arm, row.on_link, row.wrench};
  const double mass = paths_.inverse_mass[index], speed = along(path, step_.qvel), free = along(path, step_.free);
  // A wrench that its link cannot feel has mass by rounding only; a stiffness in proportion to 1/mass would be huge.
  const double slope = row.on_link >= 0 ? row.slope : std::max(row.slope, kLeastStiffness / mass);
  if (of_joint)
    geometry_.joints.push_back({model_.dof_joint[row.dofs[0]], JointRows::Part::axial, 1, {row.arm[0], 0, 0}});
  else
    geometry_.paths.push_back(path);
  add_term({Kind::path, index}, step_.h * row.low, step_.h * row.high);
  add_row(row.rigid ? std::max(row.compliance, kLeastCompliance<R> * mass) : 1 / slope,
          row.rigid ? row.target : speed + step_.h * row.force / slope, mass, speed, free);
}

template <class R>
void StepTerms<R>::add_force_rows(std::span<const ForceRow> rows) {
  paths_.given = rows;
  if (rows.empty()) return;
  find_force_row_masses(rows);
  for (const bool of_joint : {true, false}) {  // the operator's order
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (paths_.inverse_mass[i] > 0 && is_of_joint(rows[i]) == of_joint) add_force_row(i, rows[i], of_joint);
    }
  }
}

}  // namespace tarsus
