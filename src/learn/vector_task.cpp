#include "tarsus/learn/vector_task.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "learn/kernel_table.hpp"
#include "tarsus/dynamics/lanes.hpp"

namespace tarsus {
namespace {

using Clock = std::chrono::steady_clock;

double lap(Clock::time_point& since) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - since).count();
  since = now;
  return seconds;
}

template <class Array>
auto row(Array&& values, int n, int i) {
  return std::span(values).subspan(std::size_t(n) * i, n);
}

/// Pointers to the n numbers of an array for the worlds from `first` on, for as many lanes as `rows` has; for(lane)
/// tells whether the lane has a world.
template <class Row, class Array, class For>
std::span<Row* const> rows_of(std::vector<Row*>& rows, Array&& values, int n, int first, const For& wanted) {
  for (std::size_t lane = 0; lane < rows.size(); ++lane)
    rows[lane] = wanted(int(lane)) ? values.data() + std::size_t(n) * (first + lane) : nullptr;
  return rows;
}

template <class R>
BatchOptions batch_options(const Task& task, int threads, bool own_law) {
  if (own_law && !task.drives())
    throw ValueError("make_law", "given for a task without drives", "no law, because a law replaces drives");
  BatchOptions out{.step = {.dt = task.control_dt() / task.substeps(), .rows = task.rows()}, .threads = threads};
  if (task.drives() && !own_law) out.drives = *task.drives();
  return out;
}

}  // namespace

/// Workspace of a thread for taking packs through the task.
template <class R>
struct VectorTask<R>::Thread {
  std::unique_ptr<Task::Scratch> scratch;
  std::unique_ptr<TaskLanes<R>> lanes, one;  // for a pack; for a world that starts
  DriveLaw<R> law;
  std::vector<double> qpos, qvel;                          // of a world that starts
  AlignedVector<R> state, state_v, action, target, force;  // [n][lane]
  std::vector<AlignedVector<R>> touch;                     // [pack in progress][n][lane]
  AlignedVector<R> terms, observation;
  std::vector<Task::Score> scores;  // [lane]
  std::vector<double*> memory;
  std::vector<const R*> from;
  std::vector<R*> to;
  std::int64_t bad = 0;
  Clock::time_point clock;
  Seconds seconds;

  typename TaskLanes<R>::Worlds worlds() const { return {state, state_v, memory}; }
};

template <class R>
VectorTask<R>::VectorTask(const Task& task, const VectorTaskOptions& options,
                          const std::function<DriveLaw<R>()>& make_law)
    : task_(task),
      options_(options),
      nobs_(task.observation_size()),
      nact_(task.action_size()),
      nterm_(int(task.terms().size())),
      nmem_(task.memory_size()),
      ntarget_(task.drives() ? task.model().nq : task.model().nu),
      batch_(task.model(), options.worlds, batch_options<R>(task, options.threads, bool(make_law))) {
  const Model& model = task.model();
  const std::size_t width = batch_.pack_width();
  for (int t = 0; t < options.threads; ++t) {
    auto thread = std::make_unique<Thread>();
    thread->scratch = task.scratch();
    task.make_lanes(int(width), thread->lanes), task.make_lanes(1, thread->one);
    if (make_law) thread->law = make_law();
    thread->qpos.resize(model.nq), thread->qvel.resize(model.nv);
    thread->state.resize(width * model.nq), thread->state_v.resize(width * model.nv);
    thread->action.resize(width * nact_), thread->target.resize(width * ntarget_);
    thread->force.resize(3 * width * model.joints.size());
    thread->touch.assign(batch_.worlds_at_once() / width, AlignedVector<R>(width * model.joints.size()));
    thread->terms.resize(width * nterm_), thread->observation.resize(width * nobs_);
    thread->scores.resize(width), thread->memory.resize(width);
    thread->from.resize(width), thread->to.resize(width);
    threads_.push_back(std::move(thread));
  }
  const std::size_t n = options.worlds;
  observation_.resize(n * nobs_), final_observation_.resize(n * nobs_);
  reward_.resize(n), terms_.resize(n * nterm_), memory_.resize(n * nmem_);
  memory_.reserve(1);  // gives the array an address even for tasks without memory
  ended_.terminated.resize(n), ended_.truncated.resize(n), ended_.bad.resize(n), starts_.resize(n), steps_.resize(n),
      episode_.resize(n);
  seed_.resize(n);
  std::iota(seed_.begin(), seed_.end(), options.seed);
}

