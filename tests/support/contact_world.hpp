// Random trees with random contacts, and the corresponding dense algebra.
#pragma once

#include <Eigen/Dense>

#include "support/random_model.hpp"
#include "tarsus/constraint/step_terms.hpp"

namespace tarsus::test {

/// For each link a body that it carries.
inline std::vector<int> body_of_link(const Model& model) {
  std::vector<int> body(model.njoint(), -1);
  for (int i = 0; i < model.nbody(); ++i) {
    if (model.bodies[i].link >= 0) body[model.bodies[i].link] = i;
  }
  return body;
}

/// A random tree in the middle of a step: v⁰ is known, contacts are not yet solved.
struct World {
  Model model;
  Data data;
  std::vector<int> body;
  AlignedVector<double> K, velocity;
  double h = 0.01;

  World(Random& random, Model m) : model(std::move(m)), data(model), body(body_of_link(model)) {
    K.assign(model.nv, 0.0);
    for (const Joint& j : model.joints) {
      const double k = random.chance(0.5) ? random.uniform(0, 5) : 0;
      for (int d = 0; d < j.nv(); ++d) K[j.qvel + d] = k + model.armature[j.qvel + d];
    }
    for (int i = 0; i < model.nv; ++i) data.qvel[i] = random.uniform();
    advance_free();
  }
  void advance_free() {
    kinematics<double>(model, data, data.qpos, data.qvel);
    AlignedVector<double> force(model.nv, 0.0), qacc(model.nv);
    maba<double>(model, data, data.qpos, data.qvel, force, K, qacc);
    velocity.assign(data.qvel.begin(), data.qvel.end());
    for (int i = 0; i < model.nv; ++i) velocity[i] += h * qacc[i];
    kinematics<double>(model, data, data.qpos, data.qvel);
  }
  /// Velocity of the point of `link` at p per unit of each DoF, [3][nv].
  Eigen::MatrixXd point_jacobian(int link, const Vec3d& p, bool angular = false) {
    Eigen::MatrixXd out = Eigen::MatrixXd::Zero(3, model.nv);
    if (link < 0) return out;
    AlignedVector<double> J(std::size_t(6) * model.nv);
    const double at[3] = {p.x, p.y, p.z};
    jacobian<double>(model, data, body[link], at, J);
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < model.nv; ++c) out(r, c) = J[std::size_t(angular ? r : 3 + r) * model.nv + c];
    }
    return out;
  }
};

inline std::vector<LinkContact> random_contacts(Random& random, World& w, int count) {
  std::vector<LinkContact> contacts;
  for (int i = 0; i < count; ++i) {
    LinkContact c;
    c.a = random.index(w.model.njoint()), c.b = random.index(w.model.njoint() + 1) - 1;
    if (c.a == c.b || w.body[c.a] < 0 || (c.b >= 0 && w.body[c.b] < 0)) continue;
    c.point = {random.vector(), random.direction(), random.uniform(-0.02, 0.01), std::uint32_t(i)};
    c.friction = random.uniform(0, 1.5);
    c.dimension = random.chance(0.2) ? 1 : 3;
    c.spook.compliance = random.uniform(1e-6, 1e-4);
    c.identity = std::uint64_t(i + 1);
    contacts.push_back(c);
  }
  return contacts;
}

inline Eigen::VectorXd as_vector(std::span<const double> x) {
  return Eigen::Map<const Eigen::VectorXd>(x.data(), Eigen::Index(x.size()));
}
inline Eigen::Vector3d as_vector(const Vec3d& x) { return {x.x, x.y, x.z}; }

}  // namespace tarsus::test
