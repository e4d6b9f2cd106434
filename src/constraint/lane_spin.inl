// Torsional and rolling friction of a contact in SIMD lanes: moments about n, t₁, t₂ against the relative angular
// velocity of the links, bounded by the contact's normal impulse.
//
//     torsion  |γ_s| <= torsional γ_n,     rolling  ‖(γ_1, γ_2)‖ <= rolling γ_n
//
// They are stored apart from their contact, so that contacts with sliding friction alone, nearly all, cost nothing
// more.
#pragma once

#include "constraint/lane_rows.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// x of a Vec3 belongs to torsion, y and z to rolling. The three rows share R and ρ.
template <class T>
struct LaneSpin {
  LaneContact<T>* contact;
  Mask<T> live;
  T torsional, rolling;  ///< [m]; zero in lanes whose contact has no such rows
  LaneMetric<T> metric;
  Vec3<T> centre, free;
  LaneIterates<Vec3<T>> at;
  T Gss, Gsn, G1n, G2n, G11, G12, G22;  ///< n: by the contact's normal velocity
  Vec3<T> base;

  void no_tangent() { Gss = Gsn = G1n = G2n = G11 = G12 = G22 = T(Real<T>(0)), base = zero3<T>(); }
};

/// z clamped to ±bound. A slipping row has a sign.
template <class T>
struct LaneInterval {
  Mask<T> slips;
  T projected, sign;
  TARSUS_INLINE LaneInterval(T z, T bound) {
    const T one = T(Real<T>(1));
    slips = !(absolute(z) < bound);
    projected = clamp(z, -bound, bound), sign = select(z < T(Real<T>(0)), -one, one);
  }
};

/// @param g ∂γ/∂(J v) of rolling across its slip direction  @param base γ̄
template <class T>
TARSUS_INLINE void set_tangent(LaneSpin<T>& s, const LaneInterval<T>& torsion, const LaneDisc<T>& disc, T by_torsion,
                               T by_disc, T g, const Vec3<T>& base, Mask<T> lanes) {
  const T iR = s.metric.iR;
  s.Gss = select(lanes, select(torsion.slips, T(Real<T>(0)), iR), s.Gss), s.Gsn = select(lanes, by_torsion, s.Gsn);
  set_disc_tangent(disc, g, by_disc, iR, lanes, s);
  s.base = select<T>(lanes, base, s.base);
}

/// The natural map of the rows, at the contact's normal velocity un and impulse yn.
template <bool kTangents, class T>
TARSUS_INLINE T natural_map(LaneSpin<T>& s, T un, T yn, const Vec3<T>& u, const Vec3<T>& y,
                            [[maybe_unused]] Mask<T> lanes) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1));
  const LaneContact<T>& c = *s.contact;
  const LaneMetric<T>& m = s.metric;
  const T zn = neg_mul_add(mul_add(c.normal.R, yn, un - c.target), c.normal.irho, yn), pn = maximum(zn, zero);
  const Vec3<T> z = mul_add(mul_add(y - s.centre, m.R, u), -m.irho, y);
  const LaneInterval<T> torsion(z.x, s.torsional * pn);
  const LaneDisc<T> disc(z.y, z.z, s.rolling * pn);
  const T Ns = y.x - torsion.projected, N1 = neg_mul_add(z.y, disc.share, y.y), N2 = neg_mul_add(z.z, disc.share, y.z);
  if constexpr (kTangents) {
    const Mask<T> pushes = zn > zero;
    const T Gnn = select(pushes, c.normal.iR, zero), Nn = yn - pn;
    const T grown = neg_mul_add(c.normal.R, c.normal.irho, one) * select(pushes, Nn * c.normal.rho * c.normal.iR, zero);
    const T inside = m.rho * m.iR, k = neg_mul_add(m.R, m.irho, one);
    const T q = one / neg_mul_add(k, disc.share, one), g = q * disc.share * m.irho;
    const T by_torsion = select(torsion.slips, s.torsional * torsion.sign, zero);
    const T by_disc = select(disc.slips, s.rolling * Gnn, zero);
    const T along = mul_add(disc.t1, N1, mul_add(disc.t2, N2, s.rolling * grown));
    const T across = q * (disc.t1 * N2 - disc.t2 * N1);
    const Vec3<T> step = {select(torsion.slips, mul_add(by_torsion, grown, Ns), Ns * inside),
                          select(disc.slips, disc.t1 * along - disc.t2 * across, N1 * inside),
                          select(disc.slips, disc.t2 * along + disc.t1 * across, N2 * inside)};
    set_tangent(s, torsion, disc, by_torsion * Gnn, by_disc, g, y - step, lanes);
  }
  return mul_add(Ns, Ns, mul_add(N1, N1, N2 * N2)) * (m.rho * m.rho);
}
/// The same at the contact's present iterate.
template <bool kTangents, class T>
TARSUS_INLINE T natural_map(LaneSpin<T>& s, const Vec3<T>& u, const Vec3<T>& y, Mask<T> lanes) {
  return natural_map<kTangents>(s, s.contact->at.now_u.x, s.contact->at.now_y.x, u, y, lanes);
}

