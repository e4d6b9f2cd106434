// Semismooth Newton method for one step: M̂ (v - v⁰) = Σ J_iᵀ γ_i(v) for all terms at once (term.hpp). Each iteration
// solves
//
//     (M̂ + Σ Jᵀ G J) (v' - v⁰) = Σ Jᵀ g,   g = γ̄ + G J (v - v⁰),   y' = g - G J (v' - v⁰)
//
// The method may also start from the velocity v⁻ at the step's start. All of the operator's solves then include the
// forces that lead from v⁻ to v⁰. Read v⁰ below as the velocity at which the operator's x is zero.
//
// y' are the impulses of the linear problem. M̂ (v' - v⁰) = Jᵀ y' holds to rounding whatever the law, and so the law
// alone decides how good an iterate (v, y) is. Its residual is the natural map, in each row's metric ρ = w + R. w is
// the row's inverse mass, or for a contact's sliding rows a share of it (kSlidingShare; reported residuals use all of
// it):
//
//     N(v, y) = y - P(z),   z = y - (J v + R (y - c) - b)/ρ
//
//   first     Tangents at the end of the last step, term by term, without a line search. At rest this one iteration
//             suffices.
//   Newton    G = (1 - D (1 - R/ρ))⁻¹ D/ρ and γ̄ = y - (1 - D (1 - R/ρ))⁻¹ N with D = P'(z). The step is halved,
//             four times at most, until Σ ρ² N² falls. With R in place of ρ, a velocity of R times the impulse would
//             turn sticking into sliding already; with ρ it takes ρ times the impulse.
//   again     A Newton step with the new residual and the factors of the last iteration. It is made if the same terms
//             act as in that iteration and the residual has fallen so much that this step probably suffices:
//             r² <= tolerance × (the residual before)/kLikely. [simplified Newton: Deuflhard 2004, section 2.1]
//   sweeps    Projected Gauss-Seidel, before each iteration from the seventh on. Whether a contact opens, sticks or
//             slips is a local question. Sweeps decide it, while Newton's method alone may cycle. Newton's iterations
//             solve for effects through the whole tree. If the residual does not fall to half, the number of sweeps
//             doubles, and every second such iteration has no sweeps. On one dense matrix, sweeps start before the
//             second iteration or after a shortened step, and steps are not shortened from then on (decision 512).
//             Contacts of free bodies, and of trees in contact with one another, get more sweeps (decisions 511, 522).
//   active    If few terms act, they are solved as a separate problem, from their rows alone. An iteration on all terms
//             at the resulting impulses follows, and then another one on the terms that act by then.
//   anew      If this does not converge either, the problem without friction is solved, which is convex. From its
//             impulses the problem itself is solved by Newton's iterations alone; else from starts near the best
//             iterate; else along the curve of solutions that begins without friction, as friction grows
//             (solver/friction_path.hpp). That curve ends at a solution.
//   cap       At the limit on iterations, the best iterate and its residual are the result. If the residual is large,
//             the result of sweeps from zero replaces it. If bounded impulses are outside their bounds, one more linear
//             solve follows.
//
// Symmetric laws have a convex potential. Coulomb's friction has none, and the problem may have several solutions. The
// method returns one of them, or at the limit of iterations the best iterate with its residual. [Alart & Curnier 1991;
// Acary & Brogliato 2008, ch. 13; sweeps before Newton's steps: Gräser & Kornhuber 2009]
//
// The operator owns the mass and the places at which rows act: a tree, or a dense matrix in tests. It also owns the
// bilateral rows: every x that it returns satisfies them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tarsus/solver/sweeps.hpp"
#include "tarsus/solver/term_laws.hpp"

