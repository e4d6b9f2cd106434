#include "tarsus/geometry/carried_spheres.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "geometry/sweep.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kWorthIt = 12;  ///< packs of pairs per group above which bounding spheres are worthwhile

std::size_t packs(const std::vector<SphereRun>& runs) {
  std::size_t sum = 0;
  for (const SphereRun& run : runs) sum += (run.count + 3) / 4;
  return sum;
}

/// Appends the i-th sphere.
void put(SphereColumns& to, std::size_t i, const Vec3d& centre, double radius, double margin) {
  const auto number = [i](std::vector<double>& column, double x) {
    column.resize(i + 1 + SphereColumns::kSpare), column[i] = x;
  };
  for (std::size_t k = 0; k < 3; ++k) {
    number(to.own[k], centre[int(k)]), number(to.centre[k], 0), number(to.velocity[k], 0), number(to.normal[k], 0);
  }
  number(to.radius, radius), number(to.margin, std::max(0.0, margin)), number(to.turn, 0), number(to.speed, 0);
}

}  // namespace

void CarriedSpheres::add(int carrier, const Vec3d& centre, double radius, double margin) {
  const auto n = static_cast<std::uint32_t>(group_.size());
  put(columns_, n, centre, radius, margin);
  if (groups_.empty() || groups_.back().carrier != carrier)
    groups_.push_back({.first = n, .last = n, .carrier = carrier, .rotation = identity3<double>()});
  groups_.back().last = n + 1;
  group_.push_back(static_cast<std::uint32_t>(groups_.size() - 1));
}

/// Runs of pairs of one sphere with consecutive spheres of one group. In a pair with a plane, the plane is `one`.
/// @param apart [pair] or empty  @param group [sphere]  @param around index of a pair of groups
template <class F>
static std::vector<SphereRun> runs_of(std::span<const BodyPair> pairs, std::span<const unsigned char> apart,
                                      const SphereColumns& columns, std::span<const std::uint32_t> group,
                                      const F& around) {
  std::vector<SphereRun> runs;
  const auto plane = [&](std::uint32_t i) { return std::isinf(columns.radius[i]); };
  const auto goes_on = [&](const SphereRun& run, std::uint32_t one, std::uint32_t other) {
    return one == run.one && other == run.others + run.count && !plane(other) && group[other] == group[run.others];
  };
  for (std::uint32_t p = 0; p < pairs.size(); ++p) {
    const auto [first, second] = pairs[p];
    const bool parts = !apart.empty() && apart[p];
    if (!runs.empty() && runs.back().apart == parts) {
      SphereRun& run = runs.back();
      if (run.count == 1 && second == run.others && first == run.one + 1 && group[first] == group[run.one] &&
          !plane(first) && !plane(run.one))
        std::swap(run.one, run.others);
      if (goes_on(run, first, second) || goes_on(run, second, first)) {
        ++run.count;
        continue;
      }
    }
    runs.push_back(plane(second) ? SphereRun{second, first, 1, p, parts} : SphereRun{first, second, 1, p, parts});
    if (!plane(runs.back().one)) runs.back().around = around(group[first], group[second]);
  }
  return runs;
}

/// Sets the bounding spheres of the groups, with separate margins.
void CarriedSpheres::put_around() {
  around_.columns = {}, around_.groups.clear();
  for (const SphereGroup& group : groups_) {
    constexpr double kFar = std::numeric_limits<double>::infinity();
    Vec3d low{kFar, kFar, kFar}, high = -low;
    const auto each = [&](const auto& f) {
      for (std::uint32_t i = group.first; i < group.last; ++i) {
        if (!std::isinf(columns_.radius[i])) f(i, at(columns_.own, i));
      }
    };
    each([&](std::uint32_t, const Vec3d& c) {
      for (int k = 0; k < 3; ++k) low[k] = std::min(low[k], c[k]), high[k] = std::max(high[k], c[k]);
    });
    const Vec3d centre = low.x <= high.x ? (low + high) * 0.5 : Vec3d{0, 0, 0};
    double radius = 0, margin = 0;
    each([&](std::uint32_t i, const Vec3d& c) {
      radius = std::max(radius, norm(c - centre) + columns_.radius[i]), margin = std::max(margin, columns_.margin[i]);
    });
    const auto n = static_cast<std::uint32_t>(around_.groups.size());
    put(around_.columns, n, centre, radius, margin);
    around_.groups.push_back({.first = n, .last = n + 1, .carrier = group.carrier, .rotation = group.rotation});
  }
}

