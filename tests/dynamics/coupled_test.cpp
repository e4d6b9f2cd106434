// Trees with coupled links, with and without rows, against the dense matrix, on 600 random trees over all types of
// joints.
#include "tarsus/dynamics/coupled.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <set>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/dynamics/dense_trees.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/stiffened.hpp"

namespace tarsus::test {
namespace {

using Dense = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Pair = CoupledTrees::LinkPair;

/// A tree, or several on the world, with a state and M̂.
struct CoupledWorld {
  Model model;
  Data data;
  State s;
  std::vector<double> K;
  Dense M;
  std::vector<Dense> J;  ///< [link] 6 × nv: motion of its origin

  CoupledWorld(Random& random, unsigned seed)
      : model(random_tree(seed, {.bodies = 2 + int(seed % 15), .chain = (seed % 5) / 4.0})), data(model) {
    s = random_state(random, model);
    std::vector<double> dense(std::size_t(model.nv) * model.nv), force(model.nv), qacc(model.nv);
    crba<double>(model, data, s.qpos, dense);
    M = Eigen::Map<Dense>(dense.data(), model.nv, model.nv);
    K.assign(model.armature.begin(), model.armature.end());
    for (const Joint& joint : model.joints) {
      const double extra = random.uniform(0, 3);
      for (int k = 0; k < joint.nv(); ++k) K[joint.qvel + k] += extra, M(joint.qvel + k, joint.qvel + k) += extra;
    }
    for (int link = 0; link < model.njoint(); ++link) {
      J.emplace_back(6, model.nv);
      for (int r = 0; r < 6; ++r) J.back().row(r) = row(link, r);
    }
    maba<double>(model, data, s.qpos, s.qvel, force, K, qacc);
    prepare_stiffened<double>(model, data);
  }

  /// A row of J from rnea at rest: the change of the joints' forces by a unit external force.
  Vector row(int link, int direction) {
    std::vector<double> external(6 * model.njoint()), zero(model.nv), with(model.nv), without(model.nv);
    external[6 * link + direction] = 1;
    rnea<double>(model, data, s.qpos, zero, zero, without);
    rnea<double>(model, data, s.qpos, zero, zero, with, external);
    return Eigen::Map<Vector>(without.data(), model.nv) - Eigen::Map<Vector>(with.data(), model.nv);
  }
};

/// A link's origin in the world.
Vec3d body_point(const CoupledWorld& w, int link) {
  Vec3d at{0, 0, 0};
  for (int i = link; i >= 0; i = w.model.joints[i].parent) at += w.data.links()[i].r;
  return at;
}

/// A random block that is not symmetric, with a positive definite symmetric part.
Dense random_block(Random& random, int size) {
  Dense A(size, size), skew(size, size);
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) A(i, j) = random.uniform(), skew(i, j) = random.uniform();
  }
  return 5.0 * A * A.transpose() + (skew - skew.transpose());
}

void add(const Dense& from, CoupledTrees::Block& to) {
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 6; ++c) to[std::size_t(8 * r + c)] += from(r, c);
  }
}

/// Rows on links and along joints, as nodes and as a dense J.
struct Held {
  RowNodes nodes;
  std::vector<Vector> forces;  ///< [link of a row] a wrench, or the component along the joint
  std::vector<std::array<int, 2>> row_and_link;
  std::vector<bool> along_joint;
  Dense J, sigma;

  Held(Random& random, const CoupledWorld& w) {
    const int n = w.model.njoint();
    std::vector<Vector> rows;
    for (int e = random.index(4); e > 0; --e) {
      const int nrow = 1 + random.index(RowNodes::kRows), links = 1 + random.index(3);
      std::vector<int> of;
      for (int k = 0; k < links; ++k) {
        of.push_back(random.index(n)), nodes.add_link(of.back());
        if (const int parent = w.model.joints[of.back()].parent; parent >= 0) nodes.add_link(parent);
      }
      for (int r = 0; r < nrow; ++r) {
        rows.push_back(Vector::Zero(w.model.nv));
        for (const int link : of) {
          const Joint& joint = w.model.joints[link];
          along_joint.push_back(random.chance(0.5));
          row_and_link.push_back({int(rows.size()) - 1, link});
          Vector& f = forces.emplace_back(6);
          for (int k = 0; k < 6; ++k) f[k] = random.uniform(-1, 1);
          if (along_joint.back())
            rows.back().segment(joint.qvel, joint.nv()) += f.head(joint.nv());
          else
            rows.back() += w.J[link].transpose() * f;
        }
      }
      nodes.add(nrow);
    }
    J = Dense::Zero(nodes.rows(), w.model.nv), sigma = Dense::Zero(nodes.rows(), nodes.rows());
    for (int r = 0; r < nodes.rows(); ++r) J.row(r) = rows[r], sigma(r, r) = random.uniform(0.1, 1);
  }
  void write(CoupledTrees& trees) const {
    const auto node_of = [&](int row) {
      int node = 0;
      while (nodes.first_row(node + 1) <= row) ++node;
      return node;
    };
    for (int r = 0; r < nodes.rows(); ++r) trees.set_row(node_of(r), r - nodes.first_row(node_of(r)), sigma(r, r));
    for (std::size_t k = 0; k < forces.size(); ++k) {
      const auto [row, link] = row_and_link[k];
      const int node = node_of(row), at = row - nodes.first_row(node);
      const double* f = forces[k].data();
      if (along_joint[k])
        trees.add_joint_to_row(node, at, link, f);
      else
        trees.add_to_row(node, at, link, {{f[0], f[1], f[2]}, {f[3], f[4], f[5]}});
    }
  }
};

