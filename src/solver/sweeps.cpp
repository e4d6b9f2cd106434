#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"
#include "solver/relax.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

constexpr int kPlain = 6;               ///< iterations before sweeps, but where they may come early: where the residual
constexpr double kFarAtFirst = 0.1;     ///< is more than that after the first iteration, or
constexpr double kFar = 1e-2;           ///< later [m/s]; then none while contacts miss less,
constexpr double kFalls = 0.1;          ///< and never where the residual falls to so much of the last one
constexpr int kFirst = 5;               ///< sweeps before an iteration, to begin with,
constexpr int kFirstEarly = 20;         ///< and where they come early;
constexpr double kSettled = 3e-4;       ///< no more sweeps once none of its rows changes by more [m/s];
constexpr int kMore = 2;                ///< so many times as many where
constexpr double kProgress = 0.5;       ///< of the least residual is not reached,
constexpr std::size_t kBothWays = 400;  ///< rows that go back as well
constexpr int kMost = 640;              ///< in a step,
constexpr int kMostEarly = 100;         ///< of those that come early: where they do not settle it, more do not either

const RelaxTable& relax_table() {
  static const RelaxTable& table = kernels<RelaxTable>();
  return table;
}

}  // namespace

Sweeps::Sweeps() = default;
Sweeps::~Sweeps() = default;

void Sweeps::begin(const StepProblem& problem, bool all) {
  acted_.assign(problem.terms.size(), all), terms_.clear(), blocks_.clear();
  for (std::size_t i = 0; all && i < problem.terms.size(); ++i) terms_.push_back(int(i));
  stale_ = true;
  restart();
}

void Sweeps::restart() { done_ = count_ = 0, without_ = early_ = false; }

int Sweeps::due(std::span<const double> residuals, double early) {
  const int iteration = int(residuals.size());
  if (iteration > 1 && residuals.back() <= kFalls * residuals[residuals.size() - 2]) return 0;
  if (count_ == 0) {
    early_ = early > (iteration == 1 ? kFarAtFirst : kFar);
    if (iteration <= kPlain && !early_) return 0;
    count_ = early_ ? kFirstEarly : kFirst;
  } else if (early_ && early <= kFar) {
    return 0;
  } else if (residuals.back() <= kProgress * *std::min_element(residuals.begin(), residuals.end() - 1)) {
    count_ = early_ ? kFirstEarly : kFirst, without_ = false;
  } else {
    count_ *= kMore, without_ = !without_;
  }
  const int count = without_ ? 0 : std::min(count_, (early_ ? kMostEarly : kMost) - done_);
  done_ += count;
  return count;
}

std::span<const int> Sweeps::acting(const StepProblem& problem, std::span<const double> velocity,
                                    std::span<const double> impulse) {
  bool more = false;
  for (std::size_t i = 0; i < problem.terms.size(); ++i) {
    if (acted_[i]) continue;
    const int first = problem.terms[i].first_row;
    acted_[i] = acts(problem.terms[i], &problem.rows[first], &velocity[first], &impulse[first]);
    more |= acted_[i] != 0;
  }
  if (!more) return terms_;
  terms_.clear(), stale_ = true;
  for (std::size_t i = 0; i < acted_.size(); ++i) {
    if (acted_[i]) terms_.push_back(int(i));
  }
  return terms_;
}

/// Rows of one term that are projected together, from row `at` of their block on. A is the block's.
/// @param inverse out: 1/ρ of each row of the block
void Sweeps::add_relaxations(const StepProblem& problem, int i, int at, const double* A, int stride, double* inverse) {
  const Term& term = problem.terms[i];
  const TermRow* rows = &problem.rows[term.first_row];
  const auto measure = [&](int first, int count, double* rho) {
    double most = 0;
    for (int k = first; k < first + count; ++k) {
      double sum = rows[k].compliance;
      for (int c = first; c < first + count; ++c) sum += std::abs(A[(at + k) * stride + at + c]);
      most = std::max(most, sum);
    }
    for (int k = 0; k < count; ++k) rho[k] = most, inverse[at + first + k] = 1 / most;
  };
  const auto add = [&](Relaxation::Kind kind, int first, int count, double bound) {
    if (term.nrow < first + count) return;
    relaxations_.push_back(
        {.kind = kind, .at = at + first, .normal_at = at, .bound = bound, .lower = term.lower, .upper = term.upper});
    double* rho = relaxations_.back().rho;
    if (kind == Relaxation::contact)
      measure(0, 1, rho), measure(1, 2, rho + 1);
    else
      measure(first, count, rho);
  };
  switch (term.law) {
    case Law::interval: return add(Relaxation::interval, 0, 1, 0);
    case Law::ball: return add(Relaxation::ball, 0, 3, term.upper);
    case Law::contact:
      term.nrow == 1 ? add(Relaxation::normal, 0, 1, 0) : add(Relaxation::contact, 0, 3, term.friction);
      add(Relaxation::twist, 3, 1, term.torsional), add(Relaxation::disc, 4, 2, term.rolling);
  }
}

