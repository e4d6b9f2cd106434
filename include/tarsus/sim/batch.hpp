// Steps many worlds of one model together: packs of worlds in SIMD lanes, distributed over a fixed team of threads.
//
//   arrays    world-major, [worlds][n]: the numbers of one world are contiguous, as learning code expects. Kernels have
//             worlds in lanes; numbers are transposed when a pack is stepped.
//   packs     of pack_width() worlds. Each thread has a share of the packs and takes over packs of other threads when
//             it has finished its own. A thread has one Stepper; the data that a pack carries from step to step
//             (StepMemory) is swapped with the Stepper's.
//   health    a world that goes bad freezes at its last good state. The batch reports the step and the number at fault.
//             Other worlds are not affected.
//
// The results of a world do not depend, to the bit, on the number of threads, on its index or on the other worlds.
#pragma once

#include <functional>
#include <memory>

#include "tarsus/base/check_index.hpp"
#include "tarsus/base/thread_team.hpp"
#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/sim/sensor.hpp"
#include "tarsus/sim/step.hpp"
#include "tarsus/sim/world_parameters.hpp"

namespace tarsus {

struct BatchOptions {
  StepOptions step;
  int threads = 1;
  /// Stable PD drives that move each world towards its qpos_target and qvel_target. They replace the model's own
  /// actuators and ctrl. Empty: the actuators.
  std::optional<Drives> drives = {};
  /// Keeps the memory that each pack carried into its last step, so that captures of bad worlds include it. See
  /// capture().
  bool keep_starts = false;
};

/// The number that made a world freeze.
struct WorldFault {
  WorldStatus status = WorldStatus::ok;
  const char* array =
      "";  ///< qpos, qvel, tau, ctrl, act, mocap_pos, mocap_quat, qpos_target, qvel_target, qacc; empty: no number's
  int index = -1;  ///< index within the world's part of the array
  double value = 0;

