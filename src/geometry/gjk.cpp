// The distance of two convex cores by GJK, and the depth of their overlap by EPA.
//
// Both use the Minkowski difference A - B; its point nearest to the origin gives distance and normal. GJK approaches it
// with a simplex [Gilbert, Johnson, Keerthi 1988; sub-distances after Ericson 2005, 9.5]. EPA expands a polytope from
// inside until the face nearest to the origin lies on the boundary [van den Bergen 2001]. The supports show that every
// direction that EPA tries separates the shapes by a known amount, so its best direction is a valid answer whenever it
// has to stop.
#include <limits>
#include <optional>

#include "geometry/core.hpp"
#include "geometry/ellipsoid.hpp"

namespace tarsus::narrow {

namespace {

constexpr int kGjkSteps = 96;
constexpr double kRelative = 1e-13;  // relative to |v|²: gap between the bounds at which GJK stops
constexpr double kFlat = 1e-14;      // height of a tetrahedron, relative to its size, that is rounding
constexpr double kRounding = 1e-15;  // relative to the shapes' size, rounding error of the distance that a leap finds

/// A vertex of A - B and the points that it comes from.
struct Vertex {
  Vec3d w, on_a, on_b;
};

Vertex vertex(const Core& a, const Core& b, const Vec3d& d) {
  const Vec3d on_a = a.support(d), on_b = b.support(-d);
  return {on_a - on_b, on_a, on_b};
}

struct Simplex {
  std::array<Vertex, 4> points;
  std::array<double, 4> weight{};
  int count = 0;

  /// Keeps the vertices with a weight.
  void keep(const std::array<double, 4>& weights) {
    int n = 0;
    for (std::size_t i = 0; i < std::size_t(count); ++i) {
      if (!(weights[i] > 0)) continue;
      if (n < int(i)) points[std::size_t(n)] = points[i];
      weight[std::size_t(n++)] = weights[i];
    }
    count = n;
  }
  Vec3d sum(Vec3d Vertex::*member) const {
    Vec3d s{0, 0, 0};
    for (int k = 0; k < count; ++k) {
      const auto i = static_cast<std::size_t>(k);
      s = mul_add(points[i].*member, weight[i], s);
    }
    return s;
  }
};

/// The point of a simplex, or of one of its sides, nearest to the origin: weights of the vertices.
struct Nearest {
  std::array<double, 4> weight{};
  double squared_distance = std::numeric_limits<double>::infinity();
};

void take_nearer(const Nearest& other, Nearest& best) {
  if (other.squared_distance < best.squared_distance) best = other;
}

Nearest nearest_on_segment(const Simplex& s, std::size_t i, std::size_t j) {
  const Vec3d &a = s.points[i].w, u = s.points[j].w - a;
  const double length2 = dot(u, u), t = length2 > 0 ? std::clamp(-dot(a, u) / length2, 0.0, 1.0) : 0;
  const Vec3d v = mul_add(u, t, a);
  Nearest n;
  n.weight[i] = 1 - t, n.weight[j] = t, n.squared_distance = dot(v, v);
  return n;
}

/// For a side whose last vertex is new: the previous side without it is no nearer.
Nearest nearest_on_triangle(const Simplex& s, std::size_t i, std::size_t j, std::size_t k) {
  const Vec3d &a = s.points[i].w, &b = s.points[j].w, &c = s.points[k].w;
  const Vec3d n = cross(b - a, c - a);
  const double area2 = dot(n, n);
  // Barycentric coordinates of the origin's projection; inside if all are positive.
  const double u = dot(n, cross(b, c)), v = dot(n, cross(c, a)), w = dot(n, cross(a, b));
  if (area2 > 0 && u > 0 && v > 0 && w > 0) {
    const double share = 1 / (u + v + w);
    Nearest inside;
    inside.weight[i] = u * share, inside.weight[j] = v * share, inside.weight[k] = w * share;
    const Vec3d p = a * inside.weight[i] + b * inside.weight[j] + c * inside.weight[k];
    inside.squared_distance = dot(p, p);
    return inside;
  }
  Nearest best = nearest_on_segment(s, i, k);
  take_nearer(nearest_on_segment(s, j, k), best);
  return best;
}

Nearest nearest_on_face(const Simplex& s) {
  Nearest best = nearest_on_triangle(s, 0, 1, 2);
  if (!(best.weight[0] > 0 && best.weight[1] > 0 && best.weight[2] > 0)) take_nearer(nearest_on_segment(s, 0, 1), best);
  return best;
}

/// For a tetrahedron whose last vertex is new. False if the origin is inside.
bool nearest_on_tetrahedron(const Simplex& s, Nearest& best) {
  static constexpr std::size_t kFaces[3][4] = {{0, 1, 3, 2}, {1, 2, 3, 0}, {2, 0, 3, 1}};
  double size2 = 0;
  for (const Vertex& p : s.points) size2 += dot(p.w, p.w);
  bool outside = false;
  best = {};
  for (const auto& f : kFaces) {
    const Vec3d &a = s.points[f[0]].w, &b = s.points[f[1]].w, &c = s.points[f[2]].w, &d = s.points[f[3]].w;
    const Vec3d n = cross(b - a, c - a);
    const double origin = -dot(a, n), fourth = dot(d - a, n);
    // If the origin and the fourth vertex are on the same side, this face does not exclude that the origin is inside. A
    // flat tetrahedron has no inside.
    if (origin * fourth > 0 && fourth * fourth > squared(kFlat) * dot(n, n) * size2) continue;
    outside = true;
    take_nearer(nearest_on_triangle(s, f[0], f[1], f[2]), best);
  }
  return outside;
}

/// A pair of an ellipsoid and a shape with corners.
class RoundPair {
 public:
  RoundPair(const Core& a, const Core& b) : first_(a.type == ShapeType::ellipsoid) {
    const Core& other = first_ ? b : a;
    const bool corners = other.is_triangle || (other.type != ShapeType::cylinder && other.type != ShapeType::ellipsoid);
    if (corners && (first_ || b.type == ShapeType::ellipsoid)) round_.emplace(first_ ? a : b);
  }
  explicit operator bool() const { return round_.has_value(); }

