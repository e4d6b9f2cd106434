// The interval law, of drives, limits and dry friction: γ = clamp(y, lower, upper), G = 1/R inside and 0 outside.
#include <algorithm>

#include "solver/law.hpp"

namespace tarsus {

void interval_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent) {
  impulse[0] = std::clamp(y[0], term.lower, term.upper);
  if (tangent) tangent->at[0][0] = y[0] > term.lower && y[0] < term.upper ? 1 / rows[0].compliance : 0;
}

}  // namespace tarsus
