#include "tarsus/io/deepmimic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "clip_json.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

struct Layout {
  std::string format;
  std::vector<ClipChannel> channels;
  int width = 0;
  Vec3d up{0, 1, 0}, forward{1, 0, 0};
  bool scalar_last = false;  ///< quaternions x y z w
};

void add(Layout& layout, const char* name, ChannelKind kind) {
  ClipChannel channel;
  channel.name = name, channel.kind = kind, channel.column = layout.width;
  if (kind == ChannelKind::angle && layout.format != "quadruped12") channel.axis = {0, 0, 1};
  layout.width += width(kind);
  layout.channels.push_back(std::move(channel));
}

Layout root_of(const char* format) {
  Layout layout;
  layout.format = format;
  add(layout, "root.position", ChannelKind::position);
  add(layout, "root", ChannelKind::rotation);
  return layout;
}

constexpr ChannelKind kBall = ChannelKind::rotation, kHinge = ChannelKind::angle;

Layout humanoid3d() {
  Layout layout = root_of("humanoid3d");
  add(layout, "chest", kBall), add(layout, "neck", kBall);
  add(layout, "right_hip", kBall), add(layout, "right_knee", kHinge), add(layout, "right_ankle", kBall);
  add(layout, "right_shoulder", kBall), add(layout, "right_elbow", kHinge);
  add(layout, "left_hip", kBall), add(layout, "left_knee", kHinge), add(layout, "left_ankle", kBall);
  add(layout, "left_shoulder", kBall), add(layout, "left_elbow", kHinge);
  return layout;
}

Layout dog3d() {
  Layout layout = root_of("dog3d");
  for (const char* name : {"spine0", "spine1", "neck", "head"}) add(layout, name, kBall);
  add(layout, "left_shoulder", kBall), add(layout, "left_forearm", kHinge);
  add(layout, "left_hand", kBall), add(layout, "left_finger", kBall);
  add(layout, "right_shoulder", kBall), add(layout, "right_forearm", kHinge);
  add(layout, "right_hand", kBall), add(layout, "right_finger", kBall);
  add(layout, "left_upper_leg", kBall), add(layout, "left_leg", kHinge);
  add(layout, "left_foot", kBall), add(layout, "left_toe", kBall);
  add(layout, "right_upper_leg", kBall), add(layout, "right_leg", kHinge);
  add(layout, "right_foot", kBall), add(layout, "right_toe", kBall);
  add(layout, "tail0", kBall), add(layout, "tail1", kBall);
  return layout;
}

Layout quadruped12() {
  Layout layout = root_of("quadruped12");
  layout.up = {0, 0, 1}, layout.scalar_last = true;
  for (const char* name : {"front_right_hip", "front_right_upper_leg", "front_right_knee", "front_left_hip",
                           "front_left_upper_leg", "front_left_knee", "rear_right_hip", "rear_right_upper_leg",
                           "rear_right_knee", "rear_left_hip", "rear_left_upper_leg", "rear_left_knee"}) {
    add(layout, name, kHinge);
  }
  return layout;
}

Layout custom(std::span<const ClipChannel> channels) {
  Layout layout;
  layout.format = "custom";
  for (ClipChannel channel : channels) {
    channel.column = layout.width;
    layout.width += width(channel.kind);
    layout.channels.push_back(std::move(channel));
  }
  return layout;
}

/// The joints of DeepMimic's humanoid3d character and the ends of its head and feet. Its right is +z.
std::vector<ClipBone> humanoid3d_skeleton() {
  std::vector<ClipBone> bones = {{"root", -1, {0, 0, 0}},
                                 {"chest", 0, {0, 0.236151, 0}},
                                 {"neck", 1, {0, 0.223894, 0}},
                                 {"head", 2, {0, 0.175, 0}}};
  for (const auto& [side, z] : {std::pair<std::string, double>("right_", 1), {"left_", -1}}) {
    const int first = int(bones.size());
    bones.push_back({side + "hip", 0, {0, 0, 0.084887 * z}});
    bones.push_back({side + "knee", first, {0, -0.421546, 0}});
    bones.push_back({side + "ankle", first + 1, {0, -0.40987, 0}});
    bones.push_back({side + "toe", first + 2, {0.1335, -0.0225, 0}});
    bones.push_back({side + "shoulder", 1, {-0.02405, 0.2435, 0.18311 * z}});
    bones.push_back({side + "elbow", first + 4, {0, -0.274788, 0}});
    bones.push_back({side + "wrist", first + 5, {0, -0.258947, 0}});
  }
  return bones;
}

