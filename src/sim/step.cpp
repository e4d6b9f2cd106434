#include "tarsus/sim/step.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dynamics/pack_arrays.hpp"
#include "sim/within.hpp"
#include "tarsus/base/hash.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/sim/sensor.hpp"

namespace tarsus {

const char* name(WorldStatus status) {
  static constexpr const char* kNames[] = {"ok", "bad_input", "singular", "too_fast", "open_loop"};
  return kNames[int(status)];
}

const char* name(Stage stage) {
  static constexpr const char* kNames[kStages] = {"actuate", "drive", "solve",     "collide", "match",
                                                  "prepare", "terms", "integrate", "close",   "check"};
  return kNames[int(stage)];
}

const char* name(LoopMode mode) {
  static constexpr const char* kNames[] = {"off", "spook", "shake"};
  return kNames[int(mode)];
}

std::optional<ActuationMode> actuation_mode(std::string_view name) {
  if (name == "implicit") return ActuationMode::implicit_servos;
  if (name == "explicit") return ActuationMode::explicit_forces;
  if (name == "off") return ActuationMode::off;
  return {};
}

/// Whether the model's servos act as drives.
static bool implicit_servos(const StepOptions& options) {
  return options.integrator != Integrator::rk4 && options.actuation == ActuationMode::implicit_servos;
}

/// Whether a shape that may touch is on a mocap body.
static bool mocap_touches(const Model& model) {
  for (int b = 0; b < model.nbody(); ++b) {
    if (model.bodies[b].mocap < 0) continue;
    const std::vector<GeomSpec>& geoms = model.spec.bodies[b].geoms;
    // Geoms in explicit pairs touch regardless.
    if (!model.spec.contact_pairs.empty() && !geoms.empty()) return true;
    if (std::any_of(geoms.begin(), geoms.end(), [](const GeomSpec& g) { return g.contype || g.conaffinity; }))
      return true;
  }
  return false;
}

/// Whether an Euler step leaves limited drives to DriveLimiter: it knows no other terms, and its velocity products are
/// explicit, so that it needs spin damping.
static bool limits_alone(const StepOptions& options, const Drives& drives, bool loops, bool paths) {
  if (loops || paths || options.rows.any()) return false;
  if (options.velocity_products == VelocityProductMode::off) return true;
  return options.velocity_products == VelocityProductMode::automatic && drives.spin_damping > 0;
}

/// The part of lanes_refusal() that depends on drives, whose parameters may change from step to step.
/// @param paths forces along paths are possible
static std::string drives_refusal(const Model& model, const StepOptions& options, const Drives& drives, bool paths) {
  if (!drives.limited()) return "";
  const bool loops = options.loops != LoopMode::off && (options.equalities || !model.spec.equalities.empty());
  const bool alone = options.integrator == Integrator::rk4 ? !loops : limits_alone(options, drives, loops, paths);
  return alone ? "" : limits_refusal(model, drives);
}

template <class R>
std::string lanes_refusal(const Model& model, const StepOptions& options, const Drives* drives) {
  const bool actuated = !drives && options.actuation != ActuationMode::off;
  const Actuation actuation(model);
  const std::string why = servos_refusal(model, actuation, actuated);
  if (!why.empty()) return why;
  const bool paths = !actuation.passive().empty() || (actuated && !actuation.actuators().plain());
  if (paths && options.integrator == Integrator::rk4)
    return "forces along paths with rk4 are not supported in SIMD lanes";
  if (options.rows.contacts && mocap_touches(model)) return "shapes on mocap bodies are not supported in SIMD lanes";
  const bool servos = actuated && implicit_servos(options);
  const std::string limits = drives ? drives_refusal(model, options, *drives, paths)
                             : servos
                                 ? drives_refusal(model, options, Servos<R>(model, BasicData<R>(model)).drives(), paths)
                                 : "";
  if (!limits.empty()) return limits;
  return options.rows.any() ? LaneStage<R>::refusal(model, options.rows) : "";
}

template <class R>
int pack_width(const Model& model, const StepOptions& options, const Drives* drives) {
  return lanes_refusal<R>(model, options, drives).empty() ? lanes<R>(isa_level()) : 1;
}

template <class R>
void StepMemory<R>::forget(int lane, int width) {
  if (lane < int(terms.size())) terms[std::size_t(lane)].forget();
  LaneTerms<R>::forget(lane_terms, lane, width);
  for (std::size_t i = std::size_t(lane); i < drive_demand.size(); i += std::size_t(width)) drive_demand[i] = 0;
}

template <class R>
StepMemory<R> StepMemory<R>::of(int lane, int width) const {
  StepMemory one;
  if (lane < int(terms.size())) one.terms = {terms[std::size_t(lane)]};
  const auto pick = [&](const AlignedVector<R>& from, AlignedVector<R>& to) {
    for (std::size_t i = std::size_t(lane); i < from.size(); i += std::size_t(width)) to.push_back(from[i]);
  };
  pick(lane_terms, one.lane_terms), pick(drive_demand, one.drive_demand);
  return one;
}

template <class R>
TermMemory& StepMemory<R>::of_world(int lane, int width) {
  if (terms.empty()) terms.resize(std::size_t(width));
  return terms[std::size_t(lane)];
}

template <class R>
void StepMemory<R>::put(const StepMemory& one, int lane, int width) {
  forget(lane, width);
  if (!one.terms.empty() && !one.terms[0].empty()) of_world(lane, width) = one.terms[0];
  const auto lay = [&](const AlignedVector<R>& from, AlignedVector<R>& to, std::size_t first) {
    if (to.empty()) to.assign(from.size() * std::size_t(width), R(0));
    if (from.empty()) return;
    check_size("memory", from.size() * std::size_t(width), to.size());
    for (std::size_t i = first; i < from.size(); ++i) to[i * std::size_t(width) + std::size_t(lane)] = from[i];
  };
  lay(one.drive_demand, drive_demand, 0), lay(one.lane_terms, lane_terms, 1);
  if (one.lane_terms.empty()) return;
  // The first word is the number of stored contacts, equal for all lanes; contacts beyond it have no identity.
  std::conditional_t<sizeof(R) == 8, std::int64_t, std::int32_t> mine, theirs;
  std::memcpy(&mine, one.lane_terms.data(), sizeof mine), std::memcpy(&theirs, lane_terms.data(), sizeof theirs);
  for (int l = 0; l < width && mine > theirs; ++l) std::memcpy(&lane_terms[std::size_t(l)], &mine, sizeof mine);
}

/// Marks round links for VelocityProducts, and keeps the links that are to respond: none in linkages, whose energy is
/// balanced, and no lone link that loops hold.
static void mark_round(const Model& model, std::span<std::uint8_t> spins, std::vector<std::uint8_t>& held) {
  held.resize(spins.size());
  for (std::size_t j = 0; j < spins.size(); ++j) {
    held[j] |= spins[j] & kRoundLink;
    const std::uint8_t by = held[std::size_t(model.view<double>().link[j].root)];
    if (by == kLinkage || (by != 0 && spins[j] == kLoneLink)) spins[j] = 0;
  }
}

template <class R>
Stepper<R>::Stepper(const Model& model, const BasicData<R>& data, const StepOptions& options)
    : model_(model),
      options_(options),
      clock_(options.profile),
      none_(Drives::none(model)),
      width_(data.width()),
      status_(data.worlds(), WorldStatus::ok) {
  if (!(options.dt > 0) || !std::isfinite(options.dt))
    throw ValueError("dt", number_text(options.dt), "a positive, finite number of seconds");
  if (!(options.speed_limit > 0)) throw ValueError("speed_limit", number_text(options.speed_limit), "positive");
  check_fit(data);
  options.rows.check();
  if (options.rows.any() && options.integrator == Integrator::rk4)
    throw ValueError("integrator", "rk4", "semi_implicit_euler with contacts or joint limits");
  if (width_ > 1) {
    options_.rows.geometry = options.rows.shapes(model);
    singles_.always = !lanes_refusal<R>(model, options_, &none_).empty();
    singles_.actuated = singles_.always || !lanes_refusal<R>(model, options_, nullptr).empty();
    singles_.of.resize(status_.size());
  }
  next_.qpos.resize(data.size(model.nq)), next_.qvel.resize(data.size(model.nv));
  next_.start_qpos = next_.qpos, next_.start_qvel = next_.qvel;
  if (singles_.always) {
    for (int world = 0; world < data.worlds(); ++world) single(world).last = true;
    return;
  }
  if (options.loops != LoopMode::off && !options.equalities && !model.spec.equalities.empty())
    held_.own = std::make_unique<EqualitySet>(EqualitySet::of(model));
  const EqualitySet* equalities = held_.own ? held_.own.get() : options.equalities;
  if (options.loops != LoopMode::off && equalities && equalities->rows() > 0)
    loops_ = std::make_unique<ConstrainedDynamics<R>>(model, *equalities, data);
  servos_.emplace(model, data, options.rows.joints);
  if (servos_->idle()) servos_.reset();
  if (options.integrator != Integrator::rk4) {
    std::vector<std::uint8_t> held = loops_ ? loops_->equalities().held_trees() : std::vector<std::uint8_t>();
    if (loops_ && options.loops == LoopMode::spook) {
      held_.linkages.emplace(loops_->equalities(), data);
      held_.linkages->mark(held);
    }
    std::vector<std::uint8_t> spins = spinning_links(model);
    if (std::any_of(spins.begin(), spins.end(), [](std::uint8_t s) { return s != 0; })) {
      mark_round(model, spins, held);
      held_.spin.emplace(model, data, std::move(spins));
    }
    held_.hanging.emplace(model, options.dt, loops_ ? equalities : nullptr);
    if (!held_.hanging->possible()) held_.hanging.reset();
    if (options.rows.any()) make_rows(data);
    products_.emplace(model, data, std::move(held));
    next_.found.resize(data.size(1));
    return;
  }
  rk4_.stage_qpos.resize(data.size(model.nq));
  for (auto* v : {&rk4_.stage_qvel, &rk4_.u, &rk4_.slope_q, &rk4_.sum_q, &rk4_.sum_v}) v->resize(data.size(model.nv));
}

/// @throws as step(), in nanoseconds: it is called in every step
template <class R>
void Stepper<R>::check_fit(const BasicData<R>& data) const {
  check_data(model_, data);
  if (data.worlds() != int(status_.size()) || data.width() != width_)
    throw ValueError("worlds of data", std::to_string(data.worlds()),
                     std::to_string(status_.size()) + ", those of the data that the Stepper was made for");
  const auto fits = [&](const char* name, const AlignedVector<R>& array, const AlignedVector<R>&, int n) {
    check_size(name, array.size(), data.size(n));
  };
  each_input(model_, data, data, fits);
  check_sizes(data, model_.nv, "qacc", data.qacc, "joint_force", data.joint_force, "joint_inertia", data.joint_inertia);
}

/// Creates the solvers for terms with their own law.
template <class R>
void Stepper<R>::make_rows(const BasicData<R>& data) {
  if (width_ == 1)
    rows_ = std::make_unique<RowStage<R>>(model_, data, options_.rows);
  else
    lane_rows_ = std::make_unique<LaneStage<R>>(
        model_, data, loops_ ? &loops_->equalities() : nullptr,
        servos_ ? servos_->slots() : std::span<const ForceSlot>(),
        held_.spin ? std::span<const std::uint8_t>(held_.spin->links()) : std::span<const std::uint8_t>(),
        options_.rows);
}

/// Sums all forces other than drives into data.tau; now_.user_tau keeps the user's.
template <class R>
void Stepper<R>::prepare(const BasicData<R>& data, In<R> qpos, In<R> qvel, bool start) {
  const bool euler = options_.integrator != Integrator::rk4, implicit = euler && !explicit_forces();
  servos_->prepare(data,
                   {options_.dt, implicit, euler, now_.actuated, options_.rows.joints, options_.rows.contacts, start,
                    options_.rows.relative_compliance},
                   qpos, qvel, now_.user_tau);
  // A world's step in SIMD lanes must not depend on the other lanes.
  now_.solves_rows = width_ == 1 ? servos_->has_rows() : servos_->may_have_rows();
}

/// A world of a pack that the scalar path steps.
template <class R>
struct Stepper<R>::Alone {
  BasicData<R> data;
  Stepper<R> stepper;
  AlignedVector<R> qpos_target, qvel_target, ground_force;
  bool last = false, last_but_one = false;  // it took the world's last step, and the one before it

