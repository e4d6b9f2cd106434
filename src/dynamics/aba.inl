// Articulated-body algorithm with joint-space inertia: solves (M + diag K) q̈ = Q - C in O(nlink). [Featherstone 2008,
// ch. 7, table 7.1; Yin 2020, app. A: MABA is these passes with K = Δt K_d and the drives' Q]
//
// There is one difference from the book. Pass 1 sums the velocity-dependent accelerations c and gravity outward, as
// RNEA does. pA is then each link's force for q̈ = 0, and passes 2 and 3 solve for the effect of q̈. The result is the
// same; the 36 multiplications of Ia c leave the inward pass, and M̂⁻¹ y (minv.inl) is exactly the same two passes.
//
// K is one number per DoF. A ball joint uses its first for all three axes, and a free joint its fourth for the three
// angular axes, because an isotropic K is the same in world axes and in the joint's. D = Sᵀ IA S + K then stays exact
// and short. For a ball, D - K is the angular block I itself, and the reduced inertia is K (1 - K D⁻¹), which is
// exactly zero if K is. This difference cancels if K is far above I, as soon happens in float with stiff drives. The
// same quantity is then computed as K D⁻¹ I.
#pragma once

#include "tarsus/math/gather.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// joint_orientation() of four links that all have ball joints, or all hinges, at once; results go to their R.
template <JointType kJoint, class T>
TARSUS_INLINE void four_joint_orientations(const ModelView<T>& m, LinkState<T>* state, const T* qpos,
                                           const int (&i)[4]) {
  using P = typename RecordPack<T>::type;
  const auto link = [&](int l) -> const LinkConstants<T>& { return m.link[i[l]]; };
  Mat3<P> E;
  P r;
  const T* const rest[4] = {link(0).E0, link(1).E0, link(2).E0, link(3).E0};  // r0 follows E0
  gather(rest, 0, E.xx, E.xy, E.xz, E.yx), gather(rest, 4, E.yy, E.yz, E.zx, E.zy), gather(rest, 8, E.zz, r, r, r);
  const T* const q[4] = {qpos + link(0).qpos, qpos + link(1).qpos, qpos + link(2).qpos, qpos + link(3).qpos};
  if constexpr (turns_freely(kJoint)) {
    Quat<P> turn;
    gather(q, 0, turn.w, turn.x, turn.y, turn.z);
    E = E * rotation(unit(turn));
  } else {
    const auto angle = [&](int l) { return *q[l] - link(l).reference; };
    P sin, cos;
    sincos(P(typename P::Vector{angle(0), angle(1), angle(2), angle(3)}), sin, cos);
    E = turned(E, sin, cos);
  }
  T* const R[4] = {&state[i[0]].R.xx, &state[i[1]].R.xx, &state[i[2]].R.xx, &state[i[3]].R.xx};
  scatter(R, 0, E.xx, E.xy, E.xz, E.yx), scatter(R, 4, E.yy, E.yz, E.zx, E.zy), scatter(R, 8, E.zz, r, r, r);
}

/// Collects links with one type of joint, four at a time.
template <JointType kJoint, class T>
struct FourAlike {
  const ModelView<T>& m;
  LinkState<T>* state;
  const T* qpos;
  int link[4], count = 0;

  TARSUS_INLINE void add(int i) {
    link[count++] = i;
    if (count == 4) four_joint_orientations<kJoint>(m, state, qpos, link), count = 0;
  }
  /// Processes the last links; the first of them fills the remaining places.
  TARSUS_INLINE void finish() {
    if (count == 0) return;
    for (; count < 4; ++count) link[count] = link[0];
    four_joint_orientations<kJoint>(m, state, qpos, link);
  }
};

/// joint_orientation() of all links; results go to their R.
template <class T>
TARSUS_INLINE void joint_orientations(const ModelView<T>& m, LinkState<T>* state, const T* qpos) {
  FourAlike<JointType::ball, T> balls{m, state, qpos, {}};
  FourAlike<JointType::hinge, T> hinges{m, state, qpos, {}};
  for (int i = 0; i < m.nlink; ++i) {
    switch (m.link[i].joint) {
      case JointType::ball: balls.add(i); break;
      case JointType::hinge: hinges.add(i); break;
      default: state[i].R = joint_orientation(m.link[i], qpos);
    }
  }
  balls.finish(), hinges.finish();
}

