// Contacts of one world as kernels see them.
#pragma once

namespace tarsus {

/// A contact with three rows or more, of a list of them.
struct ContactPlace {
  int contact;    ///< its ContactRows and its tangent
  int first_row;  ///< of all terms' rows
  int load;       ///< of its link, where loads are added
};

/// Numbers of a list of LinkContacts, each `stride` numbers from the next.
struct ContactNumbers {
  const double* point;     ///< position, normal, distance
  const double* softness;  ///< ε, τ and relative ε; then SolverRow's numbers
  int stride;
};

/// What a step makes of them.
struct ContactStep {
  double h;                    ///< [s]
  double relative_compliance;  ///< of rows without one of their own, of the inverse mass
};

}  // namespace tarsus
