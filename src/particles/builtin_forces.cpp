#include <fmt/format.h>

#include <cmath>

#include "tarsus/base/error.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/particles/builtin.hpp"

namespace tarsus {
namespace {

constexpr double kCalorie = 4.184;

// One nm and one kJ/mol in the system's units.
struct Measures {
  double nm, kj;
};
Measures measures(const Units& units) {
  if (units.name == "nm_ps") return {1.0, 1.0};
  if (units.name == "angstrom_fs") return {10.0, 1 / kCalorie};
  throw ValueError("units", units.name, "nm_ps or angstrom_fs for this force field");
}

// Checks that the molecule's masses repeat in this order.
void check_pattern(const ParticleSystem& system, std::vector<double> pattern, const char* order) {
  const std::size_t n = system.mass.size(), m = pattern.size();
  bool fits = n > 0 && n % m == 0;
  for (std::size_t i = 0; fits && i < n; ++i) fits = std::abs(system.mass[i] - pattern[i % m]) < 0.01 * pattern[i % m];
  if (!fits) throw ValueError("force field", "used with particles of other masses or in another order", order);
}

std::vector<int> molecules(int particles, int size) {
  std::vector<int> out(particles);
  for (int i = 0; i < particles; ++i) out[i] = i / size;
  return out;
}

enum class WaterCoulomb { smooth, shifted_force, lammps_dsf, reaction_field };

void set_spce(ParticleSystem& system, WaterCoulomb kind) {
  check_pattern(system, {15.9994, 1.008, 1.008}, "O H H, masses 15.9994 1.008 1.008");
  const Measures in = measures(system.units);
  const int n = system.particles();
  ForceField field;
  LennardJones& lj = field.lennard_jones;
  lj.types = 2;
  // Not converted if the unit is kcal/mol, so that the value is exact.
  const double epsilon = system.units.name == "angstrom_fs" ? 0.1553 : 0.1553 * kCalorie;
  lj.epsilon = {epsilon, 0, 0, 0};
  lj.sigma = {0.3166 * in.nm, 0, 0, 0};
  lj.cutoff = 0.85 * in.nm;
  lj.mode = LennardJones::Cutoff::shifted;
  Coulomb& coulomb = field.coulomb;
  for (int i = 0; i < n; ++i) {
    lj.type.push_back(i % 3 == 0 ? 0 : 1);
    coulomb.charge.push_back(i % 3 == 0 ? -0.8476 : 0.4238);
  }
  coulomb.constant = system.units.coulomb;
  if (kind == WaterCoulomb::smooth) {
    lj.mode = LennardJones::Cutoff::force_switch, lj.switch_from = 0.7 * in.nm;
    coulomb.shifted_gradient(0.85 * in.nm);
  } else if (kind == WaterCoulomb::reaction_field)
    coulomb.reaction_field(0.85 * in.nm, 0);
  else
    coulomb.shifted_force(0.85 * in.nm);
  if (kind == WaterCoulomb::lammps_dsf) coulomb.bare = 0.999999999;  // LAMMPS' polynomial for erfc at 0
  system.molecule = molecules(n, 3);
  field.exclude_molecules(system.molecule);
  system.force_field = std::move(field);
}

void set_trappe_butane(ParticleSystem& system) {
  check_pattern(system, {15.035, 14.027, 14.027, 15.035}, "CH3 CH2 CH2 CH3, masses 15.035 14.027 14.027 15.035");
  const Measures in = measures(system.units);
  const double kelvin = system.units.boltzmann;
  const int n = system.particles();
  ForceField field;
  LennardJones& lj = field.lennard_jones;
  lj.mix_lorentz_berthelot({98 * kelvin, 46 * kelvin}, {0.375 * in.nm, 0.395 * in.nm});
  lj.mode = LennardJones::Cutoff::force_switch;
  lj.switch_from = 0.9 * in.nm, lj.cutoff = 1.1 * in.nm;
  const double stiffness = 62500 * kelvin, angle = 114 * kPi / 180;
  for (int i = 0; i < n; i += 4) {
    for (const int type : {0, 1, 1, 0}) lj.type.push_back(type);
    field.angles.push_back({i, i + 1, i + 2, stiffness, angle});
    field.angles.push_back({i + 1, i + 2, i + 3, stiffness, angle});
    field.torsions.push_back({i, i + 1, i + 2, i + 3, 355.03 * kelvin, -68.19 * kelvin, 791.32 * kelvin});
  }
  system.molecule = molecules(n, 4);
  field.exclude_molecules(system.molecule);
  system.force_field = std::move(field);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> force_field_names() {
  return {{"none", "constraints only"},
          {"spce-smooth", "SPC/E water, cutoff 0.85 nm without jumps: LJ force-switched, Coulomb by shifted gradient"},
          {"spce-shifted-force", "SPC/E water, cutoff 0.85 nm: LJ energy-shifted, Coulomb by shifted force"},
          {"spce-lammps-dsf", "the same, computed as by LAMMPS' lj/cut/coul/dsf with alpha 0 (1/r times 0.999999999)"},
          {"spce-reaction-field",
           "SPC/E water, cutoff 0.85 nm: LJ energy-shifted, Coulomb by reaction field, epsilon infinite"},
          {"trappe-butane", "TraPPE-UA n-butane: angles, torsion, LJ force-switched from 0.9 to 1.1 nm"}};
}

void set_force_field(ParticleSystem& system, std::string_view name) {
  if (name == "none")
    system.force_field = {};
  else if (name == "spce-smooth")
    set_spce(system, WaterCoulomb::smooth);
  else if (name == "spce-shifted-force")
    set_spce(system, WaterCoulomb::shifted_force);
  else if (name == "spce-lammps-dsf")
    set_spce(system, WaterCoulomb::lammps_dsf);
  else if (name == "spce-reaction-field")
    set_spce(system, WaterCoulomb::reaction_field);
  else if (name == "trappe-butane")
    set_trappe_butane(system);
  else {
    std::string known;
    for (const auto& [each, what] : force_field_names()) known += (known.empty() ? "" : ", ") + each;
    throw ValueError("force field", std::string(name), known);
  }
}

ParticleSystem converted(const ParticleSystem& system, const Units& units) {
  ParticleSystem out = system;
  if (units.name == system.units.name) return out;
  const auto molecular = [](const Units& u) { return u.name == "nm_ps" || u.name == "angstrom_fs"; };
  if (!molecular(system.units) || !molecular(units))
    throw ValueError("units", units.name,
                     system.units.name + ", the system's own: only nm_ps and angstrom_fs are converted to each other");
  const auto nm = [](const Units& u) { return measures(u).nm; };
  const double length = nm(units) / nm(system.units);
  const double time = length == 10 ? 1e3 : 1e-3;  // ps to fs if nm to Å, else the reverse
  for (double& x : out.position) x = length == 10 ? x * 10 : x / 10;
  for (double& v : out.velocity) v = v * length / time;
  out.box.length = system.box.length * length;
  out.units = units;
  out.force_field = {};
  ConstraintSet set(system.particles());
  for (int k = 0; k < system.constraints.nrow(); ++k) {
    const ConstraintSet& old = system.constraints;
    if (old.kind(k) != RowKind::distance)
      throw ValueError("constraints", old.describe(k),
                       "distance constraints, because only their units can be converted");
    set.add_distance(old.row_particles(k)[0], old.row_particles(k)[1],
                     length == 10 ? old.value(k) * 10 : old.value(k) / 10);
  }
  out.constraints = std::move(set);
  return out;
}

}  // namespace tarsus
