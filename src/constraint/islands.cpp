// Islands of a step, by union-find over the trees that terms connect.
#include "tarsus/constraint/islands.hpp"

#include <algorithm>

namespace tarsus {

std::vector<int> tree_roots(const Model& model) {
  std::vector<int> roots;
  for (const Joint& joint : model.joints) roots.push_back(joint.parent < 0 ? int(roots.size()) : roots[joint.parent]);
  return roots;
}

Islands::Islands(const Model& model) : model_(model), root_(tree_roots(model)) {}

/// A link that the term acts on.
int Islands::link_of(const RowGeometry& geometry, int term) const {
  if (term < geometry.first_joint()) return geometry.contacts[term].a;
  if (term < geometry.first_path()) return geometry.joints[term - geometry.first_joint()].joint;
  return model_.dof_joint[geometry.paths[term - geometry.first_path()].dofs[0]];
}

int Islands::find_piles(const TermSet& all, int least, bool together) {
  const int n = int(all.terms.size());
  piled_.assign(n, 0);
  if (int(root_.size()) < least) return 0;
  sets_.reset(int(root_.size())), trees_.assign(root_.size(), 0);
  const auto join = [&](int a, int b) { sets_.join(root_[a], root_[b]); };
  for (const ContactRows& contact : all.geometry.contacts) {
    if (contact.b >= 0) join(contact.a, contact.b);
  }
  for (const PathRow& path : all.geometry.paths) {
    for (const int dof : path.dofs) join(model_.dof_joint[path.dofs[0]], model_.dof_joint[dof]);
  }
  for (int i = 0; i < int(root_.size()); ++i) trees_[sets_.find(i)] += root_[i] == i;
  int count = 0;
  for (int t = 0; t < n; ++t) {
    piled_[t] = trees_[sets_.find(root_[link_of(all.geometry, t)])] >= least;
    count += piled_[t];
  }
  if (count == 0 || !together) return count;
  std::fill(piled_.begin(), piled_.end(), 1);
  return n;
}

TermSet Islands::part(const TermSet& all, bool piles) {
  part_.clear(), contacts_.clear(), joints_.clear(), paths_.clear();
  const RowGeometry& g = all.geometry;
  for (std::size_t t = 0; t < all.terms.size(); ++t) {
    if ((piled_[t] != 0) != piles) continue;
    part_.add(all.terms[t], all.rows);
    if (int(t) < g.first_joint())
      contacts_.push_back(g.contacts[t]);
    else if (int(t) < g.first_path())
      joints_.push_back(g.joints[t - g.first_joint()]);
    else
      paths_.push_back(g.paths[t - g.first_path()]);
  }
  part_.take(all.free_velocity, free_), part_.take(all.y, y_), part_.take(all.impulse, impulse_);
  return {{part_.terms, part_.rows, free_}, {contacts_, joints_, paths_}, y_, impulse_};
}

void Islands::put_back(const TermSet& all) const { part_.put(y_, all.y), part_.put(impulse_, all.impulse); }

}  // namespace tarsus
