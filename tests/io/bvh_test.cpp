// BVH: rotations in the file's order, real files, and refused input with its line.
#include "tarsus/io/bvh.hpp"

#include <fmt/format.h>

#include "support/clip_checks.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"

namespace tarsus::test {
namespace {

const std::string kHead =
    "HIERARCHY\n"
    "ROOT Hips\n"
    "{\n"
    "  OFFSET 0 0 0\n"
    "  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n"
    "  JOINT Left Leg\n"
    "  {\n"
    "    OFFSET 1 -2 3\n"
    "    CHANNELS 1 Xrotation\n"
    "    End Site\n"
    "    {\n"
    "      OFFSET 0 -1 0\n"
    "    }\n"
    "  }\n"
    "}\n";
const std::string kMotion = "MOTION\nFrames: 2\nFrame Time: 0.05\n1 2 3 10 20 30 40\n1 2 4 11 21 31 41\n";

Quatd about(int axis, double degrees) {
  Vec3d v{0, 0, 0};
  v[axis] = degrees * kPi / 180;
  return exp_map(v);
}

TEST(Bvh, AnglesComposeInTheFilesOrder) {
  const MotionClip clip = parse_clip(kHead + kMotion, "good.bvh");
  EXPECT_EQ(clip.format, "bvh");
  EXPECT_FALSE(clip.loop);
  ASSERT_EQ(clip.channels.size(), 3u);
  EXPECT_EQ(clip.channels[2].name, "Left Leg");
  EXPECT_EQ(clip.duration(), 0.05);
  const double* f = clip.frame(1);
  EXPECT_EQ(f[2], 4);
  const Quatd expected = about(2, 11) * about(0, 21) * about(1, 31);
  EXPECT_LT(norm(log_map(conjugate(expected) * Quatd{f[3], f[4], f[5], f[6]})), 1e-14);
  EXPECT_LT(norm(log_map(conjugate(about(0, 41)) * Quatd{f[7], f[8], f[9], f[10]})), 1e-14);
}

TEST(Bvh, ARestPoseBeforeTheMotionIsLeftOut) {
  const auto text = [](const std::string& first) {
    return kHead + "MOTION\nFrames: 5\nFrame Time: 0.01\n" + first +
           "\n1 2 3 10 20 30 60\n1 2 3 10 20 31 62\n1 2 3 10 21 32 64\n1 2 3 10 22 33 66\n";
  };
  const MotionClip with = parse_bvh(text("0 0 0 0 0 0 0"), "with.bvh");
  EXPECT_EQ(with.frame_count(), 4);
  EXPECT_NEAR(with.duration(), 0.03, 1e-15);
  EXPECT_EQ(with.frame(0)[0], 1);
  ASSERT_EQ(with.diagnostics.size(), 1u);
  EXPECT_NE(with.diagnostics[0].message.find("rest pose"), std::string::npos);
  EXPECT_EQ(parse_bvh(text("1 2 3 10 20 29 50"), "without.bvh").frame_count(), 5);  // 10 degrees: a motion
}

TEST(Bvh, WindowsLinesAndBlankLinesAndMissingEndSite) {
  std::string text = kHead + "\n\n" + kMotion + "\n \n";
  std::string windows;
  for (char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_bvh(windows, "w").values, parse_bvh(kHead + kMotion, "u").values);
}

TEST(Bvh, LinesOfOldMacsAndBracesAfterTheName) {
  const std::string good = kHead + kMotion;
  const std::vector<double> expected = parse_bvh(good, "good").values;
  std::string returns = good, braces = good;
  std::replace(returns.begin(), returns.end(), '\n', '\r');
  EXPECT_EQ(parse_bvh(returns, "cr").values, expected);
  for (std::size_t at; (at = braces.find("\n{")) != std::string::npos;) braces.replace(at, 2, " {");
  for (std::size_t at; (at = braces.find("\n  {")) != std::string::npos;) braces.replace(at, 4, "\t{");
  for (std::size_t at; (at = braces.find("\n    {")) != std::string::npos;) braces.replace(at, 6, " { ");
  const MotionClip clip = parse_bvh(braces, "braces");
  EXPECT_EQ(clip.values, expected);
  EXPECT_EQ(clip.channels[2].name, "Left Leg");
}

TEST(Bvh, RealFiles) {
  const auto walk = shared_data() / "cmu_mocap/bvh/cmu1/jumping_jacks.bvh",
             toy = shared_data() / "cmu_mocap/sinusoidal.bvh";
  if (!exists(walk)) GTEST_SKIP() << walk << " is not there";
  EXPECT_EQ(read_clip(toy).frame_count(), 120);
  const MotionClip clip = read_clip(walk);
  const Model model = built_in("humanoid");
  const ClipBinding binding = bind(model, clip, choose_clip_mapping(model, clip));
  EXPECT_EQ(binding.driven().size(), std::size_t(model.njoint()));
  Figure figure(model);
  double highest_hand = 0, lowest_foot = 1, widest = 0, least_up = 1, worst = 0, highest_lower_foot = -1;
  for (double t = 0.001; t < binding.duration(); t += 0.011) {
    const ClipState s = sample(binding, t);
    expect_sound(model, s);
    worst = std::max(worst, velocity_error(model, binding, t, 1e-6));
    figure.pose(s);
    const double left = figure.lowest_corner("left_foot").z, right = figure.lowest_corner("right_foot").z;
    lowest_foot = std::min({lowest_foot, left, right});
    highest_lower_foot = std::max(highest_lower_foot, std::min(left, right));
    highest_hand =
        std::max(highest_hand, figure.point("left_forearm", {0, 0, -0.26}).z - figure.point("head", {0, 0, 0}).z);
    widest = std::max(widest, norm(figure.point("left_foot", {0, 0, 0}) - figure.point("right_foot", {0, 0, 0})));
    least_up = std::min(least_up, figure.body("torso").R.zz);
  }
  // Jumping jacks: hands above the head, feet apart, trunk upright, feet near the floor or a jump above it.
  EXPECT_GT(highest_hand, 0.1);
  EXPECT_GT(widest, 0.5);
  EXPECT_GT(least_up, 0.8);
  EXPECT_GT(lowest_foot, -0.1);
  EXPECT_LT(highest_lower_foot, 0.4);
  EXPECT_LT(worst, 0.02);
  fmt::print("jumping jacks: hand {:.2f} m over the neck, feet {:.2f} m apart, lowest foot {:.3f} m\n", highest_hand,
             widest, lowest_foot);
}

void refuses_bvh(const std::string& text, const std::string& part, int line) {
  SCOPED_TRACE(part);
  try {
    parse_clip(text, "bad.bvh");
    ADD_FAILURE() << "accepted";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_EQ(e.diagnostics()[0].where.line, line) << e.what();
    EXPECT_EQ(e.diagnostics()[0].where.file, "bad.bvh");
  }
}
std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Bvh, AFrameTimeInMillisecondsIsSaid) {
  const MotionClip clip = parse_bvh(with(kHead + kMotion, "Frame Time: 0.05", "Frame Time: 33.3"), "slow.bvh");
  ASSERT_EQ(clip.diagnostics.size(), 1u);
  EXPECT_EQ(clip.diagnostics[0].message, "Frame Time is 33.3 s, which is long: it must be in seconds");
}

TEST(BvhBadInput, IsRefusedWithItsLine) {
  const std::string good = kHead + kMotion;
  refuses_bvh(with(good, "CHANNELS 1 Xrotation", ""), "joint 'Left Leg' has no CHANNELS", 14);
  refuses_bvh(with(good, "CHANNELS 1 Xrotation", "CHANNELS 2 Xrotation"), "CHANNELS says 2, but 1 channels follow", 9);
  refuses_bvh(with(good, "CHANNELS 1 Xrotation", "CHANNELS 1 Xrotated"), "'Xrotated' is not a channel", 9);
  refuses_bvh(with(good, "CHANNELS 1 Xrotation", "CHANNELS 1e9 Xrotation"), "not in 0 to 6", 9);
  refuses_bvh(with(good, "CHANNELS 1 Xrotation", "CHANNELS -1 Xrotation"), "not in 0 to 6", 9);
  refuses_bvh(with(good, "Xposition Yposition", "Xposition Xposition"), "'Xposition' is given twice", 5);
  refuses_bvh(with(good, "OFFSET 1 -2 3", "OFFSET 1 nan 3"), "finite", 8);
  refuses_bvh(with(good, "OFFSET 1 -2 3", "OFFSET 1 -2"), "is not a number", 9);
  refuses_bvh(with(good, "OFFSET 1 -2 3", ""), "joint 'Left Leg' has no OFFSET", 14);
  refuses_bvh(with(good, "OFFSET 0 -1 0", ""), "the End Site of joint 'Left Leg' has no OFFSET", 13);
  refuses_bvh(with(good, "OFFSET 1 -2 3", "OFFSET 1 -2 3 OFFSET 1 2 3"), "OFFSET is given twice", 8);
  refuses_bvh(with(good, "JOINT Left Leg", "JOINT Hips"), "two joints are called 'Hips'", 6);
  refuses_bvh(with(good, "JOINT Left Leg", "JOINT"), "no name", 6);
  refuses_bvh(with(good, "JOINT Left Leg\n", "JOINT {\n"), "no name", 6);
  refuses_bvh(with(good, "JOINT Left Leg", "JOINT Hips.position"), "two channels are called 'Hips.position'", 0);
  refuses_bvh(with(good, "Frames: 2", "Frames: 3"), "Frames: says 3, but 2 rows follow", 17);
  refuses_bvh(with(good, "Frames: 2", "Frames: 1"), "Frames: says 1, but 2 rows follow", 17);
  refuses_bvh(with(good, "Frames: 2", "Frames: 2000000000"), "but 2 rows follow", 17);
  refuses_bvh(with(good, "Frames: 2", "Frames: 99999999999"), "does not fit", 17);
  refuses_bvh(with(good, "Frames: 2", "Frames: 0"), "no frames", 17);
  refuses_bvh(with(good, "Frame Time: 0.05", "Frame Time: 0"), "not positive", 18);
  refuses_bvh(with(good, "Frame Time: 0.05", "Frame Time: -1"), "not positive", 18);
  refuses_bvh(with(good, "Frame Time: 0.05", "Frame Time: inf"), "Frame Time: 'inf' is not a finite number", 18);
  refuses_bvh(with(good, "10 20 30 40", "10 20 30"), "frame 0 has 6 numbers, but the hierarchy has 7", 19);
  refuses_bvh(with(good, "11 21 31 41", "11 21 31 41 51"), "more than the 7", 20);
  refuses_bvh(with(good, "11 21 31 41", "11 21 1e999 41"), "outside the range", 20);
  refuses_bvh(with(good, "11 21 31 41", "11 21 q 41"), "frame 1: 'q' is not a number", 20);
  refuses_bvh(with(good, "11 21 31 41", "11 -1e300 31 41"), "frame 1: an angle of -1e300, expected at most 1e+09", 20);
  refuses_bvh(with(good, "MOTION", "ROOT Other"), "second ROOT", 16);
  refuses_bvh(with(good, "MOTION", "MOVIE"), "MOTION is expected", 16);
  refuses_bvh("HIERARCHY\nROOT a\n{\n", "a '}' is missing", 4);
  refuses_bvh("HIERARCHY\n", "ROOT is expected", 2);
  refuses_bvh("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0 CHANNELS 0\n}\nMOTION\n", "no joint has a channel", 5);
}

TEST(BvhBadInput, DepthAndSizeAreBounded) {
  std::string deep = "HIERARCHY\nROOT j\n{\nCHANNELS 0\n";
  for (int i = 0; i < 100'000; ++i) deep += "JOINT j" + std::to_string(i) + "\n{\nCHANNELS 0\n";
  EXPECT_THROW(parse_clip(deep, "deep.bvh"), InputError);
  EXPECT_THROW(parse_bvh(std::string(kMaxBvhBytes + 1, ' '), "big.bvh"), InputError);
  const std::string good = kHead + kMotion;
  for (std::size_t n = 0; n + 4 < good.size(); ++n) EXPECT_THROW(parse_bvh(good.substr(0, n), "cut"), InputError) << n;
}

}  // namespace
}  // namespace tarsus::test
