#include "tarsus/dynamics/coupled.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "dynamics/kernel_table.hpp"
#include "tarsus/base/union_find.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/model/model.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

using Block = CoupledTrees::Block;

/// x += r × y for three numbers `stride` apart: moves moments to the parent's origin.
void add_cross(const Vec3d& r, double* x, const double* y, int stride) {
  const double a = y[0], b = y[stride], c = y[2 * stride];
  x[0] += r.y * c - r.z * b, x[stride] += r.z * a - r.x * c, x[2 * stride] += r.x * b - r.y * a;
}

/// Sets of trees joined by the row nodes that have been eliminated.
struct JoinedTrees {
  UnionFind sets;
  std::vector<int> spare;  ///< [representative of a set] its eliminated floating trees, minus its nodes

  explicit JoinedTrees(int trees) : sets(trees), spare(std::size_t(trees), 0) {}
  int spare_of(std::span<const int> trees) {
    int sum = 0;
    for (std::size_t k = 0; k < trees.size(); ++k) {
      const int set = sets.find(trees[k]);
      const auto same = [&](int other) { return sets.find(other) == set; };
      if (std::none_of(trees.begin(), trees.begin() + std::ptrdiff_t(k), same)) sum += spare[std::size_t(set)];
    }
    return sum;
  }
  void join(std::span<const int> trees) {
    const int sum = spare_of(trees);
    for (const int tree : trees) sets.join(trees[0], tree);
    spare[std::size_t(sets.find(trees[0]))] = sum - 1;
  }
};

Block block_of(const ArticulatedInertia<double>& A) {
  const Sym3d &I = A.I, &M = A.M;
  const Mat3d& H = A.H;
  return {I.xx, I.xy, I.xz, H.xx, H.xy, H.xz, 0, 0,  //
          I.xy, I.yy, I.yz, H.yx, H.yy, H.yz, 0, 0,  //
          I.xz, I.yz, I.zz, H.zx, H.zy, H.zz, 0, 0,  //
          H.xx, H.yx, H.zx, M.xx, M.xy, M.xz, 0, 0,  //
          H.xy, H.yy, H.zy, M.xy, M.yy, M.yz, 0, 0,  //
          H.xz, H.yz, H.zz, M.xz, M.yz, M.zz, 0, 0};
}

}  // namespace

void RowNodes::add_link(int link) {
  const auto first = links_.begin() + first_link_.back();
  if (std::find(first, links_.end(), link) == links_.end()) links_.push_back(link);
}

void RowNodes::add(int nrow) { first_row_.push_back(rows() + nrow), first_link_.push_back(int(links_.size())); }

CoupledTrees::CoupledTrees(const Model& model) : links_(model.njoint()), link_(std::size_t(links_)) {
  for (int i = 0; i < links_; ++i) {
    const Joint& joint = model.joints[std::size_t(i)];
    const int root = joint.parent < 0 ? i : link_[std::size_t(joint.parent)].root;
    link_[std::size_t(i)] = {joint.parent, root, qvel_count(joint.type), joint.qvel, turns_on_axis(joint.type)};
  }
  add_nodes();
}

CoupledTrees::~CoupledTrees() = default;

/// Adds the row nodes as links with one, three or six DoFs, which cover their rows.
void CoupledTrees::add_nodes() {
  link_.resize(std::size_t(links_));
  for (int e = 0; e < rows_.size(); ++e) {
    const int n = rows_.nrow(e);
    link_.push_back({-1, -1, n == 1 ? 1 : n <= 3 ? 3 : 6, -1, true, {1, 0, 0}, {0, 0, 0}, identity3<double>()});
  }
  own_.resize(link_.size()), inverse_.resize(link_.size()), order_.adjacent.resize(link_.size());
  for (std::vector<double>* v : {&force_, &joint_force_, &reduced_}) v->resize(6 * link_.size());
  for (AlignedVector<double>* v : {&motion_, &work_}) v->resize(8 * link_.size());
}

const CoupledTrees::Neighbour* CoupledTrees::find(int a, int b) const {
  for (const Neighbour& n : order_.adjacent[std::size_t(a)]) {
    if (n.link == b) return &n;
  }
  return nullptr;
}

/// @return index of the block B_ab
int CoupledTrees::connect(int a, int b) {
  if (a == b) return a;
  if (const Neighbour* known = find(a, b)) return known->block;
  const int block = order_.blocks;
  order_.blocks += 2;
  order_.adjacent[std::size_t(a)].push_back({b, block}), order_.adjacent[std::size_t(b)].push_back({a, block ^ 1});
  return block;
}

