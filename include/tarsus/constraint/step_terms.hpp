// The terms of one articulated world's step (solver/term.hpp): contacts, joint limits, dry joint friction, drives with
// force limits, and equality constraints beside them; built from the step's start, solved at its end in one problem.
//
//     v⁺ = v⁰ + M̂⁻¹ (Jᵀ γ + J_eᵀ λ_e)
//
// v⁰ is where the step would go without them, M̂ = M + K with the drives that have no limit. It is known only where
// something needs it; else what it would come of is solved for together with the terms. One kind, one file:
// contact_terms.inl, limit_terms.inl, friction_terms.inl, path_terms.inl; drives are made by the step
// (sim/drive_rows.inl).
//
// Every row has R > 0: a share of the inverse mass that it feels (decision 504) where nobody gave a compliance. What
// sticks does not creep by it: the proximal point of such rows is the last step's impulse.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tarsus/constraint/force_row.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/constraint/islands.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/constraint/surface.hpp"
#include "tarsus/constraint/tree_operator.hpp"
#include "tarsus/constraint/user_limit.hpp"
#include "tarsus/geometry/narrow_phase.hpp"

namespace tarsus {

/// A point at which two links touch, or may touch within the step. At least one of them is not the world.
struct LinkContact {
  int a = -1, b = -1;   ///< links, -1: the world
  ContactPoint point;   ///< normal from b to a; distance beyond the margin, where forces begin
  int dimension = 3;    ///< rows, MuJoCo's condim: 1 frictionless, 3 sliding, 4 and torsion, 6 and rolling
  double friction = 1;  ///< μ of sliding, the larger where it depends on the direction
  /// Of μ along the tangents; (1, 1) but for condim 3 and 4 of an explicit pair. Where it is not, the tangents are
  /// those of MuJoCo's contact frame.
  std::array<double, 2> friction_share{1, 1};
  double torsional = 0, rolling = 0;  ///< [m]: torque bounds are these times the normal force
  double restitution = 0;
  Spook spook;                      ///< ε > 0 [m/N]; where it is 0:
  double relative_compliance = 0;   ///< [s²] ε in proportion to the inverse mass; where that is 0 too: the default
  SolverRow solver;                 ///< in the place of both, where it has a share
  double gap_share = 1;             ///< of the distance, what the softness sees: ContactSoftness
  double fastest = kContactReturn;  ///< way back of what is deep, without ε > 0 [m/s]
  std::uint64_t identity = 0;       ///< the same from step to step, for warm starts; 0: none
};

/// Two directions t₁, t₂ with t₁ × t₂ = n, from the unit normal n alone.
std::array<Vec3d, 2> contact_tangents(const Vec3d& normal);
/// Those of MuJoCo's contact frame: the first as near as can be to y, or to z where the normal is near y.
std::array<Vec3d, 2> frame_tangents(const Vec3d& normal);

enum class StepStatus : std::uint8_t {
  converged,            ///< residual within tolerance, impulses within their sets
  swept,                ///< but for piles, which sweeps have left at the residual
  cut_short,            ///< in lanes: max_iterations are spent, and the best iterate misses by no more than kLost
  too_many_iterations,  ///< the best iterate was taken; in lanes: the world is to take the step by itself
  not_finite,           ///< a number that is not finite came in; no term acted
};
const char* name(StepStatus status);

/// How the terms of one step were solved.
struct RowsReport {
  StepStatus status = StepStatus::converged;
  int rows = 0, contacts = 0, touching = 0;  ///< touching: contacts with a force
  int limits = 0;                            ///< those that hold a joint, users' too
  int drives = 0, saturated = 0;             ///< drives with a force limit, and those at it
  int iterations = 0;                        ///< of Newton: factorisations of the tree
  int piled = 0, sweeps = 0;                 ///< terms in piles, which sweeps solve instead, and how many sweeps
  double residual = 0;                       ///< natural residual: [m/s]
  double penetration = 0;                    ///< deepest beyond the margin, at the start of the step [m]
};

/// Islands that sweeps solve in the place of Newton's method: those of `least_trees` or more, in steps whose contacts
/// between links take more than `most_operations` to eliminate once (decision 511).
struct PileOptions {
  int least_trees = kManyTrees;
  double most_operations = 1e7;
  SweepOptions sweeps;
};

struct TermOptions {
  bool joints = false;  ///< joint ranges and dry joint friction
  Spook limit_spook;    ///< of joint ranges
  NewtonOptions solve;
  PileOptions piles{};
  /// Compliance of rows without one of their own, in h² × the inverse mass that the row feels (decision 504); it bounds
  /// what a limit that loops block costs (decision 506).
  double relative_compliance = 0.0144;
  double restitution = 0;                ///< of every contact
  double restitution_threshold = 0.1;    ///< approach below which nothing bounces [m/s]
  std::vector<UserLimit> user_limits{};  ///< one world at a time
};

/// What the terms of one world carried at the end of a step, where the next one starts.
struct TermMemory {
  enum class Kind : std::uint8_t { contact, limit, user_limit, friction_loss, drive, path, count };
  struct Entry {
    Kind kind;
    std::uint64_t identity;
    int a, b, nrow;  ///< links of a contact
    Vec3d position;
    /// γ, and R (y - γ): of each row; of a contact the normal's, sliding friction's in world axes, torsion's, and
    /// rolling's in world axes.
    double impulse[8], excess[8];
  };
  double h = 0;  ///< length of that step [s]
  /// So many steps more go to sweeps at once, where they have a pile: Newton's method has given up.
  int sweep_steps = 0;
  std::vector<Entry> entries;
};

/// The terms of one world. Keeps scratch and warm start between steps; not for use by two threads at once.
template <class R>
class StepTerms {
 public:
  StepTerms(const Model& model, const TermOptions& options);

