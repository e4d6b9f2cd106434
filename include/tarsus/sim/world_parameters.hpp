// Numbers that each world of a batch may have of its own, in the place of the model's or of the drives'.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/drive.hpp"

namespace tarsus {

enum class WorldParameter {
  mass_scale,      ///< [nbody] factors on masses and inertias, > 0
  damping_scale,   ///< [njoint] factors on the joints' damping, >= 0
  gravity,         ///< [3] [m/s²]
  friction_scale,  ///< [ngeom] factors on the geoms' sliding friction, >= 0; an explicit pair's by the larger of two
  kp_scale,        ///< [nv] factors on the drives' stiffness, >= 0; rotations use their first DoF's, as gains do
  kd_scale,        ///< [nv] factors on the drives' damping, >= 0
  force_scale,     ///< [nv] factors on the drives' force limits, > 0
};
constexpr int kWorldParameters = 7;
const char* name(WorldParameter which);

/// How many numbers of it a world has. Geoms are those of all bodies in turn.
int numbers(const Model& model, WorldParameter which);

/// Of some worlds [world][n] each; empty: as in the model and the drives.
struct WorldParameters {
  std::array<std::vector<double>, kWorldParameters> values;

  std::vector<double>& operator[](WorldParameter which) { return values[std::size_t(which)]; }
  const std::vector<double>& operator[](WorldParameter which) const { return values[std::size_t(which)]; }
  bool any() const;
  /// One world's part of `which`; empty as that is.
  std::span<const double> of(const Model& model, WorldParameter which, int world) const;
  /// The same of one world.
  WorldParameters world(const Model& model, int world) const;
  /// @throws ShapeError naming the array that is not of that many worlds
  void check_sizes(const Model& model, int worlds) const;
};

/// @throws ValueError naming the first of [worlds][n] numbers that is out of range
void check_numbers(const Model& model, WorldParameter which, std::span<const double> numbers);

/// Those drives with a world's factors.
Drives scaled(Drives drives, const Model& model, const WorldParameters& parameters, int world);

/// What kernels load of the worlds of one pack.
/// @param geometry whose pairs friction is of; null: no contacts
/// @param world [lane]  @param drives with the factors on gains and limits; without, one world's drives are scaled()
template <class R>
void fill(WorldTable<R>& table, const Model& model, const ContactGeometry* geometry, const WorldParameters& parameters,
          std::span<const int> world, bool drives);

}  // namespace tarsus
