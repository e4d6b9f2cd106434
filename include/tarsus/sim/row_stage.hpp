// The stage of a step in which contacts, joint limits, dry friction, drives with force limits and equality constraints
// act on one world's velocity, all in one problem; see step_terms.hpp.
#pragma once

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/force_limit.hpp"
#include "tarsus/sim/stage.hpp"

namespace tarsus {

struct RowStageOptions : TermOptions {
  bool contacts = false;  ///< between the model's shapes
  /// The model's shapes, where they are built already; empty: each stage builds its own.
  std::shared_ptr<const ContactGeometry> geometry = {};

  bool any() const { return contacts || joints || !user_limits.empty(); }
  /// @throws ValueError for numbers out of their range, and a restitution without contacts
  void check() const;
};

/// Drives of one step, and where they are to go.
template <class R>
struct DriveStep {
  const Drives& drives;
  double h;
  In<R> qpos_target, qvel_target;  ///< as drive_terms()
};

/// Drives with a force limit and those without: the first are terms, the others belong to M̂.
struct SplitDrives {
  Drives limited, unlimited;
  std::vector<char> is_limited;  ///< [nv]
  bool all_limited = false;      ///< no drive is without a limit
  void split(const Model& model, const Drives& drives);
};

/// Keeps scratch and warm starts; not for use by two threads at once.
template <class R>
class RowStage {
 public:
  /// @throws ValueError if data has lanes, for restitution out of range  @throws InputError as ContactGeometry
  RowStage(const Model& model, const BasicData<R>& data, const RowStageOptions& options);

  /// Makes `velocity`, as StepTerms::begin() takes it, that of the step's end. The drives without a limit are in
  /// joint_inertia and joint_force, or in `velocity`; those with one are not.
  /// @param drives null: none has a limit  @param rows what acts along generalised directions
  /// @param joint_force as StepTerms::begin()
  void apply(BasicData<R>& data, const DriveStep<R>& step, const SplitDrives* drives, std::span<const ForceRow> rows,
             const BilateralRows<R>& bilateral, In<R> joint_force, Out<R> velocity, StageClock& clock);

  const RowsReport& report() const { return terms_.report(); }
  /// Forces of the drives with a limit over the last step [nv], zero elsewhere.
  std::span<const R> limited_force() const { return force_; }
  std::span<const LinkContact> contacts() const { return terms_.contacts(); }
  const ContactGeometry& geometry() const { return geometry_; }
  /// What apply() solved: where its join_limits() says so, apply() is to be called once more from the same start.
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
  std::vector<JointRows> drive_rows_;  ///< of the last terms
  int first_drive_ = 0;                ///< its term
  AlignedVector<R> force_, push_, zero_;
};

extern template class RowStage<double>;
extern template class RowStage<float>;

}  // namespace tarsus
