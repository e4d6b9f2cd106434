#include "tarsus/constraint/dense_terms.hpp"

#include <algorithm>

#include "constraint/contact_blocks.hpp"
#include "constraint/tree_loads.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

template <class R>
DenseTerms<R>::DenseTerms(const Model& model) : model_(model), trees_(model) {}

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
void DenseTerms<R>::write_contact(std::size_t c) {
  const ContactRows& contact = geometry_.contacts[c];
  const int pair = pair_of(c);
  const double* rows = trees_.rows(pair);
  const std::span<const int> places = trees_.places(pair);
  double J[kTermRows][6];
  write_rows(contact, contact.arm_a, 1, J);
  for (int i = 0; i < contact.nrow; ++i) {
    rows_.push_back({int(places_.size()), int(places.size())});
    for (const int p : places) {
      double sum = 0;
      for (int k = 0; k < 6; ++k) sum += J[i][k] * rows[k * trees_.leading() + p];
      places_.push_back(p), arms_.push_back(sum);
    }
  }
}

template <class R>
void DenseTerms<R>::write_joint(const JointRows& rows) {
  const JointArms arms = joint_arms(model_, data_->links(), rows);
  for (int i = 0; i < rows.nrow; ++i) {
    rows_.push_back({int(places_.size()), arms.count});
    for (int c = 0; c < arms.count; ++c)
      places_.push_back(trees_.place(arms.first + c)), arms_.push_back(arms.at[i][c]);
  }
}

/// J as columns.
template <class R>
void DenseTerms<R>::spread(int places, AlignedVector<double>& J) const {
  J.assign(std::size_t(places) * columns_, 0.0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (int k = rows_[i].first; k < rows_[i].first + rows_[i].count; ++k)
      J[std::size_t(places_[k]) * columns_ + i] = arms_[k];
  }
}

template <class R>
void DenseTerms<R>::write(std::span<const int> terms) {
  const int contacts = int(geometry_.contacts.size()), joints = contacts + int(geometry_.joints.size());
  rows_.clear(), places_.clear(), arms_.clear();
  for (const int t : terms) {
    if (t < contacts) {
      write_contact(t);
    } else if (t < joints) {
      write_joint(geometry_.joints[t - contacts]);
    } else {
      const PathRow& path = geometry_.paths[t - joints];
      rows_.push_back({int(places_.size()), int(path.dofs.size())});
      for (std::size_t k = 0; k < path.dofs.size(); ++k)
        places_.push_back(trees_.place(path.dofs[k])), arms_.push_back(path.arm[k]);
    }
  }
  term_count_ = int(terms.size()), columns_ = padded(int(rows_.size()), 8);
  A_.resize(rows_.size() * columns_ + RowBlocks::kBeyond);
  spread(trees_.size(), W_);
  trees_.solve_free(W_, columns_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const int> places = std::span(places_).subspan(rows_[i].first, rows_[i].count);
    sum_of_rows(places, arms_.data() + rows_[i].first, W_.data(), columns_, &A_[i * columns_]);
  }
}

template <class R>
StepOperator& DenseTerms<R>::alone(std::span<const int> terms) {
  write(terms);
  counts_.clear();
  for (const int t : terms) counts_.push_back(terms_[t].nrow);
  const int nv = model_.nv, leading = padded(nv, 8);
  spread(nv, J_);
  by_row_.assign(rows_.size() * leading, 0.0);
  for (int d = 0; d < nv; ++d) {
    for (std::size_t r = 0; r < rows_.size(); ++r) by_row_[r * leading + d] = W_[std::size_t(d) * columns_ + r];
  }
  alone_.begin({*this, J_.data(), by_row_.data(), nv, leading}, counts_);
  return alone_;
}

template class DenseTerms<double>;
template class DenseTerms<float>;

}  // namespace tarsus
