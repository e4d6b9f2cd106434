// The extension module tarsus._core, which the package's __init__.py re-exports.
#include "bindings.hpp"
#include "tarsus/math/cpu.hpp"

NB_MODULE(_core, m) {
  // Tensors of other libraries may keep a batch's memory until after the interpreter has ended.
  nanobind::set_leak_warnings(false);
  m.doc() = "Models, data and algorithms of tarsus. Import tarsus instead of this module.";
  m.attr("__version__") = TARSUS_VERSION;
  tarsus::python::bind_errors(m);
  tarsus::python::bind_model(m);
  tarsus::python::bind_data(m);
  tarsus::python::bind_dynamics(m);
  tarsus::python::bind_measure(m);
  tarsus::python::bind_control(m);
  tarsus::python::bind_equalities(m);
  tarsus::python::bind_constraint(m);
  tarsus::python::bind_sim(m);
  tarsus::python::bind_batch(m);
  tarsus::python::bind_particles(m);
  tarsus::python::bind_geometry(m);
  tarsus::python::bind_rigid(m);
  tarsus::python::bind_view(m);
  tarsus::python::bind_learn(m);
  m.def(
      "isa_level", [] { return tarsus::name(tarsus::isa_level()); },
      "Instruction set used by the kernels: 'baseline', 'avx2' or 'avx512'.");
  nanobind::list names;
  for (nanobind::handle name : m.attr("__dict__")) {
    if (nanobind::cast<std::string>(name).front() != '_') names.append(name);
  }
  m.attr("__all__") = names;
}
