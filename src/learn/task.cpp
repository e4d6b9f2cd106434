#include "tarsus/learn/task.hpp"

#include <algorithm>

namespace tarsus {
namespace {

/// The default lanes of any task: one world after the other.
template <class R>
class WorldByWorld : public TaskLanes<R> {
 public:
  using Worlds = typename TaskLanes<R>::Worlds;

  WorldByWorld(const Task& task, int width)
      : task_(task),
        width_(width),
        qpos_(task.model().nq),
        qvel_(task.model().nv),
        action_(task.action_size()),
        target_(task.drives() ? task.model().nq : task.model().nu),
        touch_(task.model().joints.size()),
        terms_(task.terms().size()),
        observation_(task.observation_size()) {
    for (int lane = 0; lane < width; ++lane) scratch_.push_back(task.scratch());
  }

  void act(const Worlds& worlds, In<R> action, Out<R> target) override {
    for (std::size_t lane = 0; lane < width_; ++lane) {
      if (!worlds.memory[lane]) continue;
      take(action, lane, action_);
      task_.act(world(worlds, lane), action_, target_, *scratch_[lane]);
      give(target_, lane, target);
    }
  }
  void score(const Worlds& worlds, In<R> touch, Out<R> terms, std::span<Task::Score> scores) override {
    for (std::size_t lane = 0; lane < width_; ++lane) {
      if (!worlds.memory[lane]) continue;
      take(touch, lane, touch_);
      scratch_[lane]->current = false;
      scores[lane] = task_.score(world(worlds, lane), touch_, terms_, *scratch_[lane]);
      give(terms_, lane, terms);
    }
  }
  void observe(const Worlds& worlds, bool scored, Out<R> observation) override {
    for (std::size_t lane = 0; lane < width_; ++lane) {
      if (!worlds.memory[lane]) continue;
      scratch_[lane]->current = scratch_[lane]->current && scored;
      task_.observe(world(worlds, lane), observation_, *scratch_[lane]);
      give(observation_, lane, observation);
    }
  }

 private:
  Task::World world(const Worlds& worlds, std::size_t lane) {
    take(worlds.qpos, lane, qpos_), take(worlds.qvel, lane, qvel_);
    return {qpos_, qvel_, {worlds.memory[lane], std::size_t(task_.memory_size())}};
  }
  void take(In<R> from, std::size_t lane, std::vector<double>& to) const {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i * width_ + lane];
  }
  void give(const std::vector<double>& from, std::size_t lane, Out<R> to) const {
    for (std::size_t i = 0; i < from.size(); ++i) to[i * width_ + lane] = R(from[i]);
  }

  const Task& task_;
  std::size_t width_;
  std::vector<std::unique_ptr<Task::Scratch>> scratch_;  // [lane]
  std::vector<double> qpos_, qvel_, action_, target_, touch_, terms_, observation_;
};

}  // namespace

RowStageOptions Task::rows() const {
  RowStageOptions rows;
  rows.contacts = rows.joints = true;
  return rows;
}

void Task::make_lanes(int width, std::unique_ptr<TaskLanes<double>>& out) const {
  out = std::make_unique<WorldByWorld<double>>(*this, width);
}

void Task::make_lanes(int width, std::unique_ptr<TaskLanes<float>>& out) const {
  out = std::make_unique<WorldByWorld<float>>(*this, width);
}

}  // namespace tarsus