/// E = P E, with the rows of E in packs. The memory after E must exist and is overwritten.
template <class T>
TARSUS_INLINE void premultiply_rows(const Mat3<T>& P, Mat3<T>& E) {
  using Row = typename RecordPack<T>::type;
  const Row x = load_rows<Row>(&E.xx), y = load_rows<Row>(&E.yx), z = load_rows<Row>(&E.zx);
  const auto row = [&](T px, T py, T pz) { return mul_add(Row(px), x, mul_add(Row(py), y, Row(pz) * z)); };
  const Row rx = row(P.xx, P.xy, P.xz), ry = row(P.yx, P.yy, P.yz), rz = row(P.zx, P.zy, P.zz);
  store_rows(&E.xx, rx), store_rows(&E.yx, ry), store_rows(&E.zx, rz);
}

template <class T>
TARSUS_INLINE void no_rigid_forces(LinkState<T>& s) {
  const T o = T(Real<T>(0));
  s.IA = {{o, o, o, o, o, o}, {o, o, o, o, o, o, o, o, o}, {o, o, o, o, o, o}};
  s.pA = {zero3<T>(), zero3<T>()};
}
/// Rigid inertia of a link, and the force for the motion of pass 1: pA = I a + v ×* I v.
template <bool kWithOwn, class T>
TARSUS_INLINE void rigid_forces(const ModelView<Real<T>>& m, int i, LinkState<T>& s) {
  if (m.link[i].massless) return no_rigid_forces(s);
  const RigidInertia<T> I = kWithOwn ? link_inertia(m, i, s.R) : model_inertia(m.link[i], s.R);
  s.IA = articulated(I);
  s.pA = newton_euler(I, s.v, s.a);
}

/// rigid_forces() of links first to first + 3 at once.
template <bool kWithOwn, class T>
TARSUS_INLINE void rigid_forces_of_four(const ModelView<T>& m, int first, LinkState<T>* s) {
  using P = typename RecordPack<T>::type;
  const LinkConstants<T>* link = m.link + first;
  const bool own = kWithOwn && m.own_inertia;
  const auto inertia = [&](int l) { return own ? m.own_inertia + 10 * (first + l) : &link[l].mass; };
  const T* const constants[4] = {inertia(0), inertia(1), inertia(2), inertia(3)};
  const T* const motion[4] = {&s[0].R.xx, &s[1].R.xx, &s[2].R.xx, &s[3].R.xx};
  T* const forces[4] = {&s[0].IA.I.xx, &s[1].IA.I.xx, &s[2].IA.I.xx, &s[3].IA.I.xx};
  RigidInertia<P> body;
  Mat3<P> R;
  Motion<P> v, a;
  P none;
  gather(motion, 0, R.xx, R.xy, R.xz, R.yx), gather(motion, 4, R.yy, R.yz, R.zx, R.zy);
  gather(motion, 8, R.zz, none, none, none);
  gather(constants, 0, body.mass, body.h.x, body.h.y, body.h.z);
  gather(constants, 4, body.I.xx, body.I.xy, body.I.xz, body.I.yy);
  gather(constants, 6, none, none, body.I.yz, body.I.zz);
  const RigidInertia<P> I = {body.mass, R * body.h, rotate(R, body.I)};
  const ArticulatedInertia<P> A = articulated(I);
  scatter(forces, 0, A.I.xx, A.I.xy, A.I.xz, A.I.yy), scatter(forces, 4, A.I.yz, A.I.zz, A.H.xx, A.H.xy);
  scatter(forces, 8, A.H.xz, A.H.yx, A.H.yy, A.H.yz), scatter(forces, 12, A.H.zx, A.H.zy, A.H.zz, A.M.xx);
  scatter(forces, 16, A.M.xy, A.M.xz, A.M.yy, A.M.yz);
  gather(motion, 12, v.w.x, v.w.y, v.w.z, v.v.x), gather(motion, 16, v.v.y, v.v.z, a.w.x, a.w.y);
  gather(motion, 20, a.w.z, a.v.x, a.v.y, a.v.z);
  const Force<P> f = newton_euler(I, v, a);
  scatter(forces, 20, A.M.zz, f.n.x, f.n.y, f.n.z), scatter(forces, 24, f.f.x, f.f.y, f.f.z, none);
  if (!(link[0].massless | link[1].massless | link[2].massless | link[3].massless)) return;
  for (int l = 0; l < 4; ++l) {
    if (link[l].massless) no_rigid_forces(s[l]);
  }
}