bool CoupledTrees::analyze(std::span<const LinkPair> pairs, const RowNodes& rows, double most) {
  const bool same = rows == rows_;
  if (order_.known && same && std::equal(pairs.begin(), pairs.end(), pairs_.begin(), pairs_.end()))
    return order_.operations <= most;
  order_.known = false, order_.operations = 0;
  pairs_.assign(pairs.begin(), pairs.end());
  if (!same) rows_ = rows, add_nodes();
  for (std::vector<Neighbour>& list : order_.adjacent) list.clear();
  order_.blocks = int(link_.size() + link_.size() % 2);  // pairs begin at an even index
  order_.block_of_pair.clear(), order_.block_of_row.clear(), order_.steps.clear(), order_.neighbour.clear(),
      order_.pair_block.clear(), order_.panel_size = 0;
  for (const LinkPair& pair : pairs_) order_.block_of_pair.push_back(connect(pair[0], pair[1]));
  for (int e = 0; e < rows_.size(); ++e) {
    for (const int link : rows_.links(e)) order_.block_of_row.push_back(connect(link, links_ + e));
  }

  std::vector<int> children(link_.size(), 0);
  for (const Link& joint : link_) {
    if (joint.parent >= 0) ++children[std::size_t(joint.parent)];
  }
  using Candidate = std::array<int, 2>;  // number of neighbours, then the link's index; the larger index first
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> ready;
  std::vector<int> queued(link_.size(), -1);  // queued with this many neighbours; -2: eliminated
  JoinedTrees joined(links_);
  std::vector<int> roots;
  const auto trees_of = [&](int node) -> std::span<const int> {
    roots.clear();
    for (const int link : rows_.links(node - links_)) roots.push_back(link_[std::size_t(link)].root);
    return roots;
  };
  const auto may_go = [&](int link) {
    if (link < links_) return children[std::size_t(link)] == 0;
    const std::vector<Neighbour>& others = order_.adjacent[std::size_t(link)];
    return joined.spare_of(trees_of(link)) > 0 ||
           std::all_of(others.begin(), others.end(), [&](const Neighbour& n) { return n.link >= links_; });
  };
  const auto queue = [&](int link) {
    const int degree = int(order_.adjacent[std::size_t(link)].size());
    if (queued[std::size_t(link)] == -2 || queued[std::size_t(link)] == degree || !may_go(link)) return;
    queued[std::size_t(link)] = degree;
    ready.push({degree, -link});
  };
  for (int i = 0; i < int(link_.size()); ++i) queue(i);
  while (!ready.empty()) {
    const auto [degree, negative] = ready.top();
    const int link = -negative;
    ready.pop();
    if (queued[std::size_t(link)] != degree) continue;
    if (!may_go(link)) {  // another node has taken its tree
      queued[std::size_t(link)] = -1;
      continue;
    }
    queued[std::size_t(link)] = -2;
    eliminate(link);
    const Step& step = order_.steps.back();
    const Link& joint = link_[std::size_t(link)];
    order_.operations += 36.0 * step.count * step.count * joint.dofs;
    if (order_.operations > most) return false;
    if (joint.parent >= 0) --children[std::size_t(joint.parent)];
    if (link >= links_) joined.join(trees_of(link));
    if (joint.root == link && joint.dofs == 6) ++joined.spare[std::size_t(joined.sets.find(link))];
    for (int k = 0; k < step.count; ++k) queue(order_.neighbour[std::size_t(step.first + k)].link);
  }
  blocks_.resize(std::size_t(order_.blocks));
  left_.assign(order_.panel_size, 0.0), right_.assign(order_.panel_size, 0.0);
  return order_.known = true;
}

