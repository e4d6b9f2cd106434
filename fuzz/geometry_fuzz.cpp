// Any bytes as two shapes and their poses: contacts that are finite, within the margin and with unit normals, or none;
// never a hang. Points become hulls, which may be degenerate.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"
#include "tarsus/geometry/narrow_phase.hpp"

namespace {

using namespace tarsus;

/// Numbers from bytes: small integers and their halves, which make coincidences, or any double at all.
class Numbers {
 public:
  Numbers(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  unsigned byte() { return at_ == end_ ? 0 : *at_++; }
  double number() {
    const unsigned b = byte();
    if (b < 250 || end_ - at_ < 8) return (static_cast<double>(b % 32) - 16) / 8;
    double x;
    std::memcpy(&x, at_, 8);
    at_ += 8;
    return x;
  }
  Vec3d vector() {
    const double x = number(), y = number(), z = number();
    return {x, y, z};
  }
  Mat3d rotation_matrix() {
    const double w = number();
    const Vec3d v = vector();
    const Quatd q = normalized(Quatd{w, v.x, v.y, v.z});
    // A rotation, or nothing that is finite: what lies between is no pose.
    const double length = norm(q.vec()) * norm(q.vec()) + q.w * q.w;
    if (byte() % 4 == 0 || std::abs(length - 1) > 1e-9) return identity3<double>();
    return rotation(q);
  }

 private:
  const std::uint8_t *at_, *end_;
};

struct Owned {
  Shape shape;
  std::unique_ptr<ConvexHull> hull;
  std::unique_ptr<HeightField> field;
};

Owned make_shape(Numbers& in) {
  Owned s;
  s.shape.type = static_cast<ShapeType>(in.byte() % 8);
  s.shape.size = in.vector();
  try {
    if (s.shape.type == ShapeType::convex) {
      std::vector<Vec3d> points;
      for (unsigned n = in.byte() % 24; n > 0; --n) points.push_back(in.vector());
      s.hull = std::make_unique<ConvexHull>(points);
      s.shape.hull = s.hull.get();
    } else if (s.shape.type == ShapeType::height_field) {
      std::vector<double> heights;
      const int rows = 2 + static_cast<int>(in.byte() % 4), columns = 2 + static_cast<int>(in.byte() % 4);
      for (int k = 0; k < rows * columns; ++k) heights.push_back(in.number());
      s.field = std::make_unique<HeightField>(rows, columns, heights, in.number(), in.number(), in.number());
      s.shape.field = s.field.get();
    }
  } catch (const Error&) {  // refused: the shape goes on without, and must touch nothing
  }
  return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Numbers in(data, size);
  const Owned a = make_shape(in), b = make_shape(in);
  const ShapePose pa{in.vector(), in.rotation_matrix()}, pb{in.vector(), in.rotation_matrix()};
  const double margin = in.number();
  std::array<ContactPoint, kMaxManifold> points;
  const int n = collide(a.shape, pa, b.shape, pb, margin, points);
  if (n < 0 || n > kMaxManifold) std::abort();
  for (int k = 0; k < n; ++k) {
    const ContactPoint& p = points[static_cast<std::size_t>(k)];
    for (int i = 0; i < 3; ++i) {
      if (!std::isfinite(p.position[i])) std::abort();
    }
    if (!(p.distance <= margin)) std::abort();
    if (!(std::abs(norm(p.normal) - 1) < 1e-6)) std::abort();
  }
  std::vector<Aabb> boxes;
  for (unsigned k = in.byte() % 32; k > 0; --k) boxes.push_back({in.vector(), in.vector()});
  std::size_t expected = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) expected += overlap(boxes[i], boxes[j]);
  }
  BroadPhase phase;
  if (phase.find(boxes).size() != expected) std::abort();
  return 0;
}
