// The stage of a step in which contacts, joint limits and dry friction act on one world's velocity; see tree_rows.hpp.
#pragma once

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/control/force_limit.hpp"

namespace tarsus {

struct RowStageOptions {
  bool contacts = false;  ///< between the model's shapes
  bool joints = false;    ///< joint ranges and dry joint friction
  Spook limit_spook;      ///< of joint ranges
  RowsMethod method = RowsMethod::automatic;
  RowSolveOptions solve{.max_iterations = 200, .tolerance = 1e-6};
  double restitution = 0;              ///< of every contact
  double restitution_threshold = 0.1;  ///< approach below which nothing bounces [m/s]
  int drive_rounds = 20;               ///< at most, of drives at their force limits and rows in turns

  bool any() const { return contacts || joints; }
};

/// Keeps scratch and warm starts; not for use by two threads at once.
template <class R>
class RowStage {
 public:
  /// @throws ValueError if data has lanes  @throws InputError as ContactGeometry
  RowStage(const Model& model, const BasicData<R>& data, const RowStageOptions& options);

  /// Makes `velocity`, the end of a step of h seconds without rows, that with them. data must hold the factors that
  /// made it (after maba() or DriveLimiter::solve()). `held`: equality constraints that it satisfies.
  void apply(BasicData<R>& data, double h, Out<R> velocity, const HeldRows<R>& held = {});
  /// The same with drives at their force limits: `solve_drives(tau, velocity)` solves the step without rows for applied
  /// forces tau, and leaves its factors in data. Drives and rows take turns until both hold at one velocity.
  template <class F>
  void apply(BasicData<R>& data, double h, Out<R> velocity, const HeldRows<R>& held, const F& solve_drives) {
    begin(data, h, velocity, held);
    bool settled = rows_.rows() == 0;
    for (int round = 0; !settled && round < options_.drive_rounds; ++round) {
      factor<R>(model_, data, data.qpos, data.joint_inertia);  // a rotation at its limit left factors of another form
      solve(data, velocity, round > 0, false);
      solve_drives(applied_force(data), velocity);
      rounds_ = round + 1;
      settled = residual(data, velocity) <= tolerance();
    }
    if (!settled) rows_.give_up();
  }

  const RowsReport& report() const { return rows_.report(); }
  /// What the rows changed in the impulses of `held`, by apply() without limited drives.
  std::span<const double> held_impulse() const { return rows_.held_impulse(); }
  int rounds() const { return rounds_; }  ///< of the last apply() with limited drives
  std::span<const LinkContact> contacts() const { return rows_.contacts(); }
  /// Force on contacts()[i].a over the last step, world axes [N].
  Vec3d force(int i) const { return rows_.force(i); }
  const ContactGeometry& geometry() const { return geometry_; }

 private:
  void begin(BasicData<R>& data, double h, In<R> velocity, const HeldRows<R>& held);
  void solve(BasicData<R>& data, Out<R> velocity, bool included, bool fresh);
  In<R> applied_force(BasicData<R>& data);
  double residual(BasicData<R>& data, In<R> velocity) { return rows_.residual(data, data.qpos, velocity); }
  double tolerance() const { return sizeof(R) == 8 ? 2 * options_.solve.tolerance : 1e-4; }

  const Model& model_;
  RowStageOptions options_;
  ContactGeometry geometry_;
  TreeRows<R> rows_;
  std::vector<LinkContact> found_;
  AlignedVector<R> force_;
  int rounds_ = 0;
};

extern template class RowStage<double>;
extern template class RowStage<float>;

}  // namespace tarsus
