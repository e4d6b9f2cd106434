// Acclaim's skeletons and motions, and AMASS's arrays: positions computed by hand, real files, and refused input.
#include "tarsus/io/amc.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "control/skeleton.hpp"
#include "support/clip_checks.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/control/retarget.hpp"
#include "tarsus/io/amass.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus::test {
namespace {

const std::string kAsf =
    "# made by hand\n:version 1.10\n:name two\n:units\n  mass 1.0\n  length 0.45\n  angle deg\n:documentation\n  none\n"
    ":root\n  order TX TY TZ RX RY RZ\n  axis XYZ\n  position 0 0 0\n  orientation 0 0 0\n:bonedata\n"
    "  begin\n    id 1\n    name thigh\n    direction 0 -2 0\n    length 3\n    axis 0 0 90 XYZ\n    dof rx ry rz\n"
    "    limits (-160.0 20.0)\n    (-70 70)\n    (-60 70)\n  end\n"
    "  begin\n    id 2\n    name shin\n    direction 0 -1 0\n    length 4\n    axis 0 0 0 XYZ\n    dof rx\n  end\n"
    ":hierarchy\n  begin\n    root thigh\n    thigh shin\n  end\n";
const std::string kAmcMotion =
    "# motion\n:FULLY-SPECIFIED\n:DEGREES\n1\nroot 1 2 3 0 0 0\nthigh 90 0 0\nshin 0\n2\nroot 1 2 3 0 90 0\n"
    "thigh 90 0 0\nshin 90\n";

MotionClip parse_two(const std::string& motion = kAmcMotion, const std::string& skeleton = kAsf) {
  return parse_amc(motion, "a.amc", skeleton, "a.asf");
}

void expect_near(const Vec3d& a, const Vec3d& b) {
  EXPECT_NEAR(norm(a - b), 0, 1e-12) << a.x << " " << a.y << " " << a.z;
}

TEST(Amc, PlacesByHand) {
  const MotionClip clip = parse_two();
  ASSERT_EQ(clip.frame_count(), 2);
  EXPECT_EQ(clip.format, "amc");
  EXPECT_EQ(clip.times[1], 1.0 / 120);
  ASSERT_EQ(clip.skeleton.size(), 4u);  // root, thigh, shin, shin_end
  EXPECT_EQ(clip.skeleton[3].name, "shin_end");
  // A rotation about the thigh's own x, which is the world's y at rest, leaves the leg hanging and turns the shin's
  // axis.
  const std::vector<Vec3d> first = joint_positions(clip, 0);
  expect_near(first[1], {1, 2, 3});
  expect_near(first[2], {1, -1, 3});
  expect_near(first[3], {1, -5, 3});
  // The root is turned by a quarter about y, and the thigh by another. The knee's axis, x at rest, points to -x and
  // lifts the shin to z.
  const std::vector<Vec3d> second = joint_positions(clip, 1);
  expect_near(second[2], {1, -1, 3});
  expect_near(second[3], {1, -1, 7});
}

TEST(Amc, RatesUnitsAndOrders) {
  EXPECT_EQ(parse_two(":SAMPLES-PER-SECOND 60\n" + kAmcMotion).times[1], 1.0 / 60);
  std::string radians = kAmcMotion;
  radians.replace(radians.find(":DEGREES"), 8, ":RADIANS");
  const MotionClip thigh = parse_two(radians);
  const double* row = thigh.frame(0);
  EXPECT_NEAR(std::abs(row[7]), std::abs(std::cos(45.0)), 1e-12);  // the thigh's w at 90 rad
  std::string rotated = kAsf;
  rotated.replace(rotated.find("TX TY TZ RX RY RZ"), 17, "TZ TY TX RZ RX RY");
  const MotionClip clip = parse_two(kAmcMotion, rotated);
  EXPECT_EQ(clip.frame(0)[0], 3);
  EXPECT_EQ(clip.frame(0)[2], 1);
}

TEST(Amc, FramesThatAreMissingAreSaid) {
  std::string gap = kAmcMotion;
  gap.replace(gap.find("\n2\n"), 3, "\n4\n");
  const Diagnostics notes = parse_two(gap).diagnostics;
  ASSERT_EQ(notes.size(), 2u);  // the other is about the rate
  EXPECT_EQ(notes[1].text(), "a.amc:8: warning: frame 4 follows frame 1: it is read as the next one, 0.00833 s later");
}

TEST(Amc, WhatIsRefusedWithItsLine) {
  const auto refused = [](const std::string& motion, const std::string& skeleton, const std::string& words) {
    try {
      parse_two(motion, skeleton);
      ADD_FAILURE() << "accepted; expected '" << words << "'";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << "expected '" << words << "' in " << e.what();
    }
  };
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  refused(with(kAmcMotion, "shin 0\n2", "2"), kAsf, "a.amc:4: error: the frame has no line for bone 'shin'");
  refused(with(kAmcMotion, "shin 0", "shin 0 1"), kAsf, "bone 'shin' has 2 numbers, but 1 in the skeleton");
  refused(with(kAmcMotion, "shin 0", "tail 0"), kAsf, "no bone 'tail'");
  refused(with(kAmcMotion, "shin 0", "shin nan"), kAsf, "'shin'");
  refused(with(kAmcMotion, "shin 0", "shin 1e300"), kAsf, "bone 'shin': an angle of 1e300, expected at most 1e+09");
  refused(with(kAmcMotion, "shin 0", "thigh 0 0 0"), kAsf, "bone 'thigh' is given twice");
  for (const char* rate : {"0", "-0", "-60"})
    refused(fmt::format(":SAMPLES-PER-SECOND {}\n", rate) + kAmcMotion, kAsf,
            "a.amc:1: error: a rate must be positive");
  refused(":DEGREES\n", kAsf, "no frames");
  refused("", kAsf, "no frames");
  refused(kAmcMotion, "", "no bones");
  refused(kAmcMotion, with(kAsf, "dof rx\n", "dof rx l\n"), "is not a rotation");
  refused(kAmcMotion, with(kAsf, "dof rx\n", "dof rq\n"), "'rq' is not a degree of freedom");
  refused(kAmcMotion, with(kAsf, "thigh shin\n", "thigh tail\n"), "there is no bone 'tail'");
  refused(kAmcMotion, with(kAsf, "thigh shin\n", ""), "bone 'shin' is not in the :hierarchy");
  refused(kAmcMotion, with(kAsf, "thigh shin\n", "thigh shin shin\n"), "two parents");
  refused(kAmcMotion, with(kAsf, "root thigh\n", "shin thigh\n"), "is its own ancestor");
  refused(kAmcMotion, kAsf.substr(0, kAsf.find("  end")), "end is missing");
}

TEST(Amc, CmusFilesTrackOnTheHumanoid) {
  const auto folder = shared_data() / "cmu_mocap";
  if (!exists(folder / "11_01.amc")) GTEST_SKIP() << folder << " is not there";
  const Model model = built_in("humanoid");
  for (const char* file : {"11_01.amc", "subjects/02/02_01.amc", "subjects/02/02_03.amc"}) {
    const MotionClip clip = read_clip(folder / file);
    const ClipMapping mapping = choose_clip_mapping(model, clip, {});
    EXPECT_GE(confidence(mapping), 0.9) << file;
    const Retargeted moved = retarget(model, clip, mapping);
    EXPECT_LT(moved.report.direction_error, 15 * kPi / 180) << file << ": " << text(moved.report);
    EXPECT_LT(moved.report.slide_mean, 0.02) << file << ": " << text(moved.report);
    EXPECT_GE(moved.report.stances, 1) << file;
  }
  EXPECT_THROW(read_clip(folder / "11.asf"), InputError);
  try {  // its folder has no skeleton
    read_clip(shared_data() / "dm_control_walkers/suite/demos/zeros.amc");
    ADD_FAILURE();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("the skeleton of this motion is missing"), std::string::npos) << e.what();
  }
}

