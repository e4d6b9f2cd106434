// The shapes of a model that may touch, and where they do.
//
// Which pairs may touch follows MuJoCo: contype and conaffinity; not two shapes of one link, nor of a link and its
// parent (the world is nobody's parent in this), nor two that never move, nor bodies of an <exclude>; those of an
// explicit <pair> always. What two surfaces make of a contact: surface.hpp.
#pragma once

#include <memory>
#include <vector>

#include "tarsus/constraint/capsule_around.hpp"
#include "tarsus/constraint/plane_touches.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/carried_spheres.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"

namespace tarsus {

/// A shape fixed to a link, to a mocap body, or in the world.
struct ContactShape {
  static constexpr int kGrounded = -2;
  Shape shape;
  int link = -1;           ///< -1: no link
  int tree = -1;           ///< that link's, by its free joint; kGrounded: it hangs on the world by others; -1: no link
  int mocap = -1;          ///< Model::carrier() of what rides on a mocap body
  ShapePose pose;          ///< in the carrier's frame, in the world where there is none
  Vec3d centre{0, 0, 0};   ///< of the sphere around it, in the same frame [m]
  double radius = 0;       ///< of that sphere, infinite for planes [m]
  int body = 0, geom = 0;  ///< where it came from: spec.bodies[body].geoms[geom]
  int contype = 1, conaffinity = 1;
  /// Whose LinkState has the carrier's pose; -1: the world.
  int carrier() const { return link >= 0 ? link : mocap; }
};

/// A geom as a shape, with what it needs of the model's assets.
struct SolidShape {
  Shape shape;
  std::shared_ptr<const ConvexHull> hull;
  std::unique_ptr<HeightField> field;
  std::string missing;  ///< why it cannot be: an asset that was not read, a type that is not simulated
};
/// @throws InputError for sizes that are negative or not finite, hulls without volume
SolidShape solid_shape(const ModelSpec& spec, const GeomSpec& geom);

/// An explicit <pair> of shapes, first < second.
struct ContactPair {
  int first, second;
  ContactSurface surface;
  Location where;
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
  /// How far apart its shapes are [m], where point.distance is beyond their margin.
  double separation(const LinkContact& contact) const;
  /// Whether shapes i and j may touch.
  bool may_touch(int i, int j) const;
  /// Pairs that may touch, i < j, in the order of their links; empty when there are so many that a broad phase finds
  /// them anew at each step.
  std::span<const BodyPair> pairs() const { return pairs_; }
  /// What the surfaces of two shapes that may touch are to each other.
  ContactSurface surface_of(BodyPair pair) const;
  /// Its sliding friction where the two geoms' own are multiplied; an explicit pair's by the larger factor.
  double friction_of(BodyPair pair, double first_scale, double second_scale) const;
  std::span<const ContactPair> explicit_pairs() const { return explicit_pairs_; }  ///< by first, then by second
  /// So many shapes that a broad phase finds their pairs.
  bool crowded() const { return crowded_; }
  bool empty() const { return !crowded_ && pairs_.empty(); }
  const Diagnostics& diagnostics() const { return diagnostics_; }

  /// One may fall while the other does not: they are not of one tree, nor both of trees that hang on the world.
  bool fall_apart(BodyPair pair) const { return shapes_[pair.first].tree != shapes_[pair.second].tree; }

  /// Contacts of this pose, and those that the present velocities could bring within h seconds, or a fall where the
  /// two fall_apart(): what rests on the ground a hair above it is not to fall for a step. Single world, after
  /// kinematics() with qvel.
  template <class R>
  void detect(const BasicData<R>& data, double h, std::vector<LinkContact>& contacts);

