// Points that joints alone hold together.
#pragma once

#include <optional>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// Whether a point of body a and one of body b are one whatever the joints between them do: these are hinges whose axes
/// go through it, to 1e-9 of the lengths, and balls about it.
/// @param point_b none: that which point_a is on when all joints are at zero
bool joints_hold(const Model& model, int body_a, const Vec3d& point_a, int body_b,
                 const std::optional<Vec3d>& point_b = {});

}  // namespace tarsus
