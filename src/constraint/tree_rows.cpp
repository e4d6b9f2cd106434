// Rows of terms for sweeps (tree_rows.hpp): free bodies as six velocities, trees in the u space of ABA's factors.
#include "tarsus/constraint/tree_rows.hpp"

#include <algorithm>
#include <cstddef>

#include "constraint/contact_force.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/constraint/islands.hpp"
#include "tarsus/constraint/tree_operator.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr int kJointRows = 32;  ///< largest number in one block
constexpr int kPairRows = 256;  ///< largest number of one pair of links in a block

}  // namespace

template <class R>
TreeRows<R>::TreeRows(const Model& model)
    : model_(model), root_(tree_roots(model)), centre_(model.njoint()), rows_(model), u_(model.nv) {
  const ModelView<R> view = model.view<R>();
  for (int i = 0; i < view.nlink; ++i) alone_.push_back(char(view.link[i].alone));
  bodies.resize(model.njoint());
}

template <class R>
DelassusRows<R>& TreeRows<R>::clear() {
  rows_.clear(), blocks_.clear(), points_.clear();
  bilateral_blocks_ = 0, bilateral_.trees = nullptr;
  return rows_;
}

template <class R>
void TreeRows<R>::hold(const BasicData<R>& data, std::span<const double> diagonal, CoupledTrees& trees) {
  rows_.sweep(model_, data);
  bilateral_blocks_ = rows_.blocks();
  bilateral_.trees = &trees, bilateral_.diagonal = diagonal;
  for (AlignedVector<R>* v : {&bilateral_.rows, &bilateral_.impulse}) v->assign(rows_.rows(), R(0));
}

/// Finds the free bodies: links that are alone, and have no rows but those of contacts.
template <class R>
void TreeRows<R>::find_bodies(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms) {
  is_body_ = alone_;
  for (int b = 0; b < bilateral_blocks_; ++b) {  // rows along joints have no wrenches
    const typename DelassusRows<R>::Block block = rows_.block(b);
    for (const int link : block.force ? std::span<const int>() : block.links) is_body_[link] = 0;
  }
  for (const int t : terms) {
    if (t >= geometry.first_path()) {
      for (const int dof : geometry.paths[t - geometry.first_path()].dofs) is_body_[model_.dof_joint[dof]] = 0;
    } else if (t >= geometry.first_joint()) {
      is_body_[geometry.joints[t - geometry.first_joint()].joint] = 0;
    }
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) is_body_[i] = is_body_[i] && take_body(data.links()[i], i);
}

/// M̂⁻¹ of (f, n) at the link's origin is ω = D (n - G f), v = M f - Gᵀ ω. If G = [c] and M is a multiple of 1, c is
/// the centre.
/// @return whether that holds
template <class R>
bool TreeRows<R>::take_body(const LinkState<R>& link, std::size_t i) {
  const Sym3d M = widen(link.Minv);
  const Mat3d G = widen(link.G);
  const double small = 1e-9 * M.xx, none = 1e-9 * (std::abs(G.xy) + std::abs(G.yz) + std::abs(G.zx)) + 1e-12;
  const bool same = std::abs(M.yy - M.xx) <= small && std::abs(M.zz - M.xx) <= small && std::abs(M.xy) <= small &&
                    std::abs(M.xz) <= small && std::abs(M.yz) <= small;
  const bool skew = std::abs(G.xx) <= none && std::abs(G.yy) <= none && std::abs(G.zz) <= none &&
                    std::abs(G.xy + G.yx) <= none && std::abs(G.yz + G.zy) <= none && std::abs(G.zx + G.xz) <= none;
  bodies[i].inverse_mass = M.xx, bodies[i].inverse_inertia = widen(link.Dinv);
  centre_[i] = {G.zy, G.xz, G.yx};
  return same && skew;
}

