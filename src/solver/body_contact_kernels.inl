// Projected Gauss-Seidel on contacts of free bodies, one contact point a SIMD lane. Round: two spheres, or a sphere and
// the world. General: any two bodies, with or without a moment. include/tarsus/solver/body_contacts.hpp has the
// formulas; SPOOK's b and Σ: theory.md, section 4.
#pragma once

#include "solver/body_contact_kernels.hpp"
#include "solver/body_contact_lanes.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A body's velocity, inverse mass and (for sphere contacts) inverse inertia, in lanes.
template <class T>
struct LaneBody {
  Vec3<T> v;
  T inverse_mass;
  Vec3<T> w;
  T inverse_moment;
};
static_assert(sizeof(LaneBody<float>) == 8 * sizeof(float));

/// Tangents of a unit normal, without a branch or a degenerate normal.  [Duff et al. 2017]
template <class T>
TARSUS_INLINE void tangents(const Vec3<T>& n, Vec3<T>& t1, Vec3<T>& t2) {
  using R = Real<T>;
  const T one = T(R(1)), sign = select(n.z < T(R(0)), -one, one), c = -one / (sign + n.z), xy = n.x * n.y * c;
  t1 = {one + sign * n.x * n.x * c, sign * xy, -sign * n.x};
  t2 = {xy, sign + n.y * n.y * c, -n.y};
}
template <class T>
TARSUS_INLINE T larger_eigenvalue(T k11, T k22, T k12) {
  const T half = (k11 - k22) * T(Real<T>(0.5));
  return (k11 + k22) * T(Real<T>(0.5)) + square_root(mul_add(half, half, k12 * k12));
}
/// Factor that limits a vector of this squared length to `radius`.
template <class T>
TARSUS_INLINE T shrink(T length2, T radius) {
  return select(length2 > radius * radius, radius / square_root(length2), T(Real<T>(1)));
}

template <class T, bool Round, bool Static, bool Turning = false>
struct ContactKernel {
  using R = Real<T>;
  static constexpr int kLanes = kWidth<T>;
  static constexpr int kFields = Turning ? int(kTurningFields) : Round ? int(kRoundFields) : int(kGeneralFields);

  R* f;  ///< this batch's fields
  LaneBody<T> a, b;
  Sym3<T> ia, ib;

  TARSUS_INLINE T get(int field) const { return load_rows<T>(f + field * kLanes); }
  TARSUS_INLINE void put(int field, T x) const { store_rows(f + field * kLanes, x); }
  TARSUS_INLINE Vec3<T> get3(int field) const { return {get(field), get(field + 1), get(field + 2)}; }
  TARSUS_INLINE void put3(int field, const Vec3<T>& x) const {
    put(field, x.x), put(field + 1, x.y), put(field + 2, x.z);
  }

  TARSUS_INLINE static Sym3<T> gather_inertia(const R* base, const int* body) {
    T r[8];
    gather_records(base, body, r);
    return {r[0], r[1], r[2], r[3], r[4], r[5]};
  }
  TARSUS_INLINE void open(const ContactKernelArgs<R>& args, int batch) {
    f = args.fields + std::size_t(batch) * kFields * kLanes;
    gather_records(args.velocity, args.body_a + batch * kLanes, reinterpret_cast<T*>(&a));
    if constexpr (!Static) gather_records(args.velocity, args.body_b + batch * kLanes, reinterpret_cast<T*>(&b));
    if constexpr (!Round) {
      ia = gather_inertia(args.inertia, args.body_a + batch * kLanes);
      if constexpr (!Static) ib = gather_inertia(args.inertia, args.body_b + batch * kLanes);
    }
  }
  TARSUS_INLINE void close(const ContactKernelArgs<R>& args, int batch) const {
    scatter_records(args.velocity, args.body_a + batch * kLanes, reinterpret_cast<const T*>(&a));
    if constexpr (!Static) scatter_records(args.velocity, args.body_b + batch * kLanes, reinterpret_cast<const T*>(&b));
  }

