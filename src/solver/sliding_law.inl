// The law of a contact's three rows (tarsus/solver/term.hpp) in SIMD lanes of contacts or worlds, with select() for
// branches. With z = y - (u + R (y - c) - b)/ρ the projection is
//
//     P(z) = (max(0, z_n), z_t min(1, μ P_n/|z_t|))
#pragma once

#include "tarsus/math/vec.hpp"
#include "tarsus/solver/term.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
TARSUS_INLINE Mask<T> no_lanes() {
  return T(Real<T>(1)) < T(Real<T>(0));
}
template <class T>
TARSUS_INLINE Mask<T> every_lane() {
  return T(Real<T>(0)) < T(Real<T>(1));
}

template <class T>
TARSUS_INLINE T tiny() {
  return T(sizeof(Real<T>) == 8 ? Real<T>(1e-150) : Real<T>(1e-18));
}

/// Factor of the inverse mass in a contact's ρ.
template <class R>
inline constexpr R kSlidingPart = sizeof(R) == 8 ? R(kSlidingShare) : R(1);

/// Compliance R and metric ρ of a row's natural map, with their inverses, at the present stage; own_R is the problem's
/// R.
template <class T>
struct LaneMetric {
  T own_R, inverse_mass, R, iR, rho, irho;

  /// @param live lanes in which the row exists  @param share factor of the inverse mass in ρ
  TARSUS_INLINE void set(T compliance, Mask<T> live, Real<T> share = 1) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1)), sum = mul_add(inverse_mass, T(share), compliance);
    R = select(live, compliance, zero), iR = select(live, one / compliance, zero);
    rho = select(live, sum, zero), irho = select(live, one / sum, zero);
  }
  /// w + R: velocity per impulse of the whole row.
  TARSUS_INLINE T sum() const { return select(irho > T(Real<T>(0)), R + inverse_mass, T(Real<T>(0))); }
};

/// Rows along n, t₁, t₂: x, y, z of a Vec3. The tangents share one R and one ρ, and have no target.
template <class T>
struct SlidingRows {
  T friction;
  LaneMetric<T> normal, tangent;
  T target, centre1, centre2;
  T Gnn, G1n, G2n, G11, G12, G22;
  Vec3<T> base;    ///< γ̄
  T given_normal;  ///< bounds friction in steps with fixed friction discs

  TARSUS_INLINE void set(T normal_R, T tangent_R, Mask<T> live, Real<T> share = kSlidingPart<Real<T>>) {
    normal.set(normal_R, live, share), tangent.set(tangent_R, live, share);
  }
  void no_tangent() { Gnn = G1n = G2n = G11 = G12 = G22 = T(Real<T>(0)), base = zero3<T>(); }
};

/// Projection onto a disc of radius `bound`. Slipping rows have share = bound/length (zero for a negative bound) and
/// the direction t.
template <class T>
struct LaneDisc {
  Mask<T> slips;
  bool any;  ///< some lane slips; if none does, share is 1 and t is not used
  T share, t1, t2;
  TARSUS_INLINE LaneDisc(T z1, T z2, T bound) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1)), square = mul_add(z1, z1, z2 * z2);
    slips = (square > bound * bound) | !(bound > zero);
    any = any_lane(slips);
    share = t1 = one, t2 = zero;
    if (!any) return;
    const T length = square_root(square);
    const Mask<T> some = length > tiny<T>();
    const T inverse = one / select(some, length, one);
    share = select(slips, maximum(bound, zero) * inverse, one);
    t1 = select(some, z1 * inverse, one), t2 = select(some, z2 * inverse, zero);
  }
};

/// G of a disc's two rows: across the slip direction, and along it from the normal velocity.
/// @param g, by_normal of slipping rows
template <class T, class Rows>
TARSUS_INLINE void set_disc_tangent(const LaneDisc<T>& disc, T g, T by_normal, T iR, Mask<T> lanes, Rows& c) {
  const T zero = T(Real<T>(0));
  c.G1n = select(lanes, by_normal * disc.t1, c.G1n), c.G2n = select(lanes, by_normal * disc.t2, c.G2n);
  c.G11 = select(lanes, select(disc.slips, g * disc.t2 * disc.t2, iR), c.G11);
  c.G22 = select(lanes, select(disc.slips, g * disc.t1 * disc.t1, iR), c.G22);
  c.G12 = select(lanes, select(disc.slips, -(g * disc.t1 * disc.t2), zero), c.G12);
}

/// z of the natural map at (u, y).
template <class T>
TARSUS_INLINE Vec3<T> before_natural_projection(const SlidingRows<T>& c, const Vec3<T>& u, const Vec3<T>& y) {
  return {neg_mul_add(mul_add(c.normal.R, y.x, u.x - c.target), c.normal.irho, y.x),
          neg_mul_add(mul_add(c.tangent.R, y.y - c.centre1, u.y), c.tangent.irho, y.y),
          neg_mul_add(mul_add(c.tangent.R, y.z - c.centre2, u.z), c.tangent.irho, y.z)};
}