  /// Whether the simplex already has this vertex's corner, and thus possibly all relevant corners.
  bool known(const Simplex& s, const Vertex& vertex) const {
    const auto end = s.points.begin() + s.count;
    return std::any_of(s.points.begin(), end, [&](const Vertex& own) { return equal(corner(own), corner(vertex)); });
  }
  /// Computes v exactly from a simplex near the answer; succeeds if the simplex has all relevant corners.
  bool leap(const Simplex& s, Vec3d& v, Vec3d& on_b) const {
    std::array<Vec3d, 4> corners;
    std::size_t count = 0;
    for (int k = 0; k < s.count; ++k) {
      const Vec3d& p = corner(s.points[static_cast<std::size_t>(k)]);
      const auto same = [&](const Vec3d& q) { return equal(p, q); };
      if (std::none_of(corners.begin(), corners.begin() + long(count), same)) corners[count++] = p;
    }
    Vec3d apart = first_ ? v : -v, theirs;
    if (count > 3 || !round_->nearest({corners.data(), count}, apart, theirs)) return false;
    v = first_ ? apart : -apart, on_b = first_ ? theirs : theirs + apart;
    return true;
  }

 private:
  const Vec3d& corner(const Vertex& v) const { return first_ ? v.on_b : v.on_a; }
  static bool equal(const Vec3d& p, const Vec3d& q) { return p.x == q.x && p.y == q.y && p.z == q.z; }

