// Velocity Verlet with the two constraint stages.  [Tuckerman, section 3.9; Andersen 1983 (RATTLE)]
//
//   v_h = v + (Δt/2) M^-1 f(x)
//   x'  = x + Δt v_h,   x_new = x' + M^-1 J(x)ᵀ λ̃ with σ(x_new) = 0,   v_h += M^-1 J(x)ᵀ λ̃/Δt        (3.9.16)
//   v   = v_h + (Δt/2) M^-1 f(x_new),   v += M^-1 J(x_new)ᵀ μ̃ with J(x_new) v = 0                    (3.9.17)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/particles/forces.hpp"
#include "tarsus/particles/particle_newton.hpp"
#include "tarsus/particles/system.hpp"
#include "tarsus/particles/thermostat.hpp"

namespace tarsus {

/// Particles for each thread. Threads synchronise some fifteen times a step, which does not pay off for fewer
/// particles.
inline constexpr int kParticlesEach = 1200;

struct VerletOptions {
  double timestep = 0.001;        ///< time unit; negative: back in time; not 0
  std::string solver = "newton";  ///< see make_particle_solver()
  double tolerance = 1e-12;       ///< SolveOptions::tolerance, between 0 and 1
  int max_iterations = 0;         ///< 0: the solver's default
  int threads = 1;  ///< 1 to 256; at most one a core and for kParticlesEach is used; same bits for any number
};

/// The outcome of a step. On failure the system has its state from before the step.
struct StepReport {
  bool ok = true;
  std::string message;  ///< on failure: stage, worst constraint, its particles, residual
  SolveReport position, velocity;
  double stability = 0;  ///< on failure: Δt ω_max that the constraint forces at the step's start imply
};

class VelocityVerlet {
 public:
  /// The system must outlive the integrator, and its constraints must not change. The first step removes velocities
  /// that violate the constraints.
  /// @throws ValueError if a constraint's violation exceeds a thousand times the tolerance (call prepare() before), for
  /// options out of range, and as Forces
  VelocityVerlet(ParticleSystem& system, const VerletOptions& options);

  /// Takes one step. `with_energies` updates energies().
  StepReport step(bool with_energies = false);
  /// Reverses time: as many further steps return the system to its earlier state, up to rounding and the
  /// tolerance (not with a thermostat).
  void reverse();
  void set_thermostat(std::unique_ptr<Thermostat> thermostat) { thermostat_ = std::move(thermostat); }
  const Thermostat* thermostat() const { return thermostat_.get(); }

  double time() const { return time_; }
  const VerletOptions& options() const { return options_; }
  const Energies& energies() const { return energies_; }
  /// Sets energies() to those of the present positions. A failed step does so.
  void update_energies();
  int threads() const { return team_->size(); }  ///< number of threads used
  const Forces& forces() const { return forces_; }
  const ConstraintSolver& solver() const { return *solver_; }

  // Results of the last step's position stage. λ_k = 2 λ̃_k/Δt² multiplies ∇σ_k at the step's start. After a failed
  // step, they are the multipliers of the state in which it began.
  std::span<const double> multipliers() const { return multiplier_; }
  /// [3 n] Σ λ_k ∇σ_k.
  std::vector<double> constraint_forces() const;
  /// [nrow] tension of each distance, positive if it pulls its ends together; 0 for other rows.
  std::vector<double> tensions() const;
  /// Σ x_a F_b of the constraint forces. If rows fix points in space, it depends on the origin and is not symmetric.
  Mat3d constraint_virial() const;
  /// The difference between the energy that the discrete equations conserve to fourth order and the total energy, at
  /// the state before the last step: -Δt² (Σ m a²/24 + Σ m v·j/12), with acceleration a and jerk j from three
  /// velocities. 0 before the second step. The total energy oscillates by this amount; with the shift, drift shows in a
  /// tenth of the time.
  double shadow_shift() const;
  /// Δt ω_max that the last multipliers imply; velocity Verlet is stable below 2.
  double stability() const;

 private:
  StepReport fail(std::string_view stage, const SolveReport& solve);
  StepReport fail(std::string_view stage, const std::string& why, bool singular = false);
  bool probe_shorter_step();    ///< whether one has a solution
  double largest_turn() const;  ///< of a distance in the step that failed [rad]
  void cut_rows();
  /// Calls work(first, last) for parts of [0, count) on the threads.
  template <class F>
  void share_out(std::size_t count, const F& work);

  ParticleSystem& system_;
  VerletOptions options_;
  std::unique_ptr<ThreadTeam> team_;
  Forces forces_;
  std::vector<double> inverse_;  // [n]
  std::vector<int> pinned_;
  DiagonalMass mass_;
  std::unique_ptr<ConstraintSolver> solver_;
  std::unique_ptr<Thermostat> thermostat_;
  Energies energies_;
  double time_ = 0;
  int history_ = 0;                        // number of stored earlier velocities, at most 2
  std::vector<std::vector<int>> rows_of_;  // by thread: rows that share no particle with another thread's; or empty
  std::vector<double> force_, old_force_, old_x_, old_v_, older_v_, multiplier_, velocity_multiplier_;
};

}  // namespace tarsus
