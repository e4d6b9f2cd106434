#include "tarsus/constraint/dense_terms.hpp"

#include <algorithm>

#include "constraint/contact_blocks.hpp"
#include "constraint/tree_loads.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

template <class R>
DenseTerms<R>::DenseTerms(const Model& model) : model_(model), trees_(model), dofs_(padded(model.nv, 8)) {}

template <class R>
void DenseTerms<R>::begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const Term> terms,
                          const RowGeometry& geometry, std::span<const double> held, std::span<const double> diagonal) {
  data_ = &data, terms_ = terms, geometry_ = geometry;
  trees_.begin<R>(data, joint_inertia, held, diagonal);
  pair_.assign(geometry.contacts.size(), -1);
}

/// Contacts of one pair of links are neighbours: the first one's is all of theirs.
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
void DenseTerms<R>::add_contacts(std::span<const Tangent> tangents, std::span<const double> force) {
  for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    const double* f = &force[terms_[c].first_row];
    const int n = contact.nrow;
    const bool pulls = std::any_of(f, f + n, [](double x) { return x != 0; });
    if (tangents.empty() ? !pulls : idle(tangents[c], f, n)) continue;
    const int pair = pair_of(c);
    double J[kTermRows][6], GJ[kTermRows][6], wrench[6] = {};
    write_rows(contact, contact.arm_a, 1, J);
    if (!tangents.empty()) {
      multiply(n, tangents[c], J, GJ);
      add_product(n, J, GJ, trees_.block(pair));
    }
    add_force(n, J, f, wrench);
    const double* rows = trees_.rows(pair);
    for (const int p : trees_.places(pair)) {
      for (int k = 0; k < 6; ++k) right_[p] += rows[k * trees_.leading() + p] * wrench[k];
    }
  }
}

template <class R>
void DenseTerms<R>::add_joints(std::span<const Tangent> tangents, std::span<const double> force) {
  const std::size_t contacts = geometry_.contacts.size();
  for (std::size_t j = 0; j < geometry_.joints.size(); ++j) {
    const double* f = &force[terms_[contacts + j].first_row];
    const JointArms arms = joint_arms(model_, data_->links(), geometry_.joints[j]);
    const int n = geometry_.joints[j].nrow;
    for (int c = 0; c < arms.count; ++c) {
      for (int i = 0; i < n; ++i) right_[trees_.place(arms.first + c)] += arms.at[i][c] * f[i];
    }
    if (tangents.empty()) continue;
    const Tangent& G = tangents[contacts + j];
    for (int r = 0; r < arms.count; ++r) {
      for (int c = 0; c < arms.count; ++c) {
        double sum = 0;
        for (int i = 0; i < n; ++i) {
          for (int k = 0; k < n; ++k) sum += arms.at[i][r] * G.at[i][k] * arms.at[k][c];
        }
        trees_.add(arms.first + r, arms.first + c, sum);
      }
    }
  }
}

template <class R>
void DenseTerms<R>::add_paths(std::span<const Tangent> tangents, std::span<const double> force) {
  const std::size_t before = geometry_.contacts.size() + geometry_.joints.size();
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p) {
    const PathRow& path = geometry_.paths[p];
    const double f = force[terms_[before + p].first_row], g = tangents.empty() ? 0 : tangents[before + p].at[0][0];
    for (std::size_t r = 0; r < path.dofs.size(); ++r) {
      right_[trees_.place(path.dofs[r])] += path.arm[r] * f;
      for (std::size_t c = 0; g != 0 && c < path.dofs.size(); ++c)
        trees_.add(path.dofs[r], path.dofs[c], path.arm[r] * g * path.arm[c]);
    }
  }
}

template <class R>
std::span<const double> DenseTerms<R>::load(std::span<const Tangent> tangents, std::span<const double> force) {
  free_ = tangents.empty();
  if (!free_) trees_.clear();
  right_.assign(trees_.leading(), 0.0);
  add_contacts(tangents, force), add_joints(tangents, force), add_paths(tangents, force);
  if (!free_) trees_.factor();
  return right_;
}

template <class R>
void DenseTerms<R>::solve(std::span<double> x) {
  free_ ? trees_.solve_free(x) : trees_.solve(x);
}

template <class R>
void DenseTerms<R>::write_contact(std::size_t c, double* rows) {
  const ContactRows& contact = geometry_.contacts[c];
  double J[kTermRows][6];
  write_rows(contact, contact.arm_a, 1, J);
  multiply(contact.nrow, 6, {J[0], 6, 1}, {trees_.rows(pair_of(c)), trees_.leading()}, dofs_, rows, dofs_);
}

template <class R>
void DenseTerms<R>::write_joint(const JointRows& joint, double* rows) {
  const JointArms arms = joint_arms(model_, data_->links(), joint);
  std::fill_n(rows, joint.nrow * dofs_, 0.0);
  for (int c = 0; c < arms.count; ++c) {
    for (int i = 0; i < joint.nrow; ++i) rows[i * dofs_ + trees_.place(arms.first + c)] = arms.at[i][c];
  }
}

template <class R>
void DenseTerms<R>::write_path(const PathRow& path, double* row) {
  std::fill_n(row, dofs_, 0.0);
  for (std::size_t k = 0; k < path.dofs.size(); ++k) row[trees_.place(path.dofs[k])] = path.arm[k];
}

template <class R>
void DenseTerms<R>::write(std::span<const int> terms) {
  const int contacts = int(geometry_.contacts.size()), joints = contacts + int(geometry_.joints.size());
  counts_.clear();
  int n = 0;
  for (const int t : terms) counts_.push_back(terms_[t].nrow), n += terms_[t].nrow;
  at_least(J_, std::size_t(n) * dofs_);
  double* rows = J_.data();
  for (const int t : terms) {
    if (t < contacts)
      write_contact(t, rows);
    else if (t < joints)
      write_joint(geometry_.joints[t - contacts], rows);
    else
      write_path(geometry_.paths[t - joints], rows);
    rows += terms_[t].nrow * dofs_;
  }
  columns_ = padded(n, 8);
  at_least(A_, std::size_t(n) * columns_ + RowBlocks::kBeyond);
  W_.assign(std::size_t(trees_.size()) * columns_, 0.0);
  for (int i = 0; i < n; ++i) {
    for (int p = 0; p < model_.nv; ++p) W_[std::size_t(p) * columns_ + i] = J_[std::size_t(i) * dofs_ + p];
  }
  trees_.solve_free(W_, columns_);
  multiply(n, model_.nv, {J_.data(), dofs_, 1}, {W_.data(), columns_}, columns_, A_.data(), columns_);
}

template <class R>
StepOperator& DenseTerms<R>::alone(std::span<const int> terms) {
  write(terms);
  alone_.begin({*this, J_.data(), W_.data(), model_.nv}, counts_);
  return alone_;
}

template class DenseTerms<double>;
template class DenseTerms<float>;

}  // namespace tarsus
