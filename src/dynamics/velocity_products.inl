// Articulated-body algorithm with linearly implicit velocity products, O(nlink):
//
//     (M + diag K + θh ∂C/∂v) q̈ = Q - C(q, v)
//
// ∂C/∂v is dense and unsymmetric. Two sums of the joint accelerations nevertheless give linear time. About link i, with
// g = θh,
//
//     w_i = Σ S_k q̈_k     change of the link's velocity, per second
//     A_i = Σ S'_k q̈_k    S'_k = S_k + g (v_parent(k) + v_child(k)) × S_k
//     f_i = I_i A_i + g G_i w_i + p_i,   G_i = [· ×* I_i v_i] + v_i ×* I_i - I_i (v_i × ·)
//
// because ∂/∂v of Σ_k v_k × S_k q̇_k is Σ_j (v_parent(j) + v_j) × S_j - v_i × w_i (exchange the order of the double
// sum). The recursion carries two matrices, f = IA A + GA w + p:
//
//     U = IA S' + GA S,  D = Sᵀ U + K,  u = Q - Sᵀ p
//     IA -= U D⁻¹ Sᵀ IA,  GA -= U D⁻¹ Sᵀ GA,  p += U D⁻¹ u
//
// Only the angular-velocity columns of G_i are not zero. At the link's origin, with second moments Σ = ½ tr(I) 1 - I,
// first moment h and mass m, they are -2 [ω] Σ - 2 [h] [v] and -2 [m v + ω × h]. Elimination and shifts keep the other
// columns zero. A contact's tangent B, symmetric or not, opposes w: it is added to GA and fills the other columns.
//
// A step adds one more term, because the equation holds at one configuration while the mass matrix changes within the
// step. Let a joint's rotation ω_j change the articulated inertia I of its subtree by the fraction x = h |[ω_j] I - I
// [ω_j]| / |I|. Its rate is then damped by the fraction ε = 500 x⁴ of the joint's articulated inertia: K += ε Sᵀ U. The
// damping is an internal force. It vanishes for a wheel and for a joint on the world, which moves no link below it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dynamics/energy_bound.inl"
#include "tarsus/dynamics/spin_response.hpp"
#include "tarsus/dynamics/velocity_products.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kThetaSlope = 1;     ///< of θ against h|ω|; decision 409 has the measurements
inline constexpr double kDissipation = 500;  ///< ε over x⁴
inline constexpr double kSlowAngle = 3e-4;   ///< h|ω| of the fastest link below which explicit products are harmless
inline constexpr double kTurnAngle = 0.1;    ///< h|ω| below which their energy is estimated: they are harmless up to
inline constexpr double kSlowGain = 1e-6;    ///< this fraction of the kinetic energy

template <class T>
std::size_t velocity_product_link_size() {
  return sizeof(VelocityProductLink<T>);
}

template <class T>
TARSUS_INLINE Mat3<T> zero33() {
  const T o = T(Real<T>(0));
  return {o, o, o, o, o, o, o, o, o};
}
template <class T>
TARSUS_INLINE Mat3<T> operator*(const Mat3<T>& a, T s) {
  return {a.xx * s, a.xy * s, a.xz * s, a.yx * s, a.yy * s, a.yz * s, a.zx * s, a.zy * s, a.zz * s};
}
template <class T>
TARSUS_INLINE Mat3<T> cross_matrix(const Vec3<T>& a) {
  const T o = T(Real<T>(0));
  return {o, -a.z, a.y, a.z, o, -a.x, -a.y, a.x, o};
}
/// A + B [r]: the row b of B becomes b × r.
template <class T>
TARSUS_INLINE Mat3<T> add_times_cross(const Mat3<T>& A, const Mat3<T>& B, const Vec3<T>& r) {
  return from_rows(cross_add(B.row_x(), r, A.row_x()), cross_add(B.row_y(), r, A.row_y()),
                   cross_add(B.row_z(), r, A.row_z()));
}
/// A + [r] B.
template <class T>
TARSUS_INLINE Mat3<T> add_cross_times(const Mat3<T>& A, const Vec3<T>& r, const Mat3<T>& B) {
  const Vec3<T> x = B.row_x(), y = B.row_y(), z = B.row_z();
  return from_rows(mul_add(z, r.y, mul_add(y, -r.z, A.row_x())), mul_add(x, r.z, mul_add(z, -r.x, A.row_y())),
                   mul_add(y, r.x, mul_add(x, -r.y, A.row_z())));
}
/// A - B C.
template <class T>
TARSUS_INLINE Mat3<T> minus_product(const Mat3<T>& A, const Mat3<T>& B, const Mat3<T>& C) {
  const auto row = [&](const Vec3<T>& a, const Vec3<T>& b) {
    return mul_add(C.row_x(), -b.x, mul_add(C.row_y(), -b.y, mul_add(C.row_z(), -b.z, a)));
  };
  return from_rows(row(A.row_x(), B.row_x()), row(A.row_y(), B.row_y()), row(A.row_z(), B.row_z()));
}
/// The damping of joints in a step of h seconds; both are zero without damping.
template <class T>
struct JointDamping {
  T share;  ///< kDissipation h⁴
  T rate;   ///< 1/h

