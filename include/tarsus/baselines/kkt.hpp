// The KKT system of a tree with constraint rows, solved by several methods with one interface.
//
//   [ M̂   Jᵀ ] [ x₁ ]   [ y₁ ]
//   [ J   -Σ ] [ x₂ ] = [ y₂ ]       M̂ = M₀ + diag K,  Σ ⪰ 0 diagonal          [KKT notes; theory.md, section 3]
//
// n: DoFs, m: rows, d: depth.
//
// | method          | how Λ⁻¹ = J M̂⁻¹ Jᵀ, or x₂, is found                                 | cost                  |
// | sweeps          | m + 2 ABA sweeps over factors computed once, as in the notes         | O(nm + m³)            |
// | branches        | the rows' own inward passes, W = L⁻¹ Jᵀ; Λ⁻¹ = Wᵀ D⁻¹ W (delassus)   | O(n + m² d + m³)      |
// | efpa            | forces propagate to where branches meet, then the inverse inertia there | O(n + md + m² + m³) |
// | constrained_aba | rows between a link and the world enter its inertia as 1/μ F Fᵀ      | O(n + m) an iteration |
// | sparse          | sparse Cholesky of M̂ in the tree's order (no fill), Schur complement | O(n d² + m n d + m³)  |
// | dense           | dense Cholesky of M̂, Schur complement                                | O(n³ + n² m + m³)     |
//
// constrained_aba: rows between two links, rows between joints, and user-defined rows cannot enter a tree's inertia.
// They are solved by `branches` with the penalised factors, which costs O(m₂² d + m₂³) for m₂ such rows. The iterations
// work on the residuals of both block rows, so that they converge to rounding for any μ.
// [Featherstone 2008; Wensing and others 2012 and Featherstone 2010 for efpa; Carpentier and others 2021, Sathya and
// Carpentier 2024 for constrained_aba]
#pragma once

#include <memory>
#include <string_view>

#include "tarsus/constraint/constrained_dynamics.hpp"

namespace tarsus {

enum class KktMethod : int { automatic, sweeps, branches, efpa, constrained_aba, sparse, dense };
const char* name(KktMethod method);
/// All methods but automatic.
std::span<const KktMethod> kkt_methods();
/// The method of this name. @throws ValueError for an unknown name, listing the known ones
KktMethod kkt_method(std::string_view name);

struct KktReport {
  KktMethod method = KktMethod::automatic;  ///< the method used
  KktStatus status = KktStatus::solved;
  int rank = 0;  ///< rank of the rows, including Σ; of constrained_aba a bound, as it finds few dependent
  std::vector<int> dependent;  ///< rows that depend on others; constrained_aba: only those that it solves by branches
  double force_residual = 0;   ///< max |M̂ x₁ + Jᵀ x₂ - y₁| over the largest term in it
  double row_residual = 0;     ///< max |J x₁ - Σ x₂ - y₂| over the largest term in it
  int iterations = 0;          ///< iterations of constrained_aba, and of the refinement with dependent rows
};

/// The system of one world.
struct KktInput {
  Data& data;                             ///< workspace; its arrays are not changed
  DelassusRows<double>& rows;             ///< forces and joint entries for this qpos
  std::span<const double> qpos;           ///< [nq]
  std::span<const double> joint_inertia;  ///< K [nv]: the armature, plus Δt K_d of drives
  std::span<const double> sigma;          ///< Σ [m], or empty for 0
  std::span<const double> y1, y2;         ///< [nv], [m]
};

/// Keeps scratch between calls.
class KktSolver {
 public:
  explicit KktSolver(const Model& model);
  ~KktSolver();

  /// Solves for x₁ [nv] and x₂ [m]. automatic takes the method with the least cost for n, m, d (see choose()).
  /// @throws ShapeError; ValueError for a batch; no exception for numerical reasons (see KktReport::status)
  KktReport solve(KktMethod method, const KktInput& in, Out<double> x1, Out<double> x2);
  /// The same without residuals, for benchmarks.
  KktReport solve_only(KktMethod method, const KktInput& in, Out<double> x1, Out<double> x2);
  /// The method that automatic takes for these rows.
  KktMethod choose(DelassusRows<double>& rows) const;
  /// r₁ = y₁ - M̂ x₁ - Jᵀ x₂, r₂ = J x₁ - Σ x₂ - y₂, in O(n + m) for rows on links. The workspace must hold the poses.
  void residuals(const KktInput& in, In<double> x1, In<double> x2, Out<double> r1, Out<double> r2);

 private:
  struct Scratch;
  struct Efpa;
  struct ConstrainedAba;
  void finish(const KktInput& in, KktReport& report, bool matrix_in_place);
  void by_sweeps(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);
  void by_branches(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);
  void by_efpa(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);
  void by_constrained_aba(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);
  void by_sparse(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);
  void by_dense(const KktInput& in, KktReport& report, Out<double> x1, Out<double> x2);

  const Model& model_;
  std::unique_ptr<Scratch> s_;
};

}  // namespace tarsus
