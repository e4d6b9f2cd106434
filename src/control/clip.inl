// Interpolation of a bound clip between its frames: position and its exact derivative. A scalar or vector is a
// polynomial in u, from 0 to 1 over a segment. A rotation is q0 Exp(b1 w1) Exp(b2 w2) Exp(b3 w3) with the cumulative
// Bernstein basis. Each factor rotates about a fixed vector, so the angular velocity in the body frame is the sum of b'
// w, each transformed by the factors to its right.  [Kim, Kim, Shin 1995]
#pragma once

#include "control/kernel_table.hpp"
#include "dynamics/integrate.inl"
#include "tarsus/math/transpose.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Displacement of a root by `count` cycles: Rz(count heading), and the sum of Rz(j heading) shift over j = 0 … count -
/// 1. It is a geometric series, so that a clip may run for any number of cycles: sum of exp(i j θ) = exp(i (count - 1)
/// θ/2) sin(count θ/2) / sin(θ/2).
template <class T>
struct ManyCycles {
  T half_s, half_c, shift_x, shift_y;  ///< sine and cosine of half the total turn

  TARSUS_INLINE ManyCycles(const ClipCycle<Real<T>>& one, T count) {
    const T half = T(Real<T>(0.5) * one.heading);
    T s, c, unused;
    sincos(half * count, half_s, half_c);
    sincos(half, s, unused);
    const Mask<T> turns = absolute(s) > T(Real<T>(1e-12));
    const T gain = select(turns, half_s / select(turns, s, T(Real<T>(1))), count);
    sincos(half * (count - T(Real<T>(1))), s, c);
    const T x = T(one.shift_x), y = T(one.shift_y);
    shift_x = gain * neg_mul_add(s, y, c * x), shift_y = gain * mul_add(s, x, c * y);
  }
  TARSUS_INLINE Vec3<T> turn(const Vec3<T>& v) const {
    const T s = (half_s + half_s) * half_c, c = neg_mul_add(half_s + half_s, half_s, T(Real<T>(1)));
    return {neg_mul_add(s, v.y, c * v.x), mul_add(s, v.x, c * v.y), v.z};
  }
};

template <class T>
TARSUS_INLINE void clip_rotation(const T* x, T u, T rate, Quat<T>& q, Vec3<T>& w) {
  const Vec3<T> w1 = get3(x + 4), w2 = get3(x + 7), w3 = get3(x + 10);
  const T one = T(Real<T>(1)), three = T(Real<T>(3)), v = one - u, u2 = u * u, v2 = v * v, scale = three * rate;
  const Quat<T> e1 = exponential(w1 * neg_mul_add(v2, v, one)), e2 = exponential(w2 * (u2 * (three - (u + u)))),
                e3 = exponential(w3 * (u2 * u));
  q = normalized(get_quat(x) * e1 * e2 * e3);
  w = mul_add(w2, scale * (u + u) * v, transpose_mul(rotation(e2), w1 * (scale * v2)));
  w = mul_add(w3, scale * u2, transpose_mul(rotation(e3), w));
}

/// qpos [nq], and qvel [nv] unless null, at u in the segments with the coefficients rows[lane], after `count` cycles.
/// @param rate du/dt  @param space [row] of packs
template <class T>
void clip_pose_kernel(const ClipView<Real<T>>& m, const Real<T>* const* rows, const T* u, const T* rate, const T* count,
                      T* space, T* qpos, T* qvel) {
  const T zero = T(Real<T>(0));
  const T* row = space;
  if constexpr (kWidth<T> == 1)
    row = rows[0];
  else
    rows_to_lanes(rows, m.row, space);
  for (int i = 0; i < m.nq; ++i) qpos[i] = T(m.rest[i]);
  for (int i = 0; qvel && i < m.nv; ++i) qvel[i] = zero;
  const bool first_cycle = all_lanes(*count == zero);  // otherwise lanes in the first cycle still give the same bits
  for (int p = 0; p < m.npiece; ++p) {
    const ClipPiece<Real<T>>& piece = m.piece[p];
    const T* x = row + piece.at;
    const bool moved = piece.cycle >= 0 && !first_cycle;
    if (piece.kind == ClipPieceKind::rotation) {
      Quat<T> q;
      Vec3<T> w;
      clip_rotation(x, *u, *rate, q, w);
      if (moved) {
        const ManyCycles<T> cycles(m.cycle[piece.cycle], *count);
        const Quat<T> turned = normalized(Quat<T>{cycles.half_c, zero, zero, cycles.half_s} * q);
        q = {select(*count == zero, q.w, turned.w), select(*count == zero, q.x, turned.x),
             select(*count == zero, q.y, turned.y), select(*count == zero, q.z, turned.z)};
      }
      put_quat(qpos + piece.qpos, q);
      if (qvel) put3(qvel + piece.qvel, w);
      continue;
    }
    const int n = piece.kind == ClipPieceKind::vector ? 3 : 1;
    Vec3<T> value, slope;
    for (int c = 0; c < n; ++c) {
      const T a = x[c], b = x[n + c], k2 = x[2 * n + c], k3 = x[3 * n + c], k3u = k3 * *u;
      value[c] = mul_add(*u, mul_add(*u, k2 + k3u, b), a);
      slope[c] = *rate * mul_add(*u, mul_add(T(Real<T>(3)), k3u, k2 + k2), b);
    }
    if (moved) {
      const ManyCycles<T> cycles(m.cycle[piece.cycle], *count);
      const Vec3<T> p = cycles.turn(value), v = cycles.turn(slope);
      value.x = select(*count == zero, value.x, p.x + cycles.shift_x);
      value.y = select(*count == zero, value.y, p.y + cycles.shift_y);
      slope.x = select(*count == zero, slope.x, v.x), slope.y = select(*count == zero, slope.y, v.y);
    }
    value.x = mul_add(*count, T(piece.turn), value.x);
    for (int c = 0; c < n; ++c) {
      qpos[piece.qpos + c] = value[c];
      if (qvel) qvel[piece.qvel + c] = slope[c];
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
