#include "tarsus/io/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "json_text.hpp"
#include "tarsus/base/hash.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/npz.hpp"

namespace tarsus {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "tarsus-recording";
constexpr int kVersion = 1;
constexpr std::size_t kChunkBytes = 1 << 20;
const std::vector<std::string> kOwnKeys{"format", "version", "model", "nq", "nv", "joints", "joint_types", "frames"};

void check_finite(const char* what, double time, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw ValueError(fmt::format("{}[{}] at {} s", what, i, time), number_text(values[i]), "a finite number");
  }
}

/// Rows of numbers in chunks that never move.
class Column {
 public:
  explicit Column(std::size_t width)
      : width_(width),
        rows_per_chunk_(std::max<std::size_t>(1, kChunkBytes / sizeof(double) / std::max<std::size_t>(1, width))) {}

  /// Makes room for the next row, which push() then adds without allocating.
  void reserve() {
    if (rows_ < chunks_.size() * rows_per_chunk_) return;
    std::vector<double> chunk;
    chunk.reserve(rows_per_chunk_ * width_);
    chunks_.push_back(std::move(chunk));
  }
  void push(std::span<const double> row) {
    chunks_.back().insert(chunks_.back().end(), row.begin(), row.end());
    ++rows_;
  }
  void write(NpzWriter& npz, const char* name, bool matrix) const {
    npz.begin(name, NpzType::float64, matrix ? NpzShape{rows_, width_} : NpzShape{rows_});
    for (const std::vector<double>& chunk : chunks_) npz.write(std::as_bytes(std::span(chunk)));
  }

 private:
  std::size_t width_, rows_per_chunk_, rows_ = 0;
  std::vector<std::vector<double>> chunks_;
};

}  // namespace

struct RecordingWriter::State {
  NpzWriter npz;
  int nq, nv;
  Json meta;
  Column time{1}, qpos, qvel, target;
  std::vector<std::uint64_t> hash;
  int frames = 0;
  bool has_target = false;
  double first_time = 0, last_time = 0;

  State(const std::filesystem::path& file, const Model& model)
      : npz(file), nq(model.nq), nv(model.nv), qpos(std::size_t(nq)), qvel(std::size_t(nv)), target(std::size_t(nq)) {
    meta["format"] = kFormat, meta["version"] = kVersion, meta["model"] = model.name, meta["nq"] = nq, meta["nv"] = nv;
    meta["joints"] = Json::array(), meta["joint_types"] = Json::array();
    for (const Joint& joint : model.joints) {
      meta["joints"].push_back(joint.name);
      meta["joint_types"].push_back(tarsus::name(joint.type));
    }
  }
};

RecordingWriter::RecordingWriter(std::filesystem::path file, const Model& model)
    : state_(std::make_unique<State>(file, model)) {}
RecordingWriter::~RecordingWriter() = default;
RecordingWriter::RecordingWriter(RecordingWriter&&) noexcept = default;
RecordingWriter& RecordingWriter::operator=(RecordingWriter&&) noexcept = default;

int RecordingWriter::frame_count() const { return state_->frames; }

void RecordingWriter::frame(double time, std::span<const double> qpos, std::span<const double> qvel,
                            std::span<const double> target) {
  State& s = *state_;
  check_size("qpos", qpos.size(), std::size_t(s.nq));
  check_size("qvel", qvel.size(), std::size_t(s.nv));
  if (!target.empty()) check_size("target", target.size(), std::size_t(s.nq));
  if (s.frames == 0) s.has_target = !target.empty(), s.first_time = time;
  if (s.has_target != !target.empty())
    throw ValueError("target", target.empty() ? "none" : "some", "targets in every frame or in none");
  if (!std::isfinite(time) || (s.frames > 0 && !(time > s.last_time))) {
    throw ValueError(
        "time", number_text(time),
        s.frames > 0 ? fmt::format("more than the last frame's {}", s.last_time) : "a finite number of seconds");
  }
  check_finite("qpos", time, qpos), check_finite("qvel", time, qvel), check_finite("target", time, target);
  s.time.reserve(), s.qpos.reserve(), s.qvel.reserve();
  if (s.has_target) s.target.reserve();
  s.hash.push_back(frame_hash(qpos, qvel));
  s.time.push({&time, 1}), s.qpos.push(qpos), s.qvel.push(qvel);
  if (s.has_target) s.target.push(target);
  s.last_time = time;
  ++s.frames;
}

