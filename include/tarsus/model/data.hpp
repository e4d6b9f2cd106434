// Data: the changing state of a simulation of one world, or of many worlds in SIMD lanes.
//
// Layout: worlds are grouped into packs of width() lanes (1 for a single world). Every array of a batch is
// [pack][index][lane]: the numbers of one pack are contiguous, and the lane is the fastest index. The arrays of a
// single world are therefore plain [index]. Lanes beyond the last world repeat world 0's initial state and are never
// read back.
#pragma once

#include <cstring>
#include <span>

#include "tarsus/base/aligned.hpp"
#include "tarsus/math/cpu.hpp"
#include "tarsus/model/link_state.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/model/world_table.hpp"

namespace tarsus {

/// Index of the number i of a world in an array of this layout with n numbers per world.
inline std::size_t batch_index(int width, int n, int i, int world) {
  return (std::size_t(world / width) * n + i) * width + world % width;
}

template <class R>
class BasicData {
 public:
  /// Allocates `worlds` worlds of the model, all at its qpos0 and at rest.
  /// @throws ValueError if worlds < 1
  explicit BasicData(const Model& model, int worlds = 1);

  double time = 0;               ///< [s], common to all worlds
  AlignedVector<R> qpos;         ///< [pack][nq][lane] generalized positions, MuJoCo's layout
  AlignedVector<R> qvel;         ///< [pack][nv][lane] generalized velocities
  AlignedVector<R> qacc;         ///< [pack][nv][lane], output of aba() and step()
  AlignedVector<R> tau;          ///< [pack][nv][lane] applied joint forces, set by the user
  AlignedVector<R> ctrl;         ///< [pack][nu][lane] controls of the model's actuators, set by the user
  AlignedVector<R> act;          ///< [pack][na][lane] activations of the actuators, updated by step()
  AlignedVector<R> mocap_pos;    ///< [pack][3 nmocap][lane] positions of mocap bodies, set by the user [m]
  AlignedVector<R> mocap_quat;   ///< [pack][4 nmocap][lane] their orientations (w x y z), of any length
  AlignedVector<R> joint_force;  ///< [pack][nv][lane] Q of MABA: tau + drives + springs, by drive_terms()
  AlignedVector<R>
      joint_inertia;  ///< [pack][nv][lane] K of MABA: armature + h Kd + …, by drive_terms(); armature at first

  /// [pack] parameters of the worlds that replace the model's; null: none. Owned by the caller.
  const WorldTable<R>* own = nullptr;
  /// The model as seen by the kernels for a pack, with the pack's own parameters.
  ModelView<R> view(const Model& model, int pack) const;

  int worlds() const { return worlds_; }
  int width() const { return width_; }
  int packs() const { return packs_; }
  int nlink() const { return nlink_; }
  int nq() const { return nq_; }
  int nv() const { return nv_; }
  int nu() const { return nu_; }
  int na() const { return na_; }
  int nmocap() const { return nmocap_; }
  /// Length of an array with n numbers per world: n * packs * width.
  std::size_t size(int n) const { return std::size_t(n) * packs_ * width_; }

  /// Copies one world's n numbers from or to an array of this layout with n numbers per world.
  /// @param batch [size(n)]  @param world 0 to worlds() - 1, or a lane that pads the last pack  @param out, in [n]
  /// @throws ShapeError, ValueError
  void get(std::span<const R> batch, int n, int world, std::span<R> out) const;
  void set(std::span<R> batch, int n, int world, std::span<const R> in) const;

  /// Workspace of one pack for kernels: LinkState<T>[nlink], where T is the scalar or pack type of this Data.
  void* state(int pack) { return state_.data() + pack * state_stride_; }
  const void* state(int pack) const { return state_.data() + pack * state_stride_; }

  /// Writes mocap_pos and mocap_quat to the workspace, LinkState[nlink + k] for mocap body k: at rest, with the world's
  /// acceleration -g. kinematics() and step() call it.
  void place_mocap(const Model& model);
  /// Copies the mocap states of a pack of `from`, of the same model and width, to the workspace of pack 0.
  void share_mocap(const BasicData& from, int pack);

  /// Workspace of a single world, for code outside the kernels. Requires width() == 1.
  LinkState<R>* links() { return static_cast<LinkState<R>*>(state(0)); }
  const LinkState<R>* links() const { return static_cast<const LinkState<R>*>(state(0)); }

 private:
  int worlds_, width_, packs_, nlink_, nq_, nv_, nu_, na_, nmocap_;
  std::size_t state_stride_;
  AlignedVector<R> state_;
};

using Data = BasicData<double>;
using DataFloat = BasicData<float>;

extern template class BasicData<double>;
extern template class BasicData<float>;

}  // namespace tarsus
