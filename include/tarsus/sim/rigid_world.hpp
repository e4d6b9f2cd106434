// Free rigid bodies with contact: SPOOK stepping and projected Gauss-Seidel.  [Lacoursière 2013; theory.md, section 4]
//
// The stages of a step (stage.hpp): collide finds contacts; match copies the last step's impulses and puts bodies to
// sleep; prepare and terms are those of BodyContactSolver; integrate moves the bodies. Applied forces act between
// prepare and terms. Bodies with joints or equality constraints are a matter of Stepper (step.hpp).
//
// R is the precision of the contacts and of their solver. Poses and velocities are always double.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tarsus/base/thread_team.hpp"
#include "tarsus/constraint/surface.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/geometry/sphere_phase.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/step.hpp"
#include "tarsus/solver/body_contacts.hpp"

namespace tarsus {

/// A rigid body, described in the frame of its centre of mass and principal axes.
struct RigidBody {
  double mass = 1;                        ///< [kg] > 0
  Vec3d inertia{1, 1, 1};                 ///< principal moments [kg m²] > 0
  Vec3d position{0, 0, 0};                ///< of the centre of mass, world [m]
  Quatd orientation{1, 0, 0, 0};          ///< of the principal axes
  Vec3d velocity{0, 0, 0};                ///< of the centre of mass, world [m/s]
  Vec3d angular_velocity{0, 0, 0};        ///< world [rad/s]
  Vec3d force{0, 0, 0}, torque{0, 0, 0};  ///< applied at the centre of mass, world axes [N, N m]; kept between steps
  double still_time = 0;                  ///< [s] for which it has been slow, and carried by contacts
  bool asleep = false;
  bool isotropic() const { return inertia.x == inertia.y && inertia.y == inertia.z; }
};

/// A shape that is attached to a body or to the world.
struct BodyShape {
  int body = -1;  ///< -1: the world
  Shape shape;
  ShapePose local;  ///< in the body's frame (centre of mass, principal axes), or in the world
  int surface = 0;
  int contype = 1,
      conaffinity = 1;  ///< MuJoCo's bit masks: two shapes may touch if one's type meets the other's affinity
};

/// Bodies for which a thread more is worth its barriers, several in each sweep.
inline constexpr int kBodiesEach = 256;

struct RigidWorldOptions {
  double dt = 1.0 / 60;  ///< [s]
  Vec3d gravity{0, 0, -9.81};
  int iterations = 10;
  double tolerance = 0;  ///< [m/s], see BodyContactOptions
  double relaxation = 1;
  /// ε of surfaces without their own, as a factor on the inverse effective mass [s²]. Negative: 0.036 dt², 1e-5 at 60
  /// Hz, which is stiff, yet soft enough for ten sweeps to hold a stack (decision 504).
  double relative_compliance = -1;
  double damping_time = 0;             ///< [s] τ; 0: four steps
  double margin = 0.02;                ///< [m] shapes closer than this form a contact, whether or not they touch
  double restitution_threshold = 0.5;  ///< [m/s]
  bool warm_start = true;
  int threads = 1;  ///< 1 to 256; at most one a core and for kBodiesEach is used; same bits for any number
  bool sleep = false;
  double sleep_speed = 0.01, sleep_spin = 0.02;  ///< [m/s, rad/s]
  double sleep_time = 0.5;                       ///< [s]
  double speed_limit = 1e6;                      ///< [m/s | rad/s] speed above which the world counts as diverged
};

/// @throws ValueError for options out of range
void check(const RigidWorldOptions& options);

struct RigidStepReport {
  WorldStatus status = WorldStatus::ok;
  int contacts = 0;             ///< contacts within the margin
  int touching = 0;             ///< contacts with distance < 0
  double penetration_max = 0;   ///< [m] largest depth beyond the margin, at the start of the step
  double penetration_mean = 0;  ///< [m] mean over touching contacts
  int iterations = 0;
  double residual = 0;      ///< largest change of a relative velocity by one contact in the last sweep [m/s]
  double first_change = 0;  ///< the same in the first sweep [m/s]
  int colours = 0;
  int asleep = 0, islands = 0;            ///< sleeping bodies, and islands; only with sleep
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
  /// Shapes of these two bodies never touch (-1: the world).
  void exclude(int body_a, int body_b);
  /// These two shapes may touch regardless of their masks and of exclude(), as if both had this surface; -1: they never
  /// touch.
  void pair(int shape_a, int shape_b, int surface);

  /// Drops the contacts of the last step and their impulses, so that the next step depends only on the state of the
  /// bodies.
  void forget_contacts();

  /// Takes one step. If the step fails, the state stays unchanged and the report has the status.
  /// @throws ValueError for options that were changed to numbers out of range
  RigidStepReport step();

  const RigidWorldOptions& options() const { return options_; }
  RigidWorldOptions& options() { return options_; }  ///< all except `threads` may change between steps
  std::vector<RigidBody>& bodies() { return bodies_; }
  const std::vector<RigidBody>& bodies() const { return bodies_; }
  const std::vector<BodyShape>& shapes() const { return shapes_; }
  const std::vector<Surface>& surfaces() const { return surfaces_; }
  /// Contacts of the last step, and their impulses [N s].
  const std::vector<BodyContact<R>>& contacts() const { return lanes_.contacts; }
  const std::vector<ContactImpulse<R>>& impulses() const { return lanes_.impulses; }
  /// Moments of torsional and rolling friction [N m s]; empty if no surface has any.
  const std::vector<ContactMoment<R>>& moments() const { return lanes_.moments; }
  /// Combined material of the contact's two surfaces.
  const ContactMaterial& material(const BodyContact<R>& contact) const { return lanes_.materials[contact.material]; }
  /// Distance between the contact's shapes [m]. BodyContact::distance is this minus their margin.
  double separation(const BodyContact<R>& contact) const;
  /// The two shapes of each contact; the normal points from `second` to `first`.
  struct ContactPair {
    int first, second;
    std::uint32_t feature;
  };
  const std::vector<ContactPair>& contact_pairs() const;
  double time() const { return time_; }
  int threads() const;  ///< number of threads that a step uses
  /// Kinetic and potential energy [J], linear and angular momentum about the world's origin.
  double kinetic_energy() const;
  double potential_energy() const;
  Vec3d momentum() const;
  Vec3d angular_momentum() const;
  std::uint64_t state_hash() const;

 private:
  struct Workspace;

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
  bool still(int body) const;
  void keep_resting(PenetrationSum& depth);
  void match();
  void sleep(RigidStepReport& report);
  bool slow(const RigidBody& body) const;
  void solve(RigidStepReport& report, StageClock& clock);
  std::pair<Vec3d, Vec3d> force_step(const RigidBody& body) const;
  void load_body(int body);
  bool respond();
  bool move(RigidStepReport& report);
  void count_still();

  RigidWorldOptions options_;
  std::vector<RigidBody> bodies_;
  std::vector<BodyShape> shapes_;
  std::vector<Surface> surfaces_;
  std::set<std::pair<int, int>> excluded_;    ///< pairs of bodies, the lower one first
  std::map<std::pair<int, int>, int> pairs_;  ///< surface of pairs of shapes, the lower one first
  double time_ = 0;
  std::unique_ptr<ThreadTeam> team_;
  int most_threads_ = 1;
  BodyContactSolver<R> lanes_;  ///< owns contacts and impulses
  std::unique_ptr<Workspace> work_;
};

extern template class RigidWorld<float>;
extern template class RigidWorld<double>;

}  // namespace tarsus