  Alone(const Model& model, const StepOptions& options) : data(model), stepper(model, data, options) {
    qpos_target.resize(data.size(model.nq)), qvel_target.resize(data.size(model.nv));
    ground_force.resize(data.size(3 * model.njoint()));
  }
  /// Takes the step of world `world` of `lanes`.
  void step(const Model& model, const BasicData<R>& lanes, int world, const Drives* drives, In<R> targets,
            In<R> target_rates) {
    const auto take = [&](const char*, In<R> from, AlignedVector<R>& to, int n) {
      if (!from.empty()) lanes.get(from, n, world, to);
    };
    each_input(model, lanes, data, take);
    take("", targets, qpos_target, model.nq), take("", target_rates, qvel_target, model.nv);
    data.time = lanes.time;
    stepper.step(data, drives, targets.empty() ? In<R>() : In<R>(qpos_target),
                 target_rates.empty() ? In<R>() : In<R>(qvel_target));
  }
};

template <class R>
typename Stepper<R>::Alone& Stepper<R>::single(int world) {
  std::shared_ptr<Alone>& one = singles_.of[world];
  if (!one) one = std::make_shared<Alone>(model_, options_);
  return *one;
}

template <class R>
const Stepper<R>& Stepper<R>::taker(int world) const {
  check_index("world", world, int(status_.size()));
  const Alone* one = singles_.of.empty() ? nullptr : singles_.of[world].get();
  return one && one->last ? one->stepper : *this;
}

/// Whether SIMD lanes cannot take the whole step under these drives.
template <class R>
bool Stepper<R>::goes_singly(const Drives* drives) const {
  if (width_ == 1) return false;
  if (drives ? singles_.always : singles_.actuated) return true;
  return drives && !drives_refusal(model_, options_, *drives, servos_ && servos_->passive()).empty();
}

/// Steps all worlds individually.
template <class R>
int Stepper<R>::step_singly(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target) {
  std::copy(data.qpos.begin(), data.qpos.end(), next_.start_qpos.begin());
  std::copy(data.qvel.begin(), data.qvel.end(), next_.start_qvel.begin());
  drive_force_.assign(drives && drives->limited() ? data.size(model_.nv) : 0, R(0));
  int bad = 0;
  for (int world = 0; world < data.worlds(); ++world) {
    Alone& one = single(world);
    one.last = true;
    if (status_[world] == WorldStatus::ok) {
      one.stepper.revive(0);
      one.step(model_, data, world, drives, qpos_target, qvel_target);
      status_[world] = one.stepper.status(0);
      clock_.take(one.stepper.clock_);
      data.set(data.qpos, model_.nq, world, one.data.qpos), data.set(data.qvel, model_.nv, world, one.data.qvel);
      data.set(data.act, model_.na, world, one.data.act);
      if (status_[world] == WorldStatus::ok) data.set(data.qacc, model_.nv, world, one.data.qacc);
      const In<R> force = one.stepper.drive_force();
      if (!force.empty()) {
        drive_force_.resize(data.size(model_.nv));
        data.set(drive_force_, model_.nv, world, force);
      }
    }
    bad += status_[world] != WorldStatus::ok;
  }
  data.time += options_.dt;
  return bad;
}

/// Repeats by the scalar path the step of worlds that the lanes did not solve. The scalar path has sweeps in addition
/// to Newton's iterations, and springs of ranges. The resulting states are written to the lanes.
template <class R>
void Stepper<R>::step_again(BasicData<R>& data, const Drives* drives, In<R> qpos_target, In<R> qvel_target) {
  for (int world = 0; world < data.worlds(); ++world) {
    if (status_[world] != WorldStatus::ok || lane_rows_->report(world).status <= StepStatus::cut_short) continue;
    Alone& one = single(world);
    one.last_but_one ? one.stepper.revive(0) : one.stepper.restart(one.data, 0);
    one.step(model_, data, world, drives, qpos_target, qvel_target);
    if (one.stepper.status(0) != WorldStatus::ok) {
      if (lane_rows_->report(world).status == StepStatus::crowded) status_[world] = one.stepper.status(0);
      continue;
    }
    data.set(next_.qpos, model_.nq, world, one.data.qpos), data.set(next_.qvel, model_.nv, world, one.data.qvel);
    data.set(data.qacc, model_.nv, world, one.data.qacc);
    if (now_.limits == Limits::terms) data.set(drive_force_, model_.nv, world, one.stepper.drive_force());
    one.stepper.ground_force(0, one.ground_force);
    lane_rows_->put(world, *one.stepper.rows_report(0), one.ground_force);
    restart(data, world);
    one.last = true;
  }
}

template <class R>
int Stepper<R>::step(BasicData<R>& data, const Drives* given, In<R> qpos_target, In<R> qvel_target) {
  check_fit(data);
  if (!given) qpos_target = qvel_target = {};
  if (given) given->check(model_);
  if (!qpos_target.empty()) check_size("qpos_target", qpos_target.size(), data.size(model_.nq));
  if (!qvel_target.empty()) check_size("qvel_target", qvel_target.size(), data.size(model_.nv));
  if (goes_singly(given)) return step_singly(data, given, qpos_target, qvel_target);
  for (const std::shared_ptr<Alone>& one : singles_.of) {
    if (one) one->last_but_one = std::exchange(one->last, false);
  }
  const Drives* drives = given ? given : &none_;
  In<R> target = qpos_target.empty() ? In<R>(data.qpos) : qpos_target;
  clock_.begin();
  data.place_mocap(model_);
  if (options_.screen) {
    next_.last_qacc.assign(data.qacc.begin(), data.qacc.end());
    screen(data, target, qvel_target);
  }
  make_unit(data);
  now_.actuated = !given && options_.actuation != ActuationMode::off, now_.solves_rows = now_.solves_terms = false;
  now_.limits = Limits::none, now_.solved_qvel.clear(), drive_force_.clear();
  if (servos_) {
    if (now_.actuated) servos_->require_computed();
    now_.user_tau.assign(data.tau.begin(), data.tau.end());
    prepare(data, data.qpos, data.qvel);
    std::copy(servos_->tau().begin(), servos_->tau().end(), data.tau.begin());
    const bool servos = now_.actuated && !model_.spec.actuators.empty() && implicit_servos(options_);
    if (servos) drives = &servos_->drives(), target = servos_->qpos_target(), qvel_target = servos_->qvel_target();
  }
  clock_.lap(Stage::actuate);
  if (options_.integrator == Integrator::rk4)
    rk4(data, *drives, target, qvel_target);
  else
    move(data, *drives, target, qvel_target);
  if (servos_) std::copy(now_.user_tau.begin(), now_.user_tau.end(), data.tau.begin());
  if (lane_rows_ && now_.solves_terms && options_.again) step_again(data, given, qpos_target, qvel_target);
  data.time += options_.dt;
  const int bad = settle(data);
  if (servos_ && now_.actuated)
    servos_->advance(data, options_.dt, [&](int world) { return status_[world] == WorldStatus::ok; });
  clock_.lap(Stage::check);
  return bad;
}

/// euler() between velocities that belong to the poses with them.
template <class R>
void Stepper<R>::move(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target) {
  const auto drives_a_root = [&] {
    return std::any_of(model_.joints.begin(), model_.joints.end(), [&](const Joint& joint) {
      const auto gain = [&](const std::vector<double>& of) {
        return std::any_of(&of[joint.qvel], &of[joint.qvel] + 6, [](double x) { return x != 0; });
      };
      return moves_freely(joint.type) && (gain(drives.kp) || gain(drives.kd));
    });
  };
  const bool closes = loops_ && options_.loops == LoopMode::shake;
  if (!products_->has_free_bodies() || product_use() == ProductUse::never || closes || drives_a_root())
    return euler(data, drives, qpos_target, qvel_target);
  now_.given_qvel.assign(data.qvel.begin(), data.qvel.end());
  products_->leave_pose(model_, data, R(options_.dt));
  euler(data, drives, qpos_target, qvel_target);
  now_.solved_qvel.assign(next_.qvel.begin(), next_.qvel.end());
  products_->reach_pose(model_, data, R(options_.dt), next_.qpos, next_.qvel);
  std::copy(now_.given_qvel.begin(), now_.given_qvel.end(), data.qvel.begin());
  clock_.lap(Stage::integrate);
}

/// Marks the worlds whose inputs are not finite.
template <class R>
void Stepper<R>::screen(const BasicData<R>& data, In<R> qpos_target, In<R> qvel_target) {
  const auto all = [&](const auto& good) {
    bool found = good(qpos_target, model_.nq) && (qvel_target.empty() || good(qvel_target, model_.nv));
    each_input(model_, data, data, [&](const char*, In<R> values, In<R>, int n) { found = found && good(values, n); });
    return found;
  };
  if (all([](In<R> values, int) { return finite<R>(values); })) return;
  for (int world = 0; world < data.worlds(); ++world) {
    const auto good = [&](In<R> values, int n) { return within_lane(values, n, world, std::numeric_limits<R>::max()); };
    if (status_[world] == WorldStatus::ok && !all(good)) status_[world] = WorldStatus::bad_input;
  }
}

/// Normalises quaternions in qpos. Quaternions of zero length become the identity, as in MuJoCo.
template <class R>
void Stepper<R>::make_unit(BasicData<R>& data) {
  const std::size_t w = std::size_t(width_);
  for (std::size_t pack = 0; pack < std::size_t(data.packs()); ++pack) {
    for (const int place : model_.quaternions) {
      R* const first = &data.qpos[(pack * std::size_t(model_.nq) + std::size_t(place)) * w];
      const auto at = [&](std::size_t lane) {
        const R* const q = first + lane;
        return Quat<R>{q[0], q[w], q[2 * w], q[3 * w]};
      };
      const auto is_unit = [](R n2) { return std::abs(n2 - R(1)) <= kUnitRounding<R>; };
      int others = 0;
      for (std::size_t lane = 0; lane < w; ++lane) others += !is_unit(square_norm(at(lane)));
      for (std::size_t lane = 0; others > 0 && lane < w; ++lane) {
        R* const q = first + lane;
        const Quat<R> given = at(lane);
        const R n2 = square_norm(given);
        if (is_unit(n2)) continue;
        const std::size_t world = pack * w + lane;  // lanes that pad the last pack have no world
        if (!std::isfinite(n2) && world < status_.size() && status_[world] == WorldStatus::ok)
          status_[world] = WorldStatus::bad_input;
        const Quat<R> made = unit(given);
        q[0] = made.w, q[w] = made.x, q[2 * w] = made.y, q[3 * w] = made.z;
      }
    }
  }
}

/// qacc at (qpos, qvel). dt > 0 makes drives, springs and damping implicit over dt; dt = 0 is explicit.
template <class R>
void Stepper<R>::accelerate(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                            In<R> qpos_target, In<R> qvel_target, In<R> tau) {
  if (drives.limited()) {
    if (!limiter_) limiter_.emplace(model_, data);
    limiter_->solve(data, drives, dt, qpos, qvel, qpos_target, qvel_target, tau, data.qacc);
    now_.limits = Limits::limiter;
    drive_force_.assign(limiter_->applied().begin(), limiter_->applied().end());
    if (!loops_) return;
  }
  // Together with loops, only rk4 enforces limits here. It clamps explicitly (dt = 0), like any other force.
  const bool at_start = dt > 0 && explicit_forces();
  drive_terms<R>(model_, data, drives.limited() ? none_ : drives, at_start ? 0 : dt, qpos, qvel, qpos_target,
                 qvel_target, tau, data.joint_force, data.joint_inertia);
  if (at_start) add_damping(data);
  add_geometric_inertia(data);
  clock_.lap(Stage::drive);
  for (std::size_t i = 0; drives.limited() && i < drive_force_.size(); ++i) data.joint_force[i] += drive_force_[i];
  const bool implicit_products = dt > 0 && product_use() != ProductUse::never;
  if (implicit_products)
    implicit_velocity_products(data, dt, qpos, qvel);
  else if (!loops_)
    maba<R>(model_, data, qpos, qvel, data.joint_force, data.joint_inertia, data.qacc);
  if (!loops_) return;
  if (held_.linkages) now_.force.assign(data.joint_force.begin(), data.joint_force.end());
  if (implicit_products) {
    change_free(data, dt);
    if (held_.spin) {
      next_.free.resize(data.qvel.size());
      for (std::size_t i = 0; i < next_.free.size(); ++i) next_.free[i] = data.qvel[i] + R(dt) * data.qacc[i];
      std::fill(next_.found.begin(), next_.found.end(), R(1));
    }
    force_of(data, qpos, qvel);
  }
  // rk4 without projection reduces errors at about SPOOK's default rate.
  const double drift = options_.loops == LoopMode::spook && dt == 0 ? Softness{}.damping_steps * options_.dt : 0;
  loops_->accelerate(data, loop_step(dt), qpos, qvel, data.joint_force, data.joint_inertia, data.qacc, drift, true);
}

template <class R>
typename Stepper<R>::ProductUse Stepper<R>::product_use() const {
  if (options_.velocity_products == VelocityProductMode::off || explicit_forces()) return ProductUse::never;
  return options_.velocity_products == VelocityProductMode::on ? ProductUse::always : ProductUse::where_needed;
}

/// qacc with implicit velocity products. @return whether data holds the factors of M̂
template <class R>
bool Stepper<R>::implicit_velocity_products(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel) {
  return products_->accelerate_step(model_, data, R(dt), product_use() == ProductUse::always, qpos, qvel,
                                    data.joint_force, data.joint_inertia, data.qacc, now_.turning);
}

/// Computes the joint_force M̂ qacc + C; loops that are solved separately start from forces.
template <class R>
void Stepper<R>::force_of(BasicData<R>& data, In<R> qpos, In<R> qvel) const {
  rnea<R>(model_, data, qpos, qvel, data.qacc, data.joint_force);  // with the armature, which K contains too
  const std::size_t pack = std::size_t(model_.nv) * width_;
  for (std::size_t i = 0; i < data.joint_force.size(); ++i) {
    const int dof = int(i % pack / width_), world = int(i / pack * width_ + i % width_);
    const R armature = R(armature_of(model_, data, dof, world));
    data.joint_force[i] += (data.joint_inertia[i] - armature) * data.qacc[i];
  }
}

/// In MuJoCo's Euler step only the joints' damping is implicit; polynomials are rows.
template <class R>
void Stepper<R>::add_damping(BasicData<R>& data) const {
  for (std::size_t i = 0; i < data.joint_inertia.size(); ++i) {
    const Joint& joint = model_.joints[model_.dof_joint[i / width_ % model_.nv]];
    const WorldTable<R>* own = data.own ? &data.own[i / (std::size_t(model_.nv) * width_)] : nullptr;
    const bool given = own && !own->damping.empty();
    const std::size_t place = std::size_t(&joint - model_.joints.data()) * width_ + i % width_;
    data.joint_inertia[i] += R(options_.dt * (given ? double(own->damping[place]) : joint.damping));
  }
}

/// Time step of SPOOK's stabilisation; 0 for exact accelerations.
template <class R>
double Stepper<R>::loop_step(double dt) const {
  return options_.loops == LoopMode::spook ? dt : 0;
}

/// Prepares the solve of the terms: data, qacc and next_.qvel = v + h qacc. Either next_.qvel is v⁰, the velocity
/// without the terms, or only pass 1 of ABA is done and qacc is zero. @return for a single world, whether next_.qvel is
/// v⁰. It is if links turn far, and also if the factors of M̂ are needed because loops and rigid forces along
/// generalised directions take their inverse masses from them.
template <class R>
bool Stepper<R>::begin_terms(BasicData<R>& data, double h) {
  const bool factors = !lane_rows_ && (loops_ || (now_.solves_rows && rows_->terms().needs_factors(servos_->rows(0))));
  if (!factors)
    products_->begin_step(model_, data, R(h), product_use(), data.qpos, data.qvel, data.joint_force, data.joint_inertia,
                          data.qacc, next_.found, now_.turning);
  else if (product_use() == ProductUse::never)
    maba<R>(model_, data, data.qpos, data.qvel, data.joint_force, data.joint_inertia, data.qacc);
  else if (!implicit_velocity_products(data, h, data.qpos, data.qvel))
    factor<R>(model_, data, {}, data.joint_inertia);
  change_free(data, h);
  for (std::size_t i = 0; i < next_.qvel.size(); ++i) next_.qvel[i] = data.qvel[i] + R(h) * data.qacc[i];
  if (held_.linkages || held_.spin) next_.free.assign(next_.qvel.begin(), next_.qvel.end());
  if (factors) next_.found[0] = 1;
  return next_.found[0] != 0;
}

/// Adds the changes of v⁰ to qacc, and to J q̈ in the links of a single world.
template <class R>
void Stepper<R>::change_free(BasicData<R>& data, double h) const {
  const In<R> changes[] = {balances() ? held_.linkages->change() : In<R>(),
                           held_.spin ? held_.spin->change() : In<R>()};
  if (changes[0].empty() && changes[1].empty()) return;
  for (const In<R>& change : changes) {
    for (std::size_t i = 0; i < change.size(); ++i) data.qacc[i] += change[i] / R(h);
  }
  if (width_ == 1) spread_acceleration<R>(model_, data, data.qacc);
}

/// Whether linkages get the energy back that a step gains or loses.
template <class R>
bool Stepper<R>::balances() const {
  return held_.linkages && held_.linkages->any() && product_use() != ProductUse::never;
}

/// @return whether the step has to be solved again @param again whether it was
template <class R>
bool Stepper<R>::balance_linkages(BasicData<R>& data, bool again) {
  if (!balances()) return false;
  const bool terms = now_.solves_terms;
  return held_.linkages->balance(data,
                                 {options_.dt, data.qpos, data.qvel, terms ? In<R>(next_.free) : In<R>(),
                                  lane_rows_ && terms ? In<R>(next_.found) : In<R>(), next_.qvel,
                                  terms ? In<R>(data.joint_force) : In<R>(now_.force), data.joint_inertia},
                                 again, *loops_);
}

/// @return whether the step has to be solved again, because bodies that spin answer to the forces of its terms
template <class R>
bool Stepper<R>::respond(BasicData<R>& data) {
  const bool elsewhere = now_.solves_terms ? lane_rows_ != nullptr : !loops_;  // in LaneTerms; nothing to respond to
  if (!held_.spin || elsewhere || product_use() == ProductUse::never) return false;
  return held_.spin->correct(model_, data, options_.dt, next_.found, next_.free, next_.qvel, data.joint_inertia);
}

/// The loops' rows in a single world's terms.
template <class R>
BilateralRows<R> Stepper<R>::bilateral_rows(const BasicData<R>& data) const {
  if (!loops_) return {};
  return {&loops_->equalities(), data.qpos, loops_->demand(0), loops_->compliance()};
}

/// The next velocity from v⁰ with the responses, by the terms that the step has. @return whether these terms suffice
template <class R>
bool Stepper<R>::solve_responses(BasicData<R>& data) {
  if (!now_.solves_terms || !rows_) return false;
  const R per_step = R(1 / options_.dt);
  for (std::size_t i = 0; i < next_.free.size(); ++i) data.qacc[i] = (next_.free[i] - data.qvel[i]) * per_step;
  std::copy(next_.free.begin(), next_.free.end(), next_.qvel.begin());
  rows_->apply_again(data, options_.dt, bilateral_rows(data), next_.qvel);
  return !rows_->terms().join_limits(next_.qvel);
}

/// The next velocity of a single world with all terms and rows.
template <class R>
void Stepper<R>::solve_rows(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* limited) {
  const double h = step.h;
  do {
    const bool free = begin_terms(data, h);
    clock_.lap(Stage::solve);
    place_origins(model_.joints.data(), model_.njoint(), data.links());  // maba() does not compute them
    if (loops_) loops_->evaluate(data, loop_step(h), data.qpos, data.qvel);
    rows_->apply(data, step, limited, now_.solves_rows ? servos_->rows(0) : std::span<const ForceRow>(),
                 bilateral_rows(data), free ? In<R>() : In<R>(data.joint_force), next_.qvel, clock_);
  } while (rows_->terms().join_limits(next_.qvel));
}

/// The next velocity with all terms and rows in one problem.
template <class R>
void Stepper<R>::solve_terms(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target,
                             In<R> tau) {
  const double h = options_.dt;
  if (drives.limited()) split_.split(model_, drives);
  const Drives& free = drives.limited() ? split_.unlimited : drives;
  drive_terms<R>(model_, data, free, explicit_forces() ? 0 : h, data.qpos, data.qvel, qpos_target, qvel_target, tau,
                 data.joint_force, data.joint_inertia);
  if (explicit_forces()) add_damping(data);
  add_geometric_inertia(data);
  if (rows_) rows_->terms().add_range_springs(data.joint_inertia, data.joint_force);
  clock_.lap(Stage::drive);
  const DriveStep<R> step{drives, h, qpos_target, qvel_target};
  const SplitDrives* limited = drives.limited() ? &split_ : nullptr;
  if (lane_rows_) {
    begin_terms(data, h);
    for (int world = 0; now_.solves_rows && world < data.worlds(); ++world)
      lane_rows_->terms().push(world, servos_->rows(world));
    lane_rows_->solve(data, step, limited, loops_.get(), loop_step(h), next_.found, product_use() != ProductUse::never,
                      next_.qvel);
  } else {
    solve_rows(data, step, limited);
  }
  end_terms(data, drives, qpos_target, qvel_target);
}

/// Accelerations and forces from the velocity that the terms have found.
template <class R>
void Stepper<R>::end_terms(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target) {
  const double h = options_.dt;
  const R per_step = R(1 / h);
  for (std::size_t i = 0; i < next_.qvel.size(); ++i) data.qacc[i] = (next_.qvel[i] - data.qvel[i]) * per_step;
  if (loops_ && rows_) {
    const BilateralImpulse& held = rows_->terms().mass().bilateral();
    loops_->record(std::span<const double>(held.at), h, std::span<const double>(&held.miss, 1));
  }
  if (drives.limited()) now_.limits = Limits::terms;
  clock_.lap(Stage::terms);
  if (!drives.limited()) return;
  drive_force_.resize(data.size(model_.nv));
  if (split_.all_limited)
    std::fill(drive_force_.begin(), drive_force_.end(), R(0));
  else
    tarsus::drive_force<R>(model_, data, split_.unlimited, h, data.qpos, data.qvel, qpos_target, qvel_target, data.qacc,
                           drive_force_);
  const In<R> force = lane_rows_ ? lane_rows_->limited_force() : In<R>(rows_->limited_force());
  for (std::size_t first = 0; first < drive_force_.size(); first += std::size_t(model_.nv) * width_) {
    for (int i = 0; i < model_.nv; ++i) {
      if (split_.is_limited[i]) std::copy_n(&force[first + i * width_], width_, &drive_force_[first + i * width_]);
    }
  }
}

template <class R>
std::optional<LimitReport> Stepper<R>::limit_report(int world) const {
  if (const Stepper& one = taker(world); &one != this) return one.limit_report(0);
  if (now_.limits == Limits::none) return {};
  if (now_.limits == Limits::limiter) return limiter_->report(world);
  const RowsReport& rows = *rows_report(world);
  return LimitReport{rows.iterations, rows.residual, rows.status == StepStatus::converged, rows.saturated};
}

template <class R>
void Stepper<R>::exchange(const BasicData<R>& data, StepMemory<R>& memory, int pack) {
  check_fit(data);
  check_index("pack", pack, data.packs());
  if (!memory.terms.empty()) check_size("memory.terms", memory.terms.size(), std::size_t(width_));
  if (width_ == 1) {
    TermMemory& terms = memory.of_world(0, 1);
    if (!rows_ && !terms.empty()) rows_ = std::make_unique<RowStage<R>>(model_, data, options_.rows);
    if (rows_) rows_->terms().exchange(terms);
  }
  if (!lane_rows_ && !memory.lane_terms.empty()) make_rows(data);
  if (lane_rows_) lane_rows_->terms().exchange(memory.lane_terms, pack);
  if (!limiter_ && !memory.drive_demand.empty()) limiter_.emplace(model_, data);
  if (!limiter_) return;
  const std::size_t n = std::size_t(model_.nv) * width_;
  memory.drive_demand.resize(n);
  std::swap_ranges(memory.drive_demand.begin(), memory.drive_demand.end(),
                   limiter_->guess().begin() + std::ptrdiff_t(n) * pack);
}

template <class R>
void Stepper<R>::restart(const BasicData<R>& data, int world) {
  revive(world);
  if (!singles_.of.empty() && singles_.of[world]) singles_.of[world]->stepper.restart(singles_.of[world]->data, 0);
  if (singles_.always) return;
  StepMemory<R> memory;
  const int pack = world / width_;
  exchange(data, memory, pack);
  memory.forget(world % width_, width_);
  exchange(data, memory, pack);
}

template <class R>
const RowsReport* Stepper<R>::rows_report(int world) const {
  if (const Stepper& one = taker(world); &one != this) return one.rows_report(0);
  if (!options_.rows.any() && !now_.solves_terms) return nullptr;
  if (lane_rows_) return &lane_rows_->report(world);
  return rows_ ? &rows_->report() : nullptr;
}

template <class R>
TendonForces Stepper<R>::tendon_forces(int tendon, int world) const {
  check_index("tendon", tendon, int(model_.spec.tendons.size()));
  if (const Stepper& one = taker(world); &one != this) return one.tendon_forces(tendon, 0);
  TendonForces out;
  const std::span<const ForceRow> rows = now_.solves_rows ? servos_->rows(world) : std::span<const ForceRow>();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].tendon_range != tendon && rows[r].tendon_friction != tendon) continue;
    const double force = lane_rows_ ? lane_rows_->terms().impulse(world, rows[r].slot) / options_.dt
                         : rows_    ? rows_->terms().force_of_row(r)
                                    : force_rows_.force(r);
    if (rows[r].tendon_range == tendon) out.range += std::abs(force);
    if (rows[r].tendon_friction == tendon) out.friction += force;
  }
  return out;
}