/// Updates the graph: the links that the elimination of this link's joint couples, and their blocks.
void CoupledTrees::eliminate(int link) {
  const Link& joint = link_[std::size_t(link)];
  Step step{link, int(order_.neighbour.size()), 0, order_.pair_block.size(), order_.panel_size, -1};
  for (const Neighbour& n : order_.adjacent[std::size_t(link)]) {
    if (n.link == joint.parent)
      step.parent_block = n.block;
    else
      order_.neighbour.push_back(n);
    std::erase_if(order_.adjacent[std::size_t(n.link)], [&](const Neighbour& back) { return back.link == link; });
  }
  if (joint.parent >= 0) order_.neighbour.push_back({joint.parent, step.parent_block});
  step.count = int(order_.neighbour.size()) - step.first;
  for (int x = 0; x < step.count; ++x) {
    for (int y = 0; y < step.count; ++y)
      order_.pair_block.push_back(connect(order_.neighbour[std::size_t(step.first + x)].link,
                                          order_.neighbour[std::size_t(step.first + y)].link));
  }
  order_.panel_size += std::size_t(8 * step.count * joint.dofs);
  order_.steps.push_back(step);
}

template <class R>
void CoupledTrees::begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const int> stiffness_of_link,
                         std::span<const LinkStiffness<R>> stiffnesses) {
  for (Block& block : blocks_) block.fill(0);
  std::fill(force_.begin(), force_.end(), 0.0), std::fill(joint_force_.begin(), joint_force_.end(), 0.0);
  for (int e = 0; e < rows_.size(); ++e) {
    own_of(e).fill(0);
    for (int row = 0; row < dofs_of(e); ++row) set_row(e, row, 1);
  }
  for (std::size_t i = 0; i < std::size_t(links_); ++i) {
    const LinkState<R>& state = data.links()[i];
    Link& link = link_[i];
    link.R = widen(state.R), link.offset = widen(state.r), link.axis = link.R.column_z();
    ArticulatedInertia<double> own =
        articulated(RigidInertia<double>{double(state.Ic.mass), widen(state.Ic.h), widen(state.Ic.I)});
    std::array<double, 36>& K = own_[i];
    K.fill(0);
    for (int d = 0; d < link.dofs; ++d) {  // a free joint's linear numbers come first in qvel and last here
      const int of = link.dofs == 6 ? (d < 3 ? 3 : d - 3) : 0;
      K[std::size_t(d * (link.dofs + 1))] = double(joint_inertia[std::size_t(link.qvel + of)]);
    }
    if (stiffness_of_link[i] >= 0) {
      const LinkStiffness<R>& stiffness = stiffnesses[std::size_t(stiffness_of_link[i])];
      own.I += widen(stiffness.I), own.H = own.H + widen(stiffness.H), own.M += widen(stiffness.M);
      const Sym3d C = widen(stiffness.joint);
      const double tensor[9] = {C.xx, C.xy, C.xz, C.xy, C.yy, C.yz, C.xz, C.yz, C.zz};
      for (std::size_t k = 0; link.dofs < 6 && k < std::size_t(link.dofs * link.dofs); ++k) K[k] += tensor[k];
      put3(&force_[6 * i], widen(stiffness.n)), put3(&force_[6 * i + 3], widen(stiffness.f));
      put3(&joint_force_[6 * i], widen(stiffness.joint_force));
    }
    blocks_[i] = block_of(own);
  }
}

void CoupledTrees::add_to_row(int node, int row, int link, const Force<double>& wrench, double share) {
  const std::span<const int> links = rows_.links(node);
  const std::size_t k = std::size_t(std::find(links.begin(), links.end(), link) - links.begin());
  const int block = order_.block_of_row[std::size_t(rows_.first_link(node)) + k];
  double *pull = blocks_[std::size_t(block)].data() + row, *look = blocks_[std::size_t(block ^ 1)].data() + 8 * row;
  for (int c = 0; c < 6; ++c) {
    const double at = c < 3 ? wrench.n[c] : wrench.f[c - 3];
    pull[8 * c] -= at, look[c] += share * at;
  }
}

/// Calls add(link, force) for the joint's link and its parent, which bears the opposite force.
/// @param along numbers along the joint's DoFs, in qvel's axes
template <class Add>
void CoupledTrees::joint_forces(int link, const double* along, const Add& add) const {
  const Link& joint = link_[std::size_t(link)];
  Force<double> f{{0, 0, 0}, {0, 0, 0}};
  if (joint.dofs == 1) {
    (joint.turns ? f.n : f.f) = joint.axis * along[0];
  } else {
    f.n = joint.R * get3(along + joint.dofs - 3);
    if (joint.dofs == 6) f.f = get3(along);
  }
  add(link, f);
  if (joint.parent >= 0) add(joint.parent, Force<double>{-(f.n + cross(joint.offset, f.f)), -f.f});
}

