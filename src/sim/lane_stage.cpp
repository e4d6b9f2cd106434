#include "tarsus/sim/lane_stage.hpp"

#include <cmath>

namespace tarsus {

std::string limits_refusal(const Model& model, const Drives& drives) {
  for (const Joint& joint : model.joints) {
    if (!moves_freely(joint.type) || drives.force_limit.empty()) continue;
    for (int k = 0; k < 4; ++k) {
      const int v = joint.qvel + k;
      if (std::isfinite(drives.force_limit[v]) && (drives.kp[v] > 0 || drives.kd[v] > 0))
        return "force limits of a free joint's drive are not supported in SIMD lanes";
    }
  }
  return {};
}

template <class R>
std::string LaneStage<R>::refusal(const Model& model, const RowStageOptions& options) {
  return LaneTerms<R>::refusal(model, options.shapes(model).get(), options);
}

template <class R>
LaneStage<R>::LaneStage(const Model& model, const BasicData<R>& data, const EqualitySet* equalities,
                        std::span<const ForceSlot> slots, std::span<const std::uint8_t> spins,
                        const RowStageOptions& options)
    : model_(model),
      width_(data.width()),
      options_((options.check(), options)),
      geometry_(options.shapes(model)),
      terms_(model, data, geometry_.get(), equalities, slots, spins, options),
      reports_(data.worlds()),
      push_(data.size(model.nv)),
      zero_(data.size(model.nv)) {}

/// Collects the joints whose drive has a limit, and the limits.
template <class R>
void LaneStage<R>::take_drives(const DriveStep<R>& step, const SplitDrives& drives) {
  const std::string why = limits_refusal(model_, step.drives);
  if (!why.empty()) throw ValueError("force_limit", "finite", why);
  limited_.joints.clear(), limited_.low.clear(), limited_.high.clear();
  limited_.kp.assign(drives.limited.kp.begin(), drives.limited.kp.end());
  limited_.kd.assign(drives.limited.kd.begin(), drives.limited.kd.end());
  limited_.plain = drives.limited.plain;
  for (int j = 0; j < model_.njoint(); ++j) {
    const int v = model_.joints[j].qvel;
    if (!drives.is_limited[v]) continue;
    const auto [low, high] = step.drives.bounds(v);
    limited_.joints.push_back(j), limited_.low.push_back(R(low)), limited_.high.push_back(R(high));
  }
}

template <class R>
void LaneStage<R>::solve(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives,
                         ConstrainedDynamics<R>* loops, double loop_step, In<R> found, bool responds, Out<R> velocity) {
  for (int pack = 0; loops && pack < data.packs(); ++pack) {
    loops->evaluate(data, loop_step, data.qpos, data.qvel, pack);
    const In<R> rate = loops->rate(pack), demand = loops->demand(pack);
    held_.resize(rate.size());
    for (std::size_t i = 0; i < held_.size(); ++i) held_[i] = rate[i] + R(step.h) * demand[i];
    terms_.hold(pack, loops->forces(), held_, loops->compliance());
  }
  if (drives) {
    take_drives(step, *drives);
    drive_force<R>(model_, data, drives->limited, step.h, data.qpos, data.qvel, step.qpos_target, step.qvel_target,
                   zero_, push_);
  }
  terms_.solve(data, step.h, data.joint_force, data.joint_inertia, drives ? &limited_ : nullptr, push_, found, responds,
               velocity);
  for (int world = 0; world < data.worlds(); ++world) reports_[world] = terms_.report(world);
  for (int pack = 0; loops && pack < data.packs(); ++pack)
    loops->record(terms_.bilateral_impulse(pack), step.h, terms_.bilateral_miss(pack), pack);
}

template <class R>
void LaneStage<R>::ground_force(int world, Out<R> out) const {
  const int n = 3 * model_.njoint();
  for (int i = 0; i < n; ++i) out[i] = terms_.ground_force()[batch_index(width_, n, i, world)];
}

template <class R>
void LaneStage<R>::put(int world, const RowsReport& report, In<R> ground_force) {
  reports_[world] = report;
  const int n = int(ground_force.size());
  for (int i = 0; i < n; ++i) terms_.ground_force()[batch_index(width_, n, i, world)] = ground_force[i];
}

template class LaneStage<double>;
template class LaneStage<float>;

}  // namespace tarsus
