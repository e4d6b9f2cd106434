#include "tarsus/particles/verlet.hpp"
#include "tarsus/base/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace tarsus {
namespace {

std::vector<double> thrice(const std::vector<double>& inverse) {
  std::vector<double> out;
  out.reserve(3 * inverse.size());
  for (const double w : inverse) out.insert(out.end(), 3, w);
  return out;
}

int worth_having(int threads, int particles) {
  return std::min(ThreadTeam::useful(threads), std::max(1, particles / kParticlesEach));
}

// Σ a_i², in eight independent partial sums. Not finite if any a_i² is not.
double sum_of_squares(std::span<const double> a) {
  double part[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= a.size(); i += 8) {
    for (int k = 0; k < 8; ++k) part[k] += a[i + k] * a[i + k];
  }
  for (; i < a.size(); ++i) part[0] += a[i] * a[i];
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

/// Checks that the start satisfies the constraints. Else the first step would be a silent projection.
void check_start(const ParticleSystem& system, double tolerance) {
  const ConstraintSet& set = system.constraints;
  const Violation worst = largest_violation_at(set, system.position);
  if (worst.row < 0) return;
  const double rounding = set.rounding_floor(worst.row, system.position);
  if (worst.value <= 1e3 * std::max(tolerance, rounding)) return;
  throw ValueError(
      "start",
      fmt::format("off the constraints by {:.3g} (relative), most at {}", worst.value, set.describe(worst.row)),
      "positions that satisfy them: prepare() projects the initial positions");
}

}  // namespace

VelocityVerlet::VelocityVerlet(ParticleSystem& system, const VerletOptions& options)
    : system_(system),
      options_(options),
      team_(std::make_unique<ThreadTeam>(worth_having(options.threads, system.particles()))),
      forces_(system),
      inverse_(system.inverse_masses()),
      pinned_(pinned_particles(inverse_)),
      mass_(thrice(inverse_)) {
  if (!(std::isfinite(options.timestep) && options.timestep != 0)) {
    throw ValueError("timestep", number_text(options.timestep), "a finite number other than 0");
  }
  if (!(options.tolerance > 0 && options.tolerance < 1)) {
    throw ValueError("tolerance", number_text(options.tolerance), "a number between 0 and 1");
  }
  if (options.max_iterations < 0)
    throw ValueError("max_iterations", fmt::format("{}", options.max_iterations), "0 or more");
  check_start(system, options.tolerance);
  solver_ = make_particle_solver(options.solver, system.constraints, inverse_, team_.get());
  cut_rows();
  const std::size_t n3 = system.position.size();
  force_.assign(n3, 0.0), old_force_.assign(n3, 0.0), old_x_.assign(n3, 0.0), old_v_.assign(n3, 0.0);
  older_v_.assign(n3, 0.0);
  multiplier_.assign(system.constraints.nrow(), 0.0), velocity_multiplier_ = multiplier_;
  stop(system_, pinned_);
  forces_.compute(system.position, force_, &energies_, team_.get());
  old_x_ = system.position;
}

// Cuts the particles into one run for each thread, so that no row has particles in two runs.
void VelocityVerlet::cut_rows() {
  const ConstraintSet& set = system_.constraints;
  const int n = system_.particles(), threads = team_->size();
  if (threads == 1) return;
  std::vector<int> crossing(n + 2, 0), first(set.nrow());  // crossing: change in the number of rows that span a cut
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) != RowKind::distance) return;  // user-defined rows may not be thread-safe
    const auto particles = set.row_particles(k);
    const auto [low, high] = std::minmax_element(particles.begin(), particles.end());
    first[k] = *low;
    ++crossing[*low + 1], --crossing[*high + 1];
  }
  std::vector<int> run_of(n, 0);
  int run = 0, open = 0;
  for (int i = 0; i < n; ++i) {
    open += crossing[i];
    while (run + 1 < threads && open == 0 && i >= team_->share(n, run + 1).begin) ++run;
    run_of[i] = run;
  }
  rows_of_.resize(threads);
  for (int turn = 0; turn < set.nrow(); ++turn)
    rows_of_[run_of[first[set.impulse_row(turn)]]].push_back(set.impulse_row(turn));
}

