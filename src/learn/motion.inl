// Motion tracking: targets from actions, errors of the reward, and observations. The beginning of
// tarsus/learn/motion_task.hpp has the definitions.
#pragma once

#include "dynamics/integrate.inl"
#include "learn/kernel_table.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
TARSUS_INLINE T square(const Vec3<T>& v) {
  return dot(v, v);
}

/// Squared angle between two orientations.
template <class T>
TARSUS_INLINE T square_angle(const Quat<T>& a, const Quat<T>& b) {
  return square(logarithm(conjugate(a) * b));
}

/// Rotation about z from world axes to the heading frame: x is the horizontal direction of the root's x axis.
template <class T>
struct Heading {
  T c, s;

  TARSUS_INLINE explicit Heading(const Mat3<T>& root) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1)),
            length = square_root(mul_add(root.xx, root.xx, root.yx * root.yx));
    const Mask<T> points = length > zero;  // else the x axis is vertical
    const T scale = one / select(points, length, one);
    c = select(points, root.xx * scale, one), s = select(points, root.yx * scale, zero);
  }
  TARSUS_INLINE Vec3<T> in(const Vec3<T>& v) const {
    return {mul_add(c, v.x, s * v.y), neg_mul_add(s, v.x, c * v.y), v.z};
  }
};

template <class T>
TARSUS_INLINE Vec3<T> point_at(const LinkState<T>& link, const Real<T>* p) {
  return link.o + link.R * load3<T>(p);
}

/// @param clip [nq] pose to which actions are added; null: actions are the targets  @param action [nv - 6]
template <class T>
void motion_targets_kernel(const ModelView<Real<T>>& m, const T* qpos, const T* clip, const T* action, T* target) {
  for (int i = 0; i < 7; ++i) target[i] = qpos[i];
  for (int j = 1; j < m.nlink; ++j) {
    const LinkConstants<Real<T>>& link = m.link[j];
    const T* a = action + link.qvel - 6;
    if (turns_freely(link.joint)) {
      const Quat<T> q = exponential(get3(a));
      put_quat(target + link.qpos, clip ? normalized(get_quat(clip + link.qpos) * q) : q);
    } else {
      target[link.qpos] = clip ? clip[link.qpos] + a[0] : a[0];
    }
  }
}

/// Weighted sums over joints: squared angles or distances, and squared velocity differences.
template <class T>
TARSUS_INLINE void joint_errors(const ModelView<Real<T>>& m, const MotionView<Real<T>>& task, T root_angle,
                                T root_velocity, const T* qpos, const T* qvel, const T* clip_qpos, const T* clip_qvel,
                                T& pose, T& velocity) {
  pose = T(task.joint_weight[0]) * root_angle, velocity = T(task.joint_weight[0]) * root_velocity;
  for (int j = 1; j < m.nlink; ++j) {
    const int q = m.link[j].qpos, v = m.link[j].qvel;
    T angle, speed;
    if (turns_freely(m.link[j].joint)) {
      angle = square_angle(get_quat(qpos + q), get_quat(clip_qpos + q));
      speed = square(get3(qvel + v) - get3(clip_qvel + v));
    } else {
      const T d = qpos[q] - clip_qpos[q], w = qvel[v] - clip_qvel[v];
      angle = d * d, speed = w * w;
    }
    pose = mul_add(T(task.joint_weight[j]), angle, pose), velocity = mul_add(T(task.joint_weight[j]), speed, velocity);
  }
}

/// Sum of the squared distances of the points from their places in the clip.
template <class T>
TARSUS_INLINE T point_errors(const MotionView<Real<T>>& task, const LinkState<T>* ours, const LinkState<T>* theirs,
                             const Vec3<T>& p, const Vec3<T>& p_clip) {
  const Heading<T> heading(ours[0].R), heading_clip(theirs[0].R);
  T sum = T(Real<T>(0));
  for (int i = 0; i < task.npoint; ++i) {
    const auto& point = task.point[i];
    const Vec3<T> a = point_at(ours[point.link], point.position), b = point_at(theirs[point.link], point.position);
    if (task.mimickit)
      sum += square((a - p) - (b - p_clip));
    else
      sum += square(heading.in({a.x - p.x, a.y - p.y, a.z}) - heading_clip.in({b.x - p_clip.x, b.y - p_clip.y, b.z}));
  }
  return sum;
}

