#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

constexpr int kPlain = 6;         ///< iterations before sweeps
constexpr int kFirst = 5;         ///< sweeps before an iteration, to begin with,
constexpr int kMore = 2;          ///< times as many where
constexpr double kProgress = 0.5; ///< of the least residual is not reached,
constexpr int kMost = 640;        ///< in a step

}  // namespace

void Sweeps::begin(const StepProblem& problem) {
  acted_.assign(problem.terms.size(), 0), terms_.clear(), blocks_.clear();
  done_ = 0;
}

int Sweeps::due(std::span<const double> residuals) {
  const int iteration = int(residuals.size());
  if (iteration <= kPlain) return 0;
  const double least = *std::min_element(residuals.begin(), residuals.end() - 1);
  if (iteration == kPlain + 1 || residuals.back() <= kProgress * least)
    count_ = kFirst, without_ = false;
  else
    count_ *= kMore, without_ = !without_;
  const int count = without_ ? 0 : std::min(count_, kMost - done_);
  done_ += count;
  return count;
}

/// Terms with an impulse, or which would have one. @return there are new ones
bool Sweeps::choose(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) {
  bool more = false;
  for (std::size_t i = 0; i < problem.terms.size(); ++i) {
    if (acted_[i]) continue;
    const int first = problem.terms[i].first_row;
    acted_[i] = acts(problem.terms[i], &problem.rows[first], &velocity[first], &impulse[first]);
    more |= acted_[i] != 0;
  }
  if (!more) return false;
  terms_.clear();
  for (std::size_t i = 0; i < acted_.size(); ++i) {
    if (acted_[i]) terms_.push_back(int(i));
  }
  return true;
}

/// Rows of one term that are projected together.
void Sweeps::group(const StepProblem& problem, int i, int at, Block& block) {
  const Term& term = problem.terms[i];
  const auto add = [&](int first, int count) {
    if (term.nrow < first + count) return;
    double rho = 0;
    for (int r = first; r < first + count; ++r) {
      double sum = problem.rows[term.first_row + r].compliance;
      for (int c = first; c < first + count; ++c) sum += std::abs(own_[block.own + (at + r) * block.nrow + at + c]);
      rho = std::max(rho, sum);
    }
    rows_.push_back({i, first, count, at, 1 / rho});
  };
  if (term.law == Law::contact)
    add(0, 1), add(1, 2), add(3, 1), add(4, 2);
  else
    add(0, term.nrow);
}

void Sweeps::make_blocks(StepOperator& mass, const StepProblem& problem) {
  mass_ = &mass.row_blocks(terms_);
  blocks_.clear(), rows_.clear(), own_.clear();
  auto term = terms_.begin();
  int row = 0;
  for (int b = 0; b < mass_->blocks(); ++b) {
    Block block{row, 0, int(rows_.size()), 0, own_.size()};
    const auto end = term + mass_->terms(b);
    for (auto t = term; t != end; ++t) block.nrow += problem.terms[*t].nrow;
    own_.resize(block.own + std::size_t(block.nrow) * block.nrow);
    mass_->own_mass(b, &own_[block.own]);
    for (int at = 0; term != end; at += problem.terms[*term++].nrow) group(problem, *term, at, block);
    block.end = int(rows_.size());
    row += block.nrow;
    blocks_.push_back(block);
  }
  start_.resize(row), velocity_.resize(row), change_.resize(row);
}

/// y[r] += change, and what the block's rows feel of it.
void Sweeps::change(const Rows& rows, const Block& block, int r, double by, double* y) {
  if (by == 0) return;
  y[r] += by, change_[rows.at + r] += by;
  moved_ = std::max(moved_, std::abs(by) / rows.inverse);
  const double* A = &own_[block.own + std::size_t(rows.at + r) * block.nrow];
  for (int k = 0; k < block.nrow; ++k) velocity_[k] += by * A[k];
}

/// A contact's normal, and the disc of its friction, without what other laws need.
void Sweeps::relax_normal(const StepProblem& problem, const Rows& rows, const Block& block, double* y) {
  const double z = y[0] - miss(problem.rows[problem.terms[rows.term].first_row], velocity_[rows.at], y[0]) * rows.inverse;
  change(rows, block, 0, std::max(0.0, z) - y[0], y);
}

