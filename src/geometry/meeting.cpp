#include "tarsus/geometry/meeting.hpp"

#include <algorithm>
#include <array>

#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

constexpr int kAdvances = 30;      ///< of shapes, after which they count as meeting
constexpr double kMet = 1e-6;      ///< distance of shapes that meet, relative to the smaller one's radius
constexpr double kShallow = 1e-2;  ///< depth of shapes that slide along one another, the same
constexpr double kTouch = 1e-9;    ///< distance of shapes that touch to rounding, relative to the point's from its body
constexpr double kAlong = 0.99995;  ///< cosine between normals that count as one
constexpr double kEdge = 0.7;       ///< the same for shapes that touch already, whose normal may turn with them

/// Velocity at time t of a point of a body that is at `from` at the start.
Vec3d velocity_at(const Vec3d& from, const ShapeMotion& motion, const Vec3d& point, double t) {
  return motion.velocity + cross(motion.spin, point - mul_add(motion.velocity, t, from));
}

/// A shape and its motion.
struct Mover {
  const Shape& shape;
  const ShapePose& pose;
  const ShapeMotion& motion;

  /// Of a sphere about the shape's position [m].
  double radius() const {
    const Aabb box = bounds(shape, {});
    const auto most = [](double x, double y) { return std::max(std::abs(x), std::abs(y)); };
    return norm(Vec3d{most(box.lower.x, box.upper.x), most(box.lower.y, box.upper.y), most(box.lower.z, box.upper.z)});
  }
  ShapePose at(double t) const {
    ShapePose to = pose;
    to.position = mul_add(motion.velocity, t, to.position);
    if (turns()) to.rotation = rotation(exp_map(motion.spin * t)) * to.rotation;
    return to;
  }
  bool turns() const { return dot(motion.spin, motion.spin) > 0; }
  bool moves() const { return turns() || dot(motion.velocity, motion.velocity) > 0; }
  /// Surface speed by rotation alone.
  double turn() const { return turns() ? norm(motion.spin) * radius() : 0; }
  /// Velocity of a point of the shape at time t.
  Vec3d velocity(const Vec3d& point, double t) const { return velocity_at(pose.position, motion, point, t); }
};

struct Couple {
  Mover a, b;

  int collide(double t, double margin, std::span<ContactPoint> out) const {
    return tarsus::collide(a.shape, a.at(t), b.shape, b.at(t), std::max(0.0, margin), out);
  }
  /// Speed at which the two part along the point's normal.
  double parting(const ContactPoint& p, double t) const {
    return dot(p.normal, a.velocity(p.position, t) - b.velocity(p.position, t));
  }
  /// The point of time t at the start, in the same place of the body that moves, of two the smaller. Bodies roll, so
  /// that the point's velocity counts, and not its way.
  ContactPoint at_start(ContactPoint p, double t) const {
    p.distance -= t * parting(p, t);
    p.position -= (b.moves() && (!a.moves() || b.radius() < a.radius()) ? b : a).motion.velocity * t;
    return p;
  }
};

const ContactPoint& deepest(std::span<const ContactPoint> points) {
  return *std::min_element(points.begin(), points.end(),
                           [](const auto& p, const auto& q) { return p.distance < q.distance; });
}

/// meet() of points some of which close; `touches`: those of shapes that touch.
template <class Closes>
int follow(const Couple& both, double h, double margin, std::span<ContactPoint> points, int count, bool touches,
           const Closes& closes) {
  const auto gap = [&](const ContactPoint& p) { return p.distance - margin; };
  const auto end = points.begin() + count;
  const Vec3d normal = deepest(points.first(std::size_t(count))).normal;
  const double size = std::min(both.a.radius(), both.b.radius()), turn = both.a.turn() + both.b.turn();
  const Vec3d parting = both.a.motion.velocity - both.b.motion.velocity;
  const double reach = margin + h * (norm(parting) + turn);
  std::array<ContactPoint, kMaxManifold> there;
  std::copy(points.begin(), end, there.begin());
  double t = 0;
  int n = count;
  bool met = touches;
  for (int k = 0; n > 0 && !met; ++k) {
    const ContactPoint& next = deepest(std::span(there).first(std::size_t(n)));
    const double left = gap(next), closing = turn - dot(next.normal, parting);
    met = left <= kMet * size || k == kAdvances;
    if (met || !(closing * (h - t) > left)) break;
    t += left / closing;
    n = both.collide(t, reach, there);
  }
  if (!met) return int(std::remove_if(points.begin(), end, closes) - points.begin());
  std::array<ContactPoint, kMaxManifold> last;
  const double depth = kShallow * size;
  if (const int at_end = both.collide(h, reach, last); at_end > 0) {
    const ContactPoint& p = deepest(std::span(last).first(std::size_t(at_end)));
    const double above = gap(p), before = above - (h - t) * both.parting(p, h);
    if (std::min(above, before) > -depth) there = last, n = at_end, t = h;
  }
  const double along = dot(deepest(std::span(there).first(std::size_t(n))).normal, normal);
  if (along > (touches ? kEdge : kAlong)) return count;
  const int kept = std::min(n, int(points.size()));
  for (int k = 0; k < kept; ++k) points[std::size_t(k)] = both.at_start(there[std::size_t(k)], t);
  return kept;
}

