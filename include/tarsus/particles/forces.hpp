// Forces and energies of a ForceField.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "tarsus/particles/system.hpp"

namespace tarsus {

class ThreadTeam;

/// Energies in the system's units.
struct Energies {
  double lennard_jones = 0, coulomb = 0, bonds = 0, angles = 0, torsions = 0, springs = 0, gravity = 0;
  std::array<double, 6> virial{};  ///< [energy] Σ x_a f_b of pairs and bonded terms: xx xy xz yy yz zz
  double potential() const { return lennard_jones + coulomb + bonds + angles + torsions + springs + gravity; }
};

class Forces {
 public:
  /// Copies the data that it needs. @throws ValueError, ShapeError as ParticleSystem::check()
  explicit Forces(const ParticleSystem& system);
  ~Forces();
  Forces(Forces&&) noexcept;
  /// Sets force [3 n] at these positions [3 n]. Energies (null: none) cost a few per cent more. The result has the same
  /// bits for every team. @throws ShapeError
  void compute(std::span<const double> position, std::span<double> force, Energies* energies,
               ThreadTeam* team = nullptr);
  /// Number of Verlet list builds so far, and of pairs in the last list.
  int list_builds() const;
  std::int64_t list_pairs() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace tarsus
