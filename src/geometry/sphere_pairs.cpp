// Spheres and capsules: closest points of a centre or a segment and the other shape.
#include <cmath>
#include <limits>

#include "geometry/pairs.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus::narrow {

namespace {

/// Direction from b to a, or `otherwise` if they are as near as rounding. Axes that cross would otherwise have a normal
/// in their own plane, which does not separate them.
/// @param size of the shapes [m]  @param length out: |a - b|
Vec3d away(const Vec3d& a, const Vec3d& b, double size, const Vec3d& otherwise, double& length) {
  const Vec3d n = direction(a - b, otherwise, length);
  const double rounding = kCoincide<double> * (size + std::abs(a.x) + std::abs(a.y) + std::abs(a.z));
  return length > rounding ? n : otherwise;
}

/// Two spheres, to which cores may reduce.
void add_spheres(const Vec3d& a, double ra, const Vec3d& b, double rb, const Vec3d& otherwise, std::uint32_t feature,
                 ContactList& out) {
  double length = 0;
  const Vec3d n = away(a, b, ra + rb, otherwise, length);
  out.add(mul_add(n, rb, b), n, length - ra - rb, feature);
}

/// Any unit vector perpendicular to `axis`.
Vec3d across(const Vec3d& axis) {
  const Vec3d e = std::abs(axis.x) < 0.6 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0};
  double length = 0;
  return direction(cross(axis, e), {0, 0, 1}, length);
}

/// Parameters in [-half, half] of the closest points of two segments.  [Ericson 2005, 5.1.9]
void closest_on_segments(const Body& a, const Body& b, double& s, double& t) {
  const Vec3d u = a.axis(), v = b.axis(), w = a.position() - b.position();
  const double ha = a.size().y, hb = b.size().y, uv = dot(u, v), uw = dot(u, w), vw = dot(v, w);
  const double det = 1 - uv * uv;
  // Parallel: the middle of the overlap.
  if (det < 1e-14) {
    const double centre_of_b = -uw, reach = hb * std::abs(uv);
    const double low = std::max(-ha, centre_of_b - reach), high = std::min(ha, centre_of_b + reach);
    s = std::clamp((low + high) / 2, -ha, ha);
  } else {
    s = std::clamp((uv * vw - uw) / det, -ha, ha);
  }
  t = std::clamp(uv * s + vw, -hb, hb);
  s = std::clamp(uv * t - uw, -ha, ha);
}

}  // namespace

void capsule_sphere(const Body& a, const Body& b, ContactList& out) {
  const double s = std::clamp(dot(a.axis(), b.position() - a.position()), -a.size().y, a.size().y);
  add_spheres(mul_add(a.axis(), s, a.position()), a.size().x, b.position(), b.size().x, across(a.axis()), 0, out);
}

void capsule_capsule(const Body& a, const Body& b, ContactList& out) {
  double s = 0, t = 0;
  closest_on_segments(a, b, s, t);
  const Vec3d pa = mul_add(a.axis(), s, a.position()), pb = mul_add(b.axis(), t, b.position());
  const double ra = a.size().x, rb = b.size().x;
  double length = 0;
  Vec3d crossed = direction(cross(a.axis(), b.axis()), across(a.axis()), length);
  const double sine = length;
  const Vec3d n = away(pa, pb, ra + rb + a.size().y + b.size().y, crossed, length);
  // Nearly parallel and side by side: uses both ends of the overlap, because the closest point jumps between the ends
  // as the capsules rock. Also uses the closest point if it is between them and closer, which is a second-order
  // difference.
  constexpr double kParallel = 0.02;
  const double ha = a.size().y, hb = b.size().y, distance = length - ra - rb;
  const double middle = dot(a.axis(), b.position() - a.position());
  const double reach = hb * std::abs(dot(a.axis(), b.axis()));
  const double low = std::max(-ha, middle - reach), high = std::min(ha, middle + reach);
  double least = std::numeric_limits<double>::infinity();
  if (sine < kParallel && std::abs(dot(n, a.axis())) < kParallel && high - low > 1e-3 * std::min(ha, hb)) {
    for (std::uint32_t end = 0; end < 2; ++end) {
      const Vec3d on_a = mul_add(a.axis(), end ? high : low, a.position());
      const double along = std::clamp(dot(b.axis(), on_a - b.position()), -hb, hb);
      const Vec3d on_b = mul_add(b.axis(), along, b.position());
      least = std::min(least, norm(on_a - on_b) - ra - rb);
      add_spheres(on_a, ra, on_b, rb, crossed, 1 + end, out);
    }
  }
  if (least > distance + 1e-9 * (ra + rb + ha + hb)) out.add(mul_add(n, rb, pb), n, distance, 0);
}

