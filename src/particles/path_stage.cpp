#include "particles/path_stage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "solver/convergence.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

constexpr int kMaxIterations = 60;

}  // namespace

PathStage::PathStage(const ConstraintSet& set, std::span<const double> inverse_mass, std::vector<int> particles,
                     std::vector<int> rows)
    : particles_(std::move(particles)), rows_(std::move(rows)) {
  const int m = bonds();
  constexpr int kArrays = 20;
  // Arrays at distances of a multiple of 4096 bytes make loads wait for unrelated stores (25 % of the time for 1,024
  // beads). The distances are therefore 320 bytes more.
  const std::size_t needed = static_cast<std::size_t>(m) + 1 + 2 * kPathPadding;
  const std::size_t length = (needed + 511 - 40) / 512 * 512 + 40;
  storage_.assign(kArrays * length, 0.0);
  double* next = storage_.data() + kPathPadding;
  const auto take = [&] {
    double* const array = next;
    next += length;
    return array;
  };
  double *const w = take(), *const d2 = take(), *const inverse_d2 = take();
  args_ = {m,      w,      d2,     inverse_d2, take(), take(), take(), take(), take(),
           take(), take(), take(), take(),     take(), take(), take(), take(), take()};
  total_ = take();
  for (int a = 0; a <= m; ++a) {
    w[a] = inverse_mass[particles_[a]];
    consecutive_ = consecutive_ && particles_[a] == particles_[0] + a;
  }
  for (int k = 0; k < m; ++k) d2[k] = set.scale(rows_[k]), inverse_d2[k] = 1 / set.scale(rows_[k]);
}

void PathStage::gather(const ParticleKernels& kernels, std::span<const double> from) {
  if (consecutive_) return kernels.path_load(args_, from.data() + 3 * static_cast<std::size_t>(particles_[0]));
  for (std::size_t a = 0; a < particles_.size(); ++a) {
    const double* p = from.data() + 3 * static_cast<std::size_t>(particles_[a]);
    args_.x[a] = p[0], args_.y[a] = p[1], args_.z[a] = p[2];
  }
}

void PathStage::scatter(const ParticleKernels& kernels, std::span<double> to) const {
  if (consecutive_) return kernels.path_store(args_, to.data() + 3 * static_cast<std::size_t>(particles_[0]));
  for (std::size_t a = 0; a < particles_.size(); ++a) {
    double* p = to.data() + 3 * static_cast<std::size_t>(particles_[a]);
    p[0] = args_.x[a], p[1] = args_.y[a], p[2] = args_.z[a];
  }
}

// Writes the bonds at x0 to g. Returns whether the stored symmetric factor belongs to these bonds.
bool PathStage::load_base(const ParticleKernels& kernels, std::span<const double> x0) {
  gather(kernels, x0);
  kernels.path_bonds(args_, args_.ex, args_.ey, args_.ez);
  const std::size_t bytes = sizeof(double) * rows_.size();
  const bool same = factored_ && std::memcmp(args_.ex, args_.gx, bytes) == 0 &&
                    std::memcmp(args_.ey, args_.gy, bytes) == 0 && std::memcmp(args_.ez, args_.gz, bytes) == 0;
  if (!same) {
    std::swap(args_.ex, args_.gx), std::swap(args_.ey, args_.gy), std::swap(args_.ez, args_.gz);
    factored_ = false;
  }
  return same;
}

void PathStage::add_delta(double sign) {
  for (int k = 0; k < args_.m; ++k) total_[k] += sign * args_.delta[k];
}

// The bond with the largest residual. `largest` is the result of path_sigma or path_rates for these sigma. The products
// here are the same, so one of them equals it exactly.
int PathStage::bond_with(double largest) const {
  for (int k = 0; k < args_.m; ++k) {
    if (std::abs(args_.sigma[k]) * args_.inverse_length2[k] == largest) return k;
  }
  return worst_bond();  // NaN
}

int PathStage::worst_bond() const {
  int worst = 0;
  double size = -1;
  for (int k = 0; k < args_.m; ++k) {
    const double mine = std::abs(args_.sigma[k]) * args_.inverse_length2[k];
    if (std::isnan(mine)) return k;
    if (mine > size) size = mine, worst = k;
  }
  return worst;
}

double PathStage::rounding_floor(int k) const {
  const double a = elementary::hypot(args_.x[k], args_.y[k], args_.z[k]),
               b = elementary::hypot(args_.x[k + 1], args_.y[k + 1], args_.z[k + 1]);
  return 4 * std::numeric_limits<double>::epsilon() * (1 + std::max(a, b) * std::sqrt(args_.inverse_length2[k]));
}

