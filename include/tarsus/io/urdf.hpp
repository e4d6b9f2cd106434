// Reads URDF, the robot descriptions of ROS, with Bullet's and Drake's extensions. src/io/URDF.md has the support
// matrix.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// Reads a URDF file. Conventions:
/// - Links become bodies with the link's frame and name, depth first, children in the file's order of joints. The root
///   link is welded to the world, or floats with options.floating_base. A root link named "world" is the world.
/// - A joint becomes a joint of its child link, with the axis in the child's frame. revolute, continuous → hinge;
///   prismatic → slide; spherical (Bullet) → ball; fixed → none; floating → free. The qpos of a floating joint is the
///   pose in the world (the origin is qpos0); every link above it must be welded to the world.
/// - planar → slides NAME_x and NAME_y, then hinge NAME_angle about the axis, all at the joint's origin. The slides go
///   along x and y, turned by the shortest rotation from z to the axis.
/// - <drake:joint>: ball; planar; universal → hinges NAME_first about x, NAME_second about y; screw → slide NAME_along
///   and hinge NAME_about with the equality "joint" NAME. Damping and friction of a screw belong to the hinge.
/// - mimic → equality "joint" with the polynomial (offset, multiplier).
/// - lower >= upper means no limit (as in Bullet and common use), with a warning. effort 0 means no force limit.
/// - Inertia comes from <inertial> only. <collision> gives geoms that collide, <visual> geoms that do not.
/// @throws InputError with every error found
ModelSpec read_urdf(const std::filesystem::path& file, const ReadOptions& options = {});

/// The same from memory; `name` stands for the file in messages; paths of meshes are relative to `directory`.
ModelSpec parse_urdf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options = {});

}  // namespace tarsus
