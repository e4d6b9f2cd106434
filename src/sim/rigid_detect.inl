// The stages collide, match and sleep of RigidWorld.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "sim/rigid_workspace.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/geometry/meeting.hpp"

namespace tarsus {

namespace {

ShapePose world_pose(const BodyShape& shape, const std::vector<RigidBody>& bodies) {
  if (shape.body < 0) return shape.local;
  const RigidBody& b = bodies[at(shape.body)];
  const Mat3d r = rotation(b.orientation);
  return {b.position + r * shape.local.position, r * shape.local.rotation};
}

constexpr int kNoPair = -2;

unsigned bucket(const auto& pair, unsigned mask) {
  return (unsigned(pair.first) * 8u + unsigned(pair.second) + pair.feature * 0x9e3779b9u) & mask;
}

}  // namespace

template <class R>
bool RigidWorld<R>::may_touch(const BodyShape& a, const BodyShape& b) const {
  if (!masks_meet(a, b)) return false;
  return excluded_.empty() || !excluded_.contains(std::minmax(a.body, b.body));
}

/// Surface of an explicit pair; -1 if the shapes never touch, kNoPair if there is no such pair.
template <class R>
int RigidWorld<R>::pair_surface(int shape_a, int shape_b) const {
  const auto found = pairs_.find(std::minmax(shape_a, shape_b));
  return found != pairs_.end() ? found->second : kNoPair;
}

/// Assigns each shape to a detection path. Called once after shapes were added.
template <class R>
void RigidWorld<R>::classify() {
  Workspace& w = *work_;
  w.rounds.clear(), w.owners.clear(), w.planes.clear(), w.boxed.clear(), w.groups.clear();
  w.is_round.assign(shapes_.size(), 0);
  std::vector<int> shapes_of(bodies_.size(), 0);
  // Margins of the shape and of its pairs. A sphere with a margin takes the general path.
  std::vector<double> margin(shapes_.size(), 0);
  std::vector<char> paired(shapes_.size(), 0);
  bool fixed_margin = false;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const BodyShape& s = shapes_[i];
    margin[i] = surfaces_[at(s.surface)].margin;
    if (s.body >= 0) ++shapes_of[at(s.body)];
    fixed_margin = fixed_margin || (s.body < 0 && margin[i] > 0);
  }
  for (const auto& [shapes, surface] : pairs_) {
    for (const int shape : {shapes.first, shapes.second}) {
      paired[at(shape)] = 1;
      if (surface >= 0) margin[at(shape)] = std::max(margin[at(shape)], surfaces_[at(surface)].margin);
    }
  }
  w.need_broad = false, w.same_masks = true;
  int static_boxed = 0;
  for (int i = 0; i < int(shapes_.size()); ++i) {
    const BodyShape& s = shapes_[at(i)];
    if (s.body < 0) {
      if (s.shape.type == ShapeType::plane)
        w.planes.push_back(i);
      else
        w.boxed.push_back(i), w.groups.push_back(0), ++static_boxed;
      continue;
    }
    const bool round = s.shape.type == ShapeType::sphere && bodies_[at(s.body)].isotropic() &&
                       shapes_of[at(s.body)] == 1 && dot(s.local.position, s.local.position) == 0 && !paired[at(i)] &&
                       margin[at(i)] == 0 && !fixed_margin;
    w.boxed.push_back(i);
    w.groups.push_back(round ? 1 : 2 + s.body);
    w.is_round[at(i)] = round;
    if (!round) w.need_broad = true;
    if (!round) continue;
    const BodyShape& first = shapes_[at(w.owners.empty() ? i : w.owners[0].shape)];
    w.same_masks = w.same_masks && s.contype == first.contype && s.conaffinity == first.conaffinity;
    w.rounds.push_back({{0, 0, 0}, s.shape.size.x});
    w.owners.push_back({i, s.body, s.surface});
  }
  w.same_masks = w.same_masks && excluded_.empty() && !w.owners.empty() &&
                 may_touch(shapes_[at(w.owners[0].shape)], shapes_[at(w.owners[0].shape)]);
  w.need_broad = w.need_broad || static_boxed > 0;
  combine_surfaces();
  w.widen.clear();
  for (int i : w.boxed) w.widen.push_back(margin[at(i)]);
  w.pose.resize(shapes_.size());
  w.boxes.resize(w.boxed.size()), w.present.resize(w.boxed.size());
  w.classified = true;
  w.candidates_valid = false;
}

