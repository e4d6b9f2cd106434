// The kernels of src/constraint; see tarsus/math/kernels.hpp.
#pragma once

#include "constraint/branches_view.hpp"
#include "constraint/equality_view.hpp"
#include "constraint/lane_view.hpp"
#include "constraint/resting_link.hpp"
#include "tarsus/constraint/capsules.hpp"
#include "tarsus/constraint/contact_place.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/coupled_place.hpp"
#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"
#include "tarsus/solver/term.hpp"

// prepare: ABA's passes 1 and 2, origins too: factors, u, velocities and velocity-product accelerations.
// place: pass 1 and origins only.
// bias_accelerations: carried_bodies.inl
// prepare_branches: prepare() without the root's factor; u = L⁻¹ y of the other links. branches.inl
// pose, reduce: prepare() at rest and without gravity, with u = L⁻¹ y, in two parts: poses and rigid inertias;
//   then pass 2 on the inertias as they are by then.
// lane_*: terms of a step for up to kTogether packs; packs only. lane_newton.inl
// ldl*: solver/ldl.inl.
// reference: reference_mass.inl
// resting_links: hanging_rest.inl
// contact_*: contacts of one world in SIMD lanes. contact_packs.inl
// plane_touches, capsules_near: capsules in SIMD lanes. capsules.inl
#define TARSUS_CONSTRAINT_KERNELS(KERNEL, SCALAR_KERNEL)                                                               \
  KERNEL(void, prepare, (const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K),      \
         prepare_kernel<T>)                                                                                            \
  KERNEL(void, place, (const ModelView<R>&, void* state, const R* qpos, const R* qvel), place_kernel<T>)               \
  KERNEL(bool, bias_accelerations, (const ModelView<R>&, const void* state, R h, const R* qvel, R* out),               \
         bias_accelerations_kernel<T>)                                                                                 \
  KERNEL(void, prepare_branches,                                                                                       \
         (const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K, R* u),               \
         prepare_branches_kernel<T>)                                                                                   \
  KERNEL(void, branches,                                                                                               \
         (const ModelView<R>&, void* state, const BranchesView<R>&, const R* Q, const R* K, const R* target,           \
          const R* sigma, R* u, R* x2, R* qacc, R* quality),                                                           \
         branches_kernel<T, P>)                                                                                        \
  KERNEL(void, reference, (const ModelView<R>&, const void* state, R* omega, R* numbers), reference_kernel<T>)         \
  KERNEL(void, pose, (const ModelView<R>&, void* state, const R* qpos), pose_kernel<T>)                                \
  KERNEL(void, reduce, (const ModelView<R>&, void* state, const R* y, const R* K), reduce_kernel<T>)                   \
  KERNEL(void, equalities,                                                                                             \
         (const ModelView<R>&, const void* state, const EqualityList<R>&, const RowTarget<R>*, const R* qpos,          \
          const R* qvel, R* phi, R* rate, R* bias),                                                                    \
         equalities_kernel<T>)                                                                                         \
  KERNEL(bool, geometric_inertia,                                                                                      \
         (const ModelView<R>&, void* state, const EqualityList<R>&, const R* x2, R h, const R* K, const R* qvel,       \
          const R* next, const HangingLink<R>* links, const HangingLink<R>* own, R* inertia),                          \
         geometric_inertia_kernel<T>)                                                                                  \
  KERNEL(bool, hanging_inertia,                                                                                        \
         (const ModelView<R>&, void* state, const HangingLink<R>* links, const HangingLink<R>* own, R h,               \
          const R* qpos, const R* qvel, R* inertia),                                                                   \
         hanging_inertia_kernel<T>)                                                                                    \
  KERNEL(void, resting_links,                                                                                          \
         (const ModelView<R>&, void* state, const std::uint8_t* may, const R* armature, const R* gravity, R* scratch,  \
          RestingLink<R>* links),                                                                                      \
         resting_links_kernel<T>)                                                                                      \
  KERNEL(                                                                                                              \
      void, linkage_angles,                                                                                            \
      (const ModelView<R>&, void* state, const int* linkage, int count, R h, const R* qpos, const R* qvel, R* angle),  \
      linkage_angles_kernel<T>)                                                                                        \
  KERNEL(void, linkage_energy,                                                                                         \
         (const ModelView<R>&, void* state, const int* linkage, int count, R h, const R* qpos, const R* qvel,          \
          const R* free, const R* next, const R* Q, const R* K, R* scratch, R* sums),                                  \
         linkage_energy_kernel<T>)                                                                                     \
  KERNEL(bool, ldl_load, (int m, int ld, R* A, const R* sigma, const R* b, R nothing, R share, R* scale),              \
         ldl_load_any<T, P>)                                                                                           \
  KERNEL(void, ldl, (int m, int ld, R* A, R* inverse, const R* scale, R* least), ldl_factor<T, P>)                     \
  KERNEL(void, ldl_forward, (int m, int ld, R* A, const R* inverse, R* b), ldl_forward_kernel<T>)                      \
  KERNEL(void, ldl_back, (int m, int ld, const R* A, const R* inverse, const R* scale, R limit, R* x, R* trust),       \
         ldl_solve<T, P>)                                                                                              \
  KERNEL(void, lane_sizes, (const LaneModel<R>&, LaneSizes*), lane_sizes<T>)                                           \
  KERNEL(void, lane_solve, (const LaneModel<R>&, const LaneStep<R>&, const LanePack<R>*, int packs, std::byte* work),  \
         lane_solve<T>)                                                                                                \
  SCALAR_KERNEL(void, contact_terms,                                                                                   \
                (const ContactNumbers&, const ContactPlace*, int count, const void* state, const ContactStep&,         \
                 ContactRows*, TermRow*, double* free, double* y),                                                     \
                contact_terms_kernel<T>)                                                                               \
  SCALAR_KERNEL(void, contact_blocks,                                                                                  \
                (const ContactRows*, const ContactPlace*, const CoupledPlace*, int count, const Tangent*,              \
                 const double* force, double* blocks, double* forces),                                                 \
                contact_blocks_kernel<T>)                                                                              \
  SCALAR_KERNEL(                                                                                                       \
      void, contact_stiffness,                                                                                         \
      (const ContactRows*, const ContactPlace*, int count, const Tangent*, const double* force, void* stiffnesses),    \
      contact_stiffness_kernel<T>)                                                                                     \
  SCALAR_KERNEL(void, contact_velocities,                                                                              \
                (const ContactRows*, const ContactPlace*, int count, const void* state, double* velocity),             \
                contact_velocities_kernel<T>)                                                                          \
  SCALAR_KERNEL(void, capsules_near,                                                                                   \
                (const CapsuleAround*, const CapsulePair*, int count, const void* state, unsigned char* near),         \
                capsules_near_kernel<T>)                                                                               \
  SCALAR_KERNEL(                                                                                                       \
      void, plane_touches,                                                                                             \
      (const CapsuleOnPlane*, const int* which, int count, const void* state, double h, double fall, CapsuleTouches*), \
      plane_touches_kernel<T>)

namespace tarsus {

template <class R>
struct ConstraintTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_CONSTRAINT_KERNELS)
};

template <class R>
const ConstraintTable<R>& constraint_table(int width) {
  return kernels<ConstraintTable<R>>(width);
}

}  // namespace tarsus
