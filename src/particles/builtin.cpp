#include "tarsus/particles/builtin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/particles/verlet.hpp"

namespace tarsus {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  double uniform() { return (static_cast<double>(generator_() >> 11) + 0.5) * 0x1p-53; }
  Quatd rotation() {
    // Uniform random quaternion by Shoemake's method.
    const double u = uniform(), a = 2 * kPi * uniform(), b = 2 * kPi * uniform();
    const double p = std::sqrt(1 - u), q = std::sqrt(u);
    return {p * elementary::sin(a), p * elementary::cos(a), q * elementary::sin(b), q * elementary::cos(b)};
  }

 private:
  std::mt19937_64 generator_;
};

void push(ParticleSystem& system, double mass, const Vec3d& x, const char* species) {
  system.mass.push_back(mass);
  for (int c = 0; c < 3; ++c) system.position.push_back(x[c]), system.velocity.push_back(0.0);
  system.species.emplace_back(species);
}

Vec3d position_of(const ParticleSystem& system, int i) {
  return {system.position[3 * i], system.position[3 * i + 1], system.position[3 * i + 2]};
}

int sizes(std::string_view text, const std::string& name, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw ValueError("system " + name, "\"" + std::string(text) + "\"",
                     fmt::format("a whole number from {} to {}", least, most));
  }
  return value;
}

int cube_root(int count, const std::string& name) {
  const int side = elementary::cube_root(count);
  if (side * side * side != count)
    throw ValueError("system " + name, fmt::format("{}", count), "a cube: 1, 8, 27, 64, 125, 216, …");
  return side;
}

// O H H with the oxygen at the origin.
std::array<Vec3d, 3> spce_shape() {
  const double half = 0.5 * 109.47 * kPi / 180;
  return {Vec3d{0, 0, 0}, Vec3d{elementary::sin(half), 0, elementary::cos(half)},
          Vec3d{-elementary::sin(half), 0, elementary::cos(half)}};
}

void add_water(ParticleSystem& system, const std::array<Vec3d, 3>& site) {
  push(system, 15.9994, site[0], "O"), push(system, 1.008, site[1], "H"), push(system, 1.008, site[2], "H");
}

void finish_waters(ParticleSystem& system) {
  const int n = system.particles();
  system.constraints = ConstraintSet(n);
  const auto shape = spce_shape();
  for (int i = 0; i < n; i += 3) {
    system.constraints.add_distance(i, i + 1, 1.0);
    system.constraints.add_distance(i, i + 2, 1.0);
    system.constraints.add_distance(i + 1, i + 2, norm(shape[1] - shape[2]));
  }
  system.units = units_angstrom_fs();
}

// A lattice heats up by hundreds of kelvin when it melts. A short run with a thermostat removes this energy.
using Settling = std::function<void(double)>;

void settle(ParticleSystem& system, int steps, double dt, double relaxation, std::uint64_t seed, const Settling& told) {
  const int degrees = degrees_of_freedom(system);
  VelocityVerlet verlet(system, {.timestep = dt});
  verlet.set_thermostat(
      std::make_unique<Thermostat>(0.5 * degrees * system.units.boltzmann * 300, degrees, relaxation, seed));
  for (int k = 0; k < steps; ++k) {
    if (told) told(static_cast<double>(k) / steps);
    const StepReport report = verlet.step();
    if (!report.ok) throw Error(system.name + ": " + report.message);
  }
}

// Waters on a cubic lattice at 0.997 g/cm³. Each takes the best of several random orientations with respect to those
// placed before, so that no two hydrogens overlap at the start.
ParticleSystem waters(int count, const std::string& name, std::uint64_t seed, const Settling& told) {
  Random random(seed);
  ParticleSystem system;
  system.name = name;
  const int side = count == 1 ? 1 : cube_root(count, name);
  const double spacing = 18.6206 / 6, box = side * spacing;
  constexpr double kCharge[3] = {-2.0, 1.0, 1.0};
  std::vector<std::pair<int, Vec3d>> near;  // particles near a centre, with positions relative to it
  for (int m = 0; m < count; ++m) {
    const Vec3d centre = Vec3d{m % side + 0.5, m / side % side + 0.5, m / (side * side) + 0.5} * spacing;
    std::array<Vec3d, 3> best{}, tried{};
    near.clear();
    for (int i = 0; i < system.particles(); ++i) {
      Vec3d far = position_of(system, i) - centre;
      for (int c = 0; c < 3; ++c) far[c] -= box * std::round(far[c] / box);
      if (dot(far, far) <= 36) near.push_back({i, far});
    }
    double lowest = INFINITY;
    for (int turn = 0; turn < 30; ++turn) {
      const Quatd q = random.rotation();
      for (int a = 0; a < 3; ++a) tried[a] = centre + rotate(q, spce_shape()[a]);
      double energy = 0;
      for (const auto& [i, far] : near) {
        for (int a = 0; a < 3; ++a) energy += kCharge[a] * kCharge[i % 3] / norm(centre + far - tried[a]);
      }
      if (energy < lowest) lowest = energy, best = tried;
    }
    add_water(system, best);
  }
  finish_waters(system);
  if (count > 1) {
    system.box.length = Vec3d{1, 1, 1} * box;
    if (box > 17) set_force_field(system, "spce-smooth");
  }
  set_temperature(system, 300, seed + 1);
  if (!system.force_field.empty()) settle(system, 1000, 2.0, 50.0, seed + 2, told);
  return system;
}

