// Volume, centre of mass and inertia of shapes and triangle meshes of unit density.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Mass properties at unit density, in the shape's own frame. Multiply by a density: kg/m³, or kg/m² for a shell.
struct ShapeInertia {
  double volume = 0;                ///< [m³]; for a shell the area of the surface [m²]
  Vec3d com{0, 0, 0};               ///< centre of mass [m]
  Sym3d inertia{0, 0, 0, 0, 0, 0};  ///< about `com` in the shape's axes, per unit density [m⁵; a shell m⁴]
};

/// In the order that narrow_phase.hpp uses for pairs.
enum class ShapeType { plane, sphere, capsule, ellipsoid, cylinder, box, convex, height_field };
const char* name(ShapeType type);

/// Mass properties of a primitive whose axis is z.
/// @param size MuJoCo's half-sizes [m]: sphere (r, -, -); capsule and cylinder (r, half length, -), the capsule's caps
///        beyond its half length; ellipsoid and box (x, y, z)
/// @param shell the mass is on the surface. Exact except for the ellipsoid, for which MuJoCo's approximations are used
/// so that models agree: Thomsen's area (error up to 1.1 %), and a layer between this ellipsoid and one with semi-axes
/// 1e-6 m longer, which is thinner where the surface is oblique to the axes.
/// @throws ValueError if a size that the shape uses is negative or not finite, and for planes, hulls (use mesh_inertia)
/// and height fields
ShapeInertia shape_inertia(ShapeType type, const Vec3d& size, bool shell = false);

using Triangle = std::array<int, 3>;

/// Distribution of a mesh's mass; MuJoCo's names.
enum class MeshInertia {
  exact,   ///< signed tetrahedra: exact for a closed, outward-oriented surface
  convex,  ///< the volume of the convex hull
  legacy,  ///< absolute tetrahedra from the surface's centroid: overestimates unless the mesh is star-shaped about it
  shell,   ///< the surface
};

/// Mass properties of a triangle mesh, counter-clockwise seen from outside. O(triangles); convex: O(n log n).
/// @param vertices [m]  @param triangles indices of vertices
/// @throws ValueError if an index is out of range, a coordinate is not finite, or the area or volume is under 1e-15 m²
///         or m³; exact: if the volume is negative, because the triangles are turned inside out, or if they are not all
///         turned the same way; convex: if the points have no hull with a volume
ShapeInertia mesh_inertia(std::span<const Vec3d> vertices, std::span<const Triangle> triangles, MeshInertia kind);

/// Triangles of the convex hull, counter-clockwise seen from outside, as indices of `points`. Coplanar points are
/// rejected.
/// @throws ValueError if the points span no volume or one is not finite or beyond 1e50 m
std::vector<Triangle> convex_hull(std::span<const Vec3d> points);

/// Half-sizes of the box with this solid inertia, and its orientation as the columns of a rotation.
struct InertiaBox {
  Vec3d half_size{0, 0, 0};
  Mat3d axes = identity3<double>();
  Quatd orientation{1, 0, 0, 0};  ///< of the axes
};
/// MuJoCo's equivalent box, used to fit primitives to meshes: principal moments in descending order give the sizes.
/// @param mass > 0 [kg] (or the volume [m³] for unit density)  @param inertia about the centre of mass [kg m² | m⁵]
InertiaBox equivalent_box(double mass, const Sym3d& inertia);

/// Inertia about a point at `offset` [m] from the centre of mass, in the same axes: inertia + mass (|offset|² 1 -
/// offset offsetᵀ). [parallel axis theorem]
Sym3d shifted_inertia(const Sym3d& inertia, double mass, const Vec3d& offset);

}  // namespace tarsus
