// The terms of a hard step on a small model (dense_terms.hpp). J of a term is written when it is first needed in a
// step; the matrix H = M̂ + Σ Jᵀ G J is dense over the DoFs.
#include "tarsus/constraint/dense_terms.hpp"

#include <algorithm>

#include "constraint/contact_force.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

template <class R>
DenseTerms<R>::DenseTerms(const Model& model) : model_(model), trees_(model), dofs_(padded(model.nv, 8)) {}

template <class R>
void DenseTerms<R>::begin(const BasicData<R>& data, In<R> joint_inertia, const TreeForces<R>& forces,
                          std::span<const Term> terms, const RowGeometry& geometry, std::span<const double> held,
                          std::span<const double> diagonal) {
  data_ = &data, terms_ = terms, geometry_ = geometry;
  trees_.begin<R>(data, joint_inertia, held, diagonal);
  forces_.assign(trees_.leading(), 0.0);
  if (forces.any()) trees_.add_forces<R>(forces.joint, forces.bias, forces_);
  pair_.assign(geometry.contacts.size(), -1), rows_of_.assign(terms.size(), {}), places_.clear(), rows_ = 0;
}

/// Index of a contact's pair of links in trees_. Contacts of one pair are neighbours and share it.
template <class R>
int DenseTerms<R>::pair_of(std::size_t contact) {
  const ContactRows& own = geometry_.contacts[contact];
  const auto same = [&](const ContactRows& c) { return c.a == own.a && c.b == own.b; };
  std::size_t first = contact;
  while (first > 0 && pair_[first] < 0 && same(geometry_.contacts[first - 1])) --first;
  if (pair_[first] < 0) pair_[first] = trees_.add_pair(own.a, own.b);
  return pair_[contact] = pair_[first];
}

template <class R>
void DenseTerms<R>::write_contact(int term, double* J) {
  const ContactRows& contact = geometry_.contacts[term];
  const int pair = pair_of(std::size_t(term));
  double wrench[kTermRows][6];
  for (int k = 0; k < contact.nrow; ++k) {
    const Force<double> f = contact_wrench(contact, contact.arm_a, 1, k);
    for (int j = 0; j < 3; ++j) wrench[k][j] = f.n[j], wrench[k][3 + j] = f.f[j];
  }
  multiply(contact.nrow, 6, {wrench[0], 6, 1}, {trees_.rows(pair), trees_.leading()}, dofs_, J, dofs_);
  const std::span<const int> places = trees_.places(pair);
  places_.insert(places_.end(), places.begin(), places.end());
}

template <class R>
void DenseTerms<R>::write_joint(const JointRows& joint, double* J) {
  const JointArms arms = joint_arms(model_, data_->links(), joint);
  std::fill_n(J, joint.nrow * dofs_, 0.0);
  for (int c = arms.count; c-- > 0;) {
    const int place = trees_.place(arms.first + c);
    for (int i = 0; i < joint.nrow; ++i) J[i * dofs_ + place] = arms.at[i][c];
    places_.push_back(place);
  }
}

template <class R>
void DenseTerms<R>::write_path(const PathRow& path, double* J) {
  std::fill_n(J, dofs_, 0.0);
  const std::size_t first = places_.size();
  for (std::size_t k = 0; k < path.dofs.size(); ++k) {
    places_.push_back(trees_.place(path.dofs[k]));
    J[places_.back()] = path.arm[k];
  }
  std::sort(places_.begin() + std::ptrdiff_t(first), places_.end());
}

/// J of a term, written when it is first needed in a step.
template <class R>
const typename DenseTerms<R>::RowsOf& DenseTerms<R>::rows_of(int t) {
  RowsOf& rows = rows_of_[t];
  if (rows.at >= 0) return rows;
  rows.at = rows_ * dofs_, rows.first_place = int(places_.size());
  rows_ += terms_[t].nrow;
  at_least(J_, std::size_t(rows_) * dofs_);
  double* const J = &J_[std::size_t(rows.at)];
  if (t < geometry_.first_joint())
    write_contact(t, J);
  else if (t < geometry_.first_path())
    write_joint(geometry_.joints[t - geometry_.first_joint()], J);
  else
    write_path(geometry_.paths[t - geometry_.first_path()], J);
  rows.places = int(places_.size()) - rows.first_place;
  return rows;
}

template <class R>
std::span<const double> DenseTerms<R>::add_tangents(std::span<const Tangent> tangents, std::span<const double> force,
                                                    bool whole) {
  constexpr Tangent kNone{};
  free_ = tangents.empty();
  if (!free_) trees_.clear();
  whole ? void(right_ = forces_) : right_.assign(forces_.size(), 0.0);
  active_.clear();
  for (int t = 0; t < int(terms_.size()); ++t) {
    if (idle(free_ ? kNone : tangents[t], &force[terms_[t].first_row], terms_[t].nrow)) continue;
    if (rows_of(t).places > 0) active_.push_back(t);
  }
  active_terms_.clear();  // after all rows are written, since they may move in memory
  for (const int t : active_) {
    const RowsOf& rows = rows_of_[t];
    active_terms_.push_back({terms_[t].nrow, rows.places, kTermRows, &places_[std::size_t(rows.first_place)],
                             &J_[std::size_t(rows.at)], free_ ? nullptr : tangents[t].at[0],
                             &force[terms_[t].first_row]});
  }
  trees_.add(active_terms_, dofs_, right_.data());
  if (!free_) trees_.factor();
  return right_;
}

template <class R>
std::span<const double> DenseTerms<R>::right(std::span<const double> force) {
  add_tangents({}, force, false);
  free_ = false;
  return right_;
}

template <class R>
void DenseTerms<R>::solve(std::span<double> x) {
  free_ ? trees_.solve_free(x) : trees_.solve(x);
}

template <class R>
void DenseTerms<R>::write(std::span<const int> terms, WholeRows& rows) {
  rows.clear();
  for (const int t : terms) {
    const std::size_t at = rows_of(t).at, numbers = std::size_t(terms_[t].nrow) * dofs_;
    at_least(own_J_, std::size_t(rows.rows()) * dofs_ + numbers);
    std::copy_n(&J_[at], numbers, &own_J_[std::size_t(rows.rows()) * dofs_]);
    rows.add(terms_[t].nrow);
  }
  const int n = rows.rows(), columns = rows.stride();
  own_Jt_.assign(std::size_t(trees_.size()) * columns, 0.0);
  for (int i = 0; i < n; ++i) {
    for (int p = 0; p < model_.nv; ++p) own_Jt_[std::size_t(p) * columns + i] = own_J_[std::size_t(i) * dofs_ + p];
  }
  W_.assign(own_Jt_.begin(), own_Jt_.end());
  trees_.solve_free(W_, columns);
  multiply(n, model_.nv, {own_J_.data(), dofs_, 1}, {W_.data(), columns}, columns, rows.mass(), columns);
}

template class DenseTerms<double>;
template class DenseTerms<float>;

}  // namespace tarsus
