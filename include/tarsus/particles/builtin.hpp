// Built-in particle systems and force fields.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Names and descriptions, e.g. {"chain:N", "freely jointed chain of N beads, 300 K (nm, ps)"}.
std::vector<std::pair<std::string, std::string>> builtin_systems();
/// Whether the part of the name before ":" is that of a built-in system; its size is not checked.
bool is_builtin_system(std::string_view name);
/// Makes water1, water216 (or water:N³), butane125 (or butane:N³), chain:N, ring:N, c60, c60-rigid, rope:N, cloth:NxM
/// or pendulum2.
/// @param seed of all random numbers: orientations, velocities and the thermostat while a fluid is equilibrated
/// @param on_settling is called with the completed fraction while a fluid is equilibrated, which takes seconds
/// @throws ValueError for an unknown name or a size out of range
ParticleSystem make_builtin_system(std::string_view name, std::uint64_t seed = 1,
                                   const std::function<void(double)>& on_settling = {});

/// Names and descriptions of the force fields.
std::vector<std::pair<std::string, std::string>> force_field_names();
/// Sets the force field of a system whose particles are in the field's order: spce-smooth, spce-shifted-force,
/// spce-lammps-dsf, spce-reaction-field (O H H), trappe-butane (CH3 CH2 CH2 CH3), none. Lengths and energies are
/// converted to the system's units (nm_ps or angstrom_fs).
/// @throws ValueError for an unknown name, other units, or masses in another order
void set_force_field(ParticleSystem& system, std::string_view name);

/// The system in other units; nm_ps and angstrom_fs only. The result has no force field: set it afterwards.
/// @throws ValueError for other units, or for constraints other than distances
ParticleSystem converted(const ParticleSystem& system, const Units& units);

}  // namespace tarsus
