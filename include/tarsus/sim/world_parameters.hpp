// Parameters that may differ between the worlds of a batch. They replace or scale those of the model and of the drives.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/control/actuator.hpp"
#include "tarsus/control/drive.hpp"

namespace tarsus {

enum class WorldParameter {
  mass_scale,           ///< [nbody] factors on masses and inertias, > 0
  damping_scale,        ///< [njoint] factors on the joints' damping, including that of their actuators, >= 0
  armature_scale,       ///< [njoint] factors on the joints' armature, likewise, >= 0
  friction_loss_scale,  ///< [njoint] factors on the joints' dry friction, >= 0
  com_offset,           ///< [nbody][3] offsets of the bodies' centres of mass, body axes [m]
  gravity,              ///< [3] [m/s²]
  friction_scale,  ///< [ngeom] factors on the geoms' sliding friction, >= 0; an explicit pair uses the larger of two
  kp_scale,        ///< [nv] factors on the drives' stiffness, >= 0; rotations use their first DoF's, as for gains
  kd_scale,        ///< [nv] factors on the drives' damping, >= 0
  force_scale,     ///< [nv] factors on the drives' force limits, > 0
  actuator_gain_scale,  ///< [actuator] factors, > 0, on gain and bias of the model's actuators without their velocity
  actuator_damping_scale,  ///< [actuator] factors, > 0, on the coefficients of the velocity in gain and bias
  actuator_force_scale,    ///< [actuator] factors, > 0, on the force ranges
};
constexpr int kWorldParameters = 13;
const char* name(WorldParameter which);
/// Whether its numbers are vectors, not factors.
constexpr bool is_of_vectors(WorldParameter which) {
  return which == WorldParameter::com_offset || which == WorldParameter::gravity;
}
constexpr bool is_of_drives(WorldParameter which) {
  return which >= WorldParameter::kp_scale && which <= WorldParameter::force_scale;
}
constexpr bool is_of_actuators(WorldParameter which) { return which >= WorldParameter::actuator_gain_scale; }

/// Count of numbers per world. Geoms are numbered body by body.
int numbers(const Model& model, WorldParameter which);

/// Parameters of several worlds, [world][n] each; empty: those of the model and of the drives.
struct WorldParameters {
  std::array<std::vector<double>, kWorldParameters> values;

  std::vector<double>& operator[](WorldParameter which) { return values[std::size_t(which)]; }
  const std::vector<double>& operator[](WorldParameter which) const { return values[std::size_t(which)]; }
  bool any() const;
  /// One world's values of `which`; empty if `which` is empty.
  std::span<const double> of(const Model& model, WorldParameter which, int world) const;
  /// The parameters of one world.
  WorldParameters world(const Model& model, int world) const;
  /// One world's factors on the model's actuators.
  ActuatorScales actuators(const Model& model, int world) const;
  /// @throws ShapeError naming the array whose size does not match the number of worlds
  void check_sizes(const Model& model, int worlds) const;
};

/// @throws ValueError naming the first number out of range.  @param numbers [worlds][n]
void check_numbers(const Model& model, WorldParameter which, std::span<const double> numbers);

/// The drives, scaled by one world's factors.
Drives scaled(Drives drives, const Model& model, const WorldParameters& parameters, int world);

/// Fills the table that kernels read for the worlds of one pack.
/// @param geometry whose pairs the friction applies to; null: no contacts
/// @param world [lane]
/// @param servos actuators whose drives have these factors; null: none. Of one lane, both are scaled by themselves
/// @param hanging of the model, for steps; null: the table is for something else, or nothing can hang
template <class R>
void fill(WorldTable<R>& table, const Model& model, const ContactGeometry* geometry, const WorldParameters& parameters,
          std::span<const int> world, const ActuatorSet* servos, const HangingLinks<R>* hanging);

}  // namespace tarsus
