// RowStage for packs of worlds in SIMD lanes: contacts, joint limits, dry friction, drives with force limits and
// equality constraints act on the velocities of all worlds of a pack at once. See constraint/lane_terms.hpp.
#pragma once

#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/constraint/lane_terms.hpp"
#include "tarsus/sim/row_stage.hpp"

namespace tarsus {

/// Reason why the force limits of these drives cannot be solved in SIMD lanes together with rows; empty if they can.
std::string limits_refusal(const Model& model, const Drives& drives);

/// Keeps scratch memory and warm starts. Not for use by two threads at once.
template <class R>
class LaneStage {
 public:
  /// Reason why a step with these options cannot be taken in SIMD lanes; empty if it can.
  static std::string refusal(const Model& model, const RowStageOptions& options);

  /// @param equalities null: none  @param slots of force rows  @param spins as for LaneTerms
  /// @throws ValueError as RowStageOptions::check(), and with the text of refusal(); InputError as ContactGeometry
  LaneStage(const Model& model, const BasicData<R>& data, const EqualitySet* equalities,
            std::span<const ForceSlot> slots, std::span<const std::uint8_t> spins, const RowStageOptions& options);

  /// Computes the velocity at the end of a step for every pack, under data's joint_force and joint_inertia. On entry
  /// data and `found` are as VelocityProducts::begin_step() leaves them, and `velocity` is qvel + h qacc.
  /// @param loops null: none; otherwise they are evaluated and receive the forces that they carried
  /// @param loop_step the argument of ConstrainedDynamics::accelerate()  @param responds as for LaneTerms::solve()
  /// @throws ValueError if limits_refusal() refuses the drives
  void solve(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives, ConstrainedDynamics<R>* loops,
             double loop_step, In<R> found, bool responds, Out<R> velocity);

  const RowsReport& report(int world) const { return reports_[world]; }
  /// Stores the results of a world whose last step the scalar path took.
  /// @param ground_force as returned by ground_force()
  void put(int world, const RowsReport& report, In<R> ground_force);
  /// Forces over the last step of the drives with a force limit, zero for other DoFs. [pack][nv][lane]
  In<R> limited_force() const { return terms_.drive_force(); }
  /// Force exerted on each link over the last step by everything fixed to the world, world axes [nlink][3] [N].
  void ground_force(int world, Out<R> out) const;
  In<R> ground_forces() const { return terms_.ground_force(); }  ///< of all worlds, [pack][nlink][3][lane]

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
