// Projected Gauss-Seidel on terms, in the space of velocities:
//
//     y_k ← P(y_k - (u_k + R_k (y_k - c_k) - b_k)/ρ_k),   v += M̂⁻¹ J_kᵀ (change of y_k)
//
// Rows that a law projects together change together (a contact's normal, then its friction), with ρ at least their
// mutual inverse mass. Which contact opens, sticks or slips is a local question, which few sweeps decide. The size of
// the impulses converges slowly. [Jourdan, Alart and Jean 1998; Gräser and Kornhuber 2009]
//
// The rows of one pair of links are a block. Once a sweep it reads its J v and applies M̂⁻¹ Jᵀ of its changes, O(d) a
// row; within the block its own A = J M̂⁻¹ Jᵀ couples the rows. On small models one block has all rows, and one kernel
// does a sweep. Contacts of free bodies, of which there may be many, are points whose data is stored side by side.
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

/// M̂⁻¹ of a free body about its centre, and its velocity w (angular), v there.
struct FreeBody {
  double inverse_mass = 0;
  Sym3d inverse_inertia{};
  Vec3d w{0, 0, 0}, v{0, 0, 0};

  Vec3d velocity(const Vec3d& arm) const { return v + cross(w, arm); }
  /// @param moment besides that of the force
  void push(const Vec3d& arm, const Vec3d& force, const Vec3d& moment = {0, 0, 0}) {
    v += force * inverse_mass, w += inverse_inertia * (cross(arm, force) + moment);
  }
};

/// One step of conjugate gradients between two sweeps, on numbers that depend linearly on one another. With the last
/// step's increment p, each number moves by β p; p becomes β p plus the increment of the sweep.
struct Extrapolation {
  double beta = 0;
  bool restart = true;  ///< β = 0, and p is dropped

  template <class T>
  void operator()(T& x, T& before, T& p) const {
    x += T(beta) * p;
    p = restart ? T(0) : x - before;
    before = x;
  }
};

/// Rows of some terms in blocks, with an x that impulses change: x = M̂⁻¹ Jᵀ y, with the bilateral rows satisfied.
class RowBlocks {
 public:
  /// A = J M̂⁻¹ Jᵀ, symmetric: [row][stride]. The stride is a multiple of eight with zeros beyond the rows. kBeyond
  /// numbers after the last are read and not used.
  struct Mass {
    const double* A = nullptr;
    int stride = 0;
  };
  static constexpr int kBeyond = 2;
  std::vector<FreeBody> bodies;
  virtual ~RowBlocks() = default;
  virtual int blocks() const = 0;
  virtual int terms(int block) const = 0;  ///< how many of the terms, in their order
  /// A of all rows if they are one block, else null. With A, none of the functions below is called.
  virtual Mass whole() const { return {}; }
  /// Not null: the block is a contact with unit axes that acts on `bodies` alone. No other function is called for it;
  /// the caller moves the bodies.
  virtual const ContactRows* point([[maybe_unused]] int block) const { return nullptr; }
  /// The bodies on which a block without point() acts, -1: none.
  virtual std::array<int, 2> bodies_of([[maybe_unused]] int block) const { return {-1, -1}; }
  /// @param A out: [row of the block][stride]
  virtual void own_mass([[maybe_unused]] int block, [[maybe_unused]] double* A, [[maybe_unused]] int stride) {}
  virtual void rest() {}                             ///< x = 0
  virtual void extrapolate(const Extrapolation&) {}  ///< of x but the bodies' motions; after every sweep since rest()
  virtual void velocity([[maybe_unused]] int block, [[maybe_unused]] double* Jx) {}  ///< [row of the block]
  virtual void push([[maybe_unused]] int block, [[maybe_unused]] const double* change_of_y) {}
  /// Whether hold() is called after each sweep. It projects x onto the bilateral rows, which push() does not keep.
  virtual bool holds() const { return false; }
  virtual void hold() {}
};