// TraPPE-UA butanes in trans, with random orientations on a lattice, without overlaps.
ParticleSystem butanes(int count, const std::string& name, std::uint64_t seed, const Settling& told) {
  Random random(seed);
  ParticleSystem system;
  system.name = name;
  system.units = units_nm_ps();
  const int side = cube_root(count, name);
  const double spacing = 0.57, box = side * spacing, bend = 114 * kPi / 180, b = 0.154;
  std::array<Vec3d, 4> shape{};
  for (int a = 1; a < 4; ++a)
    shape[a] = shape[a - 1] + Vec3d{b * elementary::sin(bend / 2),
                                    a % 2 ? b * elementary::cos(bend / 2) : -b * elementary::cos(bend / 2), 0};
  const Vec3d middle = (shape[0] + shape[3]) * 0.5;
  for (int m = 0; m < count; ++m) {
    const Vec3d centre = Vec3d{m % side + 0.5, m / side % side + 0.5, m / (side * side) + 0.5} * spacing;
    std::array<Vec3d, 4> best{}, tried{};
    double farthest = -1;
    for (int turn = 0; turn < 60; ++turn) {
      const Quatd q = random.rotation();
      double closest = INFINITY;
      for (int a = 0; a < 4; ++a) tried[a] = centre + rotate(q, shape[a] - middle);
      for (int i = 0; i < system.particles() && closest > farthest; ++i) {
        for (int a = 0; a < 4; ++a) {
          Vec3d d = position_of(system, i) - tried[a];
          for (int c = 0; c < 3; ++c) d[c] -= box * std::round(d[c] / box);
          closest = std::min(closest, dot(d, d));
        }
      }
      if (closest > farthest) farthest = closest, best = tried;
    }
    for (int a = 0; a < 4; ++a)
      push(system, a == 0 || a == 3 ? 15.035 : 14.027, best[a], a == 0 || a == 3 ? "CH3" : "CH2");
  }
  system.constraints = ConstraintSet(system.particles());
  for (int i = 0; i < system.particles(); i += 4) {
    for (int a = 0; a < 3; ++a) system.constraints.add_distance(i + a, i + a + 1, b);
  }
  system.box.length = Vec3d{1, 1, 1} * box;
  if (box > 2.2) set_force_field(system, "trappe-butane");
  set_temperature(system, 300, seed + 1);
  if (!system.force_field.empty()) settle(system, 1000, 0.002, 0.05, seed + 2, told);
  return system;
}

// A freely jointed chain as a random walk that turns by at most 120 degrees at each bead.
ParticleSystem chain(int beads, const std::string& name, std::uint64_t seed) {
  Random random(seed);
  ParticleSystem system;
  system.name = name;
  system.units = units_nm_ps();
  system.constraints = ConstraintSet(beads);
  Vec3d x = zero3<double>(), direction{1, 0, 0};
  for (int i = 0; i < beads; ++i) {
    push(system, 14.027, x, "C");
    if (i > 0) system.constraints.add_distance(i - 1, i, 0.153);
    Vec3d next;
    do next = rotate(random.rotation(), Vec3d{1, 0, 0});
    while (dot(next, direction) < -0.5);
    direction = next;
    x += direction * 0.153;
  }
  set_temperature(system, 300, seed + 1);
  return system;
}

ParticleSystem ring(int beads, const std::string& name, std::uint64_t seed) {
  ParticleSystem system;
  system.name = name;
  system.units = units_nm_ps();
  system.constraints = ConstraintSet(beads);
  const double radius = 0.153 / (2 * elementary::sin(kPi / beads));
  for (int i = 0; i < beads; ++i) {
    const double angle = 2 * kPi * i / beads;
    push(system, 14.027, Vec3d{radius * elementary::cos(angle), radius * elementary::sin(angle), 0}, "C");
  }
  for (int i = 0; i < beads; ++i) system.constraints.add_distance(i, (i + 1) % beads, 0.153);
  set_temperature(system, 300, seed + 1);
  return system;
}

