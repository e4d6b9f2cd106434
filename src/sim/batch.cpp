#include "tarsus/sim/batch.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>

#include "sim/within.hpp"
#include "tarsus/base/hash.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/frame.hpp"
#include "tarsus/dynamics/lanes.hpp"
#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/body_at.hpp"

namespace tarsus {

std::string WorldFault::text() const {
  if (status == WorldStatus::ok || index < 0) return name(status);
  return std::string(name(status)) + ": " + array + "[" + std::to_string(index) + "] is " + number_text(value);
}

namespace {

/// World `world`'s part of an array with n numbers per world.
template <class E>
std::span<E> part(std::span<E> array, int n, int world) {
  return array.subspan(std::size_t(n) * at(world), at(n));
}
template <class R>
std::span<R> part(AlignedVector<R>& array, int n, int world) {
  return part(std::span<R>(array), n, world);
}

/// @throws ValueError if the numbers of this many worlds alone exceed the machine's memory
template <class R>
void check_room(const Model& model, int worlds) {
  const double numbers = 3.0 * model.nq + 6.0 * model.nv + model.nu + model.na + 3.0 * model.njoint();
  const double bytes = numbers * sizeof(R) + sizeof(WorldFault) + sizeof(WorldReport) + 2 * sizeof(std::int64_t);
  const double pages = double(sysconf(_SC_PHYS_PAGES)), page = double(sysconf(_SC_PAGESIZE));
  if (pages > 0 && worlds * bytes > pages * page)
    throw ValueError("worlds", std::to_string(worlds), "fewer: they do not fit into memory");
}

void check_steps(const char* name, std::int64_t steps) {
  if (steps < 0 || steps > std::int64_t(1) << 53) throw ValueError(name, std::to_string(steps), "0 to 2^53");
}

/// The report of a world's last step.
template <class R>
WorldReport report_of(const Stepper<R>& stepper, int world) {
  WorldReport out;
  if (const RowsReport* r = stepper.rows_report(world)) {
    out.residual = r->residual, out.penetration = r->penetration, out.iterations = r->iterations;
    out.contacts = r->contacts, out.touching = r->touching, out.limits = r->limits, out.saturated = r->saturated;
    out.unsolved = r->status > StepStatus::swept;
  } else if (const std::optional<LimitReport> limits = stepper.limit_report(world)) {
    out.iterations = limits->iterations, out.saturated = limits->saturated, out.unsolved = !limits->converged;
  }
  const Stepper<R>& taker = stepper.taker(world);
  if (const ConstrainedDynamics<R>* loops = taker.loops()) {
    const int place = &taker == &stepper ? world : 0;
    out.loop_error = loops->error(place).position;
    out.inconsistent = loops->status(place) == KktStatus::inconsistent;
  }
  return out;
}

}  // namespace

/// Workspace of a thread for stepping packs one after the other.
template <class R>
struct Batch<R>::Worker {
  BasicData<R> data;
  Stepper<R> stepper;
  AlignedVector<R> qpos_target, qvel_target;  // [pack][n][lane]
  std::atomic<int> next = 0;                  // next group of this thread's share of packs that is not taken yet
  std::vector<int> source;                    // [pack][lane] world whose numbers it holds
  std::vector<const R*> from;                 // [lane] rows of an array of the worlds
  std::vector<R*> to;
  std::vector<char> live;   // [pack][lane] it has its own world, which is ok
  std::vector<char> apart;  // [pack][lane] the scalar path takes the step of its world
  bool held = false;        // the lanes hold the state at the end of their worlds' last step
  bool behind = false;      // and the batch's arrays are not updated, because nothing reads them yet
  AlignedVector<R> last_qacc, last_ground_force;  // of the previous step while `behind`; bad worlds keep them
  std::optional<SensorSet> sensors;
  std::vector<StepForces> felt;        ///< [pack][lane] over the last step, if a sensor measures contact
  std::vector<double> numbers, state;  // sensor output; qpos, qvel, qacc, ctrl, act for sensors
  std::optional<Data> one;             // a world's poses, outside of steps
  WorldTable<double> one_table;        // the parameters of that world
  Drives drives;                       // of an individually stepped world with its own gains
  std::vector<StepMemory<R>> before;   // [pack] what it carried into the step
  std::shared_ptr<Worker> alone;       // scalar path for worlds that the lanes did not solve; shared with `single`
  std::unique_ptr<Worker> single;      // of one pack
  WorldTable<R> table;                 // for width 1: the parameters of its world
  std::exception_ptr error;

  Worker(const Model& model, int width, int packs, const StepOptions& options)
      : data(model, width * packs),
        stepper(model, data, options),
        source(at(width * packs)),
        from(at(width)),
        to(at(width)),
        live(at(width * packs)),
        apart(at(width * packs)),
        before(at(packs)) {
    qpos_target.resize(data.size(model.nq)), qvel_target.resize(data.size(model.nv));
    last_qacc.resize(data.size(model.nv)), last_ground_force.resize(stepper.ground_forces().size());
  }
  int packs() const { return data.packs(); }
  void keep_last() {
    data.qacc.swap(last_qacc);
    std::ranges::copy(stepper.ground_forces(), last_ground_force.begin());
  }
};

template <class R>
Batch<R>::Batch(const Model& model, int worlds, const BatchOptions& options)
    : model_(model),
      actuators_(Actuation(model).actuators()),
      worlds_(worlds),
      options_(options),
      team_(options.threads) {
  if (worlds < 1) throw ValueError("worlds", std::to_string(worlds), "at least 1");
  check_room<R>(model, worlds);
  each_array(model, state_, state_, [&](const char*, AlignedVector<R>& array, AlignedVector<R>&, int n) {
    array.assign(at(worlds) * at(n), R(0));
  });
  state_.ground_force.assign(at(worlds) * at(3 * model.njoint()), R(0));
  captures_.resize(at(worlds));
  state_.steps.resize(at(worlds)), state_.faults.resize(at(worlds)), state_.reports.resize(at(worlds));
  if (options_.drives) options_.drives->check(model);
  options_.step.rows.geometry = options_.step.rows.shapes(model);
  options_.step.screen = false, options_.step.again = false;  // load() and keep() do it
  make_workers();
  reset();
}

template <class R>
Batch<R>::Batch(const Batch& other) : Batch(other.model_, other.worlds_, other.options_) {
  state_ = other.state_;
  for (std::size_t w = 0; w < captures_.size(); ++w) {
    if (other.captures_[w]) captures_[w] = std::make_unique<WorldCapture>(*other.captures_[w]);
  }
  parameters_changed();
}

template <class R>
Batch<R>::~Batch() = default;

template <class R>
void Batch<R>::make_workers() {
  width_ = tarsus::pack_width<R>(model_, options_.step, drives());
  packs_ = (worlds_ + width_ - 1) / width_;
  group_ = width_ > 1 && options_.step.rows.any() ? std::min(packs_together<R>(width_), packs_) : 1;
  state_.memory.clear(), state_.memory.resize(at(packs_));
  // Rarely exceeded by a step: the drive, limit or friction of every joint, and many contacts.
  constexpr int kContacts = 32, kContactNumbers = 11;
  if (width_ == 1 && options_.step.rows.any()) {
    for (StepMemory<R>& memory : state_.memory) {
      TermMemory& terms = memory.of_world(0, 1);
      terms.entries.reserve(at(2 * model_.njoint() + kContacts));
      terms.numbers.reserve(at(4 * model_.njoint() + kContactNumbers * kContacts));
    }
  }
  parameters_changed();
  workers_.clear();
  for (int t = 0; t < threads(); ++t) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>(model_, width_, group_, options_.step));
    if (width_ > 1) worker.alone = std::make_shared<Worker>(model_, 1, 1, options_.step);
    if (group_ == 1) continue;
    worker.single = std::make_unique<Worker>(model_, width_, 1, options_.step);
    worker.single->alone = worker.alone;
  }
}

