#include "tarsus/io/amc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "clip_json.hpp"
#include "quick_number.hpp"
#include "tarsus/io/bvh.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

constexpr std::size_t kMaxBones = 10'000;
constexpr double kUsualRate = 120;  // [frames/s], that of CMU's database

/// Reads lines that are not empty and splits them into words at blanks. Comments and brackets around words are removed.
class AmcLines {
 public:
  AmcLines(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
  }

  /// The next line's words; false at the end.
  bool next() {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1, ++line_;
      words_.clear();
      for (const std::string_view word : split_blanks(line.substr(0, line.find('#')))) add(word);
      if (!words_.empty()) return true;
    }
    words_.clear();
    return false;
  }

  const std::vector<std::string_view>& words() const { return words_; }
  std::string_view key() const { return words_.front(); }
  Location here() const { return {file_, line_, 0, {}}; }
  int line() const { return line_; }
  [[noreturn]] void fail(const std::string& message) const { throw InputError(here(), message); }

  double number(std::size_t i) const {
    if (i >= words_.size()) fail(fmt::format("{} needs {} numbers, it has {}", quote(key()), i, words_.size() - 1));
    double value = 0;
    if (quick_number(words_[i], value)) return value;
    const Parsed<double> parsed = parse_number(words_[i]);
    if (!parsed) fail(fmt::format("{}: {}", quote(key()), parsed.error));
    return parsed.value;
  }
  Vec3d vector(std::size_t i) const { return {number(i), number(i + 1), number(i + 2)}; }

 private:
  void add(std::string_view word) {  // joint limits are written as "(-160.0 20.0)"
    while (!word.empty() && (word.front() == '(' || word.front() == ')')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == '(' || word.back() == ')')) word.remove_suffix(1);
    if (!word.empty()) words_.push_back(word);
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_ = 0;
  std::vector<std::string_view> words_;
};

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return out;
}

/// A degree of freedom: tx ty tz rx ry rz.
struct AmcFreedom {
  bool rotates = true;
  int axis = 0;
};

struct AmcBone {
  std::string name;
  Vec3d way{0, 0, 0};      ///< from the bone's beginning to its end, at rest: direction times length
  Quatd axes{1, 0, 0, 0};  ///< C: the bone's axes at rest, in the world
  std::vector<AmcFreedom> freedoms;
  int parent = -1;
  bool placed = false;
};

Quatd turn_about(int axis, double angle) {
  Vec3d v{0, 0, 0};
  v[axis] = 1;
  return axis_angle(v, angle);
}

/// Reads a skeleton. bones[0] is the root, and parents precede their children.
class AsfReader {
 public:
  AsfReader(std::string_view text, const std::string& name) : lines_(text, name) {}

  std::vector<AmcBone> run() {
    AmcBone root;
    root.name = "root", root.placed = true;
    bones_.push_back(std::move(root));
    bool any = lines_.next();
    while (any) {
      const std::string section = lower_case(lines_.key());
      if (section.empty() || section[0] != ':')
        lines_.fail(fmt::format("{} outside of a section", quote(lines_.key())));
      any = lines_.next();
      for (; any && lines_.key().front() != ':'; any = lines_.next()) {
        if (section == ":units") units();
        if (section == ":root") root_line();
        if (section == ":bonedata") any = bone();
        if (section == ":hierarchy") hierarchy();
        if (!any) break;
      }
    }
    if (bones_.size() < 2) lines_.fail("the skeleton has no bones (:bonedata)");
    for (const AmcBone& b : bones_) {
      if (!b.placed) lines_.fail(fmt::format("bone {} is not in the :hierarchy", quote(b.name)));
    }
    return in_order();
  }

 private:
  void units() {
    if (lower_case(lines_.key()) != "angle" || lines_.words().size() < 2) return;
    const std::string unit = lower_case(lines_.words()[1]);
    if (unit != "deg" && unit != "rad") lines_.fail(fmt::format("angle {}: deg or rad is expected", quote(unit)));
    unit_ = unit == "deg" ? kPi / 180 : 1;
  }

  void root_line() {
    const std::string key = lower_case(lines_.key());
    if (key == "order") bones_[0].freedoms = freedoms();
    if (key == "axis" && lines_.words().size() > 1) order_ = axis_order(lines_.words()[1]);
    if (key == "orientation") bones_[0].axes = turned(lines_.vector(1), order_);
  }

