#include "tarsus/particles/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/particles/particle_newton.hpp"
#include "tarsus/solver/redundancy.hpp"

namespace tarsus {
namespace {

void check_particle(const char* what, int i, int n) {
  if (i < 0 || i >= n)
    throw ValueError(what, fmt::format("{}", i), fmt::format("the index of a particle, 0 to {}", n - 1));
}

void check_all_finite(const char* what, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      throw ValueError(fmt::format("{} of particle {}", what, i / 3), number_text(values[i]), "a finite number");
    }
  }
}

void check_cutoff(const char* what, double cutoff, const Box& box) {
  if (!(std::isfinite(cutoff) && cutoff > 0)) throw ValueError(what, number_text(cutoff), "a positive length");
  for (int c = 0; c < 3; ++c) {
    if (box.length[c] > 0 && cutoff > 0.5 * box.length[c]) {
      throw ValueError(what, number_text(cutoff),
                       fmt::format("at most half the box, {}: otherwise a particle sees two images of another",
                                   0.5 * box.length[c]));
    }
  }
}

/// @param of returns the text that names the number's owner
template <class Of>
void check_number(const char* what, const Of& of, double x, double least, double most = INFINITY) {
  if (std::isfinite(x) && x >= least && x <= most) return;
  throw ValueError(fmt::format("{} of {}", what, of()), number_text(x),
                   most < INFINITY     ? fmt::format("a number from {} to {:.6g}", least, most)
                   : std::isinf(least) ? "a finite number"
                                       : "a finite number that is not negative");
}

void check_bonded(const ForceField& field, int n) {
  const auto whole = [] { return "the force field"; };
  for (int c = 0; c < 3; ++c) check_number("gravity", whole, field.gravity[c], -INFINITY);
  check_number("skin", whole, field.skin, 0);
  for (const auto& e : field.exclusions) check_particle("exclusion", e[0], n), check_particle("exclusion", e[1], n);
  for (const auto& b : field.bonds) {
    check_particle("bond", b.i, n), check_particle("bond", b.j, n);
    const auto of = [&] { return fmt::format("the bond of particles {}, {}", b.i, b.j); };
    if (b.i == b.j) throw ValueError("bond", fmt::format("of particle {} with itself", b.i), "two particles");
    check_number("stiffness", of, b.stiffness, 0), check_number("length", of, b.length, 0);
  }
  for (const auto& a : field.angles) {
    for (const int i : {a.i, a.j, a.k}) check_particle("angle", i, n);
    const auto of = [&] { return fmt::format("the angle of particles {}, {}, {}", a.i, a.j, a.k); };
    check_number("stiffness", of, a.stiffness, 0), check_number("value (radians)", of, a.angle, 0, kPi * (1 + 1e-12));
  }
  for (const auto& t : field.torsions) {
    for (const int i : {t.i, t.j, t.k, t.l}) check_particle("torsion", i, n);
    const auto of = [&] { return fmt::format("the torsion of particles {}, {}, {}, {}", t.i, t.j, t.k, t.l); };
    for (const double c : {t.c1, t.c2, t.c3}) check_number("coefficient", of, c, -INFINITY);
  }
  for (const auto& s : field.springs) {
    check_particle("spring", s.i, n);
    const auto of = [&] { return fmt::format("the spring of particle {}", s.i); };
    check_number("stiffness", of, s.stiffness, 0);
    for (const double x : {s.anchor.x, s.anchor.y, s.anchor.z}) check_number("anchor", of, x, -INFINITY);
  }
}

// A typical length of the rows, for perturbations of the start.
double row_length(const ConstraintSet& set) {
  double shortest = INFINITY;
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) == RowKind::distance || set.kind(k) == RowKind::sphere) shortest = std::min(shortest, set.value(k));
  }
  return std::isfinite(shortest) ? shortest : 1.0;
}

std::string name_rows(const ConstraintSet& set, const std::vector<int>& rows) {
  std::string text;
  for (std::size_t a = 0; a < rows.size() && a < 8; ++a) text += (a ? ", " : "") + set.describe(rows[a]);
  if (rows.size() > 8) text += fmt::format(" and {} more", rows.size() - 8);
  return text;
}

}  // namespace

std::vector<double> ParticleSystem::inverse_masses() const {
  std::vector<double> inverse(mass.size());
  for (std::size_t i = 0; i < mass.size(); ++i) {
    const bool fixed = mass[i] == 0 || (!pinned.empty() && pinned[i]);
    inverse[i] = fixed ? 0.0 : 1 / (mass[i] * units.energy_per_mv2);
  }
  return inverse;
}

