// φ, J, J q̇ and J̇ q̇ of connects and welds, one constraint at a time or several of one world in SIMD lanes. Both do
// the same operations in the same order, and agree bit for bit.
//
// Points of two links: rates are taken in a frame that turns with Ω = (ω_a + ω_b)/2,
//
//     φ̇ = u - Ω × φ with u = ṗ_a - ṗ_b,   J̇ q̇ = u̇ - Ω̇ × φ - Ω × (u + φ̇)
//
// A rotation of both links turns φ, but does not move the loop. In the world's axes, the row across a planar linkage,
// which nothing else moves, would resist the rotation of the whole. The force acts on both links half way between the
// points, so that angular momentum is conserved. Decision 414.
//
// A weld's orientation, in world axes: F are the frames that coincide, E = F_a F_bᵀ has the quaternion (w, v), and
// Ω = ω_a - ω_b. Then
//
//     φ = s F_bᵀ v,   φ̇ = s/2 F_bᵀ (w Ω + Ω × v)
//
// The row along the axis f_k of F_b is the moment s/2 (w f_k + v × f_k). If F_b are the world's axes, F_b drops out.
#pragma once

#include <type_traits>

#include "constraint/equality_view.hpp"
#include "tarsus/math/row_pack.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// One end of a constraint, on a link or the world.
template <class T>
struct End {
  Mat3<T> R;
  Vec3<T> r, p;      // from the link's origin to the point; the point
  Vec3<T> w, speed;  // angular velocity; the point's velocity
  Vec3<T> alpha, acceleration;
};

// Member by member: GCC would copy whole vectors and matrices of packs through integers and memory.
template <class T>
TARSUS_INLINE Vec3<T> copy_of(const Vec3<T>& v) {
  return {v.x, v.y, v.z};
}
template <class T>
TARSUS_INLINE Mat3<T> copy_of(const Mat3<T>& m) {
  return {m.xx, m.xy, m.xz, m.yx, m.yy, m.yz, m.zx, m.zy, m.zz};
}

/// @param s a LinkState, or the part of it that is needed
template <class T, class State>
TARSUS_INLINE void place_end(const State& s, const Vec3<T>& point, End<T>& e) {
  e.R = copy_of(s.R);
  e.r = e.R * point;
  e.p = s.o + e.r;
}
template <class T, class State>
TARSUS_INLINE void move_end(const State& s, End<T>& e) {
  e.w = copy_of(s.v.w);
  e.speed = cross_add(e.w, e.r, s.v.v);
  e.alpha = copy_of(s.a.w);
  e.acceleration = cross_add(e.w, e.speed, cross_add(e.alpha, e.r, s.a.v));
}
template <class T>
TARSUS_INLINE void world_end(const ModelView<Real<T>>& m, const Vec3<T>& point, End<T>& e) {
  e.R = identity3<T>(), e.w = zero3<T>(), e.speed = zero3<T>(), e.alpha = zero3<T>();
  e.r = copy_of(point), e.p = copy_of(point);
  e.acceleration = against_gravity<T>(m);
}

template <class T>
TARSUS_INLINE End<T> end_of(const ModelView<Real<T>>& m, const LinkState<T>* state, int link, const Real<T>* local,
                            bool moving) {
  const Vec3<T> point = load3<T>(local);
  End<T> e;
  if (link < 0) {
    world_end<T>(m, point, e);
  } else {
    place_end<T>(state[link], point, e);
    if (moving) move_end<T>(state[link], e);
  }
  return e;
}

/// A weld's orientation.
template <class T>
struct Turn {
  T w;        // s/2 w
  Vec3<T> u;  // s/2 v
  Mat3<T> F;  // F_b
};