  bool first_;
  std::optional<Ellipsoid> round_;
};

enum class Found { apart, leapt, beyond, overlap };

/// @param v out: from B to A; beyond the limit, an axis that separates them by more
/// @param on_b out: set after a leap
Found gjk(const Core& a, const Core& b, double limit, Simplex& s, Vec3d& v, Vec3d& on_b) {
  double length = 0;
  const RoundPair round(a, b);
  const double scale = a.scale() + b.scale(), touching = squared(1e-11 * scale) + 1e-200;
  const auto leaps = [&] {
    Vec3d leapt = v;
    if (!round || !round.leap(s, leapt, on_b)) return false;
    const double square = dot(leapt, leapt), off = std::abs(square - dot(leapt, vertex(a, b, -leapt).w));
    if (!(square > touching && off <= kRelative * square + kRounding * scale * std::sqrt(square))) return false;
    v = leapt;
    return true;
  };
  const auto stuck = [&] { return leaps() ? Found::leapt : Found::apart; };  // no further progress in this precision
  const Vec3d apart = direction(a.centre() - b.centre(), {1, 0, 0}, length);
  s.points[0] = vertex(a, b, -apart);
  v = apart;
  if (dot(apart, s.points[0].w) > limit) return Found::beyond;
  s.weight[0] = 1;
  s.count = 1;
  v = s.points[0].w;
  double vv = dot(v, v);
  for (int step = 0; step < kGjkSteps; ++step) {
    if (vv <= touching) return Found::overlap;
    const Vertex next = vertex(a, b, -v);
    const double bound = dot(v, next.w);  // |v| times the lower bound of the distance
    if (bound > 0 && bound * bound > vv * limit * limit) return Found::beyond;
    if (vv - bound <= kRelative * vv) return Found::apart;
    for (int k = 0; k < s.count; ++k) {
      const Vec3d d = s.points[static_cast<std::size_t>(k)].w - next.w;
      if (dot(d, d) == 0) return stuck();
    }
    const bool complete = round && round.known(s, next);
    s.points[static_cast<std::size_t>(s.count++)] = next;
    Nearest nearest;
    if (s.count == 2)
      nearest = nearest_on_segment(s, 0, 1);
    else if (s.count == 3)
      nearest = nearest_on_triangle(s, 0, 1, 2);
    else if (!nearest_on_tetrahedron(s, nearest))
      return Found::overlap;
    if (!(nearest.squared_distance < vv)) {
      --s.count;
      return stuck();
    }
    s.keep(nearest.weight);
    v = s.sum(&Vertex::w);
    vv = nearest.squared_distance;
    if (complete && leaps()) return Found::leapt;
  }
  return stuck();
}

/// A polytope inside A - B that contains the origin.
class Polytope {
 public:
  Polytope(const Core& a, const Core& b) : a_(a), b_(b), tolerance_(1e-12 * (a.scale() + b.scale())) {}

  /// Builds a tetrahedron around the origin from GJK's final simplex. False if A - B is flat; `normal` is then normal
  /// to it.
  bool start(const Simplex& s, Vec3d& normal);
  void expand();
  void answer(Closest& out) const;

 private:
  static constexpr int kMaxVertices = 160, kMaxFaces = 2 * kMaxVertices;
  struct Face {
    std::array<int, 3> corners;
    Vec3d normal;
    double distance;
  };

  const Vec3d& w(int i) const { return vertices_[static_cast<std::size_t>(i)].w; }
  bool add_vertex_far_from(const Vec3d& d);
  bool add_face(int i, int j, int k);
  int nearest_face() const;
  void remember(const Vec3d& normal, double depth);
  void witness(Closest& out) const;