  /// ε of the rotation w of the inertia I, which is given about the joint and symmetric up to the terms that velocities
  /// add.
  TARSUS_INLINE T operator()(const ProductMat3<T>& I, const Vec3<T>& w) const {
    const ProductMat3<T> X = add_cross_times(for_products(zero33<T>()), w, I), C = X + transpose(X);
    const T x2 = square_sum(C) / (square_sum(I) + T(std::numeric_limits<Real<T>>::min()));
    return share * x2 * x2;
  }
};

/// The link's own IA and GA. The linear-velocity columns of GA are set if a tangent may fill them.
template <bool kTangent, class T>
TARSUS_INLINE void own_matrices(const LinkState<T>& s, VelocityProductLink<T>& x) {
  const T g = x.theta_h;
  const Sym3<T>& I = s.IA.I;
  const T mass = s.IA.M.xx;
  const Vec3<T> h = {s.IA.H.zy, s.IA.H.xz, s.IA.H.yx};
  const ProductMat3<T> H = for_products(s.IA.H);
  x.IA = {for_products(I.full()), H, transpose(H), for_products(s.IA.M.full())};
  const T half_trace = (I.xx + I.yy + I.zz) * T(Real<T>(0.5)), g2 = T(Real<T>(-2)) * g;
  const Mat3<T> sigma = {half_trace - I.xx, -I.xy, -I.xz, -I.xy, half_trace - I.yy, -I.yz, -I.xz, -I.yz,
                         half_trace - I.zz};
  const ProductMat3<T> zero = for_products(zero33<T>()),
                       shifted = add_cross_times(zero, h * g2, for_products(cross_matrix(s.v.v)));
  x.GA.nw = add_cross_times(shifted, s.v.w * g2, for_products(sigma));
  x.GA.fw = for_products(cross_matrix(cross_add(s.v.w, h, s.v.v * mass) * g2));
  if constexpr (kTangent) x.GA.nv = zero, x.GA.fv = zero;
}

/// Adds a tangent [6][6] with the moment's rows and the angular velocity's columns first.
template <class T>
TARSUS_INLINE void add_tangent(const T* B, MotionToForce<T, ProductMat3<T>>& GA) {
  const auto block = [&](int row, int column) {
    const T* b = B + 6 * row + column;
    return for_products(from_rows(get3(b), get3(b + 6), get3(b + 12)));
  };
  GA = {GA.nw + block(0, 0), GA.nv + block(0, 3), GA.fw + block(3, 0), GA.fv + block(3, 3)};
}

/// Adds a map that is given at the point displaced by r.
template <class T, class M>
TARSUS_INLINE void add_shifted(MotionToForce<T, M>& sum, const MotionToForce<T, M>& I, const Vec3<T>& r) {
  const Vec3<T> back = -r;  // a motion seen from r is (w, v + w × r)
  const M fw = add_times_cross(I.fw, I.fv, back), nw = add_times_cross(I.nw, I.nv, back);
  sum.fv = sum.fv + I.fv, sum.fw = sum.fw + fw;
  sum.nv = sum.nv + add_cross_times(I.nv, r, I.fv);
  sum.nw = sum.nw + add_cross_times(nw, r, fw);
}

/// Adds the reduced matrices, given at the point displaced by r, to those of the parent.
template <bool kTangent, class T>
TARSUS_INLINE void add_to_parent(const MotionToForce<T, ProductMat3<T>>& I, const MotionToForce<T, ProductMat3<T>>& G,
                                 const Vec3<T>& r, VelocityProductLink<T>& parent) {
  add_shifted(parent.IA, I, r);
  if constexpr (kTangent) {
    add_shifted(parent.GA, G, r);
  } else {
    parent.GA.fw = parent.GA.fw + G.fw, parent.GA.nw = parent.GA.nw + add_cross_times(G.nw, r, G.fw);
  }
}

