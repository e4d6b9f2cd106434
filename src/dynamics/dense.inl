// Dense matrices stored by columns, each padded to eight numbers; see tarsus/dynamics/dense_trees.hpp.
//
// Each number receives its updates in sequence, one fused multiply-subtract each, so the result does not depend on the
// width of the vectors.
#pragma once

#include <type_traits>

#include "tarsus/dynamics/dense_term.hpp"
#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// @param kCount number of rows, or 0: taken from the term
template <int kCount, class T>
TARSUS_INLINE void dense_add_rows(const DenseTermOf<T>& t, int ld, T* product, T* right, T* H, int H_ld) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kMost = kCount > 0 ? kCount : 6;
  const int n = kCount > 0 ? kCount : t.rows;
  const T *J = t.J, *G = t.G;
  // J is zero before the pack of the first place and after the pack of the last.
  const int begin = t.places[0] / 8 * 8, end = t.places[t.count - 1] / 8 * 8 + 8;
  for (int p = begin; p < end; p += kRows) {
    P row[kMost], sum = load_rows<P>(right + p);
    for (int c = 0; c < n; ++c) {
      row[c] = load_rows<P>(J + c * ld + p);
      sum = mul_add(P(t.force[c]), row[c], sum);
    }
    store_rows(right + p, sum);
    for (int r = 0; G && r < n; ++r) {
      P of_row = P(G[t.step * r]) * row[0];
      for (int c = 1; c < n; ++c) of_row = mul_add(P(G[t.step * r + c]), row[c], of_row);
      store_rows(product + r * ld + p, of_row);
    }
  }
  for (int i = 0; G && i < t.count; ++i) {
    T* const h = H + t.places[i] * H_ld;
    T factor[kMost];
    for (int r = 0; r < n; ++r) factor[r] = product[r * ld + t.places[i]];
    for (int p = begin; p < end; p += kRows) {
      P sum = load_rows<P>(h + p);
      for (int r = 0; r < n; ++r) sum = mul_add(P(factor[r]), load_rows<P>(J + r * ld + p), sum);
      store_rows(h + p, sum);
    }
  }
}

/// H += Jᵀ G J and right += Jᵀ force of these terms. @param ld of J @param product [6][ld] scratch
template <class T>
void dense_add_kernel(const DenseTermOf<T>* terms, int count, int ld, T* product, T* right, T* H, int H_ld) {
  for (const DenseTermOf<T>* t = terms; t < terms + count; ++t) {
    if (t->rows == 1 && t->count == 1) {  // a joint's term
      const int at = t->places[0];
      const T arm = t->J[at];
      right[at] = mul_add(t->force[0], arm, right[at]);
      if (t->G) H[at * (H_ld + 1)] = mul_add(t->G[0] * arm, arm, H[at * (H_ld + 1)]);
    } else if (t->rows == 1) {
      dense_add_rows<1>(*t, ld, product, right, H, H_ld);
    } else if (t->rows == 3) {
      dense_add_rows<3>(*t, ld, product, right, H, H_ld);
    } else {
      dense_add_rows<0>(*t, ld, product, right, H, H_ld);
    }
  }
}

/// column -= Σ_k L_k column[k] over `count` columns k of L from `first` on. L has their entries below the diagonal.
template <int kCount, class T>
TARSUS_INLINE void dense_update(int count, int first, int ld, const T* L, T* column) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T factor[4];
  bool some = false;
  for (int c = 0; c < (kCount > 0 ? kCount : count); ++c) {
    factor[c] = column[first + c];
    for (int b = 0; b < c; ++b) factor[c] = neg_mul_add(L[(first + b) * ld + first + c], factor[b], factor[c]);
    some = some | (factor[c] != 0);
  }
  if (!some) return;
  for (int p = first / 8 * 8; p < ld; p += kRows) {
    P sum = load_rows<P>(column + p);
    for (int c = 0; c < (kCount > 0 ? kCount : count); ++c)
      sum = neg_mul_add(load_rows<P>(L + (first + c) * ld + p), P(factor[c]), sum);
    store_rows(column + p, sum);
  }
}

