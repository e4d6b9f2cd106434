// Values that many elements have: orientations, limits, words, solver parameters. Also <compiler>.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/mjcf/states.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus::mjcf {

Pose compose(const Pose& outer, const Pose& inner) {
  return {outer.position + rotate(outer.orientation, inner.position),
          normalized(outer.orientation * inner.orientation)};
}

bool is_identity(const Pose& pose) {
  return norm(pose.position) == 0 && pose.orientation.w == 1 && norm(pose.orientation.vec()) == 0;
}

void overlay(const Attributes& own, Attributes& attributes) {
  for (const auto& attribute : own) {
    std::erase_if(attributes, [&](const auto& a) { return a.first == attribute.first; });
    attributes.push_back(attribute);
  }
}

bool require(const XmlElement& e, const char* attribute) {
  const auto value = e.attribute(attribute);
  if (value && !trimmed(*value).empty()) return true;
  e.error(fmt::format("<{}> needs the attribute '{}'", e.name(), attribute));
  return false;
}

bool read_word(const XmlElement& e, const char* attribute, const std::vector<std::string_view>& words,
               std::string& out) {
  const auto value = e.attribute(attribute);
  if (!value) return false;
  std::string expected;
  for (const std::string_view w : words) {
    if (w == *value) return out = w, true;  // MuJoCo accepts no blanks around a word
    expected += fmt::format("{}'{}'", expected.empty() ? "" : ", ", w);
  }
  e.error(fmt::format("attribute '{}': {} is not one of {}", attribute, quote(*value), expected), attribute);
  return false;
}

bool read_limited(const XmlElement& e, const char* attribute, Limited& out) {
  std::string word;
  if (!read_word(e, attribute, {"true", "false", "auto"}, word)) return false;
  out = word == "true" ? Limited::yes : word == "false" ? Limited::no : Limited::automatic;
  return true;
}

bool settle_limit(const XmlElement& e, const Compiler& compiler, Limited limited, const char* limited_name,
                  const char* range_name, const std::array<double, 2>& range) {
  const bool has_range = range[0] != 0 || range[1] != 0;
  if (limited == Limited::automatic && !compiler.auto_limits && has_range) {
    e.error(fmt::format("'{}' is given without '{}', which is required because the compiler's autolimits is false",
                        range_name, limited_name),
            range_name);
    return false;
  }
  if (limited == Limited::no || (limited == Limited::automatic && !has_range)) return false;
  if (range[0] >= range[1]) {
    e.error(fmt::format("'{}' is {} {}, expected low < high", range_name, range[0], range[1]), range_name);
    return false;
  }
  return true;
}

bool read_over(const XmlElement& e, const char* attribute, Count count, std::vector<double>& out) {
  std::vector<double> given;
  if (!e.read(attribute, given, count)) return false;
  out.resize(std::max(out.size(), given.size()));
  std::copy(given.begin(), given.end(), out.begin());
  return true;
}

void read_solver(const XmlElement& e, const char* reference, const char* impedance, std::vector<double>& reference_out,
                 std::vector<double>& impedance_out) {
  if (read_over(e, reference, Count::between(1, 2), reference_out)) {
    const double first = reference_out[0], second = reference_out.size() > 1 ? reference_out[1] : 1;
    if (!(first > 0 && second > 0) && !(first < 0 && second <= 0)) {
      e.warn(
          fmt::format("'{}' is {} {}, expected (time constant, damping ratio) or (-stiffness, -damping): MJCF's "
                      "default is used",
                      reference, first, second));
      reference_out.clear();
    }
  }
  read_over(e, impedance, Count::between(1, 5), impedance_out);
}

Quatd from_euler(const std::array<double, 3>& angles, const Compiler& compiler) {
  Quatd q{1, 0, 0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const char letter = compiler.euler_sequence[i];
    const bool moving = letter >= 'x';  // lower case: about the axes of the frame as rotated so far
    Vec3d axis{0, 0, 0};
    axis[letter - (moving ? 'x' : 'X')] = 1;
    const Quatd turn = axis_angle(axis, compiler.radians(angles[i]));
    q = moving ? q * turn : turn * q;
  }
  return normalized(q);
}

