// Pieces of the JSON clip and mapping readers that they share.
#pragma once

#include "json_text.hpp"
#include "tarsus/control/clip.hpp"

namespace tarsus {

/// DeepMimic's kinds from a parsed document.
MotionClip deepmimic_from(const JsonDocument& document, const std::string& name, std::span<const ClipChannel> layout);
/// The member "up" or "forward" ("+x", "-z", "y", …); false if there is none or it is faulty, which is reported.
bool read_axis(JsonObject& object, std::string_view key, Vec3d& out);
/// An array of {"name", "kind", "axis"?}: sets columns one after the other. @return their total width
int read_channels(const JsonDocument& document, const JsonValue& value, const std::string& path, DiagnosticSink& sink,
                  std::vector<ClipChannel>& out);
/// Text in quotes, as JSON writes it.
std::string json_string(const std::string& text);
/// File name without folder and extension.
std::string stem(const std::string& file);

}  // namespace tarsus
