// TreeOperator's k extra rows: bilateral rows, contacts between two links, and what makes a contact with the world
// unsymmetric; solved by the Schur complement of the loaded tree.
#include <algorithm>
#include <cmath>

#include "constraint/contact_force.hpp"
#include "constraint/tree_loads.hpp"
#include "math/dense_lu.hpp"
#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

namespace {

/// Of a bilateral row's own inverse mass, that Σ_e is raised by; and proximal steps that take it out again, as long as
/// each takes its share of what is left: the error of what can be moved falls as the power.
constexpr double kRaised = 1e-9;
constexpr int kProximalSteps = 10;
constexpr double kTaken = 0.8;
constexpr double kLeastMass = 1e-9;  ///< of the largest inverse mass of all rows, that a row's counts as

constexpr double kRounding = 1e-14;
constexpr double kHolds = 1e-10;  ///< of their size: the impulses at hand are a start

}  // namespace

template <class R>
void TreeOperator<R>::write_bilateral(DelassusRows<R>& rows) {
  if (bilateral_.rows() == 0) return;
  phi_.resize(bilateral_.rows());
  bilateral_.equalities->template add_blocks<R>(rows);
  bilateral_.equalities->template evaluate<R>(*data_, 0, bilateral_.qpos, {}, rows, phi_, {}, {});
}

/// b_e - J_e v⁰ = h (y₂ - J q̈⁰), and the rows' inverse masses: from the factors that gave q̈⁰.
template <class R>
void TreeOperator<R>::begin_bilateral(double h) {
  const int m = bilateral_.rows();
  rows_.clear();
  read_u<R>(model_, *data_, u_);
  write_bilateral(rows_);
  rows_.sweep(model_, *data_);
  const int ld = rows_.leading_dimension();
  gram_.resize(std::size_t(m) * ld), row_velocity_.resize(m);
  rows_.gram(gram_.data(), ld);
  rows_.velocity(u_.data(), row_velocity_.data());
  bilateral_demand_.resize(m), raised_.resize(m);
  bilateral_size_ = 0;
  for (int i = 0; i < m; ++i) {
    bilateral_demand_[i] = h * (double(bilateral_.demand[i]) - double(row_velocity_[i]));
    bilateral_size_ = std::max(bilateral_size_, std::abs(h * double(row_velocity_[i])));
  }
  // Rows that nothing moves have no inverse mass of their own.
  double most = 0;
  for (int i = 0; i < m; ++i) most = std::max(most, double(gram_[std::size_t(i) * (ld + 1)]));
  const double least = most > 0 ? kLeastMass * most : 1;
  const EqualitySet& set = *bilateral_.equalities;
  for (int e = 0; e < set.size(); ++e) {  // rows of one unit: a weld's positions, then its angles
    for (int first = 0; first < set[e].nrow; first += 3) {
      const int begin = set[e].first_row + first, end = set[e].first_row + std::min(first + 3, set[e].nrow);
      double largest = least;
      for (int i = begin; i < end; ++i) largest = std::max(largest, double(gram_[std::size_t(i) * (ld + 1)]));
      for (int i = begin; i < end; ++i) raised_[i] = kRaised * largest;
    }
  }
}

template <class R>
void TreeOperator<R>::begin_extra_rows() {
  rows_.clear(), extras_.clear(), unknown_.clear();
  write_bilateral(rows_);
  for (int i = 0; i < bilateral_.rows(); ++i) unknown_.push_back(i);
}

template <class R>
void TreeOperator<R>::add_extra_rows(std::span<const Tangent> tangents, std::span<const double> force) {
  begin_extra_rows();
  for (std::size_t c = 0; c < contacts_.size();) {  // those of one pair of links are neighbours: one block
    const std::size_t first = extras_.size();
    const int a = contacts_[c].a, b = contacts_[c].b, row = rows_.rows();
    int count = 0;
    for (; c < contacts_.size() && contacts_[c].a == a && contacts_[c].b == b; ++c) {
      const int nrow = contacts_[c].nrow;
      if (b >= 0 ? idle(tangents[c], &force[terms_[c].first_row], nrow) : !(coupling(tangents[c], nrow) > 0)) continue;
      extras_.push_back({int(c), row + count, 0, b >= 0 ? nrow : 2, 0});
      count += extras_.back().nrow;
    }
    if (count == 0) continue;
    const typename DelassusRows<R>::Block block = rows_.block(rows_.add_block(a, b, count));
    for (std::size_t p = first; p < extras_.size(); ++p) write_extra(extras_[p], tangents[extras_[p].term], block);
  }
  add_paths(tangents, force);
}