// Truncated icosahedron: the even permutations of (0, ±1, ±3φ), (±1, ±(2+φ), ±2φ), (±φ, ±2, ±(2φ+1)), edge length 2.
std::vector<Vec3d> truncated_icosahedron() {
  const double phi = 0.5 * (1 + std::sqrt(5.0));
  std::vector<Vec3d> points;
  for (const Vec3d& p : {Vec3d{0, 1, 3 * phi}, Vec3d{1, 2 + phi, 2 * phi}, Vec3d{phi, 2, 2 * phi + 1}}) {
    for (int turn = 0; turn < 3; ++turn) {
      for (int signs = 0; signs < 8; ++signs) {
        Vec3d v{p[turn], p[(turn + 1) % 3], p[(turn + 2) % 3]};
        bool twice = false;
        for (int c = 0; c < 3; ++c) {
          if (!(signs >> c & 1)) continue;
          twice |= v[c] == 0;  // -0 is the same point
          v[c] = -v[c];
        }
        if (!twice) points.push_back(v);
      }
    }
  }
  return points;
}

ParticleSystem cage(bool rigid, const std::string& name, std::uint64_t seed) {
  ParticleSystem system;
  system.name = name;
  system.units = units_nm_ps();
  constexpr double kEdge = 0.144;
  for (const Vec3d& p : truncated_icosahedron()) push(system, 12.011, p * (kEdge / 2), "C");
  const int n = system.particles();
  system.constraints = ConstraintSet(n);
  std::vector<std::vector<int>> bonded(n);
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) {
      if (norm(position_of(system, i) - position_of(system, j)) > 1.01 * kEdge) continue;
      system.constraints.add_distance(i, j, kEdge);
      bonded[i].push_back(j), bonded[j].push_back(i);
    }
  }
  for (int i = 0; rigid && i < n; ++i) {
    for (std::size_t a = 0; a < bonded[i].size(); ++a) {
      for (std::size_t b = a + 1; b < bonded[i].size(); ++b) {
        system.constraints.add_distance(bonded[i][a], bonded[i][b],
                                        norm(position_of(system, bonded[i][a]) - position_of(system, bonded[i][b])));
      }
    }
  }
  if (!rigid) set_temperature(system, 300, seed);
  return system;
}

constexpr double kGravity = 9.81;

// A step [s] in which no link of `points` equal points, which hang over `length` and are released from the horizontal,
// turns by more than a quarter of a radian. Gravity releases at most m g length/2; a whip has all of it in one point.
// Without the limit, a step of SHAKE may have no solution: it moves points along the links of its start.
double whip_step(double link, double length, int points) {
  return std::min(units_si().timestep, 0.25 * link / std::sqrt(kGravity * length * points));
}

// One metre of rope in N links. Its first point is fixed; it is released from the horizontal.
ParticleSystem rope(int links, const std::string& name) {
  ParticleSystem system;
  system.name = name;
  system.units = units_si();
  system.constraints = ConstraintSet(links + 1);
  for (int i = 0; i <= links; ++i) {
    push(system, 0.1 / links, Vec3d{static_cast<double>(i) / links, 0, 0}, "P");
    if (i > 0) system.constraints.add_distance(i - 1, i, 1.0 / links);
  }
  system.pinned.assign(links + 1, 0);
  system.pinned[0] = 1;
  system.force_field.gravity = {0, 0, -kGravity};
  system.units.timestep = whip_step(1.0 / links, 1, links);
  return system;
}

// A cloth of one metre's width in N x M points with threads along both directions. One edge is fixed; the cloth is
// released from the horizontal. Springs along the diagonals resist shear: the rows of a mesh sheared into a line are
// dependent. To shear one so far takes 29 times the energy that gravity can release in its area.
ParticleSystem cloth(int across, int along, const std::string& name) {
  ParticleSystem system;
  system.name = name;
  system.units = units_si();
  const double step = 1.0 / (across - 1), length = (along - 1) * step, density = 0.2;
  const double diagonal = std::sqrt(2.0) * step, stiffness = 25 * density * kGravity * length;
  system.constraints = ConstraintSet(across * along);
  for (int j = 0; j < along; ++j) {
    for (int i = 0; i < across; ++i) {
      push(system, density * step * step, Vec3d{i * step, j * step, 0}, "P");
      const int here = j * across + i;
      if (i > 0 && j > 0) system.constraints.add_distance(here - 1, here, step);
      if (j > 0) system.constraints.add_distance(here - across, here, step);
      if (i == 0 || j == 0) continue;
      system.force_field.bonds.push_back({here - across - 1, here, stiffness, diagonal});
      system.force_field.bonds.push_back({here - across, here - 1, stiffness, diagonal});
    }
  }
  system.pinned.assign(across * along, 0);
  std::fill_n(system.pinned.begin(), across, 1);
  system.force_field.gravity = {0, 0, -kGravity};
  system.units.timestep = whip_step(step, length, across * (along - 1));
  return system;
}

