#include "tarsus/io/bvh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "clip_json.hpp"
#include "quick_number.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

constexpr std::size_t kMaxJoints = 10'000;

/// The meaning of one number in a motion row: a rotation about or a translation along an axis.
struct Column {
  bool rotates = false;
  int axis = 0;  ///< x, y, z
};

struct BvhJoint {
  std::string name;
  int parent = -1;
  Vec3d offset{0, 0, 0};
  std::vector<Column> columns;
  bool has_offset = false, has_channels = false;
  int position = -1, rotation = -1;  ///< first column in the clip's frame
};

class BvhReader {
 public:
  BvhReader(std::string_view text, const std::string& name) : text_(text) {
    clip_.file = name, clip_.name = stem(name), clip_.format = "bvh";
    clip_.up = {0, 1, 0}, clip_.forward = {0, 0, 1};
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3, line_start_ = 3;
  }

  MotionClip run() {
    if (trimmed(text_.substr(at_)).empty()) fail("the file is empty");
    expect("HIERARCHY");
    expect("ROOT");
    hierarchy();
    make_channels();
    make_skeleton();
    motion();
    drop_rest_pose();
    clean_clip(clip_, [&](int frame, int) {
      return Location{clip_.file, frame < 0 ? 0 : row_lines_[frame], 0,
                      frame < 0 ? "" : fmt::format("MOTION[{}]", frame)};
    });
    return std::move(clip_);
  }

 private:
  Location here() const { return {clip_.file, token_line_, token_column_, {}}; }
  [[noreturn]] void fail(const std::string& message) const { throw InputError(here(), message); }

