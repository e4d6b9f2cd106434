// Signorini and Coulomb, with torsion and rolling [MuJoCo's condim 1, 3, 4, 6]:
//
//     γ_n = max(0, y_n),   γ_t = y_t min(1, μ γ_n/|y_t|),   torsion: an interval of ± its length times γ_n,
//     rolling: a disc as sliding's
//
// Sliding: G_nn = 1/R_n, G_tn = μ t/R_n, G_nt = 0, G_tt = (μ γ_n/|y_t|) (1 - t tᵀ)/R_t with t = y_t/|y_t|; sticking:
// G_tt = 1/R_t. With a given normal impulse in the bounds G_tn = 0, and G is symmetric.
#include <algorithm>

#include "solver/law.hpp"

namespace tarsus {

namespace {

/// What two rows that may slip in a plane make of y: within a disc of `radius`, which grows with the normal impulse by
/// `growth`.
struct Disc {
  double impulse[2], tangent[2][2], by_normal[2];
};

Disc disc_law(double y1, double y2, double compliance, double radius, double growth) {
  const double length = std::sqrt(y1 * y1 + y2 * y2), g = 1 / compliance;
  if (!(radius > 0)) return {};
  if (length <= radius) return {{y1, y2}, {{g, 0}, {0, g}}, {0, 0}};
  const double t1 = y1 / length, t2 = y2 / length, across = radius / length * g;
  return {{radius * t1, radius * t2},
          {{across * t2 * t2, -across * t1 * t2}, {-across * t1 * t2, across * t1 * t1}},
          {growth * t1, growth * t2}};
}

void put_disc(const Disc& disc, int row, double* impulse, Tangent* tangent) {
  for (int i = 0; i < 2; ++i) {
    impulse[row + i] = disc.impulse[i];
    if (!tangent) continue;
    tangent->at[row + i][0] = disc.by_normal[i];
    for (int j = 0; j < 2; ++j) tangent->at[row + i][row + j] = disc.tangent[i][j];
  }
}

}  // namespace

void contact_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                 Tangent* tangent) {
  if (tangent) {
    for (int i = 0; i < term.nrow; ++i) std::fill_n(tangent->at[i], term.nrow, 0.0);
  }
  impulse[0] = std::max(0.0, y[0]);
  const double stiffness = y[0] > 0 ? 1 / rows[0].compliance : 0;
  if (tangent) tangent->at[0][0] = stiffness;
  const double bound = normal == kOwnNormal ? impulse[0] : normal, growth = normal == kOwnNormal ? stiffness : 0;
  if (term.nrow >= 3)
    put_disc(disc_law(y[1], y[2], rows[1].compliance, term.friction * bound, term.friction * growth), 1, impulse,
             tangent);
  if (term.nrow >= 4) {
    const double most = term.torsional * bound;
    impulse[3] = std::clamp(y[3], -most, most);
    if (tangent) {
      if (std::abs(y[3]) < most)
        tangent->at[3][3] = 1 / rows[3].compliance;
      else if (most > 0)
        tangent->at[3][0] = std::copysign(term.torsional * growth, y[3]);
    }
  }
  if (term.nrow >= 6)
    put_disc(disc_law(y[4], y[5], rows[4].compliance, term.rolling * bound, term.rolling * growth), 4, impulse,
             tangent);
}

}  // namespace tarsus