  /// Reads a bone from "begin" to "end". False at the end of the file.
  bool bone() {
    if (lower_case(lines_.key()) != "begin")
      lines_.fail(fmt::format("{} found where begin is expected", quote(lines_.key())));
    const Location from = lines_.here();
    if (bones_.size() == kMaxBones) lines_.fail(fmt::format("more than {} bones", kMaxBones));
    AmcBone b;
    Vec3d direction{0, 0, 0};
    double length = 0;
    while (lines_.next()) {
      const std::string key = lower_case(lines_.key());
      if (key == "end") {
        if (b.name.empty()) throw InputError(from, "the bone has no name");
        if (find(b.name) >= 0) throw InputError(from, fmt::format("two bones are called {}", quote(b.name)));
        const double size = norm(direction);
        b.way = size > 0 ? direction * (length / size) : Vec3d{0, 0, 0};
        bones_.push_back(std::move(b));
        return true;
      }
      if (key == "name" && lines_.words().size() > 1) b.name = std::string(lines_.words()[1]);
      if (key == "direction") direction = lines_.vector(1);
      if (key == "length") length = lines_.number(1);
      if (key == "axis")
        b.axes = turned(lines_.vector(1), axis_order(lines_.words().size() > 4 ? lines_.words()[4] : "XYZ"));
      if (key == "dof") b.freedoms = freedoms();
      if (std::any_of(b.freedoms.begin(), b.freedoms.end(), [](const AmcFreedom& f) { return !f.rotates; }))
        lines_.fail(fmt::format("bone {} has a degree of freedom that is not a rotation, which is not supported",
                                quote(b.name)));
    }
    throw InputError(from, "the file ends inside this bone: end is missing");
  }

  void hierarchy() {
    const std::string key = lower_case(lines_.key());
    if (key == "begin" || key == "end") return;
    const int parent = find(lines_.key());
    if (parent < 0) lines_.fail(fmt::format("there is no bone {}", quote(lines_.key())));
    for (std::size_t i = 1; i < lines_.words().size(); ++i) {
      const int child = find(lines_.words()[i]);
      if (child < 0) lines_.fail(fmt::format("there is no bone {}", quote(lines_.words()[i])));
      if (bones_[child].placed) lines_.fail(fmt::format("bone {} has two parents", quote(lines_.words()[i])));
      for (int above = parent; above >= 0; above = bones_[above].parent) {
        if (above == child) lines_.fail(fmt::format("bone {} is its own ancestor", quote(lines_.words()[i])));
      }
      bones_[child].parent = parent, bones_[child].placed = true;
    }
  }

  std::vector<AmcFreedom> freedoms() const {
    std::vector<AmcFreedom> out;
    for (std::size_t i = 1; i < lines_.words().size(); ++i) {
      const std::string f = lower_case(lines_.words()[i]);
      const bool good = f.size() == 2 && (f[0] == 't' || f[0] == 'r') && f[1] >= 'x' && f[1] <= 'z';
      if (!good && f != "l") lines_.fail(fmt::format("{} is not a degree of freedom, expected tx … rz", quote(f)));
      out.push_back({good && f[0] == 'r', good ? f[1] - 'x' : 0});
    }
    return out;
  }

  std::array<int, 3> axis_order(std::string_view text) const {
    const std::string order = lower_case(text);
    std::array<int, 3> out{0, 1, 2};
    bool good = order.size() == 3;
    for (std::size_t i = 0; good && i < 3; ++i) out[i] = order[i] - 'x', good = out[i] >= 0 && out[i] <= 2;
    if (!good) lines_.fail(fmt::format("{} is not an order of axes such as XYZ", quote(text)));
    return out;
  }

  /// Rotation by Euler angles about fixed axes: order "XYZ" turns about x first, then y, then z.
  Quatd turned(const Vec3d& angles, const std::array<int, 3>& order) const {
    Quatd q{1, 0, 0, 0};
    for (std::size_t i = 0; i < 3; ++i) q = turn_about(order[i], angles[int(i)] * unit_) * q;
    return q;
  }

  int find(std::string_view name) const {
    for (std::size_t i = 0; i < bones_.size(); ++i) {
      if (bones_[i].name == name) return int(i);
    }
    return -1;
  }

  std::vector<AmcBone> in_order() const {
    std::vector<AmcBone> out;
    std::vector<int> open = {0}, parents = {-1};
    while (!open.empty()) {
      const int i = open.back(), parent = parents.back();
      open.pop_back(), parents.pop_back();
      out.push_back(bones_[std::size_t(i)]);
      out.back().parent = parent;
      for (std::size_t c = bones_.size(); c-- > 0;) {
        if (bones_[c].parent == i) open.push_back(int(c)), parents.push_back(int(out.size()) - 1);
      }
    }
    return out;
  }

