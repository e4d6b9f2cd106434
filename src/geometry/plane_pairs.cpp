// Shapes on a plane. The plane is B, and the contact normal is the plane's.
#include "geometry/pairs.hpp"
#include "tarsus/geometry/convex_hull.hpp"

namespace tarsus::narrow {

namespace {

/// Height of p above the plane.
double height(const Body& plane, const Vec3d& p) { return dot(plane.axis(), p - plane.position()); }

void add_point(const Body& plane, const Vec3d& p, std::uint32_t feature, ContactList& out, bool next = false) {
  const Vec3d n = plane.axis();
  const double h = height(plane, p);
  out.add(mul_add(n, -h, p), n, h, feature, next);
}

}  // namespace

void sphere_plane(const Body& a, const Body& b, ContactList& out) {
  add_point(b, mul_add(b.axis(), -a.size().x, a.position()), 0, out);
}

void capsule_plane(const Body& a, const Body& b, ContactList& out) {
  for (int end = 0; end < 2; ++end) {
    const Vec3d centre = mul_add(a.axis(), end ? a.size().y : -a.size().y, a.position());
    add_point(b, mul_add(b.axis(), -a.size().x, centre), static_cast<std::uint32_t>(end), out);
  }
}

void ellipsoid_plane(const Body& a, const Body& b, ContactList& out) {
  // The point with the outward normal -n: x_i = -s_i² n_i / |s n|, in the ellipsoid's frame.
  const Vec3d n = transpose_mul(a.pose.rotation, b.axis()), &s = a.size();
  const Vec3d scaled{s.x * n.x, s.y * n.y, s.z * n.z};
  double length = 0;
  const Vec3d d = direction(scaled, {0, 0, 0}, length);
  add_point(b, a.to_world({-s.x * d.x, -s.y * d.y, -s.z * d.z}), 0, out);
}

void cylinder_plane(const Body& a, const Body& b, ContactList& out) {
  const Vec3d n = b.axis(), axis = a.axis();
  const double r = a.size().x, half = a.size().y;
  // Down the slope perpendicular to the axis; if upright, any direction: the cylinder's own x.
  const double along = dot(axis, n);
  double length = 0;
  Vec3d down = direction(axis * along - n, zero3<double>(), length);
  const bool upright = length < kUpright;
  if (length < 1e-12) down = a.pose.rotation.column_x();
  const double lower = along > 0 ? -half : half;
  const Vec3d low = mul_add(axis, lower, a.position()), high = mul_add(axis, -lower, a.position());
  const Vec3d side = cross(axis, down);
  if (!upright) {
    // A triangle in the lower disk, and one in the upper disk if the plane cuts both.
    add_point(b, mul_add(down, r, low), 0, out);
    add_point(b, mul_add(down, r, high), 1, out);
    for (int end = 0; end < 2; ++end) {
      const Vec3d centre = mul_add(down, -r / 2, end ? high : low);
      const auto feature = static_cast<std::uint32_t>(2 + 2 * end);
      add_point(b, mul_add(side, r * std::sqrt(0.75), centre), feature, out);
      add_point(b, mul_add(side, -r * std::sqrt(0.75), centre), feature + 1, out);
    }
    return;
  }
  // If the cylinder is upright, the slope's direction is ill-defined and changes fast. Four points fixed in the disk
  // are used, the nearest of which moves gradually to the lowest one as the disk tilts. If it moved at once, a resting
  // disk would rock indefinitely.
  const Vec3d x = a.pose.rotation.column_x(), y = a.pose.rotation.column_y();
  const Vec3d fixed[] = {x, y, -x, -y};
  std::size_t nearest = 0;
  for (std::size_t k = 1; k < 4; ++k) {
    if (dot(fixed[k], down) > dot(fixed[nearest], down)) nearest = k;
  }
  const Vec3d between = mul_add(down - fixed[nearest], length / kUpright, fixed[nearest]);
  for (std::size_t k = 0; k < 4; ++k) {
    const Vec3d outward = k == nearest ? between * (1 / norm(between)) : fixed[k];
    add_point(b, mul_add(outward, r, low), static_cast<std::uint32_t>(8 + k), out);
  }
}

void box_plane(const Body& a, const Body& b, ContactList& out) {
  // Corners of the upper face that are above the centre do not bear the box, not even if it is below the plane.
  const Vec3d &s = a.size(), e = transpose_mul(a.pose.rotation, b.axis());
  const Vec3d rise{e.x * s.x, e.y * s.y, e.z * s.z};
  const double x = std::abs(e.x), y = std::abs(e.y), z = std::abs(e.z);
  const int upright = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
  for (std::uint32_t k = 0; k < 8; ++k) {
    const Vec3d above{k & 1 ? rise.x : -rise.x, k & 2 ? rise.y : -rise.y, k & 4 ? rise.z : -rise.z};
    if (above[upright] > 0 && above.x + above.y + above.z > 0) continue;
    add_point(b, a.to_world({k & 1 ? s.x : -s.x, k & 2 ? s.y : -s.y, k & 4 ? s.z : -s.z}), k, out);
  }
}

void convex_plane(const Body& a, const Body& b, ContactList& out) {
  // The face most parallel to the plane and the next ones have the relevant corners. The lowest vertex is one of them,
  // or the hull stands on an edge or a corner.
  const ConvexHull& hull = *a.shape.hull;
  const Vec3d down = transpose_mul(a.pose.rotation, -b.axis());
  const auto add = [&](int v, bool next) {
    add_point(b, a.to_world(hull.vertices()[static_cast<std::size_t>(v)]), static_cast<std::uint32_t>(v), out, next);
  };
  const int lowest = hull.support(down);
  if (height(b, a.to_world(hull.vertices()[static_cast<std::size_t>(lowest)])) > out.margin()) return;
  const ConvexHull::Face& face = hull.faces()[static_cast<std::size_t>(hull.face_at(lowest, down))];
  const auto corners = hull.corners(face);
  const std::size_t step = corners.size() / 48 + 1;
  bool has_lowest = false;
  for (std::size_t k = 0; k < corners.size(); k += step) {
    add(corners[k], false);
    has_lowest = has_lowest || corners[k] == lowest;
  }
  if (!has_lowest) add(lowest, false);
  if (face.next == 0) return;
  const double own = face.offset - hull.flat();
  for (const int v : hull.near_corners(face)) {
    if (v != lowest && dot(face.normal, hull.vertices()[static_cast<std::size_t>(v)]) < own) add(v, true);
  }
}

}  // namespace tarsus::narrow
