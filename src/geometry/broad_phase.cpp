#include "tarsus/geometry/broad_phase.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "geometry/sweep.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kFew = 16;  // up to this many boxes of one size, comparing all pairs is faster than rows
constexpr int kMaxClasses = 32;   // size classes, a factor of two each; smaller boxes share the last

double extent(const Aabb& box) {
  const Vec3d d = box.upper - box.lower;
  return std::max({d.x, d.y, d.z});
}

bool is_finite(const Aabb& b) {
  const auto good = [](const Vec3d& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); };
  return good(b.lower) && good(b.upper) && std::isfinite(extent(b));
}

bool is_nan(const Aabb& b) {
  const auto bad = [](const Vec3d& v) { return std::isnan(v.x) || std::isnan(v.y) || std::isnan(v.z); };
  return bad(b.lower) || bad(b.upper);
}

/// A size class, sorted into rows.
struct SizeClass {
  std::vector<std::uint32_t> members;
  std::vector<double> x, y, z;  ///< lower corners, in the order of the members
  std::array<std::vector<double>, 6> sorted;
  Rows rows;
  double largest = 0, largest_y = 0, largest_z = 0;
  BoxRows view{};
  int group = -1;  ///< that of all members; -1: they have several, or one has none
  bool sorted_now = false;

  void sort(std::span<const Aabb> boxes);
};

void SizeClass::sort(std::span<const Aabb> boxes) {
  if (std::exchange(sorted_now, true)) return;
  const std::size_t n = members.size();
  x.resize(n), y.resize(n), z.resize(n);
  Vec3d most{0, 0, 0};
  for (std::size_t k = 0; k < n; ++k) {
    const Aabb& b = boxes[members[k]];
    x[k] = b.lower.x, y[k] = b.lower.y, z[k] = b.lower.z;
    for (int i = 0; i < 3; ++i) most[i] = std::max(most[i], b.upper[i] - b.lower[i]);
  }
  // Slightly larger, so that rounding cannot put neighbours two cells apart.
  largest = most.x * (1 + 1e-9), largest_y = most.y, largest_z = most.z;
  rows.sort(x, y, z, std::max(most.y, most.z) * (1 + 1e-9));
  for (auto& column : sorted) column.resize(n + kSweepPadding);
  for (std::size_t k = 0; k < n; ++k) {
    std::uint32_t& index = rows.order[k];
    index = members[index];
    const Aabb& b = boxes[index];
    for (std::size_t i = 0; i < 3; ++i) {
      sorted[i][k] = b.lower[static_cast<int>(i)];
      sorted[i + 3][k] = b.upper[static_cast<int>(i)];
    }
  }
  for (auto& column : sorted) std::fill(column.begin() + static_cast<std::ptrdiff_t>(n), column.end(), 0.0);
  view = {sorted[0].data(), sorted[1].data(), sorted[2].data(), sorted[3].data(), sorted[4].data(),
          sorted[5].data(), rows.bin.data(),  &rows.grid,       largest};
}

}  // namespace

struct BroadPhase::Workspace {
  std::array<SizeClass, kMaxClasses> classes;
  std::vector<int> exponent;         ///< [n] class of each box, -1: compared with all, -2: none
  std::vector<std::uint32_t> apart;  ///< boxes compared with all
  std::vector<BodyPair> found, pairs;
  const SweepKernels* kernels = &tarsus::kernels<SweepKernels>();
  std::span<const int> groups;
  int class_count = 0;

  void classify(std::span<const Aabb> boxes);
  void find_groups();
  void add(std::uint32_t i, std::uint32_t j) {
    if (!groups.empty() && groups[i] >= 0 && groups[i] == groups[j]) return;
    pairs.push_back({std::min(i, j), std::max(i, j)});
  }
  void sweep_class(SizeClass& c);
  void sweep_classes(SizeClass& fine, SizeClass& coarse);
  void compare_apart(std::span<const Aabb> boxes);
};

void BroadPhase::Workspace::classify(std::span<const Aabb> boxes) {
  // Number of boxes for each binary exponent, from the largest down.
  constexpr int kLowest = -1100, kExponents = 2200;
  static_assert(std::numeric_limits<double>::max_exponent - kLowest < kExponents);
  std::array<std::uint32_t, kExponents> count{};
  std::array<std::int8_t, kExponents> class_of;
  exponent.resize(boxes.size());
  apart.clear();
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const double e = extent(boxes[i]);
    int& slot = exponent[i];
    if (is_nan(boxes[i]))
      slot = -2;
    else if (!is_finite(boxes[i]))
      slot = -1;
    else
      slot = e > 0 ? std::ilogb(e) - kLowest : 0;
    if (slot >= 0) ++count[static_cast<std::size_t>(slot)];
  }
  class_count = 0;
  for (int k = kExponents - 1; k >= 0; --k) {
    const auto slot = static_cast<std::size_t>(k);
    if (count[slot] == 0) continue;
    const bool few = count[slot] <= kFew && boxes.size() > 4 * kFew;
    class_of[slot] = few ? -1 : static_cast<std::int8_t>(std::min(class_count++, kMaxClasses - 1));
  }
  class_count = std::min(class_count, kMaxClasses);
  for (SizeClass& c : classes) c.members.clear(), c.sorted_now = false;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (exponent[i] >= 0) exponent[i] = class_of[static_cast<std::size_t>(exponent[i])];
    if (exponent[i] >= 0)
      classes[static_cast<std::size_t>(exponent[i])].members.push_back(static_cast<std::uint32_t>(i));
    if (exponent[i] == -1) apart.push_back(static_cast<std::uint32_t>(i));
  }
}

