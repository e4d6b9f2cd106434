// The kernels of this room as function pointers; see dynamics/kernel_table.hpp.
#pragma once

#include "control/branch_view.hpp"
#include "tarsus/math/isa.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// Drives of one step as kernels see them: gains by DoF, shared by all worlds; kp null: no drives.
template <class R>
struct DriveView {
  const R* kp;
  const R* kd;
  bool stiff;
  R dt;
};

/// Force limits as kernels see them, all [nv]; see limited.inl.
template <class R>
struct LimitView {
  const R* low;
  const R* high;
  const R* inverse_size;  ///< 1 / largest limit, 0 where there is none
  R tolerance;            ///< on the residual, relative to the limit
  int max_rounds;
  R spin_damping;  ///< Drives::spin_damping
  bool rotations;  ///< some ball or free joint's rotation has a limit
};

/// Where limited_maba() keeps one pack's numbers: arrays of the pack's [nv][lane] each, and what it reports.
template <class R>
struct LimitSpace {
  R* demand;  ///< the unclamped force of the last solve: the next one's first guess
  R *free_force, *free_inertia, *drive_force, *drive_inertia;  ///< Q and K without and of the drives
  R *Q, *K, *rank_one;                                         ///< of the piece in use
  R *gradient, *direction, *image;
  R* composite;  ///< [12 nlink][lane] subtrees' inertias and largest squared spins, absolute and relative to the root
  R* applied;    ///< the drives' force
  R* rounds;     ///< [lane] solves done
  R* residual;   ///< [lane]
};

template <class R>
struct ControlTable {
  void (*drive_terms)(const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,
                      const R* target_velocity, const R* tau, R* Q, R* K);
  void (*drive_force)(const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,
                      const R* target_velocity, const R* qacc, R* force);
  void (*limited_maba)(const ModelView<R>&, const DriveView<R>&, const LimitView<R>&, const LimitSpace<R>&, void* state,
                       const R* qpos, const R* qvel, const R* target, const R* target_velocity, const R* tau, R* qacc);
  // Baselines: scalar kernels only.
  void (*crba_rows)(const ModelView<R>&, void* state, const BranchView&, const R* qpos, R* rows);
  void (*branch_factor)(const BranchView&, R* rows);
  void (*branch_solve)(const BranchView&, const R* rows, R* x);
  void (*branch_multiply)(const BranchView&, const R* rows, const R* x, R* y);
  void (*branch_expand)(const BranchView&, const R* rows, R* dense);
};

template <class R>
const ControlTable<R>& control_table(int width);

namespace isa_baseline {
ControlTable<double> control_double(bool wide);
ControlTable<float> control_float(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
ControlTable<double> control_double(bool wide);
ControlTable<float> control_float(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
ControlTable<double> control_double(bool wide);
ControlTable<float> control_float(bool wide);
}  // namespace isa_avx512

}  // namespace tarsus
