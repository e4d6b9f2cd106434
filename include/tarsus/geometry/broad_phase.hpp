// Broad phase: finds overlapping boxes in O(n + pairs) for boxes of mixed sizes.
//
// Boxes are sorted into size classes, a factor of two each. The boxes of a class form rows: a row is a cell in y and z
// as large as the class's largest box, sorted along x. Each row is swept against its neighbours and against the rows of
// coarser classes. Boxes that are infinite or much larger than most form a small class of their own and are compared
// with all. [Ericson 2005, ch. 7; hierarchical grids after Schornbaum and Rüde]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/geometry/shape.hpp"

namespace tarsus {

/// Broad phase with scratch memory. Two threads must not use one at once.
class BroadPhase {
 public:
  BroadPhase();
  ~BroadPhase();
  BroadPhase(const BroadPhase&) : BroadPhase() {}  ///< copies get new memory
  BroadPhase(BroadPhase&&) noexcept;
  BroadPhase& operator=(BroadPhase&&) noexcept;

  /// Pairs of overlapping (or touching) boxes, each once, in an order that depends only on the boxes. The span is valid
  /// until the next call, which reuses the memory. Boxes with a NaN are in no pair.
  /// @param boxes [n], in one frame
  /// @param groups [n] or empty: boxes of the same group >= 0 (for example bodies that never move) form no pairs
  /// @throws ShapeError if groups has another size
  std::span<const BodyPair> find(std::span<const Aabb> boxes, std::span<const int> groups = {});

 private:
  struct Workspace;
  std::unique_ptr<Workspace> work_;
};

}  // namespace tarsus