/// Writes a contact with a body on one side, and a body, the world or a tree on the other.
template <class R>
void TreeRows<R>::write_contact(const ContactRows& contact) {
  Block block{.terms = 1, .point = int(points_.size())};
  ContactRows& point = points_.emplace_back();
  point.nrow = contact.nrow;
  if (is_body_[contact.a]) point.a = contact.a, point.arm_a = contact.arm_a - centre_[contact.a];
  if (contact.b >= 0 && is_body_[contact.b]) point.b = contact.b, point.arm_b = contact.arm_b - centre_[contact.b];
  std::copy_n(contact.axis, 3, point.axis);
  const bool tree_a = point.a < 0, tree_b = contact.b >= 0 && point.b < 0;
  const auto is_unit = [](const Vec3d& axis) { return std::abs(dot(axis, axis) - 1) < 1e-9; };
  const bool even = contact.nrow < 3 || (is_unit(contact.axis[1]) && is_unit(contact.axis[2]));
  if (tree_a || tree_b || contact.nrow == 4 || contact.nrow == 6 || !even) {  // a point has no torsion or rolling
    block.rows = rows_.add_block(tree_b ? contact.b : contact.a, -1, contact.nrow);
    const typename DelassusRows<R>::Block of_tree = rows_.block(block.rows);
    const Vec3d& arm = tree_a ? contact.arm_a : contact.arm_b;
    for (int k = 0; k < contact.nrow && (tree_a || tree_b); ++k)
      write_wrench<R>(contact_wrench(contact, arm, tree_a ? 1 : -1, k), of_tree, k);
  }
  blocks_.push_back(block);
}

template <class R>
void TreeRows<R>::write_contacts(const RowGeometry& geometry, std::span<const int> terms) {
  for (std::size_t t = 0; t < terms.size();) {
    const ContactRows& contact = geometry.contacts[terms[t]];
    const int a = contact.a, b = contact.b;
    if (is_body_[a] || (b >= 0 && is_body_[b])) {
      write_contact(contact), ++t;
      continue;
    }
    const std::size_t first = t;  // two trees: the contacts of one pair of links are one block
    int count = 0;
    const auto of_pair = [&](const ContactRows& c) { return c.a == a && c.b == b && count + c.nrow <= kPairRows; };
    for (; t < terms.size() && of_pair(geometry.contacts[terms[t]]); ++t) count += geometry.contacts[terms[t]].nrow;
    blocks_.push_back({.terms = int(t - first), .rows = rows_.add_block(a, b, count)});
    const typename DelassusRows<R>::Block block = rows_.block(blocks_.back().rows);
    for (std::size_t k = first, row = 0; k < t; row += geometry.contacts[terms[k++]].nrow)
      tarsus::write_contact<R>(geometry.contacts[terms[k]], block, int(row));
  }
}

/// Writes the rows of a joint's term, over the joint's dofs in qvel's axes.
template <class R>
void write_joint(const Model& model, const LinkState<R>* links, const JointRows& rows,
                 const typename DelassusRows<R>::Block& block, int row) {
  const JointArms arms = joint_arms(model, links, rows);
  const int dofs[] = {arms.first, arms.first + 1, arms.first + 2};
  for (int k = 0; k < rows.nrow; ++k)
    write_path<R>({{dofs, std::size_t(arms.count)}, {arms.at[k], std::size_t(arms.count)}}, block, row + k);
}

/// Rows of one tree are neighbours and form blocks.
template <class R>
void TreeRows<R>::write_joints(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms) {
  const auto at = [&](std::size_t k) -> const JointRows& { return geometry.joints[terms[k] - geometry.first_joint()]; };
  for (std::size_t t = 0; t < terms.size();) {
    const std::size_t first = t;
    int count = 0;
    joints_.clear();
    for (; t < terms.size() && count + at(t).nrow <= kJointRows && root_[at(t).joint] == root_[at(first).joint]; ++t)
      joints_.push_back(at(t).joint), count += at(t).nrow;
    blocks_.push_back({.terms = int(t - first), .rows = rows_.add_joint_block(joints_, count)});
    const typename DelassusRows<R>::Block block = rows_.block(blocks_.back().rows);
    for (std::size_t k = first, row = 0; k < t; row += at(k++).nrow)
      write_joint<R>(model_, data.links(), at(k), block, int(row));
  }
}