/// A a_j of one body.
static Vec3d response(const FreeBody& body, const Vec3d& arm, const Vec3d& axis) {
  return axis * body.inverse_mass + cross(body.inverse_inertia * cross(arm, axis), arm);
}

Sweeps::Point Sweeps::make_point(const StepProblem& problem, const BodyPoint& at, const Term& term) const {
  const TermRow* rows = &problem.rows[term.first_row];
  Point p{};
  p.a = at.a, p.b = at.b, p.row = term.first_row, p.slides = at.nrow == 3;
  p.n = at.axis[0], p.t1 = at.axis[1], p.t2 = at.axis[2], p.arm_a = at.arm_a, p.arm_b = at.arm_b;
  const auto column = [&](const Vec3d& axis) {
    Vec3d sum{0, 0, 0};
    if (p.a >= 0) sum += response(mass_->bodies[p.a], p.arm_a, axis);
    if (p.b >= 0) sum += response(mass_->bodies[p.b], p.arm_b, axis);
    return sum;
  };
  const Vec3d of_n = column(p.n);
  p.R_n = rows[0].compliance, p.inverse_n = 1 / (dot(p.n, of_n) + p.R_n);
  if (!p.slides) return p;
  const Vec3d of_1 = column(p.t1), of_2 = column(p.t2);
  const double across = std::abs(dot(p.t1, of_2));
  p.R_t = std::max(rows[1].compliance, rows[2].compliance);
  p.inverse_t = 1 / (std::max(dot(p.t1, of_1), dot(p.t2, of_2)) + across + p.R_t);
  p.friction = term.friction, p.felt[0] = dot(p.t1, of_n), p.felt[1] = dot(p.t2, of_n);
  return p;
}

void Sweeps::make_blocks(StepOperator& mass, const StepProblem& problem) {
  const RelaxTable& table = relax_table();
  mass_ = &mass.row_blocks(terms_), stale_ = false;
  const RowBlocks::Mass whole = mass_->whole();
  blocks_.clear(), relaxations_.clear(), points_.clear();
  auto term = terms_.begin();
  int row = 0, widest = 0;
  std::size_t own = 0;
  for (int b = 0; b < mass_->blocks(); ++b) {
    if (const BodyPoint* point = mass_->point(b)) {
      const Term& only = problem.terms[*term++];
      blocks_.push_back({.at = row, .nrow = only.nrow, .point = int(points_.size())});
      points_.push_back(make_point(problem, *point, only));
      row += only.nrow;
      continue;
    }
    Block block{.at = row, .first = int(relaxations_.size()), .own = own};
    const auto end = term + mass_->terms(b);
    for (auto t = term; t != end; ++t) block.nrow += problem.terms[*t].nrow;
    block.stride = whole.A ? whole.stride : padded(block.nrow, 8);
    own += std::size_t(block.nrow) * block.stride;
    at_least(own_, own + RowBlocks::kBeyond);
    double* const Z = &own_[block.own];
    const double* A = whole.A;
    if (!A) {
      std::fill_n(Z, own - block.own, 0.0);
      mass_->own_mass(b, Z, block.stride), A = Z;
    }
    row += block.nrow, widest = std::max(widest, block.stride);
    rows_.inverse.resize(block.at + block.stride), rows_.diagonal.resize(row);
    double* const inverse = &rows_.inverse[block.at];
    for (int at = 0; term != end; at += problem.terms[*term++].nrow)
      add_relaxations(problem, *term, at, A, block.stride, inverse);
    block.end = int(relaxations_.size());
    for (int r = 0; r < block.nrow; ++r) rows_.diagonal[block.at + r] = A[std::size_t(r) * (block.stride + 1)];
    table.follow(A, inverse, block.nrow, block.stride, Z);
    blocks_.push_back(block);
  }
  for (std::vector<double>* v :
       {&rows_.inverse, &rows_.diagonal, &rows_.keep, &rows_.start, &y_, &change_, &conjugate_.y, &conjugate_.y_by})
    v->resize(row);
  z_.assign(widest + RowBlocks::kBeyond, 0.0);
  for (std::vector<double>* v : {&conjugate_.z, &conjugate_.z_by}) v->assign(z_.size(), 0.0);
}

