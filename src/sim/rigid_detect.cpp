// Stages detect, match and sleep of RigidWorld.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/rigid_workspace.hpp"

namespace tarsus {

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

ShapePose world_pose(const BodyShape& shape, const std::vector<RigidBody>& bodies) {
  if (shape.body < 0) return shape.local;
  const RigidBody& b = bodies[at(shape.body)];
  const Mat3d r = rotation_of(b);
  return {b.position + r * shape.local.position, r * shape.local.rotation};
}

bool masks_meet(const BodyShape& a, const BodyShape& b) {
  return (a.contype & b.conaffinity) || (b.contype & a.conaffinity);
}

unsigned bucket(const auto& pair, unsigned mask) {
  return (unsigned(pair.first) * 8u + unsigned(pair.second) + pair.feature * 0x9e3779b9u) & mask;
}

}  // namespace

/// Which shapes take which way through detection; once after shapes were added.
template <class R>
void RigidWorld<R>::classify() {
  Workspace& w = *work_;
  w.round_shape.clear(), w.planes.clear(), w.boxed.clear(), w.groups.clear();
  w.is_round.assign(shapes_.size(), 0);
  std::vector<int> shapes_of(bodies_.size(), 0);
  for (const BodyShape& s : shapes_) {
    if (s.body >= 0) ++shapes_of[at(s.body)];
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
    const RigidBody& b = bodies_[at(s.body)];
    const bool isotropic = b.inertia.x == b.inertia.y && b.inertia.y == b.inertia.z;
    const bool round = s.shape.type == ShapeType::sphere && isotropic && shapes_of[at(s.body)] == 1 &&
                       dot(s.local.position, s.local.position) == 0;
    w.boxed.push_back(i);
    w.groups.push_back(round ? 1 : 2 + s.body);
    w.is_round[at(i)] = round;
    if (!round) w.need_broad = true;
    if (!round) continue;
    const BodyShape& first = shapes_[at(w.round_shape.empty() ? i : w.round_shape[0])];
    w.same_masks = w.same_masks && s.contype == first.contype && s.conaffinity == first.conaffinity;
    w.round_shape.push_back(i);
  }
  w.same_masks = w.same_masks && !w.round_shape.empty() &&
                 masks_meet(shapes_[at(w.round_shape[0])], shapes_[at(w.round_shape[0])]);
  w.need_broad = w.need_broad || static_boxed > 0;
  const std::size_t ns = surfaces_.size();
  w.surfaces.clear();
  w.lanes.materials.clear();
  w.needs_rows = !joints_.empty();
  for (std::size_t i = 0; i < ns * ns; ++i) {
    w.surfaces.push_back(combine(surfaces_[i / ns], surfaces_[i % ns], options_));
    w.lanes.materials.push_back(w.surfaces.back().material);
    w.needs_rows = w.needs_rows || w.surfaces.back().torsional > 0 || w.surfaces.back().rolling > 0;
  }
  const std::size_t n = w.round_shape.size();
  for (auto* v : {&w.x, &w.y, &w.z, &w.radius}) v->resize(n);
  for (std::size_t i = 0; i < n; ++i) w.radius[i] = shapes_[at(w.round_shape[i])].shape.size.x;
  w.pose.resize(shapes_.size());
  w.boxes.resize(w.boxed.size());
  w.classified = true;
}

