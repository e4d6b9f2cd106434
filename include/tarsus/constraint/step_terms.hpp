// The terms of one articulated world's step (solver/term.hpp): contacts, joint limits, dry joint friction and drives
// with force limits, solved together with the equality constraints. The terms are built from the state at the step's
// start. One problem gives the velocity at its end:
//
//     v⁺ = v⁰ + M̂⁻¹ (Jᵀ γ + J_eᵀ λ_e)
//
// v⁰ is the end velocity without terms and equality constraints. M̂ = M + K, where K is the implicit stiffness of the
// drives without a force limit. v⁰ is computed only where it is needed; otherwise the forces that lead to it are part
// of the problem. Each kind of term has its file: contact_terms.inl, limit_terms.inl, friction_terms.inl,
// path_terms.inl. The step itself makes the drives (sim/row_stage.cpp).
//
// Every row has a compliance R > 0. Without a compliance in the model, R is a share of the inverse mass that the row
// feels (decision 504). Sticking contacts do not creep under it: the proximal point of their rows is the last step's
// impulse.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tarsus/constraint/force_row.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/constraint/islands.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/constraint/step_status.hpp"
#include "tarsus/constraint/surface.hpp"
#include "tarsus/constraint/tree_islands.hpp"
#include "tarsus/constraint/tree_operator.hpp"
#include "tarsus/constraint/user_limit.hpp"
#include "tarsus/geometry/narrow_phase.hpp"

namespace tarsus {

/// Sliding friction that depends on the direction.
struct DirectionalFriction {
  std::array<double, 2> share{1, 1};  ///< factors of μ along the tangents of MuJoCo's contact frame
  int carrier = -1;                   ///< link or mocap carrier of the capsule; -1: the world
  Vec3d axis{0, 0, 0};                ///< of a capsule on a plane, in its carrier's frame; zero for other shapes
};

/// A point at which two links touch, or may touch within the step. At most one of the two is the world.
struct LinkContact {
  int a = -1, b = -1;                                ///< links; -1: the world
  const DirectionalFriction* directional = nullptr;  ///< null: μ is the same in all directions
  ContactPoint point;   ///< normal from b to a; distance beyond the margin, where forces begin
  int mocap = -1;       ///< Model::carrier() of the mocap body that link a touches, where b is -1
  int dimension = 3;    ///< number of rows, MuJoCo's condim: 1 frictionless, 3 sliding, 4 torsion too, 6 rolling too
  double friction = 1;  ///< μ of sliding; the larger value where it depends on the direction
  double torsional = 0, rolling = 0;  ///< [m]; times the normal force they bound the torques
  double restitution = 0;
  Spook spook;                      ///< used where ε > 0 [m/N]; else relative_compliance
  double relative_compliance = 0;   ///< [s²] ε per inverse mass; 0: the default compliance
  SolverRow solver;                 ///< where share > 0, it replaces both compliances
  double gap_share = 1;             ///< share of the distance that the softness acts on: ContactSoftness
  double fastest = kContactReturn;  ///< largest recovery speed of a deep contact, where ε = 0 [m/s]
  std::uint64_t identity = 0;       ///< the same from step to step, for the warm start; 0: none
};

/// Two tangents t₁, t₂ with t₁ × t₂ = n, computed from the unit normal n alone.
std::array<Vec3d, 2> contact_tangents(const Vec3d& normal);
/// The tangents of MuJoCo's contact frame: t₁ is as near to y as possible, or to z where the normal is near y; for a
/// capsule on a plane, as near to the capsule's axis as possible.  @param axis the capsule's; zero for other shapes
std::array<Vec3d, 2> frame_tangents(const Vec3d& normal, const Vec3d& axis = {0, 0, 0});

/// How the terms of one step were solved.
struct RowsReport {
  StepStatus status = StepStatus::converged;
  int rows = 0, contacts = 0, touching = 0;  ///< touching: contacts with a force
  int between = 0;  ///< contacts of two links that are of different trees or overlap at the start of the step
  int limits = 0;   ///< joint limits and user-defined limits with a force
  int drives = 0, saturated = 0;  ///< drives with a force limit, and how many of them are at it
  /// Newton iterations, each one factorisation of the tree: of all solves of the step, in SIMD lanes of the last.
  int iterations = 0;
  int piled = 0, sweeps = 0;  ///< terms in large contact islands, which sweeps solve, and the number of sweeps
  double residual = 0;        ///< natural residual [m/s]
  double penetration = 0;     ///< largest penetration beyond the margin at the start of the step [m]
};

/// Large contact islands, which sweeps solve in place of Newton's method: islands of `least_trees` trees or more, in
/// steps whose contacts between links take more than `most_operations` operations per elimination (decision 511).
struct PileOptions {
  int least_trees = kManyTrees;
  double most_operations = 1e7;
  SweepOptions sweeps;
};

struct TermOptions {
  bool joints = false;  ///< joint ranges and dry joint friction are terms
  Spook limit_spook;    ///< softness of joint ranges
  NewtonOptions solve;
  PileOptions piles{};
  /// Compliance of rows without one in the model, relative to h² × the inverse mass that the row feels (decision 504).
  /// It bounds the impulse of a joint limit that closed loops block (decision 506).
  double relative_compliance = 0.0144;
  double restitution = 0;                ///< of every contact
  double restitution_threshold = 0.1;    ///< approach speed below which nothing bounces [m/s]
  std::vector<UserLimit> user_limits{};  ///< for worlds that are stepped individually
};

/// The warm-start cache of one world: what its terms carried at the end of a step.
struct TermMemory {
  enum class Kind : std::uint16_t { contact, limit, user_limit, friction_loss, drive, path, count };
  struct Entry {  ///< without padding, since its bytes are saved
    std::uint64_t identity;
    int a, b;   ///< links of a contact
    int first;  ///< of its numbers
    Kind kind;
    std::uint16_t nrow;

