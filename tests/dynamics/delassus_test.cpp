// Delassus products of rows through ABA's factors against the dense J M̂⁻¹ Jᵀ, on 1,000 random trees.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/dense_rows.hpp"
#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/dynamics/delassus.hpp"

namespace tarsus::test {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A tree with a state, M̂ = M + K, and random rows: on single links, on pairs (the same link twice, one branch, two
/// branches), and on joints.
struct Rows {
  Model model;
  Data data;
  State s;
  std::vector<double> K;
  DelassusRows<double> rows;
  Matrix J, M;

  explicit Rows(unsigned seed, int worlds_width = 1)
      : model(random_tree(seed, {.bodies = 1 + int(seed % 17), .chain = (seed % 5) / 4.0})),
        data(model),
        rows(model, worlds_width) {
    Random random(seed + 5000);
    s = random_state(random, model);
    M.resize(model.nv, model.nv);
    if (model.nv == 0) return;
    crba<double>(model, data, s.qpos, {M.data(), std::size_t(M.size())});
    K.assign(model.armature.begin(), model.armature.end());
    for (const Joint& joint : model.joints) {
      const double extra = random.chance(0.5) ? random.uniform(0, 3) : 0;
      for (int k = 0; k < joint.nv(); ++k) K[joint.qvel + k] += extra, M(joint.qvel + k, joint.qvel + k) += extra;
    }
    fill(random);
  }

  void sweep() {
    factor<double>(model, data, s.qpos, K);
    rows.sweep(model, data);
  }

  /// J's row for a force (n, f) on a link: by external forces through rnea at rest without gravity.
  Vector row_of(int link, const double* wrench) {
    std::vector<double> external(6 * model.njoint()), zero(model.nv), with(model.nv), without(model.nv);
    std::copy(wrench, wrench + 6, external.begin() + 6 * link);
    rnea<double>(model, data, s.qpos, zero, zero, without);
    rnea<double>(model, data, s.qpos, zero, zero, with, external);
    return Eigen::Map<Vector>(without.data(), model.nv) - Eigen::Map<Vector>(with.data(), model.nv);
  }

  void fill(Random& random) {
    const int n = model.njoint(), count = 1 + random.index(5);
    std::vector<Vector> all;
    for (int c = 0; c < count; ++c) {
      const int nrow = 1 + random.index(7), kind = random.index(4);
      if (kind == 3) {
        const std::vector<int> joints{random.index(n), random.index(n), random.index(n)};
        auto block = rows.block(rows.add_joint_block(joints, nrow));
        for (int r = 0; r < nrow; ++r) {
          Vector row = Vector::Zero(model.nv);
          for (std::size_t k = 0; k < block.dofs.size(); ++k)
            row[block.dofs[k]] = block.joint[k * block.stride + r] = random.uniform();
          all.push_back(row);
        }
        continue;
      }
      const int a = random.index(n), b = kind == 0 ? -1 : random.index(n);
      const bool joint =
          kind == 2 && a != b && model.joints[a].type != JointType::free && model.joints[b].type != JointType::free;
      auto block = rows.block(rows.add_block(a, b, nrow, joint));
      for (int r = 0; r < nrow; ++r) {
        const std::vector<double> wrench = random_vector(random, 12);
        for (int k = 0; k < 12; ++k) block.force[k * block.stride + r] = wrench[k];
        Vector row = row_of(a, wrench.data());
        if (b >= 0) row += row_of(b, wrench.data() + 6);
        if (joint) {
          for (int k = 0; k < 2; ++k) {
            const double y = block.joint[k * block.stride + r] = random.uniform();
            row[model.joints[k ? b : a].qvel] += y;
          }
        }
        all.push_back(row);
      }
    }
    J.resize(all.size(), model.nv);
    for (std::size_t r = 0; r < all.size(); ++r) J.row(r) = all[r];
  }
};

/// The condition number of M multiplies rounding errors; 1e-10 of the largest element leaves room for that.
constexpr double kDenseAgreement = 1e-10;

void expect_dense_product(Rows& t) {
  t.rows.sweep(t.model, t.data);
  const int m = t.rows.rows(), ld = t.rows.leading_dimension();
  Matrix A = Matrix::Constant(m, ld, NAN);
  t.rows.gram(A.data(), ld);
  const Matrix expected = t.J * spd_solve(t.M, t.J.transpose());
  const double scale = std::max(1.0, expected.cwiseAbs().maxCoeff());
  for (int r = 0; r < m; ++r) {
    for (int c = r; c < m; ++c) ASSERT_NEAR(A(r, c), expected(r, c), kDenseAgreement * scale) << r << "," << c;
  }
}

TEST(Delassus, IsTheDenseProduct) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Rows t(seed);
    if (t.model.nv == 0) continue;
    factor<double>(t.model, t.data, t.s.qpos, t.K);
    expect_dense_product(t);
  }
}

