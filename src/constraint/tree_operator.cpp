#include "tarsus/constraint/tree_operator.hpp"
#include "tarsus/spatial/widen.hpp"

#include <algorithm>
#include <cmath>

#include "constraint/tree_loads.hpp"

namespace tarsus {

namespace {

constexpr int kEasy = 2;       ///< iterations of a step that is not hard,
constexpr int kEasyShare = 2;  ///< and is dense all the same where so many times its extra rows are more than the DoFs
constexpr int kCrowd = 24;     ///< unknowns of contacts, at which the Schur complement costs as much as the graph
constexpr double kMost = 10;   ///< times the operations of eliminates() that a step may take

}  // namespace

template <class R>
TreeOperator<R>::TreeOperator(const Model& model, int dense_dofs)
    : model_(model),
      small_(model.nv <= dense_dofs),
      load_of_link_(model.njoint(), -1),
      loads_(model.njoint()),
      rows_(model),
      swept_(model),
      dense_(model),
      coupled_(model),
      u_(model.nv) {
  for (Iterate* i : {&now_, &next_, &kept_}) i->x.resize(model.nv);
}

template <class R>
void TreeOperator<R>::begin(BasicData<R>& data, double h, In<R> joint_inertia, std::span<const Term> terms,
                            const RowGeometry& geometry, const BilateralRows<R>& bilateral) {
  data_ = &data, joint_inertia_ = joint_inertia;
  terms_ = terms, bilateral_ = bilateral;
  contacts_ = geometry.contacts, joints_ = geometry.joints, paths_ = geometry.paths;
  solves_ = 0, dense_begun_ = false;
  first_ = true, operations_left_ = kMost * operations_;
  for (Iterate* i : {&now_, &next_, &kept_}) i->bilateral.assign(bilateral.rows(), 0.0);
  bilateral_demand_.clear();
  if (bilateral.rows() > 0) begin_bilateral(h);
  prepare_loads<R>(model_, data);
}

template <class R>
bool TreeOperator<R>::solve(std::span<const Tangent> tangents, std::span<const double> force,
                            std::span<double> change) {
  int coupled = 0;
  bool dense = dense_begun_;
  if (!tangents.empty() && !dense) {
    coupled = coupled_unknowns(tangents, force);
    dense = small_ && (++solves_ > kEasy || kEasyShare * (coupled + bilateral_.rows()) > model_.nv);
  }
  if (dense) {
    solve_dense(tangents, force);
  } else if (tangents.empty()) {
    clear_loads();
    add_contact_forces(force);
    add_joint_loads(tangents, force);
    begin_extra_rows();
    add_paths(tangents, force);
    solve_loaded<R>(model_, *data_, joint_inertia_, {}, load_of_link_, loads_, next_.x);
    if (rows_.rows() > 0) solve_extra(tangents, force);
  } else if (coupled >= kCrowd) {
    if (!solve_coupled(tangents, force)) return false;
  } else {
    add_loads(tangents, force);
    add_extra_rows(tangents, force);
    solve_loaded<R>(model_, *data_, joint_inertia_, {}, load_of_link_, loads_, next_.x);
    if (rows_.rows() > 0) solve_extra(tangents, force);
  }
  read(change);
  return true;
}

template <class R>
void TreeOperator<R>::begin_dense() {
  if (dense_begun_) return;
  dense_begun_ = true;
  jacobian_.clear(), right_.resize(bilateral_.rows());
  if (bilateral_.rows() > 0) {
    begin_extra_rows();
    write_jacobian();
  }
  for (int i = 0; i < bilateral_.rows(); ++i) right_[i] = double(bilateral_.compliance[i]) + raised_[i];
  dense_.begin(*data_, joint_inertia_, terms_, {contacts_, joints_, paths_}, jacobian_, right_);
}

template <class R>
void TreeOperator<R>::solve_dense(std::span<const Tangent> tangents, std::span<const double> force) {
  begin_dense();
  const std::span<const double> right = dense_.load(tangents, force);
  const int held = dense_.trees().place_of_row(0);
  solution_.assign(right.begin(), right.end());
  std::copy(bilateral_demand_.begin(), bilateral_demand_.end(), solution_.begin() + held);
  settle([&](std::span<double> x) { dense_.solve(x); }, held);
  std::copy_n(solution_.begin() + held, bilateral_.rows(), next_.bilateral.begin());
  dense_.trees().template finish<R>(solution_, *data_, next_.x);
}

template <class R>
void TreeOperator<R>::move(double t) {
  if (first_) t = 1;
  for (std::size_t i = 0; i < now_.x.size(); ++i)
    now_.x[i] = first_ ? next_.x[i] : now_.x[i] + R(t) * (next_.x[i] - now_.x[i]);
  for (std::size_t i = 0; i < now_.bilateral.size(); ++i)
    now_.bilateral[i] += t * (next_.bilateral[i] - now_.bilateral[i]);
  now_.miss = t == 1 ? next_.miss : std::max(now_.miss, next_.miss);
  first_ = false;
}

template <class R>
void TreeOperator<R>::keep() {
  kept_ = now_;
}

template <class R>
void TreeOperator<R>::clear_loads() {
  loads_used_ = 0;
  std::fill(load_of_link_.begin(), load_of_link_.end(), -1);
}

template <class R>
LinkLoad<R>& TreeOperator<R>::load_of(int link) {
  int& load = load_of_link_[link];
  if (load < 0) {
    load = loads_used_++;
    loads_[load].clear();
  }
  return loads_[load];
}

/// The symmetric part of the tangents, and the forces, on links and joints.
template <class R>
void TreeOperator<R>::add_loads(std::span<const Tangent> tangents, std::span<const double> force) {
  clear_loads();
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const double* f = &force[terms_[c].first_row];
    if (contacts_[c].b < 0 && !idle(tangents[c], f, terms_[c].nrow))
      add_contact_load(contacts_[c], tangents[c], f, load_of(contacts_[c].a));
  }
  add_joint_loads(tangents, force);
}

