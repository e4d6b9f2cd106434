#include "tarsus/sim/sensor.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/ray.hpp"

namespace tarsus {

namespace {

std::string text_of(const SensorSpec& spec, const char* name) {
  for (const auto& [key, value] : spec.attributes) {
    if (key == name) return value;
  }
  return {};
}

template <class Items>
int place_in(const Items& items, const std::string& name) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return int(i);
  }
  return -1;
}

struct SensorPlace {
  LinkFrame frame;
  int body;
};

int body_of_site(const Model& model, const std::string& name) {
  for (int b = 0; b < model.nbody(); ++b) {
    if (place_in(model.spec.bodies[b].sites, name) >= 0) return b;
  }
  return 0;
}

/// A frame by the type and name of what has it; body: its inertial frame.
SensorPlace place_of(const Model& model, const std::string& type, const std::string& name, const Location& where) {
  if (type == "site") return {site_frame(model, name, where), body_of_site(model, name)};
  if (type == "geom") {
    const GeomPlace geom = geom_place(model, name, where);
    return {geom.frame, geom.body};
  }
  if (type == "body" || type == "xbody") {
    const int body = name == "world" ? 0 : model.find_body(name);
    if (body < 0) throw InputError(where, "there is no body named \"" + name + "\"");
    return {type == "body" ? inertial_frame(model, body) : body_frame(model, body), body};
  }
  throw InputError(where, "frames of type \"" + type + "\" are not supported");
}

void store_in(const Vec3d& v, double* out) { out[0] = v.x, out[1] = v.y, out[2] = v.z; }

void store_in(const Quatd& q, double* out) { out[0] = q.w, out[1] = q.x, out[2] = q.y, out[3] = q.z; }

}  // namespace

struct SensorSet::Scratch {
  explicit Scratch(const Model& model) : tau(model.nv), interaction(model.nbody()), subtree(model.nbody()) {}
  std::vector<double> tau;
  std::vector<Force<double>> interaction;  // [body] that its parent exerts, about the world's origin
  struct Subtree {
    double mass = 0;
    Vec3d moment{}, momentum{}, angular{};  // angular: about the world's origin
  };
  std::vector<Subtree> subtree;
  Energy energy;
  std::optional<RayScene> rays;
};

SensorSet::SensorSet(const Model& model)
    : model_(model), actuation_(model), scratch_(std::make_unique<Scratch>(model)) {
  for (const SensorSpec& spec : model.spec.sensors) add(spec);
  if (size() > 0) actuation_.ask_for_kinematics();
  const auto is_ray = [](const Sensor& s) { return s.kind == SensorKind::rangefinder; };
  if (std::any_of(sensors_.begin(), sensors_.end(), is_ray)) scratch_->rays.emplace(model);
}
SensorSet::~SensorSet() = default;
SensorSet::SensorSet(SensorSet&&) noexcept = default;