  TARSUS_INLINE T inverse_mass() const {
    if constexpr (Static)
      return a.inverse_mass;
    else
      return a.inverse_mass + b.inverse_mass;
  }
  /// Velocity of A's point relative to B's.
  TARSUS_INLINE Vec3<T> relative(const Vec3<T>& n) const {
    if constexpr (Round) {
      if constexpr (Static)
        return a.v - cross(a.w * get(kArmA), n);
      else
        return (a.v - b.v) - cross(mul_add(a.w, get(kArmA), b.w * get(kArmB)), n);
    } else {
      const Vec3<T> va = cross_add(a.w, get3(kArmA), a.v);
      if constexpr (Static)
        return va;
      else
        return va - cross_add(b.w, get3(kGeneralArmB), b.v);
    }
  }
  /// Applies the impulse p to A and -p to B.
  TARSUS_INLINE void push(const Vec3<T>& n, const Vec3<T>& p) {
    a.v = mul_add(p, a.inverse_mass, a.v);
    if constexpr (!Static) b.v = mul_add(p, -b.inverse_mass, b.v);
    if constexpr (Round) {
      const Vec3<T> turn = cross(n, p);
      a.w = mul_add(turn, -(get(kArmA) * a.inverse_moment), a.w);
      if constexpr (!Static) b.w = mul_add(turn, -(get(kArmB) * b.inverse_moment), b.w);
    } else {
      a.w += ia * cross(get3(kArmA), p);
      if constexpr (!Static) b.w -= ib * cross(get3(kGeneralArmB), p);
    }
  }
  /// K p with K = ∂v/∂P.
  TARSUS_INLINE Vec3<T> answer(const Vec3<T>& p) const {
    const Vec3<T> ra = get3(kArmA);
    Vec3<T> v = p * inverse_mass() + cross(ia * cross(ra, p), ra);
    if constexpr (!Static) {
      const Vec3<T> rb = get3(kGeneralArmB);
      v += cross(ib * cross(rb, p), rb);
    }
    return v;
  }
  /// d_t: larger eigenvalue of K's 2 × 2 block in the tangent plane. For general contacts K n is stored.
  TARSUS_INLINE T tangent_diagonal(const Vec3<T>& n, T& normal_diagonal) const {
    if constexpr (Round) {
      normal_diagonal = inverse_mass();
      T d = mul_add(get(kArmA) * get(kArmA), a.inverse_moment, normal_diagonal);
      if constexpr (!Static) d = mul_add(get(kArmB) * get(kArmB), b.inverse_moment, d);
      return d;
    } else {
      Vec3<T> t1, t2;
      tangents(n, t1, t2);
      const Vec3<T> kn = answer(n), k1 = answer(t1), k2 = answer(t2);
      put3(kCoupling, kn);
      normal_diagonal = dot(n, kn);
      return larger_eigenvalue(dot(t1, k1), dot(t2, k2), dot(t1, k2));
    }
  }

  /// ∂(ω_A - ω_B)/∂M.
  TARSUS_INLINE Sym3<T> turn_answer() const {
    if constexpr (Static)
      return ia;
    else
      return ia + ib;
  }
  TARSUS_INLINE void push_moment(const Vec3<T>& m) {
    a.w += ia * m;
    if constexpr (!Static) b.w -= ib * m;
  }
  TARSUS_INLINE void prepare_moment(const ContactKernelArgs<R>& args, const Vec3<T>& n, T keep) const {
    const T zero = T(R(0)), omega = T(args.relaxation);
    const Sym3<T> s = turn_answer();
    Vec3<T> t1, t2;
    tangents(n, t1, t2);
    const Vec3<T> k1 = s * t1, k2 = s * t2;
    const T d_torsion = dot(n, s * n), d_rolling = larger_eigenvalue(dot(t1, k1), dot(t2, k2), dot(t1, k2));
    const auto active = keep > zero;
    put(kInverseTorsional, select(active & (get(kTorsional) > zero), omega / d_torsion, zero));
    put(kInverseRolling, select(active & (get(kRolling) > zero), omega / d_rolling, zero));
    put3(kMoment, get3(kMoment) * keep);
  }
  /// Torsional friction, then rolling friction. @return change of the relative spin, as a speed at A's arm, squared
  TARSUS_INLINE T sweep_moment(const Vec3<T>& n, T normal) {
    const Sym3<T> s = turn_answer();
    Vec3<T> w = a.w;
    if constexpr (!Static) w = w - b.w;
    const Vec3<T> before = get3(kMoment);
    const T old = dot(n, before), bound = get(kTorsional) * normal;
    const T torsion = minimum(bound, maximum(-bound, neg_mul_add(dot(n, w), get(kInverseTorsional), old)));
    w += s * (n * (torsion - old));
    const Vec3<T> slip = mul_add(n, -dot(n, w), w);
    Vec3<T> roll = mul_add(slip, -get(kInverseRolling), mul_add(n, -old, before));
    roll = roll * shrink(dot(roll, roll), get(kRolling) * normal);
    const Vec3<T> moment = mul_add(n, torsion, roll), change = moment - before, spin = s * change;
    put3(kMoment, moment);
    push_moment(change);
    const Vec3<T> arm = get3(kArmA);
    return dot(spin, spin) * dot(arm, arm);
  }