class DeepMimicReader {
 public:
  DeepMimicReader(const JsonDocument& document, const std::string& name, std::span<const ClipChannel> layout)
      : document_(document), own_layout_(layout) {
    clip_.file = document.file(), clip_.name = name;
  }

  MotionClip run() {
    JsonObject top(document_, document_.root(), "", sink_);
    read_loop(top);
    const bool even = top.read("FrameDuration", frame_duration_);
    if (even && !(frame_duration_ > 0))
      top.fault(*top.get("FrameDuration"), "FrameDuration", "a duration must be positive");
    const JsonValue* frames = top.get("Frames");
    if (!frames) sink_.add(Severity::error, document_.where(document_.root()), "there is no \"Frames\"");
    top.done(Severity::note,
             "Loop, LoopMode, Frames, FrameDuration, CycleSyncRootPos, CycleSyncRootRot, "
             "EnableCycleOffsetPosition, EnableCycleOffsetRotation");
    sink_.throw_if_failed();
    rows_ = frames;
    check_rows(*frames, even ? 0 : 1);
    sink_.throw_if_failed();
    fill(even ? 0 : 1);
    sink_.throw_if_failed();
    clip_.diagnostics = sink_.take();
    const int lead = even ? 0 : 1;
    clean_clip(clip_, [&](int frame, int column) { return where(frame, column < 0 ? 0 : column + lead); });
    return std::move(clip_);
  }

 private:
  Location where(int frame, int column) const {
    if (frame < 0 || frame >= int(rows_->items.size())) return document_.where(*rows_, "Frames");
    const JsonValue& row = rows_->items[frame];
    const std::size_t offset = column < int(row.offsets.size()) ? row.offsets[column] : row.offset;
    return document_.where(offset, fmt::format("Frames[{}][{}]", frame, column));
  }