void Sweeps::relax_disc(const StepProblem& problem, const Rows& rows, const Block& block, double* y) {
  const Term& term = problem.terms[rows.term];
  const int first = rows.first;
  const TermRow* row = &problem.rows[term.first_row + first];
  const double* u = &velocity_[rows.at + first];
  double z0 = y[first] - miss(row[0], u[0], y[first]) * rows.inverse;
  double z1 = y[first + 1] - miss(row[1], u[1], y[first + 1]) * rows.inverse;
  const double radius = (first == 1 ? term.friction : term.rolling) * y[0], square = z0 * z0 + z1 * z1;
  if (square > radius * radius) {
    const double scale = radius / std::sqrt(square);
    z0 *= scale, z1 *= scale;
  }
  change(rows, block, first, z0 - y[first], y), change(rows, block, first + 1, z1 - y[first + 1], y);
}

/// Rows of any law; those of torsion follow the normal impulse as well.
void Sweeps::relax_any(const StepProblem& problem, const Rows& rows, const Block& block, double* y) {
  const Term& term = problem.terms[rows.term];
  double z[kTermRows], projected[kTermRows];
  std::copy_n(y, term.nrow, z);
  for (int r = rows.first; r < rows.first + rows.count; ++r)
    z[r] -= miss(problem.rows[term.first_row + r], velocity_[rows.at + r], y[r]) * rows.inverse;
  project(term, z, projected);
  for (int r = 0; r < term.nrow; ++r) change(rows, block, r, projected[r] - y[r], y);
}

void Sweeps::relax(const StepProblem& problem, std::size_t b, std::span<double> impulse) {
  const Block& block = blocks_[b];
  mass_->velocity(int(b), velocity_.data());
  for (int r = 0; r < block.nrow; ++r) velocity_[r] += start_[block.at + r], change_[r] = 0;
  for (int k = block.first; k < block.end; ++k) {
    const Rows& rows = rows_[k];
    const Term& term = problem.terms[rows.term];
    double* y = &impulse[term.first_row];
    if (term.law != Law::contact) {
      relax_any(problem, rows, block, y);
    } else if (rows.first == 0) {
      relax_normal(problem, rows, block, y);
    } else if (y[0] > 0 || y[rows.first] != 0 || y[rows.first + rows.count - 1] != 0) {  // an open contact has no friction
      rows.count == 2 ? relax_disc(problem, rows, block, y) : relax_any(problem, rows, block, y);
    }
  }
  if (std::any_of(change_.begin(), change_.begin() + block.nrow, [](double c) { return c != 0; }))
    mass_->push(int(b), change_.data());
}

/// Forth and back: what rests on one another hears of both ends.
void Sweeps::sweep(const StepProblem& problem, std::span<double> impulse, bool back) {
  moved_ = 0;
  const std::size_t n = blocks_.size();
  for (std::size_t b = 0; b < n; ++b) relax(problem, back ? n - 1 - b : b, impulse);
}

void Sweeps::start(const StepProblem& problem, std::span<const double> velocity) {
  auto to = start_.begin();
  for (const int i : terms_) to = std::copy_n(&velocity[problem.terms[i].first_row], problem.terms[i].nrow, to);
}

void Sweeps::run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
                 std::span<double> impulse) {
  if (choose(problem, velocity, impulse))
    make_blocks(mass, problem);
  else if (!terms_.empty())
    mass_->rest();
  start(problem, velocity);
  for (int s = 0; s < count; ++s) sweep(problem, impulse, s % 2 == 1);
}

SweepReport Sweeps::solve(StepOperator& mass, const StepProblem& problem, const SweepOptions& options,
                          std::span<double> y, std::span<double> impulse) {
  begin(problem);
  acted_.assign(problem.terms.size(), 1);
  for (std::size_t i = 0; i < problem.terms.size(); ++i) terms_.push_back(int(i));
  const auto apply = [&] {  // y: J v at these impulses
    mass.solve({}, impulse, y);
    mass.move(1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += problem.free_velocity[i];
  };
  apply();
  make_blocks(mass, problem);
  start(problem, y);
  SweepReport report;
  do {
    sweep(problem, impulse, report.sweeps % 2 == 1);
  } while (++report.sweeps < options.max_sweeps && moved_ > options.tolerance);
  apply();
  mass.keep();
  for (const Term& term : problem.terms) {
    const int first = term.first_row;
    const double miss = natural_residual(term, &problem.rows[first], &y[first], &impulse[first]);
    report.residual = miss <= report.residual ? report.residual : miss;
  }
  report.finite = std::isfinite(report.residual);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const TermRow& row = problem.rows[i];
    y[i] = row.centre + (row.target - y[i]) / row.compliance;
  }
  return report;
}

}  // namespace tarsus