template <class T>
void motion_score_kernel(const ModelView<Real<T>>& m, const MotionView<Real<T>>& task, const LinkState<T>* ours,
                         const LinkState<T>* theirs, const T* qpos, const T* qvel, const T* clip_qpos,
                         const T* clip_qvel, T* out) {
  using R = Real<T>;
  const Vec3<T> p = get3(qpos), p_clip = get3(clip_qpos);
  const T tilt = square_angle(get_quat(qpos + 3), get_quat(clip_qpos + 3));
  const T root_v = square(ours[0].v.v - theirs[0].v.v), root_w = square(ours[0].v.w - theirs[0].v.w);
  const T root_pose = mul_add(T(R(0.1)), tilt, square(p - p_clip));
  T error[kMotionTerms];
  joint_errors(m, task, tilt, root_w, qpos, qvel, clip_qpos, clip_qvel, error[0], error[1]);
  const T points = point_errors(task, ours, theirs, p, p_clip);

  T farthest = T(R(0));
  Vec3<T> com_velocity = zero3<T>();
  for (int i = 0; i < task.nbody; ++i) {
    const auto& body = task.body[i];
    const LinkState<T>&a = ours[body.link], &b = theirs[body.link];
    farthest = maximum(farthest, square(point_at(a, body.origin) - point_at(b, body.origin)));
    const Vec3<T> com = load3<T>(body.com);
    com_velocity = mul_add(shift(a.v, a.R * com).v - shift(b.v, b.R * com).v, T(body.mass), com_velocity);
  }
  if (task.mimickit) {
    error[2] = root_pose, error[3] = mul_add(T(R(0.1)), root_w, root_v), error[4] = points;
  } else {
    error[2] = task.npoint > 0 ? points / T(R(task.npoint)) : points;
    error[3] = mul_add(T(R(0.01)), root_v, mul_add(T(R(0.001)), root_w, root_pose));
    error[4] = T(R(0.1)) * square(com_velocity);
  }
  T reward = T(R(0));
  for (int i = 0; i < kMotionTerms; ++i) {
    out[i] = exp_of_negative(T(-task.scale[i]) * error[i]);
    reward = mul_add(T(task.weight[i]), out[i], reward);
  }
  out[kMotionReward] = reward, out[kMotionTilt] = tilt, out[kMotionDistance] = farthest;
}

/// Height of the root, then 15 numbers for each body.
template <class T>
void motion_observe_kernel(const MotionView<Real<T>>& task, const LinkState<T>* ours, const T* qpos, T* out) {
  const Heading<T> heading(ours[0].R);
  const Vec3<T> root = get3(qpos);
  *out++ = root.z;
  for (int i = 0; i < task.nbody; ++i, out += 15) {
    const auto& body = task.body[i];
    const LinkState<T>& link = ours[body.link];
    const Vec3<T> com = link.R * load3<T>(body.com);
    put3(out, heading.in(link.o + com - root));
    put3(out + 3, heading.in(link.R * load3<T>(body.z_axis)));
    put3(out + 6, heading.in(link.R * load3<T>(body.x_axis)));
    put3(out + 9, heading.in(shift(link.v, com).v));
    put3(out + 12, heading.in(link.v.w));
  }
}

/// Running maximum of the length of n forces; on the first call their lengths.
template <class T>
void largest_force_kernel(const T* force, int n, bool first, T* largest) {
  for (int i = 0; i < n; ++i) {
    const T length = norm(get3(force + 3 * i));
    largest[i] = first ? length : maximum(length, largest[i]);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
