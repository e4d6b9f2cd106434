#include "tarsus/constraint/held_rows.hpp"

#include <algorithm>

#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

template <class R>
std::vector<char> dependent_rows(const HeldRows<R>& held, std::span<double> a, int ld) {
  constexpr double kLost = sizeof(R) == 8 ? kDependent : 1e-5;  // of a diagonal, what is rounding
  constexpr double kNothing = sizeof(R) == 8 ? kDead : 1e-12;   // of the largest, what nothing moves
  const int m = held.rows();
  const auto row = [&](int i) { return a.data() + std::size_t(i) * ld; };
  double largest = 0;
  for (int i = 0; i < m; ++i) {
    row(i)[i] += double(held.compliance[i]);
    largest = std::max(largest, row(i)[i]);
  }
  std::vector<double> least(m);
  for (int i = 0; i < m; ++i)
    least[i] = std::max(kLost * double(pivot_scale(R(row(i)[i]), R(largest))), kNothing * largest);
  std::vector<char> out(m, 0);
  for (int i = 0; i < m; ++i) {
    const double* pivot = row(i);
    out[i] = !(pivot[i] > least[i]);
    for (int r = i + 1; r < m && !out[i]; ++r) {
      const double l = pivot[r] / pivot[i];
      for (int c = r; c < m; ++c) row(r)[c] -= l * pivot[c];
    }
  }
  return out;
}

template <class R>
void eliminate_held(const HeldRows<R>& held, std::span<const char> left_out, std::span<double> a, int n, int ld,
                    std::span<double> b) {
  const auto row = [&](int i) { return a.data() + std::size_t(i) * ld; };
  for (int i = 0; i < held.rows(); ++i) {
    double* pivot = row(i);
    pivot[i] = left_out[i] ? 0 : pivot[i] + double(held.compliance[i]);
    if (!(pivot[i] > 0)) continue;
    for (int r = i + 1; r < n; ++r) {
      const double l = row(r)[i] / pivot[i];
      if (l == 0) continue;
      for (int c = i + 1; c < n; ++c) row(r)[c] -= l * pivot[c];
      if (!b.empty()) b[r] -= l * b[i];
    }
  }
}

void held_back(int held, std::span<const double> a, int n, int ld, std::span<const double> b, std::span<double> x) {
  for (int i = held; i-- > 0;) {
    const double* row = a.data() + std::size_t(i) * ld;
    double sum = b.empty() ? 0 : b[i];
    for (int j = i + 1; j < n; ++j) sum -= row[j] * x[j];
    x[i] = row[i] > 0 ? sum / row[i] : 0;
  }
}

#define TARSUS_INSTANTIATE(R)                                                                             \
  template std::vector<char> dependent_rows<R>(const HeldRows<R>&, std::span<double>, int);               \
  template void eliminate_held<R>(const HeldRows<R>&, std::span<const char>, std::span<double>, int, int, \
                                  std::span<double>);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
