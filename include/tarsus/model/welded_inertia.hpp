// What moves as one: a body, those that are fixed to it, and those that it is fixed to.
#pragma once

#include "tarsus/model/spec.hpp"

namespace tarsus {

struct WeldedInertia {
  bool moves = false;               ///< false: fixed to the world, its inertia has no effect
  double mass = 0;                  ///< [kg]
  Sym3d inertia{0, 0, 0, 0, 0, 0};  ///< about the centre of mass, axes of the body that has the joints [kg m²]
  /// The smallest moment is not negative, but for rounding.
  bool positive() const;
};

/// Sums the bodies' own <inertial>; shapes do not count.
WeldedInertia welded_inertia(const ModelSpec& spec, int body);

}  // namespace tarsus