template <class F>
void VelocityVerlet::share_out(std::size_t count, const F& work) {
  constexpr std::size_t kWorthATeam = 4096, kGrain = 64;  // shares begin on cache lines
  if (team_->size() == 1 || count < kWorthATeam) return work(std::size_t(0), count);
  const int grains = int((count + kGrain - 1) / kGrain);
  team_->run([&](int thread) {
    const ThreadTeam::Range range = team_->share(grains, thread);
    work(range.begin * kGrain, std::min(range.end * kGrain, count));
  });
}

StepReport VelocityVerlet::fail(std::string_view stage, const SolveReport& solve) {
  return fail(stage, describe(solve, system_.constraints), solve.status == SolveStatus::singular);
}

StepReport VelocityVerlet::fail(std::string_view stage, const std::string& why, bool singular) {
  StepReport out;
  out.ok = false;
  system_.position = old_x_, system_.velocity = old_v_, force_ = old_force_;
  update_energies();
  const bool shorter = probe_shorter_step();
  const std::string dependent = singular ? name_dependent_rows(system_) : "";
  out.stability = stability();
  out.message = fmt::format("{} stage, time {:.6g}: {}; dt*omega_max {:.3g} (unstable above 2)", stage,
                            time_ + options_.timestep, why, out.stability);
  if (!dependent.empty()) {
    out.message += ", constraints that depend on the others: " + dependent + "; prepare() removes redundant ones";
  } else if (shorter && stage != "force") {
    out.message += fmt::format(
        ", distances turn by up to {:.3g} rad in this step; a shorter one has a solution: take a smaller timestep "
        "(--dt)",
        largest_turn());
  }
  history_ = 0;
  return out;
}

void VelocityVerlet::update_energies() {
  std::vector<double> force(force_.size());
  forces_.compute(system_.position, force, &energies_, team_.get());
}

double VelocityVerlet::largest_turn() const {
  const ConstraintSet& set = system_.constraints;
  double turn = 0;
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) != RowKind::distance) continue;
    const double *a = &old_v_[3 * set.row_particles(k)[0]], *b = &old_v_[3 * set.row_particles(k)[1]];
    const double apart[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    turn = std::max(turn, std::abs(options_.timestep) * std::sqrt(sum_of_squares(apart)) / set.value(k));
  }
  return turn;
}

// Replaces the multipliers of the failed solver, which may not be finite, by those of a shorter step that can be
// solved. λ̃ scales with the step squared.
bool VelocityVerlet::probe_shorter_step() {
  std::vector<double> x(old_x_.size()), lambda(multiplier_.size());
  const std::span<const double> w = mass_.inverse_diagonal();
  ParticleNewton newton(system_.constraints, inverse_);  // independent of the solver that failed
  SolveOptions options{.tolerance = 1e-15};
  for (const double shorter : {0x1p-10, 0x1p-20, 0x1p-30}) {
    const double h = shorter * options_.timestep;
    options.timestep = h;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = old_x_[i] + h * (old_v_[i] + 0.5 * h * w[i] * old_force_[i]);
    if (!newton.solve_positions(system_.constraints, mass_, old_x_, x, lambda, options).ok()) continue;
    for (std::size_t k = 0; k < lambda.size(); ++k) multiplier_[k] = lambda[k] / (shorter * shorter);
    return lambda.size() > 0;
  }
  return false;
}

