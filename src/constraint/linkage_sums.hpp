// What linkage_energy.inl sums for linkages.cpp.
#pragma once

namespace tarsus {

/// Sums over a linkage's links and joints: square r² + linear r = constant + the work of the terms but the loops, for
/// the velocity r v⁺.
enum LinkageSum : int {
  square,
  linear,
  constant,
  work,   ///< of Q, each joint's with positive sign
  terms,  ///< work of the impulses of all terms
  kLinkageSums
};

}  // namespace tarsus
