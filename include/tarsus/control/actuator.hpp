// A model's actuators with MuJoCo's laws and layout. Each is a scalar force on a transmission:
//
//   force = gain(l, l̇) · (ctrl or act) + bias(l, l̇), clamped to forcerange;  qfrc += momentᵀ force
//
//   transmission     length l                              moment ∂l/∂q
//   joint            gear · q; ball: its rotation vector   gear; jointinparent: in the parent's axes
//   tendon           gear · length of the tendon           gear · moment arms
//   site             0; with refsite: gear · relative pose force and torque along gear in the site's or refsite's axes
//   slider-crank     of the slider, from the crank's pin   by the chain rule
//   body             0                                     0: adhesion is computed in the step (sim/adhesion.hpp)
//
// The length of a rotation has the period 2π |gear|. A position servo, its filter and its slew limit therefore take the
// shortest way. An actuator is a servo if its gain is constant and its bias decreases by gain · l, as for <position>,
// <intvelocity> and <pid>; a <dcmotor> is not.
//
//   activation       act' =
//   integrator       ctrl
//   filter(exact)    (ctrl - act) / τ                      exact: integrated exactly over a step
//   muscle           (ctrl - act) / τ(ctrl, act)           [Millard et al. 2013]
//
// Activations use MuJoCo's Euler step, except that filters and muscles do not overshoot the control in a step: steps
// longer than 2 τ would diverge.
//
// motor.hpp has the motors with states, several controls or a law that is not affine.
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
  double period = 0;  ///< of a servo's length; 0: not periodic
  std::array<double, 6> gear{};
  ActuatorLaw gain_law = ActuatorLaw::fixed, bias_law = ActuatorLaw::none;
  std::array<double, 3> gain{}, bias{};
  std::array<double, 9> muscle_gain{}, muscle_bias{};
  std::array<double, 2> length_range{};
  double unit_acceleration = 0;  ///< |M⁻¹ momentᵀ| at qpos0, for muscles that derive their force from it
  bool control_limited = false, force_limited = false, activation_limited = false, early = false;
  std::array<double, 2> control_range{}, force_range{}, activation_range{};
  Activation dynamics = Activation::none;
  std::array<double, 3> time{};                            ///< τ; muscle: activation, deactivation, width of smoothing
  std::optional<MotorSpec> motor;                          ///< replaces gain, bias and dynamics
  std::vector<std::array<double, 2>> more_control_ranges;  ///< of the motor's controls after the first
  int ctrl = 0, controls = 1;                              ///< index of the first control, and number of controls
  int act = -1;                                            ///< index of the first activation
  bool computed = true;                                    ///< all of its law is implemented
  bool active = true;                                      ///< implemented and not disabled
  /// Acts on a hinge or slide with a force that is affine in the DoF's own q and q̇ and that may be added to other
  /// actuators'.
  bool plain = false;
  bool shares_tendon = false;  ///< the tendon's range bounds the sum of several actuators
  std::vector<int> dofs;       ///< of the moment, ascending
  std::vector<int> common;     ///< DoFs that move both sites equally; their moment is zero
  int first = 0;               ///< index of the first moment among those of all actuators
  Location where;

  double clamped_control(double ctrl) const;
  /// All controls of a motor, clamped.  @param ctrl(k) the k-th control as given
  template <class F>
  std::array<double, 4> clamped_controls(const F& ctrl) const;
  double activation_rate(double ctrl, double act) const;
  /// The activation after dt seconds, clamped to its range.  @param ctrl clamped
  double next_activation(double act, double ctrl, double dt) const;
  /// The force before clamping.  @param input ctrl or act
  double force(double input, double length, double velocity) const;
  double clamped_force(double force) const;
  /// -∂force/∂l, -∂force/∂l̇ of an affine law; zero for muscles.
  double stiffness(double input) const;
  double damping(double input) const;
  /// Whether gain and bias are affine in l and l̇.
  bool is_affine() const;
  /// Whether a step takes it as a drive of its hinge or slide.
  bool is_joint_servo() const;
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

/// Whether the force decreases as the transmission moves along it, so that implicit treatment is stable.
inline bool falls(double stiffness, double damping) {
  return stiffness >= 0 && damping >= 0 && stiffness + damping > 0;
}

/// Factors on each actuator's law and range, [actuator]; empty: 1.
struct ActuatorScales {
  std::span<const double> gain;     ///< on the coefficients of gain and bias that do not belong to a velocity
  std::span<const double> damping;  ///< on the others
  std::span<const double> force;    ///< on the force range
  bool any() const { return !gain.empty() || !damping.empty() || !force.empty(); }
};

inline bool Actuator::is_affine() const {
  return !motor && (gain_law == ActuatorLaw::fixed || gain_law == ActuatorLaw::affine) &&
         (bias_law == ActuatorLaw::none || bias_law == ActuatorLaw::affine);
}
inline bool Actuator::is_joint_servo() const {
  return plain && active && (falls(stiffness(0), damping(0)) || gain[2] != 0);
}

class ActuatorSet {
 public:
  /// Without actuators.
  ActuatorSet() = default;
  /// @throws InputError naming an object that an actuator refers to and that does not exist
  ActuatorSet(const Model& model, const TendonSet& tendons);

  int size() const { return int(actuators_.size()); }
  int moments() const { return moments_; }
  const Actuator& operator[](int i) const { return actuators_[i]; }
  /// Whether all forces are affine in the DoF's own position and velocity, so that neither kinematics() nor tendons are
  /// needed.
  bool plain() const { return plain_; }
  bool needs_kinematics() const { return needs_kinematics_; }
  bool limits_tendons() const { return limits_tendons_; }
  /// @throws InputError naming each enabled actuator that is not implemented
  void require_computed() const;
  /// Sets the laws and ranges to those of the model times these factors. Laws that are not affine, and those of motors,
  /// stay.  @return whether a factor was given now or in the last call
  bool scale(const Model& model, const ActuatorScales& factors);

 private:
  void add(const Model& model, const TendonSet& tendons, const ActuatorSpec& spec);
  void keep_ranges_apart();
  void find_shared(const TendonSet& tendons);
  void find_unit_accelerations(const Model& model, const TendonSet& tendons);

  std::vector<Actuator> actuators_;
  int moments_ = 0, controls_ = 0, activations_ = 0;
  bool enabled_ = true, plain_ = true, needs_kinematics_ = false, limits_tendons_ = false, scaled_ = false;
};

/// Lengths and moments of all transmissions. `links` as after kinematics(qpos), if needs_kinematics().
/// @param tendon_length, tendon_arm of tendon_lengths()  @param row [nv] scratch, zero before and after
void transmissions(const Model& model, const ActuatorSet& actuators, const TendonSet& tendons,
                   const LinkState<double>* links, std::span<const double> qpos, std::span<const double> tendon_length,
                   std::span<const double> tendon_arm, std::span<double> length, std::span<double> moment,
                   std::span<double> row);

}  // namespace tarsus