/// Finds the classes that need no sweep of their own.
void BroadPhase::Workspace::find_groups() {
  for (SizeClass& c : classes) {
    c.group = groups.empty() || c.members.empty() ? -1 : groups[c.members[0]];
    for (const std::uint32_t i : c.members) {
      if (c.group < 0) break;
      if (groups[i] != c.group) c.group = -1;
    }
  }
}

void BroadPhase::Workspace::sweep_class(SizeClass& c) {
  PairBuffer buffer = buffer_of(found);
  struct Context {
    const SweepKernels& kernels;
    const BoxRows& view;
    PairBuffer& out;
  } context{*kernels, c.view, buffer};
  sweep_neighbours(
      c.rows,
      [](void* p, Stretch i, Stretch j, bool same) {
        const auto& [kernels, view, out] = *static_cast<Context*>(p);
        kernels.boxes(view, i, view, j, same, out);
      },
      &context);
  for (std::size_t k = 0; k < buffer.count; ++k) add(c.rows.order[found[k].first], c.rows.order[found[k].second]);
}

void BroadPhase::Workspace::sweep_classes(SizeClass& fine, SizeClass& coarse) {
  PairBuffer buffer = buffer_of(found);
  const RowGrid& grid = coarse.rows.grid;
  const auto& rows = coarse.rows.row;
  for (std::size_t r = 0; r < fine.rows.row.size(); ++r) {
    const Stretch mine{fine.rows.row_begin[r], fine.rows.row_begin[r + 1]};
    // The lower corners of coarse boxes that may reach this row lie between one box size before it and its far side.
    double low_y = fine.sorted[1][mine.begin], high_y = low_y, low_z = fine.sorted[2][mine.begin], high_z = low_z;
    for (std::uint32_t i = mine.begin; i < mine.end; ++i) {
      low_y = std::min(low_y, fine.sorted[1][i]), high_y = std::max(high_y, fine.sorted[4][i]);
      low_z = std::min(low_z, fine.sorted[2][i]), high_z = std::max(high_z, fine.sorted[5][i]);
    }
    const std::uint64_t y0 = std::min(grid.y_cell(low_y - coarse.largest_y * (1 + 1e-9)), grid.stride - 1);
    const std::uint64_t y1 = std::min(grid.y_cell(high_y), grid.stride - 1);
    const std::uint64_t z0 = grid.z_cell(low_z - coarse.largest_z * (1 + 1e-9)), z1 = grid.z_cell(high_z);
    // Rows are ordered by z, then y: skip from layer to layer.
    for (auto at = std::lower_bound(rows.begin(), rows.end(), z0 * grid.stride + y0); at != rows.end();) {
      const std::uint64_t z = *at / grid.stride, y = *at % grid.stride;
      if (z > z1) break;
      if (y < y0 || y > y1) {
        at = std::lower_bound(at, rows.end(), (y < y0 ? z : z + 1) * grid.stride + y0);
        continue;
      }
      const auto k = static_cast<std::size_t>(at++ - rows.begin());
      kernels->boxes(fine.view, mine, coarse.view, {coarse.rows.row_begin[k], coarse.rows.row_begin[k + 1]}, false,
                     buffer);
    }
  }
  for (std::size_t k = 0; k < buffer.count; ++k)
    add(fine.rows.order[found[k].first], coarse.rows.order[found[k].second]);
}

void BroadPhase::Workspace::compare_apart(std::span<const Aabb> boxes) {
  for (std::size_t k = 0; k < apart.size(); ++k) {
    const std::uint32_t i = apart[k];
    for (std::uint32_t j = 0; j < boxes.size(); ++j) {
      // Two boxes that are compared with all meet here twice.
      if (exponent[j] < 0 && (exponent[j] == -2 || j <= i)) continue;
      if (overlap(boxes[i], boxes[j])) add(i, j);
    }
  }
}

BroadPhase::BroadPhase() : work_(std::make_unique<Workspace>()) {}
BroadPhase::~BroadPhase() = default;
BroadPhase::BroadPhase(BroadPhase&&) noexcept = default;
BroadPhase& BroadPhase::operator=(BroadPhase&&) noexcept = default;

std::span<const BodyPair> BroadPhase::find(std::span<const Aabb> boxes, std::span<const int> groups) {
  if (!groups.empty()) check_size("groups", groups.size(), boxes.size());
  Workspace& w = *work_;
  w.groups = groups;
  w.pairs.clear();
  w.classify(boxes);
  w.find_groups();
  for (int c = 0; c < w.class_count; ++c) {
    SizeClass& mine = w.classes[static_cast<std::size_t>(c)];
    if (mine.group < 0) mine.sort(boxes), w.sweep_class(mine);
    for (int coarser = 0; coarser < c; ++coarser) {
      SizeClass& other = w.classes[static_cast<std::size_t>(coarser)];
      if (mine.group >= 0 && mine.group == other.group) continue;
      mine.sort(boxes), other.sort(boxes);
      w.sweep_classes(mine, other);
    }
  }
  w.compare_apart(boxes);
  return w.pairs;
}

}  // namespace tarsus
