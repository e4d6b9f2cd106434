// tarsus run --policy: a character follows a clip as it has learned to.
#pragma once

#include <functional>
#include <string>

#include "tarsus/control/clip.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus::app {

struct PolicyRun {
  std::string file;
  double duration = 10, start = 0;  ///< [s]; of the clip
  std::optional<double> dt;         ///< of the simulation [s]; empty: what it was trained with
  bool contacts = false;            ///< frames have the contacts' forces, which takes each step twice
};

struct PolicyReport {
  WorldStatus status = WorldStatus::ok;
  int steps = 0;  ///< of control
  double control_dt = 0, dt = 0;
  double seconds = 0;  ///< wall time of all of it
  double reward = 0;   ///< mean over the steps, 0 to 1
  bool fell = false;   ///< touched the ground with a body that is no foot, which ends the run
};

/// @param on_frame called at the start and after each control step: its number, time, state, the clip's pose
/// @throws InputError naming the file, also for a policy of another model; ValueError for a dt that does not divide its
/// own
PolicyReport run_policy(const Model& model, const ClipBinding& clip, const PolicyRun& run,
                        const std::function<void(const TrackFrame&)>& on_frame);

}  // namespace tarsus::app