/// rigid_forces() of all links.
template <bool kWithOwn, class T>
TARSUS_INLINE void all_rigid_forces(const ModelView<T>& m, LinkState<T>* state) {
  int i = 0;
  for (; i + 4 <= m.nlink; i += 4) rigid_forces_of_four<kWithOwn>(m, i, state + i);
  if (i >= 4 && i + 1 < m.nlink)  // some links are computed twice
    rigid_forces_of_four<kWithOwn>(m, m.nlink - 4, state + m.nlink - 4), i = m.nlink;
  for (; i < m.nlink; ++i) rigid_forces<kWithOwn>(m, i, state[i]);
}

/// Pass 1, outward: poses, velocities, accelerations and forces for q̈ = 0, and rigid inertias. kWithOwn: the lanes may
/// have their own masses or gravity.
template <bool kWithOwn, class T>
inline void aba_outward_of(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel,
                           const T* external) {
  const Motion<T> a0 = {zero3<T>(), kWithOwn ? against_gravity<T>(m) : -load3<T>(m.gravity)};
  if constexpr (kRecords<T> == 4) joint_orientations<T>(m, state, qpos);
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    if constexpr (kRecords<T> == 4) {
      const Vec3<T> r = joint_offset(link, qpos, state, s.R);
      const T x = r.x, y = r.y, z = r.z;
      if (link.parent >= 0) premultiply_rows(state[link.parent].R, s.R);
      s.r.x = x, s.r.y = y, s.r.z = z;
    } else {
      joint_pose(link, qpos, state, s);
    }
    const Motion<T> c = joint_velocity(link, qvel, state, s);
    s.a = shift(link.parent >= 0 ? state[link.parent].a : a0, s.r) + c;
    if constexpr (kRecords<T> == 1) rigid_forces<kWithOwn>(m, i, s);
  }
  if constexpr (kRecords<T> == 4) all_rigid_forces<kWithOwn>(m, state);
  for (int i = 0; external && i < m.nlink; ++i)
    state[i].pA = state[i].pA - Force<T>{get3(external + 6 * i), get3(external + 6 * i + 3)};
}
template <class T>
inline void aba_outward(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel,
                        const T* external) {
  return m.own_inertia || m.own_gravity ? aba_outward_of<true>(m, state, qpos, qvel, external)
                                        : aba_outward_of<false>(m, state, qpos, qvel, external);
}

/// Pass 2 for a hinge or slide. S selects the axis e = R e_z from one half of IA.
template <class T>
TARSUS_INLINE void reduce_axial(JointType joint, LinkState<T>& s, LinkState<T>* parent, T Q, T K) {
  const Vec3<T> e = s.R.column_z();
  T D;
  if (turns_on_axis(joint)) {
    s.U = {s.IA.I * e, transpose_mul(s.IA.H, e)};  // U = IA S
    D = dot(e, s.U.n) + K;                         // D = Sᵀ U + K
    s.u.x = Q - dot(e, s.pA.n);                    // u = Q - Sᵀ pA
  } else {
    s.U = {s.IA.H * e, s.IA.M * e};
    D = dot(e, s.U.f) + K;
    s.u.x = Q - dot(e, s.pA.f);
  }
  const T Dinv = T(Real<T>(1)) / D;
  s.Dinv.xx = Dinv;
  if (!parent) return;
  const Force<T> UD = {s.U.n * Dinv, s.U.f * Dinv};
  const ArticulatedInertia<T> Ia = {minus_outer(s.IA.I, UD.n, s.U.n), minus_outer(s.IA.H, UD.n, s.U.f),
                                    minus_outer(s.IA.M, UD.f, s.U.f)};  // Ia = IA - U D⁻¹ Uᵀ
  const Force<T> pa = mul_add(UD, s.u.x, s.pA);                         // pa = pA + U D⁻¹ u
  add_shifted(parent->IA, Ia, s.r);
  parent->pA += shift_back(pa, s.r);
}