template <class R>
VectorTask<R>::~VectorTask() = default;

/// The states of the lanes from world `first` on. Lanes whose world does not take part have null memory. Lanes without
/// a world have the first world's numbers.
template <class R>
template <class F>
void VectorTask<R>::look(Thread& thread, int first, int count, const F& takes_part) {
  const Model& model = task_.model();
  const auto turn = [&](std::span<const R> values, int n, AlignedVector<R>& to) {
    for (int lane = 0; lane < int(thread.from.size()); ++lane)
      thread.from[lane] = row(values, n, first + (lane < count ? lane : 0)).data();
    to_lanes<R>(thread.from, n, to.data());
  };
  turn(batch_.qpos(), model.nq, thread.state), turn(batch_.qvel(), model.nv, thread.state_v);
  rows_of(thread.memory, memory_, nmem_, first, [&](int lane) { return lane < count && takes_part(first + lane); });
}

/// Resets a world and observes it.
template <class R>
void VectorTask<R>::begin(int world, Thread& thread) {
  EpisodeRandom random(seed_[world], episode_[world]++);
  const auto memory = row(memory_, nmem_, world);
  task_.start(random, {thread.qpos, thread.qvel, memory}, *thread.scratch);
  std::copy(thread.qpos.begin(), thread.qpos.end(), thread.state.begin());
  std::copy(thread.qvel.begin(), thread.qvel.end(), thread.state_v.begin());
  const auto qpos = std::span<R>(thread.state).first(thread.qpos.size());
  const auto qvel = std::span<R>(thread.state_v).first(thread.qvel.size());
  batch_.reset_world(world, qpos, qvel);
  steps_[world] = 0;
  double* const numbers = memory.data();
  thread.one->observe({qpos, qvel, {&numbers, 1}}, false, std::span<R>(thread.observation).first(nobs_));
  std::copy_n(thread.observation.begin(), nobs_, row(observation_, nobs_, world).begin());
}

/// Sets the actions of a pack's worlds that continue; the others will be reset.
template <class R>
void VectorTask<R>::act(int first, int count, std::span<const R> action, Thread& thread) {
  for (int world = first; world < first + count; ++world)
    starts_[world] =
        options_.autoreset == Autoreset::next_step && (ended_.terminated[world] || ended_.truncated[world]);
  look(thread, first, count, [&](int world) { return !starts_[world]; });
  for (int lane = 0; lane < int(thread.from.size()); ++lane)
    thread.from[lane] = row(action, nact_, first + (lane < count ? lane : 0)).data();
  to_lanes<R>(thread.from, nact_, thread.action.data());
  thread.lanes->act(thread.worlds(), thread.action, thread.target);
  const std::span<R> target = task_.drives() ? batch_.qpos_target() : batch_.ctrl();
  to_rows<R>(thread.target.data(), ntarget_,
             rows_of(thread.to, target, ntarget_, first, [&](int lane) { return thread.memory[lane] != nullptr; }));
  // Tasks may clip what an action sets, and so hide that it is not finite.
  for (int world = first; world < first + count; ++world) {
    const auto mine = row(action, nact_, world);
    const bool finite = std::ranges::all_of(mine, [](R x) { return std::isfinite(x); });
    if (!finite && !starts_[world]) row(target, ntarget_, world)[0] = std::numeric_limits<R>::quiet_NaN();
  }
}

