// Terms of a step on random trees against the same problem with dense matrices from jacobian() and crba().
#include <gtest/gtest.h>

#include <cmath>

#include "constraint/tree_stiffness.hpp"
#include "support/contact_world.hpp"
#include "support/dense_rows.hpp"
#include "support/dense_solve.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/dynamics/velocity_products.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus::test {
namespace {

/// Contacts with 1, 3, 4 and 6 rows between links and with the world, and ranges and dry friction on joints.
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
  Eigen::VectorXd contact_impulse;  // of the contacts, as a generalised impulse
};

Solved solve(World& w, StepTerms<double>& terms, std::span<const LinkContact> contacts) {
  w.advance_free();
  std::vector<LinkContact> taken(contacts.begin(), contacts.end());
  terms.begin(w.data, w.h, w.data.qpos, w.data.qvel, w.velocity, taken);
  terms.add_limits(), terms.add_friction_loss();
  Solved s{w.velocity, {}, {}};
  terms.solve(w.K, {}, s.velocity), terms.end();
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

/// With contacts alone the change of v equals M̂⁻¹ times the impulse of the reported contact forces.
/// @param count of contacts
/// @return the mean number of touching contacts per world
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

/// A random tree with free bodies beside it, two of them at the end.
Model tree_and_bodies(Random& random, unsigned seed) {
  ModelSpec spec = random_tree(seed, {.bodies = 8}).spec;
  for (int i = 0; i < 4; ++i) {
    BodySpec body("free" + std::to_string(i));
    body.parent = 0;
    body.joints.push_back(random_joint(random, JointType::free, "free" + std::to_string(i), {}));
    const double mass = random.uniform(0.2, 3);
    body.inertial = InertialSpec{mass, random.vector(0.1), random.inertia(mass), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// J x of a point, axis by axis.
Eigen::VectorXd point_velocity(const ContactRows& point, const std::vector<FreeBody>& bodies) {
  Vec3d v{0, 0, 0};
  if (point.a >= 0) v += bodies[point.a].v + cross(bodies[point.a].w, point.arm_a);
  if (point.b >= 0) v -= bodies[point.b].v + cross(bodies[point.b].w, point.arm_b);
  Eigen::VectorXd out(point.nrow);
  for (int k = 0; k < point.nrow; ++k) out[k] = dot(point.axis[k], v);
  return out;
}

void push_point(const ContactRows& point, int row, std::vector<FreeBody>& bodies) {
  const auto push = [&](int body, const Vec3d& arm, double sign) {
    if (body < 0) return;
    bodies[body].v += point.axis[row] * (sign * bodies[body].inverse_mass);
    bodies[body].w += bodies[body].inverse_inertia * cross(arm, point.axis[row]) * sign;
  };
  push(point.a, point.arm_a, 1), push(point.b, point.arm_b, -1);
}

/// A = J M̂⁻¹ Jᵀ column by column: the velocities of all rows after a unit impulse on one row. Checked against each
/// block's `own_mass`.
Eigen::MatrixXd swept_mass(RowBlocks& rows, std::span<const Term> terms, std::span<const int> some, int* points,
                           bool holds) {
  std::vector<int> first{0};
  std::size_t term = 0;
  for (int b = 0; b < rows.blocks(); ++b) {
    int count = 0;
    for (const std::size_t end = term + rows.terms(b); term < end; ++term) count += terms[some[term]].nrow;
    first.push_back(first.back() + count);
    *points += rows.point(b) != nullptr;
  }
  EXPECT_EQ(term, some.size());
  Eigen::MatrixXd A(first.back(), first.back());
  if (const RowBlocks::Mass whole = rows.whole(); whole.A) {
    EXPECT_EQ(rows.blocks(), 1);
    for (int r = 0; r < A.rows(); ++r)
      A.row(r) = Eigen::Map<const Eigen::RowVectorXd>(whole.A + r * whole.stride, A.cols());
    return A;
  }
  for (int b = 0; b < rows.blocks(); ++b) {
    const int n = first[b + 1] - first[b];
    for (int r = 0; r < n; ++r) {
      rows.rest();
      const Eigen::VectorXd unit = Eigen::VectorXd::Unit(n, r);
      rows.point(b) ? push_point(*rows.point(b), r, rows.bodies) : rows.push(b, unit.data());
      if (rows.holds()) rows.hold();
      for (int other = 0; other < rows.blocks(); ++other) {
        Eigen::VectorXd felt(first[other + 1] - first[other]);
        if (rows.point(other))
          felt = point_velocity(*rows.point(other), rows.bodies);
        else
          rows.velocity(other, felt.data());
        A.col(first[b] + r).segment(first[other], felt.size()) = felt;
      }
    }
    if (rows.point(b) || holds) continue;  // own_mass ignores bilateral rows, which hold() enforces after each push
    Eigen::MatrixXd own(n, n);
    rows.own_mass(b, own.data(), n);
    EXPECT_LT((own - A.block(first[b], first[b], n, n)).norm(), 1e-9 * own.norm());
  }
  return A;
}

/// A tangent as contact and joint laws have it: a sliding contact's friction also depends on the normal force.
Tangent random_tangent(Random& random, const Term& term, bool contact) {
  Tangent G{};
  if (random.chance(0.3)) return G;  // zero entries
  const auto disc = [&](int first, int count) {
    double root[3][3];
    for (auto& row : root) std::generate(row, row + 3, [&] { return random.uniform(-1, 1); });
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < count; ++j) {
        for (int k = 0; k < count; ++k) G.at[first + i][first + j] += 5 * root[i][k] * root[j][k];
      }
    }
  };
  if (!contact) return disc(0, term.nrow), G;
  disc(0, 1);
  if (term.nrow >= 3) disc(1, 2);
  if (term.nrow >= 4) disc(3, 1);
  if (term.nrow >= 6) disc(4, 2);
  for (int i = 1; i < term.nrow; ++i) G.at[i][0] = random.chance(0.5) ? random.uniform(-1, 1) * G.at[0][0] : 0;
  return G;
}

/// Rows of contacts, of all types of joints and of paths, on trees and on free bodies, with bilateral loop rows in
/// every second world. J comes from jacobian() and unit velocities, M̂ from crba().
TEST(TreeOperator, SolvesAndSweepsFeelTheDenseInverseMass) {
  int points = 0, held = 0, alones = 0, from_starts = 0, solved_again[2] = {};
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, tree_and_bodies(random, seed));
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
    for (const LinkContact& c : random_contacts(random, w, 30)) {
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
    for (int i = 0; i < w.model.njoint() - 3; ++i) {  // three bodies have contacts alone
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

    const bool loops = seed % 2 == 0;
    const EqualitySet set = random_equalities(random, w.model);
    const int rows_held = loops ? set.rows() : 0;
    std::vector<double> zero(set.rows(), 0.0), compliance(set.rows(), 1e-2);
    BilateralRows<double> bilateral;
    if (rows_held > 0) bilateral = {&set, w.data.qpos, zero, compliance};
    held += rows_held > 0;
    std::vector<int> some;
    std::vector<Eigen::VectorXd> rows_of_some;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (random.chance(0.3)) continue;
      some.push_back(int(t));
      for (int k = 0; k < terms[t].nrow; ++k) rows_of_some.push_back(J[terms[t].first_row + k]);
    }
    TreeOperator<double> tree(w.model, 0, kManyTrees, 0), dense(w.model, nv), graph(w.model, 0, 1, 0),
        whole(w.model, 0);
    const auto swept = [&](TreeOperator<double>& mass) {
      w.advance_free();
      mass.begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, bilateral);
      return swept_mass(mass.row_blocks(some), terms, some, &points, &mass != &dense && rows_held > 0);
    };
    const auto swept_in_stages = [&](TreeOperator<double>& mass) {  // every third term, then all of them
      swept(mass);
      std::vector<int> first;
      for (std::size_t i = seed % 3; i < some.size(); i += 3) first.push_back(some[i]);
      w.advance_free();
      mass.begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, bilateral);
      mass.row_blocks(first);
      return swept_mass(mass.row_blocks(some), terms, some, &points, false);
    };
    const Eigen::MatrixXd A = swept(tree), A_dense = swept(dense), A_graph = swept(graph), A_whole = swept(whole);
    const Eigen::MatrixXd A_stages = swept_in_stages(dense);
    const int n = int(A.rows());
    std::vector<double> M(std::size_t(nv) * nv);
    crba<double>(w.model, w.data, w.data.qpos, M);
    Eigen::MatrixXd mass = Eigen::Map<Eigen::MatrixXd>(M.data(), nv, nv), rows(n, nv);
    for (int i = 0; i < nv; ++i) mass(i, i) += w.K[i] - w.model.armature[i];
    for (int r = 0; r < n; ++r) rows.row(r) = rows_of_some[r];
    Eigen::MatrixXd expected = rows * spd_solve(mass, rows.transpose());
    if (rows_held > 0) {
      DelassusRows<double> blocks(w.model);
      std::vector<double> phi(rows_held);
      set.add_blocks(blocks);
      set.evaluate<double>(w.data, 0, w.data.qpos, {}, blocks, phi, {}, {});
      const Eigen::MatrixXd E = dense_jacobian(w.model, w.data, blocks), response = spd_solve(mass, E.transpose());
      const Eigen::MatrixXd own = E * response + 1e-2 * Eigen::MatrixXd::Identity(rows_held, rows_held);
      expected -= rows * response * spd_solve(own, response.transpose() * rows.transpose());
    }
    EXPECT_LT((A - expected).norm(), 1e-7 * expected.norm());  // Σ is raised by 1e-10 of the rows' inverse mass
    EXPECT_LT((A_dense - expected).norm(), 1e-7 * expected.norm());
    EXPECT_LT((A_stages - expected).norm(), 1e-7 * expected.norm());
    EXPECT_LT((A_graph - expected).norm(), 1e-7 * expected.norm());
    EXPECT_LT((A_whole - expected).norm(), 1e-7 * expected.norm());

    // Tangents and forces: by extra rows or by the graph, and by the dense matrix once a step is hard.
    std::vector<Tangent> tangents;
    for (std::size_t t = 0; t < terms.size(); ++t)
      tangents.push_back(random_tangent(random, terms[t], t < contacts.size()));
    const std::vector<double> force = random_vector(random, int(J.size()));
    const auto changes = [&](TreeOperator<double>& mass) {
      w.advance_free();
      mass.begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, bilateral);
      Eigen::VectorXd Jx(J.size() + nv);
      for (int k = 0; k < 3; ++k) mass.solve(tangents, force, {Jx.data(), J.size()});
      mass.move(1), mass.keep();
      for (int k = 0; k < nv; ++k) Jx[Eigen::Index(J.size()) + k] = mass.change()[k];
      return Jx;
    };
    const Eigen::VectorXd by_tree = changes(tree), by_dense = changes(dense), by_graph = changes(graph);
    EXPECT_LT((by_dense - by_tree).norm(), 1e-8 * by_tree.norm());
    EXPECT_LT((by_graph - by_tree).norm(), 1e-8 * by_tree.norm());
    const auto still = [&](TreeOperator<double>& mass) {
      Eigen::VectorXd Jx(J.size());
      mass.solve({}, force, {Jx.data(), J.size()});
      return Jx;
    };
    const Eigen::VectorXd still_by_tree = still(tree);
    EXPECT_LT((still(graph) - still_by_tree).norm(), 1e-8 * still_by_tree.norm());

    // The same from the step's start, x = v⁰ - v⁻ + the previous x, with all terms and with few.
    std::vector<Tangent> few(terms.size());
    std::copy_n(tangents.begin(), 5, few.begin());
    for (const std::size_t count : {terms.size(), std::size_t(5)}) {
      const std::vector<Tangent>& some_tangents = count == 5 ? few : tangents;
      if (rows_held > 0) break;
      AlignedVector<double> joint_force(nv), qacc(nv), found(1);
      for (double& q : joint_force) q = 100 * random.uniform();
      maba<double>(w.model, w.data, w.data.qpos, w.data.qvel, joint_force, w.K, qacc);
      Eigen::VectorXd there(J.size() + nv);
      for (int k = 0; k < nv; ++k) there[Eigen::Index(J.size()) + k] = w.h * qacc[k];
      for (std::size_t r = 0; r < J.size(); ++r) there[Eigen::Index(r)] = J[r].dot(there.tail(nv));
      std::vector<double> g(J.size(), 0.0), g_there;
      for (std::size_t t = 0; t < count; ++t)
        std::copy_n(&force[terms[t].first_row], terms[t].nrow, &g[terms[t].first_row]);
      g_there = g;
      for (std::size_t t = 0; t < terms.size(); ++t) {
        const int first = terms[t].first_row;
        for (int r = 0; r < terms[t].nrow; ++r) {
          for (int c = 0; c < terms[t].nrow; ++c) g_there[first + r] += some_tangents[t].at[r][c] * there[first + c];
        }
      }
      VelocityProducts<double> products(w.model, w.data);
      for (TreeOperator<double>* mass : {&tree, &dense}) {
        const auto solved = [&](std::span<const double> right, In<double> moves) {
          Eigen::VectorXd x(J.size() + nv);
          mass->begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, {}, moves);
          for (int k = 0; k < 3; ++k) mass->solve(some_tangents, right, {x.data(), J.size()});
          mass->move(1), mass->keep();
          for (int k = 0; k < nv; ++k) x[Eigen::Index(J.size()) + k] = mass->change()[k];
          return x;
        };
        w.advance_free();
        const Eigen::VectorXd from_free = solved(g, {});
        const auto begin_step = [&] {
          products.begin_step(w.model, w.data, w.h, VelocityProducts<double>::Use::never, w.data.qpos, w.data.qvel,
                              joint_force, w.K, qacc, found);
        };
        begin_step();
        const Eigen::VectorXd from_start = solved(g_there, joint_force);
        EXPECT_LT((from_start - from_free - there).norm(), 1e-9 * (from_free.norm() + there.norm()));
        begin_step();
        mass->begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, {}, joint_force);
        std::vector<double> change(J.size());
        const In<double> x = mass->settle(change);
        EXPECT_LT((as_vector(x) - there.tail(nv)).norm(), 1e-10 * there.norm());
        EXPECT_LT((as_vector(change) - there.head(Eigen::Index(J.size()))).norm(), 1e-10 * there.norm());
        ++from_starts;
      }
    }

    // The same tangents with other forces, by the factors of the last solve: on the tree and by the dense matrix.
    const std::size_t without_path = terms.size() - 1;
    for (const std::size_t count : {without_path, std::size_t(5)}) {
      if (rows_held > 0) break;
      const std::vector<Tangent>& all_tangents = count == 5 ? few : tangents;
      const std::span<const Tangent> present = std::span(all_tangents).first(without_path);
      std::vector<double> other(J.size() - 1, 0.0), again(J.size() - 1), expected_again(J.size() - 1);
      for (std::size_t t = 0; t < count; ++t) {
        for (int r = 0; r < terms[t].nrow; ++r) other[terms[t].first_row + r] = random.uniform(-1, 1);
      }
      for (const int solves : {1, 3}) {  // the third is hard: dense
        w.advance_free();
        dense.begin(w.data, w.h, w.K, std::span(terms).first(without_path), {contacts, joints, {}}, {});
        std::vector<double> right(force.begin(), force.end() - 1);
        for (std::size_t t = count; t < without_path; ++t) std::fill_n(&right[terms[t].first_row], terms[t].nrow, 0.0);
        for (int k = 0; k < solves; ++k) dense.solve(present, right, again);
        dense.move(1);
        if (!dense.solve_again(present, other, again)) continue;
        ++solved_again[solves == 3];
        const auto take = [&] {
          dense.move(1), dense.keep();
          return Eigen::VectorXd(as_vector(dense.change()));
        };
        const Eigen::VectorXd moved = take();
        for (int k = 0; k < solves; ++k) dense.solve(present, right, expected_again);
        dense.move(1);
        dense.solve_change(present, other, expected_again);
        SCOPED_TRACE(solves);
        SCOPED_TRACE(count);
        EXPECT_LT((as_vector(again) - as_vector(expected_again)).norm(), 1e-9 * as_vector(expected_again).norm());
        EXPECT_LT((moved - take()).norm(), 1e-9 * moved.norm());
      }
    }

    // By the rows alone: J x = (1 + A G)⁻¹ A g.
    w.advance_free();
    dense.begin(w.data, w.h, w.K, terms, {contacts, joints, std::span(&path, 1)}, bilateral);
    std::vector<double> change(J.size());
    dense.solve(tangents, force, change);
    for (const std::size_t count : {2, 5}) {
      std::vector<Tangent> own;
      Eigen::VectorXd g(n);
      Eigen::MatrixXd G = Eigen::MatrixXd::Zero(n, n);
      int at = 0;
      for (std::size_t t = 0; t < std::min(count, some.size()); ++t) {
        const Term& term = terms[some[t]];
        own.push_back(tangents[some[t]]);
        for (int r = 0; r < term.nrow; ++r) {
          g[at + r] = force[term.first_row + r];
          for (int c = 0; c < term.nrow; ++c) G(at + r, at + c) = own.back().at[r][c];
        }
        at += term.nrow;
      }
      StepOperator* const alone = dense.reduced(std::span(some).first(own.size()));
      if (!alone) continue;
      ++alones;
      Eigen::VectorXd Jx(at);
      const Eigen::MatrixXd A_own = expected.topLeftCorner(at, at);
      const Eigen::MatrixXd whole = Eigen::MatrixXd::Identity(at, at) + A_own * G.topLeftCorner(at, at);
      alone->solve(own, {g.data(), std::size_t(at)}, {Jx.data(), std::size_t(at)});
      const Eigen::VectorXd wanted = lu_solve(whole, A_own * g.head(at)).col(0);
      EXPECT_LT((Jx - wanted).norm(), 1e-6 * (A_own * g.head(at)).norm());
      const Eigen::VectorXd other = g.head(at).reverse(), wanted_again = lu_solve(whole, A_own * other).col(0);
      EXPECT_TRUE(alone->solve_again(own, {other.data(), std::size_t(at)}, {Jx.data(), std::size_t(at)}));
      EXPECT_LT((Jx - wanted_again).norm(), 1e-6 * (A_own * other).norm());
      alone->solve({}, {g.data(), std::size_t(at)}, {Jx.data(), std::size_t(at)});
      EXPECT_LT((Jx - A_own * g.head(at)).norm(), 1e-6 * Jx.norm());
    }
  }
  EXPECT_GT(alones, 60);
  EXPECT_GT(points, 15);
  EXPECT_GT(held, 20);
  EXPECT_GT(from_starts, 60);
  EXPECT_GT(solved_again[0], 20);
  EXPECT_GT(solved_again[1], 20);
}

