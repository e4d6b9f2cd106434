// Quantities computed from the workspace after kinematics(): poses, velocities, energy, momentum; and b ⊟ a.
#include <algorithm>

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/dynamics/passive.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/body_at.hpp"

namespace tarsus {

namespace {

template <class R>
const LinkState<R>& link_of(const BasicData<R>& data, int link) {
  if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
  return data.links()[link];
}

}  // namespace

template <class R>
Transformd body_pose(const Model& model, const BasicData<R>& data, int body) {
  const Body& b = body_at(model, body);
  const int carrier = model.carrier(body);
  if (carrier < 0) return b.X_LB;
  const LinkState<R>& s = link_of(data, carrier);
  return Transformd{widen(s.R), widen(s.o)} * (b.link < 0 ? b.X_MB : b.X_LB);
}

template <class R>
Motion<double> body_velocity(const Model& model, const BasicData<R>& data, int body) {
  const Body& b = body_at(model, body);
  if (b.link < 0) return {{0, 0, 0}, {0, 0, 0}};
  const LinkState<R>& s = link_of(data, b.link);
  return shift(Motion<double>{widen(s.v.w), widen(s.v.v)}, widen(s.R) * b.X_LB.p);
}

/// Adds the energy of the model's passive forces and of its tendons' armature.
template <class R>
void add_passive_energy(const Model& model, const BasicData<R>& at, const std::vector<double>& qpos,
                        const std::vector<double>& qvel, Energy& e) {
  const auto bends = [](const JointSpec& joint) { return joint.stiffness_polynomial != std::array<double, 2>{}; };
  const bool bent = std::any_of(model.spec.bodies.begin(), model.spec.bodies.end(), [&](const BodySpec& body) {
    return std::any_of(body.joints.begin(), body.joints.end(), bends);
  });
  const bool tied = std::any_of(model.spec.tendons.begin(), model.spec.tendons.end(), [](const TendonSpec& tendon) {
    return tendon.stiffness != 0 || tendon.stiffness_polynomial != std::array<double, 2>{} || tendon.armature != 0;
  });
  if (!bent && !tied) return;
  PassiveForces passive(model);
  Data data(model);
  std::copy(at.mocap_pos.begin(), at.mocap_pos.end(), data.mocap_pos.begin());
  std::copy(at.mocap_quat.begin(), at.mocap_quat.end(), data.mocap_quat.begin());
  data.place_mocap(model);
  kinematics<double>(model, data, qpos, qvel);
  passive.evaluate(data.links(), qpos, qvel);
  for (const PassiveForces::Polynomial& p : passive.polynomials()) {
    const double x = p.count == 1 ? qpos[std::size_t(p.qpos)] - p.reference : 0;
    e.spring += x * x * x * (p.stiffness[0] / 3 + x * p.stiffness[1] / 4);
  }
  for (int t = 0; t < passive.tendons().size(); ++t) {
    const Tendon& tendon = passive.tendons()[t];
    const double speed = passive.tendon_velocity()[std::size_t(t)];
    e.kinetic += 0.5 * tendon.armature * speed * speed;
    e.spring += tendon.spring_energy(passive.tendon_length()[std::size_t(t)]);
  }
}

template <class R>
Energy energy(const Model& model, const BasicData<R>& data, In<R> qpos, In<R> qvel) {
  check_size("qpos", qpos.size(), model.nq);
  check_size("qvel", qvel.size(), model.nv);
  Energy e;
  const Vec3d gravity = gravity_of(model, data);
  for (int i = 1; i < model.nbody(); ++i) {
    const BodyMass body = mass_of(model, data, i);
    const Transformd X = body_pose(model, data, i);
    const Motion<double> v = body_velocity(model, data, i);
    const Vec3d c = X.R * body.com, v_com = shift(v, c).v, w = transpose_mul(X.R, v.w);
    e.kinetic += 0.5 * (body.mass * dot(v_com, v_com) + dot(w, body.inertia * w));
    e.potential -= body.mass * dot(gravity, X.p + c);
  }
  for (int i = 0; i < model.nv; ++i)
    e.kinetic += 0.5 * armature_of(model, data, i, 0) * double(qvel[i]) * double(qvel[i]);
  std::vector<double> stretch(model.nv);
  bool springs = false;
  for (const Joint& joint : model.joints) springs = springs || joint.stiffness > 0;
  if (springs) difference(model, model.qpos_spring, std::vector<double>(qpos.begin(), qpos.end()), stretch);
  for (const Joint& joint : model.joints) {
    for (int k = 0; k < joint.nv(); ++k)
      e.spring += 0.5 * joint.stiffness * stretch[joint.qvel + k] * stretch[joint.qvel + k];
  }
  add_passive_energy(model, data, {qpos.begin(), qpos.end()}, {qvel.begin(), qvel.end()}, e);
  return e;
}

template <class R>
Momentum momentum(const Model& model, const BasicData<R>& data) {
  Momentum m;
  Vec3d moment{0, 0, 0}, about_origin{0, 0, 0};
  m.com = m.linear = m.angular = {0, 0, 0};
  for (int i = 1; i < model.nbody(); ++i) {
    if (model.bodies[i].link < 0) continue;
    const BodyMass body = mass_of(model, data, i);
    const Transformd X = body_pose(model, data, i);
    const Motion<double> v = body_velocity(model, data, i);
    const Vec3d c = X.R * body.com, p = shift(v, c).v * body.mass;
    m.mass += body.mass;
    moment += (X.p + c) * body.mass;
    m.linear += p;
    about_origin += X.R * (body.inertia * transpose_mul(X.R, v.w)) + cross(X.p + c, p);
  }
  if (m.mass > 0) m.com = moment * (1 / m.mass);
  m.angular = about_origin - cross(m.com, m.linear);
  return m;
}

void difference(const Model& model, std::span<const double> a, std::span<const double> b, std::span<double> velocity) {
  check_size("a", a.size(), model.nq);
  check_size("b", b.size(), model.nq);
  check_size("velocity", velocity.size(), model.nv);
  const auto rotation_between = [](const double* from, const double* to) {
    const Quatd qa{from[0], from[1], from[2], from[3]}, qb{to[0], to[1], to[2], to[3]};
    return log_map(conjugate(unit(qa)) * unit(qb));
  };
  for (const Joint& joint : model.joints) {
    const double *p = a.data() + joint.qpos, *q = b.data() + joint.qpos;
    double* v = velocity.data() + joint.qvel;
    const int scalars = scalar_count(joint.type);
    for (int k = 0; k < scalars; ++k) v[k] = q[k] - p[k];
    p += scalars, q += scalars, v += scalars;
    if (has_rotation(joint.type)) {
      const Vec3d w = rotation_between(p, q);
      v[0] = w.x, v[1] = w.y, v[2] = w.z;
    }
  }
}

#define TARSUS_INSTANTIATE(R)                                                       \
  template Transformd body_pose<R>(const Model&, const BasicData<R>&, int);         \
  template Motion<double> body_velocity<R>(const Model&, const BasicData<R>&, int); \
  template Energy energy<R>(const Model&, const BasicData<R>&, In<R>, In<R>);       \
  template Momentum momentum<R>(const Model&, const BasicData<R>&);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
