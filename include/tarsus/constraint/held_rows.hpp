// Bilateral rows J_e v + Σ_e λ_e = b_e of a step's solve. They may depend on one another, or be next to doing so: they
// are solved with Σ_e raised by a small share of their own inverse mass, and some proximal steps on the same factors.
// Rows that can be moved hold to rounding, what cannot be moved gets a bounded impulse.
//
// Where rows contradict one another, how near proximal steps come depends on the tangents, and so would the problem
// that Newton's method solves. From the first such solve of a step on, each is one step from zero: rows that hold but
// for the raised Σ_e, the same for all tangents (decision 411).
#pragma once

#include <functional>

#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/reference_mass.hpp"
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

struct HeldImpulse {
  std::vector<double> at;  ///< [row] λ_e
  double miss = 0;         ///< |J_e v + Σ_e λ_e - b_e| with it, the largest [m/s | rad/s]
};

template <class R>
class HeldRows {
 public:
  using Solve = std::function<void(std::span<double>)>;
  /// What the rows' velocities are sums of, in such a solution: the largest [m/s | rad/s].
  using Size = std::function<double(std::span<const double>)>;

  /// A step of h seconds. data holds poses. What is passed must live until the solve is over.
  /// @param rows of this tree: become the rows held and no others
  /// @param free v is found from v⁰, not from the step's start: data has qacc = q̈⁰ and its links' motion by that
  void begin(const Model& model, const BasicData<R>& data, double h, In<R> joint_inertia,
             const BilateralRows<R>& bilateral, DelassusRows<R>& rows, bool free);
  int count() const { return bilateral_.rows(); }
  int blocks() const { return blocks_; }                          ///< of begin()'s rows
  void write(const BasicData<R>& data, DelassusRows<R>& rows);    ///< adds the rows
  std::span<const double> demand() const { return demand_; }      ///< [row] b_e less J_e of what v is found from
  std::span<const double> diagonal() const { return diagonal_; }  ///< [row] Σ_e, raised
  /// `solution`, a right side, becomes what `solve` makes of it; rows held stand from `first` on. Each solve is a
  /// proximal step: what their raised Σ_e makes of the change is taken out. The first is from the impulses at hand if
  /// rows held by them: what contradicts itself would take larger ones each time.
  void settle(const Solve& solve, const Size& size, std::span<double> solution, int first, const HeldImpulse& now,
              HeldImpulse& next);

 private:
  void find_masses(const Model& model, const BasicData<R>& data, In<R> joint_inertia);
  double left() const;
  void step_again(const Solve& solve, double share, std::span<double> solution, int first);

  BilateralRows<R> bilateral_;
  int blocks_ = 0;
  std::vector<double> demand_, raised_, diagonal_;
  bool contradict_ = false;  ///< they do, one another
  double size_ = 0;          ///< what HeldImpulse::miss is compared with
  struct {
    AlignedVector<R> of_model;           ///< [nlink][3] ReferenceMass
    AlignedVector<R> of_links, of_dofs;  ///< inverse ones: [nlink][2] linear and angular; [nv]
  } masses_;
  AlignedVector<R> phi_, mass_,
      acceleration_;          ///< [row] mass_: inverse; acceleration_: J_e q̈⁰ where v is found from v⁰
  std::vector<double> step_;  ///< [row] of the last proximal step
  std::vector<double> change_, first_solution_;
};

extern template class HeldRows<double>;
extern template class HeldRows<float>;

}  // namespace tarsus
