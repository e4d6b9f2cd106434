// Fills a ControlTable for one scalar type. Included by the files in isa/ only.
#pragma once

#include "control/drive.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct ControlFor {
  using R = Real<T>;
  using View = const ModelView<R>&;
  using Drive = const DriveView<R>&;
  static T* in(R* p) { return reinterpret_cast<T*>(p); }
  static const T* in(const R* p) { return reinterpret_cast<const T*>(p); }

  static void terms(View m, Drive d, const R* q, const R* v, const R* qt, const R* vt, const R* tau, R* Q, R* K) {
    drive_terms_kernel<T>(m, d, in(q), in(v), in(qt), in(vt), in(tau), in(Q), in(K));
  }
  static void force(View m, Drive d, const R* q, const R* v, const R* qt, const R* vt, const R* a, R* f) {
    drive_force_kernel<T>(m, d, in(q), in(v), in(qt), in(vt), in(a), in(f));
  }
  static ControlTable<R> table() { return {terms, force}; }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
