#include "tarsus/io/clip_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "clip_json.hpp"
#include "pickle.hpp"
#include "tarsus/io/amass.hpp"
#include "tarsus/io/amc.hpp"
#include "tarsus/io/bvh.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/mimickit.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

/// Room for what write_clip() writes of the largest BVH file: four numbers of a quaternion for three angles among its
/// kMaxBvhNumbers, with all digits, in frames of at least three.
constexpr JsonLimits kLimits{.bytes = 64u << 20, .values = 1'000'000};

/// MotionClip::format of a clip that was made in the tarsus-clip format, or retargeted.
constexpr const char* kOwnFormat = "tarsus";

/// Reads the tarsus-clip format.
class ClipReader {
 public:
  explicit ClipReader(const JsonDocument& document) : document_(document) {}

  MotionClip run(const std::string& fallback_name) {
    JsonObject top(document_, document_.root(), "", sink_);
    clip_.file = document_.file(), clip_.name = fallback_name, clip_.format = kOwnFormat;
    std::string format, comment;
    double version = 0;
    top.read("format", format), top.read("name", clip_.name), top.read("comment", comment);
    top.read("source_format", clip_.format);
    if (!top.read("version", version) || version != 1) {
      const JsonValue* at = top.get("version");
      top.fault(at ? *at : document_.root(), "version", "version 1 is expected");
    }
    top.read("loop", clip_.loop);
    top.read("cycle_position", clip_.cycle_position), top.read("cycle_heading", clip_.cycle_heading);
    read_axis(top, "up", clip_.up), read_axis(top, "forward", clip_.forward);
    const JsonValue *channels = needed(top, "channels"), *frames = needed(top, "frames");
    if (channels) clip_.width = read_channels(document_, *channels, "channels", sink_, clip_.channels);
    if (frames && !sink_.failed()) read_frames(*frames);
    read_times(top);
    top.done(Severity::error,
             "format, version, name, comment, source_format, loop, cycle_position, cycle_heading, up, forward, "
             "frame_time, times, channels, frames");
    sink_.throw_if_failed();
    clean_clip(clip_, [&](int frame, int column) { return where(*frames, frame, column); });
    return std::move(clip_);
  }

 private:
  const JsonValue* needed(JsonObject& top, const char* key) {
    const JsonValue* value = top.get(key);
    if (!value) sink_.add(Severity::error, document_.where(document_.root()), fmt::format("there is no \"{}\"", key));
    return value;
  }

  Location where(const JsonValue& frames, int frame, int column) const {
    if (frame < 0 || frame >= int(frames.items.size())) return document_.where(frames, "frames");
    const JsonValue& row = frames.items[frame];
    const bool inside = column >= 0 && column < int(row.offsets.size());
    return document_.where(inside ? row.offsets[column] : row.offset,
                           fmt::format("frames[{}][{}]", frame, std::max(column, 0)));
  }

  void read_frames(const JsonValue& frames) {
    if (!frames.is(JsonValue::Type::array)) {
      const bool empty = frames.is_array() && frames.size() == 0;
      sink_.add(Severity::error, document_.where(frames, "frames"),
                empty ? "the clip has no frames" : "an array of rows is expected");
      return;
    }
    if (clip_.width == 0) sink_.add(Severity::error, document_.where(frames, "channels"), "the clip has no channels");
    for (std::size_t i = 0; i < frames.items.size(); ++i) {
      const JsonValue& row = frames.items[i];
      if (!row.is(JsonValue::Type::numbers) || int(row.numbers.size()) != clip_.width) {
        const auto other = std::find_if(row.items.begin(), row.items.end(),
                                        [](const JsonValue& v) { return !v.is(JsonValue::Type::number); });
        const bool mixed = row.is(JsonValue::Type::array) && other != row.items.end();
        const std::string got = row.is(JsonValue::Type::numbers) ? fmt::format("{}", row.numbers.size())
                                : mixed                          ? fmt::format("an array with {}", describe(*other))
                                                                 : describe(row);
        sink_.add(Severity::error, document_.where(mixed ? *other : row, fmt::format("frames[{}]", i)),
                  fmt::format("{} numbers are expected (the width of all channels), not {}", clip_.width, got));
      } else {
        clip_.values.insert(clip_.values.end(), row.numbers.begin(), row.numbers.end());
      }
    }
    count_ = frames.items.size();
  }

  void read_times(JsonObject& top) {
    double step = 0;
    const JsonValue *even = top.get("frame_time"), *uneven = top.get("times");
    if (bool(even) == bool(uneven)) {
      sink_.add(Severity::error, document_.where(document_.root()),
                "exactly one of \"frame_time\" and \"times\" is needed");
    } else if (even) {
      if (top.read("frame_time", step) && !(step > 0))
        top.fault(*even, "frame_time", "\"frame_time\" must be positive");
      for (std::size_t i = 0; i < count_; ++i) clip_.times.push_back(double(i) * step);
    } else if (!sink_.failed()) {
      top.read("times", clip_.times, count_);
    }
  }

  const JsonDocument& document_;
  std::size_t count_ = 0;
  MotionClip clip_;
  DiagnosticSink sink_;
};

[[noreturn]] void no_clip(Location where, const std::string& content = "this is not a motion clip") {
  throw InputError(std::move(where),
                   content +
                       ": expected BVH (HIERARCHY), Acclaim's AMC with its ASF beside it, AMASS "
                       "(.npz), MimicKit (.pkl), DeepMimic (\"Frames\") or tarsus's own format (\"format\": "
                       "\"tarsus-clip\")");
}

