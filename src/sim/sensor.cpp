#include "tarsus/sim/sensor.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <tuple>

#include "tarsus/base/index.hpp"
#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/dynamics/tendon_inertia.hpp"
#include "tarsus/dynamics/tendon_pull.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/model/mujoco_minval.hpp"
#include "tarsus/sim/ray.hpp"

namespace tarsus {

namespace {

constexpr int kMostNumbers = 100'000;  ///< for one sensor

/// A numeric attribute of the sensor, or `otherwise` if it is absent. @throws InputError for other text
template <class T>
T number_in(const SensorSpec& spec, const char* name, T low, T high, T otherwise) {
  std::string text = attribute(spec, name);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  if (text.starts_with('+')) text.erase(0, 1);
  if (text.empty()) return otherwise;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= low && value <= high) return value;
  throw InputError(spec.where, "attribute '" + std::string(name) + "' of sensor \"" + spec.name + "\" is \"" + text +
                                   "\", expected a number from " + std::to_string(low) + " to " + std::to_string(high));
}

/// The attribute for one of the sensor's two sides.
std::string side_attribute(const SensorSpec& spec, const char* name, bool first) {
  return attribute(spec, std::string(name) + (first ? "1" : "2"));
}

struct FramePlace {
  LinkFrame frame;
  int body;    ///< that carries it
  Quatd turn;  ///< its orientation in that body
};

/// A frame by the type and name of its object (body: its inertial frame).
FramePlace place_of(const Model& model, const std::string& type, const std::string& name, const Location& where) {
  if (type == "site") {
    const SitePlace site = site_place(model, name, where);
    return {site.frame, site.body, normalized(site.spec->orientation)};
  }
  if (type == "geom") {
    GeomPlace geom = geom_place(model, name, where);
    geom.frame.X = geom.frame.X * Transformd{rotation(geom.spec->mesh_axes), geom.spec->mesh_centre};
    return {geom.frame, geom.body, normalized(geom.spec->orientation) * geom.spec->mesh_axes};
  }
  if (type == "body" || type == "xbody") {
    const int body = body_named(model, name, where);
    if (type == "xbody") return {body_frame(model, body), body, {1, 0, 0, 0}};
    return {inertial_frame(model, body), body, principal_orientation(model, body)};
  }
  throw InputError(where, "frames of type \"" + type + "\" are not supported");
}

void store_in(const Vec3d& v, double* out) { out[0] = v.x, out[1] = v.y, out[2] = v.z; }

/// Distance to the nearer violated end of a range, or the speed towards it; nothing if both ends are far.
void read_limit(bool limited, const std::array<double, 2>& range, double margin, double x, double speed, bool position,
                double* out) {
  for (const double side : {-1.0, 1.0}) {  // the lower end first
    const double distance = side < 0 ? x - range[0] : range[1] - x;
    if (!limited || distance >= margin) continue;
    *out = position ? distance - margin : -side * speed;
    return;
  }
}

/// Whether the sensor measures what a body's parent exerts on it.
bool passes_on(SensorKind kind) { return kind == SensorKind::force || kind == SensorKind::torque; }

/// Whether the sensor needs StepForces.
bool feels(SensorKind kind) {
  using enum SensorKind;
  return kind == touch || kind == contact || passes_on(kind) || kind == jointlimitfrc || kind == tendonlimitfrc;
}

/// Whether the sensor measures an acceleration or a force of the last step.
bool is_of_step(SensorKind kind) {
  using enum SensorKind;
  return feels(kind) || kind == accelerometer || kind == framelinacc || kind == frameangacc || kind == actuatorfrc ||
         kind == jointactfrc || kind == tendonactfrc;
}

SiteZone zone_of(const SitePlace& site) { return {site.frame, site.spec->type, site.spec->size}; }

bool inside(const SiteZone& zone, const LinkState<double>* links, const Vec3d& point) {
  const auto squared = [](double x) { return x * x; };
  const Transformd X = world_pose(links, zone.frame);
  const Vec3d p = transpose_mul(X.R, point - X.p), &size = zone.size;
  switch (zone.type) {
    case GeomType::sphere: return norm(p) <= size.x;
    case GeomType::capsule: return norm(Vec3d{p.x, p.y, std::max(0.0, std::abs(p.z) - size.y)}) <= size.x;
    case GeomType::cylinder: return squared(p.x) + squared(p.y) <= squared(size.x) && std::abs(p.z) <= size.y;
    case GeomType::ellipsoid: return squared(p.x / size.x) + squared(p.y / size.y) + squared(p.z / size.z) <= 1;
    case GeomType::box: return std::abs(p.x) <= size.x && std::abs(p.y) <= size.y && std::abs(p.z) <= size.z;
    default: return false;
  }
}

void store_in(const Quatd& q, double* out) { out[0] = q.w, out[1] = q.x, out[2] = q.y, out[3] = q.z; }

}  // namespace