template <class R>
void TreeOperator<R>::add_paths(std::span<const Tangent> tangents, std::span<const double> force) {
  for (std::size_t p = 0; p < paths_.size(); ++p) {
    const std::size_t term = contacts_.size() + joints_.size() + p;
    if ((tangents.empty() || tangents[term].at[0][0] == 0) && force[terms_[term].first_row] == 0) continue;
    const typename DelassusRows<R>::Block block = add_path<R>(model_, paths_[p], rows_, path_joints_);
    extras_.push_back({int(term), block.first_row, int(unknown_.size()), 1});
    unknown_.push_back(block.first_row);
  }
}

/// Contacts between two links by their rows, each with an impulse to be found; of one on the world, with c = |G_tn|,
/// the row n, which is only looked at, and u = G_tn/c, along which it pulls by -c n · J x.
template <class R>
void TreeOperator<R>::write_extra(Extra& extra, const Tangent& g, const typename DelassusRows<R>::Block& block) {
  const ContactRows& contact = contacts_[extra.term];
  const int row = extra.first_row - block.first_row;
  extra.first_unknown = int(unknown_.size());
  if (contact.b >= 0) {
    for (int k = 0; k < extra.nrow; ++k) unknown_.push_back(extra.first_row + k);
    write_contact<R>(contact, block, row);
    return;
  }
  extra.coupling = coupling(g, contact.nrow);
  Vec3d force{0, 0, 0}, moment{0, 0, 0};
  for (int k = 1; k < contact.nrow; ++k)
    (k < 3 ? force : moment) += contact.axis[k % 3] * (g.at[k][0] / extra.coupling);
  unknown_.push_back(extra.first_row + 1);
  write_wrench<R>(cross(contact.arm_a, contact.axis[0]), contact.axis[0], block, row);
  write_wrench<R>(cross(contact.arm_a, force) + moment, force, block, row + 1);
}

/// With A the rows' Delassus matrix in the loaded tree and x₀ its solution without them:
///   bilateral        (A + Σ_e) λ = b_e - J (v⁰ + x₀)
///   two links, path  y + G A y = g - G J x₀
///   on the world     s + c A_n s = -c J_n x₀
template <class R>
void TreeOperator<R>::extra_system(std::span<const Tangent> tangents, std::span<const double> force) {
  const int k = int(unknown_.size()), ld = rows_.leading_dimension(), held = bilateral_.rows();
  const auto A = [&](int i, int j) { return double(gram_[std::size_t(i) * ld + j]); };
  matrix_.assign(std::size_t(k) * k, 0.0), right_.assign(k, 0.0);
  for (int i = 0; i < held; ++i) {
    for (int j = 0; j < k; ++j) matrix_[std::size_t(i) * k + j] = A(i, unknown_[j]);
    matrix_[std::size_t(i) * (k + 1)] += double(bilateral_.compliance[i]) + raised_[i];
    right_[i] = bilateral_demand_[i] - double(row_velocity_[i]);
  }
  for (int i = held; i < k; ++i) matrix_[std::size_t(i) * (k + 1)] = 1;
  const auto add = [&](int equation, int row, double g) {
    if (g == 0) return;
    right_[equation] -= g * double(row_velocity_[row]);
    for (int j = 0; j < k; ++j) matrix_[std::size_t(equation) * k + j] += g * A(row, unknown_[j]);
  };
  for (const Extra& extra : extras_) {
    if (extra.coupling > 0) {
      add(extra.first_unknown, extra.first_row, extra.coupling);
      continue;
    }
    for (int r = 0; r < extra.nrow; ++r) {
      right_[extra.first_unknown + r] += force[terms_[extra.term].first_row + r];
      for (int c = 0; c < extra.nrow && !tangents.empty(); ++c)
        add(extra.first_unknown + r, extra.first_row + c, tangents[extra.term].at[r][c]);
    }
  }
}

