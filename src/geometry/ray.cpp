#include "tarsus/geometry/ray.hpp"
#include "tarsus/math/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tarsus {

namespace {

constexpr double kMiss = -1, kParallel = 1e-15;

/// The smaller non-negative solution of a x² + 2 b x + c = 0.
double nearest_root(double a, double b, double c) {
  const double det = b * b - a * c;
  if (det < 0 || a < kParallel) return kMiss;
  const double root = std::sqrt(det), first = (-b - root) / a, second = (-b + root) / a;
  return first >= 0 ? first : second >= 0 ? second : kMiss;
}

void take_nearer(double distance, double& best) {
  if (distance >= 0 && (best < 0 || distance < best)) best = distance;
}

/// Intersections with the infinite cylinder about z that `accept` accepts.
template <class F>
void hit_side(double radius, const Vec3d& o, const Vec3d& d, double& best, const F& accept) {
  const double a = d.x * d.x + d.y * d.y, b = o.x * d.x + o.y * d.y, c = o.x * o.x + o.y * o.y - radius * radius;
  const double det = b * b - a * c;
  if (det < 0 || a < kParallel) return;
  for (const double sign : {-1.0, 1.0}) {
    const double x = (-b + sign * std::sqrt(det)) / a;
    if (accept(o.z + x * d.z)) take_nearer(x, best);
  }
}

}  // namespace

double ray_plane(const Vec3d& size, const Vec3d& o, const Vec3d& d) {
  if (d.z > -kParallel) return kMiss;
  const double x = -o.z / d.z;
  if (x < 0) return kMiss;
  const bool within =
      (size.x <= 0 || std::abs(o.x + x * d.x) <= size.x) && (size.y <= 0 || std::abs(o.y + x * d.y) <= size.y);
  return within ? x : kMiss;
}

double ray_sphere(double radius, const Vec3d& o, const Vec3d& d) {
  return nearest_root(dot(d, d), dot(o, d), dot(o, o) - radius * radius);
}

double ray_capsule(double radius, double half, const Vec3d& o, const Vec3d& d) {
  double best = kMiss;
  hit_side(radius, o, d, best, [&](double z) { return std::abs(z) <= half; });
  for (const double end : {-half, half}) {
    const Vec3d from{o.x, o.y, o.z - end};
    const double a = dot(d, d), b = dot(from, d), det = b * b - a * (dot(from, from) - radius * radius);
    if (det < 0) continue;
    for (const double sign : {-1.0, 1.0}) {
      const double x = (-b + sign * std::sqrt(det)) / a;
      if ((o.z + x * d.z) * (end < 0 ? -1 : 1) >= half) take_nearer(x, best);
    }
  }
  return best;
}

double ray_cylinder(double radius, double half, const Vec3d& o, const Vec3d& d) {
  double best = kMiss;
  hit_side(radius, o, d, best, [&](double z) { return std::abs(z) <= half; });
  for (const double end : {-half, half}) {
    if (std::abs(d.z) < kParallel) break;
    const double x = (end - o.z) / d.z;
    if (elementary::hypot(o.x + x * d.x, o.y + x * d.y) <= radius) take_nearer(x, best);
  }
  return best;
}

double ray_ellipsoid(const Vec3d& a, const Vec3d& o, const Vec3d& d) {
  const Vec3d p{o.x / a.x, o.y / a.y, o.z / a.z}, q{d.x / a.x, d.y / a.y, d.z / a.z};
  return nearest_root(dot(q, q), dot(p, q), dot(p, p) - 1);
}

double ray_box(const Vec3d& half, const Vec3d& o, const Vec3d& d) {
  double enter = -std::numeric_limits<double>::infinity(), leave = -enter;
  for (int k = 0; k < 3; ++k) {
    if (std::abs(d[k]) < kParallel) {
      if (std::abs(o[k]) > half[k]) return kMiss;
      continue;
    }
    const double a = (-half[k] - o[k]) / d[k], b = (half[k] - o[k]) / d[k];
    enter = std::max(enter, std::min(a, b)), leave = std::min(leave, std::max(a, b));
  }
  if (enter > leave || leave < 0) return kMiss;
  return enter >= 0 ? enter : leave;
}

/// [Möller & Trumbore 1997]
double ray_triangles(std::span<const Vec3d> vertices, std::span<const std::array<int, 3>> triangles, const Vec3d& o,
                     const Vec3d& d) {
  double best = kMiss;
  for (const std::array<int, 3>& t : triangles) {
    const Vec3d &a = vertices[t[0]], e1 = vertices[t[1]] - a, e2 = vertices[t[2]] - a, p = cross(d, e2);
    const double det = dot(e1, p);
    if (std::abs(det) < 1e-300) continue;
    const Vec3d s = o - a, q = cross(s, e1);
    const double u = dot(s, p) / det, v = dot(d, q) / det;
    if (u >= 0 && v >= 0 && u + v <= 1) take_nearer(dot(e2, q) / det, best);
  }
  return best;
}

}  // namespace tarsus