/// Pass 2 for a hinge or slide. S selects the axis e from one half of the force.
template <bool kTangent, class T>
TARSUS_INLINE void reduce_axial(JointType joint, LinkState<T>& s, LinkState<T>* parent, VelocityProductLink<T>& x,
                                VelocityProductLink<T>* above, T Q, T K, T qvel, const JointDamping<T>& damping) {
  const T g = x.theta_h;
  const Vec3<T> e = s.R.column_z(), turned = mul_add(cross(s.v.w, e), g + g, e);  // of S', since v_child × S is
  T D;                                                                            // v_parent × S
  decltype(x.IA.nw * e) Un, Uf;
  if (turns_on_axis(joint)) {
    const Vec3<T> moved = cross(s.v.v, e) * (g + g);
    Un = x.IA.nw * turned + x.IA.nv * moved + x.GA.nw * e, Uf = x.IA.fw * turned + x.IA.fv * moved + x.GA.fw * e;
    D = dot(e, three(Un));
    s.u.x = Q - dot(e, s.pA.n);
    if (parent) {
      const T d = D * damping(x.IA.nw, e * qvel);
      D += d, s.u.x = neg_mul_add(d * damping.rate, qvel, s.u.x);
    }
    D += K;
    x.row_IA = {transpose_mul(x.IA.nw, e), transpose_mul(x.IA.nv, e)};
    x.row_GA.n = transpose_mul(x.GA.nw, e);
    if constexpr (kTangent) x.row_GA.f = transpose_mul(x.GA.nv, e);
  } else {
    Un = x.IA.nv * turned, Uf = x.IA.fv * turned;
    if constexpr (kTangent) Un = Un + x.GA.nv * e, Uf = Uf + x.GA.fv * e;
    D = dot(e, three(Uf)) + K;
    s.u.x = Q - dot(e, s.pA.f);
    x.row_IA = {transpose_mul(x.IA.fw, e), transpose_mul(x.IA.fv, e)};
    x.row_GA.n = transpose_mul(x.GA.fw, e);
    if constexpr (kTangent) x.row_GA.f = transpose_mul(x.GA.fv, e);
  }
  x.Dinv.xx = T(Real<T>(1)) / D;
  if (!parent) return;
  const auto Wn = Un * x.Dinv.xx, Wf = Uf * x.Dinv.xx;
  x.IA = {minus_outer(x.IA.nw, Wn, x.row_IA.n), minus_outer(x.IA.nv, Wn, x.row_IA.f),
          minus_outer(x.IA.fw, Wf, x.row_IA.n), minus_outer(x.IA.fv, Wf, x.row_IA.f)};
  x.GA.nw = minus_outer(x.GA.nw, Wn, x.row_GA.n), x.GA.fw = minus_outer(x.GA.fw, Wf, x.row_GA.n);
  if constexpr (kTangent)
    x.GA.nv = minus_outer(x.GA.nv, Wn, x.row_GA.f), x.GA.fv = minus_outer(x.GA.fv, Wf, x.row_GA.f);
  add_to_parent<kTangent>(x.IA, x.GA, s.r, *above);
  parent->pA += shift_back(mul_add(Force<T>{three(Wn), three(Wf)}, s.u.x, s.pA), s.r);
}

/// U = IA S' + GA S for the rotations of a ball or free joint, in world axes: S' = [1 + [a]; [b]]. Moment first.
template <class T>
TARSUS_INLINE void rotation_columns(const VelocityProductLink<T>& x, const Vec3<T>& a, const Vec3<T>& b, Mat3<T>& Un,
                                    Mat3<T>& Uf) {
  Un = full(add_times_cross(add_times_cross(x.IA.nw + x.GA.nw, x.IA.nw, a), x.IA.nv, b));
  Uf = full(add_times_cross(add_times_cross(x.IA.fw + x.GA.fw, x.IA.fw, a), x.IA.fv, b));
}

/// Pass 2 for a ball, in world axes: S = [1; 0].
template <bool kTangent, class T>
TARSUS_INLINE void reduce_ball(LinkState<T>& s, LinkState<T>* parent, VelocityProductLink<T>& x,
                               VelocityProductLink<T>* above, const T* Q, T K, const T* qvel,
                               const JointDamping<T>& damping) {
  const T g = x.theta_h;
  Mat3<T> Un, Uf;
  const Vec3<T> both = parent ? s.v.w + parent->v.w : s.v.w;
  rotation_columns(x, both * g, s.v.v * (g + g), Un, Uf);
  s.u = s.R * get3(Q) - s.pA.n;
  if (parent) {
    const Vec3<T> w = s.R * get3(qvel);
    const T d = (Un.xx + Un.yy + Un.zz) * T(Real<T>(1.0 / 3)) * damping(x.IA.nw, w);
    K += d, s.u = mul_add(w, -(d * damping.rate), s.u);
  }
  Mat3<T> D = Un;
  D.xx += K, D.yy += K, D.zz += K;
  x.Dinv = inverse(D);
  if (!parent) return;
  // 1 - Un D⁻¹ is computed as K D⁻¹, which does not cancel and is exactly zero if K is.
  const Mat3<T> rest = x.Dinv * K, W = Uf * x.Dinv;
  const auto left = [&](const auto& A) { return for_products(rest * full(A)); };
  const auto less = [&](const auto& A, const auto& B) { return for_products(minus_product(full(A), W, full(B))); };
  MotionToForce<T, ProductMat3<T>> IA = {left(x.IA.nw), left(x.IA.nv), less(x.IA.fw, x.IA.nw), less(x.IA.fv, x.IA.nv)},
                                   GA;
  GA.nw = left(x.GA.nw), GA.fw = less(x.GA.fw, x.GA.nw);
  if constexpr (kTangent) GA.nv = left(x.GA.nv), GA.fv = less(x.GA.fv, x.GA.nv);
  add_to_parent<kTangent>(IA, GA, s.r, *above);
  const Vec3<T> q = x.Dinv * s.u;
  // Un D⁻¹ u without cancellation: u - K q, or Un q if K exceeds all of Un.
  const Vec3<T> product = Un * q, difference = mul_add(q, -K, s.u);
  const Mask<T> stiff = K > Un.xx + Un.yy + Un.zz;
  const Vec3<T> moment = {select(stiff, product.x, difference.x), select(stiff, product.y, difference.y),
                          select(stiff, product.z, difference.z)};
  parent->pA += shift_back(Force<T>{s.pA.n + moment, s.pA.f + Uf * q}, s.r);
}