void CoupledTrees::add_joint_to_row(int node, int row, int link, const double* along, double share) {
  joint_forces(link, along, [&](int at, const Force<double>& f) { add_to_row(node, row, at, f, share); });
}

void CoupledTrees::add_joint(LinkRows& rows, int link, const double* along) const {
  joint_forces(link, along, [&](int at, const Force<double>& f) { rows.add(at, f); });
}

void CoupledTrees::factor() {
  const KernelTable<double>& kernels = kernel_table<double>(1);
  for (const Step& step : order_.steps) {
    const Link& joint = link_[std::size_t(step.link)];
    static_assert(sizeof(Neighbour) == 2 * sizeof(int));
    const Elimination<double> e{joint.dofs,
                                step.count,
                                joint.parent >= 0,
                                reinterpret_cast<const int*>(order_.neighbour.data() + step.first),
                                order_.pair_block.data() + step.pairs,
                                step.link,
                                joint.parent,
                                step.parent_block,
                                {joint.axis.x, joint.axis.y, joint.axis.z},
                                joint.turns ? 0 : 3,
                                {joint.offset.x, joint.offset.y, joint.offset.z},
                                own_[std::size_t(step.link)].data(),
                                inverse_[std::size_t(step.link)].data(),
                                left_.data() + step.panel,
                                right_.data() + step.panel};
    kernels.eliminate(e, blocks_.data()->data());
  }
}

/// Sᵀ f + Q of a link, in the order of S: a joint's numbers in world axes, angular before linear.
std::array<double, 6> CoupledTrees::along_joint(std::size_t link, const double* f, bool with_forces,
                                                const double* Q) const {
  const Link& joint = link_[link];
  Vec3d angular = get3(f), linear = get3(f + 3);
  const Vec3d extra = with_forces ? get3(&joint_force_[6 * link]) : Vec3d{0, 0, 0};
  if (joint.dofs == 1) return {dot(joint.axis, joint.turns ? angular : linear) + extra.x + (Q ? Q[0] : 0)};
  if (Q) angular += joint.R * get3(Q + joint.dofs - 3);
  if (Q && joint.dofs == 6) linear += get3(Q);
  angular += extra;
  return {angular.x, angular.y, angular.z, linear.x, linear.y, linear.z};
}

/// D⁻¹ (Sᵀ f + Q) of each link, including the forces propagated from the links eliminated before it.
void CoupledTrees::inward(bool with_forces, std::span<const double> joint_force, std::span<const double> x) {
  const auto is_zero = [](double number) { return number == 0; };
  const KernelTable<double>& kernels = kernel_table<double>(1);
  std::fill(work_.begin(), work_.end(), 0.0);
  for (std::size_t i = 0; with_forces && i < link_.size(); ++i) std::copy_n(&force_[6 * i], 6, &work_[8 * i]);
  for (int e = 0; e < rows_.size(); ++e)
    std::copy_n(&x[std::size_t(first_row() + rows_.first_row(e))], rows_.nrow(e), &work_[8 * node_of(e)]);
  for (const Step& step : order_.steps) {
    const std::size_t link = std::size_t(step.link);
    const Link& joint = link_[link];
    double* f = &work_[8 * link];
    const std::array<double, 6> g = along_joint(
        link, f, with_forces, joint_force.empty() || joint.qvel < 0 ? nullptr : &joint_force[std::size_t(joint.qvel)]);
    double* z = &reduced_[6 * link];
    if (!with_forces && std::all_of(f, f + 6, is_zero) && std::all_of(g.begin(), g.begin() + joint.dofs, is_zero)) {
      std::fill_n(z, joint.dofs, 0.0);  // of a row, which affects few links
      continue;
    }
    kernels.hand_on(coupled(step), g.data(), z, work_.data());
    if (joint.parent < 0) continue;
    double* to = &work_[8 * std::size_t(joint.parent)];
    add_cross(joint.offset, f, f + 3, 1);
    for (int c = 0; c < 6; ++c) to[c] += f[c];
  }
}

CoupledJoint<double> CoupledTrees::coupled(const Step& step) const {
  return {link_[std::size_t(step.link)].dofs,
          step.count,
          reinterpret_cast<const int*>(order_.neighbour.data() + step.first),
          inverse_[std::size_t(step.link)].data(),
          left_.data() + step.panel,
          right_.data() + step.panel};
}