/// Combines each two surfaces under these options.
template <class R>
void RigidWorld<R>::combine_surfaces() {
  Workspace& w = *work_;
  const std::size_t ns = surfaces_.size();
  w.surfaces.clear();
  lanes_.materials.clear();
  w.turns = false;
  for (std::size_t i = 0; i < ns * ns; ++i) {
    w.surfaces.push_back(combine(surfaces_[i / ns], surfaces_[i % ns], options_));
    lanes_.materials.push_back(w.surfaces.back().material);
    w.turns = w.turns || w.surfaces.back().material.turns();
  }
}

/// Marks bodies that have neither moved nor been moved since they fell asleep. @param same_rules surfaces, shapes and
/// options are those of the last step
template <class R>
void RigidWorld<R>::mark_still(bool same_rules) {
  Workspace& w = *work_;
  w.still.clear();
  if (!same_rules || !options_.sleep || w.rest_pose.size() != bodies_.size() || w.resting.empty()) return;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const RigidBody& b = bodies_[i];
    const ShapePose& pose = w.rest_pose[i];
    const Mat3d r = rotation(b.orientation);
    w.still.push_back(b.asleep && std::memcmp(&b.position, &pose.position, sizeof(Vec3d)) == 0 &&
                      std::memcmp(&r, &pose.rotation, sizeof(Mat3d)) == 0);
  }
}

/// The world counts as still.
template <class R>
bool RigidWorld<R>::still(int body) const {
  return body < 0 || work_->still[at(body)];
}

/// Appends the last step's contacts between still bodies, with their impulses.
template <class R>
void RigidWorld<R>::keep_resting(PenetrationSum& depth) {
  Workspace& w = *work_;
  w.kept_from = w.pairs.size();
  if (w.still.empty()) return;
  for (std::size_t k = 0; k < w.resting.size(); ++k) {
    const BodyContact<R>& c = w.resting[k];
    if (!still(c.body_a) || !still(c.body_b)) continue;
    const std::size_t place = w.pairs.size();
    w.resize_contacts(lanes_, place + 1);
    lanes_.contacts[place] = c;
    lanes_.contacts[place].slot = -1;  // groups may have changed
    w.pairs[place] = w.last_pairs[w.last_active + k];
    w.take_last(lanes_, place, int(w.last_active + k));
    depth.add(double(c.distance));
  }
}

/// Ratio between MuJoCo's softness, which depends only on the inverse masses of the bodies, and ours, which depends on
/// the contact's inverse effective mass.
template <class R>
double RigidWorld<R>::mass_share(const ContactOwners& owners, const Vec3d& n, const Vec3d& arm_a,
                                 const Vec3d& arm_b) const {
  double masses = 0, all = 0;
  const auto add = [&](int body, const Vec3d& arm) {
    if (body < 0) return;
    const RigidBody& b = bodies_[at(body)];
    const Vec3d turn = transpose_mul(rotation(b.orientation), cross(arm, n));
    masses += 1 / b.mass;
    all += 1 / b.mass + turn.x * turn.x / b.inertia.x + turn.y * turn.y / b.inertia.y + turn.z * turn.z / b.inertia.z;
  };
  add(owners.body_a, arm_a), add(owners.body_b, arm_b);
  return masses / all;
}

/// Writes one contact with zero impulses.
template <class R>
void RigidWorld<R>::put_contact(std::size_t place, const ContactOwners& owners, const ContactPoint& p,
                                const Vec3d& arm_a, const Vec3d& arm_b, bool round) {
  Workspace& w = *work_;
  const int pair = owners.surface_a * int(surfaces_.size()) + owners.surface_b;
  BodyContact<R>& c = lanes_.contacts[place];
  c.body_a = owners.body_a, c.body_b = owners.body_b, c.material = std::uint16_t(pair), c.slot = -1, c.round = round;
  for (int k = 0; k < 3; ++k) c.normal[k] = R(p.normal[k]), c.arm_a[k] = R(arm_a[k]), c.arm_b[k] = R(arm_b[k]);
  c.distance = R(p.distance);
  const PairSurface& surface = w.surfaces[at(pair)];
  double relative = surface.relative(p.distance);
  if (surface.surface.solver && !round) relative *= mass_share(owners, p.normal, arm_a, arm_b);
  c.relative_compliance = R(relative);
  lanes_.impulses[place] = {};
  if (w.turns) lanes_.moments[place] = {};
  w.pairs[place] = {owners.shape_a, owners.shape_b, p.feature};
}