std::vector<int> pinned_particles(std::span<const double> inverse_mass) {
  std::vector<int> pinned;
  for (std::size_t i = 0; i < inverse_mass.size(); ++i) {
    if (inverse_mass[i] == 0) pinned.push_back(int(i));
  }
  return pinned;
}

void stop(ParticleSystem& system, std::span<const int> particles) {
  for (const int i : particles) std::fill_n(&system.velocity[3 * std::size_t(i)], 3, 0.0);
}

void ParticleSystem::check() const {
  const std::size_t n = mass.size();
  check_size("position", position.size(), 3 * n);
  check_size("velocity", velocity.size(), 3 * n);
  if (!pinned.empty()) check_size("pinned", pinned.size(), n);
  if (!species.empty()) check_size("species", species.size(), n);
  if (!molecule.empty()) check_size("molecule", molecule.size(), n);
  check_size("particles of the constraints", constraints.particles(), n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::isfinite(mass[i]) && mass[i] >= 0)) {
      throw ValueError(fmt::format("mass of particle {}", i), number_text(mass[i]),
                       "a positive number, or 0 for a pinned particle");
    }
  }
  check_all_finite("position", position);
  check_all_finite("velocity", velocity);
  for (int c = 0; c < 3; ++c) {
    if (!(std::isfinite(box.length[c]) && box.length[c] >= 0))
      throw ValueError("box", number_text(box.length[c]), "a positive length, or 0 for open");
  }
  const LennardJones& lj = force_field.lennard_jones;
  if (!lj.type.empty()) {
    check_size("Lennard-Jones types", lj.type.size(), n);
    check_size("Lennard-Jones epsilon", lj.epsilon.size(), static_cast<std::size_t>(lj.types) * lj.types);
    check_size("Lennard-Jones sigma", lj.sigma.size(), lj.epsilon.size());
    for (const int type : lj.type) {
      if (type < 0 || type >= lj.types)
        throw ValueError("Lennard-Jones type", fmt::format("{}", type), fmt::format("0 to {}", lj.types - 1));
    }
    for (std::size_t k = 0; k < lj.epsilon.size(); ++k) {
      const auto of = [&] { return fmt::format("types {} and {}", k / lj.types, k % lj.types); };
      check_number("Lennard-Jones epsilon", of, lj.epsilon[k], 0),
          check_number("Lennard-Jones sigma", of, lj.sigma[k], 0);
    }
    check_cutoff("Lennard-Jones cutoff", lj.cutoff, box);
    if (lj.mode == LennardJones::Cutoff::force_switch && !(lj.switch_from > 0 && lj.switch_from < lj.cutoff)) {
      throw ValueError("Lennard-Jones switch_from", number_text(lj.switch_from), "between 0 and the cutoff");
    }
  }
  if (!force_field.coulomb.charge.empty()) {
    check_size("charges", force_field.coulomb.charge.size(), n);
    for (std::size_t i = 0; i < n; ++i)
      check_number(
          "charge", [&] { return fmt::format("particle {}", i); }, force_field.coulomb.charge[i], -INFINITY);
    check_cutoff("Coulomb cutoff", force_field.coulomb.cutoff, box);
  }
  check_bonded(force_field, particles());
}

std::string Preparation::text(const Units& units) const {
  std::string out;
  if (!redundant.empty()) {
    out += fmt::format("{} of {} constraints are implied by the others and were left out: ", redundant.size(),
                       redundant.size() + rank);
    for (std::size_t k = 0; k < redundant.size() && k < 4; ++k) out += (k ? ", " : "") + redundant[k];
    out += redundant.size() > 4 ? fmt::format(" and {} more\n", redundant.size() - 4) : "\n";
  }
  if (moved()) {
    out += fmt::format(
        "the initial state violated its constraints by {:.3g} (relative); positions were projected in {} iterations "
        "and "
        "moved by at most {:.3g} {} ({:.3g} rms)\n",
        start_violation, iterations, moved_max, units.length, moved_rms);
  }
  if (loose[0] >= 0) {
    out += fmt::format(
        "nothing holds particles {} and {} together, although their pair force is excluded: are bonds missing? XYZ "
        "files "
        "contain none; --setup adds some\n",
        loose[0], loose[1]);
  }
  if (velocity_changed_max > 0) {
    out += fmt::format("velocities that violate constraints were removed: at most {:.3g} {}/{}\n", velocity_changed_max,
                       units.length, units.time);
  }
  return out;
}

