// Constraint stages of an open chain of bonds: the matrix e_k·g_l (inverse masses) is tridiagonal.
//
// The factorisation runs from both ends to the middle row. Its two independent recurrences hide each other's latency,
// and each substitution step is one multiply-add. All other loops over the bonds are vectorised.
#pragma once

#include "particles/kernels.hpp"
#include "particles/lanes.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline void path_load_kernel(const PathArgs& a, const double* from) {
  int i = 0;
  for (; i + kLanes <= a.m + 1; i += kLanes) {
    Lanes x(0.0), y(0.0), z(0.0);
    load_consecutive(from + 3 * static_cast<std::int64_t>(i), x, y, z);
    store(a.x + i, x), store(a.y + i, y), store(a.z + i, z);
  }
  for (; i <= a.m; ++i) {
    const double* p = from + 3 * static_cast<std::int64_t>(i);
    a.x[i] = p[0], a.y[i] = p[1], a.z[i] = p[2];
  }
}

inline void path_store_kernel(const PathArgs& a, double* to) {
  int i = 0;
  for (; i + kLanes <= a.m + 1; i += kLanes)
    store_consecutive(to + 3 * static_cast<std::int64_t>(i), load(a.x + i), load(a.y + i), load(a.z + i));
  for (; i <= a.m; ++i) {
    double* p = to + 3 * static_cast<std::int64_t>(i);
    p[0] = a.x[i], p[1] = a.y[i], p[2] = a.z[i];
  }
}

inline void path_bonds_kernel(const PathArgs& a, double* ex, double* ey, double* ez) {
  for (int k = 0; k < a.m; k += kLanes) {
    store(ex + k, load(a.x + k) - load(a.x + k + 1));
    store(ey + k, load(a.y + k) - load(a.y + k + 1));
    store(ez + k, load(a.z + k) - load(a.z + k + 1));
  }
  // The last pack extends past the end, where the bonds must be zero.
  for (int k = a.m; k % kLanes != 0; ++k) ex[k] = ey[k] = ez[k] = 0;
}

inline double path_sigma_kernel(const PathArgs& a) {
  const Lanes half(0.5);
  Lanes worst(0.0), all(0.0);
  for (int k = 0; k < a.m; k += kLanes) {
    const Lanes ex = load(a.x + k) - load(a.x + k + 1), ey = load(a.y + k) - load(a.y + k + 1);
    const Lanes ez = load(a.z + k) - load(a.z + k + 1);
    store(a.ex + k, ex), store(a.ey + k, ey), store(a.ez + k, ez);
    const Lanes s = half * (mul_add(ex, ex, mul_add(ey, ey, ez * ez)) - load(a.length2 + k));
    store(a.sigma + k, s);
    const Lanes size = absolute(s) * load(a.inverse_length2 + k);
    worst = maximum(size, worst), all += size;
  }
  for (int k = a.m; k % kLanes != 0; ++k) a.ex[k] = a.ey[k] = a.ez[k] = a.sigma[k] = 0;
  const double total = sum_of(all);
  return total == total ? largest_of(worst) : total;
}

inline double path_rates_kernel(const PathArgs& a) {
  Lanes worst(0.0), all(0.0);
  for (int k = 0; k < a.m; k += kLanes) {
    const Lanes dx = load(a.x + k) - load(a.x + k + 1), dy = load(a.y + k) - load(a.y + k + 1);
    const Lanes dz = load(a.z + k) - load(a.z + k + 1);
    const Lanes s = mul_add(load(a.gx + k), dx, mul_add(load(a.gy + k), dy, load(a.gz + k) * dz));
    store(a.sigma + k, s);
    const Lanes size = absolute(s) * load(a.inverse_length2 + k);
    worst = maximum(size, worst), all += size;
  }
  for (int k = a.m; k % kLanes != 0; ++k) a.sigma[k] = 0;
  const double total = sum_of(all);
  return total == total ? largest_of(worst) : total;
}

TARSUS_INLINE Lanes dot_at(const double* ax, const double* ay, const double* az, const double* bx, const double* by,
                           const double* bz) {
  return mul_add(load(ax), load(bx), mul_add(load(ay), load(by), load(az) * load(bz)));
}