  AmcLines lines_;
  std::vector<AmcBone> bones_;
  double unit_ = kPi / 180;
  std::array<int, 3> order_{0, 1, 2};
};

class AmcReader {
 public:
  AmcReader(std::string_view text, const std::string& name, std::vector<AmcBone> bones)
      : lines_(text, name), bones_(std::move(bones)) {
    clip_.file = name, clip_.name = stem(name), clip_.format = "amc";
    clip_.up = {0, 1, 0}, clip_.forward = {0, 0, 1};
  }

  MotionClip run() {
    make_skeleton();
    double rate = 0;
    bool any = lines_.next();
    for (; any && lines_.key().front() == ':'; any = lines_.next()) {
      const std::string key = lower_case(lines_.key());
      if (key == ":radians") unit_ = 1;
      if (key == ":samples-per-second") {
        rate = lines_.number(1);
        if (!(rate > 0)) lines_.fail("a rate must be positive");
      }
    }
    if (!any) lines_.fail("the clip has no frames");
    if (rate == 0) {
      rate = kUsualRate;
      clip_.diagnostics.push_back(
          {Severity::note,
           {clip_.file, 0, 0, {}},
           "the file does not state its frame rate: 120 frames per second are assumed, as in CMU's database"});
    }
    while (any) any = frame(rate);
    for (std::size_t i = 0; i < rows_.size(); ++i) clip_.times.push_back(double(i) / rate);
    clean_clip(clip_, [&](int frame, int) {
      return Location{clip_.file, frame < 0 ? 0 : rows_[std::size_t(frame)], 0, {}};
    });
    return std::move(clip_);
  }

 private:
  void make_skeleton() {
    std::vector<bool> ends(bones_.size(), true);
    for (std::size_t i = 0; i < bones_.size(); ++i) {
      const AmcBone& b = bones_[i];
      clip_.skeleton.push_back({b.name, b.parent, b.parent < 0 ? Vec3d{0, 0, 0} : bones_[std::size_t(b.parent)].way});
      if (b.parent >= 0) ends[std::size_t(b.parent)] = false;
      index_[b.name] = int(i);
      if (i == 0) clip_.add_channel("root.position", ChannelKind::position);
      columns_.push_back(i == 0 || !b.freedoms.empty() ? clip_.add_channel(b.name, ChannelKind::rotation) : -1);
    }
    for (std::size_t i = 0; i < bones_.size(); ++i) {
      if (ends[i] && norm(bones_[i].way) > 0)
        clip_.skeleton.push_back({bones_[i].name + "_end", int(i), bones_[i].way});
    }
  }

  /// Reads a frame, from the line with its number to the next frame's number. False at the end of the file.
  bool frame(double rate) {
    const Parsed<int> number = parse_integer(lines_.key());
    if (!number || lines_.words().size() != 1)
      lines_.fail(fmt::format("{} found where a frame's number is expected", quote(lines_.key())));
    if (!rows_.empty() && number.value != last_number_ + 1 && gaps_++ == 0) {  // only the first gap is reported
      clip_.diagnostics.push_back({Severity::warning, lines_.here(),
                                   fmt::format("frame {} follows frame {}: it is read as the next one, {:.3g} s later",
                                               number.value, last_number_, 1 / rate)});
    }
    last_number_ = number.value;
    rows_.push_back(lines_.line());
    if (rows_.size() * std::size_t(clip_.width) > kMaxBvhNumbers)
      lines_.fail(fmt::format("more than {} numbers", kMaxBvhNumbers));
    const std::size_t start = clip_.values.size();
    clip_.values.resize(start + std::size_t(clip_.width));
    std::vector<bool> seen(bones_.size(), false);
    const Location from = lines_.here();
    bool any = lines_.next();
    for (; any && !std::isdigit(static_cast<unsigned char>(lines_.key()[0])); any = lines_.next()) {
      const auto at = index_.find(std::string(lines_.key()));
      if (at == index_.end()) lines_.fail(fmt::format("the skeleton has no bone {}", quote(lines_.key())));
      if (seen[std::size_t(at->second)])
        lines_.fail(fmt::format("bone {} is given twice in a frame", quote(lines_.key())));
      seen[std::size_t(at->second)] = true;
      bone(at->second, &clip_.values[start], start > 0);
    }
    for (std::size_t i = 0; i < bones_.size(); ++i) {
      if (!seen[i] && columns_[i] >= 0)
        throw InputError(from, fmt::format("the frame has no line for bone {}", quote(bones_[i].name)));
    }
    return any;
  }

