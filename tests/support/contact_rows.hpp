// The contacts of a step of RigidWorld as rows, built from what the world reports. Their solvers are an oracle for the
// world's own.
#pragma once

#include <vector>

#include "tarsus/baselines/row_problem.hpp"
#include "tarsus/constraint/spook.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus::test {

/// m v and I ω of each body, [body][6], in the principal axes of `frames`: there the inverse masses are diagonal.
inline std::vector<double> momenta(const std::vector<RigidBody>& bodies, const std::vector<RigidBody>& frames) {
  std::vector<double> u;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const RigidBody& b = bodies[i];
    const Vec3d spin = transpose_mul(rotation(frames[i].orientation), b.angular_velocity);
    for (int k = 0; k < 3; ++k) u.push_back(b.mass * b.velocity[k]);
    for (int k = 0; k < 3; ++k) u.push_back(b.inertia[k] * spin[k]);
  }
  return u;
}

struct ContactRows {
  RowProblem problem;
  std::vector<double> u;           ///< momenta() after forces alone
  std::vector<double> multiplier;  ///< the world's impulses
  std::vector<double> reached;     ///< momenta() that the world has reached
};

/// @param scene with the bodies as they were before the step, awake, and surfaces without restitution
/// @param world after the step
inline ContactRows contact_rows(const RigidScene& scene, const RigidWorld<double>& world) {
  const std::vector<RigidBody>& bodies = scene.bodies;
  RigidScene alone = scene;
  alone.shapes.clear(), alone.pairs.clear();
  RigidWorld<double> falling = make_world<double>(alone);
  falling.step();
  ContactRows out;
  out.u = momenta(falling.bodies(), bodies), out.reached = momenta(world.bodies(), bodies);
  std::vector<double> inverse, before = momenta(bodies, bodies);
  for (const RigidBody& b : bodies) {
    for (int k = 0; k < 6; ++k) inverse.push_back(1 / (k < 3 ? b.mass : b.inertia[k - 3]));
  }
  out.problem.clear(inverse);
  const auto vec = [](const double* x) { return Vec3d{x[0], x[1], x[2]}; };
  std::vector<int> column;
  std::vector<double> value;
  const auto put = [&](int body, const Vec3d& push, const Vec3d& turn) {
    if (body < 0) return;
    const Vec3d moment = transpose_mul(rotation(bodies[std::size_t(body)].orientation), turn);
    for (int k = 0; k < 6; ++k) column.push_back(6 * body + k), value.push_back(k < 3 ? push[k] : moment[k - 3]);
  };
  for (std::size_t i = 0; i < world.contacts().size(); ++i) {
    const BodyContact<double>& c = world.contacts()[i];
    const ContactMaterial& material = world.material(c);
    const Vec3d n = vec(c.normal), ra = c.round ? n * -c.arm_a[0] : vec(c.arm_a),
                rb = c.round ? n * c.arm_b[0] : vec(c.arm_b);
    const auto [t1, t2] = contact_tangents(n);
    const auto along = [&](const Vec3d& t) {
      column.clear(), value.clear();
      put(c.body_a, t, cross(ra, t)), put(c.body_b, -t, -cross(rb, t));
    };
    const auto about = [&](const Vec3d& t) {
      column.clear(), value.clear();
      put(c.body_a, {0, 0, 0}, t), put(c.body_b, {0, 0, 0}, -t);
    };
    const auto add = [&](const RowNumbers& numbers, double impulse) {
      out.multiplier.push_back(impulse);
      return out.problem.add_row(column, value, numbers);
    };
    along(n);
    double speed = 0, diagonal = 0;
    for (std::size_t k = 0; k < column.size(); ++k) {
      const double v = value[k] * inverse[std::size_t(column[k])];
      speed += v * before[std::size_t(column[k])], diagonal += v * value[k];
    }
    const Spook spook{material.compliance + c.relative_compliance * diagonal, material.damping_time};
    const SpookRow row = spook_unilateral(spook, c.distance, speed, world.options().dt);
    out.problem.add_block(RowCone::interval);
    const int normal = add({row.compliance, row.target, 0, kInfinity}, world.impulses()[i].normal);
    const Vec3d push = vec(world.impulses()[i].tangent);
    out.problem.add_block(RowCone::ball, normal, material.friction);
    along(t1), add({}, dot(t1, push));
    along(t2), add({}, dot(t2, push));
    if (!material.turns()) continue;
    const Vec3d turn = vec(world.moments()[i].moment);
    out.problem.add_block(RowCone::ball, normal, material.torsional);
    about(n), add({}, dot(n, turn));
    out.problem.add_block(RowCone::ball, normal, material.rolling);
    about(t1), add({}, dot(t1, turn));
    about(t2), add({}, dot(t2, turn));
  }
  return out;
}

}  // namespace tarsus::test
