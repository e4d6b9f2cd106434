// Forward dynamics under equality constraints: one ABA, and no further pass over the tree.
//
//   M̂ q̈ + Jᵀ x₂ = Q - C,   J q̈ - Σ x₂ = y₂              [KKT notes; theory.md, section 3]
//
// ABA's inward pass leaves u = L⁻¹ (Q - C). The rows' inward passes give W = L⁻¹ Jᵀ (delassus.hpp). The multipliers
// follow from (Wᵀ D⁻¹ W + Σ) x₂ = Wᵀ D⁻¹ u - y₂. With u -= W x₂, ABA's outward pass gives q̈. The cost is
// O(n + m d + m² d + m³) for m rows. Drives enter M̂ = M + K and Q. Where rows sit on several branches of a floating
// base, each branch's rows are eliminated before the root is factored, and m is then the number of rows of one branch
// (src/constraint/branches.inl; decision 408).
//
//   exact    y₂ = -J̇ q̇, Σ = 0: the acceleration of the ideal linkage; with a drift time T, y₂ -= 2 J q̇ / T + φ / T²
//   spook    y₂ = (b - J q̇)/h with b, Σ of theory.md, section 4: the step's end velocity obeys the softened row
//
// Two functions remove drift. close() is SHAKE in generalised coordinates: q = q₀ ⊞ h (v + M̂⁻¹ Jᵀ λ) with φ(q) = 0.
// settle() is RATTLE's velocity stage: v += M̂⁻¹ Jᵀ μ with J v = 0.  [theory.md, sections 5 and 6]
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

enum class KktStatus : std::uint8_t {
  solved,
  redundant,     ///< rows depend on one another; all hold, with multipliers of least norm
  inconsistent,  ///< rows contradict one another; their violation is the least possible
  not_finite,    ///< an input is not finite or the mass matrix is singular; the constraints were ignored
};
const char* name(KktStatus status);

template <class R>
class Branches;

template <class R>
class ConstrainedDynamics {
 public:
  /// Keeps references to the model and the set.
  /// @param branches whether rows may be eliminated branch by branch, which changes the result by rounding only
  /// @throws ValueError if the set was made for another model
  ConstrainedDynamics(const Model& model, const EqualitySet& equalities, const BasicData<R>& data,
                      bool branches = true);
  ~ConstrainedDynamics();