void RecordingWriter::finish(const MetaPairs& extra) {
  State& s = *state_;
  s.meta["frames"] = s.frames;
  s.meta["dt"] = s.frames < 2 ? 0 : (s.last_time - s.first_time) / (s.frames - 1);
  for (const auto& [key, value] : extra) {
    if (std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end())
      throw ValueError("meta", key, "a key that the recording does not use itself");
    Json& slot = s.meta[key];
    std::visit([&](const auto& v) { slot = v; }, value);
  }
  s.time.write(s.npz, "time", false), s.qpos.write(s.npz, "qpos", true), s.qvel.write(s.npz, "qvel", true);
  if (s.has_target) s.target.write(s.npz, "target", true);
  s.npz.add<std::uint64_t>("hash", s.hash, {s.hash.size()});
  // A path or name in another encoding must not make the write fail: bytes that are not UTF-8 become U+FFFD.
  s.npz.add_text("meta", s.meta.dump(1, ' ', false, Json::error_handler_t::replace));
  s.npz.finish();
}

std::uint64_t frame_hash(std::span<const double> qpos, std::span<const double> qvel) {
  return fnv1a<double>(qvel, fnv1a<double>(qpos));
}

int Recording::first_changed() const {
  for (int i = 0; i < frame_count(); ++i) {
    if (frame_hash(qpos_at(i), qvel_at(i)) != hash[std::size_t(i)]) return i;
  }
  return -1;
}

std::span<const double> Recording::target_at(int frame) const {
  return target.empty() ? std::span<const double>()
                        : std::span<const double>(target).subspan(std::size_t(frame) * nq, std::size_t(nq));
}

namespace {

/// Reads one recording. Each step throws InputError naming file and member.
class RecordingParser {
 public:
  RecordingParser(NpzReader& npz, const std::string& file) : npz_(npz) { out_.file = file; }

  Recording read(const Model* model) {
    read_meta();
    if (model) check_model(*model);
    read_arrays();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& member, const std::string& message) const {
    throw InputError(Location{out_.file, 0, 0, member}, message);
  }

  std::string string_value(const char* key, const JsonValue& value) const {
    if (!value.is(JsonValue::Type::string))
      fail(std::string("meta/") + key, fmt::format("expected a string, found {}", describe(value)));
    return value.text;
  }

  int size_value(const JsonValue& root, const char* key) const {
    const JsonValue* value = root.find(key);
    const bool good = value && value->is(JsonValue::Type::number) && value->number >= 0 && value->number < 1e9 &&
                      value->number == std::floor(value->number);
    if (!good) fail(std::string("meta/") + key, "expected a whole number that is not negative");
    return int(value->number);
  }

  std::vector<std::string> string_list(const JsonValue& root, const char* key) const {
    const JsonValue* list = root.find(key);
    if (!list || !list->is_array() || list->items.size() != list->size())
      fail(std::string("meta/") + key, "expected a list of strings");
    std::vector<std::string> out;
    for (const JsonValue& item : list->items) out.push_back(string_value(key, item));
    return out;
  }

  void read_meta() {
    if (!npz_.has("meta")) fail("meta", "there is no array of this name: this is not a recording");
    out_.meta = npz_.read_text("meta");
    const JsonDocument document(out_.meta, out_.file + "/meta");
    const JsonValue& root = document.root();
    if (!root.is(JsonValue::Type::object))
      fail("meta", fmt::format("expected a JSON object, found {}", describe(root)));
    const JsonValue* format = root.find("format");
    const std::string is = format ? string_value("format", *format) : "";
    if (is == "tarsus-capture") fail("meta/format", "this is a captured world: tarsus replay repeats its step");
    if (is != kFormat) fail("meta/format", fmt::format("expected \"{}\"", kFormat));
    if (const int version = size_value(root, "version"); version != kVersion) {
      fail("meta/version", fmt::format("the version is {}, expected {}", version, kVersion));
    }
    if (const JsonValue* model = root.find("model")) out_.model = string_value("model", *model);
    out_.nq = size_value(root, "nq"), out_.nv = size_value(root, "nv");
    out_.joints = string_list(root, "joints"), out_.joint_types = string_list(root, "joint_types");
    if (out_.joints.size() != out_.joint_types.size()) {
      fail("meta/joint_types", fmt::format("{} types for {} joints", out_.joint_types.size(), out_.joints.size()));
    }
    frames_ = std::size_t(size_value(root, "frames"));
    for (std::size_t i = 0; i < root.keys.size(); ++i) keep_extra(root.keys[i], root.items[i]);
  }