/// Whether K exceeds all of I. If it does, D = I + K is well conditioned and products with I are accurate. Otherwise
/// differences of K are as accurate as I itself, but products might not be if I is nearly singular.
template <class T>
TARSUS_INLINE Mask<T> outweighs(T K, const Sym3<T>& I) {
  return K > I.xx + I.yy + I.zz;
}

/// I D⁻¹ u = u - K x with x = D⁻¹ u: the part of u that a ball propagates.
template <class T>
TARSUS_INLINE Vec3<T> handed_on(const Sym3<T>& I, T K, const Vec3<T>& u, const Vec3<T>& x) {
  const Vec3<T> rest = mul_add(x, -K, u);
  const Mask<T> stiff = outweighs(K, I);
  if (!any_lane(stiff)) return rest;
  const Vec3<T> f = I * x;
  return {select(stiff, f.x, rest.x), select(stiff, f.y, rest.y), select(stiff, f.z, rest.z)};
}

/// K D⁻¹ I = K (1 - K D⁻¹): the part of I that a ball propagates. Nothing cancels off the diagonal.
template <class T>
TARSUS_INLINE Sym3<T> handed_on(const Sym3<T>& I, T K, const Sym3<T>& Dinv) {
  Sym3<T> Ia = Dinv * (-(K * K));
  Ia.xx += K, Ia.yy += K, Ia.zz += K;
  const Mask<T> stiff = outweighs(K, I);
  if (!any_lane(stiff)) return Ia;
  Ia.xx = select(stiff, dot(Dinv.column_x(), I.column_x()) * K, Ia.xx);
  Ia.yy = select(stiff, dot(Dinv.column_y(), I.column_y()) * K, Ia.yy);
  Ia.zz = select(stiff, dot(Dinv.column_z(), I.column_z()) * K, Ia.zz);
  return Ia;
}

/// Pass 2 for a ball, in world axes: S = [1; 0], U = [I; Hᵀ], D = I + K.
template <class T>
TARSUS_INLINE void reduce_ball(LinkState<T>& s, LinkState<T>* parent, const T* Q, T K) {
  Sym3<T> D = s.IA.I;
  D.xx += K, D.yy += K, D.zz += K;
  s.Dinv = inverse(D);
  s.k = K;
  s.u = s.R * get3(Q) - s.pA.n;
  s.G = from_columns(s.Dinv * s.IA.H.column_x(), s.Dinv * s.IA.H.column_y(),
                     s.Dinv * s.IA.H.column_z());  // D⁻¹ H
  if (!parent) return;
  // Ia = IA - U D⁻¹ Uᵀ with I = D - K: its blocks are K (1 - K D⁻¹), K D⁻¹ H and M - Hᵀ D⁻¹ H.
  ArticulatedInertia<T> Ia;
  Ia.I = handed_on(s.IA.I, K, s.Dinv);
  Ia.H = {s.G.xx * K, s.G.xy * K, s.G.xz * K, s.G.yx * K, s.G.yy * K, s.G.yz * K, s.G.zx * K, s.G.zy * K, s.G.zz * K};
  const Vec3<T> hx = s.IA.H.column_x(), hy = s.IA.H.column_y(), hz = s.IA.H.column_z();
  const Vec3<T> gx = s.G.column_x(), gy = s.G.column_y(), gz = s.G.column_z();
  const Sym3<T>& M = s.IA.M;
  Ia.M = {M.xx - dot(hx, gx), M.xy - dot(hx, gy), M.xz - dot(hx, gz),
          M.yy - dot(hy, gy), M.yz - dot(hy, gz), M.zz - dot(hz, gz)};
  const Vec3<T> x = s.Dinv * s.u;  // U D⁻¹ u = [u - K x; Hᵀ x]
  const Force<T> pa = {s.pA.n + handed_on(s.IA.I, K, s.u, x), s.pA.f + transpose_mul(s.IA.H, x)};
  add_shifted(parent->IA, Ia, s.r);
  parent->pA += shift_back(pa, s.r);
}

