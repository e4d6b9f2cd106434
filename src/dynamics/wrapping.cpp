// Paths around circles, spheres and cylinders. The planar problem: find the path from d0 to d1, both outside a circle
// about the origin, along tangents and an arc, on the side of a given point or the shorter way. If the path touches the
// circle from within, it has one contact point, at which both parts make the same angle with the radius.
#include <algorithm>
#include <cmath>

#include "tarsus/dynamics/tendon.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

namespace {
namespace plane {

struct Vec2 {
  double x, y;
};
Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
Vec2 operator*(Vec2 a, double s) { return {a.x * s, a.y * s}; }
double dot(Vec2 a, Vec2 b) { return a.x * b.x + a.y * b.y; }
double cross(Vec2 a, Vec2 b) { return a.x * b.y - a.y * b.x; }
double norm(Vec2 a) { return std::sqrt(dot(a, a)); }
Vec2 unit(Vec2 a) {
  const double length = norm(a);
  return length < kMujocoMinval ? Vec2{1, 0} : a * (1 / length);
}

struct PlaneWrap {
  double length = -1;
  Vec2 first{}, second{};
};

/// Whether the segments a0 a1 and b0 b1 intersect.
bool meet(Vec2 a0, Vec2 a1, Vec2 b0, Vec2 b1) {
  const Vec2 a = a1 - a0, b = b1 - b0, d = a0 - b0;
  const double det = cross(a, b);
  if (std::abs(det) < kMujocoMinval) return false;
  const double s = cross(b, d) / det, t = cross(a, d) / det;
  return s >= 0 && s <= 1 && t >= 0 && t <= 1;
}

/// The point of a segment nearest to the origin.
Vec2 nearest(Vec2 from, Vec2 to) {
  const Vec2 d = to - from;
  return from + d * std::clamp(-dot(d, from) / dot(d, d), 0.0, 1.0);
}

/// Tangent point on the circle of a tangent from p; sign selects the side.
Vec2 tangent_point(Vec2 p, double radius, double sign) {
  const double square = dot(p, p), rest = std::sqrt(square - radius * radius);
  return Vec2{p.x * radius + sign * p.y * rest, p.y * radius - sign * p.x * rest} * (radius / square);
}

/// Arc length from a to b around the circle, on the side that sign selects.
double arc(Vec2 a, Vec2 b, double sign, double radius) {
  double angle = elementary::acos(std::clamp(dot(unit(a), unit(b)), -1.0, 1.0));
  if (cross(b, a) * sign < 0) angle = 2 * kPi - angle;
  return radius * angle;
}

/// Whether a side point selects the path around the far side of the circle, as seen from the end points: it lies
/// opposite to both, in the cone of -d0 and -d1 (as observed in MuJoCo 4; its documentation does not specify it).
bool asks_for_far_side(Vec2 d0, Vec2 d1, Vec2 side) {
  const double turn = cross(d0, d1);
  return cross(side, d1) * turn <= 0 && cross(d0, side) * turn <= 0;
}

PlaneWrap around_circle(Vec2 d0, Vec2 d1, double radius, const Vec2* side) {
  const double square = radius * radius;
  if (dot(d0, d0) < square || dot(d1, d1) < square || radius < kMujocoMinval || dot(d1 - d0, d1 - d0) < kMujocoMinval)
    return {};
  const Vec2 near = nearest(d0, d1);
  const bool far = side && asks_for_far_side(d0, d1, *side);
  if (dot(near, near) > square && !far) return {};
  PlaneWrap ways[2];
  double merit[2];
  for (int i = 0; i < 2; ++i) {
    const double sign = i == 0 ? 1 : -1;  // clockwise first
    PlaneWrap& way = ways[i];
    way.first = tangent_point(d0, radius, sign), way.second = tangent_point(d1, radius, -sign);
    const Vec2 apart = way.first - way.second;
    const double turn = -sign * cross(d0, d1);  // positive: the near side
    if (!side)
      merit[i] = meet(d0, way.first, d1, way.second) ? -1e4 : -dot(apart, apart);
    else
      merit[i] = std::abs(turn) < kMujocoMinval ? dot(way.first + way.second, *side) : far ? -turn : turn;
  }
  const int best = merit[0] > merit[1] ? 0 : 1;
  PlaneWrap& way = ways[best];
  if (meet(d0, way.first, d1, way.second)) return {};
  way.length = arc(way.first, way.second, best == 0 ? 1 : -1, radius);
  return way;
}

double arc_sine(double x) { return elementary::atan2(x, std::sqrt((1 - x) * (1 + x))); }

/// Solves asin(A z) + asin(B z) - 2 asin(z) + G = 0 for z by Newton's method from the right, to rounding; negative on
/// failure.
double reflection(double A, double B, double G) {
  const auto f = [&](double z) { return arc_sine(A * z) + arc_sine(B * z) - 2 * arc_sine(z) + G; };
  const auto slope_at = [&](double z) {
    const auto slope = [&](double c) { return c / std::max(kMujocoMinval, std::sqrt(1 - z * z * c * c)); };
    return slope(A) + slope(B) - 2 * slope(1);
  };
  double z = 1 - 1e-7, value = f(z);
  if (value > 0) return -1;
  for (int round = 0; std::abs(value) > 1e-6; ++round) {
    const double derivative = slope_at(z), next = z - value / derivative;
    if (round == 20 || derivative > -kMujocoMinval || next > z) return -1;
    z = next, value = f(z);
    if (value > 1e-6) return -1;
  }
  for (int round = 0; round < 4 && value != 0; ++round) {  // quadratic convergence from here: 1e-6, 1e-12, rounding
    const double next = z - value / slope_at(z), better = f(next);
    if (!(std::abs(better) < std::abs(value))) break;
    z = next, value = better;
  }
  return z;
}

PlaneWrap inside_circle(Vec2 d0, Vec2 d1, double radius) {
  const double l0 = norm(d0), l1 = norm(d1), square = dot(d1 - d0, d1 - d0);
  if (l0 <= radius || l1 <= radius || radius < kMujocoMinval) return {};
  if (square > kMujocoMinval) {
    const double a = -dot(d1 - d0, d0) / square;
    if (a > 0 && a < 1 && norm(d0 + (d1 - d0) * a) <= radius) return {};
  }
  const double cosine = (l0 * l0 + l1 * l1 - square) / (2 * l0 * l1);
  if (cosine < -1 + kMujocoMinval) return {};
  PlaneWrap out{0, unit((d0 + d1) * 0.5) * radius, {}};
  out.second = out.first;
  if (cosine > 1 - kMujocoMinval) return out;
  const double A = radius / l0, B = radius / l1, z = reflection(A, B, elementary::acos(cosine));
  if (z < 0) return out;
  const bool turned = cross(d0, d1) > 0;
  const Vec2 from = unit(turned ? d0 : d1);
  const double angle = arc_sine(z) - arc_sine((turned ? A : B) * z), c = elementary::cos(angle),
               s = elementary::sin(angle);
  out.first = out.second = Vec2{c * from.x - s * from.y, s * from.x + c * from.y} * radius;
  return out;
}

}  // namespace plane

struct PlaneAxes {
  Vec3d x, y;
};

/// The plane through the origin and both points, or any plane through the first if they are collinear with the origin.
PlaneAxes plane_of(const Vec3d& p0, const Vec3d& p1) {
  const Vec3d x = p0 * (1 / norm(p0));
  Vec3d normal = cross(p0, p1);
  if (norm(normal) < kMujocoMinval) {
    int largest = 0;
    for (int k = 1; k < 3; ++k) {
      if (std::abs(x[k]) > std::abs(x[largest])) largest = k;
    }
    Vec3d other{1, 1, 1};
    other[largest] = 0;
    normal = cross(x, other);
  }
  const Vec3d y = cross(normal, x);
  return {x, y * (1 / norm(y))};
}

}  // namespace

