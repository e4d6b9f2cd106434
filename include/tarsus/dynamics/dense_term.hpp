// The rows of a term in the dense matrix of a small model; see tarsus/dynamics/dense_trees.hpp.
#pragma once

namespace tarsus {

/// Adds Jᵀ G J to the matrix and Jᵀ force to the right side. At most six rows.
template <class T>
struct DenseTermOf {
  int rows, count, step;  ///< count: non-zero columns of J, at least one; step: stride between rows of G
  const int* places;      ///< indices of these columns, ascending
  const T* J;             ///< [rows][columns]
  const T* G;             ///< [rows][step], null: none
  const T* force;         ///< [rows]
};
using DenseTerm = DenseTermOf<double>;

}  // namespace tarsus