template <class R>
void Batch<R>::set_drives(std::optional<Drives> drives) {
  if (drives) drives->check(model_);
  options_.drives = std::move(drives);
  for (int k = 0; k < kWorldParameters; ++k) {
    const WorldParameter which = WorldParameter(k);
    if (options_.drives
            ? is_of_actuators(which) || (which == WorldParameter::force_scale && !options_.drives->limited())
            : is_of_drives(which))
      state_.parameters[which].clear();
  }
  parameters_changed();
  if (tarsus::pack_width<R>(model_, options_.step, this->drives()) != width_) make_workers();
}

template <class R>
void Batch<R>::reset(std::span<const std::uint8_t> mask, In<R> qpos, In<R> qvel) {
  const auto same_or_each = [&](const char* name, In<R> given, int n) {
    if (given.size() != at(n)) check_size(name, given.size(), given.empty() ? 0 : at(n) * at(worlds_));
  };
  if (!mask.empty()) check_size("mask", mask.size(), at(worlds_));
  same_or_each("qpos", qpos, model_.nq), same_or_each("qvel", qvel, model_.nv);
  // Copies, because they may be parts of the arrays that are written.
  const AlignedVector<R> own_qpos(qpos.begin(), qpos.end()), own_qvel(qvel.begin(), qvel.end());
  qpos = own_qpos, qvel = own_qvel;
  for (int world = 0; world < worlds_; ++world) {
    if (!mask.empty() && !mask[at(world)]) continue;
    const auto mine = [&](In<R> given, int n) { return given.size() == at(n) ? given : part(given, n, world); };
    reset_world(world, qpos.empty() ? qpos : mine(qpos, model_.nq), qvel.empty() ? qvel : mine(qvel, model_.nv));
  }
}

template <class R>
void Batch<R>::reset_to(const KeyframeSpec& key, std::span<const std::uint8_t> mask) {
  const auto whole = [](const char* name, const std::vector<double>& values, int n) {
    if (!values.empty()) check_size(name, values.size(), at(n));
  };
  whole("qpos", key.qpos, model_.nq), whole("qvel", key.qvel, model_.nv);
  whole("act", key.act, model_.na), whole("ctrl", key.ctrl, model_.nu);
  whole("mocap_position", key.mocap_position, 3 * model_.nmocap());
  whole("mocap_orientation", key.mocap_orientation, 4 * model_.nmocap());
  const AlignedVector<R> qpos(key.qpos.begin(), key.qpos.end()), qvel(key.qvel.begin(), key.qvel.end());
  reset(mask, qpos, qvel);
  const auto each_has = [&](const std::vector<double>& values, AlignedVector<R>& all) {
    const std::size_t n = values.size();
    for (std::size_t i = 0; n > 0 && i < all.size(); ++i) {
      if (mask.empty() || mask[i / n]) all[i] = R(values[i % n]);
    }
  };
  each_has(key.act, state_.act), each_has(key.ctrl, state_.ctrl);
  each_has(key.mocap_position, state_.mocap_pos), each_has(key.mocap_orientation, state_.mocap_quat);
}

template <class R>
void Batch<R>::reset_world(int world, In<R> qpos, In<R> qvel) {
  check_world(world);
  if (!qpos.empty()) check_size("qpos", qpos.size(), at(model_.nq));
  if (!qvel.empty()) check_size("qvel", qvel.size(), at(model_.nv));
  const auto fill = [&](AlignedVector<R>& array, int n, In<R> given = {}) {
    const std::span<R> to = part(array, n, world);
    if (given.empty())
      std::fill(to.begin(), to.end(), R(0));
    else
      std::copy(given.begin(), given.end(), to.begin());
  };
  for (int k = 0; k < model_.nmocap(); ++k) {
    const BodySpec& spec = model_.spec.bodies[at(model_.mocap_bodies[at(k)])];
    const double q[] = {spec.orientation.w, spec.orientation.x, spec.orientation.y, spec.orientation.z};
    for (int i = 0; i < 3; ++i) part(state_.mocap_pos, 3 * model_.nmocap(), world)[at(3 * k + i)] = R(spec.position[i]);
    for (int i = 0; i < 4; ++i) part(state_.mocap_quat, 4 * model_.nmocap(), world)[at(4 * k + i)] = R(q[i]);
  }
  for (AlignedVector<R>* array : {&state_.qpos, &state_.qpos_target}) {
    fill(*array, model_.nq, qpos);
    if (qpos.empty()) std::copy(model_.qpos0.begin(), model_.qpos0.end(), part(*array, model_.nq, world).begin());
  }
  fill(state_.qvel, model_.nv, qvel);
  for (AlignedVector<R>* array : {&state_.qacc, &state_.tau, &state_.qvel_target}) fill(*array, model_.nv);
  fill(state_.ctrl, model_.nu), fill(state_.act, model_.na), fill(state_.ground_force, 3 * model_.njoint());
  state_.steps[at(world)] = 0, state_.faults[at(world)] = {}, state_.reports[at(world)] = {};
  state_.memory[at(world / width_)].forget(world % width_, width_);
  captures_[at(world)].reset();
}

template <class R>
void Batch<R>::restore(const BatchState<R>& state) {
  each_array(model_, state, state_, [](const char* name, const AlignedVector<R>& from, AlignedVector<R>& to, int) {
    check_size(name, from.size(), to.size());
  });
  check_size("state.memory", state.memory.size(), state_.memory.size());
  check_size("state.steps", state.steps.size(), state_.steps.size());
  check_size("state.faults", state.faults.size(), state_.faults.size());
  check_size("state.reports", state.reports.size(), state_.reports.size());
  for (const std::int64_t steps : state.steps) check_steps("state.steps", steps);
  for (const WorldReport& r : state.reports)
    for (const std::int32_t count : {r.iterations, r.contacts, r.touching, r.limits, r.saturated})
      if (count < 0) throw ValueError("state.reports", std::to_string(count), "counts of 0 or more");
  check_size("state.ground_force", state.ground_force.size(), state_.ground_force.size());
  state.parameters.check_sizes(model_, worlds_);
  for (StepMemory<R> memory : state.memory) {  // throws if no step left this memory
    for (int there_and_back = 0; there_and_back < 2; ++there_and_back)
      workers_[0]->stepper.exchange(workers_[0]->data, memory);
  }
  state_ = state;
  for (auto& capture : captures_) capture.reset();
  parameters_changed();
}

