// The kernels of this room as function pointers; see dynamics/kernel_table.hpp.
#pragma once

#include "constraint/equality_view.hpp"
#include "constraint/limbs_view.hpp"
#include "tarsus/math/isa.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

template <class R>
struct ConstraintTable {
  /// ABA's passes 1 and 2, origins too: factors, u, velocities and velocity-product accelerations.
  void (*prepare)(const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K);
  /// The same but for the root's factor; u = L⁻¹ y of the other links. limbs.inl
  void (*prepare_limbs)(const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K, R* u);
  void (*limbs)(const ModelView<R>&, void* state, const LimbsView<R>&, const LimbLimits<R>&, const R* Q, const R* K,
                const R* target, const R* sigma, R* u, R* x2, R* qacc, R* quality);
  void (*restore)(const ModelView<R>&, void* state, const R* Q, const R* K);
  /// prepare() at rest and without gravity, u = L⁻¹ y, in two halves: poses and rigid inertias; then pass 2 on whatever
  /// the inertias have become.
  void (*pose)(const ModelView<R>&, void* state, const R* qpos);
  void (*reduce)(const ModelView<R>&, void* state, const R* y, const R* K);
  void (*equalities)(const ModelView<R>&, const void* state, const EqualityList<R>&, const RowTarget<R>*, const R* qpos,
                     const R* qvel, R* phi, R* rate, R* bias);
  // solver/ldl.inl
  bool (*ldl_load)(int m, int ld, R* A, const R* sigma, const R* b, R nothing, R share, R* scale);
  void (*ldl)(int m, int ld, R* A, R* inverse, const R* scale, R* least);
  void (*ldl_forward)(int m, int ld, R* A, const R* inverse, R* b);
  void (*ldl_back)(int m, int ld, const R* A, const R* inverse, const R* scale, R limit, R* x, R* trust);
  // efpa.inl; scalar worlds only.
  void (*climb_chain)(const ModelView<R>&, const void* state, int tip, const R* force, const R* entries, int count,
                      int nrow, int stride, R* records);
  void (*omega_times)(const R* omega, const R* f, int nrow, int stride, R* out);
  void (*omega)(const ModelView<R>&, const void* state, int link, const R* parent, R* omega);
};

template <class R>
const ConstraintTable<R>& constraint_table(int width);

namespace isa_baseline {
ConstraintTable<double> constraint_double(bool wide);
ConstraintTable<float> constraint_float(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
ConstraintTable<double> constraint_double(bool wide);
ConstraintTable<float> constraint_float(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
ConstraintTable<double> constraint_double(bool wide);
ConstraintTable<float> constraint_float(bool wide);
}  // namespace isa_avx512

}  // namespace tarsus
