// Any bytes as an .npz: every array's header and data, and the file as a recording.
#include <cstdint>
#include <string>

#include "tarsus/io/npz.hpp"
#include "tarsus/io/recording.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    tarsus::NpzReader reader(bytes, "fuzz.npz");
    for (const std::string& name : reader.names()) {
      try {
        const tarsus::NpzInfo info = reader.info(name);
        if (info.type == tarsus::NpzType::uint8)
          reader.read_text(name);
        else
          reader.read_real(name, info.shape);
      } catch (const tarsus::InputError&) {
      }
    }
  } catch (const tarsus::InputError&) {
  }
  try {
    tarsus::parse_recording(bytes, "fuzz.npz");
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
