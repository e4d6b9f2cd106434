// TreeOperator where many contacts are between links, or slide. The contacts are exact, unsymmetric blocks of
// CoupledTrees. Bilateral rows and paths are nodes of its graph, or with few trees extra rows through its factors.
#pragma once

#include <algorithm>

#include "constraint/kernel_table.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

constexpr double kMoreAct =
    4;  ///< operations that an iteration may take if more contacts act, relative to eliminates()'s limit

/// Finds the contacts with a tangent or a force.
template <class R>
void TreeOperator<R>::find_active(std::span<const Tangent> tangents, std::span<const double> force) {
  places_.active.clear(), places_.unknowns = places_.rows = 0;
  for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {
    const int nrow = geometry_.contacts[c].nrow, first = terms_[c].first_row;
    if (idle(tangents[c], &force[first], nrow)) continue;
    const bool extra = geometry_.contacts[c].b >= 0 || couples(tangents[c], nrow);
    places_.active.push_back({int(c), first, -1, extra});
    places_.rows += nrow;
    if (extra) places_.unknowns += geometry_.contacts[c].b >= 0 ? nrow : 1;
  }
}

/// Finds the pairs of links of the contacts that `counts` accepts.
template <class R>
template <class F>
void TreeOperator<R>::find_pairs(std::span<const ContactRows> contacts, const F& counts) {
  graph_.pairs.clear();
  for (std::size_t c = 0; c < contacts.size(); ++c) {
    const CoupledTrees::LinkPair pair{contacts[c].a, contacts[c].b};
    if (pair[1] >= 0 && (graph_.pairs.empty() || graph_.pairs.back() != pair) && counts(c))
      graph_.pairs.push_back(pair);
  }
}

/// Lays out what does not depend on the step's forces.
template <class R>
void TreeOperator<R>::lay_out(std::span<const Term> terms, const RowGeometry& geometry,
                              const BilateralRows<R>& bilateral) {
  extra_.lay_out(terms, geometry, bilateral);
  if (graph_.many_trees && bilateral.rows() > 0)
    extra_.find_nodes(graph_.nodes);
  else
    graph_.nodes.clear();
}

template <class R>
bool TreeOperator<R>::eliminates(std::span<const Term> terms, const RowGeometry& geometry,
                                 const BilateralRows<R>& bilateral, std::span<const double> y, double operations) {
  graph_.active_only = false, operations_.given = operations;
  lay_out(terms, geometry, bilateral);
  find_pairs(geometry.contacts, [](std::size_t) { return true; });
  if (graph_.all.analyze(graph_.pairs, graph_.nodes, operations)) return true;
  graph_.active_only = true;
  find_pairs(geometry.contacts, [&](std::size_t c) { return y[terms[c].first_row] > 0; });
  return graph_.all.analyze(graph_.pairs, graph_.nodes, operations);
}

/// @return false: elimination would cost too much
template <class R>
bool TreeOperator<R>::find_order(std::span<const Tangent> tangents, std::span<const double> force) {
  const auto rests = [&](std::size_t c) {
    return idle(tangents[c], &force[terms_[c].first_row], geometry_.contacts[c].nrow);
  };
  find_pairs(geometry_.contacts, [&](std::size_t c) { return !graph_.active_only || !rests(c); });
  const double most = std::min(kMoreAct * operations_.given, operations_.left);
  if (!graph_.all.analyze(graph_.pairs, graph_.nodes, most)) return false;
  operations_.left -= graph_.all.operations();
  return true;
}

template <class R>
void TreeOperator<R>::add_contact_blocks(std::span<const Tangent> tangents, std::span<const double> force) {
  CoupledTrees& trees = graph_.all;
  int pair = -1;
  places_.coupled.clear();
  for (std::size_t c = 0, k = 0; c < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    const bool acts = k < places_.active.size() && places_.active[k].contact == int(c);
    if (graph_.active_only && !acts) continue;
    if (contact.b >= 0 && (pair < 0 || graph_.pairs[pair] != CoupledTrees::LinkPair{contact.a, contact.b})) ++pair;
    if (acts) places_.coupled.push_back(trees.place(contact.a, contact.b, pair)), ++k;
  }
  constraint_table<R>(1).contact_blocks(geometry_.contacts.data(), places_.active.data(), places_.coupled.data(),
                                        int(places_.active.size()), tangents.data(), force.data(),
                                        trees.blocks().data()->data(), trees.forces());
}