/// @throws ValueError for a parameter that would have no effect, or only a part of its effect
template <class R>
void Batch<R>::check_use(WorldParameter which) const {
  const auto refuse = [&](const char* expected) { throw ValueError(name(which), "given", expected); };
  const auto joint_has = [&](const auto& is_so) {
    return std::ranges::any_of(model_.spec.bodies,
                               [&](const BodySpec& body) { return std::ranges::any_of(body.joints, is_so); });
  };
  if (which == WorldParameter::mass_scale || is_of_vectors(which)) {
    for (const BodySpec& body : model_.spec.bodies) {
      if (body.gravity_compensation != 0) refuse("a model without gravity compensation");
    }
    const OptionSpec& option = model_.spec.option;
    if (which == WorldParameter::com_offset && (option.density > 0 || option.viscosity > 0))
      refuse("a model without fluid");
  } else if (which == WorldParameter::friction_scale) {
    const auto& geometry = options_.step.rows.geometry;
    if (!options_.step.rows.contacts) refuse("a batch with contacts");
    if (geometry->crowded()) refuse("a model with so few shapes that contacts need no broad phase");
    if (geometry->empty()) refuse("a model with shapes that may touch");
  } else if (which == WorldParameter::damping_scale) {
    const auto damped = [](const JointSpec& j) {
      return j.damping != 0 || j.damping_polynomial != std::array{0.0, 0.0};
    };
    if (!model_.spec.option.damper_enabled || !joint_has(damped)) refuse("a model with damped joints");
  } else if (which == WorldParameter::armature_scale) {
    if (!joint_has([](const JointSpec& j) { return j.armature > 0; })) refuse("a model with armature of joints");
  } else if (which == WorldParameter::friction_loss_scale) {
    if (!options_.step.rows.joints) refuse("a batch with joint limits, to which dry friction belongs");
    if (std::ranges::none_of(model_.joints, [](const Joint& j) { return j.friction_loss > 0; }))
      refuse("a model with dry friction of joints");
  } else if (is_of_actuators(which)) {
    if (options_.drives) refuse("a batch without drives, which replace the actuators");
    if (options_.step.actuation == ActuationMode::off) refuse("a batch with actuators");
    check_actuators(which);
  } else {
    if (!options_.drives) refuse("a batch with drives (actuator_gain_scale is for the model's own actuators)");
    const auto zero = [](double gain) { return gain == 0; };
    const Drives& drives = *options_.drives;
    if (which == WorldParameter::kp_scale && std::ranges::all_of(drives.kp, zero)) refuse("drives with stiffness");
    if (which == WorldParameter::kd_scale && std::ranges::all_of(drives.kd, zero)) refuse("drives with damping");
    if (which == WorldParameter::force_scale && !options_.drives->limited()) refuse("drives with force limits");
  }
}

/// @throws ValueError for factors that no actuator of the model can have, or not all of them
template <class R>
void Batch<R>::check_actuators(WorldParameter which) const {
  const auto refuse = [&](const char* expected) { throw ValueError(name(which), "given", expected); };
  const bool force = which == WorldParameter::actuator_force_scale;
  const std::size_t first = which == WorldParameter::actuator_damping_scale ? 2 : 0, end = first == 2 ? 3 : 2;
  bool acts = false;
  for (int i = 0; i < actuators_.size(); ++i) {
    const Actuator& a = actuators_[i];
    if (!a.active) continue;
    if (force) {
      if (a.force_limited && a.is_joint_servo() && model_.joints[a.joint].force_limited)
        refuse("a model without an actuatorfrcrange of joints whose servos have a forcerange");
      acts = acts || a.force_limited;
      continue;
    }
    if (!a.is_affine()) refuse("a model without muscles, DC motors and PID servos");
    for (std::size_t k = first; k < end; ++k) acts = acts || a.gain[k] != 0 || a.bias[k] != 0;
  }
  if (acts) return;
  refuse(force        ? "a model with an actuator with a forcerange"
         : first == 2 ? "a model with an actuator with damping"
                      : "a model with actuators");
}

template <class R>
void Batch<R>::set_parameters(const WorldParameters& given, std::span<const std::uint8_t> mask) {
  if (!mask.empty()) check_size("mask", mask.size(), at(worlds_));
  WorldParameters all = state_.parameters;
  for (int k = 0; k < kWorldParameters; ++k) {
    const WorldParameter which = WorldParameter(k);
    const std::vector<double>& values = given[which];
    if (values.empty()) continue;
    check_use(which);
    const std::size_t n = at(numbers(model_, which)), count = n * at(worlds_);
    const bool alike = values.size() == at(worlds_) && !is_of_vectors(which);
    if (!alike) check_size(name(which), values.size(), count);
    std::vector<double>& next = all[which];
    if (next.empty()) {
      next.assign(count, is_of_vectors(which) ? 0 : 1);
      for (std::size_t i = 0; which == WorldParameter::gravity && i < count; ++i) next[i] = model_.gravity[int(i % 3)];
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (mask.empty() || mask[i / n]) next[i] = values[alike ? i / n : i];
    }
    check_numbers(model_, which, next);
  }
  state_.parameters = std::move(all);
  if (tables_.empty()) return parameters_changed();
  for (int world = 0; world < worlds_; ++world) {
    if (mask.empty() || mask[at(world)]) stale_[at(world / width_)] = 1;
  }
}

template <class R>
void Batch<R>::clear_parameters() {
  state_.parameters = {};
  parameters_changed();
}

template <class R>
void Batch<R>::parameters_changed() {
  tables_.clear(), stale_.clear();
  if (!state_.parameters.any()) return;
  tables_.resize(at(packs_)), stale_.assign(at(packs_), 1);
}

/// Passes the parameters of its packs to the worker.
template <class R>
void Batch<R>::use_parameters(Worker& worker, int first) {
  worker.data.own = nullptr;
  if (tables_.empty()) return;
  worker.data.own = &tables_[at(first)];
  for (int pack = first; pack < first + worker.packs(); ++pack) {
    if (!stale_[at(pack)]) continue;
    for (int lane = 0; lane < width_; ++lane) worker.source[at(lane)] = std::min(pack * width_ + lane, worlds_ - 1);
    const auto& rows = options_.step.rows;
    fill<R>(tables_[at(pack)], model_, rows.geometry.get(), state_.parameters,
            std::span<const int>(worker.source).first(at(width_)), drives() ? nullptr : &actuators_,
            worker.stepper.hanging());
    stale_[at(pack)] = 0;
  }
  if (width_ == 1 && options_.drives) worker.drives = scaled(*options_.drives, model_, state_.parameters, first);
}