    /// Numbers of γ. Of a contact: the normal, sliding friction in world axes, torsion, rolling in world axes.
    int impulses() const { return kind == Kind::contact ? nrow + nrow / 3 : nrow; }
    int size() const { return 2 * impulses() + (kind == Kind::contact ? 3 : 0); }
  };
  double h = 0;  ///< length of the cached step [s]
  /// For how many more steps large contact islands go straight to sweeps because Newton's method has failed.
  int sweep_steps = 0;
  std::vector<Entry> entries;   ///< contacts first, in the order of their links and identities
  std::vector<double> numbers;  ///< of each entry: γ, then R (y - γ), then a contact's position
  /// Axes and origins of the mocap bodies in the world, kPushTime late (contact_terms.inl). Axes are mean values.
  std::vector<std::array<Vec3d, 4>> mocap;

  bool empty() const { return entries.empty() && mocap.empty(); }
  void forget() { entries.clear(), numbers.clear(), mocap.clear(), sweep_steps = 0; }
};

/// The terms of one world. The object keeps scratch memory and the warm start between steps. It is not thread-safe.
template <class R>
class StepTerms {
 public:
  StepTerms(const Model& model, const TermOptions& options);

  /// Starts a step of h seconds from (qpos, qvel). `data` is as maba() leaves it, with the links' origins from
  /// kinematics(). The arguments must live until solve() is over.
  /// @param free_velocity v⁰ = qvel + h q̈⁰
  /// @param contacts in any order, which does not change the result; they are swapped with the last step's contacts
  /// @param joint_force if not empty: v⁰ is not known, free_velocity is qvel, and data is as TreeOperator::begin() says
  void begin(BasicData<R>& data, double h, In<R> qpos, In<R> qvel, In<R> free_velocity,
             std::vector<LinkContact>& contacts, In<R> joint_force = {});
  void add_limits();
  void add_user_limits();
  void add_friction_loss();
  /// A drive on one joint with the impulse clamp(push - stiffness (v - qvel), lower, upper). push and velocity are in
  /// world axes for rotations and translations.
  /// @param push, lower, upper [N s | N m s]  @param stiffness h k_d + h² k_p > 0
  void add_drive(const JointRows& rows, const Vec3d& push, double stiffness, double lower, double upper);
  /// Whether add_force_rows() takes inverse masses from the factors of M̂. data must then hold them at begin().
  bool needs_factors(std::span<const ForceRow> rows) const;
  /// Forces along generalised directions, added after all other terms. The rows must live until the step is over. Those
  /// that are far act only once they have joined (join_limits()).
  void add_force_rows(std::span<const ForceRow> rows);
  int rows() const { return int(rows_.size()); }

