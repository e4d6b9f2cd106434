// Fills a KernelTable with the kernels for one scalar type. Included by the files in isa/ only, each compiled with its
// own instruction set and TARSUS_ISA.
#pragma once

#include "dynamics/crba.inl"
#include "dynamics/integrate.inl"
#include "dynamics/kernel_table.hpp"
#include "dynamics/kinematics.inl"
#include "dynamics/loaded.inl"
#include "dynamics/minv.inl"
#include "dynamics/rnea.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct KernelsFor {
  using R = Real<T>;
  using View = const ModelView<R>&;
  using State = LinkState<T>*;
  static_assert(sizeof(LinkState<T>) == sizeof(LinkState<R>) * kWidth<T>, "Data sizes the workspace this way");

  static T* in(R* p) { return reinterpret_cast<T*>(p); }
  static const T* in(const R* p) { return reinterpret_cast<const T*>(p); }

  static void kinematics(View m, void* s, const R* q, const R* v) { kinematics_kernel<T>(m, State(s), in(q), in(v)); }
  static void jacobian(View m, const void* s, int link, const R* p, R* J) {
    jacobian_kernel<T>(m, static_cast<const LinkState<T>*>(s), link, in(p), in(J));
  }
  static void rnea(View m, void* s, const R* q, const R* v, const R* a, const R* f, R* tau) {
    rnea_kernel<T>(m, State(s), in(q), in(v), in(a), in(f), in(tau));
  }
  static void crba(View m, void* s, const R* q, R* M) { crba_kernel<T>(m, State(s), in(q), in(M)); }
  static void aba(View m, void* s, const R* q, const R* v, const R* Q, const R* K, const R* f, R* a) {
    aba_kernel<T>(m, State(s), in(q), in(v), in(Q), in(K), in(f), in(a));
  }
  static void factor(View m, void* s, const R* q, const R* K) { factor_kernel<T>(m, State(s), in(q), in(K)); }
  static void minv(View m, void* s, const R* y, R* x) { minv_kernel<T>(m, State(s), in(y), in(x)); }
  static void prepare_loads(View m, void* s) { prepare_loads_kernel<T>(m, State(s)); }
  static void solve_loaded(View m, void* s, const R* K, const R* Q, const int* of, const void* loads, R* x) {
    solve_loaded_kernel<T>(m, State(s), in(K), in(Q), of, static_cast<const LinkLoad<T>*>(loads), in(x));
  }
  static void integrate(View m, const R* q, const R* v, R dt, R* out) {
    integrate_kernel<T>(m, in(q), in(v), dt, in(out));
  }

  static KernelTable<R> table() {
    return {kWidth<T>, kinematics, jacobian, rnea, crba, aba, factor, minv, prepare_loads, solve_loaded, integrate};
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