SolveReport PathStage::positions(const ParticleKernels& kernels, std::span<const double> x0, std::span<double> x,
                                 std::span<double> multiplier, const SolveOptions& options) {
  SolveReport report;
  bool matrix_ready = load_base(kernels, x0);
  report.pivot_ratio = matrix_ready ? pivot_ratio_ : 1;
  gather(kernels, x);
  std::fill_n(total_, args_.m, 0.0);
  const int max_iterations = options.max_iterations > 0 ? options.max_iterations : kMaxIterations;
  double residual = kernels.path_sigma(args_), contraction = 0;
  report.start_residual = residual;
  while (!(residual <= options.tolerance)) {
    const auto fail = [&](SolveStatus status) {
      report.status = status, report.residual = residual, report.worst_row = rows_[worst_bond()];
      return report;
    };
    if (!std::isfinite(residual)) return fail(SolveStatus::not_finite);
    if (report.iterations > 1 && contraction > 0.5 && residual <= rounding_floor(worst_bond())) {
      report.status = SolveStatus::at_rounding;
      break;
    }
    if (report.iterations >= max_iterations) return fail(SolveStatus::too_many_iterations);
    // An iteration with the old matrix contracts the residual by about the rows' rotation in this step, which is about
    // sqrt(2 residual).
    const double expected = contraction > 0 ? contraction : std::sqrt(2 * residual);
    if (!matrix_ready || wants_new_matrix(residual, options.tolerance, expected)) {
      const double ratio = kernels.path_factor(args_);
      factored_ = false, matrix_ready = true;
      ++report.factorizations;
      report.pivot_ratio = std::min(report.pivot_ratio, ratio);
      if (!(ratio > kSingular)) return fail(SolveStatus::singular);
    }
    kernels.path_solve(args_);
    kernels.path_move(args_);
    add_delta(-1.0);
    ++report.iterations;
    const double before = residual;
    residual = kernels.path_sigma(args_);
    contraction = residual / before;
    if (contraction > 1 && before > 10 * rounding_floor(0)) {
      // The full step is too long: shorten it until the residual falls.
      double taken = 1;
      for (; taken > 1e-3 && !(residual < before); taken *= 0.5) {
        for (int k = 0; k < args_.m; ++k) args_.delta[k] *= taken == 1 ? -0.5 : 0.5;
        kernels.path_move(args_);
        add_delta(-1.0);
        residual = kernels.path_sigma(args_);
      }
      if (!(residual < before)) return fail(SolveStatus::diverged);
    }
  }
  report.residual = residual;
  for (int k = 0; k < args_.m; ++k) {
    multiplier[rows_[k]] = total_[k];
    const double turned = args_.ex[k] * args_.gx[k] + args_.ey[k] * args_.gy[k] + args_.ez[k] * args_.gz[k];
    report.wrong_root |= turned <= 0;
  }
  if (residual > 0) report.worst_row = rows_[bond_with(residual)];
  scatter(kernels, x);
  return report;
}

SolveReport PathStage::velocities(const ParticleKernels& kernels, std::span<const double> x, std::span<double> v,
                                  std::span<double> multiplier, const SolveOptions& options) {
  SolveReport report;
  factored_ = false;
  load_base(kernels, x);
  PathArgs symmetric = args_;
  symmetric.ex = args_.gx, symmetric.ey = args_.gy, symmetric.ez = args_.gz;
  pivot_ratio_ = kernels.path_factor(symmetric);
  report.factorizations = 1;
  report.pivot_ratio = pivot_ratio_;
  if (!(pivot_ratio_ > kSingular)) {
    report.worst_row = rows_[0];
    return report.status = SolveStatus::singular, report;
  }
  factored_ = true;
  gather(kernels, v);
  std::fill_n(total_, args_.m, 0.0);
  const double dt = std::abs(options.timestep);
  double largest = kernels.path_rates(args_), rates = largest * dt;
  report.start_residual = rates;
  while (!(rates <= options.tolerance) && std::isfinite(rates) && report.iterations < 4) {
    kernels.path_solve(args_);
    kernels.path_move(args_);
    add_delta(-1.0);
    ++report.iterations;
    largest = kernels.path_rates(args_), rates = largest * dt;
  }
  report.residual = rates;
  report.worst_row = rows_[bond_with(largest)];
  if (!(rates <= options.tolerance)) {
    double fastest = 0;
    for (int a = 0; a <= args_.m; ++a)
      fastest = std::max(fastest, elementary::hypot(args_.x[a], args_.y[a], args_.z[a]));
    const int k = worst_bond();
    const double floor =
        64 * std::numeric_limits<double>::epsilon() * fastest * dt * std::sqrt(args_.inverse_length2[k]);
    report.status = !std::isfinite(rates) ? SolveStatus::not_finite
                    : rates <= floor      ? SolveStatus::at_rounding
                                          : SolveStatus::too_many_iterations;
    if (!report.ok()) return report;
  }
  for (int k = 0; k < args_.m; ++k) multiplier[rows_[k]] = total_[k];
  scatter(kernels, v);
  return report;
}

}  // namespace tarsus