/// solution_, a right side, becomes what `solve` makes of it. Rows held stand from `first_held` on. Each solve is a
/// proximal step: what their raised Σ_e makes of the change is taken out. The first is from the impulses at hand if
/// rows held by them: what contradicts itself would take larger ones each time.
template <class R>
void TreeOperator<R>::settle(const std::function<void(std::span<double>)>& solve, int first_held) {
  const int held = bilateral_.rows();
  const double rounding = kRounding * bilateral_size_;
  const auto start = [&, holds = now_.miss <= kHolds * bilateral_size_](int i) {
    return holds ? now_.bilateral[i] : 0;
  };
  for (int i = 0; i < held; ++i) solution_[first_held + i] += raised_[i] * start(i);
  solve(solution_);
  if (held == 0) return;
  change_.assign(solution_.size(), 0.0);
  double before = kUnbounded;
  for (int step = 0;; ++step) {
    next_.miss = 0;
    for (int i = 0; i < held; ++i) {
      double& change = change_[first_held + i];
      change = raised_[i] * (step == 0 ? solution_[first_held + i] - start(i) : change);
      next_.miss = std::max(next_.miss, std::abs(change));
    }
    if (step == kProximalSteps || !(next_.miss > rounding && next_.miss < kTaken * before)) break;
    before = next_.miss;
    std::fill_n(change_.begin(), first_held, 0.0), std::fill(change_.begin() + first_held + held, change_.end(), 0.0);
    solve(change_);
    for (std::size_t i = 0; i < solution_.size(); ++i) solution_[i] += change_[i];
  }
}

/// The extra rows' impulses, from A and J x₀.
template <class R>
void TreeOperator<R>::solve_extra_system(std::span<const Tangent> tangents, std::span<const double> force) {
  const int held = bilateral_.rows();
  extra_system(tangents, force);
  const int k = int(unknown_.size());
  pivot_.resize(k);
  factor_lu(std::span(matrix_).first(std::size_t(k) * k), pivot_);
  solution_.assign(right_.begin(), right_.begin() + k);
  settle([&](std::span<double> x) { solve_lu(std::span(matrix_).first(std::size_t(k) * k), pivot_, x); }, 0);
  std::copy_n(solution_.begin(), held, next_.bilateral.begin());
  row_impulse_.assign(rows_.rows(), R(0));
  for (int i = 0; i < k; ++i) row_impulse_[unknown_[i]] = R(solution_[i]);
}

template <class R>
void TreeOperator<R>::solve_extra(std::span<const Tangent> tangents, std::span<const double> force) {
  const int ld = rows_.leading_dimension(), n = rows_.rows();
  read_u<R>(model_, *data_, u_);
  rows_.sweep(model_, *data_);
  gram_.resize(std::size_t(n) * ld), row_velocity_.resize(n);
  rows_.gram(gram_.data(), ld);
  rows_.velocity(u_.data(), row_velocity_.data());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) gram_[std::size_t(i) * ld + j] = gram_[std::size_t(j) * ld + i];
  }
  solve_extra_system(tangents, force);
  rows_.push(row_impulse_.data(), u_.data());
  outward<R>(model_, *data_, u_, next_.x);
}

#define TARSUS_INSTANTIATE(R)                                                                                 \
  template void TreeOperator<R>::write_bilateral(DelassusRows<R>&);                                           \
  template void TreeOperator<R>::write_extra(Extra&, const Tangent&, const typename DelassusRows<R>::Block&); \
  template void TreeOperator<R>::extra_system(std::span<const Tangent>, std::span<const double>);             \
  template void TreeOperator<R>::settle(const std::function<void(std::span<double>)>&, int);                  \
  template void TreeOperator<R>::begin_extra_rows();                                                          \
  template void TreeOperator<R>::solve_extra_system(std::span<const Tangent>, std::span<const double>);       \
  template void TreeOperator<R>::begin_bilateral(double);                                                     \
  template void TreeOperator<R>::add_extra_rows(std::span<const Tangent>, std::span<const double>);           \
  template void TreeOperator<R>::add_paths(std::span<const Tangent>, std::span<const double>);                \
  template void TreeOperator<R>::solve_extra(std::span<const Tangent>, std::span<const double>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
