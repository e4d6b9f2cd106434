// The laws of solver/law.hpp in one metric, a contact at a time; see solver/relax.hpp.
#pragma once

#include <type_traits>

#include "math/kernel_call.inl"
#include "solver/relax.hpp"
#include "tarsus/math/row_pack.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Each waits for the one before it through z alone. So that it does not wait for memory too, its own numbers of z are
/// read before that one's change is written, and what the change makes of them is added here. Reads three numbers
/// whatever a row's count: z and Z go on for as long.
template <class T>
TARSUS_INLINE int relax_kernel(const Relaxation* rows, int count, const T* Z, int stride, int sweeps, T tolerance, T* y,
                               T* z, Relaxed& by) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T moved = 0, energy = 0;
  Vec3<T> own{};  // z of the rows at hand, then the new y
  const auto within = [&](T most, T& p, T& q) {
    const T square = p * p + q * q;
    if (!(square > most * most)) return;
    const T length = square_root(square);
    p = p * most / length, q = q * most / length;
  };
  /// y of n rows, and z of all; those of the next ones into `own`.
  const auto change = [&](auto number, const Relaxation& r, const T* next_z) __attribute__((always_inline)) {
    constexpr int n = number;
    T* const to = y + r.at;
    const T* const rows_of_Z = Z + r.at * stride;
    T by[n];
    for (int i = 0; i < n; ++i) {
      by[i] = own[i] - to[i], to[i] = own[i];
      const T size = by[i] * r.rho[i];
      moved = maximum(moved, absolute(size)), energy = energy + by[i] * size;
    }
    own = {next_z[0], next_z[1], next_z[2]};
    if (n == 1 && by[0] == 0) return;
    const T* of_next = rows_of_Z + (next_z - z);
    for (int i = 0; i < n; ++i, of_next += stride) {
      for (int k = 0; k < 3; ++k) own[k] = mul_add(by[i], of_next[k], own[k]);
    }
    for (int p = 0; p < stride; p += kRows) {
      P sum = load_rows<P>(z + p);
      const T* of = rows_of_Z + p;
      for (int i = 0; i < n; ++i, of += stride) sum = mul_add(P(by[i]), load_rows<P>(of), sum);
      store_rows(z + p, sum);
    }
  };
  const T* at = z + (count > 0 ? rows[0].at : 0);
  own = {at[0], at[1], at[2]};
  int done = 0;
  do {
    moved = energy = 0;
    for (int k = 0; k < count; ++k) {
      const Relaxation& r = rows[k];
      const T* const next_z = z + rows[k + 1 < count ? k + 1 : 0].at;
      int n = 1;
      switch (r.kind) {
        case Relaxation::contact: {
          const T* before = y + r.at;
          own.x = maximum(own.x, T(0));
          if (own.x == 0 && before[0] == 0 && before[1] == 0 && before[2] == 0) {  // it stays open
            own = {next_z[0], next_z[1], next_z[2]};
            continue;
          }
          const T by_normal = own.x - before[0];
          const T* of_normal = Z + r.at * stride + r.at;
          own.y = mul_add(by_normal, of_normal[1], own.y), own.z = mul_add(by_normal, of_normal[2], own.z);
          within(r.bound * own.x, own.y, own.z), n = 3;
          break;
        }
        case Relaxation::interval: own.x = minimum(maximum(own.x, T(r.lower)), T(r.upper)); break;
        case Relaxation::normal: own.x = maximum(own.x, T(0)); break;
        case Relaxation::twist: {
          const T most = r.bound * y[r.normal_at];
          own.x = minimum(maximum(own.x, -most), most);
          break;
        }
        case Relaxation::disc: within(r.bound * y[r.normal_at], own.x, own.y), n = 2; break;
        case Relaxation::ball: {
          const T square = own.x * own.x + own.y * own.y + own.z * own.z;
          const T scale = square > r.bound * r.bound ? r.bound / square_root(square) : T(1);
          own = own * scale, n = 3;
          break;
        }
      }
      switch (n) {
        case 1: change(std::integral_constant<int, 1>(), r, next_z); break;
        case 2: change(std::integral_constant<int, 2>(), r, next_z); break;
        default: change(std::integral_constant<int, 3>(), r, next_z);
      }
    }
  } while (++done < sweeps && moved > tolerance);
  by = {moved, energy};
  return done;
}

template <class T>
TARSUS_INLINE void follow_kernel(const T* A, const T* inverse, int count, int stride, T* Z) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int p = 0; p < stride; p += kRows) {
    const P by = P(T(0)) - load_rows<P>(inverse + p);
    for (int r = 0; r < count; ++r) store_rows(Z + r * stride + p, load_rows<P>(A + r * stride + p) * by);
  }
}

TARSUS_FILL_KERNELS(RelaxTable, TARSUS_RELAX_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