namespace tarsus {

/// The rows that a sweep visits. The kind decides how many sweeps are worth a solve.
enum class SweepKind : std::uint8_t {
  of_trees,
  at_once,    ///< one dense matrix: sweeps cost little beside solve()
  of_bodies,  ///< contacts of many free bodies: ten to thirty sweeps cost as much as solve()
  of_crowd,   ///< trees in contact with one another or joined by bilateral rows, mostly one dense matrix
};

class StepOperator {
 public:
  virtual ~StepOperator() = default;
  /// x' = v' - v⁰ of the equation above, with the bilateral rows. @param tangents [term], or empty where all are zero
  /// @param change [row] out: J x'
  /// @return false: the solve would cost too much, and nothing was done
  virtual bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) = 0;
  /// Whether solve_change() is available: there are no bilateral rows that x must be moved to.
  virtual bool takes_changes() const { return false; }
  /// solve() for x' - x from the change of the impulses. The rounding error is then in proportion to that change.
  virtual bool solve_change(std::span<const Tangent> tangents, std::span<const double> force,
                            std::span<double> change) {
    return solve(tangents, force, change);
  }
  /// solve_change() for other forces, with the factors of the last solve() or solve_change(). Costs a fraction of it.
  /// @param tangents those of that solve  @return false: there are no such factors, and nothing was done
  virtual bool solve_again([[maybe_unused]] std::span<const Tangent> tangents,
                           [[maybe_unused]] std::span<const double> force, [[maybe_unused]] std::span<double> change) {
    return false;
  }
  /// Whether the sum of solve_change()'s results may drift from the solution at the present impulses. In float, solves
  /// lose digits, which the rows' velocities do not show. A result is then verified once from its impulses.
  virtual bool may_drift() const { return false; }
  virtual void has_drifted() {}  ///< that verification failed: later solves of this problem must lose fewer digits
  /// x += t (x' - x). The first call after begin sets x = x' for any t.
  virtual void move(double t) = 0;
  /// Rows of these terms with x = 0, for sweeps. Call it after begin, not between solve and move. Valid until the next
  /// call.
  /// @param terms ascending
  virtual RowBlocks& row_blocks(std::span<const int> terms) = 0;
  /// x becomes that of the motions of row_blocks()' bodies, where nothing else acts: all blocks are contacts of bodies,
  /// and there are no bilateral rows.
  virtual void take_bodies() {}
  virtual SweepKind sweeps() const { return SweepKind::of_trees; }
  /// For StepProblem::sliding_share. It is 1 where solves lose digits, or where sweeps do most of the work.
  virtual double sliding_share() const { return kSlidingShare; }
  /// The operator on these terms' rows alone, with x = 0, if that is cheaper than solve(); else null. Otherwise as
  /// row_blocks().
  virtual StepOperator* reduced([[maybe_unused]] std::span<const int> terms) { return nullptr; }
  /// Marks the present x as the best so far, which the caller will read.
  virtual void keep() = 0;
};

struct StepProblem {
  std::span<const Term> terms;
  std::span<const TermRow> rows;
  std::span<const double> free_velocity;  ///< [row] J v⁰, or J v where the operator's x is zero
  double sliding_share = kSlidingShare;   ///< of metric() in Newton's steps
};

/// Some of a problem's terms, with their rows.
struct PartOfTerms {
  std::vector<Term> terms;  ///< first_row counts in this part
  std::vector<TermRow> rows;
  std::vector<int> row;  ///< index in the whole problem

  void clear() { terms.clear(), rows.clear(), row.clear(); }
  void add(Term term, std::span<const TermRow> all) {
    const int first = std::exchange(term.first_row, int(row.size()));
    terms.push_back(term);
    for (int r = first; r < first + term.nrow; ++r) row.push_back(r), rows.push_back(all[r]);
  }
  /// Gathers the values of this part's rows from those of all rows; put() scatters them back.
  void take(std::span<const double> all, std::vector<double>& own) const {
    own.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) own[i] = all[row[i]];
  }
  void put(std::span<const double> own, std::span<double> all) const {
    for (std::size_t i = 0; i < row.size(); ++i) all[row[i]] = own[i];
  }
};

