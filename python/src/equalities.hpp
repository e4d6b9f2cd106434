// Python's Equalities, which constraint.cpp solves for and Stepper holds.
#pragma once

#include "bindings.hpp"
#include "tarsus/constraint/equality.hpp"

namespace tarsus::python {

/// A set that keeps its model alive. Steppers that were made with it hold on to its rows.
struct PyEqualities {
  nb::object owner;
  EqualitySet set;
  bool in_use = false;
  std::shared_ptr<PythonRows> rows = std::make_shared<PythonRows>();

  /// For a constraint to be added. @throws ValueError once a Stepper has the set, and for another's name
  EqualitySet& growing(const std::string& name) {
    rows->check_idle("equalities");
    if (in_use) throw ValueError("equalities", "in use by a Stepper", "additions before the Stepper is made");
    for (int i = 0; i < set.size() && !name.empty(); ++i) {
      if (set[i].name == name) throw ValueError("name", "\"" + name + "\"", "one that no other constraint has");
    }
    return set;
  }
};

/// @throws ValueError if it was made for another model
PyEqualities& equalities_for(const Model& model, nb::handle equalities);

/// The one world in double that an algorithm without lanes works on. @throws ValueError for others
BasicData<double>& single_world(AnyData& any, const Model& model);

}  // namespace tarsus::python