StepReport VelocityVerlet::step(bool with_energies) {
  std::vector<double>&x = system_.position, &v = system_.velocity;
  const std::span<const double> w = mass_.inverse_diagonal();
  const double dt = options_.timestep, half = 0.5 * dt;
  const SolveOptions solve{.tolerance = options_.tolerance, .max_iterations = options_.max_iterations, .timestep = dt};
  const bool constrained = system_.constraints.nrow() > 0;
  StepReport report;
  older_v_.swap(old_v_);
  history_ = std::min(history_ + 1, 2);
  stop(system_, pinned_);  // the caller may have changed velocities since the last step
  share_out(x.size(), [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      old_x_[i] = x[i], old_v_[i] = v[i];
      v[i] += half * (w[i] * force_[i]);
      x[i] += dt * v[i];
    }
  });
  force_.swap(old_force_);
  if (constrained) {
    report.position = solver_->solve_positions(system_.constraints, mass_, old_x_, x, multiplier_, solve);
    if (!report.position.ok()) {
      StepReport failed = fail("position", report.position);
      failed.position = report.position;
      return failed;
    }
    // (x_new - x')/Δt would add the rounding of positions, divided by Δt, to velocities and momentum.
    if (rows_of_.empty()) {
      system_.constraints.add_impulses(old_x_, multiplier_, 1 / dt, inverse_, v);
    } else {
      team_->run([&](int thread) {
        for (const int k : rows_of_[thread])
          system_.constraints.add_distance_impulse(k, old_x_, multiplier_, 1 / dt, inverse_, v);
      });
    }
  }
  forces_.compute(x, force_, with_energies ? &energies_ : nullptr, team_.get());
  std::atomic<bool> finite = true;
  share_out(x.size(), [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) v[i] += half * (w[i] * force_[i]);
    const std::span<const double> my_x(x.data() + from, to - from), my_v(v.data() + from, to - from);
    if (!std::isfinite(sum_of_squares(my_x) + sum_of_squares(my_v))) finite = false;
  });
  if (!finite) {
    const auto finite_at = [&](std::size_t i) {
      return std::isfinite(sum_of_squares({&x[3 * i], 3}) + sum_of_squares({&v[3 * i], 3}));
    };
    std::size_t bad = 0;
    while (3 * (bad + 1) < x.size() && finite_at(bad)) ++bad;
    return fail("force",
                fmt::format("not finite at particle {}: particles overlap, or the timestep is too large", bad));
  }
  if (constrained) {
    report.velocity = solver_->solve_velocities(system_.constraints, mass_, x, v, velocity_multiplier_, solve);
    if (!report.velocity.ok()) {
      StepReport failed = fail("velocity", report.velocity);
      failed.velocity = report.velocity;
      return failed;
    }
  }
  if (thermostat_) {
    const double factor = thermostat_->factor(kinetic_energy(system_), dt);
    for (double& value : v) value *= factor;
  }
  time_ += dt;
  return report;
}

void VelocityVerlet::reverse() {
  options_.timestep = -options_.timestep;
  history_ = 0;
}

std::vector<double> VelocityVerlet::constraint_forces() const {
  const ConstraintSet& set = system_.constraints;
  std::vector<double> out(system_.position.size(), 0.0), gradient;
  const double scale = 2 / (options_.timestep * options_.timestep);
  for (int k = 0; k < set.nrow(); ++k) {
    const int from = set.pattern().start[k], to = set.pattern().start[k + 1];
    gradient.resize(to - from);
    set.evaluate_row(k, old_x_, gradient);
    for (int p = from; p < to; ++p) out[set.pattern().column[p]] += scale * multiplier_[k] * gradient[p - from];
  }
  return out;
}

std::vector<double> VelocityVerlet::tensions() const {
  const ConstraintSet& set = system_.constraints;
  std::vector<double> out(set.nrow(), 0.0);
  const double scale = 2 / (options_.timestep * options_.timestep);
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) == RowKind::distance) out[k] = -scale * multiplier_[k] * set.value(k);
  }
  return out;
}

Mat3d VelocityVerlet::constraint_virial() const {
  const std::vector<double> force = constraint_forces();
  Mat3d virial{};
  for (int i = 0; i < system_.particles(); ++i) {
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) virial(a, b) += old_x_[3 * i + a] * force[3 * i + b];
    }
  }
  return virial;
}

double VelocityVerlet::shadow_shift() const {
  if (history_ < 2) return 0.0;
  double twice = 0;
  for (std::size_t i = 0; i < old_v_.size(); ++i) {
    if (inverse_[i / 3] == 0) continue;
    const double before = older_v_[i], now = old_v_[i], after = system_.velocity[i];
    const double half_change = 0.5 * (after - before), bend = after - 2 * now + before;  // a Δt, j Δt²
    twice += (half_change * half_change / 24 + now * bend / 12) / inverse_[i / 3];
  }
  return -twice;
}

double VelocityVerlet::stability() const { return stability_number(system_.constraints, mass_, multiplier_); }

}  // namespace tarsus
