// The path of a spatial tendon and its forces on the bodies along the path.
#pragma once

#include <vector>

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

struct TendonPull {
  int point = 0;    ///< index in the tendon's path of the site or geom that bears the force
  Vec3d at, force;  ///< world axes [m]; for a unit tendon force in the direction of increasing length
};

/// Computes the forces at both ends of each straight part of the path. `links` as after kinematics().
void tendon_pulls(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                  std::vector<TendonPull>& out);

struct TendonSegment {
  Vec3d from, to;  ///< world axes [m]
};

/// Appends the path as straight segments; arcs become chords of at most 15 degrees. `links` as after kinematics().
void tendon_path(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                 std::vector<TendonSegment>& out);

}  // namespace tarsus
