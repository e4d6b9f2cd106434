// Contacts of ContactGeometry's shapes in a step. A pair passes three tests, each cheaper than the next: bounding
// spheres with the distance that both may travel within the step, bounding capsules of slender shapes, and the narrow
// phase. Shapes that are apart have the contacts of where they meet (geometry/meeting.hpp), of which those are kept
// whose own points are fast enough. A broad phase finds the pairs of crowded models.
#include <algorithm>
#include <cmath>

#include "constraint/kernel_table.hpp"
#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/geometry/meeting.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {
constexpr double kRounded = 1 + 1e-9;  ///< so that rounding leaves no pair out
}  // namespace

template <class R>
void ContactGeometry::place(const BasicData<R>& data) {
  for (SphereGroup& group : spheres_.groups()) {
    if (group.carrier < 0) continue;
    const LinkState<R>& link = data.links()[group.carrier];
    group.rotation = widen(link.R), group.position = widen(link.o);
    group.velocity = widen(link.v.v), group.spin = widen(link.v.w);
  }
  spheres_.place();
  poses_.known = poses_.still;
  for (const int i : poses_.planes) spheres_.face(std::size_t(i), posed(data, i).rotation.column_z());
}

template <class R>
const ShapePose& ContactGeometry::posed(const BasicData<R>& data, int i) {
  ShapePose& pose = poses_.at[i];
  if (poses_.known[i]) return pose;
  const LinkState<R>& link = data.links()[shapes_[i].carrier()];
  const Mat3d rotation = widen(link.R);
  pose = {widen(link.o) + rotation * shapes_[i].pose.position, rotation * shapes_[i].pose.rotation};
  poses_.known[i] = true;
  return pose;
}

/// Largest distance of two shapes that may still meet within h. @param still that distance without motion
/// @param stopped one of the two may be stopped within the step while the other goes on
static double reach_of(const MovingSphere& a, const MovingSphere& b, bool stopped, double h, double still) {
  const double each = reach(a, b, h, still);
  return stopped ? std::max(each, still + h * std::max(a.speed, b.speed)) : each;
}

double ContactGeometry::reach(int i, int j, double h, double margin) const {
  const double still = margin + fall(i, j);
  const bool plane_i = shapes_[i].shape.type == ShapeType::plane, plane_j = shapes_[j].shape.type == ShapeType::plane;
  if (!plane_i && !plane_j)
    return reach_of(spheres_.moving(std::size_t(i)), spheres_.moving(std::size_t(j)), stopped_apart(i, j), h, still);
  const Vec3d n = poses_.at[plane_i ? i : j].rotation.column_z();  // only motion into the plane counts
  const Vec3d parting = spheres_.velocity(i) - spheres_.velocity(j);
  return still + h * (std::max(0.0, (plane_i ? 1 : -1) * dot(n, parting)) + spheres_.turn(i) + spheres_.turn(j));
}

/// For a pair that is near by its fastest points. @return whether the two points of this contact are as fast as `speed`
static bool arrives(const MovingSphere& first, const MovingSphere& second, bool stopped, const ContactPoint& point,
                    double speed) {
  const Vec3d a = first.velocity_at(point.position), b = second.velocity_at(point.position), v = a - b;
  if (dot(v, v) >= speed * speed) return true;
  return stopped && std::max(std::abs(dot(point.normal, a)), std::abs(dot(point.normal, b))) >= speed;
}

bool ContactGeometry::near(int i, int j, double reach) const {
  const ContactShape &a = shapes_[i], &b = shapes_[j];
  const Vec3d d = spheres_.centre(j) - spheres_.centre(i);
  if (std::isinf(a.radius)) return dot(poses_.at[i].rotation.column_z(), d) <= b.radius + reach;
  if (std::isinf(b.radius)) return -dot(poses_.at[j].rotation.column_z(), d) <= a.radius + reach;
  const double most = a.radius + b.radius + reach;
  return dot(d, d) <= most * most;
}

