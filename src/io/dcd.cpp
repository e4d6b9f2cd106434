#include "tarsus/io/dcd.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"

namespace tarsus {
namespace {

/// A Fortran record: the data, with their length in bytes before and after them.
class Record {
 public:
  template <class T>
  void put(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void text(std::string line, std::size_t width) {
    line.resize(width, ' ');
    bytes_.insert(bytes_.end(), line.begin(), line.end());
  }
  void write(std::ostream& out) const {
    const auto size = static_cast<std::int32_t>(bytes_.size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(bytes_.data(), size);
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
  }

 private:
  std::vector<char> bytes_;
};

std::int32_t counted(long value) {
  return static_cast<std::int32_t>(std::min<long>(value, std::numeric_limits<std::int32_t>::max()));
}

constexpr std::streamoff kFrameCount = 8;  // offset of the frame count: after the record's length and "CORD"

}  // namespace

double DcdWriter::angstroms(const Units& units) {
  if (units.name == "nm_ps") return 10;
  if (units.name == "angstrom_fs") return 1;
  throw ValueError("units", units.name, "nm_ps or angstrom_fs for a DCD file, which is in Angstrom");
}

DcdWriter::DcdWriter(std::ostream& out, const ParticleSystem& system, long every, double timestep)
    : out_(out), angstrom_(angstroms(system.units)) {
  const Vec3d& box = system.box.length;
  cell_ = box.x > 0 && box.y > 0 && box.z > 0;
  const double picoseconds = system.units.name == "nm_ps" ? 1 : 1e-3;
  constexpr double kAkma = 0.0488882129;  // CHARMM's unit of time in ps
  Record header;
  header.text("CORD", 4);
  std::int32_t control[20] = {};
  control[2] = counted(every);
  const auto step = static_cast<float>(timestep * picoseconds / kAkma);
  std::memcpy(&control[9], &step, sizeof step);
  control[10] = cell_ ? 1 : 0;
  control[19] = 24;  // the CHARMM version that defines this layout
  for (const std::int32_t word : control) header.put(word);
  header.write(out_);
  Record title;
  title.put(std::int32_t{1});
  title.text("written by tarsus md, lengths in Angstrom", 80);
  title.write(out_);
  Record count;
  count.put(static_cast<std::int32_t>(system.particles()));
  count.write(out_);
}

void DcdWriter::frame(const ParticleSystem& system) {
  if (cell_) {
    Record cell;
    const Vec3d box = system.box.length * angstrom_;
    for (const double number : {box.x, 90.0, box.y, 90.0, 90.0, box.z}) cell.put(number);
    cell.write(out_);
  }
  for (int c = 0; c < 3; ++c) {
    Record axis;
    for (int i = 0; i < system.particles(); ++i)
      axis.put(static_cast<float>(angstrom_ * system.position[3 * static_cast<std::size_t>(i) + c]));
    axis.write(out_);
  }
  // Update the header's frame count now, so that it is right even if the run is cut short.
  ++frames_;
  const auto end = out_.tellp();
  out_.seekp(kFrameCount);
  out_.write(reinterpret_cast<const char*>(&frames_), sizeof frames_);
  out_.seekp(end);
}

}  // namespace tarsus