template <class R>
void TreeRows<R>::write(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms) {
  find_bodies(data, geometry, terms);
  const auto end_of_contacts = std::lower_bound(terms.begin(), terms.end(), geometry.first_joint());
  const auto end_of_joints = std::lower_bound(end_of_contacts, terms.end(), geometry.first_path());
  write_contacts(geometry, {terms.begin(), end_of_contacts});
  write_joints(data, geometry, {end_of_contacts, end_of_joints});
  for (auto t = end_of_joints; t != terms.end(); ++t) {
    blocks_.push_back({.terms = 1, .rows = rows_.blocks()});
    add_path<R>(model_, geometry.paths[*t - geometry.first_path()], rows_, joints_);
  }
  rows_.sweep(model_, data);
  bilateral_.blocks.clear();
  for (int b = 0; b < bilateral_blocks_; ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    const bool bodies_alone = std::all_of(block.links.begin(), block.links.end(), [&](int i) { return is_body_[i]; });
    bilateral_.blocks.push_back({block, !bodies_alone});
  }
  rest();
}

template <class R>
void TreeRows<R>::own_mass(int index, double* A, int to) {
  const Block& own = blocks_[index];
  const typename DelassusRows<R>::Block block = rows_.block(own.rows);
  const int n = block.nrow, stride = block.stride;
  row_.resize(std::max(row_.size(), std::size_t(n) * stride));
  rows_.own_gram(own.rows, row_.data());
  for (int i = 0; i < n; ++i) {
    for (int j = i; j < n; ++j) A[i * to + j] = A[j * to + i] = double(row_[i * stride + j]);
  }
  if (own.point < 0) return;
  const ContactRows& point = points_[own.point];
  for (const bool first : {true, false}) {
    const int of = first ? point.a : point.b;
    if (of < 0) continue;
    const Vec3d& arm = first ? point.arm_a : point.arm_b;
    for (int j = 0; j < n; ++j) {
      const Force<double> f = contact_wrench(point, arm, 1, j);
      const Vec3d w = bodies[of].inverse_inertia * f.n, v = f.f * bodies[of].inverse_mass;
      for (int i = 0; i < n; ++i) {
        const Force<double> e = contact_wrench(point, arm, 1, i);
        A[i * to + j] += dot(e.n, w) + dot(e.f, v);
      }
    }
  }
}

template <class R>
void TreeRows<R>::rest() {
  std::fill(u_.begin(), u_.end(), R(0)), std::fill(bilateral_.impulse.begin(), bilateral_.impulse.end(), R(0));
  for (FreeBody& body : bodies) body.w = body.v = {0, 0, 0};
}

template <class R>
void TreeRows<R>::extrapolate(const Extrapolation& by) {
  if (rows_.blocks() == 0) return;  // no trees
  extrapolated_.u.resize(u_.size(), R(0)), extrapolated_.u_by.resize(u_.size(), R(0));
  for (std::size_t i = 0; i < u_.size(); ++i) by(u_[i], extrapolated_.u[i], extrapolated_.u_by[i]);
  const std::size_t rows = holds() ? bilateral_.impulse.size() : 0;
  bilateral_.impulse_before.resize(rows, R(0)), bilateral_.impulse_by.resize(rows, R(0));
  for (std::size_t i = 0; i < rows; ++i)
    by(bilateral_.impulse[i], bilateral_.impulse_before[i], bilateral_.impulse_by[i]);
}

/// Adds the motions of free bodies to J x of bilateral rows.
template <class R>
void TreeRows<R>::add_motions(const typename DelassusRows<R>::Block& block, double* Jx) const {
  for (const bool second : {false, true}) {
    const int link = second ? block.b : block.a;
    if (!block.force || link < 0 || !is_body_[link]) continue;
    const Vec3d w = bodies[link].w, v = bodies[link].v - cross(w, centre_[link]);
    const R* f = block.force + (second ? 6 * block.stride : 0);
    for (int k = 0; k < 3; ++k) {
      for (int r = 0; r < block.nrow; ++r)
        Jx[r] += double(f[k * block.stride + r]) * w[k] + double(f[(3 + k) * block.stride + r]) * v[k];
    }
  }
}

