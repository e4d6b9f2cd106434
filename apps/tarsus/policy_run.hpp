// tarsus run --policy: a character follows a clip by a trained policy.
#pragma once

#include <functional>
#include <string>

#include "tarsus/control/clip.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus::app {

struct PolicyRun {
  std::string file;
  double duration = 10, start = 0;  ///< [s]; start: time in the clip
  std::optional<double> dt;         ///< time step of the simulation [s]; empty: that of the training
  bool contacts = false;            ///< adds contact forces to the frames; each step is then computed twice
};

struct PolicyReport {
  WorldStatus status = WorldStatus::ok;
  int steps = 0;  ///< number of control steps
  double control_dt = 0, dt = 0;
  double seconds = 0;  ///< wall time of the whole run
  double reward = 0;   ///< mean reward of the steps, 0 to 1
  bool fell = false;   ///< a body other than a foot touched the ground, which ends the run
};

/// @param on_frame called at the start and after each control step, with its number, time, state and the clip's pose
/// @throws InputError naming the file, also for a policy of another model; ValueError for a dt that does not divide the
/// policy's control step
PolicyReport run_policy(const Model& model, const ClipBinding& clip, const PolicyRun& run,
                        const std::function<void(const TrackFrame&)>& on_frame);

}  // namespace tarsus::app
