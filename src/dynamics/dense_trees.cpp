#include "tarsus/dynamics/dense_trees.hpp"

#include <algorithm>

#include "dynamics/kernel_table.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

/// Axis S of one of a joint's DoFs, in qvel's axes.
Motion<double> joint_axis(JointType type, const Mat3d& R, int k) {
  const Vec3d columns[3] = {R.column_x(), R.column_y(), R.column_z()}, none{0, 0, 0};
  if (turns_freely(type)) return {columns[k], none};
  if (!moves_freely(type))
    return turns_on_axis(type) ? Motion<double>{columns[2], none} : Motion<double>{none, columns[2]};
  if (k >= 3) return {columns[k - 3], none};
  return {none, {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0}};
}

}  // namespace

DenseTrees::DenseTrees(const Model& model)
    : model_(model), axis_(model.nv), composite_(model.njoint()), origin_(model.njoint()), seen_(model.nv) {
  for (const Joint& joint : model.joints) links_.push_back({joint.parent, joint.qvel, joint.nv()});
}

template <class R>
void DenseTrees::begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const double> rows,
                       std::span<const double> diagonal) {
  const int nv = model_.nv;
  size_ = nv + int(diagonal.size()), leading_ = padded(size_, 8);
  pairs_.clear(), places_.clear(), jacobian_.clear(), free_factored_ = false;
  mass_.assign(std::size_t(size_) * std::size_t(leading_), 0.0);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const LinkState<R>& state = data.links()[i];
    const Mat3d turned = widen(state.R);
    Link& link = links_[i];
    link.offset = widen(state.r);
    origin_[i] = link.parent >= 0 ? origin_[std::size_t(link.parent)] + link.offset : link.offset;
    for (int k = 0; k < link.dofs; ++k)
      axis_[std::size_t(link.first_dof + k)] = joint_axis(model_.joints[i].type, turned, k);
    composite_[i] = {double(state.Ic.mass), widen(state.Ic.h), widen(state.Ic.I)};
  }
  for (std::size_t i = links_.size(); i-- > 0;) add_mass(i);
  for (const Link& link : links_) {
    for (int k = 0; k < link.dofs; ++k) {  // a ball has one inertia, a free joint four
      const int dof = link.first_dof + k, of = link.dofs == 6 ? std::min(k, 3) : 0;
      mass(place(dof), place(dof)) += double(joint_inertia[std::size_t(link.first_dof + of)]);
    }
  }
  for (int i = 0; i < int(diagonal.size()); ++i) {
    const int row = place_of_row(i);
    for (int d = 0; d < nv; ++d) {
      const double along = rows[std::size_t(i) * std::size_t(nv) + std::size_t(d)];
      if (along != 0) mass(row, place(d)) = along, mass(place(d), row) = -along;
    }
    mass(row, row) = diagonal[std::size_t(i)];
  }
}

/// A joint's columns of M by the composite-rigid-body algorithm [Featherstone 2008, ch. 6].
void DenseTrees::add_mass(std::size_t i) {
  const Link& link = links_[i];
  for (int d = link.first_dof; d < link.first_dof + link.dofs; ++d) {
    Force<double> f = composite_[i] * axis_[std::size_t(d)];
    for (int j = int(i); j >= 0; j = links_[std::size_t(j)].parent) {
      const Link& on = links_[std::size_t(j)];
      for (int e = on.first_dof; e < on.first_dof + on.dofs; ++e)
        mass(place(e), place(d)) = mass(place(d), place(e)) = dot(f, axis_[std::size_t(e)]);
      f = shift_back(f, on.offset);
    }
  }
  if (link.parent < 0) return;
  RigidInertia<double>& parent = composite_[std::size_t(link.parent)];
  parent = parent + shift_back(composite_[i], link.offset);
}

template <class R>
void DenseTrees::add_forces(In<R> joint_force, In<R> bias, std::span<double> right) {
  force_.resize(links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const R* const p = &bias[6 * i];
    force_[i] = {{-double(p[0]), -double(p[1]), -double(p[2])}, {-double(p[3]), -double(p[4]), -double(p[5])}};
  }
  for (std::size_t i = links_.size(); i-- > 0;) {
    const Link& link = links_[i];
    for (int d = link.first_dof; d < link.first_dof + link.dofs; ++d)
      right[std::size_t(place(d))] += double(joint_force[std::size_t(d)]) + dot(force_[i], axis_[std::size_t(d)]);
    if (link.parent >= 0) force_[std::size_t(link.parent)] += shift_back(force_[i], link.offset);
  }
}

