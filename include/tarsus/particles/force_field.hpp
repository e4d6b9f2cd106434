// Description of the forces on particles, in the units of their system (units.hpp). tarsus/particles/forces.hpp
// computes them.
#pragma once

#include <array>
#include <vector>

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Lennard-Jones 4 ε ((σ/r)^12 - (σ/r)^6) between types of particles.
struct LennardJones {
  enum class Cutoff {
    plain,        ///< u and u' both jump at the cutoff
    shifted,      ///< u - u(cutoff): the energy is continuous
    force_switch  ///< GROMACS' force-switch from `switch_from`: the force and its slope are continuous
  };
  std::vector<int> type;  ///< [particles], or empty: no Lennard-Jones
  int types = 0;
  std::vector<double> epsilon, sigma;  ///< [types * types], symmetric; epsilon 0: no interaction
  double cutoff = 0, switch_from = 0;
  Cutoff mode = Cutoff::shifted;

  /// Pair parameters from each type's parameters: arithmetic σ, geometric ε.
  void mix_lorentz_berthelot(const std::vector<double>& own_epsilon, const std::vector<double>& own_sigma);
};

/// Coulomb with a cutoff: constant · q_i q_j · (bare/r + linear r + quadratic r² - offset).
struct Coulomb {
  std::vector<double> charge;  ///< [particles], or empty: none
  double constant = 1;         ///< energy · length for two unit charges
  double cutoff = 0;
  double bare = 1, linear = 0, quadratic = 0, offset = 0;
  /// Adds, as GROMACS and LAMMPS do, the smooth form's terms other than 1/r (energy and force) for excluded pairs
  /// inside the cutoff, and the self energy of each charge (-offset q²/2).
  bool corrections = true;

  /// U = C q q (1/r - 2/rc + r/rc²): energy and force vanish at the cutoff (LAMMPS' coul/dsf with alpha 0).
  void shifted_force(double rc);
  /// U = C q q (1/r - 3/rc + 3 r/rc² - r²/rc³): the force's slope vanishes at the cutoff too, so pairs that cross it do
  /// not disturb the energy (shifted force gradient, Kale and Herzfeld 2011).
  void shifted_gradient(double rc);
  /// Reaction field with the dielectric constant outside; <= 0 means infinite (GROMACS' 0).
  void reaction_field(double rc, double epsilon_outside);
};

struct HarmonicBond {
  int i, j;
  double stiffness, length;  ///< ½ k (r - r0)²
};
struct HarmonicAngle {
  int i, j, k;
  double stiffness, angle;  ///< ½ k (θ - θ0)², rad
};
/// c1 (1 + cos φ) + c2 (1 - cos 2φ) + c3 (1 + cos 3φ), φ = π at trans (TraPPE; OPLS with the factors ½ in c1 to c3).
struct Torsion {
  int i, j, k, l;
  double c1, c2, c3;
};
/// ½ k |x_i - anchor|².
struct AnchorSpring {
  int i;
  double stiffness;
  Vec3d anchor;
};

struct ForceField {
  LennardJones lennard_jones;
  Coulomb coulomb;
  std::vector<std::array<int, 2>> exclusions;  ///< pairs without non-bonded forces
  std::vector<HarmonicBond> bonds;
  std::vector<HarmonicAngle> angles;
  std::vector<Torsion> torsions;
  std::vector<AnchorSpring> springs;
  Vec3d gravity = zero3<double>();  ///< acceleration
  double skin = 0;                  ///< extra radius of the Verlet list; 0: chosen from the cutoff

  bool has_pairs() const { return !lennard_jones.type.empty() || !coulomb.charge.empty(); }
  bool empty() const;
  /// Excludes every pair within the same molecule.
  void exclude_molecules(const std::vector<int>& molecule);
};

}  // namespace tarsus
