// TreeRows: the rows' matrix, its solution and what follows from it.
#include <algorithm>
#include <cmath>

#include "constraint/widen.hpp"
#include "tarsus/constraint/tree_rows.hpp"

namespace tarsus {

/// J v of every row, v being the links' velocities in data's workspace and `qvel` for rows on joints.
template <class R>
void TreeRows<R>::row_velocity(BasicData<R>& data, In<R> qvel, double* out) {
  const LinkState<R>* links = data.links();
  for (int b = 0; b < rows_.blocks(); ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    const std::size_t stride = block.stride;
    for (int i = 0; i < block.nrow; ++i) {
      double sum = 0;
      if (block.joint) {
        const int joint = block.links[0];
        for (int k = 0; k < model_.joints[joint].nv(); ++k)
          sum += double(block.joint[k * stride + i]) * double(qvel[block.dofs[k]]);
      } else {
        const auto add = [&](int link, const R* f) {
          if (link < 0) return;
          const Motion<R>& v = links[link].v;
          for (int k = 0; k < 3; ++k)
            sum += double(f[k * stride]) * double(v.w[k]) + double(f[(3 + k) * stride]) * double(v.v[k]);
        };
        add(block.a, block.force + i), add(block.b, block.force + 6 * stride + i);
      }
      out[block.first_row + i] = sum;
    }
  }
}

template <class R>
void TreeRows<R>::factor(const BasicData<R>& data) {
  if (rows() == 0) return;
  rows_.sweep(model_, data);
  const int ld = rows_.leading_dimension();
  double* matrix = problem_.matrix(ld);
  const std::size_t n = std::size_t(rows()) * problem_.ld();
  if constexpr (sizeof(R) == sizeof(double)) {
    rows_.gram(matrix, problem_.ld());
  } else {
    gram_.resize(n);
    rows_.gram(gram_.data(), problem_.ld());
    std::copy(gram_.begin(), gram_.end(), matrix);
  }
}

template <class R>
void TreeRows<R>::solve(BasicData<R>& data, In<R> qpos, Out<R> velocity, bool included) {
  if (rows() == 0) return;
  kinematics<R>(model_, data, qpos, velocity);
  row_velocity(data, velocity, problem_.velocity().data());
  problem_.finish();
  if (included) problem_.exclude(multiplier_);
  start_ = multiplier_;
  const RowSolveReport solved = solver_.solve(problem_, multiplier_, options_.solve);
  report_.status = solved.status;
  report_.iterations += solved.iterations;
  report_.residual = solved.residual;
  if (solved.status == RowSolveStatus::not_finite) {
    std::fill(multiplier_.begin(), multiplier_.end(), 0.0);
    return;
  }
  std::fill(u_.begin(), u_.end(), R(0));
  change_.resize(rows());
  for (int i = 0; i < rows(); ++i) change_[i] = R(multiplier_[i] - (included ? start_[i] : 0));
  rows_.push(change_.data(), u_.data());
  outward<R>(model_, data, u_, u_);
  for (int k = 0; k < model_.nv; ++k) velocity[k] += u_[k];
  report_.touching = 0;
  for (const int row : contact_row_) report_.touching += multiplier_[row] > 0;
}

template <class R>
void TreeRows<R>::add_force(BasicData<R>& data, Out<R> force) {
  std::fill(link_force_.begin(), link_force_.end(), 0.0);
  for (int b = 0; b < rows_.blocks(); ++b) {
    const typename DelassusRows<R>::Block block = rows_.block(b);
    const std::size_t stride = block.stride;
    for (int i = 0; i < block.nrow; ++i) {
      const double f = multiplier_[block.first_row + i] / h_;
      if (block.joint) {
        const int nv = model_.joints[block.links[0]].nv();
        for (int k = 0; k < nv; ++k) force[block.dofs[k]] += R(f * double(block.joint[k * stride + i]));
        continue;
      }
      for (int k = 0; k < 6; ++k) {
        link_force_[6 * block.a + k] += f * double(block.force[k * stride + i]);
        if (block.b >= 0) link_force_[6 * block.b + k] += f * double(block.force[(6 + k) * stride + i]);
      }
    }
  }
  const LinkState<R>* links = data.links();
  for (int i = model_.njoint() - 1; i >= 0; --i) {  // Sᵀ f, and on to the parent
    double* at = &link_force_[6 * i];
    const Force<double> f = {{at[0], at[1], at[2]}, {at[3], at[4], at[5]}};
    const LinkState<R>& s = links[i];
    const Vec3d x = widen(s.R.column_x()), y = widen(s.R.column_y()), z = widen(s.R.column_z());
    R* out = force.data() + view_.link[i].qvel;
    const JointType type = view_.link[i].joint;
    if (type == JointType::hinge) out[0] += R(dot(z, f.n));
    if (type == JointType::slide) out[0] += R(dot(z, f.f));
    if (type == JointType::free) {
      for (int k = 0; k < 3; ++k) out[k] += R(f.f[k]);
      out += 3;
    }
    if (type == JointType::free || type == JointType::ball) {
      out[0] += R(dot(x, f.n)), out[1] += R(dot(y, f.n)), out[2] += R(dot(z, f.n));
    }
    const int parent = view_.link[i].parent;
    if (parent < 0) continue;
    const Force<double> up = shift_back(f, widen(s.r));
    for (int k = 0; k < 3; ++k) link_force_[6 * parent + k] += up.n[k], link_force_[6 * parent + 3 + k] += up.f[k];
  }
}

template <class R>
double TreeRows<R>::residual(BasicData<R>& data, In<R> qpos, In<R> velocity) {
  if (rows() == 0) return 0;
  kinematics<R>(model_, data, qpos, velocity);
  achieved_.resize(rows());
  row_velocity(data, velocity, achieved_.data());
  for (int i = 0; i < rows(); ++i)
    achieved_[i] += problem_.numbers(i).compliance * multiplier_[i] - problem_.numbers(i).target;
  return report_.residual = solver_.residual(problem_, multiplier_, achieved_);
}

template <class R>
Vec3d TreeRows<R>::force(int contact) const {
  const LinkContact& c = contacts_.at(contact);
  const auto [t1, t2] = contact_tangents(c.point.normal);
  const double* x = &multiplier_[contact_row_[contact]];
  Vec3d impulse = c.point.normal * x[0];
  if (c.dimension >= 3) impulse += t1 * x[1] + t2 * x[2];
  return impulse * (1 / h_);
}

template class TreeRows<double>;
template class TreeRows<float>;

}  // namespace tarsus
