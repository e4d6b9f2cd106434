// Where a ray meets a shape.
#pragma once

#include <array>
#include <span>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

/// Distance along the ray to the surface of a shape in its own frame, negative: it misses. From within, the way out; a
/// plane is hit from above alone. `size`: half-sizes as MuJoCo has them. @param direction unit
double ray_plane(const Vec3d& size, const Vec3d& origin, const Vec3d& direction);
double ray_sphere(double radius, const Vec3d& origin, const Vec3d& direction);
double ray_capsule(double radius, double half_length, const Vec3d& origin, const Vec3d& direction);
double ray_cylinder(double radius, double half_length, const Vec3d& origin, const Vec3d& direction);
double ray_ellipsoid(const Vec3d& semi_axes, const Vec3d& origin, const Vec3d& direction);
double ray_box(const Vec3d& half, const Vec3d& origin, const Vec3d& direction);
/// The nearest of all triangles, seen from either side.
double ray_triangles(std::span<const Vec3d> vertices, std::span<const std::array<int, 3>> triangles,
                     const Vec3d& origin, const Vec3d& direction);

}  // namespace tarsus
