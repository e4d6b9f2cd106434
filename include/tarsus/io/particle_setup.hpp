// Forces, pins and further constraints of a particle system, as JSON text beside the file with the particles.
//
//   {"units": "nm_ps",                                      if given, must be the system's
//    "molecule": ["O", "H", "H"],                           types of one molecule, repeated over all particles
//    "types": {"O": {"epsilon": 0.65, "sigma": 0.3166, "charge": -0.8476}, "H": {"charge": 0.4238}},
//    "lennard_jones": {"cutoff": 0.85, "form": "plain | shifted | force_switch", "switch_from": 0.7,
//                      "mixing": "lorentz_berthelot | geometric", "pairs": {"O H": [epsilon, sigma]}},
//    "coulomb": {"cutoff": 0.85, "form": "plain | shifted | shifted_force | shifted_gradient | reaction_field",
//                "epsilon_outside": 0, "constant": 138.9, "corrections": true},
//    "exclude": "molecule | none" or [[0, 1], …],           default: molecule, if there is one
//    "bonds": [[i, j, k, r0], …], "angles": [[i, j, k, stiffness, degrees], …],
//    "torsions": [[i, j, k, l, c1, c2, c3], …],
//    "distances": [[i, j, length], …], "rigid_angles": [[i, j, k, degrees], …],
//    "rigid_torsions": [[i, j, k, l, degrees], …],
//    "springs": [[i, k, x, y, z], …], "gravity": [x, y, z], "pinned": [i, …],
//    "planes": [[i, px, py, pz, nx, ny, nz], …], "spheres": [[i, x, y, z, radius], …], "centre_of_mass": [x, y, z]}
//
// Everything is optional. Numbers are in the system's units. Without "molecule" the types are the particles' species.
// Particles count from 0. In exclude, bonds, angles, torsions, distances, rigid_angles and rigid_torsions they count
// within the molecule, and the entry applies to every molecule. In springs, pinned, planes and spheres they count over
// the whole system.
#pragma once

#include <string>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Adds the text's constraints and pins. Forces in the text replace the system's. On an error the system is unchanged.
/// @returns whether the text has forces    @throws InputError listing every fault with line, column and element
bool apply_particle_setup(ParticleSystem& system, const std::string& text, const std::string& file);
bool read_particle_setup(ParticleSystem& system, const std::string& path);

}  // namespace tarsus
