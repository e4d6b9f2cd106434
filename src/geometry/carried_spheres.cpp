#include "tarsus/geometry/carried_spheres.hpp"

#include <algorithm>
#include <cmath>

#include "geometry/sweep.hpp"

namespace tarsus {

void CarriedSpheres::add(int carrier, const Vec3d& centre, double radius, double margin) {
  const auto n = static_cast<std::uint32_t>(group_.size());
  const auto put = [n](std::vector<double>& column, double x) {
    column.resize(n + 1 + SphereColumns::kSpare), column[n] = x;
  };
  for (int k = 0; k < 3; ++k) {
    const auto axis = static_cast<std::size_t>(k);
    put(columns_.own[axis], centre[k]), put(columns_.centre[axis], 0), put(columns_.velocity[axis], 0),
        put(columns_.normal[axis], 0);
  }
  put(columns_.radius, radius), put(columns_.margin, std::max(0.0, margin)), put(columns_.turn, 0),
      put(columns_.speed, 0);
  if (groups_.empty() || groups_.back().carrier != carrier)
    groups_.push_back({.first = n, .last = n, .carrier = carrier, .rotation = identity3<double>()});
  groups_.back().last = n + 1;
  group_.push_back(static_cast<std::uint32_t>(groups_.size() - 1));
}

/// Of a pair with a plane, the plane is `one`.
void CarriedSpheres::list(std::span<const BodyPair> pairs) {
  runs_.clear();
  const auto plane = [&](std::uint32_t i) { return std::isinf(columns_.radius[i]); };
  const auto goes_on = [&](const SphereRun& run, std::uint32_t one, std::uint32_t other) {
    return one == run.one && other == run.others + run.count && !plane(other);
  };
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    const auto [first, second] = pairs[p];
    if (!runs_.empty()) {
      SphereRun& run = runs_.back();
      if (run.count == 1 && second == run.others && first == run.one + 1 && !plane(first) && !plane(run.one))
        std::swap(run.one, run.others);
      if (goes_on(run, first, second) || goes_on(run, second, first)) {
        ++run.count;
        continue;
      }
    }
    runs_.push_back(plane(second) ? SphereRun{second, first, 1, p} : SphereRun{first, second, 1, p});
  }
  near_.resize(pairs.size());
}

void CarriedSpheres::place() {
  static const SweepKernels& table = kernels<SweepKernels>();
  table.carry(groups_.data(), groups_.size(), columns_);
}

void CarriedSpheres::face(std::size_t i, const Vec3d& normal) {
  for (int k = 0; k < 3; ++k) columns_.normal[static_cast<std::size_t>(k)][i] = normal[k];
}

double CarriedSpheres::reach(std::size_t i, std::size_t j, double h, double still) const {
  const Vec3d parting = velocity(i) - velocity(j);
  const double each = still + h * (norm(parting) + turn(i) + turn(j));
  const double turned = h * norm(spin(i) - spin(j));  // of what is midway between two that meet
  if (!(turned < 1)) return each;
  const bool smaller = columns_.radius[i] <= columns_.radius[j];
  const double moved = h * norm(parting + cross(spin(smaller ? j : i), centre(j) - centre(i)));
  return std::min(each, (still + moved + turned * columns_.radius[smaller ? i : j]) / (1 - turned / 2));
}

std::span<const std::uint32_t> CarriedSpheres::near(double h, double fall) {
  static const SweepKernels& table = kernels<SweepKernels>();
  return {near_.data(), table.near(columns_, runs_.data(), runs_.size(), h, fall, near_.data())};
}

}  // namespace tarsus
