// Contact detection: the shapes of a model that may touch, and where they do.
//
// MuJoCo's rules choose the pairs: contype and conaffinity must meet. Excluded are two shapes of one link, shapes of a
// link and its parent (the world does not count as a parent), two shapes that never move, and bodies of an <exclude>.
// An explicit <pair> is always included. surface.hpp combines two surfaces to a contact's parameters.
#pragma once

#include <memory>
#include <vector>

#include "tarsus/constraint/capsules.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/carried_spheres.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"
#include "tarsus/geometry/sphere_phase.hpp"

namespace tarsus {

/// A shape fixed to a link, to a mocap body, or in the world.
struct ContactShape {
  static constexpr int kGrounded = -2;
  Shape shape;
  int link = -1;  ///< -1: none
  int tree = -1;  ///< tree of that link, by its free joint; kGrounded: a tree that joints fix to the world; -1: no link
  int mocap = -1;          ///< Model::carrier() of a shape on a mocap body
  ShapePose pose;          ///< in the carrier's frame; without a carrier in the world
  Vec3d centre{0, 0, 0};   ///< of the bounding sphere, in the same frame [m]
  double radius = 0;       ///< of that sphere; infinite for planes [m]
  int body = 0, geom = 0;  ///< source: spec.bodies[body].geoms[geom]
  int contype = 1, conaffinity = 1;
  /// The carrier, whose LinkState has its pose; -1: the world.
  int carrier() const { return link >= 0 ? link : mocap; }
};

/// A geom as a shape, with the model's assets that it uses.
struct SolidShape {
  Shape shape;
  std::shared_ptr<const ConvexHull> hull;
  std::unique_ptr<HeightField> field;
  std::string missing;  ///< why there is no shape: an asset that was not read, a type that is not simulated
};
/// @throws InputError for sizes that are negative or not finite, hulls without volume
SolidShape solid_shape(const ModelSpec& spec, const GeomSpec& geom);

/// Warnings, at their lines, of shapes and pairs that are left out of contact, and of contacts that differ from what
/// the file says.
Diagnostics contact_findings(const ModelSpec& spec);

/// An explicit <pair> of shapes, first < second.
struct ContactPair {
  int first, second;
  ContactSurface surface;
  Location where;
  std::shared_ptr<const DirectionalFriction> directional;  ///< of contacts, also in copies; null: none
};

class ContactGeometry {
 public:
  /// Leaves out shapes and pairs that contact_findings() names.
  /// @throws InputError for sizes that are negative or not finite, hulls without volume, unknown names in pairs
  explicit ContactGeometry(const Model& model);
  /// No shapes at all.
  ContactGeometry() = default;

  std::span<const ContactShape> shapes() const { return shapes_; }
  /// The two of shapes() that a contact of detect() is between.
  static std::pair<int, int> shapes_of(const LinkContact& contact) {
    return {int(contact.identity >> 45) - 1, int(contact.identity >> 28 & 0x1ffff) - 1};
  }
  /// Distance between the contact's two shapes [m]; point.distance is what exceeds their margin.
  double separation(const LinkContact& contact) const;
  /// Whether shapes i and j may touch.
  bool may_touch(int i, int j) const;
  /// Pairs that may touch, i < j, in the order of their links. Empty if the model is crowded(): a broad phase then
  /// finds them at each step.
  std::span<const BodyPair> pairs() const { return pairs_; }
  /// The combined surface of two shapes that may touch.
  ContactSurface surface_of(BodyPair pair) const;
  /// Sliding friction of the pair if its two geoms' coefficients are scaled; an explicit pair's is scaled by the larger
  /// factor.
  double friction_of(BodyPair pair, double first_scale, double second_scale) const;
  std::span<const ContactPair> explicit_pairs() const { return explicit_pairs_; }  ///< sorted by first, then by second
  /// There are so many shapes that a broad phase finds their pairs.
  bool crowded() const { return crowded_; }
  bool empty() const { return !crowded_ && pairs_.empty(); }

  /// Whether one shape may fall while the other does not: they are of different trees, at least one of which is not
  /// fixed to the world.
  bool fall_apart(BodyPair pair) const { return shapes_[pair.first].tree != shapes_[pair.second].tree; }

  /// Contacts of this pose, and those that the present velocities could close within h seconds. Where the two
  /// fall_apart(), a free fall during the step counts as well, so that a body that rests on the ground with a small gap
  /// does not fall for a step. Single world, after kinematics() with qvel.
  template <class R>
  void detect(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts);

