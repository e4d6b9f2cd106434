// TreeRows: the two ways to solve, and what follows from the solution.
#include <algorithm>
#include <cmath>

#include "constraint/contact_force.hpp"
#include "constraint/widen.hpp"
#include "tarsus/constraint/tree_rows.hpp"

namespace tarsus {

namespace {

constexpr int kNewtonRounds = 60;
constexpr double kGiveUp = 1e-3;                    ///< residual of Newton's above which Gauss-Seidel has a try [m/s]
constexpr double kLeastDiagonal = 1e-10;            ///< of a row, in what it would be without equality constraints
constexpr int kManyRows = 150, kSweepsOfMany = 60;  ///< where a sweep costs much, few must do

}  // namespace

/// J v of every row, v being the links' velocities in data's workspace, plus `a_share` times their accelerations, and
/// `qvel` for rows on joints.
template <class R>
void TreeRows<R>::row_velocity(BasicData<R>& data, In<R> qvel, double* out, double a_share) const {
  const LinkState<R>* links = data.links();
  const auto motion = [&](int link) {
    Motion<double> m = widen(links[link].v);
    if (a_share != 0) m.w += widen(links[link].a.w) * a_share, m.v += widen(links[link].a.v) * a_share;
    return m;
  };
  for (std::size_t i = 0; i < contacts_.size(); ++i) {
    const TreeContact& rows = contact_rows_[i];
    const LinkContact& c = contacts_[i];
    const Motion<double> a = motion(c.a);
    Vec3d w = a.w, v = a.v + cross(a.w, rows.arm_a);
    if (c.b >= 0) {
      const Motion<double> b = motion(c.b);
      v -= b.v + cross(b.w, rows.arm_b), w -= b.w;
    }
    for (int k = 0; k < c.dimension; ++k) out[rows.first_row + k] = dot(rows.axis[k % 3], k < 3 ? v : w);
  }
  const int first = rows() - int(joint_rows_.size());
  for (std::size_t j = 0; j < joint_rows_.size(); ++j) {
    const Joint& joint = model_.joints[joint_rows_[j].joint];
    double sum = 0;
    for (int k = 0; k < joint.nv(); ++k) sum += joint_rows_[j].entry[k] * double(qvel[joint.qvel + k]);
    out[first + int(j)] = sum;
  }
}

template <class R>
void TreeRows<R>::solve(BasicData<R>& data, In<R> qpos, In<R> joint_inertia, Out<R> velocity, bool included,
                        bool fresh) {
  if (rows() == 0) return;
  if (!fresh) kinematics<R>(model_, data, qpos, velocity);
  velocity_.resize(rows());
  row_velocity(data, velocity, velocity_.data(), fresh ? h_ : 0);
  const bool newton = options_.method != RowsMethod::gauss_seidel && newton_can();
  if (newton && included) {  // back to the velocity without rows
    take_out(data, velocity);
    kinematics<R>(model_, data, qpos, velocity);
    row_velocity(data, velocity, velocity_.data());
  }
  if (!newton || !solve_newton(data, joint_inertia, velocity)) {
    if (newton) tarsus::factor<R>(model_, data, qpos, joint_inertia);  // Newton's rounds took it
    solve_gauss_seidel(data, velocity, included && !newton);
  }
  report_.touching = 0;
  for (const TreeContact& contact : contact_rows_) report_.touching += multiplier_[contact.first_row] > 0;
}

/// Rows on joints must be on one hinge, slide or ball.
template <class R>
bool TreeRows<R>::newton_can() const {
  for (const JointRow& row : joint_rows_) {
    if (model_.joints[row.joint].type == JointType::free) return false;
  }
  return true;
}

template <class R>
bool TreeRows<R>::solve_newton(BasicData<R>& data, In<R> joint_inertia, Out<R> velocity) {
  one_joint_rows_.clear();
  const int first = rows() - int(joint_rows_.size());
  for (std::size_t j = 0; j < joint_rows_.size(); ++j) {
    const JointRow& row = joint_rows_[j];
    Vec3d e{row.entry[0], row.entry[1], row.entry[2]};
    if (model_.joints[row.joint].type == JointType::ball) e = widen(data.links()[row.joint].R) * e;
    one_joint_rows_.push_back({row.joint, first + int(j), e, row.speed});
  }
  start_ = multiplier_;
  RowSolveOptions options = options_.solve;
  options.max_iterations = std::min(options.max_iterations, kNewtonRounds);
  const RowSolveReport solved = newton_.solve(
      data, joint_inertia, {contact_rows_, one_joint_rows_, numbers_, velocity_, held_}, multiplier_, change_, options);
  report_.iterations += solved.iterations;
  if (solved.status != RowSolveStatus::converged && !(solved.residual <= kGiveUp)) {
    if (!(solved.residual <= 1e-2)) multiplier_ = start_;  // else the sweeps go on from where this got
    return false;
  }
  report_.status = solved.status, report_.residual = solved.residual, report_.method = RowsMethod::newton;
  for (int k = 0; k < model_.nv; ++k) velocity[k] += change_[k];
  held_impulse_.assign(newton_.held_impulse().begin(), newton_.held_impulse().end());
  return true;
}

/// Makes a velocity that has the rows' effect in it the one without.
template <class R>
void TreeRows<R>::take_out(BasicData<R>& data, Out<R> velocity) {
  if (held_.rows() == 0) {
    std::fill(change_.begin(), change_.end(), R(0));
    add_force(data, change_);
    minv<R>(model_, data, change_, change_);
    for (int k = 0; k < model_.nv; ++k) velocity[k] -= R(h_) * change_[k];
    return;
  }
  write_blocks(data);
  write_matrix(data);
  velocity_change(data, multiplier_);
  for (int k = 0; k < model_.nv; ++k) velocity[k] -= u_[k];
}

/// The rows as blocks that climb the tree: contacts of one pair of links side by side, after the equality constraints.
template <class R>
void TreeRows<R>::write_blocks(const BasicData<R>& data) {
  rows_.clear();
  held_.write(data, rows_, held_phi_);
  for (std::size_t i = 0; i < contacts_.size();) {
    std::size_t end = i;
    int count = 0;
    while (end < contacts_.size() && contacts_[end].a == contacts_[i].a && contacts_[end].b == contacts_[i].b)
      count += contacts_[end++].dimension;
    typename DelassusRows<R>::Block block = rows_.block(rows_.add_block(contacts_[i].a, contacts_[i].b, count));
    for (int row = 0; i < end; row += contacts_[i++].dimension) {
      write_contact<R>(contact_rows_[i], block, row);
    }
  }
  for (const JointRow& row : joint_rows_) {
    const int joints[1] = {row.joint};
    typename DelassusRows<R>::Block block = rows_.block(rows_.add_joint_block(joints, 1));
    for (int k = 0; k < model_.joints[row.joint].nv(); ++k)
      block.joint[std::size_t(k) * block.stride] = R(row.entry[k]);  // own DoFs come first
  }
}

template <class R>
void TreeRows<R>::write_matrix(const BasicData<R>& data) {
  problem_.clear();
  for (const RowBlock& block : blocks_) {
    problem_.add_block(block.cone, block.reference, block.coefficient, block.identity);
    for (int i = block.first; i < block.first + block.count; ++i) problem_.add_row(numbers_[i]);
  }
  rows_.sweep(model_, data);
  const int ld = rows_.leading_dimension();
  double* matrix = problem_.matrix(ld);
  if constexpr (sizeof(R) == sizeof(double)) {
    if (held_.rows() == 0) rows_.gram(matrix, problem_.ld());
  }
  if (held_.rows() > 0 || sizeof(R) != sizeof(double)) {
    gram_.resize(std::size_t(rows_.rows()) * ld);
    rows_.gram(gram_.data(), ld);
    full_.assign(gram_.begin(), gram_.end());
    const int n = rows_.rows();
    if (held_.rows() > 0) {
      std::vector<double> copy(full_);
      const std::vector<char> left_out = dependent_rows(held_, copy, ld);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < i; ++j) full_[std::size_t(i) * ld + j] = full_[std::size_t(j) * ld + i];
      }
      eliminate_held(held_, left_out, full_, n, ld, {});
    }
    const int first = held_.rows();
    for (int i = 0; i < rows(); ++i) {
      const std::size_t diagonal = std::size_t(first + i) * (ld + 1);
      // A row that only the equality constraints could move keeps a diagonal, for sweeps to divide by.
      if (first > 0) full_[diagonal] += kLeastDiagonal * double(gram_[diagonal]);
      std::copy_n(&full_[diagonal - i], rows(), matrix + std::size_t(i) * problem_.ld());
    }
  }
  std::copy(velocity_.begin(), velocity_.end(), problem_.velocity().begin());
  problem_.finish();
}

