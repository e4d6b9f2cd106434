// Islands of characters, each solved as a problem of its own over the links of its trees. An island then takes as many
// iterations as it needs itself, and its linear problems are those of a world without the others (decision 527).
//
// A character is a tree of more than six DoFs. Smaller ones, such as free bodies, that touch no character stay
// together, and so do islands of many trees.
#pragma once

#include <memory>

#include "tarsus/constraint/islands.hpp"
#include "tarsus/constraint/step_status.hpp"
#include "tarsus/constraint/tree_operator.hpp"

namespace tarsus {

template <class R>
class TreeIslands {
 public:
  /// @param least_dofs models with fewer DoFs are solved as a whole
  /// @param many_trees islands of as many trees stay with the rest
  TreeIslands(const Model& model, int least_dofs, int many_trees);

  /// Finds the islands. Valid until the next call.
  /// @return whether some can be solved on their own
  bool find(const TermSet& all);
  int count() const { return int(islands_.size()); }

  /// The mass and the forces of one problem.
  struct Problem {
    TermSet set;
    TreeOperator<R>& mass;
    BasicData<R>& data;
    In<R> joint_inertia, joint_force;
    Out<R> velocity;  ///< changes are added
  };
  struct Solution {
    StepStatus status = StepStatus::converged;
    double residual = 0;
    int iterations = 0;
  };
  /// Solves island i and writes y, the impulses and the velocities to those of the model.
  /// @param data, joint_inertia, joint_force as for TreeOperator::begin()
  /// @param again the step has been solved before; an island with the same terms keeps its solution
  /// @param solve (problem, iterations spent in this step) -> Solution
  /// @return with the iterations of all solves of this step
  template <class Solve>
  Solution solve(int i, const TermSet& all, const BasicData<R>& data, In<R> joint_inertia, In<R> joint_force,
                 bool again, Out<R> velocity, const Solve& solve) {
    Own& own = take(i, all, data, joint_inertia, joint_force, again);
    if (!own.is_solved) {
      const int spent = again ? own.solution.iterations : 0;
      own.solution = solve(Problem{own.part.set(), own.mass, own.data, own.inertia, own.force, own.velocity}, spent);
      own.solution.iterations += spent, own.is_solved = true;
    }
    put_back(own, all, velocity);
    return own.solution;
  }

  /// Whether all trees are in such islands.
  bool is_all() const { return is_all_; }
  /// The terms of no such island, over the model's DoFs. Valid until the next call.
  TermSet rest(const TermSet& all);
  /// Zero after rest(), for the model's changes of velocity.
  Out<R> velocity() { return velocity_; }
  /// Writes y and the impulses of rest() back, and adds the changes of velocity of the trees in no such island.
  void put_rest(const TermSet& all, Out<R> velocity) const;

 private:
  /// Some trees as a model of their own.
  struct Own {
    std::vector<int> roots;
    Model model;
    BasicData<R> data;
    TreeOperator<R> mass;
    TermPart part;
    AlignedVector<R> inertia, force, velocity;
    std::vector<int> path_dofs;  ///< of part's paths
    Solution solution;
    bool is_solved = false;
    int unused = 0;  ///< number of find() since it was an island
    Own(const Model& whole, std::vector<int> trees, int many_trees);
  };
  struct Island {
    std::vector<int> roots, terms;
  };
  Own& own(const Island& island);
  void renumber(Own& own);
  Own& take(int i, const TermSet& all, const BasicData<R>& data, In<R> joint_inertia, In<R> joint_force, bool again);
  void put_back(const Own& own, const TermSet& all, Out<R> velocity) const;

  const Model& model_;
  int many_trees_;
  bool possible_ = false;           ///< there are several trees, among them characters
  std::vector<char> is_character_;  ///< [root]
  JoinedTrees joined_;
  std::vector<int> end_;  ///< [root] end of the tree's links
  std::vector<int> island_of_set_, trees_of_set_;
  std::vector<Island> islands_;
  std::vector<char> is_own_;  ///< [root] whether the tree is in one of them
  bool is_all_ = false;
  std::vector<int> terms_;  ///< of none of them
  std::vector<std::unique_ptr<Own>> own_,
      joined_own_;  ///< [root] the tree; the last island of several that began with it
  TermPart part_;   ///< of rest(); scratch
  AlignedVector<R> inertia_, force_, velocity_;
  std::vector<int> link_, dof_;  ///< [link], [dof] of the model: index in the island
};

extern template class TreeIslands<double>;
extern template class TreeIslands<float>;

}  // namespace tarsus