/// Pass 2 for a free joint, always at the root. Its translation, for which S' = S, is eliminated first.
template <bool kTangent, class T>
TARSUS_INLINE void reduce_free(LinkState<T>& s, VelocityProductLink<T>& x, const T* Q, const T* K) {
  const T g = x.theta_h;
  Mat3<T> Un, M = full(x.IA.fv);
  rotation_columns(x, s.v.w * g, s.v.v * (g + g), Un, x.lower);
  Mat3<T> H = full(x.IA.nv);
  if constexpr (kTangent) M = M + full(x.GA.fv), H = H + full(x.GA.nv);
  M.xx += K[0], M.yy += K[1], M.zz += K[2];
  Un.xx += K[3], Un.yy += K[3], Un.zz += K[3];
  x.Minv = inverse(M);
  x.upper = H * x.Minv;
  x.Dinv = inverse(minus_product(Un, x.upper, x.lower));
  s.u = s.R * get3(Q + 3) - s.pA.n;
  s.u_linear = get3(Q) - s.pA.f;
}

/// Pass 3 for one link: q̈ of its joint; w in LinkState's a, A in its own.
template <bool kTangent, class T>
TARSUS_INLINE void accelerate_link(const LinkConstants<Real<T>>& link, LinkState<T>* state, VelocityProductLink<T>* all,
                                   int i, T* qacc) {
  LinkState<T>& s = state[i];
  VelocityProductLink<T>& x = all[i];
  const T g = x.theta_h;
  T* q = qacc + link.qvel;
  const bool root = link.parent < 0;
  Motion<T> A = root ? world_velocity<T>() : shift(all[link.parent].A, s.r);
  Motion<T> w = root ? world_velocity<T>() : shift(state[link.parent].a, s.r);
  const auto turn = [&](const Vec3<T>& rate, const Vec3<T>& both) {  // adds S' rate and S rate of rotations
    A.w += cross_add(both * g, rate, rate), A.v += cross(s.v.v * (g + g), rate);
    w.w += rate;
  };
  if (moves_freely(link.joint)) {
    const Vec3<T> angular = x.Dinv * (s.u - x.upper * s.u_linear);
    const Vec3<T> linear = x.Minv * (s.u_linear - x.lower * angular);
    put3(q, linear), put3(q + 3, transpose_mul(s.R, angular));
    turn(angular, s.v.w);
    A.v += linear, w.v += linear;
  } else if (turns_freely(link.joint)) {
    Vec3<T> rest = s.u - three(x.IA.nw * A.w) - three(x.IA.nv * A.v) - three(x.GA.nw * w.w);
    if constexpr (kTangent) rest -= three(x.GA.nv * w.v);
    const Vec3<T> angular = x.Dinv * rest;
    put3(q, transpose_mul(s.R, angular));
    turn(angular, root ? s.v.w : s.v.w + state[link.parent].v.w);
  } else {
    const Vec3<T> e = s.R.column_z(), turned = mul_add(cross(s.v.w, e), g + g, e);
    T rest = s.u.x - dot(x.row_IA, A) - dot(x.row_GA.n, w.w);
    if constexpr (kTangent) rest -= dot(x.row_GA.f, w.v);
    q[0] = rest * x.Dinv.xx;
    if (turns_on_axis(link.joint)) {
      A.w = mul_add(turned, q[0], A.w), A.v = mul_add(cross(s.v.v, e), (g + g) * q[0], A.v);
      w.w = mul_add(e, q[0], w.w);
    } else {
      A.v = mul_add(turned, q[0], A.v), w.v = mul_add(e, q[0], w.v);
    }
  }
  x.A = A, s.a = w;
}

struct EveryLink {
  constexpr bool operator()(int) const { return true; }
};

