// <keyframe>: the keys of the main model and of attached models. The latter's numbers are mapped to the attached
// elements.
#include <fmt/format.h>

#include <algorithm>

#include "io/mjcf/builder.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/model/joint_parts.hpp"

namespace tarsus::mjcf {
namespace {

/// Pairs of lists in a keyframe: those of joints, of actuators and of mocap bodies.
using List = std::vector<double> KeyframeSpec::*;
constexpr List kLists[3][2] = {{&KeyframeSpec::qpos, &KeyframeSpec::qvel},
                               {&KeyframeSpec::ctrl, &KeyframeSpec::act},
                               {&KeyframeSpec::mocap_position, &KeyframeSpec::mocap_orientation}};

}  // namespace

void Builder::read_keyframes(const std::vector<Scope>& scopes) {
  std::vector<Scope> once;  // only the first replica of each attachment, as in MuJoCo
  std::set<std::pair<const Source*, std::string>> known;
  for (const Scope& scope : scopes) {
    if (known.insert({scope.source, scope.naming.prefix}).second) once.push_back(scope);
  }
  for (const auto& [e, scope] : elements("keyframe", once)) {
    if (!e.is("key")) {
      e.error(fmt::format("<{}> is not an element of <keyframe>", e.name()));
      continue;
    }
    KeyframeSpec key = scope.level == 0 ? key_numbers(e) : attached_key(e, scope);
    if (const std::string name = e.text("name"); !name.empty()) key.name = scope.naming.prefix + name;
    key.where = e.where();
    e.report_unread(Severity::error);
    declare(Kind::key, key.name, e);
    spec_.keyframes.push_back(std::move(key));
  }
  int count = 0;
  for (const XmlElement& e : scopes.front().source->items(scopes.front().source->root())) {
    if (e.is("size")) e.read("nkey", count);
  }
  if (int(spec_.keyframes.size()) < count && count <= 100'000)  // as in MuJoCo: the rest are the reference pose
    spec_.keyframes.resize(std::size_t(count));
}

KeyframeSpec Builder::drawn_key() const {
  KeyframeSpec key;
  std::size_t nv = 0;
  for (const BodySpec& body : spec_.bodies) {
    if (body.mocap) {
      const Vec3d& p = body.position;
      const Quatd& q = body.orientation;
      key.mocap_position.insert(key.mocap_position.end(), {p.x, p.y, p.z});
      key.mocap_orientation.insert(key.mocap_orientation.end(), {q.w, q.x, q.y, q.z});
    }
    for (const JointSpec& joint : body.joints) {
      append_drawn_qpos(joint, body.position, body.orientation, key.qpos);
      nv += static_cast<std::size_t>(qvel_count(joint.type));
    }
  }
  key.qvel.resize(nv), key.ctrl.resize(static_cast<std::size_t>(controls_));
  key.act.resize(static_cast<std::size_t>(activations_));
  return key;
}

void Builder::check_rotations(const XmlElement& e, KeyframeSpec& key) {
  const auto check = [&](const char* attribute, std::vector<double>& values, std::size_t at, const std::string& whose) {
    if (at + 4 > values.size()) return;
    double* q = values.data() + at;
    const double length = elementary::hypot(elementary::hypot(q[0], q[1]), elementary::hypot(q[2], q[3]));
    if (!(length > 1e-10)) {
      e.warn(
          fmt::format("attribute '{}': the quaternion of {} has length zero; the identity is used", attribute, whose),
          attribute);
      q[0] = 1, q[1] = q[2] = q[3] = 0;
    } else if (std::abs(length - 1) > 1e-14) {  // already normalised quaternions keep their bits
      for (int i = 0; i < 4; ++i) q[i] /= length;
    }
  };
  std::size_t at = 0, mocap = 0;
  for (const BodySpec& body : spec_.bodies) {
    if (body.mocap) check("mquat", key.mocap_orientation, 4 * mocap++, "body " + quote(body.name));
    for (const JointSpec& joint : body.joints) {
      if (has_rotation(joint.type))
        check("qpos", key.qpos, at + std::size_t(scalar_count(joint.type)), "joint " + quote(joint.name));
      at += std::size_t(qpos_count(joint.type));
    }
  }
}

KeyframeSpec Builder::key_numbers(const XmlElement& e) {
  KeyframeSpec key;
  const KeyframeSpec whole = drawn_key();
  const auto read = [&](const char* attribute, List list, const char* what, std::size_t together = 1) {
    std::vector<double>& out = key.*list;
    const std::vector<double>& drawn = whole.*list;
    if (!e.read(attribute, out) || out.size() == drawn.size()) return;
    const std::string text =
        fmt::format("attribute '{}' has {} numbers, expected {} ({})", attribute, out.size(), drawn.size(), what);
    if (out.size() > drawn.size()) {
      out.clear();
      return e.error(text, attribute);
    }
    e.warn(text + "; the others are taken from the model", attribute);
    out.resize(out.size() / together * together);  // MuJoCo: of a mocap body all numbers or none
    out.insert(out.end(), drawn.begin() + static_cast<std::ptrdiff_t>(out.size()), drawn.end());
  };
  e.read("time", key.time);
  read("qpos", &KeyframeSpec::qpos, "nq");
  read("qvel", &KeyframeSpec::qvel, "nv");
  read("ctrl", &KeyframeSpec::ctrl, "nu");
  read("act", &KeyframeSpec::act, "na");
  read("mpos", &KeyframeSpec::mocap_position, "3 nmocap", 3);
  read("mquat", &KeyframeSpec::mocap_orientation, "4 nmocap", 4);
  check_rotations(e, key);
  return key;
}

std::vector<Builder::KeyPart> Builder::key_parts() const {
  std::vector<KeyPart> out;
  std::size_t at[3][2] = {};
  const auto add = [&](const Origin& origin, std::size_t kind, int first, int second) {
    KeyPart part{origin, kind, {at[kind][0], at[kind][1]}, {std::size_t(first), std::size_t(second)}};
    for (std::size_t i = 0; i < 2; ++i) at[kind][i] += part.size[i];
    out.push_back(std::move(part));
  };
  for (std::size_t b = 0; b < spec_.bodies.size(); ++b) {
    const BodySpec& body = spec_.bodies[b];
    if (body.mocap) add(origins_.bodies[b].own, 2, 3, 4);
    for (std::size_t j = 0; j < body.joints.size(); ++j)
      add(origins_.bodies[b].joints[j], 0, qpos_count(body.joints[j].type), qvel_count(body.joints[j].type));
  }
  for (std::size_t i = 0; i < spec_.actuators.size(); ++i)
    add(origins_.actuators[i], 1, spec_.actuators[i].controls(), spec_.actuators[i].activations());
  return out;
}

/// Reads the attached model as a main model, without its assets, because its keys cover the whole model.
Builder& Builder::stand_alone(const Source& source) {
  auto& alone = origins_.alone[&source];
  if (alone) return *alone;
  const DiagnosticSink::Mute mute(sink_);
  alone = std::make_unique<Builder>(options_, sink_);
  alone->read_sections(alone->read_bodies(source));
  return *alone;
}

KeyframeSpec Builder::attached_key(const XmlElement& e, const Scope& scope) {
  Builder& alone = stand_alone(*scope.source);
  const KeyframeSpec own = alone.key_numbers(e);
  KeyframeSpec key = drawn_key();
  key.time = own.time;
  std::map<Origin, KeyPart> here;
  for (KeyPart& part : key_parts()) here.emplace(part.origin, std::move(part));
  for (const KeyPart& from : alone.key_parts()) {
    const auto& [element, naming] = from.origin;
    const auto to = here.find({element, {scope.naming.prefix + naming.prefix, naming.suffix + scope.naming.suffix}});
    if (to == here.end()) continue;  // not attached
    for (std::size_t i = 0; i < 2; ++i) {
      const List list = kLists[from.kind][i];
      if ((own.*list).empty()) continue;
      std::copy_n((own.*list).begin() + std::ptrdiff_t(from.at[i]), from.size[i],
                  (key.*list).begin() + std::ptrdiff_t(to->second.at[i]));
    }
  }
  for (const auto& pair : kLists) {
    for (const List list : pair) {
      if ((own.*list).empty()) (key.*list).clear();
    }
  }
  return key;
}

}  // namespace tarsus::mjcf
