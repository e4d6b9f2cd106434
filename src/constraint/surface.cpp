// Contact parameters by MuJoCo's rules (surface.hpp), and MuJoCo's solref and solimp as rows or softness of a step.
#include "tarsus/constraint/surface.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "constraint/term_constants.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

namespace {

constexpr double kLeastImpedance = 1e-4, kMostImpedance = 0.9999;

double in_range(double d) { return std::clamp(d, kLeastImpedance, kMostImpedance); }

struct Impedance {
  double d, slope;  ///< slope: |r| dd/d|r|
};

/// d(|r|): a smooth step from impedance[0] to impedance[1].
Impedance impedance_at(const std::array<double, 5>& s, double gap) {
  const double low = in_range(s[0]), high = in_range(s[1]);
  if (!(s[2] > 0)) return {0.5 * (low + high), 0};
  const double x = std::abs(gap) / s[2];
  if (x >= 1) return {high, 0};
  const double mid = in_range(s[3]), power = std::max(1.0, s[4]);
  const double side = x <= mid ? x / mid : (1 - x) / (1 - mid), share = x <= mid ? mid : 1 - mid;
  const double less = power == 2 ? side : elementary::pow(side, power - 1), part = share * less * side;
  return {low + (x <= mid ? part : 1 - part) * (high - low), x * power * less * (high - low)};
}

template <std::size_t N>
void fill(std::array<double, N>& numbers, std::span<const double> given, const char* name) {
  if (given.size() > N)
    throw ValueError(name, std::to_string(given.size()) + " numbers", std::to_string(N) + " at most");
  for (const double x : given) {
    if (!std::isfinite(x)) throw ValueError(name, number_text(x), "finite");
  }
  std::copy(given.begin(), given.end(), numbers.begin());
}

SolverParameters parameters_at(const Location& where, std::span<const double> solref, std::span<const double> solimp) {
  try {
    return solver_parameters(solref, solimp);
  } catch (const ValueError& e) {
    throw InputError(where, e.what());
  }
}

void require_finite(const Location& where, std::span<const double> friction, double margin) {
  for (const double x : friction) {
    if (!std::isfinite(x)) throw InputError(where, "friction must be finite");
  }
  if (!std::isfinite(margin)) throw InputError(where, "margin must be finite");
}

/// Smaller weights count as zero.
constexpr double kLeastWeight = 1e-15;

double share_of_first(double a, double b) {
  if (a < kLeastWeight && b < kLeastWeight) return 0.5;
  return a < kLeastWeight ? 0 : b < kLeastWeight ? 1 : a / (a + b);
}

SolverParameters mix(const SolverParameters& a, const SolverParameters& b, double share) {
  SolverParameters both;
  for (std::size_t k = 0; k < 2; ++k) {
    both.reference[k] = a.reference[0] > 0 && b.reference[0] > 0 ? share * a.reference[k] + (1 - share) * b.reference[k]
                                                                 : std::min(a.reference[k], b.reference[k]);
  }
  for (std::size_t k = 0; k < 5; ++k) both.impedance[k] = share * a.impedance[k] + (1 - share) * b.impedance[k];
  return both;
}

std::optional<SolverParameters> unless_default(const std::optional<SolverParameters>& p) {
  return p == SolverParameters{} ? std::nullopt : p;
}

/// K and B. @param shortest lower bound of the time constant [s]
std::pair<double, double> spring_and_damper(const SolverParameters& p, double shortest) {
  const auto [first, second] = p.reference;
  const double most = in_range(p.impedance[1]);
  if (first < 0) return {-first / (most * most), -second / most};
  const double time = std::max(first, shortest) * most;
  return {1 / (time * time * second * second), 2 / time};
}

/// Steps in a time constant from which on they resolve it.
constexpr double kResolved = 4;

bool resolved(const SolverParameters& p, double h) {
  const auto [stiffness, damping] = spring_and_damper(p, 0);
  const double most = in_range(p.impedance[1]);
  return std::sqrt(stiffness) * most * kResolved * h <= 1 && damping * most * kResolved * h <= 2 && damping * h < 1;
}

ContactSurface alone(const Surface& s) {
  return {s.dimension,
          {s.friction, s.friction, s.torsional, s.rolling, s.rolling},
          s.restitution,
          s.margin,
          {s.compliance, s.damping_time},
          unless_default(s.solver)};
}

}  // namespace