/// w and v of the unit quaternion of E, w >= 0.
template <class T>
TARSUS_INLINE void quaternion_of(const Mat3<T>& E, T& w, Vec3<T>& v) {
  const T one = T(Real<T>(1)), half = T(Real<T>(0.5)), quarter = T(Real<T>(0.25)), far = T(Real<T>(0.5));
  const Vec3<T> twice = {E.zy - E.yz, E.xz - E.zx, E.yx - E.xy};  // 4 w v
  const T square = one + E.xx + E.yy + E.zz;                      // 4 w²
  w = half * square_root(maximum(square, far));
  v = twice * (quarter / w);
  const Mask<T> turned = square < far;
  if (!any_lane(turned)) return;
  // Near half a turn, starts from the largest component of v, which is above ½ there: w would lose digits.
  const T xy = E.xy + E.yx, yz = E.yz + E.zy, zx = E.zx + E.xz;
  const Mask<T> by_x = (E.xx >= E.yy) & (E.xx >= E.zz), by_y = E.yy >= E.zz;
  const auto choose = [&](T x, T y, T z) { return select(by_x, x, select(by_y, y, z)); };
  const T largest =
      half * square_root(choose(one + E.xx - E.yy - E.zz, one - E.xx + E.yy - E.zz, one - E.xx - E.yy + E.zz));
  const T rest = quarter / largest, w_there = choose(twice.x, twice.y, twice.z) * rest;
  const Vec3<T> there = {choose(largest, xy * rest, zx * rest), choose(xy * rest, largest, yz * rest),
                         choose(zx * rest, yz * rest, largest)};
  w = select(turned, absolute(w_there), w);
  v = select<T>(turned, select<T>(w_there < T(Real<T>(0)), -there, there), v);
}

/// @param c constants of one constraint or of several. kWorld: EqualityConstants::to_world
template <class T, bool kWorld, class Constants>
TARSUS_INLINE void turn_of(const Constants& c, const End<T>& a, const End<T>& b, Turn<T>& turn) {
  Mat3<T> E = a.R * c.frame_a();
  if constexpr (!kWorld) {
    turn.F = b.R * c.frame_b();
    E = E * transpose(turn.F);
  }
  const T hs = T(Real<T>(0.5)) * c.scale();
  quaternion_of(E, turn.w, turn.u);
  turn.u = turn.u * hs, turn.w = turn.w * hs;
}

template <class T, bool kWeld, bool kWorld, class Constants, class Rows>
TARSUS_INLINE void fixed_positions(const Constants& c, const End<T>& a, const End<T>& b, const Turn<T>& turn,
                                   Rows& rows) {
  const T o = T(Real<T>(0));
  const Vec3<T> apart = a.p - b.p;
  Vec3<T> r = copy_of(a.r), s = copy_of(b.r);
  if constexpr (!kWorld) r -= apart * c.share(), s += apart * c.share();
  rows.phi(0, apart);
  // r × e_k, and -s × e_k
  rows.moment(0, {o, r.z, -r.y}, {o, -s.z, s.y});
  rows.moment(1, {-r.z, o, r.x}, {s.z, o, -s.x});
  rows.moment(2, {r.y, -r.x, o}, {-s.y, s.x, o});
  if constexpr (kWeld) {
    const Vec3<T>& u = turn.u;
    const T w = turn.w;
    const Vec3<T> v = u + u;
    if constexpr (kWorld) {
      rows.phi(3, v);
      rows.moment(3, {w, u.z, -u.y}, {});
      rows.moment(4, {-u.z, w, u.x}, {});
      rows.moment(5, {u.y, -u.x, w}, {});
    } else {
      rows.phi(3, transpose_mul(turn.F, v));
      const Vec3<T> x = turn.F.column_x(), y = turn.F.column_y(), z = turn.F.column_z();
      const Vec3<T> nx = cross_add(u, x, x * w), ny = cross_add(u, y, y * w), nz = cross_add(u, z, z * w);
      rows.moment(3, nx, -nx);
      rows.moment(4, ny, -ny);
      rows.moment(5, nz, -nz);
    }
  }
}