template <class R>
void Stepper<R>::ground_force(int world, Out<R> force) const {
  check_size("force", force.size(), std::size_t(3) * model_.njoint());
  std::fill(force.begin(), force.end(), R(0));
  if (const Stepper& one = taker(world); &one != this) return one.ground_force(0, force);
  if (lane_rows_) return lane_rows_->ground_force(world, force);
  if (!rows_) return;
  const std::span<const LinkContact> contacts = rows_->contacts();
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    if (contacts[i].b >= 0) continue;
    const Vec3d f = rows_->terms().force(int(i));
    for (int k = 0; k < 3; ++k) force[std::size_t(3 * contacts[i].a + k)] += R(f[k]);
  }
}

/// Applies SHAKE to the step that euler() or rk4() took, then RATTLE to the velocities.
template <class R>
void Stepper<R>::close_loops(BasicData<R>& data) {
  const bool rk4 = options_.integrator == Integrator::rk4;
  const R h = rk4 ? R(1) : R(options_.dt);
  if (rk4) {
    std::copy(next_.qpos.begin(), next_.qpos.end(), rk4_.stage_qpos.begin());
    std::fill(rk4_.u.begin(), rk4_.u.end(), R(0));
    loops_->close(data, h, rk4_.stage_qpos, data.joint_inertia, rk4_.u, next_.qpos);
  } else {
    loops_->close(data, h, data.qpos, data.joint_inertia, next_.qvel, next_.qpos);
  }
  loops_->settle(data, next_.qpos, data.joint_inertia, next_.qvel);
  for (int world = 0; world < data.worlds(); ++world) {
    const bool alone = lane_rows_ && lane_rows_->report(world).status == StepStatus::crowded;
    if (status_[world] == WorldStatus::ok && !alone && !loops_->closed(world)) status_[world] = WorldStatus::open_loop;
  }
}