namespace {

constexpr double kTiny = 1e-12;

std::optional<Quatd> from_quat(const XmlElement& e) {
  std::array<double, 4> q{};
  if (!e.read("quat", q)) return std::nullopt;
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (!(length > kTiny) || !std::isfinite(length)) {
    e.error("attribute 'quat' is not a rotation: its length is zero or too large", "quat");
    return std::nullopt;
  }
  if (std::abs(length - 1) > 1e-2) e.note("'quat' is not of unit length and was normalised", "quat");
  return Quatd{q[0] / length, q[1] / length, q[2] / length, q[3] / length};
}

std::optional<Quatd> from_axis_angle(const XmlElement& e, const Compiler& compiler) {
  std::array<double, 4> a{};
  if (!e.read("axisangle", a)) return std::nullopt;
  const Vec3d axis{a[0], a[1], a[2]};
  if (!(norm(axis) > kTiny)) {
    e.error("attribute 'axisangle': the axis has length zero", "axisangle");
    return std::nullopt;
  }
  return axis_angle(axis, compiler.radians(a[3]));
}

std::optional<Quatd> from_euler(const XmlElement& e, const Compiler& compiler) {
  std::array<double, 3> angles{};
  if (!e.read("euler", angles)) return std::nullopt;
  return from_euler(angles, compiler);
}

std::optional<Quatd> from_xy_axes(const XmlElement& e) {
  std::array<double, 6> a{};
  if (!e.read("xyaxes", a)) return std::nullopt;
  Vec3d x{a[0], a[1], a[2]}, y{a[3], a[4], a[5]};
  if (norm(x) > kTiny) {
    x = x * (1 / norm(x));
    y = y - x * dot(x, y);
    if (norm(y) > kTiny) {
      y = y * (1 / norm(y));
      const Vec3d z = cross(x, y);
      const Quatd q = quaternion(from_columns(x, y, z));
      // Choose MuJoCo's sign of the quaternion, because it is visible in qpos: the leading component is positive.
      const double lead = x.x + y.y + z.z > 0 ? q.w : x.x > y.y && x.x > z.z ? q.x : y.y > z.z ? q.y : q.z;
      return lead < 0 ? Quatd{-q.w, -q.x, -q.y, -q.z} : q;
    }
  }
  e.error("attribute 'xyaxes': the axes have length zero or are parallel", "xyaxes");
  return std::nullopt;
}

/// The shortest rotation of z to `z`; half a turn about x if they are opposite.
Quatd from_z(const Vec3d& z) {
  const Vec3d axis{-z.y, z.x, 0};
  const double sine = norm(axis);
  return axis_angle(sine > 1e-10 * norm(z) ? axis : Vec3d{1, 0, 0}, elementary::atan2(sine, z.z));
}

std::optional<Quatd> from_z_axis(const XmlElement& e) {
  Vec3d z{};
  if (!e.read("zaxis", z)) return std::nullopt;
  if (norm(z) > kTiny) return from_z(z);
  e.error("attribute 'zaxis' has length zero", "zaxis");
  return std::nullopt;
}

}  // namespace

bool read_orientation(const XmlElement& e, const Compiler& compiler, Quatd& out) {
  const int given = e.has("quat") + e.has("axisangle") + e.has("euler") + e.has("xyaxes") + e.has("zaxis");
  if (given == 0) return false;
  if (given > 1) {
    e.error("more than one of quat, axisangle, euler, xyaxes and zaxis");
    return false;
  }
  std::optional<Quatd> q = from_quat(e);
  if (!q) q = from_axis_angle(e, compiler);
  if (!q) q = from_euler(e, compiler);
  if (!q) q = from_xy_axes(e);
  if (!q) q = from_z_axis(e);
  if (q) out = *q;
  return q.has_value();
}

bool place_between(const XmlElement& e, const std::array<double, 6>& ends, GeomType type, Vec3d& size, Vec3d& position,
                   Quatd& orientation) {
  const Vec3d from{ends[0], ends[1], ends[2]}, to{ends[3], ends[4], ends[5]};
  const Vec3d along = from - to;
  if (type != GeomType::capsule && type != GeomType::cylinder && type != GeomType::box && type != GeomType::ellipsoid) {
    e.error(fmt::format("'fromto' is for capsules, cylinders, boxes and ellipsoids, not for a {}", name(type)),
            "fromto");
    return false;
  }
  if (!(norm(along) > kTiny)) {
    e.error("'fromto': the two ends are the same point", "fromto");
    return false;
  }
  if (norm(position) > 0) {
    e.error("'pos' and 'fromto' exclude each other, even if one comes from a default class", "fromto");
    return false;
  }
  const double half = norm(along) / 2;
  if (type == GeomType::box || type == GeomType::ellipsoid)
    size = {size.x, size.x, half};
  else
    size.y = half;
  position = (from + to) * 0.5;
  orientation = from_z(along);
  return true;
}

