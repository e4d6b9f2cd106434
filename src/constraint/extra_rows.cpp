// The extra rows of a step's solve and their Schur complement (write_system() has the equations). LU of k unknowns,
// O(k³).
#include "tarsus/constraint/extra_rows.hpp"

#include <algorithm>

#include "constraint/contact_force.hpp"
#include "constraint/tree_stiffness.hpp"

namespace tarsus {

template <class R>
void ExtraRows<R>::lay_out(std::span<const Term> terms, const RowGeometry& geometry,
                           const BilateralRows<R>& bilateral) {
  terms_ = terms, geometry_ = geometry;
  bilateral_.lay_out(bilateral, rows_);
}

template <class R>
void ExtraRows<R>::begin(BasicData<R>& data, double h) {
  data_ = &data;
  bilateral_.begin(model_, data, h, rows_);
}

template <class R>
void ExtraRows<R>::find_nodes(RowNodes& nodes) {
  nodes.clear();
  const auto add_joint = [&](int joint) {  // the links whose motion the joint's velocity depends on
    nodes.add_link(joint);
    if (const int parent = model_.joints[joint].parent; parent >= 0) nodes.add_link(parent);
  };
  for (int b = 0; b < bilateral_.blocks(); ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    for (int first = 0; first < block.nrow; first += RowNodes::kRows) {
      for (const int link : block.force ? std::span<const int>() : block.links) nodes.add_link(link);
      for (const int link : {block.a, block.b}) {
        if (link >= 0) block.joint ? add_joint(link) : nodes.add_link(link);
      }
      nodes.add(std::min(block.nrow - first, RowNodes::kRows));
    }
  }
  for (const PathRow& path : geometry_.paths) {
    if (path.on_link >= 0) continue;
    for (const int dof : path.dofs) add_joint(model_.dof_joint[dof]);
    nodes.add(1);
  }
}

template <class R>
void ExtraRows<R>::write_nodes(std::span<const Tangent> tangents, CoupledTrees& trees) {
  int node = 0;
  const auto write = [&](const typename DelassusRows<R>::Block& block, int row, int at) {
    const auto number = [&](const R* from, int k) { return double(from[k * block.stride + row]); };
    const auto along = [&](int link, int first) {
      double numbers[6] = {};
      for (int k = 0; k < model_.joints[link].nv(); ++k) numbers[k] = number(block.joint, first + k);
      trees.add_joint_to_row(node, at, link, numbers);
    };
    int first = 0;
    for (const int link : block.force ? std::span<const int>() : block.links)
      along(link, first), first += model_.joints[link].nv();
    for (const bool second : {false, true}) {
      const int link = second ? block.b : block.a;
      if (link < 0) continue;
      const R* f = block.force + (second ? 6 * block.stride : 0);
      trees.add_to_row(node, at, link,
                       {{number(f, 0), number(f, 1), number(f, 2)}, {number(f, 3), number(f, 4), number(f, 5)}});
      if (block.joint) along(link, second);
    }
  };
  for (int b = 0; b < bilateral_.blocks(); ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    for (int row = 0; row < block.nrow; ++row) {
      const int at = row % RowNodes::kRows;
      trees.set_row(node, at, bilateral_.diagonal()[block.first_row + row]);
      write(block, row, at);
      node += at + 1 == RowNodes::kRows || row + 1 == block.nrow;
    }
  }
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p) {
    const PathRow& path = geometry_.paths[p];
    if (path.on_link >= 0) continue;
    const double tangent = tangents.empty() ? 0 : tangents[geometry_.first_path() + p].at[0][0];
    for (std::size_t k = 0; k < path.dofs.size(); ++k) {
      const int joint = model_.dof_joint[path.dofs[k]];
      double numbers[6] = {};
      numbers[path.dofs[k] - model_.joints[joint].qvel] = path.arm[k];
      trees.add_joint_to_row(node, 0, joint, numbers, tangent);
    }
    ++node;
  }
}

template <class R>
void ExtraRows<R>::write_right(std::span<const double> force, std::span<double> right) const {
  auto to = std::copy(bilateral_.demand().begin(), bilateral_.demand().end(), right.begin());
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p) {
    if (geometry_.paths[p].on_link < 0) *to++ = force[terms_[geometry_.first_path() + p].first_row];
  }
}

template <class R>
void ExtraRows<R>::clear() {
  rows_.keep(bilateral_.blocks()), extras_.clear(), unknown_.clear();
  for (int i = 0; i < bilateral_.count(); ++i) unknown_.push_back(i);
}

