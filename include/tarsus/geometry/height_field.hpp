// A terrain: heights on a rectangular grid of points, two triangles per cell, solid down to its base.
#pragma once

#include <span>
#include <vector>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

class HeightField {
 public:
  /// @param heights [rows · columns] z of each point [m], row by row. Column c has x = (2 c/(columns - 1) - 1) half_x,
  /// row r has y = (2 r/(rows - 1) - 1) half_y.
  /// @param half_x, half_y half of its extents [m]  @param base depth of its flat bottom below z = 0 [m]
  /// @throws ValueError if there are fewer than 2 x 2 points, a size is not positive or a number is not finite
  /// @throws ShapeError if heights has another size
  HeightField(int rows, int columns, std::span<const double> heights, double half_x, double half_y, double base);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  double base() const { return base_; }     ///< [m]
  const Aabb& box() const { return box_; }  ///< bounding box in its own frame [m], down to the bottom
  /// z of a point, and the point, in its own frame [m].
  double height(int row, int column) const {
    return heights_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                    static_cast<std::size_t>(column)];
  }
  Vec3d point(int row, int column) const {
    return {column * step_x_ - half_x_, row * step_y_ - half_y_, height(row, column)};
  }
  /// Column of the cell that contains x (row for y), clamped to the grid.
  int column_at(double x) const;
  int row_at(double y) const;

 private:
  int rows_, columns_;
  double half_x_, half_y_, base_, step_x_, step_y_;
  std::vector<double> heights_;
  Aabb box_;
};

}  // namespace tarsus
