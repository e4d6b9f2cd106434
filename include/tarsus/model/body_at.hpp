// Bodies by index, checked.
#pragma once

#include "tarsus/base/check_index.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus {

/// @throws ValueError unless body is an index of Model::bodies
inline const Body& body_at(const Model& model, int body) {
  check_index("body", body, model.nbody());
  return model.bodies[std::size_t(body)];
}

}  // namespace tarsus
