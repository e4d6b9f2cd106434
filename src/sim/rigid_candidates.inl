// Candidates of RigidWorld: pairs of spheres that may touch as long as the candidates are valid, which is several
// steps.
#pragma once

#include <algorithm>

#include "sim/rigid_workspace.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

namespace {

// A complete search is faster than an update below kFewBodies, and above the fractions 1/kMovers and 1/kLoose.
constexpr std::size_t kMovers = 16, kLoose = 24, kFewBodies = 256;
constexpr double kMixed = 3;  // largest radius over the mean: cells would hold too many spheres

std::uint64_t pair_of(int first, int second) {
  return std::uint64_t(std::uint32_t(first)) << 32 | std::uint32_t(second);
}

}  // namespace

/// Finds pairs of spheres, and of spheres and planes, that may come within the margin while no body moves further than
/// half the skin. They are updated only when a body has.
template <class R>
void RigidWorld<R>::find_candidates() {
  Workspace& w = *work_;
  const std::size_t n = w.rounds.size();
  w.shares.resize(at(team_->size()));
  team_->run([&](int thread) {
    const ThreadTeam::Range range = team_->share(int(n), thread);
    double far = 0;
    for (int i = range.begin; i < range.end; ++i) {
      const Vec3d& p = bodies_[at(w.owners[at(i)].body)].position;
      if (w.candidates_valid) {
        const Vec3d d = p - w.found[at(i)];
        far = std::max(far, dot(d, d));
      }
      w.rounds[at(i)].centre = p;
    }
    w.shares[at(thread)].farthest = far;
  });
  double farthest = 0;
  for (const DetectShare& share : w.shares) farthest = std::max(farthest, share.farthest);
  const bool valid = w.candidates_valid && w.found_margin == options_.margin;
  if (valid && 4 * farthest <= w.skin * w.skin) return;
  if (!valid || !update_candidates()) find_all_candidates();
}

/// Finds all candidates from scratch.
template <class R>
void RigidWorld<R>::find_all_candidates() {
  Workspace& w = *work_;
  const std::size_t n = w.rounds.size();
  double smallest = std::numeric_limits<double>::infinity();
  for (const RoundShape& r : w.rounds) smallest = std::min(smallest, r.radius);
  w.skin = n == 0 ? 0 : 0.16 * smallest;
  w.candidates.clear();
  const double reach = options_.margin + w.skin;
  const auto centre = [&](int i) { return w.rounds[at(i)].centre; };
  if (n > 1) {
    auto& [x, y, z, radius] = w.columns;
    for (auto& column : w.columns) column.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const RoundShape& r = w.rounds[i];
      x[i] = r.centre.x, y[i] = r.centre.y, z[i] = r.centre.z, radius[i] = r.radius;
    }
    const SphereContacts& found = w.spheres.find(x, y, z, radius, reach);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int a = int(found.first[i]), b = int(found.second[i]);
      if (w.same_masks || may_touch(shapes_[at(w.owners[at(a)].shape)], shapes_[at(w.owners[at(b)].shape)]))
        w.candidates.push_back({a, b, -1, -1});
    }
  }
  for (int plane = 0; plane < int(w.planes.size()); ++plane) {
    const BodyShape& p = shapes_[at(w.planes[at(plane)])];
    for (int i = 0; i < int(n); ++i) {
      if (within_reach(i, -1 - plane, reach, centre) && may_touch(shapes_[at(w.owners[at(i)].shape)], p))
        w.candidates.push_back({i, -1 - plane, -1, -1});
    }
  }
  group_candidates();
  w.candidates_new = true;
  w.found.resize(n);
  for (std::size_t i = 0; i < n; ++i) w.found[i] = w.rounds[i].centre;
  w.found_margin = options_.margin;
  w.candidates_valid = true, w.grid_valid = false;
}

/// Empties the grid of stored positions. The table of lists has cells as wide as the reach of two shapes.
void RoundGrid::clear(std::size_t n, double width) {
  std::size_t size = 64;
  while (size < 2 * n) size *= 2;
  head_.assign(size, -1), next_.assign(n, -1);
  inverse_width_ = 1 / width;
}