template <class R>
int Batch<R>::bad_worlds() const {
  return int(std::count_if(state_.faults.begin(), state_.faults.end(),
                           [](const WorldFault& f) { return f.status != WorldStatus::ok; }));
}

template <class R>
void Batch<R>::check(const Rollout<R>& r) const {
  if (r.steps < 0) throw ValueError("steps", std::to_string(r.steps), "not negative");
  if (!r.ctrl.empty() && options_.drives)
    throw ValueError("ctrl", "given", "none, because drives replace the actuators of the model");
  if (!options_.drives && !(r.qpos_target.empty() && r.qvel_target.empty()))
    throw ValueError(r.qpos_target.empty() ? "qvel_target" : "qpos_target", "given", "a batch with drives");
  const auto each = [&](const char* name, std::size_t got, int n) {
    if (got > 0) check_size(name, got, at(r.steps) * at(worlds_) * at(n));
  };
  each("ctrl", r.ctrl.size(), model_.nu), each("qpos_target", r.qpos_target.size(), model_.nq);
  each("qvel_target", r.qvel_target.size(), model_.nv), each("states", r.states.size(), model_.nq + model_.nv);
  if (!r.sensors.empty()) each("sensors", r.sensors.size(), sensor_numbers());
}

template <class R>
int Batch<R>::rollout(const Rollout<R>& r) {
  check(r);
  if (!r.sensors.empty()) {
    for (auto& worker : workers_) {
      for (Worker* w : {worker.get(), worker->single.get()}) {
        if (w && !w->sensors) w->sensors.emplace(model_);
        if (w && w->sensors->feels_contact()) w->stepper.feel();
      }
    }
  }
  for (const auto& worker : workers_) worker->next = 0;
  team_.run([this, &r](int thread) {
    std::exception_ptr& error = workers_[at(thread)]->error = nullptr;
    try {
      for (Packs packs = next_packs(thread); packs.count > 0; packs = next_packs(thread)) run(thread, packs, r);
    } catch (...) {
      error = std::current_exception();
    }
  });
  for (const auto& worker : workers_) {
    if (worker->error) std::rethrow_exception(worker->error);
  }
  return bad_worlds();
}

/// Returns packs that are still to be stepped: from the thread's own share, whose numbers may be in its caches, or else
/// from another thread's. Packs are taken in groups. If there are several threads, the last packs of each share are
/// taken one by one, so that no thread waits long.
template <class R>
typename Batch<R>::Packs Batch<R>::next_packs(int thread) {
  for (int k = 0; k < threads(); ++k) {
    const int owner = (thread + k) % threads();
    const ThreadTeam::Range share = team_.share(packs_, owner);
    const int size = share.end - share.begin, groups = std::max(0, size / group_ - (threads() > 1 ? 1 : 0));
    const int part = workers_[at(owner)]->next.fetch_add(1, std::memory_order_relaxed);
    if (part < groups) return {share.begin + part * group_, group_};
    if (part - groups < size - groups * group_) return {share.begin + groups * group_ + part - groups, 1};
  }
  return {0, 0};
}

/// Swaps the batch's memory and the worker's for the packs that contain the worlds from `first` on.
template <class R>
void Batch<R>::exchange(Worker& worker, int first, int count) {
  for (int p = 0; p * width_ < count; ++p)
    worker.stepper.exchange(worker.data, state_.memory[at(first / width_ + p)], p);
}

template <class R>
void Batch<R>::run(int thread, Packs packs, const Rollout<R>& r) {
  if (r.steps == 0) return;
  Worker& own = *workers_[at(thread)];
  Worker& worker = packs.count == group_ ? own : *own.single;
  const int first = packs.first * width_, count = std::min(packs.count * width_, worlds_ - first);
  exchange(worker, first, count);
  use_parameters(worker, packs.first);
  worker.held = worker.behind = false;
  worker.felt.clear();
  if (!r.sensors.empty() && worker.sensors->feels_contact()) worker.felt.resize(at(count));
  const bool hooks = r.before || r.after || options_.keep_starts;
  const bool watched = hooks || !r.states.empty() || !r.sensors.empty();
  const Drives* const given = options_.drives && width_ == 1 && !tables_.empty() ? &worker.drives : drives();
  for (int step = 0; step < r.steps; ++step) {
    take_inputs(step, r, first, count);
    if (r.before) r.before(thread, first, count, step);
    if (options_.keep_starts) {
      exchange(worker, first, count);
      std::copy_n(&state_.memory[at(first / width_)], (count + width_ - 1) / width_, worker.before.begin());
      exchange(worker, first, count);
    }
    const bool live = (worker.held && load_inputs(worker, r, first, count)) || load(worker, first, count);
    if (live && worker.behind) worker.keep_last();
    if (live) worker.stepper.step(worker.data, given, worker.qpos_target, worker.qvel_target);
    if (live) keep(worker, first, count, {.hold = !hooks && model_.na == 0, .show = watched || step == r.steps - 1});
    step_apart(worker, first, count);
    write_outputs(worker, step, r, first, count);
    if (step == r.steps - 1) exchange(worker, first, count);
    if (r.after) r.after(thread, first, count, step);
  }
}

template <class R>
void Batch<R>::take_inputs(int step, const Rollout<R>& r, int first, int count) {
  const auto take = [&](std::span<const R> from, AlignedVector<R>& to, int n) {
    if (from.empty()) return;
    const std::size_t begin = at(first) * at(n);
    std::copy_n(from.begin() + std::ptrdiff_t(at(step) * at(worlds_) * at(n) + begin), at(count) * at(n),
                to.begin() + std::ptrdiff_t(begin));
  };
  take(r.ctrl, state_.ctrl, model_.nu);
  take(r.qpos_target, state_.qpos_target, model_.nq), take(r.qvel_target, state_.qvel_target, model_.nv);
}

/// Calls f(name, array, numbers per world, largest, status of larger numbers) for all inputs of a step, while f is
/// true.
template <class R>
template <class F>
bool Batch<R>::each_input(const F& f) {
  bool good = true;
  const auto take = [&](const char* name, AlignedVector<R>& array, AlignedVector<R>&, int n) {
    const bool speed = &array == &state_.qvel;
    good = good && f(name, array, n, speed ? options_.step.speed_limit : double(std::numeric_limits<R>::max()),
                     speed ? WorldStatus::too_fast : WorldStatus::bad_input);
  };
  tarsus::each_input(model_, state_, state_, take);
  if (!options_.drives) return good;
  take("qpos_target", state_.qpos_target, state_.qpos_target, model_.nq);
  take("qvel_target", state_.qvel_target, state_.qvel_target, model_.nv);
  return good;
}

/// Whether all of these worlds, if they are ok, have valid inputs.
template <class R>
bool Batch<R>::clean(int first, int count) {
  return each_input([&](const char*, AlignedVector<R>& values, int n, double limit, WorldStatus) {
    return within(std::span<const R>(values).subspan(at(first) * at(n), at(count) * at(n)), R(limit));
  });
}

