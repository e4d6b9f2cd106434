// The stage of a step that solves contacts, joint limits, dry friction, drives with force limits and equality
// constraints of one world as a single problem. It updates the velocity. See step_terms.hpp.
#pragma once

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/force_limit.hpp"
#include "tarsus/sim/stage.hpp"

namespace tarsus {

struct RowStageOptions : TermOptions {
  bool contacts = false;  ///< between the model's shapes
  /// Collision shapes of the model if they are built already; null: each stage builds its own.
  std::shared_ptr<const ContactGeometry> geometry = {};

  /// `geometry`, or new shapes; null without contacts. @throws InputError as ContactGeometry
  std::shared_ptr<const ContactGeometry> shapes(const Model& model) const;
  bool any() const { return contacts || joints || !user_limits.empty(); }
  /// @throws ValueError for numbers out of range, and for a restitution without contacts
  void check() const;
};

/// The drives of one step and their targets.
template <class R>
struct DriveStep {
  const Drives& drives;
  double h;
  In<R> qpos_target, qvel_target;  ///< as drive_terms()
};

/// Separates drives with a force limit, which become terms, from drives without one, which belong to M̂.
struct SplitDrives {
  Drives limited, unlimited;
  std::vector<char> is_limited;  ///< [nv]
  bool all_limited = false;      ///< every drive has a force limit
  void split(const Model& model, const Drives& drives);
};

/// Keeps scratch memory and warm starts. Not for use by two threads at once.
template <class R>
class RowStage {
 public:
  /// @throws ValueError if data has more than one lane or the restitution is out of range; InputError as
  /// ContactGeometry
  RowStage(const Model& model, const BasicData<R>& data, const RowStageOptions& options);

  /// Replaces `velocity`, given as StepTerms::begin() takes it, by the velocity at the end of the step. Drives without
  /// a force limit must be part of joint_inertia and joint_force, or of `velocity`; drives with one must not.
  /// @param drives null: no drive has a limit  @param rows forces along generalised directions
  /// @param joint_force as for StepTerms::begin()
  void apply(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives, std::span<const ForceRow> rows,
             const BilateralRows<R>& bilateral, In<R> joint_force, Out<R> velocity, StageClock& clock);

  /// Solves the terms of apply() from another v⁰, as StepTerms::solve_again().
  void apply_again(const BasicData<R>& data, double h, const BilateralRows<R>& bilateral, Out<R> velocity);

  const RowsReport& report() const { return terms_.report(); }
  /// Forces over the last step of the drives with a force limit, zero for other DoFs. [nv]
  std::span<const R> limited_force() const { return force_; }
  std::span<const LinkContact> contacts() const { return terms_.contacts(); }
  const ContactGeometry& geometry() const { return geometry_; }
  /// The terms that apply() solved. If their join_limits() returns true, call apply() once more from the same start.
  StepTerms<R>& terms() { return terms_; }
  const StepTerms<R>& terms() const { return terms_; }

 private:
  void add_drives(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives& drives);
  void read_drives(const BasicData<R>& data, double h);

  const Model& model_;
  RowStageOptions options_;
  ContactGeometry geometry_;
  StepTerms<R> terms_;
  std::vector<LinkContact> found_;
  std::vector<JointRows> drive_rows_;  ///< of the last step's terms
  int first_drive_ = 0;                ///< index of the first drive's term
  AlignedVector<R> force_, push_, zero_;
};

extern template class RowStage<double>;
extern template class RowStage<float>;

}  // namespace tarsus
