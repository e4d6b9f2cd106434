// Any bytes as MJCF: a model or an InputError, nothing else. Files that the text names are not opened.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/io/mjcf.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tarsus::ReadOptions options;
  options.disable_includes = true;
  options.lenient = size % 2 == 0;
  options.fix_balance = size % 3 == 0;
  try {
    tarsus::parse_mjcf(std::string(reinterpret_cast<const char*>(data), size), "fuzz.xml", "", options);
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
