// Islands of a step, by union-find over the trees that terms connect.
#include "tarsus/constraint/islands.hpp"

#include <algorithm>

namespace tarsus {

std::vector<int> tree_roots(const Model& model) {
  std::vector<int> roots;
  for (const Joint& joint : model.joints) roots.push_back(joint.parent < 0 ? int(roots.size()) : roots[joint.parent]);
  return roots;
}

void TermPart::take(const TermSet& all, std::span<const int> terms) {
  numbers.clear(), contacts.clear(), joints.clear(), paths.clear();
  const RowGeometry& g = all.geometry;
  for (const int t : terms) {
    numbers.add(all.terms[t], all.rows);
    if (t < g.first_joint())
      contacts.push_back(g.contacts[t]);
    else if (t < g.first_path())
      joints.push_back(g.joints[t - g.first_joint()]);
    else
      paths.push_back(g.paths[t - g.first_path()]);
  }
  numbers.take(all.free_velocity, free), numbers.take(all.y, y), numbers.take(all.impulse, impulse);
}

TermSet TermPart::set() { return {{numbers.terms, numbers.rows, free}, {contacts, joints, paths}, free, y, impulse}; }

void TermPart::put_back(const TermSet& all) const { numbers.put(y, all.y), numbers.put(impulse, all.impulse); }

JoinedTrees::JoinedTrees(const Model& model) : model_(model), root_(tree_roots(model)) {}

/// A link that the term acts on.
int JoinedTrees::link_of(const RowGeometry& geometry, int term) const {
  if (term < geometry.first_joint()) return geometry.contacts[term].a;
  if (term < geometry.first_path()) return geometry.joints[term - geometry.first_joint()].joint;
  return model_.dof_joint[geometry.paths[term - geometry.first_path()].dofs[0]];
}

void JoinedTrees::join(const RowGeometry& geometry) {
  sets_.reset(int(root_.size()));
  const auto join = [&](int a, int b) { sets_.join(root_[a], root_[b]); };
  for (const ContactRows& contact : geometry.contacts) {
    if (contact.b >= 0) join(contact.a, contact.b);
  }
  for (const PathRow& path : geometry.paths) {
    for (const int dof : path.dofs) join(model_.dof_joint[path.dofs[0]], model_.dof_joint[dof]);
  }
}

Piles::Piles(const Model& model) : joined_(model) {}

int Piles::find(const TermSet& all, int least, bool together) {
  const int n = int(all.terms.size());
  const std::vector<int>& root = joined_.roots();
  piled_.assign(n, 0);
  if (int(root.size()) < least) return 0;
  joined_.join(all.geometry), trees_.assign(root.size(), 0);
  for (int i = 0; i < int(root.size()); ++i) trees_[joined_.set_of(i)] += root[i] == i;
  int count = 0;
  for (int t = 0; t < n; ++t) {
    piled_[t] = trees_[joined_.set_of_term(all.geometry, t)] >= least;
    count += piled_[t];
  }
  if (count == 0 || !together) return count;
  std::fill(piled_.begin(), piled_.end(), 1);
  return n;
}

TermSet Piles::part(const TermSet& all, bool piles) {
  terms_.clear();
  for (int t = 0; t < int(piled_.size()); ++t) {
    if ((piled_[t] != 0) == piles) terms_.push_back(t);
  }
  part_.take(all, terms_);
  return part_.set();
}

}  // namespace tarsus
