// The kernels of this room as function pointers; see dynamics/kernel_table.hpp.
#pragma once

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

template <class R>
struct ControlTable {
  void (*drive_terms)(const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,
                      const R* target_velocity, const R* tau, R* Q, R* K);
  void (*drive_force)(const ModelView<R>&, const DriveView<R>&, const R* qpos, const R* qvel, const R* target,
                      const R* target_velocity, const R* qacc, R* force);
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
