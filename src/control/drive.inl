// Contributions of drives, springs, damping and armature to MABA's Q and K, joint by joint.  [Yin 2020, eq. 38, 40]
#pragma once

#include "control/kernel_table.hpp"
#include "dynamics/integrate.inl"
#include "tarsus/dynamics/spring_rule.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// e = Log(q̄⁻¹ ⊗ q ⊗ Exp(h ω)): error of the predicted rotation relative to its target. q and q̄ may have any length.
template <class T>
TARSUS_INLINE Vec3<T> rotation_error(const T* q, const T* target, const Vec3<T>& omega, T h) {
  return logarithm(conjugate(unit(get_quat(target))) * (unit(get_quat(q)) * exponential(omega * h)));
}

template <class T>
TARSUS_INLINE Vec3<T> minus_target(const Vec3<T>& v, const T* target) {
  return target ? v - get3(target) : v;
}

/// Adds -kp e - kd w to force, for three DoFs with common gains.
template <class T>
TARSUS_INLINE void pull3(const Vec3<T>& e, const Vec3<T>& w, T kp, T kd, T* force) {
  put3(force, mul_add(e, -kp, mul_add(w, -kd, get3(force))));
}

/// Gains of one joint: those common to all worlds times each world's own factor (kWithOwn: there may be factors).
template <bool kWithOwn, class T>
struct JointGain {
  const Real<T>* shared;
  const T* scale;  ///< null: 1
  TARSUS_INLINE T operator[](int k) const { return kWithOwn && scale ? T(shared[k]) * scale[k] : T(shared[k]); }
};
template <bool kWithOwn, class T>
TARSUS_INLINE JointGain<kWithOwn, T> stiffness_at(const DriveView<Real<T>>& drive, int dof) {
  return {drive.kp + dof, drive.kp_scale ? reinterpret_cast<const T*>(drive.kp_scale) + dof : nullptr};
}
template <bool kWithOwn, class T>
TARSUS_INLINE JointGain<kWithOwn, T> damping_at(const DriveView<Real<T>>& drive, int dof) {
  return {drive.kd + dof, drive.kd_scale ? reinterpret_cast<const T*>(drive.kd_scale) + dof : nullptr};
}
/// One value for all DoFs of a joint.
template <class T>
struct SameGain {
  T value;
  TARSUS_INLINE T operator[](int) const { return value; }
};

/// Adds the force -kp (error after h q̇) - kd (q̇ - q̄̇) of one joint. All pointers are to the joint's own numbers; vt
/// null: zero.
template <class T, class Gain>
TARSUS_INLINE void pull(JointType joint, const T* q, const T* v, const T* qt, const T* vt, const Gain& kp,
                        const Gain& kd, T h, T* force) {
  if (moves_freely(joint)) {
    for (int k = 0; k < 3; ++k) {
      const T e = mul_add(h, v[k], q[k]) - qt[k];
      const T w = vt ? v[k] - vt[k] : v[k];
      force[k] = neg_mul_add(kp[k], e, neg_mul_add(kd[k], w, force[k]));
    }
    const Vec3<T> omega = get3(v + 3);
    pull3(rotation_error(q + 3, qt + 3, omega, h), minus_target(omega, vt ? vt + 3 : vt), kp[3], kd[3], force + 3);
  } else if (turns_freely(joint)) {
    const Vec3<T> omega = get3(v);
    pull3(rotation_error(q, qt, omega, h), minus_target(omega, vt), kp[0], kd[0], force);
  } else {
    const T e = mul_add(h, v[0], q[0]) - qt[0];
    const T w = vt ? v[0] - vt[0] : v[0];
    force[0] = neg_mul_add(kp[0], e, neg_mul_add(kd[0], w, force[0]));
  }
}

/// Adds h kd (+ h² kp unless plain) to the joint's inertia.
template <class T, class Gain>
TARSUS_INLINE void stiffen(JointType joint, const Gain& kp, const Gain& kd, Real<T> h, bool plain, T* inertia) {
  const Real<T> h2 = plain ? Real<T>(0) : h * h;
  if (has_axis(joint)) {
    inertia[0] += T(h) * kd[0] + T(h2) * kp[0];
    return;
  }
  const int n = qvel_count(joint), rotation = turns_freely(joint) ? 0 : 3;  // rotations use the gains of the first DoF
  for (int k = 0; k < n; ++k) {
    const int gain = k < rotation ? k : rotation;
    inertia[k] += T(h) * kd[gain] + T(h2) * kp[gain];
  }
}

