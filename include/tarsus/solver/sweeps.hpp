// Projected Gauss-Seidel on terms, in the space of velocities:
//
//     y_k ← P(y_k - (u_k + R_k (y_k - c_k) - b_k)/ρ_k),   v += M̂⁻¹ J_kᵀ (change of y_k)
//
// Rows that a law projects together change together (a contact's normal, then its friction), with ρ no less than what
// they feel of each other. Which contact opens, sticks or slips is a local question, which sweeps answer quickly; how
// large the impulses are they answer slowly. [Jourdan, Alart and Jean 1998; Gräser and Kornhuber 2009]
//
// Rows of one pair of links are a block, which reads its J v and pushes M̂⁻¹ Jᵀ of what it changed once a sweep, O(d) a
// row, and sees its own changes through its own A = J M̂⁻¹ Jᵀ. On small models one block has all rows, and a sweep is a
// kernel's. Contacts of free bodies, of which there may be many, are points with all their numbers side by side.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tarsus/base/aligned.hpp"
#include "tarsus/math/vec.hpp"
#include "tarsus/solver/term.hpp"

namespace tarsus {

class StepOperator;
class BodyPoints;
enum class SweepKind : std::uint8_t;
struct StepProblem;
struct Relaxation;

/// M̂⁻¹ of a free body about its centre, and x there.
struct FreeBody {
  double inverse_mass = 0;
  Sym3d inverse_inertia{};
  Vec3d w{0, 0, 0}, v{0, 0, 0};
};

/// One step of conjugate gradients between two sweeps, of numbers that are linear in one another: with p what they
/// moved by in the last step, they go on by β p, and p becomes that and what the sweep has moved them by.
struct Extrapolation {
  double beta = 0;
  bool restart = true;  ///< β = 0, and p is forgotten

  template <class T>
  void operator()(T& x, T& before, T& p) const {
    x += T(beta) * p;
    p = restart ? T(0) : x - before;
    before = x;
  }
};

/// Rows of some terms in blocks, and an x that impulses change: x = M̂⁻¹ Jᵀ y with the bilateral rows held.
class RowBlocks {
 public:
  /// A = J M̂⁻¹ Jᵀ of rows, symmetric: [row][stride], stride a multiple of eight, zeros beyond the rows, and kBeyond
  /// numbers after the last that are read and not used.
  struct Mass {
    const double* A = nullptr;
    int stride = 0;
  };
  static constexpr int kBeyond = 2;
  std::vector<FreeBody> bodies;
  virtual ~RowBlocks() = default;
  virtual int blocks() const = 0;
  virtual int terms(int block) const = 0;  ///< so many of the terms, in their order
  /// A not null: that of all rows, which are one block. Of what follows nothing is asked then.
  virtual Mass whole() const { return {}; }
  /// Not null: the block is a contact that acts on `bodies` alone, and nothing else is asked of it.
  virtual const ContactRows* point([[maybe_unused]] int block) const { return nullptr; }
  /// The bodies on which another block acts, -1: none.
  virtual std::array<int, 2> bodies_of([[maybe_unused]] int block) const { return {-1, -1}; }
  /// @param A out: [row of the block][stride]
  virtual void own_mass([[maybe_unused]] int block, [[maybe_unused]] double* A, [[maybe_unused]] int stride) {}
  virtual void rest() {}                             ///< x = 0
  virtual void extrapolate(const Extrapolation&) {}  ///< x, if it does so after every sweep since rest()
  virtual void velocity([[maybe_unused]] int block, [[maybe_unused]] double* Jx) {}  ///< [row of the block]
  virtual void push([[maybe_unused]] int block, [[maybe_unused]] const double* change_of_y) {}
  /// After each sweep, where a push alone does not hold the bilateral rows: x back onto them.
  virtual void hold() {}
};

/// One block of all rows.
class WholeRows final : public RowBlocks {
 public:
  void clear() { counts.clear(), rows_ = 0; }
  void add(int nrow) { counts.push_back(nrow), rows_ += nrow; }  ///< a term
  int rows() const { return rows_; }
  int stride() const { return (rows_ + 7) / 8 * 8; }
  /// A, to be written once all terms are there.
  double* mass() {
    at_least(A_, std::size_t(rows_) * std::size_t(stride()) + kBeyond);
    return A_.data();
  }
  int blocks() const override { return 1; }
  int terms(int) const override { return int(counts.size()); }
  Mass whole() const override { return {A_.data(), stride()}; }

  std::vector<int> counts;  ///< rows of each term

