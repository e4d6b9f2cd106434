// Where a spatial tendon runs, and what it does to the bodies that it runs over.
#pragma once

#include <vector>

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

struct TendonPull {
  int point = 0;    ///< of the tendon's path: the site or geom that feels it
  Vec3d at, force;  ///< world axes [m]; for a unit force along the tendon, which makes it longer
};

/// At both ends of each straight part of the path. `links` as after kinematics().
void tendon_pulls(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                  std::vector<TendonPull>& out);

struct TendonSegment {
  Vec3d from, to;  ///< world axes [m]
};

/// Appends the path in straight segments: arcs as chords of at most 15 degrees. `links` as after kinematics().
void tendon_path(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                 std::vector<TendonSegment>& out);

}  // namespace tarsus
