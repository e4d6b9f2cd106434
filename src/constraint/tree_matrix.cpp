// TreeOperator's A = J M̂⁻¹ Jᵀ of some terms' rows, with the bilateral rows held: what sweeps need.
#include "constraint/contact_force.hpp"
#include "constraint/tree_loads.hpp"
#include "math/dense_lu.hpp"
#include "tarsus/constraint/tree_operator.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

/// Rows of a joint's term, along the joint's own dofs in qvel's axes.
template <class R>
void TreeOperator<R>::write_joint(const JointRows& rows, const typename DelassusRows<R>::Block& block, int row) {
  const Joint& joint = model_.joints[rows.joint];
  if (rows.part == JointRows::Part::axial)
    return write_path<R>({std::span(&joint.qvel, 1), std::span(&rows.e.x, 1)}, block, row);
  const bool angular = rows.part == JointRows::Part::angular;
  const int first = joint.qvel + (angular ? scalar_count(joint.type) : 0), dofs[] = {first, first + 1, first + 2};
  for (int k = 0; k < rows.nrow; ++k) {
    Vec3d e = rows.nrow == 1 ? rows.e : Vec3d{k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0};
    if (angular) e = transpose_mul(widen(data_->links()[rows.joint].R), e);
    const double arm[] = {e.x, e.y, e.z};
    write_path<R>({dofs, arm}, block, row + k);
  }
}

/// Rows of these terms, after the bilateral ones.
template <class R>
void TreeOperator<R>::write_rows(std::span<const int> terms) {
  rows_.clear();
  write_bilateral();
  const std::size_t contacts = contacts_.size(), n = terms.size();
  std::size_t t = 0;
  while (t < n && std::size_t(terms[t]) < contacts) {  // those of one pair of links are neighbours: one block
    const std::size_t first = t;
    const int a = contacts_[terms[t]].a, b = contacts_[terms[t]].b;
    int count = 0;
    for (; t < n && std::size_t(terms[t]) < contacts && contacts_[terms[t]].a == a && contacts_[terms[t]].b == b; ++t)
      count += contacts_[terms[t]].nrow;
    const typename DelassusRows<R>::Block block = rows_.block(rows_.add_block(a, b, count));
    for (std::size_t k = first, row = 0; k < t; row += contacts_[terms[k++]].nrow)
      write_contact<R>(contacts_[terms[k]], block, int(row));
  }
  path_joints_.clear();
  const std::size_t first = t;
  int count = 0;
  for (; t < n && std::size_t(terms[t]) < contacts + joints_.size(); ++t) {
    const JointRows& joint = joints_[terms[t] - contacts];
    path_joints_.push_back(joint.joint), count += joint.nrow;
  }
  if (count > 0) {
    const typename DelassusRows<R>::Block block = rows_.block(rows_.add_joint_block(path_joints_, count));
    for (std::size_t k = first, row = 0; k < t; row += joints_[terms[k++] - contacts].nrow)
      write_joint(joints_[terms[k] - contacts], block, int(row));
  }
  for (; t < n; ++t) add_path<R>(model_, paths_[terms[t] - contacts - joints_.size()], rows_, path_joints_);
}

/// With b the bilateral rows: A - A_b (A_bb + Σ_e)⁻¹ A_bᵀ.
template <class R>
void TreeOperator<R>::inverse_mass(std::span<const int> terms, std::span<double> out) {
  clear_loads();
  solve_loaded<R>(model_, *data_, joint_inertia_, {}, load_of_link_, loads_, next_.x);  // M̂'s own factors
  write_rows(terms);
  rows_.sweep(model_, *data_);
  const int ld = rows_.leading_dimension(), held = bilateral_.rows(), n = rows_.rows() - held;
  gram_.resize(std::size_t(rows_.rows()) * ld);
  rows_.gram(gram_.data(), ld);
  for (int i = 0; i < n; ++i) {
    for (int j = i; j < n; ++j)
      out[std::size_t(i) * n + j] = out[std::size_t(j) * n + i] = gram_[std::size_t(held + i) * ld + held + j];
  }
  if (held == 0) return;
  matrix_.resize(std::size_t(held) * held), pivot_.resize(held);
  for (int i = 0; i < held; ++i) {
    for (int j = i; j < held; ++j)
      matrix_[std::size_t(i) * held + j] = matrix_[std::size_t(j) * held + i] = gram_[std::size_t(i) * ld + j];
    matrix_[std::size_t(i) * (held + 1)] += double(bilateral_.compliance[i]) + raised_[i];
  }
  const auto factors = std::span(matrix_).first(std::size_t(held) * held);
  factor_lu(factors, pivot_);
  solution_.resize(std::size_t(held) * n);
  for (int k = 0; k < held; ++k) std::copy_n(&gram_[std::size_t(k) * ld + held], n, &solution_[std::size_t(k) * n]);
  solve_lu(factors, pivot_, std::span(solution_).first(std::size_t(held) * n), n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < held; ++k) {
      const double factor = gram_[std::size_t(k) * ld + held + i];
      for (int j = 0; j < n; ++j) out[std::size_t(i) * n + j] -= factor * solution_[std::size_t(k) * n + j];
    }
  }
}

#define TARSUS_INSTANTIATE(R)                                                                                \
  template void TreeOperator<R>::write_joint(const JointRows&, const typename DelassusRows<R>::Block&, int); \
  template void TreeOperator<R>::write_rows(std::span<const int>);                                           \
  template void TreeOperator<R>::inverse_mass(std::span<const int>, std::span<double>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
