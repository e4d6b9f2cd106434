// Several contact points from two flat features that face each other: the one less perpendicular to the normal is
// clipped by the sides of the other.  [Ericson 2005, 5.3; Gottschalk, Lin, Manocha 1996]
#include <limits>

#include "geometry/core.hpp"
#include "tarsus/geometry/convex_hull.hpp"

namespace tarsus::narrow {

namespace {

constexpr int kMaxClipped = 2 * kMaxCorners;
constexpr double kFacing = 0.2;   ///< cosine to the normal above which a face can touch with its area
constexpr double kLying = 0.97;   ///< and above which it lies on the other shape
constexpr double kSame = 1e-3;    ///< distance of points that count as one, relative to the smaller shape's size
constexpr double kOnSide = 1e-5;  ///< tolerance for a corner on a side, relative to the length of the side's edge

struct Corner {
  Vec3d point;
  std::uint32_t id;
};

struct Clipped {
  std::array<Corner, kMaxClipped> corners;
  int count = 0;
  bool closed = true;  ///< polygon; false: segment

  void add(const Corner& c) {
    if (count < kMaxClipped) corners[static_cast<std::size_t>(count++)] = c;
  }
};

std::uint32_t mixed(std::uint32_t a, std::uint32_t b) {
  a ^= b + 0x9e3779b9u + (a << 6) + (a >> 2);
  a ^= a >> 16;
  return a * 0x85ebca6bu;
}

/// Keeps the part on the inner side, n·x <= offset, of plane number `side`; n is as long as the side's edge. Corners
/// within the tolerance count as on the plane: otherwise corners of two aligned boxes would be doubled at random by
/// rounding.
void cut(const Clipped& in, const Vec3d& n, double offset, std::uint32_t side, Clipped& out) {
  const double near = kOnSide * dot(n, n);
  out.count = 0;
  out.closed = in.closed;
  const int edges = in.closed ? in.count : in.count - 1;
  const auto height = [&](int k) { return dot(n, in.corners[static_cast<std::size_t>(k)].point) - offset; };
  for (int k = 0; k < in.count; ++k) {
    const Corner& from = in.corners[static_cast<std::size_t>(k)];
    const double h = height(k);
    if (h <= near) out.add(h <= 0 ? from : Corner{mul_add(n, -h / dot(n, n), from.point), from.id});
    if (k >= edges) continue;
    const int next = (k + 1) % in.count;
    const double g = height(next);
    if ((h > near) == (g > near) || std::min(h, g) > -near) continue;  // the inner one is the intersection
    const Corner& to = in.corners[static_cast<std::size_t>(next)];
    const double t = h / (h - g);
    out.add({from.point + (to.point - from.point) * t, mixed(mixed(from.id, to.id), 1000 + side)});
  }
}

/// The part of `incident` within the prism that `reference` sweeps along n.
void clip(const Feature& incident, const Feature& reference, const Vec3d& n, Clipped& out) {
  Clipped other;
  Clipped *now = &out, *next = &other;
  now->count = 0;
  now->closed = incident.count > 2;
  for (int k = 0; k < incident.count; ++k) {
    now->add({incident.corners[static_cast<std::size_t>(k)], static_cast<std::uint32_t>(k)});
  }
  const Vec3d towards = dot(reference.normal, n) < 0 ? -n : n;
  for (int k = 0; k < reference.count && now->count > 0; ++k) {
    const Vec3d& p = reference.corners[static_cast<std::size_t>(k)];
    const Vec3d& q = reference.corners[static_cast<std::size_t>((k + 1) % reference.count)];
    // Outward normal, perpendicular to n and the edge; for a segment, planes at its two ends.
    const Vec3d along = p - q;
    const Vec3d outward = reference.count > 2 ? cross(q - p, towards) : along - n * dot(along, n);
    cut(*now, outward, dot(outward, p), static_cast<std::uint32_t>(k), *next);
    std::swap(now, next);
  }
  if (now != &out) out = *now;
}

/// Distance along n from p to the line or plane of `reference`.
double gap_along(const Vec3d& p, const Feature& reference, const Vec3d& n) {
  if (reference.count > 2) return dot(reference.corners[0] - p, reference.normal) / dot(n, reference.normal);
  const Vec3d &a = reference.corners[0], u = reference.corners[1] - a, across = u - n * dot(u, n);
  return dot(mul_add(u, dot(p - a, across) / dot(across, across), a) - p, n);
}

/// Distance along d from p to the surface of a feature's shape: to the nearest of its planes.
double way(const Core& shape, const Feature& feature, const Vec3d& p, const Vec3d& d) {
  if (!feature.near) return gap_along(p, feature, d);
  const ConvexHull::Face& own = shape.hull->faces()[feature.id];
  const Vec3d q = transpose_mul(shape.pose.rotation, p - shape.pose.position);
  const Vec3d e = transpose_mul(shape.pose.rotation, d);
  const auto to = [&](const ConvexHull::Face& face) {
    const double facing = dot(face.normal, e);
    return facing > kFacing ? (face.offset - dot(face.normal, q)) / facing : std::numeric_limits<double>::infinity();
  };
  double nearest = to(own);
  for (const int f : shape.hull->next_faces(own)) {
    nearest = std::min(nearest, to(shape.hull->faces()[static_cast<std::size_t>(f)]));
  }
  return nearest;
}

/// Whether p is in the prism that the polygon sweeps along n.
bool in_prism(const Vec3d& p, const Feature& polygon, const Vec3d& n) {
  const Vec3d towards = dot(polygon.normal, n) < 0 ? -n : n;
  for (int k = 0; k < polygon.count; ++k) {
    const Vec3d& from = polygon.corners[static_cast<std::size_t>(k)];
    const Vec3d& to = polygon.corners[static_cast<std::size_t>((k + 1) % polygon.count)];
    if (dot(cross(to - from, towards), p - from) > 0) return false;
  }
  return polygon.count > 2;
}

bool parallel_segments(const Feature& a, const Feature& b) {
  const Vec3d u = a.corners[1] - a.corners[0], v = b.corners[1] - b.corners[0];
  const Vec3d w = cross(u, v);
  return dot(w, w) < squared(0.02) * dot(u, u) * dot(v, v) && dot(u, u) > 0 && dot(v, v) > 0;
}

/// Adds the clipped corners; false if the features do not face each other well enough.
bool add_clipped(const Core& a, const Core& b, const Feature& fa, const Feature& fb, const Closest& closest,
                 ContactList& out) {
  const Vec3d& n = closest.normal;
  if (fa.count < 2 || fb.count < 2) return false;
  // A face may lean far if the shape stands on one of its edges. The line on a round side that faces n connects the
  // nearest points of the two ends, at any inclination.
  const double facing_a = -dot(fa.normal, n), facing_b = dot(fb.normal, n);
  const auto faces = [](double facing, const Feature& f) { return f.count == 2 || facing > kFacing; };
  if (!faces(facing_a, fa) || !faces(facing_b, fb)) return false;
  const bool segments = fa.count == 2 && fb.count == 2;
  if (segments && !parallel_segments(fa, fb)) return false;
  // The reference is a polygon if there is one, else the feature more perpendicular to n. B must be better by a margin,
  // so that resting faces do not swap roles between steps.
  const bool b_is_reference = fb.count > 2 && (fa.count == 2 || facing_b > facing_a + 1e-3);
  const Feature &reference = b_is_reference ? fb : fa, &incident = b_is_reference ? fa : fb;
  Clipped clipped;
  clip(incident, reference, n, clipped);
  const bool near = fa.near || fb.near;
  const std::uint32_t pair = mixed(mixed(b_is_reference + 2 * near, fa.id), fb.id);
  // n points from B to A: the way from a point of B to A is along n, that from a point of A to B is against it.
  const int known = near ? out.size() : 0;
  const double same = kSame * std::min(a.scale(), b.scale());
  const auto add = [&](Vec3d p, bool of_a, std::uint32_t id) {
    const double gap = of_a ? -way(b, fb, p, n) : -way(a, fa, p, -n);
    const double distance = std::max(gap, closest.distance);
    const Vec3d on_b = of_a ? mul_add(n, -distance, p) : p;
    for (int k = 0; k < known; ++k) {
      const Vec3d d = mul_add(n, distance / 2, on_b) - out[k].position;
      if (dot(d, d) < same * same) return;
    }
    out.add(on_b, n, distance, mixed(pair, id), near);
  };
  const Core& shape = b_is_reference ? a : b;
  const Vec3d outward = b_is_reference ? -n : n;
  for (int k = 0; k < clipped.count; ++k) {
    const Corner& c = clipped.corners[static_cast<std::size_t>(k)];
    // Between corners that are not all in one plane, the surface is beyond the outline.
    const bool between = incident.near && c.id >= static_cast<std::uint32_t>(incident.count);
    add(between ? mul_add(outward, way(shape, incident, c.point, outward), c.point) : c.point, b_is_reference, c.id);
  }
  for (const bool of_a : {true, false}) {
    const Feature &own = of_a ? fa : fb, &other = of_a ? fb : fa;
    for (int k = own.count; k < own.count + own.within; ++k) {
      const Vec3d& p = own.corners[static_cast<std::size_t>(k)];
      if (in_prism(p, other, n)) add(p, of_a, mixed(1000, static_cast<std::uint32_t>(2 * k + of_a)));
    }
  }
  return true;
}

}  // namespace

void add_manifold(const Core& a, const Core& b, const Closest& closest, ContactList& out) {
  const int before = out.size();
  Feature fa, fb;
  a.feature(-closest.normal, fa);
  b.feature(closest.normal, fb);
  const Vec3d& n = closest.normal;
  const bool flat = (fa.count == 2 || dot(fa.normal, n) < -kLying) && (fb.count == 2 || dot(fb.normal, n) > kLying);
  if (add_clipped(a, b, fa, fb, closest, out) && flat) {
    // Those of the next faces, too: in one step shapes that lie on one another turn onto them.
    Feature of_a, of_b;
    const bool near_a = a.near_feature(fa, of_a), near_b = b.near_feature(fb, of_b);
    if (near_a || near_b) add_clipped(a, b, near_a ? of_a : fa, near_b ? of_b : fb, closest, out);
  }
  // The closest point itself, unless a corner is as close.
  int least = before;
  for (int k = before + 1; k < out.size(); ++k) {
    if (out[k].distance < out[least].distance) least = k;
  }
  const bool corners = least < out.size();
  if (corners && out[least].distance <= closest.distance + 1e-9 * (a.scale() + b.scale())) return;
  // The closest point of a cap that lies flat is on its rim and moves fast: as the cap tilts, the lowest corner moves
  // to it.
  const bool cap = a.type == ShapeType::cylinder || b.type == ShapeType::cylinder;
  const double tilt = cap && fa.count > 2 && fb.count > 2 ? norm(cross(fa.normal, fb.normal)) : 1;
  if (!corners || tilt >= kUpright) return out.add(closest.on_b, closest.normal, closest.distance, kClosestPoint);
  ContactPoint& corner = out[least];
  const Vec3d there = mul_add(closest.normal, closest.distance / 2, closest.on_b);
  corner.position = mul_add(there - corner.position, tilt / kUpright, corner.position);
  corner.distance += (closest.distance - corner.distance) * (tilt / kUpright);
}

}  // namespace tarsus::narrow
