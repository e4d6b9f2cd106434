// Points sorted into rows: cells in y and z, sorted along x within a row. Both broad phases use them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tarsus {

/// Maps coordinates to the grid. Monotone in each coordinate, so that the order of points is preserved.
struct RowGrid {
  static constexpr int kBinsInCell = 16;        ///< in x; affects only the order within a row
  static constexpr double kMaxCells = 1 << 20;  ///< in y and z; points beyond share the outermost cell
  static constexpr double kMaxBins = 1 << 24;
  double x0 = 0, y0 = 0, z0 = 0, inverse_cell = 1, inverse_bin = 1, bin_width = 1;
  std::uint64_t stride = 1;  ///< row = z cell * stride + y cell; a gap separates the layers

  static double clamped(double cell, double count) { return cell > 0 ? (cell < count - 1 ? cell : count - 1) : 0; }
  std::int32_t bin(double x) const { return static_cast<std::int32_t>(clamped((x - x0) * inverse_bin, kMaxBins)); }
  std::uint64_t y_cell(double y) const {
    return static_cast<std::uint64_t>(clamped((y - y0) * inverse_cell, kMaxCells)) + 1;
  }
  std::uint64_t z_cell(double z) const {
    return static_cast<std::uint64_t>(clamped((z - z0) * inverse_cell, kMaxCells)) + 1;
  }
};

/// Sorted points. order[k] is the input index of the k-th point.
struct Rows {
  RowGrid grid;
  std::vector<std::uint32_t> order;
  std::vector<std::int32_t> bin;         ///< of x, ascending within a row
  std::vector<std::uint64_t> row;        ///< ascending; only non-empty rows
  std::vector<std::uint32_t> row_begin;  ///< [row.size() + 1]

  /// @param cell at least the largest distance in y or z between potential neighbours; enlarged if the points are
  /// spread over more than 2^18 cells
  void sort(std::span<const double> x, std::span<const double> y, std::span<const double> z, double cell);
  double cell() const { return 1 / grid.inverse_cell; }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint32_t index;
  };
  void radix_sort(int bits);
  std::vector<Entry> entries_, spare_;
  std::vector<double> sample_;
};

}  // namespace tarsus
