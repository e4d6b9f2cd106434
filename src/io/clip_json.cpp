#include "clip_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "quick_number.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

std::string stem(const std::string& file) { return std::filesystem::path(file).stem().string(); }

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", int(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void add_rotation(MotionClip& clip, const double* v, const std::string& joint) {
  for (int k = 0; k < 3; ++k) {
    if (std::abs(v[k]) <= kMostAngle) continue;
    throw InputError(Location{clip.file, 0, 0, {}},
                     fmt::format("frame {}: joint {} is turned by {} rad, expected at most {:g}", clip.times.size() - 1,
                                 quote(joint), v[k], kMostAngle));
  }
  clip.push_rotation({v[0], v[1], v[2]});
}

bool read_axis(JsonObject& object, std::string_view key, Vec3d& out) {
  std::string text;
  if (!object.read(key, text)) return false;
  const bool sign = !text.empty() && (text[0] == '+' || text[0] == '-');
  const std::string letter = text.substr(sign ? 1 : 0);
  if (letter != "x" && letter != "y" && letter != "z") {
    object.fault(*object.get(key), key,
                 fmt::format("{} is not an axis, expected \"+x\", \"-x\", … \"-z\"", quote(text)));
    return false;
  }
  out = {0, 0, 0};
  out[letter[0] - 'x'] = sign && text[0] == '-' ? -1 : 1;
  return true;
}

std::string axis_name(const Vec3d& axis) {
  const int i = std::abs(axis.x) > 0.5 ? 0 : std::abs(axis.y) > 0.5 ? 1 : 2;
  return fmt::format("{}{}", axis[i] < 0 ? '-' : '+', "xyz"[i]);
}

int read_channels(const JsonDocument& document, const JsonValue& value, const std::string& path, DiagnosticSink& sink,
                  std::vector<ClipChannel>& out) {
  if (!value.is(JsonValue::Type::array)) {
    sink.add(Severity::error, document.where(value, path),
             "an array of channels is expected: {\"name\": …, \"kind\": …}");
    return 0;
  }
  int total = 0;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    JsonObject item(document, value.items[i], fmt::format("{}[{}]", path, i), sink);
    ClipChannel channel;
    std::string kind;
    if (!item.read("name", channel.name) && !item.get("name"))
      item.fault(value.items[i], "name", "the channel has no name");
    if (!item.read("kind", kind) && !item.get("kind")) item.fault(value.items[i], "kind", "the channel has no kind");
    bool known = kind.empty();
    for (ChannelKind k : {ChannelKind::position, ChannelKind::rotation, ChannelKind::angle, ChannelKind::translation}) {
      if (kind == name(k)) channel.kind = k, known = true;
    }
    if (!known) {
      item.fault(
          *item.get("kind"), "kind",
          fmt::format("{} is not a channel's kind, expected position, rotation, angle or translation", quote(kind)));
    }
    if (std::vector<double> axis; item.read("axis", axis, 3)) {
      channel.axis = {axis[0], axis[1], axis[2]};
      const double length = norm(channel.axis);
      if (!(length > 0) || !(length < kInfinity)) {
        item.fault(*item.get("axis"), "axis", "the axis must have a positive, finite length");
      } else {
        channel.axis = channel.axis * (1 / length);
      }
    }
    item.done(Severity::error, "name, kind, axis");
    for (const ClipChannel& other : out) {
      if (other.name == channel.name)
        item.fault(value.items[i], "name", fmt::format("two channels are called {}", quote(other.name)));
    }
    channel.column = total;
    total += width(channel.kind);
    out.push_back(std::move(channel));
  }
  return total;
}

}  // namespace tarsus
