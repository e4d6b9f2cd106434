// A model's actuators: a scalar force on a transmission each, MuJoCo's laws and layout.
//
//   force = gain(l, l̇) · (ctrl or act) + bias(l, l̇), clamped to forcerange;  qfrc += momentᵀ force
//
//   transmission     length l                              moment ∂l/∂q
//   joint            gear · q, of a ball its rotation vector      gear; jointinparent: in the parent's axes
//   tendon           gear · length of the tendon           gear · moment arms
//   site             0; with refsite: gear · pose in it    force and torque along gear in the site's, refsite's axes
//   slider-crank     of the slider, from the crank's pin   by the chain rule
//   body             0                                     0: what it grips is found in a step (sim/adhesion.hpp)
//
// The length of a rotation has the period 2π |gear|: a position servo goes the shortest way there, and so do its filter
// and its slew limit. It is a servo where gain is a constant and bias falls by it, as of <position>, <intvelocity> and
// <pid>; a <dcmotor> does not.
//
//   activation       act' =
//   integrator       ctrl
//   filter(exact)    (ctrl - act) / τ                      exact: integrated exactly over a step
//   muscle           (ctrl - act) / τ(ctrl, act)           [Millard et al. 2013]
//
// Euler's steps as MuJoCo's, but filters and muscles pass no control in one: those over 2 τ would diverge.
//
// Motors with states, several controls or a law that is not affine are motor.hpp's.
#pragma once

#include <algorithm>

#include "tarsus/control/motor.hpp"
#include "tarsus/dynamics/passive.hpp"

namespace tarsus {

enum class Activation { none, integrator, filter, filterexact, muscle };

struct Actuator {
  std::string name;
  TransmissionType transmission = TransmissionType::joint;
  int joint = -1, tendon = -1;
  LinkFrame site, reference;
  bool has_reference = false;
  double crank_length = 0;
  double period = 0;  ///< of a servo's length; 0: none
  std::array<double, 6> gear{};
  ActuatorLaw gain_law = ActuatorLaw::fixed, bias_law = ActuatorLaw::none;
  std::array<double, 3> gain{}, bias{};
  std::array<double, 9> muscle_gain{}, muscle_bias{};
  std::array<double, 2> length_range{};
  double unit_acceleration = 0;  ///< |M⁻¹ momentᵀ| at qpos0, of muscles whose force comes from it
  bool control_limited = false, force_limited = false, activation_limited = false, early = false;
  std::array<double, 2> control_range{}, force_range{}, activation_range{};
  Activation dynamics = Activation::none;
  std::array<double, 3> time{};                            ///< τ; muscle: activation, deactivation, width of smoothing
  std::optional<MotorSpec> motor;                          ///< in the place of gain, bias and dynamics
  std::vector<std::array<double, 2>> more_control_ranges;  ///< of the motor's controls after the first
  int ctrl = 0, controls = 1;                              ///< first among controls, how many
  int act = -1;                                            ///< first among activations
  bool computed = true;                                    ///< its whole law is
  bool active = true;                                      ///< computed and not switched off
  /// On a hinge or slide, its force affine in the DoF's own q and q̇, and free to be added to that of others there.
  bool plain = false;
  bool shares_tendon = false;  ///< its tendon's range bounds the sum of what it and others give
  std::vector<int> dofs;       ///< of its moment, ascending
  std::vector<int> common;     ///< dofs that move both its sites, whose moment is zero
  int first = 0;               ///< of its moment among all
  Location where;

  double clamped_control(double ctrl) const;
  /// A motor's, all of them.  @param ctrl(k) the k-th as it was given
  template <class F>
  std::array<double, 4> clamped_controls(const F& ctrl) const;
  double activation_rate(double ctrl, double act) const;
  /// act after dt seconds within its range.  @param ctrl clamped
  double next_activation(double act, double ctrl, double dt) const;
  /// Before it is clamped.  @param input ctrl or act
  double force(double input, double length, double velocity) const;
  double clamped_force(double force) const;
  /// -∂force/∂l, -∂force/∂l̇ of an affine law; zero for muscles.
  double stiffness(double input) const;
  double damping(double input) const;
};

template <class F>
std::array<double, 4> Actuator::clamped_controls(const F& ctrl_of) const {
  std::array<double, 4> out{};
  for (int k = 0; k < controls; ++k) {
    const double given = double(ctrl_of(k));
    const auto [low, high] = k > 0 ? more_control_ranges[k - 1] : std::array<double, 2>{0, 0};
    out[k] = k == 0 ? clamped_control(given) : low < high ? std::clamp(given, low, high) : given;
  }
  return out;
}

/// A force that falls as the transmission moves along it, implicit without harm.
inline bool falls(double stiffness, double damping) {
  return stiffness >= 0 && damping >= 0 && stiffness + damping > 0;
}

class ActuatorSet {
 public:
  /// None.
  ActuatorSet() = default;
  /// @throws InputError naming what an actuator refers to and is not there
  ActuatorSet(const Model& model, const TendonSet& tendons);

  int size() const { return int(actuators_.size()); }
  int moments() const { return moments_; }
  const Actuator& operator[](int i) const { return actuators_[i]; }
  /// All force is affine in the DoF's own position and velocity: nothing needs kinematics() or tendons.
  bool plain() const { return plain_; }
  bool needs_kinematics() const { return needs_kinematics_; }
  bool limits_tendons() const { return limits_tendons_; }
  /// @throws InputError naming each actuator that is switched on and not computed
  void require_computed() const;

 private:
  void add(const Model& model, const TendonSet& tendons, const ActuatorSpec& spec);
  void keep_ranges_apart();
  void find_shared(const TendonSet& tendons);
  void find_unit_accelerations(const Model& model, const TendonSet& tendons);

  std::vector<Actuator> actuators_;
  int moments_ = 0, controls_ = 0, activations_ = 0;
  bool enabled_ = true, plain_ = true, needs_kinematics_ = false, limits_tendons_ = false;
};

/// Lengths and moments of all transmissions. `links` as after kinematics(qpos), where needs_kinematics().
/// @param tendon_length, tendon_arm of tendon_lengths()  @param row [nv] scratch, zero before and after
void transmissions(const Model& model, const ActuatorSet& actuators, const TendonSet& tendons,
                   const LinkState<double>* links, std::span<const double> qpos, std::span<const double> tendon_length,
                   std::span<const double> tendon_arm, std::span<double> length, std::span<double> moment,
                   std::span<double> row);

}  // namespace tarsus
