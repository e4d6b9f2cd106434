// MuJoCo's passive forces other than the joints' linear springs and dampers, which drive_terms() treats implicitly:
// springs and dampers of tendons, polynomial springs and dampers of joints, gravity compensation and fluid forces.
#pragma once

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

/// Force and torque of a fluid on an object that moves through it with the velocity (w, v) [rad/s, m/s], in the
/// object's axes. n holds the numbers of the torque, f those of the force.
struct FluidForce {
  Force<double> resistance{{0, 0, 0}, {0, 0, 0}};  ///< ≥ 0: drag is -resistance × velocity, by component
  Force<double> growing{{0, 0, 0}, {0, 0, 0}};     ///< the part of it that is proportional to the speed
  /// Lift and added mass: (spin × w + momentum × v, momentum × w + lift × v). These forces do no work.
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
  Transformd pose;            ///< pose of the immersed object's axes in the world
  Motion<double> velocity;    ///< relative to the fluid, along these axes
  FluidForce fluid;
  /// Inverse inertia about (n) and inverse mass along (f) each axis, of the object's share of its link's inertia;
  /// infinite where that inertia is zero.
  Force<double> inverse_mass;
  bool floats;  ///< the link is a single free body and has lift
};

/// Mean of turning() over a step for a floating link, as a force and moment at the link's origin, world axes. The force
/// is evaluated at the mean of the velocities at both ends of a step under this force alone, which conserves energy.
/// @param inertia of the link, world axes  @param velocity of its origin relative to the fluid, world axes  @param h
/// [s]
Force<double> turning_over(std::span<const Immersion> shapes, const Vec3d& origin, const RigidInertia<double>& inertia,
                           const Motion<double>& velocity, double h);

class PassiveForces {
 public:
  /// Keeps a reference to the model. @throws InputError as TendonSet::of
  explicit PassiveForces(const Model& model);

  const TendonSet& tendons() const { return tendons_; }
  /// Whether there are neither tendons nor forces, so that evaluate() is unnecessary.
  bool empty() const { return tendons_.size() == 0 && polynomials_.empty() && !compensates_ && !fluid_; }
  /// Whether add() needs kinematics(qpos, qvel).
  bool needs_kinematics() const { return tendons_.spatial() || compensates_ || fluid_; }

  /// Scales the model's polynomial damping of joints from now on. @param factors [njoint]; empty: 1
  void scale_damping(std::span<const double> factors);
  /// Evaluates all passive forces of a single world. Spatial tendons, gravity compensation and fluid read `links`,
  /// which kinematics(qpos, qvel) must have set. @param qpos [nq] @param qvel [nv]
  void evaluate(const LinkState<double>* links, std::span<const double> qpos, std::span<const double> qvel);

  // Results of the last evaluate().
  std::span<const double> tendon_length() const { return length_; }       ///< [tendon] [m | rad]
  std::span<const double> tendon_velocity() const { return velocity_; }   ///< [tendon] [m/s | rad/s]
  std::span<const double> tendon_arm() const { return arm_; }             ///< [arms] as tendon_lengths() writes them
  std::span<const double> tendon_force() const { return tendon_force_; }  ///< [tendon] spring and damper forces
  /// [nv] total gravity compensation; at joints with actuator_gravity_compensation the actuators apply it.
  std::span<const double> gravity_compensation() const { return compensation_; }
  /// [nv] fluid forces, and gravity compensation at the other joints.
  std::span<const double> force() const { return force_; }
  std::span<const double> polynomial_force() const { return polynomial_force_; }  ///< [nv] of joints

  /// The nonlinear part of a joint's spring and damper.
  struct Polynomial {
    int joint, qpos, count;  ///< count: DoFs
    std::array<int, 6> dofs;
    double reference;
    std::array<double, 2> stiffness, damping;  ///< coefficients of x², x³ and of |v| v, |v|² v
    double force(double x, double velocity) const;
    /// -∂force/∂x and -∂force/∂v, clamped to be non-negative.
    double stiffness_at(double x) const;
    double damping_at(double velocity) const;
  };
  std::span<const Polynomial> polynomials() const { return polynomials_; }

  /// The immersed bodies, whose forces are part of force(). Entries of the same link are adjacent.
  std::span<const Immersion> immersions() const { return immersions_; }
  /// Calls f(link, DoFs) for each immersed body; needs no evaluate().
  template <class F>
  void each_immersed(const F& f) const {
    for (const Immersed& body : immersed_) f(body.frame.link, std::span<const int>(body.dofs));
  }
  /// inverse_mass of immersions()[k] if its link has this inertia, along the link's axes.
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
    int sharing = 1;          ///< number of immersed objects that share the link's inertia
    std::vector<int> dofs{};  ///< this and the following members: see Immersion
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
  std::vector<std::array<double, 2>> damping_;  // [polynomial] the model's, unscaled
  std::vector<Compensated> compensated_;
  std::vector<Immersed> immersed_;
  std::vector<Immersion> immersions_;
  std::vector<char> by_actuator_;  // [nv]
  bool compensates_ = false, fluid_ = false;
  std::vector<double> length_, velocity_, arm_, tendon_force_, compensation_, force_, polynomial_force_, row_;
};

/// Fluid force on a body by its equivalent inertia box, at the centre of mass in principal axes. [MuJoCo, "Inertia
/// model": the box has the body's mass and inertia]
/// @param size full lengths of the box [m]  @param v velocity relative to the fluid, same axes [rad/s, m/s]
/// @param density [kg/m³]  @param viscosity [Pa s]
FluidForce box_fluid_force(const Vec3d& size, const Motion<double>& v, double density, double viscosity);

/// Fluid force on an ellipsoid, at its centre in its axes. [MuJoCo, "Ellipsoid model"; Andersen, Pesavento & Wang 2005]
/// @param virtual_mass, virtual_inertia of added_mass(), for density 1
/// @param coefficients blunt drag, slender drag, angular drag, Kutta lift, Magnus lift
FluidForce ellipsoid_fluid_force(const Vec3d& semi_axes, const std::array<double, 5>& coefficients,
                                 const Vec3d& virtual_mass, const Vec3d& virtual_inertia, const Motion<double>& v,
                                 double density, double viscosity);

/// Added mass [m³] and added moments of inertia [m⁵] of an ellipsoid along and about its axes, in a fluid of density 1.
/// [Tuckerman 1925]  @param semi_axes [m]  @param mass, inertia out
void added_mass(const Vec3d& semi_axes, Vec3d& mass, Vec3d& inertia);

}  // namespace tarsus
