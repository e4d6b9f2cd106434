// Which rows of a set can be eliminated branch by branch, and memory for it. See branches.inl.
#pragma once

#include <vector>

#include "constraint/branches_view.hpp"
#include "tarsus/dynamics/delassus.hpp"

namespace tarsus {

template <class R>
class Branches {
 public:
  /// Takes all blocks of `rows`; none may be added or moved afterwards. Elimination applies if the model is one tree
  /// with a free root, every block is a force on links, and the rows form at least two groups that meet at the root
  /// alone. At least one group must have no more rows than DoFs below the root.
  Branches(const Model& model, DelassusRows<R>& rows);

  bool apply() const { return view_.branches > 0; }
  const BranchesView<R>& view() const { return view_; }

 private:
  struct Group {
    std::vector<int> members;  // indices of blocks in the set
    int nrow = 0;
    std::vector<int> dofs;  // below the root, without repetition
    std::vector<RowBlockView<R>> blocks;
    std::vector<int> first, global;
    std::vector<GroupOverlap> overlaps;
    AlignedVector<R> A, lines;  // lines: inverse, diagonal, x
  };
  void find_groups(DelassusRows<R>& rows);
  void lay_out(DelassusRows<R>& rows, Group& group, bool below_root);
  static int leading_dimension(int nrow, int width);
  static RowGroupView<R> view_of(Group& group, int width, bool below_root);

  std::vector<Group> groups_;  // the kept one is last, perhaps empty
  std::vector<RowGroupView<R>> branch_views_;
  BranchesView<R> view_;
};

extern template class Branches<double>;
extern template class Branches<float>;

}  // namespace tarsus