constexpr std::string_view kZip = "PK\x03\x04";

/// The first 9 characters after leading blanks. A BVH file begins with HIERARCHY; a JSON file cannot.
std::string_view beginning(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  return trimmed(text.substr(0, 4096)).substr(0, 9);
}

/// Without blanks: a large file must not grow beyond what is read again.
void write_numbers(std::string& out, const double* from, std::size_t count) {
  out += '[';
  for (std::size_t i = 0; i < count; ++i) fmt::format_to(std::back_inserter(out), "{}{}", i ? "," : "", from[i]);
  out += ']';
}

/// Whether frame i is at i * times[1], to the bit.
bool even(const std::vector<double>& times) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] != double(i) * times[1]) return false;
  }
  return times.size() > 1;
}

}  // namespace

bool is_clip(const JsonValue& root) {
  const JsonValue* format = root.find("format");
  return root.find("Frames") || (format && format->is(JsonValue::Type::string) && format->text == "tarsus-clip");
}

std::string content_of(const JsonValue& root) {
  if (const JsonValue* format = root.find("format"); format && format->is(JsonValue::Type::string)) {
    const std::string& of = format->text;
    return fmt::format("JSON of the format {}{}", quote(of),
                       of == "tarsus-clip-mapping"  ? " (--mapping takes it)"
                       : of == "tarsus-motion-task" ? " (tarsus.tasks.motion_task takes it)"
                                                    : "");
  }
  if (!root.is(JsonValue::Type::object)) return fmt::format("JSON with {}", describe(root));
  if (root.keys.empty()) return "JSON without keys";
  std::string keys;
  for (std::size_t i = 0; i < root.keys.size() && i < 5; ++i) keys += (i ? ", " : "") + quote(root.keys[i]);
  return fmt::format("JSON with the keys {}{}", keys, root.keys.size() > 5 ? ", …" : "");
}

MotionClip parse_clip(std::string text, const std::string& name, const ClipMapping* mapping) {
  const std::string_view first = beginning(text);
  if (first == "HIERARCHY") return parse_bvh(text, name);
  if (first.substr(0, 4) == kZip) {
    NpzReader npz(std::move(text), name);
    return read_amass(npz, name);
  }
  if (looks_like_pickle(text)) return parse_mimickit(text, name);
  if (!first.empty() && first[0] != '{' && first[0] != '[') no_clip({name, 1, 1, ""});
  const JsonDocument document(std::move(text), name, kLimits);
  const JsonValue* format = document.root().find("format");
  if (format && format->is(JsonValue::Type::string) && format->text == "tarsus-clip")
    return ClipReader(document).run(stem(name));
  if (document.root().find("Frames")) {
    return deepmimic_from(document, stem(name),
                          mapping ? std::span<const ClipChannel>(mapping->layout) : std::span<const ClipChannel>());
  }
  no_clip(document.where(document.root()), "this is not a motion clip but " + content_of(document.root()));
}

MotionClip read_clip(const std::filesystem::path& file, const ClipMapping* mapping) {
  std::string text = read_file(file, std::max(kLimits.bytes, kMaxBvhBytes));
  if (looks_like_acclaim(text)) return read_amc(file);  // it also reads the skeleton's file
  return parse_clip(std::move(text), file.string(), mapping);
}

std::string write_clip(const MotionClip& clip) {
  std::string out = fmt::format("{{\"format\": \"tarsus-clip\", \"version\": 1, \"name\": {}, \"loop\": {},\n",
                                json_string(clip.name), clip.loop);
  if (!clip.format.empty() && clip.format != kOwnFormat)
    out += fmt::format(" \"source_format\": {},\n", json_string(clip.format));
  out += fmt::format(" \"cycle_position\": {}, \"cycle_heading\": {}, \"up\": \"{}\", \"forward\": \"{}\",\n",
                     clip.cycle_position, clip.cycle_heading, axis_name(clip.up), axis_name(clip.forward));
  if (even(clip.times)) {
    out += fmt::format(" \"frame_time\": {}", clip.times[1]);
  } else {
    out += " \"times\": ";
    write_numbers(out, clip.times.data(), clip.times.size());
  }
  out += ",\n \"channels\": [\n";
  for (std::size_t i = 0; i < clip.channels.size(); ++i) {
    const ClipChannel& channel = clip.channels[i];
    out += fmt::format("  {{\"name\": {}, \"kind\": \"{}\"", json_string(channel.name), name(channel.kind));
    if (norm(channel.axis) > 0) {
      out += ", \"axis\": ";
      write_numbers(out, &channel.axis.x, 3);
    }
    out += i + 1 < clip.channels.size() ? "},\n" : "}],\n \"frames\": [\n";
  }
  for (int i = 0; i < clip.frame_count(); ++i) {
    write_numbers(out, clip.frame(i), std::size_t(clip.width));
    out += i + 1 < clip.frame_count() ? ",\n" : "]}\n";
  }
  try {
    parse_clip(out, clip.file);
  } catch (const InputError& e) {
    throw InputError(Location{clip.file, 0, 0, {}},
                     "this clip cannot be stored in the format tarsus-clip, because it "
                     "could not be read again: " +
                         e.diagnostics().front().message);
  }
  return out;
}

}  // namespace tarsus
