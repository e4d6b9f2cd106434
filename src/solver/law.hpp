// The laws of a step's terms; see tarsus/solver/term.hpp. One law, one file.
#pragma once

#include <cmath>

#include "tarsus/solver/term.hpp"

namespace tarsus {

/// Normal impulse that bounds friction: the contact's own.
inline constexpr double kOwnNormal = -1;

/// γ = P(y) of one term, and its tangent unless null. @param rows, y, impulse of the term's rows
/// @param normal of a contact: kOwnNormal, or the impulse >= 0 that bounds friction, which makes G symmetric
void interval_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent);
void ball_law(const Term& term, const TermRow* rows, const double* y, double* impulse, Tangent* tangent);
void contact_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                 Tangent* tangent);

inline void term_law(const Term& term, const TermRow* rows, const double* y, double normal, double* impulse,
                     Tangent* tangent) {
  switch (term.law) {
    case Law::interval: return interval_law(term, rows, y, impulse, tangent);
    case Law::ball: return ball_law(term, rows, y, impulse, tangent);
    case Law::contact: return contact_law(term, rows, y, normal, impulse, tangent);
  }
}

/// The largest distance of `impulse` from its projection of z [row units of d z], z being impulse less its miss over d:
/// the natural residual of one term [m/s | rad/s].
double natural_residual(const Term& term, const TermRow* rows, const double* velocity, const double* impulse);

/// How far `impulse` is outside of its set, of the set's size: intervals and balls.
double excess(const Term& term, const double* impulse);

}  // namespace tarsus
