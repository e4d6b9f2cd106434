// Functions that the JSON readers of clips and mappings share.
#pragma once

#include "json_text.hpp"
#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Reads DeepMimic's format, or one derived from it, from a parsed document.
MotionClip deepmimic_from(const JsonDocument& document, const std::string& name, std::span<const ClipChannel> layout);
/// Reads the member "up" or "forward" ("+x", "-z", "y", …). False if it is absent or invalid; an invalid one is
/// reported.
bool read_axis(JsonObject& object, std::string_view key, Vec3d& out);
/// Reads an array of {"name", "kind", "axis"?} and assigns consecutive columns. @return their total width
int read_channels(const JsonDocument& document, const JsonValue& value, const std::string& path, DiagnosticSink& sink,
                  std::vector<ClipChannel>& out);
/// Text in quotes, as JSON writes it.
std::string json_string(const std::string& text);
/// Whether it is a clip of DeepMimic's or this project's format.
bool is_clip(const JsonValue& root);
/// For messages: what a JSON file is that is not of the expected kind.
std::string content_of(const JsonValue& root);
/// Appends a rotation vector as push_rotation() does.
/// @throws InputError if a component is beyond kMostAngle
void add_rotation(MotionClip& clip, const double* v, const std::string& joint);
/// File name without folder and extension.
std::string stem(const std::string& file);

}  // namespace tarsus