 private:
  int rows_ = 0;
  AlignedVector<double> A_;
};

/// Of a problem that is solved by sweeps alone.
struct SweepOptions {
  int max_sweeps = 20;
  double tolerance = 1e-6;  ///< [m/s]
  int most_sweeps = 60;     ///< as long as one changes a velocity by more than
  double coarse = 0.1;      ///< [m/s], as where something strikes
};

struct SweepReport {
  bool finite = true;
  int sweeps = 0;
  double residual = 0;  ///< largest natural residual of what is returned [m/s | rad/s]
};

class Sweeps {
 public:
  Sweeps();
  ~Sweeps();
  /// A new step: nothing is known of its mass.
  /// @param all terms act
  void begin(const StepProblem& problem, bool all = false);
  void forget_mass() { stale_ = true; }  ///< The operator was asked for other rows.
  /// Iterations begin again.
  void restart();
  /// How many go before Newton's next iteration: none before the seventh, of bodies and crowds the fifth, unless
  /// `early`, the residual of contacts where they may come sooner [m/s], is large, without a bound after a step that
  /// was shortened; then none while it is small. None where the residual falls to a tenth; where it does not fall to
  /// half, twice as many, and every second such iteration none.
  /// @param residuals of the iterations so far
  int due(std::span<const double> residuals, double early, SweepKind kind);
  bool early() const { return due_.early; }  ///< they came before the seventh
  /// Terms with an impulse, or which would have one, or had in this step; ascending.
  std::span<const int> acting(const StepProblem& problem, std::span<const double> velocity,
                              std::span<const double> impulse);
  /// @param velocity [row] J v at these impulses @param impulse [row] in and out
  void run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
           std::span<double> impulse);
  /// All of a step by sweeps, until one changes no velocity by more than the tolerance, or as many as are allowed.
  /// @param y [row] out: impulse before projection @param impulse [row] in: where to start; out
  SweepReport solve(StepOperator& mass, const StepProblem& problem, const SweepOptions& options, std::span<double> y,
                    std::span<double> impulse);

 private:
  struct Block {
    int at = 0, nrow = 0, first = 0, end = 0;  ///< first row of these terms'; of relaxations_
    std::size_t own = 0;                       ///< of own_
    int stride = 0;
    int of = 0;     ///< the operator's
    int place = 0;  ///< among those of the points
  };
  struct Point {
    int contact;        ///< of points_
    int at, row, nrow;  ///< first row of these terms', of its term
  };
  struct Rows {  ///< [row of these terms] 1/ρ, A's diagonal; z = keep y + start - J x/ρ
    std::vector<double> inverse, diagonal, keep, start;
  };
  struct Conjugate {  ///< y_ and z_ before an Extrapolation, and by what it moves them
    std::vector<double> y, y_by;
    std::vector<double> z, z_by;  ///< where one block has all rows
    Extrapolation of_points;      ///< in their next sweep,
    bool due = false;             ///< if any
  };
  struct Due {                ///< before Newton's iterations
    int count = 0, done = 0;  ///< before this one, if any; in this step
    double settled = 0;       ///< no more once none of the rows changes by more [m/s]
    bool early = false;       ///< before the seventh
    bool of_crowd = false;    ///< SweepKind
    bool without = false;     ///< this one goes without
  };
  void make_blocks(StepOperator& mass, const StepProblem& problem);
  int sweep(const StepProblem& problem, const SweepOptions& options, bool accelerated, std::span<const double> velocity,
            std::span<double> impulse);
  void add_relaxations(const StepProblem& problem, int term, int at, const double* A, int stride, double* inverse);
  void start(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse);
  void add_point(const StepProblem& problem, const ContactRows& at, const Term& term, int row);
  void relax(const Block& block);
  void relax_points(int first, int end, bool back);
  int relax_whole(int sweeps, double tolerance);
  void extrapolate(const Extrapolation& by);
  void sweep(bool back);

  std::vector<char> acted_;  ///< [term] it acts, or has acted in this step
  std::vector<int> terms_;   ///< these terms
  bool stale_ = true;        ///< there are more of them than blocks, or the operator was asked for others
  RowBlocks* mass_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Relaxation> relaxations_;
  std::unique_ptr<BodyPoints> points_;  ///< contacts of free bodies
  std::vector<Point> point_;            ///< where each of them is
  AlignedVector<double> own_;           ///< Z of each block: relax.hpp
  Rows rows_;
  std::vector<double> y_;       ///< [row of these terms] impulses
  AlignedVector<double> z_;     ///< of one block
  std::vector<double> change_;  ///< of one block
  Conjugate conjugate_;
  double moved_ = 0, energy_ = 0;  ///< of the last sweep: largest ρ |change of y| [m/s], Σ ρ (its square)
  Due due_;
};

}  // namespace tarsus
