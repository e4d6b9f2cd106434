// Follows the solution of a step's problem from no friction to all of it.
//
// With s times its friction a problem's solutions are N(y, s) = 0, the natural map of step_newton.hpp. At s = 0 it is
// convex and has one. A curve of solutions begins there. It has no second end at s = 0, and it stays bounded: impulses
// minimise a quadratic function within the bounds that they make for each other, and so are no worse than some that are
// within these whatever s. So it ends at s = 1, but for coincidences, where it meets another curve, as symmetric
// problems' do: free velocities are moved by up to half of ε for that. It may turn back in between, where two solutions
// meet: it is followed by its length, with s as one more unknown. [Klarbring 1990; Allgower and Georg 1990, ch. 2]
//
// The curve has corners where contacts open, stick or slip, which are rounded, by ε/ρ of each row: max(a, b) is
// ½ (a + b + √((a - b)² + 4 (ε/ρ)²)), and what a disc of radius r, or an interval about zero, makes of z is
// z r/max(r, √(z² + (ε/ρ)²)). From where it ends, Newton's steps lead to the solution itself.
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

class FrictionPath {
 public:
  void clear(std::size_t terms);  ///< A new problem, none of whose terms are on the way yet.
  /// Terms that act there are on the way from now on.  @return there are such
  bool join(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse);
  /// From the impulses without friction, for the terms that are on the way.
  /// @param mass as for its row_blocks()  @param rounding ε [m/s]  @param most factorisations
  /// @param impulse [row] in: at s = 0; out: at s = 1, with rounded laws
  /// @return it came there
  bool follow(StepOperator& mass, const StepProblem& problem, double rounding, int most, std::span<double> impulse);
  int factorisations() const { return factorisations_; }  ///< of the last follow()
  bool spent() const;                                     ///< its operations are used up, since clear()

 private:
  /// [row] x = ρ y [m/s | rad/s], then s
  using Point = std::vector<double>;

  struct Problem : PartOfTerms {  ///< of the terms on the way
    std::vector<double> A;        ///< [row][row] J M̂⁻¹ Jᵀ
    std::vector<double> free;     ///< [row] J v where they carry nothing
    std::vector<double> rho;      ///< [row] ρ
  };
  struct Derivatives {                 ///< of what is missed at the point looked at last
    std::vector<double> missed;        ///< [row] ρ N [m/s | rad/s]
    std::vector<double> by_friction;   ///< [row] its derivative by s
    std::vector<Tangent> projection;   ///< [term] P'(z)
    std::vector<int> active, term_of;  ///< rows whose impulse depends on others' or on s; their terms
  };
  struct Factors {  ///< of the derivatives of active rows by x and s, and a last row
    std::vector<double> matrix, right;
    std::vector<int> pivot;
  };

  bool gather(StepOperator& mass, const StepProblem& problem, double rounding);
  bool is_over() const;
  void look_at(const Point& at);
  int factor(const Point& along);
  void solve(std::span<double> x);
  void move(Point& at, const Point& by, double times) const;
  int correct(Point& at, const Point& along, double length);
  bool find_direction(Point& along);
  bool follow(Point& at);

  std::vector<char> acted_;  ///< [term of the whole problem] it is on the way
  std::vector<int> terms_;   ///< those that are
  Problem problem_;
  Derivatives now_;
  Factors factors_;
  double rounding_ = 0, unit_ = 1;  ///< ε; |x| at s = 0, which lengths are in units of [m/s]
  int factorisations_ = 0, most_ = 0;
  double work_ = 0;  ///< operations of all factorisations since clear()
};

}  // namespace tarsus