struct SensorSet::Scratch {
  explicit Scratch(const Model& model) : interaction(model.nbody()), subtree(model.nbody()) {}
  std::vector<Force<double>> interaction;  // [body] force exerted by its parent, about the world's origin
  struct Subtree {
    double mass = 0;
    Vec3d moment{}, momentum{}, angular{};  // angular: about the world's origin
  };
  std::vector<Subtree> subtree;
  Energy energy;
  std::optional<RayScene> rays;
  struct Solid {
    SolidShape shape;
    LinkFrame frame;
  };
  using Sides = std::array<std::vector<Solid>, 2>;
  std::vector<Sides> sides;                   // Sensor::object of distance sensors
  std::vector<std::vector<int>> path_bodies;  // [tendon][path point] body of its site or geom; empty: not needed
  std::vector<TendonPull> pulls;
  std::optional<TendonInertia> inertia;  // if forces are measured and tendons have armature
  WorldTable<double> own;                // SensorInput's
  struct InertialFrame {
    int sensor;
    bool reference;
    int body;
  };
  std::vector<InertialFrame> inertial;  // frames of sensors that a world's own centres of mass move

  /// Finds the bodies of the sites and geoms on tendon paths, whose pulls force and torque sensors measure.
  void find_path_bodies(const Model& model) {
    for (const TendonSpec& tendon : model.spec.tendons) {
      std::vector<int>& bodies = path_bodies.emplace_back();
      for (const TendonSpec::PathPoint& point : tendon.path) {
        using enum TendonSpec::PathKind;
        bodies.push_back(point.kind == site   ? site_place(model, point.name, tendon.where).body
                         : point.kind == geom ? geom_place(model, point.name, tendon.where).body
                                              : 0);
      }
    }
  }

  /// Adds the forces of spatial tendons (springs, dampers, actuators, ranges, equalities, friction, armature) to the
  /// bodies of their paths.
  void add_tendon_forces(const Model& model, const Actuation& actuation, const SensorInput& state) {
    if (inertia) inertia->evaluate(actuation.data(), 0, state.qpos, state.qvel);
    for (std::size_t t = 0; t < path_bodies.size(); ++t) {
      const Tendon& tendon = actuation.tendons()[int(t)];
      double along = actuation.passive().tendon_force()[t];
      for (int i = 0; i < actuation.actuators().size(); ++i) {
        const Actuator& a = actuation.actuators()[i];
        if (a.tendon == int(t)) along += a.gear[0] * actuation.force()[i];
      }
      const bool beyond = actuation.passive().tendon_length()[t] > 0.5 * (tendon.range[0] + tendon.range[1]);
      if (!state.forces.tendon_limit.empty())
        along += beyond ? -state.forces.tendon_limit[t] : state.forces.tendon_limit[t];
      if (!state.forces.tendon_along.empty()) along += state.forces.tendon_along[t];
      if (inertia) along -= inertia->force(int(t), state.qacc);
      tendon_pulls(model, tendon, actuation.data().links(), pulls);
      for (const TendonPull& pull : pulls) {
        const Vec3d force = pull.force * along;
        Force<double>& to = interaction[path_bodies[t][pull.point]];
        to = to - Force<double>{cross(pull.at, force), force};
      }
    }
  }
};

SensorSet::SensorSet(const Model& model)
    : model_(model), actuation_(model), scratch_(std::make_unique<Scratch>(model)) {
  for (const SensorSpec& spec : model.spec.sensors) add(spec);
  find_links();
  if (needs_forces_ && actuation_.tendons().spatial()) needs_actuation_ = true, scratch_->find_path_bodies(model);
  if (!scratch_->path_bodies.empty() && TendonInertia::any(model)) scratch_->inertia.emplace(model);
  const auto is_ray = [](const Sensor& s) { return s.kind == SensorKind::rangefinder; };
  if (std::any_of(sensors_.begin(), sensors_.end(), is_ray)) scratch_->rays.emplace(model);
}
SensorSet::~SensorSet() = default;

