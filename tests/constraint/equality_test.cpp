// Rows of equality constraints against finite differences of φ, on random trees and random constraint sets.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/dense_rows.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/constraint/constrained_dynamics.hpp"

namespace tarsus::test {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

struct Set {
  Model model;
  Data data;
  State s;
  EqualitySet set;

  explicit Set(unsigned seed)
      : model(random_tree(seed, {.bodies = 1 + int(seed % 13), .chain = (seed % 5) / 4.0})), data(model), set(model) {
    Random random(seed + 700);
    s = random_state(random, model);
    set = random_equalities(random, model, {.count = 4});
  }
  bool empty() const { return model.nv == 0 || set.rows() == 0; }

  struct Rows {
    Vector phi, rate, bias;
    Matrix J;
  };
  /// All outputs of evaluate() at (q, v), with J from the blocks. The bias excludes the joints' accelerations.
  Rows at(const std::vector<double>& q, const std::vector<double>& v) {
    const int m = set.rows();
    Rows rows{Vector(m), Vector(m), Vector(m), {}};
    // Before its last pass ABA leaves the accelerations that the velocities alone cause; rnea at q̈ = 0 leaves the
    // same.
    std::vector<double> zero(model.nv), tau(model.nv);
    kinematics<double>(model, data, q, v);
    rnea<double>(model, data, q, v, zero, tau);
    DelassusRows<double> blocks(model);
    set.add_blocks(blocks);
    const std::size_t n = m;
    set.evaluate<double>(data, 0, q, v, blocks, {rows.phi.data(), n}, {rows.rate.data(), n}, {rows.bias.data(), n});
    rows.J = dense_jacobian(model, data, blocks);
    return rows;
  }
  /// The rate of x as seen from the world. For connects and welds between two links the rows give rates in a frame that
  /// turns with the mean angular velocity Ω of both; this adds Ω × x to those rows.
  Vector with_turn(const Vector& x, Vector change) {
    kinematics<double>(model, data, s.qpos, s.qvel);
    for (int i = 0; i < set.size(); ++i) {
      const Equality& e = set[i];
      if (e.kind != EqualityKind::connect && e.kind != EqualityKind::weld) continue;
      const int a = model.bodies[e.body_a].link, b = model.bodies[e.body_b].link, r = e.first_row;
      if (a < 0 || b < 0) continue;
      const Vec3d turn = cross((data.links()[a].v.w + data.links()[b].v.w) * 0.5, {x[r], x[r + 1], x[r + 2]});
      for (int k = 0; k < 3; ++k) change[r + k] += turn[k];
    }
    return change;
  }
  std::vector<double> moved(double dt) {
    std::vector<double> q(model.nq);
    integrate<double>(model, data, s.qpos, s.qvel, dt, q);
    return q;
  }
};

/// Central differences: their error is h² times third derivatives, which are of order 10 here; the rounding error is
/// 1e-16 / h.
constexpr double kStep = 1e-5, kSlack = 3e-7;

TEST(Equality, RateIsTheDerivativeOfPhiAndJTimesV) {
  int rows = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Set t(seed);
    if (t.empty()) continue;
    const Set::Rows now = t.at(t.s.qpos, t.s.qvel), before = t.at(t.moved(-kStep), t.s.qvel),
                    after = t.at(t.moved(kStep), t.s.qvel);
    const Vector difference = (after.phi - before.phi) / (2 * kStep);
    const Vector Jv = now.J * Eigen::Map<Vector>(t.s.qvel.data(), t.model.nv);
    const Vector seen = t.with_turn(now.phi, now.rate);
    for (int r = 0; r < t.set.rows(); ++r, ++rows) {
      const double size = 1 + std::abs(now.rate[r]);
      // Half a turn between the samples flips the quaternion's sign: skip such rows.
      if (std::abs(after.phi[r] - before.phi[r]) > 0.1) continue;
      ASSERT_NEAR(now.rate[r], Jv[r], 1e-11 * size * 10) << "seed " << seed << " " << t.set.row_name(r);
      ASSERT_NEAR(seen[r], difference[r], kSlack * size * 20) << "seed " << seed << " " << t.set.row_name(r);
    }
  }
  EXPECT_GT(rows, 3000);
}

