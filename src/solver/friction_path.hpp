// Follows the solution of a step's problem from zero friction to its full friction.
//
// With friction scaled by s, the solutions satisfy N(y, s) = 0, the natural map of step_newton.hpp. At s = 0 the
// problem is convex and has one solution, from which a curve of solutions starts. The curve has no second end at s = 0.
// It stays bounded: impulses minimise a quadratic function within the bounds that they set for each other, and so are
// no worse than some impulses that are within these bounds for every s. The curve therefore ends at s = 1, except where
// it meets another curve, as in symmetric problems. Free velocities are perturbed by up to ε/2 to avoid that. Between
// its ends the curve may turn back, where two solutions merge. It is therefore followed by arc length, with s as an
// unknown. [Klarbring 1990; Allgower and Georg 1990, ch. 2]
//
// The curve has corners where contacts open, stick or slip. They are rounded by ε/ρ of each row:
//
//     max(a, b)  becomes  ½ (a + b + √((a - b)² + 4 (ε/ρ)²))
//     P(z) of a disc of radius r, or an interval about zero,  becomes  z r/max(r, √(z² + (ε/ρ)²))
//
// From the end of the curve, Newton's iterations lead to the solution itself.
//
// A factorisation costs O(m³) for m active rows. follow() fails if more than kMostRows rows are on the path, if the
// limit on factorisations or operations is reached, or if steps become too short.
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

class FrictionPath {
 public:
  void clear(std::size_t terms);  ///< Starts a problem without terms on the path.
  /// Adds the terms that act at this velocity and impulse to the path.  @return whether there are new ones
  bool join(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse);
  /// Follows the curve from the impulses without friction, for the terms on the path.
  /// @param mass as for its row_blocks()  @param rounding ε [m/s]  @param most factorisations
  /// @param impulse [row] in: at s = 0; out: at s = 1, with rounded laws
  /// @return whether it reached s = 1
  bool follow(StepOperator& mass, const StepProblem& problem, double rounding, int most, std::span<double> impulse);
  int factorisations() const { return factorisations_; }  ///< of the last follow()
  bool spent() const;                                     ///< the limit on operations since clear() is reached

 private:
  /// [row] x = ρ y [m/s | rad/s], then s
  using Point = std::vector<double>;

  struct Problem : PartOfTerms {  ///< of the terms on the path
    std::vector<double> A;        ///< [row][row] J M̂⁻¹ Jᵀ
    std::vector<double> free;     ///< [row] J v without their impulses
    std::vector<double> rho;      ///< [row] ρ
  };
  struct Derivatives {                 ///< residual at the last point, and its derivatives
    std::vector<double> missed;        ///< [row] ρ N [m/s | rad/s]
    std::vector<double> by_friction;   ///< [row] its derivative with respect to s
    std::vector<Tangent> projection;   ///< [term] P'(z)
    std::vector<int> active, term_of;  ///< rows whose impulse depends on others' or on s; their terms
  };
  struct Factors {  ///< of the residual's derivatives with respect to active rows' x and s, and a last row
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

  std::vector<char> acted_;  ///< [term of the whole problem] it is on the path
  std::vector<int> terms_;   ///< the terms on the path
  Problem problem_;
  Derivatives now_;
  Factors factors_;
  double rounding_ = 0, unit_ = 1;  ///< ε; |x| at s = 0, the unit of lengths [m/s]
  int factorisations_ = 0, most_ = 0;
  double work_ = 0;  ///< operations of all factorisations since clear()
};

}  // namespace tarsus
