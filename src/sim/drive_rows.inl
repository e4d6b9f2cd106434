// Drives with a force limit as terms of a step. Their impulse is clamp(h Q_d - K (v⁺ - v)) with K = h k_d (+ h² k_p),
// where Q_d is the drive's force at the end of the step for q̈ = 0. The limit applies to the length of a rotation's
// torque and to each axis of a translation separately.
#pragma once

#include <algorithm>
#include <cmath>

#include "tarsus/sim/row_stage.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

/// Calls f(rows, first DoF) for each term's rows among the limited drives.
template <class F>
static void each_limited(const Model& model, const SplitDrives& drives, const F& f) {
  using Part = JointRows::Part;
  for (int j = 0; j < model.njoint(); ++j) {
    const Joint& joint = model.joints[j];
    const int v = joint.qvel;
    if (joint.nv() == 1) {
      if (drives.is_limited[v]) f(JointRows{j, Part::axial, 1, {1, 0, 0}}, v);
      continue;
    }
    const int w = v + scalar_count(joint.type);
    for (int k = 0; v + k < w; ++k) {
      if (drives.is_limited[v + k])
        f(JointRows{j, Part::linear, 1, {k == 0 ? 1.0 : 0.0, k == 1 ? 1.0 : 0.0, k == 2 ? 1.0 : 0.0}}, v + k);
    }
    if (drives.is_limited[w]) f(JointRows{j, Part::angular, 3, {}}, w);
  }
}

template <class R>
void RowStage<R>::add_drives(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives& drives) {
  drive_force<R>(model_, data, drives.limited, step.h, data.qpos, data.qvel, step.qpos_target, step.qvel_target, zero_,
                 push_);
  const double h = step.h;
  each_limited(model_, drives, [&](const JointRows& rows, int dof) {
    const auto [low, high] = step.drives.bounds(dof);
    const double stiffness = h * drives.limited.kd[dof] + (drives.limited.plain ? 0 : h * h * drives.limited.kp[dof]);
    const R* own = &push_[dof];
    const Vec3d push = rows.nrow == 3 ? widen(data.links()[rows.joint].R * Vec3<R>{own[0], own[1], own[2]}) * h
                                      : rows.e * (h * double(own[0]));
    terms_.add_drive(rows, push, stiffness, h * low, h * high);
    drive_rows_.push_back(rows);
  });
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

}  // namespace tarsus