/// reduce_ball() for a K in world axes that is not a multiple of 1.
template <class T>
TARSUS_INLINE void reduce_ball_tensor(LinkState<T>& s, LinkState<T>* parent, const T* Q, const Sym3<T>& K) {
  s.Dinv = inverse(s.IA.I + K);
  s.u = s.R * get3(Q) - s.pA.n;
  s.G = from_columns(s.Dinv * s.IA.H.column_x(), s.Dinv * s.IA.H.column_y(),
                     s.Dinv * s.IA.H.column_z());  // D⁻¹ H
  if (!parent) return;
  // Ia = IA - U D⁻¹ Uᵀ with I = D - K: its blocks are K - K D⁻¹ K, K D⁻¹ H and M - Hᵀ D⁻¹ H.
  ArticulatedInertia<T> Ia;
  const Vec3<T> kx = K.column_x(), ky = K.column_y(), kz = K.column_z();
  const Vec3<T> ex = s.Dinv * kx, ey = s.Dinv * ky, ez = s.Dinv * kz;
  Ia.I = {K.xx - dot(kx, ex), K.xy - dot(kx, ey), K.xz - dot(kx, ez),
          K.yy - dot(ky, ey), K.yz - dot(ky, ez), K.zz - dot(kz, ez)};
  const Vec3<T> gx = s.G.column_x(), gy = s.G.column_y(), gz = s.G.column_z();
  Ia.H = from_columns(K * gx, K * gy, K * gz);
  const Vec3<T> hx = s.IA.H.column_x(), hy = s.IA.H.column_y(), hz = s.IA.H.column_z();
  const Sym3<T>& M = s.IA.M;
  Ia.M = {M.xx - dot(hx, gx), M.xy - dot(hx, gy), M.xz - dot(hx, gz),
          M.yy - dot(hy, gy), M.yz - dot(hy, gz), M.zz - dot(hz, gz)};
  const Vec3<T> x = s.Dinv * s.u;
  const Force<T> pa = {s.pA.n + s.u - K * x, s.pA.f + transpose_mul(s.IA.H, x)};
  add_shifted(parent->IA, Ia, s.r);
  parent->pA += shift_back(pa, s.r);
}

/// Pass 2 for a free joint (always at the root): D = [I + K_ω, H; Hᵀ, M + K_v] in world axes, by its Schur complement.
template <class T>
TARSUS_INLINE void reduce_free(LinkState<T>& s, const T* Q, const T* K) {
  Sym3<T> M = s.IA.M;
  M.xx += K[0], M.yy += K[1], M.zz += K[2];
  s.Minv = inverse(M);
  const Vec3<T> hx = s.IA.H.row_x(), hy = s.IA.H.row_y(), hz = s.IA.H.row_z();
  const Vec3<T> gx = s.Minv * hx, gy = s.Minv * hy, gz = s.Minv * hz;
  s.G = from_rows(gx, gy, gz);  // H M⁻¹
  const Sym3<T>& I = s.IA.I;
  s.Dinv = inverse(Sym3<T>{I.xx - dot(gx, hx) + K[3], I.xy - dot(gx, hy), I.xz - dot(gx, hz), I.yy - dot(gy, hy) + K[3],
                           I.yz - dot(gy, hz), I.zz - dot(gz, hz) + K[3]});
  s.u = s.R * get3(Q + 3) - s.pA.n;
  s.u_linear = get3(Q) - s.pA.f;
}

/// Pass 2 for link i, by its joint's type. Q and K are those of the joint.
template <class T>
TARSUS_INLINE void reduce(const LinkConstants<Real<T>>& link, LinkState<T>* state, int i, const T* Q, const T* K) {
  LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
  if (moves_freely(link.joint))
    reduce_free(state[i], Q, K);
  else if (turns_freely(link.joint))
    reduce_ball(state[i], parent, Q, K[0]);
  else
    reduce_axial(link.joint, state[i], parent, Q[0], K[0]);
}

