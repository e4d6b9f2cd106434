// How well a velocity and an impulse obey a term's law.
#include <algorithm>

#include "solver/law.hpp"

namespace tarsus {

double natural_residual(const Term& term, const TermRow* rows, const double* velocity, const double* impulse) {
  double z[kTermRows], step[kTermRows], projected[kTermRows], worst = 0;
  // Rows that are projected together have one step, or the projection would not be one.
  for (int i = 0; i < term.nrow; ++i) step[i] = rows[i].scale + rows[i].compliance;
  const auto share = [&](int first, int count) {
    const double largest = *std::max_element(step + first, step + first + count);
    std::fill_n(step + first, count, largest);
  };
  if (term.law == Law::ball) share(0, 3);
  if (term.law == Law::contact && term.nrow >= 3) share(1, 2);
  if (term.law == Law::contact && term.nrow >= 6) share(4, 2);
  for (int i = 0; i < term.nrow; ++i) {
    const double miss = velocity[i] + rows[i].compliance * (impulse[i] - rows[i].centre) - rows[i].target;
    z[i] = impulse[i] - miss / step[i];
  }
  term_law(term, rows, z, std::max(0.0, impulse[0]), projected, nullptr);
  for (int i = 0; i < term.nrow; ++i) {
    const double miss = std::abs(impulse[i] - projected[i]) * step[i];
    worst = miss <= worst ? worst : miss;  // a nan stays
  }
  return worst;
}

double excess(const Term& term, const double* impulse) {
  if (term.law == Law::contact) return 0;
  if (term.law == Law::ball) {
    const double length = std::sqrt(impulse[0] * impulse[0] + impulse[1] * impulse[1] + impulse[2] * impulse[2]);
    return term.upper > 0 ? length / term.upper - 1 : length;
  }
  const double beyond = std::max(term.lower - impulse[0], impulse[0] - term.upper);
  if (!(beyond > 0)) return 0;
  double size = 0;
  for (const double bound : {term.lower, term.upper}) {
    if (std::abs(bound) < kUnbounded) size = std::max(size, std::abs(bound));
  }
  return size > 0 ? beyond / size : beyond;
}

}  // namespace tarsus
