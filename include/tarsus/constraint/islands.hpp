// Islands of a step: trees that contacts and tendons join. What islands carry does not depend on one another. Piles,
// islands of many trees, are solved by sweeps, the others by Newton's method. With equality constraints, which are part
// of every solve, a step stays whole.
#pragma once

#include <vector>

#include "tarsus/base/union_find.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// [link] the first link of its tree.
std::vector<int> tree_roots(const Model& model);

/// Terms of one solve, and where their rows act.
struct TermSet : StepProblem {
  RowGeometry geometry;
  std::span<double> y, impulse;  ///< [row], in and out
};

class Islands {
 public:
  explicit Islands(const Model& model);

  /// @param least trees of a pile @param together one island decides for all: bilateral rows are of every solve
  /// @return terms in piles, of all
  int find_piles(const TermSet& all, int least, bool together);
  /// Those in piles, or the others, numbered anew; their y and impulses are copies. Until the next call.
  TermSet part(const TermSet& all, bool piles);
  /// y and impulses of the last part() back to where they are from.
  void put_back(const TermSet& all) const;

 private:
  int link_of(const RowGeometry& geometry, int term) const;

  const Model& model_;
  std::vector<int> root_;    ///< [link] of its tree
  UnionFind sets_;           ///< of roots
  std::vector<int> trees_;   ///< [least root of a set] its trees
  std::vector<char> piled_;  ///< [term]
  // Of the last part().
  PartOfTerms part_;
  std::vector<ContactRows> contacts_;
  std::vector<JointRows> joints_;
  std::vector<PathRow> paths_;
  std::vector<double> free_, y_, impulse_;
};

}  // namespace tarsus
