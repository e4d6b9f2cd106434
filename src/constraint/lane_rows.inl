// The rows of lane_terms.hpp and their laws in SIMD lanes: the formulas of solver/law.hpp with select() for branches.
//
// A row that does not exist in some lane has zero inverse numbers there, so that its impulse stays zero.
#pragma once

#include "constraint/lane_view.hpp"
#include "solver/sliding_law.inl"
#include "tarsus/constraint/spook.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The same integer in all lanes.
template <class T>
TARSUS_INLINE Bits<T> all_bits(int x) {
  return Bits<T>{} + typename std::remove_reference_t<decltype(std::declval<Bits<T>>()[0])>(x);
}

/// Velocity J v and impulse y of a row, or of three rows: of the present iterate, of the linear problem's solution, and
/// of the best iterate.
template <class X>
struct LaneIterates {
  X now_u, now_y, next_u, next_y, best_u, best_y;
};

/// A contact with rows along n, t₁, t₂. x of a Vec3 belongs to the normal.
template <class T>
struct LaneContact : SlidingRows<T> {
  Mask<T> live;
  Bits<T> key;   ///< the same from step to step in each lane; 0: none
  Bits<T> pair;  ///< index in LaneModel::pair
  int link;      ///< of a contact with the world; -1: between links a and b, which differ from lane to lane
  int next;      ///< the next contact of this link with the world; -1: none
  int spin;      ///< index in LaneSpace::spin of its torsional and rolling friction; -1: none in any lane
  Bits<T> a, b;
  int touch, ntouch_a, ntouch_b;  ///< between links: first LaneTouch, and the number on each side
  Vec3<T> n, t1, t2, point, arm_a, arm_b;
  T distance, compliance, damping_time, relative_compliance;
  T gap;         ///< the gap that the softness acts on
  T share;       ///< of LaneSolverRow; if not 0, damping_time is its pull
  Vec3<T> free;  ///< J v⁰
  LaneIterates<Vec3<T>> at;
};

/// A link on one side of a contact between links, with its lanes. Motions and forces of all lanes' links are read and
/// written link by link under masks, which costs less than a gather for each number.
template <class T>
struct LaneTouch {
  int link;
  Mask<T> lanes;
};

/// What the linear problem needs of contacts between links, one a lane: their forces, or the moments of their torsional
/// and rolling friction.
template <class T>
struct LaneExtra {
  bool moment;
  Mask<T> live;
  Bits<T> a, b;
  int touch, ntouch_a, ntouch_b;
  Vec3<T> n, t1, t2, arm_a, arm_b;
  Vec3<T> force;
  T Gnn, Gss, Gsn, G1n, G2n, G11, G12, G22;  ///< Gnn: of forces; Gss, and Gsn by the normal velocity: of moments
};

/// One of them: extra[slot] in this lane.
struct LaneItem {
  int lane, slot;
};

/// A row on one joint: a range, dry friction, or the drive of a hinge or slide. Or a row along a generalised direction:
/// a force between bounds, or a bilateral row J v⁺ + R y = target.
template <class T>
struct LaneJointRow {
  enum class Kind { limit, loss, drive, force, bilateral };
  Kind kind;
  int joint, place;  ///< index in the warm-start cache
  int path;          ///< index in LaneModel::path; -1: none. With a path, the joint's members are of rows on one joint
  bool axial;
  Mask<T> live;
  Vec3<T> e;  ///< axial: x = ±1, or an arm; else world axes
  T lower, upper, target, centre, free;
  LaneMetric<T> metric;
  LaneIterates<T> at;
  T G, base;

  bool bilateral() const { return kind == Kind::bilateral; }
  /// Marks lanes in which a bilateral row holds: G is not zero there, elsewhere the row's impulse is `base`. metric.R
  /// is its R, negative until the first linear solve has set it.
  TARSUS_INLINE void hold(Mask<T> lanes) { G = select(lanes, T(Real<T>(1)), G); }
  void no_tangent() { G = base = T(Real<T>(0)); }
  /// Copies these lanes of another row to this one.
  void take(Mask<T> lanes, const LaneJointRow& from) {
    const auto both = [&](T& to, const T& x) { to = select(lanes, x, to); };
    both(lower, from.lower), both(upper, from.upper), both(target, from.target);
    both(centre, from.centre), both(free, from.free);
    live = live | lanes, e = select<T>(lanes, from.e, e);
    both(metric.own_R, from.metric.own_R), both(metric.inverse_mass, from.metric.inverse_mass);
    both(metric.R, from.metric.R), both(metric.iR, from.metric.iR);
    both(metric.rho, from.metric.rho), both(metric.irho, from.metric.irho);
    both(at.best_u, from.at.best_u), both(at.best_y, from.at.best_y);
  }
};

