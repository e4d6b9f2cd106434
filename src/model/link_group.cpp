#include "tarsus/model/link_group.hpp"

#include <algorithm>

namespace tarsus {

namespace {

/// Takes up to n links out of `ready`: those furthest from the root, which have the most links waiting for them.
LinkGroup take(std::vector<int>& ready, const std::vector<int>& distance, int n) {
  std::sort(ready.begin(), ready.end(),
            [&](int a, int b) { return distance[a] != distance[b] ? distance[a] > distance[b] : a > b; });
  LinkGroup group{std::min(n, int(ready.size())), {}};
  std::fill(std::copy(ready.begin(), ready.begin() + group.count, group.link), group.link + LinkGroup::kLinks,
            ready[0]);
  ready.erase(ready.begin(), ready.begin() + group.count);
  return group;
}

}  // namespace

std::vector<LinkGroup> inward_groups(const std::vector<int>& parent, const std::vector<JointType>& joint) {
  const int n = int(parent.size());
  std::vector<int> children(parent.size()), distance(parent.size());  // children not yet in a group; links to the root
  for (int i = 0; i < n; ++i) {
    if (parent[i] >= 0) ++children[parent[i]], distance[i] = distance[parent[i]] + 1;
  }
  std::vector<int> balls, hinges, others;
  const auto make_ready = [&](int i) {
    (turns_freely(joint[i]) ? balls : turns_on_axis(joint[i]) ? hinges : others).push_back(i);
  };
  for (int i = 0; i < n; ++i) {
    if (children[i] == 0) make_ready(i);
  }
  std::vector<LinkGroup> groups;
  while (!balls.empty() || !hinges.empty() || !others.empty()) {
    // The larger group first: the smaller one may grow meanwhile.
    const LinkGroup group = !others.empty()                 ? take(others, distance, 1)
                            : balls.size() >= hinges.size() ? take(balls, distance, LinkGroup::kLinks)
                                                            : take(hinges, distance, LinkGroup::kLinks);
    groups.push_back(group);
    for (int k = 0; k < group.count; ++k) {
      const int p = parent[group.link[k]];
      if (p >= 0 && --children[p] == 0) make_ready(p);
    }
  }
  return groups;
}

}  // namespace tarsus
