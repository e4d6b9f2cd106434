// Stable PD by all usual methods with one interface, so that they can be checked and timed against each other.
//
// All methods solve (M + Δt K_d) q̈ = Q - C [Yin 2020, eq. 7] and differ in the use of q̈. The paper's baselines
// compute the joint force τ from q̈ (eq. 6) and pass it to a simulator that runs ABA. The embedded MABA uses its q̈
// directly. The `_direct` methods are the paper's baselines without that second solve: the least work of a simulator
// that factorises.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <span>

#include "tarsus/control/drive.hpp"

namespace tarsus {

enum class SpdSolver {
  dense,            ///< DF: CRBA, Eigen's LLᵀ of the n x n matrix, then τ, then ABA. O(n³)
  sparse,           ///< SF: CRBA in packed rows, Featherstone's branch-induced LᵀL, then τ, then ABA. O(n d²)
  pcg,              ///< conjugate gradients with Jacobi's preconditioner on the packed rows, then τ, then ABA
  maba_standalone,  ///< MABA, then τ, then ABA, as for another simulator. O(n)
  maba,             ///< MABA embedded: its q̈ is the simulator's. O(n)
  dense_direct,     ///< DF without ABA
  sparse_direct,    ///< SF without ABA
};

/// Scratch of the methods for one model. Two threads must not use it at once.
template <class R>
class SpdWorkspace {
 public:
  explicit SpdWorkspace(const Model& model);
  ~SpdWorkspace();
  SpdWorkspace(SpdWorkspace&&) noexcept;

  /// Conjugate gradients stop when |residual| <= tolerance |right side|. Default: the rounding unit, as in Eigen.
  R pcg_tolerance = std::numeric_limits<R>::epsilon();
  int pcg_max_iterations;  ///< default 2 nv, as in Eigen
  int pcg_iterations = 0;  ///< iterations of the last solve

  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// One step's state and targets, as drive_terms() takes them: qpos and qpos_target [nq], the others [nv], dt [s].
/// Single world.
template <class R>
struct SpdInput {
  std::span<const R> qpos, qvel, qpos_target, qvel_target, tau;
  double dt = 0;
};

/// @param qacc [nv] acceleration
/// @param joint_force [nv] τ + drives + springs over the step, or empty. Embedded and direct methods compute it only if
///   it is not empty.
/// @throws ShapeError, ValueError for a batch
template <class R>
using SpdFunction = void(const Model& model, BasicData<R>& data, const Drives& drives, const SpdInput<R>& input,
                         SpdWorkspace<R>& workspace, Out<R> qacc, Out<R> joint_force);

template <class R>
struct SpdMethod {
  SpdSolver solver;
  const char* name;   ///< as in the enum
  const char* label;  ///< for tables: "DF", "SF", "PCG", …
  SpdFunction<R>* solve;
};

/// All methods, in the enum's order.
template <class R>
std::span<const SpdMethod<R>> spd_methods();

template <class R>
const SpdMethod<R>& spd_method(SpdSolver solver) {
  return spd_methods<R>()[static_cast<std::size_t>(solver)];
}

/// Drives as a controller outside the simulation. The controller computes q̈ by `method` without contacts, then the
/// drives' force for this q̈ (eq. 6), clamped to the force limits. The simulation adds the model's springs and dampers.
/// @param dt step of the simulation [s]
/// @return a function that writes tau [nv] for a state and targets [nq]; for one thread; keeps a reference to the model
template <class R>
std::function<void(In<R> qpos, In<R> qvel, In<R> qpos_target, Out<R> tau)> spd_law(const Model& model, Drives drives,
                                                                                   double dt, SpdSolver method);

}  // namespace tarsus
