#include "tarsus/dynamics/passive.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamics/spatial_matrix.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

PassiveForces::PassiveForces(const Model& model)
    : model_(model), tendons_(TendonSet::of(model)), by_actuator_(model.nv) {
  find_polynomials();
  find_bodies();
  length_.resize(tendons_.size()), velocity_.resize(tendons_.size()), tendon_force_.resize(tendons_.size());
  arm_.resize(tendons_.arms());
  for (auto* v : {&compensation_, &force_, &polynomial_force_, &row_}) v->resize(model.nv);
}

double PassiveForces::Polynomial::force(double x, double velocity) const {
  const double speed = std::abs(velocity);
  return -x * x * (stiffness[0] + x * stiffness[1]) - velocity * speed * (damping[0] + speed * damping[1]);
}

double PassiveForces::Polynomial::stiffness_at(double x) const {
  return std::max(0.0, x * (2 * stiffness[0] + 3 * x * stiffness[1]));
}

double PassiveForces::Polynomial::damping_at(double velocity) const {
  const double speed = std::abs(velocity);
  return std::max(0.0, speed * (2 * damping[0] + 3 * speed * damping[1]));
}

void PassiveForces::find_polynomials() {
  const std::array<double, 2> none{};
  const OptionSpec& option = model_.spec.option;
  for (int i = 0; i < model_.njoint(); ++i) {
    const Joint& joint = model_.joints[i];
    const JointSpec& spec = model_.spec.bodies[joint.body].joints[i - model_.bodies[joint.body].joint_first];
    for (int k = 0; k < joint.nv(); ++k) by_actuator_[joint.qvel + k] = spec.actuator_gravity_compensation;
    const bool spring = option.spring_enabled && joint.nq() == 1;
    Polynomial p{i,
                 joint.qpos,
                 joint.nv(),
                 {},
                 joint.spring_reference,
                 spring ? spec.stiffness_polynomial : none,
                 option.damper_enabled ? spec.damping_polynomial : none};
    std::iota(p.dofs.begin(), p.dofs.end(), joint.qvel);
    if (p.stiffness != none || p.damping != none) polynomials_.push_back(p), damping_.push_back(p.damping);
  }
}

void PassiveForces::scale_damping(std::span<const double> factors) {
  for (std::size_t i = 0; i < polynomials_.size(); ++i) {
    const double factor = factors.empty() ? 1 : factors[std::size_t(polynomials_[i].joint)];
    polynomials_[i].damping = {factor * damping_[i][0], factor * damping_[i][1]};
  }
}

namespace {

/// Extent of a mesh's vertices along its principal axes, from its centre: MuJoCo's size of a mesh.
Vec3d mesh_reach(const ModelSpec& spec, const GeomSpec& geom) {
  Vec3d out{0, 0, 0};
  const int mesh = index_of(spec.meshes, geom.mesh);
  if (mesh < 0) return out;
  const Mat3d axes = rotation(geom.mesh_axes);
  for (const Vec3d& vertex : spec.meshes[std::size_t(mesh)].vertices) {
    const Vec3d p = transpose_mul(axes, vertex - geom.mesh_centre);
    for (int i = 0; i < 3; ++i) out[i] = std::max(out[i], std::abs(p[i]));
  }
  return out;
}

}  // namespace

void PassiveForces::find_bodies() {
  const OptionSpec& option = model_.spec.option;
  if (!option.spring_enabled && !option.damper_enabled) return;  // as in MuJoCo, no passive force at all
  const bool gravity = norm(model_.gravity) > 0, fluid = option.density > 0 || option.viscosity > 0;
  for (int i = 1; i < model_.nbody(); ++i) {
    const Body& body = model_.bodies[i];
    const BodySpec& spec = model_.spec.bodies[i];
    if (body.link < 0) continue;
    LinkFrame com = inertial_frame(model_, i);
    if (gravity && spec.gravity_compensation != 0 && body.mass > 0)
      compensated_.push_back({body.link, com, body.mass * spec.gravity_compensation});
    if (!fluid || body.mass < kMujocoMinval) continue;
    bool ellipsoid = false;
    for (const GeomSpec& geom : spec.geoms) {
      if (!geom.fluid_ellipsoid) continue;
      ellipsoid = true;
      const Transformd X{rotation(normalized(geom.orientation)), geom.position};
      Immersed one{{body.link, body.X_LB * X * Transformd{rotation(geom.mesh_axes), geom.mesh_centre}},
                   geom.size,
                   true,
                   geom.fluid_coefficients};
      if (geom.type == GeomType::sphere) one.size = {geom.size.x, geom.size.x, geom.size.x};
      if (geom.type == GeomType::capsule) one.size = {geom.size.x, geom.size.x, geom.size.x + geom.size.y};
      if (geom.type == GeomType::cylinder) one.size = {geom.size.x, geom.size.x, geom.size.y};
      if (geom.type == GeomType::mesh) one.size = mesh_reach(model_.spec, geom);
      if (!(one.size.x > 0 && one.size.y > 0 && one.size.z > 0)) continue;  // the mesh file is missing
      added_mass(one.size, one.virtual_mass, one.virtual_inertia);
      immersed_.push_back(std::move(one));
    }
    if (ellipsoid) continue;
    const Sym3d principal = rotate(transpose(principal_axes(model_, i)), body.inertia);
    const Vec3d moments{principal.xx, principal.yy, principal.zz};
    Vec3d box;
    for (int k = 0; k < 3; ++k) {
      const double square = moments[(k + 1) % 3] + moments[(k + 2) % 3] - moments[k];
      box[k] = std::sqrt(std::max(kMujocoMinval, square) / body.mass * 6);
    }
    immersed_.push_back({com, box, false, {}});
  }
  weigh_immersed();
  compensates_ = !compensated_.empty(), fluid_ = !immersed_.empty();
}

