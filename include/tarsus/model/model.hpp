// Model: the immutable description of a world, compiled from a ModelSpec and shared by any number of Data.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/model/spec.hpp"
#include "tarsus/model/view.hpp"
#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

/// A joint moves a link. Joint i moves link i: a body with three hinges has three links, the last of which carries its
/// mass. Bodies without joints are merged into the link that they are welded to.
struct Joint {
  std::string name;
  JointType type = JointType::hinge;
  int body = 0;
  int parent = -1;                             ///< link below, -1: the world
  int qpos = 0, qvel = 0;                      ///< first index in qpos, qvel
  Vec3d axis{0, 0, 1};                         ///< in the body's frame, unit
  Vec3d position{0, 0, 0};                     ///< anchor in the body's frame [m]
  double reference = 0, spring_reference = 0;  ///< [rad | m]
  /// [N m/rad | N/m], [N m s/rad | N s/m], [kg m² | kg], [N m | N]
  double stiffness = 0, damping = 0, armature = 0, friction_loss = 0;
  bool limited = false;
  std::array<double, 2> range{0, 0};  ///< [rad | m]
  double margin = 0;  ///< distance from the ends of the range at which the limit begins to act [rad | m]
  bool force_limited = false;
  std::array<double, 2> force_range{0, 0};  ///< [N m | N]
  Location where;

  double lower() const { return range[0] + margin; }
  double upper() const { return range[1] - margin; }
  int nq() const { return qpos_count(type); }
  int nv() const { return qvel_count(type); }
};

struct Body {
  std::string name;
  int parent = 0;  ///< body index; the world's is 0
  int link = -1;   ///< link that carries it, -1: fixed to the world or to `mocap`
  int mocap = -1;  ///< index in Model::mocap_bodies of the mocap body that carries it, -1: none
  int joint_first = 0, joint_count = 0;
  Transformd X_LB{};   ///< pose of the body frame in its link's frame (for link -1 in the world, as in the file)
  Transformd X_MB{};   ///< pose in the mocap body's frame, if there is one
  double mass = 0;     ///< [kg]
  Vec3d com{0, 0, 0};  ///< body frame [m]
  Sym3d inertia{};     ///< about com, body axes [kg m²]
  Location where;
};

class Model {
 public:
  std::string name;
  int nq = 0, nv = 0;
  int nu = 0, na = 0;                   ///< controls, activations
  int depth = 0;                        ///< DoFs on the longest branch, including the root's (the paper's d)
  double timestep = 0.002;              ///< timestep of the file [s]
  Vec3d gravity{0, 0, -9.81};           ///< world axes [m/s²]
  std::vector<Body> bodies;             ///< bodies[0] is the world
  std::vector<Joint> joints;            ///< == links
  std::vector<double> qpos0;            ///< [nq] the initial pose of the file
  std::vector<double> qpos_spring;      ///< [nq] rest positions of the joints' springs
  std::vector<double> armature;         ///< [nv] [kg m² | kg]
  std::vector<double> carried_inertia;  ///< [nv] Sᵀ I S of all that a joint carries at qpos0, plus armature
  std::vector<int> dof_joint;           ///< [nv]
  std::vector<int> quaternions;         ///< indices in qpos of quaternions
  std::vector<int> mocap_bodies;        ///< bodies whose poses are inputs (Data::mocap_pos, mocap_quat)
  ModelSpec spec;                       ///< source of the model: shapes, actuators, equalities, cosmetics, diagnostics

  int nbody() const { return int(bodies.size()); }
  int njoint() const { return int(joints.size()); }
  int nmocap() const { return int(mocap_bodies.size()); }
  /// Workspace index of the body's pose: its link, or njoint() + mocap for bodies on a mocap body; -1: it never moves.
  int carrier(int body) const {
    const Body& b = bodies[body];
    return b.link >= 0 ? b.link : b.mocap >= 0 ? njoint() + b.mocap : -1;
  }
  double total_mass() const;  ///< [kg]

  /// Index by name. @throws ValueError that lists the model's names, the first 40 of them
  int body_id(std::string_view name) const;
  int joint_id(std::string_view name) const;
  /// Index by name, -1 if there is none.
  int find_body(std::string_view name) const;
  /// [nu] names of the actuators, with the suffix .pos, .vel, .ff or .voltage for those with several controls.
  std::vector<std::string> control_names() const;
  int find_joint(std::string_view name) const;

  template <class R>
  ModelView<R> view() const;

 private:
  friend Model compile(ModelSpec spec);
  friend Model model_of_trees(const Model& model, std::span<const int> roots);
  std::vector<LinkConstants<double>> links_;
  std::vector<LinkConstants<float>> links_float_;
  std::vector<float> armature_float_, qpos_spring_float_;
  std::vector<LinkGroup> inward_;
};
template <>
ModelView<double> Model::view<double>() const;
template <>
ModelView<float> Model::view<float>() const;

/// Checks the spec and builds the Model. Collects all errors before it throws.
/// @throws InputError naming the element: a free joint below the root, a ball joint beside a hinge or a second ball, an
/// axis that is not a unit vector, a negative mass, …
Model compile(ModelSpec spec);

/// The links, joints and DoFs of some trees as a model of their own, in the same order, without names, bodies and spec:
/// what dynamics needs, and no more.  @param roots links without a parent, ascending
Model model_of_trees(const Model& model, std::span<const int> roots);

/// Mass, first and second moment of all bodies carried by each link, about the link's origin in its axes.
/// @param scale [nbody] factors on the bodies' masses and inertias; empty: 1
/// @param com_offset [nbody][3] offsets of their centres of mass, body axes [m]; empty: none
std::vector<RigidInertia<double>> link_inertias(const Model& model, std::span<const double> scale = {},
                                                std::span<const double> com_offset = {});
/// Model::carried_inertia for links with these inertias.  @param armature [nv]
std::vector<double> carried_inertia(const Model& model, std::span<const RigidInertia<double>> inertia,
                                    std::span<const double> armature);
/// LinkConstants::spring_rate2 [1/s²] of a joint that carries these inertias. @param carried [nv] as carried_inertia()
double spring_rate(const Joint& joint, std::span<const double> carried);

}  // namespace tarsus
