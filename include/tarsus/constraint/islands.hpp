// Islands of a step: sets of trees that contacts and tendons join. The impulses of one island do not depend on those of
// another. Large contact islands, of many trees, are solved by sweeps, the others by Newton's method. A step with
// equality constraints is not split, since these are part of every solve.
#pragma once

#include <vector>

#include "tarsus/base/union_find.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// [link] the first link of its tree.
std::vector<int> tree_roots(const Model& model);

/// The terms of one solve, and where their rows act.
struct TermSet : StepProblem {
  RowGeometry geometry;
  std::span<double> y, impulse;  ///< [row], in and out
};

class Islands {
 public:
  explicit Islands(const Model& model);

  /// Finds the large islands.
  /// @param least number of trees of a large island
  /// @param together one large island makes all terms large: bilateral rows are part of every solve
  /// @return number of terms in large islands
  int find_piles(const TermSet& all, int least, bool together);
  /// The terms in large islands, or the others, renumbered, with copies of y and the impulses. Valid until the next
  /// call.
  TermSet part(const TermSet& all, bool piles);
  /// Copies y and the impulses of the last part() back.
  void put_back(const TermSet& all) const;

 private:
  int link_of(const RowGeometry& geometry, int term) const;

  const Model& model_;
  std::vector<int> root_;    ///< [link] root of its tree
  UnionFind sets_;           ///< of roots
  std::vector<int> trees_;   ///< [least root of a set] number of its trees
  std::vector<char> piled_;  ///< [term]
  // Of the last part():
  PartOfTerms part_;
  std::vector<ContactRows> contacts_;
  std::vector<JointRows> joints_;
  std::vector<PathRow> paths_;
  std::vector<double> free_, y_, impulse_;
};

}  // namespace tarsus