/// Adds a contact at this point if the pair's law acts there. It fills the point in place, member by member: a copy of
/// a new point would wait for the stores. @return the contact; null: none
static LinkContact* add_contact(const LinkContact& usual, const ContactSurface& both, const Vec3d& position,
                                const Vec3d& normal, double apart, std::uint32_t feature, double h,
                                std::vector<LinkContact>& contacts) {
  const double distance = apart - both.margin;  // MJCF's margin: forces begin at that distance
  SolverRow row;
  if (both.solver) {
    row = solver_row(*both.solver, distance, h);
    if (row.share > 0 && distance > 0) return nullptr;  // MuJoCo's law acts where shapes touch
  }
  LinkContact& contact = contacts.emplace_back(usual);
  ContactPoint& point = contact.point;
  point.position = position, point.normal = normal, point.distance = distance, point.feature = feature;
  contact.identity |= feature & 0x0fffffffu;
  if (!both.solver) return &contact;
  const ContactSoftness soft = both.softness(distance, h);
  contact.solver = row, contact.spook = soft.spook, contact.relative_compliance = soft.relative_compliance;
  contact.gap_share = row.share > 0 ? 1 : soft.gap_share;
  return &contact;
}

/// Adds the contacts of a sphere's or capsule's ends on a plane.
void ContactGeometry::add_ends(const Listed& pair, const CapsuleTouches& touches, double h,
                               std::vector<LinkContact>& contacts) const {
  const CapsuleOnPlane& on = capsules_.pairs[std::size_t(pair.capsule)];
  const Vec3d normal = pair.usual.a == on.round.link ? on.normal : -on.normal;
  for (std::uint32_t end = 0; end < (on.round.half > 0 ? 2 : 1); ++end) {
    const auto& [position, distance] = touches.end[end];
    if (distance < kInfinity) add_contact(pair.usual, pair.surface, position, normal, distance, end, h, contacts);
  }
}

/// Tests the near pairs of slender shapes by their bounding capsules.
template <class R>
void ContactGeometry::sift(const BasicData<R>& data, std::span<const std::uint32_t> near, double h) {
  around_.pairs.clear();
  for (const std::uint32_t p : near) {
    if (!listed_[p].slender) continue;
    const int i = int(pairs_[p].first), j = int(pairs_[p].second);
    around_.pairs.push_back({i, j, reach(i, j, h, listed_[p].surface.margin)});
  }
  if (around_.pairs.empty()) return;
  around_.near.resize(std::max(around_.near.size(), around_.pairs.size()));
  constraint_table<R>(1).capsules_near(around_.capsules.data(), around_.pairs.data(), int(around_.pairs.size()),
                                       data.links(), around_.near.data());
}

/// Finds the contacts of the near pairs on planes, all at once.
template <class R>
void ContactGeometry::find_capsule_touches(const BasicData<R>& data, std::span<const std::uint32_t> near, double h) {
  capsules_.near.clear();
  for (const std::uint32_t p : near) {
    if (listed_[p].capsule >= 0) capsules_.near.push_back(listed_[p].capsule);
  }
  if (capsules_.near.empty()) return;
  capsules_.touches.resize(std::max(capsules_.touches.size(), capsules_.near.size()));
  constraint_table<R>(1).plane_touches(capsules_.pairs.data(), capsules_.near.data(), int(capsules_.near.size()),
                                       data.links(), h, fall_, capsules_.touches.data());
}

/// Whether the shapes are apart and MuJoCo's law acts between them: they have to touch now, wherever they meet in the
/// step.
static bool waits_apart(const ContactSurface& both, std::span<const ContactPoint> points, int count, double h) {
  return both.solver && all_apart(points, count, both.margin) && solver_law(*both.solver, h).resolved;
}

template <class R>
void ContactGeometry::touch(const BasicData<R>& data, int i, int j, const ContactSurface& both,
                            const LinkContact& usual, double margin, double h, Vec3d* parting,
                            std::vector<LinkContact>& contacts) {
  const Shape &a = shapes_[i].shape, &b = shapes_[j].shape;
  const ShapePose &pose_a = posed(data, i), &pose_b = posed(data, j);
  int count = collide(a, pose_a, b, pose_b, std::max(0.0, margin), points_, parting);
  if (count == 0 || waits_apart(both, points_, count, h)) return;
  const auto motion = [&](int k, const ShapePose& pose) {
    const MovingSphere around = spheres_.moving(std::size_t(k));
    return ShapeMotion{around.velocity_at(pose.position), around.spin};
  };
  count = meet(a, pose_a, motion(i, pose_a), b, pose_b, motion(j, pose_b), h, both.margin, points_, count);
  const double still = both.margin + fall(i, j);
  for (int k = 0; k < count; ++k) {
    const double way = points_[k].distance - still;
    if (way > 0 && !arrives(spheres_.moving(std::size_t(i)), spheres_.moving(std::size_t(j)), stopped_apart(i, j),
                            points_[k], way / h))
      continue;
    add_contact(usual, both, points_[k].position, points_[k].normal, points_[k].distance, points_[k].feature, h,
                contacts);
  }
}

