#include "tarsus/sim/rigid_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "tarsus/base/error.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

namespace {

/// Features that a scene of free bodies cannot represent. Each location is reported once, also for replicas, and their
/// number is limited to what a reader can use.
Diagnostics misfits(const Model& model) {
  constexpr int kShown = 10;
  Diagnostics d;
  std::set<std::tuple<int, int, std::string>> known;
  int more = 0;
  const auto refuse = [&](const Location& where, const std::string& what) {
    if (!known.emplace(where.line, where.column, what).second) return;
    if (int(d.size()) < kShown)
      d.push_back({Severity::error, where,
                   what + " is not simulated in scenes of free bodies; tarsus run (Stepper) simulates such models"});
    else
      ++more;
  };
  for (const Joint& j : model.joints) {
    if (!moves_freely(j.type)) refuse(j.where, "a joint other than free");
    if (j.damping > 0 || j.armature > 0 || j.friction_loss > 0 || j.stiffness > 0)
      refuse(j.where, "damping, armature, friction or stiffness of a free joint");
  }
  if (model.spec.option.density > 0 || model.spec.option.viscosity > 0) {
    const std::string file = model.joints.empty() ? "" : model.joints[0].where.file;
    refuse({file, 0, 0, "mujoco/option"}, "a fluid (density, viscosity)");
  }
  for (const ActuatorSpec& a : model.spec.actuators) refuse(a.where, "an actuator");
  for (const TendonSpec& t : model.spec.tendons) refuse(t.where, "a tendon");
  for (const ContactPairSpec& p : model.spec.contact_pairs) {
    if (contact_surface(p).directional())
      refuse(p.where,
             "friction that depends on the direction (a pair has two sliding coefficients, each 1 by default)");
    if (p.margin < 0) refuse(p.where, "a negative margin");
  }
  for (const EqualitySpec& e : model.spec.equalities) {
    if (model.spec.option.equality_enabled && e.acts()) refuse(e.where, "an equality constraint");
  }
  for (int body = 0; body < model.nbody(); ++body) {
    const BodySpec& b = model.spec.bodies[at(body)];
    if (b.gravity_compensation != 0) refuse(b.where, "gravity compensation");
    for (const GeomSpec& g : b.geoms) {
      if (g.visual_only) continue;
      if (g.margin < 0) refuse(g.where, "a negative margin");
      const bool ground = g.type == GeomType::plane || g.type == GeomType::height_field;
      if (ground && model.bodies[at(body)].link >= 0) refuse(g.where, "a plane or height field on a moving body");
    }
  }
  if (more > 0)
    d.push_back(
        {Severity::error, {d[0].where.file, 0, 0, ""}, "and " + std::to_string(more) + " more errors of this kind"});
  return d;
}

/// Mass properties of all bodies that a link carries, in the link's frame.
struct LinkMass {
  double mass = 0;
  Vec3d com{0, 0, 0};
  Sym3d inertia{0, 0, 0, 0, 0, 0};  // about com
};

std::vector<LinkMass> link_masses(const Model& model) {
  std::vector<LinkMass> links(at(model.njoint()));
  for (const Body& b : model.bodies) {
    if (b.link < 0 || b.mass == 0) continue;
    LinkMass& l = links[at(b.link)];
    const Vec3d com = b.X_LB.R * b.com + b.X_LB.p;
    const double mass = l.mass + b.mass;
    const Vec3d both = (l.com * l.mass + com * b.mass) * (1 / mass);
    l.inertia = shifted_inertia(l.inertia, l.mass, l.com - both) +
                shifted_inertia(rotate(b.X_LB.R, b.inertia), b.mass, com - both);
    l.mass = mass, l.com = both;
  }
  return links;
}

/// A surface that, combined with itself, gives the surface of an explicit pair.
Surface half_of(const ContactSurface& pair) {
  Surface s;
  s.friction = pair.friction[0], s.torsional = pair.friction[2], s.rolling = pair.friction[3];
  s.dimension = pair.dimension, s.margin = 0.5 * pair.margin, s.solver = pair.solver;
  return s;
}

int surface_number(RigidScene& scene, const Surface& surface) {
  const auto known = std::find(scene.surfaces.begin(), scene.surfaces.end(), surface);
  const int number = int(known - scene.surfaces.begin());
  if (known == scene.surfaces.end()) scene.surfaces.push_back(surface);
  return number;
}

/// Adds explicit pairs, and pairs for the shapes of excluded bodies. The scene's own excludes cannot be used, because
/// its bodies merge welded ones.
void add_pairs(const Model& model, const ContactGeometry& geometry, RigidScene& scene) {
  if (scene.shapes.empty()) return;
  for (const ContactExcludeSpec& exclude : model.spec.contact_excludes) {
    const int a = model.body_id(exclude.body1), b = model.body_id(exclude.body2);
    const int n = int(geometry.shapes().size());
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n && geometry.shapes()[at(i)].body == a; ++j) {
        if (i != j && geometry.shapes()[at(j)].body == b) scene.pairs.push_back({i, j, -1});
      }
    }
  }
  for (const ContactPair& p : geometry.explicit_pairs())
    scene.pairs.push_back({p.first, p.second, surface_number(scene, half_of(p.surface))});
}

