// The laws of all terms of a problem (term_laws.hpp): contacts with three rows and one tangential R in SIMD lanes, the
// others one by one.
#include "tarsus/solver/term_laws.hpp"

#include <algorithm>
#include <type_traits>

#include "solver/law.hpp"
#include "solver/sliding.hpp"
#include "tarsus/math/larger.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

const SlidingTable& sliding_table() {
  static const SlidingTable& table = kernels<SlidingTable>();
  return table;
}

SlidingList list(const StepProblem& problem, const std::vector<SlidingTerm>& which) {
  return {problem.terms.data(), problem.rows.data(), which.data(), int(which.size()), problem.sliding_share};
}

/// Calls f(number of rows) with a compile-time constant for most terms.
template <class F>
void by_count(int rows, const F& f) {
  switch (rows) {
    case 1: return f(std::integral_constant<int, 1>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(rows);
  }
}

/// f(index, term, first row) for each of these terms.
template <class F>
void each(const StepProblem& problem, const std::vector<int>& which, const F& f) {
  for (const int i : which) f(i, problem.terms[i], problem.terms[i].first_row);
}

/// to += sign G x of one term.
void add_product(const Term& term, const Tangent& G, double sign, const double* x, double* to) {
  by_count(term.nrow, [&](auto rows) {
    const int n = rows;
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < n; ++c) to[r] += sign * G.at[r][c] * x[c];
    }
  });
}

}  // namespace

void TermLaws::sort(const StepProblem& problem) {
  sliding_.clear(), others_.clear();
  for (std::size_t i = 0; i < problem.terms.size(); ++i) {
    const Term& term = problem.terms[i];
    const TermRow* rows = &problem.rows[term.first_row];
    if (term.law == Law::contact && term.nrow == 3 && rows[1].compliance == rows[2].compliance)
      sliding_.push_back({int(i), term.first_row});
    else
      others_.push_back(int(i));
  }
}

void TermLaws::law(const StepProblem& problem, std::span<const double> y, std::span<Tangent> tangents,
                   std::span<double> g) const {
  sliding_table().law(list(problem, sliding_), y.data(), problem.free_velocity.data(), tangents.data(), g.data());
  each(problem, others_, [&](int i, const Term& term, int first) {
    const TermRow* rows = &problem.rows[first];
    double offset[kTermRows];
    for (int k = 0; k < term.nrow; ++k)
      offset[k] =
          rows[k].target + rows[k].compliance * (rows[k].centre - y[first + k]) - problem.free_velocity[first + k];
    term_law(term, rows, &y[first], kOwnNormal, &g[first], &tangents[i]);
    add_product(term, tangents[i], 1, offset, &g[first]);
  });
}

double TermLaws::tangents(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse,
                          bool changes, std::span<Tangent> tangents, std::span<double> carried) const {
  const double* const free = problem.free_velocity.data();
  double sum = sliding_table().tangents(list(problem, sliding_), velocity.data(), impulse.data(),
                                        changes ? nullptr : free, tangents.data(), carried.data());
  each(problem, others_, [&](int i, const Term& term, int first) {
    sum += natural_map(term, &problem.rows[first], problem.sliding_share, &velocity[first], &impulse[first],
                       &tangents[i], &carried[first]);
    double offset[kTermRows];
    for (int k = 0; k < term.nrow; ++k) offset[k] = velocity[first + k] - free[first + k];
    if (!changes && !tangents[i].open) add_product(term, tangents[i], 1, offset, &carried[first]);
  });
  return sum;
}

double TermLaws::map(const StepProblem& problem, std::span<const double> velocity,
                     std::span<const double> impulse) const {
  double sum = sliding_table().map(list(problem, sliding_), velocity.data(), impulse.data());
  each(problem, others_, [&](int, const Term& term, int first) {
    sum += natural_map(term, &problem.rows[first], problem.sliding_share, &velocity[first], &impulse[first], nullptr,
                       nullptr);
  });
  return sum;
}

TermResidual TermLaws::residual(const StepProblem& problem, std::span<const double> velocity,
                                std::span<const double> impulse) const {
  TermResidual residual;
  residual.contacts = sliding_table().residual(list(problem, sliding_), velocity.data(), impulse.data());
  residual.all = residual.contacts;
  each(problem, others_, [&](int, const Term& term, int first) {
    const double miss = natural_residual(term, &problem.rows[first], &velocity[first], &impulse[first]);
    residual.all = larger(residual.all, miss);
    if (term.law == Law::contact) residual.contacts = larger(residual.contacts, miss);
  });
  return residual;
}

void TermLaws::impulses(const StepProblem& problem, std::span<const Tangent> tangents, std::span<const double> carried,
                        std::span<const double> x, std::span<double> impulse) const {
  sliding_table().impulses(list(problem, sliding_), tangents.data(), carried.data(), x.data(), impulse.data());
  each(problem, others_, [&](int i, const Term& term, int first) {
    std::copy_n(&carried[first], term.nrow, &impulse[first]);
    if (!tangents[i].open) add_product(term, tangents[i], -1, &x[first], &impulse[first]);
  });
}

}  // namespace tarsus
