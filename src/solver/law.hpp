// The laws of a step's terms, see tarsus/solver/term.hpp.
#pragma once

#include <cmath>
#include <span>

#include "tarsus/solver/term.hpp"

namespace tarsus {

/// Friction is bounded by the contact's own normal impulse.
inline constexpr double kOwnNormal = -1;

/// γ = P(y) of one term, and its tangent unless null. @param rows, y, impulse of the term's rows
/// @param normal of a contact: kOwnNormal, or the impulse >= 0 that bounds friction (then without a tangent)
void term_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse, Tangent* tangent);

/// ρ = w + R of each row, w its inverse mass. Rows that are projected together share one ρ; otherwise P would be no
/// projection in that metric.
/// @param share factor of w in a contact's first three rows
void metric(const Term& term, const TermRow* rows, double share, double* rho);

/// The natural map N = y - P(z), z = y - (u + R (y - c) - b)/ρ, of one term at velocity u and impulse y.
/// @return Σ ρ² N²
/// @param share as for metric()
/// @param tangent unless null: G of Newton's step, y' = base - G (u' - u)  @param base [row]
double natural_map(const Term& term, const TermRow* rows, double share, const double* velocity, const double* impulse,
                   Tangent* tangent, double* base);

/// Largest ρ |N| [m/s | rad/s] with ρ = w + R, friction bounded by the normal impulse itself.
double natural_residual(const Term& term, const TermRow* rows, const double* velocity, const double* impulse);

/// u + R (y - c) - b of a row.
inline double miss(const TermRow& row, double velocity, double impulse) {
  return velocity + row.compliance * (impulse - row.centre) - row.target;
}

/// Impulse before projection, c + (b - u)/R, of a row at velocity u.
inline double before_projection(const TermRow& row, double velocity) {
  return row.centre + (row.target - velocity) / row.compliance;
}

/// Whether the term has an impulse, or P(z) of the natural map is not zero.
bool acts(const Term& term, const TermRow* rows, const double* velocity, const double* impulse);
/// Marks the terms that act. @param acted [term] in and out  @return whether there are more than before
bool mark_active(std::span<const Term> terms, std::span<const TermRow> rows, std::span<const double> velocity,
                 std::span<const double> impulse, std::span<char> acted);

/// Distance of `impulse` from its set, relative to the set's size; for intervals and balls.
double excess(const Term& term, const double* impulse);

}  // namespace tarsus