/// Adds the motion of the link's point at `arm` from its origin, times sign.
void DenseTrees::write_branch(int link, double sign, Vec3d arm, double* rows) {
  for (int j = link; j >= 0; j = links_[std::size_t(j)].parent) {
    const Link& on = links_[std::size_t(j)];
    for (int d = on.first_dof; d < on.first_dof + on.dofs; ++d) {
      const Motion<double>& s = axis_[std::size_t(d)];
      const Vec3d v = s.v + cross(s.w, arm);
      double* to = rows + place(d);
      for (int k = 0; k < 3; ++k) to[k * leading_] += sign * s.w[k], to[(3 + k) * leading_] += sign * v[k];
      seen_[std::size_t(place(d))] = 1;
    }
    arm += on.offset;
  }
}

int DenseTrees::add_pair(int a, int b) {
  Pair pair;
  pair.rows = jacobian_.size(), pair.first_place = int(places_.size());
  jacobian_.resize(jacobian_.size() + 6 * std::size_t(leading_), 0.0);
  std::fill(seen_.begin(), seen_.end(), 0);
  double* rows = jacobian_.data() + pair.rows;
  write_branch(a, 1, {0, 0, 0}, rows);
  if (b >= 0) write_branch(b, -1, origin_[std::size_t(a)] - origin_[std::size_t(b)], rows);
  for (int p = 0; p < model_.nv; ++p) {
    if (seen_[std::size_t(p)]) places_.push_back(p);
  }
  pair.places = int(places_.size()) - pair.first_place;
  pairs_.push_back(pair);
  return int(pairs_.size()) - 1;
}

std::span<const int> DenseTrees::places(int pair) const {
  const Pair& p = pairs_[std::size_t(pair)];
  return std::span(places_).subspan(std::size_t(p.first_place), std::size_t(p.places));
}

void DenseTrees::clear() { H_.matrix.assign(mass_.begin(), mass_.end()); }

void DenseTrees::add(std::span<const DenseTerm> terms, int columns, double* right) {
  at_least(product_, std::size_t(6) * std::size_t(columns));
  kernel_table<double>(1).dense_add(terms.data(), int(terms.size()), columns, product_.data(), right, H_.matrix.data(),
                                    leading_);
}

void DenseTrees::factor() { H_.factor(size_, leading_); }

void DenseTrees::factor_free() {
  if (free_factored_) return;
  free_.matrix.assign(mass_.begin(), mass_.end());
  free_.factor(size_, leading_), free_factored_ = true;
}

void DenseTrees::solve_free(std::span<double> x) {
  factor_free();
  free_.solve(x);
}

void DenseTrees::solve_free(std::span<double> X, int columns) {
  factor_free();
  free_.solve(X, columns);
}

template <class R>
void DenseTrees::finish(std::span<const double> solution, BasicData<R>& data, Out<R> x) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    Motion<double> a{};
    if (link.parent >= 0) a = shift(widen(data.links()[std::size_t(link.parent)].a), link.offset);
    for (int d = link.first_dof; d < link.first_dof + link.dofs; ++d) {
      const double along = solution[std::size_t(place(d))];
      const Motion<double>& s = axis_[std::size_t(d)];
      a.w += s.w * along, a.v += s.v * along, x[std::size_t(d)] = R(along);
    }
    Motion<R>& to = data.links()[i].a;
    for (int k = 0; k < 3; ++k) to.w[k] = R(a.w[k]), to.v[k] = R(a.v[k]);
  }
}

#define TARSUS_INSTANTIATE(R)                                                                                       \
  template void DenseTrees::begin<R>(const BasicData<R>&, In<R>, std::span<const double>, std::span<const double>); \
  template void DenseTrees::add_forces<R>(In<R>, In<R>, std::span<double>);                                         \
  template void DenseTrees::finish<R>(std::span<const double>, BasicData<R>&, Out<R>) const;
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