  /// A step of h seconds from (qpos, qvel); data as maba() leaves it, with the links' origins as well (kinematics()
  /// keeps the rest). free_velocity: v⁰ = qvel + h q̈⁰. What is passed must live until solve() is over.
  /// @param contacts in any order, which does not change the result; they change places with the last step's
  /// @param joint_force not empty: v⁰ is not known, free_velocity is qvel, and data as TreeOperator::begin() says
  void begin(BasicData<R>& data, double h, In<R> qpos, In<R> qvel, In<R> free_velocity,
             std::vector<LinkContact>& contacts, In<R> joint_force = {});
  void add_limits();
  void add_user_limits();
  void add_friction_loss();
  /// A drive that makes the impulse clamp(push - stiffness (v - qvel)) on one joint: push [N s | N m s] and velocity in
  /// world axes for rotations and translations, lower and upper in N s. @param stiffness h k_d + h² k_p > 0
  void add_drive(const JointRows& rows, const Vec3d& push, double stiffness, double lower, double upper);
  /// What acts along generalised directions; the rows' dofs and arms must live until solve() is over. After all others.
  void add_force_rows(std::span<const ForceRow> rows);
  int rows() const { return int(rows_.size()); }

  /// free_velocity becomes v⁺ in `velocity`. data's factors are lost. Then join_limits(), or end().
  void solve(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity);
  /// Whether v⁺ passes the range of a joint that its start did not bring near it, as what a contact throws may. Such
  /// ends of ranges, and users' limits, are terms when the step is laid out and solved once more, from begin() on; it
  /// starts from this solution.
  bool join_limits(In<R> velocity);
  /// Ball joints at the end of their range that go round it: 1 at the first DoF of each, empty where there are none.
  void turning_ranges(double h, In<R> qpos, In<R> qvel, AlignedVector<R>& turning) const;
  /// Whether the force of a ball joint's range turned with it by more than the step resolves, or a spring in its place
  /// (src/constraint/range_spring.hpp) holds more than it was made for. Then range_springs() are others, and the step
  /// is to be solved once more.
  bool stiffen_ranges(In<R> velocity);
  /// Adds them to the joints' inertia and force.
  void add_range_springs(Out<R> joint_inertia, Out<R> joint_force) const;
  /// The step is over: puts away what the next one starts from.
  void end();

  const RowsReport& report() const { return report_; }
  std::span<const LinkContact> contacts() const { return contacts_; }
  /// Force of a contact of contacts() over the last step, on link a, world axes [N].
  Vec3d force(int contact) const;
  /// Its torque of torsional and rolling friction, on link a, world axes [N m].
  Vec3d torque(int contact) const;
  /// Force with which a joint's range held it over the last step, against whichever end [N | N m].
  double limit_force(int joint) const { return force_of(Kind::limit, 2 * std::uint64_t(joint), 2); }
  /// The same of user_limits[i], along its gradient.
  double user_limit_force(int i) const { return force_of(Kind::user_limit, std::uint64_t(i)); }
  /// Force over the last step of a row of add_force_rows() [N | N m].
  double force_of_row(std::size_t row) const { return force_of(Kind::path, row); }
  /// Impulse of term i, and of the bilateral rows.
  std::span<const double> impulse(int term) const {
    return {impulse_.data() + terms_[term].first_row, std::size_t(terms_[term].nrow)};
  }
  std::span<const Term> terms() const { return terms_; }
  const TreeOperator<R>& mass() const { return mass_; }

  /// Changes places with the warm start for the next step: another world's terms may be solved in between.
  void exchange(TermMemory& memory) { std::swap(warm_.last, memory); }