  /// "bad_input: qpos_target[12] is nan"; "ok".
  std::string text() const;
};

/// How the last step of a world was solved. All zero for worlds without contacts, limits and drives with limits.
struct WorldReport {
  double residual = 0;     ///< natural residual [m/s]; 0 if only drives have limits
  double penetration = 0;  ///< largest depth beyond the margin, at the start of the step [m]
  std::int32_t iterations = 0;
  std::int32_t contacts = 0, touching = 0;  ///< touching: contacts with a force
  std::int32_t limits = 0, saturated = 0;   ///< joints at their range; drives at their force limit
  std::int32_t unsolved = 0;                ///< 1: the residual exceeds the tolerance
  std::int32_t inconsistent = 0;            ///< 1: equality constraints contradict one another
  double loop_error = 0;  ///< largest error of an equality constraint, as ConstrainedDynamics::error() [m | rad]
};

/// The complete state of a batch, as returned by save() and accepted by restore().
template <class R>
struct BatchState {
  AlignedVector<R> qpos, qvel, qacc, tau, ctrl, act, qpos_target, qvel_target;  ///< [worlds][n]
  AlignedVector<R> mocap_pos, mocap_quat;                                       ///< [worlds][nmocap][3 | 4]
  AlignedVector<R> ground_force;                                                ///< [worlds][nlink][3]
  std::vector<std::int64_t> steps;                                              ///< [worlds] steps since the last reset
  std::vector<WorldFault> faults;
  std::vector<WorldReport> reports;
  std::vector<StepMemory<R>> memory;  ///< [pack]
  WorldParameters parameters;
};

/// The state of one world on which its next step depends, apart from the model. Numbers of float worlds are stored
/// exactly.
struct WorldCapture {
  bool single = false;   ///< taken from a Batch<float>
  BatchOptions options;  ///< for one thread, with the model's own equality constraints
  std::vector<double> qpos, qvel, qacc, tau, ctrl, act, qpos_target, qvel_target, mocap_pos, mocap_quat;
  std::int64_t steps = 0;
  WorldFault fault;  ///< fault of the step that went bad from this state; ok: the world was not bad
  WorldParameters parameters;
  std::vector<std::uint8_t> memory;  ///< to_bytes() of StepMemory::of(); empty: nothing is carried over
  int width = 1;                     ///< width of the packs that `memory` comes from
};

/// Calls f(name, array of a, array of b, numbers per world) for the arrays that both BatchState and WorldCapture have.
template <class A, class B, class F>
void each_array(const Model& m, A& a, B& b, const F& f) {
  each_input(m, a, b, f), f("qacc", a.qacc, b.qacc, m.nv);
  f("qpos_target", a.qpos_target, b.qpos_target, m.nq), f("qvel_target", a.qvel_target, b.qvel_target, m.nv);
}

/// A sequence of steps with inputs and outputs of every step, in the caller's memory. An empty input leaves the batch's
/// own array unchanged; an empty output is not written.
template <class R>
struct Rollout {
  int steps = 1;
  std::span<const R> ctrl = {};         ///< [steps][worlds][nu]
  std::span<const R> qpos_target = {};  ///< [steps][worlds][nq]
  std::span<const R> qvel_target = {};  ///< [steps][worlds][nv]
  std::span<R> states = {};             ///< [steps][worlds][nq + nv] after each step
  std::span<R> sensors = {};            ///< [steps][worlds][nsensordata] after each step
  /// Called before or after each step of a group of packs, on the thread that steps them, so that inputs and outputs
  /// are processed while the numbers are in the cache. The group has the worlds [first, first + count), at most
  /// worlds_at_once(). The hook may read and write the array parts of these worlds. After the last step it may also
  /// call reset_world() for them.
  using PackHook = std::function<void(int thread, int first, int count, int step)>;
  PackHook before = {}, after = {};
};

/// Output of Batch::measure() for the current state of all worlds, in the caller's memory; empty spans are skipped.
/// Bodies are in the model's order, beginning with the world body.
template <class R>
struct BatchMeasure {
  std::span<R> position = {};     ///< [worlds][nbody][3] of the bodies' frames [m]
  std::span<R> orientation = {};  ///< [worlds][nbody][4] w x y z
  std::span<R> velocity = {};     ///< [worlds][nbody][6] angular, linear at the frame's origin, world axes
  std::span<R> energy = {};       ///< [worlds][3] kinetic, potential, spring [J]
  std::span<R> com = {};          ///< [worlds][6] centre of mass and its velocity [m, m/s]
};

/// Not for use by two threads at once; different batches may be used in parallel.
template <class R>
class Batch {
 public:
  /// Keeps a reference to the model. All worlds start at qpos0 at rest, with the same pose as target.
  /// @throws ValueError for worlds < 1 or too many for the memory, threads outside 1 to 256, and as Stepper; InputError
  /// as Stepper
  Batch(const Model& model, int worlds, const BatchOptions& options);
  ~Batch();
  /// Copies the worlds and their states.
  Batch(const Batch& other);
  Batch& operator=(const Batch&) = delete;

  int worlds() const { return worlds_; }
  int threads() const { return team_.size(); }
  int pack_width() const { return width_; }               ///< worlds per pack
  int worlds_at_once() const { return width_ * group_; }  ///< most worlds that a thread steps in one call
  const Model& model() const { return model_; }
  const BatchOptions& options() const { return options_; }

  // World-major arrays in the batch's memory, [worlds][n]. The caller may write them between steps.
  std::span<R> qpos() { return state_.qpos; }                ///< [nq]
  std::span<R> qvel() { return state_.qvel; }                ///< [nv]
  std::span<R> tau() { return state_.tau; }                  ///< [nv] applied joint forces
  std::span<R> ctrl() { return state_.ctrl; }                ///< [nu]
  std::span<R> act() { return state_.act; }                  ///< [na]
  std::span<R> mocap_pos() { return state_.mocap_pos; }      ///< [nmocap][3] positions of mocap bodies [m]
  std::span<R> mocap_quat() { return state_.mocap_quat; }    ///< [nmocap][4] w x y z, of any length
  std::span<R> qpos_target() { return state_.qpos_target; }  ///< [nq] targets of the drives for the end of the step
  std::span<R> qvel_target() { return state_.qvel_target; }  ///< [nv]
  // Results of the last step.
  std::span<const R> qacc() const { return state_.qacc; }  ///< [nv]
  /// [nlink][3] force exerted on each link by everything fixed to the world and by mocap bodies, world axes [N]. Zero
  /// without contacts.
  std::span<const R> ground_force() const { return state_.ground_force; }
  std::span<const WorldReport> reports() const { return state_.reports; }

