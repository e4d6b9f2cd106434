// The default solver of particle constraints: Newton with a direct factorisation chosen by the molecule's shape.
//
// Rows that share a movable particle form a component. Each component gets the cheapest exact factorisation:
//   one bond         closed form, in SIMD lanes
//   rigid triangle   3 x 3 Newton by cofactors, in SIMD lanes (water)
//   open chain       tridiagonal from both ends, O(n)
//   all else         solver/newton: sparse, leaf to root without fill on trees, minimum degree on rings and cages
// Angles, planes, linear rows and user-defined rows always take the last.
#pragma once

#include <memory>
#include <span>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/particles/constraint_set.hpp"
#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

/// Number of components on each path; chain_rows and general_rows count rows.
struct ParticleNewtonPlan {
  int bonds = 0, triangles = 0, chains = 0, chain_rows = 0, general_rows = 0;
};

class ParticleNewton final : public ConstraintSolver {
 public:
  /// Plans for this set and these inverse masses [particles]. The set must outlive the solver and not change.
  /// solve_…() must be called with the same set and masses. The team's threads share the bonds and triangles; the
  /// result has the same bits for every team size.
  ParticleNewton(const ConstraintSet& set, std::span<const double> inverse_mass, ThreadTeam* team = nullptr);
  ~ParticleNewton() override;
  std::string_view name() const override { return "newton"; }
  SolveReport solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                              std::span<double> x, std::span<double> multiplier, const SolveOptions& options) override;
  SolveReport solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               std::span<double> v, std::span<double> multiplier, const SolveOptions& options) override;
  ParticleNewtonPlan plan() const;

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// make_solver(), with the fast paths for "newton". "newton_general" is the solver without them. The set must outlive
/// the solver. @param inverse_mass [particles]  @throws ValueError for an unknown name, listing the known ones
std::unique_ptr<ConstraintSolver> make_particle_solver(std::string_view name, const ConstraintSet& set,
                                                       std::span<const double> inverse_mass,
                                                       ThreadTeam* team = nullptr);

}  // namespace tarsus