template <class R>
void RigidWorld<R>::detect(RigidStepReport& report) {
  Workspace& w = *work_;
  if (!w.classified) classify();
  std::swap(w.last_contacts, w.lanes.contacts);
  std::swap(w.last_pairs, w.pairs);
  w.lanes.contacts.clear(), w.pairs.clear();
  const int ns = int(surfaces_.size());
  double sum = 0;
  const auto add = [&](int first, int second, bool round, const Vec3d& n, double distance, std::uint32_t feature,
                       const Vec3d& arm_a, const Vec3d& arm_b) {
    const BodyShape &a = shapes_[at(first)], &b = shapes_[at(second)];
    const int pair = a.surface * ns + b.surface;
    BodyContact<R> c;
    c.body_a = a.body, c.body_b = b.body, c.material = pair, c.round = round;
    c.normal[0] = R(n.x), c.normal[1] = R(n.y), c.normal[2] = R(n.z);
    c.arm_a[0] = R(arm_a.x), c.arm_a[1] = R(arm_a.y), c.arm_a[2] = R(arm_a.z);
    c.arm_b[0] = R(arm_b.x), c.arm_b[1] = R(arm_b.y), c.arm_b[2] = R(arm_b.z);
    c.distance = R(distance);
    c.relative_compliance = R(w.surfaces[at(pair)].relative(distance));
    c.impulse_n = c.impulse_t[0] = c.impulse_t[1] = c.impulse_t[2] = R(0);
    w.lanes.contacts.push_back(c);
    w.pairs.push_back({first, second, feature});
    if (distance < 0) {
      ++report.touching;
      sum -= distance;
      report.penetration_max = std::max(report.penetration_max, -distance);
    }
  };
  for (std::size_t i = 0; i < w.round_shape.size(); ++i) {
    const Vec3d& p = bodies_[at(shapes_[at(w.round_shape[i])].body)].position;
    w.x[i] = p.x, w.y[i] = p.y, w.z[i] = p.z;
  }
  if (w.round_shape.size() > 1) {
    const SphereContacts& found = w.spheres.find(w.x, w.y, w.z, w.radius, options_.margin);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int a = w.round_shape[found.first[i]], b = w.round_shape[found.second[i]];
      if (!w.same_masks && !masks_meet(shapes_[at(a)], shapes_[at(b)])) continue;
      const double half = 0.5 * found.distance[i];
      add(a, b, true, {found.normal_x[i], found.normal_y[i], found.normal_z[i]}, found.distance[i], 0,
          {w.radius[found.first[i]] + half, 0, 0}, {w.radius[found.second[i]] + half, 0, 0});
    }
  }
  for (int plane : w.planes) {
    const BodyShape& p = shapes_[at(plane)];
    const Vec3d n = p.local.rotation.column_z();
    for (std::size_t i = 0; i < w.round_shape.size(); ++i) {
      const double distance = dot(n, Vec3d{w.x[i], w.y[i], w.z[i]} - p.local.position) - w.radius[i];
      if (!(distance <= options_.margin) || !masks_meet(shapes_[at(w.round_shape[i])], p)) continue;
      add(w.round_shape[i], plane, true, n, distance, 0, {w.radius[i] + 0.5 * distance, 0, 0}, {0, 0, 0});
    }
  }
  if (w.need_broad) {
    std::array<ContactPoint, kMaxManifold> points;
    const auto touch = [&](int first, int second) {
      if (shapes_[at(first)].body < 0) std::swap(first, second);
      const BodyShape &a = shapes_[at(first)], &b = shapes_[at(second)];
      if (a.body < 0 || !masks_meet(a, b)) return;
      const int n = collide(a.shape, w.pose[at(first)], b.shape, w.pose[at(second)], options_.margin, points);
      for (int k = 0; k < n; ++k) {
        const ContactPoint& p = points[at(k)];
        const bool round = w.is_round[at(first)] && b.body < 0;
        const Vec3d arm_a = p.position - bodies_[at(a.body)].position;
        const Vec3d arm_b = b.body < 0 ? Vec3d{0, 0, 0} : p.position - bodies_[at(b.body)].position;
        add(first, second, round, p.normal, p.distance, p.feature,
            round ? Vec3d{a.shape.size.x + 0.5 * p.distance, 0, 0} : arm_a, arm_b);
      }
    };
    for (std::size_t k = 0; k < w.boxed.size(); ++k) {
      const int i = w.boxed[k];
      w.pose[at(i)] = world_pose(shapes_[at(i)], bodies_);
      w.boxes[k] = bounds(shapes_[at(i)].shape, w.pose[at(i)], 0.5 * options_.margin);
    }
    for (int plane : w.planes) w.pose[at(plane)] = shapes_[at(plane)].local;
    for (const BodyPair& pair : w.broad.find(w.boxes, w.groups)) touch(w.boxed[pair.first], w.boxed[pair.second]);
    for (int plane : w.planes) {
      for (int i : w.boxed) {
        if (!w.is_round[at(i)]) touch(i, plane);
      }
    }
  }
  report.contacts = int(w.pairs.size());
  report.penetration_mean = report.touching ? sum / report.touching : 0;
}

