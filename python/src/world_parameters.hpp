// set_parameters() and its like of a Batch and of a VectorTask, whose worlds are those of a Batch.
#pragma once

#include <array>
#include <string>

#include "bindings.hpp"
#include "tarsus/learn/vector_task.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus::python {

template <class R>
Batch<R>& batch_of(Batch<R>& batch) {
  return batch;
}
template <class R>
Batch<R>& batch_of(VectorTask<R>& worlds) {
  return worlds.batch();
}

inline constexpr std::array<WorldParameter, kWorldParameters> kParameters = [] {
  std::array<WorldParameter, kWorldParameters> all{};
  for (int k = 0; k < kWorldParameters; ++k) all[std::size_t(k)] = WorldParameter(k);
  return all;
}();

inline WorldParameter parameter_named(const std::string& text) {
  for (const WorldParameter which : kParameters) {
    if (text == name(which)) return which;
  }
  throw ValueError("parameters", "\"" + text + "\"", "a value returned by save()");
}

/// Shape of a parameter's array.
template <class R>
Shape shape_of_all(const Batch<R>& b, WorldParameter which) {
  const std::size_t n = std::size_t(numbers(b.model(), which));
  if (which == WorldParameter::com_offset) return {std::size_t(b.worlds()), n / 3, 3};
  return {std::size_t(b.worlds()), n};
}

/// Copies of the parameters that were set, [worlds, n] each.
template <class R>
nb::dict parameters_of(Batch<R>& b) {
  nb::dict out;
  for (const WorldParameter which : kParameters) {
    const std::span<const double> values = b.parameter(which);
    if (values.empty()) continue;
    out[name(which)] = new_array(AlignedVector<double>(values.begin(), values.end()), shape_of_all(b, which));
  }
  return out;
}

inline std::vector<std::uint8_t> mask_of(nb::handle mask, int worlds) {
  if (mask.is_none()) return {};
  const Shape shape{std::size_t(worlds)};
  const auto* flags = static_cast<const std::uint8_t*>(checked_array("mask", mask, '?', shape, false));
  return {flags, flags + worlds};
}

template <class Any>
void set_parameters(Any& any, nb::handle mass_scale, nb::handle damping_scale, nb::handle armature_scale,
                    nb::handle friction_loss_scale, nb::handle com_offset, nb::handle gravity,
                    nb::handle friction_scale, nb::handle kp_scale, nb::handle kd_scale, nb::handle force_scale,
                    nb::handle actuator_gain_scale, nb::handle actuator_damping_scale, nb::handle actuator_force_scale,
                    nb::handle mask) {
  any.alone([&](auto& worlds) {
    auto& b = batch_of(worlds);
    const std::vector<std::uint8_t> which_worlds = mask_of(mask, b.worlds());
    const nb::handle given[] = {mass_scale,
                                damping_scale,
                                armature_scale,
                                friction_loss_scale,
                                com_offset,
                                gravity,
                                friction_scale,
                                kp_scale,
                                kd_scale,
                                force_scale,
                                actuator_gain_scale,
                                actuator_damping_scale,
                                actuator_force_scale};
    WorldParameters all;
    for (const WorldParameter which : kParameters) {
      const nb::handle values = given[std::size_t(int(which))];
      if (values.is_none()) continue;
      const bool alike = !is_of_vectors(which) && shape_of(name(which), values).size() == 1;
      const Shape shape = alike ? Shape{std::size_t(b.worlds())} : shape_of_all(b, which);
      const Input<double> in(name(which), values, shape, 1);
      all[which].assign(in.span().begin(), in.span().end());
    }
    b.set_parameters(all, which_worlds);
  });
}

/// Any: AnyBatch or AnyVectorTask.
template <class Any>
void bind_parameters(nb::class_<Any>& c) {
  using namespace nb::literals;
  c.def("set_parameters", &set_parameters<Any>, nb::kw_only(), "mass_scale"_a = nb::none(),
        "damping_scale"_a = nb::none(), "armature_scale"_a = nb::none(), "friction_loss_scale"_a = nb::none(),
        "com_offset"_a = nb::none(), "gravity"_a = nb::none(), "friction_scale"_a = nb::none(),
        "kp_scale"_a = nb::none(), "kd_scale"_a = nb::none(), "force_scale"_a = nb::none(),
        "actuator_gain_scale"_a = nb::none(), "actuator_damping_scale"_a = nb::none(),
        "actuator_force_scale"_a = nb::none(), "mask"_a = nb::none(),
        nb::sig("def set_parameters(self, *, mass_scale: numpy.ndarray | None = None, damping_scale: numpy.ndarray | "
                "None = None, armature_scale: numpy.ndarray | None = None, friction_loss_scale: numpy.ndarray | None = "
                "None, com_offset: numpy.ndarray | None = None, gravity: numpy.ndarray | None = None, friction_scale: "
                "numpy.ndarray | None = None, "
                "kp_scale: numpy.ndarray | None = None, kd_scale: numpy.ndarray | None = None, force_scale: "
                "numpy.ndarray | None = None, actuator_gain_scale: numpy.ndarray | None = None, "
                "actuator_damping_scale: numpy.ndarray | None = None, actuator_force_scale: "
                "numpy.ndarray | None = None, mask: numpy.ndarray | None = None) -> None"),
        "Sets physical parameters of the worlds in the mask, one value per world; resets keep them. Factors "
        "are [worlds, n] or [worlds]:\n"
        "mass_scale for masses and inertias (n = nbody); damping_scale, armature_scale and friction_loss_scale for "
        "damping, armature and\n"
        "dry friction of joints (njoint), of damping and armature with what their actuators add to them; "
        "friction_scale for the sliding\n"
        "friction of geoms (ngeom, in the order of Model.geom_name; an explicit pair takes the larger of its two "
        "factors), kp_scale, kd_scale and\n"
        "force_scale for the drives' gains and force limits (nv; those of a joint with several degrees of freedom are "
        "used "
        "as Drives uses its gains).\n"
        "actuator_gain_scale, actuator_damping_scale and actuator_force_scale (n = number of the model's actuators) "
        "are for its own\n"
        "actuators: coefficients of gain and bias, those of the velocity, and force ranges. A motor's strength is its "
        "gain; a velocity\n"
        "servo has both factors. com_offset [worlds, nbody, 3] moves the bodies' centres of mass, in the body's axes "
        "[m]; gravity is [worlds, 3] [m/s²]. Raises ShapeError, and ValueError for a number out of "
        "range or one without\n"
        "effect.");
  c.def(
      "clear_parameters", [](Any& any) { any.alone([](auto& worlds) { batch_of(worlds).clear_parameters(); }); },
      "Resets all parameters to those of the model and the drives.");
  c.def_prop_ro(
      "parameters", [](Any& any) { return any.alone([](auto& worlds) { return parameters_of(batch_of(worlds)); }); },
      nb::sig("def parameters(self) -> dict[str, numpy.ndarray]"),
      "The parameters that set_parameters() has set: copies [worlds, n].");
}

}  // namespace tarsus::python
