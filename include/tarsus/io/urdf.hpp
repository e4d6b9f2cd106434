// URDF: robot descriptions of ROS, and what Bullet and Drake add to them. The support matrix is in src/io/URDF.md.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// Reads a URDF file. Conventions:
/// - Links become bodies, each with its own frame and name; depth first, children in the file's order of joints. The
///   root link is welded to the world, or floats with options.floating_base; a root link named "world" is the world.
/// - Joints become the joints of their child link, with the axis in the child's frame. revolute, continuous → hinge;
///   prismatic → slide; spherical (Bullet) → ball; fixed → none; floating → free, whose qpos is the pose in the world
///   (the origin is qpos0), allowed where every link above is welded to the world.
/// - planar → slides NAME_x, NAME_y along x and y turned by the shortest rotation that takes z to the axis (for an axis
///   of z they are x and y), then hinge NAME_angle about the axis, all three at the joint's origin.
/// - <drake:joint>: ball; planar; universal → hinges NAME_first about x, NAME_second about y; screw → slide NAME_along
///   and hinge NAME_about with the equality "joint" NAME; damping and friction are the hinge's.
/// - mimic → equality "joint" with polynomial (offset, multiplier).
/// - lower >= upper means no limit (Bullet's and common use) and is warned of; effort 0 means no limit on the force.
/// - Inertia comes from <inertial> alone. <collision> gives geoms that collide, <visual> geoms that do not.
/// @throws InputError with every error found
ModelSpec read_urdf(const std::filesystem::path& file, const ReadOptions& options = {});

/// The same from memory; `name` stands for the file in messages, `directory` is where relative meshes are.
ModelSpec parse_urdf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options = {});

}  // namespace tarsus
