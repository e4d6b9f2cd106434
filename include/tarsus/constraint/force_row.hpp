// A scalar force along a generalised direction over one step: servos on tendons, springs, dampers and armature of
// tendons, their ranges and dry friction, polynomial springs and dampers of joints (sim/servo.hpp).
#pragma once

#include <span>

#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// In one world.
struct ForceRow {
  double force = 0;  ///< at q̈ = 0 [N | N m]
  double slope = 0;  ///< D: it falls by D J q̈
  double low = -kInfinity, high = kInfinity;
  std::span<const int> dofs;
  std::span<const double> arm;  ///< J over the dofs
  /// Instead of force and slope: the force that makes the velocity along J `target`, between low and high.
  bool rigid = false;
  double target = 0, speed = 0;  ///< at the end of the step; J q̇ at its start [m/s | rad/s]
  int tendon_range = -1;         ///< the tendon whose range this is an end of
  int tendon_friction = -1;      ///< the tendon whose dry friction this is
  int on_link = -1;              ///< see PathRow
  Force<double> wrench{{0, 0, 0}, {0, 0, 0}};
  int slot = -1;  ///< of Servos::slots(), what it is from step to step
};

/// What a model's force rows may be, the same in all worlds: on these DoFs, or on a link.
struct ForceSlot {
  std::span<const int> dofs;
  int on_link = -1;
  bool acts = true;  ///< in some step; else nothing ever has it
};

}  // namespace tarsus
