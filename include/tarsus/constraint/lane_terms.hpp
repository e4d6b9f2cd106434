// The terms of a step for packs of worlds, a lane a world: contacts with the ground and between links, joint ranges,
// dry joint friction, drives with force limits, forces along generalised directions and equality constraints, solved by
// one Newton iteration that each lane goes through with its own steps. The laws and the numbers are those of StepTerms;
// a world's bits depend on that world alone.
//
// Not in lanes yet, and refused by name: friction that depends on the direction, dry friction and limited drives of
// free joints, and scenes with so many shapes that a broad phase finds their pairs.
#pragma once

#include <functional>
#include <string>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/force_row.hpp"

namespace tarsus {

/// Drives with force limits, as LaneTerms takes them: on one joint each.
template <class R>
struct LimitedDrives {
  std::vector<int> joints;
  std::vector<R> low, high;  ///< [joint of joints] N or N m; a ball has `high` alone, on the length of its torque
  std::vector<R> kp, kd;     ///< [nv], zero where no drive has a limit
  bool plain = false;
};

/// A contact of one world over a step, for sensors.
struct LaneTouched {
  int first, second;        ///< of ContactGeometry::shapes()
  Vec3d point, normal;      ///< world axes [m]; the normal from the second to the first
  double distance, margin;  ///< of the shapes; where forces begin
  Vec3d force, torque;      ///< on the first [N, N m]
};

/// How many packs of this width are best stepped at once: lanes that need many iterations then go on in one pack.
template <class R>
int packs_together(int width);

template <class R>
class LaneTerms {
 public:
  /// Why the terms of this model cannot be in lanes; empty if they can. geometry null: no contacts.
  static std::string refusal(const Model& model, const ContactGeometry* geometry, const TermOptions& options);

  /// Room for the packs of `data`, of more than one lane. geometry must outlive it; equalities null: none.
  /// @param slots of the force rows that there may be
  /// @throws ValueError with refusal()
  LaneTerms(const Model& model, const BasicData<R>& data, const ContactGeometry* geometry,
            const EqualitySet* equalities, std::span<const ForceSlot> slots, const TermOptions& options);
  ~LaneTerms();

  /// v⁺ in `velocity` [pack][nv][lane], over a step of h seconds from (qpos, qvel). data holds what
  /// VelocityProducts::begin_step() left, which is lost.
  /// @param joint_force, joint_inertia [pack][nv][lane] of maba()  @param push the limited drives' force were q̈ zero;
  /// empty: no drive has a limit  @param found [pack][lane] 1 where `velocity` comes in as v⁰, 0 where it is qvel
  void solve(BasicData<R>& data, double h, In<R> joint_force, In<R> joint_inertia, const LimitedDrives<R>* drives,
             In<R> push, In<R> found, Out<R> velocity);

  /// Equality constraints of a pack's next solve(): their directions as EqualitySet::evaluate() leaves them, and for
  /// each row the velocity J v⁺ and the compliance of its impulse [rows][lane].
  void hold(int pack, DelassusRows<R>& rows, In<R> target, In<R> compliance);
  /// Their impulses over the last step, of a pack [rows][lane].
  In<R> bilateral_impulse(int pack) const;
  /// A world's force rows in the next solve().
  void push(int world, std::span<const ForceRow> rows);
  /// Of what that world had in a slot over the last step [N s | N m s].
  double impulse(int world, int slot) const;
  /// What the last solve() left to the next step is taken back: that step is to be solved anew. After hold() alone.
  void rewind() { memory_.swap(before_); }

  /// StepTerms::turning_ranges() of all worlds [pack][nv][lane].
  void turning_ranges(const BasicData<R>& data, double h, AlignedVector<R>& turning) const;

  /// A world that is to take the step by itself says too_many_iterations: one that the lanes did not solve, or for
  /// which StepTerms::stiffen_ranges() would solve it once more.
  RowsReport report(int world) const;
  /// Force of the limited drives over the last step [pack][nv][lane], zero elsewhere.
  In<R> drive_force() const { return drive_force_; }
  /// Force of the contacts with the world on each link over the last step, world axes [pack][nlink][3][lane] [N].
  In<R> ground_force() const { return ground_; }
  Out<R> ground_force() { return ground_; }

  /// From the next step on touches() and limit_force() are there.
  void feel();
  bool feels() const { return !touch_.empty(); }
  /// f(LaneTouched) for that world's contacts of the last step.
  void each_touch(int world, const std::function<void(const LaneTouched&)>& f) const;
  /// Force of a joint's range, 0 where it has none.
  double limit_force(int world, int joint) const;

  /// Changes places with what a pack's worlds carry to the next step, [word][lane]. Empty: nothing.
  /// @throws ShapeError, ValueError for what is no such memory
  void exchange(AlignedVector<R>& memory, int pack);
  /// World `lane` of such a memory carries nothing any more.
  static void forget(AlignedVector<R>& memory, int lane, int width);

 private:
  struct Tables;
  template <class F>
  void each_ball(const BasicData<R>& data, int world, In<R> qvel, const F& f) const;
  bool turns_ranges(const BasicData<R>& data, double h, int world, In<R> joint_inertia, In<R> next) const;
  void write_limits();
  const Model& model_;
  int width_, together_;  ///< together: packs that a kernel's call takes
  TermOptions options_;
  std::unique_ptr<Tables> tables_;
  std::vector<AlignedVector<R>> memory_, before_;  ///< [pack] before: the last solve(), where rows are held
  AlignedVector<std::byte> work_;
  AlignedVector<R> drive_force_, ground_, report_, touch_, limit_;  ///< once somebody feels; limit_ with balls too
  AlignedVector<R> path_, path_impulse_;                            ///< [pack][path_numbers][lane], [pack][row][lane]
  std::vector<int> ntouch_;                                         ///< [pack]
  int rows_ = 0;
};

extern template class LaneTerms<double>;
extern template class LaneTerms<float>;

}  // namespace tarsus