 private:
  struct Kinds {          ///< of equal surfaces, for models with too many pairs to store one each
    std::vector<int> of;  ///< [shape]
    std::vector<Surface> all;
    std::vector<ContactSurface> mixed;  ///< [kind][kind], empty if there are many kinds
    std::vector<LinkContact> usual;     ///< the same: a contact without its point, links and identity
    ContactSurface last;
  };
  struct Found {  ///< a pair, sorted by its links
    std::uint64_t links;
    BodyPair pair;
    double reach;  ///< [m] of the step
    bool operator<(const Found& other) const {
      return links != other.links             ? links < other.links
             : pair.first != other.pair.first ? pair.first < other.pair.first
                                              : pair.second < other.pair.second;
    }
  };
  struct Crowd {  ///< pairs of a step from broad phases
    /// What the tests of a pair of a crowd and the contact of two spheres need of a shape, together in memory.
    struct Member {
      MovingSphere around;  ///< the bounding sphere, of this step
      int link = -1, tree = -1, kind = 0, contype = 0, conaffinity = 0;
      bool moves = false;
      bool plain = false;  ///< only links and masks decide about a pair of two such shapes
      bool ball = false, plane = false;
      bool centred = false;  ///< the shape is at its carrier's origin, and so is the centre of its bounding sphere
    };
    int links = 0;
    std::vector<Member> members;               ///< [shape]
    std::vector<std::uint32_t> balls, planes;  ///< shapes
    bool others = false;                       ///< there are other shapes
    /// [ball] x, y, z and the radius, enlarged by what closes in the step at most
    std::array<std::vector<double>, 4> spheres;
    SpherePhase between_balls;
    std::vector<int> groups;  ///< [shape] 0: spheres and planes, whose pairs need no boxes
    std::vector<Aabb> boxes;  ///< [shape]
    BroadPhase broad;
    std::vector<Found> found, near;
    std::vector<std::uint32_t> end;  ///< [link + 1] end of the pairs whose higher link this is
    Kinds kinds;
  };
  struct Listed {
    ContactSurface surface;
    LinkContact usual;       ///< all but its point
    Vec3d parting{0, 0, 0};  ///< for collide()
    int capsule = -1;        ///< index in CapsulesOnPlanes::pairs
    bool slender = false;    ///< bounding capsules separate the two better than spheres
  };
  struct CapsulesOnPlanes {  ///< spheres and capsules on planes of the world
    std::vector<CapsuleOnPlane> pairs;
    std::vector<int> near;
    std::vector<CapsuleTouches> touches;  ///< [near]
  };
  struct Poses {
    std::vector<ShapePose> at;  ///< [shape] in the world
    std::vector<char> known;    ///< [shape] the pose is this step's: only shapes near others need one
    std::vector<char> still;    ///< [shape] the pose never changes: on the world
    std::vector<int> planes;    ///< moving shapes whose pose a plane pair needs
  };
  struct Around {                         ///< capsules around shapes
    std::vector<CapsuleAround> capsules;  ///< [shape]
    std::vector<CapsulePair> pairs;       ///< slender pairs of a step
    std::vector<unsigned char> near;      ///< [pair]
  };
  void add_shape(const Model& model, int body, int geom);
  void add_pairs(const Model& model);
  void list_pairs();
  /// Two links as terms are sorted: the higher link first.
  static std::uint64_t in_order(int a, int b);
  Found found(const BodyPair& pair) const;
  void find_kinds();
  void gather_crowd();
  void sort_found();
  template <class R>
  void detect_crowd(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts);
  void place_members(double h);
  /// The most [m] that a shape of a crowd contributes to the reach of its pairs.
  double closes(std::size_t i, double h) const {
    return std::max(0.0, margin_[i]) + fall_ + h * crowd_.members[i].around.speed;
  }
  void find_near(BodyPair pair, double h);
  void find_near_planes(double h);
  template <class R>
  void touch_balls(const BasicData<R>& data, const Found& found, double h, std::vector<LinkContact>& contacts);
  const ContactSurface& surface_at(BodyPair pair);
  const ContactPair* explicit_pair(int i, int j) const;
  bool moves(std::size_t i) const { return shapes_[i].carrier() >= 0; }
  template <class R>
  void place(const BasicData<R>& data);
  template <class R>
  const ShapePose& posed(const BasicData<R>& data, int i);
  double fall(int i, int j) const { return fall_apart({std::uint32_t(i), std::uint32_t(j)}) ? fall_ : 0; }
  /// One of the two may be stopped within the step while the other goes on.
  bool stopped_apart(int i, int j) const {
    return moves(std::size_t(i)) && moves(std::size_t(j)) && fall_apart({std::uint32_t(i), std::uint32_t(j)});
  }
  double reach(int i, int j, double h, double margin) const;
  bool near(int i, int j, double reach) const;
  template <class R>
  void touch(const BasicData<R>& data, int i, int j, const ContactSurface& both, const LinkContact& usual,
             double margin, double h, Vec3d* parting, std::vector<LinkContact>& contacts);
  std::shared_ptr<const DirectionalFriction> directional_friction(int i, int j, const ContactSurface& surface) const;
  static LinkContact usual_contact(const ContactSurface& both);
  LinkContact usual_contact(int i, int j, const ContactSurface& both) const;
  static std::uint64_t identity(int i, int j) { return std::uint64_t(i + 1) << 45 | std::uint64_t(j + 1) << 28; }
  int add_capsule_on_plane(int i, int j, double margin);
  bool slender(int i, int j) const;
  void add_ends(const Listed& pair, const CapsuleTouches& touches, double h, std::vector<LinkContact>& contacts) const;
  template <class R>
  void find_capsule_touches(const BasicData<R>& data, std::span<const std::uint32_t> near, double h);
  template <class R>
  void sift(const BasicData<R>& data, std::span<const std::uint32_t> near, double h);

  std::vector<ContactShape> shapes_;
  std::vector<Surface> surfaces_;
  std::vector<int>
      parent_;  ///< [shape] carrier of what the shape's link hangs on; -1: the world, or the shape has no link
  std::vector<std::shared_ptr<const ConvexHull>> hulls_;  ///< also of copies
  std::vector<std::shared_ptr<const HeightField>> fields_;
  std::vector<std::uint64_t> excluded_;  ///< pairs of bodies, sorted
  std::vector<ContactPair> explicit_pairs_;
  std::vector<double> margin_;  ///< [shape] the largest of its own margin and those of its explicit pairs [m]
  std::vector<BodyPair> pairs_;
  std::vector<Listed> listed_;     ///< [pair]
  double gravity_ = 0, fall_ = 0;  ///< [m/s²]; free fall of a body within the step [m]
  bool crowded_ = false;
  Crowd crowd_;
  CarriedSpheres spheres_;  ///< around the shapes
  Poses poses_;
  CapsulesOnPlanes capsules_;
  Around around_;
  std::vector<ContactPoint> points_ = std::vector<ContactPoint>(kMaxManifold);
};

}  // namespace tarsus
