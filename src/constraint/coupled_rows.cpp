// TreeOperator where many contacts are between links, or slide: the contacts as blocks of CoupledTrees, exactly and
// unsymmetric as they are; bilateral rows and paths, which are few, through its factors.
#include <algorithm>

#include "constraint/contact_blocks.hpp"
#include "constraint/tree_loads.hpp"
#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

namespace {

constexpr double kMoreAct = 4;  ///< times the operations that an iteration may take where more contacts act

void add_contact(const ContactRows& contact, const Tangent& G, const double* force, int pair, CoupledTrees& trees) {
  double A[kTermRows][6], GA[kTermRows][6], B[kTermRows][6], GB[kTermRows][6];
  const int n = contact.nrow;
  write_rows(contact, contact.arm_a, 1, A);
  multiply(n, G, A, GA);
  add_product(n, A, GA, trees.own(contact.a));
  add_force(n, A, force, trees.force(contact.a));
  if (contact.b < 0) return;
  write_rows(contact, contact.arm_b, -1, B);
  multiply(n, G, B, GB);
  add_product(n, B, GB, trees.own(contact.b));
  add_product(n, A, GB, trees.first(pair));
  add_product(n, B, GA, trees.second(pair));
  add_force(n, B, force, trees.force(contact.b));
}

}  // namespace

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
bool TreeOperator<R>::solve_coupled(std::span<const Tangent> tangents, std::span<const double> force) {
  const auto rests = [&](std::size_t c) {
    return idle(tangents[c], &force[terms_[c].first_row], geometry_.contacts[c].nrow);
  };
  find_pairs(geometry_.contacts, [&](std::size_t c) { return !acting_only_ || !rests(c); });
  if (!coupled_.analyze(pairs_, std::min(kMoreAct * operations_.given, operations_.left))) return false;
  operations_.left -= coupled_.operations();
  loads_.clear();
  add_joint_loads(tangents, force);
  coupled_.begin<R>(*data_, joint_inertia_, loads_.of_link(), loads_.all());
  int pair = -1;
  for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    if (acting_only_ && rests(c)) continue;
    if (contact.b >= 0 && (pair < 0 || pairs_[pair] != CoupledTrees::LinkPair{contact.a, contact.b})) ++pair;
    const double* f = &force[terms_[c].first_row];
    if (!idle(tangents[c], f, contact.nrow)) add_contact(contact, tangents[c], f, pair, coupled_);
  }
  coupled_.factor();
  coupled_.solve<R>(*data_, true, {}, iterates_.next.x);
  extra_.clear();
  extra_.add_paths(tangents, force);
  if (extra_.rows() > 0)
    extra_.solve(coupled_, tangents, force, iterates_.now.held, iterates_.next.held, iterates_.next.x);
  return true;
}

#define TARSUS_INSTANTIATE(R)                                                                    \
  template void TreeOperator<R>::find_acting(std::span<const Tangent>, std::span<const double>); \
  template bool TreeOperator<R>::eliminates(std::span<const Term>, std::span<const ContactRows>, \
                                            std::span<const double>, double);                    \
  template bool TreeOperator<R>::solve_coupled(std::span<const Tangent>, std::span<const double>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