TEST(Equality, BiasIsTheDerivativeOfTheRateAtConstantSpeed) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Set t(seed);
    if (t.empty()) continue;
    const Set::Rows now = t.at(t.s.qpos, t.s.qvel), before = t.at(t.moved(-kStep), t.s.qvel),
                    after = t.at(t.moved(kStep), t.s.qvel);
    const Vector seen = t.with_turn(now.rate, now.bias);
    for (int r = 0; r < t.set.rows(); ++r) {
      if (std::abs(after.phi[r] - before.phi[r]) > 0.1) continue;
      const double difference = (after.rate[r] - before.rate[r]) / (2 * kStep), size = 1 + std::abs(now.bias[r]);
      ASSERT_NEAR(seen[r], difference, 1e-5 * size) << "seed " << seed << " " << t.set.row_name(r);
    }
  }
}

/// The orientation of a weld that is almost at half a turn, and the moments of its rows, against the quaternion itself.
TEST(Equality, WeldsNearHalfATurnKeepTheirDigits) {
  ModelSpec spec;
  BodySpec body("free");
  body.parent = 0;
  body.inertial.emplace();
  body.inertial->mass = 1, body.inertial->inertia = diagonal3(1.0, 1.0, 1.0);
  body.joints.emplace_back();
  body.joints.back().name = "joint", body.joints.back().type = JointType::free;
  spec.bodies.push_back(body);
  const Model model = compile(std::move(spec));
  EqualitySet set(model);
  set.add_weld("weld", 1, 0, {identity3<double>(), {0, 0, 0}});
  Data data(model);
  Random random(5);
  for (const double left : {0.5, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13}) {
    for (int k = 0; k < 20; ++k) {
      const Vec3d axis = random.direction();
      const double angle = kPi - left, s = std::sin(angle / 2), c = std::cos(angle / 2);
      const std::vector<double> q = {0, 0, 0, c, s * axis.x, s * axis.y, s * axis.z}, v(6, 0.0);
      kinematics<double>(model, data, q, v);
      DelassusRows<double> rows(model);
      set.add_blocks(rows);
      std::vector<double> phi(6), rate(6), bias(6);
      set.evaluate<double>(data, 0, q, v, rows, phi, rate, bias);
      EXPECT_NEAR(phi[3], s * axis.x, 1e-15) << left;
      EXPECT_NEAR(phi[4], s * axis.y, 1e-15) << left;
      EXPECT_NEAR(phi[5], s * axis.z, 1e-15) << left;
      const auto block = rows.block(0);
      EXPECT_NEAR(block.force[0 * block.stride + 3], c / 2, 1e-15) << left;
    }
  }
}

/// φ, rate, bias and forces of a set at the same state in every lane: [rows or numbers of the blocks] of lane `lane`.
template <class R>
struct Evaluated {
  std::vector<R> numbers, forces;

  Evaluated(const EqualitySet& set, const State& s, int width, int lane) {
    const Model& model = set.model();
    BasicData<R> data(model, width);
    AlignedVector<R> q(data.size(model.nq)), v(data.size(model.nv)), zero(v.size()), tau(v.size());
    for (int w = 0; w < width; ++w) {
      data.set(q, model.nq, w, std::vector<R>(s.qpos.begin(), s.qpos.end()));
      data.set(v, model.nv, w, std::vector<R>(s.qvel.begin(), s.qvel.end()));
    }
    kinematics<R>(model, data, q, v);
    rnea<R>(model, data, q, v, zero, tau);
    DelassusRows<R> rows(model, width);
    set.add_blocks(rows);
    AlignedVector<R> phi(std::size_t(set.rows()) * width), rate(phi), bias(phi);
    set.evaluate<R>(data, 0, q, v, rows, phi, rate, bias);
    for (const auto* x : {&phi, &rate, &bias}) {
      for (int r = 0; r < set.rows(); ++r) numbers.push_back((*x)[std::size_t(r) * width + lane]);
    }
    for (int b = 0; b < rows.blocks(); ++b) {
      const auto block = rows.block(b);
      for (int k = 0; k < (block.b < 0 ? 6 : 12); ++k) {
        for (int r = 0; r < block.nrow; ++r)
          forces.push_back(block.force[(std::size_t(k) * block.stride + r) * width + lane]);
        for (int r = block.nrow; r < block.stride; ++r)
          EXPECT_EQ(block.force[(std::size_t(k) * block.stride + r) * width], R(0)) << "padding";
      }
    }
  }
};