void SensorSet::add(const SensorSpec& spec) {
  Sensor s;
  s.name = spec.name, s.where = spec.where, s.address = numbers_;
  const SensorTraits* kind = sensor_traits(spec.kind);
  const auto named = [&](const char* what, int index) {
    if (index < 0)
      throw InputError(spec.where, std::string("there is no ") + what + " for sensor \"" + spec.name + "\"");
    return index;
  };
  const std::string cutoff = text_of(spec, "cutoff");
  if (!cutoff.empty()) std::from_chars(cutoff.data(), cutoff.data() + cutoff.size(), s.cutoff);
  if (kind) {
    s.kind = kind->kind, s.dimension = kind->dimension;
    if (kind->target == SensorTarget::site) {
      const std::string site = text_of(spec, "site");
      s.frame = site_frame(model_, site, spec.where), s.body = body_of_site(model_, site);
      const SiteSpec& shape = model_.spec.bodies[s.body].sites[place_in(model_.spec.bodies[s.body].sites, site)];
      s.zone = shape.type, s.zone_size = shape.size;
    }
    if (kind->target == SensorTarget::joint) s.object = named("joint", model_.find_joint(text_of(spec, "joint")));
    if (kind->target == SensorTarget::tendon)
      s.object = named("tendon", place_in(model_.spec.tendons, text_of(spec, "tendon")));
    if (kind->target == SensorTarget::actuator)
      s.object = named("actuator", place_in(model_.spec.actuators, text_of(spec, "actuator")));
    if (kind->target == SensorTarget::body) {
      const std::string body = text_of(spec, "body");
      s.object = named("body", body == "world" ? 0 : model_.find_body(body));
    }
    if (kind->target == SensorTarget::frame) {
      if (text_of(spec, "objtype") == "camera" || text_of(spec, "reftype") == "camera") s.kind = SensorKind::none;
    }
    if (kind->target == SensorTarget::frame && s.kind != SensorKind::none) {
      const SensorPlace place = place_of(model_, text_of(spec, "objtype"), text_of(spec, "objname"), spec.where);
      s.frame = place.frame, s.body = place.body;
      s.has_reference = !text_of(spec, "refname").empty();
      if (s.has_reference)
        s.reference = place_of(model_, text_of(spec, "reftype"), text_of(spec, "refname"), spec.where).frame;
    }
  }
  using enum SensorKind;
  needs_forces_ = needs_forces_ || s.kind == force || s.kind == torque;
  needs_subtrees_ = needs_subtrees_ || s.kind == subtreecom || s.kind == subtreelinvel || s.kind == subtreeangmom;
  needs_energy_ = needs_energy_ || s.kind == e_potential || s.kind == e_kinetic;
  needs_accelerations_ = needs_accelerations_ || needs_forces_ || s.kind == accelerometer || s.kind == framelinacc ||
                         s.kind == frameangacc;
  numbers_ += s.dimension;
  sensors_.push_back(std::move(s));
}

void SensorSet::evaluate(const SensorInput& state, std::span<double> sensordata) {
  check_size("sensordata", sensordata.size(), numbers_);
  check_size("qpos", state.qpos.size(), model_.nq);
  check_size("qvel", state.qvel.size(), model_.nv);
  check_size("qacc", state.qacc.size(), model_.nv);
  if (numbers_ == 0) return;
  actuation_.evaluate(state.qpos, state.qvel, state.ctrl, state.act, model_.timestep);
  if (needs_accelerations_) {
    Data& work = actuation_.workspace();
    rnea<double>(model_, work, state.qpos, state.qvel, state.qacc, scratch_->tau);  // leaves o, R, v as they were
    if (needs_forces_) find_forces(state);
  }
  if (needs_subtrees_) find_subtrees();
  if (needs_energy_) scratch_->energy = energy<double>(model_, actuation_.data(), state.qpos, state.qvel);
  std::fill(sensordata.begin(), sensordata.end(), 0.0);
  for (const Sensor& s : sensors_) {
    double* const out = sensordata.data() + s.address;
    read(s, state, out);
    if (s.cutoff <= 0 || s.kind == SensorKind::none || sensor_traits(s.kind).direction) continue;
    const bool positive = s.kind == SensorKind::touch || s.kind == SensorKind::rangefinder;
    for (int k = 0; k < s.dimension; ++k)
      out[k] = positive ? std::min(out[k], s.cutoff) : std::clamp(out[k], -s.cutoff, s.cutoff);
  }
}

void SensorSet::read(const Sensor& s, const SensorInput& state, double* out) const {
  using enum SensorKind;
  const LinkState<double>* const links = actuation_.data().links();
  const auto local = [&](const Vec3d& v) { return transpose_mul(world_pose(links, s.frame).R, v); };
  switch (s.kind) {
    case touch: *out = read_touch(s, state); break;
    case velocimeter: store_in(local(world_velocity(links, s.frame).v), out); break;
    case gyro: store_in(local(world_velocity(links, s.frame).w), out); break;
    case magnetometer: store_in(local(model_.spec.option.magnetic), out); break;
    case accelerometer:
    case framelinacc:
    case frameangacc:
    case force:
    case torque: read_acceleration(s, out); break;
    case rangefinder: {
      const Transformd X = world_pose(links, s.frame);
      *out = scratch_->rays->cast(links, X.p, X.R.column_z(), s.body);
      break;
    }
    case tendonpos: *out = actuation_.passive().tendon_length()[s.object]; break;
    case tendonvel: *out = actuation_.passive().tendon_velocity()[s.object]; break;
    case actuatorpos: *out = actuation_.length()[s.object]; break;
    case actuatorvel: *out = actuation_.velocity()[s.object]; break;
    case actuatorfrc: *out = actuation_.force()[s.object]; break;
    case jointactfrc: *out = actuation_.actuator_force()[model_.joints[s.object].qvel]; break;
    case tendonactfrc:
      for (int i = 0; i < actuation_.actuators().size(); ++i) {
        if (actuation_.actuators()[i].tendon == s.object) *out += actuation_.force()[i];
      }
      break;
    case subtreecom:
    case subtreelinvel:
    case subtreeangmom: read_subtree(s, out); break;
    case e_potential: *out = scratch_->energy.potential + scratch_->energy.spring; break;
    case e_kinetic: *out = scratch_->energy.kinetic; break;
    case clock: *out = state.time; break;
    case none: break;
    case framepos:
    case framequat:
    case framexaxis:
    case frameyaxis:
    case framezaxis:
    case framelinvel:
    case frameangvel: read_frame(s, out); break;
    default: read_joint(s, state, out); break;
  }
}

