#include "tarsus/sim/rigid_world.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/rigid_candidates.inl"
#include "sim/rigid_detect.inl"
#include "sim/rigid_solve.inl"
#include "tarsus/base/error.hpp"
#include "tarsus/base/hash.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

namespace {

void require(bool holds, const char* what, double value, const char* expected) {
  if (!holds) throw ValueError(what, number_text(value), expected);
}
void require_not_negative(const char* what, double x) {
  require(x >= 0 && std::isfinite(x), what, x, "finite, not negative");
}
bool finite(const Vec3d& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); }

}  // namespace

void check(const RigidWorldOptions& o) {
  require(o.dt > 0 && std::isfinite(o.dt), "dt", o.dt, "positive, finite");
  require(o.iterations >= 1 && o.iterations <= 1000000, "iterations", o.iterations, "1 to 1,000,000");
  require(o.tolerance >= 0, "tolerance", o.tolerance, "not negative");
  require(o.relaxation > 0 && o.relaxation < 2, "relaxation", o.relaxation, "above 0, below 2");
  require(std::isfinite(o.relative_compliance) && o.relative_compliance != 0, "relative_compliance",
          o.relative_compliance, "finite, not zero");
  require_not_negative("damping_time", o.damping_time), require_not_negative("margin", o.margin);
  require(finite(o.gravity), "gravity", o.gravity.z, "finite");
  require(o.restitution_threshold >= 0, "restitution_threshold", o.restitution_threshold, "not negative");
  require(o.sleep_speed >= 0, "sleep_speed", o.sleep_speed, "not negative");
  require(o.sleep_spin >= 0, "sleep_spin", o.sleep_spin, "not negative");
  require(o.sleep_time >= 0, "sleep_time", o.sleep_time, "not negative");
  require(o.speed_limit > 0, "speed_limit", o.speed_limit, "positive");
}

/// The lanes use one τ per pair of surfaces: that of a contact without penetration.
PairSurface combine(const Surface& first, const Surface& second, const RigidWorldOptions& options) {
  PairSurface s{{}, mix(first, second), options.dt};
  const ContactSurface& both = s.surface;
  const Spook spook = both.softness(0, options.dt).spook;
  s.material.friction = both.dimension >= 3 ? both.friction[0] : 0;
  s.material.torsional = both.dimension >= 4 ? both.friction[2] : 0;
  s.material.rolling = both.dimension >= 6 ? both.friction[3] : 0;
  s.material.restitution = both.restitution;
  s.material.compliance = spook.compliance;
  const double steps = options.damping_time > 0 ? options.damping_time : kDampingSteps * options.dt;
  s.material.damping_time = spook.damping_time > 0 ? spook.damping_time : steps;
  const double relative =
      options.relative_compliance < 0 ? 0.036 * options.dt * options.dt : options.relative_compliance;
  s.relative_compliance = spook.compliance > 0 ? 0 : relative;
  return s;
}

template <class R>
RigidWorld<R>::RigidWorld(const RigidWorldOptions& options) : options_(options), work_(std::make_unique<Workspace>()) {
  check(options);
  most_threads_ = ThreadTeam::useful(options.threads);
  team_ = std::make_unique<ThreadTeam>(1);
}
template <class R>
RigidWorld<R>::~RigidWorld() = default;
template <class R>
RigidWorld<R>::RigidWorld(RigidWorld&&) noexcept = default;

template <class R>
int RigidWorld<R>::add_surface(const Surface& s) {
  require_not_negative("friction", s.friction), require_not_negative("torsional", s.torsional);
  require_not_negative("rolling", s.rolling), require_not_negative("compliance", s.compliance);
  require_not_negative("damping_time", s.damping_time), require_not_negative("margin", s.margin);
  require(surfaces_.size() < 255, "surfaces", 255, "at most 255 different ones");
  require(s.restitution >= 0 && s.restitution <= 1, "restitution", s.restitution, "0 to 1");
  if (s.solver) solver_parameters(s.solver->reference, s.solver->impedance);  // throws
  surfaces_.push_back(s);
  work_->classified = false;
  return int(surfaces_.size()) - 1;
}

template <class R>
int RigidWorld<R>::add_body(const RigidBody& b) {
  require(b.mass > 0 && std::isfinite(b.mass), "mass", b.mass, "positive, finite");
  for (int k = 0; k < 3; ++k)
    require(b.inertia[k] > 0 && std::isfinite(b.inertia[k]), "inertia", b.inertia[k], "positive, finite");
  for (const Vec3d* v : {&b.position, &b.velocity, &b.angular_velocity, &b.force, &b.torque})
    require(finite(*v), "body's state", v->x + v->y + v->z, "finite");
  const Quatd q = b.orientation;
  const double length2 = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
  require(std::isfinite(length2) && length2 > 1e-12, "orientation", length2, "a quaternion that is not zero");
  bodies_.push_back(b);
  bodies_.back().orientation = normalized(q);
  work_->classified = false;
  return int(bodies_.size()) - 1;
}