/// Data that blocks share is kept from list to list as far as the lists have the same beginning.
TEST(Delassus, ListsMadeAnewAreTheDenseProduct) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rows t(seed);
    if (t.model.nv == 0) continue;
    for (const unsigned list : {1u, 1u, 2u, 3u, 2u, 3u, 3u}) {
      Random random(seed), others(seed + list);
      t.rows.clear();
      t.fill(random);  // the same each time
      const Matrix begin = t.J;
      t.fill(others);
      Matrix both(begin.rows() + t.J.rows(), t.model.nv);
      both << begin, t.J;
      t.J = both;
      factor<double>(t.model, t.data, t.s.qpos, t.K);
      expect_dense_product(t);
      if (list == 3) {  // and lists that are shorter or have another beginning
        t.rows.clear();
        t.fill(others);
        factor<double>(t.model, t.data, t.s.qpos, t.K);
        expect_dense_product(t);
      }
    }
  }
}

TEST(Delassus, JacobianIsWhatForcesDo) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0) continue;
    factor<double>(t.model, t.data, t.s.qpos, t.K);
    const Matrix J = dense_jacobian(t.model, t.data, t.rows);
    ASSERT_LT((J - t.J).cwiseAbs().maxCoeff(), 1e-11) << "seed " << seed;  // t.J is a difference of forces
  }
}

TEST(Delassus, VelocityAndImpulseInUSpace) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0) continue;
    t.sweep();
    Random random(seed);
    const int m = t.rows.rows();
    std::vector<double> u(t.model.nv), x(t.model.nv), Jv(m), lambda = random_vector(random, m);
    inward<double>(t.model, t.data, t.s.tau, u);
    t.rows.velocity(u.data(), Jv.data());
    const Vector tau = Eigen::Map<Vector>(t.s.tau.data(), t.model.nv), l = Eigen::Map<Vector>(lambda.data(), m);
    const Vector v = spd_solve(t.M, tau), expected = t.J * v;
    ASSERT_LT(relative_error(Jv, std::vector<double>(expected.data(), expected.data() + m)), kDenseAgreement)
        << "seed " << seed;
    t.rows.push(lambda.data(), u.data());
    outward<double>(t.model, t.data, u, x);
    const Vector pushed = spd_solve(t.M, Vector(tau + t.J.transpose() * l));
    ASSERT_LT(relative_error(x, std::vector<double>(pushed.data(), pushed.data() + t.model.nv)), kDenseAgreement)
        << "seed " << seed;
    t.rows.push(lambda.data(), u.data(), -1);
    outward<double>(t.model, t.data, u, x);
    ASSERT_LT(relative_error(x, std::vector<double>(v.data(), v.data() + t.model.nv)), kDenseAgreement)
        << "seed " << seed;
  }
}

TEST(Delassus, VelocityOfWhatTheLinksAlreadyDo) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0) continue;
    std::vector<double> qacc(t.model.nv), Jq(t.rows.rows());
    maba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, t.K, qacc);
    t.rows.velocity_of(t.data, qacc, Jq);
    const Vector expected = t.J * Eigen::Map<Vector>(qacc.data(), t.model.nv);
    ASSERT_LT(relative_error(Jq, std::vector<double>(expected.data(), expected.data() + expected.size())), 1e-11)
        << "seed " << seed;
  }
}

TEST(Delassus, DiagonalIsThatOfTheGram) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0) continue;
    t.sweep();
    const int m = t.rows.rows(), ld = t.rows.leading_dimension();
    std::vector<double> A(std::size_t(m) * ld), diagonal(m);
    t.rows.gram(A.data(), ld);
    t.rows.diagonal(diagonal);
    for (int i = 0; i < m; ++i) {
      const double wanted = A[std::size_t(i) * (ld + 1)];
      ASSERT_NEAR(diagonal[i], wanted, 1e-13 * wanted) << "seed " << seed;
    }
  }
}