/// @param all contains the links' theta_h  @param takes (link) -> false for links of trees that are left out
template <bool kTangent, class T, class Takes = EveryLink>
void velocity_products_passes(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all,
                              const JointDamping<T>& whips, const T* qvel, const T* Q, const T* K, const T* tangent,
                              T* qacc, const Takes& takes = {}) {
  for (int i = 0; i < m.nlink; ++i) {
    if (!takes(i)) continue;
    own_matrices<kTangent>(state[i], all[i]);
    if constexpr (kTangent) add_tangent(tangent + 36 * i, all[i].GA);
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (!takes(i)) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
    VelocityProductLink<T>* above = link.parent >= 0 ? &all[link.parent] : nullptr;
    const int v = link.qvel;
    const JointDamping<T> damping = {select(all[link.root].tree.resolved, T(Real<T>(0)), whips.share), whips.rate};
    if (moves_freely(link.joint))
      reduce_free<kTangent>(state[i], all[i], Q + v, K + v);
    else if (turns_freely(link.joint))
      reduce_ball<kTangent>(state[i], parent, all[i], above, Q + v, K[v], qvel + v, damping);
    else
      reduce_axial<kTangent>(link.joint, state[i], parent, all[i], above, Q[v], K[v], qvel[v], damping);
  }
  for (int i = 0; i < m.nlink; ++i) {
    if (takes(i)) accelerate_link<kTangent>(m.link[i], state, all, i, qacc);
  }
}

/// q̈ of the equation above. theta_h: θh [s], one number per lane. tangent: [nlink][6][6] added to GA, or null. The
/// other arguments are those of aba_kernel(), whose outward pass it shares.
template <class T>
void velocity_products_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all,
                              const T* theta_h, const T* qpos, const T* qvel, const T* Q, const T* K, const T* external,
                              const T* tangent, T* qacc) {
  const JointDamping<T> none = {T(Real<T>(0)), T(Real<T>(0))};
  aba_outward(m, state, qpos, qvel, external);
  for (int i = 0; i < m.nlink; ++i) all[i].theta_h = *theta_h, all[i].tree.resolved = *theta_h < *theta_h;
  if (tangent)
    velocity_products_passes<true>(m, state, all, none, qvel, Q, K, tangent, qacc);
  else
    velocity_products_passes<false>(m, state, all, none, qvel, Q, K, tangent, qacc);
}

/// Bound on the kinetic energy that explicit velocity products may add, for one link; to be summed over a tree.
///
/// A step's C adds ½ h² Cᵀ M̂⁻¹ C to the kinetic energy T. C = Σ Jᵀ f, where f is the force on a link from pass 1
/// without gravity. By Gauss's principle Cᵀ M⁻¹ C <= Σ fᵀ I⁻¹ f, as if f acted on the links alone. About the centre of
/// mass, with the force f, α and I there and g = ω × I ω, the summand is f²/m + (I α + g)ᵀ I⁻¹ (I α + g). No principal
/// moment exceeds the sum of the other two, hence gᵀ I⁻¹ g <= ½√3 ω² |g|, which avoids the inverse of a thin rod's
/// inertia. A branch that spins about its own axis, or a wheel, adds nothing.
template <class T>
struct ProductsGain {
  T gain, energy, mass;  ///< gain: bound on Cᵀ M⁻¹ C; energy: 2 T
  Vec3<T> momentum;
  /// Whether they add less than kSlowGain of T; for a tree on a free joint, of T about its centre of mass.
  TARSUS_INLINE Mask<T> is_little(bool free, T h) const {
    const T zero = T(Real<T>(0));
    const T whole = free ? dot(momentum, momentum) / maximum(mass, T(Real<T>(1e-30))) : zero;
    return gain * h * h <= maximum(energy - whole, zero) * T(Real<T>(kSlowGain));
  }
};
template <class T>
TARSUS_INLINE ProductsGain<T> products_gain(T mass, const Vec3<T>& h, const Sym3<T>& I, const Motion<T>& v,
                                            const Motion<T>& a) {
  const T two = T(Real<T>(2));
  const Vec3<T> c = h * (T(Real<T>(1)) / maximum(mass, T(Real<T>(1e-30))));
  const auto about_centre = [&](const Vec3<T>& x) { return I * x - cross(h, cross(x, c)); };
  const Vec3<T> spin = about_centre(v.w), g = cross(v.w, spin);
  const Vec3<T> centre = cross_add(v.w, c, v.v);
  const Vec3<T> acceleration = cross_add(v.w, centre, cross_add(a.w, c, a.v));
  const T square = dot(v.w, v.w);
  return {mul_add(mass, dot(acceleration, acceleration),
                  two * mul_add(square * T(Real<T>(0.87)), norm(g), dot(a.w, about_centre(a.w)))),
          mul_add(mass, dot(centre, centre), dot(v.w, spin)), mass, centre * mass};
}