template <class R>
int RigidWorld<R>::add_shape(const BodyShape& s) {
  require(s.body >= -1 && s.body < int(bodies_.size()), "body", s.body, "an existing body, or -1 for the world");
  require(s.surface >= 0 && s.surface < int(surfaces_.size()), "surface", s.surface, "an existing surface");
  require(s.body < 0 || (s.shape.type != ShapeType::plane && s.shape.type != ShapeType::height_field), "body", s.body,
          "-1: planes and height fields do not move");
  require(finite(s.local.position), "position", s.local.position.x, "finite");
  check_shape(s.shape);
  shapes_.push_back(s);
  work_->classified = false;
  return int(shapes_.size()) - 1;
}

template <class R>
void RigidWorld<R>::exclude(int body_a, int body_b) {
  for (int b : {body_a, body_b})
    require(b >= -1 && b < int(bodies_.size()), "body", b, "an existing body, or -1 for the world");
  excluded_.insert(std::minmax(body_a, body_b));
  work_->classified = false;
}

template <class R>
void RigidWorld<R>::pair(int shape_a, int shape_b, int surface) {
  for (int s : {shape_a, shape_b}) require(s >= 0 && s < int(shapes_.size()), "shape", s, "an existing shape");
  require(shape_a != shape_b, "shape", shape_b, "another shape than the first");
  require(surface >= -1 && surface < int(surfaces_.size()), "surface", surface, "an existing surface, or -1");
  pairs_[std::minmax(shape_a, shape_b)] = surface;
  work_->classified = false;
}

template <class R>
void RigidWorld<R>::forget_contacts() {
  Workspace& w = *work_;
  w.pairs.clear(), lanes_.impulses.clear(), lanes_.contacts.clear(), lanes_.moments.clear();
  w.resting.clear();
  w.from_candidates = 0, w.candidates_valid = false;
}

template <class R>
RigidStepReport RigidWorld<R>::step() {
  RigidStepReport report;
  check(options_);
  if (threads() != team_->size()) team_ = std::make_unique<ThreadTeam>(threads());
  std::atomic<bool> bad = false;
  team_->each(int(bodies_.size()), [&](int i) {
    const RigidBody& b = bodies_[at(i)];
    const double sum = b.position.x + b.position.y + b.position.z + b.velocity.x + b.velocity.y + b.velocity.z +
                       b.angular_velocity.x + b.angular_velocity.y + b.angular_velocity.z + b.orientation.w +
                       b.orientation.x + b.orientation.y + b.orientation.z;
    const bool heavy = b.mass > 0 && b.inertia.x > 0 && b.inertia.y > 0 && b.inertia.z > 0;
    if (!heavy || !std::isfinite(sum) || !finite(b.force) || !finite(b.torque)) bad = true;
  });
  if (bad) return report.status = WorldStatus::bad_input, report;
  StageClock clock(true);
  clock.begin();
  detect(report);
  clock.lap(Stage::collide);
  match();
  sleep(report);
  clock.lap(Stage::match);
  solve(report, clock);
  clock.lap(Stage::terms);
  if (!move(report)) return report;
  count_still();
  time_ += options_.dt;
  clock.lap(Stage::integrate);
  report.seconds = clock.seconds();
  return report;
}

template <class R>
int RigidWorld<R>::threads() const {
  return std::min(most_threads_, std::max(1, int(bodies_.size()) / kBodiesEach));
}

template <class R>
const std::vector<typename RigidWorld<R>::ContactPair>& RigidWorld<R>::contact_pairs() const {
  return work_->pairs;
}

template <class R>
double RigidWorld<R>::kinetic_energy() const {
  double sum = 0;
  for (const RigidBody& b : bodies_) {
    const Vec3d w = transpose_mul(rotation(b.orientation), b.angular_velocity);
    sum += 0.5 * b.mass * dot(b.velocity, b.velocity);
    sum += 0.5 * (b.inertia.x * w.x * w.x + b.inertia.y * w.y * w.y + b.inertia.z * w.z * w.z);
  }
  return sum;
}
template <class R>
double RigidWorld<R>::potential_energy() const {
  double sum = 0;
  for (const RigidBody& b : bodies_) sum -= b.mass * dot(options_.gravity, b.position);
  return sum;
}
template <class R>
Vec3d RigidWorld<R>::momentum() const {
  Vec3d sum = {0, 0, 0};
  for (const RigidBody& b : bodies_) sum += b.velocity * b.mass;
  return sum;
}
template <class R>
Vec3d RigidWorld<R>::angular_momentum() const {
  Vec3d sum = {0, 0, 0};
  for (const RigidBody& b : bodies_) {
    const Mat3d r = rotation(b.orientation);
    const Vec3d w = transpose_mul(r, b.angular_velocity);
    sum += cross(b.position, b.velocity) * b.mass + r * Vec3d{b.inertia.x * w.x, b.inertia.y * w.y, b.inertia.z * w.z};
  }
  return sum;
}

template <class R>
std::uint64_t RigidWorld<R>::state_hash() const {
  std::uint64_t hash = 1469598103934665603ull;
  for (const RigidBody& b : bodies_) {
    const double state[] = {b.position.x,        b.position.y,    b.position.z,         b.orientation.w,
                            b.orientation.x,     b.orientation.y, b.orientation.z,      b.velocity.x,
                            b.velocity.y,        b.velocity.z,    b.angular_velocity.x, b.angular_velocity.y,
                            b.angular_velocity.z};
    hash = fnv1a<double>(state, hash);
  }
  return hash;
}

template class RigidWorld<float>;
template class RigidWorld<double>;

}  // namespace tarsus
