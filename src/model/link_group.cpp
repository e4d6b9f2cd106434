#include "tarsus/model/link_group.hpp"

#include <algorithm>
#include <queue>
#include <utility>

namespace tarsus {

namespace {

/// Links whose children have been taken, with their distances from the root.
using Ready = std::priority_queue<std::pair<int, int>>;

/// Takes up to n links out of `ready`: those farthest from the root, on which most links depend.
LinkGroup take(Ready& ready, int n) {
  LinkGroup group{std::min(n, int(ready.size())), {}};
  for (int k = 0; k < LinkGroup::kLinks; ++k) {
    group.link[k] = k < group.count ? ready.top().second : group.link[0];
    if (k < group.count) ready.pop();
  }
  return group;
}

}  // namespace

std::vector<LinkGroup> inward_groups(const std::vector<int>& parent, const std::vector<JointType>& joint) {
  const int n = int(parent.size());
  std::vector<int> children(parent.size()), distance(parent.size());  // children left to group; links to the root
  for (int i = 0; i < n; ++i) {
    if (parent[i] >= 0) ++children[parent[i]], distance[i] = distance[parent[i]] + 1;
  }
  Ready balls, hinges, others;
  const auto make_ready = [&](int i) {
    (turns_freely(joint[i]) ? balls : turns_on_axis(joint[i]) ? hinges : others).push({distance[i], i});
  };
  for (int i = 0; i < n; ++i) {
    if (children[i] == 0) make_ready(i);
  }
  std::vector<LinkGroup> groups;
  while (!balls.empty() || !hinges.empty() || !others.empty()) {
    // The larger group first, because the smaller one may still grow.
    const LinkGroup group = !others.empty()                 ? take(others, 1)
                            : balls.size() >= hinges.size() ? take(balls, LinkGroup::kLinks)
                                                            : take(hinges, LinkGroup::kLinks);
    groups.push_back(group);
    for (int k = 0; k < group.count; ++k) {
      const int p = parent[group.link[k]];
      if (p >= 0 && --children[p] == 0) make_ready(p);
    }
  }
  return groups;
}

}  // namespace tarsus
