#include "support/random_equalities.hpp"

namespace tarsus::test {

namespace {

std::vector<int> axial_joints(const Model& model) {
  std::vector<int> list;
  for (int i = 0; i < model.njoint(); ++i) {
    if (model.joints[i].nv() == 1) list.push_back(i);
  }
  return list;
}

/// Two user rows that are nonlinear in the coordinates of two joints of one DoF each.
UserRows random_user_rows(Random& random, const Model& model, const std::vector<int>& axial) {
  const int a = axial[random.index(int(axial.size()))], b = axial[random.index(int(axial.size()))];
  const double k = random.uniform(), c = random.uniform();
  UserRows rows;
  rows.nrow = 2;
  rows.joints = {a, b};
  const int qa = model.joints[a].qpos, qb = model.joints[b].qpos, va = model.joints[a].qvel, vb = model.joints[b].qvel;
  rows.evaluate = [=](std::span<const double> q, std::span<const double> v, std::span<double> phi, std::span<double> J,
                      std::span<double> Jdot_v) {
    // φ₀ = sin q_a + k q_b, φ₁ = q_a q_b + c
    const int n = a == b ? 1 : 2, at_a = 0 + (a > b), at_b = a == b ? 0 : (b > a);
    phi[0] = std::sin(q[qa]) + k * q[qb], phi[1] = q[qa] * q[qb] + c;
    std::fill(J.begin(), J.end(), 0.0);
    J[at_a] += std::cos(q[qa]), J[at_b] += k;
    J[n + at_a] += q[qb], J[n + at_b] += q[qa];
    if (v.empty()) return;
    Jdot_v[0] = -std::sin(q[qa]) * v[va] * v[va];
    Jdot_v[1] = 2 * v[va] * v[vb];
  };
  return rows;
}

}  // namespace

EqualitySet random_equalities(Random& random, const Model& model, const EqualityOptions& options) {
  EqualitySet set(model);
  const std::vector<int> axial = axial_joints(model);
  for (int i = 0; i < options.count; ++i) {
    const std::string name = "c" + std::to_string(i);
    const int a = random.index(model.nbody()), b = random.chance(0.4) ? 0 : random.index(model.nbody());
    const Vec3d p = random.vector(0.3), q = random.vector(0.3);
    const int room = options.max_rows - set.rows();
    const bool movable = model.bodies[a].link != model.bodies[b].link;
    switch (random.index(options.user ? 6 : 5)) {
      case 0:
        if (movable && room >= 3) set.add_connect(name, a, p, b, q);
        break;
      case 1:
        if (movable && room >= 6) set.add_weld(name, a, b, {rotation(random.rotation()), p}, random.uniform(0.5, 2));
        break;
      case 2:
        if (movable && room >= 1) set.add_distance(name, a, p, b, q, random.uniform(0.1, 1));
        break;
      case 3:
        if (movable && room >= 1) set.add_point_on_plane(name, a, p, b, q, random.direction());
        break;
      case 4: {
        if (axial.empty() || room < 1) break;
        const int j = axial[random.index(int(axial.size()))],
                  k = random.chance(0.3) ? -1 : axial[random.index(int(axial.size()))];
        if (j != k)
          set.add_joint(name, j, k,
                        {random.uniform(), random.uniform(), random.uniform(), random.uniform(), random.uniform()});
        break;
      }
      default:
        if (!axial.empty() && room >= 2) set.add_user(name, random_user_rows(random, model, axial));
    }
  }
  return set;
}

}  // namespace tarsus::test
