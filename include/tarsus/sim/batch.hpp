// Many worlds of one model, stepped together: packs of worlds side by side over a fixed team of threads.
//
//   arrays    world-major, [worlds][n]: a world's numbers lie together, as learners want them. Kernels have worlds in
//             lanes; numbers are turned into lanes and back as a pack is stepped.
//   packs     of pack_width() worlds. Each thread has a share of them, and takes others' when it is through with its
//             own. A thread has one Stepper; what a pack carries from step to step (StepMemory) changes places with the
//             Stepper's.
//   health    a world that goes bad freezes at its last good state, with the step and the number that did it; what it
//             does reaches no other world.
//
// A world's results do not depend, to the bit, on the number of threads, on its place, nor on the other worlds.
#pragma once

#include <functional>
#include <memory>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/sim/sensor.hpp"
#include "tarsus/sim/step.hpp"
#include "tarsus/sim/world_parameters.hpp"

namespace tarsus {

struct BatchOptions {
  StepOptions step;
  int threads = 1;
  /// Stable PD drives that take each world to its qpos_target and qvel_target, in the place of the model's own
  /// actuators under ctrl. Empty: the actuators.
  std::optional<Drives> drives = {};
  /// Keeps, for each step, what a pack carried into it, so that captures of worlds that go bad have it: see capture().
  bool keep_starts = false;
};

/// Which number made a world freeze.
struct WorldFault {
  WorldStatus status = WorldStatus::ok;
  const char* array =
      "";  ///< qpos, qvel, tau, ctrl, act, mocap_pos, mocap_quat, qpos_target, qvel_target, qacc; empty: no number's
  int index = -1;  ///< in that world's part of the array
  double value = 0;

  /// "bad_input: qpos_target[12] is nan"; "ok".
  std::string text() const;
};

/// How the last step of a world was solved. All zero for worlds without contacts, limits and drives with limits.
struct WorldReport {
  double residual = 0;     ///< natural residual [m/s]; 0 where nothing but drives has limits
  double penetration = 0;  ///< deepest beyond the margin, at the start of the step [m]
  std::int32_t iterations = 0;
  std::int32_t contacts = 0, touching = 0;  ///< touching: with a force
  std::int32_t limits = 0, saturated = 0;   ///< joints at their range; drives at their limit
  std::int32_t unsolved = 0;                ///< 1: the residual is not within the tolerance
};

/// All that a batch has of its worlds: what save() gives and restore() takes.
template <class R>
struct BatchState {
  AlignedVector<R> qpos, qvel, qacc, tau, ctrl, act, qpos_target, qvel_target;  ///< [worlds][n]
  AlignedVector<R> mocap_pos, mocap_quat;                                       ///< [worlds][nmocap][3 | 4]
  AlignedVector<R> ground_force;                                                ///< [worlds][nlink][3]
  std::vector<std::int64_t> steps;                                              ///< [worlds] since they were reset
  std::vector<WorldFault> faults;
  std::vector<WorldReport> reports;
  std::vector<StepMemory<R>> memory;  ///< [pack]
  WorldParameters parameters;
};

/// One world at one moment: what its next step depends on, besides the model. Numbers of float worlds are exact.
struct WorldCapture {
  bool single = false;   ///< of a Batch<float>
  BatchOptions options;  ///< of one thread; the model's own equality constraints
  std::vector<double> qpos, qvel, qacc, tau, ctrl, act, qpos_target, qvel_target, mocap_pos, mocap_quat;
  std::int64_t steps = 0;
  WorldFault fault;  ///< of the step that went bad from here; ok: the world was not bad
  WorldParameters parameters;
  std::vector<std::uint8_t> memory;  ///< to_bytes() of StepMemory::of(); empty: nothing is carried
  int width = 1;                     ///< of the packs that `memory` is of
};

/// f(name, array of a, array of b, numbers of a world) for the arrays that both BatchState and WorldCapture have.
template <class A, class B, class F>
void each_array(const Model& m, A& a, B& b, const F& f) {
  f("qpos", a.qpos, b.qpos, m.nq), f("qvel", a.qvel, b.qvel, m.nv), f("qacc", a.qacc, b.qacc, m.nv);
  f("tau", a.tau, b.tau, m.nv), f("ctrl", a.ctrl, b.ctrl, m.nu), f("act", a.act, b.act, m.na);
  f("qpos_target", a.qpos_target, b.qpos_target, m.nq), f("qvel_target", a.qvel_target, b.qvel_target, m.nv);
  f("mocap_pos", a.mocap_pos, b.mocap_pos, 3 * m.nmocap()), f("mocap_quat", a.mocap_quat, b.mocap_quat, 4 * m.nmocap());
}

/// Steps with inputs and outputs of every step; memory is the caller's. Empty: the batch's own arrays stay as they are,
/// nothing is written.
template <class R>
struct Rollout {
  int steps = 1;
  std::span<const R> ctrl = {};         ///< [steps][worlds][nu]
  std::span<const R> qpos_target = {};  ///< [steps][worlds][nq]
  std::span<const R> qvel_target = {};  ///< [steps][worlds][nv]
  std::span<R> states = {};             ///< [steps][worlds][nq + nv] after each step
  std::span<R> sensors = {};            ///< [steps][worlds][nsensordata] after each step
  /// Called around each step of some packs, worlds [first, first + count) of at most worlds_at_once(), on the thread
  /// that steps them: what they need and give is made while their numbers are in the cache. May read and write these
  /// worlds' parts of the arrays; after the last step, it may reset_world() them.
  using PackHook = std::function<void(int thread, int first, int count, int step)>;
  PackHook before = {}, after = {};
};

/// What Batch::measure() writes of all worlds as they are now; memory is the caller's, empty: not wanted. Bodies as in
/// the model, the world first.
template <class R>
struct BatchMeasure {
  std::span<R> position = {};     ///< [worlds][nbody][3] of the bodies' frames [m]
  std::span<R> orientation = {};  ///< [worlds][nbody][4] w x y z
  std::span<R> velocity = {};     ///< [worlds][nbody][6] angular, linear at the frame's origin, world axes
  std::span<R> energy = {};       ///< [worlds][3] kinetic, potential, of springs [J]
  std::span<R> com = {};          ///< [worlds][6] centre of mass and its velocity [m, m/s]
};

/// Not for use by two threads at once; several batches are.
template <class R>
class Batch {
 public:
  /// Keeps a reference to the model. All worlds start at qpos0, at rest, their targets there.
  /// @throws ValueError for worlds < 1 or more than there is memory for, threads out of 1 to 256, and as Stepper;
  /// InputError as Stepper
  Batch(const Model& model, int worlds, const BatchOptions& options);
  ~Batch();
  /// The same worlds, in the same states.
  Batch(const Batch& other);
  Batch& operator=(const Batch&) = delete;