/// Lanes in which this holds for every tree, from the results of pass 1; for one world, four links at once.
template <class T>
TARSUS_INLINE Mask<T> products_add_little(const ModelView<Real<T>>& m, const LinkState<T>* state, T h) {
  const Vec3<T> up = against_gravity<T>(m);
  Mask<T> little = h >= h;
  ProductsGain<T> tree{};
  bool free = false;
  int root = -1;  // links of one tree that are not adjacent are tested individually, which is stricter
  const auto add = [&](int i, const ProductsGain<T>& of) {
    if (m.link[i].root != root) {
      little = little & tree.is_little(free, h);
      root = m.link[i].root, tree = {}, free = moves_freely(m.link[root].joint);
    }
    tree.gain += of.gain, tree.energy += of.energy, tree.mass += of.mass, tree.momentum += of.momentum;
  };
  if constexpr (kRecords<T> == 1) {
    for (int i = 0; i < m.nlink; ++i) {
      const LinkState<T>& s = state[i];
      const Vec3<T> first = {s.IA.H.zy, s.IA.H.xz, s.IA.H.yx};
      add(i, products_gain<T>(s.IA.M.xx, first, s.IA.I, s.v, {s.a.w, s.a.v - up}));
    }
  } else {
    using P = typename RecordPack<T>::type;
    const Vec3<P> falls = {P(up.x), P(up.y), P(up.z)};
    for (int i = 0; i < m.nlink; i += kRecords<T>) {
      const T *motion[kRecords<T>], *inertia[kRecords<T>];
      for (int l = 0; l < kRecords<T>; ++l) {
        const LinkState<T>& s = state[i + l < m.nlink ? i + l : i];
        motion[l] = &s.v.w.x, inertia[l] = &s.IA.I.xx;
      }
      P x[12], I[16];  // v and a; IA's I, H and mass
      gather_numbers<12>(motion, 0, x), gather_numbers<16>(inertia, 0, I);
      const Motion<P> v = {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}}, a = {{x[6], x[7], x[8]}, {x[9], x[10], x[11]}};
      const ProductsGain<P> of =
          products_gain<P>(I[15], {I[13], I[8], I[9]}, {I[0], I[1], I[2], I[3], I[4], I[5]}, v, {a.w, a.v - falls});
      for (int l = 0; l < kRecords<T> && i + l < m.nlink; ++l) {
        const Vec3<P>& p = of.momentum;
        add(i + l, {of.gain[l], of.energy[l], of.mass[l], {p.x[l], p.y[l], p.z[l]}});
      }
    }
  }
  return little & tree.is_little(free, h);
}

/// Lanes in which the centre of mass is not at the origin, up to rounding.
template <class T>
TARSUS_INLINE Mask<T> is_off_centre(const RigidInertia<T>& I) {
  return dot(I.h, I.h) > I.mass * (I.I.xx + I.I.yy + I.I.zz) * T(Real<T>(1e-10));
}

/// Lanes in which a link alone has the inertia of a ball about its origin: it has no velocity products at any speed.
template <class T>
TARSUS_INLINE Mask<T> is_lone_ball(const ModelView<Real<T>>& m, int link) {
  const auto of = [&](int k) {
    return m.own_inertia ? reinterpret_cast<const T*>(m.own_inertia)[10 * link + k] : T((&m.link[link].mass)[k]);
  };
  const RigidInertia<T> I = {of(0), {of(1), of(2), of(3)}, {of(4), of(5), of(6), of(7), of(8), of(9)}};
  const Vec3<T> off = {I.I.xy, I.I.xz, I.I.yz}, sides = {I.I.xx - I.I.yy, I.I.xx - I.I.zz, T(Real<T>(0))};
  const Mask<T> even = dot(off, off) + dot(sides, sides) <= I.I.xx * I.I.xx * T(Real<T>(1e-18));
  const Mask<T> off_centre = is_off_centre(I);
  return even & !off_centre;
}

/// Lanes whose links turn so little in h seconds that explicit velocity products suffice, from the results of pass 1.
template <class T>
TARSUS_INLINE Mask<T> turns_little(const ModelView<Real<T>>& m, const LinkState<T>* state, Real<T> h) {
  const T zero = T(Real<T>(0));
  T fastest = zero;
  for (int i = 0; i < m.nlink; ++i) {
    const T square = dot(state[i].v.w, state[i].v.w);
    fastest = maximum(m.link[i].alone ? select(is_lone_ball<T>(m, i), zero, square) : square, fastest);
  }
  const T angle = square_root(fastest) * T(h);
  const Mask<T> slow = angle < T(Real<T>(kSlowAngle));
  const Mask<T> turns = (angle >= T(Real<T>(kSlowAngle))) & (angle < T(Real<T>(kTurnAngle)));
  return any_lane(turns) ? slow | (turns & products_add_little(m, state, T(h))) : slow;
}

/// Whether only the link's carrier counts towards a tree's angle: spinning changes no inertia.
TARSUS_INLINE bool is_round(const std::uint8_t* held, int link) { return held && (held[link] & kRoundLink) != 0; }

/// Lanes with their own masses in which such a link is round.
template <class T>
TARSUS_INLINE Mask<T> is_round_here(const ModelView<Real<T>>& m, int link) {
  return reinterpret_cast<const T*>(m.own_round)[link] > T(Real<T>(0));
}

