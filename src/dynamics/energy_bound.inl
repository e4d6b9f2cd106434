// Bounds the energy and momentum that velocity products may add in a step in which links turn far.
//
// A step moves q by h v with v constant in the joints' coordinates, and evaluates velocity products at the resulting q.
// For small h the momentum and kinetic energy that the first adds are removed by the second. If a branch turns by
// radians within the step, as a light one may after an impact, both can add. Let v⁰ = v + h q̈ be the velocity from the
// products and the forces Q, p momentum, F the forces on free joints and W the work of all forces. The exact motion
// would satisfy
//
//     p(q, v⁰) = p(q ⊟ h v, v) + h F,   T(q, v⁰) <= T(q ⊟ h v, v) + W,   W = ½ h (v + v⁰) · Q
//
// The bound is enforced for each tree, with its own λ, in this order:
//
// 1. A tree on a free joint gets the linear momentum above, because an error in it changes the energy in proportion to
//    the speed of the whole tree. Gravity's part of W also uses this momentum: at q, v may move the whole tree many
//    times as fast.
// 2. If the energy is still too large, internal damping reduces the joints' rates: (M + K + λ D) (v⁰' - v⁰) = -λ D v⁰,
//    where D is the joints' own articulated inertia, reduced for joints that turn little. It preserves momentum.
// 3. If no λ suffices, the momentum is wrong. Trees on a free joint get the momentum above by a rigid motion of the
//    whole tree. The joints are damped again, starting from their undamped rates or, if that does not suffice either,
//    from the damped ones.
// 4. Any remaining excess is removed from all motion within the tree about its centre of mass, and with it angular
//    momentum.
//
// Contacts and limits that follow only remove energy, so nothing gains any.
#pragma once

#include "dynamics/integrate.inl"
#include "dynamics/mat3_columns.inl"
#include "dynamics/minv.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kBoundAngle = 0.2;  ///< h|ω| of the fastest link above which the bound is evaluated
/// Or this over the number of DoFs on the path to the world, if less: each joint multiplies the error of those before.
inline constexpr double kChainAngle = 4;
inline constexpr double kFirstDamping = 1.5;
inline constexpr double kMoreDamping = 4;  ///< factor between successive λ
inline constexpr int kDampings = 4;        ///< number of λ tried
/// Parameters of the damping. Trees in loops keep less of their motion, because the loops open if the trees keep as
/// much as the bound allows.
struct Dampings {
  double least_share;  ///< fraction of its inertia with which a slow joint is damped
  double momentum;     ///< excess relative to the energy within a tree, above which momentum is corrected
};
inline constexpr Dampings kAlone{1e-2, 1e-3}, kHeld{1, 0.1};
inline constexpr double kTolerated = 1e-3;  ///< tolerated excess, relative to the energy within a tree
inline constexpr double kLeastLeft = 1e-2;  ///< fraction of the joints' energy that the first λ aims for

/// A tree's momentum about its centre of mass.
template <class T>
struct TreeMomentum {
  Vec3<T> angular, linear;
};

/// Quantities of the bound for one tree.
template <class T>
struct TreeBound {
  TreeMomentum<T> before;  ///< at q ⊟ h v, of a tree on a free joint
  Vec3<T> centre;          ///< a sum over its links; velocity of the centre of mass
  T angle, slope;          ///< h|ω| of its fastest link, and slope of θ against it
  T bound_angle;           ///< h|ω| above which it is bounded
  T most, inner;     ///< T(q ⊟ h v, v); the same without the motion of the centre of mass, for a tree on a free joint
  T gain;            ///< excess of T(q, v⁰) - W over `most`
  T sum, lambda;     ///< a sum over its links and joints, and λ
  Mask<T> floating;  ///< lanes in which its linear momentum was restored
  Mask<T> bounded;   ///< lanes in which the bound applies
  Mask<T> missed;    ///< lanes in which it exceeds the bound
  Mask<T> resolved;  ///< lanes in which it belongs to a linkage that the step resolves
  bool held;         ///< by a loop

  TARSUS_INLINE const Dampings& dampings() const { return held ? kHeld : kAlone; }
  /// Whether the excess is larger than `share` of the energy of the motion within the tree.
  TARSUS_INLINE Mask<T> is_above(double share) const {
    const T rounding = most * (8 * std::numeric_limits<Real<T>>::epsilon());
    return gain > mul_add(inner, T(Real<T>(share)), rounding);
  }
};

/// A linear map from motions to forces without symmetry: n = nw w + nv v, f = fw w + fv v.
template <class T, class M = Mat3<T>>
struct MotionToForce {
  M nw, nv, fw, fv;
};

