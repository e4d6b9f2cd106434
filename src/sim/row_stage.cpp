#include "tarsus/sim/row_stage.hpp"

#include <algorithm>
#include <cmath>

#include "tarsus/base/number_text.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

void RowStageOptions::check() const {
  if (!(restitution >= 0 && restitution <= 1)) throw ValueError("restitution", number_text(restitution), "0 to 1");
  if (restitution > 0 && !contacts) throw ValueError("restitution", number_text(restitution), "0 without contacts");
  const auto not_negative = [](const char* what, double x) {
    if (!(x >= 0) || !std::isfinite(x)) throw ValueError(what, number_text(x), "finite, not negative");
  };
  not_negative("relative_compliance", relative_compliance),
      not_negative("limit_spook.compliance", limit_spook.compliance);
  not_negative("limit_spook.damping_time", limit_spook.damping_time);
  if (!(restitution_threshold >= 0))
    throw ValueError("restitution_threshold", number_text(restitution_threshold), "not negative");
  if (!(solve.tolerance > 0))  // false for nan
    throw ValueError("tolerance", number_text(solve.tolerance), "a positive number of metres a second");
  if (solve.max_iterations < 1) throw ValueError("max_iterations", std::to_string(solve.max_iterations), "at least 1");
}

std::shared_ptr<const ContactGeometry> RowStageOptions::shapes(const Model& model) const {
  if (!contacts) return nullptr;
  return geometry ? geometry : std::make_shared<const ContactGeometry>(model);
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
      geometry_(options.contacts ? *options.shapes(model) : ContactGeometry()),
      terms_(model, options),
      force_(model.nv),
      push_(model.nv),
      zero_(model.nv) {
  if (data.width() != 1) throw ValueError("data", std::to_string(data.width()) + " lanes", "one world");
  options.check();
  for (const UserLimit& limit : options.user_limits) tarsus::check(limit, model);
}

/// Drives with a force limit as terms. Their impulse is clamp(h Q_d - K (v⁺ - v)) with K = h k_d (+ h² k_p), where Q_d
/// is the drive's force at the end of the step for q̈ = 0. The limit applies to the length of a rotation's torque, and
/// to each axis of a translation separately.
template <class R>
void RowStage<R>::add_drives(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives& drives) {
  drive_force<R>(model_, data, drives.limited, step.h, data.qpos, data.qvel, step.qpos_target, step.qvel_target, zero_,
                 push_);
  const double h = step.h;
  const auto add = [&](const JointRows& rows, int dof) {
    if (!drives.is_limited[dof]) return;
    const auto [low, high] = step.drives.bounds(dof);
    const double stiffness = h * drives.limited.kd[dof] + (drives.limited.plain ? 0 : h * h * drives.limited.kp[dof]);
    const R* own = &push_[dof];
    const Vec3d push = rows.nrow == 3 ? widen(data.links()[rows.joint].R * Vec3<R>{own[0], own[1], own[2]}) * h
                                      : rows.e * (h * double(own[0]));
    terms_.add_drive(rows, push, stiffness, h * low, h * high);
    drive_rows_.push_back(rows);
  };
  using Part = JointRows::Part;
  for (int j = 0; j < model_.njoint(); ++j) {
    const Joint& joint = model_.joints[j];
    const int v = joint.qvel, scalars = scalar_count(joint.type);
    if (joint.nv() == 1) {
      add({j, Part::axial, 1, {1, 0, 0}}, v);
      continue;
    }
    for (int k = 0; k < scalars; ++k)
      add({j, Part::linear, 1, {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0}}, v + k);
    add({j, Part::angular, 3, {}}, v + scalars);
  }
}

/// Reads the impulses of the drives' terms, which are the last of all terms, as forces in qvel's axes.
template <class R>
void RowStage<R>::read_drives(const BasicData<R>& data, double h) {
  std::fill(force_.begin(), force_.end(), R(0));
  for (std::size_t i = 0; i < drive_rows_.size(); ++i) {
    const JointRows& rows = drive_rows_[i];
    const Joint& joint = model_.joints[rows.joint];
    const std::span<const double> impulse = terms_.impulse(first_drive_ + int(i));
    if (rows.part == JointRows::Part::axial) {
      force_[joint.qvel] = R(impulse[0] / h);
    } else if (rows.part == JointRows::Part::linear) {
      for (int k = 0; k < 3; ++k) force_[joint.qvel + k] += R(impulse[0] / h * rows.e[k]);
    } else {
      const Vec3<R> own =
          transpose_mul(data.links()[rows.joint].R, Vec3<R>{R(impulse[0] / h), R(impulse[1] / h), R(impulse[2] / h)});
      const int at = joint.qvel + scalar_count(joint.type);
      force_[at] = own.x, force_[at + 1] = own.y, force_[at + 2] = own.z;
    }
  }
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

template <class R>
void RowStage<R>::apply_again(const BasicData<R>& data, double h, const BilateralRows<R>& bilateral, Out<R> velocity) {
  terms_.solve_again(data.joint_inertia, bilateral, velocity);
  if (!drive_rows_.empty()) read_drives(data, h);
}

template class RowStage<double>;
template class RowStage<float>;

}  // namespace tarsus
