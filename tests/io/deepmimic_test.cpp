// DeepMimic's clips: the real ones on the built-in characters, and refused input.
#include "tarsus/io/deepmimic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "support/clip_checks.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"

namespace tarsus::test {
namespace {

std::vector<std::filesystem::path> clips_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

ClipBinding bound(const Model& model, const std::filesystem::path& file) {
  const MotionClip clip = read_clip(file);
  return bind(model, clip, choose_clip_mapping(model, clip));
}

/// Every clip of a folder binds, gives valid samples over three cycles, and its velocity is the derivative of its
/// position.
void check_folder(const char* model_name, const std::filesystem::path& folder, std::size_t expected) {
  const std::vector<std::filesystem::path> files = clips_in(folder);
  if (files.empty()) GTEST_SKIP() << folder << " is not there";
  ASSERT_EQ(files.size(), expected);
  const Model model = built_in(model_name);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const ClipBinding binding = bound(model, file);
    EXPECT_EQ(binding.driven().size(), std::size_t(model.njoint()));
    double speed = 0, worst = 0;
    for (double t = 0.0013; t < 3 * binding.duration(); t += 0.0117) {
      const ClipState s = sample(binding, t);
      expect_sound(model, s);
      for (double v : s.v) speed = std::max(speed, std::abs(v));
      const bool inside = binding.loop() || t < binding.duration() - 1e-4;
      if (inside) worst = std::max(worst, velocity_error(model, binding, t, 1e-6));
    }
    // Differences over 1e-6 s. Rounding gives 1e-15/1e-6 for coordinates of order 1. A step across a frame contains the
    // jump of the acceleration, about 4 * speed / 1/60 s at most, halved and times 1e-6 s.
    EXPECT_LT(worst, 1e-8 + 1e-6 * 300 * speed);
    EXPECT_LT(speed, 60) << "rad/s: a sign flip or a frame out of place";
    EXPECT_GT(speed, 0.5);
    fmt::print("{:32} {:3} frames {:.2f} s, fastest {:.1f}, velocity against differences {:.1e}\n",
               file.filename().string(), binding.frame_count(), binding.duration(), speed, worst);
    for (const Diagnostic& d : binding.diagnostics()) {
      EXPECT_NE(d.severity, Severity::error) << d.text();
      EXPECT_GT(d.where.file.size(), 0u) << d.text();
    }
  }
}

TEST(DeepMimic, EveryHumanoidClipDrivesTheHumanoid) {
  check_folder("humanoid", shared_data() / "deepmimic/data/motions", 14);
}
TEST(DeepMimic, EveryDogClipDrivesTheDog) { check_folder("dog", shared_data() / "deepmimic_dog/data/motions", 3); }

TEST(DeepMimic, TheWalkWalks) {
  const auto file = shared_data() / "deepmimic/data/motions/humanoid3d_walk.txt";
  if (!exists(file)) GTEST_SKIP() << file << " is not there";
  const Model model = built_in("humanoid");
  const ClipBinding binding = bound(model, file);
  Figure figure(model);
  double lowest = 1, highest_of_lower = -1, least_up = 1, slid = 0;
  const double step = 1.0 / 240;
  Vec3d last_left{}, last_right{};
  for (double t = 0; t < 2 * binding.duration(); t += step) {
    figure.pose(sample(binding, t));
    const Transformd pelvis = figure.body("pelvis"), torso = figure.body("torso");
    least_up = std::min({least_up, pelvis.R.zz, torso.R.zz});
    const double left = figure.lowest_corner("left_foot").z, right = figure.lowest_corner("right_foot").z;
    lowest = std::min({lowest, left, right});
    highest_of_lower = std::max(highest_of_lower, std::min(left, right));
    // The ankle of the lower foot hardly moves forward compared with the body.
    const Vec3d l = figure.point("left_foot", {0, 0, 0}), r = figure.point("right_foot", {0, 0, 0});
    if (t > 0) slid += left < right ? std::abs(l.x - last_left.x) : std::abs(r.x - last_right.x);
    last_left = l, last_right = r;
    EXPECT_GT(pelvis.R.xx, 0.9) << "faces where it goes";
  }
  const double forward = sample(binding, 2 * binding.duration()).q[0] - sample(binding, 0).q[0];
  fmt::print("two cycles: {:.2f} m forward, lowest foot corner {:.3f} to {:.3f} m, uprightness {:.3f}, slid {:.2f} m\n",
             forward, lowest, highest_of_lower, least_up, slid);
  EXPECT_NEAR(forward, 2 * 1.23859, 0.02);  // twice the file's displacement of a cycle
  EXPECT_GT(least_up, 0.9);
  // The clip's own skeleton differs by up to a centimetre per leg, and its feet are ends of capsules, not boxes.
  EXPECT_GT(lowest, -0.05);
  EXPECT_LT(highest_of_lower, 0.05);
  EXPECT_LT(slid, 0.5 * forward);
}

TEST(DeepMimic, RepairsAreRecorded) {
  const auto file = shared_data() / "deepmimic/data/motions/humanoid3d_backflip.txt";
  if (!exists(file)) GTEST_SKIP() << file << " is not there";
  const MotionClip clip = read_deepmimic(file);
  EXPECT_EQ(clip.format, "humanoid3d");
  EXPECT_TRUE(clip.loop);
  const auto told = [&](const char* part) {
    return std::any_of(clip.diagnostics.begin(), clip.diagnostics.end(), [&](const Diagnostic& d) {
      return d.message.find(part) != std::string::npos && d.where.line > 0 && d.where.column > 0;
    });
  };
  EXPECT_TRUE(told("were normalised; the largest error of their length was 0.118"));
  EXPECT_TRUE(told("flips 1 times"));
  EXPECT_TRUE(told("the last frame has duration 0"));
}

TEST(DeepMimic, QuadrupedClipsAreRead) {
  const auto files = clips_in(shared_data() / "motion_imitation/motions");
  if (files.empty()) GTEST_SKIP() << "no motion_imitation data";
  for (const auto& file : files) {
    const MotionClip clip = read_deepmimic(file);
    EXPECT_EQ(clip.format, "quadruped12") << file;
    EXPECT_EQ(clip.width, 19) << file;
    // In these files (x, y, z, w) = (1, 1, 1, 1)/2 is the standing robot.
    const Quatd q{clip.frame(0)[3], clip.frame(0)[4], clip.frame(0)[5], clip.frame(0)[6]};
    EXPECT_LT(norm(log_map(conjugate(Quatd{0.5, 0.5, 0.5, 0.5}) * q)), 0.3) << file;
  }
}

// Bad input.

/// A row for humanoid3d: duration, then identity rotations.
std::string row(const std::string& duration = "0.1") {
  std::string text = "[" + duration;
  for (const ClipChannel& c : deepmimic_layout("humanoid3d"))
    text += c.kind == ChannelKind::rotation ? ", 1, 0, 0, 0" : c.kind == ChannelKind::position ? ", 0, 1, 0" : ", 0";
  return text + "]";
}
std::string file_of(const std::string& rows) { return "{\"Loop\": \"wrap\",\n\"Frames\":\n[\n" + rows + "\n]\n}\n"; }

void refuses_deepmimic(const std::string& text, const std::string& part, int line = -1) {
  SCOPED_TRACE(text.substr(0, 120));
  try {
    parse_clip(text, "bad.txt");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    ASSERT_FALSE(e.diagnostics().empty());
    const Location& where = e.diagnostics()[0].where;
    EXPECT_EQ(where.file, "bad.txt");
    EXPECT_GT(where.line, 0);
    EXPECT_GT(where.column, 0);
    if (line > 0) {
      EXPECT_EQ(where.line, line) << e.what();
    }
  }
}

TEST(DeepMimicBadInput, TheGoodOneIsRead) {
  const MotionClip clip = parse_clip(file_of(row() + ",\n" + row("0")), "good.txt");
  EXPECT_EQ(clip.frame_count(), 2);
  EXPECT_EQ(clip.duration(), 0.1);
  EXPECT_EQ(parse_clip(file_of(row()), "one.txt").frame_count(), 1);
}

TEST(DeepMimicBadInput, Frames) {
  refuses_deepmimic(file_of(""), "no frames", 3);
  refuses_deepmimic(file_of("[]"), "no known layout", 4);
  refuses_deepmimic(file_of(row() + ",\n" + row().substr(0, row().size() - 4) + "]"), "numbers in frame 1, but 44", 5);
  refuses_deepmimic(file_of(row() + ",\n[1, 2]"), "2 numbers in frame 1", 5);
  refuses_deepmimic(
      file_of("[1, 2, 3]"),
      "a frame has 3 numbers, which fits no known layout (known: 44 humanoid3d, 84 dog3d, 20 quadruped12)", 4);
  refuses_deepmimic(file_of(row("0") + ",\n" + row()), "frame 0 lasts 0 s", 4);
  refuses_deepmimic(file_of(row("-0.1") + ",\n" + row()), "frame 0 lasts -0.1 s", 4);
  refuses_deepmimic(file_of(row() + ",\n" + row("-1")), "the last frame lasts -1 s", 5);
  refuses_deepmimic(file_of(row("nan") + ",\n" + row()), "nan", 4);
  refuses_deepmimic(file_of(row("1e400") + ",\n" + row()), "outside the range", 4);
  refuses_deepmimic(file_of(row("1e308") + ",\n" + row("1e308") + ",\n" + row()), "finite", 6);
  refuses_deepmimic(file_of(row("0x1") + ",\n" + row()), "hexadecimal", 4);
  refuses_deepmimic(file_of(row("\"a\"") + ",\n" + row()), "a row holds numbers", 4);
  refuses_deepmimic(file_of("7"), "array of rows", 3);
  refuses_deepmimic("{\"Loop\": \"wrap\", \"Frames\": {}}", "array of rows", 1);
  refuses_deepmimic("{\"Loop\": \"sometimes\", \"Frames\": [" + row() + "]}", "not a loop mode", 1);
  refuses_deepmimic("{\"FrameDuration\": 0, \"LoopMode\": \"Wrap\", \"Frames\": [" + row() + "]}", "must be positive",
                    1);
  std::string zero = row();
  zero.replace(zero.find("1, 0, 0, 0"), 10, "0, 0, 0, 0");
  refuses_deepmimic(file_of(row() + ",\n" + zero), "quaternion of channel 'root' in frame 1 has length 0", 5);
}

TEST(DeepMimicBadInput, Json) {
  refuses_deepmimic("", "empty");
  refuses_deepmimic("   \n ", "empty");
  refuses_deepmimic("{", "the text ends");
  refuses_deepmimic("[1, 2", "the text ends");
  refuses_deepmimic("{\"Frames\": [[1 2]]}", "is expected");
  refuses_deepmimic("{\"Frames\": [[1,]]}", "is expected");
  refuses_deepmimic("{\"Frames\": [1], \"Frames\": [2]}", "given twice");
  refuses_deepmimic("{\"Frames\": [1]} x", "after the end");
  refuses_deepmimic("{\"Frames", "never ends");
  refuses_deepmimic("{\"Fr\\qames\": 1}", "not an escape sequence");
  refuses_deepmimic("{\"\\ud800\": 1}", "one half of a surrogate");
  refuses_deepmimic(std::string("{\"a\": 1\0}", 9), "", 1);
  refuses_deepmimic("{\"Loop\": \"wrap\"}", "not a motion clip");
  refuses_deepmimic("3", "not a motion clip");
  refuses_deepmimic("\xff\xfe", "");
  refuses_deepmimic(std::string(1'000'000, '['), "nested more than", 1);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  refuses_deepmimic(deep, "nested more than", 1);
  std::string many = "[";
  for (int i = 0; i < 1'100'000; ++i) many += "[],";
  refuses_deepmimic(many, "more than 1000000 values");
  EXPECT_THROW(parse_clip(std::string(65u << 20, ' '), "big.txt"), InputError);
}

TEST(DeepMimicBadInput, RealFilesCutShort) {
  const auto file = shared_data() / "deepmimic/data/motions/humanoid3d_run.txt";
  if (!exists(file)) GTEST_SKIP() << file << " is not there";
  std::ifstream in(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t n = 1; n + 3 < text.size(); n += 997) refuses_deepmimic(text.substr(0, n), "");
}

}  // namespace
}  // namespace tarsus::test
