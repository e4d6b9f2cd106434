// Linkages: trees on the world that loops join to one another or to the world. Their motion keeps its energy.
//
// The forces of loops turn with the links. Rates are therefore taken half a step ahead, where the links are when these
// rates act: J v⁺ + ½ h J̇ q̇. What energy a step gains or loses beyond the work of the forces, the velocity v⁺ gets
// back in proportion. Decision 416 has the measurements.
#pragma once

#include <span>
#include <vector>

#include "tarsus/constraint/constrained_dynamics.hpp"

namespace tarsus {

template <class R>
class Linkages {
 public:
  Linkages(const EqualitySet& equalities, const BasicData<R>& data);

  bool any() const { return count_ > 0; }
  /// Sets `held` [njoint] of VelocityProducts to kLinkage at the roots of linkages' trees.
  void mark(std::span<std::uint8_t> held) const;

  /// Starts a step: velocities unchanged, rates half a step ahead.
  void begin(BasicData<R>& data, double h, ConstrainedDynamics<R>& loops);

  /// What the step was solved with. Arrays are [pack][nv][lane].
  struct Solved {
    double h;
    In<R> qpos, qvel;
    In<R> free;            ///< v⁰, the velocity without terms; empty: the loops are the only terms
    In<R> found;           ///< [pack][lane] 0 in worlds whose v⁰ is not known; empty: known in all
    In<R> next;            ///< v⁺
    In<R> force, inertia;  ///< joint forces without those of the terms, and K
  };
  /// Whether some world has to be solved again, with change() added to v⁰. Such a world gained or lost energy.
  /// @param again whether this is not the first solve of the step: then only a gain of energy is corrected
  bool balance(BasicData<R>& data, const Solved& solved, bool again, ConstrainedDynamics<R>& loops);
  In<R> change() const { return moves_ ? In<R>(change_) : In<R>(); }  ///< of v⁰ [pack][nv][lane]; empty: none

 private:
  R factor(const R* sums, std::size_t lane, double square_angle, bool again, double loops) const;

  const Model& model_;
  const EqualitySet& equalities_;
  int width_;
  std::vector<int> linkage_;  ///< [njoint] at a root, the linkage of its tree or -1
  std::vector<int> of_row_;   ///< [rows] linkage or -1
  int count_ = 0;
  bool moves_ = false;  ///< some linkage turns far enough in this step for its energy to matter
  AlignedVector<R> change_, angle_, ahead_, sums_, scratch_, factor_;
  BasicData<R> elsewhere_;
};

extern template class Linkages<double>;
extern template class Linkages<float>;

}  // namespace tarsus