/// What this pass keeps of one link besides LinkState, whose pA it shares.
template <class T>
struct VelocityProductLink {
  MotionToForce<T, ProductMat3<T>> IA, GA;
  Motion<T> A;
  // Factors. hinge, slide: Sᵀ IA and Sᵀ GA, D⁻¹ in xx. ball: D⁻¹; the rows stay in IA and GA. free: D⁻¹ of the angular
  // Schur complement, (linear-linear block)⁻¹, and the two off-diagonal blocks.
  Force<T> row_IA, row_GA;
  Mat3<T> Dinv, Minv, upper, lower;
  T theta_h;          // θh of its tree
  TreeBound<T> tree;  // only in a root link
};

/// Calls f(link, its tree) for each link.
template <class T, class F>
TARSUS_INLINE void for_each_link(const ModelView<Real<T>>& m, VelocityProductLink<T>* all, const F& f) {
  for (int i = 0; i < m.nlink; ++i) f(i, all[m.link[i].root].tree);
}
/// Calls f(tree) for each tree.
template <class T, class F>
TARSUS_INLINE void for_each_tree(const ModelView<Real<T>>& m, VelocityProductLink<T>* all, const F& f) {
  for (int i = 0; i < m.nlink; ++i) {
    if (m.link[i].parent < 0) f(all[i].tree);
  }
}
/// Calls f(link, DoF, index of its joint inertia, tree). A ball has one inertia, a free joint four.
template <class T, class F>
TARSUS_INLINE void for_each_dof(const ModelView<Real<T>>& m, VelocityProductLink<T>* all, const F& f) {
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const int n = qvel_count(link.joint);
    for (int k = 0; k < n; ++k) f(i, link.qvel + k, link.qvel + (n == 6 ? (k < 3 ? k : 3) : 0), tree);
  });
}
/// Restricts the bound to the trees and lanes for which `of` their TreeBound is true. @return whether there are any
template <class T, class Of>
TARSUS_INLINE bool go_on_where(const ModelView<Real<T>>& m, VelocityProductLink<T>* all, const Of& of) {
  bool some = false;
  for_each_tree<T>(m, all, [&](TreeBound<T>& tree) {
    tree.bounded = tree.bounded & of(tree);
    some = some || any_lane(tree.bounded);
  });
  return some;
}

template <class T>
TARSUS_INLINE T twice_kinetic(const RigidInertia<T>& I, const Motion<T>& v) {
  return dot(I * v, v);
}

template <class T>
TARSUS_INLINE TreeMomentum<T> about_centre(const RigidInertia<T>& whole, const Force<T>& p) {
  return {p.n - cross(whole.h * (T(Real<T>(1)) / whole.mass), p.f), p.f};
}

/// Momentum and inertia of each subtree about its root, summed in the links' pA and Ic from the links' own.
template <class T>
void gather_momentum(const ModelView<Real<T>>& m, LinkState<T>* state) {
  for (int i = m.nlink - 1; i >= 0; --i) {
    const int parent = m.link[i].parent;
    if (parent < 0) continue;
    state[parent].pA += shift_back(state[i].pA, state[i].r);
    state[parent].Ic = state[parent].Ic + shift_back(state[i].Ic, state[i].r);
  }
}

/// Writes J x to out(link); x [nv] are joint rates or their changes.
template <class T, class Out>
TARSUS_INLINE void link_motions(const ModelView<Real<T>>& m, const LinkState<T>* state, const T* x, const Out& out) {
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    const Motion<T> from = link.parent >= 0 ? shift(out(link.parent), s.r) : world_velocity<T>();
    out(i) = from + joint_motion(link, s.R, x + link.qvel);
  }
}

/// Writes J q̈ to the links' a.
template <class T>
void spread_acceleration(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qacc) {
  link_motions<T>(m, state, qacc, [&](int i) -> Motion<T>& { return state[i].a; });
}

