// The terms of a step for packs of worlds, one world a SIMD lane: contacts with the ground and between links, joint
// ranges, dry joint friction, drives with force limits, forces along generalised directions and equality constraints.
// One Newton iteration solves all lanes; each lane takes its own steps. The laws and parameters are those of StepTerms.
// The bits of a world's result depend on that world alone.
//
// refusal() names what is not available in lanes: friction that depends on the direction, dry friction and limited
// drives of free joints, and scenes with so many shapes that a broad phase finds their pairs.
#pragma once

#include <functional>
#include <string>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/force_row.hpp"

namespace tarsus {

/// Drives with force limits, each on one joint.
template <class R>
struct LimitedDrives {
  std::vector<int> joints;
  std::vector<R> low,
      high;               ///< [joint of joints] [N | N m]; of a ball joint `high` alone bounds the length of its torque
  std::vector<R> kp, kd;  ///< [nv] zero without a limited drive
  bool plain = false;
};

/// A contact of one world over a step, for sensors.
struct LaneTouched {
  int first, second;        ///< indices of ContactGeometry::shapes()
  Vec3d point, normal;      ///< world axes [m]; the normal points from `second` to `first`
  double distance, margin;  ///< between the shapes [m]; forces begin at the margin [m]
  Vec3d force, torque;      ///< on `first` [N, N m]
};

/// How many packs of this width to pass to one call. Lanes that need many iterations are then gathered in one pack.
template <class R>
int packs_together(int width);

template <class R>
class LaneTerms {
 public:
  /// Why this model's terms cannot be solved in lanes; empty if they can. geometry null: no contacts.
  static std::string refusal(const Model& model, const ContactGeometry* geometry, const TermOptions& options);

  /// Allocates for the packs of `data`, which have more than one lane. geometry must outlive this object. equalities
  /// null: none.
  /// @param slots of all force rows that may occur  @param spins [nlink] what responds (SpinResponse); empty: nothing
  /// @throws ValueError with refusal()
  LaneTerms(const Model& model, const BasicData<R>& data, const ContactGeometry* geometry,
            const EqualitySet* equalities, std::span<const ForceSlot> slots, std::span<const std::uint8_t> spins,
            const TermOptions& options);
  ~LaneTerms();

  /// Writes v⁺ to `velocity` [pack][nv][lane], over a step of h seconds from (qpos, qvel). data holds what
  /// VelocityProducts::begin_step() left, and is overwritten.
  /// @param joint_force, joint_inertia [pack][nv][lane] as for maba()
  /// @param push force of the limited drives at q̈ = 0; empty: no drive has a limit
  /// @param found [pack][lane] 1 where `velocity` comes in as v⁰, 0 where it comes in as qvel
  /// @param responds whether what spins responds to the terms
  void solve(BasicData<R>& data, double h, In<R> joint_force, In<R> joint_inertia, const LimitedDrives<R>* drives,
             In<R> push, In<R> found, bool responds, Out<R> velocity);

  /// Sets the equality constraints of a pack's next solve().
  /// @param rows directions as EqualitySet::evaluate() leaves them  @param target J v⁺ [rows][lane]
  /// @param compliance of the impulses [rows][lane]
  void hold(int pack, DelassusRows<R>& rows, In<R> target, In<R> compliance);
  /// Impulses of the equality constraints over the last step [rows][lane].
  In<R> bilateral_impulse(int pack) const;
  /// The largest |J v⁺ + Σ λ - target| of their rows in each of the pack's worlds [lane] [m/s | rad/s].
  In<R> bilateral_miss(int pack) const;
  /// Sets a world's force rows for the next solve().
  void push(int world, std::span<const ForceRow> rows);
  /// Impulse of the force row in a slot of that world over the last step [N s | N m s].
  double impulse(int world, int slot) const;
  /// Restores the warm-start cache as it was before the last solve(), so that the step can be solved again. Only after
  /// hold().
  void rewind() { memory_.swap(before_); }

  /// StepTerms::turning_ranges() of all worlds [pack][nv][lane].
  void turning_ranges(const BasicData<R>& data, double h, AlignedVector<R>& turning) const;

  /// The status is too_many_iterations or crowded for a world whose step the scalar path must take: the lanes did not
  /// solve it, or StepTerms::stiffen_ranges() would solve it once more.
  RowsReport report(int world) const;
  /// Force of the limited drives over the last step [pack][nv][lane], zero elsewhere.
  In<R> drive_force() const { return drive_force_; }
  /// Force of the contacts with the world on each link over the last step, world axes [pack][nlink][3][lane] [N].
  In<R> ground_force() const { return ground_; }
  Out<R> ground_force() { return ground_; }

  /// Enables touches() and limit_force() from the next step on.
  void feel();
  bool feels() const { return !touch_.empty(); }
  /// Calls f(LaneTouched) for each contact of that world over the last step.
  void each_touch(int world, const std::function<void(const LaneTouched&)>& f) const;
  /// As StepTerms::limit_force(), 0 where the joint has no range.
  double limit_force(int world, int joint) const;

  /// Swaps the warm-start cache of a pack's worlds [word][lane]. Empty: no cache.
  /// @throws ShapeError, ValueError for an array that is no such cache
  void exchange(AlignedVector<R>& memory, int pack);
  /// Clears the cache of world `lane`.
  static void forget(AlignedVector<R>& memory, int lane, int width);
  /// Whether a world that the scalar path has stepped has so few contacts between links that lanes can go on with it.
  static bool fits(const RowsReport& report);

 private:
  struct Tables;
  template <class F>
  void each_ball(const BasicData<R>& data, int world, In<R> qvel, const F& f) const;
  bool turns_ranges(const BasicData<R>& data, double h, int world, In<R> joint_inertia, In<R> next) const;
  void write_limits();
  const Model& model_;
  int width_, together_;  ///< together: packs in one call of a kernel
  TermOptions options_;
  std::unique_ptr<Tables> tables_;
  std::vector<AlignedVector<R>> memory_,
      before_;  ///< [pack] before: that of the last solve(), if rewind() may be called
  AlignedVector<std::byte> work_;
  AlignedVector<R> drive_force_, ground_, report_, touch_,
      limit_;                             ///< allocated by feel(); limit_ also with ball joints
  AlignedVector<R> path_, path_impulse_;  ///< [pack][path_numbers][lane], [pack][row][lane]
  std::vector<int> ntouch_;               ///< [pack]
  int rows_ = 0;
};

extern template class LaneTerms<double>;
extern template class LaneTerms<float>;

}  // namespace tarsus
