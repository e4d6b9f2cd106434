// Converts a model whose bodies are all free or fixed to the world to a scene of rigid bodies.
//
// Supported: free joints; bodies welded to free bodies or to the world; all shapes of ContactGeometry; contype and
// conaffinity; excludes; explicit pairs; surfaces (constraint/surface.hpp). Any other feature of the model that would
// change the motion raises an error with its location; nothing is ignored silently. Stepper simulates such models.
#pragma once

#include <memory>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {

struct RigidModel {
  RigidScene scene;
  std::vector<int> qpos, qvel;       ///< [body] address of the free joint's seven qpos and six qvel numbers
  std::vector<ShapePose> com_frame;  ///< [body] centre of mass and principal axes in the model's body frame
  std::shared_ptr<const ContactGeometry> geometry;  ///< owns hulls and height fields
  int nq = 0, nv = 0;

  /// Writes the world's state in the model's layout (theory.md, section 1): poses of the body frames, ω in the body
  /// frame.
  template <class R>
  void state(const RigidWorld<R>& world, std::span<double> qpos, std::span<double> qvel) const;
  /// Sets the poses and velocities of the scene's bodies from a state in the model's layout.
  /// @throws ShapeError; ValueError for a number that is not finite
  void set_state(std::span<const double> qpos, std::span<const double> qvel);
};

/// The scene as a model: each body with a free joint, in the frame of its centre of mass and principal axes. Commands
/// that load a model, and Python's Model.load(), make built-in scenes by it.
/// @throws ValueError for what models do not have (compliance or restitution of surfaces, explicit pairs, sleeping or
/// moving bodies) and for shapes other than planes, spheres, capsules, cylinders and boxes
ModelSpec scene_spec(const RigidScene& scene);

/// The bodies start at qpos0. Step, gravity and iterations are those of the file's <option>; MuJoCo's default of 100
/// iterations becomes 10.
/// @throws InputError for features that RigidWorld cannot simulate
RigidModel rigid_model(const Model& model);

}  // namespace tarsus
