#include "tarsus/math/sparse_ldu.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <chrono>
#include <random>
#include <set>

#include "support/dense_solve.hpp"

namespace tarsus {
namespace {

struct Pattern {
  std::vector<int> start{0}, column;
};

Pattern pattern_of(int n, const std::set<std::pair<int, int>>& edges) {
  std::vector<std::vector<int>> rows(n);
  for (const auto& [a, b] : edges) rows[a].push_back(b), rows[b].push_back(a);
  Pattern p;
  for (auto& row : rows) {
    p.column.insert(p.column.end(), row.begin(), row.end());
    p.start.push_back(static_cast<int>(p.column.size()));
  }
  return p;
}

/// The graph of the bonds of a random tree of atoms: two bonds are neighbours if they share an atom.
std::set<std::pair<int, int>> bonds_of_a_tree(int atoms, int most_children, std::mt19937& random) {
  std::vector<int> children(atoms, 0);
  std::vector<std::vector<int>> at(atoms);
  for (int i = 1; i < atoms; ++i) {
    int parent = 0;
    do parent = static_cast<int>(random() % i);
    while (children[parent] >= most_children);
    ++children[parent];
    at[parent].push_back(i - 1), at[i].push_back(i - 1);
  }
  std::set<std::pair<int, int>> edges;
  for (const auto& bonds : at) {
    for (const int a : bonds) {
      for (const int b : bonds) {
        if (a < b) edges.insert({a, b});
      }
    }
  }
  return edges;
}

std::set<std::pair<int, int>> random_graph(int n, int count, std::mt19937& random) {
  std::set<std::pair<int, int>> edges;
  for (int k = 0; k < count; ++k) {
    const int a = static_cast<int>(random() % n), b = static_cast<int>(random() % n);
    if (a != b) edges.insert(std::minmax(a, b));
  }
  return edges;
}

/// A diagonally dominant matrix, unsymmetric on request.
Eigen::MatrixXd matrix_on(int n, const std::set<std::pair<int, int>>& edges, bool symmetric, std::mt19937& random) {
  std::uniform_real_distribution<double> value(-1, 1);
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(n, n);
  for (const auto& [i, j] : edges) {
    a(i, j) = value(random);
    a(j, i) = symmetric ? a(i, j) : value(random);
  }
  for (int i = 0; i < n; ++i) a(i, i) = 1 + a.row(i).cwiseAbs().sum();
  return a;
}

void fill_values(SparseLdu& ldu, const Eigen::MatrixXd& a, const std::set<std::pair<int, int>>& edges) {
  ldu.clear();
  for (int i = 0; i < a.rows(); ++i) ldu.values()[ldu.slot(i, i)] = a(i, i);
  for (const auto& [i, j] : edges) ldu.values()[ldu.slot(i, j)] = a(i, j), ldu.values()[ldu.slot(j, i)] = a(j, i);
}

TEST(SparseLdu, SolvesWhatADenseFactorSolves) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const int n = 1 + static_cast<int>(random() % 60);
    const bool tree = round % 2 == 0, symmetric = round % 3 == 0;
    const auto edges = tree ? bonds_of_a_tree(n + 1, 3, random) : random_graph(n, 2 * n, random);
    const Eigen::MatrixXd a = matrix_on(n, edges, symmetric, random);
    const Pattern p = pattern_of(n, edges);
    SparseLdu ldu;
    ldu.analyze(n, p.start, p.column);
    fill_values(ldu, a, edges);
    const PivotReport report = symmetric ? ldu.factor_symmetric() : ldu.factor();
    EXPECT_GT(report.ratio, 0.0);
    Eigen::VectorXd b = Eigen::VectorXd::Random(n);
    const Eigen::VectorXd expected = test::lu_solve(a, b);
    ldu.solve({b.data(), static_cast<std::size_t>(n)});
    EXPECT_LT((b - expected).norm(), 1e-12 * (1 + expected.norm())) << "round " << round;
  }
}

TEST(SparseLdu, TreesHaveNoFill) {
  std::mt19937 random(2);
  for (const int atoms : {2, 10, 300, 20000}) {
    const auto edges = bonds_of_a_tree(atoms, 3, random);
    const Pattern p = pattern_of(atoms - 1, edges);
    SparseLdu ldu;
    ldu.analyze(atoms - 1, p.start, p.column);
    EXPECT_EQ(ldu.fill(), static_cast<std::int64_t>(edges.size())) << atoms << " atoms";
  }
}

TEST(SparseLdu, ARingFillsOneColumnAndANetStaysSparse) {
  std::set<std::pair<int, int>> ring;
  for (int i = 0; i < 100; ++i) ring.insert(std::minmax(i, (i + 1) % 100));
  const Pattern p = pattern_of(100, ring);
  SparseLdu ldu;
  ldu.analyze(100, p.start, p.column);
  EXPECT_LE(ldu.fill(), 200);
  std::set<std::pair<int, int>> net;
  const int side = 60;
  for (int i = 0; i < side * side; ++i) {
    if (i % side + 1 < side) net.insert({i, i + 1});
    if (i + side < side * side) net.insert({i, i + side});
  }
  const Pattern q = pattern_of(side * side, net);
  ldu.analyze(side * side, q.start, q.column);
  // The bound of nested dissection for a square net is 7.75 n log2 n; every banded order gives n side = 216,000.
  EXPECT_LT(ldu.fill(), 7.75 * side * side * std::log2(side * side) / 3);
}

TEST(SparseLdu, DropsRowsThatDependOnOthers) {
  // Rows 0, 1 and their sum, as a Gram matrix.
  Eigen::MatrixXd j(4, 5);
  j << 1, 0, 2, 0, 1, 0, 1, 1, 1, 0, 1, 1, 3, 1, 1, 0, 0, 0, 1, 2;
  const Eigen::MatrixXd a = j * j.transpose();
  std::set<std::pair<int, int>> edges;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < i; ++k) edges.insert({k, i});
  }
  const Pattern p = pattern_of(4, edges);
  SparseLdu ldu;
  const std::vector<int> order{0, 1, 2, 3};
  ldu.analyze(4, p.start, p.column, order);
  fill_values(ldu, a, edges);
  EXPECT_EQ(ldu.factor_symmetric_dropping(1e-9).dependent, std::vector<int>{2});
  fill_values(ldu, a, edges);
  EXPECT_LT(ldu.factor_symmetric().ratio, 1e-12);
}

TEST(SparseLdu, RefusesSizesThatDoNotFit) {
  SparseLdu ldu;
  const std::vector<int> start{0, 0};
  EXPECT_ANY_THROW(ldu.analyze(2, start, {}));
}

}  // namespace
}  // namespace tarsus