/// Targets and where these sweeps start. z = keep y + start - J x/ρ, x = 0 there.
void Sweeps::start(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) {
  int at = 0;
  for (const int i : terms_) {
    const Term& term = problem.terms[i];
    for (int row = term.first_row; row < term.first_row + term.nrow; ++row, ++at) {
      const auto& [R, b, c, scale] = problem.rows[row];
      y_[at] = impulse[row];
      rows_.keep[at] = 1 - R * rows_.inverse[at], rows_.start[at] = (b + R * c - velocity[row]) * rows_.inverse[at];
    }
  }
  for (const Block& block : blocks_) {
    if (block.point >= 0) {
      Point& p = points_[block.point];
      p.y = &y_[block.at];
      for (int k = 0; k < (p.slides ? 3 : 1); ++k) {
        const TermRow& row = problem.rows[p.row + k];
        p.target[k] = row.target + row.compliance * row.centre - velocity[p.row + k];
      }
      continue;
    }
    for (int r = 0; r < block.nrow; ++r) {
      const int k = block.at + r;
      own_[block.own + std::size_t(r) * (block.stride + 1)] = rows_.keep[k] - rows_.diagonal[k] * rows_.inverse[k];
    }
  }
  if (!mass_->whole().A) return;
  for (std::size_t r = 0; r < y_.size(); ++r) z_[r] = rows_.keep[r] * y_[r] + rows_.start[r];
}

/// Where one block has all rows, whose z_ is kept: so many sweeps, or fewer once none changes a velocity by more than
/// the tolerance. @return how many
int Sweeps::relax_whole(int sweeps, double tolerance) {
  const Block& block = blocks_[0];
  Relaxed by;
  const int done = relax_table().relax(&relaxations_[block.first], block.end - block.first, &own_[block.own],
                                       block.stride, sweeps, tolerance, y_.data(), z_.data(), by);
  moved_ = by.moved, energy_ = by.energy;
  return done;
}

void Sweeps::relax(std::size_t b) {
  const Block& block = blocks_[b];
  double* const y = &y_[block.at];
  mass_->velocity(int(b), z_.data());
  for (int r = 0; r < block.nrow; ++r) {
    const int k = block.at + r;
    z_[r] = rows_.keep[k] * y[r] + rows_.start[k] - z_[r] * rows_.inverse[k], change_[r] = y[r];
  }
  Relaxed by;
  relax_table().relax(&relaxations_[block.first], block.end - block.first, &own_[block.own], block.stride, 1, 0, y,
                      z_.data(), by);
  moved_ = std::max(moved_, by.moved), energy_ += by.energy;
  bool changed = false;
  for (int r = 0; r < block.nrow; ++r) change_[r] = y[r] - change_[r], changed |= change_[r] != 0;
  if (changed) mass_->push(int(b), change_.data());
}

