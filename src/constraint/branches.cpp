// Groups the rows of a floating base by the branches of the tree, and allocates their matrices (branches.inl has the
// equations).
#include "constraint/branches.hpp"

#include <algorithm>

#include "tarsus/base/index.hpp"

namespace tarsus {

template <class R>
Branches<R>::Branches(const Model& model, DelassusRows<R>& rows) {
  for (int i = 0; i < model.njoint(); ++i) {
    const bool root = model.joints[i].parent < 0;
    if (root != (i == 0) || (root && !moves_freely(model.joints[i].type))) return;
  }
  for (int i = 0; i < rows.blocks(); ++i) {
    if (!rows.block(i).force) return;
  }
  find_groups(rows);
  // One group is always kept: eliminating the last one first gains nothing.
  const auto held = [](const Group& g) { return int(g.dofs.size()) >= g.nrow; };
  Group kept;
  const auto keep = [&](std::size_t i) {
    kept.members.insert(kept.members.end(), groups_[i].members.begin(), groups_[i].members.end());
    kept.nrow += groups_[i].nrow;
    groups_.erase(groups_.begin() + std::ptrdiff_t(i));
  };
  for (std::size_t i = groups_.size(); i-- > 0;) {
    if (!held(groups_[i])) keep(i);
  }
  if (kept.nrow == 0 && !groups_.empty()) {
    const auto most = std::max_element(groups_.begin(), groups_.end(),
                                       [](const Group& a, const Group& b) { return a.nrow < b.nrow; });
    keep(std::size_t(most - groups_.begin()));
  }
  if (groups_.empty()) return;
  std::sort(kept.members.begin(), kept.members.end());
  groups_.push_back(std::move(kept));
  for (std::size_t i = 0; i < groups_.size(); ++i) lay_out(rows, groups_[i], i + 1 < groups_.size());
  for (std::size_t i = 0; i + 1 < groups_.size(); ++i) branch_views_.push_back(view_of(groups_[i], rows.width(), true));
  view_.branches = int(branch_views_.size()), view_.branch = branch_views_.data();
  view_.kept = view_of(groups_.back(), rows.width(), false);
}

/// Joins blocks that share a DoF below the root.
template <class R>
void Branches<R>::find_groups(DelassusRows<R>& rows) {
  for (int i = 0; i < rows.blocks(); ++i) {
    const auto block = rows.block(i);
    Group group;
    group.members = {i}, group.nrow = block.nrow;
    group.dofs.assign(block.dofs.begin(), block.dofs.end() - 6);
    for (std::size_t k = groups_.size(); k-- > 0;) {
      const Group& other = groups_[k];
      const bool meet = std::any_of(other.dofs.begin(), other.dofs.end(), [&](int dof) {
        return std::find(group.dofs.begin(), group.dofs.end(), dof) != group.dofs.end();
      });
      if (!meet) continue;
      group.members.insert(group.members.end(), other.members.begin(), other.members.end());
      group.dofs.insert(group.dofs.end(), other.dofs.begin(), other.dofs.end());
      group.nrow += other.nrow;
      groups_.erase(groups_.begin() + std::ptrdiff_t(k));
    }
    std::sort(group.dofs.begin(), group.dofs.end());
    group.dofs.erase(std::unique(group.dofs.begin(), group.dofs.end()), group.dofs.end());
    std::sort(group.members.begin(), group.members.end());
    groups_.push_back(std::move(group));
  }
}

/// Views of the group's blocks, and the runs of DoFs that they share. Of a branch, these are the DoFs below the root,
/// which is last. Two blocks without common DoFs have an empty run, which resets their part of the matrix to zero after
/// the last factorisation.
template <class R>
void Branches<R>::lay_out(DelassusRows<R>& rows, Group& group, bool below_root) {
  int first = 0;
  for (const int i : group.members) {
    const auto block = rows.block(i);
    group.blocks.push_back(tarsus::view_of<R>(block, below_root));
    group.first.push_back(first), group.global.push_back(block.first_row);
    first += block.nrow;
  }
  const auto end_of = [&](int k) { return group.blocks[k].ndof - (below_root ? 6 : 0); };
  for (int p = 0; p < int(group.blocks.size()); ++p) {
    for (int q = p; q < int(group.blocks.size()); ++q) {
      bool some = false;
      for (RowOverlap run : rows.overlaps(group.members[p], group.members[q])) {
        run.count = std::min(run.count, end_of(p) - run.first);
        if (run.count > 0) group.overlaps.push_back({p, q, run, some}), some = true;
      }
      if (!some) group.overlaps.push_back({p, q, {0, 0, 0}, false});
    }
  }
  const std::size_t width = rows.width(), lines = group.nrow + row_width<R>(rows.width());
  group.A.assign(lines * leading_dimension(group.nrow, rows.width()) * width, R(0));
  group.lines.assign(3 * lines * width, R(0));
  std::fill_n(group.lines.begin(), 2 * lines * width, R(1));  // inverse and diagonal of padding
}

/// Leading dimension, with room for a branch's extra columns and the pack that a tile may read beyond them.
template <class R>
int Branches<R>::leading_dimension(int nrow, int width) {
  const int pack = row_width<R>(width), carried = std::max(8, pack);
  return padded(nrow, pack) + carried + pack;
}

template <class R>
RowGroupView<R> Branches<R>::view_of(Group& group, int width, bool below_root) {
  RowGroupView<R> v;
  if (group.nrow == 0) return v;
  const std::size_t line = group.lines.size() / 3;
  R* lines = group.lines.data();
  v.nrow = group.nrow;
  v.right = below_root ? padded(group.nrow, row_width<R>(width)) : group.nrow;
  v.ld = leading_dimension(group.nrow, width);
  v.blocks = int(group.blocks.size()), v.overlaps = int(group.overlaps.size());
  v.block = group.blocks.data(), v.first = group.first.data(), v.global = group.global.data();
  v.overlap = group.overlaps.data();
  v.A = group.A.data(), v.inverse = lines, v.diagonal = lines + line, v.x = lines + 2 * line;
  return v;
}

template class Branches<double>;
template class Branches<float>;

}  // namespace tarsus
