// Contacts of one world as kernels see them.
#pragma once

#include "tarsus/constraint/reference_mass.hpp"

namespace tarsus {

/// A contact of a list of them; kernels take those with three rows.
struct ContactPlace {
  int contact;         ///< its ContactRows and its tangent
  int first_row;       ///< of all terms' rows
  int stiffness = -1;  ///< of its link, where stiffnesses are added
  bool extra = false;  ///< it is between two links, or its tangent is not symmetric: no stiffness is all of it
};

/// Numbers of a list of LinkContacts, each `stride` numbers from the next.
struct ContactNumbers {
  const double* point;     ///< position, normal, distance
  const double* softness;  ///< ε, τ and relative ε; then SolverRow's numbers, and gap_share
  int stride;
};

/// What a step makes of them.
struct ContactStep {
  double h;                    ///< [s]
  double ahead;                ///< h where links' a leads from the step's start to x = 0, else 0
  double relative_compliance;  ///< of rows without one of their own, of the inverse mass
  const ReferenceMass* mass;   ///< [link]
};

}  // namespace tarsus