inline double path_factor_kernel(const PathArgs& a) {
  double* const diagonal = a.delta;  // not in use before path_solve
  for (int k = 0; k < a.m; k += kLanes) {
    const double *ex = a.ex + k, *ey = a.ey + k, *ez = a.ez + k, *gx = a.gx + k, *gy = a.gy + k, *gz = a.gz + k;
    const Lanes w0 = load(a.inverse_mass + k), w1 = load(a.inverse_mass + k + 1);
    store(diagonal + k, (w0 + w1) * dot_at(ex, ey, ez, gx, gy, gz));
    store(a.upper + k, -w1 * dot_at(ex, ey, ez, gx + 1, gy + 1, gz + 1));
    store(a.lower + k, -w0 * dot_at(ex, ey, ez, gx - 1, gy - 1, gz - 1));
  }
  const int last = a.m - 1, middle = a.m / 2;
  double *lo = a.lower, *up = a.upper, *inv = a.inverse;
  // Above the middle `lower` becomes the multiplier of the row above and `upper` the scaled row. Below the middle the
  // roles are mirrored.
  int i = 0, j = last;
  double raw_up = 0, raw_lo = 0, inv_i = 0, inv_j = 0;
  const auto down = [&] {
    lo[i] *= inv_i;
    inv_i = 1.0 / neg_mul_add(lo[i], raw_up, diagonal[i]);
    raw_up = up[i], inv[i] = inv_i, up[i] = raw_up * inv_i;
    ++i;
  };
  const auto rise = [&] {
    up[j] *= inv_j;
    inv_j = 1.0 / neg_mul_add(up[j], raw_lo, diagonal[j]);
    raw_lo = lo[j], inv[j] = inv_j, lo[j] = raw_lo * inv_j;
    --j;
  };
  while (i < middle && j > middle) down(), rise();
  while (i < middle) down();
  while (j > middle) rise();
  lo[middle] *= inv_i, up[middle] *= inv_j;
  inv[middle] = 1.0 / neg_mul_add(lo[middle], raw_up, neg_mul_add(up[middle], raw_lo, diagonal[middle]));
  Lanes largest(0.0), all(0.0);
  for (int k = a.m; k % kLanes != 0; ++k) diagonal[k] = 0, inv[k] = 0;
  for (int k = 0; k < a.m; k += kLanes) {
    const Lanes growth = absolute(load(diagonal + k) * load(inv + k));
    largest = maximum(growth, largest), all += growth;
  }
  const double total = sum_of(all);
  return total == total ? 1.0 / largest_of(largest) : total;
}

inline void path_solve_kernel(const PathArgs& a) {
  const int last = a.m - 1, middle = a.m / 2;
  const double *lo = a.lower, *up = a.upper, *inv = a.inverse, *s = a.sigma;
  double* const d = a.delta;
  int i = 0, j = last;
  double from_above = 0, from_below = 0;
  for (; i < middle && j > middle; ++i, --j) {
    d[i] = from_above = neg_mul_add(lo[i], from_above, s[i]);
    d[j] = from_below = neg_mul_add(up[j], from_below, s[j]);
  }
  for (; i < middle; ++i) d[i] = from_above = neg_mul_add(lo[i], from_above, s[i]);
  for (; j > middle; --j) d[j] = from_below = neg_mul_add(up[j], from_below, s[j]);
  const double centre =
      neg_mul_add(lo[middle], from_above, neg_mul_add(up[middle], from_below, s[middle])) * inv[middle];
  d[middle] = centre;
  double above = centre, below = centre;
  i = middle - 1, j = middle + 1;
  for (; i >= 0 && j <= last; --i, ++j) {
    d[i] = above = neg_mul_add(up[i], above, d[i] * inv[i]);
    d[j] = below = neg_mul_add(lo[j], below, d[j] * inv[j]);
  }
  for (; i >= 0; --i) d[i] = above = neg_mul_add(up[i], above, d[i] * inv[i]);
  for (; j <= last; ++j) d[j] = below = neg_mul_add(lo[j], below, d[j] * inv[j]);
  for (int k = a.m; k % kLanes != 0; ++k) d[k] = 0;
}

inline void path_move_kernel(const PathArgs& a) {
  a.delta[-1] = 0, a.delta[a.m] = 0;
  for (int k = 0; k <= a.m; k += kLanes) {
    const Lanes w = load(a.inverse_mass + k), here = load(a.delta + k), before = load(a.delta + k - 1);
    const auto moved = [&](const double* p, const double* g) {
      return neg_mul_add(w, load(g + k) * here - load(g + k - 1) * before, load(p + k));
    };
    store(a.x + k, moved(a.x, a.gx));
    store(a.y + k, moved(a.y, a.gy));
    store(a.z + k, moved(a.z, a.gz));
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