/// A corner of a hull that turns is on an arc, from which the straight way of a step deviates. Those of the next faces
/// would brake a hull that rolls.
void add_arcs(const Couple& both, double h, double margin, std::span<ContactPoint> points) {
  const auto arc = [h](const Mover& mover, const Vec3d& point) {
    const Vec3d& w = mover.motion.spin;
    if (mover.shape.type != ShapeType::convex || !mover.turns()) return Vec3d{0, 0, 0};
    return cross(w, cross(w, point - mover.pose.position)) * (0.5 * std::min(h * h, 1 / dot(w, w)));
  };
  for (ContactPoint& p : points) {
    if (!p.next || p.distance <= margin) continue;
    p.distance += std::max(0.0, dot(p.normal, arc(both.a, p.position) - arc(both.b, p.position)));
  }
}

}  // namespace

int meet(const Shape& a, const ShapePose& pose_a, const ShapeMotion& motion_a, const Shape& b, const ShapePose& pose_b,
         const ShapeMotion& motion_b, double h, double margin, std::span<ContactPoint> points, int count) {
  if (count == 0) return 0;
  if (a.type == ShapeType::sphere && b.type == ShapeType::sphere)
    return meet_spheres(pose_a.position, a.size.x, motion_a, pose_b.position, b.size.x, motion_b, h, margin, points[0]);
  const Couple both{{a, pose_a, motion_a}, {b, pose_b, motion_b}};
  if (a.type == ShapeType::convex || b.type == ShapeType::convex)
    add_arcs(both, h, margin, points.first(std::size_t(count)));
  if (a.type == ShapeType::plane || b.type == ShapeType::plane) return count;
  const auto gap = [&](const ContactPoint& p) { return p.distance - margin; };
  const double touch = kTouch * norm(points[0].position - pose_a.position);
  const ContactPoint& nearest = deepest(points.first(std::size_t(count)));
  const bool touches = gap(nearest) < -touch;
  // Of shapes that touch, those that were apart a step before: over a seam the least overlap is that with the next
  // edge for a moment.
  if (touches && !(h * both.parting(nearest, 0) < gap(nearest))) return count;
  const auto closes = [&](const ContactPoint& p) { return gap(p) + h * both.parting(p, 0) < -2 * touch; };
  if (std::none_of(points.begin(), points.begin() + count, closes)) return count;
  return follow(both, h, margin, points, count, touches, closes);
}

bool meet_spheres(const Vec3d& a, double radius_a, const ShapeMotion& motion_a, const Vec3d& b, double radius_b,
                  const ShapeMotion& motion_b, double h, double margin, ContactPoint& point) {
  const Vec3d& n = point.normal;
  const double gap = point.distance - margin, touch = kTouch * norm(point.position - a);
  const double parting =
      dot(n, velocity_at(a, motion_a, point.position, 0) - velocity_at(b, motion_b, point.position, 0));
  const bool touches = gap < -touch;
  if (touches && !(h * parting < gap)) return true;
  if (!(gap + h * parting < -2 * touch)) return true;
  // The direction between centres on straight ways turns one way. If at the end it still counts as the same, it does
  // where they meet, too; and they do meet if they overlap at the end.
  const Vec3d end = mul_add(motion_a.velocity - motion_b.velocity, h, a - b);
  const double apart = norm(end), sizes = radius_a + radius_b, along = dot(n, end);
  constexpr double kSpare = 1e-6;  // above rounding; what it excludes is followed
  const bool overlap = touches || apart - sizes - margin < -kSpare * sizes;
  if (overlap && apart > kSpare * sizes && along > ((touches ? kEdge : kAlong) + kSpare) * apart) return true;
  const Shape ball_a{ShapeType::sphere, {radius_a, 0, 0}}, ball_b{ShapeType::sphere, {radius_b, 0, 0}};
  const ShapePose pose_a{a}, pose_b{b};
  const Couple both{{ball_a, pose_a, motion_a}, {ball_b, pose_b, motion_b}};
  return follow(both, h, margin, {&point, 1}, 1, touches, [](const ContactPoint&) { return true; }) > 0;
}

}  // namespace tarsus
