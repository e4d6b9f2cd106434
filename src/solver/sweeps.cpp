#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

constexpr int kPlain = 6;               ///< iterations before sweeps
constexpr int kFirst = 5;               ///< sweeps before an iteration, to begin with,
constexpr int kMore = 2;                ///< times as many where
constexpr double kProgress = 0.5;       ///< of the least residual is not reached,
constexpr std::size_t kBothWays = 400;  ///< rows that go back as well
constexpr int kMost = 640;              ///< in a step

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
  mass_ = &mass.row_blocks(terms_);
  blocks_.clear(), rows_.clear(), own_.clear(), points_.clear();
  auto term = terms_.begin();
  int row = 0;
  for (int b = 0; b < mass_->blocks(); ++b) {
    if (const BodyPoint* point = mass_->point(b)) {
      const Term& only = problem.terms[*term++];
      blocks_.push_back({row, only.nrow, 0, 0, 0, int(points_.size())});
      points_.push_back(make_point(problem, *point, only));
      row += only.nrow;
      continue;
    }
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
  for (std::vector<double>* v : {&start_, &velocity_, &change_}) v->resize(row);
  before_.resize(row + 2), momentum_.resize(row + 2);  // a point without friction has room for three
}

/// y[r] += change, and what the block's rows feel of it.
void Sweeps::change(const Rows& rows, const Block& block, int r, double by, double* y) {
  if (by == 0) return;
  y[r] += by, change_[rows.at + r] += by;
  moved_ = std::max(moved_, std::abs(by) / rows.inverse), energy_ += by * by / rows.inverse;
  const double* A = &own_[block.own + std::size_t(rows.at + r) * block.nrow];
  for (int k = 0; k < block.nrow; ++k) velocity_[k] += by * A[k];
}

/// A contact's normal, and the disc of its friction, without what other laws need.
void Sweeps::relax_normal(const StepProblem& problem, const Rows& rows, const Block& block, double* y) {
  const double z =
      y[0] - miss(problem.rows[problem.terms[rows.term].first_row], velocity_[rows.at], y[0]) * rows.inverse;
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
    } else if (y[0] > 0 || y[rows.first] != 0 ||
               y[rows.first + rows.count - 1] != 0) {  // an open contact has no friction
      rows.count == 2 ? relax_disc(problem, rows, block, y) : relax_any(problem, rows, block, y);
    }
  }
  if (std::any_of(change_.begin(), change_.begin() + block.nrow, [](double c) { return c != 0; }))
    mass_->push(int(b), change_.data());
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
void Sweeps::sweep(const StepProblem& problem, std::span<double> impulse, bool back) {
  moved_ = 0, energy_ = 0;
  const std::size_t n = blocks_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t b = back ? n - 1 - k : k;
    blocks_[b].point >= 0 ? relax(points_[blocks_[b].point]) : relax(problem, b, impulse);
  }
}

void Sweeps::extrapolate(const StepProblem& problem, const Extrapolation& by, std::span<double> impulse) {
  mass_->extrapolate(by);
  std::size_t term = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    double *before = &before_[blocks_[b].at], *p = &momentum_[blocks_[b].at];
    if (blocks_[b].point >= 0) {
      Point& point = points_[blocks_[b].point];
      for (int k = 0; k < 3; ++k) by(point.y[k], before[k], p[k]);
      ++term;
      continue;
    }
    for (const std::size_t end = term + mass_->terms(int(b)); term < end; ++term) {
      const Term& own = problem.terms[terms_[term]];
      for (int k = 0; k < own.nrow; ++k) by(impulse[own.first_row + k], *before++, *p++);
    }
  }
}

/// Sweeps from these impulses and their J v. Accelerated: conjugate gradients with a sweep for a gradient
/// [Silcowitz-Hansen, Niebe and Erleben 2010].
int Sweeps::sweep(const StepProblem& problem, const SweepOptions& options, bool accelerated,
                  std::span<const double> velocity, std::span<double> impulse) {
  auto to = start_.begin();
  for (const int i : terms_) to = std::copy_n(&velocity[problem.terms[i].first_row], problem.terms[i].nrow, to);
  for (Point& p : points_) {
    for (int k = 0; k < (p.slides ? 3 : 1); ++k) {
      const TermRow& row = problem.rows[p.row + k];
      p.y[k] = impulse[p.row + k];
      p.target[k] = row.target + row.compliance * row.centre - velocity[p.row + k];
    }
  }
  if (accelerated) extrapolate(problem, {}, impulse);
  double last = kUnbounded;
  for (int done = 1;; ++done) {
    sweep(problem, impulse, done % 2 == 0 && (accelerated || start_.size() > kBothWays));
    const int most = moved_ > options.coarse ? options.most_sweeps : options.max_sweeps;
    if (done >= most || !(moved_ > options.tolerance)) {
      for (const Point& p : points_) std::copy_n(p.y, p.slides ? 3 : 1, &impulse[p.row]);
      return done;
    }
    if (!accelerated) continue;
    const double beta = energy_ / last;
    extrapolate(problem, {beta <= 1 ? beta : 0, beta > 1}, impulse);
    last = energy_;
  }
}

void Sweeps::run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
                 std::span<double> impulse) {
  if (choose(problem, velocity, impulse))
    make_blocks(mass, problem);
  else if (!terms_.empty())
    mass_->rest();
  if (!terms_.empty()) sweep(problem, {count, 0, count, 0}, false, velocity, impulse);
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
  SweepReport report;
  report.sweeps = sweep(problem, options, true, y, impulse);
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
