// Looks up sites and geoms by name.
#pragma once

#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The first site or geom of that name in BodySpec::sites or geoms, and its body; null and -1 if there is none.
template <class Spec>
struct OnBody {
  int body = -1;
  const Spec* spec = nullptr;
};
template <class Spec>
OnBody<Spec> find_on_bodies(const ModelSpec& spec, std::vector<Spec> BodySpec::*member, const std::string& name) {
  for (std::size_t body = 0; body < spec.bodies.size(); ++body) {
    for (const Spec& one : spec.bodies[body].*member) {
      if (one.name == name) return {int(body), &one};
    }
  }
  return {};
}

}  // namespace tarsus