void SensorSet::add(const SensorSpec& spec) {
  Sensor s;
  s.name = spec.name, s.address = numbers_;
  const SensorTraits* kind = sensor_traits(spec.kind);
  const auto named = [&](const char* what, int index) {
    if (index < 0)
      throw InputError(spec.where, std::string("there is no ") + what + " for sensor \"" + spec.name + "\"");
    return index;
  };
  s.cutoff = number_in(spec, "cutoff", 0.0, 1e300, 0.0);
  if (kind) {
    s.kind = kind->kind, s.dimension = kind->dimension;
    if (s.kind == SensorKind::rangefinder) add_ray_fields(spec, s);
    if (kind->target == SensorTarget::site && attribute(spec, "camera").empty()) {
      const SitePlace site = site_place(model_, attribute(spec, "site"), spec.where);
      s.frame = site.frame, s.body = site.body, s.zone = zone_of(site);
    }
    if (kind->target == SensorTarget::joint) s.object = named("joint", model_.find_joint(attribute(spec, "joint")));
    if (kind->target == SensorTarget::tendon)
      s.object = named("tendon", index_of(model_.spec.tendons, attribute(spec, "tendon")));
    if (kind->target == SensorTarget::actuator)
      s.object = named("actuator", index_of(model_.spec.actuators, attribute(spec, "actuator")));
    if (kind->target == SensorTarget::body) s.object = body_named(model_, attribute(spec, "body"), spec.where);
    if (kind->target == SensorTarget::contact) add_contact_query(spec, s);
    if (kind->target == SensorTarget::shapes) add_shapes(spec, s);
    if (!is_computed(spec)) s.kind = SensorKind::none;
    if (s.kind == SensorKind::insidesite) s.zone = zone_of(site_place(model_, attribute(spec, "site"), spec.where));
    if (kind->target == SensorTarget::frame && s.kind != SensorKind::none) {
      const auto place = [&](const char* type, const char* name, bool reference) {
        const auto found = place_of(model_, attribute(spec, type), attribute(spec, name), spec.where);
        if (attribute(spec, type) == "body") scratch_->inertial.push_back({size(), reference, found.body});
        return found;
      };
      const FramePlace own = place("objtype", "objname", false);
      s.frame = own.frame, s.body = own.body, s.turn = own.turn;
      s.has_reference = !attribute(spec, "refname").empty() && s.kind != SensorKind::insidesite;
      if (s.has_reference) {
        const FramePlace other = place("reftype", "refname", true);
        s.reference = other.frame, s.reference_body = other.body, s.reference_turn = other.turn;
      }
    }
  }
  if (!kind) s.dimension = number_in(spec, "dim", 0, kMostNumbers, 0);  // it still occupies its place in sensordata
  using enum SensorKind;
  feels_contact_ = feels_contact_ || feels(s.kind);
  needs_forces_ = needs_forces_ || passes_on(s.kind);
  needs_subtrees_ = needs_subtrees_ || s.kind == subtreecom || s.kind == subtreelinvel || s.kind == subtreeangmom;
  needs_energy_ = needs_energy_ || s.kind == e_potential || s.kind == e_kinetic;
  numbers_ += s.dimension;
  sensors_.push_back(std::move(s));
}

