// Contacts, joint limits and dry joint friction of one articulated world, as rows through ABA's factors (delassus.hpp):
// what is solved is the end of the step, with M̂ = M + K of the drives, so that stiff drives and contacts meet in one
// implicit solve.
//
//     v⁺ = v⁰ + M̂⁻¹ Jᵀ λ,    J v⁺ + Σ λ = b  where a row holds   (spook.hpp; theory.md, section 4)
//
// v⁰ is where the step would go without rows. Equality constraints that it satisfies go on holding (held_rows.hpp).
// Friction of a contact is a disc; its tangents follow from the normal alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tarsus/constraint/spook.hpp"
#include "tarsus/constraint/tree_newton.hpp"
#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/solver/matrix_problem.hpp"

namespace tarsus {

/// A point at which two links touch, or may touch within the step. At least one of them is not the world.
struct LinkContact {
  int a = -1, b = -1;   ///< links, -1: the world
  ContactPoint point;   ///< normal from b to a
  int dimension = 3;    ///< rows, MuJoCo's condim: 1 frictionless, 3 sliding, 4 and torsion, 6 and rolling
  double friction = 1;  ///< μ of sliding
  double torsional = 0, rolling = 0;  ///< [m]: torque bounds are these times the normal force
  double restitution = 0;
  Spook spook;
  std::uint64_t identity = 0;  ///< the same from step to step, for warm starts; 0: none
};

/// Two directions t₁, t₂ with t₁ × t₂ = n, from the unit normal n alone.
std::array<Vec3d, 2> contact_tangents(const Vec3d& normal);

enum class RowsMethod : std::uint8_t { automatic, newton, gauss_seidel };
const char* name(RowsMethod method);

/// How the rows of one step were solved.
struct RowsReport {
  RowSolveStatus status = RowSolveStatus::converged;
  RowsMethod method = RowsMethod::automatic;  ///< that gave the answer
  int rows = 0, contacts = 0, touching = 0;   ///< touching: contacts with a force
  int limits = 0;                             ///< joints at their limits
  int iterations = 0;                         ///< rounds of Newton or sweeps
  double residual = 0;                        ///< natural residual: [m/s]
  double penetration = 0;                     ///< deepest, at the start of the step [m]
};

struct RowsOptions {
  bool limits = true, friction_loss = true;
  Spook limit_spook;
  RowSolveOptions solve{.max_iterations = 200, .tolerance = 1e-6};
  /// Compliance of contacts without one of their own, in h² × the inverse mass that the contact feels: enough to make
  /// the forces of many contacts under one foot unique, without which it rocks for ever (decision 504). Also of joint
  /// limits beside held loops, which can all but block them (decision 506). 0: rigid.
  double relative_compliance = 0.0036;
  RowsMethod method = RowsMethod::automatic;  ///< newton: wherever it can
  double restitution_threshold = 0.1;         ///< approach below which nothing bounces [m/s]
};

/// The rows of one world. Keeps scratch and warm start between steps; not for use by two threads at once.
template <class R>
class TreeRows {
 public:
  TreeRows(const Model& model, const RowsOptions& options);

  /// Rows of this step. kinematics(model, data, qpos, qvel) must have been done, v⁰ is where the step would go without
  /// rows.
  /// @param contacts in any order; their order does not change the result
  /// @param held equality constraints that v⁰ satisfies; what it refers to must live until after solve()
  void build(const BasicData<R>& data, double h, In<R> qpos, In<R> qvel, In<R> free_velocity,
             std::span<const LinkContact> contacts, const HeldRows<R>& held = {});
  int rows() const { return int(numbers_.size()); }
  /// velocity in: the step's without these rows (`included`: with those of add_force()); out: with them. data must hold
  /// the factors of M̂ = M + joint_inertia (after maba() or factor()); its workspace is used, and the factors may be
  /// lost.
  /// `fresh`: data still holds the link velocities of qvel and what qacc adds to the links' accelerations, velocity
  /// being qvel + h qacc: right after build() and the solve without rows.
  void solve(BasicData<R>& data, In<R> qpos, In<R> joint_inertia, Out<R> velocity, bool included, bool fresh = false);
  /// Δλ_e of the last solve: what the rows changed in the impulses of the equality constraints [rows of held].
  std::span<const double> held_impulse() const { return held_impulse_; }
  /// Jᵀ λ / h of the last solve, added to `force` [nv]. data must hold this step's poses.
  void add_force(BasicData<R>& data, Out<R> force);
  /// For a caller whose own rounds, of solve() and whatever else, end without an agreement: the report says so.
  void give_up() { report_.status = RowSolveStatus::too_many_iterations; }
  /// Largest miss of the rows at this velocity with the last multipliers [m/s].
  double residual(BasicData<R>& data, In<R> qpos, In<R> velocity);