void SensorSet::read_joint(const Sensor& s, const SensorInput& state, double* out) const {
  const Joint& joint = model_.joints[s.object];
  const double* const q = state.qpos.data() + joint.qpos;
  const double* const v = state.qvel.data() + joint.qvel;
  const bool limit = s.kind == SensorKind::jointlimitpos || s.kind == SensorKind::jointlimitvel;
  if (s.kind == SensorKind::jointpos) *out = *q;
  if (s.kind == SensorKind::jointvel) *out = *v;
  if (s.kind == SensorKind::ballquat) store_in(normalized(Quatd{q[0], q[1], q[2], q[3]}), out);
  if (s.kind == SensorKind::ballangvel) std::copy(v, v + 3, out);
  if (!limit || !joint.limited || joint.nv() != 1) return;
  const JointSpec& spec = model_.spec.bodies[joint.body].joints[s.object - model_.bodies[joint.body].joint_first];
  for (const double side : {-1.0, 1.0}) {  // the lower end comes first
    const double distance = side < 0 ? *q - joint.range[0] : joint.range[1] - *q;
    if (distance >= spec.margin) continue;
    *out = s.kind == SensorKind::jointlimitpos ? distance - spec.margin : -side * *v;
    return;
  }
}

void SensorSet::read_frame(const Sensor& s, double* out) const {
  using enum SensorKind;
  const LinkState<double>* const links = actuation_.data().links();
  const Transformd X = world_pose(links, s.frame), X_ref = s.has_reference ? world_pose(links, s.reference)
                                                                           : Transformd{identity3<double>(), {0, 0, 0}};
  if (s.kind == framepos) return store_in(transpose_mul(X_ref.R, X.p - X_ref.p), out);
  if (s.kind == framequat) return store_in(quaternion(transpose(X_ref.R) * X.R), out);
  if (s.kind == framexaxis) return store_in(transpose_mul(X_ref.R, X.R.column_x()), out);
  if (s.kind == frameyaxis) return store_in(transpose_mul(X_ref.R, X.R.column_y()), out);
  if (s.kind == framezaxis) return store_in(transpose_mul(X_ref.R, X.R.column_z()), out);
  Motion<double> v = world_velocity(links, s.frame);
  if (s.has_reference) {  // as the reference, which turns, sees it
    const Motion<double> seen = world_velocity(links, s.reference);
    v = {transpose_mul(X_ref.R, v.w - seen.w), transpose_mul(X_ref.R, v.v - seen.v - cross(seen.w, X.p - X_ref.p))};
  }
  store_in(s.kind == framelinvel ? v.v : v.w, out);
}

void SensorSet::read_acceleration(const Sensor& s, double* out) const {
  using enum SensorKind;
  const LinkState<double>* const links = actuation_.data().links();
  const Transformd X = world_pose(links, s.frame);
  if (s.kind == force || s.kind == torque) {
    const Force<double>& f = scratch_->interaction[s.body];
    return store_in(transpose_mul(X.R, s.kind == force ? f.f : f.n - cross(X.p, f.f)), out);
  }
  Vec3d angular{0, 0, 0}, linear = -model_.gravity;
  if (s.frame.link >= 0) {
    const LinkState<double>& link = links[s.frame.link];
    const Vec3d r = X.p - link.o;
    angular = link.a.w;
    linear = link.a.v + cross(link.v.w, link.v.v) + cross(angular, r) + cross(link.v.w, cross(link.v.w, r));
  }
  if (s.kind == accelerometer) linear = transpose_mul(X.R, linear);
  store_in(s.kind == frameangacc ? angular : linear, out);
}

