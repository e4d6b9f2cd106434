// Projected Gauss-Seidel sweeps on terms (sweeps.hpp): when they are due before Newton's iterations, and the sweeps
// themselves. O(d) for a row of a tree at depth d. A problem solved by sweeps alone is accelerated by conjugate
// gradients. Sweeps converge slowly in the size of impulses, as in tall stacks and chains.
#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/body_points.hpp"
#include "solver/law.hpp"
#include "solver/relax.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

struct Plan {
  int plain;       ///< iterations before the first sweeps
  int first;       ///< sweeps before an iteration, at first,
  int most;        ///< and at most in a step
  double settled;  ///< stop once no row changes by more [m/s]
};
constexpr Plan kOfTrees{6, 5, 640, 3e-4};
constexpr Plan kEarly{0, 20, 100, 3e-4};      ///< more sweeps would not help
constexpr Plan kOfBodies{4, 40, 4000, 1e-5};  ///< and of crowds
constexpr std::size_t kMostSwept =
    2000000;  ///< limit on sweeps × terms of the latter; with more terms kOfTrees applies
constexpr double kFarAtFirst =
    0.1;                           ///< early sweeps start if the residual is larger after the first iteration, or than
constexpr double kFar = 1e-2;      ///< this later [m/s]; they pause while contacts miss by less
constexpr double kFalls = 0.1;     ///< no sweeps if the residual falls to this share of the last one
constexpr int kMore = 2;           ///< factor on their number if the residual does not reach
constexpr double kProgress = 0.5;  ///< this share of the least so far
constexpr std::size_t kBothWays = 400;  ///< number of rows up to which sweeps alternate their direction

}  // namespace

Sweeps::Sweeps() : points_(std::make_unique<BodyPoints>()) {}
Sweeps::~Sweeps() = default;

void Sweeps::begin(const StepProblem& problem, bool all) {
  acted_.assign(problem.terms.size(), all), terms_.clear(), blocks_.clear();
  for (std::size_t i = 0; all && i < problem.terms.size(); ++i) terms_.push_back(int(i));
  stale_ = true;
  restart();
}

void Sweeps::restart() { due_ = {}; }

static Plan plan_of(SweepKind kind, std::size_t terms) {
  if (kind != SweepKind::of_bodies && kind != SweepKind::of_crowd) return kOfTrees;
  Plan plan = kOfBodies;
  if (terms > 0) plan.most = int(std::min(std::size_t(plan.most), kMostSwept / terms));
  return plan.most > kOfTrees.most ? plan : kOfTrees;
}

int Sweeps::due(std::span<const double> residuals, double early, SweepKind kind) {
  const int iteration = int(residuals.size());
  if (iteration > 1 && residuals.back() <= kFalls * residuals[residuals.size() - 2]) return 0;
  if (due_.count == 0) due_.early = early > (iteration == 1 ? kFarAtFirst : kFar);
  const Plan plan = due_.early ? kEarly : plan_of(kind, terms_.size());
  due_.settled = plan.settled, due_.of_crowd = kind == SweepKind::of_crowd;
  if (due_.count == 0) {
    if (iteration <= plan.plain) return 0;
    due_.count = plan.first;
  } else if (due_.early && early <= kFar) {
    return 0;
  } else if (residuals.back() <= kProgress * *std::min_element(residuals.begin(), residuals.end() - 1)) {
    due_.count = plan.first, due_.without = false;
  } else {
    due_.count = std::min(kMore * due_.count, plan.most), due_.without = !due_.without;
  }
  const int count = due_.without ? 0 : std::max(0, std::min(due_.count, plan.most - due_.done));
  due_.done += count;
  return count;
}

std::span<const int> Sweeps::active(const StepProblem& problem, std::span<const double> velocity,
                                    std::span<const double> impulse) {
  if (!mark_active(problem.terms, problem.rows, velocity, impulse, acted_)) return terms_;
  terms_.clear(), stale_ = true;
  for (std::size_t i = 0; i < acted_.size(); ++i) {
    if (acted_[i]) terms_.push_back(int(i));
  }
  return terms_;
}

/// Adds the relaxations of one term's rows that are projected together, from row `at` of their block on. A is the
/// block's.
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

/// A a_j: velocity of the body's point per unit impulse along the axis.
static Vec3d response(const FreeBody& body, const Vec3d& arm, const Vec3d& axis) {
  return axis * body.inverse_mass + cross(body.inverse_inertia * cross(arm, axis), arm);
}

/// Σ x_k axis_k over a contact's rows.
static Vec3d along_axes(const ContactRows& at, const double* x) {
  return at.nrow < 3 ? at.axis[0] * x[0] : at.axis[0] * x[0] + at.axis[1] * x[1] + at.axis[2] * x[2];
}