/// Adds the model's own spring and damper of one joint. The damper is implicit; the spring follows spring_rule().
/// @param rate2 as LinkConstants' spring_rate2
template <class T>
TARSUS_INLINE void spring_terms(const ModelView<Real<T>>& m, const LinkConstants<Real<T>>& link, T rate2, T damping,
                                const T* q, const T* v, Real<T> h, T* Q, T* K) {
  if (link.stiffness == 0) {
    for (int k = 0; k < qvel_count(link.joint); ++k) {
      Q[k] = neg_mul_add(damping, v[k], Q[k]);
      K[k] += damping * T(h);
    }
    return;
  }
  const SpringRule<T> rule = spring_rule(rate2, h);
  const SameGain<T> k{T(link.stiffness)}, k_inertia{rule.share * T(link.stiffness)}, d{damping};
  T rest[7];
  for (int i = 0; i < qpos_count(link.joint); ++i) rest[i] = T(m.qpos_spring[link.qpos + i]);
  pull<T>(link.joint, q, v, rest, nullptr, k, d, rule.ahead * T(h), Q);
  stiffen<T>(link.joint, k_inertia, d, h, false, K);
}

/// Whether some gain of a joint is not zero.
template <class R>
TARSUS_INLINE bool drives_joint(const DriveView<R>& drive, const LinkConstants<R>& link) {
  const int end = link.qvel + qvel_count(link.joint);
  for (int k = link.qvel; k < end; ++k) {
    if (drive.kp[k] != 0 || drive.kd[k] != 0) return true;
  }
  return false;
}

/// Q and K of one step: applied tau (null: none), the model's springs and damping, drives (kp null: none). kWithOwn:
/// the lanes may have their own gains or damping.
template <bool kWithOwn, class T>
TARSUS_INLINE void drive_terms_of(const ModelView<Real<T>>& m, const DriveView<Real<T>>& drive, const T* qpos,
                                  const T* qvel, const T* target, const T* target_velocity, const T* tau, T* Q, T* K) {
  for (int k = 0; k < m.nv; ++k) {
    Q[k] = tau ? tau[k] : T(Real<T>(0));
    K[k] = kWithOwn && m.own_armature ? reinterpret_cast<const T*>(m.own_armature)[k] : T(m.armature[k]);
  }
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const int p = link.qpos, v = link.qvel;
    if (link.stiffness > 0 || link.damping > 0) {
      const T damping = kWithOwn && m.own_damping ? reinterpret_cast<const T*>(m.own_damping)[i] : T(link.damping);
      const T rate2 =
          kWithOwn && m.own_spring_rate2 ? reinterpret_cast<const T*>(m.own_spring_rate2)[i] : T(link.spring_rate2);
      spring_terms(m, link, rate2, damping, qpos + p, qvel + v, drive.dt, Q + v, K + v);
    }
    if (!drive.kp || !drives_joint(drive, link)) continue;
    const auto kp = stiffness_at<kWithOwn, T>(drive, v);
    const auto kd = damping_at<kWithOwn, T>(drive, v);
    pull(link.joint, qpos + p, qvel + v, target + p, target_velocity ? target_velocity + v : nullptr, kp, kd,
         T(drive.dt), Q + v);
    stiffen(link.joint, kp, kd, drive.dt, drive.plain, K + v);
  }
}
template <class T>
void drive_terms_kernel(const ModelView<Real<T>>& m, const DriveView<Real<T>>& drive, const T* qpos, const T* qvel,
                        const T* target, const T* target_velocity, const T* tau, T* Q, T* K) {
  if (m.own_damping || m.own_spring_rate2 || m.own_armature || drive.kp_scale || drive.kd_scale)
    drive_terms_of<true>(m, drive, qpos, qvel, target, target_velocity, tau, Q, K);
  else
    drive_terms_of<false>(m, drive, qpos, qvel, target, target_velocity, tau, Q, K);
}

/// The force of the drives at the end of the step: pull() minus (h kd + h² kp) q̈.
template <class T>
void drive_force_kernel(const ModelView<Real<T>>& m, const DriveView<Real<T>>& drive, const T* qpos, const T* qvel,
                        const T* target, const T* target_velocity, const T* qacc, T* force) {
  const T zero = T(Real<T>(0));
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const int p = link.qpos, v = link.qvel;
    if (!drives_joint(drive, link)) {
      for (int k = 0; k < qvel_count(link.joint); ++k) force[v + k] = zero;
      continue;
    }
    T f[6] = {zero, zero, zero, zero, zero, zero}, inertia[6] = {zero, zero, zero, zero, zero, zero};
    pull(link.joint, qpos + p, qvel + v, target + p, target_velocity ? target_velocity + v : nullptr,
         stiffness_at<true, T>(drive, v), damping_at<true, T>(drive, v), T(drive.dt), f);
    stiffen(link.joint, stiffness_at<true, T>(drive, v), damping_at<true, T>(drive, v), drive.dt, drive.plain, inertia);
    for (int k = 0; k < qvel_count(link.joint); ++k) force[v + k] = neg_mul_add(inertia[k], qacc[v + k], f[k]);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
