// Height fields: each triangle under the other shape is tested by GJK and EPA, one-sided.
//
// Two rules keep a body from catching on the edges between triangles of a smooth terrain:
//
// - A contact whose normal deviates from its triangle's is used only if the terrain around the touching edge or corner
//   stays below the contact's tangent plane.
// - The part of a body below a triangle (its lowest point, or part of its lowest face) is pushed out along that
//   triangle's normal, even if another direction is shorter, provided that the terrain there is about as deep as the
//   triangle's plane indicates.
//
// If neither rule gives a contact although some triangle is overlapped, the exit direction closest to its triangle's
// normal is used.
#include "tarsus/geometry/height_field.hpp"

#include <fmt/format.h>

#include "geometry/core.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

HeightField::HeightField(int rows, int columns, std::span<const double> heights, double half_x, double half_y,
                         double base)
    : rows_(rows), columns_(columns), half_x_(half_x), half_y_(half_y), base_(base) {
  if (rows < 2 || columns < 2) {
    throw ValueError("height field", fmt::format("{} x {} points", rows, columns), "at least 2 x 2 points");
  }
  check_size("heights", heights.size(), static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (const double size : {half_x, half_y, base}) {
    if (!(size > 0) || !std::isfinite(size))
      throw ValueError("height field size", number_text(size), "a positive, finite length [m]");
  }
  for (const double h : heights) {
    if (!std::isfinite(h)) throw ValueError("height field height", number_text(h), "a finite height [m]");
  }
  heights_.assign(heights.begin(), heights.end());
  step_x_ = 2 * half_x / (columns - 1);
  step_y_ = 2 * half_y / (rows - 1);
  const auto [low, high] = std::minmax_element(heights_.begin(), heights_.end());
  box_ = {{-half_x, -half_y, std::min(-base, *low)}, {half_x, half_y, *high}};
}

int HeightField::column_at(double x) const {
  return static_cast<int>(std::clamp((x + half_x_) / step_x_, 0.0, static_cast<double>(columns_ - 2)));
}
int HeightField::row_at(double y) const {
  return static_cast<int>(std::clamp((y + half_y_) / step_y_, 0.0, static_cast<double>(rows_ - 2)));
}

namespace narrow {

namespace {

constexpr double kShareOfDepth = 0.5;  ///< required depth in the terrain, relative to that below the triangle

struct GridPoint {
  int row, column;
};

/// A height field and another shape, in the field's frame.
class Terrain {
 public:
  Terrain(const HeightField& field, const Core& other, double margin) : field_(field), other_(other), points_(margin) {}

  void collide(const Aabb& under);
  ContactList& points() { return points_; }

 private:
  using Corners = std::array<GridPoint, 3>;

  Vec3d at(const GridPoint& g) const { return field_.point(g.row, g.column); }
  bool inside(const GridPoint& g) const {
    return g.row >= 0 && g.column >= 0 && g.row < field_.rows() && g.column < field_.columns();
  }
  struct Face {  ///< a triangle
    Core triangle;
    Vec3d normal, lowest;  ///< the shape's lowest point along the normal
    double height = 0;     ///< of that point over the triangle's plane
  };
  Face face_of(const Corners& corners) const;
  struct Cell {  ///< of the grid
    int row, column;
    double s, t;  ///< a point's place in it along x and y, from 0 to 1
  };
  Cell cell_of(const Vec3d& p) const;
  void raise();
  void touch(const Corners& corners);
  void lift(const Core& triangle, const Vec3d& normal, double height, const Vec3d& lowest);
  static Closest along(const Vec3d& normal, double height, const Vec3d& lowest);
  double depth_of(const Vec3d& p) const;
  bool stands_out(const Corners& corners, const Vec3d& p, const Vec3d& up, bool overlap) const;
  bool highest(const Corners& corners, const Vec3d& up) const;
  /// Whether all grid points that share a triangle with g are below the plane.
  bool ring_below(const GridPoint& g, const Vec3d& p, const Vec3d& up) const;
  bool below(const GridPoint& g, const Vec3d& p, const Vec3d& up) const;
  void add(const Core& triangle, const Closest& closest);
  void add(const ContactPoint& point);

  struct LastResort {  ///< exit direction closest to its triangle's normal, if neighbours reject all
    double worth = 0;
    Core triangle;
    Closest closest;
  };

  const HeightField& field_;
  const Core& other_;
  ContactList points_;
  LastResort last_resort_;
};

void Terrain::collide(const Aabb& under) {
  const Aabb& box = field_.box();
  if (!overlap(under, box)) return;
  const int c1 = field_.column_at(under.upper.x), r1 = field_.row_at(under.upper.y);
  for (int r = field_.row_at(under.lower.y); r <= r1; ++r) {
    for (int c = field_.column_at(under.lower.x); c <= c1; ++c) {
      const double highest = std::max(
          {field_.height(r, c), field_.height(r, c + 1), field_.height(r + 1, c), field_.height(r + 1, c + 1)});
      if (highest < under.lower.z) continue;
      touch({GridPoint{r, c}, {r, c + 1}, {r + 1, c + 1}});
      touch({GridPoint{r, c}, {r + 1, c + 1}, {r + 1, c}});
    }
  }
  if (points_.size() > 0) return;
  last_resort_.worth > 0 ? add(last_resort_.triangle, last_resort_.closest) : raise();
}

/// For each triangle, the lowest point along its normal of a shape that is all under the surface may be under another
/// one. The shape then leaves along the normal of the triangle over its foot.
void Terrain::raise() {
  const Vec3d foot = other_.support({0, 0, -1}) - Vec3d{0, 0, other_.radius};
  const Vec3d& side = field_.box().upper;
  if (std::abs(foot.x) > side.x || std::abs(foot.y) > side.y || foot.z < -field_.base() || !(depth_of(foot) > 0))
    return;
  const auto [r, c, s, t] = cell_of(foot);
  const GridPoint first{r, c}, last{r + 1, c + 1};
  const Face face = face_of(s >= t ? Corners{first, {r, c + 1}, last} : Corners{first, last, {r + 1, c}});
  if (face.height < 0) add(face.triangle, along(face.normal, face.height, face.lowest));
}

Terrain::Face Terrain::face_of(const Corners& corners) const {
  Face out;
  out.triangle.is_triangle = true;
  for (std::size_t k = 0; k < 3; ++k) out.triangle.triangle[k] = at(corners[k]);
  const auto& t = out.triangle.triangle;
  double length = 0;
  out.normal = direction(cross(t[1] - t[0], t[2] - t[0]), {0, 0, 1}, length);
  out.lowest = mul_add(out.normal, -other_.radius, other_.support(-out.normal));
  out.height = dot(out.normal, out.lowest - t[0]);
  return out;
}

void Terrain::touch(const Corners& corners) {
  const auto& [triangle, n, lowest, height] = face_of(corners);
  if (height > points_.margin()) return;
  Closest closest;
  if (closest_points(triangle, other_, points_.margin(), closest)) {
    const Vec3d up = -closest.normal, on_triangle = mul_add(up, -closest.distance, closest.on_b);
    const double lean = dot(up, n);
    const bool overlap = closest.distance < -other_.radius;
    const bool out = lean > 1 - 1e-10 || (overlap && lean > 0.02 && highest(corners, up)) ||
                     (lean > 0.02 && stands_out(corners, on_triangle, up, overlap));
    if (out) return add(triangle, closest);
    if (closest.distance < 0) {  // the exit may lead below; then use the shortest of those along normals
      const double worth = lean > 0.02 ? lean : 0.02 / (1 - height / other_.scale());
      if (worth > last_resort_.worth)
        last_resort_ = {worth, triangle, lean > 0.02 ? closest : along(n, height, lowest)};
    }
  }
  lift(triangle, n, height, lowest);
}

/// The exit along a triangle's normal.
Closest Terrain::along(const Vec3d& normal, double height, const Vec3d& lowest) {
  Closest closest;
  closest.normal = -normal, closest.distance = height, closest.on_b = lowest;
  return closest;
}

/// Contacts along the triangle's normal: the lowest point if it is under the triangle, else the part of the lowest face
/// or line that is.
void Terrain::lift(const Core& triangle, const Vec3d& normal, double height, const Vec3d& lowest) {
  if (height >= 0 || lowest.z < -field_.base()) return;
  const Closest closest = along(normal, height, lowest);
  const auto& t = triangle.triangle;
  bool inside = true;
  for (std::size_t k = 0; k < 3; ++k) {
    const Vec3d edge = t[(k + 1) % 3] - t[k], to = lowest - t[k];
    inside = inside && edge.x * to.y - edge.y * to.x >= 0;
  }
  if (inside) return add(triangle, closest);
  ContactList found(0);  // parts beside this triangle belong to other triangles
  add_manifold(triangle, other_, closest, found);
  for (int k = 0; k < found.size(); ++k) {
    const ContactPoint& p = found[k];
    if (p.feature == kClosestPoint) continue;  // the lowest point itself is elsewhere
    // What is below one side of a ridge, along its normal, may be outside the other side, or close to it.
    const double depth = depth_of(mul_add(p.normal, -p.distance / 2, p.position)) * normal.z;
    if (depth >= -kShareOfDepth * p.distance - 1e-9 * other_.scale()) add(p);
  }
}

Terrain::Cell Terrain::cell_of(const Vec3d& p) const {
  const int c = field_.column_at(p.x), r = field_.row_at(p.y);
  const Vec3d a = at({r, c}), d = at({r + 1, c + 1});
  return {r, c, (p.x - a.x) / (d.x - a.x), (p.y - a.y) / (d.y - a.y)};
}

/// Depth of a point below the terrain.
double Terrain::depth_of(const Vec3d& p) const {
  const auto [r, c, s, t] = cell_of(p);
  const Vec3d a = at({r, c}), d = at({r + 1, c + 1});
  const double corner = s >= t ? field_.height(r, c + 1) : field_.height(r + 1, c), low = std::min(s, t),
               high = std::max(s, t);
  return a.z + (corner - a.z) * (high - low) + (d.z - a.z) * low - p.z;
}

/// Whether grid point g, if it exists, is not above the plane through p normal to `up`.
bool Terrain::below(const GridPoint& g, const Vec3d& p, const Vec3d& up) const {
  if (!inside(g)) return true;
  const Vec3d d = at(g) - p;
  return dot(d, up) <= 1e-9 * norm(d);
}

bool Terrain::ring_below(const GridPoint& g, const Vec3d& p, const Vec3d& up) const {
  static constexpr GridPoint kRing[] = {{0, 1}, {1, 1}, {1, 0}, {0, -1}, {-1, -1}, {-1, 0}};
  return std::all_of(std::begin(kRing), std::end(kRing), [&](const GridPoint& d) {
    return below({g.row + d.row, g.column + d.column}, p, up);
  });
}

/// Whether the grid points around the triangle's corner farthest along `up` are not above that corner.
bool Terrain::highest(const Corners& corners, const Vec3d& up) const {
  const auto top = std::max_element(corners.begin(), corners.end(), [&](const GridPoint& a, const GridPoint& b) {
    return dot(at(a), up) < dot(at(b), up);
  });
  return ring_below(*top, at(*top), up);
}

/// Whether the terrain adjacent to the edge or corner that contains p stays below. For an overlap, also checks that
/// there is one and that the triangle itself stays below, because the search may be inexact.
bool Terrain::stands_out(const Corners& corners, const Vec3d& p, const Vec3d& up, bool overlap) const {
  const Vec3d a = at(corners[0]), b = at(corners[1]), c = at(corners[2]);
  const Vec3d n = cross(b - a, c - a);
  const double area2 = dot(n, n);
  const double weight[3] = {dot(n, cross(b - p, c - p)) / area2, dot(n, cross(c - p, a - p)) / area2,
                            dot(n, cross(a - p, b - p)) / area2};
  const double on_edge = overlap ? 1e-4 : 1e-6;
  bool within = true;
  for (std::size_t k = 0; k < 3; ++k) {
    const GridPoint &own = corners[k], &i = corners[(k + 1) % 3], &j = corners[(k + 2) % 3];
    if (overlap && dot(at(own) - p, up) > on_edge * norm(at(own) - p)) return false;
    if (weight[k] > 1 - on_edge) return ring_below(own, p, up);
    if (weight[k] >= on_edge) continue;
    // On the opposite edge: the fourth corner of the two triangles that share it, a parallelogram on the grid.
    if (!below({i.row + j.row - own.row, i.column + j.column - own.column}, p, up)) return false;
    within = false;
  }
  return !(within && overlap);
}

void Terrain::add(const Core& triangle, const Closest& closest) {
  ContactList found(points_.margin());
  add_manifold(triangle, other_, closest, found);
  for (int k = 0; k < found.size(); ++k) add(found[k]);
}

/// Adds a point unless it is known already, as on the edge between two triangles.
void Terrain::add(const ContactPoint& p) {
  for (int i = 0; i < points_.size(); ++i) {
    const Vec3d apart = points_[i].position - p.position, turn = points_[i].normal - p.normal;
    if (dot(apart, apart) < squared(1e-6 * other_.scale()) && dot(turn, turn) < 1e-10) return;
  }
  points_.add(mul_add(p.normal, -p.distance / 2, p.position), p.normal, p.distance, p.feature);
}

}  // namespace

constexpr std::uint32_t kNextOfOneNumber = 1u << 16;  // no shape has so many features

void height_field_pair(const Body& a, const Body& b, ContactList& out) {
  const Mat3d& r = a.pose.rotation;
  const ShapePose local{a.to_local(b.position()), transpose(r) * b.pose.rotation};
  const Core other({b.shape, {local.position, local.rotation}});
  Terrain terrain(*a.shape.field, other, out.margin());
  terrain.collide(bounds(b.shape, local, out.margin()));
  ContactList& points = terrain.points();
  for (int k = 0; k < points.size(); ++k) {
    const ContactPoint& p = points[k];
    // Each triangle numbers its own points: those with one number become its first, second and so on.
    std::uint32_t feature = p.feature;
    for (int i = 0; i < k; ++i) feature += points[i].feature == p.feature ? kNextOfOneNumber : 0;
    out.add(a.to_world(mul_add(p.normal, -p.distance / 2, p.position)), r * p.normal, p.distance, feature);
  }
}

}  // namespace narrow

}  // namespace tarsus