  /// Steps all worlds that are ok once.  @return number of worlds that are not ok after the step
  int step() { return rollout({}); }
  /// Takes many steps. A thread takes all steps of a pack before it proceeds to its next pack. The given inputs remain
  /// in the batch's arrays.
  /// @throws ShapeError naming the array; ValueError for a negative number of steps, for controls with drives, and for
  /// targets without drives
  int rollout(const Rollout<R>& rollout);

  // Functions of a world throw ValueError if there is no such world.
  WorldStatus status(int world) const { return fault(world).status; }
  const WorldFault& fault(int world) const { return check_world(world), state_.faults[world]; }
  /// Good steps since the world's reset.
  std::int64_t steps(int world) const { return check_world(world), state_.steps[world]; }
  double time(int world) const { return double(steps(world)) * options_.step.dt; }
  int bad_worlds() const;

  /// Resets the worlds of `mask` (empty: all): status ok; targets at the new pose; act, ctrl and tau zero; mocap bodies
  /// at the poses of the file; nothing carried over from earlier steps.
  /// @param mask [worlds], non-zero: reset this world
  /// @param qpos [worlds][nq], or [nq] for all worlds; empty: qpos0
  /// @param qvel [worlds][nv], or [nv] for all worlds; empty: rest
  /// @throws ShapeError
  void reset(std::span<const std::uint8_t> mask = {}, In<R> qpos = {}, In<R> qvel = {});
  /// Resets to a keyframe: uses those of qpos, qvel, act, ctrl and mocap poses that the keyframe has.
  /// @throws ShapeError
  void reset_to(const KeyframeSpec& key, std::span<const std::uint8_t> mask = {});
  /// Resets one world. @param qpos [nq]; empty: qpos0  @param qvel [nv]; empty: rest  @throws ShapeError
  void reset_world(int world, In<R> qpos = {}, In<R> qvel = {});

  /// Captures one world. A bad world is captured as it was before the step that failed, inputs included, until it is
  /// reset. Its capture includes what it carried into that step if BatchOptions::keep_starts is set. Any other world is
  /// captured in its present state.
  WorldCapture capture(int world) const;
  /// Puts a world into a captured state, with status ok.
  /// @throws ShapeError for a capture of another model; ValueError for a number of steps outside 0 to 2^53
  void put(int world, const WorldCapture& capture);
  const BatchState<R>& save() const { return state_; }
  /// @throws ShapeError if the state has another number of worlds or belongs to another model; ValueError for memory
  /// that no step has left
  void restore(const BatchState<R>& state);
  /// Sets parameters that replace or scale those of the model and the drives. They stay in force through resets.
  /// @param given [worlds][n] each, or [worlds] to repeat one number n times (except gravity); empty parameters stay
  /// unchanged
  /// @param mask [worlds]; empty: all. Other worlds keep their parameters.
  /// @throws ShapeError; ValueError for a number out of range, or for a parameter without anything in the batch to act
  /// on. All parameters then stay unchanged.
  void set_parameters(const WorldParameters& given, std::span<const std::uint8_t> mask = {});
  /// [worlds][n]; empty: as in the model and the drives.
  std::span<const double> parameter(WorldParameter which) const { return state_.parameters[which]; }
  /// Removes all parameters, so that the model's and the drives' apply again.
  void clear_parameters();
  /// Replaces the drives. Factors on drives or actuators that no longer act are dropped. Warm starts are kept if
  /// pack_width() does not change.
  /// @throws as Drives::check
  void set_drives(std::optional<Drives> drives);

  /// 64-bit FNV-1a over the bits of all worlds' qpos, then qvel; equals state_hash() of a Data with these worlds.
  std::uint64_t state_hash() const;
  std::uint64_t state_hash(int world) const;

