// Two boxes: separating axes if they overlap, GJK if they are apart.  [Gottschalk, Lin, Manocha 1996]
#include "geometry/core.hpp"
#include "tarsus/geometry/convex_hull.hpp"

namespace tarsus::narrow {

namespace {

struct Axis {
  double separation = -1e300;  ///< largest over all axes; negative: minus the depth
  Vec3d direction{0, 0, 1};    ///< unit, in A's frame
  int edge_a = -1, edge_b = -1;
  bool face_of_b = false;
};

/// The axis of least overlap of two boxes. Stops as soon as an axis separates them by more than `limit`.
Axis least_overlap(const Vec3d& sa, const Vec3d& sb, const Mat3d& r, const Vec3d& t, double limit) {
  static constexpr Vec3d kUnit[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const Vec3d columns[] = {r.column_x(), r.column_y(), r.column_z()};
  double size[3][3];  // |r|
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) size[i][j] = std::abs(columns[j][i]);
  }
  // Only numbers until the end: assembling an Axis for each better one would stall on its own stores.
  double most = -1e300;
  int best = 0;  // A's faces, B's, then edges: 6 + 3 i + j
  const auto chosen = [&] {
    if (best < 3) return Axis{most, kUnit[best], -1, -1, false};
    if (best < 6) return Axis{most, columns[best - 3], -1, -1, true};
    const int i = (best - 6) / 3, j = (best - 6) % 3;
    const Vec3d across = cross(kUnit[i], columns[j]);
    return Axis{most, across * (1 / norm(across)), i, j, false};
  };
  for (int i = 0; i < 3; ++i) {
    const double separation = std::abs(t[i]) - (sa[i] + sb.x * size[i][0] + sb.y * size[i][1] + sb.z * size[i][2]);
    if (separation > most) most = separation, best = i;
  }
  if (most > limit) return chosen();
  // Ties go to the earlier axis, so that rounding does not swap the roles of two resting boxes.
  const double handicap = 1e-9 * (sa.x + sa.y + sa.z + sb.x + sb.y + sb.z);
  for (int j = 0; j < 3; ++j) {
    const double width = sa.x * size[0][j] + sa.y * size[1][j] + sa.z * size[2][j] + sb[j];
    const double separation = std::abs(dot(t, columns[j])) - width;
    if (separation > most + handicap) most = separation, best = 3 + j;
  }
  if (most > limit) return chosen();
  // Normal to an edge of each box: the product of the two directions, which is shorter than 1.
  for (int i = 0; i < 3; ++i) {
    const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
    for (int j = 0; j < 3; ++j) {
      const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      const double along = t[i2] * columns[j][i1] - t[i1] * columns[j][i2];
      const double width = sa[i1] * size[i2][j] + sa[i2] * size[i1][j] + sb[j1] * size[i][j2] + sb[j2] * size[i][j1];
      const double apart = std::abs(along) - width;
      if (apart <= std::min(0.0, most + handicap)) continue;
      const double length = std::sqrt(squared(columns[j][i1]) + squared(columns[j][i2]));
      if (length < 1e-4) continue;  // parallel edges: the faces' axes cover them
      const double separation = apart / length;
      if (separation > most + handicap) most = separation, best = 6 + 3 * i + j;
    }
    if (most > limit) return chosen();
  }
  return chosen();
}

/// The closest point to A's edge on B's edge.
Vec3d on_edge_of_b(const Body& a, const Body& b, const Axis& axis, const Vec3d& normal) {
  const auto column = [](const Mat3d& m, int i) {
    return i == 0 ? m.column_x() : i == 1 ? m.column_y() : m.column_z();
  };
  const Vec3d u = column(a.pose.rotation, axis.edge_a), v = column(b.pose.rotation, axis.edge_b);
  const Vec3d p = Core(a).support(-normal), q = Core(b).support(normal), w = p - q;
  const double uv = dot(u, v), t = (dot(w, v) - dot(w, u) * uv) / (1 - uv * uv);
  return mul_add(v, t, q);
}

/// The bounding box of a convex shape in its own frame: centre and half-widths.
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

/// least_overlap() of the bounding boxes. An axis that separates them by more than the margin is stored.
Axis least_overlap(const Body& a, const Body& b, ContactList& out) {
  const auto [ca, sa] = own_box(a);
  const auto [cb, sb] = own_box(b);
  const Mat3d r = transpose(a.pose.rotation) * b.pose.rotation;
  const Vec3d t = a.to_local(b.to_world(cb)) - ca;
  const Axis axis = least_overlap(sa, sb, r, t, out.margin());
  if (axis.separation > out.margin() && out.parting())
    *out.parting() = dot(axis.direction, t) < 0 ? axis.direction : -axis.direction;
  return axis;
}

}  // namespace

bool boxes_still_parted(const Body& a, const Body& b, const ContactList& out) {
  if (!out.parting()) return false;
  const auto [ca, sa] = own_box(a);
  const auto [cb, sb] = own_box(b);
  const Vec3d &axis = *out.parting(), d = a.pose.rotation * axis, along = transpose_mul(b.pose.rotation, d);
  const double reach = sa.x * std::abs(axis.x) + sa.y * std::abs(axis.y) + sa.z * std::abs(axis.z) +
                       sb.x * std::abs(along.x) + sb.y * std::abs(along.y) + sb.z * std::abs(along.z);
  const double gap = dot(d, a.position() - b.position()) + dot(axis, ca) - dot(along, cb) - reach;
  const double needed = out.margin() + kCertain * (sa.x + sa.y + sa.z + sb.x + sb.y + sb.z);
  return gap > 0 && gap * gap > needed * needed * dot(axis, axis);
}

bool boxes_apart(const Body& a, const Body& b, ContactList& out) {
  return least_overlap(a, b, out).separation > out.margin();
}

void box_box(const Body& a, const Body& b, ContactList& out) {
  if (boxes_still_parted(a, b, out)) return;
  const Axis axis = least_overlap(a, b, out);
  if (axis.separation > out.margin()) return;
  if (axis.separation > 0) return closest_features(a, b, out);  // corners may be further apart than these axes show
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
