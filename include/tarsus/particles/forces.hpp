// Forces and energies of a ForceField.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "tarsus/particles/system.hpp"

namespace tarsus {

class ThreadTeam;

struct Energies {
  double lennard_jones = 0, coulomb = 0, bonds = 0, angles = 0, torsions = 0, springs = 0, gravity = 0;
  std::array<double, 6> virial{};  ///< Σ x_a f_b of pairs and bonded terms: xx xy xz yy yz zz
  double potential() const { return lennard_jones + coulomb + bonds + angles + torsions + springs + gravity; }
};

class Forces {
 public:
  /// Copies what it needs of the system. @throws ValueError where the force field does not fit the box
  explicit Forces(const ParticleSystem& system);
  ~Forces();
  Forces(Forces&&) noexcept;
  /// force [3 n] is set. With energies it costs a few per cent more. The same bits for every team.
  void compute(std::span<const double> position, std::span<double> force, Energies* energies,
               ThreadTeam* team = nullptr);
  /// Builds of the Verlet list so far, and pairs in the last one.
  int list_builds() const;
  std::int64_t list_pairs() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tarsus