/// Sets the operator's x to that of these impulses.
/// @param impulse [row] [N s | N m s]  @param velocity out: [row] J v [m/s | rad/s]
inline void apply_impulses(StepOperator& mass, const StepProblem& problem, std::span<const double> impulse,
                           std::span<double> velocity) {
  mass.solve({}, impulse, velocity);
  mass.move(1);
  for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] += problem.free_velocity[i];
}

struct NewtonOptions {
  /// One more may follow, if the best iterate has impulses outside their bounds.
  int max_iterations = 3000;
  double tolerance = 1e-6;  ///< [m/s]
  /// If the residual of the best iterate is larger [m/s], the result of sweeps from zero replaces it.
  static constexpr double kLost = 1e-2;
};

struct NewtonReport {
  bool converged = false, finite = true;
  bool costly = false;  ///< the operator refused a solve: nothing is returned
  int iterations = 0;   ///< number of factorisations
  double residual = 0;  ///< largest natural residual ρ N of the result [m/s | rad/s]
};

class FrictionPath;

class StepNewton {
 public:
  StepNewton();
  ~StepNewton();
  /// Solves one step from the velocity at which the operator's x is zero. Errors are reported, not thrown.
  /// @param y [row] in: impulse before projection at which the first tangent is taken; out: that of the solution
  /// @param impulse [row] out: y' of the best iterate
  NewtonReport solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options, std::span<double> y,
                     std::span<double> impulse);

 private:
  struct Iterate {
    std::vector<double> velocity, impulse;  ///< [row] J v, y
  };
  struct Linear {
    std::vector<Tangent> tangent, other;  ///< [term] G; at the present iterate, for newton_again()
    std::vector<double> carried, change;  ///< [row] g; in a problem for changes: γ̄, and its increment of γ
  };
  struct Restart {                       ///< state of restart()
    bool begun = false;                  ///< in this problem: no more sweeps
    std::vector<Term> terms;             ///< without friction
    std::vector<double> impulse;         ///< of the solution without friction
    std::unique_ptr<FrictionPath> path;  ///< made when it is first needed
  };
  struct Active {  ///< the terms that act, as a problem of their own
    std::unique_ptr<StepNewton> newton;
    PartOfTerms part;
    std::vector<double> free_velocity;
    int attempts = 0;  ///< iterations of this phase in this step
  };
  bool iterate(StepOperator& mass, double tolerance, int most, bool judged);
  bool solve_active(StepOperator& mass, double tolerance, int most);
  bool refine(StepOperator& mass, Active& active, bool far, double tolerance, int most);
  void begin_problem();
  void restart(StepOperator& mass, const NewtonOptions& options);
  bool iterate_from_impulses(StepOperator& mass, double tolerance, int most, bool judged);
  void end_by_sweeps(StepOperator& mass);
  void bound_impulses(StepOperator& mass);
  void begin(StepOperator& mass, std::span<const double> y);
  void judge(StepOperator& mass, double residual, bool met);
  void newton(StepOperator& mass, bool early);
  bool newton_again(StepOperator& mass, double tolerance);
  void sweep(StepOperator& mass, int count);
  void linear_solve(StepOperator& mass, bool changes);
  void find_change();
  void take_solution(bool changes);
  double residual();
  bool within_sets() const;
  void point(double t, Iterate& out) const;
  void move(StepOperator& mass, double t);

  StepProblem own_, problem_;  ///< the caller's problem; the present one
  TermLaws laws_;
  Linear linear_;
  Iterate now_, next_, trial_, best_;                ///< next: solution of the linear problem
  double best_residual_ = 0, contact_residual_ = 0;  ///< contact: of the contacts of this iterate
  bool met_ = false;                                 ///< the best iterate is within the tolerance
  std::vector<double> history_;                      ///< residuals since the last start
  Restart restart_;
  Sweeps sweeps_;
  Active active_;
  int iterations_ = 0;
  bool short_ = false;  ///< the last iteration's step was shortened
  bool again_ = false;  ///< the last iteration was newton_again()
  bool costly_ = false;
};

}  // namespace tarsus
