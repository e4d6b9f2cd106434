// Characters that thrash about under limited drives: random targets at 30 Hz, steps of 1/60 s. Shared by the short and
// the long test.
#pragma once

#include <chrono>

#include "support/built_in.hpp"
#include "support/random_model.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {

struct LimitRun {
  double kp = 1e3, kd = 1e2, limit = 100;  ///< the same for all joints [N m/rad, N m s/rad, N m]
  bool root_driven = true;                 ///< its own drive, limited too, holds a free root in place
  double seconds = 30;
  unsigned seed = 0;
  double spin_damping = 0.5;
  double reach = 1;  ///< targets' largest angle from rest [rad]
  VelocityProductMode products = VelocityProductMode::automatic;
};

struct LimitRunReport {
  WorldStatus status = WorldStatus::ok;
  int steps = 0;
  double iterations = 0;  ///< summed
  int most_iterations = 0;
  double residual = 0;  ///< largest
  double worst_closure =
      0;                 ///< largest |rnea - force clamped at the end of the step| over (limit + forces that cancel)
  double top_speed = 0;  ///< largest joint velocity [rad/s]
  double saturated = 0;  ///< drives at their limit, summed
};

/// A random target with joint angles up to `reach` from rest [rad].
inline void random_target(Random& random, const Model& model, double reach, std::vector<double>& target) {
  target = model.qpos0;
  for (const Joint& joint : model.joints) {
    if (joint.type == JointType::free) continue;
    if (joint.nq() == 1) {
      target[joint.qpos] += random.uniform(-reach, reach);
      continue;
    }
    const Quatd q = random.rotation(reach);
    double* p = target.data() + joint.qpos;
    p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z;
  }
}

inline Drives limited_drives(const Model& model, const LimitRun& run) {
  Drives drives = Drives::uniform(model, run.kp, run.kd, run.root_driven ? run.kp : 0, run.root_driven ? run.kd : 0);
  drives.spin_damping = run.spin_damping;
  drives.force_limit.assign(model.nv, run.limit);
  return drives;
}

/// The same drive for every joint; a free root has none. @param limit [N m], 0: none
inline Drives joint_drives(const Model& model, double kp, double kd, double limit) {
  Drives drives = Drives::uniform(model, kp, kd, 0, 0);
  drives.spin_damping = 0;
  if (!(limit > 0)) return drives;
  drives.force_limit.assign(model.nv, limit);
  for (const Joint& j : model.joints) {
    for (int k = 0; moves_freely(j.type) && k < 6; ++k) drives.force_limit[j.qvel + k] = kInfinity;
  }
  return drives;
}

/// Runs until the end or until the world fails. Every `check_every` steps an independent RNEA checks the force (0:
/// never).
inline LimitRunReport run_limited(const Model& model, const LimitRun& run, int check_every = 0) {
  const double h = 1.0 / 60;
  Data data(model), other(model);
  Stepper<double> stepper(model, data, {.dt = h, .velocity_products = run.products});
  const Drives drives = limited_drives(model, run);
  Random random(run.seed);
  std::vector<double> target, needed(model.nv), before_q, before_v;
  LimitRunReport report;
  const int steps = int(std::lround(run.seconds / h));
  for (int i = 0; i < steps; ++i) {
    if (i % 2 == 0) random_target(random, model, run.reach, target);
    const bool check = check_every && i % check_every == 0;
    if (check) before_q.assign(data.qpos.begin(), data.qpos.end()), before_v.assign(data.qvel.begin(), data.qvel.end());
    stepper.step(data, drives, target);
    report.status = stepper.status(0);
    if (report.status != WorldStatus::ok) return report;
    const LimitReport limit = *stepper.limit_report(0);
    ++report.steps, report.iterations += limit.iterations,
        report.most_iterations = std::max(report.most_iterations, limit.iterations);
    report.residual = std::max(report.residual, limit.residual), report.saturated += limit.saturated;
    for (const Joint& joint : model.joints) {
      for (int k = joint.type == JointType::free ? 3 : 0; k < joint.nv(); ++k) {
        report.top_speed = std::max(report.top_speed, std::abs(data.qvel[joint.qvel + k]));
      }
    }
    if (!check) continue;
    rnea<double>(model, other, before_q, before_v, data.qacc, needed);  // no springs in these models
    double cancel = run.limit;
    for (int k = 0; k < model.nv; ++k) cancel = std::max(cancel, std::abs(needed[k]));
    for (int k = 0; k < model.nv; ++k) {
      report.worst_closure = std::max(report.worst_closure, std::abs(needed[k] - stepper.drive_force()[k]) / cancel);
    }
  }
  return report;
}

}  // namespace tarsus::test
