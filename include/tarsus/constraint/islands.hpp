// Islands of a step: sets of trees that contacts and tendons join. The impulses of one island do not depend on those of
// another. A step with equality constraints is not split, since these are part of every solve.
//
// Large contact islands, of many trees, are solved by sweeps (Piles), the others by Newton's method. Islands of
// characters are solved one by one, each over its own links (tree_islands.hpp).
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
  std::span<double> free;        ///< [row] free_velocity, to be changed
  std::span<double> y, impulse;  ///< [row], in and out
};

/// Some of a step's terms, renumbered, with copies of their numbers.
struct TermPart {
  PartOfTerms numbers;
  std::vector<ContactRows> contacts;
  std::vector<JointRows> joints;
  std::vector<PathRow> paths;
  std::vector<double> free, y, impulse;

  /// @param terms ascending
  void take(const TermSet& all, std::span<const int> terms);
  /// Valid until the next take().
  TermSet set();
  /// Copies y and the impulses back.
  void put_back(const TermSet& all) const;
};

/// Sets of trees that terms join.
class JoinedTrees {
 public:
  explicit JoinedTrees(const Model& model);
  void join(const RowGeometry& geometry);
  /// The root of the first tree of the set that a link's, or a term's, tree is in.
  int set_of(int link) { return sets_.find(root_[std::size_t(link)]); }
  int set_of_term(const RowGeometry& geometry, int term) { return set_of(link_of(geometry, term)); }
  const std::vector<int>& roots() const { return root_; }  ///< [link]

 private:
  int link_of(const RowGeometry& geometry, int term) const;
  const Model& model_;
  std::vector<int> root_;  ///< [link] root of its tree
  UnionFind sets_;         ///< of roots
};

/// Large contact islands.
class Piles {
 public:
  explicit Piles(const Model& model);
  /// @param least number of trees of a large island
  /// @param together one large island makes all terms large: bilateral rows are part of every solve
  /// @return number of terms in large islands
  int find(const TermSet& all, int least, bool together);
  /// The terms in large islands, or the others. Valid until the next call.
  TermSet part(const TermSet& all, bool piles);
  void put_back(const TermSet& all) const { part_.put_back(all); }

 private:
  JoinedTrees joined_;
  std::vector<int> trees_;   ///< [least root of a set] number of its trees
  std::vector<char> piled_;  ///< [term]
  std::vector<int> terms_;   ///< of the last part()
  TermPart part_;
};

}  // namespace tarsus