TEST(CoupledTrees, SolveWhatTheDenseMatrixSolves) {
  int pairs_seen = 0, on_a_branch = 0, rows_seen = 0;
  for (unsigned seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoupledWorld w(random, seed);
    if (w.model.nv == 0 || w.model.njoint() < 2) continue;
    const int n = w.model.njoint();
    std::vector<Pair> pairs;
    std::set<Pair> known;
    for (int k = random.index(2 * n); k > 0; --k) {
      const Pair pair{random.index(n), random.index(n)};
      if (pair[0] == pair[1] || !known.insert({std::min(pair[0], pair[1]), std::max(pair[0], pair[1])}).second)
        continue;
      pairs.push_back(pair);
      for (int up = std::max(pair[0], pair[1]); up >= 0; up = w.model.joints[up].parent)
        on_a_branch += up == std::min(pair[0], pair[1]);
    }
    pairs_seen += int(pairs.size());
    // Stiffnesses of joints and links as in a step.
    std::vector<int> stiffness_of_link(n, -1);
    std::vector<LinkStiffness<double>> stiffnesses;
    Vector Q = Vector::Zero(w.model.nv);
    Dense H = w.M;
    for (int link = 0; link < n; ++link) {
      const Joint& joint = w.model.joints[link];
      if (!random.chance(0.4)) continue;
      stiffness_of_link[link] = int(stiffnesses.size());
      LinkStiffness<double>& stiffness = stiffnesses.emplace_back();
      stiffness.clear();
      stiffness.M.xx = 2, stiffness.H.xy = 0.3, stiffness.I.yy = 1, stiffness.n = random.vector(),
      stiffness.f = random.vector();
      Dense B = Dense::Zero(6, 6);
      B(3, 3) = 2, B(0, 4) = B(4, 0) = 0.3, B(1, 1) = 1;
      H += w.J[link].transpose() * B * w.J[link];
      Vector f(6);
      for (int k = 0; k < 3; ++k) f[k] = stiffness.n[k], f[3 + k] = stiffness.f[k];
      Q += w.J[link].transpose() * f;
      if (joint.nv() != 1) continue;
      stiffness.joint.xx = 3, stiffness.joint_force.x = 0.7;
      H(joint.qvel, joint.qvel) += 3, Q[joint.qvel] += 0.7;
    }
    const Held held(random, w);
    const int nv = w.model.nv, rows = held.nodes.rows();
    rows_seen += rows;
    CoupledTrees trees(w.model);
    trees.analyze(pairs, held.nodes);
    AlignedVector<double> x(nv);
    std::vector<double> solution(trees.numbers());
    for (int again = 0; again < 2; ++again) {  // with other values in the blocks, in the same order of elimination
      Dense sum = H;
      Vector force = Q;
      trees.begin<double>(w.data, w.K, stiffness_of_link, stiffnesses);
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        const auto [a, b] = pairs[p];
        const Dense B = random_block(random, 12);
        add(B.block(0, 0, 6, 6), trees.blocks()[a]), add(B.block(6, 6, 6, 6), trees.blocks()[b]);
        add(B.block(0, 6, 6, 6), trees.blocks()[trees.place(a, b, int(p)).pair]),
            add(B.block(6, 0, 6, 6), trees.blocks()[trees.place(a, b, int(p)).pair ^ 1]);
        Dense J(12, w.model.nv);
        J << w.J[a], w.J[b];
        sum += J.transpose() * B * J;
      }
      for (int link = 0; link < n; ++link) {
        Vector f(6);
        for (int k = 0; k < 6; ++k) trees.forces()[6 * link + k] += f[k] = random.uniform();
        force += w.J[link].transpose() * f;
      }
      const std::vector<double> more = random_vector(random, nv), demand = random_vector(random, rows);
      held.write(trees);
      trees.factor();
      Dense whole(nv + rows, nv + rows);
      whole << sum, -held.J.transpose(), held.J, held.sigma;
      for (const bool with_forces : {true, false, true}) {  // one factor, several right sides
        std::copy(demand.begin(), demand.end(), solution.begin() + trees.first_row());
        trees.solve(with_forces, more, solution);
        trees.finish<double>(solution, w.data, x);
        Vector right(nv + rows), found(nv + rows);
        right << (with_forces ? force : Vector::Zero(nv)) + Eigen::Map<const Vector>(more.data(), nv),
            Eigen::Map<const Vector>(demand.data(), rows);
        found << Eigen::Map<Vector>(x.data(), nv), Eigen::Map<const Vector>(solution.data() + trees.first_row(), rows);
        const Vector expected = lu_solve(whole, right);
        EXPECT_LT((whole * found - right).norm(), 1e-10 * (whole.norm() * expected.norm() + right.norm()));
        EXPECT_LT((found - expected).norm(), 1e-7 * expected.norm());
        for (int link = 0; link < n; ++link) {
          const Vector motion = w.J[link] * found.head(nv);
          const Motion<double>& a = w.data.links()[link].a;
          for (int k = 0; k < 3; ++k) {
            EXPECT_NEAR(a.w[k], motion[k], 1e-10 * (1 + motion.norm()));
            EXPECT_NEAR(a.v[k], motion[3 + k], 1e-10 * (1 + motion.norm()));
          }
        }
      }
    }
  }
  EXPECT_GT(pairs_seen, 2000);
  EXPECT_GT(on_a_branch, 500);
  EXPECT_GT(rows_seen, 1000);
}