/// Sets each tree's angle and its links' θh. A tree is bounded if one of its links turns far or a DoF is `stiff`, and a
/// single free body wherever its origin is not its centre of mass: the move along v changes its momentum. θ = ½
/// is neutral on a rigid body, and applies to a tree of one link that no loop holds. A larger θ, at most 1, dissipates
/// in proportion to (h|ω|)³.
template <class T>
void begin_trees(const ModelView<Real<T>>& m, const LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                 const std::uint8_t* held, const T* stiff) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1)), half = T(Real<T>(0.5));
  for (int i = 0; i < m.nlink; ++i) {
    if (m.link[i].parent >= 0) continue;
    TreeBound<T>& tree = all[i].tree;
    tree.angle = tree.slope = zero, tree.bound_angle = T(Real<T>(kBoundAngle)), tree.held = held && held[i];
    if (moves_freely(m.link[i].joint))
      tree.bound_angle = select(is_off_centre(link_inertia(m, i, state[i].R)), zero, tree.bound_angle);
  }
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const T fastest = maximum(dot(state[i].v.w, state[i].v.w), tree.angle);
    if (!is_round(held, i))
      tree.angle = fastest;
    else if (m.own_round)
      tree.angle = select(is_round_here<T>(m, i), tree.angle, fastest);
    if (m.link[i].parent >= 0) {
      const T least = minimum(T(Real<T>(kBoundAngle)), T(Real<T>(kChainAngle) / m.link[i].depth));
      tree.bound_angle = select(tree.bound_angle > zero, minimum(tree.bound_angle, least), least);
    }
    if (m.link[i].parent >= 0 || tree.held) tree.slope = T(Real<T>(kThetaSlope));
  });
  for_each_tree<T>(m, all, [&](TreeBound<T>& tree) {
    tree.angle = square_root(tree.angle) * T(h), tree.bounded = tree.angle > tree.bound_angle;
    tree.resolved = tree.bounded & !tree.bounded;
  });
  for (int i = 0; held && i < m.nlink; ++i) {
    TreeBound<T>& tree = all[i].tree;
    if (m.link[i].parent < 0 && held[i] == kLinkage)
      tree.resolved = !tree.bounded, tree.slope = select(tree.resolved, zero, tree.slope);
  }
  if (stiff)
    for_each_dof<T>(m, all,
                    [&](int, int v, int, TreeBound<T>& tree) { tree.bounded = tree.bounded | (stiff[v] > zero); });
  for_each_link<T>(m, all, [&](int i, const TreeBound<T>& tree) {
    all[i].theta_h = minimum(one, mul_add(tree.angle, tree.slope, half)) * T(h);
  });
}

/// Also bounds trees with a link that slides by a large fraction of its distance from the axis about which its carrier
/// turns: the inertia about that axis changes within the step as if links turned far.
template <class T>
TARSUS_INLINE void bound_sliding_trees(const ModelView<Real<T>>& m, const LinkState<T>* state,
                                       VelocityProductLink<T>* all, Real<T> h, const T* qvel) {
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const LinkConstants<Real<T>>& link = m.link[i];
    if (!slides_on_axis(link.joint) || link.parent < 0) return;
    const Vec3<T>& w = state[link.parent].v.w;
    const Vec3<T> moved = cross(w, state[i].R.column_z()) * (qvel[link.qvel] * T(h)), lever = cross(w, state[i].r);
    tree.bounded = tree.bounded | (dot(moved, moved) > dot(lever, lever) * T(Real<T>(kBoundAngle * kBoundAngle)));
  });
}

/// Also bounds trees with a link that turns far at the velocity to which J q̈ (the links' a) leads. This happens at a
/// joint with little inertia of its own, such as aligned hinges in a row.
template <class T>
TARSUS_INLINE void bound_trees_that_end_fast(const ModelView<Real<T>>& m, const LinkState<T>* state,
                                             VelocityProductLink<T>* all, Real<T> h, const std::uint8_t* held) {
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const bool round = is_round(held, i);
    if (round && !m.own_round) return;
    const Vec3<T> w = mul_add(state[i].a.w, T(h), state[i].v.w);
    Mask<T> turns = dot(w, w) * T(h * h) > tree.bound_angle * tree.bound_angle;
    if (round) turns = turns & !is_round_here<T>(m, i);
    tree.bounded = tree.bounded | turns;
  });
}