  /// Turns the free velocity in `velocity` into v⁺ and overwrites data's factors. join_limits() or end() must follow.
  void solve(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity);
  /// Solves the same terms from another v⁰ = qvel + h data.qacc, given in `velocity`, starting from their present
  /// impulses. Not if begin() got joint forces.
  void solve_again(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity);
  /// Whether v⁺ carries a joint or a tendon past an end of its range that was not near at the step's start. The caller
  /// then repeats the step from begin() on. Such limits, and user-defined limits, become terms, and the new solve
  /// starts from this solution.
  bool join_limits(In<R> velocity);
  /// Marks ball joints that move round the end of their range: 1 at the first DoF of each. Empty if there are none.
  void turning_ranges(const BasicData<R>& data, double h, AlignedVector<R>& turning) const;
  /// Whether the force of a ball joint's range turns within the step by more than the step resolves, or a spring in its
  /// place (src/constraint/range_spring.hpp) is too soft for that force. The range springs have then changed, and the
  /// caller must solve the step once more.
  bool stiffen_ranges(In<R> velocity);
  /// Adds the range springs to the joints' inertia and force.
  void add_range_springs(Out<R> joint_inertia, Out<R> joint_force) const;
  /// Ends the step and stores the warm start for the next one.
  void end();

  const RowsReport& report() const { return report_; }
  std::span<const LinkContact> contacts() const { return contacts_; }
  /// Force of contacts()[contact] over the last step, on link a, world axes [N].
  Vec3d force(int contact) const;
  /// Torque of its torsional and rolling friction, on link a, world axes [N m].
  Vec3d torque(int contact) const;
  /// Force of a joint's range over the last step, at either end [N | N m]. If both ends push, it is that of the first,
  /// as in MuJoCo; for a ball joint the sum.
  double limit_force(int joint) const;
  /// Force of user_limits[i] over the last step, along its gradient [N | N m].
  double user_limit_force(int i) const { return force_of(Kind::user_limit, std::uint64_t(i)); }
  /// Force over the last step of a row of add_force_rows() [N | N m].
  double force_of_row(std::size_t row) const { return force_of(Kind::path, row); }
  /// Impulse of a term.
  std::span<const double> impulse(int term) const {
    return {impulse_.data() + terms_[term].first_row, std::size_t(terms_[term].nrow)};
  }
  std::span<const Term> terms() const { return terms_; }
  const TreeOperator<R>& mass() const { return mass_; }

  /// Swaps the warm-start cache, so that another world's terms can be solved in between.
  void exchange(TermMemory& memory) { std::swap(warm_.last, memory); }

