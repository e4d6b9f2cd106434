// Both constraint stages of an open chain: local arrays for the kernels of path_kernel.inl, and the decision when to
// factorise again.
#pragma once

#include <span>
#include <vector>

#include "particles/kernels.hpp"
#include "tarsus/base/aligned.hpp"
#include "tarsus/particles/constraint_set.hpp"
#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

inline constexpr double kSingular = 1e-13;  ///< a matrix is singular if a pivot is smaller, relative to its diagonal

class PathStage {
 public:
  /// particles [m + 1] in order along the chain, rows [m] between them. The first or last particle may be pinned.
  PathStage(const ConstraintSet& set, std::span<const double> inverse_mass, std::vector<int> particles,
            std::vector<int> rows);
  int bonds() const { return static_cast<int>(rows_.size()); }

  /// x (in: x', out: solution) and multiplier are those of the whole system.
  SolveReport positions(const ParticleKernels& kernels, std::span<const double> x0, std::span<double> x,
                        std::span<double> multiplier, const SolveOptions& options);
  SolveReport velocities(const ParticleKernels& kernels, std::span<const double> x, std::span<double> v,
                         std::span<double> multiplier, const SolveOptions& options);

 private:
  void gather(const ParticleKernels& kernels, std::span<const double> from);
  void scatter(const ParticleKernels& kernels, std::span<double> to) const;
  bool load_base(const ParticleKernels& kernels, std::span<const double> x0);
  void add_delta(double sign);
  int worst_bond() const;
  int bond_with(double largest) const;
  double rounding_floor(int bond) const;

  std::vector<int> particles_, rows_;
  AlignedVector<double> storage_;
  PathArgs args_;
  double* total_;            // λ̃ so far
  bool consecutive_ = true;  // particle indices increase by one along the chain
  bool factored_ = false;    // the symmetric factor at the bonds g is valid
  double pivot_ratio_ = 1;
};

}  // namespace tarsus