/// Computes T and momentum of each tree for v at q ⊟ h v. Uses the links' R, r, v, pA and Ic. @param before [nq]
/// scratch
template <class T>
void energy_before(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                   const T* qpos, const T* qvel, T* before) {
  integrate_kernel(m, qpos, qvel, -h, before);
  for_each_tree<T>(m, all, [](TreeBound<T>& tree) { tree.most = T(Real<T>(0)); });
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    joint_pose(link, before, state, s);
    joint_velocity(link, qvel, state, s);
    s.Ic = link_inertia(m, i, s.R), s.pA = s.Ic * s.v;
    tree.most = mul_add(dot(s.pA, s.v), T(Real<T>(0.5)), tree.most);
  });
  gather_momentum(m, state);
  for_each_tree<T>(m, all, [](TreeBound<T>& tree) { tree.inner = tree.most; });
  for (int i = 0; i < m.nlink; ++i) {
    if (!moves_freely(m.link[i].joint)) continue;
    TreeBound<T>& tree = all[i].tree;
    tree.before = about_centre(state[i].Ic, state[i].pA);
    const Vec3<T>& p = tree.before.linear;
    tree.inner = maximum(T(Real<T>(0)), tree.most - T(Real<T>(0.5)) / state[i].Ic.mass * dot(p, p));
  }
}

/// Lanes in which a free joint's tree is bounded and floats. It does not float if a drive holds the root's position:
/// the drive's joint inertia is also a force.
/// @param K of the joint
template <class T>
TARSUS_INLINE Mask<T> floats(const TreeBound<T>& tree, const T* K) {
  return tree.bounded & (K[0] + K[1] + K[2] == T(Real<T>(0)));
}

/// Restores the linear momentum of floating trees, in qacc and in J q̈ (the links' a).
template <class T>
void keep_linear_momentum(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                          const T* Q, const T* K, T* qacc) {
  const T zero = T(Real<T>(0)), step = T(h), rate = T(1 / h);
  for_each_tree<T>(m, all,
                   [&](TreeBound<T>& tree) { tree.centre = zero3<T>(), tree.sum = zero, tree.floating = zero > zero; });
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const LinkState<T>& s = state[i];
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    const Vec3<T> w = mul_add(s.a.w, step, s.v.w), v = mul_add(s.a.v, step, s.v.v);
    tree.centre += v * I.mass + cross(w, I.h), tree.sum += I.mass;
  });
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    if (link.parent >= 0) continue;
    TreeBound<T>& tree = all[i].tree;
    if (!moves_freely(link.joint)) {
      tree.centre = zero3<T>();
      continue;
    }
    const Vec3<T> push = get3(Q + link.qvel) - against_gravity<T>(m) * tree.sum;
    const Vec3<T> lost = (mul_add(push, step, tree.before.linear) - tree.centre) * (rate / tree.sum);
    tree.floating = floats(tree, K + link.qvel);
    tree.centre = select<T>(tree.floating, lost, zero3<T>());
    put3(qacc + link.qvel, get3(qacc + link.qvel) + tree.centre);
  }
  for_each_link<T>(m, all, [&](int i, const TreeBound<T>& tree) { state[i].a.v += tree.centre; });
}

/// Restores the full momentum of bounded floating trees by a rigid motion, in qacc and in J q̈ (the links' a).
template <class T>
void keep_momentum(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h, const T* Q,
                   const T* K, T* qacc) {
  const T step = T(h), rate = T(1 / h);
  spread_acceleration(m, state, qacc);
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.Ic = link_inertia(m, i, s.R);
    s.pA = s.Ic * Motion<T>{mul_add(s.a.w, step, s.v.w), mul_add(s.a.v, step, s.v.v)};
  }
  gather_momentum(m, state);
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    if (!moves_freely(link.joint)) continue;
    const LinkState<T>& s = state[i];
    const RigidInertia<T>& whole = s.Ic;
    T* x = qacc + link.qvel;
    const T* force = Q + link.qvel;
    const TreeBound<T>& tree = all[i].tree;
    const Mask<T> turns = K[link.qvel + 3] == T(Real<T>(0)), here = floats(tree, K + link.qvel) & turns;
    const Vec3<T> centre = whole.h * (T(Real<T>(1)) / whole.mass);
    const Vec3<T> f = get3(force), push = f - against_gravity<T>(m) * whole.mass;
    const Vec3<T> turn = s.R * get3(force + 3) - cross(centre, f);
    const TreeMomentum<T> now = about_centre(whole, s.pA);
    const Vec3<T> angular = mul_add(turn, step, tree.before.angular) - now.angular;
    const Vec3<T> linear = mul_add(push, step, tree.before.linear) - now.linear;
    const Vec3<T>& c = whole.h;  // first moment: about the centre, I - m ([c]ᵀ[c])
    const T inverse_mass = T(Real<T>(1)) / whole.mass;
    const Sym3<T> parallel = {c.y * c.y + c.z * c.z, -c.x * c.y, -c.x * c.z,
                              c.x * c.x + c.z * c.z, -c.y * c.z, c.x * c.x + c.y * c.y};
    const Vec3<T> w = inverse(whole.I - parallel * inverse_mass) * angular;
    const Vec3<T> v = linear * inverse_mass - cross(w, centre), local = transpose_mul(s.R, w);
    const T by[6] = {v.x, v.y, v.z, local.x, local.y, local.z};
    for (int k = 0; k < 6; ++k) x[k] = select(here, mul_add(by[k], rate, x[k]), x[k]);
  }
  spread_acceleration(m, state, qacc);
}