  void read_loop(JsonObject& top) {
    std::string mode;
    const char* key = top.get("LoopMode") ? "LoopMode" : "Loop";
    if (top.read(key, mode)) {
      std::transform(mode.begin(), mode.end(), mode.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
      clip_.loop = mode == "wrap";
      if (mode != "wrap" && mode != "none" && mode != "clamp") {
        top.fault(*top.get(key), key, fmt::format("{} is not a loop mode: wrap, none or clamp", quote(mode)));
      }
    } else if (!top.get(key)) {
      sink_.add(Severity::note, document_.where(document_.root()), "there is no \"Loop\": the clip does not loop");
    }
    top.read("CycleSyncRootPos", clip_.cycle_position), top.read("CycleSyncRootRot", clip_.cycle_heading);
    top.read("EnableCycleOffsetPosition", clip_.cycle_position);
    top.read("EnableCycleOffsetRotation", clip_.cycle_heading);
  }

  void check_rows(const JsonValue& frames, int lead) {
    if (!frames.is_array() || frames.is(JsonValue::Type::numbers)) {
      const char* why =
          frames.is_array() && frames.size() == 0 ? "the clip has no frames" : "an array of rows is expected";
      sink_.add(Severity::error, document_.where(frames, "Frames"), why);
      return;
    }
    const std::size_t expected = frames.items[0].numbers.size();
    for (std::size_t i = 0; i < frames.items.size(); ++i) {
      const JsonValue& row = frames.items[i];
      const std::string path = fmt::format("Frames[{}]", i);
      if (!row.is(JsonValue::Type::numbers)) {
        sink_.add(Severity::error, document_.where(row, path), "a row holds numbers and nothing else");
      } else if (row.numbers.size() != expected) {
        sink_.add(Severity::error, document_.where(row, path),
                  fmt::format("{} numbers in frame {}, but {} in the first", row.numbers.size(), i, expected));
      }
    }
    if (!sink_.failed()) pick_layout(frames, int(expected), lead);
  }

  void pick_layout(const JsonValue& frames, int columns, int lead) {
    const int wanted = columns - lead;
    std::string known;
    if (!own_layout_.empty()) {
      layout_ = custom(own_layout_);
      known = fmt::format("the mapping's layout has {}", layout_.width + lead);
    } else {
      for (Layout (*make)() : {humanoid3d, dog3d, quadruped12}) {
        Layout layout = make();
        known += fmt::format("{}{} {}", known.empty() ? "known: " : ", ", layout.width + lead, layout.format);
        if (layout.width == wanted) layout_ = std::move(layout);
      }
    }
    if (layout_.width != wanted || wanted == 0) {
      sink_.add(Severity::error, document_.where(frames.items[0], "Frames[0]"),
                fmt::format(
                    "a frame has {} numbers, which fits no known layout ({}); a mapping file can describe the columns",
                    columns, known));
    }
  }

  void fill(int lead) {
    clip_.format = layout_.format, clip_.channels = layout_.channels, clip_.width = layout_.width;
    clip_.up = layout_.up, clip_.forward = layout_.forward;
    if (layout_.format == "humanoid3d") clip_.skeleton = humanoid3d_skeleton();
    const int count = int(rows_->items.size());
    clip_.values.reserve(std::size_t(count) * clip_.width);
    double time = 0;
    for (int i = 0; i < count; ++i) {
      const std::vector<double>& row = rows_->items[i].numbers;
      clip_.times.push_back(time);
      clip_.values.insert(clip_.values.end(), row.begin() + lead, row.end());
      const double duration = lead ? row[0] : frame_duration_;
      if (i + 1 < count && !(duration > 0)) {
        sink_.add(Severity::error, where(i, 0),
                  fmt::format("frame {} lasts {} s: a duration must be positive", i, duration));
      }
      time += duration;
      if (i + 1 == count && lead) last_duration(i, duration);
    }
    if (layout_.scalar_last) turn_quaternions();
  }

  void last_duration(int i, double duration) {
    if (duration < 0) {
      sink_.add(Severity::error, where(i, 0), fmt::format("the last frame lasts {} s, expected at least 0", duration));
    } else if (duration == 0) {
      sink_.add(Severity::note, where(i, 0), "the last frame has duration 0: the clip ends there, or its cycle closes");
    } else {
      sink_.add(Severity::note, where(i, 0),
                fmt::format("the last frame's duration ({} s) is not used: the clip ends there, or its cycle closes",
                            duration));
    }
  }

  void turn_quaternions() {
    for (const ClipChannel& channel : clip_.channels) {
      if (channel.kind != ChannelKind::rotation) continue;
      for (std::size_t i = 0; i < clip_.times.size(); ++i) {
        double* q = &clip_.values[i * clip_.width + channel.column];
        std::rotate(q, q + 3, q + 4);
      }
    }
  }

  const JsonDocument& document_;
  std::span<const ClipChannel> own_layout_;
  const JsonValue* rows_ = nullptr;
  double frame_duration_ = 0;
  Layout layout_;
  MotionClip clip_;
  DiagnosticSink sink_;
};

}  // namespace

MotionClip deepmimic_from(const JsonDocument& document, const std::string& name, std::span<const ClipChannel> layout) {
  return DeepMimicReader(document, name, layout).run();
}

MotionClip parse_deepmimic(std::string text, const std::string& name, std::span<const ClipChannel> layout) {
  return deepmimic_from(JsonDocument(std::move(text), name), stem(name), layout);
}

MotionClip read_deepmimic(const std::filesystem::path& file, std::span<const ClipChannel> layout) {
  return parse_deepmimic(read_file(file, JsonLimits{}.bytes), file.string(), layout);
}

std::vector<ClipChannel> deepmimic_layout(const std::string& format) {
  for (Layout (*make)() : {humanoid3d, dog3d, quadruped12}) {
    Layout layout = make();
    if (layout.format == format) return layout.channels;
  }
  throw ValueError("format", format, "humanoid3d, dog3d or quadruped12");
}

}  // namespace tarsus
