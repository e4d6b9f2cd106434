// One step of simulation, in the stages of stage.hpp, for one world or a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/dynamics/velocity_products.hpp"
#include "tarsus/sim/force_rows.hpp"
#include "tarsus/sim/lane_stage.hpp"

namespace tarsus {

enum class Integrator {
  semi_implicit_euler,  ///< v⁺ = v + h q̈, q⁺ = q ⊞ h v⁺: first order, drives and springs implicit, stable when stiff
  rk4,                  ///< fourth order on the manifold, every force explicit: for accuracy, not for stiff drives
};

enum class WorldStatus : std::uint8_t {
  ok,
  bad_input,  ///< a state, target or applied force that is not finite came in
  singular,   ///< the acceleration is not finite: the mass matrix is singular (a massless moving end?) or overflowed
  too_fast,   ///< a velocity beyond StepOptions::speed_limit: diverged
  open_loop,  ///< LoopMode::shake: no configuration near the step's end closes the loops; loops() names the row
};
const char* name(WorldStatus status);

/// What a step does with equality constraints. rk4 takes accelerations of the ideal linkage in both modes.
enum class LoopMode : std::uint8_t {
  off,    ///< ignores them
  spook,  ///< softened and stabilised rows, errors of second order in the step
  shake,  ///< no drift: positions to rounding (SHAKE), velocities too (RATTLE), at about twice the cost
};
const char* name(LoopMode mode);

/// Whether Coriolis and gyroscopic forces are linearly implicit (velocity_products.hpp): without, undamped characters
/// gain energy at long steps. rk4, and drives with force limits where nothing else is a term, take them explicitly.
enum class VelocityProductMode : std::uint8_t {
  off,        ///< explicit
  automatic,  ///< implicit where some link turns by more than 3e-4 rad in a step
  on,         ///< implicit
};
const char* name(VelocityProductMode mode);
/// How the model's own actuators act over a step.
enum class ActuationMode : std::uint8_t {
  implicit_servos,  ///< servos are drives, with their force at the end of the step (sim/servo.hpp)
  explicit_forces,  ///< MuJoCo's Euler step: forces of the start of the step, joint damping alone implicit
  off,              ///< not at all
};

/// By its name: implicit, explicit, off. Empty for any other.
std::optional<ActuationMode> actuation_mode(std::string_view name);

struct StepOptions {
  double dt = 1.0 / 60;  ///< [s]
  Integrator integrator = Integrator::semi_implicit_euler;
  double speed_limit = 1e6;  ///< [rad/s | m/s] beyond which a world counts as diverged
  ActuationMode actuation = ActuationMode::implicit_servos;
  LoopMode loops = LoopMode::spook;         ///< the model's equality constraints, or
  const EqualitySet* equalities = nullptr;  ///< these; must outlive the Stepper
  RowStageOptions rows = {};                ///< contacts and joint limits: semi_implicit_euler
  VelocityProductMode velocity_products = VelocityProductMode::automatic;
  bool profile = false;  ///< time each stage
  bool screen = true;    ///< look for inputs that are not finite before a step; false: the caller has
  bool again = true;     ///< a world that lanes did not solve takes its step by itself; false: the caller sees to it
};

/// Why a Stepper of these options takes each world by itself: lanes do not have all of the step, or not to the bit of a
/// world alone. Empty: it takes packs.
/// @param drives what it will be stepped under; null: the model's own actuators
template <class R>
std::string lanes_refusal(const Model& model, const StepOptions& options, const Drives* drives);
/// How many worlds it takes at once: the lanes of the instruction set, or 1. Data(model, pack_width(…)) is one pack.
template <class R>
int pack_width(const Model& model, const StepOptions& options, const Drives* drives);

/// What the worlds of one pack carry from step to step besides their state: a Stepper can serve many packs in turn.
/// An empty one is that of worlds that were never stepped.
template <class R>
struct StepMemory {
  TermMemory terms;               ///< of one world
  AlignedVector<R> lane_terms;    ///< of a pack (constraint/lane_terms.hpp)
  AlignedVector<R> drive_demand;  ///< [nv][lane] of DriveLimiter

