// Islands of characters (tree_islands.hpp): found by union-find, and renumbered in the order of the model, so that
// lists that are sorted by links stay so.
#include "tarsus/constraint/tree_islands.hpp"

#include <algorithm>

namespace tarsus {

constexpr int kCharacter = 7;  ///< DoFs of a character: more than those of a free body
constexpr int kKept = 30;      ///< steps that the operator of several trees is kept without use

template <class R>
TreeIslands<R>::Own::Own(const Model& whole, std::vector<int> trees, int many_trees)
    : roots(std::move(trees)), model(model_of_trees(whole, roots)), data(model), mass(model, kDenseDofs, many_trees) {}

template <class R>
TreeIslands<R>::TreeIslands(const Model& model, int least_dofs, int many_trees)
    : model_(model), many_trees_(many_trees), joined_(model) {
  const std::vector<int>& root = joined_.roots();
  int trees = 0;
  std::vector<int> dofs(root.size(), 0);
  end_.resize(root.size()), is_character_.resize(root.size());
  for (std::size_t i = 0; i < root.size(); ++i) {
    end_[root[i]] = int(i) + 1, dofs[root[i]] += model.joints[i].nv(), trees += root[i] == int(i);
    is_character_[root[i]] = dofs[root[i]] >= kCharacter;
  }
  const bool characters = std::find(is_character_.begin(), is_character_.end(), char(1)) != is_character_.end();
  possible_ = trees > 1 && characters && model.nv >= least_dofs;
  if (!possible_) return;
  own_.resize(root.size()), joined_own_.resize(root.size()), is_own_.resize(root.size()), link_.resize(root.size()),
      dof_.resize(std::size_t(model.nv));
}

template <class R>
bool TreeIslands<R>::find(const TermSet& all) {
  if (!possible_) return false;
  for (std::unique_ptr<Own>& own : joined_own_) {
    if (own && ++own->unused > kKept) own.reset();
  }
  const std::vector<int>& root = joined_.roots();
  joined_.join(all.geometry);
  // Sets of few trees, among them a character, that have a term. -1: no term; -2: no character, or too many trees
  island_of_set_.assign(root.size(), -2), trees_of_set_.assign(root.size(), 0);
  for (int i = 0; i < int(root.size()); ++i) {
    if (root[i] != i) continue;
    const int set = joined_.set_of(i);
    ++trees_of_set_[set];
    if (is_character_[i]) island_of_set_[set] = -1;
  }
  std::size_t count = 0;
  terms_.clear(), is_all_ = true;
  for (int t = 0; t < int(all.terms.size()); ++t) {
    const int set = joined_.set_of_term(all.geometry, t);
    int& island = island_of_set_[set];
    if (island == -1 && trees_of_set_[set] < many_trees_) {
      if (count == islands_.size()) islands_.emplace_back();
      islands_[count].roots.clear(), islands_[count].terms.clear();
      island = int(count++);
    }
    island >= 0 ? islands_[island].terms.push_back(t) : terms_.push_back(t);
  }
  islands_.resize(count);
  for (int i = 0; i < int(root.size()); ++i) {
    if (root[i] != i) continue;
    const int island = island_of_set_[joined_.set_of(i)];
    if (island >= 0) islands_[island].roots.push_back(i);
    is_own_[i] = island >= 0, is_all_ = is_all_ && island >= 0;
  }
  return count > 1 || (count == 1 && !is_all_);
}

template <class R>
typename TreeIslands<R>::Own& TreeIslands<R>::own(const Island& island) {
  std::unique_ptr<Own>& own = (island.roots.size() > 1 ? joined_own_ : own_)[island.roots[0]];
  if (!own || own->roots != island.roots) own = std::make_unique<Own>(model_, island.roots, many_trees_);
  own->unused = 0;
  return *own;
}

/// Renumbers the links and DoFs of the part's rows.
template <class R>
void TreeIslands<R>::renumber(Own& own) {
  int link = 0, dof = 0;
  for (const int root : own.roots) {
    for (int i = root; i < end_[root]; ++i) {
      link_[i] = link++;
      for (int k = 0; k < model_.joints[i].nv(); ++k) dof_[model_.joints[i].qvel + k] = dof++;
    }
  }
  for (ContactRows& contact : own.part.contacts) {
    contact.a = link_[contact.a];
    if (contact.b >= 0) contact.b = link_[contact.b];
  }
  for (JointRows& joint : own.part.joints) joint.joint = link_[joint.joint];
  own.path_dofs.clear();
  for (const PathRow& path : own.part.paths) {
    for (const int v : path.dofs) own.path_dofs.push_back(dof_[v]);
  }
  const int* dofs = own.path_dofs.data();
  for (PathRow& path : own.part.paths) {
    path.dofs = {dofs, path.dofs.size()}, dofs += path.dofs.size();
    if (path.on_link >= 0) path.on_link = link_[path.on_link];
  }
}

/// Gathers an island's numbers, unless it has been solved with the same ones in this step.
template <class R>
typename TreeIslands<R>::Own& TreeIslands<R>::take(int i, const TermSet& all, const BasicData<R>& data,
                                                   In<R> joint_inertia, In<R> joint_force, bool again) {
  Own& own = this->own(islands_[i]);
  part_.take(all, islands_[i].terms), inertia_.clear(), force_.clear();
  for (const int root : own.roots) {
    const Joint &first = model_.joints[root], &last = model_.joints[end_[root] - 1];
    const int begin = first.qvel, end = last.qvel + last.nv();
    inertia_.insert(inertia_.end(), &joint_inertia[begin], &joint_inertia[begin] + (end - begin));
    if (!joint_force.empty()) force_.insert(force_.end(), &joint_force[begin], &joint_force[begin] + (end - begin));
  }
  const PartOfTerms &now = part_.numbers, &last = own.part.numbers;
  own.is_solved = again && own.is_solved && now.terms == last.terms && now.rows == last.rows &&
                  part_.free == own.part.free && inertia_ == own.inertia && force_ == own.force;
  if (own.is_solved) {
    own.part.numbers.row = now.row;  // an island before this one may have more terms than before
    return own;
  }
  std::swap(own.part, part_), std::swap(own.inertia, inertia_), std::swap(own.force, force_);
  renumber(own);
  own.velocity.assign(std::size_t(own.model.nv), R(0));
  LinkState<R>* to = own.data.links();
  for (const int root : own.roots) to = std::copy(data.links() + root, data.links() + end_[root], to);
  return own;
}

template <class R>
void TreeIslands<R>::put_back(const Own& own, const TermSet& all, Out<R> velocity) const {
  own.part.put_back(all);
  const R* from = own.velocity.data();
  for (const int root : own.roots) {
    const Joint& last = model_.joints[end_[root] - 1];
    for (int v = model_.joints[root].qvel; v < last.qvel + last.nv(); ++v) velocity[v] += *from++;
  }
}

template <class R>
TermSet TreeIslands<R>::rest(const TermSet& all) {
  part_.take(all, terms_), velocity_.assign(std::size_t(model_.nv), R(0));
  return part_.set();
}

template <class R>
void TreeIslands<R>::put_rest(const TermSet& all, Out<R> velocity) const {
  part_.put_back(all);
  const std::vector<int>& root = joined_.roots();
  for (int v = 0; v < model_.nv; ++v) {
    if (!is_own_[root[model_.dof_joint[v]]]) velocity[v] += velocity_[v];
  }
}

template class TreeIslands<double>;
template class TreeIslands<float>;

}  // namespace tarsus
