// (M̂ + Σ J_lᵀ B_l J_l) x = Σ J_lᵀ f_l for packs of worlds, B_l symmetric or not: ABA's passes 2 and 3 with loads.
//
// A contact that sticks, or does not touch, makes B symmetric: ABA's own passes (aba.inl). One that slides does not;
// then a link's inertia is a map from motions to forces without symmetry, and
//
//     U = IA S,  V = Sᵀ IA,  D = Sᵀ U + K,  IA -= U D⁻¹ V,  p += U D⁻¹ u
//
// Each world takes the pass that its own loads ask for, whatever its neighbours do.
#pragma once

#include "dynamics/loaded.inl"
#include "dynamics/velocity_products.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Loads of one link and its joint; see link_load.hpp.
template <class T>
struct LaneLoad {
  MotionToForce<T> B;
  Force<T> f;
  Sym3<T> joint;
  Vec3<T> joint_force;
};

/// Factors of one link without symmetry.
template <class T>
struct LaneLink {
  MotionToForce<T> IA;
  Force<T> U, V;  ///< hinge, slide; D⁻¹ in Dinv.xx
  Mat3<T> Dinv, Minv, upper;
};

/// x for symmetric loads; J_l x into the links' a. Balls take their K as a tensor in every world, loaded or not: a
/// world's roundings do not depend on its neighbours' rows.
template <class T>
void lane_solve_symmetric(const ModelView<Real<T>>& m, LinkState<T>* state, const T* K, const LaneLoad<T>* loads,
                          const char* loaded, T* x) {
  const T zero = T(Real<T>(0));
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.IA = articulated(s.Ic);
    s.pA = {zero3<T>(), zero3<T>()};
    if (!loaded[i]) continue;
    const MotionToForce<T>& B = loads[i].B;
    s.IA.I += Sym3<T>{B.nw.xx, B.nw.xy, B.nw.xz, B.nw.yy, B.nw.yz, B.nw.zz};
    s.IA.H = s.IA.H + B.nv;
    s.IA.M += Sym3<T>{B.fv.xx, B.fv.xy, B.fv.xz, B.fv.yy, B.fv.yz, B.fv.zz};
    s.pA = {-loads[i].f.n, -loads[i].f.f};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
    T force[6] = {zero, zero, zero, zero, zero, zero};
    const T* own = K + link.qvel;
    if (moves_freely(link.joint)) {
      reduce(link, state, i, force, own);
    } else if (turns_freely(link.joint)) {
      Sym3<T> tensor = diagonal3(own[0], own[0], own[0]);
      if (loaded[i]) {
        tensor += loads[i].joint;
        put3(force, transpose_mul(state[i].R, loads[i].joint_force));
      }
      reduce_ball_tensor(state[i], parent, force, tensor);
    } else if (loaded[i]) {
      reduce_axial(link.joint, state[i], parent, loads[i].joint_force.x, own[0] + loads[i].joint.xx);
    } else {
      reduce_axial(link.joint, state[i], parent, zero, own[0]);
    }
  }
  aba_accelerate(m, state, x);
}

template <class T>
TARSUS_INLINE MotionToForce<T> motion_to_force(const RigidInertia<T>& I) {
  const T o = T(Real<T>(0));
  const Mat3<T> H = cross_matrix(I.h);
  return {I.I.full(), H, transpose(H), {I.mass, o, o, o, I.mass, o, o, o, I.mass}};
}

/// Pass 2 without symmetry, matrices alone: the factors of the loaded tree.
template <class T>
void lane_factor(const ModelView<Real<T>>& m, const LinkState<T>* state, const T* K, const LaneLoad<T>* loads,
                 const char* loaded, LaneLink<T>* links) {
  for (int i = 0; i < m.nlink; ++i) {
    links[i].IA = motion_to_force(state[i].Ic);
    if (!loaded[i]) continue;
    MotionToForce<T>& A = links[i].IA;
    const MotionToForce<T>& B = loads[i].B;
    A = {A.nw + B.nw, A.nv + B.nv, A.fw + B.fw, A.fv + B.fv};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const T* own = K + link.qvel;
    LaneLink<T>& x = links[i];
    const LinkState<T>& s = state[i];
    LaneLink<T>* parent = link.parent >= 0 ? &links[link.parent] : nullptr;
    if (moves_freely(link.joint)) {
      Mat3<T> M = x.IA.fv, I = x.IA.nw;
      M.xx += own[0], M.yy += own[1], M.zz += own[2];
      I.xx += own[3], I.yy += own[3], I.zz += own[3];
      x.Minv = inverse(M);
      x.upper = x.IA.nv * x.Minv;
      x.Dinv = inverse(minus_product(I, x.upper, x.IA.fw));
    } else if (turns_freely(link.joint)) {
      Sym3<T> tensor = diagonal3(own[0], own[0], own[0]);
      if (loaded[i]) tensor += loads[i].joint;
      const Mat3<T> KT = tensor.full();
      x.Dinv = inverse(x.IA.nw + KT);
      if (!parent) continue;
      // 1 - nw D⁻¹ = K D⁻¹: no difference that cancels
      const Mat3<T> rest = KT * x.Dinv, W = x.IA.fw * x.Dinv;
      add_shifted(parent->IA,
                  MotionToForce<T>{rest * x.IA.nw, rest * x.IA.nv, W * KT, minus_product(x.IA.fv, W, x.IA.nv)}, s.r);
    } else {
      const Vec3<T> e = s.R.column_z();
      const T resistance = loaded[i] ? own[0] + loads[i].joint.xx : own[0];
      T D;
      if (turns_on_axis(link.joint)) {
        x.U = {x.IA.nw * e, x.IA.fw * e};
        x.V = {transpose_mul(x.IA.nw, e), transpose_mul(x.IA.nv, e)};
        D = dot(e, x.U.n) + resistance;
      } else {
        x.U = {x.IA.nv * e, x.IA.fv * e};
        x.V = {transpose_mul(x.IA.fw, e), transpose_mul(x.IA.fv, e)};
        D = dot(e, x.U.f) + resistance;
      }
      x.Dinv.xx = T(Real<T>(1)) / D;
      if (!parent) continue;
      const Force<T> W = {x.U.n * x.Dinv.xx, x.U.f * x.Dinv.xx};
      add_shifted(parent->IA,
                  MotionToForce<T>{minus_outer(x.IA.nw, W.n, x.V.n), minus_outer(x.IA.nv, W.n, x.V.f),
                                   minus_outer(x.IA.fw, W.f, x.V.n), minus_outer(x.IA.fv, W.f, x.V.f)},
                  s.r);
    }
  }
}

