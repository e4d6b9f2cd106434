// Which boxes overlap: O(n + pairs) for boxes of mixed sizes.
//
// Boxes are sorted into classes by size, a factor of two each. Within a class they lie in rows: cells in y and z as
// large as the class's largest box, sorted along x inside a row. Each row is swept against its neighbours, and against
// the rows of coarser classes. Boxes that are infinite or much larger than most, a few in a class of their own, are
// compared with all. [Ericson 2005, ch. 7; hierarchical grids after Schornbaum and Rüde]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/geometry/shape.hpp"

namespace tarsus {

class BroadPhase {
 public:
  BroadPhase();
  ~BroadPhase();
  BroadPhase(const BroadPhase&) : BroadPhase() {}  ///< with memory of its own
  BroadPhase(BroadPhase&&) noexcept;
  BroadPhase& operator=(BroadPhase&&) noexcept;

  /// Pairs of boxes that overlap (touching counts), each once, in an order that depends on the boxes alone. The span
  /// stays valid until the next call; memory is kept from call to call. Boxes with a NaN are in no pair.
  /// @param groups [n] or empty: boxes of the same group >= 0 (bodies that never move, say) form no pairs
  std::span<const BodyPair> find(std::span<const Aabb> boxes, std::span<const int> groups = {});

 private:
  struct Workspace;
  std::unique_ptr<Workspace> work_;
};

}  // namespace tarsus
