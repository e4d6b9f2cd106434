// Clips as JSON (DeepMimic's kinds and our own) and mapping files: any bytes give a clip, a mapping, or an InputError.
#include <cstdint>
#include <string>

#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/deepmimic.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::vector<tarsus::ClipChannel> layout = {{"root", tarsus::ChannelKind::rotation, 0, {0, 0, 0}},
                                                   {"knee", tarsus::ChannelKind::angle, 4, {0, 0, 1}}};
  try {
    const tarsus::MotionClip clip = tarsus::parse_clip(text, "fuzz.json");
    // What was accepted is written and read back.
    if (tarsus::parse_clip(tarsus::write_clip(clip), "again.json").frame_count() != clip.frame_count())
      __builtin_trap();
  } catch (const tarsus::InputError&) {
  }
  try {
    tarsus::parse_deepmimic(text, "fuzz.txt", layout);
  } catch (const tarsus::InputError&) {
  }
  try {
    tarsus::parse_clip_mapping(text, "fuzz.json");
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
