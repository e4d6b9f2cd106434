// The stages of a step. Reports, timers, the viewer and the documentation use these names.
//
//   stage       reads                       writes
//   actuate     qpos qvel ctrl act          applied forces and drives of the model's own actuators, passive forces
//   drive       qpos qvel tau, targets      joint_force Q, joint_inertia K
//   solve       qpos qvel Q K               qacc; without terms, also drives with a force limit or equality constraints
//   collide     poses                       contacts
//   match       contacts, the last step's   impulses for the warm start, by contact identity; which bodies sleep
//   prepare     contacts, qpos qvel         the terms: contacts, joint limits, dry friction (StepOptions::rows), drives
//                                           with a force limit, equality constraints
//   terms       terms, factors              the next qvel, all terms in one problem
//   integrate   qpos, the next qvel         the next qpos
//   close       the next qpos qvel          both, moved onto the equality constraints (LoopMode::shake)
//   check       the next state              status; a bad world freezes at its last good state, its neighbours go on
//
// In SIMD lanes one kernel does collide, match and prepare inside terms.
#pragma once

#include <array>
#include <chrono>
#include <utility>

namespace tarsus {

enum class Stage { actuate, drive, solve, collide, match, prepare, terms, integrate, close, check };
inline constexpr int kStages = 10;
const char* name(Stage stage);

/// Wall time by stage: lap() adds the time since the last call to the named stage. A lap costs a tenth of a
/// microsecond, so the clock runs only on request.
class StageClock {
 public:
  explicit StageClock(bool on = false) : on_(on) {}
  void begin() {
    if (on_) last_ = Clock::now();
  }
  void lap(Stage stage) {
    if (!on_) return;
    const Clock::time_point now = Clock::now();
    seconds_[std::size_t(stage)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  /// Moves the times of another clock into this one.
  void take(StageClock& other) {
    for (int k = 0; k < kStages; ++k) seconds_[std::size_t(k)] += std::exchange(other.seconds_[std::size_t(k)], 0.0);
  }
  /// Total over all steps so far, by stage [s].
  const std::array<double, kStages>& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool on_;
  Clock::time_point last_;
  std::array<double, kStages> seconds_{};
};

}  // namespace tarsus
