// Terms of a step on random trees against the same problem on dense matrices made from jacobian() and crba().
#include <gtest/gtest.h>

#include <cmath>

#include "constraint/tree_loads.hpp"
#include "support/contact_world.hpp"
#include "support/dense_solve.hpp"
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

/// Rows of contacts, of joints of every kind and of paths: J from jacobian() and unit velocities, M̂ from crba().
TEST(TreeOperator, InverseMassIsTheDenseOne) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, random_tree(seed, {.bodies = 8}));
    const int nv = w.model.nv;
    std::vector<Term> terms;
    std::vector<Eigen::VectorXd> J;
    const auto add_term = [&](int nrow) {
      Term term;
      term.first_row = int(J.size()), term.nrow = nrow;
      terms.push_back(term);
    };
    std::vector<ContactRows> contacts;
    constexpr int kDimensions[] = {1, 3, 4, 6};
    for (const LinkContact& c : random_contacts(random, w, 6)) {
      const auto [t1, t2] = contact_tangents(c.point.normal);
      const Vec3d p = c.point.position;
      contacts.push_back({c.a,
                          random.chance(0.5) ? -1 : c.b,
                          kDimensions[random.index(4)],
                          p - w.data.links()[c.a].o,
                          {},
                          {c.point.normal, t1, t2}});
      ContactRows& rows = contacts.back();
      if (rows.b >= 0) rows.arm_b = p - w.data.links()[rows.b].o;
      add_term(rows.nrow);
      for (int k = 0; k < rows.nrow; ++k) {
        const Eigen::MatrixXd at = w.point_jacobian(rows.a, p, k >= 3) - w.point_jacobian(rows.b, p, k >= 3);
        J.push_back(at.transpose() * as_vector(rows.axis[k % 3]));
      }
    }
    std::vector<JointRows> joints;
    for (int i = 0; i < w.model.njoint(); ++i) {
      const JointType type = w.model.joints[i].type;
      using Part = JointRows::Part;
      if (w.model.joints[i].nv() == 1)
        joints.push_back({i, Part::axial, 1, {-1, 0, 0}});
      else if (type == JointType::ball)
        joints.push_back({i, Part::angular, 3}), joints.push_back({i, Part::angular, 1, random.direction()});
      else if (type == JointType::free)
        joints.push_back({i, Part::linear, 1, random.direction()}), joints.push_back({i, Part::angular, 3});
    }
    for (const JointRows& rows : joints) {
      add_term(rows.nrow);
      Eigen::MatrixXd at(rows.nrow, nv);
      for (int v = 0; v < nv; ++v) {
        std::vector<double> unit(nv, 0.0);
        unit[v] = 1;
        joint_velocity<double>(w.model, w.data.links(), rows, unit.data(), at.col(v).data());
      }
      for (int k = 0; k < rows.nrow; ++k) J.push_back(at.row(k));
    }
    const int dofs[] = {random.index(nv)};
    const double arm[] = {0.3};
    const PathRow path{dofs, arm};
    add_term(1);
    J.push_back(0.3 * Eigen::VectorXd::Unit(nv, dofs[0]));

    TreeOperator<double> tree(w.model);
    tree.begin(w.data, w.h, w.K, terms, contacts, joints, std::span(&path, 1), {});
    std::vector<int> some;
    std::vector<Eigen::VectorXd> rows_of_some;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (random.chance(0.3)) continue;
      some.push_back(int(t));
      for (int k = 0; k < terms[t].nrow; ++k) rows_of_some.push_back(J[terms[t].first_row + k]);
    }
    const int n = int(rows_of_some.size());
    std::vector<double> A(std::size_t(n) * n);
    tree.inverse_mass(some, A);
    std::vector<double> M(std::size_t(nv) * nv);
    crba<double>(w.model, w.data, w.data.qpos, M);
    Eigen::MatrixXd mass = Eigen::Map<Eigen::MatrixXd>(M.data(), nv, nv), rows(n, nv);
    for (int i = 0; i < nv; ++i) mass(i, i) += w.K[i] - w.model.armature[i];
    for (int r = 0; r < n; ++r) rows.row(r) = rows_of_some[r];
    const Eigen::MatrixXd expected = rows * spd_solve(mass, rows.transpose());
    EXPECT_LT((Eigen::Map<Eigen::MatrixXd>(A.data(), n, n) - expected).norm(), 1e-10 * expected.norm());
  }
}

}  // namespace
}  // namespace tarsus::test