/// The results are the same to the bit whether equalities are evaluated together in one world, alone in a set, or in
/// lanes.
template <class R>
void side_by_side_is_alone() {
  int compared = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed + 40);
    const Model model = random_tree(seed, {.bodies = 8, .chain = (seed % 5) / 4.0});
    if (model.nv == 0) continue;
    const State s = random_state(random, model);
    EqualitySet together(model);
    std::vector<EqualitySet> alone;
    const int count = 1 + random.index(14);
    for (int i = 0; i < count; ++i) {
      const int a = random.index(model.nbody()), b = random.chance(0.5) ? 0 : random.index(model.nbody());
      if (model.bodies[a].link == model.bodies[b].link) continue;
      const Vec3d p = random.vector(0.3), q = random.vector(0.3);
      const Transformd X{rotation(random.rotation()), p};
      const double scale = random.uniform(0.5, 2);
      const bool weld = random.chance(0.5);
      alone.emplace_back(model);
      for (EqualitySet* set : {&together, &alone.back()}) {
        if (weld)
          set->add_weld("", a, b, X, scale, q);
        else
          set->add_connect("", a, p, b, q);
      }
    }
    if (together.rows() == 0) continue;
    const int width = lanes<R>(isa_level());
    const Evaluated<R> all(together, s, 1, 0), lane(together, s, width, width - 1);
    ASSERT_EQ(all.numbers, lane.numbers) << "seed " << seed;
    ASSERT_EQ(all.forces, lane.forces) << "seed " << seed;
    auto force = all.forces.begin();
    for (int i = 0; i < together.size(); ++i) {
      const Evaluated<R> one(alone[i], s, 1, 0);
      for (int k = 0; k < 3; ++k) {
        for (int r = 0; r < together[i].nrow; ++r, ++compared)
          ASSERT_EQ(all.numbers[k * together.rows() + together[i].first_row + r], one.numbers[k * together[i].nrow + r])
              << "seed " << seed << " constraint " << i;
      }
      ASSERT_TRUE(std::equal(one.forces.begin(), one.forces.end(), force)) << "seed " << seed << " constraint " << i;
      force += one.forces.size();
    }
  }
  EXPECT_GT(compared, 5000);
}
TEST(Equality, SideBySideIsAloneToTheBit) { side_by_side_is_alone<double>(); }
#ifndef TARSUS_DOUBLE_ONLY
TEST(Equality, SideBySideIsAloneToTheBitInFloat) { side_by_side_is_alone<float>(); }
#endif

TEST(Equality, BlocksAreTheFirstOfTheirRows) {
  const Model model = random_tree(8, {.bodies = 6, .welds = false});
  EqualitySet set(model);
  set.add_connect("loop", 1, {0, 0, 0}, 0, {0, 0, 0});
  DelassusRows<double> rows(model);
  rows.add_block(0, -1, 3);
  EXPECT_THROW(set.add_blocks(rows), ValueError);
  rows.clear();
  set.add_blocks(rows);
  EXPECT_EQ(rows.rows(), 3);
}

TEST(Equality, RowNamesSayWhichRow) {
  const Model model = random_tree(8, {.bodies = 6, .welds = false});
  EqualitySet set(model);
  set.add_connect("loop", 1, {0, 0, 0}, 0, {0, 0, 0});
  set.add_weld("grip", 2, 0, {identity3<double>(), {0, 0, 0}});
  EXPECT_EQ(set.row_name(1), "loop (connect) y");
  EXPECT_EQ(set.row_name(3 + 5), "grip (weld) turn z");
  EXPECT_EQ(set.rows(), 9);
}