GeomType geom_type(ShapeType type) {
  switch (type) {
    case ShapeType::plane: return GeomType::plane;
    case ShapeType::sphere: return GeomType::sphere;
    case ShapeType::capsule: return GeomType::capsule;
    case ShapeType::cylinder: return GeomType::cylinder;
    case ShapeType::box: return GeomType::box;
    default: throw ValueError("shape", std::string(name(type)), "plane, sphere, capsule, cylinder or box");
  }
}

/// Bodies differ in colour from their neighbours.
std::array<float, 4> colour_of(int body) {
  constexpr std::array<float, 4> kWorld = {0.6f, 0.62f, 0.65f, 1};
  constexpr std::array<std::array<float, 4>, 5> kBodies = {{{0.87f, 0.45f, 0.27f, 1},
                                                            {0.27f, 0.55f, 0.8f, 1},
                                                            {0.38f, 0.66f, 0.4f, 1},
                                                            {0.85f, 0.7f, 0.3f, 1},
                                                            {0.58f, 0.45f, 0.72f, 1}}};
  return body < 0 ? kWorld : kBodies[at(body + 1) % kBodies.size()];
}

GeomSpec geom_of(const BodyShape& shape, const Surface& surface) {
  if (surface.restitution != 0 || surface.compliance != 0 || surface.damping_time != 0)
    throw ValueError("surface", "with restitution, compliance or damping time", "a surface without them");
  GeomSpec geom;
  geom.type = geom_type(shape.shape.type), geom.size = shape.shape.size;
  geom.position = shape.local.position, geom.orientation = quaternion(shape.local.rotation);
  geom.contype = shape.contype, geom.conaffinity = shape.conaffinity;
  geom.friction = {surface.friction, surface.torsional, surface.rolling};
  geom.condim = surface.torsional == 0 && surface.rolling == 0 ? std::min(surface.dimension, 3) : surface.dimension;
  geom.priority = surface.priority, geom.margin = surface.margin, geom.solver_mix = surface.mix;
  if (surface.solver) {
    const SolverParameters& p = *surface.solver;
    geom.solver_reference.assign(p.reference.begin(), p.reference.end());
    geom.solver_impedance.assign(p.impedance.begin(), p.impedance.end());
  }
  geom.rgba = colour_of(shape.body);
  return geom;
}

}  // namespace

ModelSpec scene_spec(const RigidScene& scene) {
  if (!scene.pairs.empty()) throw ValueError("scene", "with pairs", "a scene of bodies and shapes only");
  ModelSpec spec;
  spec.name = scene.name, spec.origin.file = scene.text;
  spec.option.timestep = scene.options.dt, spec.option.gravity = scene.options.gravity;
  if (scene.options.iterations != RigidWorldOptions{}.iterations) spec.option.iterations = scene.options.iterations;
  for (std::size_t i = 0; i < scene.bodies.size(); ++i) {
    const RigidBody& body = scene.bodies[i];
    if (norm(body.velocity) + norm(body.angular_velocity) + norm(body.force) + norm(body.torque) != 0)
      throw ValueError("body", "with a velocity or a force", "a body at rest");
    BodySpec& link = spec.bodies.emplace_back(i < scene.names.size() ? scene.names[i] : "body " + std::to_string(i));
    link.parent = 0, link.position = body.position, link.orientation = body.orientation;
    link.joints.emplace_back().type = JointType::free;
    const Vec3d& moments = body.inertia;
    link.inertial = InertialSpec{body.mass, {0, 0, 0}, {moments.x, 0, 0, moments.y, 0, moments.z}, {}, {}};
  }
  for (const BodyShape& shape : scene.shapes)
    spec.bodies[at(shape.body + 1)].geoms.push_back(geom_of(shape, scene.surfaces[at(shape.surface)]));
  for (const auto& [a, b] : scene.excludes)
    spec.contact_excludes.push_back({"", spec.bodies[at(a + 1)].name, spec.bodies[at(b + 1)].name, {}});
  return spec;
}

