// Internals of the narrow phase. Poses are relative to shape A's position, so that no precision is lost far from the
// world's origin. Each pair's function handles one order of the two shapes; the dispatcher swaps the others.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "tarsus/geometry/narrow_phase.hpp"

namespace tarsus::narrow {

/// Collects contact points within the margin. More than kMaxManifold points are thinned at the end.
class ContactList {
 public:
  explicit ContactList(double margin, Vec3d* parting = nullptr) : margin_(margin), parting_(parting) {}

  double margin() const { return margin_; }
  /// In A's axes; null unless the caller keeps one, see collide().
  Vec3d* parting() const { return parting_; }
  int size() const { return size_; }
  ContactPoint& operator[](int i) { return data()[i]; }

  /// Adds a contact point. `on_b` is the point on B's surface; A's is distance · normal beyond it.
  void add(const Vec3d& on_b, const Vec3d& normal, double distance, std::uint32_t feature, bool next = false) {
    if (!(distance <= margin_)) return;
    if (size_ == kCapacity) reduce(kMaxManifold);
    // Number by number: copying an assembled point would stall on its own stores.
    ContactPoint& p = data()[size_++];
    p.position = mul_add(normal, distance / 2, on_b);
    p.normal = normal;
    p.distance = distance;
    p.feature = feature;
    p.next = next;
    uneven_ = uneven_ || next;
  }

  /// Keeps at most `count` points: one of the deepest, then repeatedly the one farthest from those kept, where some are
  /// of next faces less what it is higher by over the tilt that would press it down. The deepest
  /// replaces its neighbour if that was kept instead, with the neighbour's feature.
  void reduce(int count);

 private:
  static constexpr int kCapacity = 64;
  ContactPoint* data() { return reinterpret_cast<ContactPoint*>(storage_); }

  double margin_;
  Vec3d* parting_;
  int size_ = 0;
  bool uneven_ = false;
  // Raw bytes: default-constructing 64 points would cost more than a pair of spheres.
  alignas(ContactPoint) std::byte storage_[kCapacity * sizeof(ContactPoint)];
};

/// Pose relative to shape A's position. The rotation is the caller's, because a copy of nine numbers would stall on its
/// own stores.
struct BodyPose {
  Vec3d position;
  const Mat3d& rotation;
};

/// A shape with its pose, the argument of the pairs' functions.
struct Body {
  const Shape& shape;
  BodyPose pose;

  const Vec3d& size() const { return shape.size; }
  const Vec3d& position() const { return pose.position; }
  Vec3d axis() const { return pose.rotation.column_z(); }
  Vec3d to_world(const Vec3d& p) const { return pose.position + pose.rotation * p; }
  Vec3d to_local(const Vec3d& p) const { return transpose_mul(pose.rotation, p - pose.position); }
};

inline double squared(double x) { return x * x; }

/// Sine of the tilt to the supporting surface below which a cylinder counts as upright.
inline constexpr double kUpright = 1e-3;

/// v / |v|, or `otherwise` if v is too short to have a direction; `length` is |v| in both cases.
inline Vec3d direction(const Vec3d& v, const Vec3d& otherwise, double& length) {
  length = norm(v);
  return length > 1e-150 ? v * (1 / length) : otherwise;
}

// Normals point from the second to the first shape. A's type is B's or comes after it in ShapeType.
void sphere_plane(const Body& a, const Body& b, ContactList& out);
void capsule_plane(const Body& a, const Body& b, ContactList& out);
void ellipsoid_plane(const Body& a, const Body& b, ContactList& out);
void cylinder_plane(const Body& a, const Body& b, ContactList& out);
void box_plane(const Body& a, const Body& b, ContactList& out);
void convex_plane(const Body& a, const Body& b, ContactList& out);
void capsule_sphere(const Body& a, const Body& b, ContactList& out);
void cylinder_sphere(const Body& a, const Body& b, ContactList& out);
void box_sphere(const Body& a, const Body& b, ContactList& out);
void capsule_capsule(const Body& a, const Body& b, ContactList& out);
void box_box(const Body& a, const Body& b, ContactList& out);
/// Any two shapes with a support function: bounding boxes, then GJK, EPA and clipping.
void convex_pair(const Body& a, const Body& b, ContactList& out);
/// A height field and any of those shapes.
void height_field_pair(const Body& a, const Body& b, ContactList& out);

}  // namespace tarsus::narrow
