// The laws of a step's terms (law.hpp).
//
// Interval, of drives, limits and dry friction: γ = clamp(y, lower, upper), G = 1/R inside and 0 outside.
//
// Ball, of ball joints' drives: |γ| <= radius. The three rows share one R, and G is symmetric:
//
//     γ = q y,  q = min(1, radius/|y|),     G = q (1 - [q < 1] t tᵀ)/R,  t = y/|y|
//
// Contact, of Signorini and Coulomb, with torsion and rolling [MuJoCo's condim 1, 3, 4, 6]:
//
//     γ_n = max(0, y_n),   γ_t = y_t min(1, μ γ_n/|y_t|)
//     torsion: an interval of ± (its length × γ_n);   rolling: a disc as for sliding
//
// Sliding: G_nn = 1/R_n, G_tn = μ t/R_n, G_nt = 0, G_tt = (μ γ_n/|y_t|) (1 - t tᵀ)/R_t with t = y_t/|y_t|. Sticking:
// G_tt = 1/R_t.
#include "solver/law.hpp"

#include <algorithm>

namespace tarsus {

namespace {

void interval_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent) {
  impulse[0] = std::clamp(y[0], term.lower, term.upper);
  if (tangent) tangent->at[0][0] = y[0] > term.lower && y[0] < term.upper ? 1 / rows[0].compliance : 0;
}

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

/// Two rows within a disc of `radius`, which grows with the normal impulse by `growth`.
void disc_law(const double* y, double compliance, double radius, double growth, int row, double* impulse,
              Tangent* tangent) {
  const double y1 = y[row], y2 = y[row + 1], square = y1 * y1 + y2 * y2;
  if (!(radius > 0)) {
    impulse[row] = impulse[row + 1] = 0;
  } else if (square <= radius * radius) {
    impulse[row] = y1, impulse[row + 1] = y2;
    if (tangent) tangent->at[row][row] = tangent->at[row + 1][row + 1] = 1 / compliance;
  } else {
    const double length = std::sqrt(square), t1 = y1 / length, t2 = y2 / length;
    impulse[row] = radius * t1, impulse[row + 1] = radius * t2;
    if (!tangent) return;
    const double across = radius / length / compliance;
    tangent->at[row][row] = across * t2 * t2, tangent->at[row + 1][row + 1] = across * t1 * t1;
    tangent->at[row][row + 1] = tangent->at[row + 1][row] = -across * t1 * t2;
    tangent->at[row][0] = growth * t1, tangent->at[row + 1][0] = growth * t2;
  }
}

void contact_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                 Tangent* tangent) {
  if (tangent) {
    for (int i = 0; i < term.nrow; ++i) std::fill_n(tangent->at[i], term.nrow, 0.0);
  }
  impulse[0] = y[0] < 0 ? 0 : y[0];  // NaN stays NaN
  const double stiffness = y[0] > 0 ? 1 / rows[0].compliance : 0;
  if (tangent) tangent->at[0][0] = stiffness;
  const double bound = normal == kOwnNormal ? impulse[0] : normal;
  if (term.nrow >= 3)
    disc_law(y, rows[1].compliance, term.friction * bound, term.friction * stiffness, 1, impulse, tangent);
  if (term.nrow >= 4) {
    const double most = term.torsional * bound;
    impulse[3] = std::clamp(y[3], -most, most);
    if (tangent) {
      if (std::abs(y[3]) < most)
        tangent->at[3][3] = 1 / rows[3].compliance;
      else if (most > 0)
        tangent->at[3][0] = std::copysign(term.torsional * stiffness, y[3]);
    }
  }
  if (term.nrow >= 6)
    disc_law(y, rows[4].compliance, term.rolling * bound, term.rolling * stiffness, 4, impulse, tangent);
}

}  // namespace

void term_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
              Tangent* tangent) {
  if (tangent) tangent->open = false;
  switch (term.law) {
    case Law::interval: return interval_law(term, rows, y, impulse, tangent);
    case Law::ball: return ball_law(term, rows, y, impulse, tangent);
    case Law::contact: return contact_law(term, rows, y, normal, impulse, tangent);
  }
}

}  // namespace tarsus
