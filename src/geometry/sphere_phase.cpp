#include "tarsus/geometry/sphere_phase.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "geometry/sweep.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/geometry/broad_phase.hpp"

namespace tarsus {

namespace {
// Above this ratio of radii, rows of a single size are inefficient and boxes sorted by size are faster.
constexpr double kMixed = 3;
}  // namespace

struct SpherePhase::Workspace {
  std::vector<std::uint32_t> used;
  std::array<std::vector<double>, 4> given, sorted;  ///< x, y, z, radius
  Rows rows;
  BroadPhase boxes;
  std::vector<Aabb> bounds;
  std::vector<BodyPair> found;
  std::size_t count = 0;                            ///< of the pairs found
  SphereRows view{};                                ///< the spheres, as `found` counts them
  const std::vector<std::uint32_t>* index = &used;  ///< of those in the input
  SphereContacts contacts;
  const SweepKernels* kernels = &tarsus::kernels<SweepKernels>();

  void select(const std::array<std::span<const double>, 4>& columns);
  void sweep_rows(double largest, double margin);
  void sweep_boxes(double margin);
  void search(const std::array<std::span<const double>, 4>& columns, double margin);
  void write();
};

/// Selects the spheres that may have contacts.
void SpherePhase::Workspace::select(const std::array<std::span<const double>, 4>& columns) {
  used.clear();
  for (auto& column : given) column.clear();
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    const double x = columns[0][i], y = columns[1][i], z = columns[2][i], r = columns[3][i];
    if (!(r >= 0) || !((x - x) + (y - y) + (z - z) + (r - r) == 0)) continue;
    used.push_back(static_cast<std::uint32_t>(i));
    for (std::size_t k = 0; k < 4; ++k) given[k].push_back(columns[k][i]);
  }
}

void SpherePhase::Workspace::sweep_rows(double largest, double margin) {
  const double reach = (2 * largest + margin) * (1 + 1e-9);
  rows.sort(given[0], given[1], given[2], reach);
  const std::size_t n = rows.order.size();
  for (std::size_t k = 0; k < 4; ++k) {
    sorted[k].resize(n + kSweepPadding);
    for (std::size_t i = 0; i < n; ++i) sorted[k][i] = given[k][rows.order[i]];
    std::fill(sorted[k].begin() + static_cast<std::ptrdiff_t>(n), sorted[k].end(), 0.0);
  }
  for (std::uint32_t& i : rows.order) i = used[i];
  view = {sorted[0].data(),
          sorted[1].data(),
          sorted[2].data(),
          sorted[3].data(),
          rows.bin.data(),
          &rows.grid,
          reach,
          margin};
  PairBuffer buffer = buffer_of(found);
  struct Context {
    const SweepKernels& kernels;
    const SphereRows& view;
    PairBuffer& out;
  } context{*kernels, view, buffer};
  sweep_neighbours(
      rows,
      [](void* p, Stretch i, Stretch j, bool same) {
        const auto& [kernels, spheres, out] = *static_cast<Context*>(p);
        kernels.spheres(spheres, i, j, same, out);
      },
      &context);
  count = buffer.count, index = &rows.order;
}

void SpherePhase::Workspace::sweep_boxes(double margin) {
  const std::size_t n = used.size();
  bounds.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double r = (given[3][i] + margin / 2) * (1 + 1e-9);
    const Vec3d centre{given[0][i], given[1][i], given[2][i]}, reach{r, r, r};
    bounds[i] = {centre - reach, centre + reach};
  }
  view = {given[0].data(), given[1].data(), given[2].data(), given[3].data(), nullptr, nullptr, 0, margin};
  const auto pairs = boxes.find(bounds);
  found.resize(pairs.size() + kSweepPadding);
  for (const BodyPair& p : pairs) {
    const double dx = given[0][p.first] - given[0][p.second], dy = given[1][p.first] - given[1][p.second];
    const double dz = given[2][p.first] - given[2][p.second], sum = given[3][p.first] + given[3][p.second] + margin;
    if (dx * dx + dy * dy + dz * dz <= sum * sum) found[count++] = p;
  }
}

/// Finds the pairs within the margin; in each, the sphere that comes first in the input is put first.
void SpherePhase::Workspace::search(const std::array<std::span<const double>, 4>& columns, double margin) {
  constexpr const char* kNames[] = {"x", "y", "z", "radius"};
  for (std::size_t k = 1; k < 4; ++k) check_size(kNames[k], columns[k].size(), columns[0].size());
  select(columns);
  count = 0, view = {}, index = &used;
  const std::vector<double>& r = given[3];
  if (r.empty() || !(margin >= 0) || !std::isfinite(margin)) return;
  const double largest = *std::max_element(r.begin(), r.end());
  double sum = 0;
  for (const double each : r) sum += each;
  if (largest <= kMixed * sum / static_cast<double>(r.size()))
    sweep_rows(largest, margin);
  else
    sweep_boxes(margin);
  for (std::size_t k = 0; k < count; ++k) {
    BodyPair& p = found[k];
    if ((*index)[p.first] > (*index)[p.second]) std::swap(p.first, p.second);
  }
}

void SpherePhase::Workspace::write() {
  SphereContacts& c = contacts;
  for (auto* column : {&c.normal_x, &c.normal_y, &c.normal_z, &c.distance}) column->resize(count + kSweepPadding);
  c.first.resize(count);
  c.second.resize(count);
  if (count > 0) {
    for (std::size_t k = 0; k < count; ++k) {
      c.first[k] = (*index)[found[k].first];
      c.second[k] = (*index)[found[k].second];
    }
    found.resize(std::max(found.size(), count + kSweepPadding));
    for (std::size_t k = count; k < count + kSweepPadding; ++k) found[k] = found[0];  // read by the last pack
    kernels->contacts(view, found.data(), count,
                      {c.normal_x.data(), c.normal_y.data(), c.normal_z.data(), c.distance.data()});
  }
  for (auto* column : {&c.normal_x, &c.normal_y, &c.normal_z, &c.distance}) column->resize(count);
}

SpherePhase::SpherePhase() : work_(std::make_unique<Workspace>()) {}
SpherePhase::~SpherePhase() = default;
SpherePhase::SpherePhase(SpherePhase&&) noexcept = default;
SpherePhase& SpherePhase::operator=(SpherePhase&&) noexcept = default;

const SphereContacts& SpherePhase::find(std::span<const double> x, std::span<const double> y, std::span<const double> z,
                                        std::span<const double> radius, double margin) {
  Workspace& w = *work_;
  w.search({x, y, z, radius}, margin);
  w.write();
  return w.contacts;
}

std::span<const BodyPair> SpherePhase::pairs(std::span<const double> x, std::span<const double> y,
                                             std::span<const double> z, std::span<const double> radius, double margin) {
  Workspace& w = *work_;
  w.search({x, y, z, radius}, margin);
  const std::span<BodyPair> all(w.found.data(), w.count);
  for (BodyPair& p : all) p = {(*w.index)[p.first], (*w.index)[p.second]};
  return all;
}

}  // namespace tarsus
