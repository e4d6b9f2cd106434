// The laws of solver/law.hpp in one metric, a row or two at a time; see solver/relax.hpp.
#pragma once

#include <type_traits>

#include "math/kernel_call.inl"
#include "solver/relax.hpp"
#include "tarsus/math/row_pack.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Each row waits for the one before it through u alone. So that it does not wait for memory too, its own numbers of u
/// are read before that one's change is written, and what the change makes of them is added here. Reads three
/// numbers whatever a row's count: u and A go on for as long.
template <class T>
TARSUS_INLINE void relax_kernel(const Relaxation* rows, int count, const T* A, int stride, T* y, T* u, Relaxed& by) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T moved = by.moved, energy = by.energy;
  Vec3<T> own{};  // u of the row at hand
  const auto before = [&](const Relaxation& r, int i, T u_i) {
    return neg_mul_add(u_i, T(r.inverse), mul_add(T(r.keep[i]), y[r.at + i], T(r.towards[i])));
  };
  const auto note = [&](T change, T rho) {
    const T size = change * rho;
    moved = maximum(moved, absolute(size)), energy = energy + change * size;
  };
  const auto go_on = [&](const Relaxation& next) { own = {u[next.at], u[next.at + 1], u[next.at + 2]}; };
  /// y of a row, and u of all.
  const auto change = [&](auto number, const Relaxation& r, const Relaxation& next, T to_x, T to_y, T to_z) {
    constexpr int n = number;
    const T x = to_x - y[r.at], y_ = n > 1 ? to_y - y[r.at + 1] : T(0), z = n > 2 ? to_z - y[r.at + 2] : T(0);
    go_on(next);
    if (x == 0 && y_ == 0 && z == 0) return;
    const T* a = A + r.at * stride;
    const auto add = [&](int column, T by_how_much) {
      const T* to = a + column * stride + next.at;
      own.x = mul_add(by_how_much, to[0], own.x), own.y = mul_add(by_how_much, to[1], own.y);
      own.z = mul_add(by_how_much, to[2], own.z);
    };
    add(0, x);
    if constexpr (n > 1) add(1, y_);
    if constexpr (n > 2) add(2, z);
    y[r.at] = to_x, note(x, r.rho);
    if constexpr (n > 1) y[r.at + 1] = to_y, note(y_, r.rho);
    if constexpr (n > 2) y[r.at + 2] = to_z, note(z, r.rho);
    for (int p = 0; p < stride; p += kRows) {
      P sum = mul_add(P(x), load_rows<P>(a + p), load_rows<P>(u + p));
      if constexpr (n > 1) sum = mul_add(P(y_), load_rows<P>(a + stride + p), sum);
      if constexpr (n > 2) sum = mul_add(P(z), load_rows<P>(a + 2 * stride + p), sum);
      store_rows(u + p, sum);
    }
  };
  constexpr std::integral_constant<int, 1> kOne;
  constexpr std::integral_constant<int, 2> kTwo;
  constexpr std::integral_constant<int, 3> kThree;
  if (count > 0) go_on(*rows);
  for (int k = 0; k < count; ++k) {
    const Relaxation &r = rows[k], &next = rows[k + 1 < count ? k + 1 : k];
    switch (r.kind) {
      case Relaxation::interval:
        change(kOne, r, next, minimum(maximum(before(r, 0, own.x), T(r.lower)), T(r.upper)), T(0), T(0));
        break;
      case Relaxation::normal: change(kOne, r, next, maximum(before(r, 0, own.x), T(0)), T(0), T(0)); break;
      case Relaxation::twist: {
        const T most = r.bound * y[r.normal_at];
        change(kOne, r, next, minimum(maximum(before(r, 0, own.x), -most), most), T(0), T(0));
        break;
      }
      case Relaxation::disc: {
        const T most = r.bound * y[r.normal_at];
        if (most == 0 && y[r.at] == 0 && y[r.at + 1] == 0) {  // as an open contact's
          go_on(next);
          break;
        }
        T one = before(r, 0, own.x), two = before(r, 1, own.y);
        const T square = one * one + two * two;
        if (square > most * most) {
          const T scale = most / square_root(square);
          one = one * scale, two = two * scale;
        }
        change(kTwo, r, next, one, two, T(0));
        break;
      }
      case Relaxation::ball: {
        const T one = before(r, 0, own.x), two = before(r, 1, own.y), three = before(r, 2, own.z), most = r.bound;
        const T square = one * one + two * two + three * three;
        const T scale = square > most * most ? most / square_root(square) : T(1);
        change(kThree, r, next, one * scale, two * scale, three * scale);
        break;
      }
    }
  }
  by.moved = moved, by.energy = energy;
}

TARSUS_FILL_KERNELS(RelaxTable, TARSUS_RELAX_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
