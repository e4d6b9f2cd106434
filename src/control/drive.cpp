#include "tarsus/control/drive.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "control/kernel_table.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

Drives Drives::none(const Model& model) {
  return {std::vector<double>(model.nv), std::vector<double>(model.nv), false, {}, {}, 0.5};
}

Drives Drives::uniform(const Model& model, double kp, double kd, double root_kp, double root_kd) {
  Drives drives = none(model);
  for (const Joint& joint : model.joints) {
    const bool root = moves_freely(joint.type);
    for (int k = 0; k < joint.nv(); ++k) {
      drives.kp[joint.qvel + k] = root ? root_kp : kp;
      drives.kd[joint.qvel + k] = root ? root_kd : kd;
    }
  }
  drives.check(model);
  return drives;
}

/// Whether all numbers times `sign` are from +0 to the largest finite number, or to infinity. Compares bits, because a
/// step has only nanoseconds for it: the sign bit of the sum is set by numbers that are larger, and by nan.
static bool surely_within(std::span<const double> numbers, double sign, bool infinity_too) {
  const std::uint64_t flip = std::bit_cast<std::uint64_t>(sign) & std::bit_cast<std::uint64_t>(-0.0);
  const std::uint64_t beyond = infinity_too ? 0x000fffffffffffff : 0x0010000000000000;
  std::uint64_t seen = 0;
  for (const double x : numbers) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) ^ flip;
    seen |= bits | (bits + beyond);
  }
  return seen >> 63 == 0;
}

/// Whether the numbers are surely valid. Drives for which this is false may be valid too: forces that only push, -0.
static bool surely_valid(const Drives& drives) {
  return surely_within(drives.kp, 1, false) && surely_within(drives.kd, 1, false) &&
         surely_within({&drives.spin_damping, 1}, 1, false) && surely_within(drives.force_limit, 1, true) &&
         surely_within(drives.force_floor, -1, true);
}

void Drives::check(const Model& model) const {
  check_size("kp", kp.size(), model.nv);
  check_size("kd", kd.size(), model.nv);
  if (!force_limit.empty()) check_size("force_limit", force_limit.size(), model.nv);
  if (!force_floor.empty()) check_size("force_floor", force_floor.size(), model.nv);
  if (surely_valid(*this)) return;  // every step asks
  for (int i = 0; i < model.nv; ++i) {
    for (const auto& [name, gain] : {std::pair{"kp", kp[i]}, std::pair{"kd", kd[i]}}) {
      if (gain >= 0 && std::isfinite(gain)) continue;
      throw ValueError(std::string(name) + " of joint \"" + model.joints[model.dof_joint[i]].name + "\"",
                       number_text(gain), "finite and not negative");
    }
  }
  if (!(spin_damping >= 0) || !std::isfinite(spin_damping))
    throw ValueError("spin_damping", number_text(spin_damping), "finite and not negative");
  for (int i = 0; limited() && i < model.nv; ++i) {
    const Joint& joint = model.joints[model.dof_joint[i]];
    const auto [low, high] = bounds(i);
    const bool length = has_rotation(joint.type) && i >= joint.qvel + scalar_count(joint.type);
    if (low <= high && (!length || high >= 0)) continue;  // false for nan
    if (force_floor.empty())
      throw ValueError("force_limit of joint \"" + joint.name + "\"", number_text(high), "a number, not negative");
    throw ValueError("force limit of joint \"" + joint.name + "\"", number_text(low) + " to " + number_text(high),
                     length ? "a length, not negative" : "the lower one not above the upper one");
  }
}

namespace {

/// Gains converted to the kernels' precision for one call.
template <class R>
struct Gains {
  std::vector<R> kp, kd;
  explicit Gains(const Drives& drives)
      : kp(drives.kp.begin(), drives.kp.end()), kd(drives.kd.begin(), drives.kd.end()) {}
};
template <>
struct Gains<double> {
  const std::vector<double>&kp, &kd;
  explicit Gains(const Drives& drives) : kp(drives.kp), kd(drives.kd) {}
};

template <class R>
DriveView<R> drive_view(const BasicData<R>& data, int pack, const Gains<R>& gains, const Drives& drives, double dt) {
  DriveView<R> view{gains.kp.data(), gains.kd.data(), drives.plain, R(dt)};
  if (!data.own) return view;
  const WorldTable<R>& own = data.own[pack];
  if (!own.kp.empty()) view.kp_scale = own.kp.data();
  if (!own.kd.empty()) view.kd_scale = own.kd.data();
  return view;
}

template <class R>
void check_inputs(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                  In<R> qpos_target, In<R> qvel_target) {
  check_size("kp", drives.kp.size(), model.nv);
  check_size("kd", drives.kd.size(), model.nv);
  check_sizes(data, model.nq, "qpos", qpos, "qpos_target", qpos_target);
  check_size("qvel", qvel.size(), data.size(model.nv));
  if (!qvel_target.empty()) check_size("qvel_target", qvel_target.size(), data.size(model.nv));
  if (!(dt >= 0) || !std::isfinite(dt))
    throw ValueError("dt", number_text(dt), "a finite number of seconds, not negative");
}

}  // namespace

template <class R>
void drive_terms(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> tau, Out<R> joint_force, Out<R> joint_inertia) {
  check_inputs(model, data, drives, dt, qpos, qvel, qpos_target, qvel_target);
  if (!tau.empty()) check_size("tau", tau.size(), data.size(model.nv));
  check_sizes(data, model.nv, "joint_force", joint_force, "joint_inertia", joint_inertia);
  const Gains<R> gains(drives);
  const int nq = model.nq, nv = model.nv, w = data.width();
  for (int i = 0; i < data.packs(); ++i) {
    const auto at = [&](auto array, int n) { return pack_of(array, n, i, w); };
    control_table<R>(w).drive_terms(data.view(model, i), drive_view(data, i, gains, drives, dt), at(qpos, nq),
                                    at(qvel, nv), at(qpos_target, nq), at(qvel_target, nv), at(tau, nv),
                                    at(joint_force, nv), at(joint_inertia, nv));
  }
}

template <class R>
void drive_force(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> qacc, Out<R> force) {
  check_inputs(model, data, drives, dt, qpos, qvel, qpos_target, qvel_target);
  check_sizes(data, model.nv, "qacc", qacc, "force", force);
  const Gains<R> gains(drives);
  const int nq = model.nq, nv = model.nv, w = data.width();
  for (int i = 0; i < data.packs(); ++i) {
    const auto at = [&](auto array, int n) { return pack_of(array, n, i, w); };
    control_table<R>(w).drive_force(data.view(model, i), drive_view(data, i, gains, drives, dt), at(qpos, nq),
                                    at(qvel, nv), at(qpos_target, nq), at(qvel_target, nv), at(qacc, nv),
                                    at(force, nv));
  }
}

#define TARSUS_INSTANTIATE(R)                                                                                        \
  template void drive_terms<R>(const Model&, const BasicData<R>&, const Drives&, double, In<R>, In<R>, In<R>, In<R>, \
                               In<R>, Out<R>, Out<R>);                                                               \
  template void drive_force<R>(const Model&, const BasicData<R>&, const Drives&, double, In<R>, In<R>, In<R>, In<R>, \
                               In<R>, Out<R>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
