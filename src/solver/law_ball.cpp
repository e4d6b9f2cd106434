// The ball law, of ball joints' drives: |γ| <= radius.
//
//     γ = q y,  q = min(1, radius/|y|),     G = q (1 - [q < 1] t tᵀ)/R,  t = y/|y|
//
// G is symmetric. The three rows share one R.
#include "solver/law.hpp"

namespace tarsus {

void ball_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent) {
  const double length = std::sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
  const bool outside = length > term.upper;
  const double q = outside ? term.upper / length : 1;
  for (int i = 0; i < 3; ++i) impulse[i] = q * y[i];
  if (!tangent) return;
  const double g = q / rows[0].compliance, along = outside ? g / (length * length) : 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) tangent->at[i][j] = (i == j ? g : 0) - along * y[i] * y[j];
  }
}

}  // namespace tarsus