/// A file as AMASS writes it: doubles, in some files float32, with a person walking in place.
std::string amass_file(const std::string& what) {
  static const test::TemporaryFolder own;
  const std::filesystem::path file = own.path() / (what + ".npz");
  NpzWriter out(file);
  constexpr std::size_t kFrames = 60, kWidth = 156;
  std::vector<double> trans, poses(kFrames * kWidth, 0.0);
  for (std::size_t i = 0; i < kFrames; ++i) {
    trans.insert(trans.end(), {0.1, 0.2, 0.93});
    double* p = &poses[i * kWidth];
    p[0] = kPi / 2;  // upright: SMPL's y to the world's z
    const double phase = 2 * kPi * double(i) / 60;
    p[3 * 1] = -0.6 * std::max(0.0, std::sin(phase)), p[3 * 4] = 1.2 * std::max(0.0, std::sin(phase));
    p[3 * 2] = -0.6 * std::max(0.0, -std::sin(phase)), p[3 * 5] = 1.2 * std::max(0.0, -std::sin(phase));
    p[3 * 16 + 2] = -1.3, p[3 * 17 + 2] = 1.3;  // arms down
    if (what == "far" && i == 7) p[3 * 4 + 1] = -1e17;
    if (what == "farther" && i == 7) p[3 * 4 + 1] = 1e300;
  }
  const double rate = 60;
  if (what != "no_trans") out.add<double>("trans", trans, {kFrames, 3});
  out.add<double>("poses", poses, what == "flat" ? NpzShape{kFrames * kWidth} : NpzShape{kFrames, kWidth});
  if (what != "no_rate") out.add<double>("mocap_framerate", std::span(&rate, 1), {});
  out.finish();
  return file.string();
}