  int worlds() const { return worlds_; }
  int threads() const { return team_.size(); }
  int pack_width() const { return width_; }               ///< worlds side by side
  int worlds_at_once() const { return width_ * group_; }  ///< that a thread steps in one call, at most
  const Model& model() const { return model_; }
  const BatchOptions& options() const { return options_; }

  // World-major arrays, the batch's own memory, [worlds][n]; yours to write between steps.
  std::span<R> qpos() { return state_.qpos; }                ///< [nq]
  std::span<R> qvel() { return state_.qvel; }                ///< [nv]
  std::span<R> tau() { return state_.tau; }                  ///< [nv] applied joint forces
  std::span<R> ctrl() { return state_.ctrl; }                ///< [nu]
  std::span<R> act() { return state_.act; }                  ///< [na]
  std::span<R> mocap_pos() { return state_.mocap_pos; }      ///< [nmocap][3] where mocap bodies are [m]
  std::span<R> mocap_quat() { return state_.mocap_quat; }    ///< [nmocap][4] w x y z, of any length
  std::span<R> qpos_target() { return state_.qpos_target; }  ///< [nq] of the drives, for the end of the step
  std::span<R> qvel_target() { return state_.qvel_target; }  ///< [nv]
  // By the last step.
  std::span<const R> qacc() const { return state_.qacc; }  ///< [nv]
  /// [nlink][3] force on each link by what is fixed to the world and by mocap bodies, world axes [N]. Zero without
  /// contacts.
  std::span<const R> ground_force() const { return state_.ground_force; }
  std::span<const WorldReport> reports() const { return state_.reports; }

  /// One step of all worlds that are ok.  @return number of worlds that are not ok now
  int step() { return rollout({}); }
  /// Many steps, all of a pack before the thread turns to its next. Inputs that are given stay in
  /// the batch's arrays. @throws ShapeError naming the array; ValueError for fewer than 0 steps, and for controls with
  /// drives or targets without
  int rollout(const Rollout<R>& rollout);

  WorldStatus status(int world) const { return state_.faults[world].status; }
  const WorldFault& fault(int world) const { return state_.faults[world]; }
  std::int64_t steps(int world) const { return state_.steps[world]; }  ///< good ones since its reset
  double time(int world) const { return double(state_.steps[world]) * options_.step.dt; }
  int bad_worlds() const;

  /// Starts the worlds of `mask` (empty: all) anew: status ok, targets at the new pose, act, ctrl, tau zero, mocap
  /// bodies where the file has them, nothing carried on.
  /// @param mask [worlds], not 0: this one  @param qpos [worlds][nq] or [nq] for all alike; empty: qpos0
  /// @param qvel [worlds][nv] or [nv]; empty: rest  @throws ShapeError
  void reset(std::span<const std::uint8_t> mask = {}, In<R> qpos = {}, In<R> qvel = {});
  /// The same to a keyframe, with what it has of qpos, qvel, act, ctrl and poses of mocap bodies.
  void reset_to(const KeyframeSpec& key, std::span<const std::uint8_t> mask = {});
  /// The same for one world. @param qpos [nq]; empty: qpos0  @param qvel [nv]; empty: rest  @throws ShapeError
  void reset_world(int world, In<R> qpos = {}, In<R> qvel = {});