namespace {

/// Marks the body `root` and all its descendants.
std::vector<char> subtree_of(const Model& model, int root) {
  std::vector<char> in(model.nbody(), 0);
  in[root] = 1;
  for (int b = root + 1; b < model.nbody(); ++b) in[b] = in[model.bodies[b].parent];
  return in;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

constexpr std::pair<const char*, int> kRayFields[] = {{"dist", 1},  {"dir", 3},    {"origin", 3},
                                                      {"point", 3}, {"normal", 3}, {"depth", 1}};
constexpr std::pair<const char*, int> kContactFields[] = {{"found", 1},   {"force", 3},  {"torque", 3},
                                                          {"dist", 1},    {"pos", 3},    {"normal", 3},
                                                          {"tangent", 3}, {"linvel", 3}, {"angvel", 3}};

}  // namespace

/// Finds the links that carry sensors and their ancestors, and which other quantities are needed.
void SensorSet::find_links() {
  std::vector<char> used(model_.njoint(), 0);
  const auto use = [&](int link) {
    for (; link >= 0 && !used[link]; link = model_.joints[link].parent) used[link] = 1;
  };
  using enum SensorKind;
  for (const Sensor& s : sensors_) {
    if (s.kind == none) continue;
    needs_all_links_ = needs_all_links_ || s.kind == rangefinder || passes_on(s.kind);
    const SensorTarget target = sensor_traits(s.kind).target;
    if (s.kind == jointactfrc || target == SensorTarget::tendon || target == SensorTarget::actuator)
      needs_actuation_ = true;
    else
      use(s.frame.link), use(s.reference.link), use(s.zone.frame.link);
  }
  for (const ContactQuery& query : contact_queries_) {
    if (query.first.zone) use(query.first.zone->frame.link);
    using Query = ContactQuery;
    if (!(query.fields & (Query::force | Query::torque | Query::tangent)) || query.order == Query::Order::net) continue;
    for (int b = 0; b < model_.nbody(); ++b) {  // for capsule_axis()
      const auto accepts = [&](const Query::Side& side) { return side.bodies.empty() || side.bodies[b]; };
      const auto is_capsule = [](const GeomSpec& g) { return g.type == GeomType::capsule; };
      if ((accepts(query.first) || accepts(query.second)) &&
          std::ranges::any_of(model_.spec.bodies[b].geoms, is_capsule))
        use(model_.bodies[b].link);
    }
  }
  for (const Scratch::Sides& sides : scratch_->sides) {
    for (const auto& side : sides) {
      for (const Scratch::Solid& solid : side) use(solid.frame.link);
    }
  }
  needs_all_links_ = needs_all_links_ || needs_subtrees_ || needs_energy_;
  for (int i = 0; i < model_.njoint(); ++i) {
    if (used[i] || needs_all_links_) links_.push_back(i);
  }
}

/// Computes poses, velocities and accelerations (gravity's -g included) of these links.
void SensorSet::find_motions(const SensorInput& state) {
  const ModelView<double> m = model_.view<double>();
  const Vec3d gravity = gravity_of(model_, actuation_.data());
  LinkState<double>* const links = actuation_.workspace().links();
  actuation_.workspace().place_mocap(model_);
  for (const int i : links_) {
    const LinkConstants<double>& link = m.link[i];
    LinkState<double>& s = links[i];
    joint_pose(link, state.qpos.data(), links, s);
    s.o = link.parent >= 0 ? links[link.parent].o + s.r : s.r;
    const Motion<double> c = joint_velocity(link, state.qvel.data(), links, s);
    s.a = shift(link.parent >= 0 ? links[link.parent].a : Motion<double>{{0, 0, 0}, -gravity}, s.r) + c +
          joint_motion(link, s.R, state.qacc.data() + link.qvel);
  }
}

/// Sets the geoms of a distance sensor's two sides.
void SensorSet::add_shapes(const SensorSpec& spec, Sensor& sensor) {
  Scratch::Sides sides;
  for (const bool first : {true, false}) {
    const std::string geom = side_attribute(spec, "geom", first), body = side_attribute(spec, "body", first);
    const auto add = [&](const GeomSpec& g, const LinkFrame& frame) {
      SolidShape solid = solid_shape(model_.spec, g);
      if (solid.missing.empty()) sides[first ? 0 : 1].push_back({std::move(solid), frame});
    };
    if (!geom.empty()) {
      const GeomPlace place = geom_place(model_, geom, spec.where);
      add(*place.spec, place.frame);
      continue;
    }
    const int index = body_named(model_, body, spec.where);
    for (const GeomSpec& g : model_.spec.bodies[index].geoms)
      add(g, frame_on(model_, index, {rotation(normalized(g.orientation)), g.position}));
  }
  sensor.object = int(scratch_->sides.size());
  scratch_->sides.push_back(std::move(sides));
}

/// Reads the smallest distance between the two sides within the cutoff, its points or its direction.
void SensorSet::read_gap(const Sensor& s, double* out) const {
  const LinkState<double>* const links = actuation_.data().links();
  const Scratch::Sides& sides = scratch_->sides[s.object];
  double least = s.cutoff;
  Vec3d from{0, 0, 0}, to{0, 0, 0};
  ContactPoint points[kMaxManifold];
  for (const Scratch::Solid& a : sides[0]) {
    for (const Scratch::Solid& b : sides[1]) {
      const Transformd X = world_pose(links, a.frame), Y = world_pose(links, b.frame);
      const int count = collide(a.shape.shape, {X.p, X.R}, b.shape.shape, {Y.p, Y.R}, s.cutoff, points);
      for (int k = 0; k < count; ++k) {
        const ContactPoint& c = points[k];
        if (!(c.distance < least)) continue;
        least = c.distance;
        from = c.position + c.normal * (0.5 * least), to = c.position - c.normal * (0.5 * least);
      }
    }
  }
  if (s.kind == SensorKind::geomdist) *out = least;
  if (s.kind == SensorKind::geomfromto) store_in(from, out), store_in(to, out + 3);
  const double length = norm(to - from);
  if (s.kind == SensorKind::geomnormal && length > 0) store_in((to - from) * (1 / length), out);
}

/// Sets which of kRayFields a rangefinder gives; a camera gives them for each of its pixels.
void SensorSet::add_ray_fields(const SensorSpec& spec, Sensor& sensor) {
  std::vector<std::string> fields = words(attribute(spec, "data"));
  if (fields.empty()) fields.push_back("dist");
  sensor.dimension = 0;
  for (std::size_t i = 0; i < std::size(kRayFields); ++i) {
    if (std::find(fields.begin(), fields.end(), kRayFields[i].first) == fields.end()) continue;
    sensor.ray_fields |= 1u << i, sensor.dimension += kRayFields[i].second;
  }
  const std::string camera = attribute(spec, "camera");
  for (const CosmeticSpec& c : model_.spec.cosmetics) {
    if (camera.empty() || c.kind != "camera" || c.name != camera) continue;
    for (const auto& [name, value] : c.attributes) {
      if (name != "resolution") continue;
      for (const std::string& side : words(value)) {
        int pixels = 1;
        std::from_chars(side.data(), side.data() + side.size(), pixels);
        sensor.dimension *= pixels;
      }
    }
  }
}

void SensorSet::read_ray(const Sensor& s, double* out) const {
  const LinkState<double>* const links = actuation_.data().links();
  const Transformd X = world_pose(links, s.frame);
  const Vec3d along = X.R.column_z(), none{0, 0, 0};
  const double distance = scratch_->rays->cast(links, X.p, along, s.body);
  const bool hits = distance >= 0;
  const Vec3d vectors[] = {none, hits ? along : none, X.p, hits ? X.p + along * distance : none};
  for (int i = 0; i < int(std::size(kRayFields)); ++i) {
    const int size = kRayFields[i].second;
    if (!(s.ray_fields >> i & 1)) continue;
    if (size == 1)
      *out = distance;
    else
      store_in(vectors[i], out);
    out += size;
  }
}

void SensorSet::add_contact_query(const SensorSpec& spec, Sensor& sensor) {
  ContactQuery query;
  for (const bool first : {true, false}) {
    ContactQuery::Side& to = first ? query.first : query.second;
    const std::string geom = side_attribute(spec, "geom", first), body = side_attribute(spec, "body", first),
                      subtree = side_attribute(spec, "subtree", first), site = first ? attribute(spec, "site") : "";
    if (!site.empty()) {
      to.zone = zone_of(site_place(model_, site, spec.where));
    } else if (!geom.empty()) {
      const GeomPlace place = geom_place(model_, geom, spec.where);
      to.geom = int(place.spec - model_.spec.bodies[place.body].geoms.data());
      to.bodies.assign(model_.nbody(), 0), to.bodies[place.body] = 1;
    } else if (!body.empty() || !subtree.empty()) {
      const int index = body_named(model_, body.empty() ? subtree : body, spec.where);
      to.bodies = subtree_of(model_, index);
      if (!body.empty()) to.bodies.assign(model_.nbody(), 0), to.bodies[index] = 1;
    }
  }
  const std::string fields = attribute(spec, "data"), order = attribute(spec, "reduce");
  if (!fields.empty()) query.fields = 0, query.width = 0;
  for (const std::string& word : words(fields)) {
    for (std::size_t i = 0; i < std::size(kContactFields); ++i) {
      if (word == kContactFields[i].first) query.fields |= 1u << i, query.width += kContactFields[i].second;
    }
  }
  query.slots = number_in(spec, "num", 1, kMostNumbers, 1);
  query.order = order == "mindist"    ? ContactQuery::Order::nearest
                : order == "maxforce" ? ContactQuery::Order::strongest
                : order == "netforce" ? ContactQuery::Order::net
                                      : ContactQuery::Order::none;
  sensor.dimension = query.width * query.slots;
  sensor.object = int(contact_queries_.size());
  contact_queries_.push_back(std::move(query));
}

void SensorSet::evaluate(const SensorInput& state, std::span<double> sensordata) {
  check_size("sensordata", sensordata.size(), numbers_);
  check_size("qpos", state.qpos.size(), model_.nq);
  check_size("qvel", state.qvel.size(), model_.nv);
  check_size("qacc", state.qacc.size(), model_.nv);
  if (numbers_ == 0) return;
  WorldTable<double>& own = scratch_->own;
  const bool moved = !own.com_offset.empty() || !state.com_offset.empty();
  const auto take = [](const char* name, std::span<const double> from, AlignedVector<double>& to, int n) {
    if (!from.empty()) check_size(name, from.size(), n);
    to.assign(from.begin(), from.end());
  };
  take("mass_scale", state.mass_scale, own.mass_scale, model_.nbody());
  take("com_offset", state.com_offset, own.com_offset, 3 * model_.nbody());
  take("gravity", state.gravity, own.gravity, 3);
  take("armature_scale", state.armature_scale, own.armature, model_.njoint());
  if (!own.armature.empty()) {
    own.armature.resize(std::size_t(model_.nv));
    for (int k = 0; k < model_.nv; ++k)
      own.armature[k] = model_.armature[k] * state.armature_scale[model_.dof_joint[k]];
  }
  actuation_.workspace().own = &own;
  for (std::size_t i = 0; moved && i < scratch_->inertial.size(); ++i) {
    const auto& [sensor, reference, body] = scratch_->inertial[i];
    Sensor& s = sensors_[sensor];
    (reference ? s.reference : s.frame) = inertial_frame(model_, body, com_offset(actuation_.data(), body));
  }
  actuation_.set_mocap(state.mocap_pos, state.mocap_quat);
  actuation_.scale_actuators(state.actuators);
  if (needs_actuation_) actuation_.evaluate(state.qpos, state.qvel, state.ctrl, state.act, model_.timestep);
  std::fill(sensordata.begin(), sensordata.end(), 0.0);
  if (needs_forces_) {
    SensorInput start = state;
    if (!state.forces.qpos.empty()) start.qpos = state.forces.qpos, start.qvel = state.forces.qvel;
    find_motions(start), find_forces(start);
    for (const Sensor& s : sensors_) {
      if (passes_on(s.kind)) write(s, start, sensordata);
    }
  }
  find_motions(state);
  if (needs_subtrees_) find_subtrees();
  if (needs_energy_) scratch_->energy = energy<double>(model_, actuation_.data(), state.qpos, state.qvel);
  for (const Sensor& s : sensors_) {
    if (!passes_on(s.kind)) write(s, state, sensordata);
  }
}

void SensorSet::write(const Sensor& s, const SensorInput& state, std::span<double> sensordata) const {
  double* const out = sensordata.data() + s.address;
  read(s, state, out);
  const bool unknown = s.kind == SensorKind::none || (!state.forces.known && feels(s.kind)) ||
                       (!state.forces.taken && is_of_step(s.kind));
  if (unknown) std::fill(out, out + s.dimension, std::numeric_limits<double>::quiet_NaN());
  if (s.cutoff <= 0 || unknown || sensor_traits(s.kind).direction) return;
  const bool positive = s.kind == SensorKind::touch || s.kind == SensorKind::insidesite;
  for (int k = 0; k < s.dimension; ++k)
    out[k] = positive ? std::min(out[k], s.cutoff) : std::clamp(out[k], -s.cutoff, s.cutoff);
}

void SensorSet::read(const Sensor& s, const SensorInput& state, double* out) const {
  using enum SensorKind;
  const LinkState<double>* const links = actuation_.data().links();
  const auto local = [&](const Vec3d& v) { return transpose_mul(world_pose(links, s.frame).R, v); };
  switch (s.kind) {
    case touch: *out = read_touch(s, state); break;
    case contact: read_contacts(s, state, out); break;
    case geomdist:
    case geomnormal:
    case geomfromto: read_gap(s, out); break;
    case insidesite: *out = inside(s.zone, links, world_pose(links, s.frame).p); break;
    case velocimeter: store_in(local(world_velocity(links, s.frame).v), out); break;
    case gyro: store_in(local(world_velocity(links, s.frame).w), out); break;
    case magnetometer: store_in(local(model_.spec.option.magnetic), out); break;
    case accelerometer:
    case framelinacc:
    case frameangacc:
    case force:
    case torque: read_acceleration(s, out); break;
    case rangefinder: read_ray(s, out); break;
    case tendonpos: *out = actuation_.passive().tendon_length()[s.object]; break;
    case tendonlimitpos:
    case tendonlimitvel: {
      const Tendon& tendon = actuation_.tendons()[s.object];
      const double l = actuation_.passive().tendon_length()[s.object],
                   speed = actuation_.passive().tendon_velocity()[s.object];
      read_limit(tendon.limited, tendon.range, tendon.margin, l, speed, s.kind == tendonlimitpos, out);
      break;
    }
    case jointlimitfrc:
      if (!state.forces.joint_limit.empty()) *out = state.forces.joint_limit[s.object];
      break;
    case tendonlimitfrc:
      if (!state.forces.tendon_limit.empty()) *out = state.forces.tendon_limit[s.object];
      break;
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
    case frameangvel: read_frame(s, state, out); break;
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
  if (s.kind == SensorKind::ballquat) store_in(normalized(unit(Quatd{q[0], q[1], q[2], q[3]})), out);
  if (s.kind == SensorKind::ballangvel) std::copy(v, v + 3, out);
  if (!limit) return;
  const JointSpec& spec = model_.spec.bodies[joint.body].joints[s.object - model_.bodies[joint.body].joint_first];
  double at = *q, speed = *v;
  std::array<double, 2> range = joint.range;
  if (joint.nv() == 3) {  // the angle of a ball has no lower end
    const Vec3d turn = log_map({q[0], q[1], q[2], q[3]});
    at = norm(turn), range[0] = -std::numeric_limits<double>::infinity();
    speed = at > 0 ? dot(turn, {v[0], v[1], v[2]}) / at : 0;
  }
  read_limit(joint.limited, range, spec.margin, at, speed, s.kind == SensorKind::jointlimitpos, out);
}

/// A body's orientation, multiplied from the root to the body as in MuJoCo. q and -q are the same rotation; this one
/// moves continuously.
static Quatd orientation_along_tree(const Model& model, const Data& data, std::span<const double> qpos, int body) {
  if (body == 0) return {1, 0, 0, 0};
  const Body& here = model.bodies[body];
  const auto at = [](const auto& q) { return normalized(Quatd{q[0], q[1], q[2], q[3]}); };
  Quatd out = normalized(model.spec.bodies[body].orientation);
  if (here.mocap >= 0 && model.mocap_bodies[here.mocap] == body)
    out = at(&data.mocap_quat[std::size_t(4 * here.mocap)]);
  out = orientation_along_tree(model, data, qpos, here.parent) * out;
  for (int j = here.joint_first; j < here.joint_first + here.joint_count; ++j) {
    const Joint& joint = model.joints[j];
    if (moves_freely(joint.type)) out = at(&qpos[std::size_t(joint.qpos) + 3]);
    if (turns_freely(joint.type)) out = out * at(&qpos[std::size_t(joint.qpos)]);
    if (joint.type != JointType::hinge) continue;
    out = out * exp_map(joint.axis * (qpos[std::size_t(joint.qpos)] - joint.reference));
  }
  return out;
}

void SensorSet::read_frame(const Sensor& s, const SensorInput& state, double* out) const {
  using enum SensorKind;
  const LinkState<double>* const links = actuation_.data().links();
  const Transformd X = world_pose(links, s.frame), X_ref = s.has_reference ? world_pose(links, s.reference)
                                                                           : Transformd{identity3<double>(), {0, 0, 0}};
  if (s.kind == framepos) return store_in(transpose_mul(X_ref.R, X.p - X_ref.p), out);
  if (s.kind == framequat) {
    const auto along_tree = [&](int body, const Quatd& turn) {
      return orientation_along_tree(model_, actuation_.data(), state.qpos, body) * turn;
    };
    Quatd near = along_tree(s.body, s.turn);
    if (s.has_reference) near = conjugate(along_tree(s.reference_body, s.reference_turn)) * near;
    return store_in(quaternion(transpose(X_ref.R) * X.R, near), out);
  }
  if (s.kind == framexaxis) return store_in(transpose_mul(X_ref.R, X.R.column_x()), out);
  if (s.kind == frameyaxis) return store_in(transpose_mul(X_ref.R, X.R.column_y()), out);
  if (s.kind == framezaxis) return store_in(transpose_mul(X_ref.R, X.R.column_z()), out);
  Motion<double> v = world_velocity(links, s.frame);
  if (s.has_reference) {  // as seen from the rotating reference
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
  Vec3d angular{0, 0, 0}, linear = -gravity_of(model_, actuation_.data());
  if (s.frame.link >= 0) {
    const LinkState<double>& link = links[s.frame.link];
    const Vec3d r = X.p - link.o;
    angular = link.a.w;
    linear = link.a.v + cross(link.v.w, link.v.v) + cross(angular, r) + cross(link.v.w, cross(link.v.w, r));
  }
  if (s.kind == accelerometer) linear = transpose_mul(X.R, linear);
  store_in(s.kind == frameangacc ? angular : linear, out);
}

/// Finds the force that each body's parent exerts on it: its own inertial force plus its children's, minus external
/// forces.
void SensorSet::find_forces(const SensorInput& state) {
  const LinkState<double>* const links = actuation_.data().links();
  std::vector<Force<double>>& f = scratch_->interaction;
  const Force<double> zero{{0, 0, 0}, {0, 0, 0}};
  std::fill(f.begin(), f.end(), zero);
  for (const BodyForce& e : state.forces.external)
    f[e.body] = f[e.body] - Force<double>{e.torque + cross(e.point, e.force), e.force};
  scratch_->add_tendon_forces(model_, actuation_, state);
  f[0] = zero;  // for the world: only what it bears
  const Vec3d gravity = gravity_of(model_, actuation_.data());
  for (int b = model_.nbody() - 1; b > 0; --b) {
    const Body& body = model_.bodies[b];
    const auto [mass, centre, inertia] = mass_of(model_, actuation_.data(), b);
    if (mass > 0 && body.link < 0) {
      const Vec3d weight = gravity * -mass;
      const Transformd X = body_pose(model_, actuation_.data(), b);
      f[b] += Force<double>{cross(X.p + X.R * centre, weight), weight};
    } else if (mass > 0) {
      const LinkState<double>& link = links[body.link];
      const Mat3d R = link.R * body.X_LB.R;
      const Vec3d com = link.o + link.R * (body.X_LB.p + body.X_LB.R * centre), r = com - link.o, w = link.v.w;
      const Vec3d linear = (link.a.v + cross(w, link.v.v) + cross(link.a.w, r) + cross(w, cross(w, r))) * mass;
      const Sym3d I = rotate(R, inertia);
      f[b] += Force<double>{I * link.a.w + cross(w, I * w) + cross(com, linear), linear};
    }
    f[body.parent] += f[b];
  }
}

void SensorSet::find_subtrees() {
  auto& all = scratch_->subtree;
  for (auto& s : all) s = {};
  for (int b = model_.nbody() - 1; b > 0; --b) {
    const BodyMass body = mass_of(model_, actuation_.data(), b);
    const Transformd X = body_pose(model_, actuation_.data(), b);
    const Motion<double> v = body_velocity(model_, actuation_.data(), b);
    const Vec3d arm = X.R * body.com, com = X.p + arm, p = (v.v + cross(v.w, arm)) * body.mass;
    auto &own = all[b], &parent = all[model_.bodies[b].parent];
    own.mass += body.mass, own.moment += com * body.mass, own.momentum += p;
    own.angular += rotate(X.R, body.inertia) * v.w + cross(com, p);
    parent.mass += own.mass, parent.moment += own.moment, parent.momentum += own.momentum,
        parent.angular += own.angular;
  }
}

void SensorSet::read_subtree(const Sensor& s, double* out) const {
  const auto& sub = scratch_->subtree[s.object];
  const double inverse = 1 / std::max(sub.mass, kMujocoMinval);
  const Vec3d com = sub.mass > 0 ? sub.moment * inverse : body_pose(model_, actuation_.data(), s.object).p;
  if (s.kind == SensorKind::subtreecom) return store_in(com, out);
  if (s.kind == SensorKind::subtreelinvel) return store_in(sub.momentum * inverse, out);
  store_in(sub.angular - cross(com, sub.momentum), out);
}

double SensorSet::read_touch(const Sensor& s, const SensorInput& state) const {
  const Transformd X = world_pose(actuation_.data().links(), s.frame);
  double sum = 0;
  for (const TouchPoint& c : state.forces.contacts) {
    const double pressure = dot(c.force, c.normal);
    if (pressure <= 0 || (c.body_a != s.body && c.body_b != s.body)) continue;
    const Vec3d away = c.body_b == s.body ? c.normal : -c.normal;  // from the measuring body
    const Vec3d origin = transpose_mul(X.R, c.point - X.p), direction = transpose_mul(X.R, away);
    if (ray_shape(s.zone.type, s.zone.size, origin, direction) >= 0) sum += pressure;
  }
  return sum;
}

/// Reads the contacts between the two sides, in the requested order; unused slots are zero. The axes are MuJoCo's: the
/// normal points from the first side to the second, the tangent is that of frame_tangents().
void SensorSet::read_contacts(const Sensor& s, const SensorInput& state, double* out) const {
  const ContactQuery& query = contact_queries_[s.object];
  const auto is = [](const ContactQuery::Side& side, int body, int geom) {
    return (side.bodies.empty() || side.bodies[body]) && (side.geom < 0 || side.geom == geom);
  };
  const LinkState<double>* const links = actuation_.data().links();
  const auto rank = [&](int body, int geom) {  // MuJoCo's order of a contact's two geoms
    return std::tuple(model_.spec.bodies[body].geoms[geom].type, body, geom);
  };
  std::vector<TouchPoint> found;  // seen from the first side, b, to the second, a
  const auto write = [&](const TouchPoint& point, double* to, bool net) {
    const bool turned = !net && rank(point.body_a, point.geom_a) < rank(point.body_b, point.geom_b);
    const Vec3d t = frame_tangents(point.normal, net ? Vec3d{0, 0, 0} : capsule_axis(point))[0];
    write_contact(query, double(found.size()), point, turned ? -t : t, to);
  };
  for (const TouchPoint& c : state.forces.contacts) {
    if (c.distance > c.margin || (query.first.zone && !inside(*query.first.zone, links, c.point))) continue;
    TouchPoint turned{c.body_b, c.body_a, c.geom_b, c.geom_a, c.point, -c.normal, c.distance, -c.force, -c.torque};
    const bool straight = is(query.first, c.body_b, c.geom_b) && is(query.second, c.body_a, c.geom_a),
               crossed = is(query.first, c.body_a, c.geom_a) && is(query.second, c.body_b, c.geom_b),
               later = rank(c.body_a, c.geom_a) < rank(c.body_b, c.geom_b);
    if (straight && (!crossed || !later))
      found.push_back(c);
    else if (crossed)
      found.push_back(turned);
  }
  if (query.order == ContactQuery::Order::net) {
    if (found.empty()) return;
    TouchPoint sum{};
    double total = 0;
    for (const TouchPoint& c : found) sum.point += c.point * norm(c.force), total += norm(c.force);
    sum.point = sum.point * (1 / std::max(total, kMujocoMinval));
    for (const TouchPoint& c : found)
      sum.force += c.force, sum.torque += c.torque + cross(c.point - sum.point, c.force);
    sum.normal = {1, 0, 0};  // MuJoCo gives force and torque along the world's axes
    return write(sum, out, true);
  }
  if (query.order == ContactQuery::Order::nearest)
    std::stable_sort(found.begin(), found.end(), [](const auto& x, const auto& y) { return x.distance < y.distance; });
  if (query.order == ContactQuery::Order::strongest)
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return norm(x.force) > norm(y.force); });
  const std::size_t filled = std::min(found.size(), std::size_t(query.slots));
  for (std::size_t i = 0; i < filled; ++i) write(found[i], out + std::size_t(query.width) * i, false);
}

/// The axis of a capsule on a plane; zero for other shapes.
Vec3d SensorSet::capsule_axis(const TouchPoint& c) const {
  const GeomSpec &a = model_.spec.bodies[c.body_a].geoms[c.geom_a], &b = model_.spec.bodies[c.body_b].geoms[c.geom_b];
  const auto axis = [&](int body, const GeomSpec& geom) {
    return body_pose(model_, actuation_.data(), body).R * rotation(geom.orientation).column_z();
  };
  if (a.type == GeomType::capsule && b.type == GeomType::plane) return axis(c.body_a, a);
  if (b.type == GeomType::capsule && a.type == GeomType::plane) return axis(c.body_b, b);
  return {0, 0, 0};
}

/// @param t first tangent; -t if the order of the geoms is opposite to MuJoCo's, whose frame is then rotated about its
///   third axis
void SensorSet::write_contact(const ContactQuery& query, double found, const TouchPoint& c, const Vec3d& t,
                              double* out) {
  const Vec3d u = cross(c.normal, t);
  const auto write = [&](unsigned field, const Vec3d& value) {
    if (query.fields & field) store_in(value, out), out += 3;
  };
  const auto in_frame = [&](const Vec3d& v) { return Vec3d{dot(v, c.normal), dot(v, t), dot(v, u)}; };
  if (query.fields & ContactQuery::found) *out++ = found;
  write(ContactQuery::force, in_frame(c.force));
  write(ContactQuery::torque, in_frame(c.torque));
  if (query.fields & ContactQuery::distance) *out++ = c.distance;
  write(ContactQuery::position, c.point);
  write(ContactQuery::normal, c.normal);
  write(ContactQuery::tangent, t);
}

}  // namespace tarsus