/// x of N right-hand sides with those factors. p: [link][N] minus the force on each link, lost; joint_force: [link]
/// or null (N = 1). pushed, needed: [link] only these have a force in what they carry; only these, with their parents
/// and all that are pushed, are asked for; null: all.
/// motion: [link][N] out: J_l x. u: scratch [link][N][2]. x: [nv] (N = 1), or null.
template <int N, class T>
void lane_substitute(const ModelView<Real<T>>& m, const LinkState<T>* state, const LaneLink<T>* links, Force<T>* p,
                     const LaneLoad<T>* loads, const char* loaded, const char* pushed, const char* needed, Vec3<T>* u,
                     Motion<T>* motion, T* x) {
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (pushed && !pushed[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const LaneLink<T>& f = links[i];
    const LinkState<T>& s = state[i];
    const bool own = loads && loaded[i];
    for (int k = 0; k < N; ++k) {
      const Force<T>& at = p[N * i + k];
      Force<T>* parent = link.parent >= 0 ? &p[N * link.parent + k] : nullptr;
      Vec3<T>* left = &u[2 * (N * i + k)];
      if (moves_freely(link.joint)) {
        left[0] = -at.n, left[1] = -at.f;
      } else if (turns_freely(link.joint)) {
        left[0] = own ? loads[i].joint_force - at.n : -at.n;
        if (!parent) continue;
        const Vec3<T> q = f.Dinv * left[0];
        *parent += shift_back(Force<T>{at.n + f.IA.nw * q, at.f + f.IA.fw * q}, s.r);
      } else {
        const Vec3<T> e = s.R.column_z();
        left[0].x = -(turns_on_axis(link.joint) ? dot(e, at.n) : dot(e, at.f));
        if (own) left[0].x += loads[i].joint_force.x;
        if (parent) *parent += shift_back(mul_add(f.U, left[0].x * f.Dinv.xx, at), s.r);
      }
    }
  }
  for (int i = 0; i < m.nlink; ++i) {
    if (needed && !needed[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const LaneLink<T>& f = links[i];
    const LinkState<T>& s = state[i];
    const bool still = pushed && !pushed[i];
    for (int k = 0; k < N; ++k) {
      const Vec3<T> none[2] = {zero3<T>(), zero3<T>()};
      const Vec3<T>* left = still ? none : &u[2 * (N * i + k)];
      Motion<T> a = link.parent >= 0 ? shift(motion[N * link.parent + k], s.r) : world_velocity<T>();
      T q[6];
      if (moves_freely(link.joint)) {
        const Vec3<T> angular = f.Dinv * (left[0] - f.upper * left[1]);
        const Vec3<T> linear = f.Minv * (left[1] - f.IA.fw * angular);
        put3(q, linear), put3(q + 3, transpose_mul(s.R, angular));
        a = {angular, linear};
      } else if (turns_freely(link.joint)) {
        const Vec3<T> angular = f.Dinv * (left[0] - f.IA.nw * a.w - f.IA.nv * a.v);
        put3(q, transpose_mul(s.R, angular));
        a.w += angular;
      } else {
        const Vec3<T> e = s.R.column_z();
        q[0] = (left[0].x - dot(f.V, a)) * f.Dinv.xx;
        if (turns_on_axis(link.joint))
          a.w = mul_add(e, q[0], a.w);
        else
          a.v = mul_add(e, q[0], a.v);
      }
      motion[N * i + k] = a;
      for (int j = 0; x && j < qvel_count(link.joint); ++j) x[link.qvel + j] = q[j];
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