constexpr int kStiffenings = 4;     ///< solves of a step after the first
constexpr double kRetarded = 0.02;  ///< geometric stiffness k resists as its coordinate was 0.005 h ago

/// Whether the loops' forces rotate by more than the step resolves, so that it must be repeated.
template <class R>
bool Stepper<R>::stiffen_loops(BasicData<R>& data) {
  if (!loops_) return false;
  if (now_.loop_inertia.empty()) now_.loop_inertia.assign(data.qvel.size(), R(0));
  return loops_->equalities().template geometric_inertia<R>(data, options_.dt, loops_->multiplier(), data.qvel,
                                                            next_.qvel, held_.hanging ? &*held_.hanging : nullptr,
                                                            now_.loop_inertia);
}

/// Adds geometric stiffness, taken a little after the step's middle: its inertia a, and damping by kRetarded a/h.
template <class R>
void Stepper<R>::add_geometric_inertia(BasicData<R>& data) const {
  const R retarded = R(kRetarded), per_step = retarded / R(options_.dt);
  for (const AlignedVector<R>* inertia : {&now_.hanging_inertia, &now_.loop_inertia}) {
    for (std::size_t i = 0; i < inertia->size(); ++i) {
      const R a = (*inertia)[i];
      data.joint_inertia[i] += a + retarded * a, data.joint_force[i] -= per_step * a * data.qvel[i];
    }
  }
}