 private:
  struct Kinds {          ///< of surfaces that are alike, where pairs are too many to be listed with theirs
    std::vector<int> of;  ///< [shape]
    std::vector<Surface> all;
    std::vector<ContactSurface> mixed;  ///< [kind][kind], empty where there are many kinds
    ContactSurface last;
  };
  struct Found {  ///< a pair, in the order of its links
    std::uint64_t links;
    BodyPair pair;
    bool operator<(const Found& other) const {
      return links != other.links             ? links < other.links
             : pair.first != other.pair.first ? pair.first < other.pair.first
                                              : pair.second < other.pair.second;
    }
  };
  struct Crowd {  ///< where a broad phase finds the pairs of a step
    int links = 0;
    std::vector<Aabb> boxes;
    BroadPhase broad;
    std::vector<Found> found, near;
    std::vector<std::uint32_t> end;  ///< [link + 1] of the pairs of which it is the higher one
    Kinds kinds;
  };
  struct Listed {
    ContactSurface surface;
    LinkContact usual;       ///< but for its point
    Vec3d parting{0, 0, 0};  ///< for collide()
    int capsule = -1;        ///< of CapsulesOnPlanes::pairs
    bool slender = false;    ///< capsules around the two tell more than spheres
  };
  struct CapsulesOnPlanes {  ///< what rolls on planes of the world
    std::vector<CapsuleOnPlane> pairs;
    std::vector<int> near;
    std::vector<CapsuleTouches> touches;  ///< [near]
  };
  struct Poses {
    std::vector<ShapePose> at;  ///< [shape] in the world, where
    std::vector<char> known;    ///< it is this step's: only shapes that come near others need one
    std::vector<char> still;    ///< it is always: on the world
    std::vector<int> planes;    ///< shapes that move, which need theirs
  };
  struct Around {                         ///< the shapes
    std::vector<CapsuleAround> capsules;  ///< [shape]
    std::vector<CapsulePair> pairs;       ///< slender ones of a step
    std::vector<unsigned char> near;      ///< [pair]
  };
  void add_shape(const Model& model, int body, int geom);
  void add_pairs(const Model& model);
  void list_pairs();
  Found found(const BodyPair& pair) const;
  void find_kinds();
  void sort_found();
  const ContactSurface& surface_at(BodyPair pair);
  const ContactPair* explicit_pair(int i, int j) const;
  bool moves(std::size_t i) const { return shapes_[i].carrier() >= 0; }
  template <class R>
  void place(const BasicData<R>& data);
  template <class R>
  const ShapePose& posed(const BasicData<R>& data, int i);
  double fall(int i, int j) const { return fall_apart({std::uint32_t(i), std::uint32_t(j)}) ? fall_ : 0; }
  /// Either may be stopped within the step where the other goes on.
  bool stopped_apart(int i, int j) const {
    return moves(std::size_t(i)) && moves(std::size_t(j)) && fall_apart({std::uint32_t(i), std::uint32_t(j)});
  }
  double reach(int i, int j, double h, double margin) const;
  bool arrives(int i, int j, const ContactPoint& point, double speed) const;
  bool near(int i, int j, double reach) const;
  template <class R>
  void touch(const BasicData<R>& data, int i, int j, const ContactSurface& both, const LinkContact& usual,
             double margin, double h, Vec3d* parting, std::vector<LinkContact>& contacts);
  LinkContact usual_contact(int i, int j, const ContactSurface& both) const;
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
  std::vector<std::shared_ptr<const ConvexHull>> hulls_;  ///< of copies too
  std::vector<std::shared_ptr<const HeightField>> fields_;
  std::vector<std::uint64_t> excluded_;  ///< pairs of bodies, sorted
  std::vector<ContactPair> explicit_pairs_;
  std::vector<double> margin_;  ///< [shape] the largest of its own and of its explicit pairs' [m]
  std::vector<BodyPair> pairs_;
  std::vector<Listed> listed_;     ///< [pair]
  double gravity_ = 0, fall_ = 0;  ///< [m/s²]; what it moves a body within the step [m]
  bool crowded_ = false;
  Crowd crowd_;
  Diagnostics diagnostics_;
  CarriedSpheres spheres_;  ///< around the shapes
  Poses poses_;
  CapsulesOnPlanes capsules_;
  Around around_;
  std::vector<ContactPoint> points_ = std::vector<ContactPoint>(kMaxManifold);
};

}  // namespace tarsus
