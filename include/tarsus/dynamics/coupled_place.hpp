// Indices of a coupling between links in CoupledTrees (coupled.hpp).
#pragma once

namespace tarsus {

/// The blocks and forces of CoupledTrees to which a contact adds.
struct CoupledPlace {
  int a, b;  ///< links of B_aa, B_bb and the forces; b -1: the world
  int pair;  ///< B_ab; B_ba is the block pair ^ 1
};

}  // namespace tarsus
