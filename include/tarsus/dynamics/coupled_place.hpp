// What acts between links of CoupledTrees (coupled.hpp).
#pragma once

namespace tarsus {

/// Where a contact stands among the blocks and forces of CoupledTrees.
struct CoupledPlace {
  int a, b;  ///< B_aa and B_bb, and forces; b -1: the world
  int pair;  ///< B_ab; B_ba is the block pair ^ 1
};

}  // namespace tarsus
