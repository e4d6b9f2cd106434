// The numbers of ReferenceMass, from the factors of M̂ without drives.
#pragma once

#include "constraint/kernel_table.hpp"
#include "dynamics/omega.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// fᵀ Ω f.
template <class T>
TARSUS_INLINE T omega_square(const T* omega, const Force<T>& f) {
  const T force[6] = {f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z};
  T sum = T(Real<T>(0));
  for (int a = 0; a < 6; ++a) {
    T velocity = T(Real<T>(0));
    for (int b = 0; b < 6; ++b) velocity = mul_add(omega[6 * a + b], force[b], velocity);
    sum = mul_add(force[a], velocity, sum);
  }
  return sum;
}

/// @param numbers [link][5] means of the articulated inertia, linear and angular; the joint's; ReferenceMass::weight
/// and joint_weight, from the inverse inertia Ω that each link feels.
/// @param omega [link][6][6] scratch. O(nlink).
template <class T>
void reference_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, T* omega, T* numbers) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1)), three = T(Real<T>(3));
  const Vec3<T> axes[] = {{one, zero, zero}, {zero, one, zero}, {zero, zero, one}};
  const auto mean = [&](const Sym3<T>& a) { return (a.xx + a.yy + a.zz) / three; };
  for (int i = 0; i < m.nlink; ++i, numbers += 5) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    const Vec3<T> e = s.R.column_z();
    numbers[0] = mean(s.IA.M), numbers[1] = mean(s.IA.I);
    numbers[2] = !has_axis(link.joint)       ? numbers[1]
                 : turns_on_axis(link.joint) ? dot(e, s.IA.I * e)
                                             : dot(e, s.IA.M * e);
    const T* const parent = link.parent >= 0 ? omega + 36 * link.parent : nullptr;
    T* const own = omega + 36 * i;
    omega_kernel<T, T>(m, state, i, parent, own);
    const RigidInertia<T> inertia = link_inertia(m, i, s.R);
    const Vec3<T> centre = inertia.h * select(inertia.mass > zero, one / inertia.mass, zero);
    T sum = zero;
    for (const Vec3<T>& axis : axes) sum += omega_square<T>(own, {cross(centre, axis), axis});
    numbers[3] = sum / three;
    const int nv = qvel_count(link.joint), n = nv < 3 ? nv : 3;  // of a free joint: its rotations
    sum = zero;
    for (int k = nv - n; k < nv; ++k) {
      T entry[1][6] = {{zero, zero, zero, zero, zero, zero}}, W[6], DW[6];
      entry[0][k] = one;
      Force<T> f = {zero3<T>(), zero3<T>()};
      climb_joint<T, T, 1>(link.joint, s, &f, entry, W, DW, 1);
      sum += DW[k];
      if (parent) sum += omega_square(parent, f);
    }
    numbers[4] = sum / T(Real<T>(n));
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
