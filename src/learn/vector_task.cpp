#include "tarsus/learn/vector_task.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

namespace tarsus {
namespace {

using Clock = std::chrono::steady_clock;

double lap(Clock::time_point& since) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - since).count();
  since = now;
  return seconds;
}

template <class From, class To>
void convert(std::span<From> from, std::span<To> to) {
  std::copy(from.begin(), from.end(), to.begin());
}

template <class Array>
auto row(Array&& values, int n, int i) {
  return std::span(values).subspan(std::size_t(n) * i, n);
}

template <class R>
BatchOptions batch_options(const Task& task, int threads, bool own_law) {
  if (own_law && !task.drives()) throw ValueError("make_law", "given", "none for a task without drives");
  BatchOptions out{.step = {.dt = task.control_dt() / task.substeps(), .rows = task.rows()}, .threads = threads};
  if (task.drives() && !own_law) out.drives = *task.drives();
  return out;
}

}  // namespace

RowStageOptions Task::rows() const {
  RowStageOptions rows;
  rows.contacts = rows.joints = true;
  return rows;
}

template <class R>
struct VectorTask<R>::Thread {
  std::unique_ptr<Task::Scratch> scratch;
  DriveLaw<R> law;
  std::vector<double> qpos, qvel, action, target, terms, observation;
  std::int64_t bad = 0;
  Seconds seconds;
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
      batch_(task.model(), options.worlds, batch_options<R>(task, options.threads, bool(make_law))),
      team_(options.threads) {
  const Model& model = task.model();
  for (int t = 0; t < team_.size(); ++t) {
    auto thread = std::make_unique<Thread>();
    thread->scratch = task.scratch();
    if (make_law) thread->law = make_law();
    thread->qpos.resize(model.nq), thread->qvel.resize(model.nv);
    thread->action.resize(nact_), thread->target.resize(task.drives() ? model.nq : model.nu);
    thread->terms.resize(nterm_), thread->observation.resize(nobs_);
    threads_.push_back(std::move(thread));
  }
  const std::size_t n = options.worlds;
  observation_.resize(n * nobs_), final_observation_.resize(n * nobs_);
  reward_.resize(n), terms_.resize(n * nterm_), memory_.resize(n * nmem_), touch_.resize(n * model.joints.size());
  start_qpos_.resize(n * model.nq), start_qvel_.resize(n * model.nv);
  terminated_.resize(n), truncated_.resize(n), bad_.resize(n), starts_.resize(n), steps_.resize(n), episode_.resize(n);
  seed_.resize(n);
  std::iota(seed_.begin(), seed_.end(), options.seed);
}

template <class R>
VectorTask<R>::~VectorTask() = default;

template <class R>
template <class F>
void VectorTask<R>::each_world(const F& work) {
  team_.run([&](int t) {
    const auto share = team_.share(worlds(), t);
    for (int world = share.begin; world < share.end; ++world) work(world, *threads_[t]);
  });
}

template <class R>
Task::World VectorTask<R>::view(int world, Thread& thread) {
  const Model& model = task_.model();
  const bool fresh = starts_[world];
  convert(row(fresh ? std::span<R>(start_qpos_) : batch_.qpos(), model.nq, world), std::span(thread.qpos));
  convert(row(fresh ? std::span<R>(start_qvel_) : batch_.qvel(), model.nv, world), std::span(thread.qvel));
  return {thread.qpos, thread.qvel, row(memory_, nmem_, world)};
}

template <class R>
void VectorTask<R>::start(int world, Thread& thread) {
  auto clock = Clock::now();
  EpisodeRandom random(seed_[world], episode_[world]++);
  const Task::World state{thread.qpos, thread.qvel, row(memory_, nmem_, world)};
  task_.start(random, state, *thread.scratch);
  thread.scratch->current = false;
  convert(std::span(thread.qpos), row(start_qpos_, task_.model().nq, world));
  convert(std::span(thread.qvel), row(start_qvel_, task_.model().nv, world));
  starts_[world] = 1, steps_[world] = 0;
  thread.seconds.start += lap(clock);
}

template <class R>
void VectorTask<R>::act(int world, std::span<const R> action, Thread& thread) {
  auto clock = Clock::now();
  convert(row(action, nact_, world), std::span(thread.action));
  task_.act(view(world, thread), thread.action, thread.target, *thread.scratch);
  convert(std::span(thread.target),
          row(task_.drives() ? batch_.qpos_target() : batch_.ctrl(), int(thread.target.size()), world));
  thread.seconds.action += lap(clock);
}

/// The joint forces of a law in the place of the drives, for the simulation step to come.
template <class R>
void VectorTask<R>::drive(int world, Thread& thread) {
  const Model& model = task_.model();
  if (batch_.status(world) != WorldStatus::ok) return;
  thread.law(row(batch_.qpos(), model.nq, world), row(batch_.qvel(), model.nv, world),
             row(batch_.qpos_target(), model.nq, world), row(batch_.tau(), model.nv, world));
}

template <class R>
void VectorTask<R>::feel(int world, bool first) {
  const int n = int(task_.model().joints.size());
  const auto touch = row(touch_, n, world);
  const auto force = row(batch_.ground_force(), 3 * n, world);
  for (int link = 0; link < n; ++link) {
    const double x = force[3 * link], y = force[3 * link + 1], z = force[3 * link + 2];
    touch[link] = std::max(first ? 0.0 : touch[link], std::sqrt(x * x + y * y + z * z));
  }
}

template <class R>
void VectorTask<R>::score(int world, Thread& thread) {
  auto clock = Clock::now();
  ++steps_[world];
  Task::Score score;
  if (batch_.status(world) == WorldStatus::ok) {
    score = task_.score(view(world, thread), row(touch_, int(task_.model().joints.size()), world), thread.terms,
                        *thread.scratch);
  } else {
    score.truncated = true;  // the simulation failed, not the policy: the last good state's value stands for the rest
    std::fill(thread.terms.begin(), thread.terms.end(), 0.0);
    thread.scratch->current = false;
    ++thread.bad;
  }
  bad_[world] = batch_.status(world) != WorldStatus::ok;
  reward_[world] = R(score.reward), terminated_[world] = score.terminated, truncated_[world] = score.truncated;
  convert(std::span(thread.terms), row(terms_, nterm_, world));
  thread.seconds.reward += lap(clock);
}

/// The observation after a step or a start; a world whose episode ended in this step starts if that is the mode. A
/// world that went bad has no new observation: its last one stands for it.
template <class R>
void VectorTask<R>::finish(int world, Thread& thread) {
  const auto observe = [&](AlignedVector<R>& to) {
    auto clock = Clock::now();
    task_.observe(view(world, thread), thread.observation, *thread.scratch);
    convert(std::span(thread.observation), row(to, nobs_, world));
    thread.seconds.observation += lap(clock);
  };
  if (options_.autoreset == Autoreset::same_step && !starts_[world] && (terminated_[world] || truncated_[world])) {
    if (bad_[world])
      std::ranges::copy(row(observation_, nobs_, world), row(final_observation_, nobs_, world).begin());
    else
      observe(final_observation_);
    start(world, thread);
  }
  if (starts_[world] || !bad_[world]) observe(observation_);
}

/// Puts the worlds of starts_ into the simulation.
template <class R>
void VectorTask<R>::restart() {
  if (std::any_of(starts_.begin(), starts_.end(), [](auto s) { return s != 0; }))
    batch_.reset(starts_, start_qpos_, start_qvel_);
  bad_worlds_ = 0;
  for (const auto& thread : threads_) bad_worlds_ += thread->bad;
}

template <class R>
void VectorTask<R>::reset(std::span<const std::uint8_t> mask) {
  if (!mask.empty()) check_size("mask", mask.size(), worlds());
  if (!begun_ && !mask.empty() && std::any_of(mask.begin(), mask.end(), [](auto m) { return !m; }))
    throw ValueError("mask", "some worlds", "all of them at first");
  std::fill(starts_.begin(), starts_.end(), 0);
  each_world([&](int world, Thread& thread) {
    if (!mask.empty() && !mask[world]) return;
    start(world, thread);
    reward_[world] = 0, terminated_[world] = truncated_[world] = bad_[world] = 0;
    std::fill_n(row(terms_, nterm_, world).begin(), nterm_, R(0));
    finish(world, thread);
  });
  restart();
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

template <class R>
void VectorTask<R>::step(std::span<const R> action) {
  check_size("action", action.size(), std::size_t(worlds()) * nact_);
  if (!begun_) throw ValueError("worlds", "never started", "a reset() before the first step");
  if (options_.autoreset == Autoreset::disabled) {
    for (int world = 0; world < worlds(); ++world) {
      if (terminated_[world] || truncated_[world])
        throw ValueError("world", std::to_string(world), "one that was reset since its episode ended");
    }
  }
  std::fill(starts_.begin(), starts_.end(), 0);
  each_world([&](int world, Thread& thread) {
    const bool ended = terminated_[world] || truncated_[world];
    if (options_.autoreset == Autoreset::next_step && ended)
      start(world, thread);
    else
      act(world, action, thread);
  });
  for (int substep = 0; substep < task_.substeps(); ++substep) {
    auto clock = Clock::now();
    if (threads_[0]->law) each_world([&](int world, Thread& thread) { drive(world, thread); });
    batch_.step();
    simulation_seconds_ += lap(clock);
    each_world([&](int world, Thread&) { feel(world, substep == 0); });
  }
  each_world([&](int world, Thread& thread) {
    if (starts_[world]) {
      thread.scratch->current = false;
      reward_[world] = 0, terminated_[world] = truncated_[world] = bad_[world] = 0;
      std::fill_n(row(terms_, nterm_, world).begin(), nterm_, R(0));
    } else {
      score(world, thread);
    }
    finish(world, thread);
  });
  restart();
}

template <class R>
typename VectorTask<R>::Seconds VectorTask<R>::seconds() const {
  Seconds sum{.simulation = simulation_seconds_};
  for (const auto& thread : threads_) {
    sum.action += thread->seconds.action, sum.reward += thread->seconds.reward;
    sum.observation += thread->seconds.observation, sum.start += thread->seconds.start;
  }
  return sum;
}

template class VectorTask<double>;
template class VectorTask<float>;

}  // namespace tarsus