/// (A_BB + Σ) δ = -J x - Σ λ,  λ += δ,  x += M̂⁻¹ Jᵀ δ
template <class R>
void TreeRows<R>::hold() {
  CoupledTrees& trees = *bilateral_.trees;
  bilateral_.solution.assign(trees.numbers(), 0.0);
  double* const change = &bilateral_.solution[trees.first_row()];
  std::fill(bilateral_.rows.begin(), bilateral_.rows.end(), R(0));
  for (int b = 0; b < bilateral_blocks_; ++b) {
    const int first = bilateral_.blocks[b].rows.first_row;
    if (bilateral_.blocks[b].on_trees) rows_.velocity(b, u_.data(), &bilateral_.rows[first]);
    add_motions(bilateral_.blocks[b].rows, change + first);
  }
  for (std::size_t i = 0; i < bilateral_.rows.size(); ++i)
    change[i] = -change[i] - double(bilateral_.rows[i]) - bilateral_.diagonal[i] * double(bilateral_.impulse[i]);
  trees.solve(false, {}, bilateral_.solution);
  for (std::size_t i = 0; i < bilateral_.rows.size(); ++i)
    bilateral_.rows[i] = R(change[i]), bilateral_.impulse[i] += bilateral_.rows[i];
  for (int b = 0; b < bilateral_blocks_; ++b) {
    if (bilateral_.blocks[b].on_trees) rows_.push(b, &bilateral_.rows[bilateral_.blocks[b].rows.first_row], u_.data());
  }
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (!is_body_[i]) continue;
    const double* const x = &bilateral_.solution[6 * i];
    const Vec3d w{x[0], x[1], x[2]}, v{x[3], x[4], x[5]};
    bodies[i].w += w, bodies[i].v += v + cross(w, centre_[i]);
    std::fill_n(&u_[model_.joints[i].qvel], 6, R(0));
  }
}

template <class R>
void TreeRows<R>::write_change(const BasicData<R>& data, Out<R> x) const {
  std::fill(x.begin(), x.end(), R(0));
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (!is_body_[i]) continue;
    const FreeBody& body = bodies[i];
    const Vec3d v = body.v - cross(body.w, centre_[i]), w = transpose_mul(widen(data.links()[i].R), body.w);
    R* const to = &x[model_.joints[i].qvel];
    for (int k = 0; k < 3; ++k) to[k] = R(v[k]), to[3 + k] = R(w[k]);
  }
}

template <class R>
void TreeRows<R>::velocity(int index, double* Jx) {
  const Block& block = blocks_[index];
  if constexpr (sizeof(R) == sizeof(double)) {
    rows_.velocity(block.rows, u_.data(), Jx);
  } else {
    const int n = rows_.block(block.rows).nrow;
    row_.resize(std::max(row_.size(), std::size_t(n)));
    rows_.velocity(block.rows, u_.data(), row_.data());
    std::copy_n(row_.begin(), n, Jx);
  }
  if (block.point < 0) return;
  const ContactRows& point = points_[block.point];
  Motion<double> motion{{0, 0, 0}, {0, 0, 0}};
  if (point.a >= 0) motion = at_arm({bodies[point.a].w, bodies[point.a].v}, point.arm_a);
  if (point.b >= 0) motion = motion - at_arm({bodies[point.b].w, bodies[point.b].v}, point.arm_b);
  for (int k = 0; k < point.nrow; ++k) Jx[k] += along_contact(point, motion, k);
}

template <class R>
void TreeRows<R>::push(int index, const double* change) {
  const Block& own = blocks_[index];
  const typename DelassusRows<R>::Block block = rows_.block(own.rows);
  const R* lambda = nullptr;
  if constexpr (sizeof(R) == sizeof(double)) {
    lambda = change;
  } else {
    row_.resize(std::max(row_.size(), std::size_t(block.nrow)));
    std::copy_n(change, block.nrow, row_.begin());
    lambda = row_.data();
  }
  rows_.push(own.rows, lambda, u_.data());
  if (own.point < 0) return;
  const ContactRows& point = points_[own.point];
  const Force<double> push = contact_sum(point, change);
  if (point.a >= 0) bodies[point.a].push(point.arm_a, push.f, push.n);
  if (point.b >= 0) bodies[point.b].push(point.arm_b, -push.f, -push.n);
}

template class TreeRows<double>;
template class TreeRows<float>;

}  // namespace tarsus