/// The blocks that keep() leaves are unchanged, and rows can be added after them.
TEST(Delassus, TheFirstBlocksStay) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0 || t.rows.blocks() < 2) continue;
    t.sweep();
    std::vector<double> all(t.rows.rows());
    t.rows.diagonal(all);
    const int kept = t.rows.blocks() / 2, rows = t.rows.block(kept).first_row;
    t.rows.keep(kept);
    ASSERT_EQ(t.rows.rows(), rows);
    const DelassusRows<double>::Block more = t.rows.block(t.rows.add_block(0, -1, 1));
    for (int k = 0; k < 6; ++k) EXPECT_EQ(more.force[k * more.stride], 0);
    for (int k = 0; k < 6; ++k) more.force[k * more.stride] = 1 + 0.1 * k;
    t.rows.sweep(t.model, t.data);
    std::vector<double> again(rows + 1);
    t.rows.diagonal(again);
    EXPECT_TRUE(std::equal(again.begin(), again.begin() + rows, all.begin())) << "seed " << seed;
    EXPECT_GT(again.back(), 0) << "seed " << seed;
  }
}

TEST(Delassus, ReadUIsWhatAbaLeft) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Rows t(seed);
    if (t.model.nv == 0) continue;
    std::vector<double> u(t.model.nv), x(t.model.nv), qacc(t.model.nv);
    maba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, t.K, qacc);
    read_u<double>(t.model, t.data, u);
    outward<double>(t.model, t.data, u, x);
    ASSERT_EQ(x, qacc) << "seed " << seed;
  }
}

/// A pack of a batch gives each world the same numbers as the world computed individually, to rounding (rows are summed
/// in another order).
TEST(Delassus, LanesAreWorlds) {
  const int worlds = lanes<double>(isa_level());
  for (unsigned seed = 0; seed < 100; ++seed) {
    Rows one(seed);
    const Model& model = one.model;
    if (model.nv == 0) continue;
    Data batch(model, worlds + (worlds == 1));
    const int width = batch.width();
    DelassusRows<double> rows(model, width);
    AlignedVector<double> K(batch.size(model.nv));
    for (int b = 0; b < one.rows.blocks(); ++b) {
      auto from = one.rows.block(b);
      if (!from.force)
        rows.add_joint_block(std::vector<int>(from.links.begin(), from.links.end()), from.nrow);
      else
        rows.add_block(from.a, from.b, from.nrow, from.joint != nullptr);
      auto to = rows.block(b);
      for (int lane = 0; lane < width; ++lane) {
        for (int r = 0; r < from.nrow; ++r) {
          for (int k = 0; from.force && k < 12; ++k)
            to.force[(k * to.stride + r) * width + lane] = from.force[k * from.stride + r];
          const int entries = !from.joint ? 0 : from.force ? 2 : int(from.dofs.size());
          for (int k = 0; k < entries; ++k)
            to.joint[(k * to.stride + r) * width + lane] = from.joint[k * from.stride + r];
        }
      }
    }
    Random random(seed + 9);
    std::vector<std::vector<double>> qpos;
    for (int w = 0; w < batch.worlds(); ++w) {
      qpos.push_back(random_qpos(random, model));
      batch.set(batch.qpos, model.nq, w, qpos.back());
      batch.set(K, model.nv, w, one.K);
    }
    for (int w = batch.worlds(); w < width; ++w)
      batch.set(batch.qpos, model.nq, w, qpos[0]), batch.set(K, model.nv, w, one.K);
    factor<double>(model, batch, batch.qpos, K);
    rows.sweep(model, batch);
    const int m = rows.rows(), ld = rows.leading_dimension(), ld1 = one.rows.leading_dimension();
    AlignedVector<double> A(std::size_t(m) * ld * width), B(std::size_t(m) * ld1);
    rows.gram(A.data(), ld);
    for (int w = 0; w < batch.worlds() && w < width; ++w) {
      factor<double>(model, one.data, qpos[w], one.K);
      one.rows.sweep(model, one.data);
      one.rows.gram(B.data(), ld1);
      for (int r = 0; r < m; ++r) {
        for (int c = r; c < m; ++c) {
          const double a = A[(std::size_t(r) * ld + c) * width + w], b = B[std::size_t(r) * ld1 + c];
          ASSERT_NEAR(a, b, 1e-12 * (1 + std::abs(b))) << "seed " << seed;
        }
      }
    }
  }
}

TEST(Delassus, BadBlocksAreNamed) {
  const Model model = random_tree(3);
  DelassusRows<double> rows(model);
  EXPECT_THROW(rows.add_block(-1, 0, 3), ValueError);  // only the world
  EXPECT_THROW(rows.add_block(0, model.njoint(), 3), ValueError);
  EXPECT_THROW(rows.add_block(0, -1, 0), ValueError);
  EXPECT_THROW(rows.add_joint_block(std::vector<int>{99}, 1), ValueError);
}

}  // namespace
}  // namespace tarsus::test