/// Forces alone, of contacts between two links as well.
template <class R>
void TreeOperator<R>::add_contact_forces(std::span<const double> force) {
  constexpr Tangent kNone{};
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const double* f = &force[terms_[c].first_row];
    if (std::all_of(f, f + terms_[c].nrow, [](double x) { return x == 0; })) continue;
    ContactRows contact = contacts_[c];
    add_contact_load(contact, kNone, f, load_of(contact.a));
    if (contact.b < 0) continue;
    for (Vec3d& axis : contact.axis) axis = -axis;
    contact.arm_a = contact.arm_b;
    add_contact_load(contact, kNone, f, load_of(contact.b));
  }
}

template <class R>
void TreeOperator<R>::add_joint_loads(std::span<const Tangent> tangents, std::span<const double> force) {
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const std::size_t t = contacts_.size() + j;
    add_joint_load(joints_[j], moves_freely(model_.joints[joints_[j].joint].type),
                   tangents.empty() ? Tangent{} : tangents[t], &force[terms_[t].first_row], load_of(joints_[j].joint));
  }
}

/// J x of the solve that left the links' J x in data and x in next_.
template <class R>
void TreeOperator<R>::read(std::span<double> change) {
  const LinkState<R>* links = data_->links();
  for (std::size_t c = 0; c < contacts_.size(); ++c) {
    const ContactRows& contact = contacts_[c];
    const Motion<double> a = widen(links[contact.a].a);
    Vec3d w = a.w, v = a.v + cross(w, contact.arm_a);
    if (contact.b >= 0) {
      const Motion<double> b = widen(links[contact.b].a);
      v -= b.v + cross(b.w, contact.arm_b), w -= b.w;
    }
    for (int k = 0; k < contact.nrow; ++k) change[terms_[c].first_row + k] = dot(contact.axis[k % 3], k < 3 ? v : w);
  }
  for (std::size_t j = 0; j < joints_.size(); ++j)
    joint_velocity(model_, links, joints_[j], next_.x.data(), &change[terms_[contacts_.size() + j].first_row]);
  for (std::size_t p = 0; p < paths_.size(); ++p)
    change[terms_[contacts_.size() + joints_.size() + p].first_row] = along(paths_[p], next_.x);
}

template class TreeOperator<double>;
template class TreeOperator<float>;

}  // namespace tarsus