/// The joint forces of a user-defined law, instead of the drives, for the next simulation step.
template <class R>
void VectorTask<R>::drive(int world, Thread& thread) {
  const Model& model = task_.model();
  if (batch_.status(world) != WorldStatus::ok) return;
  thread.law(row(batch_.qpos(), model.nq, world), row(batch_.qvel(), model.nv, world),
             row(batch_.qpos_target(), model.nq, world), row(batch_.tau(), model.nv, world));
}

template <class R>
void VectorTask<R>::feel(int first, int count, bool first_step, Thread& thread, std::span<R> touch) {
  const int n = int(task_.model().joints.size());
  for (int lane = 0; lane < int(thread.from.size()); ++lane)
    thread.from[lane] = row(batch_.ground_force(), 3 * n, first + (lane < count ? lane : 0)).data();
  to_lanes<R>(thread.from, 3 * n, thread.force.data());
  learn_table<R>(int(thread.from.size())).largest_force(thread.force.data(), n, first_step, touch.data());
}

/// Rewards and episode ends of a pack's worlds after their steps.
template <class R>
void VectorTask<R>::score(int first, int count, Thread& thread, std::span<const R> touch) {
  const auto stepped = [&](int world) { return !starts_[world] && batch_.status(world) == WorldStatus::ok; };
  look(thread, first, count, stepped);
  thread.lanes->score(thread.worlds(), touch, thread.terms, thread.scores);
  to_rows<R>(thread.terms.data(), nterm_,
             rows_of(thread.to, terms_, nterm_, first, [&](int lane) { return thread.memory[lane] != nullptr; }));
  for (int lane = 0; lane < count; ++lane) {
    const int world = first + lane;
    Task::Score score = thread.scores[lane];
    const bool finite = std::isfinite(R(score.reward)) &&
                        std::ranges::all_of(row(terms_, nterm_, world), [](R x) { return std::isfinite(x); });
    if (!finite) thread.memory[lane] = nullptr;  // the action or the state is too large
    ended_.bad[world] = !starts_[world] && !thread.memory[lane];
    if (!thread.memory[lane]) {
      score = {};
      score.truncated =
          ended_.bad[world];  // the simulation failed, not the policy: use the value of the last good state
      std::fill_n(row(terms_, nterm_, world).begin(), nterm_, R(0));
    }
    if (!starts_[world]) ++steps_[world];
    thread.bad += ended_.bad[world];
    reward_[world] = R(score.reward), ended_.terminated[world] = score.terminated,
    ended_.truncated[world] = score.truncated;
  }
}

/// The observations after a step. If the mode requires it, a world whose episode ended in this step is reset. A world
/// whose simulation failed keeps its last observation.
template <class R>
void VectorTask<R>::observe(int first, Thread& thread) {
  const bool same_step = options_.autoreset == Autoreset::same_step;
  const auto ended = [&](int world) { return ended_.terminated[world] || ended_.truncated[world]; };
  thread.lanes->observe(thread.worlds(), true, thread.observation);
  for (int lane = 0; lane < int(thread.to.size()); ++lane) {
    const int world = first + lane;
    thread.to[lane] = !thread.memory[lane]        ? nullptr
                      : same_step && ended(world) ? row(final_observation_, nobs_, world).data()
                                                  : row(observation_, nobs_, world).data();
  }
  to_rows<R>(thread.observation.data(), nobs_, thread.to);
}

template <class R>
void VectorTask<R>::restart_ended(int first, int count, Thread& thread) {
  for (int world = first; world < first + count; ++world) {
    if (options_.autoreset == Autoreset::same_step && (ended_.terminated[world] || ended_.truncated[world])) {
      if (ended_.bad[world])
        std::ranges::copy(row(observation_, nobs_, world), row(final_observation_, nobs_, world).begin());
      starts_[world] = 1;
    }
    if (starts_[world]) begin(world, thread);
  }
}