/// The drive of a ball joint: |γ| <= radius.
template <class T>
struct LaneBallRow {
  int joint, place;
  T radius;
  Vec3<T> target, free;
  LaneMetric<T> metric;
  LaneIterates<Vec3<T>> at;
  Sym3<T> G;
  Vec3<T> base;

  void no_tangent() { G = zero(), base = zero3<T>(); }
  static Sym3<T> zero() { return diagonal3(T(Real<T>(0)), T(Real<T>(0)), T(Real<T>(0))); }
  TARSUS_INLINE void set_tangent(Mask<T> lanes, const Sym3<T>& g, const Vec3<T>& to) {
    G = {select(lanes, g.xx, G.xx), select(lanes, g.xy, G.xy), select(lanes, g.xz, G.xz),
         select(lanes, g.yy, G.yy), select(lanes, g.yz, G.yz), select(lanes, g.zz, G.zz)};
    base = select<T>(lanes, to, base);
  }
  /// Tangent g - along t tᵀ.
  TARSUS_INLINE void set_tangent(Mask<T> lanes, T g, T along, const Vec3<T>& t, const Vec3<T>& to) {
    set_tangent(lanes,
                {neg_mul_add(along * t.x, t.x, g), -(along * t.x * t.y), -(along * t.x * t.z),
                 neg_mul_add(along * t.y, t.y, g), -(along * t.y * t.z), neg_mul_add(along * t.z, t.z, g)},
                to);
  }
};

/// Projection onto a ball of the given radius: the factor of the vector, and the direction in which it is clipped.
template <class T>
struct LaneBall {
  Mask<T> outside;
  bool any;                        ///< some lane is outside; if none is, no square root is taken
  T share = T(Real<T>(1));         ///< factor of the vector; 1 inside
  Vec3<T> direction = zero3<T>();  ///< zero inside

  TARSUS_INLINE LaneBall(const Vec3<T>& z, T radius) : outside(dot(z, z) > radius * radius), any(any_lane(outside)) {
    if (!any) return;
    const T inverse = share / maximum(norm(z), tiny<T>());
    share = select(outside, radius * inverse, share);
    direction = select<T>(outside, z * inverse, direction);
  }
};

/// natural_map() of the other rows. Bilateral rows hold in every solution of the linear problem.
template <bool kTangents, class T>
TARSUS_INLINE T natural_map(LaneJointRow<T>& r, T u, T y, [[maybe_unused]] Mask<T> lanes) {
  const T zero = T(Real<T>(0));
  if (r.bilateral()) {
    if constexpr (kTangents) r.hold(lanes);
    return zero;
  }
  const LaneMetric<T>& m = r.metric;
  const T z = neg_mul_add(mul_add(m.R, y - r.centre, u - r.target), m.irho, y);
  const T N = y - clamp(z, r.lower, r.upper), miss = N * m.rho;
  if constexpr (kTangents) {
    const Mask<T> inside = (z > r.lower) & (z < r.upper);
    r.G = select(lanes, select(inside, m.iR, zero), r.G);
    r.base = select(lanes, y - select(inside, miss * m.iR, N), r.base);
  }
  return miss * miss;
}
template <bool kTangents, class T>
TARSUS_INLINE T natural_map(LaneBallRow<T>& r, const Vec3<T>& u, const Vec3<T>& y, [[maybe_unused]] Mask<T> lanes) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1));
  const LaneMetric<T>& m = r.metric;
  const Vec3<T> z = mul_add(mul_add(y, m.R, u - r.target), -m.irho, y);
  const LaneBall<T> ball(z, r.radius);
  const Vec3<T> N = mul_add(z, -ball.share, y);
  if constexpr (kTangents) {
    const Vec3<T> s_in = N * (m.rho * m.iR);
    if (!ball.any) {
      r.set_tangent(lanes, m.iR, zero, ball.direction, y - s_in);
    } else {
      const T k = neg_mul_add(m.R, m.irho, one), q = one / neg_mul_add(k, ball.share, one);
      const T g = select(ball.outside, ball.share * q * m.irho, m.iR);
      const Vec3<T> part = ball.direction * dot(ball.direction, N), s_out = mul_add(N - part, q, part);
      r.set_tangent(lanes, g, select(ball.outside, g, zero), ball.direction, y - select<T>(ball.outside, s_out, s_in));
    }
  }
  return dot(N, N) * m.rho * m.rho;
}

