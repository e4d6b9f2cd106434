// Python's Equalities, for constraint.cpp and Stepper.
#pragma once

#include "bindings.hpp"
#include "tarsus/constraint/equality.hpp"

namespace tarsus::python {

/// An equality set that keeps its model alive. Steppers that were made with it keep its rows alive.
struct PyEqualities {
  nb::object owner;
  EqualitySet set;
  bool in_use = false;
  std::shared_ptr<PythonRows> rows = std::make_shared<PythonRows>();

  /// The set, for adding a constraint. @throws ValueError if a Stepper uses the set, or if the name is taken
  EqualitySet& growing(const std::string& name) {
    rows->check_idle("equalities");
    if (in_use)
      throw ValueError("equalities", "in use by a Stepper", "constraints to be added before the Stepper is made");
    for (int i = 0; i < set.size() && !name.empty(); ++i) {
      if (set[i].name == name) throw ValueError("name", "\"" + name + "\"", "a name that no other constraint has");
    }
    return set;
  }
};

/// @throws ValueError if it was made for another model
PyEqualities& equalities_for(const Model& model, nb::handle equalities);

/// Data of one world in double, for algorithms without SIMD lanes. @throws ValueError for other data
BasicData<double>& single_world(AnyData& any, const Model& model);

}  // namespace tarsus::python
