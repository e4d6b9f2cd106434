// C++ exceptions as the Python classes of tarsus/errors.py, and diagnostics as objects.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <typeinfo>

#include "bindings.hpp"

namespace tarsus::python {

using namespace nb::literals;

namespace {

void raise(const char* name, const char* what, const Diagnostics* diagnostics = nullptr) {
  nb::object type = nb::module_::import_("tarsus.errors").attr(name);
  nb::object error = type(text_of(what));
  if (diagnostics) error.attr("diagnostics") = to_python(*diagnostics);
  PyErr_SetObject(type.ptr(), error.ptr());
}

/// Catches the most derived type first.
void translate(const std::exception_ptr& exception, void*) {
  try {
    std::rethrow_exception(exception);
  } catch (const InputError& e) {
    raise("InputError", e.what(), &e.diagnostics());
  } catch (const ShapeError& e) {
    raise("ShapeError", e.what());
  } catch (const ArrayShapeError& e) {
    raise("ShapeError", e.what());
  } catch (const ValueError& e) {
    raise("ValueError", e.what());
  } catch (const Error& e) {
    raise("Error", e.what());
  } catch (const std::bad_cast&) {  // a Python object within an argument has the wrong type
    PyErr_SetString(PyExc_TypeError, "an argument contains an object of a type other than the signature says");
  }
}

const char* severity_name(Severity severity) {
  return severity == Severity::note ? "note" : severity == Severity::warning ? "warning" : "error";
}

}  // namespace

nb::object text_of(const std::string& text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "backslashreplace"));
}

nb::list to_python(const Diagnostics& diagnostics) {
  nb::list list;
  for (const Diagnostic& d : diagnostics) list.append(nb::cast(d));
  return list;
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  nb::class_<Diagnostic> c(m, "Diagnostic", "One finding about a user's file.");
  copies_are_itself(c);
  c.def("__getstate__",
        [](const Diagnostic& d) {
          return nb::make_tuple(int(d.severity), nb::bytes(d.where.file.data(), d.where.file.size()), d.where.line,
                                d.where.column, d.where.element, d.message, d.other_law);
        })
      .def("__setstate__",
           [](Diagnostic& d, const std::tuple<int, nb::bytes, int, int, std::string, std::string, bool>& s) {
             const auto& [severity, file, line, column, element, message, other_law] = s;
             new (&d) Diagnostic{
                 Severity(severity), {{file.c_str(), file.size()}, line, column, element}, message, other_law};
           })
      .def_prop_ro(
          "severity", [](const Diagnostic& d) { return severity_name(d.severity); }, "'note', 'warning' or 'error'.")
      .def_ro("message", &Diagnostic::message, "What was found, and what was expected.")
      .def_ro("other_law", &Diagnostic::other_law,
              "Only for warnings. True: what the message names is computed, but by a law other than the format's. "
              "check --strict accepts it.")
      .def_prop_ro(
          "file", [](const Diagnostic& d) { return text_of(d.where.file); }, nb::sig("def file(self) -> str"),
          "Name of the file as given.")
      .def_prop_ro(
          "line", [](const Diagnostic& d) { return d.where.line; }, "Line, from 1; 0 if unknown.")
      .def_prop_ro(
          "column", [](const Diagnostic& d) { return d.where.column; }, "Column, from 1; 0 if unknown.")
      .def_prop_ro(
          "element", [](const Diagnostic& d) { return d.where.element; },
          "Path of the element, e.g. 'mujoco/worldbody/body[torso]'.")
      .def(
          "text", [](const Diagnostic& d) { return text_of(d.text()); }, nb::sig("def text(self) -> str"),
          "'file:line:column: severity: message (element)'.")
      .def(
          "__str__", [](const Diagnostic& d) { return text_of(d.text()); }, nb::sig("def __str__(self) -> str"))
      .def(
          "__repr__", [](const Diagnostic& d) { return text_of("<tarsus.Diagnostic " + d.text() + ">"); },
          nb::sig("def __repr__(self) -> str"));
}

}  // namespace tarsus::python