/// reduce() for a group of links with hinges, or with balls, at once.
template <JointType kJoint, class T>
TARSUS_INLINE void reduce_group(const ModelView<T>& m, LinkState<T>* state, const LinkGroup& group, const T* Q,
                                const T* K) {
  using P = typename RecordPack<T>::type;
  const auto link = [&](int l) -> const LinkConstants<T>& { return m.link[group.link[l]]; };
  const auto of = [&](int l) -> LinkState<T>& { return state[group.link[l]]; };
  const auto pick = [&](const T* x, int k) {
    return P(typename P::Vector{x[link(0).qvel + k], x[link(1).qvel + k], x[link(2).qvel + k], x[link(3).qvel + k]});
  };
  const T* const pose[4] = {&of(0).R.xx, &of(1).R.xx, &of(2).R.xx, &of(3).R.xx};
  const T* const forces[4] = {&of(0).IA.I.xx, &of(1).IA.I.xx, &of(2).IA.I.xx, &of(3).IA.I.xx};
  T* const factors[4] = {&of(0).U.n.x, &of(1).U.n.x, &of(2).U.n.x, &of(3).U.n.x};
  const P nothing = P(T(-0.0));  // adding it leaves a number unchanged, including the sign of zero
  LinkState<P> s, parent;
  P none = nothing;
  gather(pose, 0, s.R.xx, s.R.xy, s.R.xz, s.R.yx), gather(pose, 4, s.R.yy, s.R.yz, s.R.zx, s.R.zy);
  gather(pose, 8, s.R.zz, s.r.x, s.r.y, s.r.z);
  ArticulatedInertia<P>& A = s.IA;
  gather(forces, 0, A.I.xx, A.I.xy, A.I.xz, A.I.yy), gather(forces, 4, A.I.yz, A.I.zz, A.H.xx, A.H.xy);
  gather(forces, 8, A.H.xz, A.H.yx, A.H.yy, A.H.yz), gather(forces, 12, A.H.zx, A.H.zy, A.H.zz, A.M.xx);
  gather(forces, 16, A.M.xy, A.M.xz, A.M.yy, A.M.yz), gather(forces, 20, A.M.zz, s.pA.n.x, s.pA.n.y, s.pA.n.z);
  gather(forces, 24, s.pA.f.x, s.pA.f.y, s.pA.f.z, none);
  parent.IA = {{nothing, nothing, nothing, nothing, nothing, nothing},
               {nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing},
               {nothing, nothing, nothing, nothing, nothing, nothing}};
  parent.pA = {{nothing, nothing, nothing}, {nothing, nothing, nothing}};
  if constexpr (turns_freely(kJoint)) {
    const P q[3] = {pick(Q, 0), pick(Q, 1), pick(Q, 2)};
    reduce_ball(s, &parent, q, pick(K, 0));
    scatter(factors, 6, s.Dinv.xx, s.Dinv.xy, s.Dinv.xz, s.Dinv.yy);
    scatter(factors, 10, s.Dinv.yz, s.Dinv.zz, s.G.xx, s.G.xy), scatter(factors, 14, s.G.xz, s.G.yx, s.G.yy, s.G.yz);
    scatter(factors, 18, s.G.zx, s.G.zy, s.G.zz, s.k), scatter(factors, 22, s.u.x, s.u.y, s.u.z, none);
  } else {
    reduce_axial(kJoint, s, &parent, pick(Q, 0), pick(K, 0));
    scatter(factors, 0, s.U.n.x, s.U.n.y, s.U.n.z, s.U.f.x), scatter(factors, 4, s.U.f.y, s.U.f.z, s.Dinv.xx, none);
    for (int l = 0; l < 4; ++l) of(l).u.x = s.u.x[l];
  }
  // For links on the world and for repeated links of the group.
  P nowhere[7] = {nothing, nothing, nothing, nothing, nothing, nothing, nothing};
  T* to[4];
  for (int l = 0; l < 4; ++l)
    to[l] = l < group.count && link(l).parent >= 0 ? &state[link(l).parent].IA.I.xx : reinterpret_cast<T*>(nowhere);
  const ArticulatedInertia<P>& B = parent.IA;
  const Force<P>& f = parent.pA;
  scatter_add(to, 0, B.I.xx, B.I.xy, B.I.xz, B.I.yy), scatter_add(to, 4, B.I.yz, B.I.zz, B.H.xx, B.H.xy);
  scatter_add(to, 8, B.H.xz, B.H.yx, B.H.yy, B.H.yz), scatter_add(to, 12, B.H.zx, B.H.zy, B.H.zz, B.M.xx);
  scatter_add(to, 16, B.M.xy, B.M.xz, B.M.yy, B.M.yz), scatter_add(to, 20, B.M.zz, f.n.x, f.n.y, f.n.z);
  scatter_add(to, 24, f.f.x, f.f.y, f.f.z, nothing);
}