TEST(Equality, BadInputNamesTheConstraint) {
  const Model model = random_tree(8, {.bodies = 6, .welds = false});
  const auto says = [](const auto& call, const std::string& part) {
    try {
      call();
      ADD_FAILURE() << "accepted: " << part;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  EqualitySet set(model);
  says([&] { set.add_connect("loop", 0, {0, 0, 0}, 0, {0, 0, 0}); }, "fixed to the world");
  says([&] { set.add_connect("loop", 1, {0, 0, 0}, 1, {0, 0, 0}); }, "loop");
  says([&] { set.add_connect("loop", 99, {0, 0, 0}, 1, {0, 0, 0}); }, "99");
  says([&] { set.add_connect("loop", 1, {NAN, 0, 0}, 0, {0, 0, 0}); }, "point_a");
  says([&] { set.add_distance("rod", 1, {0, 0, 0}, 0, {0, 0, 0}, 0); }, "rod");
  says([&] { set.add_distance("rod", 1, {0, 0, 0}, 0, {0, 0, 0}, NAN); }, "rod");
  says([&] { set.add_point_on_plane("table", 1, {0, 0, 0}, 0, {0, 0, 0}, {0, 0, 0}); }, "table");
  says([&] { set.add_weld("grip", 1, 0, {identity3<double>(), {0, kInfinity, 0}}); }, "X_AB");
  says(
      [&] {
        set.add_weld("grip", 1, 0, {Mat3d{2, 0, 0, 0, 2, 0, 0, 0, 2}, {0, 0, 0}});
      },
      "X_AB of \"grip\": is off by ");
  says([&] { set.add_weld("grip", 1, 0, {Mat3d{-1, 0, 0, 0, -1, 0, 0, 0, -1}, {0, 0, 0}}); }, "X_AB");
  says([&] { set.add_weld("grip", 1, 0, {Mat3d{NAN, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}}); }, "X_AB");
  says(
      [&] {
        set.add_weld("grip", 1, 0, {identity3<double>(), {0, 0, 0}}, 1, {0, 0, 0}, Mat3d{0, 0, 0, 0, 0, 0, 0, 0, 0});
      },
      "axes");
  for (const int index : {-1, 0}) says([&] { set.add_from_spec(index); }, "equality: is ");
  says([&] { set.add_joint("gear", 99, -1, {0, 1, 0, 0, 0}); }, "gear");
  says([&] { set.add_user("mine", {}); }, "mine");
  EXPECT_EQ(set.size(), 0);
  set.add_connect("loop", 1, {0, 0, 0}, 0, {0, 0, 0});
  says([&] { set.set_softness(0, {0, 0}); }, "loop");
  says([&] { set.set_softness(0, {-1, 4}); }, "loop");
  says([&] { set.set_softness(0, {NAN, 4}); }, "loop");
  for (const int index : {-1, 1}) says([&] { set.set_softness(index, {1, 4}); }, "an index below 1");
}

/// Both ends on the world, or on the same link.
TEST(Equality, BetweenBodiesOfOneLinkThereIsNone) {
  ModelSpec spec = random_tree(8, {.bodies = 6, .welds = false}).spec;
  EqualitySpec e;
  e.first = "world", e.second = "world", e.where.line = 7;
  spec.equalities.push_back(e);
  const Model model = compile(spec);
  EXPECT_TRUE(model.spec.equalities[0].idle);
  ASSERT_FALSE(model.spec.diagnostics.empty());
  EXPECT_EQ(model.spec.diagnostics.back().where.line, 7);
  EXPECT_EQ(EqualitySet::of(model).size(), 0);
}

TEST(Equality, SpecErrorsAreCollected) {
  ModelSpec spec = random_tree(8, {.bodies = 6, .welds = false}).spec;
  EqualitySpec e;
  e.name = "nowhere", e.first = "no such body", e.where.line = 7;
  spec.equalities.push_back(e);
  e.name = "nothing", e.type = EqualityType::joint, e.first = "no such joint";
  spec.equalities.push_back(e);
  e.type = EqualityType::connect;
  e.name = "nan anchor", e.first = "b1", e.anchor = {NAN, 0, 0};
  spec.equalities.push_back(e);
  const Model model = compile(spec);
  try {
    EqualitySet::of(model);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.diagnostics().size(), 3u);
    for (const char* part : {"no such body", "no such joint", "nan anchor"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

/// A point fixed to a link, or to the world where `link` is negative.
struct Point {
  int link;
  Vec3d local;
};
Vec3d place(const Data& data, const Point& point) {
  return point.link < 0 ? point.local : data.links()[point.link].o + data.links()[point.link].R * point.local;
}

/// h² k/4, with k the second derivatives of the potential of constant forces, by central differences; for a ball joint
/// half the sum of its three. It is zero where no such force passes through, for slides and free joints, and where
/// forces push.
TEST(Equality, GeometricInertiaIsOfForcesThatStayWhileLinksTurn) {
  int stiff = 0, none = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Model model = random_tree(seed, {.bodies = 2 + int(seed % 9), .chain = (seed % 5) / 4.0});
    if (model.nv == 0) continue;
    Random random(seed + 900);
    const State s = random_state(random, model);
    Data data(model);
    EqualitySet set(model);
    const Vec3d at_a = random.vector(0.5), at_b = random.vector(0.5), normal = random.direction();
    const int a = 1 + random.index(model.nbody() - 1), b = random.index(model.nbody());
    if (model.bodies[a].link == model.bodies[b].link) continue;
    const int kind = int(seed % 3);
    if (kind == 0) set.add_connect("", a, at_a, b, at_b);
    if (kind == 1) set.add_distance("", a, at_a, b, at_b, 0.3);
    if (kind == 2) set.add_point_on_plane("", a, at_a, b, at_b, normal);
    kinematics<double>(model, data, s.qpos, s.qvel);
    const Transformd &X = model.bodies[a].X_LB, &Y = model.bodies[b].X_LB;
    Point p{model.bodies[a].link, X.R * at_a + X.p};
    Point q{model.bodies[b].link, Y.R * at_b + Y.p};
    std::vector<double> x2(std::size_t(set.rows()));
    for (double& x : x2) x = random.uniform(-1e5, 1e5);
    const Vec3d between = place(data, p) - place(data, q);
    Vec3d force = kind == 0 ? Vec3d{-x2[0], -x2[1], -x2[2]} : between * (-x2[0] / norm(between));
    const auto act_at = [&](Point& end, const Vec3d& from_it) {
      const Mat3d R = end.link < 0 ? identity3<double>() : data.links()[end.link].R;
      end.local += transpose_mul(R, from_it);
    };
    if (kind == 0 && p.link >= 0 && q.link >= 0) act_at(p, between * -0.5), act_at(q, between * 0.5);
    if (kind == 2) {
      const Mat3d R = q.link < 0 ? identity3<double>() : data.links()[q.link].R;
      force = R * (Y.R * normal) * -x2[0];
      act_at(q, between);
    }
    std::vector<double> next(s.qvel), inertia(model.nv), expected(model.nv), moved(model.nq);
    for (double& v : next) v += 1e3;
    const double h = 0.01, step = 1e-3;
    std::copy(model.armature.begin(), model.armature.end(), data.joint_inertia.begin());
    const bool some = set.geometric_inertia<double>(data, h, x2, s.qvel, next, nullptr, inertia);
    const auto work = [&](int dof, double by) {
      std::vector<double> turn(model.nv);
      turn[std::size_t(dof)] = by;
      integrate<double>(model, data, s.qpos, turn, 1, moved);
      kinematics<double>(model, data, moved);
      return dot(force, place(data, p) - place(data, q));
    };
    for (const Joint& joint : model.joints) {
      if (joint.type == JointType::free || joint.type == JointType::slide) continue;
      double k = 0;
      for (int i = joint.qvel; i < joint.qvel + joint.nv(); ++i)
        k += (2 * work(i, 0) - work(i, step) - work(i, -step)) / (step * step);
      if (joint.type == JointType::ball) k /= 2;
      for (int i = joint.qvel; i < joint.qvel + joint.nv(); ++i) expected[i] = std::max(k, 0.0) * h * h / 4;
    }
    if (!some) {  // no joint is stiff relative to the inertia that it carries
      ++none;
      continue;
    }
    for (int i = 0; i < model.nv; ++i) {
      ASSERT_NEAR(inertia[i], expected[i], 1e-5 * norm(force) * h * h) << "seed " << seed << ", DoF " << i;
      stiff += expected[i] > 0;
    }
    // It is absent at steps that resolve the stiffness, and where nothing turns.
    kinematics<double>(model, data, s.qpos, s.qvel);
    std::fill(inertia.begin(), inertia.end(), 0.0);
    EXPECT_FALSE(set.geometric_inertia<double>(data, 1e-5, x2, s.qvel, next, nullptr, inertia));
    EXPECT_FALSE(set.geometric_inertia<double>(data, h, x2, s.qvel, s.qvel, nullptr, inertia));
  }
  EXPECT_GT(stiff, 200);
  std::printf("%d DoFs are stiff, %d worlds have none\n", stiff, none);
}

}  // namespace
}  // namespace tarsus::test