/// @param given true: bounded by the contact's given_normal; false: by its normal impulse at its now_u
template <class T>
TARSUS_INLINE Vec3<T> law(LaneSpin<T>& s, const Vec3<T>& u, bool given, bool tangents, Mask<T> lanes) {
  const T zero = T(Real<T>(0));
  const LaneContact<T>& c = *s.contact;
  const LaneMetric<T>& m = s.metric;
  const T yn = (c.target - c.at.now_u.x) * c.normal.iR, bound = given ? c.given_normal : maximum(yn, zero);
  const Vec3<T> y = mul_add(u, -m.iR, s.centre);
  const LaneInterval<T> torsion(y.x, s.torsional * bound);
  const LaneDisc<T> disc(y.y, y.z, s.rolling * bound);
  const Vec3<T> gamma = {torsion.projected, y.y * disc.share, y.z * disc.share};
  if (!tangents) return gamma;
  const T Gnn = given ? zero : select(yn > zero, c.normal.iR, zero), g = disc.share * m.iR;
  const T by_torsion = select(torsion.slips, s.torsional * torsion.sign * Gnn, zero);
  set_tangent(s, torsion, disc, by_torsion, select(disc.slips, s.rolling * Gnn, zero), g, gamma, lanes);
  return gamma;
}

template <class T>
TARSUS_INLINE Vec3<T> before_projection(const LaneSpin<T>& s, const Vec3<T>& u) {
  return mul_add(u, -s.metric.iR, s.centre);
}
template <class T>
TARSUS_INLINE Vec3<T> velocity_of(const LaneSpin<T>& s, const Vec3<T>& y) {
  return (s.centre - y) * s.metric.R;
}

template <class T>
TARSUS_INLINE T natural_residual(const LaneSpin<T>& s) {
  const LaneMetric<T>& m = s.metric;
  const Vec3<T>&u = s.at.now_u, &y = s.at.now_y;
  const Vec3<T> z = mul_add(mul_add(y - s.centre, m.R, u), -m.irho, y);
  const T bound = maximum(s.contact->at.now_y.x, T(Real<T>(0)));
  const LaneInterval<T> torsion(z.x, s.torsional * bound);
  const LaneDisc<T> disc(z.y, z.z, s.rolling * bound);
  const T Ns = y.x - torsion.projected, N1 = neg_mul_add(z.y, disc.share, y.y), N2 = neg_mul_add(z.z, disc.share, y.z);
  return maximum(absolute(Ns), maximum(absolute(N1), absolute(N2))) * m.rho;
}

template <class T>
TARSUS_INLINE void bound(LaneSpin<T>&, Mask<T>) {}

}  // namespace TARSUS_ISA
}  // namespace tarsus