void RoundGrid::insert(int i, const Vec3d& p) {
  int& head = head_[place(index(p.x), index(p.y), index(p.z))];
  next_[at(i)] = head, head = i;
}

void RoundGrid::remove(int i, const Vec3d& p) {
  int* link = &head_[place(index(p.x), index(p.y), index(p.z))];
  while (*link != i) link = &next_[at(*link)];
  *link = next_[at(i)];
}

/// Finds the candidates only of bodies that have moved most of their share of the skin since they were found. The other
/// candidates remain valid, because each pair is tested with the positions at which its two bodies were found.
/// @return false, with nothing changed, if all candidates should be found again
template <class R>
bool RigidWorld<R>::update_candidates() {
  Workspace& w = *work_;
  const std::size_t n = w.rounds.size();
  if (n < kFewBodies || w.loose * kLoose > w.candidates.size()) return false;
  w.movers.clear();
  const double far = 0.25 * w.skin;
  for (std::size_t i = 0; i < n; ++i) {
    const Vec3d d = w.rounds[i].centre - w.found[i];
    if (dot(d, d) > far * far) w.movers.push_back(int(i));
  }
  if (w.movers.size() * kMovers > n) return false;
  if (!w.grid_valid) {
    double largest = 0, sum = 0;
    for (const RoundShape& r : w.rounds) largest = std::max(largest, r.radius), sum += r.radius;
    if (largest * double(n) > kMixed * sum) return false;
    w.grid.clear(n, (2 * largest + options_.margin + w.skin) * (1 + 1e-9));
    for (std::size_t i = 0; i < n; ++i) w.grid.insert(int(i), w.found[i]);
    w.grid_valid = true;
    w.moved.assign(n, 0);
  }
  for (int m : w.movers) {
    const std::size_t i = at(m);
    w.grid.remove(m, w.found[i]);
    w.found[i] = w.rounds[i].centre;
    w.grid.insert(m, w.found[i]);
    w.moved[i] = 1;
  }
  drop_candidates();
  for (int m : w.movers) add_candidates(m);
  for (int m : w.movers) w.moved[at(m)] = 0;
  return true;
}

/// Whether the two shapes of a candidate are within reach. @param place maps a sphere's index to its position
template <class R>
template <class F>
bool RigidWorld<R>::within_reach(int first, int second, double reach, const F& place) const {
  const Workspace& w = *work_;
  const double radius = w.rounds[at(first)].radius;
  if (second < 0) {
    const ShapePose& plane = shapes_[at(w.planes[at(-1 - second)])].local;
    return dot(plane.rotation.column_z(), place(first) - plane.position) - radius <= reach;
  }
  const Vec3d d = place(first) - place(second);
  const double sum = radius + w.rounds[at(second)].radius + reach;
  return dot(d, d) <= sum * sum;
}
template <class R>
bool RigidWorld<R>::were_within_reach(int first, int second) const {
  return within_reach(first, second, options_.margin + work_->skin, [this](int i) { return work_->found[at(i)]; });
}

/// Drops the movers' candidates that are out of reach and records the remaining ones.
template <class R>
void RigidWorld<R>::drop_candidates() {
  Workspace& w = *work_;
  w.kept.clear();
  std::size_t to = 0;
  for (const auto& c : w.candidates) {
    const bool moved = w.moved[at(c.first)] || (c.second >= 0 && w.moved[at(c.second)]);
    if (moved && !were_within_reach(c.first, c.second)) {
      w.loose -= c.slot < 0;
      continue;
    }
    if (moved) w.kept.push_back(pair_of(c.first, c.second));
    w.candidates[to++] = c;
  }
  w.candidates.resize(to);
  std::sort(w.kept.begin(), w.kept.end());
}

