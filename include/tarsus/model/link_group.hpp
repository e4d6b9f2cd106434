// The order in which a pass from the tips to the root takes the links, in groups that depend on one another's results
// only from one group to the next.
#pragma once

#include <vector>

#include "tarsus/model/joint_type.hpp"

namespace tarsus {

/// Up to four links that one pass inward may treat side by side: all have hinges, or all have balls, and no one rides
/// on another. A slide or a free joint stands alone. Beyond count the first link is repeated.
struct LinkGroup {
  static constexpr int kLinks = 4;
  int count;
  int link[kLinks];
};

/// Every link once, each behind all links that ride on it. parent[i] < i, or -1 for the world.
std::vector<LinkGroup> inward_groups(const std::vector<int>& parent, const std::vector<JointType>& joint);

}  // namespace tarsus
