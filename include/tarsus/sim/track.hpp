// The main job: a character follows a motion clip under stable PD.
#pragma once

#include <functional>

#include "tarsus/control/clip.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {

/// Pose and velocity to be reached at time t: fills qpos [nq] and qvel [nv].
using PoseSource = std::function<void(double t, std::span<double> qpos, std::span<double> qvel)>;

/// The clip as a source. Keeps a reference to it. @throws ValueError if it was bound to another model
PoseSource follow(const Model& model, const ClipBinding& clip);
/// One pose, at rest, for ever.
PoseSource hold(std::vector<double> qpos);

/// A force on a body's centre of mass, in the world's axes, for some time. A step takes the share of it that falls
/// into the step, so that the impulse is the same for any step.
struct Push {
  double start = 0;      ///< simulated time [s]
  int body = 0;          ///< of Model::bodies; it must move
  Vec3d force{0, 0, 0};  ///< [N]
  double duration = 0;   ///< [s]
};

struct TrackOptions : StepOptions {
  TrackOptions() { dt = 1.0 / 30; }
  double duration = 10;                                 ///< [s]; the number of steps is the nearest whole one
  double start = 0;                                     ///< source's time of the first pose [s]
  std::vector<double> qvel = {};                        ///< [nv] at the start, or empty: the source's
  bool actuators = false;                               ///< the model's own, under `ctrl`, in the place of the drives
  std::vector<double> ctrl = {}, act = {};              ///< [nu], [na] or empty: zero
  std::vector<double> mocap_pos = {}, mocap_quat = {};  ///< as Data's, or empty: where the file has them
  std::vector<Push> pushes = {};
  std::function<bool()> stop = {};  ///< asked before each step: true ends the run
  bool target_velocity = true;  ///< damp towards the clip's velocity; false: towards rest, as the paper's eq. 2 does
};

/// The start (step 0), or the state after a step, in double whatever the simulation ran in.
struct TrackFrame {
  int step = 0, steps = 0;
  double time = 0;  ///< simulated [s]
  std::span<const double> qpos, qvel, target;
  double error_mean = 0;  ///< over bodies, this step [m]
  // Of the step, with StepOptions::rows; empty and null at the start.
  std::span<const LinkContact> contacts = {};
  std::span<const Vec3d> contact_force = {};  ///< [contact] on its link a, world axes [N]
  const RowsReport* rows = nullptr;
};

/// Distances between the centres of mass of the bodies that move, in two poses.
class ErrorMeter {
 public:
  explicit ErrorMeter(const Model& model) : model_(model), ours_(model), theirs_(model) {}
  /// Their mean [m].  @param max becomes the largest if that is larger
  double measure(std::span<const double> qpos, std::span<const double> target, double& max);

 private:
  const Model& model_;
  Data ours_, theirs_;
};

struct TrackReport {
  WorldStatus status = WorldStatus::ok;
  int steps = 0;          ///< done; fewer than asked for if the world went bad
  double seconds = 0;     ///< wall time of sampling the source and stepping, without measuring and recording
  double error_mean = 0;  ///< distance between bodies' centres of mass and the source's, over all bodies and steps [m]
  double error_max = 0;   ///< the largest of them [m]
  Energy energy;          ///< at the end
  Vec3d push_impulse{0, 0, 0};                  ///< of all pushes [N s]
  int contacts_max = 0;                         ///< most contacts with a force in one step
  double penetration_max = 0;                   ///< deepest penetration at the start of a step [m]
  double row_residual_max = 0;                  ///< largest miss of a contact or limit [m/s]
  double row_iterations = 0;                    ///< of the rows' solver, mean over steps
  double loop_error_max = 0;                    ///< largest |φ| of an equality constraint [m | rad]
  std::string loop_error_row;                   ///< its row
  std::array<double, kStages> stage_seconds{};  ///< wall time by Stage, with TrackOptions::profile [s]
  bool stopped = false;                         ///< TrackOptions::stop ended it
  bool nan = false;                             ///< some number in the state is not finite
  double steps_per_second() const { return seconds > 0 ? steps / seconds : 0; }
};

/// Starts at the source's pose and velocity and steps with the source as the drives' target; stops early if the world
/// goes bad.
/// @param on_frame called at the start and after each step, may be empty
/// @throws ValueError for options out of range
template <class R>
TrackReport track(const Model& model, const PoseSource& target, const Drives& drives, const TrackOptions& options,
                  const std::function<void(const TrackFrame&)>& on_frame = {});

}  // namespace tarsus