/// Computes for each tree T(q, v⁰) + ½ (v⁰ K v⁰ - v K v) - W, minus `most`, as its gain in the lanes `of` it; the
/// inputs are the links' v and J q̈ in their a. The term in K accounts for joint inertia, which T does not include.
template <class T, class Of>
void find_gains(const ModelView<Real<T>>& m, const LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                const T* qvel, const T* Q, const T* K, const T* qacc, const Of& of) {
  const T half = T(Real<T>(0.5)), step = T(h);
  const Motion<T> up = {zero3<T>(), against_gravity<T>(m)};
  const T none = T(Real<T>(0));
  for_each_tree<T>(m, all, [&](TreeBound<T>& tree) {
    tree.sum = select(tree.floating, dot(up.v, tree.before.linear) * (half * step), none);
  });
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    const LinkState<T>& s = state[i];
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    const Motion<T> next = {mul_add(s.a.w, step, s.v.w), mul_add(s.a.v, step, s.v.v)};
    const Force<T> weight = I * up;
    tree.sum = mul_add(twice_kinetic(I, next), half, tree.sum);
    tree.sum = mul_add(dot(weight, next) + select(tree.floating, none, dot(weight, s.v)), half * step, tree.sum);
  });
  for_each_dof<T>(m, all, [&](int, int v, int k, TreeBound<T>& tree) {
    const T next = mul_add(qacc[v], step, qvel[v]);
    tree.sum = mul_add(half * K[k], next * next - qvel[v] * qvel[v], tree.sum);
    tree.sum = mul_add(-half * step * Q[v], next + qvel[v], tree.sum);
  });
  for_each_tree<T>(m, all, [&](TreeBound<T>& t) { t.gain = select(of(t), t.sum - t.most, t.gain); });
}

/// Removes the remaining excess from qacc of bounded trees: scales down all motion, for a tree on a free joint about
/// its centre of mass. J q̈ is in the links' a, before and after.
template <class T>
void slow_down(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h, const T* qvel,
               const T* K, T* qacc) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1)), half = T(Real<T>(0.5)), step = T(h), rate = T(1 / h);
  for_each_tree<T>(m, all, [&](TreeBound<T>& tree) { tree.sum = zero; });
  for_each_link<T>(m, all, [&](int i, TreeBound<T>& tree) {
    LinkState<T>& s = state[i];
    const Motion<T> next = {mul_add(s.a.w, step, s.v.w), mul_add(s.a.v, step, s.v.v)};
    s.Ic = link_inertia(m, i, s.R), s.pA = s.Ic * next;
    tree.sum = mul_add(dot(s.pA, next), half, tree.sum);
  });
  for_each_dof<T>(m, all, [&](int, int v, int k, TreeBound<T>& tree) {
    const T next = mul_add(qacc[v], step, qvel[v]);
    tree.sum = mul_add(half * K[k], next * next, tree.sum);
  });
  gather_momentum(m, state);
  for_each_tree<T>(m, all, [](TreeBound<T>& tree) { tree.centre = zero3<T>(); });
  for (int i = 0; i < m.nlink; ++i) {
    if (!moves_freely(m.link[i].joint)) continue;
    TreeBound<T>& tree = all[i].tree;
    tree.centre = state[i].pA.f * (one / state[i].Ic.mass);
    tree.sum -= half * state[i].Ic.mass * dot(tree.centre, tree.centre);
  }
  for_each_tree<T>(m, all, [&](TreeBound<T>& tree) {
    const T left = maximum(zero, one - tree.gain / maximum(tree.sum, T(std::numeric_limits<Real<T>>::min())));
    tree.lambda = select(tree.bounded, square_root(left), one);
  });
  for_each_dof<T>(m, all, [&](int i, int v, int, const TreeBound<T>& tree) {
    const int k = v - m.link[i].qvel;
    const T stays = moves_freely(m.link[i].joint) && k < 3 ? tree.centre[k] : zero;
    const T next = mul_add(qacc[v], step, qvel[v]);
    qacc[v] = select(tree.bounded, (mul_add(next - stays, tree.lambda, stays) - qvel[v]) * rate, qacc[v]);
  });
  spread_acceleration(m, state, qacc);
}