  /// A world that is bad: as it was before the step that made it so, inputs and all, until it is reset; with what it
  /// carried into that step if BatchOptions::keep_starts, else with nothing. Any other: as it is now.
  WorldCapture capture(int world) const;
  /// Goes on from a capture, status ok. @throws ShapeError for one of another model
  void put(int world, const WorldCapture& capture);
  const BatchState<R>& save() const { return state_; }
  /// @throws ShapeError if it is of another number of worlds or another model; ValueError for memory that no step left
  void restore(const BatchState<R>& state);
  /// Numbers that worlds have in the place of the model's or the drives', from now on; resets keep them.
  /// @param given [worlds][n] each, or [worlds] for the same n times (but gravity); empty ones stay as they are
  /// @param mask [worlds] or empty: all; the other worlds keep theirs
  /// @throws ShapeError; ValueError for a number out of range, and where the batch has nothing that it could act on;
  /// then all stay as they are
  void set_parameters(const WorldParameters& given, std::span<const std::uint8_t> mask = {});
  /// [worlds][n], or empty: as in the model and the drives.
  std::span<const double> parameter(WorldParameter which) const { return state_.parameters[which]; }
  /// All as in the model and the drives again.
  void clear_parameters();
  /// Other drives from now on; factors on them go where there are none. Warm starts are kept where pack_width() stays.
  /// @throws as Drives::check
  void set_drives(std::optional<Drives> drives);

  /// 64-bit FNV-1a over the bits of all worlds' qpos, then qvel: state_hash() of a Data with these worlds.
  std::uint64_t state_hash() const;
  std::uint64_t state_hash(int world) const;

  int sensor_numbers() const;
  /// Poses, velocities, energies. @throws ShapeError naming the array
  void measure(const BatchMeasure<R>& out);
  /// Jacobians of a point of a body, as the worlds stand now: [worlds][6][nv], angular rows first, world axes.
  /// @param point [worlds][3] or [3] [m]; empty: its centre of mass  @throws ShapeError, ValueError for a body that is
  /// not there
  void jacobian(int body, In<R> point, std::span<R> out);
  /// Contacts of a world as it is now, and those that a step could bring (ContactGeometry::detect()), without forces.
  std::vector<LinkContact> contacts(int world);
  /// tau += Jᵀ force, a force on a body at a point of it, world axes, as the worlds stand now; it acts until tau is set
  /// anew. @param force [worlds][3] or [3] [N]  @param point [worlds][3] or [3] [m]; empty: the centre of mass
  /// @param mask [worlds] or empty: all  @throws ShapeError, ValueError for a body that is not there
  void apply_force(int body, In<R> force, In<R> point = {}, std::span<const std::uint8_t> mask = {});

 private:
  struct Worker;
  void make_workers();
  void check(const Rollout<R>& rollout) const;
  void check_use(WorldParameter which) const;
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
    bool hold, show;  ///< the lanes' state for the next step; it is looked at before
  };
  bool load_inputs(Worker& worker, const Rollout<R>& rollout, int first, int count);
  bool load(Worker& worker, int first, int count);
  void turn_in(Worker& worker, const AlignedVector<R>& from, AlignedVector<R>& to, int n);
  void show_start(Worker& worker, int world, int lane);
  void keep(Worker& worker, int first, int count, const Keeping& how);
  void show(Worker& worker, int first);
  bool step_alone(Worker& worker, int world);
  void blame(Worker& worker, int world, int lane);
  void record_fault(Worker& worker, int world, int lane);
  void write_outputs(Worker& worker, int step, const Rollout<R>& rollout, int first, int count);
  void check_points(int body, In<R> point) const;
  template <class F>
  bool each_input(const F& f);
  bool clean(int first, int count);
  bool screen(int world);
  void look_at(int world, Worker& worker);
  template <class F>
  void each_world(const F& f);

  const Model& model_;
  int worlds_, width_ = 1, packs_ = 1, group_ = 1;
  BatchOptions options_;
  ThreadTeam team_;
  BatchState<R> state_;
  std::vector<std::unique_ptr<Worker>> workers_;         // [thread]
  std::vector<WorldTable<R>> tables_;                    // [pack] of state_.parameters
  std::vector<char> stale_;                              // [pack] the table is to be filled anew
  std::vector<std::unique_ptr<WorldCapture>> captures_;  // [world] of those that are bad
  std::optional<ContactGeometry> geometry_;              // for contacts()
};

extern template class Batch<double>;
extern template class Batch<float>;

/// What packs carry from step to step as bytes, for files; as these machines have numbers. Empty for what carries none.
template <class R>
std::vector<std::uint8_t> to_bytes(std::span<const StepMemory<R>> memory);
/// @throws ValueError for bytes that are not those of `memory.size()` packs
template <class R>
void from_bytes(std::span<const std::uint8_t> bytes, std::span<StepMemory<R>> memory);

}  // namespace tarsus