void Sweeps::relax(Point& p) {
  static const FreeBody kWorld{};
  FreeBody* const bodies = mass_->bodies.data();
  const FreeBody &a = p.a >= 0 ? bodies[p.a] : kWorld, &b = p.b >= 0 ? bodies[p.b] : kWorld;
  const Vec3d v = a.v + cross(a.w, p.arm_a) - b.v - cross(b.w, p.arm_b);
  const double y_n = std::max(0.0, p.y[0] - (dot(p.n, v) + p.R_n * p.y[0] - p.target[0]) * p.inverse_n);
  const double by_n = y_n - p.y[0];
  if (by_n == 0 && y_n == 0) return;  // it stays open: no friction either
  moved_ = std::max(moved_, std::abs(by_n) / p.inverse_n), energy_ += by_n * by_n / p.inverse_n;
  Vec3d P = p.n * by_n;
  p.y[0] = y_n;
  if (p.slides) {
    const double u1 = dot(p.t1, v) + by_n * p.felt[0], u2 = dot(p.t2, v) + by_n * p.felt[1];
    double y1 = p.y[1] - (u1 + p.R_t * p.y[1] - p.target[1]) * p.inverse_t;
    double y2 = p.y[2] - (u2 + p.R_t * p.y[2] - p.target[2]) * p.inverse_t;
    const double radius = p.friction * y_n, square = y1 * y1 + y2 * y2;
    if (square > radius * radius) {
      const double scale = radius / std::sqrt(square);
      y1 *= scale, y2 *= scale;
    }
    const double by_1 = y1 - p.y[1], by_2 = y2 - p.y[2];
    p.y[1] = y1, p.y[2] = y2;
    P += p.t1 * by_1 + p.t2 * by_2;
    moved_ = std::max(moved_, std::max(std::abs(by_1), std::abs(by_2)) / p.inverse_t);
    energy_ += (by_1 * by_1 + by_2 * by_2) / p.inverse_t;
  }
  const auto push = [&](FreeBody& body, const Vec3d& arm, const Vec3d& f) {
    body.v += f * body.inverse_mass, body.w += body.inverse_inertia * cross(arm, f);
  };
  if (p.a >= 0) push(bodies[p.a], p.arm_a, P);
  if (p.b >= 0) push(bodies[p.b], p.arm_b, -P);
}

/// Forth and back: what rests on one another hears of both ends.
void Sweeps::sweep(bool back) {
  if (mass_->whole().A) return void(relax_whole(1, 0));
  moved_ = 0, energy_ = 0;
  const std::size_t n = blocks_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t b = back ? n - 1 - k : k;
    blocks_[b].point >= 0 ? relax(points_[blocks_[b].point]) : relax(b);
  }
}

void Sweeps::extrapolate(const Extrapolation& by) {
  mass_->extrapolate(by);
  for (std::size_t i = 0; i < y_.size(); ++i) by(y_[i], conjugate_.y[i], conjugate_.y_by[i]);
  for (std::size_t i = 0; mass_->whole().A && i < z_.size(); ++i) by(z_[i], conjugate_.z[i], conjugate_.z_by[i]);
}

/// Sweeps from these impulses and their J v. Accelerated: conjugate gradients with a sweep for a gradient
/// [Silcowitz-Hansen, Niebe and Erleben 2010].
int Sweeps::sweep(const StepProblem& problem, const SweepOptions& options, bool accelerated,
                  std::span<const double> velocity, std::span<double> impulse) {
  start(problem, velocity, impulse);
  if (accelerated) extrapolate({});
  const bool at_once = mass_->whole().A && !accelerated;
  double last = kUnbounded;
  int done = at_once ? relax_whole(options.most_sweeps, options.tolerance) : 1;
  for (; !at_once; ++done) {
    sweep(done % 2 == 0 && (accelerated || rows_.start.size() > kBothWays));
    const int most = moved_ > options.coarse ? options.most_sweeps : options.max_sweeps;
    if (done >= most || !(moved_ > options.tolerance)) break;
    if (!accelerated) continue;
    const double beta = energy_ / last;
    extrapolate({beta <= 1 ? beta : 0, beta > 1});
    last = energy_;
  }
  auto y = y_.begin();
  for (const int i : terms_) {
    const Term& term = problem.terms[i];
    std::copy_n(y, term.nrow, &impulse[term.first_row]), y += term.nrow;
  }
  return done;
}

void Sweeps::run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
                 std::span<double> impulse) {
  if (acting(problem, velocity, impulse).empty()) return;
  if (stale_)
    make_blocks(mass, problem);
  else
    mass_->rest();
  sweep(problem, {count, kSettled, count, 0}, false, velocity, impulse);
}

SweepReport Sweeps::solve(StepOperator& mass, const StepProblem& problem, const SweepOptions& options,
                          std::span<double> y, std::span<double> impulse) {
  begin(problem, true);
  const auto apply = [&] {  // y: J v at these impulses
    mass.solve({}, impulse, y);
    mass.move(1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += problem.free_velocity[i];
  };
  apply();
  make_blocks(mass, problem);
  SweepReport report;
  report.sweeps = sweep(problem, options, true, y, impulse);
  apply();
  mass.keep();
  TermLaws laws;
  laws.sort(problem);
  report.residual = laws.residual(problem, y, impulse).all;
  report.finite = std::isfinite(report.residual);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const TermRow& row = problem.rows[i];
    y[i] = row.centre + (row.target - y[i]) / row.compliance;
  }
  return report;
}

}  // namespace tarsus
