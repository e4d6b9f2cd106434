// Forward dynamics under equality constraints, one ABA and no further sweep over the tree.
//
//   M̂ q̈ + Jᵀ x₂ = Q - C,   J q̈ - Σ x₂ = y₂              [KKT notes; theory.md, section 3]
//
// ABA's inward pass leaves u = L⁻¹ (Q - C). The rows' own inward passes give W = L⁻¹ Jᵀ (delassus.hpp), then
// (Wᵀ D⁻¹ W + Σ) x₂ = Wᵀ D⁻¹ u - y₂,  u -= W x₂, and ABA's outward pass: O(n + m d + m² d + m³). Drives enter M̂ = M +
// K and Q. Where rows sit on several branches of a floating base, each branch's are eliminated before the root's factor
// is made, m being the rows of one branch then (src/constraint/branches.inl; decision 408).
//
//   exact    y₂ = -J̇ q̇, Σ = 0: the acceleration of the ideal linkage; with a drift time T, y₂ -= 2 J q̇ / T + φ / T²
//   spook    y₂ = (b - J q̇)/h with b, Σ of theory.md, section 4: the step's end velocity obeys the softened row
//
// Without drift: close() is SHAKE on generalised coordinates, q = q₀ ⊞ h (v + M̂⁻¹ Jᵀ λ) with φ(q) = 0, and settle() is
// RATTLE's velocity stage, v += M̂⁻¹ Jᵀ μ with J v = 0.  [theory.md, sections 5 and 6]
#pragma once

#include <cstdint>
#include <memory>
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
class Branches;

template <class R>
class ConstrainedDynamics {
 public:
  /// Keeps references to both. branches: whether rows may be eliminated branch by branch; the answer is the same to
  /// rounding.
  /// @throws ValueError if the set was made for another model
  ConstrainedDynamics(const Model& model, const EqualitySet& equalities, const BasicData<R>& data,
                      bool branches = true);
  ~ConstrainedDynamics();

