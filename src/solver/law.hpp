// The laws of a step's terms; see tarsus/solver/term.hpp. One law, one file.
#pragma once

#include <cmath>
#include <span>

#include "tarsus/solver/term.hpp"

namespace tarsus {

/// Normal impulse that bounds friction: the contact's own.
inline constexpr double kOwnNormal = -1;

/// γ = P(y) of one term, and its tangent unless null. @param rows, y, impulse of the term's rows
/// @param normal of a contact: kOwnNormal, or the impulse >= 0 that bounds friction, where no tangent is asked for
void interval_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent);
void ball_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent);
void contact_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                 Tangent* tangent);

inline void term_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                     Tangent* tangent) {
  if (tangent) tangent->open = false;
  switch (term.law) {
    case Law::interval: return interval_law(term, rows, y, impulse, tangent);
    case Law::ball: return ball_law(term, rows, y, impulse, tangent);
    case Law::contact: return contact_law(term, rows, y, normal, impulse, tangent);
  }
}

/// ρ = w + R of each row, w its inverse mass. Rows that are projected together have one, or the projection would not
/// be one. @param share of w in a contact's first three rows
void metric(const Term& term, const TermRow* rows, double share, double* rho);

/// The natural map N = y - P(z), z = y - (u + R (y - c) - b)/ρ of one term at velocity u and impulse y. @return Σ ρ² N²
/// @param share as metric()
/// @param tangent unless null: G of Newton's step on it, y' = base - G (u' - u)  @param base [row]
double natural_map(const Term& term, const TermRow* rows, double share, const double* velocity, const double* impulse,
                   Tangent* tangent, double* base);

/// Largest ρ |N| [m/s | rad/s] with ρ = w + R, friction bounded by the normal impulse itself.
double natural_residual(const Term& term, const TermRow* rows, const double* velocity, const double* impulse);

/// u + R (y - c) - b of a row.
inline double miss(const TermRow& row, double velocity, double impulse) {
  return velocity + row.compliance * (impulse - row.centre) - row.target;
}

/// It has an impulse, or P(z) of the natural map is one.
bool acts(const Term& term, const TermRow* rows, const double* velocity, const double* impulse);
/// Those that act are marked from now on. @param acted [term] in and out  @return there are more than before
bool mark_acting(std::span<const Term> terms, std::span<const TermRow> rows, std::span<const double> velocity,
                 std::span<const double> impulse, std::span<char> acted);

/// How far `impulse` is outside of its set, of the set's size: intervals and balls.
double excess(const Term& term, const double* impulse);

}  // namespace tarsus