template <class R>
void Stepper<R>::euler(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target) {
  const R h = R(options_.dt);
  const auto solve = [&] {
    const bool loops = loops_ || (held_.hanging && held_.hanging->any());
    if (options_.rows.any() || now_.solves_rows ||
        (drives.limited() && !limits_alone(options_, drives, loops, servos_ && servos_->may_have_rows()))) {
      if (!rows_ && !lane_rows_) make_rows(data);
      now_.solves_terms = true;
      if (rows_) rows_->terms().turning_ranges(data, options_.dt, now_.turning);
      if (lane_rows_) lane_rows_->terms().turning_ranges(data, options_.dt, now_.turning);
      return solve_terms(data, drives, qpos_target, qvel_target, data.tau);
    }
    accelerate(data, drives, options_.dt, data.qpos, data.qvel, qpos_target, qvel_target, data.tau);
    for (std::size_t i = 0; i < next_.qvel.size(); ++i) next_.qvel[i] = data.qvel[i] + h * data.qacc[i];
    clock_.lap(Stage::solve);
  };
  const auto solve_again = [&] {
    if (now_.solves_terms && lane_rows_) lane_rows_->terms().rewind();
    solve();
  };
  now_.loop_inertia.clear(), now_.hanging_inertia.clear(), now_.turning.clear();
  if (held_.hanging && !explicit_forces()) held_.hanging->find(model_, data, now_.hanging_inertia);
  if (held_.spin) held_.spin->begin();
  if (balances())
    held_.linkages->begin(data, options_.dt, *loops_);
  else if (loops_)
    loops_->look_ahead({});
  solve();
  const auto spent = [&] {  // further corrections of the inertia share the iterations of the step
    return now_.solves_terms && rows_ && rows_->report().iterations >= options_.rows.solve.max_iterations;
  };
  for (int k = 0; k < kStiffenings && !(k > 0 && spent()) && stiffen_loops(data); ++k) solve_again();
  for (int k = 0; k < kResponses && respond(data); ++k) {
    if (solve_responses(data))
      end_terms(data, drives, qpos_target, qvel_target);
    else
      solve_again();
  }
  for (int k = 0; k < 3 && balance_linkages(data, k > 0); ++k) solve_again();
  while (now_.solves_terms && rows_ && rows_->terms().stiffen_ranges(next_.qvel)) solve();
  if (now_.solves_terms && rows_) rows_->terms().end();
  if (loops_ && options_.loops == LoopMode::shake) {
    close_loops(data);
    return clock_.lap(Stage::close);
  }
  integrate<R>(model_, data, data.qpos, next_.qvel, h, next_.qpos);
  clock_.lap(Stage::integrate);
}

