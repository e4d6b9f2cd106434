#include "tarsus/io/clip_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "clip_json.hpp"
#include "tarsus/control/retarget.hpp"
#include "tarsus/io/mimickit.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

class MappingReader {
 public:
  explicit MappingReader(const JsonDocument& document) : document_(document) {}

  ClipMapping run(const std::string& fallback_name) {
    JsonObject top(document_, document_.root(), "", sink_);
    out_.file = document_.file(), out_.name = fallback_name;
    std::string format, comment;
    if (!top.read("format", format) || format != "tarsus-clip-mapping") {
      const JsonValue* at = top.get("format");
      top.fault(at ? *at : document_.root(), "format", "\"tarsus-clip-mapping\" is expected");
    }
    double version = 0;
    if (!top.read("version", version) || version != 1) {
      const JsonValue* at = top.get("version");
      top.fault(at ? *at : document_.root(), "version", "version 1 is expected");
    }
    top.read("name", out_.name), top.read("comment", comment);
    if (const JsonValue* source = top.get("source")) read_source(*source);
    if (top.read("scale", out_.scale) && !(out_.scale > 0))
      top.fault(*top.get("scale"), "scale", fmt::format("the scale is {}, expected a positive number", out_.scale));
    if (std::vector<double> v; top.read("offset", v, 3)) out_.offset = {v[0], v[1], v[2]};
    const JsonValue *joints = top.get("joints"), *points = top.get("points");
    if (joints && points) top.fault(*points, "points", "\"joints\" and \"points\" exclude each other");
    if (joints) read_joints(*joints);
    if (points) read_points(*points);
    for (const char* key : {"scale", "offset"}) {
      if (points && top.get(key))
        top.fault(*top.get(key), key,
                  "has no effect with \"points\": the scale is the ratio of the lengths of the legs");
    }
    if (!joints && !points) {
      sink_.add(Severity::error, document_.where(document_.root()), "the mapping needs \"joints\" or \"points\"");
    }
    top.read("ignore", out_.ignore);
    top.done(Severity::error, "format, version, name, comment, source, scale, offset, joints, points, ignore");
    sink_.throw_if_failed();
    return std::move(out_);
  }

 private:
  void read_source(const JsonValue& value) {
    JsonObject source(document_, value, "source", sink_);
    source.read("format", out_.format);
    Vec3d axis;
    if (read_axis(source, "up", axis)) out_.up = axis;
    if (read_axis(source, "forward", axis)) out_.forward = axis;
    if (out_.up.has_value() != out_.forward.has_value()) {
      sink_.add(Severity::error, document_.where(value, "source"), "\"up\" and \"forward\" must be given together");
    } else if (out_.up && dot(*out_.up, *out_.forward) != 0) {
      sink_.add(Severity::error, document_.where(value, "source"), "\"up\" and \"forward\" are the same axis");
    }
    if (const JsonValue* layout = source.get("layout")) {
      read_channels(document_, *layout, "source/layout", sink_, out_.layout);
      // "custom" is the format of clips whose layout the mapping gives
      if (source.get("format") && out_.format != "custom") {
        source.fault(*source.get("format"), "format", "a source with a \"layout\" must have the format \"custom\"");
      }
      out_.format = "custom";
    }
    source.done(Severity::error, "format, up, forward, layout");
  }

