// Rows of J by what each is of links' motions.
#pragma once

#include <vector>

#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

struct LinkArm {
  int link;
  double f[6];  ///< moment, then force
};

/// J_r x = Σ f · (w, v) over the arms of row r: motions of links' origins, world axes. An impulse on the row is those
/// forces on the links.
struct LinkRows {
  std::vector<LinkArm> arms;
  std::vector<int> end;  ///< [row] of its arms

  void clear() { arms.clear(), end.clear(); }
  int size() const { return int(end.size()); }
  /// To the row that end_row() ends.
  void add(int link, const Force<double>& f) { arms.push_back({link, {f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z}}); }
  void end_row() { end.push_back(int(arms.size())); }
};

}  // namespace tarsus