TEST(Amass, AnglesAreTheFilesAndItTracks) {
  const MotionClip clip = read_clip(amass_file("good"));
  EXPECT_EQ(clip.format, "amass");
  ASSERT_EQ(clip.frame_count(), 60);
  EXPECT_NEAR(clip.duration(), 59.0 / 60, 1e-12);
  const ClipChannel* knee = clip.find("left_knee");
  ASSERT_NE(knee, nullptr);
  EXPECT_NEAR(clip.frame(15)[knee->column + 1], std::sin(0.6), 1e-12);  // 1.2 rad about x
  const std::vector<Vec3d> places = joint_positions(clip, 0);
  EXPECT_GT(places[15].z, 1.4);                          // the head is up
  EXPECT_LT(std::abs(places[1].x - places[2].x), 0.15);  // hips 14 cm apart,
  EXPECT_GT(places[1].x, places[2].x);                   // the left one on SMPL's +x
  EXPECT_LT(places[20].z, places[16].z - 0.3);           // hands below shoulders
  const Model model = built_in("humanoid");
  const ClipMapping mapping = choose_clip_mapping(model, clip, {});
  EXPECT_GE(confidence(mapping), 0.95);
  const Retargeted moved = retarget(model, clip, mapping);
  EXPECT_LT(moved.report.direction_error, 12 * kPi / 180) << text(moved.report);
  EXPECT_LT(moved.report.slide_max, 0.02) << text(moved.report);
}

