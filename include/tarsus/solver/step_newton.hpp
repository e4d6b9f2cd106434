// The one solve of a step: semismooth Newton on M̂ (v - v⁰) = Σ J_iᵀ γ_i(v) for all terms at once (term.hpp).
//
//     (M̂ + Σ Jᵀ G J) (v' - v⁰) = Σ Jᵀ g,   g = γ(v) + G J (v - v⁰),   y' = g - G J (v' - v⁰)
//
// y' is what the terms carry in the linear problem: M̂ (v' - v⁰) = Jᵀ y' holds to rounding whatever the law says, so
// that (v', y') is judged by the law alone (natural_residual).
//
//   first     the tangent where the last step ended, term by term; no search. Rest takes this one iteration.
//   search    dvᵀ F(v + x dv) = 0 to 1 %, from x = 1. In the rows' own space: nothing of the tree.
//   descent   where the exact tangent of Coulomb's law is none (dvᵀ F >= 0), that with the discs as they are.
//   stall     three iterations with such discs where steps are short or the residual does not halve.
//   cap       the best that was found, and its residual.
//
// Symmetric laws are one convex function, on which this converges from anywhere. Coulomb's friction is not: the best
// iterate and its residual are what is promised. [Acary & Brogliato 2008, ch. 13]
//
// The mass, and where rows act, belong to the operator: a tree, or a dense matrix in tests. Bilateral rows are the
// operator's as well: every x it returns satisfies them.
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/term.hpp"

namespace tarsus {

class StepOperator {
 public:
  virtual ~StepOperator() = default;
  /// x' = v' - v⁰ of the equation above, with the bilateral rows. @param change [row] out: J x'
  virtual void solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) = 0;
  /// x += t (x' - x). The first call after begin: x = x' whatever t.
  virtual void move(double t) = 0;
  /// This x is the best so far: what the caller will read.
  virtual void keep() = 0;
};

struct StepProblem {
  std::span<const Term> terms;
  std::span<const TermRow> rows;
  std::span<const double> free_velocity;  ///< [row] J v⁰
};

struct NewtonOptions {
  int max_iterations = 30;
  double tolerance = 1e-6;  ///< [m/s]
};

struct NewtonReport {
  bool converged = false, finite = true;
  int iterations = 0;   ///< factorisations
  int searches = 0;     ///< evaluations of the law along a step
  double residual = 0;  ///< largest natural residual of what is returned [m/s | rad/s]
};

class StepNewton {
 public:
  /// @param y [row] in: impulse before projection at which the first tangent is taken; out: that of the solution
  /// @param impulse [row] out: y' of the best iterate
  NewtonReport solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options, std::span<double> y,
                     std::span<double> impulse);

 private:
  enum class Bound : std::uint8_t { own_normal, given_normal };  ///< of friction discs
  void begin(StepOperator& mass, std::span<const double> y);
  int iterate(StepOperator& mass);
  bool stalled();
  void law(const std::vector<double>& velocity, Bound bound, bool tangents);
  double linear_solve(StepOperator& mass);
  void follow_normals();
  double search(double start);
  double slope(double t, double* derivative, double* size);
  double residual() const;
  bool within_sets() const;
  void move(StepOperator& mass, double t);

  StepProblem problem_;
  std::vector<Tangent> tangent_;
  std::vector<double> normal_;                                ///< [term] that bounds friction
  std::vector<double> velocity_, force_, impulse_, gamma_;    ///< at this iterate: J v, g, y', γ(v)
  std::vector<double> next_velocity_, next_impulse_, trial_;  ///< where the linear problem leads
  std::vector<double> history_;                               ///< residuals
  Bound bound_ = Bound::own_normal;
  std::int8_t discs_ = 0;    ///< iterations with given discs that are left
  bool short_step_ = false;  ///< the last one
  int searches_ = 0;         ///< evaluations of the law
};

}  // namespace tarsus