  int sensor_numbers() const;
  /// Computes poses, velocities and energies. @throws ShapeError naming the array
  void measure(const BatchMeasure<R>& out);
  /// Jacobians of a point of a body in the current state: [worlds][6][nv], angular rows first, world axes.
  /// @param point [worlds][3] or [3] [m]; empty: the body's centre of mass
  /// @throws ShapeError; ValueError for a body that does not exist
  void jacobian(int body, In<R> point, std::span<R> out);
  /// Contacts of a world in its present state, including those that a step could close (ContactGeometry::detect()),
  /// without forces.
  std::vector<LinkContact> contacts(int world);
  /// The shapes that contacts() are between. Empty before its first call.
  std::span<const ContactShape> contact_shapes() const;
  /// tau += Jᵀ force: applies a force at a point of a body in the current state, world axes. It acts until tau is
  /// overwritten.
  /// @param force [worlds][3] or [3] [N]  @param point [worlds][3] or [3] [m]; empty: the centre of mass
  /// @param mask [worlds]; empty: all
  /// @throws ShapeError; ValueError for a body that does not exist or that no joint moves
  void apply_force(int body, In<R> force, In<R> point = {}, std::span<const std::uint8_t> mask = {});

 private:
  struct Worker;
  const Drives* drives() const { return options_.drives ? &*options_.drives : nullptr; }
  void check_world(int world) const { check_index("world", world, worlds_); }
  void make_workers();
  void check(const Rollout<R>& rollout) const;
  void check_use(WorldParameter which) const;
  void check_actuators(WorldParameter which) const;
  void parameters_changed();
  void use_parameters(Worker& worker, int first);
  WorldCapture snapshot(int world, const StepMemory<R>* memory) const;
  struct Packs {
    int first, count;
  };
  void run(int thread, Packs packs, const Rollout<R>& rollout);
  Packs next_packs(int thread);
  void exchange(Worker& worker, int first, int count);
  void take_inputs(int step, const Rollout<R>& rollout, int first, int count);
  struct Keeping {
    bool hold, show;  ///< keep the lanes' state for the next step; the state is read before then
  };
  bool load_inputs(Worker& worker, const Rollout<R>& rollout, int first, int count);
  bool load(Worker& worker, int first, int count);
  void turn_in(Worker& worker, const AlignedVector<R>& from, AlignedVector<R>& to, int n);
  void show_start(Worker& worker, int world, int lane);
  void keep(Worker& worker, int first, int count, const Keeping& how);
  void show(Worker& worker, int first);
  TermMemory* apart(int world);
  bool step_alone(Worker& worker, int world, int lane);
  void step_apart(Worker& worker, int first, int count);
  void blame(Worker& worker, int world, int lane);
  void record_fault(Worker& worker, int world, int lane);
  void write_outputs(Worker& worker, int step, const Rollout<R>& rollout, int first, int count);
  void check_points(int body, In<R> point) const;
  template <class F>
  bool each_input(const F& f);
  bool clean(int first, int count);
  bool screen(int world);
  Data& look_at(int world, Worker& worker);
  template <class F>
  void each_world(const F& f);

  const Model& model_;
  ActuatorSet actuators_;  // the model's
  int worlds_, width_ = 1, packs_ = 1, group_ = 1;
  BatchOptions options_;
  ThreadTeam team_;
  BatchState<R> state_;
  std::vector<std::unique_ptr<Worker>> workers_;         // [thread]
  std::vector<WorldTable<R>> tables_;                    // [pack] of state_.parameters
  std::vector<char> stale_;                              // [pack] the table must be refilled
  std::vector<std::unique_ptr<WorldCapture>> captures_;  // [world] captures of bad worlds
  std::optional<ContactGeometry> geometry_;              // for contacts()
};

extern template class Batch<double>;
extern template class Batch<float>;

/// Version of to_bytes() and of WorldReport, whose bytes Python's Batch.save() contains. Raise it whenever one of them
/// changes: bytes of another layout have another meaning or, at best, another length.
constexpr int kBytesVersion = 3;

/// What packs carry from step to step, as bytes for files, in the machine's number format. Empty if they carry nothing.
template <class R>
std::vector<std::uint8_t> to_bytes(std::span<const StepMemory<R>> memory);
/// @throws ValueError for bytes that do not describe `memory.size()` packs
template <class R>
void from_bytes(std::span<const std::uint8_t> bytes, std::span<StepMemory<R>> memory);

}  // namespace tarsus