/// Whether a world has valid inputs; records the fault if not.
template <class R>
bool Batch<R>::screen(int world) {
  WorldFault& fault = state_.faults[at(world)];
  if (fault.status != WorldStatus::ok) return false;
  return each_input([&](const char* array, AlignedVector<R>& values, int n, double limit, WorldStatus status) {
    const std::span<const R> mine = part(values, n, world);
    const auto bad = std::ranges::find_if(mine, [&](R x) { return !(std::abs(x) <= R(limit)); });
    if (bad == mine.end()) return true;
    const double value = double(*bad);
    fault = {std::isfinite(value) ? status : WorldStatus::bad_input, array, int(bad - mine.begin()), value};
    return false;
  });
}

/// Transposes an array of the worlds to lanes.
template <class R>
void Batch<R>::turn_in(Worker& worker, const AlignedVector<R>& from, AlignedVector<R>& to, int n) {
  for (int p = 0; p < worker.packs() && n > 0; ++p) {
    for (int lane = 0; lane < width_; ++lane)
      worker.from[at(lane)] = from.data() + at(worker.source[at(p * width_ + lane)]) * at(n);
    to_lanes<R>(worker.from, n, to.data() + at(p * n * width_));
  }
}

/// Transposes the rollout's inputs of a step to lanes that already hold the rest. @return false if an input is not
/// finite
template <class R>
bool Batch<R>::load_inputs(Worker& worker, const Rollout<R>& r, int first, int count) {
  const auto take = [&](std::span<const R> given, const AlignedVector<R>& from, AlignedVector<R>& to, int n) {
    if (given.empty()) return true;
    if (!finite(std::span<const R>(from).subspan(at(first) * at(n), at(count) * at(n)))) return false;
    turn_in(worker, from, to, n);
    return true;
  };
  return take(r.ctrl, state_.ctrl, worker.data.ctrl, model_.nu) &&
         take(r.qpos_target, state_.qpos_target, worker.qpos_target, model_.nq) &&
         take(r.qvel_target, state_.qvel_target, worker.qvel_target, model_.nv);
}

/// Transposes the worlds' numbers to lanes. A lane without its own world that is ok gets the numbers of another.
/// @return whether lanes step any of these worlds
template <class R>
bool Batch<R>::load(Worker& worker, int first, int count) {
  if (worker.behind) show(worker, first);
  worker.held = false;
  int some = -1;
  const int lanes = worker.packs() * width_;
  const bool all_clean = clean(first, count);
  for (int lane = 0; lane < lanes; ++lane) {
    const bool was_ok = lane < count && status(first + lane) == WorldStatus::ok;
    const bool good = was_ok && (all_clean || screen(first + lane));
    if (was_ok && !good) record_fault(worker, first + lane, lane);
    worker.apart[at(lane)] = good && apart(first + lane);
    worker.live[at(lane)] = good && !worker.apart[at(lane)];
    if (worker.live[at(lane)] && some < 0) some = first + lane;
  }
  if (some < 0) return false;
  for (int lane = 0; lane < lanes; ++lane) {
    worker.source[at(lane)] = worker.live[at(lane)] ? first + lane : some;
    worker.stepper.revive(lane);
  }
  tarsus::each_input(model_, state_, worker.data,
                     [&](const char*, auto& from, auto& to, int n) { turn_in(worker, from, to, n); });
  if (!options_.drives) return true;
  turn_in(worker, state_.qpos_target, worker.qpos_target, model_.nq);
  turn_in(worker, state_.qvel_target, worker.qvel_target, model_.nv);
  return true;
}

/// What the scalar path carries from step to step of a world that is too crowded for lanes; null for other worlds.
template <class R>
TermMemory* Batch<R>::apart(int world) {
  std::vector<TermMemory>& terms = state_.memory[at(world / width_)].terms;
  if (width_ == 1 || terms.empty() || terms[at(world % width_)].empty()) return nullptr;
  return &terms[at(world % width_)];
}

/// Copies the numbers of what hangs in a lane, which take longer to find than a step.
template <class R>
static void take_hanging(const WorldTable<R>& lanes, int width, int lane, WorldTable<R>& one) {
  one.hanging.clear(), one.hangs = false;
  for (std::size_t i = at(lane); i < lanes.hanging.size(); i += at(width)) one.hanging.push_back(lanes.hanging[i]);
  for (std::size_t i = 0; i < one.hanging.size(); i += kHangingNumbers) one.hangs = one.hangs || one.hanging[i] > 0;
}

/// As Stepper::step_again(), with the own parameters of the world in a lane. @return whether its results are in the
/// batch
template <class R>
bool Batch<R>::step_alone(Worker& worker, int world, int lane) {
  Worker& one = *worker.alone;
  const auto take = [&](const char*, const AlignedVector<R>& from, AlignedVector<R>& to, int n) {
    std::ranges::copy(part(std::span<const R>(from), n, world), to.begin());
  };
  tarsus::each_input(model_, state_, one.data, take);
  take("", state_.qpos_target, one.qpos_target, model_.nq), take("", state_.qvel_target, one.qvel_target, model_.nv);
  const Drives* given = drives();
  one.data.own = nullptr;
  if (!tables_.empty()) {
    one.data.own = &one.table;
    fill<R>(one.table, model_, options_.step.rows.geometry.get(), state_.parameters, {&world, 1}, nullptr, nullptr);
    take_hanging(tables_[at(world / width_)], width_, world % width_, one.table);
    if (given) one.drives = scaled(*given, model_, state_.parameters, world), given = &one.drives;
  }
  StepMemory<R>& memory = one.before[0];
  memory.forget(0, 1);
  if (TermMemory* mine = apart(world)) std::swap(memory.of_world(0, 1), *mine), mine->forget();
  one.stepper.exchange(one.data, memory);
  one.stepper.revive(0);
  one.stepper.step(one.data, given, one.qpos_target, one.qvel_target);
  one.stepper.exchange(one.data, memory);
  if (one.stepper.status(0) != WorldStatus::ok) return false;
  if (!LaneTerms<R>::fits(*one.stepper.rows_report(0)))
    std::swap(state_.memory[at(world / width_)].of_world(world % width_, width_), memory.of_world(0, 1));
  const auto put = [&](const AlignedVector<R>& from, AlignedVector<R>& to, int n) {
    std::copy_n(from.begin(), n, part(to, n, world).begin());
  };
  put(one.data.qpos, state_.qpos, model_.nq), put(one.data.qvel, state_.qvel, model_.nv);
  put(one.data.qacc, state_.qacc, model_.nv), put(one.data.act, state_.act, model_.na);
  ++state_.steps[at(world)];
  state_.reports[at(world)] = report_of(one.stepper, 0);
  if (!worker.felt.empty()) worker.felt[at(lane)] = step_forces(model_, one.stepper, one.data);
  one.stepper.ground_force(0, part(state_.ground_force, 3 * model_.njoint(), world));
  return true;
}