namespace {

std::array<int, 2> loose_pair(const ParticleSystem& system) {
  std::vector<int> leader(system.mass.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  const auto join = [&](int i, int j) { leader[find(i)] = find(j); };
  const ForceField& field = system.force_field;
  for (int k = 0; k < system.constraints.nrow(); ++k) {
    const auto particles = system.constraints.row_particles(k);
    for (std::size_t i = 1; i < particles.size(); ++i) join(particles[0], particles[i]);
  }
  for (const HarmonicBond& b : field.bonds) join(b.i, b.j);
  for (const HarmonicAngle& a : field.angles) join(a.i, a.j), join(a.j, a.k);
  for (const auto& [i, j] : field.exclusions) {
    if (find(i) != find(j)) return {i, j};
  }
  return {-1, -1};
}

Redundancy find_redundant_rows(const ParticleSystem& system, const MassOperator& mass) {
  return find_redundant_rows(system.constraints, mass, system.position, 0.1 * row_length(system.constraints));
}

std::vector<int> redundant_rows(const ParticleSystem& system, const MassOperator& mass, Preparation& done) {
  const ConstraintSet& set = system.constraints;
  const Redundancy found = find_redundant_rows(system, mass);
  done.rank = found.rank;
  if (found.singular_geometry) {
    throw ValueError("constraints", name_rows(set, found.dependent),
                     "independent rows: in this geometry (such as points on a line) they depend on the others, "
                     "although in general they do not");
  }
  for (const int row : found.dependent) done.redundant.push_back(set.describe(row));
  return found.dependent;
}

// Checks that the removed rows hold too at a solution of the others.
void check_dropped(const ConstraintSet& all, const std::vector<int>& dropped, std::span<const double> x,
                   double tolerance) {
  for (const int row : dropped) {
    const double violation = std::abs(all.evaluate_row(row, x, {})) / all.scale(row);
    if (!(violation <= std::max(1e3 * tolerance, 1e3 * all.rounding_floor(row, x)))) {
      throw ValueError(all.describe(row), fmt::format("violated by {:.3g} if the others hold", violation),
                       "constraints that do not contradict one another");
    }
  }
}

std::vector<double> coordinate_masses(std::span<const double> inverse) {
  std::vector<double> out;
  for (const double w : inverse) out.insert(out.end(), 3, w);
  return out;
}

// Projects to the nearest point on the constraints to first order, in the mass-weighted metric.
SolveReport project(const ConstraintSet& set, const MassOperator& mass, std::span<const double> inverse,
                    std::vector<double>& x, double tolerance) {
  ParticleNewton newton(set, inverse);
  std::vector<double> lambda(set.nrow());
  return newton.solve_positions(set, mass, std::vector<double>(x), x, lambda, {.tolerance = tolerance});
}

}  // namespace

std::string name_dependent_rows(const ParticleSystem& system) {
  const DiagonalMass mass(coordinate_masses(system.inverse_masses()));
  return name_rows(system.constraints, find_redundant_rows(system, mass).dependent);
}

Preparation prepare(ParticleSystem& system, double tolerance, double timestep) {
  for (const auto& [what, x] : {std::pair{"tolerance", tolerance}, std::pair{"timestep", timestep}}) {
    if (!(x > 0 && std::isfinite(x))) throw ValueError(what, number_text(x), "a positive, finite number");
  }
  system.check();
  Preparation done;
  done.loose = loose_pair(system);
  if (system.constraints.nrow() == 0) return done;
  if (const Violation first = largest_violation_at(system.constraints, system.position); !std::isfinite(first.value)) {
    throw ValueError(system.constraints.describe(first.row), "not a number in the initial state",
                     "a function and a gradient that are finite in the initial state");
  }
  const std::vector<double> inverse = system.inverse_masses();
  const DiagonalMass mass(coordinate_masses(inverse));
  const std::vector<int> dropped = redundant_rows(system, mass, done);
  const ConstraintSet all = system.constraints;
  system.constraints.remove(dropped);
  const ConstraintSet& set = system.constraints;
  const Violation start = largest_violation_at(set, system.position);
  done.start_violation = start.value;
  if (start.row >= 0 && start.value > std::max(tolerance, set.rounding_floor(start.row, system.position))) {
    std::vector<double> x = system.position;
    const SolveReport report = project(set, mass, inverse, x, tolerance);
    if (!report.ok()) {
      throw ValueError(
          "start",
          fmt::format("off the constraints by {:.3g} (relative), most at {}", start.value, set.describe(start.row)),
          "positions that can be projected onto them; Newton's method: " + describe(report, set));
    }
    done.iterations = report.iterations;
    double sum = 0;
    for (int i = 0; i < system.particles(); ++i) {
      const double d = elementary::hypot(x[3 * i] - system.position[3 * i], x[3 * i + 1] - system.position[3 * i + 1],
                                         x[3 * i + 2] - system.position[3 * i + 2]);
      done.moved_max = std::max(done.moved_max, d), sum += d * d;
    }
    done.moved_rms = std::sqrt(sum / system.particles());
    std::copy(x.begin(), x.end(), system.position.begin());  // in place, since views of it may exist
  }
  check_dropped(all, dropped, system.position, tolerance);
  stop(system, pinned_particles(inverse));
  std::vector<double> v = system.velocity, mu(set.nrow());
  ParticleNewton newton(set, inverse);
  const SolveReport report =
      newton.solve_velocities(set, mass, system.position, v, mu, {.tolerance = tolerance, .timestep = timestep});
  if (!report.ok())
    throw ValueError("start velocities",
                     fmt::format("off the constraints in a step of {:g}: {}", timestep, describe(report, set)),
                     "velocities that can be projected onto them, or shorter steps");
  done.velocity_violation = report.start_residual;
  if (report.start_residual > std::max(tolerance, 1e-13)) {
    for (std::size_t i = 0; i < v.size(); ++i)
      done.velocity_changed_max = std::max(done.velocity_changed_max, std::abs(v[i] - system.velocity[i]));
    std::copy(v.begin(), v.end(), system.velocity.begin());
  }
  return done;
}

bool conserves_momentum(const ParticleSystem& system) {
  const ForceField& field = system.force_field;
  if (!field.springs.empty() || dot(field.gravity, field.gravity) > 0) return false;
  if (!pinned_particles(system.inverse_masses()).empty()) return false;
  for (int k = 0; k < system.constraints.nrow(); ++k) {
    const RowKind kind = system.constraints.kind(k);
    if (kind != RowKind::distance && kind != RowKind::angle && kind != RowKind::dihedral) return false;
  }
  return true;
}

int degrees_of_freedom(const ParticleSystem& system) {
  int moving = 0;
  for (const double w : system.inverse_masses()) moving += w > 0 ? 3 : 0;
  return std::max(0, moving - system.constraints.nrow() - (conserves_momentum(system) ? 3 : 0));
}

double kinetic_energy(const ParticleSystem& system) {
  const auto inverse = system.inverse_masses();
  double twice = 0;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    if (inverse[i] == 0) continue;
    for (int c = 0; c < 3; ++c) twice += system.velocity[3 * i + c] * system.velocity[3 * i + c] / inverse[i];
  }
  return 0.5 * twice;
}

