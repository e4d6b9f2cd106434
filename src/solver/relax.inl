// The laws of solver/law.hpp in one metric, a row or two at a time; see solver/relax.hpp.
#pragma once

#include "math/kernel_call.inl"
#include "solver/relax.hpp"
#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
TARSUS_INLINE void relax_kernel(const Relaxation* rows, int count, const T* A, int stride, T* y, T* u, Relaxed& by) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T moved = by.moved, energy = by.energy;
  // All that does not wait for u comes first: rows follow one another through u alone.
  const auto before = [&](const Relaxation& r, int i) {
    const int at = r.at + i;
    return neg_mul_add(u[at], T(r.inverse), mul_add(T(r.keep[i]), y[at], T(r.towards[i])));
  };
  const auto note = [&](const Relaxation& r, T change) {
    const T size = change * r.rho;
    moved = maximum(moved, absolute(size)), energy = energy + change * size;
  };
  const auto change = [&](const Relaxation& r, int i, T to) {
    const int at = r.at + i;
    const T by_how_much = to - y[at];
    if (by_how_much == 0) return;
    y[at] = to;
    const T* a = A + at * stride;
    for (int p = 0; p < stride; p += kRows)
      store_rows(u + p, mul_add(P(by_how_much), load_rows<P>(a + p), load_rows<P>(u + p)));
    note(r, by_how_much);
  };
  const auto change_two = [&](const Relaxation& r, T first, T second) {
    const int at = r.at;
    const T one = first - y[at], two = second - y[at + 1];
    if (one == 0 && two == 0) return;
    y[at] = first, y[at + 1] = second;
    const T *a = A + at * stride, *b = a + stride;
    for (int p = 0; p < stride; p += kRows) {
      const P half = mul_add(P(one), load_rows<P>(a + p), load_rows<P>(u + p));
      store_rows(u + p, mul_add(P(two), load_rows<P>(b + p), half));
    }
    note(r, one), note(r, two);
  };
  for (const Relaxation* r = rows; r < rows + count; ++r) {
    switch (r->kind) {
      case Relaxation::interval: {
        change(*r, 0, minimum(maximum(before(*r, 0), T(r->lower)), T(r->upper)));
        break;
      }
      case Relaxation::normal: {
        change(*r, 0, maximum(before(*r, 0), T(0)));
        break;
      }
      case Relaxation::twist: {
        const T most = r->bound * y[r->normal_at];
        change(*r, 0, minimum(maximum(before(*r, 0), -most), most));
        break;
      }
      case Relaxation::disc: {
        const T most = r->bound * y[r->normal_at];
        if (most == 0 && y[r->at] == 0 && y[r->at + 1] == 0) break;  // as an open contact's
        T to[2] = {before(*r, 0), before(*r, 1)};
        const T square = to[0] * to[0] + to[1] * to[1];
        if (square > most * most) {
          const T scale = most / square_root(square);
          to[0] = to[0] * scale, to[1] = to[1] * scale;
        }
        change_two(*r, to[0], to[1]);
        break;
      }
      case Relaxation::ball: {
        T to[3] = {before(*r, 0), before(*r, 1), before(*r, 2)};
        const T square = to[0] * to[0] + to[1] * to[1] + to[2] * to[2], most = r->bound;
        const T scale = square > most * most ? most / square_root(square) : T(1);
        for (int i = 0; i < 3; ++i) change(*r, i, to[i] * scale);
        break;
      }
    }
  }
  by.moved = moved, by.energy = energy;
}

TARSUS_FILL_KERNELS(RelaxTable, TARSUS_RELAX_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
