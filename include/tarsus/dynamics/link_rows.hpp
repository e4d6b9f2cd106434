// Constraint rows expressed through the motions of links.
#pragma once

#include <vector>

#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

struct LinkArm {
  int link;
  double f[6];  ///< moment, then force
};

/// J_r x = Σ f · (w, v) over the arms of row r, where (w, v) is the motion of the arm's link at its origin, world axes.
/// An impulse λ on the row exerts the impulses λ f on the links.
struct LinkRows {
  std::vector<LinkArm> arms;
  std::vector<int> end;  ///< [row] end of its arms

  void clear() { arms.clear(), end.clear(); }
  int size() const { return int(end.size()); }
  /// Adds an arm to the row that the next end_row() completes.
  void add(int link, const Force<double>& f) { arms.push_back({link, {f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z}}); }
  void end_row() { end.push_back(int(arms.size())); }
};

}  // namespace tarsus
