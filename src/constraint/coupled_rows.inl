// TreeOperator where many contacts are between links, or slide: the contacts as blocks of CoupledTrees, exactly and
// unsymmetric as they are; bilateral rows and paths, which are few, through its factors.
#pragma once

#include <algorithm>

#include "constraint/kernel_table.hpp"
#include "constraint/tree_loads.hpp"
#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

constexpr double kMoreAct = 4;  ///< times the operations that an iteration may take where more contacts act

/// Contacts with a tangent or a force.
template <class R>
void TreeOperator<R>::find_acting(std::span<const Tangent> tangents, std::span<const double> force) {
  places_.acting.clear(), places_.unknowns = places_.rows = 0;
  for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {
    const int nrow = geometry_.contacts[c].nrow, first = terms_[c].first_row;
    if (idle(tangents[c], &force[first], nrow)) continue;
    const bool extra = geometry_.contacts[c].b >= 0 || couples(tangents[c], nrow);
    places_.acting.push_back({int(c), first, -1, extra});
    places_.rows += nrow;
    if (extra) places_.unknowns += geometry_.contacts[c].b >= 0 ? nrow : 1;
  }
}

/// Pairs of links of the contacts that count.
template <class R>
template <class F>
void TreeOperator<R>::find_pairs(std::span<const ContactRows> contacts, const F& counts) {
  pairs_.clear();
  for (std::size_t c = 0; c < contacts.size(); ++c) {
    const CoupledTrees::LinkPair pair{contacts[c].a, contacts[c].b};
    if (pair[1] >= 0 && (pairs_.empty() || pairs_.back() != pair) && counts(c)) pairs_.push_back(pair);
  }
}

template <class R>
bool TreeOperator<R>::eliminates(std::span<const Term> terms, std::span<const ContactRows> contacts,
                                 std::span<const double> y, double operations) {
  acting_only_ = false, operations_.given = operations;
  find_pairs(contacts, [](std::size_t) { return true; });
  if (coupled_.analyze(pairs_, operations)) return true;
  acting_only_ = true;
  find_pairs(contacts, [&](std::size_t c) { return y[terms[c].first_row] > 0; });
  return coupled_.analyze(pairs_, operations);
}

template <class R>
bool TreeOperator<R>::solve_coupled(const TreeForces<R>& forces, std::span<const Tangent> tangents,
                                    std::span<const double> force) {
  const auto rests = [&](std::size_t c) {
    return idle(tangents[c], &force[terms_[c].first_row], geometry_.contacts[c].nrow);
  };
  find_pairs(geometry_.contacts, [&](std::size_t c) { return !acting_only_ || !rests(c); });
  if (!coupled_.analyze(pairs_, std::min(kMoreAct * operations_.given, operations_.left))) return false;
  operations_.left -= coupled_.operations();
  loads_.clear();
  add_row_loads(tangents, force);
  coupled_.begin<R>(*data_, joint_inertia_, loads_.of_link(), loads_.all());
  int pair = -1;
  places_.coupled.clear();
  for (std::size_t c = 0, k = 0; c < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    const bool acts = k < places_.acting.size() && places_.acting[k].contact == int(c);
    if (acting_only_ && !acts) continue;
    if (contact.b >= 0 && (pair < 0 || pairs_[pair] != CoupledTrees::LinkPair{contact.a, contact.b})) ++pair;
    if (acts) places_.coupled.push_back(coupled_.place(contact.a, contact.b, pair)), ++k;
  }
  constraint_table<R>(1).contact_blocks(geometry_.contacts.data(), places_.acting.data(), places_.coupled.data(),
                                        int(places_.acting.size()), tangents.data(), force.data(),
                                        coupled_.blocks().data()->data(), coupled_.forces());
  for (std::size_t i = 0; i < forces.bias.size(); ++i) coupled_.forces()[i] -= double(forces.bias[i]);
  solution_.assign(forces.joint.begin(), forces.joint.end());
  coupled_.factor();
  coupled_.solve<R>(*data_, true, solution_, iterates_.next.x);
  extra_.clear();
  extra_.add_paths(tangents, force);
  if (extra_.rows() > 0)
    extra_.solve(coupled_, solution_, tangents, force, iterates_.now.held, iterates_.next.held, iterates_.next.x);
  return true;
}

}  // namespace tarsus
