#include "tarsus/io/particle_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "tarsus/io/lammps_data.hpp"
#include "tarsus/io/md_system.hpp"
#include "tarsus/io/particle_setup.hpp"
#include "tarsus/io/xyz.hpp"
#include "tarsus/particles/builtin.hpp"

namespace tarsus {
namespace {

std::string extension_of(const std::string& path) {
  std::string text = std::filesystem::path(path).extension().string();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

ParticleSystem load_lammps(const ParticleSource& source, Diagnostics& notes) {
  LammpsData data =
      read_lammps_data(source.system, source.units.empty() ? units_angstrom_fs() : units_by_name(source.units));
  notes.insert(notes.end(), data.notes.begin(), data.notes.end());
  use_lammps_data(data, {source.rigid_bonds, source.rigid_angles, source.cutoff, source.reaction_field});
  return std::move(data.system);
}

bool is_lammps(const std::string& extension) {
  return extension == ".data" || extension == ".lmp" || extension == ".lammps";
}

void refuse_lammps_options(const ParticleSource& source) {
  const auto refuse = [](const char* name) {
    throw ValueError(name, "given", "a LAMMPS data file: elsewhere it has no meaning; a setup names cutoffs");
  };
  if (source.cutoff != 0) refuse("cutoff");
  if (source.reaction_field) refuse("reaction field");
  if (!source.rigid_bonds.empty()) refuse("rigid bonds");
  if (!source.rigid_angles.empty()) refuse("rigid angles");
}

ParticleSystem load_file(const ParticleSource& source, Diagnostics& notes) {
  const std::string extension = extension_of(source.system);
  if (extension == ".sys") return read_md_system(source.system);
  if (extension == ".xyz" || extension == ".extxyz") {
    return system_from_xyz(read_xyz(source.system), source.system,
                           source.units.empty() ? units_nm_ps() : units_by_name(source.units));
  }
  if (is_lammps(extension)) return load_lammps(source, notes);
  if (!std::filesystem::exists(source.system)) {
    std::string known;
    for (const auto& [name, what] : builtin_systems()) known += (known.empty() ? "" : ", ") + name;
    throw ValueError("system", source.system, "a file (.sys, .xyz, .data) or one of " + known);
  }
  throw ValueError("system", source.system, "a file that ends in .sys, .xyz, .extxyz, .data, .lmp or .lammps");
}

}  // namespace

ParticleSystem load_particles(const ParticleSource& source, Diagnostics& notes) {
  // A name with the form of a built-in one wins over a file unless there is such a file.
  const bool builtin = is_builtin_system(source.system) && !std::filesystem::exists(source.system);
  if (builtin || !is_lammps(extension_of(source.system))) refuse_lammps_options(source);
  ParticleSystem system = builtin ? make_builtin_system(source.system, source.seed) : load_file(source, notes);
  if (!source.units.empty() && source.units != system.units.name) {
    const bool had_forces = !system.force_field.empty();
    system = converted(system, units_by_name(source.units));
    if (had_forces && source.forces.empty() && source.setup.empty())
      throw ValueError("units", source.units,
                       "forces named too (--forces, --setup): the forces of this system are in its own units");
  }
  if (!source.forces.empty() && !source.setup.empty())
    throw ValueError("forces", source.forces, "no name beside a setup file, which has forces of its own");
  if (!source.forces.empty()) set_force_field(system, source.forces);
  if (!source.setup.empty()) read_particle_setup(system, source.setup);
  return system;
}

}  // namespace tarsus
