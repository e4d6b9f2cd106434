// Intersections of rays with shapes.
#pragma once

#include <array>
#include <span>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

/// Distance [m] along the ray to the surface of a shape, in the shape's frame; negative if the ray misses. From inside,
/// the distance to the exit. A plane is hit only from above; where its half-size along an axis is 0, it is infinite
/// along that axis.
/// @param size MuJoCo's half-sizes [m]  @param origin [m]  @param direction unit vector
double ray_plane(const Vec3d& size, const Vec3d& origin, const Vec3d& direction);
double ray_sphere(double radius, const Vec3d& origin, const Vec3d& direction);
double ray_capsule(double radius, double half_length, const Vec3d& origin, const Vec3d& direction);
double ray_cylinder(double radius, double half_length, const Vec3d& origin, const Vec3d& direction);
double ray_ellipsoid(const Vec3d& semi_axes, const Vec3d& origin, const Vec3d& direction);
double ray_box(const Vec3d& half, const Vec3d& origin, const Vec3d& direction);
/// Distance to the nearest triangle, from either side.
double ray_triangles(std::span<const Vec3d> vertices, std::span<const std::array<int, 3>> triangles,
                     const Vec3d& origin, const Vec3d& direction);

}  // namespace tarsus
