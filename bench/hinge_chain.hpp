// A chain of hinges, for benchmarks over the size of the tree.
#pragma once

#include <fmt/format.h>

#include <random>

#include "tarsus/math/rotation.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::bench {

/// A chain of hinges attached to the world, each turned about x, like the prototype's snakes.
inline Model hinge_chain(int links) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ModelSpec spec;
  spec.name = fmt::format("hinges{}", links);
  constexpr double kLength = 0.1, kMass = 0.5, kInertia = kMass * kLength * kLength / 12 + 0.001;
  for (int i = 1; i <= links; ++i) {
    BodySpec body(fmt::format("link{}", i));
    body.parent = i - 1;
    body.orientation = axis_angle({1, 0, 0}, uniform(engine));
    body.position = {0.3 * kLength * uniform(engine), 0.3 * kLength * uniform(engine), kLength};
    JointSpec joint;
    joint.name = fmt::format("joint{}", i);
    body.joints.push_back(joint);
    body.inertial = InertialSpec{
        kMass, {0.1 * kLength, 0.02, 0.5 * kLength}, diagonal3(kInertia, 1.1 * kInertia, 0.7 * kInertia), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

}  // namespace tarsus::bench
