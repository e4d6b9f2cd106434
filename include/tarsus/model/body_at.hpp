// Bodies by index, checked.
#pragma once

#include "tarsus/model/model.hpp"

namespace tarsus {

/// @throws ValueError unless body is an index of Model::bodies
inline const Body& body_at(const Model& model, int body) {
  if (body < 0 || body >= model.nbody())
    throw ValueError("body", std::to_string(body), "an index below " + std::to_string(model.nbody()));
  return model.bodies[std::size_t(body)];
}

}  // namespace tarsus
