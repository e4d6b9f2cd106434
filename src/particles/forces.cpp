#include "tarsus/particles/forces.hpp"

#include <algorithm>
#include <cmath>

#include "particles/pair_forces.hpp"
#include "particles/point.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

struct Forces::Implementation {
  ForceField field;
  std::vector<double> mass;  // in energy units; 0 if pinned
  std::unique_ptr<PairForces> pairs;

  void add_bonds(std::span<const double> x, std::span<double> force, Energies& energies) const;
  void add_angles(std::span<const double> x, std::span<double> force, Energies& energies) const;
  void add_torsions(std::span<const double> x, std::span<double> force, Energies& energies) const;
  void add_outer(std::span<const double> x, std::span<double> force, Energies& energies) const;
};

namespace {

void add_to(std::span<double> force, int i, const Vec3d& f) {
  force[3 * i] += f.x, force[3 * i + 1] += f.y, force[3 * i + 2] += f.z;
}

void add_virial(std::array<double, 6>& virial, const Vec3d& r, const Vec3d& f) {
  virial[0] += r.x * f.x, virial[1] += r.x * f.y, virial[2] += r.x * f.z;
  virial[3] += r.y * f.y, virial[4] += r.y * f.z, virial[5] += r.z * f.z;
}

// Adds -slope times the gradient of an internal coordinate of a few particles.
template <std::size_t N>
void add_internal(const int (&particle)[N], std::span<const double> x, const double* gradient, double slope,
                  std::span<double> force, Energies& energies) {
  const Vec3d origin = point(x, particle[0]);
  for (std::size_t a = 0; a < N; ++a) {
    const Vec3d f = Vec3d{gradient[3 * a], gradient[3 * a + 1], gradient[3 * a + 2]} * -slope;
    add_to(force, particle[a], f);
    add_virial(energies.virial, point(x, particle[a]) - origin, f);
  }
}

}  // namespace

void Forces::Implementation::add_bonds(std::span<const double> x, std::span<double> force, Energies& energies) const {
  for (const HarmonicBond& bond : field.bonds) {
    const Vec3d e = point(x, bond.i) - point(x, bond.j);
    const double r = norm(e), stretch = r - bond.length;
    energies.bonds += 0.5 * bond.stiffness * stretch * stretch;
    const double ratio = bond.length == 0 ? 1 : stretch / r;  // without length, the force is linear: 0 at r = 0
    const Vec3d f = e * (-bond.stiffness * ratio);
    add_to(force, bond.i, f);
    add_to(force, bond.j, -f);
    add_virial(energies.virial, e, f);
  }
}

void Forces::Implementation::add_angles(std::span<const double> x, std::span<double> force, Energies& energies) const {
  for (const HarmonicAngle& term : field.angles) {
    const int particle[3] = {term.i, term.j, term.k};
    double packed[9], gradient[9];
    for (int a = 0; a < 3; ++a) std::copy_n(x.data() + 3 * particle[a], 3, packed + 3 * a);
    const double bend = bond_angle(std::span<const double, 9>(packed), gradient) - term.angle;
    energies.angles += 0.5 * term.stiffness * bend * bend;
    add_internal(particle, x, gradient, term.stiffness * bend, force, energies);
  }
}

void Forces::Implementation::add_torsions(std::span<const double> x, std::span<double> force,
                                          Energies& energies) const {
  for (const Torsion& term : field.torsions) {
    const int particle[4] = {term.i, term.j, term.k, term.l};
    double packed[12], gradient[12];
    for (int a = 0; a < 4; ++a) std::copy_n(x.data() + 3 * particle[a], 3, packed + 3 * a);
    const double phi = torsion_angle(std::span<const double, 12>(packed), gradient);
    const double c = elementary::cos(phi), s = elementary::sin(phi);
    const double c2 = c * c - s * s, s2 = 2 * s * c, c3 = c2 * c - s2 * s, s3 = s2 * c + c2 * s;  // of 2 φ and 3 φ
    energies.torsions += term.c1 * (1 + c) + term.c2 * (1 - c2) + term.c3 * (1 + c3);
    const double slope = -term.c1 * s + 2 * term.c2 * s2 - 3 * term.c3 * s3;
    add_internal(particle, x, gradient, slope, force, energies);
  }
}

void Forces::Implementation::add_outer(std::span<const double> x, std::span<double> force, Energies& energies) const {
  for (const AnchorSpring& spring : field.springs) {
    const Vec3d e = point(x, spring.i) - spring.anchor;
    energies.springs += 0.5 * spring.stiffness * dot(e, e);
    add_to(force, spring.i, e * -spring.stiffness);
  }
  if (dot(field.gravity, field.gravity) == 0) return;
  for (std::size_t i = 0; i < mass.size(); ++i) {
    energies.gravity -= mass[i] * dot(field.gravity, point(x, static_cast<int>(i)));
    add_to(force, static_cast<int>(i), field.gravity * mass[i]);
  }
}

Forces::Forces(const ParticleSystem& system) : implementation_(std::make_unique<Implementation>()) {
  system.check();
  implementation_->field = system.force_field;
  for (const double w : system.inverse_masses()) implementation_->mass.push_back(w > 0 ? 1 / w : 0.0);
  if (system.force_field.has_pairs()) implementation_->pairs = std::make_unique<PairForces>(system);
}

Forces::~Forces() = default;
Forces::Forces(Forces&&) noexcept = default;

void Forces::compute(std::span<const double> position, std::span<double> force, Energies* energies, ThreadTeam* team) {
  check_size("position", position.size(), 3 * implementation_->mass.size());
  check_size("force", force.size(), position.size());
  std::fill(force.begin(), force.end(), 0.0);
  Energies local;
  if (implementation_->pairs) {
    ThreadTeam alone;
    implementation_->pairs->add(position, force, energies ? &local : nullptr, team ? *team : alone);
  }
  implementation_->add_bonds(position, force, local);
  implementation_->add_angles(position, force, local);
  implementation_->add_torsions(position, force, local);
  implementation_->add_outer(position, force, local);
  if (energies) *energies = local;
}

int Forces::list_builds() const { return implementation_->pairs ? implementation_->pairs->builds() : 0; }
std::int64_t Forces::list_pairs() const { return implementation_->pairs ? implementation_->pairs->pairs() : 0; }

}  // namespace tarsus