/// Free bodies in a row, each connected to the next at a point.
Model row_of_bodies(int bodies) {
  ModelSpec spec;
  for (int i = 0; i < bodies; ++i) {
    BodySpec body("b" + std::to_string(i));
    body.parent = 0, body.position = {0.2 * i, 0, 0};
    JointSpec joint;
    joint.name = "j" + std::to_string(i), joint.type = JointType::free;
    body.joints.push_back(joint);
    body.inertial = InertialSpec{1, {0, 0, 0}, {0.01, 0, 0, 0.01, 0, 0.01}, {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// Coincident points of two bodies, three rows each.
RowNodes connects(std::span<const Pair> pairs) {
  RowNodes nodes;
  for (const auto [a, b] : pairs) nodes.add_link(a), nodes.add_link(b), nodes.add(3);
  return nodes;
}

/// The cost of eliminating a rope is proportional to its length.
TEST(CoupledTrees, RopesCostWhatTheyAreLong) {
  double operations[2];
  for (const int k : {0, 1}) {
    const int bodies = k == 0 ? 100 : 400;
    const Model model = row_of_bodies(bodies);
    std::vector<Pair> pairs;
    for (int i = 0; i + 1 < bodies; ++i) pairs.push_back({i, i + 1});
    CoupledTrees trees(model);
    ASSERT_TRUE(trees.analyze({}, connects(pairs)));
    operations[k] = trees.operations();
  }
  EXPECT_LT(operations[1], 4.1 * operations[0]);
}

/// Rows with next to no compliance, between bodies in contact. Where a row is eliminated along a direction in which
/// none of the eliminated bodies moves it, 1/Σ becomes the stiffness of the rest, and digits are lost.
TEST(CoupledTrees, RowsHoldToRoundingBesideContacts) {
  constexpr double kSigma = 1e-10;
  const int bodies = 30, nv = 6 * bodies;
  const Model model = row_of_bodies(bodies);
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Data data(model);
    AlignedVector<double> zero(nv), qacc(nv), x(nv);
    kinematics<double>(model, data, data.qpos, data.qvel);
    maba<double>(model, data, data.qpos, data.qvel, zero, zero, qacc);
    prepare_stiffened<double>(model, data);
    std::vector<double> M(std::size_t(nv) * nv);
    crba<double>(model, data, data.qpos, M);
    std::vector<Pair> joined, touching;
    for (int i = 0; i + 1 < bodies; ++i) joined.push_back({i, i + 1});
    for (int i = 0; i < 6; ++i) {  // meshes
      const int a = random.index(bodies), b = random.index(bodies);
      if (std::abs(a - b) > 1) joined.push_back({a, b});
    }
    std::set<Pair> known;
    for (int i = 0; i < 40; ++i) {
      const int a = random.index(bodies), b = random.index(bodies);
      if (a < b && known.insert({a, b}).second) touching.push_back({a, b});
    }
    const RowNodes nodes = connects(joined);
    CoupledTrees trees(model);
    ASSERT_TRUE(trees.analyze(touching, nodes));
    const std::vector<int> no_stiffness(bodies, -1);
    trees.begin<double>(data, zero, no_stiffness, {});
    const int rows = nodes.rows();
    Dense whole = Dense::Zero(nv + rows, nv + rows);
    whole.topLeftCorner(nv, nv) = Eigen::Map<Dense>(M.data(), nv, nv);
    const auto place = [&](int link) {  // the bodies' axes are the world's: (ω, v) of a link among the DoFs
      return std::array<int, 6>{6 * link + 3, 6 * link + 4, 6 * link + 5, 6 * link, 6 * link + 1, 6 * link + 2};
    };
    for (std::size_t p = 0; p < touching.size(); ++p) {
      const auto [a, b] = touching[p];
      const Dense B = random_block(random, 12);
      const int block = trees.place(a, b, int(p)).pair;
      add(B.block(0, 0, 6, 6), trees.blocks()[a]), add(B.block(6, 6, 6, 6), trees.blocks()[b]);
      add(B.block(0, 6, 6, 6), trees.blocks()[block]), add(B.block(6, 0, 6, 6), trees.blocks()[block ^ 1]);
      for (int r = 0; r < 12; ++r) {
        for (int c = 0; c < 12; ++c) whole(place(r < 6 ? a : b)[r % 6], place(c < 6 ? a : b)[c % 6]) += B(r, c);
      }
    }
    for (int e = 0; e < nodes.size(); ++e) {
      const Vec3d arms[2] = {random.vector(0.1), random.vector(0.1)};
      for (int r = 0; r < 3; ++r) {
        trees.set_row(e, r, kSigma), whole(nv + 3 * e + r, nv + 3 * e + r) = kSigma;
        const Vec3d axis{r == 0 ? 1.0 : 0.0, r == 1 ? 1.0 : 0.0, r == 2 ? 1.0 : 0.0};
        for (int side = 0; side < 2; ++side) {
          const int link = joined[e][side];
          const Force<double> f{cross(arms[side], axis) * (side ? -1.0 : 1.0), axis * (side ? -1.0 : 1.0)};
          trees.add_to_row(e, r, link, f);
          for (int k = 0; k < 6; ++k) {
            const double at = k < 3 ? f.n[k] : f.f[k - 3];
            whole(nv + 3 * e + r, place(link)[k]) += at, whole(place(link)[k], nv + 3 * e + r) -= at;
          }
        }
      }
    }
    trees.factor();
    Vector right(nv + rows), found(nv + rows);
    for (int k = 0; k < nv + rows; ++k) right[k] = random.uniform(-1, 1);
    std::vector<double> solution(trees.numbers());
    std::copy_n(right.data() + nv, rows, solution.begin() + trees.first_row());
    trees.solve(false, {right.data(), std::size_t(nv)}, solution);
    trees.finish<double>(solution, data, x);
    found << Eigen::Map<Vector>(x.data(), nv), Eigen::Map<const Vector>(solution.data() + trees.first_row(), rows);
    const Vector expected = lu_solve(whole, right);
    EXPECT_LT((found - expected).norm(), 1e-9 * expected.norm());
  }
}

/// The same for small models with bilateral rows: H x - Jᵀ λ = Q, J x + Σ λ = d.
TEST(DenseTrees, SolveWhatTheDenseMatrixSolves) {
  int pairs_seen = 0, held_seen = 0;
  for (unsigned seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoupledWorld w(random, seed);
    const int n = w.model.njoint(), nv = w.model.nv, held = random.index(4);
    if (nv == 0) continue;
    Dense E = Dense::Zero(held, nv);
    for (int i = 0; i < E.size(); ++i) E.data()[i] = random.uniform();
    const Vector sigma = Vector::Constant(held, 0.01);
    std::vector<double> rows;
    for (int i = 0; i < held; ++i) {
      for (int d = 0; d < nv; ++d) rows.push_back(E(i, d));
    }
    DenseTrees trees(w.model);
    trees.begin<double>(w.data, w.K, rows, {sigma.data(), std::size_t(held)});
    const auto kkt = [&](const Dense& H) {
      Dense whole = Dense::Zero(nv + held, nv + held);
      whole.topLeftCorner(nv, nv) = H;
      whole.topRightCorner(nv, held) = -E.transpose(), whole.bottomLeftCorner(held, nv) = E;
      whole.bottomRightCorner(held, held) = sigma.asDiagonal();
      return whole;
    };
    for (int again = 0; again < 2; ++again) {
      trees.clear();
      Dense H = w.M;
      std::vector<double> pulled(trees.leading(), 0.0);
      Vector pull = Vector::Zero(nv);
      for (int k = random.index(2 * n + 1); k > 0; --k, ++pairs_seen) {
        const int a = random.index(n), b = random.index(n + 1) - 1;
        if (a == b) continue;
        // Of link b the motion of its point at a's origin.
        Dense J = w.J[a];
        if (b >= 0) {
          const Vec3d r = body_point(w, a) - body_point(w, b);
          Dense shift = Dense::Identity(6, 6);
          shift.bottomLeftCorner(3, 3) << 0, r.z, -r.y, -r.z, 0, r.x, r.y, -r.x, 0;
          J -= shift * w.J[b];
        }
        const int pair = trees.add_pair(a, b);
        const int count = 1 + random.index(6);  // its first rows
        const Eigen::Matrix<double, 6, 6, Eigen::RowMajor> B = random_block(random, 6);
        const Vector force = Vector::NullaryExpr(6, [&] { return random.uniform(); });
        const bool only_pulls = random.index(4) == 0;
        const std::span<const int> places = trees.places(pair);
        const DenseTerm term{count,         int(places.size()), 6,
                             places.data(), trees.rows(pair),   only_pulls ? nullptr : B.data(),
                             force.data()};
        if (!places.empty()) trees.add({&term, 1}, trees.leading(), pulled.data());
        const Dense own = J.topRows(count);
        if (!only_pulls) H += own.transpose() * B.topLeftCorner(count, count) * own;
        pull += own.transpose() * force.head(count);
      }
      for (int d = 0; d < nv; ++d) EXPECT_NEAR(pulled[trees.place(d)], pull[d], 1e-12 * (1 + pull.norm()));
      trees.factor();
      const Vector right = Vector::NullaryExpr(nv + held, [&] { return random.uniform(); });
      const auto solved = [&](const auto& solve) {
        std::vector<double> x(trees.leading(), 0.0);
        for (int d = 0; d < nv; ++d) x[trees.place(d)] = right[d];
        for (int i = 0; i < held; ++i) x[trees.place_of_row(i)] = right[nv + i];
        solve(x);
        Vector out(nv + held);
        for (int d = 0; d < nv; ++d) out[d] = x[trees.place(d)];
        for (int i = 0; i < held; ++i) out[nv + i] = x[trees.place_of_row(i)];
        if (again == 0) return out;
        AlignedVector<double> qvel(nv);
        trees.finish<double>(x, w.data, qvel);
        for (int link = 0; link < n; ++link) {
          const Vector motion = w.J[link] * out.head(nv);
          const Motion<double>& a = w.data.links()[link].a;
          for (int k = 0; k < 3; ++k) {
            EXPECT_NEAR(a.w[k], motion[k], 1e-9 * (1 + motion.norm()));
            EXPECT_NEAR(a.v[k], motion[3 + k], 1e-9 * (1 + motion.norm()));
          }
        }
        return out;
      };
      const Vector loaded = lu_solve(kkt(H), right), free = lu_solve(kkt(w.M), right);
      EXPECT_LT((solved([&](std::vector<double>& x) { trees.solve(x); }) - loaded).norm(), 1e-7 * loaded.norm());
      EXPECT_LT((solved([&](std::vector<double>& x) { trees.solve_free(x); }) - free).norm(), 1e-7 * free.norm());
      std::vector<double> many(std::size_t(trees.size()) * 8, 0.0);  // the same in the last of eight columns
      for (int d = 0; d < nv; ++d) many[trees.place(d) * 8 + 7] = right[d];
      for (int i = 0; i < held; ++i) many[trees.place_of_row(i) * 8 + 7] = right[nv + i];
      trees.solve_free(many, 8);
      for (int d = 0; d < nv; ++d) EXPECT_NEAR(many[trees.place(d) * 8 + 7], free[d], 1e-7 * free.norm());
    }
    held_seen += held;
  }
  EXPECT_GT(pairs_seen, 1000);
  EXPECT_GT(held_seen, 500);
}

}  // namespace
}  // namespace tarsus::test