  void bone(int i, double* frame, bool has_last) {
    const AmcBone& b = bones_[std::size_t(i)];
    if (lines_.words().size() != b.freedoms.size() + 1) {
      lines_.fail(fmt::format("bone {} has {} numbers, but {} in the skeleton", quote(b.name),
                              lines_.words().size() - 1, b.freedoms.size()));
    }
    Quatd turn{1, 0, 0, 0};
    Vec3d position{0, 0, 0};
    for (std::size_t k = 0; k < b.freedoms.size(); ++k) {
      const double value = lines_.number(k + 1);
      if (b.freedoms[k].rotates && !(std::abs(value) <= kMostAngle)) {
        lines_.fail(fmt::format("bone {}: an angle of {}, expected at most {:g}", quote(b.name), lines_.words()[k + 1],
                                kMostAngle));
      }
      if (b.freedoms[k].rotates)
        turn = turn_about(b.freedoms[k].axis, std::remainder(value * unit_, 4 * kPi)) * turn;
      else
        position[b.freedoms[k].axis] = value;
    }
    if (i == 0) std::copy(&position.x, &position.x + 3, frame);
    const int column = columns_[std::size_t(i)];
    if (column < 0) return;
    Quatd q = normalized(b.axes * turn * conjugate(b.axes));
    if (has_last) {  // angles beyond half a turn give -q: choose the sign nearer to the last frame
      const double* last = frame - clip_.width + column;
      if (q.w * last[0] + q.x * last[1] + q.y * last[2] + q.z * last[3] < 0) q = {-q.w, -q.x, -q.y, -q.z};
    }
    std::copy(&q.w, &q.w + 4, frame + column);
  }

  AmcLines lines_;
  std::vector<AmcBone> bones_;
  std::vector<int> columns_;  ///< first column of each bone's rotation; -1 if it has none
  std::map<std::string, int> index_;
  std::vector<int> rows_;
  int last_number_ = 0, gaps_ = 0;
  double unit_ = kPi / 180;
  MotionClip clip_;
};

/// The path of a motion file's skeleton; empty if there is none or the choice is ambiguous.
std::filesystem::path skeleton_beside(const std::filesystem::path& motion) {
  namespace fs = std::filesystem;
  const std::string stem = motion.stem().string();
  std::error_code ignored;
  for (const std::string& name : {stem, stem.substr(0, stem.rfind('_'))}) {
    const fs::path file = motion.parent_path() / (name + ".asf");
    if (fs::is_regular_file(file, ignored)) return file;
  }
  std::vector<fs::path> found;
  const fs::path folder = motion.has_parent_path() ? motion.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (lower_case(entry.path().extension().string()) == ".asf") found.push_back(entry.path());
  }
  return found.size() == 1 ? found[0] : fs::path();
}

}  // namespace

bool looks_like_acclaim(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  bool comments = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line[0] != '#') return line[0] == ':' || (comments && std::isdigit(static_cast<unsigned char>(line[0])));
    comments = true;
  }
  return false;
}

MotionClip parse_amc(std::string_view motion, const std::string& name, std::string_view skeleton,
                     const std::string& skeleton_name) {
  for (const auto& [text, file] : {std::pair{motion, name}, std::pair{skeleton, skeleton_name}}) {
    if (text.size() > kMaxBvhBytes)
      throw InputError(Location{file, 0, 0, {}},
                       fmt::format("{} bytes, expected at most {}", text.size(), kMaxBvhBytes));
  }
  return AmcReader(motion, name, AsfReader(skeleton, skeleton_name).run()).run();
}

MotionClip read_amc(const std::filesystem::path& file) {
  const std::string motion = read_file(file, kMaxBvhBytes);
  const Location where{file.string(), 0, 0, {}};
  if (lower_case(file.extension().string()) == ".asf")
    throw InputError(where, "this is a skeleton without a motion: read the .amc file instead");
  const std::filesystem::path skeleton = skeleton_beside(file);
  if (skeleton.empty()) {
    throw InputError(where,
                     fmt::format("the skeleton of this motion is missing: put {}.asf, or a single .asf file, beside it",
                                 file.stem().string()));
  }
  return parse_amc(motion, file.string(), read_file(skeleton, kMaxBvhBytes), skeleton.string());
}

}  // namespace tarsus
