// Arguments of Python's Stepper and Batch that describe a step, and their conversion to StepOptions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "bindings.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::python {

/// These arguments, except dt.
struct StepperArguments {
  std::string integrator;
  double speed_limit;
  std::optional<bool> contacts, joint_limits;  ///< none: on if the integrator supports them
  double restitution, tolerance;
  int max_iterations;
  std::string loops, velocity_products;
  std::string actuation;
};

/// @param dt none: the model's time step @throws ValueError naming the argument with an invalid value
StepOptions step_options(const Model& model, std::optional<double> dt, const StepperArguments& arguments);

/// links, bodies, geoms, position, normal and distance of a contact between two of these shapes.
nb::dict contact_dict(const Model& model, std::span<const ContactShape> shapes, const LinkContact& contact,
                      double distance);

}  // namespace tarsus::python