 private:
  using Kind = TermMemory::Kind;
  struct Name {
    Kind kind;
    std::uint64_t identity;
    bool operator==(const Name&) const = default;
  };
  struct ContactMotion {
    Motion<double> speed, free;  ///< at the start of the step, and at x = 0
  };
  struct Range {
    int joint, qpos, qvel;
    bool axial;
    double lower, upper;
    HalfTurn half;  ///< half of `upper`
    bool light;     ///< of a ball joint: it carries a light link between heavy ones, with the model's masses
    bool holds(double q, double inside) const { return q - lower > inside && upper - q > inside; }
  };
  ContactMotion motion(std::size_t contact) const;
  Term& add_term(const Name& name, double lower, double upper);
  void add_row(double compliance, double target, double scale, double speed, double free);
  Term& add_joint_term(const Name& name, double lower, double upper, const JointRows& rows, double compliance,
                       double target, double scale);
  double force_of(Kind kind, std::uint64_t identity) const;
  void slow_down(LinkContact& contact) const;
  void find_jumps();
  void follow_mocap(double share);
  void push_by_mocap(LinkContact& contact) const;
  void take_contacts(std::vector<LinkContact>& contacts);
  bool add_contacts();
  bool lay_out_contacts(std::size_t first, std::size_t last);
  TermRow normal_row(const LinkContact& contact, double inverse_mass, double speed) const;
  void add_contact(std::size_t index, int from);
  void carry_bodies();
  void set_row(int row, const TermRow& numbers, double speed, double free);
  template <class F>
  void each_end(const Range& range, double way, In<R> ahead, const F& f);
  bool joined(const Name& name) const;
  void join(const Name& name, const JointRows& rows, double gap, const std::optional<SolverParameters>& solver,
            In<R> velocity);
  bool bound_row(const JointRows& rows, double gap, double speed, const std::optional<SolverParameters>& solver,
                 TermRow& numbers) const;
  bool add_bound(const Name& name, const JointRows& rows, double gap, const std::optional<SolverParameters>& solver,
                 bool anyway);
  /// R over options_.relative_compliance, both relative to the inverse mass, for rows without a compliance in the
  /// model.
  static constexpr double kRelative = 4 / (1 + 4 * kDampingSteps);
  /// R of a row that feels `inverse_mass`; own: the model's compliance, 0 without one.
  double compliance(double own, double inverse_mass) const;
  double joint_inverse_mass(const JointRows& rows) const;
  double contact_inverse_mass(const LinkContact& contact, double ReferenceMass::*part) const;
  bool is_of_joint(const ForceRow& row) const;  ///< whether it is a row on one hinge or slide
  bool acts(std::size_t index, const ForceRow& row) const;
  void join_force_rows(In<R> velocity);
  bool is_weighed(const ForceRow& row) const { return row.rigid && !is_of_joint(row); }  ///< by the factors of M̂
  double reference_inverse_mass(const ForceRow& row) const;
  void find_force_row_masses(std::span<const ForceRow> rows);
  void add_force_row(std::size_t index, const ForceRow& row, bool of_joint);
  void settle(const TermSet& set, In<R> joint_inertia, Out<R> velocity);
  TermSet all() { return {{terms_, rows_, free_rows_}, geometry(), free_rows_, y_, impulse_}; }
  RowGeometry geometry() const { return {geometry_.contacts, geometry_.joints, geometry_.paths}; }
  void solve_all(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity);
  void solve_jointly(const TermSet& set, In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity);
  using Problem = typename TreeIslands<R>::Problem;
  using Solution = typename TreeIslands<R>::Solution;
  Problem problem(const TermSet& set, In<R> joint_inertia, Out<R> velocity) {
    return {set, mass_, *step_.data, joint_inertia, step_.force, velocity};
  }
  Solution solve_problem(const Problem& problem, bool pile, int spent, const BilateralRows<R>& bilateral);
  void report(const Solution& solved);
  // warm_start.inl
  void count_carried();
  void store_warm_start();
  void store_contact(std::size_t contact, const TermMemory::Entry& entry, double* to) const;
  double excess(int row) const { return rows_[row].compliance * (y_[row] - impulse_[row]); }
  void begin_warm_start();
  void find_contacts(std::size_t first, std::size_t last);
  void find_warm_start();
  void find_nearby();
  int find_last(const Name& name, int guess) const;
  void take(int term, int last);
  void start_from_try();
  void take_contact(int term, const TermMemory::Entry& last, double scale);

