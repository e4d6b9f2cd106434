// A term's rows in the dense matrix of a small model; see tarsus/dynamics/dense_trees.hpp.
#pragma once

namespace tarsus {

/// Adds Jᵀ G J to the matrix and Jᵀ force to the right side. Six rows at most.
template <class T>
struct DenseTermOf {
  int rows, count, step;  ///< count: places, one at least; step: from row to row of G
  const int* places;      ///< at which J has numbers, ascending
  const T* J;             ///< [rows][columns]
  const T* G;             ///< [rows][step], null: none
  const T* force;         ///< [rows]
};
using DenseTerm = DenseTermOf<double>;

}  // namespace tarsus