/// u̇ = dexp⁻¹(u) v = v + ½ u × v + 1/12 u × (u × v) for rotations, v for other coordinates: the rate of u in q = q₀ ⊞
/// u if q̇ is v. The next term is of fifth order in the step. [Munthe-Kaas 1998]
template <class R>
static void manifold_slope(const Model& model, int width, const R* u, const R* v, R* slope) {
  for (const Joint& joint : model.joints) {
    const int linear = scalar_count(joint.type);
    for (int lane = 0; lane < width; ++lane) {
      const auto at = [&](int k) { return std::size_t(joint.qvel + k) * width + lane; };
      for (int k = 0; k < linear; ++k) slope[at(k)] = v[at(k)];
      if (!has_rotation(joint.type)) continue;
      const auto load = [&](const R* p) { return Vec3<R>{p[at(linear)], p[at(linear + 1)], p[at(linear + 2)]}; };
      const Vec3<R> a = load(u), w = load(v), aw = cross(a, w);
      const Vec3<R> s = w + aw * R(0.5) + cross(a, aw) * R(1.0 / 12);
      for (int k = 0; k < 3; ++k) slope[at(linear + k)] = s[k];
    }
  }
}

template <class R>
void Stepper<R>::rk4(BasicData<R>& data, const Drives& drives, In<R> qpos_target, In<R> qvel_target) {
  const R h = R(options_.dt), weights[4] = {h / 6, h / 3, h / 3, h / 6}, nodes[4] = {0, h / 2, h / 2, h};
  std::fill(rk4_.sum_q.begin(), rk4_.sum_q.end(), R(0)), std::fill(rk4_.sum_v.begin(), rk4_.sum_v.end(), R(0));
  for (int stage = 0; stage < 4; ++stage) {
    for (std::size_t i = 0; i < rk4_.u.size(); ++i) {
      rk4_.u[i] = stage ? nodes[stage] * rk4_.slope_q[i] : R(0);
      rk4_.stage_qvel[i] = stage ? data.qvel[i] + nodes[stage] * data.qacc[i] : data.qvel[i];
    }
    integrate<R>(model_, data, data.qpos, rk4_.u, R(1), rk4_.stage_qpos);
    if (servos_) {
      prepare(data, rk4_.stage_qpos, rk4_.stage_qvel, false);
      std::copy(servos_->tau().begin(), servos_->tau().end(), data.tau.begin());
    }
    const auto solve = [&](In<R> tau) {
      accelerate(data, drives, 0, rk4_.stage_qpos, rk4_.stage_qvel, qpos_target, qvel_target, tau);
    };
    if (now_.solves_rows) {
      next_.row_qacc.resize(data.qacc.size());
      force_rows_.solve(*servos_, options_.dt, data.tau, next_.row_qacc, [&](In<R> tau, Out<R> qacc) {
        solve(tau);
        std::copy(data.qacc.begin(), data.qacc.end(), qacc.begin());
      });
    } else {
      solve(data.tau);
    }
    const std::size_t pack = std::size_t(model_.nv) * width_;
    for (int p = 0; p < data.packs(); ++p) {
      manifold_slope(model_, width_, rk4_.u.data() + p * pack, rk4_.stage_qvel.data() + p * pack,
                     rk4_.slope_q.data() + p * pack);
    }
    for (std::size_t i = 0; i < rk4_.u.size(); ++i) {
      rk4_.sum_q[i] += weights[stage] * rk4_.slope_q[i];
      rk4_.sum_v[i] += weights[stage] * data.qacc[i];
    }
  }
  clock_.lap(Stage::solve);
  integrate<R>(model_, data, data.qpos, rk4_.sum_q, R(1), next_.qpos);
  for (std::size_t i = 0; i < next_.qvel.size(); ++i) next_.qvel[i] = data.qvel[i] + rk4_.sum_v[i];
  clock_.lap(Stage::integrate);
  if (loops_ && options_.loops == LoopMode::shake) close_loops(data);
  clock_.lap(Stage::close);
}