  const Core &a_, &b_;
  double tolerance_;
  std::array<Vertex, kMaxVertices> vertices_;
  int vertex_count_ = 0;
  std::array<Face, kMaxFaces> faces_;
  int face_count_ = 0;
  double depth_ = std::numeric_limits<double>::infinity();
  Vec3d depth_normal_{0, 0, 1};
};

/// Adds the support along d or -d if it is off the plane through the first vertex normal to d.
bool Polytope::add_vertex_far_from(const Vec3d& d) {
  for (const double sign : {1.0, -1.0}) {
    const Vertex v = vertex(a_, b_, d * sign);
    if (std::abs(dot(v.w - w(0), d)) <= tolerance_ * norm(d)) continue;
    vertices_[static_cast<std::size_t>(vertex_count_++)] = v;
    return true;
  }
  return false;
}

bool Polytope::start(const Simplex& s, Vec3d& normal) {
  vertex_count_ = 0;
  for (int k = 0; k < s.count; ++k)
    vertices_[static_cast<std::size_t>(vertex_count_++)] = s.points[static_cast<std::size_t>(k)];
  static constexpr Vec3d kAxes[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  if (vertex_count_ == 1) {
    for (const Vec3d& axis : kAxes) {
      if (add_vertex_far_from(axis)) break;
    }
  }
  if (vertex_count_ < 2) return normal = {0, 0, 1}, false;
  double length = 0;
  const Vec3d u = direction(w(1) - w(0), {1, 0, 0}, length);
  // Two directions perpendicular to u.
  const Vec3d p = direction(cross(u, std::abs(u.x) < 0.6 ? kAxes[0] : kAxes[1]), {0, 0, 1}, length), q = cross(u, p);
  if (vertex_count_ == 2 && !add_vertex_far_from(p) && !add_vertex_far_from(q)) return normal = p, false;
  normal = direction(cross(w(1) - w(0), w(2) - w(0)), p, length);
  if (vertex_count_ == 3 && !add_vertex_far_from(normal)) return false;
  if (dot(cross(w(1) - w(0), w(2) - w(0)), w(3) - w(0)) > 0) std::swap(vertices_[1], vertices_[2]);
  face_count_ = 0;
  return add_face(0, 1, 2) && add_face(0, 3, 1) && add_face(0, 2, 3) && add_face(1, 3, 2);
}

bool Polytope::add_face(int i, int j, int k) {
  if (face_count_ == kMaxFaces) return false;
  double length = 0;
  const Vec3d n = direction(cross(w(j) - w(i), w(k) - w(i)), {0, 0, 0}, length);
  // A sliver has no plane. It is kept for its edges, is never the nearest face and is never visible.
  const bool sliver = length <= squared(tolerance_);
  const double distance = sliver ? std::numeric_limits<double>::infinity() : dot(n, w(i));
  faces_[static_cast<std::size_t>(face_count_++)] = {{i, j, k}, n, distance};
  return true;
}

int Polytope::nearest_face() const {
  int best = 0;
  for (int k = 1; k < face_count_; ++k) {
    if (faces_[static_cast<std::size_t>(k)].distance < faces_[static_cast<std::size_t>(best)].distance) best = k;
  }
  return best;
}

void Polytope::remember(const Vec3d& normal, double depth) {
  if (depth < depth_) depth_ = depth, depth_normal_ = normal;
}

void Polytope::expand() {
  while (vertex_count_ < kMaxVertices) {
    const Face nearest = faces_[static_cast<std::size_t>(nearest_face())];
    const Vertex next = vertex(a_, b_, nearest.normal);
    const double depth = dot(next.w, nearest.normal);
    remember(nearest.normal, depth);
    if (depth - nearest.distance <= 1e3 * tolerance_) return;
    // Removes the faces that see the new vertex; edges of exactly one such face form the horizon.
    std::array<std::array<int, 2>, 3 * kMaxFaces> horizon;
    int edges = 0, kept = 0;
    for (int k = 0; k < face_count_; ++k) {
      const Face& f = faces_[static_cast<std::size_t>(k)];
      if (dot(f.normal, next.w) - f.distance <= tolerance_) {
        if (kept < k) faces_[static_cast<std::size_t>(kept)] = f;
        ++kept;
        continue;
      }
      for (std::size_t e = 0; e < 3; ++e) {
        const int from = f.corners[e], to = f.corners[(e + 1) % 3];
        const auto begin = horizon.begin(), end = begin + edges;
        const auto twin = std::find_if(begin, end, [&](const auto& edge) { return edge[0] == to && edge[1] == from; });
        if (twin != end)
          *twin = horizon[static_cast<std::size_t>(--edges)];
        else
          horizon[static_cast<std::size_t>(edges++)] = {from, to};
      }
    }
    if (kept == face_count_) return;
    face_count_ = kept;
    vertices_[static_cast<std::size_t>(vertex_count_)] = next;
    for (int k = 0; k < edges; ++k) {
      const auto& edge = horizon[static_cast<std::size_t>(k)];
      if (!add_face(edge[0], edge[1], vertex_count_)) return;
    }
    ++vertex_count_;
  }
}

/// The points of both shapes that give the boundary point nearest to the origin. Coplanar faces are equally near; the
/// one that contains the point is used.
void Polytope::witness(Closest& out) const {
  const double least = faces_[static_cast<std::size_t>(nearest_face())].distance;
  double best = std::numeric_limits<double>::infinity();
  for (int k = 0; k < face_count_; ++k) {
    const Face& face = faces_[static_cast<std::size_t>(k)];
    if (face.distance > least + 1e3 * tolerance_) continue;
    Simplex s;
    for (std::size_t c = 0; c < 3; ++c) s.points[c] = vertices_[static_cast<std::size_t>(face.corners[c])];
    s.count = 3;
    const Nearest nearest = nearest_on_face(s);
    if (nearest.squared_distance >= best) continue;
    best = nearest.squared_distance;
    s.keep(nearest.weight);
    // Midway between the two; the caller subtracts the depth along the normal.
    out.on_b = (s.sum(&Vertex::on_a) + s.sum(&Vertex::on_b)) * 0.5;
  }
}

void Polytope::answer(Closest& out) const {
  out.normal = -depth_normal_;
  out.distance = -depth_;
  witness(out);
  out.on_b = mul_add(out.normal, depth_ / 2, out.on_b);
}

/// Depth and normal of overlapping cores.
void penetration(const Core& a, const Core& b, const Simplex& s, Closest& out) {
  Polytope polytope(a, b);
  Vec3d across{0, 0, 1};
  if (polytope.start(s, across)) {
    polytope.expand();
    polytope.answer(out);
    return;
  }
  // A - B is flat and contains the origin: zero depth, normal perpendicular to it.
  const Vertex v = vertex(a, b, across), u = vertex(a, b, -across);
  const double depth = dot(v.w, across), other = -dot(u.w, across);
  out.normal = depth <= other ? -across : across;
  out.distance = -std::min(depth, other);
  out.on_b = (s.points[0].on_a + s.points[0].on_b) * 0.5;
}

}  // namespace

bool closest_points(const Core& a, const Core& b, double limit, Closest& out) {
  Simplex s;
  Vec3d v{0, 0, 0};
  const double radii = a.radius + b.radius;
  switch (gjk(a, b, limit + radii, s, v, out.on_b)) {
    case Found::beyond: out.normal = v; return false;
    case Found::overlap: penetration(a, b, s, out); break;
    case Found::apart: out.on_b = s.sum(&Vertex::on_b); [[fallthrough]];
    case Found::leapt:
      out.distance = norm(v);
      out.normal = v * (1 / out.distance);
      break;
  }
  out.distance -= radii;
  out.on_b = mul_add(out.normal, b.radius, out.on_b);
  return out.distance <= limit;
}

/// Whether an axis separates the cores by more than `limit`, and by enough for GJK to find it despite rounding.
static bool parts(const Vec3d& axis, const Core& a, const Core& b, double limit) {
  const double needed = limit + a.radius + b.radius + kCertain * (a.scale() + b.scale());
  return dot(axis, a.support(-axis) - b.support(axis)) > needed * norm(axis);
}

/// Whether the stored axis still separates them.
static bool still_parted(const Core& a, const Core& b, const ContactList& out) {
  const Vec3d* const parting = out.parting();
  return parting && dot(*parting, *parting) > 0 && parts(a.pose.rotation * *parting, a, b, out.margin());
}

static void find_features(const Core& a, const Core& b, ContactList& out) {
  Closest closest;
  const bool near = closest_points(a, b, out.margin(), closest);
  if (out.parting()) *out.parting() = near ? Vec3d{0, 0, 0} : transpose_mul(a.pose.rotation, closest.normal);
  if (near) add_manifold(a, b, closest, out);
}

void closest_features(const Body& a, const Body& b, ContactList& out) {
  const Core ca(a), cb(b);
  if (!still_parted(ca, cb, out)) find_features(ca, cb, out);
}

void convex_pair(const Body& a, const Body& b, ContactList& out) {
  if (boxes_still_parted(a, b, out)) return;
  const Core ca(a), cb(b);
  if (!still_parted(ca, cb, out) && !boxes_apart(a, b, out)) find_features(ca, cb, out);
}

}  // namespace tarsus::narrow