/// y before projection at the velocity u.
template <class T>
TARSUS_INLINE T before_projection(const LaneJointRow<T>& r, T u) {
  return mul_add(r.target - u, r.metric.iR, r.centre);
}
template <class T>
TARSUS_INLINE Vec3<T> before_projection(const LaneBallRow<T>& r, const Vec3<T>& u) {
  return (r.target - u) * r.metric.iR;
}

/// γ = P(y) and G = -∂γ/∂(J v) at the velocity u, with y = c + (b - u)/R.
/// @param given friction is bounded by given_normal
template <class T>
TARSUS_INLINE Vec3<T> law(LaneContact<T>& c, const Vec3<T>& u, bool given, bool tangents, Mask<T> lanes) {
  return law_at(c, before_projection(c, u), given, tangents, lanes);
}
template <class T>
TARSUS_INLINE T law(LaneJointRow<T>& r, T u, bool, bool tangents, Mask<T> lanes) {
  if (r.bilateral()) {
    if (tangents) r.hold(lanes);
    return r.at.now_y;
  }
  const T y = before_projection(r, u), gamma = clamp(y, r.lower, r.upper);
  if (!tangents) return gamma;
  r.G = select(lanes, select((y > r.lower) & (y < r.upper), r.metric.iR, T(Real<T>(0))), r.G);
  r.base = select(lanes, gamma, r.base);
  return gamma;
}
template <class T>
TARSUS_INLINE Vec3<T> law(LaneBallRow<T>& r, const Vec3<T>& u, bool, bool tangents, Mask<T> lanes) {
  const Vec3<T> y = before_projection(r, u);
  const LaneBall<T> ball(y, r.radius);
  const Vec3<T> gamma = y * ball.share;
  if (!tangents) return gamma;
  const T zero = T(Real<T>(0)), g = ball.share * r.metric.iR;
  r.set_tangent(lanes, g, select(ball.outside, g, zero), ball.direction, gamma);
  return gamma;
}

/// The velocity u whose impulse before projection is y.
template <class T>
TARSUS_INLINE T velocity_of(const LaneJointRow<T>& r, T y) {
  return mul_add(r.centre - y, r.metric.R, r.target);
}
template <class T>
TARSUS_INLINE Vec3<T> velocity_of(const LaneBallRow<T>& r, const Vec3<T>& y) {
  return mul_add(y, -r.metric.R, r.target);
}

/// Largest ρ |N|.
template <class T>
TARSUS_INLINE T natural_residual(const LaneContact<T>& c) {
  return natural_residual(c, c.at.now_u, c.at.now_y);
}
template <class T>
TARSUS_INLINE T natural_residual(const LaneJointRow<T>& r) {
  if (r.bilateral()) return T(Real<T>(0));
  const LaneMetric<T>& m = r.metric;
  const T z = neg_mul_add(mul_add(m.R, r.at.now_y - r.centre, r.at.now_u - r.target), m.irho, r.at.now_y);
  return absolute(r.at.now_y - clamp(z, r.lower, r.upper)) * m.rho;
}
template <class T>
TARSUS_INLINE T natural_residual(const LaneBallRow<T>& r) {
  const LaneMetric<T>& m = r.metric;
  const Vec3<T>& y = r.at.now_y;
  const Vec3<T> z = mul_add(mul_add(y, m.R, r.at.now_u - r.target), -m.irho, y);
  const Vec3<T> N = mul_add(z, -LaneBall<T>(z, r.radius).share, y);
  return maximum(absolute(N.x), maximum(absolute(N.y), absolute(N.z))) * m.rho;
}