void CoupledTrees::solve(bool with_forces, std::span<const double> joint_force, std::span<double> x) {
  const KernelTable<double>& kernels = kernel_table<double>(1);
  inward(with_forces, joint_force, x);
  for (std::size_t e = order_.steps.size(); e-- > 0;) {
    const std::size_t link = std::size_t(order_.steps[e].link);
    double* q = &reduced_[6 * link];
    kernels.take_in(coupled(order_.steps[e]), motion_.data(), q);
    move(link, q);
  }
  std::copy_n(reduced_.begin(), first_row(), x.begin());
  for (int e = 0; e < rows_.size(); ++e)
    std::copy_n(&reduced_[6 * node_of(e)], rows_.nrow(e), &x[std::size_t(first_row() + rows_.first_row(e))]);
}

/// Right sides of gram(), [link][6][8].
struct CoupledTrees::Columns {
  std::vector<CoupledColumns<double>> steps;
  AlignedVector<double> force, motion;
  std::vector<char> reached;
};

void CoupledTrees::gram(const LinkRows& rows, double* A, int stride) {
  const KernelTable<double>& kernels = kernel_table<double>(1);
  if (!columns_) columns_ = std::make_unique<Columns>();
  auto& [steps, force, motion, reached] = *columns_;
  steps.clear();
  for (const Step& step : order_.steps) {
    const Link& joint = link_[std::size_t(step.link)];
    steps.push_back({coupled(step),
                     step.link,
                     joint.parent,
                     {joint.axis.x, joint.axis.y, joint.axis.z},
                     joint.turns ? 0 : 3,
                     {joint.offset.x, joint.offset.y, joint.offset.z},
                     {}});
  }
  force.assign(48 * link_.size(), 0.0), motion.resize(force.size()), reached.resize(link_.size());
  for (int column = 0, arm = 0; column < stride; column += 8) {
    std::fill(reached.begin(), reached.end(), 0);
    for (int lane = 0; lane < 8 && column + lane < rows.size(); ++lane) {
      for (; arm < rows.end[std::size_t(column + lane)]; ++arm) {
        const auto& [link, f] = rows.arms[std::size_t(arm)];
        for (std::size_t c = 0; c < 6; ++c) force[48 * std::size_t(link) + 8 * c + std::size_t(lane)] += f[c];
        reached[std::size_t(link)] = 1;
      }
    }
    kernels.solve_columns(steps.data(), int(steps.size()), reached.data(), force.data(), motion.data());
    kernels.along_columns(rows.arms.data(), rows.end.data(), rows.size(), motion.data(), A + column, stride);
  }
}

/// X v_p + S q.
void CoupledTrees::move(std::size_t link, const double* q) {
  const Link& joint = link_[link];
  double* const motion = &motion_[8 * link];
  Motion<double> v{};
  if (joint.parent >= 0) {
    const double* parent = &motion_[8 * std::size_t(joint.parent)];
    v = shift(Motion<double>{get3(parent), get3(parent + 3)}, joint.offset);
  }
  if (joint.dofs == 1)
    (joint.turns ? v.w : v.v) += joint.axis * q[0];
  else
    v.w += get3(q);
  if (joint.dofs == 6) v.v += get3(q + 3);
  put3(motion, v.w), put3(motion + 3, v.v);
}

template <class R>
void CoupledTrees::finish(std::span<const double> x, BasicData<R>& data, Out<R> velocity) {
  for (std::size_t link = 0; link < std::size_t(links_); ++link) {
    const Link& joint = link_[link];
    const double *q = &x[6 * link], *m = &motion_[8 * link];
    move(link, q);
    R* out = velocity.data() + joint.qvel;
    if (joint.dofs == 1) {
      out[0] = R(q[0]);
    } else {
      const Vec3d turned = transpose_mul(joint.R, get3(q));
      for (int k = 0; k < 3; ++k) {
        if (joint.dofs == 6) out[k] = R(q[3 + k]);
        out[joint.dofs - 3 + k] = R(turned[k]);
      }
    }
    for (int k = 0; k < 3; ++k) data.links()[link].a.w[k] = R(m[k]), data.links()[link].a.v[k] = R(m[3 + k]);
  }
}

#define TARSUS_INSTANTIATE(R)                                                            \
  template void CoupledTrees::begin<R>(const BasicData<R>&, In<R>, std::span<const int>, \
                                       std::span<const LinkStiffness<R>>);               \
  template void CoupledTrees::finish<R>(std::span<const double>, BasicData<R>&, Out<R>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