// Two unit masses on unit links under gravity, the first link horizontal.
ParticleSystem pendulum2(const std::string& name) {
  ParticleSystem system;
  system.name = name;
  system.units = units_si();
  system.constraints = ConstraintSet(3);
  push(system, 1, Vec3d{0, 0, 0}, "P"), push(system, 1, Vec3d{1, 0, 0}, "P"), push(system, 1, Vec3d{1, 0, 1}, "P");
  system.constraints.add_distance(0, 1, 1), system.constraints.add_distance(1, 2, 1);
  system.pinned = {1, 0, 0};
  system.force_field.gravity = {0, 0, -kGravity};
  return system;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> builtin_systems() {
  return {{"water1", "one rigid SPC/E water, no forces, 300 K (A, fs)"},
          {"water216", "216 SPC/E waters, equilibrated for 2 ps at 300 K, spce-smooth forces (A, fs)"},
          {"water:N", "the same for any cube N up to 1,728, without forces below 216 (A, fs)"},
          {"butane125", "125 TraPPE-UA butanes, equilibrated for 2 ps at 300 K, trappe-butane forces (nm, ps)"},
          {"butane:N", "the same for any cube N up to 1,000, without forces below 64 (nm, ps)"},
          {"chain:N", "freely jointed chain of N beads, 300 K (nm, ps)"},
          {"ring:N", "closed ring of N beads, 300 K (nm, ps)"},
          {"c60", "C60 cage, its 90 edges of constant length, 300 K (nm, ps)"},
          {"c60-rigid", "C60 with distances to second neighbours constant too: 96 redundant constraints (nm, ps)"},
          {"rope:N", "rope of 1 m in N links, one end fixed, released from the horizontal (SI)"},
          {"cloth:NxM",
           "cloth of N x M points, 1 m wide, resists shear, one edge fixed, released from the horizontal (SI)"},
          {"pendulum2", "double pendulum: two unit masses on unit links (SI)"}};
}

bool is_builtin_system(std::string_view name) {
  const std::string_view stem = name.substr(0, name.find(':'));
  constexpr std::string_view kStems[] = {"water1", "water216", "water",     "butane125", "butane", "chain",
                                         "ring",   "c60",      "c60-rigid", "rope",      "cloth",  "pendulum2"};
  return std::find(std::begin(kStems), std::end(kStems), stem) != std::end(kStems);
}

ParticleSystem make_builtin_system(std::string_view wanted, std::uint64_t seed, const Settling& told) {
  const std::string name(wanted);
  const std::size_t colon = wanted.find(':');
  const std::string_view stem = wanted.substr(0, colon),
                         size = colon == std::string_view::npos ? "" : wanted.substr(colon + 1);
  const bool sized = colon != std::string_view::npos;
  if (!sized && stem == "water1") return waters(1, name, seed, told);
  if (!sized && stem == "water216") return waters(216, name, seed, told);
  if (sized && stem == "water") return waters(sizes(size, name, 1, 1728), name, seed, told);
  if (!sized && stem == "butane125") return butanes(125, name, seed, told);
  if (sized && stem == "butane") return butanes(sizes(size, name, 1, 1000), name, seed, told);
  if (stem == "chain") return chain(sized ? sizes(size, name, 2, 2000000) : 128, name, seed);
  if (stem == "ring") return ring(sized ? sizes(size, name, 3, 1000000) : 32, name, seed);
  if (!sized && stem == "c60") return cage(false, name, seed);
  if (!sized && stem == "c60-rigid") return cage(true, name, seed);
  if (stem == "rope") return rope(sized ? sizes(size, name, 1, 1000000) : 50, name);
  if (stem == "cloth") {
    const std::size_t by = size.find('x');
    if (sized && by == std::string_view::npos)
      throw ValueError("system " + name, "\"" + std::string(size) + "\"", "NxM, e.g. cloth:20x30");
    const int across = sized ? sizes(size.substr(0, by), name, 2, 1000) : 20,
              along = sized ? sizes(size.substr(by + 1), name, 2, 1000) : 20;
    return cloth(across, along, name);
  }
  if (!sized && stem == "pendulum2") return pendulum2(name);
  std::string known;
  for (const auto& [each, what] : builtin_systems()) known += (known.empty() ? "" : ", ") + each;
  throw ValueError("system", name, known);
}

}  // namespace tarsus