/// Whether |x| <= limit for all n numbers of a world; false for nan.
template <class R>
bool Stepper<R>::within_lane(In<R> values, int n, int world, R limit) const {
  for (int i = 0; i < n; ++i) {
    if (!(std::abs(values[batch_index(width_, n, i, world)]) <= limit)) return false;
  }
  return true;
}

/// Whether the step ignored terms or loops of the world, because a number in them is not finite. The acceleration is
/// finite then.
template <class R>
bool Stepper<R>::ignores_terms(int world) const {
  const bool terms =
      now_.solves_terms && (rows_ ? rows_->report() : lane_rows_->report(world)).status == StepStatus::not_finite;
  return (terms || (loops_ && loops_->status(world) == KktStatus::not_finite)) && &taker(world) == this;
}

template <class R>
WorldStatus Stepper<R>::judge(const BasicData<R>& data, int world) const {
  constexpr R kLargest = std::numeric_limits<R>::max();
  if (ignores_terms(world)) return WorldStatus::singular;
  if (!within_lane(data.qacc, model_.nv, world, kLargest)) return WorldStatus::singular;
  if (!within_lane(next_.qvel, model_.nv, world, R(options_.speed_limit))) return WorldStatus::too_fast;
  return within_lane(next_.qpos, model_.nq, world, kLargest) ? WorldStatus::ok : WorldStatus::too_fast;
}