/// Contacts of spheres with one another and with planes, from the candidates: on all threads, in the candidates' order.
template <class R>
void RigidWorld<R>::detect_spheres() {
  Workspace& w = *work_;
  team_->run([&](int thread) {
    DetectShare& own = w.shares[at(thread)];
    own.depth = {};
    own.hits.clear();
    const ThreadTeam::Range range = team_->share(int(w.candidates.size()), thread);
    for (int k = range.begin; k < range.end; ++k) {
      auto& [i, j, slot, last] = w.candidates[at(k)];
      if (!w.still.empty() && still(w.owners[at(i)].body) && still(j < 0 ? -1 : w.owners[at(j)].body)) {
        last = -1;
        continue;
      }
      if (within_reach(i, j, options_.margin, [&](int k) { return w.rounds[at(k)].centre; }))
        own.hits.push_back(k);
      else
        last = -1;
    }
    team_->barrier();
    std::size_t place = 0, all = 0;
    for (std::size_t t = 0; t < w.shares.size(); ++t) {
      if (int(t) < thread) place += w.shares[t].hits.size();
      all += w.shares[t].hits.size();
    }
    if (thread == 0) w.resize_contacts(lanes_, all);
    team_->barrier();
    for (int k : own.hits) {
      auto& [i, j, slot, last] = w.candidates[at(k)];
      const auto& [p, radius_a] = w.rounds[at(i)];
      ContactPoint point;
      const RoundOwner& first = w.owners[at(i)];
      ContactOwners owners = {first.shape, -1, first.body, -1, first.surface, 0};
      double radius = 0;
      if (j < 0) {
        owners.shape_b = w.planes[at(-1 - j)];
        owners.surface_b = shapes_[at(owners.shape_b)].surface;
        const ShapePose& plane = shapes_[at(owners.shape_b)].local;
        point.normal = plane.rotation.column_z();
        point.distance = dot(point.normal, p - plane.position) - radius_a;
      } else {
        const RoundOwner& second = w.owners[at(j)];
        owners.shape_b = second.shape, owners.body_b = second.body, owners.surface_b = second.surface;
        radius = w.rounds[at(j)].radius;
        const Vec3d d = p - w.rounds[at(j)].centre;
        const double length = norm(d);
        if (length > 0) point.normal = d * (1 / length);  // coincident centres: along z
        point.distance = length - radius_a - radius;
      }
      const double half = 0.5 * point.distance;
      put_contact(place, owners, point, {radius_a + half, 0, 0}, {radius + half, 0, 0}, true);
      lanes_.contacts[place].slot = slot;
      if (w.carry && last >= 0) w.take_last(lanes_, place, last);
      last = int(place++);
      own.depth.add(point.distance);
    }
  });
}

/// Contacts of two shapes of any type.
template <class R>
void RigidWorld<R>::touch(int first, int second, PenetrationSum& depth) {
  Workspace& w = *work_;
  std::array<ContactPoint, kMaxManifold> points;
  if (shapes_[at(first)].body < 0) std::swap(first, second);
  const BodyShape &a = shapes_[at(first)], &b = shapes_[at(second)];
  const int pair = pair_surface(first, second);
  if (a.body < 0 || a.body == b.body || pair == -1 || (pair == kNoPair && !may_touch(a, b))) return;
  if (!w.still.empty() && still(a.body) && still(b.body)) return;
  const int surface_a = pair >= 0 ? pair : a.surface, surface_b = pair >= 0 ? pair : b.surface;
  const double standoff = w.surfaces[at(surface_a) * surfaces_.size() + at(surface_b)].surface.margin;
  const ShapePose &pose_a = w.pose[at(first)], &pose_b = w.pose[at(second)];
  const auto motion = [&](int body, const ShapePose& pose) {
    if (body < 0) return ShapeMotion{};
    const RigidBody& of = bodies_[at(body)];
    return ShapeMotion{of.velocity + cross(of.angular_velocity, pose.position - of.position), of.angular_velocity};
  };
  int n = collide(a.shape, pose_a, b.shape, pose_b, options_.margin + standoff, points);
  n = meet(a.shape, pose_a, motion(a.body, pose_a), b.shape, pose_b, motion(b.body, pose_b), options_.dt, standoff,
           points, n);
  const std::size_t place = w.pairs.size();
  w.resize_contacts(lanes_, place + at(n));
  for (int k = 0; k < n; ++k) {
    ContactPoint p = points[at(k)];
    const bool round = w.is_round[at(first)] && b.body < 0;
    const Vec3d arm_a =
        round ? Vec3d{a.shape.size.x + 0.5 * p.distance, 0, 0} : p.position - bodies_[at(a.body)].position;
    const Vec3d arm_b = b.body < 0 ? Vec3d{0, 0, 0} : p.position - bodies_[at(b.body)].position;
    p.distance -= standoff;
    put_contact(place + at(k), {first, second, a.body, b.body, surface_a, surface_b}, p, arm_a, arm_b, round);
    depth.add(p.distance);
  }
}

