// What Python's Stepper and Batch take about a step, as StepOptions.
#pragma once

#include "bindings.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::python {

/// What they take besides dt.
struct StepperArguments {
  std::string integrator;
  double speed_limit;
  bool contacts, joint_limits;
  double restitution, tolerance;
  int max_iterations;
  std::string loops, velocity_products;
  std::string actuation;
};

/// @throws ValueError naming the argument that is none of its values
StepOptions step_options(double dt, const StepperArguments& arguments);

}  // namespace tarsus::python
