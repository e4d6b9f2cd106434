// Terms of a step on random trees against the same problem on dense matrices made from jacobian() and crba().
#include <gtest/gtest.h>

#include <cmath>

#include "support/contact_world.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus::test {
namespace {

/// Contacts with 1, 3, 4 and 6 rows between links and with the world, ranges and dry friction on joints.
std::vector<LinkContact> many_contacts(Random& random, World& w) {
  std::vector<LinkContact> contacts = random_contacts(random, w, 6);
  constexpr int kDimensions[] = {1, 3, 4, 6};
  for (LinkContact& c : contacts) {
    c.b = random.chance(0.7) ? -1 : c.b, c.friction *= 0.5;
    c.dimension = kDimensions[random.index(4)];
    c.torsional = random.uniform(0, 0.2), c.rolling = random.uniform(0, 0.1);
  }
  for (Joint& j : w.model.joints) {
    if (j.type == JointType::free) continue;
    if (random.chance(0.4)) j.friction_loss = random.uniform(0, 20);
    if (random.chance(0.4)) j.limited = true, j.range = {0.005, 0.3};
  }
  return contacts;
}

struct Solved {
  AlignedVector<double> velocity;
  RowsReport report;
  Eigen::VectorXd contact_impulse;  // of contacts, as generalised impulse
};

Solved solve(World& w, StepTerms<double>& terms, std::span<const LinkContact> contacts) {
  w.advance_free();
  terms.begin(w.data, w.h, w.data.qpos, w.data.qvel, w.velocity);
  terms.add_contacts(contacts);
  terms.add_limits(), terms.add_friction_loss();
  Solved s{w.velocity, {}, {}};
  terms.solve(w.K, {}, s.velocity);
  s.report = terms.report();
  s.contact_impulse = Eigen::VectorXd::Zero(w.model.nv);
  kinematics<double>(w.model, w.data, w.data.qpos, w.data.qvel);
  for (int i = 0; i < int(terms.contacts().size()); ++i) {
    const LinkContact& c = terms.contacts()[i];
    if (c.dimension > 3) continue;
    const Eigen::MatrixXd J = w.point_jacobian(c.a, c.point.position) - w.point_jacobian(c.b, c.point.position);
    s.contact_impulse += w.h * J.transpose() * as_vector(terms.force(i));
  }
  return s;
}

/// What changed v is what contacts report, through M̂⁻¹: contacts alone, with forces alone. @param count of contacts
/// @return how many touch, in the mean of the worlds
double momentum_is_that_of_forces(int count) {
  int touching = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, random_tree(seed, {.bodies = 8}));
    StepTerms<double> terms(w.model, {});
    const std::vector<LinkContact> contacts = random_contacts(random, w, count);
    const Solved s = solve(w, terms, contacts);
    touching += s.report.touching;
    std::vector<double> M(std::size_t(w.model.nv) * w.model.nv);
    crba<double>(w.model, w.data, w.data.qpos, M);
    Eigen::MatrixXd mass = Eigen::Map<Eigen::MatrixXd>(M.data(), w.model.nv, w.model.nv);
    for (int i = 0; i < w.model.nv; ++i) mass(i, i) += w.K[i] - w.model.armature[i];
    const Eigen::VectorXd change = as_vector(s.velocity) - as_vector(w.velocity);
    EXPECT_LT((mass * change - s.contact_impulse).norm(), 1e-9 * (1 + s.contact_impulse.norm()));
    EXPECT_TRUE(s.report.status != StepStatus::converged || s.report.residual <= 1e-6);
  }
  return touching / 100.0;
}

TEST(StepTerms, ChangeOfMomentumIsThatOfTheReportedForces) { EXPECT_GT(momentum_is_that_of_forces(6), 0.6); }

TEST(StepTerms, ChangeOfMomentumIsThatOfTheReportedForcesInACrowd) { EXPECT_GT(momentum_is_that_of_forces(60), 10); }

TEST(StepTerms, ConvergesOnRandomTreesAndASecondSolveTakesOneIteration) {
  int solved = 0, missed = 0, iterations = 0, again = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, random_tree(seed, {.bodies = 8}));
    const std::vector<LinkContact> contacts = many_contacts(random, w);
    StepTerms<double> terms(w.model, {});
    const Solved first = solve(w, terms, contacts);
    if (first.report.rows == 0) continue;
    ++solved, iterations += first.report.iterations;
    missed += first.report.status != StepStatus::converged;
    if (first.report.status == StepStatus::converged) {
      EXPECT_LE(first.report.residual, 1e-6);
    }
    // In another order: the same to the bit.
    std::vector<LinkContact> reversed(contacts.rbegin(), contacts.rend());
    StepTerms<double> other(w.model, {});
    EXPECT_EQ(solve(w, other, reversed).velocity, first.velocity);
    const Solved second = solve(w, terms, contacts);
    again += second.report.iterations;
  }
  std::printf("%d solves: %.2f iterations, %d missed; a second time %.2f\n", solved, double(iterations) / solved,
              missed, double(again) / solved);
  EXPECT_GT(solved, 300);
  EXPECT_LE(missed, solved / 50);
}

}  // namespace
}  // namespace tarsus::test