/// Pass 2 for one group.
template <class T>
TARSUS_INLINE void reduce_one_group(const ModelView<Real<T>>& m, LinkState<T>* state, const LinkGroup& group,
                                    const T* Q, const T* K) {
  if constexpr (kRecords<T> == 4) {
    if (group.count > 1) {
      if (turns_freely(m.link[group.link[0]].joint)) return reduce_group<JointType::ball, T>(m, state, group, Q, K);
      return reduce_group<JointType::hinge, T>(m, state, group, Q, K);
    }
  }
  for (int k = 0; k < group.count; ++k) {
    const int i = group.link[k], v = m.link[i].qvel;
    reduce(m.link[i], state, i, Q + v, K + v);
  }
}
/// Pass 2 for the first groups.
template <class T>
inline void reduce_groups(const ModelView<Real<T>>& m, LinkState<T>* state, int groups, const T* Q, const T* K) {
  for (int g = 0; g < groups; ++g) reduce_one_group(m, state, m.inward[g], Q, K);
}

/// Pass 2, inward: articulated inertias and bias forces. The factors are kept in U, Dinv, G and Minv.
template <class T>
inline void aba_inward(const ModelView<Real<T>>& m, LinkState<T>* state, const T* Q, const T* K) {
  reduce_groups(m, state, m.ninward, Q, K);
}

/// Joint acceleration of one link from u and from the acceleration due to the q̈ of joints closer to the root (in s.a).
/// Adds S q̈ to s.a.
template <class T>
TARSUS_INLINE void joint_acceleration(const LinkConstants<Real<T>>& link, LinkState<T>& s, T* qacc) {
  T* x = qacc + link.qvel;
  if (moves_freely(link.joint)) {  // at the root, so s.a is zero
    const Vec3<T> ang = s.Dinv * (s.u - s.G * s.u_linear);
    const Vec3<T> lin = s.Minv * s.u_linear - transpose_mul(s.G, ang);
    put3(x, lin), put3(x + 3, transpose_mul(s.R, ang));
    s.a = {ang, lin};
  } else if (turns_freely(link.joint)) {
    const Vec3<T> ang = s.Dinv * (s.u - s.IA.I * s.a.w) - s.G * s.a.v;  // q̈ = D⁻¹ (u - Uᵀ a)
    put3(x, transpose_mul(s.R, ang));
    s.a.w += ang;
  } else {
    const Vec3<T> e = s.R.column_z();
    x[0] = (s.u.x - dot(s.U, s.a)) * s.Dinv.xx;
    if (turns_on_axis(link.joint))
      s.a.w = mul_add(e, x[0], s.a.w);
    else
      s.a.v = mul_add(e, x[0], s.a.v);
  }
}

/// Pass 3, outward: accelerations.
template <class T>
TARSUS_INLINE void accelerate_link(const ModelView<Real<T>>& m, LinkState<T>* state, int i, T* qacc) {
  const LinkConstants<Real<T>>& link = m.link[i];
  LinkState<T>& s = state[i];
  s.a = link.parent >= 0 ? shift(state[link.parent].a, s.r) : world_velocity<T>();
  joint_acceleration(link, s, qacc);
}
template <class T>
inline void aba_accelerate(const ModelView<Real<T>>& m, LinkState<T>* state, T* qacc) {
  for (int i = 0; i < m.nlink; ++i) accelerate_link(m, state, i, qacc);
}

/// q̈ from q, q̇, joint forces Q [nv], joint-space inertia K [nv] and external forces [nlink][6] (n, f at the link's
/// origin, world axes; null: none). qacc may alias Q.
template <class T>
void aba_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, const T* Q, const T* K,
                const T* external, T* qacc) {
  aba_outward(m, state, qpos, qvel, external);
  aba_inward(m, state, Q, K);
  aba_accelerate(m, state, qacc);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
