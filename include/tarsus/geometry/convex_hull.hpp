// A convex polyhedron prepared for collision: the hull of points, its flat faces and the adjacency of its vertices.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

class ConvexHull {
 public:
  /// The convex hull of these points [m]. Sides that are flat to 1e-4 of its size are made flat, and their triangles
  /// one face. O(n log n), by qhull.
  /// @throws ValueError if the points span no volume, or if one is not finite or beyond 1e50 m
  explicit ConvexHull(std::span<const Vec3d> points);

  struct Face {
    Vec3d normal{0, 0, 1};                  ///< unit, outward
    double offset = 0;                      ///< normal · x of its plane [m]
    int first = 0, count = 0;               ///< its range among all corners
    int first_near = 0, rim = 0, near = 0;  ///< range of the corners that are near, of which the rim
    int first_next = 0, next = 0;           ///< range of the next faces
  };

  /// The corners [m], without interior points. Vertices that are extreme in similar directions are adjacent in memory.
  std::span<const Vec3d> vertices() const { return vertices_; }
  std::span<const Face> faces() const { return faces_; }
  /// Vertex indices of a face, counter-clockwise seen from outside.
  std::span<const int> corners(const Face& face) const {
    return {corners_.data() + face.first, static_cast<std::size_t>(face.count)};
  }
  /// The faces that meet this one in a corner and lean little against it.
  std::span<const int> next_faces(const Face& face) const {
    return {next_faces_.data() + face.first_next, static_cast<std::size_t>(face.next)};
  }
  /// Corners of this face and of the next ones: seen along the normal, first their convex rim, counter-clockwise from
  /// outside, then those within. Without next faces, corners().
  std::span<const int> near_corners(const Face& face) const {
    return {corners_.data() + face.first_near, static_cast<std::size_t>(face.near)};
  }
  /// Bounding box of the vertices.
  const Aabb& box() const { return box_; }
  /// Distance from a plane within which vertices count as in it [m].
  double flat() const { return flat_; }
  /// Mean of the vertices, an interior point.
  const Vec3d& centre() const { return centre_; }

  /// Index of the vertex farthest along `direction` (of any length), selected from the candidates that a table has for
  /// similar directions.
  int support(const Vec3d& direction) const;
  /// Index of the face whose normal is nearest to `direction`, among those at the vertex farthest along it.
  int face_towards(const Vec3d& direction) const { return face_at(support(direction), direction); }
  /// The same for a known vertex.
  int face_at(int vertex, const Vec3d& direction) const;

 private:
  /// Directions through a square on a cube's face: the vertices that are farthest along any of them, or four
  /// sub-squares.
  struct Cell {
    int first = 0, count = 0;  ///< range in farthest_; 0: four sub-squares at cells_[first]
  };
  struct Square;
  void find_faces(const std::vector<Triangle>& triangles);
  void find_next_faces();
  void find_farthest(std::vector<Triangle>& triangles);
  void fill(std::size_t cell, const Square& square, const std::vector<int>& among);

  std::vector<Vec3d> vertices_;
  std::vector<Face> faces_;
  std::vector<int> corners_, next_faces_;
  std::vector<Cell> cells_;  ///< begins with a grid on each of the cube's faces
  std::vector<int> farthest_;
  std::vector<int> face_first_, vertex_faces_;  ///< faces at each vertex
  Aabb box_;
  double flat_ = 0;
  Vec3d centre_{0, 0, 0};
};

/// The hull of these points, shared by all callers with the same points; the hulls of a robot take a tenth of a second.
/// Unused hulls are kept until there are many. Thread-safe.  @throws ValueError as ConvexHull
std::shared_ptr<const ConvexHull> shared_hull(std::span<const Vec3d> points);

}  // namespace tarsus
