// Contacts of one world in the form that kernels read.
#pragma once

#include "tarsus/constraint/reference_mass.hpp"

namespace tarsus {

/// A contact of a list. Kernels take contacts with three rows.
struct ContactPlace {
  int contact;         ///< index of its ContactRows and its tangent
  int first_row;       ///< among the rows of all terms
  int stiffness = -1;  ///< of its link, in the list of contact stiffness; -1: none
  bool extra =
      false;  ///< between two links, or its tangent is not symmetric: contact stiffness does not represent all of it
};

/// Parameters of a list of LinkContacts, with `stride` numbers from one contact to the next.
struct ContactNumbers {
  const double* point;     ///< position, normal, distance
  const double* softness;  ///< ε, τ, relative ε; then the numbers of SolverRow, and gap_share
  int stride;
};

/// Parameters of the step.
struct ContactStep {
  double h;                    ///< [s]
  double ahead;                ///< h if the links' `a` leads from the step's start to x = 0, else 0
  double relative_compliance;  ///< of rows without a compliance in the model, relative to the inverse mass
  const ReferenceMass* mass;   ///< [link]
};

}  // namespace tarsus