/// Whether an impulse is in its set, to within `excess` of the set's size. For joints' rows only.
template <class T>
TARSUS_INLINE Mask<T> is_within_set(const LaneJointRow<T>& r, Real<T> excess) {
  const T zero = T(Real<T>(0)), most = T(std::numeric_limits<Real<T>>::max());
  const T low = absolute(r.lower), high = absolute(r.upper);
  const T size = maximum(select(low <= most, low, zero), select(high <= most, high, zero));
  const T slack = T(excess) * select(size > zero, size, T(Real<T>(1)));
  return (r.lower - r.at.now_y <= slack) & (r.at.now_y - r.upper <= slack);
}
template <class T>
TARSUS_INLINE Mask<T> is_within_set(const LaneBallRow<T>& r, Real<T> excess) {
  const T zero = T(Real<T>(0)), most = select(r.radius > zero, r.radius * T(1 + excess), T(excess));
  return dot(r.at.now_y, r.at.now_y) <= most * most;
}
/// Fixes the impulse at its projection onto its set.
template <class T>
TARSUS_INLINE void bound(LaneJointRow<T>& r, Mask<T> lanes) {
  if (r.bilateral()) return;
  r.G = select(lanes, T(Real<T>(0)), r.G);
  r.base = select(lanes, clamp(r.at.now_y, r.lower, r.upper), r.base);
}
template <class T>
TARSUS_INLINE void bound(LaneBallRow<T>& r, Mask<T> lanes) {
  r.set_tangent(lanes, r.zero(), r.at.now_y * LaneBall<T>(r.at.now_y, r.radius).share);
}

template <class T>
TARSUS_INLINE void bound(LaneContact<T>&, Mask<T>) {}  // contacts have no bounds besides their law

/// G x of moments (LaneSpin or LaneExtra).
/// @param n change of the contact's normal velocity  @param turn change of the angular velocities
template <class T, template <class> class Moments>
requires requires(Moments<T> s) { s.Gss; }
TARSUS_INLINE Vec3<T> times(const Moments<T>& s, T n, const Vec3<T>& turn) {
  return {mul_add(s.Gsn, n, s.Gss * turn.x), mul_add(s.G1n, n, mul_add(s.G11, turn.y, s.G12 * turn.z)),
          mul_add(s.G2n, n, mul_add(s.G12, turn.y, s.G22 * turn.z))};
}
template <class Row, class X>
requires requires(Row r) { r.G; }
TARSUS_INLINE X times(const Row& r, const X& x) { return r.G * x; }
template <class T>
TARSUS_INLINE T sum_product(T a, T b) {
  return a * b;
}
template <class T>
TARSUS_INLINE T sum_product(const Vec3<T>& a, const Vec3<T>& b) {
  return dot(a, b);
}

/// R x, and x / R where there is a row.
template <class T>
TARSUS_INLINE Vec3<T> times_R(const LaneContact<T>& c, const Vec3<T>& x) {
  return {x.x * c.normal.R, x.y * c.tangent.R, x.z * c.tangent.R};
}
template <class T>
TARSUS_INLINE Vec3<T> times_iR(const LaneContact<T>& c, const Vec3<T>& x) {
  return {x.x * c.normal.iR, x.y * c.tangent.iR, x.z * c.tangent.iR};
}
template <class Row, class X>
requires requires(Row r) { r.metric; }
TARSUS_INLINE X times_R(const Row& r, const X& x) { return x * r.metric.R; }
template <class Row, class X>
requires requires(Row r) { r.metric; }
TARSUS_INLINE X times_iR(const Row& r, const X& x) { return x * r.metric.iR; }

/// b and R of SPOOK for a row that keeps g >= 0 (spook.hpp). own_R: 0 without a compliance in the model.
/// @param relative_compliance [m/N] used where `compliance` is 0
template <class T>
struct LaneSpook {
  T target, own_R;
  TARSUS_INLINE LaneSpook(T compliance, T damping_time, T g, T speed, Real<T> h, T fastest,
                          T relative_compliance = T(Real<T>(0)), Real<T> restitution = 0, Real<T> threshold = 0) {
    const T zero = T(Real<T>(0)), one = T(Real<T>(1)), four = T(Real<T>(4));
    const T tau = select(damping_time > zero, damping_time, T(Real<T>(kDampingSteps) * h));
    const T share = one / mul_add(tau, four * T(1 / h), one);
    const T gap = select(compliance == zero, maximum(g, -(fastest * tau)), g);
    own_R = four * select(compliance == zero, relative_compliance, compliance) * share * T(1 / (h * h));
    const T slowed = maximum(share * neg_mul_add(gap, T(4 / h), speed), T(Real<T>(-kDeepestStep) / h));
    target = select(gap > zero, gap * T(-1 / h), slowed);
    if (!(restitution > 0)) return;
    const T back = speed * T(-restitution);
    const Mask<T> bounces = (-speed > T(threshold)) & (mul_add(speed, T(h), gap) <= zero) & (target < back);
    target = select(bounces, back, target);
    own_R = select(-speed > T(threshold), tiny<T>(), own_R);  // a soft row would absorb the bounce
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