  static void prepare(const ContactKernelArgs<R>& args) {
    const T zero = T(R(0)), one = T(R(1)), h = T(args.dt);
    for (int batch = 0; batch < args.batches; ++batch) {
      ContactKernel k;
      k.open(args, batch);
      const Vec3<T> n = k.get3(kNormal);
      T dn;
      const T dt = k.tangent_diagonal(n, dn);
      const T vn = dot(n, k.relative(n)), g = k.get(kTarget), e = load_rows<T>(args.restitution + batch * kLanes);
      const T epsilon = mul_add(k.get(kInverseNormal), dn, k.get(kCompliance));
      const T damping = one / mul_add(T(R(4)) / h, k.get(kInverseTangent), one);  // 1/(1 + 4τ/h)
      const auto apart = g > zero;
      T sigma = select(apart, zero, T(R(4)) * epsilon * damping / (h * h));
      const T slowed = maximum(mul_add(T(R(-4)) * g / h, damping, damping * vn), -T(args.deepest_step) / h);
      T target = select(apart, -g / h, slowed);
      const auto bounces = (e > zero) & (vn < -T(args.restitution_threshold));
      target = select(bounces, maximum(target, -(e * vn)), target);
      sigma = select(bounces, zero, sigma);
      // A pair that separates and is struck within the step may approach as fast, and bounces in the next step. A
      // higher target would do work, which without restitution others lose: there the step is a projection.
      const auto separates = (e > zero) & (vn > zero);
      target = select(separates, minimum(target, maximum(zero, T(R(-4)) * g / h * damping) - vn), target);
      // An open pair that will bounce is ignored: closing the gap first would remove the speed with which it bounces.
      const auto active = (dn > zero) & ~(apart & bounces);
      k.put(kTarget, target);
      k.put(kCompliance, sigma);
      k.put(kInverseNormal, select(active, T(args.relaxation) / (dn + sigma), zero));
      k.put(kInverseTangent, select(active, T(args.relaxation) / dt, zero));
      k.put(kImpulseNormal, select(active, k.get(kImpulseNormal), zero));
      const Vec3<T> t = k.get3(kImpulseTangent);
      const T keep = select(active, one, zero), along = dot(n, t);
      k.put3(kImpulseTangent, mul_add(n, -along, t) * keep);
      if constexpr (Turning) k.prepare_moment(args, n, keep);
    }
  }

  static void warm(const ContactKernelArgs<R>& args) {
    for (int batch = 0; batch < args.batches; ++batch) {
      ContactKernel k;
      k.open(args, batch);
      const Vec3<T> n = k.get3(kNormal);
      k.push(n, mul_add(n, k.get(kImpulseNormal), k.get3(kImpulseTangent)));
      if constexpr (Turning) k.push_moment(k.get3(kMoment));
      k.close(args, batch);
    }
  }

  static R sweep(const ContactKernelArgs<R>& args) {
    const T zero = T(R(0));
    T worst = zero;
    for (int batch = 0; batch < args.batches; ++batch) {
      ContactKernel k;
      k.open(args, batch);
      const Vec3<T> n = k.get3(kNormal);
      Vec3<T> v = k.relative(n);
      const T vn = dot(n, v), old = k.get(kImpulseNormal);
      const T r = mul_add(k.get(kCompliance), old, vn - k.get(kTarget));
      const T normal = maximum(zero, neg_mul_add(r, k.get(kInverseNormal), old)), change = normal - old;
      if constexpr (!Round) v = mul_add(k.get3(kCoupling), change, v);
      const T along = Round ? vn : dot(n, v);
      const Vec3<T> vt = mul_add(n, -along, v), before = k.get3(kImpulseTangent);
      Vec3<T> t = mul_add(vt, -k.get(kInverseTangent), before);
      t = t * shrink(dot(t, t), k.get(kFriction) * normal);
      const Vec3<T> p = mul_add(n, change, t - before);
      k.push(n, p);
      k.put(kImpulseNormal, normal);
      k.put3(kImpulseTangent, t);
      if constexpr (Turning) worst = maximum(worst, k.sweep_moment(n, normal));
      k.close(args, batch);
      const T m = k.inverse_mass();
      worst = maximum(worst, dot(p, p) * m * m);
    }
    R largest = 0;
    for (int lane = 0; lane < kLanes; ++lane)  // a NaN stays NaN
      largest = worst[lane] <= largest || largest != largest ? largest : worst[lane];
    return largest;
  }
};

/// All contacts are in lanes, for every T.
template <class T, class P>
void fill_table(ContactKernels<Real<P>>& table) {
  using A = ContactKernel<P, false, false>;
  using B = ContactKernel<P, true, false>;
  using C = ContactKernel<P, false, true>;
  using D = ContactKernel<P, true, true>;
  using E = ContactKernel<P, false, false, true>;
  using F = ContactKernel<P, false, true, true>;
  table = {kWidth<P>,
           {A::prepare, B::prepare, C::prepare, D::prepare, E::prepare, F::prepare},
           {A::warm, B::warm, C::warm, D::warm, E::warm, F::warm},
           {A::sweep, B::sweep, C::sweep, D::sweep, E::sweep, F::sweep}};
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
