// Velocity Verlet with the two constraint stages.  [Tuckerman, section 3.9; Andersen 1983 (RATTLE)]
//
//   v_h = v + (Δt/2) M^-1 f(x)
//   x'  = x + Δt v_h,   x_new = x' + M^-1 J(x)ᵀ λ̃ with σ(x_new) = 0,   v_h += M^-1 J(x)ᵀ λ̃/Δt        (3.9.16)
//   v   = v_h + (Δt/2) M^-1 f(x_new),   v += M^-1 J(x_new)ᵀ μ̃ with J(x_new) v = 0                    (3.9.17)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/particles/forces.hpp"
#include "tarsus/particles/particle_newton.hpp"
#include "tarsus/particles/system.hpp"
#include "tarsus/particles/thermostat.hpp"

namespace tarsus {

/// Threads meet some fifteen times a step, which fewer particles than this do not repay.
inline constexpr int kParticlesEach = 1200;

struct VerletOptions {
  double timestep = 0.001;
  std::string solver = "newton";  ///< see make_particle_solver()
  double tolerance = 1e-12;
  int max_iterations = 0;  ///< 0: the solver's own
  int threads = 1;         ///< 1 to 256, of which one for every kParticlesEach is used; the same bits for any number
};

/// One step's outcome. On failure the system is as it was before the step.
struct StepReport {
  bool ok = true;
  std::string message;  ///< why not: stage, worst constraint, its particles, figures
  SolveReport position, velocity;
  double stability = 0;  ///< of a failed step: Δt ω_max that the constraint forces at its start imply
};

class VelocityVerlet {
 public:
  /// The system must outlive the integrator, and its constraints must not change. What velocities have along them is
  /// taken out by the first step.
  /// @throws ValueError where a constraint does not hold to a thousand times the tolerance: prepare() is for that
  VelocityVerlet(ParticleSystem& system, const VerletOptions& options);

  /// One step. `with_energies` makes energies() current.
  StepReport step(bool with_energies = false);
  /// Turns time round: the same steps bring the system back.
  void reverse();
  void set_thermostat(std::unique_ptr<Thermostat> thermostat) { thermostat_ = std::move(thermostat); }
  const Thermostat* thermostat() const { return thermostat_.get(); }

  double time() const { return time_; }
  const VerletOptions& options() const { return options_; }
  const Energies& energies() const { return energies_; }
  int threads() const { return team_->size(); }  ///< that are used
  const Forces& forces() const { return forces_; }
  const ConstraintSolver& solver() const { return *solver_; }

  // Results of the last step's position stage. λ_k = 2 λ̃_k/Δt² multiplies ∇σ_k at the step's start.
  std::span<const double> multipliers() const { return multiplier_; }
  /// [3 n] Σ λ_k ∇σ_k.
  std::vector<double> constraint_forces() const;
  /// [nrow] pull along each distance, positive if it holds its ends together; 0 for other rows.
  std::vector<double> tensions() const;
  /// Σ x_a F_b of the constraint forces. Where rows fix points in space it depends on the origin and is not symmetric.
  Mat3d constraint_virial() const;
  /// What to add to the total energy of the state before the last step to get the energy that the discrete equations
  /// conserve to fourth order: -Δt² (Σ m a²/24 + Σ m v·j/12), a and j (jerk) from three velocities. 0 before the second
  /// step. The total energy itself swings by this; measured with it, drift shows in a tenth of the time.
  double shadow_shift() const;
  /// Δt ω_max that the last multipliers imply; velocity Verlet needs it below 2.
  double stability() const;

 private:
  StepReport fail(const char* stage, const std::string& why);
  double probe_stability();
  void cut_rows();
  /// work(first, last) over [0, count), shared out among the threads.
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
  int history_ = 0;                        // how many velocities before the present one are there, at most 2
  std::vector<std::vector<int>> rows_of_;  // by thread: rows that share no particle with another thread's, or none
  std::vector<double> force_, old_force_, old_x_, old_v_, older_v_, multiplier_, velocity_multiplier_;
};

}  // namespace tarsus
