// The response of spinning links to what a step's terms change (tarsus/dynamics/spin_response.hpp).
//
// With v⁰ the velocity without terms, d = v⁺ - v⁰ what they change and B = ½ h ∂C/∂v of the spins alone,
//
//     (M̂ + JᵀB J) y = M̂ d,   v⁰ += y - d
//
// gives the velocity that a pass with two matrices would have found if it had known the terms' forces. B is a couple on
// one link: ½ h ([ω] I - [I ω]) on a link that is a tree by itself, with I about its centre of mass, or about the pivot
// of a ball joint; -½ h [ℓ] on the carrier of a rotor with angular momentum ℓ along its axis.
#pragma once

#include "dynamics/velocity_products.inl"
#include "tarsus/dynamics/spin_response.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kStill = 1e-3;  ///< share of a rotor's spin that counts as its carrier's, which may stand still

/// Whether something may spin fast enough in some lane.
template <class T>
bool some_spin(const ModelView<Real<T>>& m, const std::uint8_t* spins, const T* qvel, Real<T> h) {
  const T least = T(Real<T>(0.99 * kLeastSpin) / h);
  for (int i = 0; i < m.nlink; ++i) {
    if (!spins[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const bool alone = spins[i] == kLoneLink;
    const T* const rate = qvel + link.qvel + qvel_count(link.joint) - (alone ? 3 : 1);
    const T square = alone ? dot(get3(rate), get3(rate)) : rate[0] * rate[0];
    if (any_lane(square > least * least)) return true;
  }
  return false;
}

/// Calls f(link, the link on which it acts, B, whether the lanes' spin matters, ω² with which a change is compared) for
/// each spin. Uses the links' poses and velocities, and their changes, which their a holds.
template <class T, class F>
TARSUS_INLINE void for_each_spin(const ModelView<Real<T>>& m, const LinkState<T>* state, const std::uint8_t* spins,
                                 const T* qvel, Real<T> h, const F& f) {
  const auto square = [](double x) { return T(Real<T>(x * x)); };
  const T half_step = T(h / 2);
  for (int i = 0; i < m.nlink; ++i) {
    if (!spins[i]) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    if (spins[i] == kRoundLink) {
      const Vec3<T> e = s.R.column_z();
      const Vec3<T>& turn = state[link.parent].v.w;
      const T l = dot(e, I.I * e) * qvel[link.qvel];
      const Sym3<T> both = I.I + link_inertia(m, link.parent, state[link.parent].R).I;
      const T spin = l / (both.xx + both.yy + both.zz), spin2 = spin * spin, turn2 = dot(turn, turn);
      const Vec3<T>& d = state[link.parent].a.w;
      const T d2 = dot(d, d), with = mul_add(spin2, square(kStill), turn2);
      const T most = square(kMostTurn / h);
      const Mask<T> spins_fast = spin2 > square(kLeastSpin / h),
                    responds = spin2 * d2 > with * square(0.2 * kLeastRate);
      const Mask<T> resolved = (turn2 <= most) & (d2 <= most);
      const Mask<T> round = !m.own_round ? square(0) < square(1) : is_round_here<T>(m, i);
      f(i, link.parent, cross_matrix(e * (l * -half_step)), spins_fast & responds & resolved & round, with);
      continue;
    }
    Mat3<T> own = I.I.full();
    if (moves_freely(link.joint)) own = add_cross_times(own, I.h, cross_matrix(I.h * (T(Real<T>(1)) / I.mass)));
    const Vec3<T>& w = s.v.w;
    const Vec3<T> L = own * w;
    f(i, i, add_cross_times(cross_matrix(L * -half_step), w * half_step, own), responds_alone(w, L, s.a.w, h),
      dot(w, w));
  }
}

/// Corrects `change`, which the response adds to v⁰, and v⁰ itself, in trees that spin. *moved is 1 in lanes where a
/// change matters. Of TreeBound it uses `bounded`, for trees that respond, and `missed`, for those whose change
/// matters.
/// @param spins [nlink] what spins, as spinning_links() says @param free, next [nv] v⁰, with `change`, and v⁺
/// @param known 0 in lanes whose v⁰ is not known @param scratch [3 nv + 36 nlink]
template <class T>
void spin_response_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, VelocityProductLink<T>* all,
                          const std::uint8_t* spins, Real<T> h, const T* qpos, const T* qvel, T* free, const T* next,
                          const T* K, const T* known, T* scratch, T* change, T* moved) {
  const T zero = T(Real<T>(0)), one = T(Real<T>(1)), *const none = nullptr;
  T *const d = scratch, *const p = d + m.nv, *const y = p + m.nv, *const B = y + m.nv;
  *moved = zero;
  if (!some_spin(m, spins, qvel, h)) return;
  aba_outward(m, state, qpos, qvel, none);
  for (int i = 0; i < m.nlink; ++i) {
    all[i].theta_h = zero;
    if (m.link[i].parent >= 0) continue;
    all[i].tree.bounded = all[i].tree.missed = one < zero, all[i].tree.resolved = zero < one;
  }
  for (int v = 0; v < m.nv; ++v) d[v] = next[v] - free[v];
  const auto motion = [&](int i) -> Motion<T>& { return state[i].a; };
  link_motions<T>(m, state, d, motion);
  bool some = false;
  std::fill_n(B, 36 * m.nlink, zero);
  for_each_spin<T>(m, state, spins, qvel, h, [&](int i, int on, const Mat3<T>& of, const Mask<T>& matters, T) {
    TreeBound<T>& tree = all[m.link[i].root].tree;
    const Mask<T> spin = matters & (*known > zero);
    tree.bounded = tree.bounded | spin, some = some || any_lane(spin);
    const T rows[3][3] = {{of.xx, of.xy, of.xz}, {of.yx, of.yy, of.yz}, {of.zx, of.zy, of.zz}};
    for (int r = 0; r < 3; ++r) {
      for (int c = 0; c < 3; ++c) B[36 * on + 6 * r + c] += select(spin, rows[r][c], zero);
    }
  });
  if (!some) return;
  const auto responds = [&](int i) { return any_lane(all[m.link[i].root].tree.bounded); };
  for (int i = 0; i < m.nlink; ++i) {
    if (responds(i)) state[i].pA = link_inertia(m, i, state[i].R) * state[i].a;
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (!responds(i)) continue;
    const LinkConstants<Real<T>>& link = m.link[i];
    joint_force(link, state[i].R, state[i].pA, p + link.qvel);
    if (link.parent >= 0) state[link.parent].pA += shift_back(state[i].pA, state[i].r);
    state[i].pA = {zero3<T>(), zero3<T>()};
  }
  for_each_dof<T>(m, all, [&](int i, int v, int inertia, const TreeBound<T>&) {
    if (responds(i)) p[v] = mul_add(K[inertia], d[v], p[v]);
  });
  velocity_products_passes<true>(m, state, all, JointDamping<T>{zero, zero}, qvel, p, K, B, y, responds);
  for_each_dof<T>(m, all,
                  [&](int i, int v, int, const TreeBound<T>&) { y[v] = responds(i) ? y[v] - d[v] - change[v] : zero; });
  link_motions<T>(m, state, y, motion);
  const T least = T(Real<T>(kLeastRate) * h);
  for_each_spin<T>(m, state, spins, qvel, h, [&](int i, int on, const Mat3<T>&, const Mask<T>&, T with) {
    TreeBound<T>& tree = all[m.link[i].root].tree;
    const Vec3<T>& by = state[on].a.w;
    const Mask<T> moves = dot(by, by) > with * (least * least);
    tree.missed = tree.missed | (tree.bounded & moves);
  });
  for_each_dof<T>(m, all, [&](int, int v, int, const TreeBound<T>& tree) {
    const T by = select(tree.missed, y[v], zero);
    change[v] += by, free[v] += by;
  });
  for_each_tree<T>(m, all, [&](const TreeBound<T>& tree) { *moved = select(tree.missed, one, *moved); });
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
