// A step's operator built from the rows of some terms alone, against the matrix of all terms.
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

/// Fewer or more rows than DoFs, some of them without a tangent, some contacts open.
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
    const AlignedVector<double> rows = by_rows(J), turned = by_rows(J.transpose()), responses = by_rows(W);
    mass.begin({blocks, rows.data(), turned.data(), responses.data(), nv}, counts);
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

/// An operator by the matrix of all rows with a dense M̂⁻¹; a DenseRows solves for the active terms alone.
class AllRows final : public StepOperator {
 public:
  Eigen::MatrixXd J, W, A;  // W = M̂⁻¹ Jᵀ
  std::vector<int> counts, first;
  int after_alone = 0;  ///< solves with tangents since reduced()

  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override {
    const Eigen::Index n = A.rows();
    Eigen::MatrixXd G = Eigen::MatrixXd::Zero(n, n);
    for (std::size_t t = 0; t < tangents.size(); ++t) {
      for (int r = 0; r < counts[t]; ++r) {
        for (int c = 0; c < counts[t]; ++c) G(first[t] + r, first[t] + c) = tangents[t].at[r][c];
      }
    }
    after_alone += !tangents.empty();
    const Eigen::Map<const Eigen::VectorXd> g(force.data(), n);
    Eigen::Map<Eigen::VectorXd>(change.data(), n) = lu_solve(Eigen::MatrixXd::Identity(n, n) + A * G, A * g).col(0);
    return true;
  }
  void move(double) override {}
  void keep() override {}
  RowBlocks& row_blocks(std::span<const int> terms) override {
    choose(terms);
    return blocks_;
  }
  StepOperator* reduced(std::span<const int> terms) override {
    choose(terms);
    rows_.begin({blocks_, own_.data(), turned_.data(), responses_.data(), int(J.cols())}, own_counts_);
    after_alone = 0;
    return &rows_;
  }

 private:
  void choose(std::span<const int> terms) {
    std::vector<int> kept;
    own_counts_.clear();
    for (const int t : terms) {
      own_counts_.push_back(counts[std::size_t(t)]);
      for (int k = 0; k < counts[std::size_t(t)]; ++k) kept.push_back(first[std::size_t(t)] + k);
    }
    const int n = int(kept.size());
    blocks_.A = by_rows(A(kept, kept)), blocks_.stride = padded(n, 8), blocks_.count = int(terms.size());
    own_ = by_rows(J(kept, Eigen::all)), turned_ = by_rows(J(kept, Eigen::all).transpose()),
    responses_ = by_rows(W(Eigen::all, kept));
  }
  Whole blocks_;
  AlignedVector<double> own_, turned_, responses_;
  std::vector<int> own_counts_;
  DenseRows rows_;
};

/// Dry friction of the largest stiffness (R a millionth of the inverse mass) beside softer contacts. g and G J x are a
/// million times their difference. The impulses from the active terms alone must nevertheless agree with the
/// velocities, so that no iteration on all rows remains.
TEST(DenseRows, EndStepsHoweverHardARow) {
  std::mt19937 engine(2);
  std::normal_distribution<double> normal;
  int alones = 0, more = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const int nv = 8, contacts = 1 + trial % 5, n = 3 * contacts + 1;
    AllRows mass;
    mass.J = Eigen::MatrixXd::NullaryExpr(n, nv, [&] { return normal(engine); });
    const Eigen::MatrixXd root = Eigen::MatrixXd::NullaryExpr(nv, nv, [&] { return normal(engine); });
    mass.W = 10 * root * root.transpose() * mass.J.transpose(), mass.A = mass.J * mass.W;
    std::vector<Term> terms;
    std::vector<TermRow> rows;
    std::vector<double> free, y(std::size_t(n), 0.0), impulse(std::size_t(n), 0.0);
    for (int t = 0; t <= contacts; ++t) {
      Term term;
      term.first_row = 3 * t, term.nrow = t < contacts ? 3 : 1;
      if (t < contacts)
        term.law = Law::contact, term.friction = 0.6;
      else
        term.law = Law::interval, term.lower = -0.1, term.upper = 0.1;
      terms.push_back(term), mass.counts.push_back(term.nrow), mass.first.push_back(term.first_row);
      for (int k = 0; k < term.nrow; ++k) {
        const double w = mass.A(term.first_row + k, term.first_row + k);
        rows.push_back({(t < contacts ? 1e-2 : 1e-6) * w, 0, 0, w}), free.push_back(normal(engine));
      }
    }
    StepNewton newton;
    mass.after_alone = -1000;  // stays negative without a call of reduced()
    EXPECT_TRUE(newton.solve(mass, {terms, rows, free}, {}, y, impulse).converged);
    alones += mass.after_alone >= 0, more += mass.after_alone > 0;
  }
  EXPECT_GT(alones, 100);
  EXPECT_LT(more, 0.2 * alones);  // other terms become active there
}

}  // namespace
}  // namespace tarsus::test
