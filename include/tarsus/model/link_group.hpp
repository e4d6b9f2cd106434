// Order of the links in a pass from the tips to the root, in groups whose members do not depend on each other.
#pragma once

#include <vector>

#include "tarsus/model/joint_type.hpp"

namespace tarsus {

/// Up to four links that one inward pass can process together. All have hinges or all have balls, and none descends
/// from another. A slide or a free joint is alone in its group. Entries beyond count repeat the first link.
struct LinkGroup {
  static constexpr int kLinks = 4;
  int count;
  int link[kLinks];
};

/// Every link once, after all its descendants. parent[i] < i, or -1 for the world.
std::vector<LinkGroup> inward_groups(const std::vector<int>& parent, const std::vector<JointType>& joint);

}  // namespace tarsus
