// RowStage for packs of worlds: contacts, joint limits, dry friction, drives with force limits and equality constraints
// act on the velocities of all worlds of a pack at once; see constraint/lane_terms.hpp.
#pragma once

#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/constraint/lane_terms.hpp"
#include "tarsus/sim/row_stage.hpp"

namespace tarsus {

/// Why these drives' force limits cannot be kept in lanes beside rows; empty if they can.
std::string limits_refusal(const Model& model, const Drives& drives);

/// Keeps scratch and warm starts; not for use by two threads at once.
template <class R>
class LaneStage {
 public:
  /// Why a step of these options cannot be taken in lanes; empty if it can.
  static std::string refusal(const Model& model, const RowStageOptions& options);

  /// @param equalities null: none  @param slots of force rows
  /// @throws ValueError as RowStageOptions::check(), and with refusal(); InputError as ContactGeometry
  LaneStage(const Model& model, const BasicData<R>& data, const EqualitySet* equalities,
            std::span<const ForceSlot> slots, const RowStageOptions& options);

  /// The velocity at the end of a step under data's joint_force and joint_inertia, for every pack. data, `found` and in
  /// `velocity` qvel + h qacc are as VelocityProducts::begin_step() leaves them.
  /// @param loops null: none; else they are evaluated, and told what they carried  @param loop_step of accelerate()
  /// @throws ValueError if drives have what limits_refusal() names
  void solve(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives, ConstrainedDynamics<R>* loops,
             double loop_step, In<R> found, Out<R> velocity);

  const RowsReport& report(int world) const { return reports_[world]; }
  /// What that world's last step was when it took it by itself. @param ground_force as ground_force() gives it
  void put(int world, const RowsReport& report, In<R> ground_force);
  /// Forces of the drives with a limit over the last step [pack][nv][lane], zero elsewhere.
  In<R> limited_force() const { return terms_.drive_force(); }
  /// Force on each link by what is fixed to the world over the last step, world axes [nlink][3] [N].
  void ground_force(int world, Out<R> out) const;
  In<R> ground_forces() const { return terms_.ground_force(); }  ///< of all, [pack][nlink][3][lane]

  LaneTerms<R>& terms() { return terms_; }
  const LaneTerms<R>& terms() const { return terms_; }
  const ContactGeometry* geometry() const { return geometry_.get(); }

 private:
  void take_drives(const DriveStep<R>& step, const SplitDrives& drives);

  const Model& model_;
  int width_;
  RowStageOptions options_;
  std::shared_ptr<const ContactGeometry> geometry_;  ///< null: no contacts
  LaneTerms<R> terms_;
  LimitedDrives<R> limited_;
  std::vector<RowsReport> reports_;  ///< [world]
  AlignedVector<R> push_, zero_, held_;
};

extern template class LaneStage<double>;
extern template class LaneStage<float>;

}  // namespace tarsus
