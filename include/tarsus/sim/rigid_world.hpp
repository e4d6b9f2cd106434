// Free rigid bodies with contact: SPOOK stepping and projected Gauss-Seidel.  [Lacoursière 2013; theory.md, section 4]
//
// A step's stages, as stage.hpp has them: collide finds contacts; match takes over the last step's impulses and lets
// bodies sleep; prepare builds the rows; terms solves; integrate moves. Forces act between prepare and terms.
//
// R is the precision of contacts and of their solver; poses and velocities are double in either case.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/constraint/surface.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/geometry/sphere_phase.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/step.hpp"
#include "tarsus/solver/body_contacts.hpp"
#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

/// A body in the frame of its centre of mass and principal axes.
struct RigidBody {
  double mass = 1;                        ///< [kg] > 0
  Vec3d inertia{1, 1, 1};                 ///< principal moments [kg m²] > 0
  Vec3d position{0, 0, 0};                ///< of the centre of mass, world [m]
  Quatd orientation{1, 0, 0, 0};          ///< of the principal axes
  Vec3d velocity{0, 0, 0};                ///< of the centre of mass, world [m/s]
  Vec3d angular_velocity{0, 0, 0};        ///< world [rad/s]
  Vec3d force{0, 0, 0}, torque{0, 0, 0};  ///< applied, world, at the centre of mass [N, N m]; kept from step to step
  int still_steps = 0;                    ///< steps below the sleeping speeds
  bool asleep = false;
};

/// A shape on a body, or on the world.
struct BodyShape {
  int body = -1;  ///< -1: the world
  Shape shape;
  ShapePose local;  ///< in the body's frame (centre of mass, principal axes), or in the world
  int surface = 0;
  int contype = 1,
      conaffinity = 1;  ///< MuJoCo's masks: two shapes may touch if either's type meets the other's affinity
};

/// Two points held together: three bilateral rows.
struct PointJoint {
  int body_a = 0, body_b = -1;                 ///< -1: the world
  Vec3d anchor_a{0, 0, 0}, anchor_b{0, 0, 0};  ///< in the bodies' frames, or in the world
  Spook spook;
};

struct RigidWorldOptions {
  double dt = 1.0 / 60;  ///< [s]
  Vec3d gravity{0, 0, -9.81};
  int iterations = 10;
  double tolerance = 0;  ///< [m/s], see BodyContactOptions and RowSolveOptions
  double relaxation = 1;
  /// [s²] ε of surfaces without one = this × (inverse effective mass). Negative: 0.036 dt², 1e-5 at 60 Hz: hard, and
  /// soft enough for a stack to stand by ten sweeps (decision 504).
  double relative_compliance = -1;
  double damping_time = 0;             ///< [s] τ; 0: four steps
  double margin = 0.02;                ///< [m] shapes that come closer have a contact, open or not
  double restitution_threshold = 0.5;  ///< [m/s]
  bool warm_start = true;
  int threads = 1;
  /// "lanes": BodyContactSolver; or a name of row_solver_names(). Scenes with joints always use rows: "lanes" is then
  /// taken as "gauss_seidel".
  std::string solver = "lanes";
  bool sleep = false;
  double sleep_speed = 0.01, sleep_spin = 0.02;  ///< [m/s, rad/s]
  int sleep_steps = 30;
  double speed_limit = 1e6;  ///< [m/s | rad/s] beyond which the world counts as diverged
};

/// @throws ValueError for options out of range
void check(const RigidWorldOptions& options);

struct RigidStepReport {
  WorldStatus status = WorldStatus::ok;
  int contacts = 0;             ///< touching or closer than the margin
  int touching = 0;             ///< with distance < 0
  double penetration_max = 0;   ///< [m] beyond the margin, at the start of the step
  double penetration_mean = 0;  ///< [m] over touching contacts
  int iterations = 0;
  double residual = 0;      ///< rows: natural residual; lanes: change of the last sweep [m/s]
  double first_change = 0;  ///< lanes: change of the first sweep [m/s]
  int colours = 0;
  int asleep = 0, islands = 0;            ///< bodies and groups; only with sleep
  std::array<double, kStages> seconds{};  ///< wall time by Stage: collide, match, prepare, terms, integrate
};

struct PenetrationSum;
struct ContactOwners;

template <class R>
class RigidWorld {
 public:
  /// @throws ValueError for options out of range
  explicit RigidWorld(const RigidWorldOptions& options = {});
  ~RigidWorld();
  RigidWorld(RigidWorld&&) noexcept;

