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
TARSUS_INLINE int relax_kernel(const Relaxation* rows, int count, const T* Z, int stride, int sweeps, T tolerance,
                               T* y, T* z, Relaxed& by) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T moved = 0, energy = 0;
  Vec3<T> own{};  // z of the rows at hand
  const auto note = [&](T change, T rho) {
    const T size = change * rho;
    moved = maximum(moved, absolute(size)), energy = energy + change * size;
  };
  const auto go_on = [&](const Relaxation& next) { own = {z[next.at], z[next.at + 1], z[next.at + 2]}; };
  /// y of one to three rows, and z of all.
  const auto change = [&](auto number, const Relaxation& r, const Relaxation& next, T a, T b, T c)
      __attribute__((always_inline)) {
    constexpr int n = number;
    const T* rows_of_Z = Z + r.at * stride;
    const T by_a = a - y[r.at], by_b = n > 1 ? b - y[r.at + 1] : T(0), by_c = n > 2 ? c - y[r.at + 2] : T(0);
    go_on(next);
    if (n == 1 && by_a == 0) return;
    const auto add = [&](int row, T by_how_much) {
      const T* to = rows_of_Z + row * stride + next.at;
      own.x = mul_add(by_how_much, to[0], own.x), own.y = mul_add(by_how_much, to[1], own.y);
      own.z = mul_add(by_how_much, to[2], own.z);
    };
    add(0, by_a);
    if constexpr (n > 1) add(1, by_b);
    if constexpr (n > 2) add(2, by_c);
    y[r.at] = a, note(by_a, r.rho[0]);
    if constexpr (n > 1) y[r.at + 1] = b, note(by_b, r.rho[1]);
    if constexpr (n > 2) y[r.at + 2] = c, note(by_c, r.rho[2]);
    for (int p = 0; p < stride; p += kRows) {
      P sum = mul_add(P(by_a), load_rows<P>(rows_of_Z + p), load_rows<P>(z + p));
      if constexpr (n > 1) sum = mul_add(P(by_b), load_rows<P>(rows_of_Z + stride + p), sum);
      if constexpr (n > 2) sum = mul_add(P(by_c), load_rows<P>(rows_of_Z + 2 * stride + p), sum);
      store_rows(z + p, sum);
    }
  };
  const auto within = [](T most, T& a, T& b) {
    const T square = a * a + b * b;
    if (!(square > most * most)) return;
    const T length = square_root(square);
    a = a * most / length, b = b * most / length;
  };
  constexpr std::integral_constant<int, 1> kOne;
  constexpr std::integral_constant<int, 2> kTwo;
  constexpr std::integral_constant<int, 3> kThree;
  const auto relax = [&](const Relaxation& r, const Relaxation& next) __attribute__((always_inline)) {
    switch (r.kind) {
      case Relaxation::contact: {
        const T normal = maximum(own.x, T(0)), by_normal = normal - y[r.at];
        if (normal == 0 && by_normal == 0 && y[r.at + 1] == 0 && y[r.at + 2] == 0) {  // it stays open
          go_on(next);
          break;
        }
        const T* of_normal = Z + r.at * stride + r.at;
        T a = mul_add(by_normal, of_normal[1], own.y), b = mul_add(by_normal, of_normal[2], own.z);
        within(r.bound * normal, a, b);
        change(kThree, r, next, normal, a, b);
        break;
      }
      case Relaxation::interval:
        change(kOne, r, next, minimum(maximum(own.x, T(r.lower)), T(r.upper)), T(0), T(0));
        break;
      case Relaxation::normal: change(kOne, r, next, maximum(own.x, T(0)), T(0), T(0)); break;
      case Relaxation::twist: {
        const T most = r.bound * y[r.normal_at];
        change(kOne, r, next, minimum(maximum(own.x, -most), most), T(0), T(0));
        break;
      }
      case Relaxation::disc: {
        T a = own.x, b = own.y;
        within(r.bound * y[r.normal_at], a, b);
        change(kTwo, r, next, a, b, T(0));
        break;
      }
      case Relaxation::ball: {
        const T square = own.x * own.x + own.y * own.y + own.z * own.z;
        const T scale = square > r.bound * r.bound ? r.bound / square_root(square) : T(1);
        change(kThree, r, next, own.x * scale, own.y * scale, own.z * scale);
        break;
      }
    }
  };
  if (count > 0) go_on(*rows);
  int done = 0;
  do {
    moved = energy = 0;
    for (int k = 0; k < count; ++k) relax(rows[k], rows[k + 1 < count ? k + 1 : 0]);
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
