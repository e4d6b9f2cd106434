// The stiffened tree of packs of worlds, with B_l symmetric or not:
//
//     (M̂ + Σ J_lᵀ B_l J_l) x = Σ J_lᵀ f_l
//
// ABA's passes 2 and 3 with contact stiffness solve it in O(n). Contacts that stick or are open have a symmetric B, and
// aba.inl's passes apply. A sliding contact has not. A link's articulated inertia is then a map from motions to forces
// without symmetry, and
//
//     U = IA S,  V = Sᵀ IA,  D = Sᵀ U + K,  IA -= U D⁻¹ V,  p += U D⁻¹ u
//
// Each world takes the pass that its own stiffness needs, independently of its neighbours.
#pragma once

#include "dynamics/stiffened.inl"
#include "dynamics/velocity_products.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Stiffness of one link and its joint; see link_stiffness.hpp.
template <class T>
struct LaneStiffness {
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

/// Forces on a tree besides its stiffness: minus the force on each link [nlink], and the force on the joints [nv].
/// Null: zero.
template <class T>
struct LaneForces {
  const Force<T>* bias = nullptr;
  const T* joint = nullptr;
  T in_place = T(Real<T>(0));  ///< the bias is this times the links' pA, with the rigid inertia in their IA,
  bool fresh = false;          ///< if pass 1 has just left them
};

/// x for symmetric stiffness; the links' a gets J_l x. Balls use K as a tensor in every world, with stiffness or not,
/// so that a world's rounding does not depend on its neighbours' rows.
template <class T>
void lane_solve_symmetric(const ModelView<Real<T>>& m, LinkState<T>* state, const T* K, const LaneForces<T>& forces,
                          const LaneStiffness<T>* stiffnesses, const char* stiff, T* x) {
  const T zero = T(Real<T>(0)), none[6] = {zero, zero, zero, zero, zero, zero};
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    if (forces.fresh) {
      s.pA = {s.pA.n * forces.in_place, s.pA.f * forces.in_place};
    } else {
      s.IA = articulated(s.Ic);
      s.pA = forces.bias ? forces.bias[i] : Force<T>{zero3<T>(), zero3<T>()};
    }
    if (!stiff[i]) continue;
    const MotionToForce<T>& B = stiffnesses[i].B;
    s.IA.I += Sym3<T>{B.nw.xx, B.nw.xy, B.nw.xz, B.nw.yy, B.nw.yz, B.nw.zz};
    s.IA.H = s.IA.H + B.nv;
    s.IA.M += Sym3<T>{B.fv.xx, B.fv.xy, B.fv.xz, B.fv.yy, B.fv.yz, B.fv.zz};
    s.pA = s.pA - stiffnesses[i].f;
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
    const T* own = K + link.qvel;
    const T* Q = forces.joint ? forces.joint + link.qvel : none;
    if (moves_freely(link.joint)) {
      reduce(link, state, i, Q, own);
    } else if (turns_freely(link.joint)) {
      Sym3<T> tensor = diagonal3(own[0], own[0], own[0]);
      Vec3<T> force = get3(Q);
      if (stiff[i]) tensor += stiffnesses[i].joint, force += transpose_mul(state[i].R, stiffnesses[i].joint_force);
      const T on_axes[3] = {force.x, force.y, force.z};
      reduce_ball_tensor(state[i], parent, on_axes, tensor);
    } else if (stiff[i]) {
      reduce_axial(link.joint, state[i], parent, Q[0] + stiffnesses[i].joint_force.x, own[0] + stiffnesses[i].joint.xx);
    } else {
      reduce_axial(link.joint, state[i], parent, Q[0], own[0]);
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

/// Pass 2 without symmetry, matrices alone: the factors of the stiffened tree.
template <class T>
void lane_factor(const ModelView<Real<T>>& m, const LinkState<T>* state, const T* K,
                 const LaneStiffness<T>* stiffnesses, const char* stiff, LaneLink<T>* links) {
  for (int i = 0; i < m.nlink; ++i) {
    links[i].IA = motion_to_force(state[i].Ic);
    if (!stiff[i]) continue;
    MotionToForce<T>& A = links[i].IA;
    const MotionToForce<T>& B = stiffnesses[i].B;
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
      if (stiff[i]) tensor += stiffnesses[i].joint;
      const Mat3<T> KT = tensor.full();
      x.Dinv = inverse(x.IA.nw + KT);
      if (!parent) continue;
      // 1 - nw D⁻¹ = K D⁻¹, which avoids cancellation.
      const Mat3<T> rest = KT * x.Dinv, W = x.IA.fw * x.Dinv;
      add_shifted(parent->IA,
                  MotionToForce<T>{rest * x.IA.nw, rest * x.IA.nv, W * KT, minus_product(x.IA.fv, W, x.IA.nv)}, s.r);
    } else {
      const Vec3<T> e = s.R.column_z();
      const T resistance = stiff[i] ? own[0] + stiffnesses[i].joint.xx : own[0];
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

/// Uses the factors of each lane's own world.
struct LanesAsTheyAre {
  template <class X>
  TARSUS_INLINE const X& operator()(const X& x) const {
    return x;
  }
};
/// Lane l uses the factors of lane from[l]. Right-hand sides that few lanes have are then solved side by side.
template <class T>
struct LanesTurned {
  Bits<T> from;
  TARSUS_INLINE T operator()(T x) const { return permute(x, from); }
  TARSUS_INLINE Vec3<T> operator()(const Vec3<T>& v) const { return {(*this)(v.x), (*this)(v.y), (*this)(v.z)}; }
  TARSUS_INLINE Mat3<T> operator()(const Mat3<T>& A) const {
    return from_rows((*this)(A.row_x()), (*this)(A.row_y()), (*this)(A.row_z()));
  }
  TARSUS_INLINE Force<T> operator()(const Force<T>& f) const { return {(*this)(f.n), (*this)(f.f)}; }
};

/// x for N right-hand sides with those factors, taken from the lanes that `of` chooses.
/// @param p [link][N] minus the force on each link; overwritten
/// @param Q [nv][N] force on the joints besides that of `stiffnesses`, or null
/// @param pushed [link] only these links carry a force, themselves or through descendants; null: all
/// @param needed [link] only these motions are needed; must include their parents and all `pushed` links; null: all
/// @param u scratch [link][N][2]  @param motion [link][N] out: J_l x  @param x [nv][N] out, or null
template <int N, class T, class Lanes = LanesAsTheyAre>
void lane_substitute(const ModelView<Real<T>>& m, const LinkState<T>* state, const LaneLink<T>* links, Force<T>* p,
                     const T* Q, const LaneStiffness<T>* stiffnesses, const char* stiff, const char* pushed,
                     const char* needed, Vec3<T>* u, Motion<T>* motion, T* x, const Lanes& of = {}) {
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (pushed && !pushed[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const LaneLink<T>& f = links[i];
    const LinkState<T>& s = state[i];
    const bool own = stiffnesses && stiff[i];
    const T* const force = Q ? Q + N * link.qvel : nullptr;
    const auto three = [&](int j, int k) {
      return Vec3<T>{force[N * j + k], force[N * (j + 1) + k], force[N * (j + 2) + k]};
    };
    Force<T>* parent = link.parent >= 0 ? &p[N * link.parent] : nullptr;
    Vec3<T>* left = &u[2 * N * i];
    const Force<T>* at = &p[N * i];
    if (moves_freely(link.joint)) {
      for (int k = 0; k < N; ++k) left[2 * k] = -at[k].n, left[2 * k + 1] = -at[k].f;
      for (int k = 0; force && k < N; ++k) left[2 * k] += of(s.R) * three(3, k), left[2 * k + 1] += three(0, k);
    } else if (turns_freely(link.joint)) {
      for (int k = 0; k < N; ++k) left[2 * k] = own ? stiffnesses[i].joint_force - at[k].n : -at[k].n;
      for (int k = 0; force && k < N; ++k) left[2 * k] += of(s.R) * three(0, k);
      if (!parent) continue;
      const Mat3<T> Dinv = of(f.Dinv), nw = of(f.IA.nw), fw = of(f.IA.fw);
      const Vec3<T> r = of(s.r);
      for (int k = 0; k < N; ++k) {
        const Vec3<T> q = Dinv * left[2 * k];
        parent[k] += shift_back(Force<T>{at[k].n + nw * q, at[k].f + fw * q}, r);
      }
    } else {
      const Vec3<T> e = of(s.R.column_z()), r = of(s.r);
      const Force<T> U = of(f.U);
      const T Dinv = of(f.Dinv.xx);
      for (int k = 0; k < N; ++k) {
        T& rest = left[2 * k].x;
        rest = -(turns_on_axis(link.joint) ? dot(e, at[k].n) : dot(e, at[k].f));
        if (own) rest += stiffnesses[i].joint_force.x;
        if (force) rest += force[k];
        if (parent) parent[k] += shift_back(mul_add(U, rest * Dinv, at[k]), r);
      }
    }
  }
  for (int i = 0; i < m.nlink; ++i) {
    if (needed && !needed[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const LaneLink<T>& f = links[i];
    const LinkState<T>& s = state[i];
    const bool still = pushed && !pushed[i];
    const Vec3<T> none[2] = {zero3<T>(), zero3<T>()};
    const auto left = [&](int k) { return still ? none : &u[2 * (N * i + k)]; };
    const auto carried = [&](int k, const Vec3<T>& r) {
      return link.parent >= 0 ? shift(motion[N * link.parent + k], r) : world_velocity<T>();
    };
    T q[6];
    const auto answer = [&](int k, int count) {
      for (int j = 0; x && j < count; ++j) x[N * (link.qvel + j) + k] = q[j];
    };
    const auto own_axes = [&](const Vec3<T>& w, T* to) {
      if (x) put3(to, transpose_mul(of(s.R), w));
    };
    if (moves_freely(link.joint)) {
      const Mat3<T> Dinv = of(f.Dinv), Minv = of(f.Minv), upper = of(f.upper), fw = of(f.IA.fw);
      for (int k = 0; k < N; ++k) {
        const Vec3<T> angular = Dinv * (left(k)[0] - upper * left(k)[1]);
        const Vec3<T> linear = Minv * (left(k)[1] - fw * angular);
        put3(q, linear), own_axes(angular, q + 3);
        motion[N * i + k] = {angular, linear};
        answer(k, 6);
      }
    } else if (turns_freely(link.joint)) {
      const Mat3<T> Dinv = of(f.Dinv), nw = of(f.IA.nw), nv = of(f.IA.nv);
      const Vec3<T> r = of(s.r);
      for (int k = 0; k < N; ++k) {
        Motion<T> a = carried(k, r);
        const Vec3<T> angular = Dinv * (left(k)[0] - nw * a.w - nv * a.v);
        own_axes(angular, q);
        a.w += angular;
        motion[N * i + k] = a;
        answer(k, 3);
      }
    } else {
      const Vec3<T> e = of(s.R.column_z()), r = of(s.r);
      const Force<T> V = of(f.V);
      const T Dinv = of(f.Dinv.xx);
      for (int k = 0; k < N; ++k) {
        Motion<T> a = carried(k, r);
        q[0] = (left(k)[0].x - dot(V, a)) * Dinv;
        if (turns_on_axis(link.joint))
          a.w = mul_add(e, q[0], a.w);
        else
          a.v = mul_add(e, q[0], a.v);
        motion[N * i + k] = a;
        answer(k, 1);
      }
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
