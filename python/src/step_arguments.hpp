// What Python's Stepper and Batch take about a step, as StepOptions.
#pragma once

#include <optional>

#include "bindings.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::python {

/// What they take besides dt.
struct StepperArguments {
  std::string integrator;
  double speed_limit;
  std::optional<bool> contacts, joint_limits;  ///< none: where the integrator has them
  double restitution, tolerance;
  int max_iterations;
  std::string loops, velocity_products;
  std::string actuation;
};

/// @param dt none: the model's own @throws ValueError naming the argument that is none of its values
StepOptions step_options(const Model& model, std::optional<double> dt, const StepperArguments& arguments);

}  // namespace tarsus::python
