// Which constraint rows are redundant, and whether they can be left out safely.
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/problem.hpp"

namespace tarsus {

/// Rank of the rows at x, by the pivots of J M^-1 Jᵀ.
struct Redundancy {
  int rank = 0;
  std::vector<int> dependent;  ///< rows that follow from the others at x, ascending
  /// True if the dependent rows are independent at a nearby configuration off x. x is then a singular geometry (three
  /// distances along one line), and leaving the rows out would be wrong.
  bool singular_geometry = false;
};

/// Finds the redundant rows at x. Costs one sparse factorisation, and O(m³) for each component of m rows that looks
/// dependent.
/// @param x [nx]
/// @param spread how far the second test moves the coordinates, in their unit (a tenth of a bond is a good value)
/// @throws ValueError unless the mass is diagonal
Redundancy find_redundant_rows(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               double spread);

}  // namespace tarsus