/// u_ = M̂⁻¹ (Jᵀ impulse + J_eᵀ Δλ_e) with the Δλ_e that leave J_e v as it is, by the rows that write_matrix() left.
template <class R>
void TreeRows<R>::velocity_change(BasicData<R>& data, std::span<const double> impulse) {
  const std::size_t n = rows_.rows(), ld = rows_.leading_dimension(), held = held_.rows();
  std::vector<double> all(n);
  std::copy(impulse.begin(), impulse.end(), all.begin() + long(held));
  held_back(int(held), full_, int(n), int(ld), {}, all);
  held_impulse_.assign(all.begin(), all.begin() + long(held));
  gram_.assign(all.begin(), all.end());
  std::fill(u_.begin(), u_.end(), R(0));
  rows_.push(gram_.data(), u_.data());
  outward<R>(model_, data, u_, u_);
}

template <class R>
void TreeRows<R>::solve_gauss_seidel(BasicData<R>& data, Out<R> velocity, bool included) {
  write_blocks(data);
  write_matrix(data);
  if (included) problem_.exclude(multiplier_);
  start_ = multiplier_;
  RowSolveOptions options = options_.solve;
  if (report_.iterations > 0 && rows() > kManyRows)
    options.max_iterations = std::min(options.max_iterations, kSweepsOfMany);
  const RowSolveReport solved = solver_.solve(problem_, multiplier_, options);
  report_.status = solved.status, report_.residual = solved.residual, report_.method = RowsMethod::gauss_seidel;
  report_.iterations += solved.iterations;
  if (solved.status == RowSolveStatus::not_finite) {
    std::fill(multiplier_.begin(), multiplier_.end(), 0.0);
    return;
  }
  if (!included) std::fill(start_.begin(), start_.end(), 0.0);
  for (int i = 0; i < rows(); ++i) start_[i] = multiplier_[i] - start_[i];
  velocity_change(data, start_);
  for (int k = 0; k < model_.nv; ++k) velocity[k] += u_[k];
}