/// The natural map N = y - P(z) at (u, y), and with `kTangents` G and γ̄ of Newton's step. @return Σ ρ² N²
template <bool kTangents, class T>
TARSUS_INLINE T natural_map(SlidingRows<T>& c, const Vec3<T>& u, const Vec3<T>& y, [[maybe_unused]] Mask<T> lanes) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1));
  const auto [zn, z1, z2] = before_natural_projection(c, u, y);
  const T pn = maximum(zero, zn), bound = c.friction * pn;  // NaN stays NaN
  const LaneDisc<T> disc(z1, z2, bound);
  const T Nn = y.x - pn, N1 = neg_mul_add(z1, disc.share, y.y), N2 = neg_mul_add(z2, disc.share, y.z);
  const T rn = Nn * c.normal.rho, r1 = N1 * c.tangent.rho, r2 = N2 * c.tangent.rho;
  if constexpr (kTangents) {
    const Mask<T> pushes = zn > zero;
    const T Gnn = select(pushes, c.normal.iR, zero), sn = select(pushes, rn * c.normal.iR, Nn);
    const T growth = select(pushes, c.friction, zero);
    const T kn = neg_mul_add(c.normal.R, c.normal.irho, one), kt = neg_mul_add(c.tangent.R, c.tangent.irho, one);
    T g = zero, by_normal = zero, s1 = r1 * c.tangent.iR, s2 = r2 * c.tangent.iR;
    if (disc.any) {
      const T q = one / neg_mul_add(kt, disc.share, one);
      g = q * disc.share * c.tangent.irho;
      by_normal = select(disc.slips, growth * Gnn, zero);
      const T along = mul_add(disc.t1, N1, mul_add(disc.t2, N2, growth * kn * sn));
      const T across = q * (disc.t1 * N2 - disc.t2 * N1);
      s1 = select(disc.slips, disc.t1 * along - disc.t2 * across, s1);
      s2 = select(disc.slips, disc.t2 * along + disc.t1 * across, s2);
    }
    c.Gnn = select(lanes, Gnn, c.Gnn);
    set_disc_tangent(disc, g, by_normal, c.tangent.iR, lanes, c);
    c.base = select<T>(lanes, Vec3<T>{y.x - sn, y.y - s1, y.z - s2}, c.base);
  }
  return mul_add(rn, rn, mul_add(r1, r1, r2 * r2));
}

/// Largest ρ |N| with ρ = w + R and friction bounded by the normal impulse itself, computed from ρ y and ρ z.
template <class T>
TARSUS_INLINE T natural_residual(const SlidingRows<T>& c, const Vec3<T>& u, const Vec3<T>& y) {
  const T zero = T(Real<T>(0)), rho_n = c.normal.sum(), rho_t = c.tangent.sum();
  const Mask<T> none = rho_n == zero;
  const T yn = rho_n * y.x, y1 = rho_t * y.y, y2 = rho_t * y.z;
  const auto z = [&](T y, T miss) { return y - select(none, zero, miss); };
  const T zn = z(yn, mul_add(c.normal.R, y.x, u.x - c.target));
  const T z1 = z(y1, mul_add(c.tangent.R, y.y - c.centre1, u.y));
  const T z2 = z(y2, mul_add(c.tangent.R, y.z - c.centre2, u.z));
  const LaneDisc<T> disc(z1, z2, c.friction * rho_t * maximum(y.x, zero));
  const T Nn = yn - maximum(zn, zero), N1 = neg_mul_add(z1, disc.share, y1), N2 = neg_mul_add(z2, disc.share, y2);
  return maximum(absolute(Nn), maximum(absolute(N1), absolute(N2)));
}

/// γ = P(y) and G = -∂γ/∂(J v) at y = c + (b - J v)/R. @param given friction is bounded by given_normal
template <class T>
TARSUS_INLINE Vec3<T> law_at(SlidingRows<T>& c, const Vec3<T>& y, bool given, bool tangents, Mask<T> lanes) {
  const T zero = T(Real<T>(0));
  const Mask<T> pushes = y.x > zero;
  const T gn = select(pushes, y.x, zero);
  const LaneDisc<T> disc(y.y, y.z, c.friction * (given ? c.given_normal : gn));
  const Vec3<T> gamma = {gn, y.y * disc.share, y.z * disc.share};
  if (!tangents) return gamma;
  const T Gnn = select(pushes, c.normal.iR, zero), g = disc.share * c.tangent.iR;
  const T by_normal = given ? zero : select(disc.slips, c.friction * Gnn, zero);
  c.Gnn = select(lanes, Gnn, c.Gnn);
  set_disc_tangent(disc, g, by_normal, c.tangent.iR, lanes, c);
  c.base = select<T>(lanes, gamma, c.base);
  return gamma;
}

/// y before projection at the velocity u.
template <class T>
TARSUS_INLINE Vec3<T> before_projection(const SlidingRows<T>& c, const Vec3<T>& u) {
  return {(c.target - u.x) * c.normal.iR, neg_mul_add(u.y, c.tangent.iR, c.centre1),
          neg_mul_add(u.z, c.tangent.iR, c.centre2)};
}

/// The velocity u whose impulse before projection is y.
template <class T>
TARSUS_INLINE Vec3<T> velocity_of(const SlidingRows<T>& c, const Vec3<T>& y) {
  return {neg_mul_add(y.x, c.normal.R, c.target), (c.centre1 - y.y) * c.tangent.R, (c.centre2 - y.z) * c.tangent.R};
}

/// G x of SlidingRows, or of another struct with such a G.
template <class T, template <class> class Contact>
requires requires(Contact<T> c) { c.Gnn; }
TARSUS_INLINE Vec3<T> times(const Contact<T>& c, const Vec3<T>& x) {
  return {c.Gnn * x.x, mul_add(c.G1n, x.x, mul_add(c.G11, x.y, c.G12 * x.z)),
          mul_add(c.G2n, x.x, mul_add(c.G12, x.y, c.G22 * x.z))};
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
