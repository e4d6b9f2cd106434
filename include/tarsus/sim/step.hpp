// One simulation step of one world or of a batch, in the stages of stage.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tarsus/base/check_index.hpp"
#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/constraint/linkages.hpp"
#include "tarsus/dynamics/spin_response.hpp"
#include "tarsus/dynamics/velocity_products.hpp"
#include "tarsus/sim/force_rows.hpp"
#include "tarsus/sim/lane_stage.hpp"

namespace tarsus {

enum class Integrator {
  semi_implicit_euler,  ///< v⁺ = v + h q̈, q⁺ = q ⊞ h v⁺: first order; implicit drives and springs, stable when stiff
  rk4,                  ///< fourth order on the manifold, all forces explicit: accurate, but not for stiff drives
};

enum class WorldStatus : std::uint8_t {
  ok,
  bad_input,  ///< the state, a target or an applied force is not finite
  /// The acceleration, or a number in the terms and loops that it is solved from, is not finite: the mass matrix is
  /// singular (a massless end link?) or overflowed, or a user-defined limit or row returns such a number.
  singular,
  too_fast,   ///< a velocity exceeds StepOptions::speed_limit: diverged
  open_loop,  ///< LoopMode::shake: no configuration near the step's end satisfies the loops; loops() names the row
};
const char* name(WorldStatus status);

/// How a step treats equality constraints. rk4 uses the accelerations of the ideal linkage in both modes.
enum class LoopMode : std::uint8_t {
  off,    ///< ignores them
  spook,  ///< compliant, stabilised rows; errors of second order in the step
  shake,  ///< no drift: positions (SHAKE) and velocities (RATTLE) exact to rounding, at about twice the cost
};
const char* name(LoopMode mode);

/// Whether Coriolis and gyroscopic forces are linearly implicit (velocity_products.hpp). With explicit ones, undamped
/// characters gain energy at long steps. They are always explicit in rk4, and in `automatic` where the step has no
/// terms but force-limited drives with Drives::spin_damping.
enum class VelocityProductMode : std::uint8_t {
  off,        ///< explicit
  automatic,  ///< implicit where some link turns by more than 3e-4 rad in a step
  on,         ///< implicit
};

/// How a step applies the model's own actuators.
enum class ActuationMode : std::uint8_t {
  implicit_servos,  ///< servos are drives whose force is that of the end of the step (sim/servo.hpp)
  explicit_forces,  ///< MuJoCo's Euler step: forces of the start of the step; only joint damping is implicit
  off,              ///< no actuators
};

/// The mode named implicit, explicit or off; empty for any other name.
std::optional<ActuationMode> actuation_mode(std::string_view name);

struct StepOptions {
  double dt = 1.0 / 60;  ///< [s]
  Integrator integrator = Integrator::semi_implicit_euler;
  double speed_limit = 1e6;  ///< [rad/s | m/s] speed above which a world counts as diverged
  ActuationMode actuation = ActuationMode::implicit_servos;
  LoopMode loops = LoopMode::spook;         ///< of the model's equality constraints, or of
  const EqualitySet* equalities = nullptr;  ///< these if not null; must outlive the Stepper
  RowStageOptions rows = {};                ///< contacts and joint limits; semi_implicit_euler only
  VelocityProductMode velocity_products = VelocityProductMode::automatic;
  bool profile = false;  ///< measure the time of each stage
  /// Check inputs for numbers that are not finite before a step, and leave a bad world the qacc of its last good step;
  /// false: the caller does, and qacc is that of the step that failed.
  bool screen = true;
  bool again = true;  ///< repeat by the scalar path the steps that SIMD lanes did not solve; false: the caller does
};

/// Reason why a Stepper with these options takes each world individually: SIMD lanes lack a part of the step, or do not
/// reproduce the scalar path to the bit. Empty: it takes packs.
/// @param drives the drives of its steps; null: the model's own actuators
template <class R>
std::string lanes_refusal(const Model& model, const StepOptions& options, const Drives* drives);
/// Number of worlds that a Stepper takes at once: the lanes of the instruction set, or 1. Data(model, pack_width(…)) is
/// one pack.
template <class R>
int pack_width(const Model& model, const StepOptions& options, const Drives* drives);

/// What the worlds of one pack carry from step to step besides their state. Exchanging it lets one Stepper serve many
/// packs in turn. An empty memory belongs to worlds that have not been stepped.
template <class R>
struct StepMemory {
  std::vector<TermMemory> terms;  ///< [lane] of worlds that are stepped individually; empty: there is none
  AlignedVector<R> lane_terms;    ///< of a pack (constraint/lane_terms.hpp)
  AlignedVector<R> drive_demand;  ///< [nv][lane] of DriveLimiter