SolverParameters solver_parameters(std::span<const double> solref, std::span<const double> solimp) {
  SolverParameters p;
  fill(p.reference, solref, "solref");
  fill(p.impedance, solimp, "solimp");
  const auto [first, second] = p.reference;
  if (!(first > 0 && second > 0) && !(first < 0 && second <= 0)) {
    throw ValueError("solref", number_text(first) + " " + number_text(second),
                     "(time constant, damping ratio), both positive, or (-stiffness, -damping)");
  }
  return p;
}

std::optional<SolverParameters> limit_parameters(const Model& model, int joint) {
  const Body& body = model.bodies[model.joints[joint].body];
  const JointSpec& spec = model.spec.bodies[model.joints[joint].body].joints[joint - body.joint_first];
  return unless_default(parameters_at(spec.where, spec.solver_limit, spec.solver_impedance));
}

SolverLaw solver_law(const SolverParameters& p, double h) {
  SolverLaw law{resolved(p, h), p.impedance, 0, 0};
  std::tie(law.stiffness, law.damping) = spring_and_damper(p, law.resolved ? 0 : 2 * h);
  for (const int k : {0, 1, 3}) law.impedance[k] = in_range(law.impedance[k]);
  law.impedance[4] = std::max(1.0, law.impedance[4]);
  return law;
}

SolverRow solver_row(const SolverParameters& p, double gap, double h) {
  if (!resolved(p, h)) return {};
  const SolverLaw law = solver_law(p, h);
  const double d = impedance_at(law.impedance, gap).d;
  return {1 - h * law.damping, h * law.stiffness * d, (1 - d) / d};
}

Surface surface_of(const GeomSpec& geom) {
  require_finite(geom.where, geom.friction, geom.margin);
  Surface s;
  s.friction = geom.friction[0], s.torsional = geom.friction[1], s.rolling = geom.friction[2];
  s.dimension = geom.condim, s.priority = geom.priority, s.margin = geom.margin, s.mix = geom.solver_mix;
  s.solver = parameters_at(geom.where, geom.solver_reference, geom.solver_impedance);
  return s;
}

ContactSurface contact_surface(const ContactPairSpec& pair) {
  require_finite(pair.where, pair.friction, pair.margin);
  ContactSurface s;
  s.friction = {1, 1, 0.005, 0.0001, 0.0001};  // MJCF's defaults
  std::copy_n(pair.friction.begin(), std::min<std::size_t>(5, pair.friction.size()), s.friction.begin());
  s.dimension = pair.condim, s.margin = pair.margin;
  s.solver = unless_default(parameters_at(pair.where, pair.solver_reference, pair.solver_impedance));
  return s;
}

ContactSurface mix(const Surface& a, const Surface& b) {
  ContactSurface both = alone(a.priority >= b.priority ? a : b);
  both.margin = a.margin + b.margin;
  both.restitution = std::max(a.restitution, b.restitution);
  if (a.priority != b.priority) return both;
  const ContactSurface other = alone(b);
  both.dimension = std::max(a.dimension, b.dimension);
  for (std::size_t k = 0; k < 5; ++k) both.friction[k] = std::max(both.friction[k], other.friction[k]);
  both.spook = {a.compliance + b.compliance, std::max(a.damping_time, b.damping_time)};
  if (a.solver || b.solver) {
    both.solver = unless_default(mix(a.solver.value_or(SolverParameters{}), b.solver.value_or(SolverParameters{}),
                                     share_of_first(a.mix, b.mix)));
  }
  return both;
}

ContactSoftness ContactSurface::softness(double gap, double h) const {
  if (!solver) return {spook};
  const auto [d, slope] = impedance_at(solver->impedance, gap);
  const auto [stiffness, damping] = spring_and_damper(*solver, 2 * h);
  // Where the impedance falls with depth, the force may fall too; the secant, force over g, is then used.
  const double share = gap < 0 ? 1 / (1 + std::max(0.0, slope) * (2 - d) / (d * (1 - d))) : 1;
  const double time = damping / (stiffness * d);
  return {
      {0, std::min(time, std::max(share * time, kTangentDamping * h))}, share * (1 - d) / (d * d * stiffness), share};
}

}  // namespace tarsus