/// x with its first `count` numbers replaced by zeros, if it has that many. (Numbers written individually can be loaded
/// as a pack only after they have left the store buffer.)
template <class P>
TARSUS_INLINE P behind(const P& x, int count) {
  using Word = Bits<Real<P>>;
  constexpr int kRows = kWidth<P>;
  static constexpr Word kWords[24] = {0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
  count = count < 0 ? 0 : count < kRows ? count : kRows;
  Bits<P> mask;
  __builtin_memcpy(&mask, kWords + 8 - count, sizeof(mask));
  return from_bits<P>(to_bits(x) & mask);
}

/// A = P⁻¹ L U by columns, with rows exchanged where the pivot is small. U remains in A without its diagonal, whose
/// inverse goes to `inverse`. L's columns go to L, without ones and with zeros above. Later columns are updated for
/// four columns at once.
template <class T>
void dense_factor_kernel(int n, int ld, T* A, T* L, T* inverse, int* pivot) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kAtOnce = 4;
  constexpr T kSmall = T(0.01);  // smallest ratio of a pivot to the largest number below it
  const auto update = [&](int first, int count, int from, int to) {
    for (int j = from; j < to; ++j) {
      if (count == kAtOnce)
        dense_update<kAtOnce>(count, first, ld, L, A + j * ld);
      else
        dense_update<0>(count, first, ld, L, A + j * ld);
    }
  };
  for (int begin = 0; begin < n; begin += kAtOnce) {
    const int end = begin + kAtOnce < n ? begin + kAtOnce : n;
    int waiting = begin;  // columns at `end` and after have not received the updates from here on
    for (int k = begin; k < end; ++k) {
      T *column = A + k * ld, *l = L + k * ld;
      const int first = k / 8 * 8;
      const P most = P(absolute(column[k]) / kSmall);
      bool small = false;
      for (int p = first; p < ld; p += kRows) small = small | any_lane(absolute(load_rows<P>(column + p)) > most);
      pivot[k] = k;
      if (small) {
        int best = k;
        for (int i = k + 1; i < n; ++i) {
          if (absolute(column[i]) > absolute(column[best])) best = i;
        }
        if (absolute(column[k]) < kSmall * absolute(column[best])) pivot[k] = best;
      }
      if (pivot[k] != k) {
        update(waiting, k - waiting, end, n), waiting = k;
        for (int j = k; j < n; ++j) {
          const T kept = A[j * ld + k];
          A[j * ld + k] = A[j * ld + pivot[k]], A[j * ld + pivot[k]] = kept;
        }
      }
      const T over = 1 / column[k];
      inverse[k] = over;
      for (int p = first; p < ld; p += kRows) {
        const P here = load_rows<P>(column + p);
        store_rows(l + p, behind<P>(here * P(over), k + 1 - p)), store_rows(column + p, here - behind<P>(here, k - p));
      }
      update(k, 1, k + 1, end);
    }
    update(waiting, end - waiting, end, n);
  }
}

/// x = A⁻¹ x with the results of dense_factor_kernel(), eight unknowns at a time if no rows were exchanged.
/// @param x [ld], zero from n on
template <class T>
void dense_solve_kernel(int n, int ld, const T* A, const T* L, const T* inverse, const int* pivot, T* x) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kAtOnce = 8;
  const auto subtract = [&](const T* column, T factor, int begin, int end) {
    if (factor == 0) return;
    const P f = P(factor);
    for (int p = begin; p < end; p += kRows)
      store_rows(x + p, neg_mul_add(load_rows<P>(column + p), f, load_rows<P>(x + p)));
  };
  for (int first = 0; first < n; first += kAtOnce) {
    bool plain = first + kAtOnce <= n;
    for (int k = first; plain && k < first + kAtOnce; ++k) plain = pivot[k] == k;
    const T* block = L + first * ld;
    if (!plain) {
      for (int k = first; k < first + kAtOnce && k < n; ++k) {
        if (pivot[k] != k) {
          const T kept = x[k];
          x[k] = x[pivot[k]], x[pivot[k]] = kept;
        }
        subtract(L + k * ld, x[k], first, ld);
      }
      continue;
    }
    T own[kAtOnce];
    bool some = false;
    for (int k = 0; k < kAtOnce; ++k) {
      own[k] = x[first + k];
      for (int c = 0; c < k; ++c) own[k] = neg_mul_add(block[c * ld + first + k], own[c], own[k]);
      some = some | (own[k] != 0);
    }
    if (!some) continue;
    for (int k = 0; k < kAtOnce; ++k) x[first + k] = own[k];
    for (int p = first + kAtOnce; p < ld; p += kRows) {
      P sum = load_rows<P>(x + p);
      for (int c = 0; c < kAtOnce; ++c) sum = neg_mul_add(load_rows<P>(block + c * ld + p), P(own[c]), sum);
      store_rows(x + p, sum);
    }
  }
  for (int first = (n - 1) / kAtOnce * kAtOnce; first >= 0; first -= kAtOnce) {
    const T* block = A + first * ld;
    if (first + kAtOnce > n) {
      for (int k = n - 1; k >= first; --k) {
        x[k] = x[k] * inverse[k];
        subtract(A + k * ld, x[k], 0, first + kAtOnce);
      }
      continue;
    }
    T own[kAtOnce];
    for (int k = kAtOnce; k-- > 0;) {
      own[k] = x[first + k];
      for (int c = kAtOnce; --c > k;) own[k] = neg_mul_add(block[c * ld + first + k], own[c], own[k]);
      own[k] = own[k] * inverse[first + k];
    }
    for (int k = 0; k < kAtOnce; ++k) x[first + k] = own[k];
    for (int p = 0; p < first; p += kRows) {
      P sum = load_rows<P>(x + p);
      for (int c = kAtOnce; c-- > 0;) sum = neg_mul_add(load_rows<P>(block + c * ld + p), P(own[c]), sum);
      store_rows(x + p, sum);
    }
  }
}