  const RowsReport& report() const { return report_; }
  std::span<const LinkContact> contacts() const { return contacts_; }
  /// Force of a contact of contacts() over the last step, on link a, world axes [N].
  Vec3d force(int contact) const;

 private:
  struct Group {  ///< the rows that one contact or one row on a joint has
    std::uint64_t identity;
    int first_row;
  };
  struct JointRow {
    int joint;
    double entry[6];  ///< of its own DoFs, in qvel's axes
    double speed;     ///< J v at the start of the step
  };
  void add_contacts(const BasicData<R>& data, double h);
  void add_contact(const BasicData<R>& data, double h, std::size_t index);
  void add_limits(const BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> free_velocity, double h);
  void add_limit(const LinkState<R>& link, int joint, In<R> qpos, In<R> qvel, In<R> free_velocity, double h);
  void add_friction_loss(In<R> qvel, double h);
  void add_joint_row(int joint, const double* entries, double speed, const RowNumbers& numbers, std::uint64_t identity);
  int add_row(const RowNumbers& numbers);
  void add_block(RowCone cone, int reference, double coefficient, std::uint64_t identity);
  void row_velocity(BasicData<R>& data, In<R> qvel, double* out, double a_share = 0) const;
  void remember(double h);
  void recall();
  int find_last(std::uint64_t identity, int guess);
  void take(int group, int last);
  void recall_near(std::span<const int> lost);

  bool newton_can() const;
  bool solve_newton(BasicData<R>& data, In<R> joint_inertia, Out<R> velocity);
  void solve_gauss_seidel(BasicData<R>& data, Out<R> velocity, bool included);
  void write_blocks(const BasicData<R>& data);
  void write_matrix(const BasicData<R>& data);
  void velocity_change(BasicData<R>& data, std::span<const double> impulse);
  void take_out(BasicData<R>& data, Out<R> velocity);

  const Model& model_;
  ModelView<R> view_;
  RowsOptions options_;
  RowsReport report_;
  double h_ = 0;
  std::vector<LinkContact> contacts_;
  std::vector<TreeContact> contact_rows_;  ///< [contact]
  std::vector<JointRow> joint_rows_;       ///< after the contacts' rows
  std::vector<RowNumbers> numbers_;        ///< [row]
  std::vector<RowBlock> blocks_;
  std::vector<Group> groups_;
  std::vector<double> multiplier_, start_, velocity_, link_force_;
  std::vector<Group> last_groups_, last_by_identity_;  ///< of the last step, and one more at the end for its row
  std::vector<double> last_multiplier_;
  std::vector<LinkContact> last_contacts_;  ///< their groups come first
  std::vector<char> taken_;                 ///< [last group] somebody starts from it
  std::vector<int> lost_;                   ///< contacts that nobody was found for
  // Newton
  TreeNewton<R> newton_;
  std::vector<OneJointRow> one_joint_rows_;
  // Gauss-Seidel
  DelassusRows<R> rows_;
  MatrixProblem problem_;
  MatrixGaussSeidel solver_;
  AlignedVector<R> u_, gram_, change_;
  // Equality constraints.
  HeldRows<R> held_;
  AlignedVector<R> held_phi_;
  std::vector<double> full_, held_impulse_;  ///< full_: Λ⁻¹ of all rows, the held ones first and eliminated
};

extern template class TreeRows<double>;
extern template class TreeRows<float>;

}  // namespace tarsus