void CarriedSpheres::list(std::span<const BodyPair> pairs, std::span<const unsigned char> apart) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> of_groups;
  const auto ordered = [](std::uint32_t a, std::uint32_t b) { return std::pair(std::min(a, b), std::max(a, b)); };
  for (const auto [i, j] : pairs) of_groups[ordered(group_[i], group_[j])] = 0;
  std::vector<BodyPair> groups;
  for (auto& [pair, index] : of_groups)
    groups.push_back({pair.first, pair.second}), index = std::uint32_t(groups.size());
  std::vector<unsigned char> groups_apart(groups.size(), 0);
  for (std::size_t p = 0; p < apart.size(); ++p)
    groups_apart[of_groups[ordered(group_[pairs[p].first], group_[pairs[p].second])] - 1] |= apart[p];
  near_.resize(pairs.size());
  put_around();
  const auto always = [](auto, auto) { return 0u; };
  const std::vector<std::uint32_t> same(group_.size(), 0);
  around_.runs = runs_of(groups, groups_apart, around_.columns, same, always);
  around_.near.resize(groups.size()), around_.on.assign(groups.size() + 1, 1);
  runs_ = runs_of(pairs, apart, columns_, group_, [&](auto a, auto b) { return of_groups[ordered(a, b)]; });
  if (packs(runs_) >= packs(around_.runs) + kWorthIt * groups_.size()) return;
  around_.runs.clear();
  runs_ = runs_of(pairs, apart, columns_, same, always);
}

void CarriedSpheres::place() {
  static const SweepKernels& table = kernels<SweepKernels>();
  table.carry(groups_.data(), groups_.size(), columns_);
  if (around_.runs.empty()) return;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const SphereGroup& from = groups_[g];
    SphereGroup& to = around_.groups[g];
    to.rotation = from.rotation, to.position = from.position, to.velocity = from.velocity, to.spin = from.spin;
  }
  table.carry(around_.groups.data(), around_.groups.size(), around_.columns);
}

void CarriedSpheres::face(std::size_t i, const Vec3d& normal) {
  for (int k = 0; k < 3; ++k) columns_.normal[static_cast<std::size_t>(k)][i] = normal[k];
}

double reach(const MovingSphere& a, const MovingSphere& b, double h, double still) {
  const Vec3d parting = a.velocity - b.velocity;
  const double each = still + h * (norm(parting) + a.turn + b.turn);
  const double turned = h * norm(a.spin - b.spin);  // of the point midway between two spheres in contact
  if (!(turned < 1)) return each;
  const bool smaller = a.radius <= b.radius;
  const double moved = h * norm(parting + cross((smaller ? b : a).spin, b.centre - a.centre));
  return std::min(each, (still + moved + turned * (smaller ? a : b).radius) / (1 - turned / 2));
}

std::span<const std::uint32_t> CarriedSpheres::near(double h, double fall) {
  static const SweepKernels& table = kernels<SweepKernels>();
  const auto look = [&](const SphereColumns& spheres, const std::vector<SphereRun>& runs, const unsigned char* on,
                        std::vector<std::uint32_t>& found) {
    return std::span<const std::uint32_t>(found.data(),
                                          table.near(spheres, runs.data(), runs.size(), on, h, fall, found.data()));
  };
  static constexpr unsigned char kAlways = 1;
  if (!around_.runs.empty()) {
    std::fill(around_.on.begin() + 1, around_.on.end(), 0);
    for (const std::uint32_t pair : look(around_.columns, around_.runs, &kAlways, around_.near))
      around_.on[pair + 1] = 1;
  }
  return look(columns_, runs_, around_.on.data(), near_);
}

}  // namespace tarsus