  static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  /// The next word, or an empty one at the end. Sets the place that fail() reports.
  std::string_view word() {
    while (at_ < text_.size() && is_blank(text_[at_])) advance();
    token_line_ = line_, token_column_ = int(at_ - line_start_) + 1;
    const std::size_t from = at_;
    while (at_ < text_.size() && !is_blank(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }
  void advance() {
    if (text_[at_++] == '\n') ++line_, line_start_ = at_;
  }
  std::string_view rest_of_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view rest = trimmed(text_.substr(at_, end - at_));
    at_ = end;
    return rest;
  }
  /// The rest of the line up to the '{' that must follow, on this line or on the next that is not blank.
  std::string_view name_and_brace() {
    const std::size_t from = at_;
    std::string_view name = rest_of_line();
    if (const std::size_t brace = name.find('{'); brace == 0 || (brace < name.size() && is_blank(name[brace - 1]))) {
      at_ = text_.find('{', from);
      name = trimmed(name.substr(0, brace));
    }
    return name;
  }

  void expect(std::string_view wanted) {
    const std::string_view got = word();
    if (got != wanted) {
      fail(got.empty() ? fmt::format("the file ends where {} is expected", wanted)
                       : fmt::format("{} found where {} is expected", quote(got), wanted));
    }
  }
  double number(const char* what) {
    const std::string_view token = word();
    if (token.empty()) fail(fmt::format("the file ends where {} is expected", what));
    const Parsed<double> parsed = parse_number(token);
    if (!parsed) fail(fmt::format("{}: {}", what, parsed.error));
    return parsed.value;
  }
  int count(const char* what, int most) {
    const std::string_view token = word();
    const Parsed<int> parsed = parse_integer(token);
    if (!parsed) fail(fmt::format("{}: {}", what, token.empty() ? "the file ends here" : parsed.error));
    if (parsed.value < 0 || parsed.value > most)
      fail(fmt::format("{}: {} is not in 0 to {}", what, parsed.value, most));
    return parsed.value;
  }

  /// Reads what follows ROOT, in a loop with an explicit stack, so that no depth overflows the call stack. On it -1
  /// stands for an End Site.
  void hierarchy() {
    std::vector<int> open = {begin_joint()};
    bool end_has_offset = false;
    while (!open.empty()) {
      const std::string_view key = word();
      const int joint = open.back();
      if (key.empty()) fail("the file ends inside the hierarchy: a '}' is missing");
      if (key == "}") {
        const bool is_end = joint < 0;
        if (const BvhJoint& at = joints_[is_end ? open[open.size() - 2] : joint];
            !(is_end ? end_has_offset : at.has_offset && at.has_channels)) {
          fail(fmt::format("{}joint {} has no {}", is_end ? "the End Site of " : "", quote(at.name),
                           !is_end && at.has_offset ? "CHANNELS" : "OFFSET"));
        }
        open.pop_back();
      } else if (key == "OFFSET") {
        bool& known = joint < 0 ? end_has_offset : joints_[joint].has_offset;
        if (known) fail("OFFSET is given twice");
        known = true;
        const Vec3d offset{number("OFFSET"), number("OFFSET"), number("OFFSET")};
        if (joint >= 0) joints_[joint].offset = offset;
        if (joint < 0) ends_.emplace_back(open[open.size() - 2], offset);
      } else if (key == "CHANNELS" && joint >= 0) {
        channels(joints_[joint]);
      } else if (key == "JOINT" && joint >= 0) {
        open.push_back(begin_joint());
        joints_.back().parent = joint;
      } else if (key == "End" && joint >= 0) {
        name_and_brace();
        expect("{");
        open.push_back(-1), end_has_offset = false;
      } else {
        fail(fmt::format("{} found where {} is expected", quote(key),
                         joint >= 0 ? "OFFSET, CHANNELS, JOINT, End Site or '}'" : "OFFSET or '}'"));
      }
    }
  }

  int begin_joint() {
    const std::string name(name_and_brace());
    if (name.empty()) fail("the joint has no name");
    if (!names_.insert(name).second) fail(fmt::format("two joints are called {}", quote(name)));
    if (joints_.size() == kMaxJoints) fail(fmt::format("more than {} joints", kMaxJoints));
    expect("{");
    joints_.emplace_back();
    joints_.back().name = name;
    return int(joints_.size()) - 1;
  }

  void channels(BvhJoint& joint) {
    if (joint.has_channels) fail(fmt::format("joint {} has CHANNELS twice", quote(joint.name)));
    joint.has_channels = true;
    const int wanted = count("CHANNELS", 6);
    const std::string rest(rest_of_line());
    const std::vector<std::string_view> found = split_blanks(rest);
    if (int(found.size()) != wanted) {
      fail(fmt::format("CHANNELS says {}, but {} channels follow for joint {}", wanted, found.size(),
                       quote(joint.name)));
    }
    for (const std::string_view channel : found) {
      Column column;
      const std::string_view kind = channel.substr(std::min<std::size_t>(1, channel.size()));
      column.rotates = kind == "rotation";
      column.axis = channel.empty() ? -1 : channel[0] - 'X';
      if ((kind != "rotation" && kind != "position") || column.axis < 0 || column.axis > 2) {
        fail(fmt::format("{} is not a channel: Xposition … Zrotation", quote(channel)));
      }
      for (const Column& other : joint.columns) {
        if (!column.rotates && !other.rotates && other.axis == column.axis)
          fail(fmt::format("{} is given twice", quote(channel)));
      }
      joint.columns.push_back(column);
    }
  }

  void make_channels() {
    for (BvhJoint& joint : joints_) {
      const auto rotates = [](const Column& c) { return c.rotates; };
      const auto turning = std::count_if(joint.columns.begin(), joint.columns.end(), rotates);
      if (turning < std::ptrdiff_t(joint.columns.size())) {
        joint.position = clip_.add_channel(joint.name + ".position", ChannelKind::position);
      }
      if (turning > 0) joint.rotation = clip_.add_channel(joint.name, ChannelKind::rotation);
      row_width_ += joint.columns.size();
      for (const Column& column : joint.columns) rotates_.push_back(column.rotates);
    }
    if (row_width_ == 0) fail("no joint has a channel");
  }
  void make_skeleton() {
    for (const BvhJoint& joint : joints_) clip_.skeleton.push_back({joint.name, joint.parent, joint.offset});
    for (const auto& [parent, offset] : ends_) {
      std::string name = joints_[parent].name + "_end";
      while (!names_.insert(name).second) name += "_end";
      clip_.skeleton.push_back({name, parent, offset});
    }
  }

  void motion() {
    const std::string_view key = word();
    if (key == "ROOT") fail("a second ROOT: files with several skeletons are not supported");
    if (key != "MOTION")
      fail(fmt::format("{} found where MOTION is expected", key.empty() ? "the end of the file" : quote(key)));
    expect("Frames:");
    const int frames = count("Frames", std::numeric_limits<int>::max());
    const Location frames_at = here();
    if (frames == 0) fail("the clip has no frames");
    expect("Frame");
    expect("Time:");
    const double step = number("Frame Time");
    if (!(step > 0)) fail(fmt::format("Frame Time: {} is not positive", step));
    if (step >= 1) {
      clip_.diagnostics.push_back(
          {Severity::warning, here(), fmt::format("Frame Time is {} s, which is long: it must be in seconds", step)});
    }
    if (const std::string_view rest = rest_of_line(); !rest.empty()) {
      fail(fmt::format("unexpected {} after the frame time", quote(rest)));
    }
    check_rows(frames, frames_at);
    clip_.values.reserve(std::size_t(frames) * clip_.width);
    for (int i = 0; i < frames; ++i) row(i, step);
  }

  /// Counts the rows before anything is stored, so that a wrong count allocates no memory.
  void check_rows(int frames, const Location& frames_at) const {
    std::size_t rows = 0, from = at_;
    while (from < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', from), text_.size());
      if (!trimmed(text_.substr(from, end - from)).empty()) ++rows;
      from = end + 1;
    }
    if (rows != std::size_t(frames)) {
      throw InputError(frames_at, fmt::format("Frames: says {}, but {} rows follow", frames, rows));
    }
    if (rows * row_width_ > kMaxBvhNumbers) {
      throw InputError(frames_at, fmt::format("{} numbers, expected at most {}", rows * row_width_, kMaxBvhNumbers));
    }
  }

  void row(int index, double step) {
    scratch_.clear();
    std::string_view token = word();
    const int line = token_line_;
    // Read exactly one line, so that a row that is too short does not consume the next.
    while (!token.empty() && token_line_ == line) {
      double value = 0;
      if (!quick_number(token, value)) {
        const Parsed<double> parsed = parse_number(token);
        if (!parsed) fail(fmt::format("frame {}: {}", index, parsed.error));
        value = parsed.value;
      }
      if (scratch_.size() == row_width_) {
        fail(fmt::format("frame {} has more than the {} numbers of the hierarchy's channels", index, row_width_));
      }
      if (rotates_[scratch_.size()] && !(std::abs(value) <= kMostAngle))
        fail(fmt::format("frame {}: an angle of {}, expected at most {:g} degrees", index, token, kMostAngle));
      scratch_.push_back(value);
      const std::size_t at = at_, line_start = line_start_;
      const int at_line = line_;
      token = word();
      if (token_line_ != line) at_ = at, line_start_ = line_start, line_ = at_line;
    }
    if (scratch_.size() != row_width_) {
      throw InputError(Location{clip_.file, line, 0, {}},
                       fmt::format("frame {} has {} numbers, but the hierarchy has {} channels", index, scratch_.size(),
                                   row_width_));
    }
    row_lines_.push_back(line);
    clip_.times.push_back(index * step);
    store_row();
  }

  void store_row() {
    const std::size_t start = clip_.values.size();
    clip_.values.resize(start + std::size_t(clip_.width));
    double* frame = &clip_.values[start];
    const double* in = scratch_.data();
    for (const BvhJoint& joint : joints_) {
      Vec3d p = joint.offset;
      Quatd q{1, 0, 0, 0};
      for (const Column& column : joint.columns) {
        Vec3d axis{0, 0, 0};
        axis[column.axis] = 1;
        if (column.rotates) {
          q = q * axis_angle(axis, std::remainder(*in, 720.0) * kPi / 180);
        } else {
          p[column.axis] = *in;
        }
        ++in;
      }
      if (joint.position >= 0) std::copy(&p.x, &p.x + 3, frame + joint.position);
      if (joint.rotation < 0) continue;
      q = normalized(q);
      if (start > 0) {  // angles beyond half a turn give -q: choose the sign nearer to the last frame
        const double* last = frame - clip_.width + joint.rotation;
        if (q.w * last[0] + q.x * last[1] + q.y * last[2] + q.z * last[3] < 0) q = {-q.w, -q.x, -q.y, -q.z};
      }
      std::copy(&q.w, &q.w + 4, frame + joint.rotation);
    }
  }

  /// Largest rotation of any joint from this frame to the next [rad].
  double largest_turn(int frame) const {
    double most = 0;
    for (const ClipChannel& c : clip_.channels) {
      if (c.kind != ChannelKind::rotation) continue;
      const double *a = clip_.frame(frame) + c.column, *b = clip_.frame(frame + 1) + c.column;
      const Quatd turn = conjugate(Quatd{a[0], a[1], a[2], a[3]}) * Quatd{b[0], b[1], b[2], b[3]};
      most = std::max(most, norm(log_map(turn.w < 0 ? Quatd{-turn.w, -turn.x, -turn.y, -turn.z} : turn)));
    }
    return most;
  }

  /// Drops frame 0 if it is a rest pose, which many programs write there. It is taken for one if some joint turns much
  /// further from frame 0 to frame 1 than between any later frames.
  void drop_rest_pose() {
    constexpr double kLeastJump = 0.5, kJump = 2;  // least jump [rad]; least ratio to the largest later jump
    const int frames = clip_.frame_count();
    if (frames < 4) return;
    const double jump = largest_turn(0);
    double later = 0;
    for (int i = 1; i + 1 < frames; ++i) later = std::max(later, largest_turn(i));
    if (jump < kLeastJump || jump < kJump * later) return;
    clip_.diagnostics.push_back(
        {Severity::note,
         {clip_.file, row_lines_[0], 0, {}},
         fmt::format(
             "frame 0 is taken as a rest pose and left out: it differs from frame 1 by {:.2f} rad, later frames from "
             "the next by at most {:.2f} rad",
             jump, later)});
    clip_.times.pop_back();
    clip_.values.erase(clip_.values.begin(), clip_.values.begin() + clip_.width);
    row_lines_.erase(row_lines_.begin());
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, token_line_ = 1, token_column_ = 1;
  std::vector<BvhJoint> joints_;
  std::vector<std::pair<int, Vec3d>> ends_;  ///< End Sites: the joint they belong to, and OFFSET
  std::set<std::string> names_;
  std::size_t row_width_ = 0;
  std::vector<bool> rotates_;  ///< [row_width_] whether a number of a row is an angle
  std::vector<double> scratch_;
  std::vector<int> row_lines_;
  MotionClip clip_;
};

}  // namespace

MotionClip parse_bvh(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBvhBytes) {
    throw InputError(Location{name, 0, 0, {}}, fmt::format("{} bytes, expected at most {}", text.size(), kMaxBvhBytes));
  }
  std::string lines;
  if (text.find('\n') == std::string_view::npos && text.find('\r') != std::string_view::npos) {  // as on old Macs
    lines = text, std::replace(lines.begin(), lines.end(), '\r', '\n');
    text = lines;
  }
  return BvhReader(text, name).run();
}

MotionClip read_bvh(const std::filesystem::path& file) {
  return parse_bvh(read_file(file, kMaxBvhBytes), file.string());
}

}  // namespace tarsus