void cylinder_sphere(const Body& a, const Body& b, ContactList& out) {
  const Vec3d c = a.to_local(b.position());
  const double r = a.size().x, half = a.size().y, rb = b.size().x;
  const double radial = elementary::hypot(c.x, c.y);
  const Vec3d outward = radial > 1e-150 ? Vec3d{c.x / radial, c.y / radial, 0} : Vec3d{1, 0, 0};
  const double cap = std::abs(c.z) - half, side = radial - r;
  const Vec3d up{0, 0, c.z < 0 ? -1.0 : 1.0};
  // Direction and distance from the cylinder's surface to the centre.
  Vec3d n = up;
  double d = cap;
  std::uint32_t feature = c.z < 0 ? 1 : 2;
  if (cap > 0 && side > 0) {
    n = direction(outward * side + up * cap, up, d);
    feature += 2;
  } else if (side > cap) {
    n = outward;
    d = side;
    feature = 0;
  }
  const Vec3d world = a.pose.rotation * n;
  out.add(mul_add(world, -rb, b.position()), -world, d - rb, feature);
}

void box_sphere(const Body& a, const Body& b, ContactList& out) {
  const Vec3d c = a.to_local(b.position()), &s = a.size();
  const double rb = b.size().x;
  Vec3d nearest = c;
  std::uint32_t feature = 0;
  int deepest = 0;
  for (int i = 0; i < 3; ++i) {
    nearest[i] = std::clamp(c[i], -s[i], s[i]);
    feature = 3 * feature + (c[i] < -s[i] ? 1 : c[i] > s[i] ? 2 : 0);
    if (s[i] - std::abs(c[i]) < s[deepest] - std::abs(c[deepest])) deepest = i;
  }
  Vec3d n{0, 0, 0};
  double d = 0;
  if (feature != 0) {
    n = direction(c - nearest, {0, 0, 0}, d);
  } else {  // the centre is inside: exit through the nearest face
    n[deepest] = c[deepest] < 0 ? -1 : 1;
    d = std::abs(c[deepest]) - s[deepest];
    feature = 27 + static_cast<std::uint32_t>(2 * deepest + (c[deepest] < 0));
  }
  const Vec3d world = a.pose.rotation * n;
  out.add(mul_add(world, -rb, b.position()), -world, d - rb, feature);
}

}  // namespace tarsus::narrow

namespace tarsus {

bool collide_spheres(const Vec3d& a, double radius_a, const Vec3d& b, double radius_b, double margin,
                     ContactPoint& out) {
  if (!(margin >= 0) || !std::isfinite(margin)) return false;
  double length = 0;
  const Vec3d to_b = b - a;
  const Vec3d n = narrow::away({0, 0, 0}, to_b, radius_a + radius_b, {0, 0, 1}, length);
  const double distance = length - radius_a - radius_b;
  if (!(distance <= margin) || !(std::abs(dot(n, n) - 1) < 1e-6)) return false;
  out.position = mul_add(n, distance / 2, mul_add(n, radius_b, to_b)) + a;
  out.normal = n, out.distance = distance, out.feature = 0;
  return true;
}

}  // namespace tarsus
