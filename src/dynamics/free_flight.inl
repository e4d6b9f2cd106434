// Which pose the velocity of a free joint belongs to.
//
// A step finds v⁺ with the masses and rows of the pose q at its start, and moves to q⁺ = q ⊞ h v⁺. With the numbers of
// v⁺ unchanged, the momentum of a tree that turns differs at q⁺ by h ω² m c, where c is the distance of the joint's
// frame from the centre of mass, and the centre of mass leaves its straight line by half of that times h. Both depend
// on where the frame is, which is not physics. Between steps the free joint's linear velocity is therefore that of q⁺:
// it has the momentum of v⁺ at q. The frame is placed so that the centre of mass moves by h times that momentum over
// the mass, as that of a body whose frame is at its centre does. Decision 419.
//
// Within a step v belongs to q ⊟ h v, as energy_bound.inl says. The step begins by finding that v.
#pragma once

#include <algorithm>

#include "dynamics/integrate.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kMoves = 1e-3;  ///< h times the rates of a tree's joints above which it is changed

/// Sums over a tree: momentum without the free joint's linear velocity, first moment about the root's origin, mass.
template <class T>
struct TreeSum {
  Vec3<T> momentum, moment;
  T mass;
};

/// Writes the squared length of h v to the root of each tree, without the free joint's linear velocity.
/// @return whether a tree on a free joint moves in some lane
template <class T>
bool find_moving(const ModelView<Real<T>>& m, Real<T> h, const T* qvel, T* square) {
  bool some = false;
  std::fill_n(square, m.nlink, T(Real<T>(0)));
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const int n = qvel_count(link.joint);
    for (int v = link.qvel + (n == 6 ? 3 : 0); v < link.qvel + n; ++v) {
      const T x = qvel[v] * T(h);
      square[link.root] = mul_add(x, x, square[link.root]);
    }
    const bool free = moves_freely(m.link[link.root].joint);
    some = some || (free && any_lane(square[link.root] > T(Real<T>(kMoves * kMoves))));
  }
  return some;
}

/// The sums of each subtree at its root link. Leaves the links' R and r of qpos.
template <class T>
void sum_trees(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, TreeSum<T>* sums) {
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    joint_pose(m.link[i], qpos, state, s);
    joint_velocity(m.link[i], qvel, state, s);
    if (moves_freely(m.link[i].joint)) s.v.v = zero3<T>();
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    sums[i] = {cross_add(s.v.w, I.h, s.v.v * I.mass), I.h, I.mass};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (m.link[i].parent < 0) continue;
    TreeSum<T>& to = sums[m.link[i].parent];
    to.momentum += sums[i].momentum;
    to.moment += sums[i].moment + state[i].r * sums[i].mass;
    to.mass += sums[i].mass;
  }
}

/// Calls f(qpos and qvel of the free joint, lanes in which its tree moves, its sums at (qpos, qvel), those at `other`).
template <class T, class F>
TARSUS_INLINE void for_each_free_tree(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* other,
                                      const T* qvel, T* scratch, const F& f) {
  const T *const square = scratch, zero = T(Real<T>(0));
  auto* const here = reinterpret_cast<TreeSum<T>*>(scratch + m.nlink);
  TreeSum<T>* const there = here + m.nlink;
  sum_trees(m, state, other, qvel, there);
  sum_trees(m, state, qpos, qvel, here);
  for (int i = 0; i < m.nlink; ++i) {
    if (!moves_freely(m.link[i].joint)) continue;
    f(m.link[i].qpos, m.link[i].qvel, (square[i] > T(Real<T>(kMoves * kMoves))) & (here[i].mass > zero), here[i],
      there[i]);
  }
}

/// Changes `qvel` from the velocity at qpos to that of the step's start, which belongs to qpos ⊟ h qvel.
/// @param scratch [15 nlink + nq]
template <class T>
void leave_pose_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, Real<T> h, const T* qpos, T* scratch,
                       T* qvel) {
  if (!find_moving(m, h, qvel, scratch)) return;
  T* const before = scratch + 15 * m.nlink;
  integrate_kernel(m, qpos, qvel, -h, before);
  for_each_free_tree(m, state, qpos, before, qvel, scratch,
                     [&](int, int v, Mask<T> moves, const TreeSum<T>& here, const TreeSum<T>& there) {
                       const Vec3<T> change = (here.momentum - there.momentum) * (T(Real<T>(1)) / here.mass);
                       put3(qvel + v, select<T>(moves, get3(qvel + v) + change, get3(qvel + v)));
                     });
}

/// Changes the state that a step from qpos led to: next_qvel to the velocity at next_qpos, next_qpos by the way of the
/// centre of mass.  @param scratch [15 nlink]
template <class T>
void reach_pose_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, Real<T> h, const T* qpos, T* scratch,
                       T* next_qpos, T* next_qvel) {
  if (!find_moving(m, h, next_qvel, scratch)) return;
  for_each_free_tree(m, state, qpos, next_qpos, next_qvel, scratch,
                     [&](int q, int v, Mask<T> moves, const TreeSum<T>& here, const TreeSum<T>& there) {
                       const T inverse = T(Real<T>(1)) / here.mass;
                       const Vec3<T> shift = mul_add(here.momentum, T(h), here.moment - there.moment) * inverse;
                       const Vec3<T> change = (here.momentum - there.momentum) * inverse;
                       put3(next_qpos + q, select<T>(moves, get3(next_qpos + q) + shift, get3(next_qpos + q)));
                       put3(next_qvel + v, select<T>(moves, get3(next_qvel + v) + change, get3(next_qvel + v)));
                     });
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
