// The kernels of src/control; see tarsus/math/kernels.hpp.
#pragma once

#include "tarsus/control/clip_piece.hpp"
#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// Drives of one step as kernels see them: gains by DoF, common to all worlds; kp null: no drives.
template <class R>
struct DriveView {
  const R* kp;
  const R* kd;
  bool plain;
  R dt;
  const R* kp_scale = nullptr;  ///< [nv][lane] factors of each world; null: 1
  const R* kd_scale = nullptr;
};

/// Force limits as kernels see them, all [nv]; see limited.inl.
template <class R>
struct LimitView {
  const R* low;
  const R* high;
  const R* inverse_size;  ///< 1 / largest limit, 0 without a limit
  R tolerance;            ///< on the residual, relative to the limit
  int max_iterations;
  R spin_damping;            ///< Drives::spin_damping
  bool rotations;            ///< the rotation of some ball or free joint has a limit
  const R* scale = nullptr;  ///< [nv][lane] factors of each world on low and high; null: 1
};

/// Memory of limited_maba() for one pack: arrays of [nv][lane] each, and its report.
template <class R>
struct LimitSpace {
  R* demand;  ///< the unclamped force of the last solve, with which the next one starts
  R *free_force, *free_inertia, *drive_force, *drive_inertia;  ///< Q and K without drives, and of the drives
  R *Q, *K, *rank_one;                                         ///< of the current active set
  R *gradient, *direction, *image;
  R* composite;   ///< [12 nlink][lane] composite inertias, largest squared spins (absolute, relative to the root)
  R* applied;     ///< the drives' force
  R* iterations;  ///< [lane] number of solves
  R* residual;    ///< [lane]
};

/// A bound clip as kernels see it.
template <class R>
struct ClipView {
  int nq, nv, npiece, row;    ///< row: numbers per segment
  const R* rest;              ///< [nq] of coordinates that the clip does not drive
  const ClipPiece<R>* piece;  ///< [npiece]
  const ClipCycle<R>* cycle;
};

#define TARSUS_CONTROL_KERNELS(KERNEL, SCALAR_KERNEL)                                                             \
  KERNEL(void, drive_terms,                                                                                       \
         (const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,                \
          const R* target_velocity, const R* tau, R* Q, R* K),                                                    \
         drive_terms_kernel<T>)                                                                                   \
  KERNEL(void, drive_force,                                                                                       \
         (const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,                \
          const R* target_velocity, const R* qacc, R* force),                                                     \
         drive_force_kernel<T>)                                                                                   \
  KERNEL(void, limited_maba,                                                                                      \
         (const ModelView<R>&, const DriveView<R>&, const LimitView<R>&, const LimitSpace<R>&, void* state,       \
          const R* qpos, const R* qvel, const R* target, const R* target_velocity, const R* tau, R* qacc),        \
         limited_maba_kernel<T>)                                                                                  \
  KERNEL(void, clip_pose,                                                                                         \
         (const ClipView<R>&, const R* const* rows, const R* u, const R* rate, const R* count, R* space, R* qpos, \
          R* qvel),                                                                                               \
         clip_pose_kernel<T>)

template <class R>
struct ControlTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_CONTROL_KERNELS)
};

template <class R>
const ControlTable<R>& control_table(int width) {
  return kernels<ControlTable<R>>(width);
}

}  // namespace tarsus