double temperature(const ParticleSystem& system) {
  const int count = degrees_of_freedom(system);
  return count > 0 ? 2 * kinetic_energy(system) / (count * system.units.boltzmann) : 0.0;
}

void set_temperature(ParticleSystem& system, double wanted, std::uint64_t seed) {
  if (!(std::isfinite(wanted) && wanted >= 0))
    throw ValueError("temperature", number_text(wanted), "a finite temperature of at least 0");
  std::mt19937_64 generator(seed);
  const auto uniform = [&] { return (static_cast<double>(generator() >> 11) + 0.5) * 0x1p-53; };
  const auto inverse = system.inverse_masses();
  for (std::size_t i = 0; i < system.velocity.size(); ++i) {
    const double radius = std::sqrt(-2 * elementary::log(uniform())),
                 gauss = radius * elementary::cos(2 * kPi * uniform());
    system.velocity[i] = gauss * std::sqrt(inverse[i / 3] * system.units.boltzmann * std::max(wanted, 1e-300));
  }
  if (conserves_momentum(system)) {
    Vec3d momentum = zero3<double>();
    double total = 0;
    for (std::size_t i = 0; i < inverse.size(); ++i) {
      const double m = 1 / inverse[i];
      total += m;
      for (int c = 0; c < 3; ++c) momentum[c] += m * system.velocity[3 * i + c];
    }
    for (std::size_t i = 0; i < system.velocity.size(); ++i) system.velocity[i] -= momentum[i % 3] / total;
  }
  if (system.constraints.nrow() > 0) {
    const DiagonalMass mass(coordinate_masses(inverse));
    std::vector<double> mu(system.constraints.nrow());
    ParticleNewton newton(system.constraints, inverse);
    const SolveReport report =
        newton.solve_velocities(system.constraints, mass, system.position, system.velocity, mu, {});
    if (!report.ok())
      throw ValueError("velocities", describe(report, system.constraints),
                       "constraints that velocities can be projected onto");
  }
  const double now = temperature(system);
  const double scale = now > 0 ? std::sqrt(wanted / now) : 0;
  for (double& v : system.velocity) v *= scale;
}

}  // namespace tarsus