bool check_size(const XmlElement& e, GeomType type, Vec3d& size) {
  if (type == GeomType::plane) {  // x, y: half sizes of the drawn part, infinite if not positive
    const std::string message = "the third number of a plane's size, the spacing of its grid, must be positive";
    if (size.z < 0) e.error(message, "size");
    if (size.z == 0) e.warn(message + ": 1 is used, but MuJoCo refuses the file", "size"), size.z = 1;
    return size.z > 0;
  }
  int least = 0;
  switch (type) {
    case GeomType::sphere: least = 1; break;
    case GeomType::capsule:
    case GeomType::cylinder: least = 2; break;
    case GeomType::box:
    case GeomType::ellipsoid: least = 3; break;
    default: break;
  }
  for (int i = 0; i < 3; ++i) {
    if (size[i] < 0 || (i < least && !(size[i] > 0))) {
      e.error(fmt::format("size of a {} is {} {} {}, expected {} positive numbers", name(type), size.x, size.y, size.z,
                          least),
              "size");
      return false;
    }
    if (size[i] > 1e10) {
      e.error(fmt::format("size {} is more than 1e10 m", size[i]), "size");
      return false;
    }
  }
  return true;
}

void read_compiler(const XmlElement& e, Compiler& compiler) {
  std::string word;
  if (read_word(e, "angle", {"radian", "degree"}, word)) compiler.degrees = word == "degree";
  if (read_word(e, "coordinate", {"local", "global"}, word) && word == "global") {
    e.error("coordinate='global' is not supported, as in MuJoCo since 2.3.4: convert the file with MuJoCo 2.3.3",
            "coordinate");
  }
  if (e.read("eulerseq", word)) {
    if (word.size() == 3 && word.find_first_not_of("xyzXYZ") == std::string::npos)
      compiler.euler_sequence = word;
    else
      e.error(fmt::format("attribute 'eulerseq' is {}, expected three of the letters x y z X Y Z", quote(word)),
              "eulerseq");
  }
  e.read("autolimits", compiler.auto_limits);
  if (read_word(e, "inertiafromgeom", {"true", "false", "auto"}, word)) {
    compiler.inertia_from_geom = word == "auto" ? std::nullopt : std::optional<bool>(word == "true");
  }
  std::vector<int> groups;
  if (e.read("inertiagrouprange", groups, Count::exactly(2))) compiler.inertia_groups = {groups[0], groups[1]};
  if (e.read("assetdir", word)) compiler.mesh_directory = compiler.texture_directory = word;
  e.read("meshdir", compiler.mesh_directory);
  e.read("texturedir", compiler.texture_directory);
  e.read("strippath", compiler.strip_path);
  e.read("balanceinertia", compiler.balance_inertia);
  for (const auto& [attribute, out] :
       {std::pair("boundmass", &compiler.bound_mass), std::pair("boundinertia", &compiler.bound_inertia)}) {
    if (e.read(attribute, *out) && *out < 0) e.error(fmt::format("attribute '{}' is negative", attribute), attribute);
  }
  e.read("settotalmass", compiler.total_mass);
  e.read("fitaabb", compiler.fit_bounding_box);
  e.read("alignfree", compiler.align_free);
  if (compiler.align_free) e.unsupported({"alignfree"});
  // These do not affect the result: bodies are welded (but see settle_inertias) and looks are kept in any case.
  e.read("fusestatic", compiler.fuse_static);
  for (const char* attribute :
       {"discardvisual", "usethread", "savecompiled", "savecanonical", "saveinertial", "convexhull"})
    check_value(e, attribute, "bool");
  check_value(e, "conflict", "error|warning|merge");
  e.ignore({"passthrough"});
  refuse_repeated(e.children("lengthrange"));
  for (const XmlElement& range : e.children("lengthrange")) {
    refuse_unknown(range);
    bool existing = true;
    if (range.read("useexisting", existing) && !existing)
      range.warn("muscles keep the lengthrange of the file; MuJoCo recomputes it", "useexisting");
    else
      range.note("<lengthrange> has no effect: muscles keep the lengthrange of the file");
  }
  e.report_unread(Severity::error);
}

}  // namespace tarsus::mjcf
