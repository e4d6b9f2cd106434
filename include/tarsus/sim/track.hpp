// Motion tracking: a character follows a motion clip under stable PD.
#pragma once

#include <functional>

#include "tarsus/control/clip.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {

/// Desired pose and velocity at time t: fills qpos [nq] and qvel [nv].
using PoseSource = std::function<void(double t, std::span<double> qpos, std::span<double> qvel)>;

/// The clip as a source. Keeps a reference to it. @throws ValueError if the clip is bound to another model
PoseSource follow(const Model& model, const ClipBinding& clip);
/// A constant pose at rest.
PoseSource hold(std::vector<double> qpos);

/// A force on a body's centre of mass, world axes, for a limited time. Each step applies the fraction of the force that
/// falls within it, so that the impulse does not depend on the step.
struct Push {
  double start = 0;      ///< simulated time [s]
  int body = 0;          ///< index in Model::bodies; it must be able to move
  Vec3d force{0, 0, 0};  ///< [N]
  double duration = 0;   ///< [s]
};

struct TrackOptions : StepOptions {
  TrackOptions() { dt = 1.0 / 30; }
  double duration = 10;                     ///< [s]; rounded to the nearest whole number of steps
  double start = 0;                         ///< the source's time of the first pose [s]
  std::vector<double> qvel = {};            ///< [nv] initial velocity; empty: the source's
  bool actuators = false;                   ///< use the model's own actuators under `ctrl` instead of the drives
  std::vector<double> ctrl = {}, act = {};  ///< [nu], [na]; empty: zero
  std::vector<double> mocap_pos = {}, mocap_quat = {};  ///< as in Data; empty: the poses of the file
  std::vector<Push> pushes = {};
  std::function<bool()> stop = {};  ///< called before each step; true ends the run
  bool target_velocity = true;      ///< damp towards the clip's velocity; false: towards rest, as in eq. 2 of the paper
};

/// The start (step 0) or the state after a step, always in double.
struct TrackFrame {
  int step = 0, steps = 0;
  double time = 0;  ///< simulated [s]
  std::span<const double> qpos, qvel, target;
  double error_mean = 0;  ///< ErrorMeter's mean distance from the target in this step [m]
  // Results of the step with StepOptions::rows; empty and null at the start.
  std::span<const LinkContact> contacts = {};
  std::span<const Vec3d> contact_force = {};  ///< [contact] force on link a, world axes [N]
  const RowsReport* rows = nullptr;
};

/// Measures the distances between corresponding centres of mass of bodies in two poses: those of the trees in which a
/// joint has a gain that is not zero, or all that move if none has.
class ErrorMeter {
 public:
  ErrorMeter(const Model& model, const Drives& drives);
  /// Mean distance [m].  @param max is raised to the largest distance if that is larger
  double measure(std::span<const double> qpos, std::span<const double> target, double& max);

 private:
  const Model& model_;
  Data ours_, theirs_;
  std::vector<int> bodies_;
};

struct TrackReport {
  WorldStatus status = WorldStatus::ok;
  int steps = 0;                ///< steps taken; fewer than requested if the world went bad
  double seconds = 0;           ///< wall time of sampling the source and of stepping, without measuring and recording
  double error_mean = 0;        ///< ErrorMeter's mean distance from the source, over steps [m]
  double error_max = 0;         ///< largest such distance [m]
  Energy energy;                ///< at the end
  Vec3d push_impulse{0, 0, 0};  ///< total of all pushes [N s]
  int contacts_max = 0;         ///< largest number of contacts with a force in one step
  double penetration_max = 0;   ///< largest penetration at the start of a step [m]
  double row_residual_max = 0;  ///< largest residual of a contact or limit [m/s]
  double row_iterations = 0;    ///< iterations of the row solver, mean over steps
  double loop_error_max = 0;    ///< largest |φ| of an equality constraint [m | rad]
  std::string loop_error_row;   ///< the row with that error
  std::array<double, kStages> stage_seconds{};  ///< wall time by Stage, with TrackOptions::profile [s]
  bool stopped = false;                         ///< TrackOptions::stop ended the run
  bool nan = false;                             ///< the state contains a number that is not finite
  double steps_per_second() const { return seconds > 0 ? steps / seconds : 0; }
};

/// Starts at the source's pose and velocity and steps with the source as the target of the drives. Ends early if the
/// world goes bad.
/// @param on_frame called at the start and after each step; may be empty
/// @throws ValueError for options out of range
template <class R>
TrackReport track(const Model& model, const PoseSource& target, const Drives& drives, const TrackOptions& options,
                  const std::function<void(const TrackFrame&)>& on_frame = {});

}  // namespace tarsus