template <class R>
void ExtraRows<R>::add_contacts(std::span<const ContactPlace> active, std::span<const Tangent> tangents) {
  const std::span<const ContactRows> contacts = geometry_.contacts;
  for (std::size_t k = 0; k < active.size();) {  // contacts of one pair of links are neighbours and form one block
    const std::size_t first = extras_.size();
    const int a = contacts[active[k].contact].a, b = contacts[active[k].contact].b, row = rows_.rows();
    int count = 0;
    for (; k < active.size() && contacts[active[k].contact].a == a && contacts[active[k].contact].b == b; ++k) {
      if (!active[k].extra) continue;
      extras_.push_back({active[k].contact, row + count, 0, b >= 0 ? contacts[active[k].contact].nrow : 2, 0});
      count += extras_.back().nrow;
    }
    if (count == 0) continue;
    const typename DelassusRows<R>::Block block = rows_.block(rows_.add_block(a, b, count));
    for (std::size_t p = first; p < extras_.size(); ++p)
      write_contact_rows(extras_[p], tangents[extras_[p].term], block);
  }
}

template <class R>
void ExtraRows<R>::add_paths(std::span<const Tangent> tangents, std::span<const double> force) {
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p) {
    if (geometry_.paths[p].on_link >= 0) continue;
    const std::size_t term = geometry_.first_path() + p;
    if ((tangents.empty() || tangents[term].at[0][0] == 0) && force[terms_[term].first_row] == 0) continue;
    const typename DelassusRows<R>::Block block = add_path<R>(model_, geometry_.paths[p], rows_, path_joints_);
    extras_.push_back({int(term), block.first_row, int(unknown_.size()), 1});
    unknown_.push_back(block.first_row);
  }
}

/// Contacts between two links have one unknown impulse a row. A contact on the world has one unknown: with c = |G_tn|
/// and u = G_tn/c, its row n is only evaluated, and the force along u is -c n · J x.
template <class R>
void ExtraRows<R>::write_contact_rows(Extra& extra, const Tangent& g, const typename DelassusRows<R>::Block& block) {
  const ContactRows& contact = geometry_.contacts[extra.term];
  const int row = extra.first_row - block.first_row;
  extra.first_unknown = int(unknown_.size());
  if (contact.b >= 0) {
    for (int k = 0; k < extra.nrow; ++k) unknown_.push_back(extra.first_row + k);
    write_contact<R>(contact, block, row);
    return;
  }
  extra.coupling = coupling(g, contact.nrow);
  Vec3d force{0, 0, 0}, moment{0, 0, 0};
  for (int k = 1; k < contact.nrow; ++k)
    (k < 3 ? force : moment) += contact.axis[k % 3] * (g.at[k][0] / extra.coupling);
  unknown_.push_back(extra.first_row + 1);
  write_wrench<R>({cross(contact.arm_a, contact.axis[0]), contact.axis[0]}, block, row);
  write_wrench<R>({cross(contact.arm_a, force) + moment, force}, block, row + 1);
}

/// Calls f(equation, row, g) for each nonzero coefficient g of J x in the equations of contacts and paths.
template <class R>
template <class F>
void ExtraRows<R>::each_coefficient(std::span<const Tangent> tangents, const F& f) const {
  for (const Extra& extra : extras_) {
    if (extra.coupling > 0) {
      f(extra.first_unknown, extra.first_row, extra.coupling);
      continue;
    }
    for (int r = 0; r < extra.nrow && !tangents.empty(); ++r) {
      for (int c = 0; c < extra.nrow; ++c) {
        const double g = tangents[extra.term].at[r][c];
        if (g != 0) f(extra.first_unknown + r, extra.first_row + c, g);
      }
    }
  }
}

/// Factors the system. A is the rows' Delassus matrix in the stiffened tree, x₀ the tree's solution without them:
///   bilateral        (A + Σ_e) λ = b_e - J (v⁰ + x₀)
///   two links, path  y + G A y = g - G J x₀
///   on the world     s + c A_n s = -c J_n x₀
template <class R>
void ExtraRows<R>::factor_system(std::span<const Tangent> tangents) {
  const int k = int(unknown_.size()), ld = rows_.leading_dimension(), held = bilateral_.count();
  const auto A = [&](int i, int j) { return double(gram_[std::size_t(i) * ld + j]); };
  leading_ = (k + 7) / 8 * 8;
  AlignedVector<double>& matrix = factors_.matrix;
  matrix.assign(std::size_t(k) * leading_, 0.0);
  for (int i = 0; i < held; ++i) {
    for (int j = 0; j < k; ++j) matrix[std::size_t(j) * leading_ + i] = A(i, unknown_[j]);
    matrix[std::size_t(i) * (leading_ + 1)] += bilateral_.diagonal()[i];
  }
  for (int i = held; i < k; ++i) matrix[std::size_t(i) * (leading_ + 1)] = 1;
  each_coefficient(tangents, [&](int equation, int row, double g) {
    for (int j = 0; j < k; ++j) matrix[std::size_t(j) * leading_ + equation] += g * A(row, unknown_[j]);
  });
  factors_.factor(k, leading_);
}

