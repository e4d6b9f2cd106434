// Eigen's dense LLᵀ, compiled for each instruction set like the kernels, so that the dense baseline is as fast as
// possible on each machine. Eigen's namespace is renamed, else the linker would mix its copies
// (tarsus/math/kernels.hpp).
#pragma once

#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "tarsus/math/isa.hpp"

#define TARSUS_JOIN2(a, b) a##b
#define TARSUS_JOIN(a, b) TARSUS_JOIN2(a, b)
#define Eigen TARSUS_JOIN(Eigen_, TARSUS_ISA)
#include <Eigen/Cholesky>

namespace tarsus {
inline namespace TARSUS_ISA {

/// matrix [n][n]: lower triangle of a row-major matrix, replaced by its factor. x: right side, replaced by the
/// solution.
template <class R>
void dense_solve_kernel(int n, R* matrix, R* x) {
  using Matrix = Eigen::Matrix<R, Eigen::Dynamic, Eigen::Dynamic>;
  // A row-major lower triangle is a column-major upper one.
  Eigen::Map<Matrix> H(matrix, n, n);
  Eigen::LLT<Eigen::Ref<Matrix>, Eigen::Upper> factor(H);
  Eigen::Map<Eigen::Matrix<R, Eigen::Dynamic, 1>> b(x, n);
  factor.solveInPlace(b);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
#undef Eigen