  /// Clears what world `lane` of `width` carries, after a reset of that world.
  void forget(int lane, int width);
  /// The memory of one world, as a pack with one lane.
  StepMemory of(int lane, int width) const;
  /// terms[lane], which are made if there are none.
  TermMemory& of_world(int lane, int width);
  /// Puts memory from of() into a lane of another pack of the given width.
  void put(const StepMemory& one, int lane, int width);
};

/// Forces on a tendon over a step [N | N m].
struct TendonForces {
  double range = 0;     ///< force of the range, at either end
  double friction = 0;  ///< dry friction along the tendon
};

/// Calls f(name, array of a, array of b, numbers per world) for every array that a step reads, except the drives'
/// targets.
template <class A, class B, class F>
void each_input(const Model& m, A& a, B& b, const F& f) {
  f("qpos", a.qpos, b.qpos, m.nq), f("qvel", a.qvel, b.qvel, m.nv), f("tau", a.tau, b.tau, m.nv);
  f("act", a.act, b.act, m.na), f("ctrl", a.ctrl, b.ctrl, m.nu);
  f("mocap_pos", a.mocap_pos, b.mocap_pos, 3 * m.nmocap()), f("mocap_quat", a.mocap_quat, b.mocap_quat, 4 * m.nmocap());
}

/// Advances worlds by dt: all worlds of a pack at once, or individually if lanes_refusal() gives a reason. Keeps
/// scratch memory between calls, and a reference to the model, which must outlive it. Not for use by two threads at
/// once.
template <class R>
class Stepper {
 public:
  /// @throws ValueError for a step that is not positive and finite, rows with rk4, or data of another model
  /// @throws InputError for an invalid equality constraint of the model (EqualitySet::of)
  Stepper(const Model& model, const BasicData<R>& data, const StepOptions& options);
  Stepper(const Model&& model, const BasicData<R>& data, const StepOptions& options) = delete;  // a temporary model

  /// Takes one step of all worlds that are ok under `drives`, which replace the model's own actuators. The targets are
  /// those of the end of the step, of packs aligned as an AlignedVector is. An empty qpos_target is the pose at the
  /// start of the step, an empty qvel_target zero.
  /// @return number of worlds that are not ok after the step
  /// @throws ShapeError naming the first array, of data or of targets, that has another size; ValueError for data with
  /// another number of worlds than the constructor's; as Drives::check
  int step(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target = {}) {
    return step(data, &drives, qpos_target, qvel_target);
  }
  /// Takes one step under the model's own actuators and data.ctrl; advances data.act to the end of the step.
  int step(BasicData<R>& data) { return step(data, nullptr, {}, {}); }
  /// Either of the two. @param drives null: the model's own actuators; the targets are not read
  int step(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);

  // Functions of a world throw ValueError if there is no such world.
  WorldStatus status(int world) const { return check_index("world", world, int(status_.size())), status_[world]; }
  /// Declares that the world was reset: it continues even if it was frozen, and its earlier steps have no effect on the
  /// next.
  void restart(const BasicData<R>& data, int world);
  /// Only unfreezes a world, for callers that manage its memory themselves (exchange()).
  void revive(int world) { check_index("world", world, int(status_.size())), status_[world] = WorldStatus::ok; }
  const StepOptions& options() const { return options_; }
  /// Wall time of each stage over all steps so far, if StepOptions::profile is set [s].
  const std::array<double, kStages>& stage_seconds() const { return clock_.seconds(); }
  /// Swaps `memory` with what this Stepper carries to its next step for one of data's packs. Call it before and after
  /// stepping other worlds in that pack.
  /// @param data as for the constructor  @throws as step(); ValueError for the pack
  void exchange(const BasicData<R>& data, StepMemory<R>& memory, int pack = 0);

  /// How the force limits of the last step's drives were satisfied; empty if no drive had a limit. rk4 clamps
  /// explicitly in each of its four stages; the report is that of the last stage.
  std::optional<LimitReport> limit_report(int world) const;
  /// Drive forces over the last step, [pack][nv][lane]; empty if no drive had a limit.
  std::span<const R> drive_force() const { return drive_force_; }

  /// The Stepper that took the world's last step: this one, or one that has the world alone as its world 0. Call
  /// loops(), rows() and has_force_rows() on it.
  const Stepper& taker(int world) const;
  /// Equality constraints of the last step: errors, multipliers and status; null if there are none.
  const ConstrainedDynamics<R>* loops() const { return loops_.get(); }

  /// What hangs in worlds of the model; null: nothing can.
  const HangingLinks<R>* hanging() const { return held_.hanging ? &*held_.hanging : nullptr; }