/// Divides each link's inertia among its immersed bodies.
void PassiveForces::weigh_immersed() {
  std::stable_sort(immersed_.begin(), immersed_.end(),
                   [](const Immersed& a, const Immersed& b) { return a.frame.link < b.frame.link; });
  std::vector<int> shapes(std::size_t(model_.njoint()), 0);
  std::vector<char> lifted(std::size_t(model_.njoint()), 0);  // boxes have only drag
  for (const Immersed& one : immersed_)
    ++shapes[std::size_t(one.frame.link)], lifted[std::size_t(one.frame.link)] |= char(one.ellipsoid);
  std::vector<char> carries(std::size_t(model_.njoint()), 0);
  for (const Joint& joint : model_.joints) {
    if (joint.parent >= 0) carries[std::size_t(joint.parent)] = 1;
  }
  const std::vector<RigidInertia<double>> inertia = link_inertias(model_);
  for (std::size_t k = 0; k < immersed_.size(); ++k) {
    Immersed& one = immersed_[k];
    const std::size_t link = std::size_t(one.frame.link);
    one.sharing = shapes[link], one.inverse_mass = inverse_mass(k, inertia[link]);
    std::vector<char> used(std::size_t(model_.nv), 0);
    mark_dofs(model_, one.frame.link, used);
    for (int v = 0; v < model_.nv; ++v) {
      if (used[std::size_t(v)]) one.dofs.push_back(v);
    }
    one.floats = lifted[link] && moves_freely(model_.joints[link].type) && !carries[link];
  }
}

Force<double> PassiveForces::inverse_mass(std::size_t k, const RigidInertia<double>& link) const {
  const Transformd& X = immersed_[k].frame.X;
  const RigidInertia<double> here = shift_back(link, -X.p);
  const Eigen::Matrix<double, 6, 6> inverse =
      double(immersed_[k].sharing) *
      spatial_matrix({here.mass, transpose_mul(X.R, here.h), rotate(transpose(X.R), here.I)}).inverse();
  Force<double> out;
  for (int i = 0; i < 6; ++i) {
    const double w = inverse(i, i);
    (i < 3 ? out.n[i] : out.f[i - 3]) = w > 0 && std::isfinite(w) ? w : kInfinity;
  }
  return out;
}

void PassiveForces::add_fluid(const LinkState<double>* links) {
  const OptionSpec& option = model_.spec.option;
  immersions_.clear();
  for (const Immersed& body : immersed_) {
    const Transformd X = world_pose(links, body.frame);
    const Motion<double> v = world_velocity(links, body.frame);
    const Motion<double> local{transpose_mul(X.R, v.w), transpose_mul(X.R, v.v - option.wind)};
    const FluidForce fluid = body.ellipsoid
                                 ? ellipsoid_fluid_force(body.size, body.coefficients, body.virtual_mass,
                                                         body.virtual_inertia, local, option.density, option.viscosity)
                                 : box_fluid_force(body.size, local, option.density, option.viscosity);
    immersions_.push_back({body.frame.link, body.dofs, X, local, fluid, body.inverse_mass, body.floats});
    const Force<double> force = fluid.drag(local) + fluid.turning(local);
    add_generalized_force(model_, links, body.frame.link, X.p, X.R * force.f, X.R * force.n, 1, force_.data());
  }
}

void PassiveForces::evaluate(const LinkState<double>* links, std::span<const double> qpos,
                             std::span<const double> qvel) {
  tendon_lengths(model_, tendons_, links, qpos, length_, arm_, row_);
  for (int t = 0; t < tendons_.size(); ++t) {
    const Tendon& tendon = tendons_[t];
    velocity_[t] = 0;
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i) velocity_[t] += arm_[tendon.first + i] * qvel[tendon.dofs[i]];
    tendon_force_[t] = tendon.passive_force(length_[t], velocity_[t]);
  }
  std::fill(force_.begin(), force_.end(), 0.0), std::fill(compensation_.begin(), compensation_.end(), 0.0);
  for (const Compensated& body : compensated_)
    add_generalized_force(model_, links, body.link, world_point(links, body.com), model_.gravity, {0, 0, 0},
                          -body.weight, compensation_.data());
  for (int v = 0; v < model_.nv; ++v) force_[v] = by_actuator_[v] ? 0 : compensation_[v];
  for (const Polynomial& p : polynomials_) {
    const double x = p.count == 1 ? qpos[p.qpos] - p.reference : 0;
    for (int k = 0; k < p.count; ++k) polynomial_force_[p.dofs[k]] = p.force(x, qvel[p.dofs[k]]);
  }
  if (fluid_) add_fluid(links);
}

}  // namespace tarsus