  void read_joints(const JsonValue& value) {
    JsonObject joints(document_, value, "joints", sink_);
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      const std::string path = joints.path(value.keys[i]);
      JsonObject item(document_, value.items[i], path, sink_);
      JointMapping joint;
      joint.joint = value.keys[i];
      joint.where = document_.where(value.items[i], path);
      item.read("from", joint.from), item.read("position", joint.position);
      if (const JsonValue* pre = item.get("pre")) joint.pre = rotation_of(*pre, item.path("pre"));
      if (const JsonValue* post = item.get("post")) joint.post = rotation_of(*post, item.path("post"));
      if (std::vector<double> v; item.read("axis", v, 3)) joint.axis = unit(*item.get("axis"), item.path("axis"), v);
      item.read("sign", joint.sign), item.read("offset", joint.offset);
      if (joint.sign == 0) item.fault(*item.get("sign"), "sign", "the sign is 0, expected a number other than 0");
      if (joint.from.empty() && joint.position.empty()) {
        sink_.add(Severity::error, joint.where, "a joint needs \"from\", \"position\" or both");
      }
      item.done(Severity::error, "from, position, pre, post, axis, sign, offset");
      out_.joints.push_back(std::move(joint));
    }
  }

  void read_points(const JsonValue& value) {
    JsonObject points(document_, value, "points", sink_);
    for (std::size_t i = 0; i < value.keys.size(); ++i) {
      const std::string path = points.path(value.keys[i]);
      JsonObject item(document_, value.items[i], path, sink_);
      PointMapping point;
      point.point = value.keys[i];
      point.where = document_.where(value.items[i], path);
      const std::vector<std::string>& known = skeleton_points();
      if (std::find(known.begin(), known.end(), point.point) == known.end()) {
        std::string all;
        for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
        sink_.add(Severity::error, point.where, fmt::format("{} is not one of {}", quote(point.point), all));
      }
      if (!item.read("from", point.from) || !item.read("body", point.body))
        sink_.add(Severity::error, point.where, "a point needs \"from\", a joint of the clip's skeleton, and \"body\"");
      item.read("tip", point.tip);
      if (item.read("sure", point.sure) && !(point.sure >= 0 && point.sure <= 1))
        item.fault(*item.get("sure"), "sure", fmt::format("the confidence is {}, expected 0 to 1", point.sure));
      item.done(Severity::error, "from, body, tip, sure");
      out_.points.push_back(std::move(point));
    }
  }

  Vec3d unit(const JsonValue& at, const std::string& path, const std::vector<double>& v) {
    const double length = elementary::hypot(v[0], v[1], v[2]);
    if (length > 0 && std::isfinite(length)) return Vec3d{v[0], v[1], v[2]} * (1 / length);
    sink_.add(Severity::error, document_.where(at, path), "the axis must have a positive, finite length");
    return {0, 0, 1};
  }

  Quatd rotation_of(const JsonValue& value, const std::string& path) {
    Quatd q{1, 0, 0, 0};
    if (value.is(JsonValue::Type::array)) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        if (value.items[i].is_array()) {
          sink_.add(Severity::error, document_.where(value.items[i], path), "an object is expected here");
        } else {
          q = q * rotation_of(value.items[i], fmt::format("{}[{}]", path, i));
        }
      }
      return normalized(q);
    }
    JsonObject item(document_, value, path, sink_);
    std::vector<double> v;
    double degrees = 0;
    if (item.read("quaternion", v, 4)) {
      const double length = elementary::hypot(elementary::hypot(v[0], v[1]), elementary::hypot(v[2], v[3]));
      if (std::abs(length - 1) < 1e-3) {
        q = normalized(Quatd{v[0], v[1], v[2], v[3]});
      } else {
        item.fault(*item.get("quaternion"), "quaternion", fmt::format("its length is {:.4g}, expected 1", length));
      }
    } else if (item.read("axis", v, 3) && item.read("degrees", degrees)) {
      q = axis_angle(unit(*item.get("axis"), item.path("axis"), v), degrees * kPi / 180);
    } else if (!sink_.failed()) {
      sink_.add(Severity::error, document_.where(value, path),
                "a rotation is {\"quaternion\": [w, x, y, z]} or {\"axis\": [x, y, z], \"degrees\": d}");
    }
    item.done(Severity::error, "quaternion, axis, degrees");
    return q;
  }

  const JsonDocument& document_;
  ClipMapping out_;
  DiagnosticSink sink_;
};