  /// World `lane` of `width` was set anew: it carries nothing.
  void forget(int lane, int width);
  /// What that world carries, as of a pack of one lane.
  StepMemory of(int lane, int width) const;
  /// Hands of() to a world of another pack of that width.
  void put(const StepMemory& one, int lane, int width);
};

/// Forces on a tendon over a step [N | N m].
struct TendonForces {
  double range = 0;     ///< with which its range held it, against whichever end
  double friction = 0;  ///< its dry friction, along its length
};

/// f(array of a, array of b, numbers of a world) for what a step reads of both, besides drives' targets.
template <class A, class B, class F>
void each_input(const Model& m, A& a, B& b, const F& f) {
  f(a.qpos, b.qpos, m.nq), f(a.qvel, b.qvel, m.nv), f(a.tau, b.tau, m.nv), f(a.act, b.act, m.na);
  f(a.ctrl, b.ctrl, m.nu), f(a.mocap_pos, b.mocap_pos, 3 * m.nmocap()), f(a.mocap_quat, b.mocap_quat, 4 * m.nmocap());
}

/// Advances worlds by dt: those of a pack at once, or where lanes_refusal() says why not each by itself. Keeps its
/// scratch between calls; not for use by two threads at once.
template <class R>
class Stepper {
 public:
  /// @throws ValueError for a step that is not positive and finite, or rows with rk4
  /// @throws InputError for an equality constraint of the model that cannot be (EqualitySet::of)
  Stepper(const Model& model, const BasicData<R>& data, const StepOptions& options);

  /// One step of all worlds that are ok under `drives`, in the place of the model's own actuators. Targets are those at
  /// the end of the step; empty spans: no drives / zero velocity.
  /// @return number of worlds that are not ok now
  int step(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target = {}) {
    return advance(data, &drives, qpos_target, qvel_target);
  }
  /// Under the model's own actuators: data.ctrl; data.act is taken to the end of the step.
  int step(BasicData<R>& data) { return advance(data, nullptr, {}, {}); }

  WorldStatus status(int world) const { return status_[world]; }
  /// That world was set anew: it goes on even if it was frozen, and nothing of its steps before bears on the next.
  void restart(const BasicData<R>& data, int world);
  /// Only lets a frozen world go again: for callers that keep its memory themselves (exchange).
  void revive(int world) { status_[world] = WorldStatus::ok; }
  const StepOptions& options() const { return options_; }
  /// Wall time of each stage of all steps so far, where StepOptions::profile asked for it [s].
  const std::array<double, kStages>& stage_seconds() const { return clock_.seconds(); }
  /// Changes places with what this Stepper carries to its next step for one of data's packs: before the step of other
  /// worlds in its place, and after.  @param data as for the constructor
  void exchange(const BasicData<R>& data, StepMemory<R>& memory, int pack = 0);

  /// How the force limits of the last step's drives were kept; nothing where they had none. An rk4 step clamps
  /// explicitly, four times; this is the last.
  std::optional<LimitReport> limit_report(int world) const;
  /// The drives' forces over the last step of drives with limits [pack][nv][lane]; empty before it.
  std::span<const R> drive_force() const { return drive_force_; }

  /// The Stepper that took that world's last step: this one, or one that has it alone, as its world 0. Of that one are
  /// loops(), rows() and has_force_rows().
  const Stepper& taker(int world) const;
  /// Equality constraints of the last step: errors, multipliers, status; null if there are none.
  const ConstrainedDynamics<R>* loops() const { return loops_.get(); }

  /// Contacts and joint limits of the last step; null without StepOptions::rows.
  const RowStage<R>* rows() const { return options_.rows.any() ? rows_.get() : nullptr; }
  TendonForces tendon_forces(int tendon, int world = 0) const;
  /// The same of worlds in lanes; null where there are none.
  const LaneStage<R>* lane_rows() const { return lane_rows_.get(); }
  /// From the next step on lanes keep what step_forces() asks for.
  void feel() {
    if (lane_rows_) lane_rows_->terms().feel();
  }
  bool has_force_rows() const { return now_.solves_rows; }  ///< in the last step, if this one took it
  /// How that world's terms were solved; null where there were none to solve.
  const RowsReport* rows_report(int world) const;
  /// The state that the last step began with, as in data.
  In<R> start_qpos() const { return next_.qpos; }
  In<R> start_qvel() const { return next_.qvel; }
  /// Force over the last step on each link by what is fixed to the world, world axes [nlink][3] [N].
  void ground_force(int world, Out<R> force) const;
  /// The same of all worlds as packs have it, [pack][nlink][3][lane]; empty where worlds are stepped one at a time.
  In<R> ground_forces() const { return lane_rows_ && options_.rows.any() ? lane_rows_->ground_forces() : In<R>(); }

