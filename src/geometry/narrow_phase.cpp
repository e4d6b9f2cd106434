#include "tarsus/geometry/narrow_phase.hpp"

#include <cmath>
#include <limits>

#include "geometry/pairs.hpp"

namespace tarsus {

namespace narrow {

constexpr double kTie = 1e-3;   // relative
constexpr double kEven = 1e-4;  // relative, of heights that count as one
constexpr double kTilt = 5e-3;  // of the shapes, at which a farther point bears them rather than a deeper one

void ContactList::reduce(int count) {
  if (size_ <= count) return;
  ContactPoint* points = data();
  const auto squared_distance = [&](int i, int j) {
    const Vec3d d = points[i].position - points[j].position;
    return dot(d, d);
  };
  int deepest = 0;
  double extent = 0;
  for (int i = 1; i < size_; ++i) {
    if (points[i].distance < points[deepest].distance) deepest = i;
    extent = std::max(extent, squared_distance(0, i));
  }
  if (count == 1) {
    points[0] = points[deepest];
    size_ = 1;
    return;
  }
  // Near ties go to the earlier point, so that noise does not change the selection between steps.
  const double level = points[deepest].distance + kTie * std::sqrt(extent);
  const double bearing = points[deepest].distance + kEven * std::sqrt(extent);
  std::array<double, kCapacity> apart;
  apart.fill(std::numeric_limits<double>::infinity());
  std::array<int, kCapacity> chosen;
  int next = 0;
  while (points[next].distance > level) ++next;
  for (int kept = 0; kept < count; ++kept) {
    chosen[static_cast<std::size_t>(kept)] = next;
    apart[static_cast<std::size_t>(next)] = -2;  // selected already
    double farthest = -1;
    for (int i = 0, from = next; i < size_; ++i) {
      double& distance = apart[static_cast<std::size_t>(i)];
      distance = std::min(distance, squared_distance(from, i));
      const double lift = uneven_ ? (points[i].distance - bearing) / kTilt : 0;
      const double reach = lift > 0 && distance > 0 ? squared(std::max(0.0, std::sqrt(distance) - lift)) : distance;
      if (reach > farthest * (1 + kTie)) farthest = reach, next = i;
    }
  }
  const auto end = chosen.begin() + count;
  if (std::find(chosen.begin(), end, deepest) == end) {
    const int stand_in = *std::min_element(
        chosen.begin(), end, [&](int i, int j) { return squared_distance(deepest, i) < squared_distance(deepest, j); });
    points[stand_in].position = points[deepest].position;
    points[stand_in].distance = points[deepest].distance;
    points[stand_in].next = points[deepest].next;
  }
  std::sort(chosen.begin(), end);
  for (int kept = 0; kept < count; ++kept) points[kept] = points[chosen[static_cast<std::size_t>(kept)]];
  size_ = count;
}

namespace {

using PairFunction = void (*)(const Body&, const Body&, ContactList&);

constexpr int kTypes = static_cast<int>(ShapeType::height_field) + 1;

// [type of A][type of B], A's type not before B's.
constexpr PairFunction kPairs[kTypes][kTypes] = {
    {nullptr},
    {sphere_plane, nullptr},  // collide_spheres()
    {capsule_plane, capsule_sphere, capsule_capsule},
    {ellipsoid_plane, convex_pair, convex_pair, convex_pair},
    {cylinder_plane, cylinder_sphere, convex_pair, convex_pair, convex_pair},
    {box_plane, box_sphere, convex_pair, convex_pair, convex_pair, box_box},
    {convex_plane, convex_pair, convex_pair, convex_pair, convex_pair, convex_pair, convex_pair},
    {nullptr, height_field_pair, height_field_pair, height_field_pair, height_field_pair, height_field_pair,
     height_field_pair},
};

/// Zero, or NaN if a component is not finite.
double spoiled(const Vec3d& v) { return (v.x - v.x) + (v.y - v.y) + (v.z - v.z); }
bool finite(const Vec3d& v) { return spoiled(v) == 0; }

bool usable(const Shape& shape, const ShapePose& pose) {
  const Vec3d& s = shape.size;
  const bool sized = s.x >= 0 && s.y >= 0 && s.z >= 0 && finite(s);
  const bool plane = shape.type == ShapeType::plane;  // a plane's sizes are only for drawing
  const bool whole = shape.type == ShapeType::convex         ? shape.hull != nullptr
                     : shape.type == ShapeType::height_field ? shape.field != nullptr
                                                             : true;
  const Mat3d& r = pose.rotation;
  return whole && (plane || sized) &&
         (spoiled(pose.position) + spoiled(r.row_x())) + (spoiled(r.row_y()) + spoiled(r.row_z())) == 0;
}

}  // namespace

}  // namespace narrow

int collide(const Shape& a, const ShapePose& pose_a, const Shape& b, const ShapePose& pose_b, double margin,
            std::span<ContactPoint> out, Vec3d* parting) {
  using namespace narrow;
  if (out.empty() || !(margin >= 0) || !std::isfinite(margin) || !usable(a, pose_a) || !usable(b, pose_b)) return 0;
  if (a.type == ShapeType::sphere && b.type == ShapeType::sphere)
    return collide_spheres(pose_a.position, a.size.x, pose_b.position, b.size.x, margin, out[0]);
  const bool swapped = a.type < b.type;
  const Shape &first = swapped ? b : a, &second = swapped ? a : b;
  const PairFunction pair = kPairs[static_cast<int>(first.type)][static_cast<int>(second.type)];
  if (!pair) return 0;
  const ShapePose &pose_first = swapped ? pose_b : pose_a, &pose_second = swapped ? pose_a : pose_b;
  const Vec3d origin = pose_first.position;
  ContactList list(margin, parting);
  pair({first, {{0, 0, 0}, pose_first.rotation}}, {second, {pose_second.position - origin, pose_second.rotation}},
       list);
  list.reduce(std::min(kMaxManifold, static_cast<int>(out.size())));
  int count = 0;
  const double side = swapped ? -1 : 1;
  for (int i = 0; i < list.size(); ++i) {
    const ContactPoint& p = list[i];
    if (!finite(p.position) || !(std::abs(dot(p.normal, p.normal) - 1) < 1e-6)) continue;
    ContactPoint& q = out[static_cast<std::size_t>(count++)];
    q.position = p.position + origin;
    q.normal = p.normal * side;
    q.distance = p.distance;
    q.feature = p.feature;
    q.next = p.next;
  }
  return count;
}

}  // namespace tarsus