  /// Contacts and joint limits of the last step; null without StepOptions::rows.
  const RowStage<R>* rows() const { return options_.rows.any() ? rows_.get() : nullptr; }
  TendonForces tendon_forces(int tendon, int world = 0) const;
  /// Contacts and joint limits of worlds in SIMD lanes; null without lanes.
  const LaneStage<R>* lane_rows() const { return lane_rows_.get(); }
  /// From the next step on, SIMD lanes record the forces that step_forces() reads.
  void feel() {
    if (lane_rows_) lane_rows_->terms().feel();
  }
  bool has_force_rows() const { return now_.solves_rows; }  ///< in the last step, if this Stepper took it
  /// How the world's terms were solved; null if there were none.
  const RowsReport* rows_report(int world) const;
  /// The state at the start of the last step, laid out as in data.
  In<R> start_qpos() const { return next_.start_qpos; }
  In<R> start_qvel() const { return next_.start_qvel; }
  /// The velocity for which the laws of the last step hold with the rows and masses of start_qpos(), as data.
  /// data.qvel is the same motion at data.qpos: it differs in the linear velocity of free bodies that turn (decision
  /// 419).
  In<R> solved_qvel(const BasicData<R>& data) const {
    return now_.solved_qvel.empty() ? In<R>(data.qvel) : In<R>(now_.solved_qvel);
  }
  /// Force exerted on each link over the last step by everything fixed to the world, world axes [nlink][3] [N].
  void ground_force(int world, Out<R> force) const;
  /// The same for all worlds in the layout of packs, [pack][nlink][3][lane]; empty if worlds are stepped individually.
  In<R> ground_forces() const { return lane_rows_ && options_.rows.any() ? lane_rows_->ground_forces() : In<R>(); }

 private:
  enum class Limits { none, limiter, terms };  ///< what enforces the drives' force limits
  struct Now {                                 ///< state of the current or last step
    bool actuated = false;                     ///< it runs under the model's own actuators
    bool solves_rows = false;                  ///< it has force rows
    bool solves_terms = false;                 ///< it is solved as one problem of terms
    Limits limits = Limits::none;
    AlignedVector<R> hanging_inertia;  ///< [pack][nv][lane] HangingLinks::find(), or empty
    AlignedVector<R> loop_inertia;     ///< [pack][nv][lane] EqualitySet::geometric_inertia(), or empty
    AlignedVector<R> turning;          ///< [pack][nv][lane] StepTerms::turning_ranges()
    AlignedVector<R> force;  ///< [pack][nv][lane] of the drives and springs, where data.joint_force is M̂ q̈ + C
    AlignedVector<R> solved_qvel;  ///< see solved_qvel(); empty: that is data.qvel
    AlignedVector<R> given_qvel;   ///< data.qvel, while data.qvel holds that with which the step begins
    AlignedVector<R> user_tau;     ///< data.tau, while data.tau holds the sum of all applied forces
  };
  struct Next {
    AlignedVector<R> qpos, qvel, row_qacc;
    AlignedVector<R> start_qpos, start_qvel;  ///< of the last step
    AlignedVector<R> last_qacc;  ///< of the last step, which a world that goes bad keeps; empty without `screen`
    AlignedVector<R> free;       ///< [pack][nv][lane] v⁰, for corrections of it
    AlignedVector<R> found;      ///< [pack][lane] of VelocityProducts::begin_step()
  };
  struct Rk4 {
    AlignedVector<R> stage_qpos, stage_qvel, u, slope_q, sum_q, sum_v;
  };
  struct Held {
    std::unique_ptr<EqualitySet> own;  ///< the model's equalities, if the options have no others; loops refer to it
    std::optional<Linkages<R>> linkages;
    std::optional<HangingLinks<R>> hanging;  ///< empty: no loops, and nothing that could hang
    std::optional<SpinResponse<R>> spin;     ///< empty: nothing spins
  };
  struct Alone;
  struct Singles {
    bool always = false;                     ///< lanes do not have all of any step
    bool actuated = false;                   ///< or not of one under the model's own actuators
    std::vector<std::shared_ptr<Alone>> of;  ///< [world] those that were stepped by themselves
  };
  bool goes_singly(const Drives* drives) const;
  Alone& single(int world);
  int step_singly(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);
  void step_again(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target);
  void check_fit(const BasicData<R>& data) const;
  void make_rows(const BasicData<R>& data);
  void prepare(const BasicData<R>& data, In<R> qpos, In<R> qvel, bool start = true);
  void screen(const BasicData<R>& data, In<R> qpos_target, In<R> qvel_target);
  void make_unit(BasicData<R>& data);
  void move(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  void euler(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  void rk4(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  void accelerate(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel, In<R> qpos_target,
                  In<R> qvel_target, In<R> tau);
  using ProductUse = typename VelocityProducts<R>::Use;
  ProductUse product_use() const;
  bool begin_terms(BasicData<R>& data, double h);
  bool implicit_velocity_products(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel);
  void force_of(BasicData<R>& data, In<R> qpos, In<R> qvel) const;
  void add_damping(BasicData<R>& data) const;
  bool explicit_forces() const { return now_.actuated && options_.actuation == ActuationMode::explicit_forces; }
  void solve_terms(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target, In<R> tau);
  void solve_rows(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* limited);
  void end_terms(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target);
  bool stiffen_loops(BasicData<R>& data);
  bool balances() const;
  bool balance_linkages(BasicData<R>& data, bool again);
  bool respond(BasicData<R>& data);
  BilateralRows<R> bilateral_rows(const BasicData<R>& data) const;
  bool solve_responses(BasicData<R>& data);
  void change_free(BasicData<R>& data, double h) const;
  void add_geometric_inertia(BasicData<R>& data) const;
  void close_loops(BasicData<R>& data);
  double loop_step(double dt) const;
  bool within_lane(In<R> values, int n, int world, R limit) const;
  bool ignores_terms(int world) const;
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
  Held held_;
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