template <class T, bool kWeld, bool kWorld, class Constants, class Rows>
TARSUS_INLINE void fixed_motion(const Constants& c, const End<T>& a, const End<T>& b, const Turn<T>& turn, Rows& rows) {
  if constexpr (kWorld) {
    rows.rate(0, a.speed);
    rows.bias(0, a.acceleration - b.acceleration);
  } else {
    const Vec3<T> spin = (a.w + b.w) * c.share(), alpha = (a.alpha + b.alpha) * c.share();
    const Vec3<T> apart = a.p - b.p, u = a.speed - b.speed, rate = u - cross(spin, apart);
    rows.rate(0, rate);
    rows.bias(0, a.acceleration - b.acceleration - cross(alpha, apart) - cross(spin, u + rate));
  }
  if constexpr (kWeld) {
    const Vec3<T>& u = turn.u;
    const Vec3<T> spin = kWorld ? a.w : a.w - b.w, alpha = kWorld ? a.alpha : a.alpha - b.alpha - cross(b.w, spin);
    const Vec3<T> rate = cross_add(spin, u, spin * turn.w),
                  bias = cross_add(alpha, u, alpha * turn.w) - u * (T(Real<T>(0.5)) * dot(spin, spin));
    rows.rate(3, kWorld ? rate : transpose_mul(turn.F, rate));
    rows.bias(3, kWorld ? bias : transpose_mul(turn.F, bias));
  }
}

/// The constants of one constraint.
template <class T>
struct OneConstants {
  const EqualityConstants<Real<T>>& c;
  Mat3<T> frame_a() const { return load33<T>(c.Ra); }
  Mat3<T> frame_b() const { return load33<T>(c.Rb); }
  T scale() const { return T(c.scale); }
  T share() const { return T(c.share); }
};

/// The forces on a and on b of a constraint's row 0. The block's first link is b if a is the world.
template <class T>
TARSUS_INLINE T* force_on_a(const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to) {
  return reinterpret_cast<T*>(to.force) + (c.swapped ? 6 * to.stride : 0);
}
template <class T>
TARSUS_INLINE T* force_on_b(const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to) {
  return reinterpret_cast<T*>(to.force) + (c.swapped ? 0 : 6 * to.stride);
}

/// The rows of one constraint. EqualitySet::add_blocks() has written the constant forces (unit vectors, zeros); the
/// world's side is never read.
template <class T, bool kWorld>
struct OneRows {
  T *on_a, *on_b, *phi_, *rate_, *bias_;
  int stride;

  TARSUS_INLINE void moment(int row, const Vec3<T>& a, const Vec3<T>& b) {
    T* p = on_a + row;
    p[0] = a.x, p[stride] = a.y, p[2 * stride] = a.z;
    if (kWorld) return;
    p = on_b + row;
    p[0] = b.x, p[stride] = b.y, p[2 * stride] = b.z;
  }
  TARSUS_INLINE void phi(int row, const Vec3<T>& x) { put3(phi_ + row, x); }
  TARSUS_INLINE void rate(int row, const Vec3<T>& x) { put3(rate_ + row, x); }
  TARSUS_INLINE void bias(int row, const Vec3<T>& x) { put3(bias_ + row, x); }
};

template <class T, bool kWeld, bool kWorld>
[[gnu::noinline]] void fixed_rows(const ModelView<Real<T>>& m, const LinkState<T>* state,
                                  const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, T* phi, T* rate,
                                  T* bias) {
  const End<T> a = end_of<T>(m, state, c.a, c.pa, rate), b = end_of<T>(m, state, kWorld ? -1 : c.b, c.pb, rate);
  Turn<T> turn;
  const OneConstants<T> constants{c};
  if constexpr (kWeld) turn_of<T, kWorld>(constants, a, b, turn);
  OneRows<T, kWorld> rows{force_on_a<T>(c, to), force_on_b<T>(c, to), phi, rate, bias, to.stride};
  fixed_positions<T, kWeld, kWorld>(constants, a, b, turn, rows);
  if (rate) fixed_motion<T, kWeld, kWorld>(constants, a, b, turn, rows);
}

/// Calls f with both flags as constants.
template <class F>
TARSUS_INLINE void by_shape(bool weld, bool to_world, const F& f) {
  const auto by_world = [&](auto is_weld) { to_world ? f(is_weld, std::true_type{}) : f(is_weld, std::false_type{}); };
  weld ? by_world(std::true_type{}) : by_world(std::false_type{});
}

/// A connect or a weld. @param phi, rate, bias of its first row; rate null: positions only
template <class T>
TARSUS_INLINE void fixed_rows(const ModelView<Real<T>>& m, const LinkState<T>* state,
                              const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, T* phi, T* rate,
                              T* bias) {
  by_shape(c.kind == EqualityKind::weld, c.to_world,
           [&](auto weld, auto world) { fixed_rows<T, weld, world>(m, state, c, to, phi, rate, bias); });
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
