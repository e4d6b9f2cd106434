#include "tarsus/io/particle_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/whole_molecules.hpp"
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
  use_lammps_data(data, {source.rigid_bonds, source.rigid_angles, source.cutoff, source.reaction_field});
  notes.insert(notes.end(), data.notes.begin(), data.notes.end());
  return std::move(data.system);
}

bool is_lammps(const std::string& extension) {
  return extension == ".data" || extension == ".lmp" || extension == ".lammps";
}

void refuse_lammps_options(const ParticleSource& source) {
  const auto refuse = [](const char* name) {
    throw ValueError(name, "given", "a LAMMPS data file; for other systems a setup file defines the forces");
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
    const std::vector<XyzFrame> frames = read_xyz(source.system);
    if (const std::vector<std::string>& skipped = frames.back().skipped; !skipped.empty()) {
      notes.push_back({Severity::warning,
                       {source.system, 0, 0, ""},
                       fmt::format("columns that are not used: {}", fmt::join(skipped, ", "))});
    }
    return system_from_xyz(frames, source.system,
                           source.units.empty() ? units_angstrom_fs() : units_by_name(source.units));
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

int make_whole(ParticleSystem& system) {
  if (!system.box.periodic()) return 0;
  const int n = system.particles();
  std::vector<std::vector<int>> linked(n);
  const auto link = [&](int i, int j) { linked[i].push_back(j), linked[j].push_back(i); };
  for (int k = 0; k < system.constraints.nrow(); ++k) {
    if (system.constraints.kind(k) != RowKind::distance) continue;
    link(system.constraints.row_particles(k)[0], system.constraints.row_particles(k)[1]);
  }
  for (const HarmonicBond& bond : system.force_field.bonds) link(bond.i, bond.j);
  for (int i = 1; i < n && !system.molecule.empty(); ++i) {
    if (linked[i].empty() && system.molecule[i] == system.molecule[i - 1]) link(i - 1, i);
  }
  return make_molecules_whole(system, linked);
}

std::string made_whole(int moved) {
  return fmt::format("molecules cut by the box boundary are made whole: {} particles moved by a box length", moved);
}

ParticleSystem load_particles(const ParticleSource& source, Diagnostics& notes) {
  // A name in the form of a built-in system's is one, unless a file of that name exists.
  const bool builtin = is_builtin_system(source.system) && !std::filesystem::exists(source.system);
  if (builtin || !is_lammps(extension_of(source.system))) refuse_lammps_options(source);
  ParticleSystem system =
      builtin ? make_builtin_system(source.system, source.seed, source.on_settling) : load_file(source, notes);
  if (system.particles() == 0) throw InputError({source.system, 0, 0, ""}, "the system has no particles");
  const bool converts = !source.units.empty() && source.units != system.units.name;
  const bool loses_forces = converts && !system.force_field.empty();
  if (converts) system = converted(system, units_by_name(source.units));
  if (!source.forces.empty()) set_force_field(system, source.forces);
  const bool set_up = !source.setup.empty() && read_particle_setup(system, source.setup);
  if (source.cutoff != 0 && (set_up || !source.forces.empty()))
    throw ValueError("cutoff", fmt::format("{}", source.cutoff),
                     "no --forces and no --setup with it: they replace the forces of the file");
  if (set_up && !source.forces.empty())
    throw ValueError("forces", source.forces, "none, because the setup file defines forces");
  if (loses_forces && !set_up && source.forces.empty())
    throw ValueError("units", source.units,
                     "--forces or --setup as well: the forces of this system are in its own units");
  if (const int moved = builtin ? 0 : make_whole(system); moved > 0) {
    notes.push_back({Severity::warning, {source.system, 0, 0, ""}, made_whole(moved)});
  }
  return system;
}

}  // namespace tarsus
