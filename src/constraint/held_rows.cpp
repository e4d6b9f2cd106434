#include "tarsus/constraint/held_rows.hpp"

#include <algorithm>

#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

template <class R>
std::vector<char> dependent_rows(const HeldRows<R>& held, std::span<double> a, int ld) {
  const int m = held.rows();
  const auto row = [&](int i) { return a.data() + std::size_t(i) * ld; };
  const auto at = [&](int i, int j) -> double& { return row(std::min(i, j))[std::max(i, j)]; };
  double largest = 0;
  for (int i = 0; i < m; ++i) {
    row(i)[i] += double(held.compliance[i]);
    largest = std::max(largest, row(i)[i]);
  }
  std::vector<double> least(m);
  for (int i = 0; i < m; ++i)
    least[i] =
        std::max(double(kDependent<R>) * double(pivot_scale(R(row(i)[i]), R(largest))), double(kDead<R>) * largest);
  // The pivot that is furthest above its limit first: small ones magnify the rounding of those after them.
  std::vector<char> out(m, 1);
  for (;;) {
    int pivot = -1;
    for (int i = 0; i < m; ++i) {
      if (out[i] && row(i)[i] > least[i] && (pivot < 0 || row(i)[i] * least[pivot] > row(pivot)[pivot] * least[i]))
        pivot = i;
    }
    if (pivot < 0) return out;
    out[pivot] = 0;
    for (int r = 0; r < m; ++r) {
      if (!out[r]) continue;
      const double l = at(pivot, r) / row(pivot)[pivot];
      for (int c = r; c < m; ++c) {
        if (out[c]) row(r)[c] -= l * at(pivot, c);
      }
    }
  }
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