/// All rows as one block.
class WholeRows final : public RowBlocks {
 public:
  void clear() { counts.clear(), rows_ = 0; }
  void add(int nrow) { counts.push_back(nrow), rows_ += nrow; }  ///< a term
  int rows() const { return rows_; }
  int stride() const { return (rows_ + 7) / 8 * 8; }
  /// A, to be written after all terms have been added.
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

/// Options of a problem that is solved by sweeps alone.
struct SweepOptions {
  int max_sweeps = 20;
  double tolerance = 1e-6;  ///< [m/s]
  int most_sweeps = 60;     ///< limit as long as a sweep changes a velocity by more than `coarse`
  double coarse = 0.1;      ///< [m/s], as at an impact
};

struct SweepReport {
  bool finite = true;
  int sweeps = 0;
  double residual = 0;  ///< largest natural residual of the result [m/s | rad/s]
};

class Sweeps {
 public:
  Sweeps();
  ~Sweeps();
  /// Starts a step, whose mass is not known yet.
  /// @param all all terms act
  void begin(const StepProblem& problem, bool all = false);
  void forget_mass() { stale_ = true; }  ///< call it if the operator was used for other rows
  /// Restarts the count of iterations.
  void restart();
  /// Number of sweeps before Newton's next iteration:
  ///
  /// - none before the seventh; of bodies and crowds, none before the fifth;
  /// - sooner if `early`, the residual of contacts at which they may start [m/s], is large, and in any case after a
  ///   shortened step; then none while it is small;
  /// - none if the residual falls to a tenth;
  /// - if it does not fall to half, twice as many, and none in every second such iteration.
  ///
  /// @param residuals of the iterations so far
  int due(std::span<const double> residuals, double early, SweepKind kind);
  bool early() const { return due_.early; }  ///< they started before the seventh iteration
  /// The terms that act: with an impulse now or earlier in this step, or whose law gives one. Ascending.
  std::span<const int> active(const StepProblem& problem, std::span<const double> velocity,
                              std::span<const double> impulse);
  /// @param velocity [row] J v at these impulses @param impulse [row] in and out
  void run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
           std::span<double> impulse);
  /// Solves a step by sweeps alone, until a sweep changes no velocity by more than the tolerance or the number of
  /// sweeps is reached.
  /// @param y [row] out: impulse before projection @param impulse [row] in: initial values; out: the solution
  SweepReport solve(StepOperator& mass, const StepProblem& problem, const SweepOptions& options, std::span<double> y,
                    std::span<double> impulse);

 private:
  struct Block {
    int at = 0, nrow = 0, first = 0, end = 0;  ///< first row among the active terms; range in relaxations_
    std::size_t own = 0;                       ///< offset in own_
    int stride = 0;
    int of = 0;     ///< index among the operator's blocks
    int place = 0;  ///< index among the points
  };
  struct Point {
    const ContactRows* rows;
    int contact;  ///< index in points_
    int at, row;  ///< first row among the active terms; row in the problem
  };
  struct Rows {  ///< [row of the active terms] 1/ρ, A's diagonal; z = keep y + start - J x/ρ
    std::vector<double> inverse, diagonal, keep, start;
  };
  struct Conjugate {  ///< y_ and z_ before an Extrapolation, and its increments
    std::vector<double> y, y_by;
    std::vector<double> z, z_by;  ///< if one block has all rows
    Extrapolation of_points;      ///< applied in the points' next sweep,
    bool due = false;             ///< if due
  };
  struct Due {                ///< before Newton's iterations
    int count = 0, done = 0;  ///< before the present iteration; in this step
    double settled = 0;       ///< stop once no row changes by more [m/s]
    bool early = false;       ///< before the seventh iteration
    bool of_crowd = false;    ///< SweepKind
    bool without = false;     ///< this iteration has no sweeps
  };
  void make_blocks(StepOperator& mass, const StepProblem& problem);
  int sweep(const StepProblem& problem, const SweepOptions& options, bool accelerated, std::span<const double> velocity,
            std::span<double> impulse);
  void add_relaxations(const StepProblem& problem, int term, int at, const double* A, int stride, double* inverse);
  void start(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse);
  void add_point(const StepProblem& problem, const ContactRows& at, const Term& term, int row);
  void push_points(std::span<const double> impulse);
  void read_points(std::span<double> velocity) const;
  void relax(const Block& block);
  void relax_points(int first, int end, bool back);
  int relax_whole(int sweeps, double tolerance);
  void extrapolate(const Extrapolation& by);
  void sweep(bool back);

  std::vector<char> acted_;  ///< [term] it acts, or has acted in this step
  std::vector<int> terms_;   ///< the active terms
  bool stale_ = true;        ///< blocks_ is not up to date: more terms act, or the operator was used for other rows
  RowBlocks* mass_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Relaxation> relaxations_;
  std::unique_ptr<BodyPoints> points_;  ///< contacts of free bodies
  std::vector<Point> point_;            ///< where each of them is
  AlignedVector<double> own_;           ///< Z of each block: relax.hpp
  Rows rows_;
  std::vector<double> y_;       ///< [row of the active terms] impulses
  AlignedVector<double> z_;     ///< of a single block
  std::vector<double> change_;  ///< of one block
  Conjugate conjugate_;
  double moved_ = 0, energy_ = 0;  ///< of the last sweep: largest ρ |change of y| [m/s], Σ ρ (its square)
  Due due_;
};

}  // namespace tarsus
