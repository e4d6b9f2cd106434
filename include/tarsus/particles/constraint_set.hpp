// Constraints between particles, as rows for the solvers. The set contains geometry only, no masses, forces or
// integrator. The rows may be solved with any mass operator on 3 N coordinates.
//
// | row        | σ                              | scale (|σ|/scale is dimensionless)          |
// | distance   | (|x_i - x_j|² - d²)/2          | d²                                          |
// | angle      | θ - θ0, radians                | 1                                           |
// | dihedral   | φ - φ0 wrapped to (-π, π]      | 1                                           |
// | plane      | n·(x_i - p)                    | the caller's length                         |
// | sphere     | (|x_i - c|² - R²)/2            | R²                                          |
// | surface    | f(x_i)                         | |∇f| at the start times a length            |
// | linear     | Σ a_i·x_i - value              | Σ|a_i| times a length                       |
// | user       | f(x_i, x_j, …)                 | the caller's                                |
//
// The book's distance constraint is σ = r² - d². Half of it has the gradient x_i - x_j, and |σ|/scale is the book's
// |σ|/(2d²). Coordinates are unwrapped: molecules are whole and rows do not depend on the periodic box.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tarsus/math/vec.hpp"
#include "tarsus/solver/problem.hpp"

namespace tarsus {

/// σ and, unless `gradient` is empty, ∂σ/∂x; both spans hold three numbers for each particle of the row.
using RowFunction = std::function<double(std::span<const double> x, std::span<double> gradient)>;

enum class RowKind { distance, angle, dihedral, plane, sphere, surface, linear, user };
const char* row_kind_name(RowKind kind);

class ConstraintSet final : public Problem {
 public:
  explicit ConstraintSet(int particles = 0) : particles_(particles) {}

  /// These functions return the row's index. @throws ValueError for a particle out of range or named twice, a length
  /// that is not positive, a value that is not finite.
  int add_distance(int i, int j, double length);
  /// The angle i-j-k at j [rad], 0 < angle < π.
  int add_angle(int i, int j, int k, double angle);
  /// The torsion i-j-k-l [rad], IUPAC sign, π at trans.
  int add_dihedral(int i, int j, int k, int l, double angle);
  /// Keeps particle i in the plane through `point`. @param normal of any length but zero  @param length the row's scale
  int add_plane(int i, const Vec3d& point, const Vec3d& normal, double length);
  int add_sphere(int i, const Vec3d& centre, double radius);
  int add_surface(int i, RowFunction function, double scale);
  /// Σ coefficient_a · x_a = value. @param length of the row's scale, see the table above
  int add_linear(std::vector<int> particles, std::vector<Vec3d> coefficients, double value, double length);
  /// Three rows that keep the centre of the given masses [particles] at `centre`. Returns the index of the first.
  int add_centre_of_mass(std::span<const double> mass, const Vec3d& centre, double length);
  int add_user(std::vector<int> particles, RowFunction function, double scale, std::string name);
  /// Removes rows; the others keep their order.  @throws ValueError for a row that does not exist
  void remove(std::span<const int> rows);

  int particles() const { return particles_; }
  RowKind kind(int row) const { return rows_[row].kind; }
  std::span<const int> row_particles(int row) const { return rows_[row].particles; }
  /// A distance, an angle, a radius, or a linear row's value.
  double value(int row) const { return rows_[row].value; }
  /// v += factor M^-1 J(x)ᵀ multiplier.
  /// @param x, v [3 particles]  @param multiplier [nrow]  @param inverse_mass [particles]
  void add_impulses(std::span<const double> x, std::span<const double> multiplier, double factor,
                    std::span<const double> inverse_mass, std::span<double> v) const;
  /// The contribution of one distance row. add_impulses() applies the rows in the order of impulse_row().
  void add_distance_impulse(int row, std::span<const double> x, std::span<const double> multiplier, double factor,
                            std::span<const double> inverse_mass, std::span<double> v) const;
  /// Alternates between the two halves of the set. Neighbouring rows of a chain share a particle, so their sums depend
  /// on each other; rows half the set apart are independent.
  int impulse_row(int turn) const { return turn / 2 + (turn % 2 != 0 ? (nrow() + 1) / 2 : 0); }
  /// The row's line in the user's file, for messages; 0 if unknown.
  void set_line(int row, int line) { rows_[row].line = line; }

  int nx() const override { return 3 * particles_; }
  int nv() const override { return 3 * particles_; }
  const RowPattern& pattern() const override { return pattern_; }
  double evaluate_row(int row, std::span<const double> x, std::span<double> gradient) const override;
  double scale(int row) const override { return rows_[row].scale; }
  double rounding_floor(int row, std::span<const double> x) const override;
  std::string describe(int row) const override;
  double curvature(int row) const override;

 private:
  struct Row {
    RowKind kind;
    std::vector<int> particles;
    double value = 0, scale = 1;
    std::vector<Vec3d> vectors = {};  // plane: point, normal; sphere: centre; linear: coefficients
    RowFunction function = {};
    std::string name = {};
    int line = 0;
  };
  int add(Row row);
  void append(const Row& row);

  int particles_ = 0;
  std::vector<Row> rows_;
  std::vector<std::array<int, 2>> ends_;  // [nrow] particles of distances, -1 for other rows
  RowPattern pattern_;
};

/// The torsion angle i-j-k-l in (-π, π] [rad].  @param gradient out: [12], or empty
double torsion_angle(std::span<const double, 12> x, std::span<double> gradient);
/// The angle i-j-k in [0, π] [rad].  @param gradient out: [9], or empty
double bond_angle(std::span<const double, 9> x, std::span<double> gradient);

}  // namespace tarsus
