// tarsus._core: the extension module. Each exception of the library has a Python one of the same name.
#include <nanobind/nanobind.h>

#include "tarsus/base/error.hpp"
#include "tarsus/math/cpu.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.attr("__version__") = TARSUS_VERSION;

  nb::exception<tarsus::Error> error(m, "Error");
  nb::exception<tarsus::InputError>(m, "InputError", error.ptr());
  nb::exception<tarsus::ShapeError>(m, "ShapeError", error.ptr());
  nb::exception<tarsus::ValueError>(m, "ValueError", error.ptr());

  m.def(
      "isa_level", [] { return tarsus::name(tarsus::isa_level()); },
      "Instruction set that the kernels run with: baseline, avx2 or avx512.");
}
