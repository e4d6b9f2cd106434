// A scalar force along a generalised direction over one step: servos on tendons, springs, dampers and armature of
// tendons, their ranges and dry friction, polynomial springs and dampers of joints (sim/servo.hpp).
#pragma once

#include <span>

#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The force in one world.
struct ForceRow {
  double force = 0;  ///< at q̈ = 0 [N | N m]
  double slope = 0;  ///< D: the force falls by D J q̈
  double low = -kInfinity, high = kInfinity;
  std::span<const int> dofs;
  std::span<const double> arm;  ///< J over the dofs
  /// Replaces force and slope: the force, between low and high, that brings the velocity along J to `target`.
  bool rigid = false;
  double target = 0, speed = 0;  ///< target: at the step's end; speed: J q̇ at its start [m/s | rad/s]
  int tendon_range = -1;         ///< tendon of whose range this row is an end; -1: none
  int tendon_friction = -1;      ///< tendon whose dry friction this is; -1: none
  bool far = false;              ///< an end of a range that the tendon does not come near by its speed at the start
  double compliance = 0;         ///< least R of a rigid row: velocity per impulse
  int on_link = -1;              ///< see PathRow
  Force<double> wrench{{0, 0, 0}, {0, 0, 0}};
  int slot = -1;  ///< of Servos::slots(), the same from step to step
};

/// What a model's force rows may be, the same in all worlds: their DoFs, or their link.
struct ForceSlot {
  std::span<const int> dofs;
  int on_link = -1;
  bool acts = true;  ///< false: no step ever uses the slot
};

}  // namespace tarsus