  /// @throws ValueError for numbers out of range, ids that do not exist
  int add_surface(const Surface& surface);
  int add_body(const RigidBody& body);
  int add_shape(const BodyShape& shape);
  int add_joint(const PointJoint& joint);
  /// Shapes of these two bodies (-1: the world) never touch.
  void exclude(int body_a, int body_b);
  /// These two shapes may touch whatever their masks and exclude() say, as if both had this surface; -1: never.
  void pair(int shape_a, int shape_b, int surface);

  /// Drops the contacts of the last step and their impulses: the next step depends on the bodies' state alone.
  void forget_contacts();

  /// One step. A bad world stays as it was and says why; nothing is thrown.
  RigidStepReport step();

  const RigidWorldOptions& options() const { return options_; }
  RigidWorldOptions& options() { return options_; }  ///< all but `threads` may change between steps
  std::vector<RigidBody>& bodies() { return bodies_; }
  const std::vector<RigidBody>& bodies() const { return bodies_; }
  const std::vector<BodyShape>& shapes() const { return shapes_; }
  const std::vector<Surface>& surfaces() const { return surfaces_; }
  /// Of the last step, and their impulses [N s].
  const std::vector<BodyContact<R>>& contacts() const { return lanes_.contacts; }
  const std::vector<ContactImpulse<R>>& impulses() const { return lanes_.impulses; }
  /// Moments of torsional and rolling friction [N m s]; empty if no surface has any.
  const std::vector<ContactMoment<R>>& moments() const { return lanes_.moments; }
  /// The two surfaces of a contact as one.
  const ContactMaterial& material(const BodyContact<R>& contact) const { return lanes_.materials[contact.material]; }
  /// How far apart its shapes are [m], where its distance is beyond their margin.
  double separation(const BodyContact<R>& contact) const;
  /// Shapes of each of them: normal from `second` to `first`.
  struct ContactPair {
    int first, second;
    std::uint32_t feature;
  };
  const std::vector<ContactPair>& contact_pairs() const;
  double time() const { return time_; }
  /// Kinetic and potential energy [J], linear and angular momentum about the world's origin.
  double kinetic_energy() const;
  double potential_energy() const;
  Vec3d momentum() const;
  Vec3d angular_momentum() const;
  std::uint64_t state_hash() const;
  /// The rows of the last step, if it was solved by rows; else null.
  const RowProblem* rows() const;
  /// From now on steps are solved by rows and by this solver, whatever options().solver says.
  void solve_rows_by(std::unique_ptr<RowSolver> solver);

 private:
  struct Workspace;
  struct Pair {
    std::uint64_t key;
    int surface;
  };

  void classify();
  bool may_touch(const BodyShape& a, const BodyShape& b) const;
  int pair_surface(int shape_a, int shape_b) const;
  void detect(RigidStepReport& report);
  void find_candidates();
  void find_all_candidates();
  bool update_candidates();
  template <class F>
  bool within_reach(int first, int second, double reach, const F& place) const;
  bool were_within_reach(int first, int second) const;
  void drop_candidates();
  void add_candidates(int mover);
  void group_candidates();
  void detect_spheres();
  void detect_others(PenetrationSum& depth);
  void touch(int first, int second, PenetrationSum& depth);
  void put_contact(std::size_t place, const ContactOwners& owners, const ContactPoint& p, const Vec3d& arm_a,
                   const Vec3d& arm_b, bool round);
  double mass_share(const ContactOwners& owners, const Vec3d& n, const Vec3d& arm_a, const Vec3d& arm_b) const;
  void combine_surfaces();
  void mark_still(bool same_rules);
  void wake();
  bool still(int body) const;
  void keep_resting(PenetrationSum& depth);
  void match();
  void sleep(RigidStepReport& report);
  void solve_lanes(RigidStepReport& report, StageClock& clock);
  void solve_rows(RigidStepReport& report);
  std::pair<Vec3d, Vec3d> force_step(const RigidBody& body) const;
  void load_body(int body);
  bool move(RigidStepReport& report);

  RigidWorldOptions options_;
  std::vector<RigidBody> bodies_;
  std::vector<BodyShape> shapes_;
  std::vector<PointJoint> joints_;
  std::vector<Surface> surfaces_;
  std::vector<std::uint64_t> excluded_;  ///< pairs of bodies, sorted
  std::vector<Pair> pairs_;              ///< of shapes, sorted
  double time_ = 0;
  std::unique_ptr<ThreadTeam> team_;
  BodyContactSolver<R> lanes_;  ///< has the contacts and impulses, whatever solves them
  std::unique_ptr<Workspace> work_;
};

extern template class RigidWorld<float>;
extern template class RigidWorld<double>;

}  // namespace tarsus
