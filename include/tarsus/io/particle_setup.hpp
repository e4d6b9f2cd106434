// Forces, pins and further constraints of a particle system, as a JSON text beside the file that has the particles.
//
//   {"units": "nm_ps",                                      must be the system's, if given
//    "molecule": ["O", "H", "H"],                           types of one molecule, repeated over all particles
//    "types": {"O": {"epsilon": 0.65, "sigma": 0.3166, "charge": -0.8476}, "H": {"charge": 0.4238}},
//    "lennard_jones": {"cutoff": 0.85, "form": "plain | shifted | force_switch", "switch_from": 0.7,
//                      "mixing": "lorentz_berthelot | geometric", "pairs": {"O H": [epsilon, sigma]}},
//    "coulomb": {"cutoff": 0.85, "form": "plain | shifted | shifted_force | shifted_gradient | reaction_field",
//                "epsilon_outside": 0, "constant": 138.9, "corrections": true},
//    "exclude": "molecule | none" or [[0, 1], …],           default: molecule, where there is one
//    "bonds": [[i, j, k, r0], …], "angles": [[i, j, k, stiffness, degrees], …],
//    "torsions": [[i, j, k, l, c1, c2, c3], …],
//    "distances": [[i, j, length], …], "rigid_angles": [[i, j, k, degrees], …],
//    "rigid_torsions": [[i, j, k, l, degrees], …],
//    "springs": [[i, k, x, y, z], …], "gravity": [x, y, z], "pinned": [i, …],
//    "planes": [[i, px, py, pz, nx, ny, nz], …], "spheres": [[i, x, y, z, radius], …], "centre_of_mass": [x, y, z]}
//
// Everything is optional; numbers are in the system's units. Without "molecule" the types are the particles' species.
// Particles count from 0: within the molecule, and so for each of them, in exclude, bonds, angles, torsions, distances,
// rigid_angles and rigid_torsions; over the whole system in springs, pinned, planes and spheres.
#pragma once

#include <string>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Adds the constraints and pins; forces, where it has any, take the place of the system's. The system is unchanged if
/// there is an error.
/// @returns whether it has forces    @throws InputError listing every fault with line, column and element
bool apply_particle_setup(ParticleSystem& system, const std::string& text, const std::string& file);
bool read_particle_setup(ParticleSystem& system, const std::string& path);

}  // namespace tarsus
