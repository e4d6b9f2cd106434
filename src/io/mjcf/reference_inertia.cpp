// Numbers that MJCF gives relative to the inertia in the reference pose: springdamper and dampratio.
#include <algorithm>
#include <cmath>

#include "io/mjcf/builder.hpp"
#include "tarsus/control/reference_pose.hpp"

namespace tarsus::mjcf {

void Builder::settle_by_inertia() {
  if (springs_.empty() && damping_ratios_.empty()) return;
  const Model model = compile(spec_);
  const TendonSet tendons = TendonSet::of(model);
  const ActuatorSet actuators(model, tendons);
  ReferencePose pose(model, tendons, actuators);
  for (const Springs& spring : springs_) {
    // Find the joint by body: the numbers follow the order of reading, which may differ from the order of the bodies.
    const auto [body, place] = joint_place_[static_cast<std::size_t>(spring.joint)];
    const Joint& moved =
        model.joints[static_cast<std::size_t>(model.bodies[static_cast<std::size_t>(body)].joint_first + place)];
    double mobility = 0;
    std::vector<double> row(static_cast<std::size_t>(model.nv));
    for (int i = moved.qvel; i < moved.qvel + moved.nv(); ++i) {
      row[static_cast<std::size_t>(i)] = 1;
      mobility += pose.mobility(row);
      row[static_cast<std::size_t>(i)] = 0;
    }
    const double inertia = mobility > 0 ? moved.nv() / std::max(1e-15, mobility) : 0;  // 0: a singular tree
    const auto [time, ratio] = spring.spring_damper;
    JointSpec& spec = joint(spring.joint);
    spec.stiffness = inertia / std::max(1e-15, time * time * ratio * ratio);
    spec.damping += 2 * inertia / std::max(1e-15, time);
  }
  for (const auto& [index, ratio] : damping_ratios_) {
    ActuatorSpec& actuator = spec_.actuators[static_cast<std::size_t>(index)];
    const std::vector<double> moment = pose.moment(actuators[index]);
    const bool moves = std::any_of(moment.begin(), moment.end(), [](double m) { return std::abs(m) > 1e-15; });
    const double mobility = pose.mobility(moment);
    if (!moves || !(mobility > 0)) {
      sink_.add(Severity::warning, actuator.where, "'dampratio' has no effect: this actuator moves nothing");
      continue;
    }
    const double stiffness = actuator.motor ? actuator.motor->kp : actuator.gain[0];
    const double damping = ratio * 2 * std::sqrt(stiffness / mobility);
    actuator.motor ? actuator.motor->kd = damping : actuator.bias[2] = -damping;
  }
}

}  // namespace tarsus::mjcf