std::vector<std::filesystem::path> mapping_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string names(const Model& model, const MotionClip& clip) {
  std::string channels, joints;
  for (const ClipChannel& c : clip.channels) channels += " " + c.name;
  for (const Joint& j : model.joints) joints += " " + j.name;
  constexpr std::size_t kMost = 1500;
  return fmt::format("channels:{}; joints:{}", channels.substr(0, kMost), joints.substr(0, kMost));
}

}  // namespace

ClipMapping parse_clip_mapping(std::string text, const std::string& name) {
  const JsonDocument document(std::move(text), name);
  return MappingReader(document).run(stem(name));
}

ClipMapping read_clip_mapping(const std::filesystem::path& file) {
  return parse_clip_mapping(read_file(file, JsonLimits{}.bytes), file.string());
}

std::vector<std::filesystem::path> mapping_folders(const Model& model) {
  std::vector<std::filesystem::path> folders;
  folders.push_back(std::filesystem::path(model.spec.directory) / "mappings");
  if (const char* more = std::getenv("TARSUS_MAPPINGS")) {
    std::string_view rest = more;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return folders;
}

ClipMapping choose_clip_mapping(const Model& model, const MotionClip& clip,
                                const std::vector<std::filesystem::path>& folders, Diagnostics* skipped) {
  ClipMapping same_names = identity_mapping(model, clip);
  // A match of the name "root" alone is no evidence: every skeleton has a root.
  const bool usable = std::any_of(same_names.joints.begin(), same_names.joints.end(), [&](const JointMapping& item) {
    return item.joint != "root" || model.joints.size() == 1;
  });
  if (clip.format == "tarsus" && usable && 2 * same_names.joints.size() >= model.joints.size()) return same_names;
  std::string tried;
  Diagnostics why;
  for (const std::filesystem::path& folder : folders) {
    for (const std::filesystem::path& file : mapping_files(folder)) {
      tried += " " + file.string();
      try {
        ClipMapping mapping = read_clip_mapping(file);
        if (fits(mapping, model, clip)) return mapping;
      } catch (const InputError& e) {
        if (skipped) skipped->insert(skipped->end(), e.diagnostics().begin(), e.diagnostics().end());
      }
    }
  }
  if (clip.format == "mimickit") {
    ClipMapping in_order = mimickit_mapping(model, clip);
    if (!in_order.joints.empty()) return in_order;
  }
  if (!clip.skeleton.empty()) {
    try {
      return map_skeleton(model, clip);
    } catch (const InputError& e) {
      why = e.diagnostics();
    }
  }
  if (usable) return same_names;
  const std::string reason = why.empty() ? names(model, clip) : why.front().message;
  throw InputError(
      Location{clip.file, 0, 0, {}},
      fmt::format("no mapping fits this clip (format '{}') and model '{}'; write a mapping file. Tried:{}. {}",
                  clip.format, model.name, tried.empty() ? " none found" : tried, reason));
}

std::string write_clip_mapping(const ClipMapping& mapping) {
  std::string out =
      fmt::format("{{\"format\": \"tarsus-clip-mapping\", \"version\": 1, \"name\": {},\n", json_string(mapping.name));
  std::string source = mapping.format.empty() ? "" : "\"format\": " + json_string(mapping.format);
  if (mapping.up && mapping.forward) {
    source += fmt::format("{}\"up\": \"{}\", \"forward\": \"{}\"", source.empty() ? "" : ", ", axis_name(*mapping.up),
                          axis_name(*mapping.forward));
  }
  if (!source.empty()) out += fmt::format(" \"source\": {{{}}},\n", source);
  out += " \"points\": {\n";
  for (std::size_t i = 0; i < mapping.points.size(); ++i) {
    const PointMapping& p = mapping.points[i];
    out += fmt::format("  {}: {{\"from\": {}, \"body\": {}{}, \"sure\": {:.3g}}}{}\n", json_string(p.point),
                       json_string(p.from), json_string(p.body), p.tip ? ", \"tip\": true" : "", p.sure,
                       i + 1 < mapping.points.size() ? "," : "");
  }
  return out + " }}\n";
}

}  // namespace tarsus
