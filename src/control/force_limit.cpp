#include "tarsus/control/force_limit.hpp"

#include <algorithm>
#include <cmath>

#include "control/kernel_table.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

void take_force_limits(const Model& model, Drives& drives) {
  drives.force_limit.assign(model.nv, kInfinity);
  drives.force_floor.assign(model.nv, -kInfinity);
  for (const Joint& joint : model.joints) {
    if (!joint.force_limited) continue;
    const bool vector = joint.nv() > 1;  // a limit on a length has no sign
    for (int k = 0; k < joint.nv(); ++k) {
      drives.force_limit[joint.qvel + k] = vector ? std::max(0.0, joint.force_range[1]) : joint.force_range[1];
      drives.force_floor[joint.qvel + k] = vector ? -drives.force_limit[joint.qvel + k] : joint.force_range[0];
    }
  }
}

template <class R>
DriveLimiter<R>::DriveLimiter(const Model& model, const BasicData<R>& data) : model_(model), width_(data.width()) {
  check_data(model, data);
  demand_.resize(data.size(model.nv)), applied_.resize(data.size(model.nv));
  rounds_.resize(data.size(1)), residual_.resize(data.size(1));
  work_.resize((std::size_t(8) * model.nv + std::size_t(12) * model.njoint()) * width_);
  for (auto* v : {&low_, &high_, &inverse_size_}) v->resize(model.nv);
}

template <class R>
void DriveLimiter<R>::take_limits(const Model& model, const Drives& drives) {
  kp_.assign(drives.kp.begin(), drives.kp.end());
  kd_.assign(drives.kd.begin(), drives.kd.end());
  rotations_ = false;
  for (int i = 0; i < model.nv; ++i) {
    const auto [low, high] = drives.bounds(i);
    const double size = std::max(std::abs(low), std::abs(high));
    low_[i] = R(low), high_[i] = R(high);
    inverse_size_[i] = std::isfinite(size) ? R(1 / std::max(size, 1e-30)) : R(0);
    const Joint& joint = model.joints[model.dof_joint[i]];
    rotations_ =
        rotations_ || (std::isfinite(high) && has_rotation(joint.type) && i >= joint.qvel + scalar_count(joint.type));
  }
}

template <class R>
void DriveLimiter<R>::solve(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                            In<R> qpos_target, In<R> qvel_target, In<R> tau, Out<R> qacc) {
  const int nq = model_.nq, nv = model_.nv, w = width_;
  if (data.width() != w || data.size(nv) != demand_.size())
    throw ValueError("data", "of another size", "data of the size that the drives were made for");
  drives.check(model_);
  check_sizes(data, nq, "qpos", qpos, "qpos_target", qpos_target);
  check_sizes(data, nv, "qvel", qvel, "qacc", qacc);
  if (!qvel_target.empty()) check_size("qvel_target", qvel_target.size(), data.size(nv));
  if (!tau.empty()) check_size("tau", tau.size(), data.size(nv));
  if (!(dt >= 0) || !std::isfinite(dt))
    throw ValueError("dt", number_text(dt), "a finite number of seconds, not negative");

  take_limits(model_, drives);
  DriveView<R> drive{kp_.data(), kd_.data(), drives.plain, R(dt)};
  LimitView<R> limits{low_.data(),    high_.data(),   inverse_size_.data(),
                      R(tolerance()), kMaxIterations, R(drives.spin_damping),
                      rotations_};
  const std::size_t n = std::size_t(nv) * w;
  for (int p = 0; p < data.packs(); ++p) {
    const auto at = [&](auto array, int count) { return pack_of(array, count, p, w); };
    R* const work = work_.data();
    const LimitSpace<R> space{&demand_[p * n],
                              work,
                              work + n,
                              work + 2 * n,
                              work + 3 * n,
                              &data.joint_force[p * n],
                              &data.joint_inertia[p * n],
                              work + 4 * n,
                              work + 5 * n,
                              work + 6 * n,
                              work + 7 * n,
                              work + 8 * n,
                              &applied_[p * n],
                              &rounds_[p * w],
                              &residual_[p * w]};
    if (data.own) {
      const auto factors = [](const AlignedVector<R>& array) { return array.empty() ? nullptr : array.data(); };
      drive.kp_scale = factors(data.own[p].kp), drive.kd_scale = factors(data.own[p].kd);
      limits.scale = factors(data.own[p].force);
    }
    control_table<R>(w).limited_maba(data.view(model_, p), drive, limits, space, data.state(p), at(qpos, nq),
                                     at(qvel, nv), at(qpos_target, nq), at(qvel_target, nv), at(tau, nv), at(qacc, nv));
  }
}

template <class R>
LimitReport DriveLimiter<R>::report(int world) const {
  const std::size_t pack = world / width_, lane = world % width_;
  LimitReport report;
  report.iterations = int(rounds_[pack * width_ + lane]);
  report.residual = double(residual_[pack * width_ + lane]);
  report.converged = report.residual <= tolerance();
  const auto bound = [&](int v) {
    const std::size_t at = (pack * model_.nv + std::size_t(v)) * width_ + lane;
    return demand_[at] != applied_[at];
  };
  for (const Joint& joint : model_.joints) {
    const int v = joint.qvel + scalar_count(joint.type);
    for (int k = joint.qvel; k < v; ++k) report.saturated += bound(k);
    if (has_rotation(joint.type)) report.saturated += bound(v) || bound(v + 1) || bound(v + 2);
  }
  return report;
}

template class DriveLimiter<double>;
template class DriveLimiter<float>;

}  // namespace tarsus
