// The laws of solver/law.hpp in one metric, one contact after another; see solver/relax.hpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include "math/kernel_call.inl"
#include "solver/body_contact_lanes.inl"
#include "solver/relax.hpp"
#include "solver/sliding_law.inl"
#include "tarsus/math/gather.hpp"
#include "tarsus/solver/sweeps.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A relaxation depends on the one before it through z alone. To hide the latency of memory, its part of z is read
/// before the other's change is written, and the effect of that change is added here. It reads three numbers whatever a
/// row's count; z and Z are long enough for that.
template <class T>
TARSUS_INLINE int relax_kernel(const Relaxation* rows, int count, const T* Z, int stride, int sweeps, T tolerance, T* y,
                               T* z, Relaxed& by) {
  using P = WidestPack<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  T moved = 0, energy = 0;
  Vec3<T> own{};  // z of the present rows, then the new y
  const auto within = [&](T most, T& p, T& q) {
    const T square = p * p + q * q;
    if (!(square > most * most)) return;
    const T length = square_root(square);
    p = p * most / length, q = q * most / length;
  };
  /// Writes y of n rows, updates all of z, and reads the next rows' z into `own`.
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

#if defined(__AVX2__)
using PointPack = Pack<float, 8>;
#else
using PointPack = Pack<float, 4>;
#endif

template <class T>
int point_lanes() {
  return kWidth<PointPack>;
}

/// Numbers of free bodies, one body a lane.
template <class P>
struct PointBodies {
  P inverse_mass;
  Sym3<P> inverse_inertia;
  Vec3<P> w, v;
  TARSUS_INLINE PointBodies(const float* bodies, const int* body) {
    P x[8], m[8];
    gather_records(bodies, body, x), gather_records(bodies + kBodyMotion, body, m);
    inverse_mass = x[0], inverse_inertia = {x[1], x[2], x[3], x[4], x[5], x[6]};
    w = {m[0], m[1], m[2]}, v = {m[3], m[4], m[5]};
  }
  TARSUS_INLINE Vec3<P> velocity(const Vec3<P>& arm) const { return cross_add(w, arm, v); }
  TARSUS_INLINE void push(const Vec3<P>& arm, const Vec3<P>& f) {
    v = mul_add(f, inverse_mass, v), w = w + inverse_inertia * cross(arm, f);
  }
  TARSUS_INLINE void put(float* bodies, const int* body) const {
    const P zero = P(0.0f), m[8] = {w.x, w.y, w.z, v.x, v.y, v.z, zero, zero};
    scatter_records(bodies + kBodyMotion, body, m);
  }
};

template <class T>
void relax_points_kernel(float* numbers, const int* body, int first, int count, int step, float* bodies,
                         const Extrapolation* extrapolate, Relaxed& by) {
  using P = PointPack;
  constexpr int kLanes = kWidth<P>;
  const P zero = P(0.0f), beta = P(extrapolate ? float(extrapolate->beta) : 0.0f);
  P moved = zero, energy = zero;
  for (int i = 0, place = first; i < count; ++i, place += step) {
    float* const at = numbers + std::ptrdiff_t(place) * kPointNumbers * kLanes;
    const int *const body_a = body + 2 * place * kLanes, *const body_b = body_a + kLanes;
    const auto get = [&](int which) { return load_rows<P>(at + which * kLanes); };
    const auto get3 = [&](int which) { return Vec3<P>{get(which), get(which + 1), get(which + 2)}; };
    const auto put3 = [&](int which, const Vec3<P>& x) {
      for (int k = 0; k < 3; ++k) store_rows(at + (which + k) * kLanes, x[k]);
    };
    Vec3<P> y = get3(kPointImpulse);
    if (extrapolate) {
      const Vec3<P> p = get3(kPointBy), before = get3(kPointBefore);
      y = mul_add(p, beta, y);
      put3(kPointBy, extrapolate->restart ? zero3<P>() : y - before), put3(kPointBefore, y);
    }
    PointBodies<P> a(bodies, body_a), b(bodies, body_b);
    const Vec3<P> arm_a = get3(kPointArmA), arm_b = get3(kPointArmB), n = get3(kPointNormal);
    const P R_n = get(kPointCompliance), R_t = get(kPointCompliance + 1);
    const Vec3<P> left = a.velocity(arm_a) - b.velocity(arm_b) - get3(kPointTarget);  // J x - b - R c
    const P last = dot(n, y), along = dot(n, left);
    const P y_n = maximum(zero, neg_mul_add(mul_add(R_n, last, along), get(kPointInverse), last)), by_n = y_n - last;
    const Vec3<P> last_t = y - n * last;
    const Vec3<P> u = mul_add(get3(kPointFelt), by_n, left - n * along) + last_t * R_t;
    Vec3<P> y_t = last_t - u * get(kPointInverse + 1);
    const P bound = get(kPointFriction) * y_n, square = dot(y_t, y_t);
    const Mask<P> slips = (square > bound * bound) | !(bound > zero);
    if (any_lane(slips)) {
      const P length = square_root(square), one = P(1.0f);
      const Mask<P> some = length > tiny<P>();
      y_t = y_t * select(slips, bound / select(some, length, one), one);
    }
    const P rho_n = get(kPointMetric), rho_t = get(kPointMetric + 1);
    const Vec3<P> by_t = y_t - last_t, f = mul_add(n, by_n, by_t);
    put3(kPointImpulse, mul_add(n, y_n, y_t));
    const P square_n = by_n * by_n * rho_n, square_t = dot(by_t, by_t) * rho_t;
    moved = maximum(moved, maximum(square_n * rho_n, square_t * rho_t)), energy = energy + square_n + square_t;
    a.push(arm_a, f), b.push(arm_b, -f);
    a.put(bodies, body_a), b.put(bodies, body_b);
  }
  float most[kLanes], sum[kLanes];
  store_rows(most, square_root(moved)), store_rows(sum, energy);
  for (int l = 0; l < kLanes; ++l) by.moved = std::max(by.moved, double(most[l])), by.energy += double(sum[l]);
}

TARSUS_FILL_KERNELS(RelaxTable, TARSUS_RELAX_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