/// Adds the mover's new candidates without a slot; the solver gives them their own colours.
template <class R>
void RigidWorld<R>::add_candidates(int mover) {
  Workspace& w = *work_;
  const auto add = [&](int first, int second) {
    if (!were_within_reach(first, second)) return;
    if (std::binary_search(w.kept.begin(), w.kept.end(), pair_of(first, second))) return;
    const int other = second < 0 ? w.planes[at(-1 - second)] : w.owners[at(second)].shape;
    if (!may_touch(shapes_[at(w.owners[at(first)].shape)], shapes_[at(other)])) return;
    w.candidates.push_back({first, second, -1, -1});
    ++w.loose;
  };
  w.grid.around(w.found[at(mover)], [&](int other) {
    // a pair of two movers is added once, by the lower index
    if (other == mover || (w.moved[at(other)] && other < mover)) return;
    add(std::min(mover, other), std::max(mover, other));
  });
  for (int plane = 0; plane < int(w.planes.size()); ++plane) add(mover, -1 - plane);
}

/// Sorts the candidates into groups and slots that remain valid as long as they do. The plane is divided into square
/// cells, four times as wide as the reach of two bodies. A candidate belongs to the cell of its first body. Cells of
/// one phase (odd or even in x, odd or even in y) are a whole cell apart, so they share no body. Within a group the
/// candidates are coloured.
template <class R>
void RigidWorld<R>::group_candidates() {
  Workspace& w = *work_;
  const std::size_t n = w.rounds.size();
  double largest = 0;
  for (const RoundShape& r : w.rounds) largest = std::max(largest, r.radius);
  const double width = 4 * (2 * largest + options_.margin + w.skin);
  const auto index = [&](double x) { return std::uint64_t(std::int64_t(std::clamp(x / width, -1e8, 1e8) + 2e8)); };
  w.cell.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t cx = index(w.rounds[i].centre.x), cy = index(w.rounds[i].centre.y);
    w.cell[i] = (2 * (cy & 1) + (cx & 1)) << 60 | cy << 30 | cx;
  }
  w.cells = w.cell;
  std::sort(w.cells.begin(), w.cells.end());
  w.cells.erase(std::unique(w.cells.begin(), w.cells.end()), w.cells.end());
  for (std::size_t i = 0; i < n; ++i)
    w.cell[i] = std::uint64_t(std::lower_bound(w.cells.begin(), w.cells.end(), w.cell[i]) - w.cells.begin());
  std::vector<std::size_t> next(w.cells.size() + 1, 0);  // counting sort by group
  for (const auto& c : w.candidates) ++next[w.cell[at(c.first)] + 1];
  for (std::size_t g = 0; g < w.cells.size(); ++g) next[g + 1] += next[g];
  w.sorted.resize(w.candidates.size());
  for (const auto& c : w.candidates) w.sorted[next[w.cell[at(c.first)]]++] = c;
  w.candidates.swap(w.sorted);

  std::vector<ContactGroup> groups(w.cells.size());
  std::size_t k = 0;
  int first_slot = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g] = {int(w.cells[g] >> 60), first_slot, 0};
    if (g == 0 || groups[g].phase != groups[g - 1].phase) w.used.assign(n, 0);
    for (; k < w.candidates.size() && w.cell[at(w.candidates[k].first)] == g; ++k) {
      auto& c = w.candidates[k];
      std::uint64_t taken = w.used[at(c.first)];
      if (c.second >= 0) taken |= w.used[at(c.second)];
      if (~taken == 0) continue;  // stays without a slot; the solver finds one
      const int colour = __builtin_ctzll(~taken);
      c.slot = first_slot + colour;
      groups[g].slots = std::max(groups[g].slots, colour + 1);
      w.used[at(c.first)] |= 1ull << colour;
      if (c.second >= 0) w.used[at(c.second)] |= 1ull << colour;
    }
    first_slot += groups[g].slots;
  }
  // Sort by slot, the solver's order, so that memory is read sequentially.
  const auto key = [&](const auto& c) { return at(c.slot < 0 ? first_slot : c.slot); };
  next.assign(at(first_slot) + 2, 0);
  for (const auto& c : w.candidates) ++next[key(c) + 1];
  for (std::size_t slot = 0; slot + 1 < next.size(); ++slot) next[slot + 1] += next[slot];
  for (const auto& c : w.candidates) w.sorted[next[key(c)]++] = c;
  w.candidates.swap(w.sorted);
  w.loose = 0;
  for (const auto& c : w.candidates) w.loose += c.slot < 0;
  lanes_.set_groups(std::move(groups));
}

}  // namespace tarsus