template <class R>
void ExtraRows<R>::write_right_side(std::span<const Tangent> tangents, std::span<const double> force) {
  right_.assign(leading_, 0.0);
  for (int i = 0; i < bilateral_.count(); ++i) right_[i] = bilateral_.demand()[i] - double(velocity_[i]);
  for (const Extra& extra : extras_) {
    for (int r = 0; r < extra.nrow && extra.coupling == 0; ++r)
      right_[extra.first_unknown + r] = force[terms_[extra.term].first_row + r];
  }
  each_coefficient(tangents, [&](int equation, int row, double g) { right_[equation] -= g * double(velocity_[row]); });
}

template <class R>
void ExtraRows<R>::take_bilateral(In<R> x, std::span<const double> impulse, std::span<double> right) {
  rows_.keep(bilateral_.blocks());
  velocity_.resize(rows_.rows());
  rows_.velocity_of(*data_, x, velocity_);
  for (int i = 0; i < bilateral_.count(); ++i) right[i] -= double(velocity_[i]) + bilateral_.diagonal()[i] * impulse[i];
}

/// Solves for the extra rows' impulses, from the factors of the system and J x₀.
template <class R>
void ExtraRows<R>::solve_system(std::span<const Tangent> tangents, std::span<const double> force,
                                const BilateralImpulse& now, BilateralImpulse& next) {
  write_right_side(tangents, force);
  bilateral_.refine([&](std::span<double> x) { factors_.solve(x); }, right_, 0, now, next);
  impulse_.assign(rows_.rows(), R(0));
  for (std::size_t i = 0; i < unknown_.size(); ++i) impulse_[unknown_[i]] = R(right_[i]);
}

template <class R>
void ExtraRows<R>::solve(std::span<const Tangent> tangents, std::span<const double> force, const BilateralImpulse& now,
                         BilateralImpulse& next, Out<R> x, bool again) {
  const int ld = rows_.leading_dimension(), n = rows_.rows();
  read_u<R>(model_, *data_, u_);
  if (!again) {
    rows_.sweep(model_, *data_);
    gram_.resize(std::size_t(n) * ld), velocity_.resize(n);
    rows_.gram(gram_.data(), ld);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) gram_[std::size_t(i) * ld + j] = gram_[std::size_t(j) * ld + i];
    }
    factor_system(tangents);
  }
  rows_.velocity(u_.data(), velocity_.data());
  solve_system(tangents, force, now, next);
  rows_.push(impulse_.data(), u_.data());
  outward<R>(model_, *data_, u_, x);
}

template <class R>
std::span<const double> ExtraRows<R>::jacobian() {
  const int nv = model_.nv;
  jacobian_.assign(std::size_t(rows()) * nv, 0.0);
  for (int b = 0; b < rows_.blocks(); ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    phi_.resize(std::max(phi_.size(), block.dofs.size() * block.stride));
    rows_.jacobian(model_, *data_, b, phi_.data());
    for (std::size_t d = 0; d < block.dofs.size(); ++d) {
      for (int r = 0; r < block.nrow; ++r)
        jacobian_[std::size_t(block.first_row + r) * nv + block.dofs[d]] = double(phi_[d * block.stride + r]);
    }
  }
  return jacobian_;
}

/// As above, with A = J H⁻¹ Jᵀ computed by columns.
template <class R>
void ExtraRows<R>::solve(CoupledTrees& trees, std::span<const double> joint_force, std::span<const Tangent> tangents,
                         std::span<const double> force, const BilateralImpulse& now, BilateralImpulse& next, Out<R> x) {
  const int n = rows(), nv = model_.nv, ld = rows_.leading_dimension();
  const std::span<const double> J = jacobian();
  gram_.resize(std::size_t(n) * ld), velocity_.resize(n);
  const auto along_rows = [&](In<R> v, R* to, int stride) {  // each row has few DoFs
    for (int b = 0; b < rows_.blocks(); ++b) {
      const typename DelassusRows<R>::Block block = rows_.block(b);
      for (int row = block.first_row; row < block.first_row + block.nrow; ++row) {
        double sum = 0;
        for (const int d : block.dofs) sum += J[std::size_t(row) * nv + d] * double(v[d]);
        to[std::size_t(row) * stride] = R(sum);
      }
    }
  };
  along_rows(x, velocity_.data(), 1);
  solution_.resize(trees.numbers());
  for (int j = 0; j < n; ++j) {
    trees.solve(false, J.subspan(std::size_t(j) * nv, nv), solution_);
    trees.finish<R>(solution_, *data_, column_);
    along_rows(column_, &gram_[j], ld);
  }
  factor_system(tangents);
  solve_system(tangents, force, now, next);
  right_.assign(joint_force.begin(), joint_force.end());
  for (int j = 0; j < n; ++j) {
    for (int d = 0; d < nv; ++d) right_[d] += J[std::size_t(j) * nv + d] * double(impulse_[j]);
  }
  solution_.resize(trees.numbers());
  trees.solve(true, right_, solution_);
  trees.finish<R>(solution_, *data_, x);
}

template class ExtraRows<double>;
template class ExtraRows<float>;

}  // namespace tarsus