/// Sorts crowd_.found into crowd_.near, first by the higher link (counting sort: links are about as many as pairs).
void ContactGeometry::sort_found() {
  std::vector<std::uint32_t>& end = crowd_.end;
  const auto higher = [](const Found& f) { return std::size_t(f.links >> 32); };
  end.assign(std::size_t(crowd_.links) + 2, 0), crowd_.near.resize(crowd_.found.size());
  for (const Found& f : crowd_.found) ++end[higher(f) + 1];
  for (std::size_t i = 1; i < end.size(); ++i) end[i] += end[i - 1];
  for (const Found& f : crowd_.found) crowd_.near[end[higher(f)]++] = f;
  const auto first = crowd_.near.begin();
  for (std::size_t i = 0, from = 0; i < end.size(); from = end[i++]) std::sort(first + from, first + end[i]);
}

/// Takes over the bounding spheres, and enlarges those of spheres by what may close in the step.
void ContactGeometry::place_members(double h) {
  for (std::size_t i = 0; i < shapes_.size(); ++i) crowd_.members[i].around = spheres_.moving(i);
  auto& [x, y, z, radius] = crowd_.spheres;
  for (std::size_t k = 0; k < crowd_.balls.size(); ++k) {
    const std::size_t i = crowd_.balls[k];
    const MovingSphere& ball = crowd_.members[i].around;
    x[k] = ball.centre.x, y[k] = ball.centre.y, z[k] = ball.centre.z;
    radius[k] = (ball.radius + closes(i, h)) * kRounded;
  }
}

/// Adds the pair to crowd_.found if its shapes may touch in the step.
void ContactGeometry::find_near(BodyPair pair, double h) {
  const int i = int(pair.first), j = int(pair.second);
  const Crowd::Member &a = crowd_.members[pair.first], &b = crowd_.members[pair.second];
  if (a.plain && b.plain ? a.link == b.link || !masks_meet(a, b) : !may_touch(i, j)) return;
  const double margin = surface_at(pair).margin;
  double reach = 0;
  if (a.plane || b.plane) {
    reach = this->reach(i, j, h, margin);
    if (!near(i, j, reach)) return;
  } else {
    const bool apart = a.tree != b.tree;
    reach = reach_of(a.around, b.around, apart && a.moves && b.moves, h, margin + (apart ? fall_ : 0));
    const Vec3d d = b.around.centre - a.around.centre;
    const double most = a.around.radius + b.around.radius + reach;
    if (!(dot(d, d) <= most * most)) return;
  }
  crowd_.found.push_back({in_order(a.link, b.link), pair, reach});
}

/// Adds the pairs of planes and spheres.
void ContactGeometry::find_near_planes(double h) {
  const auto& [x, y, z, radius] = crowd_.spheres;
  for (const std::uint32_t plane : crowd_.planes) {
    const Vec3d n = poses_.at[plane].rotation.column_z(), at = spheres_.centre(plane);
    const double most = closes(plane, h) * kRounded;
    for (std::size_t k = 0; k < crowd_.balls.size(); ++k) {
      if (dot(n, Vec3d{x[k], y[k], z[k]} - at) <= radius[k] + most)
        find_near({std::min(plane, crowd_.balls[k]), std::max(plane, crowd_.balls[k])}, h);
    }
  }
}