  void keep_extra(const std::string& key, const JsonValue& value) {
    if (std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end()) return;
    switch (value.type) {
      case JsonValue::Type::boolean: out_.extra.emplace_back(key, value.boolean); break;
      case JsonValue::Type::number: out_.extra.emplace_back(key, value.number); break;
      case JsonValue::Type::string: out_.extra.emplace_back(key, value.text); break;
      default: break;  // nested values are in `meta` only
    }
  }

  void check_model(const Model& model) const {
    if (out_.nq != model.nq || out_.nv != model.nv) {
      fail("meta", fmt::format("the recording has nq {}, nv {}; the model \"{}\" has nq {}, nv {}", out_.nq, out_.nv,
                               model.name, model.nq, model.nv));
    }
    if (out_.joints.size() != model.joints.size()) {
      fail("meta/joints", fmt::format("the recording has {} joints; the model \"{}\" has {}", out_.joints.size(),
                                      model.name, model.joints.size()));
    }
    for (std::size_t i = 0; i < out_.joints.size(); ++i) {
      const Joint& joint = model.joints[i];
      if (out_.joints[i] == joint.name && out_.joint_types[i] == tarsus::name(joint.type)) continue;
      fail("meta/joints",
           fmt::format("joint {} of the recording is \"{}\" ({}); the model \"{}\" has \"{}\" ({}) there", i,
                       out_.joints[i], out_.joint_types[i], model.name, joint.name, tarsus::name(joint.type)));
    }
  }

  std::vector<double> values(const char* member, const NpzShape& shape) const {
    std::vector<double> v = npz_.read_real(member, shape);
    const std::size_t width = shape.size() == 2 ? std::max<std::size_t>(1, shape[1]) : 1;
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (!std::isfinite(v[i])) fail(member, fmt::format("number {} of frame {} is {}", i % width, i / width, v[i]));
    }
    return v;
  }

  void read_arrays() {
    out_.time = values("time", {frames_});
    for (std::size_t i = 1; i < out_.time.size(); ++i) {
      if (!(out_.time[i] > out_.time[i - 1]))
        fail("time", fmt::format("frame {} is at {} s, the one before it at {} s", i, out_.time[i], out_.time[i - 1]));
    }
    out_.qpos = values("qpos", {frames_, std::size_t(out_.nq)});
    out_.qvel = values("qvel", {frames_, std::size_t(out_.nv)});
    if (npz_.has("target")) out_.target = values("target", {frames_, std::size_t(out_.nq)});
    if (npz_.has("hash")) out_.hash = npz_.read_words("hash", {frames_});
    for (const std::string& name : npz_.names()) {
      if (name != "hash" && name != "time" && name != "qpos" && name != "qvel" && name != "target" && name != "meta")
        out_.unused.push_back(name);
    }
    out_.unused.insert(out_.unused.end(), npz_.others().begin(), npz_.others().end());
  }

  NpzReader& npz_;
  Recording out_;
  std::size_t frames_ = 0;
};

}  // namespace

Recording read_recording(const std::filesystem::path& file, const Model* model) {
  NpzReader npz(file);
  return RecordingParser(npz, file.string()).read(model);
}

Recording parse_recording(std::string bytes, const std::string& name, const Model* model) {
  NpzReader npz(std::move(bytes), name);
  return RecordingParser(npz, name).read(model);
}

}  // namespace tarsus
