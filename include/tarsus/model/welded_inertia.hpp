// Inertia of a rigid group: a body and all bodies that are welded to it.
#pragma once

#include "tarsus/model/spec.hpp"

namespace tarsus {

struct WeldedInertia {
  bool moves = false;               ///< false: the group is fixed to the world and its inertia has no effect
  double mass = 0;                  ///< [kg]
  Sym3d inertia{0, 0, 0, 0, 0, 0};  ///< about the centre of mass, axes of the body that has the joints [kg m²]
  /// Whether the smallest moment is not negative, up to rounding.
  bool positive() const;
};

/// Sums the <inertial> of the group's bodies; shapes are ignored.
WeldedInertia welded_inertia(const ModelSpec& spec, int body);

}  // namespace tarsus