/// Accepts the next state, by lane if some world is not ok.
template <class R>
int Stepper<R>::settle(BasicData<R>& data) {
  int bad = 0;
  const bool all_good = finite<R>(data.qacc) && within<R>(next_.qvel, R(options_.speed_limit)) && finite<R>(next_.qpos);
  for (int world = 0; world < data.worlds(); ++world) {
    if (status_[world] == WorldStatus::ok && (!all_good || ignores_terms(world))) status_[world] = judge(data, world);
    if (status_[world] == WorldStatus::ok) continue;
    ++bad;
    const auto keep = [&](AlignedVector<R>& next, const AlignedVector<R>& old, int n) {
      for (int i = 0; i < n; ++i) next[batch_index(width_, n, i, world)] = old[batch_index(width_, n, i, world)];
    };
    keep(next_.qpos, data.qpos, model_.nq), keep(next_.qvel, data.qvel, model_.nv);
    if (options_.screen) keep(data.qacc, next_.last_qacc, model_.nv);
  }
  // The numbers, not the arrays: NumPy's views and spans that somebody holds stay those of the state.
  const auto accept = [](AlignedVector<R>& start, AlignedVector<R>& state, const AlignedVector<R>& next) {
    std::copy(state.begin(), state.end(), start.begin());
    std::copy(next.begin(), next.end(), state.begin());
  };
  accept(next_.start_qpos, data.qpos, next_.qpos), accept(next_.start_qvel, data.qvel, next_.qvel);
  return bad;
}

template <class R>
std::uint64_t state_hash(const BasicData<R>& data) {
  std::uint64_t hash = kHashStart;
  const auto add = [&](const AlignedVector<R>& values, int n) {
    std::vector<R> one(n);
    for (int world = 0; world < data.worlds(); ++world) {
      data.get(values, n, world, one);
      hash = fnv1a<R>(one, hash);
    }
  };
  add(data.qpos, data.nq());
  add(data.qvel, data.nv());
  return hash;
}

template class Stepper<double>;
template class Stepper<float>;
template struct StepMemory<double>;
template struct StepMemory<float>;
template int pack_width<double>(const Model&, const StepOptions&, const Drives*);
template int pack_width<float>(const Model&, const StepOptions&, const Drives*);
template std::string lanes_refusal<double>(const Model&, const StepOptions&, const Drives*);
template std::string lanes_refusal<float>(const Model&, const StepOptions&, const Drives*);
template std::uint64_t state_hash<double>(const BasicData<double>&);
template std::uint64_t state_hash<float>(const BasicData<float>&);

}  // namespace tarsus
