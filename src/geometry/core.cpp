#include "geometry/core.hpp"

#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus::narrow {

Core::Core(const Body& body)
    : type(body.shape.type), size(body.size()), pose{body.pose.position, body.pose.rotation}, hull(body.shape.hull) {
  if (type == ShapeType::sphere || type == ShapeType::capsule) radius = size.x;
}

Vec3d Core::support(const Vec3d& d) const {
  if (is_triangle) {
    const double x = dot(triangle[0], d), y = dot(triangle[1], d), z = dot(triangle[2], d);
    return x >= y && x >= z ? triangle[0] : y >= z ? triangle[1] : triangle[2];
  }
  const Vec3d e = transpose_mul(pose.rotation, d);
  Vec3d p{0, 0, 0};
  switch (type) {
    case ShapeType::capsule: p.z = std::copysign(size.y, e.z); break;
    case ShapeType::box:
      p = {std::copysign(size.x, e.x), std::copysign(size.y, e.y), std::copysign(size.z, e.z)};
      break;
    case ShapeType::cylinder: {
      const double across = std::sqrt(e.x * e.x + e.y * e.y);
      const double r = across > 1e-150 ? size.x / across : 0;
      p = {r * e.x, r * e.y, std::copysign(size.y, e.z)};
      break;
    }
    case ShapeType::ellipsoid: {
      const Vec3d s{size.x * e.x, size.y * e.y, size.z * e.z};
      const double length = norm(s), scale = length > 1e-150 ? 1 / length : 0;
      p = {size.x * s.x * scale, size.y * s.y * scale, size.z * s.z * scale};
      break;
    }
    case ShapeType::convex: p = hull->vertices()[static_cast<std::size_t>(hull->support(e))]; break;
    default: break;  // a sphere's centre
  }
  return pose.position + pose.rotation * p;
}

Vec3d Core::centre() const {
  if (is_triangle) return (triangle[0] + triangle[1] + triangle[2]) * (1.0 / 3);
  return type == ShapeType::convex ? pose.position + pose.rotation * hull->centre() : pose.position;
}

double Core::scale() const {
  if (is_triangle) return norm(triangle[1] - triangle[0]) + norm(triangle[2] - triangle[0]);
  if (type == ShapeType::convex) return norm(hull->box().upper - hull->box().lower);
  return size.x + size.y + size.z;
}

namespace {

void box_feature(const Vec3d& s, const Vec3d& e, Feature& out) {
  const double x = std::abs(e.x), y = std::abs(e.y), z = std::abs(e.z);
  const int axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2, u = (axis + 1) % 3, v = (axis + 2) % 3;
  const double side = e[axis] < 0 ? -1 : 1;
  out.normal[axis] = side;
  out.id = static_cast<std::uint32_t>(2 * axis + (side > 0));
  static constexpr double kTurn[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
  for (int k = 0; k < 4; ++k) {
    Vec3d p{0, 0, 0};
    p[axis] = side * s[axis];
    p[u] = s[u] * kTurn[side > 0 ? k : 3 - k][0];
    p[v] = s[v] * kTurn[side > 0 ? k : 3 - k][1];
    out.add(p);
  }
}

void cylinder_feature(const Vec3d& s, const Vec3d& e, Feature& out) {
  const double r = s.x, half = s.y;
  if (std::abs(e.z) > 0.7) {  // a cap, represented by an octagon
    constexpr double kDiagonal = 0.70710678118654752;
    static constexpr double kCos[] = {1, kDiagonal, 0, -kDiagonal, -1, -kDiagonal, 0, kDiagonal};
    const double side = e.z < 0 ? -1 : 1;
    for (int k = 0; k < 8; ++k) {
      const int turn = side > 0 ? k : 7 - k;
      out.add({r * kCos[turn], r * kCos[(turn + 6) % 8], side * half});
    }
    out.normal = {0, 0, side};
    out.id = side > 0 ? 2 : 1;
    return;
  }
  const double across = elementary::hypot(e.x, e.y);
  out.normal = {e.x / across, e.y / across, 0};
  out.add(out.normal * r - Vec3d{0, 0, half});
  out.add(out.normal * r + Vec3d{0, 0, half});
}

/// Many corners are thinned to a subset.
void add_corners(const ConvexHull& hull, std::span<const int> corners, int rim, Feature& out) {
  const std::size_t step = (corners.size() + kMaxCorners - 1) / kMaxCorners;
  for (std::size_t k = 0; k < corners.size(); k += step) {
    out.add(hull.vertices()[static_cast<std::size_t>(corners[k])]);
    if (k >= static_cast<std::size_t>(rim)) ++out.within;
  }
  out.count -= out.within;
}

void hull_feature(const ConvexHull& hull, const Vec3d& e, Feature& out) {
  const int f = hull.face_towards(e);
  const auto& face = hull.faces()[static_cast<std::size_t>(f)];
  add_corners(hull, hull.corners(face), face.count, out);
  out.normal = face.normal;
  out.id = static_cast<std::uint32_t>(f);
}

}  // namespace

void Core::feature(const Vec3d& d, Feature& out) const {
  out.count = out.within = 0;
  out.id = 0;
  out.near = false;
  out.normal = {0, 0, 0};
  if (is_triangle) {
    for (const Vec3d& p : triangle) out.add(p);
    double length = 0;
    out.normal = direction(cross(triangle[1] - triangle[0], triangle[2] - triangle[0]), {0, 0, 1}, length);
    return;
  }
  const Vec3d e = transpose_mul(pose.rotation, d);
  switch (type) {
    case ShapeType::capsule:
      out.normal = e;
      out.add(e * radius - Vec3d{0, 0, size.y});
      out.add(e * radius + Vec3d{0, 0, size.y});
      break;
    case ShapeType::box: box_feature(size, e, out); break;
    case ShapeType::cylinder: cylinder_feature(size, e, out); break;
    case ShapeType::convex: hull_feature(*hull, e, out); break;
    default: break;
  }
  for (int k = 0; k < out.count; ++k) {
    Vec3d& p = out.corners[static_cast<std::size_t>(k)];
    p = pose.position + pose.rotation * p;
  }
  out.normal = pose.rotation * out.normal;
}

bool Core::near_feature(const Feature& face, Feature& out) const {
  if (type != ShapeType::convex || is_triangle) return false;
  const ConvexHull::Face& of = hull->faces()[face.id];
  if (of.next == 0) return false;
  out.near = true;
  out.normal = face.normal;
  out.id = face.id;
  add_corners(*hull, hull->near_corners(of), of.rim, out);
  for (int k = 0; k < out.count + out.within; ++k) {
    Vec3d& p = out.corners[static_cast<std::size_t>(k)];
    p = pose.position + pose.rotation * p;
  }
  return true;
}

}  // namespace tarsus::narrow
