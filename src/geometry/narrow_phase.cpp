#include "tarsus/geometry/narrow_phase.hpp"

#include <limits>

#include "geometry/pairs.hpp"

namespace tarsus {

namespace narrow {

void ContactList::reduce(int count) {
  if (size_ <= count) return;
  const auto deepest = std::min_element(points_.begin(), points_.begin() + size_,
                                        [](const auto& a, const auto& b) { return a.distance < b.distance; });
  std::swap(points_[0], *deepest);
  std::array<double, kCapacity> apart;
  apart.fill(std::numeric_limits<double>::infinity());
  for (int kept = 1; kept < count; ++kept) {
    int best = kept;
    for (int i = kept; i < size_; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const Vec3d d = points_[k].position - points_[static_cast<std::size_t>(kept - 1)].position;
      apart[k] = std::min(apart[k], dot(d, d));
      if (apart[k] > apart[static_cast<std::size_t>(best)]) best = i;
    }
    std::swap(points_[static_cast<std::size_t>(kept)], points_[static_cast<std::size_t>(best)]);
    std::swap(apart[static_cast<std::size_t>(kept)], apart[static_cast<std::size_t>(best)]);
  }
  size_ = count;
}

namespace {

using PairFunction = void (*)(const Body&, const Body&, ContactList&);

constexpr int kTypes = static_cast<int>(ShapeType::height_field) + 1;

// [type of A][type of B], A's not before B's.
constexpr PairFunction kPairs[kTypes][kTypes] = {
    {nullptr},
    {sphere_plane, sphere_sphere},
    {capsule_plane, capsule_sphere, capsule_capsule},
    {ellipsoid_plane, convex_pair, convex_pair, convex_pair},
    {cylinder_plane, cylinder_sphere, convex_pair, convex_pair, convex_pair},
    {box_plane, box_sphere, convex_pair, convex_pair, convex_pair, box_box},
    {convex_plane, convex_pair, convex_pair, convex_pair, convex_pair, convex_pair, convex_pair},
    {nullptr, height_field_pair, height_field_pair, height_field_pair, height_field_pair, height_field_pair,
     height_field_pair},
};

bool finite(const Vec3d& v) { return (v.x - v.x) + (v.y - v.y) + (v.z - v.z) == 0; }

bool usable(const Shape& shape, const ShapePose& pose) {
  const Vec3d& s = shape.size;
  const bool sized = s.x >= 0 && s.y >= 0 && s.z >= 0 && finite(s);
  const bool plane = shape.type == ShapeType::plane;  // sizes are for drawing
  const bool whole = shape.type == ShapeType::convex         ? shape.hull != nullptr
                     : shape.type == ShapeType::height_field ? shape.field != nullptr
                                                             : true;
  return whole && (plane || sized) && finite(pose.position) && finite(pose.rotation.row_x()) &&
         finite(pose.rotation.row_y()) && finite(pose.rotation.row_z());
}

}  // namespace

}  // namespace narrow

int collide(const Shape& a, const ShapePose& pose_a, const Shape& b, const ShapePose& pose_b, double margin,
            std::span<ContactPoint> out) {
  using namespace narrow;
  if (out.empty() || !(margin >= 0) || !std::isfinite(margin) || !usable(a, pose_a) || !usable(b, pose_b)) return 0;
  const bool swapped = a.type < b.type;
  const Shape &first = swapped ? b : a, &second = swapped ? a : b;
  const PairFunction pair = kPairs[static_cast<int>(first.type)][static_cast<int>(second.type)];
  if (!pair) return 0;
  const ShapePose &pose_first = swapped ? pose_b : pose_a, &pose_second = swapped ? pose_a : pose_b;
  const Vec3d origin = pose_first.position;
  ContactList list(margin);
  pair({first, {{0, 0, 0}, pose_first.rotation}}, {second, {pose_second.position - origin, pose_second.rotation}},
       list);
  list.reduce(std::min(kMaxManifold, static_cast<int>(out.size())));
  int count = 0;
  for (int i = 0; i < list.size(); ++i) {
    ContactPoint p = list[i];
    p.position += origin;
    if (swapped) p.normal = -p.normal;
    if (finite(p.position) && finite(p.normal)) out[static_cast<std::size_t>(count++)] = p;
  }
  return count;
}

}  // namespace tarsus
