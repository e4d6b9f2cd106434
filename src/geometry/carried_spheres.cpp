#include "tarsus/geometry/carried_spheres.hpp"

#include <algorithm>

#include "geometry/sweep.hpp"

namespace tarsus {

void CarriedSpheres::add(int carrier, const Vec3d& centre, double radius, double margin) {
  const auto n = static_cast<std::uint32_t>(group_.size());
  const auto put = [n](std::vector<double>& column, double x) {
    column.resize(n + 1 + SphereColumns::kSpare), column[n] = x;
  };
  for (int k = 0; k < 3; ++k) {
    const auto axis = static_cast<std::size_t>(k);
    put(columns_.own[axis], centre[k]), put(columns_.centre[axis], 0), put(columns_.velocity[axis], 0);
  }
  put(columns_.radius, radius), put(columns_.margin, std::max(0.0, margin)), put(columns_.turn, 0),
      put(columns_.speed, 0);
  if (groups_.empty() || groups_.back().carrier != carrier)
    groups_.push_back({.first = n, .last = n, .carrier = carrier, .rotation = identity3<double>()});
  groups_.back().last = n + 1;
  group_.push_back(static_cast<std::uint32_t>(groups_.size() - 1));
}

void CarriedSpheres::list(std::span<const BodyPair> pairs) {
  runs_.clear();
  const auto goes_on = [&](const SphereRun& run, const BodyPair& pair, bool first) {
    const auto [one, other] = first ? pair : BodyPair{pair.second, pair.first};
    return one == run.one && other == run.others + run.count;
  };
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    const auto [first, second] = pairs[p];
    if (!runs_.empty()) {
      SphereRun& run = runs_.back();
      if (run.count == 1 && second == run.others && first == run.one + 1) std::swap(run.one, run.others);
      if (goes_on(run, pairs[p], true) || goes_on(run, pairs[p], false)) {
        ++run.count;
        continue;
      }
    }
    runs_.push_back({first, second, 1, p});
  }
  near_.resize(pairs.size());
}

void CarriedSpheres::place() {
  static const SweepKernels& table = kernels<SweepKernels>();
  table.carry(groups_.data(), groups_.size(), columns_);
}

std::span<const std::uint32_t> CarriedSpheres::near(double h, double fall) {
  static const SweepKernels& table = kernels<SweepKernels>();
  return {near_.data(), table.near(columns_, runs_.data(), runs_.size(), h, fall, near_.data())};
}

}  // namespace tarsus