/// touch() of two spheres.
template <class R>
void ContactGeometry::touch_balls(const BasicData<R>& data, const Found& found, double h,
                                  std::vector<LinkContact>& contacts) {
  const int i = int(found.pair.first), j = int(found.pair.second);
  const Crowd::Member &a = crowd_.members[found.pair.first], &b = crowd_.members[found.pair.second];
  const ContactSurface& both = surface_at(found.pair);
  const Vec3d at_a = a.centred ? a.around.centre : posed(data, i).position;
  const Vec3d at_b = b.centred ? b.around.centre : posed(data, j).position;
  ContactPoint& point = points_[0];
  const double size_a = a.around.radius, size_b = b.around.radius;
  if (!collide_spheres(at_a, size_a, at_b, size_b, std::max(0.0, found.reach), point)) return;
  if (waits_apart(both, points_, 1, h)) return;
  if (!meet_spheres(at_a, size_a, {a.around.velocity_at(at_a), a.around.spin}, at_b, size_b,
                    {b.around.velocity_at(at_b), b.around.spin}, h, both.margin, point))
    return;
  const bool apart = a.tree != b.tree;
  const double way = point.distance - (both.margin + (apart ? fall_ : 0));
  if (way > 0 && !arrives(a.around, b.around, apart && a.moves && b.moves, point, way / h)) return;
  const bool usual = !crowd_.kinds.usual.empty() && (a.plain || b.plain);
  LinkContact* const contact = add_contact(
      usual ? crowd_.kinds.usual[std::size_t(&both - crowd_.kinds.mixed.data())] : usual_contact(i, j, both), both,
      point.position, point.normal, point.distance, point.feature, h, contacts);
  if (!usual || !contact) return;
  contact->a = a.link, contact->b = b.link, contact->identity = identity(i, j) | point.feature;
  contact->mocap = std::max(shapes_[i].mocap, shapes_[j].mocap);
}

/// detect() with broad phases: spheres and planes have their own, others that of boxes.
template <class R>
void ContactGeometry::detect_crowd(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts) {
  place_members(h);
  crowd_.found.clear();
  const auto& [x, y, z, radius] = crowd_.spheres;
  for (const BodyPair& pair : crowd_.between_balls.pairs(x, y, z, radius, 0))
    find_near({crowd_.balls[pair.first], crowd_.balls[pair.second]}, h);
  find_near_planes(h);
  if (crowd_.others) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Crowd::Member& m = crowd_.members[i];
      const double most = closes(i, h) * kRounded;
      if (m.ball) {
        const double r = (m.around.radius + most) * kRounded;
        crowd_.boxes[i] = {m.around.centre - Vec3d{r, r, r}, m.around.centre + Vec3d{r, r, r}};
      } else {
        crowd_.boxes[i] = bounds(shapes_[i].shape, posed(data, int(i)), most);
      }
    }
    for (const BodyPair& pair : crowd_.broad.find(crowd_.boxes, crowd_.groups)) find_near(pair, h);
  }
  sort_found();
  for (const Found& found : crowd_.near) {
    const auto [i, j] = found.pair;
    if (crowd_.members[i].ball && crowd_.members[j].ball) {
      touch_balls(data, found, h, contacts);
    } else {
      const ContactSurface& both = surface_at(found.pair);
      touch(data, int(i), int(j), both, usual_contact(int(i), int(j), both), found.reach, h, nullptr, contacts);
    }
  }
}

template <class R>
void ContactGeometry::detect(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts) {
  contacts.clear();
  if (empty()) return;
  const WorldTable<R>* const own = data.own;
  const bool falls_its_way = own && !own->gravity.empty(), rubs_its_way = own && !own->friction.empty();
  const Vec3d gravity =
      falls_its_way ? Vec3d{double(own->gravity[0]), double(own->gravity[1]), double(own->gravity[2])} : Vec3d{0, 0, 0};
  fall_ = h * h * (falls_its_way ? norm(gravity) : gravity_);
  place(data);
  if (crowded_) return detect_crowd(data, h, contacts);
  const std::span<const std::uint32_t> near = spheres_.near(h, fall_);
  find_capsule_touches(data, near, h), sift(data, near, h);
  const CapsuleTouches* round = capsules_.touches.data();
  std::size_t slender = 0;
  for (const std::uint32_t p : near) {
    const std::size_t before = contacts.size();
    const int i = int(pairs_[p].first), j = int(pairs_[p].second);
    Listed& pair = listed_[p];
    if (pair.capsule >= 0) {
      add_ends(pair, *round++, h, contacts);
    } else {
      const std::size_t k = pair.slender ? slender++ : 0;
      const double margin = pair.slender ? around_.pairs[k].reach : reach(i, j, h, pair.surface.margin);
      if (pair.slender ? around_.near[k] : this->near(i, j, margin))
        touch(data, i, j, pair.surface, pair.usual, margin, h, &pair.parting, contacts);
    }
    for (std::size_t k = before; rubs_its_way && k < contacts.size(); ++k) contacts[k].friction = own->friction[p];
  }
}

template void ContactGeometry::detect<double>(const BasicData<double>&, double, std::vector<LinkContact>&);
template void ContactGeometry::detect<float>(const BasicData<float>&, double, std::vector<LinkContact>&);

}  // namespace tarsus