/// The same for many right sides. @param X [n][columns], row-major, columns a multiple of eight
template <class T>
void dense_solve_rows_kernel(int n, int ld, const T* A, const T* L, const T* inverse, const int* pivot, int columns,
                             T* X) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const auto subtract = [&](int to, T factor, int from) {
    if (factor == 0) return;
    const P f = P(factor);
    T *x = X + to * columns, *y = X + from * columns;
    for (int p = 0; p < columns; p += kRows)
      store_rows(x + p, neg_mul_add(load_rows<P>(y + p), f, load_rows<P>(x + p)));
  };
  for (int k = 0; k < n; ++k) {
    T *x = X + k * columns, *y = X + pivot[k] * columns;
    for (int c = 0; pivot[k] != k && c < columns; ++c) {
      const T kept = x[c];
      x[c] = y[c], y[c] = kept;
    }
    for (int i = k + 1; i < n; ++i) subtract(i, L[k * ld + i], k);
  }
  for (int k = n - 1; k >= 0; --k) {
    T* x = X + k * columns;
    for (int p = 0; p < columns; p += kRows) store_rows(x + p, load_rows<P>(x + p) * P(inverse[k]));
    for (int i = 0; i < k; ++i) subtract(i, A[k * ld + i], k);
  }
}

/// kCount rows of B X. @param at(k) the index of row k in X
template <int kCount, class T, class F>
TARSUS_INLINE void dense_product_rows(int inner, const F& at, int columns, const T* B, int row_step, int step,
                                      const T* X, int ld, T* out, int out_ld) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int p = 0; p < columns; p += kRows) {
    P sum[kCount];
    for (P& s : sum) s = P(T(0));
    const T* b = B;
    for (int k = 0; k < inner; ++k, b += step) {
      const P x = load_rows<P>(X + at(k) * ld + p);
      for (int i = 0; i < kCount; ++i) sum[i] = mul_add(P(b[i * row_step]), x, sum[i]);
    }
    for (int i = 0; i < kCount; ++i) store_rows(out + i * out_ld + p, sum[i]);
  }
}
template <class T, class F>
TARSUS_INLINE void dense_product_at(int rows, int inner, const F& at, int columns, const T* B, int row_step, int step,
                                    const T* X, int ld, T* out, int out_ld) {
  const auto go = [&](auto count) __attribute__((always_inline)) {
    for (; rows >= count; rows -= count, B += count * row_step, out += count * out_ld)
      dense_product_rows<count>(inner, at, columns, B, row_step, step, X, ld, out, out_ld);
  };
  go(std::integral_constant<int, 7>()), go(std::integral_constant<int, 3>()), go(std::integral_constant<int, 1>());
}

/// out_i = Σ_k B_ik X[k], up to seven rows at once. @param places index in X of the k-th row; null: k
/// @param columns a multiple of eight
template <class T>
void dense_product_kernel(int rows, int inner, const int* places, int columns, const T* B, int row_step, int step,
                          const T* X, int ld, T* out, int out_ld) {
  if (places)
    dense_product_at(
        rows, inner, [places](int k) { return places[k]; }, columns, B, row_step, step, X, ld, out, out_ld);
  else
    dense_product_at(
        rows, inner, [](int k) { return k; }, columns, B, row_step, step, X, ld, out, out_ld);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
