// Poses and velocities of all links, and the Jacobian of a point.
#pragma once

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Computes R, r and o of every link, and v unless qvel is null.
template <class T>
void kinematics_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel) {
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    joint_pose(link, qpos, state, s);
    s.o = link.parent >= 0 ? state[link.parent].o + s.r : s.r;
    if (qvel) joint_velocity(link, qvel, state, s);
  }
}

/// J [6][nv], angular rows first: velocity of the point p (world frame) fixed to link `index`. Requires kinematics.
template <class T>
void jacobian_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, int index, const T* point, T* J) {
  const T zero = T(Real<T>(0));
  for (int k = 0; k < 6 * m.nv; ++k) J[k] = zero;
  const Vec3<T> p = get3(point);
  for (int i = index; i >= 0; i = m.link[i].parent) {
    const LinkConstants<Real<T>>& link = m.link[i];
    for (int d = 0; d < qvel_count(link.joint); ++d) {
      T unit[6] = {zero, zero, zero, zero, zero, zero};
      unit[d] = T(Real<T>(1));
      const Motion<T> s = shift(joint_motion(link, state[i].R, unit), p - state[i].o);
      T* column = J + link.qvel + d;
      for (int k = 0; k < 3; ++k) column[k * m.nv] = s.w[k], column[(3 + k) * m.nv] = s.v[k];
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