WrapResult wrap_path(const Vec3d& x0, const Vec3d& x1, double radius, bool cylinder, const Vec3d* side) {
  if (norm(x0) < kMujocoMinval || norm(x1) < kMujocoMinval) return {};
  const PlaneAxes axes = cylinder ? PlaneAxes{{1, 0, 0}, {0, 1, 0}} : plane_of(x0, x1);
  const auto flat = [&](const Vec3d& p) { return plane::Vec2{dot(p, axes.x), dot(p, axes.y)}; };
  const plane::Vec2 d0 = flat(x0), d1 = flat(x1);
  plane::PlaneWrap flat_path;
  if (side) {
    const plane::Vec2 s = flat(*side);
    const plane::Vec2 on_circle = plane::unit(s) * radius;
    // A point is inside if it is closer to the axis than the radius, for cylinders too.
    flat_path =
        norm(*side) >= radius ? plane::around_circle(d0, d1, radius, &on_circle) : plane::inside_circle(d0, d1, radius);
  } else {
    flat_path = plane::around_circle(d0, d1, radius, nullptr);
  }
  if (flat_path.length < 0) return {};
  WrapResult out{flat_path.length, axes.x * flat_path.first.x + axes.y * flat_path.first.y,
                 axes.x * flat_path.second.x + axes.y * flat_path.second.y};
  if (!cylinder) return out;
  // On the unrolled surface the path is straight: its height is proportional to the length in the plane.
  const double before = norm(d0 - flat_path.first), after = norm(d1 - flat_path.second),
               rise = (x1.z - x0.z) / (before + flat_path.length + after);
  out.first.z = x0.z + rise * before;
  out.second.z = x0.z + rise * (before + flat_path.length);
  const double height = out.second.z - out.first.z;
  out.length = std::sqrt(flat_path.length * flat_path.length + height * height);
  return out;
}

}  // namespace tarsus