template <class R>
double RigidWorld<R>::separation(const BodyContact<R>& contact) const {
  return double(contact.distance) + work_->surfaces[contact.material].surface.margin;
}

/// Contacts of all other shapes, from the broad phase. Planes have no box and are tested with each of these shapes.
template <class R>
void RigidWorld<R>::detect_others(PenetrationSum& depth) {
  Workspace& w = *work_;
  for (std::size_t k = 0; k < w.boxed.size(); ++k) {
    const int i = w.boxed[k], body = shapes_[at(i)].body;
    const bool rests = !w.still.empty() && still(body);
    // Resting shapes are grouped with the world, so they form no pairs; spheres keep their group.
    w.present[k] = rests && !w.is_round[at(i)] ? 0 : w.groups[k];
    if (rests && body >= 0) continue;
    w.pose[at(i)] = world_pose(shapes_[at(i)], bodies_);
    w.boxes[k] = bounds(shapes_[at(i)].shape, w.pose[at(i)], 0.5 * options_.margin + w.widen[k]);
  }
  for (int plane : w.planes) w.pose[at(plane)] = shapes_[at(plane)].local;
  for (const BodyPair& pair : w.broad.find(w.boxes, w.present)) touch(w.boxed[pair.first], w.boxed[pair.second], depth);
  for (int plane : w.planes) {
    for (int i : w.boxed) {
      if (!w.is_round[at(i)]) touch(i, plane, depth);
    }
  }
}

template <class R>
void RigidWorld<R>::detect(RigidStepReport& report) {
  Workspace& w = *work_;
  const std::array<double, 4> rules = {options_.margin, options_.dt, options_.damping_time,
                                       options_.relative_compliance};
  const bool same_rules = w.classified && rules == w.rules;
  if (!w.classified || norm(options_.gravity - w.gravity) != 0) {  // all wake up
    for (RigidBody& b : bodies_) b.asleep = false, b.still_time = 0;
  }
  w.gravity = options_.gravity;
  if (!w.classified)
    classify();
  else if (!same_rules)
    combine_surfaces();
  w.rules = rules;
  mark_still(same_rules);
  std::swap(w.last_impulses, lanes_.impulses);
  std::swap(w.last_moments, lanes_.moments);
  w.last_moments.resize(w.turns ? w.last_impulses.size() : 0);
  std::swap(w.last_pairs, w.pairs);
  find_candidates();
  w.carry = options_.warm_start && !w.candidates_new;
  detect_spheres();
  w.candidates_new = false;
  w.last_from_candidates = w.from_candidates;
  w.from_candidates = w.pairs.size();
  PenetrationSum depth;
  for (const DetectShare& share : w.shares) depth.add(share.depth);
  if (w.need_broad) detect_others(depth);
  keep_resting(depth);
  report.contacts = int(w.pairs.size());
  report.touching = depth.touching;
  report.penetration_max = depth.max;
  report.penetration_mean = depth.touching ? depth.sum / depth.touching : 0;
}

/// Sets the initial impulses from the last step's contact of the same shapes and feature. Contacts of detect_spheres()
/// have theirs already.
template <class R>
void RigidWorld<R>::match() {
  Workspace& w = *work_;
  const std::size_t from = w.carry ? w.from_candidates : 0, last_from = w.carry ? w.last_from_candidates : 0;
  if (!options_.warm_start || w.last_pairs.size() == last_from || w.kept_from == from) return;
  unsigned size = 64;
  while (size < 2 * (w.last_pairs.size() - last_from)) size *= 2;
  const unsigned mask = size - 1;
  w.head.assign(size, -1);
  w.next.resize(w.last_pairs.size());
  for (int i = int(w.last_pairs.size()) - 1; i >= int(last_from); --i) {
    int& head = w.head[bucket(w.last_pairs[at(i)], mask)];
    w.next[at(i)] = head;
    head = i;
  }
  team_->each(int(w.kept_from - from), [&](int i) {
    const ContactPair& p = w.pairs[from + at(i)];
    for (int k = w.head[bucket(p, mask)]; k >= 0; k = w.next[at(k)]) {
      const ContactPair& q = w.last_pairs[at(k)];
      if (q.first == p.first && q.second == p.second && q.feature == p.feature)
        return w.take_last(lanes_, from + at(i), k);
    }
  });
}

