// The inverse inertia Ω of the tree at each link, outward from the root: Ω_i = S D⁻¹ Sᵀ + L Ω_parent Lᵀ.
// [Wensing, Featherstone, Orin 2012]
#pragma once

#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// out[6][stride] = Ω f for the rows' forces f [6][stride]; Ω [6][6] maps (n; f) to (w; v).
template <class T, class P>
void omega_times_kernel(const T* omega, const T* f, int nrow, int stride, T* out) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int row = 0; row < nrow; row += kRows) {
    for (int a = 0; a < 6; ++a) {
      P sum = P(Real<T>(0));
      for (int b = 0; b < 6; ++b) sum = mul_add(P(omega[6 * a + b]), load_rows<P>(f + b * stride + row), sum);
      store_rows(out + a * stride + row, sum);
    }
  }
}

/// Ω of link i from its parent's (null: the world's, which is zero).
template <class T, class P>
void omega_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, int i, const T* parent, T* omega) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kStride = kRows == 1 ? 6 : 8;
  alignas(64) T unit[6 * kStride], record[18 * kStride], lifted[6 * kStride], sum[6 * kStride];
  for (int k = 0; k < 6 * kStride; ++k) unit[k] = T(Real<T>(k / kStride == k % kStride ? 1 : 0));
  const int only = i;  // only the joint itself
  const LinkConstants<Real<T>>& link = m.link[only];
  for (int row = 0; row < 6; row += kRows) {
    Force<P> f = load_force<P>(unit + row, kStride);
    const P(*none)[6] = nullptr;
    climb_joint<T, P, 1>(link.joint, state[only], &f, none, record + row, record + 6 * kStride + row, kStride);
    store_vec(record + 12 * kStride + row, kStride, f.n), store_vec(record + 15 * kStride + row, kStride, f.f);
  }
  gram_kernel<T, P>(qvel_count(link.joint), 6, record, kStride, record + 6 * kStride, kStride, false, false, sum,
                    kStride);
  if (parent) {
    omega_times_kernel<T, P>(parent, record + 12 * kStride, 6, kStride, lifted);
    gram_kernel<T, P>(6, 6, record + 12 * kStride, kStride, lifted, kStride, true, false, sum, kStride);
  }
  for (int a = 0; a < 6; ++a) {
    for (int b = 0; b < 6; ++b) omega[6 * a + b] = sum[a * kStride + b];
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
