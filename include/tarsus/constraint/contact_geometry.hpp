// The shapes of a model that may touch, and where they do.
//
// Which pairs may touch follows MuJoCo: contype and conaffinity; not two shapes of one link, nor of a link and its
// parent (the world is nobody's parent in this), nor two that never move, nor bodies of an <exclude>; those of an
// explicit <pair> always. Friction, torsion and rolling are the larger of the two shapes', dimensions too, unless one
// has priority.
#pragma once

#include <memory>
#include <vector>

#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"

namespace tarsus {

/// MJCF's solref as SPOOK's numbers: (time constant, damping ratio) gives the time in which errors decay, with no
/// compliance; (-stiffness, -damping) the compliance 1/stiffness and damping/stiffness. Empty: the defaults. MuJoCo's
/// softness in proportion to the mass that a row feels (solimp) has no counterpart: our contacts are rigid unless a
/// stiffness is given. A time constant may stand alone.  @throws ValueError for other than these
Spook spook_of(std::span<const double> solref);

/// A shape fixed to a link.
struct ContactShape {
  Shape shape;
  int link = -1;           ///< -1: the world
  ShapePose pose;          ///< in the link's frame, in the world for link -1
  Vec3d centre{0, 0, 0};   ///< of the sphere around it, in the link's frame [m]
  double radius = 0;       ///< of that sphere, infinite for planes [m]
  int body = 0, geom = 0;  ///< where it came from: spec.bodies[body].geoms[geom]
};

class ContactGeometry {
 public:
  /// Shapes that are not simulated yet are left out and named in diagnostics().
  /// @throws InputError for sizes that are negative or not finite, hulls without volume, unknown names in pairs
  explicit ContactGeometry(const Model& model);
  /// No shapes at all.
  ContactGeometry() = default;

  std::span<const ContactShape> shapes() const { return shapes_; }
  /// Which two of shapes() a contact of detect() is between.
  static std::pair<int, int> shapes_of(const LinkContact& contact) {
    return {int(contact.identity >> 45) - 1, int(contact.identity >> 28 & 0x1ffff) - 1};
  }
  /// Whether shapes i and j may touch.
  bool may_touch(int i, int j) const;
  /// Pairs that may touch, i < j, in the order of their links; empty when there are so many that a broad phase finds
  /// them anew at each step.
  std::span<const BodyPair> pairs() const { return pairs_; }
  bool empty() const { return !crowded_ && pairs_.empty(); }
  const Diagnostics& diagnostics() const { return diagnostics_; }

  /// Contacts of this pose, and those that the present velocities and a fall could bring within h seconds: what rests
  /// on the ground a hair above it is not to fall for a step. Single world, after kinematics() with qvel.
  template <class R>
  void detect(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts);

 private:
  struct Surface {
    int contype = 1, conaffinity = 1, priority = 0, dimension = 3;
    std::array<double, 3> friction{1, 0, 0};
    Spook spook;
    bool soft = false;  ///< spook was given
    double mix = 1, margin = 0;
  };
  struct Placed {  ///< a shape in the world
    Vec3d centre, velocity;
    double turn;   ///< speed of the surface of its sphere by rotation alone [m/s]
    double speed;  ///< the fastest that a point of its sphere can be [m/s]
    ShapePose pose;
    bool posed;  ///< pose is this step's: only shapes that come near others need one
  };
  struct Sphere {  ///< all that a shape can reach within the step
    Vec3d centre;
    double radius;
  };
  struct Override {  ///< of an explicit pair
    std::uint64_t key;
    Surface surface;
  };
  void add_shape(const Model& model, int body, int geom);
  std::string attach_asset(const ModelSpec& spec, const GeomSpec& geom, Shape& shape);
  void add_pairs(const Model& model);
  void list_pairs();
  const Override* explicit_pair(int i, int j) const;
  Surface surface(int i, int j) const;
  bool moves(std::size_t i) const { return shapes_[i].link >= 0; }
  void place(int i, const Vec3d& origin, const Mat3d& rotation, const Motion<double>& velocity);
  template <class R>
  const Placed& posed(const BasicData<R>& data, int i);
  double reach(int i, int j, double h, double margin) const;
  bool near(int i, int j, double reach) const;
  template <class R>
  void touch(const BasicData<R>& data, int i, int j, const Surface& both, double h, std::vector<LinkContact>& contacts);

  std::vector<ContactShape> shapes_;
  std::vector<Surface> surfaces_;
  std::vector<int> parent_;  ///< [shape] link that the shape's link hangs on, -1: the world, -2: never moves
  std::vector<std::unique_ptr<ConvexHull>> hulls_;
  std::vector<std::unique_ptr<HeightField>> fields_;
  std::vector<std::uint64_t> excluded_;  ///< pairs of links, sorted
  std::vector<Override> overrides_;      ///< sorted by key
  std::vector<double> margin_;           ///< [shape] the largest of its own and of its explicit pairs' [m]
  std::vector<BodyPair> pairs_;
  std::vector<Surface> pair_surfaces_;  ///< [pair]
  double gravity_ = 0, fall_ = 0;       ///< [m/s²]; what it moves a body within the step [m]
  bool crowded_ = false;
  Diagnostics diagnostics_;
  std::vector<Placed> placed_;
  std::vector<Sphere> spheres_;
  std::vector<ContactPoint> points_ = std::vector<ContactPoint>(kMaxManifold);
  std::vector<Aabb> boxes_;
  BroadPhase broad_;
};

}  // namespace tarsus
