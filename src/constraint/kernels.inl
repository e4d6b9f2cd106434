// Fills a ConstraintTable for one scalar type. Included by the files in isa/ only.
#pragma once

#include "constraint/efpa.inl"
#include "constraint/equality.inl"
#include "constraint/kernel_table.hpp"
#include "constraint/limbs.inl"
#include "constraint/prepare.inl"
#include "solver/ldl.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// T: one world's number or a pack of worlds; P: a pack of neighbouring rows for one world, else T.
template <class T, class P>
struct ConstraintFor {
  using R = Real<T>;
  using View = const ModelView<R>&;
  static T* in(R* p) { return reinterpret_cast<T*>(p); }
  static const T* in(const R* p) { return reinterpret_cast<const T*>(p); }
  static LinkState<T>* links(void* s) { return static_cast<LinkState<T>*>(s); }

  static void prepare(View m, void* s, const R* qpos, const R* qvel, const R* Q, const R* K) {
    prepare_kernel<T>(m, links(s), in(qpos), in(qvel), in(Q), in(K));
  }
  static void prepare_limbs(View m, void* s, const R* qpos, const R* qvel, const R* Q, const R* K, R* u) {
    prepare_limbs_kernel<T>(m, links(s), in(qpos), in(qvel), in(Q), in(K), in(u));
  }
  static void limbs(View m, void* s, const LimbsView<R>& view, const LimbLimits<R>& limits, const R* Q, const R* K,
                    const R* target, const R* sigma, R* u, R* x2, R* qacc, R* quality) {
    limbs_kernel<T, P>(m, links(s), view, limits, in(Q), in(K), in(target), in(sigma), in(u), in(x2), in(qacc),
                       in(quality));
  }
  static void restore(View m, void* s, const R* Q, const R* K) { restore_kernel<T>(m, links(s), in(Q), in(K)); }
  static void pose(View m, void* s, const R* qpos) { pose_kernel<T>(m, links(s), in(qpos)); }
  static void reduce(View m, void* s, const R* y, const R* K) { aba_inward<T>(m, links(s), in(y), in(K)); }
  static void equalities(View m, const void* s, const EqualityList<R>& list, const RowTarget<R>* targets, const R* qpos,
                         const R* qvel, R* phi, R* rate, R* bias) {
    constexpr int kLanes = kWidth<P> < kGroup ? kWidth<P> : kGroup;
    using S = std::conditional_t<kWidth<T> == 1 && (kLanes > 1), Pack<R, kLanes>, T>;
    equality_kernel<T, S>(m, static_cast<const LinkState<T>*>(s), list, targets, in(qpos), in(qvel), in(phi), in(rate),
                          in(bias));
  }
  static bool ldl_load(int m, int ld, R* A, const R* sigma, const R* b, R nothing, R share, R* scale) {
    const T margin = ldl_load_kernel<T, P>(m, ld, in(A), in(sigma), in(b), nothing, share, in(scale));
    const R* lane = reinterpret_cast<const R*>(&margin);
    bool dead = false;
    for (int l = 0; l < kWidth<T>; ++l) dead = dead || !(lane[l] > 0);
    return dead;
  }
  static void ldl(int m, int ld, R* A, R* inverse, const R* scale, R* least) {
    ldl_kernel<T, P>(m, m + 1, ld, in(A), in(inverse));
    in(least)[0] = least_pivot<T, P>(m, in(inverse), in(scale));
  }
  static void ldl_forward(int m, int ld, R* A, const R* inverse, R* b) {
    ldl_forward_kernel<T>(m, ld, in(A), in(inverse), in(b));
  }
  static void ldl_back(int m, int ld, const R* A, const R* inverse, const R* scale, R limit, R* x, R* trust) {
    ldl_back_kernel<T, P>(m, m, ld, in(A), in(inverse), in(x));
    in(trust)[0] = ldl_trust<T, P>(m, m, ld, in(A), in(inverse), in(scale), in(x), limit);
  }

  static void climb_chain(View m, const void* s, int tip, const R* force, const R* entries, int count, int nrow,
                          int stride, R* records) {
    climb_chain_kernel<T, P>(m, static_cast<const LinkState<T>*>(s), tip, in(force), in(entries), count, nrow, stride,
                             in(records));
  }
  static void omega_times(const R* omega, const R* f, int nrow, int stride, R* out) {
    omega_times_kernel<T, P>(in(omega), in(f), nrow, stride, in(out));
  }
  static void omega(View m, const void* s, int link, const R* parent, R* omega) {
    omega_kernel<T, P>(m, static_cast<const LinkState<T>*>(s), link, in(parent), in(omega));
  }

  static ConstraintTable<R> table() {
    return {prepare,
            prepare_limbs,
            limbs,
            restore,
            pose,
            reduce,
            equalities,
            ldl_load,
            ldl,
            ldl_forward,
            ldl_back,
            kWidth<T> == 1 ? climb_chain : nullptr,
            kWidth<T> == 1 ? omega_times : nullptr,
            kWidth<T> == 1 ? omega : nullptr};
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