/// @param row the term's first row among the active terms
void Sweeps::add_point(const StepProblem& problem, const ContactRows& at, const Term& term, int row) {
  const TermRow* rows = &problem.rows[term.first_row];
  const int c = points_->add(at);
  point_.push_back({&at, c, row, term.first_row});
  const auto put = [&](int which, double x) { points_->number(c, PointNumber(which)) = float(x); };
  points_->put(c, kPointNormal, at.axis[0]);
  points_->put(c, kPointArmA, at.arm_a), points_->put(c, kPointArmB, at.arm_b);
  const auto column = [&](const Vec3d& axis) {
    Vec3d sum{0, 0, 0};
    if (at.a >= 0) sum += response(mass_->bodies[at.a], at.arm_a, axis);
    if (at.b >= 0) sum += response(mass_->bodies[at.b], at.arm_b, axis);
    return sum;
  };
  const auto& [n, t1, t2] = at.axis;
  const Vec3d of_n = column(n);
  const double w_n = dot(n, of_n), rho_n = w_n + rows[0].compliance;
  put(kPointCompliance, rows[0].compliance), put(kPointMetric, rho_n), put(kPointInverse, 1 / rho_n);
  if (at.nrow < 3) return;
  const Vec3d of_1 = column(t1), of_2 = column(t2);
  const double R_t = std::max(rows[1].compliance, rows[2].compliance), across = std::abs(dot(t1, of_2));
  const double rho_t = std::max(dot(t1, of_1), dot(t2, of_2)) + across + R_t;
  put(kPointCompliance + 1, R_t), put(kPointMetric + 1, rho_t), put(kPointInverse + 1, 1 / rho_t);
  put(kPointFriction, term.friction), points_->put(c, kPointFelt, of_n - n * w_n);
}

/// Sets the bodies' motions to those of these impulses.
void Sweeps::push_points(std::span<const double> impulse) {
  mass_->rest();
  for (const Point& p : point_) {
    const Vec3d f = along_axes(*p.rows, &impulse[p.row]);
    if (p.rows->a >= 0) mass_->bodies[p.rows->a].push(p.rows->arm_a, f);
    if (p.rows->b >= 0) mass_->bodies[p.rows->b].push(p.rows->arm_b, -f);
  }
}

/// Adds J x to `velocity`.
void Sweeps::read_points(std::span<double> velocity) const {
  const auto at = [&](int body, const Vec3d& arm) {
    return body < 0 ? Vec3d{0, 0, 0} : mass_->bodies[body].velocity(arm);
  };
  for (const Point& p : point_) {
    const Vec3d v = at(p.rows->a, p.rows->arm_a) - at(p.rows->b, p.rows->arm_b);
    for (int k = 0; k < p.rows->nrow; ++k) velocity[p.row + k] += dot(p.rows->axis[k], v);
  }
}

