// The one solve of a step: semismooth Newton on M̂ (v - v⁰) = Σ J_iᵀ γ_i(v) for all terms at once (term.hpp).
//
//     (M̂ + Σ Jᵀ G J) (v' - v⁰) = Σ Jᵀ g,   g = γ̄ + G J (v - v⁰),   y' = g - G J (v' - v⁰)
//
// Instead of v⁰ it may start from the velocity v⁻ at the step's start, where what would lead from there to v⁰ is in all
// of the operator's solves: read v⁰ as the velocity where the operator's x is zero.
//
// y' is what the terms carry in the linear problem: M̂ (v' - v⁰) = Jᵀ y' holds to rounding whatever the law says, so
// that an iterate (v, y) is judged by the law alone. What it misses is the natural map, in each row's own metric
// ρ = w + R, w its inverse mass, or of a contact's sliding rows a share of it (kSlidingShare; residuals have all):
//
//     N(v, y) = y - P(z),   z = y - (J v + R (y - c) - b)/ρ
//
//   first     tangents where the last step ended, term by term; no search. Rest takes this one iteration.
//   Newton    G = (1 - D (1 - R/ρ))⁻¹ D/ρ and γ̄ = y - (1 - D (1 - R/ρ))⁻¹ N with D = P'(z); halved till Σ ρ² N²
//             falls, twice at most.
//             ρ and not R: what sticks may slip within one R of rest, but within a whole ρ of what it carries.
//   sweeps    from the seventh iteration on, before each: projected Gauss-Seidel. Which contact opens,
//             sticks or slips is a local question, which sweeps settle and in which Newton's method alone may turn
//             round; what acts through the whole tree is Newton's. Where the residual does not fall to half, twice
//             as many, and every second such iteration none. Over one dense matrix they come before the second, or
//             after a step that was shortened, and steps are whole from then on (decision 512); of contacts of free
//             bodies, and of trees that bear on one another, more are worth it (decisions 511, 522).
//   acting    where they are few, the terms that act are a problem of their own, by their rows alone; then all terms
//             at their impulses, again with those that act now.
//   anew      where that does not end either: the problem without friction, which is convex; from its impulses the
//             problem itself, by Newton's steps alone, or from where the curve of solutions leads that begins there as
//             friction grows (solver/friction_path.hpp). That curve ends at a solution.
//   cap       the best that was found, and its residual; where that is far, what sweeps from nothing make. Bounded
//             impulses are within their bounds: one linear solve more, where they are not.
//
// Symmetric laws are one convex function. Coulomb's friction is not, and may have several solutions: one of them, or
// where iterations run out the best iterate, and its residual, are what is promised. [Alart & Curnier 1991; Acary &
// Brogliato 2008, ch. 13; sweeps before Newton's steps: Gräser & Kornhuber 2009]
//
// The mass, and where rows act, belong to the operator: a tree, or a dense matrix in tests. Bilateral rows are the
// operator's as well: every x it returns satisfies them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tarsus/solver/sweeps.hpp"
#include "tarsus/solver/term_laws.hpp"

namespace tarsus {

/// What a sweep goes over, which says how many of them are worth a solve.
enum class SweepKind : std::uint8_t {
  of_trees,
  at_once,    ///< one dense matrix: they cost little beside solve()
  of_bodies,  ///< contacts of many free bodies: ten to thirty cost as much as solve()
  of_crowd,   ///< of trees that bear on one another, or that bilateral rows join, mostly over one dense matrix
};

class StepOperator {
 public:
  virtual ~StepOperator() = default;
  /// x' = v' - v⁰ of the equation above, with the bilateral rows. @param tangents [term], or empty where all are zero
  /// @param change [row] out: J x'
  /// @return false: that would cost too much, and nothing was done
  virtual bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) = 0;
  /// solve_change() is there: there are no bilateral rows to be moved to.
  virtual bool takes_changes() const { return false; }
  /// solve() for x' - x, by the change of what the terms carry: rounding is in proportion to that.
  virtual bool solve_change(std::span<const Tangent> tangents, std::span<const double> force,
                            std::span<double> change) {
    return solve(tangents, force, change);
  }
  /// What solve_change() adds up may no longer be what the impulses make: in float, whose solves lose digits that the
  /// rows' velocities do not show. An answer is then looked at once more, from its impulses.
  virtual bool may_drift() const { return false; }
  virtual void has_drifted() {}  ///< it was not: solves of this problem are to lose less from now on
  /// x += t (x' - x). The first call after begin: x = x' whatever t.
  virtual void move(double t) = 0;
  /// Rows of these terms with x = 0, for sweeps: after begin, not between solve and move. They live until the next
  /// call. @param terms ascending
  virtual RowBlocks& row_blocks(std::span<const int> terms) = 0;
  virtual SweepKind sweeps() const { return SweepKind::of_trees; }
  /// For StepProblem's: 1 where solves lose digits, or problems are won by sweeps.
  virtual double sliding_share() const { return kSlidingShare; }
  /// These terms' rows alone, x = 0, where that is cheaper than solve(); null: it is not. As row_blocks().
  virtual StepOperator* alone([[maybe_unused]] std::span<const int> terms) { return nullptr; }
  /// This x is the best so far: what the caller will read.
  virtual void keep() = 0;
};

