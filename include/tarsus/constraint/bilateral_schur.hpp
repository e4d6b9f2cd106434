// Bilateral rows J_e v + Σ_e λ_e = b_e of a step's solve, which may be linearly dependent or nearly so.
//
// They are solved with Σ_e raised by a small share of the rows' inverse mass, followed by proximal steps on the same
// factors. Rows that some motion can satisfy then hold to rounding; the impulses of the others stay bounded.
//
// Where rows contradict one another, the result of the proximal steps would depend on the tangents, and Newton's method
// would solve a different problem in each iteration. From the first such solve of a step on, each solve is therefore
// one proximal step from zero: the rows hold except for the raised Σ_e, which is the same for all tangents (decision
// 411). What the first solve of a step leaves unsatisfied is subtracted from the demand. No motion satisfies it, and
// the impulses would grow like 1/Σ_e (decision 415).
#pragma once

#include <functional>

#include "tarsus/constraint/equality.hpp"
#include "tarsus/dynamics/delassus.hpp"

namespace tarsus {

/// Equality constraints as bilateral rows. q̈ of the step satisfies J q̈ - Σ x₂ = y₂ (constrained_dynamics.hpp).
template <class R>
struct BilateralRows {
  const EqualitySet* equalities = nullptr;  ///< null: none
  In<R> qpos{};                             ///< [nq]
  In<R> demand{};                           ///< [rows] y₂
  In<R> compliance{};                       ///< [rows] Σ

  int rows() const { return equalities ? equalities->rows() : 0; }
};

struct BilateralImpulse {
  std::vector<double> at;  ///< [row] λ_e
  double miss = 0;         ///< the largest |J_e v + Σ_e λ_e - b_e| at `at` [m/s | rad/s]
};

template <class R>
class BilateralSchur {
 public:
  using Solve = std::function<void(std::span<double>)>;

  /// Lays out the rows. @param rows of this tree, the same object each time; it then holds the bilateral rows alone
  void lay_out(const BilateralRows<R>& bilateral, DelassusRows<R>& rows);
  /// Starts a step of h seconds, after lay_out(). data holds the factors of M̂, qacc = q̈⁰ and the links' motion under
  /// it (LinkState::a). The arguments must live until the solve is over.
  void begin(const Model& model, BasicData<R>& data, double h, DelassusRows<R>& rows);
  int count() const { return bilateral_.rows(); }
  int blocks() const { return blocks_; }  ///< number of blocks that begin() made
  /// @param rows empty, or with the blocks that this object wrote before
  void write(const BasicData<R>& data, DelassusRows<R>& rows);
  std::span<const double> demand() const { return demand_; }      ///< [row] b_e - J_e v⁰
  std::span<const double> diagonal() const { return diagonal_; }  ///< [row] Σ_e, raised
  /// Applies `solve` to the right side `solution`; the bilateral rows start at `first`. Each solve is a proximal step,
  /// which removes the effect of the raised Σ_e on the change. The first one starts from the impulses `now` if the rows
  /// held with them, and from zero if they did not: contradictory rows would take larger impulses each time.
  void refine(const Solve& solve, std::span<double> solution, int first, const BilateralImpulse& now,
              BilateralImpulse& next);

 private:
  double left() const;
  void step_again(const Solve& solve, std::span<double> solution, int first);

  BilateralRows<R> bilateral_;
  int blocks_ = 0;
  std::vector<double> demand_, raised_, diagonal_;
  bool contradict_ = false;                 ///< the rows contradict one another
  bool met_ = false;                        ///< the demand can be satisfied, as checked in this step
  double size_ = 0;                         ///< scale of BilateralImpulse::miss
  double unmet_ = 0;                        ///< the largest demand that no motion satisfies
  AlignedVector<R> phi_, mass_, velocity_;  ///< [row] mass_: inverse masses
  std::vector<double> step_;                ///< [row] of the last proximal step
  std::vector<double> eased_;  ///< [row] effect of raised_ on the first solve's impulses, which is demanded as well
  std::vector<double> change_, first_solution_;
};

extern template class BilateralSchur<double>;
extern template class BilateralSchur<float>;

}  // namespace tarsus