/// What each body's parent exerts on it: its own inertial force and its children's, less what comes from outside.
void SensorSet::find_forces(const SensorInput& state) {
  const LinkState<double>* const links = actuation_.data().links();
  std::vector<Force<double>>& f = scratch_->interaction;
  const Force<double> zero{{0, 0, 0}, {0, 0, 0}};
  std::fill(f.begin(), f.end(), zero);
  for (const BodyForce& e : state.external)
    f[e.body] = f[e.body] - Force<double>{e.torque + cross(e.point, e.force), e.force};
  for (int b = model_.nbody() - 1; b > 0; --b) {
    const Body& body = model_.bodies[b];
    if (body.mass > 0 && body.link < 0) {
      const Vec3d weight = model_.gravity * -body.mass;
      f[b] += Force<double>{cross(body.X_LB.p + body.X_LB.R * body.com, weight), weight};
    } else if (body.mass > 0) {
      const LinkState<double>& link = links[body.link];
      const Mat3d R = link.R * body.X_LB.R;
      const Vec3d com = link.o + link.R * (body.X_LB.p + body.X_LB.R * body.com), r = com - link.o, w = link.v.w;
      const Vec3d linear = (link.a.v + cross(w, link.v.v) + cross(link.a.w, r) + cross(w, cross(w, r))) * body.mass;
      const Sym3d I = rotate(R, body.inertia);
      f[b] += Force<double>{I * link.a.w + cross(w, I * w) + cross(com, linear), linear};
    }
    f[body.parent] += f[b];
  }
}

void SensorSet::find_subtrees() {
  auto& all = scratch_->subtree;
  for (auto& s : all) s = {};
  for (auto& s : all) s.moment = s.momentum = s.angular = {0, 0, 0};
  for (int b = model_.nbody() - 1; b > 0; --b) {
    const Body& body = model_.bodies[b];
    const Transformd X = body_pose(model_, actuation_.data(), b);
    const Motion<double> v = body_velocity(model_, actuation_.data(), b);
    const Vec3d arm = X.R * body.com, com = X.p + arm, p = (v.v + cross(v.w, arm)) * body.mass;
    auto &own = all[b], &parent = all[body.parent];
    own.mass += body.mass, own.moment += com * body.mass, own.momentum += p;
    own.angular += rotate(X.R, body.inertia) * v.w + cross(com, p);
    parent.mass += own.mass, parent.moment += own.moment, parent.momentum += own.momentum,
        parent.angular += own.angular;
  }
}

void SensorSet::read_subtree(const Sensor& s, double* out) const {
  const auto& sub = scratch_->subtree[s.object];
  const double inverse = 1 / std::max(sub.mass, 1e-15);
  const Vec3d com = sub.mass > 0 ? sub.moment * inverse : body_pose(model_, actuation_.data(), s.object).p;
  if (s.kind == SensorKind::subtreecom) return store_in(com, out);
  if (s.kind == SensorKind::subtreelinvel) return store_in(sub.momentum * inverse, out);
  store_in(sub.angular - cross(com, sub.momentum), out);
}

double SensorSet::read_touch(const Sensor& s, const SensorInput& state) const {
  const Transformd X = world_pose(actuation_.data().links(), s.frame);
  double sum = 0;
  for (const TouchPoint& c : state.contacts) {
    if (c.force <= 0 || (c.body_a != s.body && c.body_b != s.body)) continue;
    const Vec3d away = c.body_b == s.body ? c.normal : -c.normal;  // from the body that feels it
    const Vec3d origin = transpose_mul(X.R, c.point - X.p), direction = transpose_mul(X.R, away);
    if (ray_shape(s.zone, s.zone_size, origin, direction) >= 0) sum += c.force;
  }
  return sum;
}

}  // namespace tarsus
