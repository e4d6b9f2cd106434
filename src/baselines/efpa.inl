// Kernels of the extended force propagation: forces climb alone, keeping at each joint (w, D⁻¹ w, force on the parent),
// and the inverse inertia Ω of the tree as a link feels it follows outward by Ω_i = S D⁻¹ Sᵀ + L Ω_parent Lᵀ. [Wensing,
// Featherstone, Orin 2012]
#pragma once

#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A chain's rows from `tip` to the root. force [6][stride] or null; entries: `count` joint entries [count][stride] at
/// the tip in qvel's axes. records: [link of the chain][18][stride].
template <class T, class P>
void climb_chain_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, int tip, const T* force,
                        const T* entries, int count, int nrow, int stride, T* records) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const P zero = P(Real<T>(0));
  for (int row = 0; row < nrow; row += kRows) {
    Force<P> f = force ? load_force<P>(force + row, stride) : Force<P>{zero3<P>(), zero3<P>()};
    T* out = records + row;
    for (int i = tip; i >= 0; i = m.link[i].parent, out += 18 * stride) {
      const LinkConstants<Real<T>>& link = m.link[i];
      if (i == tip && entries) {
        P entry[1][6] = {{zero, zero, zero, zero, zero, zero}};
        P* y = entry[0];
        for (int k = 0; k < count; ++k) y[k] = load_rows<P>(entries + k * stride + row);
        const int n = qvel_count(link.joint);
        if (n >= 3) {
          const Vec3<P> turned = spread<P>(state[i].R) * Vec3<P>{y[n - 3], y[n - 2], y[n - 1]};
          y[n - 3] = turned.x, y[n - 2] = turned.y, y[n - 1] = turned.z;
        }
        climb_joint<T, P, 1>(link.joint, state[i], &f, entry, out, out + 6 * stride, stride);
      } else {
        const P(*none)[6] = nullptr;
        climb_joint<T, P, 1>(link.joint, state[i], &f, none, out, out + 6 * stride, stride);
      }
      store_vec(out + 12 * stride, stride, f.n), store_vec(out + 15 * stride, stride, f.f);
    }
  }
}

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

/// Ω of link i from its parent's (null: the world's, zero).
template <class T, class P>
void omega_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, int i, const T* parent, T* omega) {
  constexpr int kStride = 8;
  alignas(64) T unit[6 * kStride], record[18 * kStride], lifted[6 * kStride], sum[6 * kStride];
  for (int k = 0; k < 6 * kStride; ++k) unit[k] = T(Real<T>(k / kStride == k % kStride ? 1 : 0));
  const int only = i;  // one joint: a chain that ends after its tip
  const LinkConstants<Real<T>>& link = m.link[only];
  constexpr int kRows = int(sizeof(P) / sizeof(T));
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
