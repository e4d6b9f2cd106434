// Fills a ControlTable for one scalar type. Included by the files in isa/ only.
#pragma once

#include "control/branch.inl"
#include "control/limited.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct ControlFor {
  using R = Real<T>;
  using View = const ModelView<R>&;
  using Drive = const DriveView<R>&;
  using Tree = const BranchView&;
  using State = LinkState<T>*;
  static T* in(R* p) { return reinterpret_cast<T*>(p); }
  static const T* in(const R* p) { return reinterpret_cast<const T*>(p); }

  static void terms(View m, Drive d, const R* q, const R* v, const R* qt, const R* vt, const R* tau, R* Q, R* K) {
    drive_terms_kernel<T>(m, d, in(q), in(v), in(qt), in(vt), in(tau), in(Q), in(K));
  }
  static void force(View m, Drive d, const R* q, const R* v, const R* qt, const R* vt, const R* a, R* f) {
    drive_force_kernel<T>(m, d, in(q), in(v), in(qt), in(vt), in(a), in(f));
  }
  static void limited(View m, Drive d, const LimitView<R>& limits, const LimitSpace<R>& space, void* s, const R* q,
                      const R* v, const R* qt, const R* vt, const R* tau, R* a) {
    LimitedMaba<T>(m, d, limits, space, State(s)).solve(in(q), in(v), in(qt), in(vt), in(tau), in(a));
  }
  static void rows(View m, void* s, Tree tree, const R* q, R* out) {
    crba_rows_kernel<R>(m, static_cast<LinkState<R>*>(s), tree, q, out);
  }

  static ControlTable<R> table() {
    if constexpr (kWidth<T> == 1) {
      return {terms,
              force,
              limited,
              rows,
              branch_factor_kernel<R>,
              branch_solve_kernel<R>,
              branch_multiply_kernel<R>,
              branch_expand_kernel<R>};
    } else {
      return {terms, force, limited, nullptr, nullptr, nullptr, nullptr, nullptr};
    }
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
