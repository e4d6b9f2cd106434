// Passive forces beside the joints' linear springs and dampers, which drive_terms() takes implicitly: springs and
// dampers of tendons, polynomial ones of joints, gravity compensation, and the forces of a surrounding fluid: MuJoCo's.
#pragma once

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

/// Force and torque of a fluid on what moves through it with a velocity (w, v), in axes of its own.
struct FluidForce {
  Force<double> resistance{{0, 0, 0}, {0, 0, 0}};  ///< ≥ 0: drag is -resistance × velocity, each component by itself
  Force<double> growing{{0, 0, 0}, {0, 0, 0}};     ///< the part of it that is in proportion to the speed
  /// Lift, and what the fluid carried along does: (spin × w + momentum × v, momentum × w + lift × v), without power.
  Vec3d spin{0, 0, 0}, momentum{0, 0, 0}, lift{0, 0, 0};

  Force<double> drag(const Motion<double>& v) const {
    const auto times = [](const Vec3d& a, const Vec3d& b) { return Vec3d{-a.x * b.x, -a.y * b.y, -a.z * b.z}; };
    return {times(resistance.n, v.w), times(resistance.f, v.v)};
  }
  Force<double> turning(const Motion<double>& v) const {
    return {cross(spin, v.w) + cross(momentum, v.v), cross(momentum, v.w) + cross(lift, v.v)};
  }
};

/// A body in a fluid, or one of its shapes, after PassiveForces::evaluate().
struct Immersion {
  int link;
  std::span<const int> dofs;  ///< between the link and the world
  Transformd pose;            ///< of its axes, world
  Motion<double> velocity;    ///< against the fluid, along its axes
  FluidForce fluid;
  Force<double>
      inverse_mass;  ///< along and about each axis, of its share of the link's own; infinite where it has none
  bool floats;       ///< the link is a free body alone, and has lift
};

/// Force and moment at the origin of a link that floats, world axes, by turning() of all of it: of the mean of its
/// velocities at the ends of a step that it does by this alone, whose energy is then what it was.
/// @param inertia of the link, world axes  @param velocity of its origin against the fluid, world axes  @param h [s]
Force<double> turning_over(std::span<const Immersion> shapes, const Vec3d& origin, const RigidInertia<double>& inertia,
                           const Motion<double>& velocity, double h);

class PassiveForces {
 public:
  /// Keeps a reference to the model. @throws InputError as TendonSet::of
  explicit PassiveForces(const Model& model);

  const TendonSet& tendons() const { return tendons_; }
  /// Nothing here: add() would add zero, and there are no tendons.
  bool empty() const { return tendons_.size() == 0 && polynomials_.empty() && !compensates_ && !fluid_; }
  /// Whether add() needs kinematics(qpos, qvel).
  bool needs_kinematics() const { return tendons_.spatial() || compensates_ || fluid_; }

  /// Polynomial damping of joints is the model's times these from now on. @param factors [njoint]; empty: 1
  void scale_damping(std::span<const double> factors);
  /// Evaluates all of it. Spatial tendons, gravity compensation and fluid read `links`, left by kinematics(qpos, qvel).
  void evaluate(const LinkState<double>* links, std::span<const double> qpos, std::span<const double> qvel);

  // Of the last evaluate().
  std::span<const double> tendon_length() const { return length_; }
  std::span<const double> tendon_velocity() const { return velocity_; }
  std::span<const double> tendon_arm() const { return arm_; }
  std::span<const double> tendon_force() const { return tendon_force_; }  ///< of springs and dampers, by tendon
  /// [nv] gravity compensation, all of it; at joints with actuator_gravity_compensation it is the actuators' to apply.
  std::span<const double> gravity_compensation() const { return compensation_; }
  /// [nv] fluid, and gravity compensation of the other joints.
  std::span<const double> force() const { return force_; }
  std::span<const double> polynomial_force() const { return polynomial_force_; }  ///< [nv] of joints

  /// The part of a joint's spring and damper that is not linear.
  struct Polynomial {
    int joint, qpos, count;  ///< count: DoFs
    std::array<int, 6> dofs;
    double reference;
    std::array<double, 2> stiffness, damping;  ///< coefficients of x², x³ and of |v| v, |v|² v
    double force(double x, double velocity) const;
    /// -∂force/∂x and -∂force/∂v, where they are negative 0.
    double stiffness_at(double x) const;
    double damping_at(double velocity) const;
  };
  std::span<const Polynomial> polynomials() const { return polynomials_; }

  /// The bodies in the fluid, whose forces are part of force(): those of one link are neighbours.
  std::span<const Immersion> immersions() const { return immersions_; }
  /// f(link, DoFs) for each of them, before any evaluate() too.
  template <class F>
  void each_immersed(const F& f) const {
    for (const Immersed& body : immersed_) f(body.frame.link, std::span<const int>(body.dofs));
  }
  /// The inverse_mass of immersions()[k] where its link has this inertia, along the link's axes.
  Force<double> inverse_mass(std::size_t k, const RigidInertia<double>& link) const;

 private:
  struct Compensated {
    int link;
    LinkFrame com;
    double weight;  ///< mass times factor
  };
  struct Immersed {
    LinkFrame frame;  ///< of the inertia box, or of the ellipsoid
    Vec3d size;       ///< the box' full lengths, or semi-axes
    bool ellipsoid;
    std::array<double, 5> coefficients;
    Vec3d virtual_mass{}, virtual_inertia{};
    int sharing = 1;          ///< how many share the link's inertia
    std::vector<int> dofs{};  ///< this and what follows: see Immersion
    Force<double> inverse_mass{};
    bool floats = false;
  };
  void find_polynomials();
  void find_bodies();
  void weigh_immersed();
  void add_fluid(const LinkState<double>* links);

  const Model& model_;
  TendonSet tendons_;
  std::vector<Polynomial> polynomials_;
  std::vector<std::array<double, 2>> damping_;  // [polynomial] the model's
  std::vector<Compensated> compensated_;
  std::vector<Immersed> immersed_;
  std::vector<Immersion> immersions_;
  std::vector<char> by_actuator_;  // [nv]
  bool compensates_ = false, fluid_ = false;
  std::vector<double> length_, velocity_, arm_, tendon_force_, compensation_, force_, polynomial_force_, row_;
};

/// At the body's centre of mass and in its principal axes, on a box. [MuJoCo, "Inertia model": the box has the body's
/// mass and inertia]  @param v velocity against the fluid, same axes
FluidForce box_fluid_force(const Vec3d& size, const Motion<double>& v, double density, double viscosity);

/// The same on an ellipsoid. [MuJoCo, "Ellipsoid model"; Andersen, Pesavento & Wang 2005]
/// @param coefficients blunt drag, slender drag, angular drag, Kutta lift, Magnus lift
FluidForce ellipsoid_fluid_force(const Vec3d& semi_axes, const std::array<double, 5>& coefficients,
                                 const Vec3d& virtual_mass, const Vec3d& virtual_inertia, const Motion<double>& v,
                                 double density, double viscosity);

/// Mass and moments of inertia of the fluid that an ellipsoid carries along, for density 1. [Tuckerman 1925]
void added_mass(const Vec3d& semi_axes, Vec3d& mass, Vec3d& inertia);

}  // namespace tarsus
