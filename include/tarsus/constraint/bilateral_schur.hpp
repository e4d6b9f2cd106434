// Bilateral rows J_e v + Σ_e λ_e = b_e of a step's solve. They may depend on one another, or be next to doing so: they
// are solved with Σ_e raised by a small share of their own inverse mass, and some proximal steps on the same factors.
// Rows that can be moved hold to rounding, what cannot be moved gets a bounded impulse.
//
// Where rows contradict one another, how near proximal steps come depends on the tangents, and so would the problem
// that Newton's method solves. From the first such solve of a step on, each is one step from zero: rows that hold but
// for the raised Σ_e, the same for all tangents (decision 411). What the first solve of a step leaves unmet is taken
// out of what the rows demand: no motion meets it, and forces would be as large as Σ_e is small (decision 415).
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
  double miss = 0;         ///< |J_e v + Σ_e λ_e - b_e| with it, the largest [m/s | rad/s]
};

template <class R>
class BilateralSchur {
 public:
  using Solve = std::function<void(std::span<double>)>;

  /// Places of the rows alone. @param rows of this tree, the same ones each time: become those held and no others
  void lay_out(const BilateralRows<R>& bilateral, DelassusRows<R>& rows);
  /// A step of h seconds, after lay_out(). data holds the factors of M̂, qacc = q̈⁰ and its links' motion by that
  /// (LinkState::a). What is passed must live until the solve is over.
  void begin(const Model& model, BasicData<R>& data, double h, DelassusRows<R>& rows);
  int count() const { return bilateral_.rows(); }
  int blocks() const { return blocks_; }  ///< of begin()'s rows
  /// @param rows none, or those that this made of it before
  void write(const BasicData<R>& data, DelassusRows<R>& rows);
  std::span<const double> demand() const { return demand_; }      ///< [row] b_e - J_e v⁰
  std::span<const double> diagonal() const { return diagonal_; }  ///< [row] Σ_e, raised
  /// `solution`, a right side, becomes what `solve` makes of it; rows held stand from `first` on. Each solve is a
  /// proximal step: what their raised Σ_e makes of the change is taken out. The first is from the impulses at hand if
  /// rows held by them: what contradicts itself would take larger ones each time.
  void settle(const Solve& solve, std::span<double> solution, int first, const BilateralImpulse& now,
              BilateralImpulse& next);

 private:
  double left() const;
  void step_again(const Solve& solve, std::span<double> solution, int first);

  BilateralRows<R> bilateral_;
  int blocks_ = 0;
  std::vector<double> demand_, raised_, diagonal_;
  bool contradict_ = false;                 ///< they do, one another
  bool met_ = false;                        ///< what is demanded can be met: it was looked at in this step
  double size_ = 0;                         ///< what BilateralImpulse::miss is compared with
  AlignedVector<R> phi_, mass_, velocity_;  ///< [row] mass_: inverse ones
  std::vector<double> step_;                ///< [row] of the last proximal step
  std::vector<double> eased_;               ///< [row] what raised_ took of the first solve's impulses, demanded as well
  std::vector<double> change_, first_solution_;
};

extern template class BilateralSchur<double>;
extern template class BilateralSchur<float>;

}  // namespace tarsus
