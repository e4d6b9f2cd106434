// A model whose bodies are all free (or fixed to the world) as a scene of rigid bodies.
//
// Supported: free joints, bodies welded to them or to the world, all shapes of ContactGeometry, contype and
// conaffinity, excludes, explicit pairs and surfaces (constraint/surface.hpp), connect equalities between bodies.
// Anything else that a model can say and that would change the motion is an error with its place, never passed over.
#pragma once

#include <memory>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {

struct RigidModel {
  RigidScene scene;
  std::vector<int> qpos, qvel;       ///< [body] where the free joint's seven and six numbers begin
  std::vector<ShapePose> com_frame;  ///< [body] centre of mass and principal axes in the model's body frame
  std::shared_ptr<const ContactGeometry> geometry;  ///< owns hulls and height fields
  int nq = 0, nv = 0;

  /// The world's state in the model's layout (theory.md, section 1): of the body frames, ω in the body's frame.
  template <class R>
  void state(const RigidWorld<R>& world, std::span<double> qpos, std::span<double> qvel) const;
  /// The other way: poses and velocities for the scene's bodies.
  /// @throws ShapeError, ValueError for a number that is not finite
  void set_state(std::span<const double> qpos, std::span<const double> qvel);
};

/// The scene as a model: each body with a free joint, in the frame of its centre of mass and principal axes. Every
/// command that takes a model file takes a built-in scene by it.
/// @throws ValueError for what models do not have (compliance or restitution of surfaces, point joints, sleeping or
/// moving bodies) and for shapes other than planes, spheres, capsules, cylinders and boxes
ModelSpec scene_spec(const RigidScene& scene);

/// Positions from qpos0; step, gravity, iterations as in the file's <option> (iterations: 10 where it has MuJoCo's
/// 100).
/// @throws InputError for what cannot be simulated so
RigidModel rigid_model(const Model& model);

}  // namespace tarsus
