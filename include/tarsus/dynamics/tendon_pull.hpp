// The path of a spatial tendon and its forces on the bodies along the path.
#pragma once

#include <vector>

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

struct TendonPull {
  int point = 0;    ///< index in the tendon's path of the site or geom that bears the force
  Vec3d at, force;  ///< point [m] and force [N], world axes, for a tendon force of 1 N towards increasing length
};

/// Replaces `out` by the forces at both ends of each straight part of the path; none for a fixed tendon. `links` as
/// after kinematics().
void tendon_pulls(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                  std::vector<TendonPull>& out);

struct TendonSegment {
  Vec3d from, to;  ///< world axes [m]
};

/// Appends the path as straight segments; arcs become chords of at most 15 degrees. `links` as after kinematics().
void tendon_path(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                 std::vector<TendonSegment>& out);

}  // namespace tarsus