/// The trees with the bilateral rows, without terms.
template <class R>
CoupledTrees& TreeOperator<R>::factor_free() {
  CoupledTrees& trees = graph_.free;
  if (graph_.free_factored) return trees;
  graph_.free_factored = true;
  stiffness_.clear(), graph_.of_free.clear();
  if (extra_.bilateral().count() > 0) extra_.find_nodes(graph_.of_free);
  trees.analyze({}, graph_.of_free);
  trees.begin<R>(*data_, joint_inertia_, stiffness_.of_link(), stiffness_.all());
  if (extra_.bilateral().count() > 0) extra_.write_nodes({}, trees);
  trees.factor();
  return trees;
}

/// J of a term, by the motions of links.
template <class R>
void TreeOperator<R>::add_rows(int term, const CoupledTrees& trees) {
  LinkRows& rows = graph_.rows;
  const auto along_joint = [&](int link, int first, const double* numbers, int count) {
    double along[6] = {};
    std::copy_n(numbers, count, along + (first - model_.joints[link].qvel));
    trees.add_joint(rows, link, along);
  };
  for (int k = 0; k < terms_[term].nrow; ++k) {
    if (term < geometry_.first_joint()) {
      const ContactRows& contact = geometry_.contacts[term];
      rows.add(contact.a, contact_wrench(contact, contact.arm_a, 1, k));
      if (contact.b >= 0) rows.add(contact.b, contact_wrench(contact, contact.arm_b, -1, k));
    } else if (term < geometry_.first_path()) {
      const JointRows& joint = geometry_.joints[term - geometry_.first_joint()];
      const JointArms arms = joint_arms(model_, data_->links(), joint);
      along_joint(joint.joint, arms.first, arms.at[k], arms.count);
    } else {
      const PathRow& path = geometry_.paths[term - geometry_.first_path()];
      for (std::size_t d = 0; d < path.dofs.size(); ++d)
        along_joint(model_.dof_joint[path.dofs[d]], path.dofs[d], &path.arm[d], 1);
    }
    rows.end_row();
  }
}

/// A = J M̂⁻¹ Jᵀ of these terms, with the bilateral rows satisfied.
template <class R>
void TreeOperator<R>::write_whole(std::span<const int> terms) {
  CoupledTrees& trees = factor_free();
  whole_.rows.clear(), graph_.rows.clear();
  for (const int t : terms) whole_.rows.add(terms_[t].nrow), add_rows(t, trees);
  trees.gram(graph_.rows, whole_.rows.mass(), whole_.rows.stride());
}

template <class R>
bool TreeOperator<R>::solve_coupled(const TreeForces<R>& forces, std::span<const Tangent> tangents,
                                    std::span<const double> force) {
  const bool still = tangents.empty();
  CoupledTrees& trees = still ? graph_.still : graph_.all;
  if (still ? !trees.analyze({}, graph_.nodes) : !find_order(tangents, force)) return false;
  stiffness_.clear();
  if (still) add_contact_forces(force);
  add_row_stiffness(tangents, force);
  trees.begin<R>(*data_, joint_inertia_, stiffness_.of_link(), stiffness_.all());
  if (!still) add_contact_blocks(tangents, force);
  for (std::size_t i = 0; i < forces.bias.size(); ++i) trees.forces()[i] -= double(forces.bias[i]);
  if (has_nodes()) extra_.write_nodes(tangents, trees);
  solution_.assign(trees.numbers(), 0.0);
  std::vector<double>& joint_force = graph_.joint_force;
  joint_force.assign(forces.joint.begin(), forces.joint.end());
  trees.factor();
  if (!has_nodes()) {
    trees.solve(true, joint_force, solution_);
    trees.finish<R>(solution_, *data_, iterates_.next.x);
    extra_.clear();
    extra_.add_paths(tangents, force);
    if (extra_.rows() > 0)
      extra_.solve(trees, joint_force, tangents, force, iterates_.now.bilateral, iterates_.next.bilateral,
                   iterates_.next.x);
    return true;
  }
  extra_.write_right(force, std::span(solution_).subspan(trees.first_row()));
  bool with_forces = true;
  const std::size_t first = trees.first_row(), held = extra_.bilateral().count();
  const auto solve = [&](std::span<double> x) {
    std::vector<double>& left = graph_.left;  // rounding errors of rows between stiff trees
    left.assign(x.size(), 0.0);
    std::copy_n(&x[first], held, &left[first]);
    trees.solve(with_forces, with_forces ? joint_force : std::span<const double>(), x);
    with_forces = false;  // the following solves are for changes
    trees.finish<R>(x, *data_, iterates_.next.x);
    extra_.take_bilateral(iterates_.next.x, x.subspan(first), std::span(left).subspan(first));
    trees.solve(false, {}, left);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += left[i];
  };
  extra_.bilateral().refine(solve, solution_, int(first), iterates_.now.bilateral, iterates_.next.bilateral);
  trees.finish<R>(solution_, *data_, iterates_.next.x);
  return true;
}

}  // namespace tarsus