RigidModel rigid_model(const Model& model) {
  const Diagnostics wrong = misfits(model);
  if (!wrong.empty()) throw InputError(wrong);
  RigidModel r;
  r.nq = model.nq, r.nv = model.nv;
  const auto geometry = std::make_shared<ContactGeometry>(model);
  if (const Diagnostics lost = contact_findings(model.spec); !lost.empty())
    throw InputError(lost[0].where, lost[0].message);
  r.geometry = geometry;
  RigidScene& scene = r.scene;
  scene.name = model.name;
  scene.options.dt = model.timestep;
  scene.options.gravity = model.spec.option.gravity_enabled ? model.gravity : Vec3d{0, 0, 0};
  scene.options.margin = 0.01;
  if (model.spec.option.iterations != OptionSpec{}.iterations)
    scene.options.iterations = std::max(1, model.spec.option.iterations);
  const std::vector<LinkMass> masses = link_masses(model);
  for (int link = 0; link < model.njoint(); ++link) {
    const Joint& joint = model.joints[at(link)];
    const LinkMass& mass = masses[at(link)];
    if (!(mass.mass > 0)) throw InputError(joint.where, "a free body needs a mass");
    const PrincipalBody made = principal_body(mass.mass, mass.com, mass.inertia);
    r.com_frame.push_back(made.frame);
    r.qpos.push_back(joint.qpos), r.qvel.push_back(joint.qvel);
    scene.bodies.push_back(made.body);
    scene.names.push_back(model.bodies[at(joint.body)].name);
  }
  for (const ContactShape& s : geometry->shapes()) {
    if (!model.spec.option.contact_enabled) break;
    const GeomSpec& geom = model.spec.bodies[at(s.body)].geoms[at(s.geom)];
    BodyShape shape{s.link, s.shape, s.pose, surface_number(scene, surface_of(geom)), s.contype, s.conaffinity};
    if (s.link >= 0) {
      const ShapePose& frame = r.com_frame[at(s.link)];
      shape.local.position = transpose_mul(frame.rotation, s.pose.position - frame.position);
      if (norm(shape.local.position) < 1e-12) shape.local.position = {0, 0, 0};
      shape.local.rotation = transpose(frame.rotation) * s.pose.rotation;
    } else if (s.mocap >= 0) {  // at the pose of the file: nothing moves it in such a scene
      const Transformd& X = model.bodies[at(s.body)].X_LB;
      shape.local = {X.R * geom.position + X.p, X.R * rotation(geom.orientation)};
    }
    scene.shapes.push_back(shape);
  }
  add_pairs(model, *geometry, scene);
  if (scene.surfaces.empty()) scene.surfaces.emplace_back();
  r.set_state(model.qpos0, std::vector<double>(at(model.nv), 0.0));
  return r;
}

void RigidModel::set_state(std::span<const double> q, std::span<const double> v) {
  check_size("qpos", q.size(), at(nq));
  check_size("qvel", v.size(), at(nv));
  for (const auto& [name, numbers] : {std::pair{"qpos", q}, std::pair{"qvel", v}}) {
    for (double x : numbers) {
      if (!std::isfinite(x)) throw ValueError(name, number_text(x), "finite");
    }
  }
  for (std::size_t i = 0; i < scene.bodies.size(); ++i) {
    RigidBody& b = scene.bodies[i];
    const double *p = q.data() + qpos[i], *u = v.data() + qvel[i];
    const Mat3d turn = rotation(normalized(Quatd{p[3], p[4], p[5], p[6]}));
    b.position = Vec3d{p[0], p[1], p[2]} + turn * com_frame[i].position;
    b.orientation = quaternion(turn * com_frame[i].rotation);
    b.angular_velocity = turn * Vec3d{u[3], u[4], u[5]};
    b.velocity = Vec3d{u[0], u[1], u[2]} + cross(b.angular_velocity, turn * com_frame[i].position);
  }
}

template <class R>
void RigidModel::state(const RigidWorld<R>& world, std::span<double> q, std::span<double> v) const {
  check_size("qpos", q.size(), at(nq));
  check_size("qvel", v.size(), at(nv));
  for (std::size_t i = 0; i < qpos.size(); ++i) {
    const RigidBody& b = world.bodies()[i];
    const Mat3d turn = rotation(b.orientation) * transpose(com_frame[i].rotation);
    const Vec3d arm = turn * com_frame[i].position, origin = b.position - arm;
    const Vec3d speed = b.velocity - cross(b.angular_velocity, arm), spin = transpose_mul(turn, b.angular_velocity);
    const Quatd o = quaternion(turn);
    const double p[7] = {origin.x, origin.y, origin.z, o.w, o.x, o.y, o.z};
    const double u[6] = {speed.x, speed.y, speed.z, spin.x, spin.y, spin.z};
    std::copy_n(p, 7, q.begin() + qpos[i]);
    std::copy_n(u, 6, v.begin() + qvel[i]);
  }
}
template void RigidModel::state(const RigidWorld<float>&, std::span<double>, std::span<double>) const;
template void RigidModel::state(const RigidWorld<double>&, std::span<double>, std::span<double>) const;

}  // namespace tarsus