struct StepProblem {
  std::span<const Term> terms;
  std::span<const TermRow> rows;
  std::span<const double> free_velocity;  ///< [row] J v⁰, or wherever the operator's x is zero
  double sliding_share = kSlidingShare;   ///< of metric() in Newton's steps
};

/// Some of a problem's terms, with their rows.
struct PartOfTerms {
  std::vector<Term> terms;  ///< first_row is here
  std::vector<TermRow> rows;
  std::vector<int> row;  ///< in the whole

  void clear() { terms.clear(), rows.clear(), row.clear(); }
  void add(Term term, std::span<const TermRow> all) {
    const int first = std::exchange(term.first_row, int(row.size()));
    terms.push_back(term);
    for (int r = first; r < first + term.nrow; ++r) row.push_back(r), rows.push_back(all[r]);
  }
  /// Numbers of its rows, of those of all rows; and back among them.
  void take(std::span<const double> all, std::vector<double>& own) const {
    own.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) own[i] = all[row[i]];
  }
  void put(std::span<const double> own, std::span<double> all) const {
    for (std::size_t i = 0; i < row.size(); ++i) all[row[i]] = own[i];
  }
};

/// The operator's x becomes that of these impulses. @param velocity [row] out: J v
inline void apply_impulses(StepOperator& mass, const StepProblem& problem, std::span<const double> impulse,
                           std::span<double> velocity) {
  mass.solve({}, impulse, velocity);
  mass.move(1);
  for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] += problem.free_velocity[i];
}

struct NewtonOptions {
  /// One more may follow, where what is best by then has impulses beyond their bounds.
  int max_iterations = 3000;
  double tolerance = 1e-6;  ///< [m/s]
  /// Where the best iterate misses by more, it may be anything: sweeps from nothing take its place [m/s].
  static constexpr double kLost = 1e-2;
};

struct NewtonReport {
  bool converged = false, finite = true;
  bool costly = false;  ///< the operator gave up: nothing is returned
  int iterations = 0;   ///< factorisations
  double residual = 0;  ///< largest natural residual ρ N of what is returned [m/s | rad/s]
};

class FrictionPath;

class StepNewton {
 public:
  StepNewton();
  ~StepNewton();
  /// @param y [row] in: impulse before projection at which the first tangent is taken; out: that of the solution
  /// @param impulse [row] out: y' of the best iterate
  NewtonReport solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options, std::span<double> y,
                     std::span<double> impulse);

 private:
  struct Iterate {
    std::vector<double> velocity, impulse;  ///< [row] J v, y
  };
  struct Linear {
    std::vector<Tangent> tangent;         ///< [term] G
    std::vector<double> carried, change;  ///< [row] g; where the problem is for changes γ̄, and what it adds to γ
  };
  struct Anew {                          ///< of start_anew()
    bool begun = false;                  ///< in this problem: no more sweeps
    std::vector<Term> terms;             ///< without friction
    std::vector<double> impulse;         ///< of their solution
    std::unique_ptr<FrictionPath> path;  ///< once one was needed
  };
  struct Acting {  ///< the terms that act, as a problem of their own
    std::unique_ptr<StepNewton> newton;
    PartOfTerms part;
    std::vector<double> free_velocity;
    int rounds = 0;  ///< of this step
  };
  bool iterate(StepOperator& mass, double tolerance, int most, bool judged);
  bool solve_acting(StepOperator& mass, double tolerance, int most);
  bool refine(StepOperator& mass, Acting& acting, bool far, double tolerance, int most);
  void begin_problem();
  void start_anew(StepOperator& mass, const NewtonOptions& options);
  bool iterate_anew(StepOperator& mass, double tolerance, int most, bool judged);
  void end_by_sweeps(StepOperator& mass);
  void bound_impulses(StepOperator& mass);
  void begin(StepOperator& mass, std::span<const double> y);
  void judge(StepOperator& mass, double residual, bool met);
  void newton(StepOperator& mass, bool early);
  void sweep(StepOperator& mass, int count);
  void linear_solve(StepOperator& mass, bool changes);
  double residual();
  bool within_sets() const;
  void point(double t, Iterate& out) const;
  void move(StepOperator& mass, double t);

  StepProblem own_, problem_;  ///< as given; the one at hand
  TermLaws laws_;
  Linear linear_;
  Iterate now_, next_, trial_, best_;                ///< next: where the linear problem leads
  double best_residual_ = 0, contact_residual_ = 0;  ///< contact: of this iterate's contacts alone
  bool met_ = false;                                 ///< the best is within the tolerance
  std::vector<double> history_;                      ///< residuals since this start
  Anew anew_;
  Sweeps sweeps_;
  Acting acting_;
  int iterations_ = 0;
  bool short_ = false;  ///< the last iteration's step was shortened
  bool costly_ = false;
};

}  // namespace tarsus
