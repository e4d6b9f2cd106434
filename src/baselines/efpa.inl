// Kernels of the extended force propagation: forces propagate to the root, storing (w, D⁻¹ w, force on the parent) at
// each joint.
// [Wensing, Featherstone, Orin 2012]
#pragma once

#include "dynamics/omega.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Propagates a chain's rows from `tip` to the root.
/// force [6][stride] or null; entries [count][stride]: joint entries at the tip in qvel's axes;
/// records [link of the chain][18][stride].
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

}  // namespace TARSUS_ISA
}  // namespace tarsus