/// Loops stated twice with different right sides, and a third time with an offset of a tenth of a millimetre. The
/// terms' impulse from one tangent must move the tree as it did there, whatever was solved before. Otherwise Newton's
/// iterations cycle between two problems.
TEST(TreeOperator, LoopsThatContradictOneAnotherAreTheSameAtEveryTangent) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, random_tree(seed, {.bodies = 8}));
    const int nv = w.model.nv;
    std::vector<Term> terms;
    std::vector<JointRows> joints;
    int rows = 0;
    for (int i = 0; i < w.model.njoint(); ++i) {
      if (w.model.joints[i].nv() != 1) continue;
      joints.push_back({i, JointRows::Part::axial, 1, {-1, 0, 0}});
      terms.emplace_back().first_row = rows++;
    }
    EqualitySet set(w.model);
    const int body = w.model.nbody() - 1;
    const Vec3d p = random.vector(0.3), q = random.vector(0.3);
    set.add_connect("one", body, p, 0, q), set.add_connect("again", body, p, 0, q);
    set.add_connect("aside", body, p + random.direction() * 1e-4, 0, q);
    std::vector<double> demand = random_vector(random, set.rows()), compliance(set.rows(), 0.0);
    for (const int dense_dofs : {0, nv}) {
      TreeOperator<double> mass(w.model, dense_dofs);
      w.advance_free();
      mass.begin(w.data, w.h, w.K, terms, {{}, joints, {}}, {&set, w.data.qpos, demand, compliance});
      for (int solve = 0; solve < 6; ++solve) {
        std::vector<Tangent> tangents;
        for (const Term& term : terms) tangents.push_back(random_tangent(random, term, false));
        std::vector<double> force = random_vector(random, rows), change(rows), again(rows);
        mass.solve(tangents, force, change);
        mass.move(1);
        for (int r = 0; r < rows; ++r) force[r] -= tangents[r].at[0][0] * change[r];
        mass.solve({}, force, again);
        const Eigen::VectorXd first = as_vector(change), second = as_vector(again);
        EXPECT_LT((first - second).norm(), 1e-4 * first.norm()) << "solve " << solve << ", dense to " << dense_dofs;
      }
    }
  }
}

}  // namespace
}  // namespace tarsus::test