TEST(Amass, WhatIsRefused) {
  for (const auto& [what, words] : {std::pair<std::string, std::string>{"no_rate", "the frame rate is missing"},
                                    {"no_trans", "trans"},
                                    {"flat", "expected (frames, 3 k)"},
                                    {"far", "frame 7: joint 'left_knee' is turned by -1e+17 rad, expected at most"},
                                    {"farther", "frame 7: joint 'left_knee' is turned by 1e+300 rad"}}) {
    try {
      read_clip(amass_file(what));
      ADD_FAILURE() << what;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(parse_clip("PK\x03\x04 and no more", "short.npz"), InputError);
}

/// The output of Python's pickle.dumps(…, protocol), as hexadecimal digits.
std::string bytes_of(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// {"loop_mode": 1, "fps": 30, "frames": [[0, 0, 1, 0, 0, 0, 0.5, -0.25], [0.5, 0, 1, 0, 0, 0.5, 0.75, 0]]}
const char* const kList =
    "800495c0000000000000007d94288c096c6f6f705f6d6f6465944b018c03667073944b1e8c066672616d6573945d94285d94"
    "28470000000000000000470000000000000000473ff000000000000047000000000000000047000000000000000047000000"
    "0000000000473fe000000000000047bfd0000000000000655d9428473fe0000000000000470000000000000000473ff00000"
    "00000000470000000000000000470000000000000000473fe0000000000000473fe800000000000047000000000000000065"
    "65752e";
const char* const kNumpyFloat =
    "800495ee000000000000007d94288c096c6f6f705f6d6f6465944b018c03667073944b1e8c066672616d6573948c166e756d"
    "70792e5f636f72652e6d756c74696172726179948c0c5f7265636f6e7374727563749493948c056e756d7079948c076e6461"
    "727261799493944b0085944301629487945294284b014b024b08869468078c0564747970659493948c026634948988879452"
    "94284b038c013c944e4e4e4affffffff4affffffff4b0074946289434000000000000000000000803f000000000000000000"
    "0000000000003f000080be0000003f000000000000803f00000000000000000000003f0000403f0000000094749462752e";
const char* const kNumpy4 =
    "8004954a010000000000007d94288c096c6f6f705f6d6f6465944b018c03667073948c166e756d70792e5f636f72652e6d75"
    "6c74696172726179948c067363616c61729493948c056e756d7079948c0564747970659493948c0266389489888794529428"
    "4b038c013c944e4e4e4affffffff4affffffff4b0074946243080000000000003e4094869452948c066672616d6573946803"
    "8c0c5f7265636f6e73747275637494939468068c076e6461727261799493944b0085944301629487945294284b014b024b08"
    "8694680b89438000000000000000000000000000000000000000000000f03f00000000000000000000000000000000000000"
    "0000000000000000000000e03f000000000000d0bf000000000000e03f0000000000000000000000000000f03f0000000000"
    "0000000000000000000000000000000000e03f000000000000e83f000000000000000094749462752e";
const char* const kNumpy5 =
    "80059519010000000000007d94288c096c6f6f705f6d6f6465944b018c03667073944b1e8c066672616d6573948c136e756d"
    "70792e5f636f72652e6e756d65726963948c0b5f66726f6d6275666665729493942896800000000000000000000000000000"
    "000000000000000000000000000000f03f000000000000000000000000000000000000000000000000000000000000e03f00"
    "0000000000d0bf000000000000e03f0000000000000000000000000000f03f00000000000000000000000000000000000000"
    "000000e03f000000000000e83f0000000000000000948c056e756d7079948c0564747970659493948c026638948988879452"
    "94284b038c013c944e4e4e4affffffff4affffffff4b007494624b024b0886948c01439474945294752e";
const char* const kStanding =
    "80049594020000000000007d94288c096c6f6f705f6d6f6465944b008c03667073944b1e8c066672616d6573945d94285d94"
    "28470000000000000000470000000000000000473fec28f5c28f5c2947000000000000000047000000000000000047000000"
    "0000000000470000000000000000470000000000000000470000000000000000470000000000000000470000000000000000"
    "470000000000000000473ff921fb54442d1847000000000000000047000000000000000047000000000000000047bff921fb"
    "54442d1847000000000000000047000000000000000047000000000000000047000000000000000047000000000000000047"
    "0000000000000000470000000000000000470000000000000000470000000000000000470000000000000000470000000000"
    "0000004700000000000000004700000000000000004700000000000000004700000000000000004700000000000000004700"
    "00000000000000655d9428470000000000000000470000000000000000473fec28f5c28f5c29470000000000000000470000"
    "0000000000004700000000000000004700000000000000004700000000000000004700000000000000004700000000000000"
    "00470000000000000000470000000000000000473ff921fb54442d1847000000000000000047000000000000000047000000"
    "000000000047bff921fb54442d18470000000000000000470000000000000000470000000000000000470000000000000000"
    "4700000000000000004700000000000000004700000000000000004700000000000000004700000000000000004700000000"
    "0000000047000000000000000047000000000000000047000000000000000047000000000000000047000000000000000047"
    "00000000000000004700000000000000006565752e";

TEST(MimicKit, PicklesOfListsAndArrays) {
  for (const char* hex : {kList, kNumpyFloat, kNumpy4, kNumpy5}) {
    const MotionClip clip = parse_clip(bytes_of(hex), "walk.pkl");
    EXPECT_EQ(clip.format, "mimickit");
    EXPECT_TRUE(clip.loop);
    ASSERT_EQ(clip.frame_count(), 2);
    EXPECT_NEAR(clip.times[1], 1.0 / 30, 1e-15);
    ASSERT_EQ(clip.width, 9);
    EXPECT_EQ(clip.frame(1)[0], 0.5);
    EXPECT_NEAR(clip.frame(1)[6], std::sin(0.25), 1e-15);  // half a radian about z
    EXPECT_EQ(clip.frame(0)[8], -0.25);
  }
  const Model cart = compile(parse_mjcf(
      "<mujoco><worldbody><body name='a'><freejoint name='base'/><geom size='.1'/><body><joint name='first'/>"
      "<geom size='.1'/><body><joint name='second'/><geom size='.1'/></body></body></body></worldbody></mujoco>",
      "cart.xml", "."));
  const MotionClip clip = parse_clip(bytes_of(kList), "walk.pkl");
  const ClipBinding binding = bind(cart, clip, choose_clip_mapping(cart, clip, {}));
  EXPECT_EQ(binding.driven().size(), 3u);
  const ClipState s = sample(binding, 0);
  EXPECT_NEAR(s.q[7], 0.5, 1e-12);
  EXPECT_NEAR(s.q[8], -0.25, 1e-12);
}

TEST(MimicKit, TheHumanoidIsRetargeted) {
  const MotionClip clip = parse_clip(bytes_of(kStanding), "stand.pkl");
  EXPECT_EQ(clip.format, "mimickit_humanoid");
  // The upper arms are turned by a quarter about x from a T pose: elbows are below shoulders.
  const std::vector<Vec3d> places = joint_positions(clip, 0);
  EXPECT_LT(places[9].z, places[8].z - 0.25);
  EXPECT_LT(places[16].z, places[15].z - 0.25);
  const Model model = built_in("humanoid");
  const ClipMapping mapping = choose_clip_mapping(model, clip, {});
  EXPECT_GE(confidence(mapping), 0.95);
  const Retargeted moved = retarget(model, clip, mapping);
  EXPECT_LT(moved.report.direction_error, 10 * kPi / 180) << text(moved.report);
}

TEST(MimicKit, NothingInAPickleIsRun) {
  const auto refused = [](const std::string& bytes, const std::string& words) {
    try {
      parse_clip(bytes, "bad.pkl");
      ADD_FAILURE() << words;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  const std::string start = "\x80\x04", list = bytes_of("5d71006800612e");  // ]q\0h\0a.
  refused(start + "cos\nsystem\n.", "'os'.'system', which is not run");
  refused(start + list, "referenced twice");
  refused(start + bytes_of("4b012e"), "not a MimicKit motion");
  refused(start + "N", "ends within");
  refused(start + "e.", "a mark is missing");
  refused(start + "b.", "a value is missing");
  refused(start + std::string(100, ']') + std::string(99, 'a') + ".", "nested deeper");
  const std::string good = bytes_of(kList);
  for (std::size_t n = 3; n < good.size(); ++n) EXPECT_THROW(parse_clip(good.substr(0, n), "cut.pkl"), InputError) << n;
}

}  // namespace
}  // namespace tarsus::test