/// Steps the worlds that are too crowded for lanes.
template <class R>
void Batch<R>::step_apart(Worker& worker, int first, int count) {
  for (int lane = 0; lane < count; ++lane) {
    if (!worker.apart[at(lane)]) continue;
    const int world = first + lane;
    if (!step_alone(worker, world, lane)) blame(*worker.alone, world, 0), record_fault(worker, world, lane);
    worker.stepper.restart(worker.data, lane);
  }
}

/// Writes a world's data before its last step to the arrays, which do not have them.
template <class R>
void Batch<R>::show_start(Worker& worker, int world, int lane) {
  worker.data.get(worker.last_qacc, model_.nv, lane, part(state_.qacc, model_.nv, world));
  if (!worker.last_ground_force.empty()) {
    const int n = 3 * model_.njoint();
    worker.data.get(worker.last_ground_force, n, lane, part(state_.ground_force, n, world));
  }
  worker.data.get(worker.stepper.start_qpos(), model_.nq, lane, part(state_.qpos, model_.nq, world));
  worker.data.get(worker.stepper.start_qvel(), model_.nv, lane, part(state_.qvel, model_.nv, world));
}

/// Stores the step's results of the worlds that are still ok, and the fault of the others.
template <class R>
void Batch<R>::keep(Worker& worker, int first, int count, const Keeping& how) {
  bool all = true;
  for (int lane = 0; lane < count; ++lane) {
    if (!worker.live[at(lane)]) {
      all = false;
      continue;
    }
    const int world = first + lane;
    const RowsReport* rows = worker.stepper.rows_report(lane);
    const bool good = worker.stepper.status(lane) == WorldStatus::ok;
    const bool solved = !rows || rows->status <= StepStatus::cut_short;
    if (worker.behind && !(good && solved)) show_start(worker, world, lane);
    const bool crowded = !solved && rows->status == StepStatus::crowded;
    if (!solved && worker.alone && step_alone(worker, world, lane)) {  // whatever the lane's velocities are
      worker.stepper.restart(worker.data, lane);
      worker.live[at(lane)] = 0, all = false;
      continue;
    }
    if (!good || crowded) {
      crowded ? blame(*worker.alone, world, 0) : blame(worker, world, lane);
      record_fault(worker, world, lane);
      worker.live[at(lane)] = 0, all = false;  // its last good state remains
      continue;
    }
    ++state_.steps[at(world)];
    state_.reports[at(world)] = report_of(worker.stepper, lane);
    if (!worker.felt.empty()) worker.felt[at(lane)] = step_forces(model_, worker.stepper, worker.data, lane);
    if (rows && width_ == 1) worker.stepper.ground_force(lane, part(state_.ground_force, 3 * model_.njoint(), world));
  }
  worker.held = all && how.hold, worker.behind = worker.held && !how.show;
  if (!worker.behind) show(worker, first);
}

/// Writes the lanes' results of the worlds that are ok to the arrays.
template <class R>
void Batch<R>::show(Worker& worker, int first) {
  const auto turn = [&](In<R> from, AlignedVector<R>& to, int n) {
    for (int p = 0; p < worker.packs() && !from.empty(); ++p) {
      for (int lane = 0; lane < width_; ++lane) {
        const int place = p * width_ + lane;
        worker.to[at(lane)] = worker.live[at(place)] ? to.data() + at(first + place) * at(n) : nullptr;
      }
      to_rows<R>(from.data() + at(p * n * width_), n, worker.to);
    }
  };
  turn(worker.data.qpos, state_.qpos, model_.nq), turn(worker.data.qvel, state_.qvel, model_.nv);
  turn(worker.data.qacc, state_.qacc, model_.nv), turn(worker.data.act, state_.act, model_.na);
  turn(worker.stepper.ground_forces(), state_.ground_force, 3 * model_.njoint());
  worker.behind = false;
}

template <class R>
void Batch<R>::blame(Worker& worker, int world, int lane) {
  WorldFault& fault = state_.faults[at(world)];
  fault = {worker.stepper.status(lane)};
  for (const int q : model_.quaternions) {  // with a squared length that is not finite: report its largest number
    const auto mine = part(std::span<const R>(state_.qpos), model_.nq, world).subspan(at(q), 4);
    const auto most = std::ranges::max_element(mine, {}, [](R x) { return std::abs(x); });
    if (!std::isfinite(*most * *most))
      fault.array = "qpos", fault.index = q + int(most - mine.begin()), fault.value = double(*most);
  }
  const double h = options_.step.dt, limit = options_.step.speed_limit;
  for (int i = 0; i < model_.nv && fault.index < 0; ++i) {
    const std::size_t place = batch_index(worker.data.width(), model_.nv, i, lane);
    const double acceleration = double(worker.data.qacc[place]);
    const double speed = double(worker.data.qvel[place]) + h * acceleration;
    if (!std::isfinite(acceleration))
      fault.array = "qacc", fault.index = i, fault.value = acceleration;
    else if (fault.status == WorldStatus::too_fast && !(std::abs(speed) <= limit))
      fault.array = "qvel", fault.index = i, fault.value = speed;
  }
}

/// Records the state from which a world went bad.
template <class R>
void Batch<R>::record_fault(Worker& worker, int world, int lane) {
  StepMemory<R> mine;
  if (options_.keep_starts) mine = worker.before[at(lane / width_)].of(lane % width_, width_);
  captures_[at(world)] = std::make_unique<WorldCapture>(snapshot(world, options_.keep_starts ? &mine : nullptr));
}

template <class R>
WorldCapture Batch<R>::snapshot(int world, const StepMemory<R>* memory) const {
  WorldCapture out;
  out.single = sizeof(R) == 4, out.width = width_;
  out.options = options_, out.options.threads = 1, out.options.keep_starts = false;
  out.options.step.rows.geometry.reset();
  each_array(model_, out, state_, [&](const char*, std::vector<double>& to, const AlignedVector<R>& from, int n) {
    const std::span<const R> mine = part(std::span<const R>(from), n, world);
    to.assign(mine.begin(), mine.end());
  });
  out.steps = state_.steps[at(world)], out.fault = state_.faults[at(world)];
  out.parameters = state_.parameters.world(model_, world);
  if (memory) out.memory = to_bytes<R>(std::span<const StepMemory<R>>(memory, 1));
  return out;
}

template <class R>
WorldCapture Batch<R>::capture(int world) const {
  check_world(world);
  if (captures_[at(world)]) return *captures_[at(world)];
  if (status(world) != WorldStatus::ok) return snapshot(world, nullptr);
  const StepMemory<R> mine = state_.memory[at(world / width_)].of(world % width_, width_);
  return snapshot(world, &mine);
}

