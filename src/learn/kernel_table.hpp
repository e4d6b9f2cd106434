// The kernels of src/learn: targets, errors and observations of motion tracking; see tarsus/math/kernels.hpp.
#pragma once

#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// A MotionTask as kernels see it. Vectors are in the frames of the links.
template <class R>
struct MotionView {
  struct Body {
    int link;
    R x_axis[3], z_axis[3], origin[3], com[3];
    R mass;  ///< fraction of the total mass
  };
  struct Point {
    int link;
    R position[3];
  };
  int nbody, npoint;
  const Body* body;
  const Point* point;
  const R* joint_weight;  ///< [nlink]
  const R* scale;         ///< [kMotionTerms] of the errors
  const R* weight;        ///< [kMotionTerms] of the terms
  bool mimickit;
};

inline constexpr int kMotionTerms = 5;
/// Output of motion_score: the terms, the reward, the squared angle between the root and the clip's, and the squared
/// distance of the body farthest from its place.
enum MotionScore { kMotionReward = kMotionTerms, kMotionTilt, kMotionDistance, kMotionScores };

// `ours` and `theirs` are LinkState<T>[nlink] of the character and of the clip, after kinematics().
#define TARSUS_LEARN_KERNELS(KERNEL, SCALAR_KERNEL)                                                             \
  KERNEL(void, motion_targets, (const ModelView<R>&, const R* qpos, const R* clip, const R* action, R* target), \
         motion_targets_kernel<T>)                                                                              \
  KERNEL(void, motion_score,                                                                                    \
         (const ModelView<R>&, const MotionView<R>&, const void* ours, const void* theirs, const R* qpos,       \
          const R* qvel, const R* clip_qpos, const R* clip_qvel, R* out),                                       \
         motion_score_kernel<T>)                                                                                \
  KERNEL(void, motion_observe, (const MotionView<R>&, const void* ours, const R* qpos, R* out),                 \
         motion_observe_kernel<T>)                                                                              \
  KERNEL(void, largest_force, (const R* force, int n, bool first, R* largest), largest_force_kernel<T>)

template <class R>
struct LearnTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_LEARN_KERNELS)
};

template <class R>
const LearnTable<R>& learn_table(int width) {
  return kernels<LearnTable<R>>(width);
}

}  // namespace tarsus
