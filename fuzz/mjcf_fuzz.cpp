// Any bytes as MJCF: an error, or a model that compiles or is refused and whose text is written; nothing else. Files
// that the text names are not opened.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/model/model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tarsus::ReadOptions options;
  options.disable_includes = true;
  options.lenient = size % 2 == 0;
  options.fix_balance = size % 3 == 0;
  try {
    tarsus::ModelSpec spec =
        tarsus::parse_mjcf(std::string(reinterpret_cast<const char*>(data), size), "fuzz.xml", "", options);
    if (tarsus::write_mjcf(spec).empty()) std::abort();
    tarsus::compile(std::move(spec));
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