template <class R>
void TreeRows<R>::add_force(BasicData<R>& data, Out<R> force) {
  std::fill(link_force_.begin(), link_force_.end(), 0.0);
  const auto add = [&](int link, const Vec3d& moment, const Vec3d& f) {
    for (int k = 0; k < 3; ++k) link_force_[6 * link + k] += moment[k], link_force_[6 * link + 3 + k] += f[k];
  };
  for (std::size_t i = 0; i < contacts_.size(); ++i) {
    const LinkContact& c = contacts_[i];
    const TreeContact& rows = contact_rows_[i];
    Vec3d f{0, 0, 0}, moment{0, 0, 0};
    for (int k = 0; k < c.dimension; ++k)
      (k < 3 ? f : moment) += rows.axis[k % 3] * (multiplier_[rows.first_row + k] / h_);
    add(c.a, moment + cross(rows.arm_a, f), f);
    if (c.b >= 0) add(c.b, -moment - cross(rows.arm_b, f), -f);
  }
  const int first = rows() - int(joint_rows_.size());
  for (std::size_t j = 0; j < joint_rows_.size(); ++j) {
    const Joint& joint = model_.joints[joint_rows_[j].joint];
    for (int k = 0; k < joint.nv(); ++k)
      force[joint.qvel + k] += R(multiplier_[first + j] / h_ * joint_rows_[j].entry[k]);
  }
  const LinkState<R>* links = data.links();
  for (int i = model_.njoint() - 1; i >= 0; --i) {  // Sᵀ f, and on to the parent
    const double* at = &link_force_[6 * i];
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
    add(parent, up.n, up.f);
  }
}

template <class R>
double TreeRows<R>::residual(BasicData<R>& data, In<R> qpos, In<R> velocity) {
  if (rows() == 0) return 0;
  kinematics<R>(model_, data, qpos, velocity);
  velocity_.resize(rows());
  row_velocity(data, velocity, velocity_.data());
  const double scale = 1 / std::max(model_.total_mass(), 1e-30);
  double worst = 0;
  for (const RowBlock& block : blocks_) {  // max |λ - P(λ - r)|, every row's inverse mass taken as the tree's
    const double bound = block.reference >= 0 ? block.coefficient * multiplier_[block.reference] : 0;
    double square = 0, z[6] = {};
    for (int k = 0; k < block.count; ++k) {
      const int i = block.first + k;
      z[k] = multiplier_[i] - (velocity_[i] + numbers_[i].compliance * multiplier_[i] - numbers_[i].target) / scale;
      square += z[k] * z[k];
    }
    const double shrink = block.cone == RowCone::ball && square > bound * bound ? bound / std::sqrt(square) : 1;
    for (int k = 0; k < block.count; ++k) {
      const int i = block.first + k;
      const double low = block.cone == RowCone::box ? -bound : numbers_[i].lower,
                   high = block.cone == RowCone::box ? bound : numbers_[i].upper;
      const double projected = block.cone == RowCone::ball ? shrink * z[k] : std::clamp(z[k], low, high);
      const double miss = std::abs(multiplier_[i] - projected) * scale;
      worst = miss <= worst ? worst : miss;
    }
  }
  return report_.residual = worst;
}

template <class R>
Vec3d TreeRows<R>::force(int contact) const {
  const TreeContact& rows = contact_rows_.at(contact);
  Vec3d impulse{0, 0, 0};
  for (int k = 0; k < std::min(3, contacts_[contact].dimension); ++k)
    impulse += rows.axis[k] * multiplier_[rows.first_row + k];
  return impulse * (1 / h_);
}

template class TreeRows<double>;
template class TreeRows<float>;

}  // namespace tarsus
