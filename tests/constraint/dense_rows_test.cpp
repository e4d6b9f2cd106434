// A step's operator by the rows of some terms alone, beside the matrix of all of them.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <random>

#include "support/dense_solve.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/constraint/dense_rows.hpp"

namespace tarsus::test {
namespace {

class Whole final : public RowBlocks {
 public:
  AlignedVector<double> A;
  int stride = 0, count = 0;
  int blocks() const override { return 1; }
  int terms(int) const override { return count; }
  Mass whole() const override { return {A.data(), stride}; }
};

/// Numbers [row][stride], padded to eight with zeros.
AlignedVector<double> by_rows(const Eigen::MatrixXd& m) {
  const int stride = padded(int(m.cols()), 8);
  AlignedVector<double> out(std::size_t(m.rows()) * stride + RowBlocks::kBeyond, 0.0);
  for (int r = 0; r < m.rows(); ++r) {
    for (int c = 0; c < m.cols(); ++c) out[std::size_t(r) * stride + c] = m(r, c);
  }
  return out;
}

/// Few rows or more than there are DoFs, some of them without a tangent, some contacts open.
TEST(DenseRows, SolvesAsTheMatrixOfAllRows) {
  std::mt19937 engine(1);
  std::normal_distribution<double> normal;
  const auto draw = [&](int rows, int columns) {
    return Eigen::MatrixXd(Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal(engine); }));
  };
  DenseRows mass;
  int more = 0, fewer = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const int nv = 3 + int(engine() % 20);
    std::vector<int> counts;
    int n = 0;
    for (int t = 0; t < 2 + trial % 12; ++t) counts.push_back(std::array{1, 3, 4, 6}[engine() % 4]), n += counts.back();
    const Eigen::MatrixXd J = draw(n, nv), root = draw(nv, nv), W = root * root.transpose() * J.transpose() / nv;
    Whole blocks;
    blocks.A = by_rows(J * W), blocks.stride = padded(n, 8), blocks.count = int(counts.size());
    const AlignedVector<double> columns = by_rows(J.transpose()), responses = by_rows(W.transpose());
    mass.begin({blocks, columns.data(), responses.data(), nv, padded(nv, 8)}, counts);
    std::vector<Tangent> tangents(counts.size());
    Eigen::MatrixXd G = Eigen::MatrixXd::Zero(n, n);
    Eigen::VectorXd g = draw(n, 1), Jx(n);
    int at = 0, bent = 0;
    for (std::size_t t = 0; t < counts.size(); at += counts[t++]) {
      const int count = counts[t];
      const int kind = int(engine() % 4);
      tangents[t] = {};
      if (kind == 0 && count > 1) {
        tangents[t].open = true, g.segment(at, count).setZero();
        continue;
      }
      if (kind == 1 && count == 1) continue;  // at a bound
      const Eigen::MatrixXd square = draw(count, count);
      G.block(at, at, count, count) = 10 * square * square.transpose();
      for (int r = 0; r < count; ++r) {
        for (int c = 0; c < count; ++c) tangents[t].at[r][c] = G(at + r, at + c);
      }
      bent += count;
    }
    (bent > nv ? more : fewer) += 1;
    const Eigen::MatrixXd A = J * W;
    const Eigen::VectorXd Ag = A * g;
    const auto solve = [&](std::span<const Tangent> of) {
      EXPECT_TRUE(mass.solve(of, {g.data(), std::size_t(n)}, {Jx.data(), std::size_t(n)}));
      return Jx;
    };
    const Eigen::VectorXd wanted = lu_solve(Eigen::MatrixXd::Identity(n, n) + A * G, Ag).col(0);
    EXPECT_LT((solve(tangents) - wanted).norm(), 1e-9 * Ag.norm());
    EXPECT_LT((solve({}) - Ag).norm(), 1e-13 * Ag.norm());
  }
  EXPECT_GT(more, 50);
  EXPECT_GT(fewer, 50);
}

}  // namespace
}  // namespace tarsus::test
