// The kernels of src/dynamics: one table for each real type, instruction set and width (tarsus/math/kernels.hpp).
#pragma once

#include <cstdint>

#include "dynamics/elimination.hpp"
#include "tarsus/dynamics/dense_term.hpp"
#include "tarsus/dynamics/link_rows.hpp"
#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"

// Arrays are those of one pack: [n][lane]. `state` is LinkState<T>[nlink], `stiffnesses` LinkStiffness<T>[], `links`
// VelocityProductLink<T>[nlink].
#define TARSUS_DYNAMICS_KERNELS(KERNEL, SCALAR_KERNEL)                                                                 \
  KERNEL(void, kinematics, (const ModelView<R>&, void* state, const R* qpos, const R* qvel), kinematics_kernel<T>)     \
  KERNEL(void, jacobian, (const ModelView<R>&, const void* state, int link, const R* point, R* J), jacobian_kernel<T>) \
  KERNEL(void, rnea,                                                                                                   \
         (const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* qacc, const R* external, R* tau),   \
         rnea_kernel<T>)                                                                                               \
  KERNEL(void, crba, (const ModelView<R>&, void* state, const R* qpos, R* M), crba_kernel<T>)                          \
  KERNEL(void, aba,                                                                                                    \
         (const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K, const R* external,   \
          R* qacc),                                                                                                    \
         aba_kernel<T>)                                                                                                \
  KERNEL(void, factor, (const ModelView<R>&, void* state, const R* qpos, const R* K), factor_kernel<T>)                \
  KERNEL(void, minv, (const ModelView<R>&, void* state, const R* y, R* x), minv_kernel<T>)                             \
  KERNEL(void, prepare_stiffened, (const ModelView<R>&, void* state), prepare_stiffened_kernel<T>)                     \
  KERNEL(void, prepare_step, (const ModelView<R>&, void* state, R h, void* bias), prepare_step_kernel<T>)              \
  SCALAR_KERNEL(void, solve_stiffened,                                                                                 \
                (const ModelView<R>&, void* state, const R* K, const R* Q, const void* bias,                           \
                 const int* stiffness_of_link, const void* stiffnesses, R* x),                                         \
                solve_stiffened_kernel<T>)                                                                             \
  SCALAR_KERNEL(void, solve_factored,                                                                                  \
                (const ModelView<R>&, void* state, const int* stiffness_of_link, const void* stiffnesses, R* x),       \
                solve_factored_kernel<T>)                                                                              \
  SCALAR_KERNEL(void, eliminate, (const Elimination<R>& e, R* blocks), eliminate_kernel<T>)                            \
  SCALAR_KERNEL(void, hand_on, (const CoupledJoint<R>& joint, const R* g, R* z, R* force), hand_on_kernel<T>)          \
  SCALAR_KERNEL(void, take_in, (const CoupledJoint<R>& joint, const R* motion, R* q), take_in_kernel<T>)               \
  SCALAR_KERNEL(void, solve_columns, (CoupledColumns<R> * steps, int count, char* reached, R* force, R* motion),       \
                solve_columns_kernel<T>)                                                                               \
  SCALAR_KERNEL(void, along_columns,                                                                                   \
                (const LinkArm* arms, const int* end, int rows, const R* motion, R* out, int stride),                  \
                along_columns_kernel<T>)                                                                               \
  SCALAR_KERNEL(void, dense_add,                                                                                       \
                (const DenseTermOf<R>* terms, int count, int ld, R* product, R* right, R* H, int H_ld),                \
                dense_add_kernel<T>)                                                                                   \
  SCALAR_KERNEL(void, dense_factor, (int n, int ld, R* A, R* L, R* inverse, int* pivot), dense_factor_kernel<T>)       \
  SCALAR_KERNEL(void, dense_solve, (int n, int ld, const R* A, const R* L, const R* inverse, const int* pivot, R* x),  \
                dense_solve_kernel<T>)                                                                                 \
  SCALAR_KERNEL(void, dense_solve_rows,                                                                                \
                (int n, int ld, const R* A, const R* L, const R* inverse, const int* pivot, int columns, R* X),        \
                dense_solve_rows_kernel<T>)                                                                            \
  SCALAR_KERNEL(void, dense_product,                                                                                   \
                (int rows, int inner, const int* places, int columns, const R* B, int row_step, int step, const R* X,  \
                 int ld, R* out, int out_ld),                                                                          \
                dense_product_kernel<T>)                                                                               \
  KERNEL(void, integrate, (const ModelView<R>&, const R* qpos, const R* qvel, R dt, R* out), integrate_kernel<T>)      \
  KERNEL(std::size_t, velocity_product_link_size, (), velocity_product_link_size<T>)                                   \
  KERNEL(void, velocity_products,                                                                                      \
         (const ModelView<R>&, void* state, void* links, const R* theta_h, const R* qpos, const R* qvel, const R* Q,   \
          const R* K, const R* external, const R* tangent, R* qacc),                                                   \
         velocity_products_kernel<T>)                                                                                  \
  KERNEL(bool, velocity_products_step,                                                                                 \
         (const ModelView<R>&, void* state, void* links, R h, bool always, const std::uint8_t* held, R* scratch,       \
          const R* qpos, const R* qvel, const R* Q, const R* K, const R* stiff, R* qacc),                              \
         velocity_products_step_kernel<T>)                                                                             \
  KERNEL(void, begin_step,                                                                                             \
         (const ModelView<R>&, void* state, void* links, R h, bool always, bool never, const std::uint8_t* held,       \
          R* scratch, const R* qpos, const R* qvel, const R* Q, const R* K, const R* stiff, R* qacc, R* found),        \
         begin_step_kernel<T>)                                                                                         \
  KERNEL(void, spin_response,                                                                                          \
         (const ModelView<R>&, void* state, void* links, const std::uint8_t* spins, R h, const R* qpos, const R* qvel, \
          R* free, const R* next, const R* K, const R* known, R* scratch, R* change, R* moved),                        \
         spin_response_kernel<T>)                                                                                      \
  KERNEL(void, leave_pose, (const ModelView<R>&, R h, const int* bodies, int count, const R* qpos, R* qvel),           \
         leave_pose_kernel<T>)                                                                                         \
  KERNEL(void, reach_pose,                                                                                             \
         (const ModelView<R>&, R h, const int* bodies, int count, const R* qpos, R* next_qpos, R* next_qvel),          \
         reach_pose_kernel<T>)                                                                                         \
  KERNEL(void, spread_acceleration, (const ModelView<R>&, void* state, const R* qacc), spread_acceleration<T>)         \
  KERNEL(void, to_lanes, (const R* const* rows, int n, R* out), rows_to_lanes<T>)                                      \
  KERNEL(void, to_rows, (const R* in, int n, R* const* rows), lanes_to_rows<T>)                                        \
  KERNEL(bool, within, (const R* x, std::size_t n, R limit), within_kernel<T>)

namespace tarsus {

template <class R>
struct KernelTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_DYNAMICS_KERNELS)
};

template <class R>
const KernelTable<R>& kernel_table(int width) {
  return kernels<KernelTable<R>>(width);
}

}  // namespace tarsus
