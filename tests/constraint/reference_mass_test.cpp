#include "tarsus/constraint/reference_mass.hpp"

#include <gtest/gtest.h>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus::test {
namespace {

/// Weights of links and joints are means of J M⁻¹ Jᵀ and M⁻¹, here from the Jacobian and one column of M⁻¹ at a time.
TEST(ReferenceMass, WeightsAreMeansOfTheInverseMassMatrix) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Model model = random_tree(seed, {.bodies = 1 + int(seed % 14), .chain = (seed % 5) / 4.0});
    const std::vector<ReferenceMass> masses = reference_masses(model);
    Data data(model);
    kinematics<double>(model, data, model.qpos0);
    std::vector<Vec3d> centres;
    for (int i = 0; i < model.njoint(); ++i) {
      const RigidInertia<double> inertia = link_inertias(model)[std::size_t(i)];
      const LinkState<double>& link = data.links()[i];
      centres.push_back(link.o + link.R * (inertia.mass > 0 ? inertia.h * (1 / inertia.mass) : Vec3d{0, 0, 0}));
    }
    const auto inverse_of = [&](const std::vector<double>& y) {
      factor<double>(model, data, model.qpos0, model.armature);
      std::vector<double> x(y.size());
      minv<double>(model, data, y, x);
      double sum = 0;
      for (std::size_t k = 0; k < y.size(); ++k) sum += y[k] * x[k];
      return sum;
    };
    for (int i = 0; i < model.njoint(); ++i) {
      const Joint& joint = model.joints[std::size_t(i)];
      kinematics<double>(model, data, model.qpos0);
      std::vector<double> J(std::size_t(6 * model.nv));
      const Vec3d& c = centres[std::size_t(i)];
      const int body = joint.body;
      const bool last = model.bodies[std::size_t(body)].link == i;  // the last of its body's joints carries it
      jacobian<double>(model, data, body, std::vector<double>{c.x, c.y, c.z}, J);
      double weight = 0, joint_weight = 0;
      for (int k = 3; k < 6; ++k) weight += inverse_of({J.begin() + k * model.nv, J.begin() + (k + 1) * model.nv}) / 3;
      const int n = std::min(joint.nv(), 3);
      for (int k = joint.nv() - n; k < joint.nv(); ++k) {
        std::vector<double> unit(std::size_t(model.nv));
        unit[std::size_t(joint.qvel + k)] = 1;
        joint_weight += inverse_of(unit) / n;
      }
      const ReferenceMass& mine = masses[std::size_t(i)];
      if (last) {
        EXPECT_NEAR(mine.weight, weight, 1e-10 * weight) << "seed " << seed << ", link " << i;
      }
      EXPECT_NEAR(mine.joint_weight, joint_weight, 1e-10 * joint_weight) << "seed " << seed << ", link " << i;
    }
  }
}

/// Worlds in one Data have to the bit the values that each has individually.
TEST(ReferenceMass, OfWorldsSideBySide) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Model model = random_tree(seed, {.bodies = 1 + int(seed % 14)});
    Random random(seed);
    const int worlds = 1 + int(seed);
    std::vector<RigidInertia<double>> inertia;
    std::vector<double> armature;
    for (int w = 0; w < worlds; ++w) {
      std::vector<double> scale(model.bodies.size());
      for (double& s : scale) s = random.uniform(0.1, 4);
      const std::vector<RigidInertia<double>> mine = link_inertias(model, scale);
      inertia.insert(inertia.end(), mine.begin(), mine.end());
      for (const double own : model.armature) armature.push_back(own * random.uniform(0, 4));
    }
    const std::size_t n = std::size_t(model.njoint()), nv = std::size_t(model.nv);
    RestingWorlds resting(model, inertia, armature);
    const std::vector<double> all = reference_numbers<double>(reference_masses(model, resting));
    ASSERT_EQ(all.size(), std::size_t(worlds) * n * kReferenceNumbers);
    for (std::size_t w = 0; w < std::size_t(worlds); ++w) {
      RestingWorlds alone(model, std::span(inertia).subspan(w * n, n), std::span(armature).subspan(w * nv, nv));
      const std::vector<double> one = reference_numbers<double>(reference_masses(model, alone));
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + std::ptrdiff_t(w * one.size())))
          << "seed " << seed << ", world " << w;
    }
  }
}

}  // namespace
}  // namespace tarsus::test
