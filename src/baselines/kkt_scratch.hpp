// Scratch shared by KktSolver's methods.
#pragma once

#include <Eigen/SparseCholesky>

#include "baselines/kernel_table.hpp"
#include "constraint/kernel_table.hpp"
#include "dynamics/delassus_table.hpp"
#include "tarsus/baselines/kkt.hpp"
#include "tarsus/math/larger.hpp"
#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

/// The largest absolute value; NaN if any entry is NaN.
inline double largest_entry(std::span<const double> v) {
  double x = 0;
  for (const double a : v) x = larger(x, std::abs(a));
  return x;
}

/// The path from a force to the root: a side of a pair block, or one joint of a joint block.
struct Chain {
  int block = 0, side = 0;  ///< side: 0 for a, 1 for b; for a joint block the index of its link
  int tip = -1;
  std::size_t first = 0;  ///< index of the tip's record among the chain's links
  int length = 0;         ///< number of links to the root
};

struct KktSolver::Scratch {
  ModelView<double> view;
  AlignedVector<double> A, inverse, scale;  // [m][ld], [m]
  std::vector<double> rhs, x2, u, r1, r2, y, column;
  std::vector<std::vector<double>> J;  // by block, [ndof][stride] in qvel's axes
  MultiplierReport multipliers;
  // residuals
  std::vector<Motion<double>> a;
  std::vector<Force<double>> f;
  // efpa
  std::vector<Chain> chains;
  std::vector<int> depth, near;
  AlignedVector<double> climbed;  // [record][18][stride]: w 6, dw 6, f_up 6
  std::vector<Eigen::Matrix<double, 6, 6>> omega;
  std::vector<char> omega_done;
  // sparse
  Eigen::SparseMatrix<double> M;
  Eigen::SimplicialLLT<Eigen::SparseMatrix<double>, Eigen::Lower, Eigen::NaturalOrdering<int>> cholesky;
  bool analyzed = false;
  std::vector<double> dense;

  const ConstraintTable<double>& kernels = constraint_table<double>(1);
  const BaselineTable<double>& baselines = baseline_table<double>();
  const DelassusTable<double>& sweeps = delassus_table<double>(1);
  explicit Scratch(const Model& model) : view(model.view<double>()) {}
};

}  // namespace tarsus