  struct Step {  ///< the arguments of begin()
    BasicData<R>* data = nullptr;
    double h = 0;
    In<R> qpos, qvel, free;
    In<R> force;  ///< joint forces, if x = 0 is at qvel
    double ahead() const { return force.empty() ? h : 0; }
  };
  struct Masses {
    std::vector<ReferenceMass> model, own;  ///< [link]; own: of a world with its own masses
    const std::vector<ReferenceMass>& now() const { return own.empty() ? model : own; }
    /// @param numbers [link][kReferenceNumbers], rounded to R in both: a world's own masses may equal the model's
    static void take(In<R> numbers, std::vector<ReferenceMass>& to) {
      to.clear();
      for (std::size_t i = 0; i < numbers.size(); i += kReferenceNumbers)
        to.push_back({double(numbers[i]), double(numbers[i + 1]), double(numbers[i + 2]), double(numbers[i + 3]),
                      double(numbers[i + 4])});
    }
  };
  struct Limits {
    std::vector<Range> ranges;                            ///< of all joints that have one
    std::vector<std::optional<SolverParameters>> solver;  ///< [joint] of its range, if the model gives them
    std::vector<char> near;                               ///< [joint][2] whether this end of the range is a term
    struct Bound {
      Name name;
      JointRows rows;
      double gap;
      double miss = 0;    ///< of an end that joined: how far v⁺ without it violates it [m/s | rad/s]
      bool near = false;  ///< of a user-defined limit: it is a term
    };
    std::vector<Bound> joined, users;  ///< users: user-defined limits with a row in this step
    AlignedVector<R> inertia, force;   ///< [nv] of range springs; empty: none
    int springs = 0;                   ///< number of solves with range springs
  };
  struct Geometry {
    std::vector<ContactRows> contacts;  ///< [contact]
    std::vector<ContactPlace> usual;    ///< contacts whose first rows a kernel makes, of one block
    std::vector<int> others;            ///< contacts with further rows, of one block
    std::vector<JointRows> joints;      ///< [term after the contacts]
    std::vector<PathRow> paths;         ///< [term after those of joints]
    AlignedVector<R> bias;              ///< [link][6] accelerations at q̈ = 0
  };
  struct Paths {  ///< of add_force_rows()
    explicit Paths(const Model& model) : rows(model) {}
    std::span<const ForceRow> given;
    DelassusRows<R> rows;
    std::vector<int> joints;
    std::vector<double> inverse_mass;
    std::vector<std::size_t> swept;  ///< [block of rows] the row
    AlignedVector<R> felt;           ///< [block of rows] inverse mass
  };
  struct Tried {  ///< the last solve of this step, if it has to be repeated
    bool any = false;
    int iterations = 0;  ///< of all solves of this step
    std::vector<Name> names;
    std::vector<Term> terms;
    std::vector<double> y;
  };
  struct Lost {
    int contact, place;  ///< place: of its name among the cached entries
  };
  struct WarmStart {
    TermMemory last;
    int next = 0;             ///< first cached entry that comes after the contacts found so far
    std::vector<char> taken;  ///< [last] whether a term starts from it
    std::vector<Lost> lost;   ///< contacts without a cached entry of their identity
    Tried tried;
  };

  const Model& model_;
  TermOptions options_;
  RowsReport report_;
  Masses masses_;
  Limits limits_;
  TreeOperator<R> mass_;
  StepNewton newton_;
  TreeIslands<R> islands_;
  struct {
    Piles piles;
    Sweeps sweeps;
  } swept_;
  Step step_;
  std::vector<LinkContact> contacts_;
  Geometry geometry_;
  Paths paths_;
  std::vector<Term> terms_;
  std::vector<TermRow> rows_;
  std::vector<Name> names_;  ///< [term]
  std::vector<double> free_rows_, y_, impulse_;
  WarmStart warm_;
};

extern template class StepTerms<double>;
extern template class StepTerms<float>;

}  // namespace tarsus