/// Starting impulses from the last step's contact of the same shapes and feature.
template <class R>
void RigidWorld<R>::match() {
  Workspace& w = *work_;
  if (!options_.warm_start || w.last_pairs.empty()) return;
  unsigned size = 64;
  while (size < 2 * w.last_pairs.size()) size *= 2;
  const unsigned mask = size - 1;
  w.head.assign(size, -1);
  w.next.resize(w.last_pairs.size());
  for (int i = int(w.last_pairs.size()) - 1; i >= 0; --i) {
    int& head = w.head[bucket(w.last_pairs[at(i)], mask)];
    w.next[at(i)] = head;
    head = i;
  }
  for (std::size_t i = 0; i < w.pairs.size(); ++i) {
    const ContactPair& p = w.pairs[i];
    for (int k = w.head[bucket(p, mask)]; k >= 0; k = w.next[at(k)]) {
      const ContactPair& q = w.last_pairs[at(k)];
      if (q.first != p.first || q.second != p.second || q.feature != p.feature) continue;
      const BodyContact<R>& from = w.last_contacts[at(k)];
      BodyContact<R>& to = w.lanes.contacts[i];
      to.impulse_n = from.impulse_n;
      for (int j = 0; j < 3; ++j) to.impulse_t[j] = from.impulse_t[j];
      break;
    }
  }
}

/// Bodies that touch one another, directly or through others, are an island; it falls asleep when all of it has been
/// slow for a while, and wakes as a whole when an awake body joins it.
template <class R>
void RigidWorld<R>::sleep(RigidStepReport& report) {
  Workspace& w = *work_;
  w.lanes.active = -1;
  if (!options_.sleep) {
    for (RigidBody& b : bodies_) b.asleep = false;
    return;
  }
  w.parent.resize(bodies_.size());
  std::iota(w.parent.begin(), w.parent.end(), 0);
  const auto root = [&](int i) {
    while (w.parent[at(i)] != i) i = w.parent[at(i)] = w.parent[at(w.parent[at(i)])];
    return i;
  };
  const auto join = [&](int a, int b) {
    if (a < 0 || b < 0) return;
    const int ra = root(a), rb = root(b);
    w.parent[at(std::max(ra, rb))] = std::min(ra, rb);
  };
  for (const BodyContact<R>& c : w.lanes.contacts) join(c.body_a, c.body_b);
  for (const PointJoint& j : joints_) join(j.body_a, j.body_b);
  w.island_moves.assign(bodies_.size(), 0);
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    RigidBody& b = bodies_[i];
    const bool slow = dot(b.velocity, b.velocity) < options_.sleep_speed * options_.sleep_speed &&
                      dot(b.angular_velocity, b.angular_velocity) < options_.sleep_spin * options_.sleep_spin;
    b.still_steps = slow ? std::min(b.still_steps + 1, options_.sleep_steps) : 0;
    if (b.still_steps < options_.sleep_steps) w.island_moves[at(root(int(i)))] = 1;
  }
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    RigidBody& b = bodies_[i];
    b.asleep = !w.island_moves[at(root(int(i)))];
    if (b.asleep) b.velocity = b.angular_velocity = {0, 0, 0}, ++report.asleep;
    report.islands += root(int(i)) == int(i);
  }
  // Contacts of sleepers to the back, in their order; they keep their impulses for when they wake.
  std::vector<BodyContact<R>> contacts, resting;
  std::vector<ContactPair> pairs, resting_pairs;
  for (std::size_t i = 0; i < w.pairs.size(); ++i) {
    const bool rests = bodies_[at(w.lanes.contacts[i].body_a)].asleep;
    (rests ? resting : contacts).push_back(w.lanes.contacts[i]);
    (rests ? resting_pairs : pairs).push_back(w.pairs[i]);
  }
  w.lanes.active = int(contacts.size());
  contacts.insert(contacts.end(), resting.begin(), resting.end());
  pairs.insert(pairs.end(), resting_pairs.begin(), resting_pairs.end());
  w.lanes.contacts.swap(contacts);
  w.pairs.swap(pairs);
}

template void RigidWorld<float>::classify();
template void RigidWorld<double>::classify();
template void RigidWorld<float>::detect(RigidStepReport&);
template void RigidWorld<double>::detect(RigidStepReport&);
template void RigidWorld<float>::match();
template void RigidWorld<double>::match();
template void RigidWorld<float>::sleep(RigidStepReport&);
template void RigidWorld<double>::sleep(RigidStepReport&);

}  // namespace tarsus
