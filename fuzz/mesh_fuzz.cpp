// Any bytes as a mesh of each format: an error, or triangles whose indices are good and whose mass properties are
// finite or refused. The first byte picks the format.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tarsus/geometry/inertia.hpp"
#include "tarsus/io/mesh_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto format = static_cast<tarsus::MeshFormat>(data[0] % 3);
  tarsus::MeshData mesh;
  try {
    mesh = tarsus::parse_mesh({reinterpret_cast<const char*>(data) + 1, size - 1}, format, "fuzz");
  } catch (const tarsus::InputError&) {
    return 0;
  }
  tarsus::mesh_defects(mesh);
  for (const auto kind : {tarsus::MeshInertia::exact, tarsus::MeshInertia::convex, tarsus::MeshInertia::legacy,
                          tarsus::MeshInertia::shell}) {
    try {
      const tarsus::ShapeInertia s = tarsus::mesh_inertia(mesh.vertices, mesh.triangles, kind);
      if (!std::isfinite(s.volume) || !std::isfinite(s.com.x) || !std::isfinite(s.inertia.xx)) std::abort();
    } catch (const tarsus::ValueError&) {
    }
  }
  return 0;
}
