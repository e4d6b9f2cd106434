// Two boxes: separating axes when they overlap, GJK when they are apart.  [Gottschalk, Lin, Manocha 1996]
#include "geometry/core.hpp"
#include "tarsus/geometry/convex_hull.hpp"

namespace tarsus::narrow {

namespace {

struct Axis {
  double separation = -1e300;  ///< largest of all axes: minus the depth
  Vec3d direction{0, 0, 1};    ///< unit, in A's frame
  int edge_a = -1, edge_b = -1;
  bool face_of_b = false;
};

/// The axis along which two boxes overlap least; stops as soon as one parts them by more than `limit`.
Axis least_overlap(const Vec3d& sa, const Vec3d& sb, const Mat3d& r, const Vec3d& t, double limit) {
  Axis best;
  const auto width = [&](const Vec3d& d) {
    const Vec3d e = transpose_mul(r, d);
    return sa.x * std::abs(d.x) + sa.y * std::abs(d.y) + sa.z * std::abs(d.z) + sb.x * std::abs(e.x) +
           sb.y * std::abs(e.y) + sb.z * std::abs(e.z);
  };
  const auto offer = [&](const Vec3d& d, int edge_a, int edge_b, bool face_of_b, double handicap) {
    const double separation = std::abs(dot(t, d)) - width(d);
    if (separation > best.separation + handicap) best = {separation, d, edge_a, edge_b, face_of_b};
    return separation <= limit;
  };
  static constexpr Vec3d kUnit[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const Vec3d columns[] = {r.column_x(), r.column_y(), r.column_z()};
  for (const Vec3d& d : kUnit) {
    if (!offer(d, -1, -1, false, 0)) return best;
  }
  // Ties go to what came first, so that rounding does not swap the roles of two resting boxes.
  const double handicap = 1e-9 * (sa.x + sa.y + sa.z + sb.x + sb.y + sb.z);
  for (const Vec3d& d : columns) {
    if (!offer(d, -1, -1, true, handicap)) return best;
  }
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Vec3d d = cross(kUnit[i], columns[j]);
      const double length = norm(d);
      if (length < 1e-4) continue;  // parallel edges: the faces have said it
      if (!offer(d * (1 / length), i, j, false, handicap)) return best;
    }
  }
  return best;
}

/// The points of two edges that are closest to each other.
Vec3d on_edge_of_b(const Body& a, const Body& b, const Axis& axis, const Vec3d& normal) {
  const auto column = [](const Mat3d& m, int i) {
    return i == 0 ? m.column_x() : i == 1 ? m.column_y() : m.column_z();
  };
  const Vec3d u = column(a.pose.rotation, axis.edge_a), v = column(b.pose.rotation, axis.edge_b);
  const Vec3d p = Core(a).support(-normal), q = Core(b).support(normal), w = p - q;
  const double uv = dot(u, v), t = (dot(w, v) - dot(w, u) * uv) / (1 - uv * uv);
  return mul_add(v, t, q);
}

/// The box around a convex shape in its own frame: centre and half-widths.
std::array<Vec3d, 2> own_box(const Body& body) {
  const Vec3d& s = body.size();
  switch (body.shape.type) {
    case ShapeType::capsule: return {Vec3d{0, 0, 0}, {s.x, s.x, s.x + s.y}};
    case ShapeType::cylinder: return {Vec3d{0, 0, 0}, {s.x, s.x, s.y}};
    case ShapeType::sphere: return {Vec3d{0, 0, 0}, {s.x, s.x, s.x}};
    case ShapeType::convex: {
      const Aabb& box = body.shape.hull->box();
      return {(box.lower + box.upper) * 0.5, (box.upper - box.lower) * 0.5};
    }
    default: return {Vec3d{0, 0, 0}, s};
  }
}

}  // namespace

bool boxes_apart(const Body& a, const Body& b, double limit) {
  const auto [ca, sa] = own_box(a);
  const auto [cb, sb] = own_box(b);
  const Mat3d r = transpose(a.pose.rotation) * b.pose.rotation;
  return least_overlap(sa, sb, r, a.to_local(b.to_world(cb)) - ca, limit).separation > limit;
}

void box_box(const Body& a, const Body& b, ContactList& out) {
  const Mat3d r = transpose(a.pose.rotation) * b.pose.rotation;
  const Axis axis = least_overlap(a.size(), b.size(), r, a.to_local(b.position()), out.margin());
  if (axis.separation > out.margin()) return;
  if (axis.separation > 0) return closest_features(a, b, out);  // two corners may be further apart than any axis tells
  const Vec3d d = a.pose.rotation * axis.direction;
  Closest closest;
  closest.normal = dot(d, a.position() - b.position()) < 0 ? -d : d;
  closest.distance = axis.separation;
  const Core ca(a), cb(b);
  if (axis.edge_a >= 0)
    closest.on_b = on_edge_of_b(a, b, axis, closest.normal);
  else if (axis.face_of_b)
    closest.on_b = mul_add(closest.normal, -axis.separation, ca.support(-closest.normal));
  else
    closest.on_b = cb.support(closest.normal);
  add_manifold(ca, cb, closest, out);
}

}  // namespace tarsus::narrow
