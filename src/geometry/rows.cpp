#include "geometry/rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace tarsus {

namespace {

constexpr int kDigit = 11;  // bits per pass: 2,048 counters stay in the first-level cache

/// The range of nearly all values, from a sample: a body that has flown off must not stretch the grid.
struct Range {
  double low, high;
};
Range usual_range(std::span<const double> v, std::vector<double>& sample) {
  constexpr std::size_t kSample = 512;
  const std::size_t stride = v.size() / kSample + 1;
  sample.clear();
  for (std::size_t i = 0; i < v.size(); i += stride) sample.push_back(v[i]);
  const std::size_t cut = sample.size() / 16;
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(cut), sample.end());
  const double low = sample[cut];
  std::nth_element(sample.begin(), sample.end() - 1 - static_cast<std::ptrdiff_t>(cut), sample.end());
  return {low, sample[sample.size() - 1 - cut]};
}

}  // namespace

void Rows::radix_sort(int bits) {
  spare_.resize(entries_.size());
  std::array<std::uint32_t, 1 << kDigit> place;
  for (int shift = 0; shift < bits; shift += kDigit) {
    constexpr std::uint64_t kMask = (1u << kDigit) - 1;
    place.fill(0);
    for (const Entry& e : entries_) ++place[(e.key >> shift) & kMask];
    std::uint32_t sum = 0;
    for (std::uint32_t& p : place) sum += std::exchange(p, sum);
    for (const Entry& e : entries_) spare_[place[(e.key >> shift) & kMask]++] = e;
    entries_.swap(spare_);
  }
}

void Rows::sort(std::span<const double> x, std::span<const double> y, std::span<const double> z, double cell) {
  const std::size_t n = x.size();
  order.resize(n);
  bin.resize(n);
  row.clear();
  row_begin.clear();
  if (n == 0) {
    row_begin.push_back(0);
    return;
  }
  const Range rx = usual_range(x, sample_), ry = usual_range(y, sample_), rz = usual_range(z, sample_);
  const double spread = std::max({rx.high - rx.low, ry.high - ry.low, rz.high - rz.low});
  cell = std::max({cell, spread / (1 << 18), 1e-150});
  grid.inverse_cell = 1 / cell;
  grid.inverse_bin = RowGrid::kBinsInCell / cell;
  grid.bin_width = cell / RowGrid::kBinsInCell;
  // Centres the usual range in the grid's range, or puts it at its start if all values fit behind the smallest.
  const auto origin = [&](std::span<const double> v, const Range& r, double count, double width) {
    const double least = *std::min_element(v.begin(), v.end());
    return std::max(least, (r.low + r.high) / 2 - count * width / 2);
  };
  grid.x0 = origin(x, rx, RowGrid::kMaxBins, cell / RowGrid::kBinsInCell);
  grid.y0 = origin(y, ry, RowGrid::kMaxCells, cell);
  grid.z0 = origin(z, rz, RowGrid::kMaxCells, cell);

  const double top_x = *std::max_element(x.begin(), x.end()), top_y = *std::max_element(y.begin(), y.end()),
               top_z = *std::max_element(z.begin(), z.end());
  grid.stride = grid.y_cell(top_y) + 2;
  const int bin_bits = std::bit_width(static_cast<std::uint32_t>(grid.bin(top_x)));
  const int row_bits = std::bit_width(grid.z_cell(top_z) * grid.stride + grid.y_cell(top_y));
  entries_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t r = grid.z_cell(z[i]) * grid.stride + grid.y_cell(y[i]);
    entries_[i] = {(r << bin_bits) | static_cast<std::uint64_t>(grid.bin(x[i])), static_cast<std::uint32_t>(i)};
  }
  radix_sort(bin_bits + row_bits);
  for (std::size_t i = 0; i < n; ++i) {
    const Entry& e = entries_[i];
    order[i] = e.index;
    bin[i] = static_cast<std::int32_t>(e.key & ((std::uint64_t{1} << bin_bits) - 1));
    const std::uint64_t r = e.key >> bin_bits;
    if (row.empty() || row.back() != r) {
      row.push_back(r);
      row_begin.push_back(static_cast<std::uint32_t>(i));
    }
  }
  row_begin.push_back(static_cast<std::uint32_t>(n));
}

}  // namespace tarsus