void Sweeps::make_blocks(StepOperator& mass, const StepProblem& problem) {
  const RelaxTable& table = relax_table();
  mass_ = &mass.row_blocks(terms_), stale_ = false;
  const RowBlocks::Mass whole = mass_->whole();
  blocks_.clear(), relaxations_.clear(), point_.clear();
  points_->clear(mass_->bodies);
  auto term = terms_.begin();
  int row = 0, widest = 0;
  std::size_t own = 0;
  for (int b = 0; b < mass_->blocks(); ++b) {
    if (const ContactRows* point = mass_->point(b)) {
      const Term& only = problem.terms[*term++];
      add_point(problem, *point, only, row);
      row += only.nrow;
      continue;
    }
    const auto [body_a, body_b] = mass_->bodies_of(b);
    Block block{.at = row, .first = int(relaxations_.size()), .own = own, .of = b};
    block.place = points_->add_other(body_a, body_b);
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

/// Targets and starting point of these sweeps: z = keep y + start - J x/ρ, with x = 0 at the start.
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
  conjugate_.due = false;
  points_->take_motions(mass_->bodies);
  for (const Point& p : point_) {
    double target[3] = {};
    for (int k = 0; k < p.rows->nrow; ++k) {
      const TermRow& row = problem.rows[p.row + k];
      target[k] = row.target + row.compliance * row.centre - velocity[p.row + k];
    }
    points_->put(p.contact, kPointTarget, along_axes(*p.rows, target));
    points_->put(p.contact, kPointImpulse, along_axes(*p.rows, &impulse[p.row]));
  }
  for (const Block& block : blocks_) {
    for (int r = 0; r < block.nrow; ++r) {
      const int k = block.at + r;
      own_[block.own + std::size_t(r) * (block.stride + 1)] = rows_.keep[k] - rows_.diagonal[k] * rows_.inverse[k];
    }
  }
  if (!mass_->whole().A) return;
  for (std::size_t r = 0; r < y_.size(); ++r) z_[r] = rows_.keep[r] * y_[r] + rows_.start[r];
}

/// Sweeps over a single block with all rows, whose z_ is stored: `sweeps` times, or until no velocity changes by more
/// than the tolerance.
/// @return number of sweeps
int Sweeps::relax_whole(int sweeps, double tolerance) {
  const Block& block = blocks_[0];
  Relaxed by;
  const int done = relax_table().relax(&relaxations_[block.first], block.end - block.first, &own_[block.own],
                                       block.stride, sweeps, tolerance, y_.data(), z_.data(), by);
  moved_ = by.moved, energy_ = by.energy;
  return done;
}

void Sweeps::relax(const Block& block) {
  double* const y = &y_[block.at];
  const std::array<int, 2> bodies = mass_->bodies_of(block.of);
  for (const int i : bodies) {
    if (i >= 0) points_->give_motion(i, mass_->bodies[i]);
  }
  mass_->velocity(block.of, z_.data());
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
  if (!changed) return;
  mass_->push(block.of, change_.data());
  for (const int i : bodies) {
    if (i >= 0) points_->take_motion(mass_->bodies[i], i);
  }
}

void Sweeps::relax_points(int first, int end, bool back) {
  if (first >= end) return;
  const Relaxed by = points_->relax(first, end, back, conjugate_.due ? &conjugate_.of_points : nullptr);
  moved_ = std::max(moved_, by.moved), energy_ += by.energy;
}

/// One sweep. Alternating directions carry changes both ways through a stack.
void Sweeps::sweep(bool back) {
  if (mass_->whole().A) return void(relax_whole(1, 0));
  moved_ = 0, energy_ = 0;
  int place = back ? points_->places() : 0;  // how far the points have been swept
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    const Block& block = blocks_[back ? blocks_.size() - 1 - k : k];
    back ? relax_points(block.place + 1, place, true) : relax_points(place, block.place, false);
    place = back ? block.place + 1 : block.place;
    relax(block);
  }
  back ? relax_points(0, place, true) : relax_points(place, points_->places(), false);
  conjugate_.due = false;
  if (mass_->holds()) points_->give_motions(mass_->bodies), mass_->hold(), points_->take_motions(mass_->bodies);
}

void Sweeps::extrapolate(const Extrapolation& by) {
  mass_->extrapolate(by), points_->extrapolate(by);
  conjugate_.of_points = by, conjugate_.due = true;
  for (const Block& block : blocks_) {
    for (int i = block.at; i < block.at + block.nrow; ++i) by(y_[i], conjugate_.y[i], conjugate_.y_by[i]);
  }
  for (std::size_t i = 0; mass_->whole().A && i < z_.size(); ++i) by(z_[i], conjugate_.z[i], conjugate_.z_by[i]);
}

/// Sweeps from these impulses and their J v. Accelerated: conjugate gradients with a sweep as the gradient
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
  for (const Point& p : point_) {
    const Vec3d f = points_->vector(p.contact, kPointImpulse);
    for (int k = 0; k < p.rows->nrow; ++k) y_[p.at + k] = dot(p.rows->axis[k], f);
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
  if (active(problem, velocity, impulse).empty()) return;
  if (stale_)
    make_blocks(mass, problem);
  else
    mass_->rest();
  sweep(problem, {count, due_.settled, count, 0}, due_.of_crowd && mass_->whole().A, velocity, impulse);
}

SweepReport Sweeps::solve(StepOperator& mass, const StepProblem& problem, const SweepOptions& options,
                          std::span<double> y, std::span<double> impulse) {
  begin(problem, true);
  make_blocks(mass, problem);
  const bool of_bodies = blocks_.empty() && !mass_->holds();
  if (of_bodies)
    push_points(impulse), std::copy(problem.free_velocity.begin(), problem.free_velocity.end(), y.begin());
  else
    apply_impulses(mass, problem, impulse, y);
  SweepReport report;
  report.sweeps = sweep(problem, options, true, y, impulse);  // y: J v where the bodies' motions are zero
  if (of_bodies)
    push_points(impulse), read_points(y), mass.take_bodies();
  else
    apply_impulses(mass, problem, impulse, y);
  mass.keep();
  TermLaws laws;
  laws.sort(problem);
  report.residual = laws.residual(problem, y, impulse).all;
  report.finite = std::isfinite(report.residual);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = before_projection(problem.rows[i], y[i]);
  return report;
}

}  // namespace tarsus
