// Readers of particle files: .sys, .frames, extended XYZ, LAMMPS data, setups. The first byte chooses. Whatever is
// accepted must survive preparation and a step.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "tarsus/io/lammps_data.hpp"
#include "tarsus/io/md_system.hpp"
#include "tarsus/io/particle_setup.hpp"
#include "tarsus/io/xyz.hpp"
#include "tarsus/particles/verlet.hpp"

namespace {

void exercise(tarsus::ParticleSystem system) {
  if (system.particles() > 200 || system.constraints.nrow() > 400) return;
  tarsus::prepare(system, 1e-10, 0.001);
  tarsus::VelocityVerlet verlet(system, {.timestep = 0.001, .tolerance = 1e-10, .max_iterations = 20});
  for (int k = 0; k < 2 && verlet.step().ok; ++k) {
  }
}

tarsus::ParticleSystem six_particles() {
  tarsus::ParticleSystem system;
  system.units = tarsus::units_nm_ps();
  system.mass.assign(6, 1.0), system.velocity.assign(18, 0.0);
  system.species = {"O", "H", "H", "O", "H", "H"};
  system.position = {0, 0, 0, 0.1, 0, 0, 0, 0.1, 0, 0.5, 0, 0.3, 0.6, 0, 0.3, 0.5, 0.1, 0.3};
  return system;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 5) {
      case 0: {
        tarsus::ParticleSystem system = tarsus::parse_md_system(text, "fuzz.sys");
        std::ostringstream out;
        tarsus::write_md_system(out, system);
        if (tarsus::parse_md_system(out.str(), "again.sys").position != system.position) __builtin_trap();
        exercise(std::move(system));
        break;
      }
      case 1: tarsus::parse_md_frames(text, "fuzz.frames", 3); break;
      case 2:
        exercise(tarsus::system_from_xyz(tarsus::parse_xyz(text, "fuzz.xyz"), "fuzz.xyz", tarsus::units_nm_ps()));
        break;
      case 3: {
        tarsus::ParticleSystem system = six_particles();
        tarsus::apply_particle_setup(system, text, "fuzz.json");
        exercise(std::move(system));
        break;
      }
      default: {
        tarsus::LammpsData read = tarsus::parse_lammps_data(text, "fuzz.data", tarsus::units_angstrom_fs());
        tarsus::use_lammps_data(read, {{1}, {}, 1.0, false});
        exercise(std::move(read.system));
      }
    }
  } catch (const tarsus::Error&) {
  }
  return 0;
}
