// Any bytes as a URDF: an error or a model that compiles or is refused, and whose text reads back; never a crash or a
// hang.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/model/model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tarsus::ReadOptions options;
  options.lenient = true;
  options.floating_base = size % 2 == 1;
  options.fix_balance = size % 3 == 1;
  try {
    tarsus::ModelSpec spec = tarsus::parse_urdf(text, "fuzz.urdf", "/nonexistent", options);
    if (tarsus::write_mjcf(spec).empty()) std::abort();
    tarsus::compile(std::move(spec));
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