 private:
  using Kind = TermMemory::Kind;
  struct Name {
    Kind kind;
    std::uint64_t identity;
    bool operator==(const Name&) const = default;
  };
  struct ContactMotion {
    Motion<double> speed, free;  ///< at the start of the step, and where x = 0
  };
  struct Range {
    int joint, qpos, qvel;
    bool axial;
    double lower, upper;
    HalfTurn half;  ///< of upper
    bool light;     ///< of a ball: it holds a light link between heavy ones
    bool holds(double q, double inside) const { return q - lower > inside && upper - q > inside; }
  };
  ContactMotion motion(std::size_t contact) const;
  int add_term(const Name& name, Term term, const TermRow* rows, const double* speed, const double* free);
  int add_joint_term(const Name& name, Term term, const JointRows& rows, TermRow row);
  /// Sum over the terms of `count` identities from this one on.
  double force_of(Kind kind, std::uint64_t identity, std::uint64_t count = 1) const;
  void slow_down_deep_contacts();
  void take_contacts(std::vector<LinkContact>& contacts);
  bool lay_out_contacts();
  TermRow normal_row(const LinkContact& contact, double inverse_mass, double speed) const;
  void add_contact(std::size_t index, int from);
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
  /// Of rows without a compliance of their own: R of options_.relative_compliance, both in the inverse mass.
  static constexpr double kRelative = 4 / (1 + 4 * kDampingSteps);
  /// R of a row that feels `inverse_mass`; own: 0 where nobody gave a compliance.
  double compliance(double own, double inverse_mass) const;
  double joint_inverse_mass(const JointRows& rows) const;
  double contact_inverse_mass(const LinkContact& contact, double ReferenceMass::*part) const;
  void find_force_row_masses(std::span<const ForceRow> rows);
  void add_force_row(std::size_t index, const ForceRow& row, bool of_joint);
  void settle(In<R> joint_inertia, Out<R> velocity);
  // warm_start.inl
  void solve_set(const TermSet& set, bool pile, In<R> joint_inertia, const BilateralRows<R>& bilateral,
                 Out<R> velocity);
  void count_carried();
  void store_warm_start();
  void store_contact(std::size_t contact, TermMemory::Entry& to) const;
  double excess(int row) const { return rows_[row].compliance * (y_[row] - impulse_[row]); }
  void find_warm_start();
  void find_nearby();
  int find_last(const Name& name, const LinkContact* contact, int guess);
  void take(int term, int last);
  void start_from_try();
  void take_contact(int term, const TermMemory::Entry& last, double scale);

  struct Step {  ///< as begin() was given it
    BasicData<R>* data = nullptr;
    double h = 0;
    In<R> qpos, qvel, free;
    In<R> force;  ///< of the joints, if x = 0 is at qvel
    double ahead() const { return force.empty() ? h : 0; }
  };
  struct Masses {
    std::vector<ReferenceMass> model, own;  ///< [link]; own: of a world with masses of its own
    const std::vector<ReferenceMass>& now() const { return own.empty() ? model : own; }
    /// @param numbers [link][kReferenceNumbers], in R for both: a world's own may be the model's
    static void take(In<R> numbers, std::vector<ReferenceMass>& to) {
      to.clear();
      for (std::size_t i = 0; i < numbers.size(); i += kReferenceNumbers)
        to.push_back({double(numbers[i]), double(numbers[i + 1]), double(numbers[i + 2]), double(numbers[i + 3]),
                      double(numbers[i + 4])});
    }
  };
  struct Limits {
    std::vector<Range> ranges;                            ///< of all joints that have one
    std::vector<std::optional<SolverParameters>> solver;  ///< [joint] of its range, if it says something
    std::vector<char> near;                               ///< [joint][2] this end of its range is a term
    struct Bound {
      Name name;
      JointRows rows;
      double gap;
      double miss = 0;    ///< of what joined: of v⁺ without it [m/s | rad/s]
      bool near = false;  ///< of users': it is a term
    };
    std::vector<Bound> joined, users;  ///< users': of this step, that have a row
    // Of the try that passed them:
    std::vector<Name> names;
    std::vector<Term> terms;
    std::vector<double> y;
    int iterations = 0;
    AlignedVector<R> inertia, force;  ///< [nv] of range springs; empty: there are none
    int springs = 0;                  ///< tries of them
  };
  struct Geometry {
    std::vector<ContactRows> contacts;  ///< [contact]
    std::vector<ContactPlace> usual;    ///< those whose first rows a kernel makes
    std::vector<JointRows> joints;      ///< [term after the contacts]
    std::vector<PathRow> paths;         ///< [term after those of joints]
  };
  struct Paths {  ///< of add_force_rows()
    explicit Paths(const Model& model) : rows(model) {}
    DelassusRows<R> rows;
    std::vector<int> joints;
    std::vector<double> inverse_mass;
  };
  struct WarmStart {
    TermMemory last;
    std::vector<char> taken;  ///< [last] somebody starts from it
    std::vector<int> lost;    ///< contacts without a last step under their identity
  };

  const Model& model_;
  TermOptions options_;
  RowsReport report_;
  Masses masses_;
  Limits limits_;
  TreeOperator<R> mass_;
  StepNewton newton_;
  Sweeps sweeps_;
  Islands islands_;
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