/// Whether a body is slow enough to sleep.
template <class R>
bool RigidWorld<R>::slow(const RigidBody& b) const {
  return dot(b.velocity, b.velocity) < options_.sleep_speed * options_.sleep_speed &&
         dot(b.angular_velocity, b.angular_velocity) < options_.sleep_spin * options_.sleep_spin;
}

/// Bodies in contact, directly or through others, form an island. An island falls asleep when all its bodies have been
/// still for a while (count_still()). It wakes as a whole when an awake body joins it.
template <class R>
void RigidWorld<R>::sleep(RigidStepReport& report) {
  Workspace& w = *work_;
  lanes_.active = -1;
  if (!options_.sleep) {
    for (RigidBody& b : bodies_) b.asleep = false;
    w.resting.clear();
    return;
  }
  w.islands.reset(int(bodies_.size()));
  const auto join = [&](int a, int b) {
    if (a >= 0 && b >= 0) w.islands.join(a, b);
  };
  for (const BodyContact<R>& c : lanes_.contacts) join(c.body_a, c.body_b);
  w.island_moves.assign(bodies_.size(), 0);
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    RigidBody& b = bodies_[i];
    if (!slow(b)) b.still_time = 0;  // the caller may have changed it
    if (b.still_time < options_.sleep_time - 0.5 * options_.dt) w.island_moves[at(w.islands.find(int(i)))] = 1;
  }
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    RigidBody& b = bodies_[i];
    b.asleep = !w.island_moves[at(w.islands.find(int(i)))];
    if (b.asleep) b.velocity = b.angular_velocity = {0, 0, 0}, ++report.asleep;
    report.islands += w.islands.find(int(i)) == int(i);
  }
  // Moves the contacts of sleeping bodies to the end, in order. They keep their impulses for waking up.
  std::vector<char> rests;
  for (const BodyContact<R>& c : lanes_.contacts) rests.push_back(bodies_[at(c.body_a)].asleep);
  const auto reorder = [&](auto& all) {
    std::decay_t<decltype(all)> sorted;
    for (const char which : {0, 1}) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (rests[i] == which) sorted.push_back(all[i]);
      }
    }
    all.swap(sorted);
  };
  if (!std::is_sorted(rests.begin(), rests.end()))
    reorder(lanes_.contacts), reorder(lanes_.impulses), reorder(lanes_.moments), reorder(w.pairs);
  lanes_.active = int(std::count(rests.begin(), rests.end(), 0));
  w.last_active = at(lanes_.active);
  w.resting.assign(lanes_.contacts.begin() + lanes_.active, lanes_.contacts.end());
  w.rest_pose.resize(bodies_.size());
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (bodies_[i].asleep) w.rest_pose[i] = {bodies_[i].position, rotation(bodies_[i].orientation)};
  }
  w.candidates_new = true;  // the candidates' indices of contacts are no longer valid
}

/// Counts, at the end of a step, for how long each awake body has been still: slow, in an island whose weight and
/// applied forces are carried by the world, at least by half. What is slow because it turns back in mid-air is not.
template <class R>
void RigidWorld<R>::count_still() {
  if (!options_.sleep) return;
  Workspace& w = *work_;
  w.island_loads.assign(bodies_.size(), {});
  const auto load = [&](int body) -> IslandLoad& { return w.island_loads[at(w.islands.find(body))]; };
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const RigidBody& b = bodies_[i];
    IslandLoad& island = load(int(i));
    island.force += options_.gravity * b.mass + b.force;
    island.turned = island.turned || dot(b.torque, b.torque) > 0;
  }
  for (std::size_t i = 0; i < lanes_.contacts.size(); ++i) {
    const BodyContact<R>& c = lanes_.contacts[i];
    const ContactImpulse<R>& p = lanes_.impulses[i];
    const auto vector = [](const R* x) { return Vec3d{double(x[0]), double(x[1]), double(x[2])}; };
    if (c.body_b < 0) load(c.body_a).carried += vector(c.normal) * double(p.normal) + vector(p.tangent);
  }
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    RigidBody& b = bodies_[i];
    if (b.asleep) continue;
    const auto& [force, carried, turned] = load(int(i));
    const bool rests = dot(force, force) > 0 ? dot(carried, force) <= -0.5 * options_.dt * dot(force, force)
                                             : !turned || dot(carried, carried) > 0;
    b.still_time = rests && slow(b) ? std::min(b.still_time + options_.dt, options_.sleep_time) : 0;
  }
}

}  // namespace tarsus
