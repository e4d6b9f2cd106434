// Detects points that joints alone keep coincident.
#pragma once

#include <optional>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// Whether a point of body a and a point of body b coincide for all positions of the joints between them. This holds if
/// these joints are hinges whose axes pass through the point, to 1e-9 of the lengths, and balls about it.
/// @param point_a, point_b in the frames of their bodies [m]
/// @param point_b none: the point that coincides with point_a when all joints are at zero
bool joints_hold(const Model& model, int body_a, const Vec3d& point_a, int body_b,
                 const std::optional<Vec3d>& point_b = {});

}  // namespace tarsus
