#include "tarsus/sim/loop_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tarsus {

template <class R>
LoopBound<R>::LoopBound(const Model& model, const BasicData<R>& data)
    : model_(model),
      nv_(model.nv),
      width_(data.width()),
      inertia_(model.carried_inertia.begin(), model.carried_inertia.end()),
      best_(data.size(1)),
      workspace_(model) {
  for (auto* v : {&left_, &work_, &lambda_, &pull_, &least_}) v->resize(data.size(1));
  for (auto* v : {&start_, &both_}) v->resize(data.size(model.nv));
  for (const Joint& joint : model.joints) {
    const auto D = inertia_.begin() + joint.qvel;
    if (moves_freely(joint.type)) std::fill_n(D, 6, R(0));
    if (turns_freely(joint.type)) std::fill_n(D, 3, (D[0] + D[1] + D[2]) / 3);
  }
}

template <class R>
void LoopBound<R>::begin() {
  std::fill(left_.begin(), left_.end(), std::numeric_limits<R>::max());
  tried_ = 0, damped_ = false;
}

template <class R>
void LoopBound<R>::damp(R h, In<R> qvel, Out<R> joint_force, Out<R> joint_inertia) const {
  if (!damped_) return;
  for (std::size_t i = 0; i < joint_force.size(); ++i) {
    const std::size_t pack = i / (std::size_t(nv_) * width_), dof = i / width_ % nv_;
    const R damping = lambda_[pack * width_ + i % width_] * inertia_[dof];
    joint_force[i] -= damping / h * qvel[i], joint_inertia[i] += damping;
  }
}

template <class R>
void LoopBound<R>::start(R h, In<R> qvel, In<R> qacc) {
  for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = qvel[i] + h * qacc[i];
}

template <class R>
void LoopBound<R>::set(std::size_t world, int level) {
  lambda_[world] = level == 0 ? R(0) : std::ldexp(R(1), 2 * level);
  pull_[world] = std::ldexp(R(1), -level);
}

template <class R>
R LoopBound<R>::energy_of(const BasicData<R>& data, In<R> qpos, In<R> v) {
  kinematics<R>(model_, workspace_, qpos, v);
  double sum = energy<R>(model_, workspace_, qpos, v).kinetic;
  for (int i = 0; i < nv_; ++i) sum += 0.5 * (data.joint_inertia[i] - R(model_.armature[i])) * v[i] * v[i];
  return R(sum);
}

template <class R>
bool LoopBound<R>::again(ConstrainedDynamics<R>& loops, const BasicData<R>& data, R h, In<R> qpos, In<R> qvel,
                         In<R> next) {
  const auto bounded = [](R left) { return left < std::numeric_limits<R>::max(); };
  if (tried_ > kTries || std::none_of(left_.begin(), left_.end(), bounded)) return false;
  for (std::size_t i = 0; i < both_.size(); ++i) both_[i] = start_[i] + next[i];
  loops.power(data, qpos, both_, work_);
  // Loops pass on what contacts and limits take. Only single worlds have those; there all that is solved counts too.
  if (width_ == 1 && data.worlds() == 1) {
    workspace_.own = data.own;
    work_[0] = std::min(work_[0], 2 / h * (energy_of(data, qpos, next) - energy_of(data, qpos, start_)));
  }
  bool any = false;
  for (std::size_t world = 0; world < left_.size(); ++world) {
    if (tried_ == 0) set(world, 0);
    const std::size_t first = world / width_ * nv_ * width_ + world % width_;
    R damped = 0;  // by the damping, which what is left counts as work
    for (int k = 0; k < nv_; ++k) {
      const std::size_t i = first + std::size_t(k) * width_;
      damped += inertia_[k] * start_[i] * (start_[i] + qvel[i]);
    }
    const R gain = R(0.5) * (h * work_[world] - lambda_[world] * damped) - left_[world];
    if (tried_ == 0 || gain < least_[world]) least_[world] = gain, best_[world] = tried_;
    if (!(gain > 0)) continue;
    const int level = tried_ < kTries ? tried_ + 1 : best_[world];
    any = any || level != tried_;
    set(world, level);
  }
  ++tried_;
  damped_ = damped_ || any;
  return any;
}

template class LoopBound<double>;
template class LoopBound<float>;

}  // namespace tarsus