 private:
  enum class Limits { none, limiter, terms };  ///< what keeps the drives' force limits
  struct Now {                                 ///< of this step, or the last
    bool actuated = false;                     ///< it is under the model's own actuators
    bool solves_rows = false;                  ///< it has force rows
    bool solves_terms = false;                 ///< it is solved as one problem of terms
    Limits limits = Limits::none;
    AlignedVector<R> loop_inertia;  ///< [pack][nv][lane] EqualitySet::geometric_inertia(), or empty
    AlignedVector<R> turning;       ///< [pack][nv][lane] StepTerms::turning_ranges()
    AlignedVector<R> user_tau;      ///< data.tau while the step has all applied forces in its place
  };
  struct Next {
    AlignedVector<R> qpos, qvel, row_qacc;
    AlignedVector<R> found;  ///< [pack][lane] of VelocityProducts::begin_step()
  };
  struct Rk4 {
    AlignedVector<R> stage_qpos, stage_qvel, u, slope_q, sum_q, sum_v;
  };
  struct Alone;
  struct Singles {
    bool always = false;                     ///< lanes do not have all of any step
    bool actuated = false;                   ///< or not of one under the model's own actuators
    std::vector<std::shared_ptr<Alone>> of;  ///< [world] those that were stepped by themselves
  };
  int advance(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);
  bool goes_singly(const Drives* drives) const;
  Alone& single(int world);
  int step_singly(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);
  void step_again(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);
  void make_rows(const BasicData<R>& data);
  void prepare(const BasicData<R>& data, In<R> qpos, In<R> qvel, bool start = true);
  void screen(const BasicData<R>& data, In<R> qpos_target, In<R> qvel_target);
  void make_unit(BasicData<R>& data);
  void euler(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  void rk4(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  void accelerate(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel, In<R> qpos_target,
                  In<R> qvel_target, In<R> tau);
  using ProductUse = typename VelocityProducts<R>::Use;
  ProductUse product_use() const;
  bool begin_terms(BasicData<R>& data, double h);
  bool implicit_velocity_products(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel);
  void force_of(BasicData<R>& data, In<R> qpos, In<R> qvel) const;
  void add_damping(BasicData<R>& data, double dt) const;
  bool explicit_forces() const { return now_.actuated && options_.actuation == ActuationMode::explicit_forces; }
  void solve_terms(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target, In<R> tau);
  void solve_rows(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* limited);
  bool stiffen_loops(BasicData<R>& data);
  void add_loop_inertia(BasicData<R>& data) const;
  void close_loops(BasicData<R>& data);
  double loop_step(double dt) const;
  bool finite_lane(In<R> values, int n, int world) const;
  WorldStatus judge(const BasicData<R>& data, int world) const;
  int settle(BasicData<R>& data);

  const Model& model_;
  StepOptions options_;
  StageClock clock_;
  Drives none_;
  int width_;
  std::vector<WorldStatus> status_;
  std::optional<Servos<R>> servos_;  // empty: the model has no forces of its own
  ForceRows<R> force_rows_;
  Now now_;
  std::optional<DriveLimiter<R>> limiter_;
  SplitDrives split_;
  std::optional<EqualitySet> own_equalities_;
  std::unique_ptr<ConstrainedDynamics<R>> loops_;
  std::unique_ptr<RowStage<R>> rows_;
  std::unique_ptr<LaneStage<R>> lane_rows_;  ///< the same for packs
  Singles singles_;
  std::optional<VelocityProducts<R>> products_;
  Next next_;
  AlignedVector<R> drive_force_;
  Rk4 rk4_;
};

extern template class Stepper<double>;
extern template class Stepper<float>;

/// 64-bit FNV-1a over the bits of a state: equal hashes, equal runs.
template <class R>
std::uint64_t state_hash(const BasicData<R>& data);

}  // namespace tarsus
