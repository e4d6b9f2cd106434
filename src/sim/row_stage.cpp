#include "tarsus/sim/row_stage.hpp"

#include "sim/drive_rows.inl"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

void RowStageOptions::check() const {
  if (!(restitution >= 0 && restitution <= 1)) throw ValueError("restitution", number_text(restitution), "0 to 1");
  if (restitution > 0 && !contacts) throw ValueError("restitution", number_text(restitution), "0 without contacts");
  if (!(solve.tolerance > 0))  // false for nan
    throw ValueError("tolerance", number_text(solve.tolerance), "a positive number of metres a second");
  if (solve.max_iterations < 1) throw ValueError("max_iterations", std::to_string(solve.max_iterations), "at least 1");
}

void SplitDrives::split(const Model& model, const Drives& drives) {
  is_limited.assign(model.nv, 0);
  for (Drives* d : {&limited, &unlimited}) {
    d->kp = drives.kp, d->kd = drives.kd;
    d->plain = drives.plain, d->spin_damping = drives.spin_damping;
  }
  for (const Joint& joint : model.joints) {
    for (int k = 0; k < joint.nv(); ++k) {
      // A rotation uses the gains and limit of its first DoF.
      const bool rotation = k >= scalar_count(joint.type);
      const int i = joint.qvel + k, at = rotation ? joint.qvel + scalar_count(joint.type) : i;
      const auto [low, high] = drives.bounds(at);
      const bool finite = std::isfinite(high) || (!rotation && std::isfinite(low));
      is_limited[i] = finite && (drives.kp[at] > 0 || drives.kd[at] > 0);
      Drives& other = is_limited[i] ? unlimited : limited;
      other.kp[i] = other.kd[i] = 0;
    }
  }
  const auto none = [](double x) { return x == 0; };
  all_limited = std::all_of(unlimited.kp.begin(), unlimited.kp.end(), none) &&
                std::all_of(unlimited.kd.begin(), unlimited.kd.end(), none);
}

template <class R>
RowStage<R>::RowStage(const Model& model, const BasicData<R>& data, const RowStageOptions& options)
    : model_(model),
      options_(options),
      geometry_(!options.contacts  ? ContactGeometry()
                : options.geometry ? *options.geometry
                                   : ContactGeometry(model)),
      terms_(model, options),
      force_(model.nv),
      push_(model.nv),
      zero_(model.nv) {
  if (data.width() != 1) throw ValueError("data", std::to_string(data.width()) + " lanes", "one world");
  options.check();
  for (const UserLimit& limit : options.user_limits) tarsus::check(limit, model);
}

template <class R>
void RowStage<R>::apply(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives,
                        std::span<const ForceRow> rows, const BilateralRows<R>& bilateral, In<R> joint_force,
                        Out<R> velocity, StageClock& clock) {
  if (options_.contacts) {
    clock.lap(Stage::prepare);
    geometry_.detect(data, step.h, found_);
    clock.lap(Stage::collide);
    for (LinkContact& c : found_) c.restitution = options_.restitution;
  }
  terms_.begin(data, step.h, data.qpos, data.qvel, velocity, found_, joint_force);
  if (options_.joints) terms_.add_limits();
  terms_.add_user_limits();
  if (options_.joints) terms_.add_friction_loss();
  drive_rows_.clear(), first_drive_ = int(terms_.terms().size());
  if (drives) add_drives(data, step, *drives);
  terms_.add_force_rows(rows);
  clock.lap(Stage::prepare);
  terms_.solve(data.joint_inertia, bilateral, velocity);
  if (drives) read_drives(data, step.h);
}

template class RowStage<double>;
template class RowStage<float>;

}  // namespace tarsus
