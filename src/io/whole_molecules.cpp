#include "io/whole_molecules.hpp"

#include <cmath>

namespace tarsus {

int make_molecules_whole(ParticleSystem& system, const std::vector<std::vector<int>>& linked) {
  const int n = system.particles();
  std::vector<char> seen(n, 0);
  std::vector<int> stack;
  std::vector<double>& x = system.position;
  int count = 0;
  for (int root = 0; root < n; ++root) {
    if (seen[root]) continue;
    seen[root] = 1;
    stack.assign(1, root);
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      for (const int j : linked[i]) {
        if (seen[j]) continue;
        seen[j] = 1;
        stack.push_back(j);
        bool moved = false;
        for (int c = 0; c < 3; ++c) {
          const double length = system.box.length[c];
          const double images = length > 0 ? std::round((x[3 * j + c] - x[3 * i + c]) / length) : 0.0;
          if (images == 0 || !(std::abs(images) < 1e9)) continue;  // so far away the position has no digit left
          x[3 * j + c] -= images * length, moved = true;
        }
        count += moved ? 1 : 0;
      }
    }
  }
  return count;
}

}  // namespace tarsus