template <class R>
void Batch<R>::put(int world, const WorldCapture& capture) {
  using Numbers = const std::vector<double>;
  check_world(world);
  check_steps("steps", capture.steps);
  each_array(model_, capture, state_,
             [](const char* name, Numbers& from, AlignedVector<R>&, int n) { check_size(name, from.size(), at(n)); });
  capture.parameters.check_sizes(model_, 1);
  StepMemory<R> one;
  const bool warm = !capture.memory.empty() && capture.width == width_ && capture.single == (sizeof(R) == 4);
  if (warm) from_bytes<R>(capture.memory, {&one, 1});
  std::vector<std::uint8_t> mask(at(worlds_));
  mask[at(world)] = 1;
  reset(mask);
  each_array(model_, capture, state_, [&](const char*, Numbers& from, AlignedVector<R>& to, int n) {
    std::copy(from.begin(), from.end(), part(to, n, world).begin());
  });
  state_.steps[at(world)] = capture.steps;
  if (warm) state_.memory[at(world / width_)].put(one, world % width_, width_);
  WorldParameters own;
  for (int k = 0; k < kWorldParameters; ++k) {
    const std::vector<double>& mine = capture.parameters.values[at(k)];
    std::vector<double>& all = own.values[at(k)];
    all.resize(mine.size() * at(worlds_));
    std::copy(mine.begin(), mine.end(), all.begin() + std::ptrdiff_t(mine.size()) * world);
  }
  set_parameters(own, mask);
}

template <class R>
void Batch<R>::write_outputs(Worker& worker, int step, const Rollout<R>& r, int first, int count) {
  const int nq = model_.nq, nv = model_.nv;
  for (int world = first; world < first + count && !r.states.empty(); ++world) {
    const std::span<R> out = part(r.states, nq + nv, step * worlds_ + world);
    std::copy_n(part(state_.qpos, nq, world).begin(), nq, out.begin());
    std::copy_n(part(state_.qvel, nv, world).begin(), nv, out.begin() + nq);
  }
  if (r.sensors.empty()) return;
  const int numbers = worker.sensors->numbers();
  worker.numbers.resize(at(numbers));
  for (int world = first; world < first + count; ++world) {
    worker.state.clear(), worker.state.reserve(at(nq + 2 * nv + model_.nu + model_.na + 7 * model_.nmocap()));
    const auto add = [&](AlignedVector<R>& from, int n) {
      const std::span<R> mine = part(from, n, world);
      return std::span<const double>(worker.state.insert(worker.state.end(), mine.begin(), mine.end()), at(n));
    };
    const bool felt = !worker.felt.empty(), good = status(world) == WorldStatus::ok;
    const SensorInput input{time(world),
                            add(state_.qpos, nq),
                            add(state_.qvel, nv),
                            add(state_.qacc, nv),
                            add(state_.ctrl, model_.nu),
                            add(state_.act, model_.na),
                            add(state_.mocap_pos, 3 * model_.nmocap()),
                            add(state_.mocap_quat, 4 * model_.nmocap()),
                            !good  ? kNoStep
                            : felt ? worker.felt[at(world - first)]
                                   : kNoForces,
                            state_.parameters.of(model_, WorldParameter::mass_scale, world),
                            state_.parameters.of(model_, WorldParameter::com_offset, world),
                            state_.parameters.of(model_, WorldParameter::armature_scale, world),
                            state_.parameters.of(model_, WorldParameter::gravity, world),
                            state_.parameters.actuators(model_, world)};
    worker.sensors->evaluate(input, worker.numbers);
    std::copy(worker.numbers.begin(), worker.numbers.end(), part(r.sensors, numbers, step * worlds_ + world).begin());
  }
}

template <class R>
std::uint64_t Batch<R>::state_hash() const {
  return fnv1a<R>(state_.qvel, fnv1a<R>(state_.qpos));
}

template <class R>
std::uint64_t Batch<R>::state_hash(int world) const {
  check_world(world);
  const std::span<const R> q(state_.qpos), v(state_.qvel);
  return fnv1a<R>(part(v, model_.nv, world), fnv1a<R>(part(q, model_.nq, world)));
}

template <class R>
int Batch<R>::sensor_numbers() const {
  return SensorSet(model_).numbers();
}

/// Evaluates a world's state, poses and velocities, in worker.one.
template <class R>
Data& Batch<R>::look_at(int world, Worker& worker) {
  Data& one = worker.one ? *worker.one : worker.one.emplace(model_);
  const auto take = [&](AlignedVector<R>& from, AlignedVector<double>& to) {
    std::ranges::copy(part(from, int(to.size()), world), to.begin());
  };
  take(state_.qpos, one.qpos), take(state_.qvel, one.qvel);
  take(state_.mocap_pos, one.mocap_pos), take(state_.mocap_quat, one.mocap_quat);
  for (const int place : model_.quaternions) {  // short ones are no rotation, for a step in R too
    double* const q = &one.qpos[at(place)];
    if (square_norm(Quat<R>{R(q[0]), R(q[1]), R(q[2]), R(q[3])}) < kNoLength<R>) q[0] = 1, q[1] = q[2] = q[3] = 0;
  }
  one.own = tables_.empty() ? nullptr : &worker.one_table;
  if (one.own)
    fill<double>(worker.one_table, model_, options_.step.rows.geometry.get(), state_.parameters, {&world, 1}, nullptr,
                 nullptr);
  kinematics<double>(model_, one, one.qpos, one.qvel);
  return one;
}

/// Calls f(world, data with its kinematics) for every world, on all threads.
template <class R>
template <class F>
void Batch<R>::each_world(const F& f) {
  team_.run([this, &f](int thread) {
    const ThreadTeam::Range share = team_.share(worlds_, thread);
    for (int world = share.begin; world < share.end; ++world) f(world, look_at(world, *workers_[at(thread)]));
  });
}

template <class R>
void Batch<R>::measure(const BatchMeasure<R>& out) {
  const int nbody = model_.nbody();
  const auto each = [&](const char* name, std::span<R> array, int n) {
    if (!array.empty()) check_size(name, array.size(), at(worlds_) * at(n));
  };
  each("position", out.position, 3 * nbody), each("orientation", out.orientation, 4 * nbody);
  each("velocity", out.velocity, 6 * nbody), each("energy", out.energy, 3), each("com", out.com, 6);
  each_world([&](int world, Data& one) {
    const auto put = [](R* to, const Vec3d& v) { to[0] = R(v.x), to[1] = R(v.y), to[2] = R(v.z); };
    for (int b = 0; b < nbody; ++b) {
      const std::size_t place = at(world * nbody + b);
      if (!out.position.empty() || !out.orientation.empty()) {
        const Transformd pose = body_pose(model_, one, b);
        if (!out.position.empty()) put(&out.position[3 * place], pose.p);
        if (!out.orientation.empty()) {
          const Quatd q = quaternion(pose.R);
          const double numbers[] = {q.w, q.x, q.y, q.z};
          for (std::size_t k = 0; k < 4; ++k) out.orientation[4 * place + k] = R(numbers[k]);
        }
      }
      if (out.velocity.empty()) continue;
      const Motion<double> v = body_velocity(model_, one, b);
      put(&out.velocity[6 * place], v.w), put(&out.velocity[6 * place + 3], v.v);
    }
    if (!out.energy.empty()) {
      const Energy e = tarsus::energy<double>(model_, one, one.qpos, one.qvel);
      put(&out.energy[3 * at(world)], {e.kinetic, e.potential, e.spring});
    }
    if (out.com.empty()) return;
    const Momentum m = momentum(model_, one);
    put(&out.com[6 * at(world)], m.com);
    put(&out.com[6 * at(world) + 3], m.mass > 0 ? m.linear * (1 / m.mass) : Vec3d{0, 0, 0});
  });
}