  /// q̈ of all worlds. dt > 0: SPOOK over a step of dt. dt = 0: exact; drift_time [s] > 0 pulls errors back in about
  /// that time.
  /// @param joint_force Q as for maba()  @param joint_inertia K as for maba()
  /// @param bounded whether drift_time too pulls open loops back at a bounded speed, as dt always does (decision 521)
  void accelerate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
                  Out<R> qacc, double drift_time = 0, bool bounded = false);

  /// Evaluates a pack's rows at the start of a step, for a caller that solves them together with other terms
  /// (step_terms.hpp, lane_terms.hpp). It sets demand(), compliance(), rate() and forces(); the caller then passes the
  /// impulses to record(). For a single world, data must hold the links' poses with origins, and their velocities. For
  /// lanes qpos and qvel suffice.
  void evaluate(BasicData<R>& data, double dt, In<R> qpos, In<R> qvel, int pack = 0);
  std::span<const R> demand(int pack) const { return of(demand_, pack); }  ///< y₂ of the last evaluate() [rows][lane]
  DelassusRows<R>& forces() { return rows_; }                              ///< the rows' blocks
  In<R> rate(int pack) const { return of(rate_, pack); }
  /// Has the rows of evaluate() and accelerate() with SPOOK ask for rates ahead in time, J v⁺ + ½ h J̇ q̇.
  /// @param share [pack][rows][lane] of ½ h J̇ q̇; empty: none. It must stay valid.
  void look_ahead(In<R> share) { ahead_ = share; }
  In<R> ahead() const { return ahead_; }
  /// @param impulse λ = -h x₂ [rows][lane]
  /// @param missed largest |J v⁺ + Σ λ - b| [lane] [m/s | rad/s]
  template <class X>
  void record(std::span<const X> impulse, double h, std::span<const X> missed, int pack = 0);

  /// Moves v along M̂⁻¹ Jᵀ until φ(qpos ⊞ h v) = 0 to tolerance(), and sets next_qpos to that configuration. J and
  /// M̂ = M₀ + joint_inertia are those of qpos. A chord iteration: one factorisation and a few evaluations of φ.
  /// @return number of worlds in which it fails: their v and next_qpos are the last finite ones tried. Where the rows
  /// of qpos do not lead to φ = 0 and a rotation is large, next_qpos satisfies φ = 0 and qpos ⊞ h v is only near it
  int close(BasicData<R>& data, double h, In<R> qpos, In<R> joint_inertia, Out<R> v, Out<R> next_qpos);
  /// Projects v along M̂⁻¹ Jᵀ onto J v = 0 at qpos.
  void settle(BasicData<R>& data, In<R> qpos, In<R> joint_inertia, Out<R> v);
  static constexpr R tolerance() { return sizeof(R) == 8 ? R(1e-12) : R(2e-6); }  ///< of close() [m | rad]
  bool closed(int world) const { return closed_[world]; }                         ///< by the last close()

  const EqualitySet& equalities() const { return equalities_; }
  int rows() const { return equalities_.rows(); }
  // Results of the last call, as batch arrays [pack][rows][lane].
  std::span<const R> multiplier() const { return x2_; }  ///< x₂ of accelerate(): the force on bodies is -Jᵀ x₂
  /// Σ of one pack, of the last accelerate() or evaluate().
  std::span<const R> compliance() const { return {pack_.sigma.data(), std::size_t(rows()) * width_}; }
  std::span<const R> phi() const { return phi_; }    ///< at the step's start; after close(): at its end
  std::span<const R> rate() const { return rate_; }  ///< J q̇
  /// The worst status since the last accelerate().
  KktStatus status(int world) const { return status_[world]; }
  /// Whether the last accelerate() eliminated that world's rows branch by branch.
  bool by_branches(int world) const { return by_branches_[world]; }

  /// max |φ| and max |J q̇| of a world, from phi() and rate(), with the row of the largest |φ|.
  struct Error {
    double position = 0, velocity = 0;
    int row = -1;  ///< of `position`
  };
  Error error(int world) const;

 private:
  struct BranchAnswer {  ///< of one pack
    AlignedVector<R> quality, qacc, x2;
  };
  struct Pack {  ///< scratch of one pack
    AlignedVector<R> A, inverse, scale, least, trust, rhs, sigma, projection, u, push, trial_v, last_v, zero, gram;
    AlignedVector<R> pull;  ///< φ, limited to what joints can take back
  };
  /// One pack's arguments of accelerate().
  struct Inputs {
    int pack;
    double dt, drift_time;
    const R *qpos, *qvel, *Q, *K;
    bool bounded;
  };
  void check(const BasicData<R>& data) const;
  void solve_pack(BasicData<R>& data, const Inputs& in, R* qacc);
  void solve_branches(BasicData<R>& data, const Inputs& in, R* qacc);
  std::span<const R> of(const AlignedVector<R>& values, int pack) const {
    const std::size_t n = std::size_t(rows()) * width_;
    return std::span<const R>(values).subspan(std::size_t(pack) * n, n);
  }
  void evaluate_rows(const BasicData<R>& data, int place, const Inputs& in);
  int close_pack(BasicData<R>& data, int pack, R h, const R* qpos, R* v, R* next_qpos);
  void move_and_look(int pack, R h, const R* qpos, const R* v, R* next_qpos);
  R largest_of(const R* x, std::size_t n, std::size_t lane) const;
  int close_from_there(BasicData<R>& data, int pack, R h, const R* K, R* v, R* next_qpos);
  void prepare_rows(BasicData<R>& data, int pack, const R* qpos, const R* K);
  void factor_rows(int pack);
  void drop_zero_rows(int pack);
  void drop_row(int pack, int lane, int row, R diagonal);
  void worsen(int world, KktStatus status);
  void find_correction(BasicData<R>& data, int pack);
  void multipliers(int pack, bool again, R* x2);
  void row_rates(const R* v, R* rate);
  void solve_rank_revealing(int pack, int lane, R* x2);

  const Model& model_;
  const EqualitySet& equalities_;
  int width_, worlds_;
  DelassusRows<R> rows_;
  std::unique_ptr<Branches<R>> branches_;  // null: rows are not eliminated by branches
  BranchAnswer branch_;
  AlignedVector<R> phi_, rate_, bias_, demand_, x2_;  // [pack][rows][lane]
  In<R> ahead_;
  Pack pack_;
  BasicData<R> elsewhere_;  // workspace of one pack at another configuration
  std::vector<KktStatus> status_;
  std::vector<char> closed_, by_branches_;
};

extern template class ConstrainedDynamics<double>;
extern template class ConstrainedDynamics<float>;

}  // namespace tarsus
