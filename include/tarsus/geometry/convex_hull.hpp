// A convex polyhedron ready for collision: the hull of points, its flat faces and the neighbours of each vertex.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

class ConvexHull {
 public:
  /// Triangles that lie in one plane are one face. O(n log n), by qhull.
  /// @throws ValueError if the points span no volume or one is not finite
  explicit ConvexHull(std::span<const Vec3d> points);

  struct Face {
    Vec3d normal{0, 0, 1};  ///< unit, outward
    double offset = 0;      ///< normal · x of its plane [m]
    int first = 0, count = 0;
  };

  /// Corners only: points inside are gone. Those that stand out into like directions are near one another.
  std::span<const Vec3d> vertices() const { return vertices_; }
  std::span<const Face> faces() const { return faces_; }
  /// Vertex indices, counter-clockwise from outside.
  std::span<const int> corners(const Face& face) const {
    return {corners_.data() + face.first, static_cast<std::size_t>(face.count)};
  }
  /// Box around the vertices.
  const Aabb& box() const { return box_; }
  /// The mean of the vertices, a point inside.
  const Vec3d& centre() const { return centre_; }

  /// The vertex farthest along `direction`: the best of those that a table has for directions near it.
  int support(const Vec3d& direction) const;
  /// The face whose normal is nearest to `direction`, among those at the vertex farthest along it.
  int face_towards(const Vec3d& direction) const { return face_at(support(direction), direction); }
  /// The same where that vertex is known.
  int face_at(int vertex, const Vec3d& direction) const;

 private:
  /// Directions through a square of a cube's face: the vertices that are farthest along any of them, or four quarters.
  struct Cell {
    int first = 0, count = 0;  ///< of farthest_; 0: of cells_
  };
  struct Square;
  void find_faces(const std::vector<Triangle>& triangles);
  void find_farthest(std::vector<Triangle>& triangles);
  void fill(std::size_t cell, const Square& square, const std::vector<int>& among);

  std::vector<Vec3d> vertices_;
  std::vector<Face> faces_;
  std::vector<int> corners_;
  std::vector<Cell> cells_;  ///< first a grid on each of the cube's faces
  std::vector<int> farthest_;
  std::vector<int> face_first_, vertex_faces_;  ///< faces at each vertex
  Aabb box_;
  Vec3d centre_{0, 0, 0};
};

/// The hull of these points, one for all who ask for it: a robot's take a tenth of a second. Hulls that nobody has any
/// more are kept until there are many. For several threads.  @throws ValueError as ConvexHull
std::shared_ptr<const ConvexHull> shared_hull(std::span<const Vec3d> points);

}  // namespace tarsus
