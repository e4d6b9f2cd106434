// Forward dynamics under equality constraints, one ABA and no further sweep over the tree.
//
//   M̂ q̈ + Jᵀ x₂ = Q - C,   J q̈ - Σ x₂ = y₂              [KKT notes; theory.md, section 3]
//
// ABA's inward pass leaves u = L⁻¹ (Q - C). The rows' own inward passes give W = L⁻¹ Jᵀ (delassus.hpp), then
// (Wᵀ D⁻¹ W + Σ) x₂ = Wᵀ D⁻¹ u - y₂,  u -= W x₂, and ABA's outward pass: O(n + m d + m² d + m³). Drives enter M̂ = M + K
// and Q.
//
//   exact    y₂ = -J̇ q̇, Σ = 0: the acceleration of the ideal linkage
//   spook    y₂ = (b - J q̇)/h with b, Σ of theory.md, section 4: the step's end velocity obeys the softened, stabilised
//   row
#pragma once

#include <cstdint>
#include <vector>

#include "tarsus/constraint/equality.hpp"
#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

enum class KktStatus : std::uint8_t {
  solved,
  redundant,     ///< rows depend on one another; all hold, their shared force is the least one
  inconsistent,  ///< rows contradict one another; violated least
  not_finite,    ///< a number that is not finite came in or the mass matrix is singular; the constraints were left out
};
const char* name(KktStatus status);

template <class R>
class ConstrainedDynamics {
 public:
  /// Keeps references to both. @throws ValueError if the set was made for another model
  ConstrainedDynamics(const Model& model, const EqualitySet& equalities, const BasicData<R>& data);

  /// q̈ of all worlds. dt > 0: SPOOK over that step; dt = 0: exact.
  /// @param joint_force Q, joint_inertia K as for maba()
  void accelerate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
                  Out<R> qacc);

  const EqualitySet& equalities() const { return equalities_; }
  int rows() const { return equalities_.rows(); }
  // Of the last accelerate(), as batch arrays [pack][rows][lane].
  std::span<const R> multiplier() const { return x2_; }  ///< x₂: the force on the bodies is -Jᵀ x₂
  std::span<const R> phi() const { return phi_; }        ///< at the beginning of the step
  std::span<const R> rate() const { return rate_; }      ///< J q̇
  KktStatus status(int world) const { return status_[world]; }
  /// Of the last world that was not simply solved: its rank and rows.
  const MultiplierReport& report() const { return report_; }

  /// max |φ| and max |J q̇| of a world at the last accelerate(), with the row's name.
  struct Error {
    double position = 0, velocity = 0;
    int row = -1;  ///< of `position`
  };
  Error error(int world) const;

 private:
  void solve_pack(BasicData<R>& data, int pack, double dt, const R* qpos, const R* qvel, const R* Q, const R* K,
                  R* qacc);
  void rescue(int pack, int lane, const R* rhs, R* x2);

  const Model& model_;
  const EqualitySet& equalities_;
  int width_, worlds_;
  DelassusRows<R> rows_;
  AlignedVector<R> phi_, rate_, bias_, x2_;                  // [pack][rows][lane]
  AlignedVector<R> A_, inverse_, pivots_, rhs_, sigma_, u_;  // of one pack
  std::vector<KktStatus> status_;
  MultiplierReport report_;
};

extern template class ConstrainedDynamics<double>;
extern template class ConstrainedDynamics<float>;

}  // namespace tarsus
