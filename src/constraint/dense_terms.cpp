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
  pair_.assign(geometry.contacts.size(), -1), rows_of_.assign(terms.size(), {}), places_.clear(), order_.clear();
  rows_ = known_.rows = 0;
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
  rows_ += terms_[t].nrow, order_.push_back(t);
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
    const std::span<const int> places = places_of(t);
    active_terms_.push_back({terms_[t].nrow, int(places.size()), kTermRows, places.data(),
                             &J_[std::size_t(rows_of_[t].at)], free_ ? nullptr : tangents[t].at[0],
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

/// Adds the rows of J_ that are not there yet to W and A.
template <class R>
void DenseTerms<R>::solve_new_rows() {
  if (known_.rows == rows_) return;
  if (rows_ > known_.most) known_.rows = 0, known_.most = rows_ + rows_ / 2;
  const int first = known_.rows, columns = padded(rows_ - first, 8), leading = known_.leading();
  known_.rows = rows_;
  known_.columns.assign(std::size_t(trees_.size()) * columns, 0.0);
  for (int row = first; row < rows_; ++row) {
    const double* J = &J_[std::size_t(row) * dofs_];
    for (int p = 0; p < model_.nv; ++p) known_.columns[std::size_t(p) * columns + (row - first)] = J[p];
  }
  trees_.solve_free(known_.columns, columns);
  at_least(known_.W, std::size_t(model_.nv) * leading), at_least(known_.A, std::size_t(rows_) * leading);
  for (int p = 0; p < model_.nv; ++p)
    std::copy_n(&known_.columns[std::size_t(p) * columns], columns, &known_.W[std::size_t(p) * leading + first]);
  int row = 0;
  for (auto next = order_.begin(); next != order_.end();) {  // one product for neighbours in the same places
    const std::span<const int> places = places_of(*next);
    const int begin = row, inner = int(places.size());
    known_.packed.clear();
    for (; next != order_.end() && (row < first || begin >= first) && std::ranges::equal(places, places_of(*next));
         ++next) {
      for (const int end = row + terms_[*next].nrow; row < end; ++row) {
        for (const int p : places) known_.packed.push_back(J_[std::size_t(row) * dofs_ + p]);
      }
    }
    const StridedMatrix J{known_.packed.data(), inner, 1};
    double* const A = &known_.A[std::size_t(begin) * leading];
    multiply(row - begin, inner, J, {known_.columns.data(), columns, places.data()}, columns, A + first, leading);
    if (begin >= first)
      multiply(row - begin, inner, J, {known_.W.data(), leading, places.data()}, padded(first, 8), A, leading);
  }
}

template <class R>
void DenseTerms<R>::write(std::span<const int> terms, WholeRows& rows) {
  rows.clear(), written_.rows.clear();
  for (const int t : terms) {
    const int first = rows_of(t).at / dofs_;
    for (int i = 0; i < terms_[t].nrow; ++i) written_.rows.push_back(first + i);
    rows.add(terms_[t].nrow);
  }
  solve_new_rows();
  const std::size_t n = written_.rows.size(), columns = rows.stride();
  double* A = rows.mass();
  for (const int own : written_.rows) {
    const double* from = &known_.A[std::size_t(own) * known_.leading()];
    for (std::size_t k = 0; k < n; ++k) A[k] = from[written_.rows[k]];
    std::fill(A + n, A + columns, 0.0);
    A += columns;
  }
}

template <class R>
DenseRows::Matrices DenseTerms<R>::matrices(WholeRows& rows) {
  const std::size_t n = written_.rows.size(), columns = rows.stride(), numbers = std::size_t(model_.nv) * columns;
  at_least(written_.J, n * dofs_), written_.Jt.assign(numbers, 0.0), written_.W.assign(numbers, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double* J = &J_[std::size_t(written_.rows[i]) * dofs_];
    std::copy_n(J, dofs_, &written_.J[i * dofs_]);
    for (int p = 0; p < model_.nv; ++p) {
      written_.Jt[p * columns + i] = J[p];
      written_.W[p * columns + i] = known_.W[std::size_t(p) * known_.leading() + written_.rows[i]];
    }
  }
  return {rows, written_.J.data(), written_.Jt.data(), written_.W.data(), model_.nv};
}

template class DenseTerms<double>;
template class DenseTerms<float>;

}  // namespace tarsus