template <class R>
std::vector<LinkContact> Batch<R>::contacts(int world) {
  check_world(world);
  const auto& built = options_.step.rows.geometry;
  if (!geometry_) built ? geometry_.emplace(*built) : geometry_.emplace(model_);
  std::vector<LinkContact> found;
  geometry_->detect(look_at(world, *workers_[0]), options_.step.dt, found);
  for (LinkContact& c : found) {  // the world body last
    c.point.distance = geometry_->separation(c);
    if (c.a < 0) std::swap(c.a, c.b), c.point.normal = -c.point.normal;
  }
  return found;
}

template <class R>
std::span<const ContactShape> Batch<R>::contact_shapes() const {
  return geometry_ ? geometry_->shapes() : std::span<const ContactShape>();
}

template <class R>
void Batch<R>::check_points(int body, In<R> point) const {
  body_at(model_, body);
  if (!point.empty() && point.size() != 3) check_size("point", point.size(), 3 * at(worlds_));
}

/// A world's vector in [worlds][3], or the vector for all worlds.
template <class R>
static Vec3d vector_of(In<R> array, int world) {
  const R* v = array.data() + (array.size() == 3 ? 0 : 3 * at(world));
  return {double(v[0]), double(v[1]), double(v[2])};
}

static Vec3d centre_of_mass(const Model& model, const Data& world, int body) {
  return world_point(world.links(), inertial_frame(model, body, com_offset(world, body)));
}

template <class R>
void Batch<R>::jacobian(int body, In<R> point, std::span<R> out) {
  check_points(body, point);
  const std::size_t size = 6 * at(model_.nv);
  check_size("jacobian", out.size(), at(worlds_) * size);
  each_world([&](int world, Data& one) {
    const Vec3d p = point.empty() ? centre_of_mass(model_, one, body) : vector_of<R>(point, world);
    const double at_point[] = {p.x, p.y, p.z};
    std::vector<double> rows(size);
    tarsus::jacobian<double>(model_, one, body, at_point, rows);
    std::transform(rows.begin(), rows.end(), part(out, int(size), world).begin(), [](double x) { return R(x); });
  });
}

template <class R>
void Batch<R>::apply_force(int body, In<R> force, In<R> point, std::span<const std::uint8_t> mask) {
  check_points(body, point);
  if (force.size() != 3) check_size("force", force.size(), 3 * at(worlds_));
  if (!mask.empty()) check_size("mask", mask.size(), at(worlds_));
  const int link = movable_frame(model_, body).link;
  each_world([&](int world, Data& one) {
    if (!mask.empty() && !mask[at(world)]) return;
    std::fill(one.tau.begin(), one.tau.end(), 0.0);
    add_generalized_force(model_, one.links(), link,
                          point.empty() ? centre_of_mass(model_, one, body) : vector_of<R>(point, world),
                          vector_of<R>(force, world), {0, 0, 0}, 1, one.tau.data());
    const std::span<R> tau = part(state_.tau, model_.nv, world);
    for (int i = 0; i < model_.nv; ++i) tau[at(i)] += R(one.tau[at(i)]);
  });
}

template class Batch<double>;
template class Batch<float>;

/// Calls f for everything in a memory whose number of `terms` is known: numbers, and arrays of numbers.
template <class Memory, class F>
static void each_part(Memory& m, const F& f) {
  for (auto& terms : m.terms) {
    f(terms.h), f(terms.sweep_steps), f(terms.entries), f(terms.numbers), f(terms.mocap);
  }
  f(m.drive_demand), f(m.lane_terms);
}

template <class R>
std::vector<std::uint8_t> to_bytes(std::span<const StepMemory<R>> memory) {
  std::vector<std::uint8_t> bytes;
  const auto append = [&]<class E>(const E* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<E>);
    const auto* from = reinterpret_cast<const std::uint8_t*>(values);
    bytes.insert(bytes.end(), from, from + count * sizeof(E));
  };
  for (const StepMemory<R>& m : memory) {
    const std::uint64_t terms = m.terms.size();
    append(&terms, 1);
    each_part(m, [&](const auto& part) {
      if constexpr (requires { part.size(); }) {
        const std::uint64_t count = part.size();
        append(&count, 1), append(part.data(), count);
      } else {
        append(&part, 1);
      }
    });
  }
  return bytes;
}

constexpr std::size_t kLeastTerms =
    sizeof(double) + sizeof(int) + 3 * sizeof(std::uint64_t);  ///< bytes without an entry
constexpr int kMostSweepSteps = 1000;                          ///< more than a step ever sets

template <class R>
void from_bytes(std::span<const std::uint8_t> bytes, std::span<StepMemory<R>> memory) {
  const auto fail = [] {
    throw ValueError("memory", "bytes of another length", "bytes that a batch with the same number of worlds saved");
  };
  const auto read = [&]<class E>(E* values, std::size_t count) {
    if (count > bytes.size() / sizeof(E)) fail();
    if (count > 0) std::memcpy(values, bytes.data(), count * sizeof(E));
    bytes = bytes.subspan(count * sizeof(E));
  };
  for (StepMemory<R>& m : memory) {
    std::uint64_t count = 0;
    read(&count, 1);
    if (count > bytes.size() / kLeastTerms) fail();
    m.terms.resize(count);
    each_part(m, [&](auto& part) {
      if constexpr (requires { part.size(); }) {
        std::uint64_t count = 0;
        read(&count, 1);
        if (count > bytes.size() / sizeof(part[0])) fail();
        part.resize(count), read(part.data(), count);
      } else {
        read(&part, 1);
      }
    });
    for (const TermMemory& terms : m.terms) {
      if (terms.sweep_steps < 0 || terms.sweep_steps > kMostSweepSteps)
        throw ValueError("memory", std::to_string(terms.sweep_steps) + " steps", "bytes that a batch saved");
      std::size_t size = 0;
      bool valid = true;
      for (const TermMemory::Entry& e : terms.entries) {
        valid &= e.kind < TermMemory::Kind::count && e.nrow >= 1 && e.nrow <= kTermRows && terms.h > 0;
        valid &= e.first >= 0 && std::size_t(e.first) == size;
        size += std::size_t(e.size());
      }
      if (!valid || size != terms.numbers.size())
        throw ValueError("memory", "bytes without valid terms", "bytes that a batch saved");
    }
  }
  if (!bytes.empty()) fail();
}

template std::vector<std::uint8_t> to_bytes<double>(std::span<const StepMemory<double>>);
template std::vector<std::uint8_t> to_bytes<float>(std::span<const StepMemory<float>>);
template void from_bytes<double>(std::span<const std::uint8_t>, std::span<StepMemory<double>>);
template void from_bytes<float>(std::span<const std::uint8_t>, std::span<StepMemory<float>>);

}  // namespace tarsus