  /// q̈ of all worlds. dt > 0: SPOOK over that step; dt = 0: exact, with drift_time [s] > 0 pulled back in about that
  /// time.
  /// @param joint_force Q, joint_inertia K as for maba()
  /// @param keep_factors whether the workspace must hold the factors of M̂ afterwards, as maba() leaves them
  void accelerate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
                  Out<R> qacc, double drift_time = 0, bool keep_factors = true);

  /// A pack's rows at the start of a step, for a caller who solves them with other terms (step_terms.hpp,
  /// lane_terms.hpp): demand(), compliance(), rate() and forces(), then record() of what they carried. Of one world
  /// data holds the links' poses, origins too, and velocities; of lanes qpos and qvel are enough.
  void evaluate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, int pack = 0);
  std::span<const R> demand() const { return pack_.demand; }  ///< y₂ of the last evaluate() [rows][lane]
  DelassusRows<R>& forces() { return rows_; }                 ///< its blocks
  In<R> rate(int pack) const { return In<R>(rate_).subspan(std::size_t(pack * rows() * width_), pack_.demand.size()); }
  /// @param impulse λ = -h x₂ [rows][lane]  @param missed largest |J v⁺ + Σ λ - b|, in the velocities it is made of
  template <class X>
  void record(std::span<const X> impulse, double h, double missed, int pack = 0);

  /// Moves v along M̂⁻¹ Jᵀ (all at qpos, with M̂ = M₀ + joint_inertia) until φ(qpos ⊞ h v) = 0 to tolerance();
  /// next_qpos is that configuration. A chord iteration: one factor, a few evaluations of φ.
  /// @return number of worlds in which it did not get there: their v and next_qpos are the last finite ones tried.
  /// Where the rows of qpos did not lead there and a turn is large, next_qpos is closed and qpos ⊞ h v is near it
  int close(BasicData<R>& data, double h, In<R> qpos, In<R> joint_inertia, Out<R> v, Out<R> next_qpos);
  /// Takes from v what violates the rows at qpos, along M̂⁻¹ Jᵀ: J v = 0 afterwards.
  void settle(BasicData<R>& data, In<R> qpos, In<R> joint_inertia, Out<R> v);
  static constexpr R tolerance() { return sizeof(R) == 8 ? R(1e-12) : R(2e-6); }  ///< of close() [m | rad]
  bool closed(int world) const { return closed_[world]; }                         ///< by the last close()

  const EqualitySet& equalities() const { return equalities_; }
  int rows() const { return equalities_.rows(); }
  // Of the last call, as batch arrays [pack][rows][lane].
  std::span<const R> multiplier() const { return x2_; }  ///< x₂ of accelerate(): the force on bodies is -Jᵀ x₂
  /// Σ of the last accelerate() or evaluate(), one pack.
  std::span<const R> compliance() const { return {pack_.sigma.data(), std::size_t(rows()) * width_}; }
  std::span<const R> phi() const { return phi_; }  ///< where it was last evaluated: the step's start; close(): its end
  std::span<const R> rate() const { return rate_; }  ///< J q̇
  /// The worst of the last accelerate() and what followed it.
  KktStatus status(int world) const { return status_[world]; }
  /// Whether the last accelerate() eliminated that world's rows branch by branch.
  bool by_branches(int world) const { return by_branches_[world]; }
  /// Of the last world that was not simply solved: its rank and rows.
  const MultiplierReport& report() const { return report_; }

  /// max |φ| and max |J q̇| of a world as phi() and rate() have them, with the row of the first.
  struct Error {
    double position = 0, velocity = 0;
    int row = -1;  ///< of `position`
  };
  Error error(int world) const;

 private:
  struct BranchAnswer {  ///< of one pack
    AlignedVector<R> quality, qacc, x2;
  };
  struct Pack {  ///< scratch of one
    AlignedVector<R> A, inverse, scale, least, trust, rhs, sigma, projection, u, push, trial_v, last_v, zero, gram,
        demand;
  };
  /// One pack's part of accelerate()'s arguments.
  struct Inputs {
    int pack;
    double dt, drift_time;
    const R *qpos, *qvel, *Q, *K;
    bool keep_factors;
  };
  void check(const BasicData<R>& data) const;
  void solve_pack(BasicData<R>& data, const Inputs& in, R* qacc);
  void solve_branches(BasicData<R>& data, const Inputs& in, R* qacc);
  void evaluate_rows(const BasicData<R>& data, int place, const Inputs& in);
  int close_pack(BasicData<R>& data, int pack, R h, const R* qpos, R* v, R* next_qpos);
  void move_and_look(int pack, R h, const R* qpos, const R* v, R* next_qpos);
  R largest_of(const R* x, std::size_t n, std::size_t lane) const;
  int close_from_there(BasicData<R>& data, int pack, R h, const R* K, R* v, R* next_qpos);
  void prepare_rows(BasicData<R>& data, int pack, const R* qpos, const R* K);
  void factor_rows(int pack);
  void drop_zero_rows(int pack);
  void drop_row(int pack, int lane, int row, R diagonal);
  void forget(int world);
  void record(int world, KktStatus status, const MultiplierReport& report);
  void find_correction(BasicData<R>& data, int pack);
  void multipliers(int pack, bool again, R* x2);
  void row_rates(const R* v, R* rate);
  void solve_rank_revealing(int pack, int lane, R* x2);

  const Model& model_;
  const EqualitySet& equalities_;
  int width_, worlds_;
  DelassusRows<R> rows_;
  std::unique_ptr<Branches<R>> branches_;  // null: none apply
  BranchAnswer branch_;
  AlignedVector<R> phi_, rate_, bias_, x2_;  // [pack][rows][lane]
  Pack pack_;
  BasicData<R> elsewhere_;  // workspace of one pack at another configuration
  std::vector<KktStatus> status_;
  std::vector<char> closed_, by_branches_;
  MultiplierReport report_;
  int report_world_ = -1;  // that report_ is of, until its next accelerate()
};

extern template class ConstrainedDynamics<double>;
extern template class ConstrainedDynamics<float>;

}  // namespace tarsus