/// q̈ for a step of h seconds, after pass 1. θ of each tree comes from begin_trees(); trees with links that turn far
/// are bounded by energy_bound.inl.
/// @param scratch [6 nv] @param held [nlink] at a root, nonzero: a loop holds its tree; null: none. Once momentum is
/// restored, joints of other trees for which damping alone does not suffice may continue from their undamped rates. In
/// a loop, such rates would violate the loop too much.
/// @param stiff [nv] positive: the tree is bounded at any angular velocity; null: none
template <class T>
void velocity_products_of_step(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                               const std::uint8_t* held, T* scratch, const T* qpos, const T* qvel, const T* Q,
                               const T* K, const T* stiff, T* qacc) {
  using Tree = TreeBound<T>;
  const T* const none = nullptr;
  const JointDamping<T> damping = {T(Real<T>(kDissipation) * h * h * h * h), T(1 / h)};
  const auto some_are_bounded = [&] {
    return go_on_where<T>(m, all, [](const Tree& tree) { return tree.bounded & !tree.resolved; });
  };
  begin_trees(m, state, all, h, held, stiff), bound_sliding_trees(m, state, all, h, qvel);
  for (bool known = false; !known;) {
    known = some_are_bounded();
    if (known) {
      energy_before(m, state, all, h, qpos, qvel, scratch);
      aba_outward(m, state, qpos, qvel, none);
    }
    velocity_products_passes<false>(m, state, all, damping, qvel, Q, K, none, qacc);
    bound_trees_that_end_fast(m, state, all, h, held);
    if (!some_are_bounded()) return;
  }
  T *const undamped = scratch + 4 * m.nv, *const damped = undamped + m.nv;
  const auto bound = [&] {  // @return whether an excess remains; the bound then continues for these trees
    bound_energy(m, state, all, h, qpos, qvel, Q, K, scratch, undamped, qacc);
    return go_on_where<T>(m, all, [](const Tree& tree) { return tree.is_above(tree.dampings().momentum); });
  };
  const auto back_to_damped = [&] {
    for_each_dof<T>(m, all,
                    [&](int, int v, int, const Tree& tree) { qacc[v] = select(tree.bounded, damped[v], qacc[v]); });
  };
  keep_linear_momentum(m, state, all, h, Q, K, qacc);
  if (!bound()) return;
  for_each_dof<T>(m, all, [&](int, int v, int, const Tree& tree) {
    damped[v] = qacc[v];
    if (!tree.held) qacc[v] = select(tree.bounded, (undamped[v] - qvel[v]) * T(1 / h), qacc[v]);
  });
  keep_momentum(m, state, all, h, Q, K, qacc);
  if (!bound()) return;
  back_to_damped();
  keep_momentum(m, state, all, h, Q, K, qacc);
  if (!bound()) return;
  std::copy_n(qacc, m.nv, damped);
  slow_down(m, state, all, h, qvel, K, qacc);
  find_gains(m, state, all, h, qvel, Q, K, qacc, [](const Tree& tree) { return tree.bounded; });
  if (!go_on_where<T>(m, all, [](const Tree& tree) { return tree.is_above(10 * kTolerated); })) return;
  back_to_damped();  // where drives do the work, less speed does not mean less energy
  spread_acceleration(m, state, qacc);
}

/// q̈ for a step. Unless `always`, lanes in which turns_little() holds use maba() and give the bits of the scalar path.
/// @param scratch [7 nv] @return whether all lanes used maba(), which then left its factors of M̂
template <class T>
bool velocity_products_step_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all,
                                   Real<T> h, bool always, const std::uint8_t* held, T* scratch, const T* qpos,
                                   const T* qvel, const T* Q, const T* K, const T* stiff, T* qacc) {
  const T* const none = nullptr;
  T* const plain = scratch + 6 * m.nv;
  aba_outward(m, state, qpos, qvel, none);
  const Mask<T> little = turns_little(m, state, h);
  const bool mixed = !always && any_lane(little);
  if (mixed) {
    T* const x = all_lanes(little) ? qacc : plain;
    aba_inward(m, state, Q, K);
    aba_accelerate(m, state, x);
    if (x == qacc) return true;
    aba_outward(m, state, qpos, qvel, none);
  }
  velocity_products_of_step(m, state, all, h, held, scratch, qpos, qvel, Q, K, stiff, qacc);
  for (int k = 0; mixed && k < m.nv; ++k) qacc[k] = select(little, plain[k], qacc[k]);
  return false;
}

/// Pass 1, and q̈ for a step in the lanes in which links turn far enough to need it; `found` is 1 there. In the other
/// lanes found and q̈ are 0 and pass 1's results remain; in a pack, these remain in all lanes. `never`: treats all
/// lanes like that. @param scratch [6 nv]
template <class T>
void begin_step_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                       bool always, bool never, const std::uint8_t* held, T* scratch, const T* qpos, const T* qvel,
                       const T* Q, const T* K, const T* stiff, T* qacc, T* found) {
  const T *const none = nullptr, zero = T(Real<T>(0));
  aba_outward(m, state, qpos, qvel, none);
  const Mask<T> little = never ? zero <= zero : turns_little(m, state, h);
  const bool some = always || !all_lanes(little);
  if (some) velocity_products_of_step(m, state, all, h, held, scratch, qpos, qvel, Q, K, stiff, qacc);
  const Mask<T> left = always ? zero > zero : little;
  for (int k = 0; k < m.nv; ++k) qacc[k] = some ? select(left, zero, qacc[k]) : zero;
  *found = select(left, zero, T(Real<T>(1)));
  if (some && kWidth < T >> 1) aba_outward(m, state, qpos, qvel, none);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