template <class R>
void VectorTask<R>::reset(std::span<const std::uint8_t> mask) {
  if (!mask.empty()) check_size("mask", mask.size(), worlds());
  if (!begun_ && !mask.empty() && std::any_of(mask.begin(), mask.end(), [](auto m) { return !m; }))
    throw ValueError("mask", "false for some worlds", "all worlds in the first reset()");
  for (int world = 0; world < worlds(); ++world) {
    if (!mask.empty() && !mask[world]) continue;
    reward_[world] = 0, ended_.terminated[world] = ended_.truncated[world] = ended_.bad[world] = 0;
    std::fill_n(row(terms_, nterm_, world).begin(), nterm_, R(0));
    begin(world, *threads_[0]);
  }
  begun_ = true;
}

template <class R>
void VectorTask<R>::reset(std::span<const std::uint64_t> seeds, std::span<const std::uint8_t> mask) {
  check_size("seeds", seeds.size(), worlds());
  if (!mask.empty()) check_size("mask", mask.size(), worlds());
  for (int world = 0; world < worlds(); ++world) {
    if (mask.empty() || mask[world]) seed_[world] = seeds[world], episode_[world] = 0;
  }
  reset(mask);
}

/// Calls f(first, count, pack) for the packs of these worlds.
template <class R>
template <class F>
void VectorTask<R>::each_pack(int first, int count, const F& f) const {
  const int width = batch_.pack_width();
  for (int done = 0; done < count; done += width) f(first + done, std::min(width, count - done), done / width);
}

template <class R>
void VectorTask<R>::step(std::span<const R> action) {
  check_size("action", action.size(), std::size_t(worlds()) * nact_);
  if (!begun_) throw ValueError("worlds", "not reset", "a reset() before the first step");
  if (options_.autoreset == Autoreset::disabled) {
    for (int world = 0; world < worlds(); ++world) {
      if (ended_.terminated[world] || ended_.truncated[world])
        throw ValueError("world", std::to_string(world), "a world that was reset() after its episode ended");
    }
  }
  const int last = task_.substeps() - 1;
  for (auto& thread : threads_) thread->clock = Clock::now();
  Rollout<R> rollout{.steps = task_.substeps()};
  rollout.before = [&](int t, int all_first, int all, int substep) {
    Thread& thread = *threads_[t];
    thread.seconds.simulation += lap(thread.clock);
    each_pack(all_first, all, [&](int first, int count, int) {
      if (substep == 0) act(first, count, action, thread);
    });
    thread.seconds.action += lap(thread.clock);
    for (int world = all_first; thread.law && world < all_first + all; ++world) drive(world, thread);
  };
  rollout.after = [&](int t, int all_first, int all, int substep) {
    Thread& thread = *threads_[t];
    thread.seconds.simulation += lap(thread.clock);
    each_pack(all_first, all, [&](int first, int count, int pack) {
      feel(first, count, substep == 0, thread, thread.touch[pack]);
      if (substep == last) score(first, count, thread, thread.touch[pack]);
      thread.seconds.reward += lap(thread.clock);
      if (substep != last) return;
      observe(first, thread);
      thread.seconds.observation += lap(thread.clock);
      restart_ended(first, count, thread);
      thread.seconds.start += lap(thread.clock);
    });
  };
  batch_.rollout(rollout);
}

template <class R>
std::int64_t VectorTask<R>::bad_worlds() const {
  std::int64_t sum = 0;
  for (const auto& thread : threads_) sum += thread->bad;
  return sum;
}

template <class R>
typename VectorTask<R>::Seconds VectorTask<R>::seconds() const {
  Seconds sum;
  for (const auto& thread : threads_) {
    sum.simulation += thread->seconds.simulation, sum.action += thread->seconds.action,
        sum.reward += thread->seconds.reward;
    sum.observation += thread->seconds.observation, sum.start += thread->seconds.start;
  }
  return sum;
}

template class VectorTask<double>;
template class VectorTask<float>;

}  // namespace tarsus