/// D of a joint, from the factors; zero for a free joint, whose rates are momentum.
template <class T>
TARSUS_INLINE T damped_inertia(const LinkConstants<Real<T>>& link, const LinkState<T>& s) {
  if (moves_freely(link.joint)) return T(Real<T>(0));
  if (turns_freely(link.joint)) return T(Real<T>(3)) / (s.Dinv.xx + s.Dinv.yy + s.Dinv.zz);
  return T(Real<T>(1)) / s.Dinv.xx;
}

/// Factor that reduces the damping of joints that turn by less than kBoundAngle, both at the step's start and by v⁰.
template <class T>
TARSUS_INLINE T damped_share(const LinkConstants<Real<T>>& link, const T* qvel, const T* free, Real<T> h,
                             Real<T> least) {
  const T one = T(Real<T>(1));
  if (slides_on_axis(link.joint)) return one;
  const auto square = [&](const T* rate) {
    const T* w = rate + link.qvel;
    return turns_freely(link.joint) ? dot(get3(w), get3(w)) : w[0] * w[0];
  };
  const T share = maximum(square(qvel), square(free)) * T(h * h / (kBoundAngle * kBoundAngle));
  return maximum(T(least), minimum(one, share));
}

/// Changes qacc of bounded trees so that the bound holds. J q̈ is in the links' a, before and after.
/// @param scratch [4 nv] @param start out: [nv] the initial v + h q̈, if something exceeds the bound
template <class T>
void bound_energy(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all, Real<T> h,
                  const T* qpos, const T* qvel, const T* Q, const T* K, T* scratch, T* start, T* qacc) {
  using R = Real<T>;
  using Tree = TreeBound<T>;
  const T zero = T(R(0)), one = T(R(1)), step = T(h);
  const auto find_missed = [&] {
    bool some = false;
    for_each_tree<T>(m, all, [&](Tree& tree) {
      tree.missed = tree.missed & tree.is_above(kTolerated);
      some = some || any_lane(tree.missed);
    });
    return some;
  };
  const auto damped = [&](const Tree& tree) { return tree.lambda > zero; };
  find_gains(m, state, all, h, qvel, Q, K, qacc, [](const Tree& tree) { return tree.bounded; });
  for_each_tree<T>(m, all, [](Tree& tree) { tree.missed = tree.bounded; });
  if (!find_missed()) return;
  T *D = scratch, *more = D + m.nv, *force = more + m.nv, *change = force + m.nv;
  factor_kernel(m, state, qpos, K);
  for (int v = 0; v < m.nv; ++v) start[v] = mul_add(qacc[v], step, qvel[v]);
  const T none = T(std::numeric_limits<R>::min());
  for_each_tree<T>(m, all, [&](Tree& tree) { tree.sum = none; });
  for_each_dof<T>(m, all, [&](int i, int v, int, Tree& tree) {
    D[v] =
        damped_inertia(m.link[i], state[i]) * damped_share(m.link[i], qvel, start, h, R(tree.dampings().least_share));
    tree.sum = mul_add(D[v] * start[v], start[v], tree.sum);
  });
  for_each_tree<T>(m, all, [&](Tree& tree) {  // a single joint goes from E to E/(1 + λ)²
    const T left = maximum(T(R(kLeastLeft)), one - tree.gain * T(R(2)) / tree.sum);
    tree.missed = tree.missed & (tree.sum > none);  // or it has no joints to damp
    tree.lambda = select(tree.missed, (one / square_root(left) - one) * T(R(kFirstDamping)), zero);
  });
  bool missed = find_missed();
  for (int tried = 0; tried < kDampings && missed; ++tried) {
    for_each_dof<T>(m, all, [&](int, int v, int k, const Tree& tree) {
      more[k] = mul_add(tree.lambda, D[v], K[k]), force[v] = -tree.lambda * D[v] * start[v];
    });
    factor_kernel(m, state, qpos, more);
    minv_kernel(m, state, force, change);
    for_each_dof<T>(m, all, [&](int, int v, int, const Tree& tree) {
      qacc[v] = select(damped(tree), (start[v] + change[v] - qvel[v]) * T(1 / h), qacc[v]);
    });
    spread_acceleration(m, state, qacc);
    find_gains(m, state, all, h, qvel, Q, K, qacc, damped);
    missed = find_missed();
    for_each_tree<T>(
        m, all, [&](Tree& tree) { tree.lambda = select(tree.missed, tree.lambda * T(R(kMoreDamping)), tree.lambda); });
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
