// Motions of other skeletons on a humanoid: mapping by names or positions, tracking, and standing feet.
#include "tarsus/control/retarget.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "control/skeleton.hpp"
#include "tarsus/io/bvh.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus {
namespace {

/// The joint names hips, spine, chest, neck, head, then collar, shoulder, elbow, wrist, hip, knee, ankle, toe with %S
/// for the side.
struct Convention {
  std::string name, left, right;
  std::array<const char*, 13> joints;
};

const std::vector<Convention>& conventions() {
  static const std::vector<Convention> kAll = {
      {"Mixamo",
       "Left",
       "Right",
       {"mixamorig:Hips", "mixamorig:Spine", "mixamorig:Spine1", "mixamorig:Neck", "mixamorig:Head",
        "mixamorig:%SShoulder", "mixamorig:%SArm", "mixamorig:%SForeArm", "mixamorig:%SHand", "mixamorig:%SUpLeg",
        "mixamorig:%SLeg", "mixamorig:%SFoot", "mixamorig:%SToeBase"}},
      {"CMU",
       "Left",
       "Right",
       {"Hips", "LowerBack", "Spine", "Neck", "Head", "%SShoulder", "%SArm", "%SForeArm", "%SHand", "%SUpLeg", "%SLeg",
        "%SFoot", "%SToeBase"}},
      {"ASF",
       "l",
       "r",
       {"root", "lowerback", "thorax", "lowerneck", "head", "%Sclavicle", "%Shumerus", "%Sradius", "%Swrist", "%Sfemur",
        "%Stibia", "%Sfoot", "%Stoes"}},
      {"DAZ",
       "l",
       "r",
       {"hip", "abdomen", "chest", "neck", "head", "%SCollar", "%SShldr", "%SForeArm", "%SHand", "%SThigh", "%SShin",
        "%SFoot", "%SToe"}},
      {"LAFAN1",
       "Left",
       "Right",
       {"Hips", "Spine", "Spine2", "Neck", "Head", "%SShoulder", "%SArm", "%SForeArm", "%SHand", "%SUpLeg", "%SLeg",
        "%SFoot", "%SToe"}},
      {"SMPL",
       "L",
       "R",
       {"Pelvis", "Spine1", "Spine3", "Neck", "Head", "%S_Collar", "%S_Shoulder", "%S_Elbow", "%S_Wrist", "%S_Hip",
        "%S_Knee", "%S_Ankle", "%S_Foot"}},
      {"Blender",
       "L",
       "R",
       {"hips", "spine", "chest", "neck", "head", "shoulder.%S", "upper_arm.%S", "forearm.%S", "hand.%S", "thigh.%S",
        "shin.%S", "foot.%S", "toe.%S"}},
      {"Unreal",
       "l",
       "r",
       {"pelvis", "spine_01", "spine_03", "neck_01", "head", "clavicle_%S", "upperarm_%S", "lowerarm_%S", "hand_%S",
        "thigh_%S", "calf_%S", "foot_%S", "ball_%S"}},
      {"MVN",
       "Left",
       "Right",
       {"Hips", "Chest", "Chest4", "Neck", "Head", "%SCollar", "%SShoulder", "%SElbow", "%SWrist", "%SHip", "%SKnee",
        "%SAnkle", "%SToe"}},
      {"Biped",
       "L",
       "R",
       {"Bip01 Pelvis", "Bip01 Spine", "Bip01 Spine1", "Bip01 Neck", "Bip01 Head", "Bip01 %S Clavicle",
        "Bip01 %S UpperArm", "Bip01 %S Forearm", "Bip01 %S Hand", "Bip01 %S Thigh", "Bip01 %S Calf", "Bip01 %S Foot",
        "Bip01 %S Toe0"}},
      {"nameless",
       "a",
       "b",
       {"j0", "j1", "j2", "j3", "j4", "j5%S", "j6%S", "j7%S", "j8%S", "j9%S", "j10%S", "j11%S", "j12%S"}}};
  return kAll;
}

/// The pose of a figure at a time: angles in degrees about x, y, z (left, up, forward).
struct Moment {
  Vec3d hips{0, 0, 0};                   // [cm]
  std::array<Vec3d, 2> ankle{};          // left, right [cm]: in the plane of its hip
  std::array<double, 2> arm{}, elbow{};  // forward from hanging down
  double bow = 0, turn = 0;              // of the trunk
  double sway = 0;                       // of the shins, to the left
};

constexpr double kThigh = 40, kShin = 41, kHipWidth = 9, kAnkle = 8;

std::string bvh_text(const Convention& c, double unit, const std::function<Moment(double)>& motion, double seconds) {
  const auto name = [&](int joint, int side) {
    std::string text = c.joints[std::size_t(joint)];
    const std::size_t at = text.find("%S");
    return at == std::string::npos ? text : text.replace(at, 2, side > 0 ? c.left : c.right);
  };
  std::string head, channels = "Zrotation Xrotation Yrotation";
  const auto open = [&](const std::string& joint, double x, double y, double z) {
    const bool root = head.empty();
    head += fmt::format("{} {}\n{{\nOFFSET {} {} {}\nCHANNELS {}{}\n", root ? "HIERARCHY\nROOT" : "JOINT", joint,
                        x * unit, y * unit, z * unit, root ? "6 Xposition Yposition Zposition " : "3 ", channels);
  };
  const auto end = [&](double x, double y, double z) {
    head += fmt::format("End Site\n{{\nOFFSET {} {} {}\n}}\n", x * unit, y * unit, z * unit);
  };
  open(name(0, 0), 0, 0, 0);
  open(name(1, 0), 0, 10, 0), open(name(2, 0), 0, 15, 0);
  open(name(3, 0), 0, 25, 0), open(name(4, 0), 0, 10, 1), end(0, 18, 0), head += "}\n}\n";
  for (const int side : {1, -1}) {
    open(name(5, side), 3 * side, 20, 0), open(name(6, side), 14 * side, 0, 0), open(name(7, side), 28 * side, 0, 0);
    open(name(8, side), 25 * side, 0, 0), end(18 * side, 0, 0), head += "}\n}\n}\n}\n";
  }
  head += "}\n}\n";
  for (const int side : {1, -1}) {
    open(name(9, side), kHipWidth * side, -3, 0), open(name(10, side), 0, -kThigh, 0),
        open(name(11, side), 0, -kShin, 0);
    open(name(12, side), 0, -6, 13), end(0, 0, 6), head += "}\n}\n}\n}\n";
  }
  head += "}\n";
  const int frames = int(seconds * 30) + 1;
  std::string out = head + fmt::format("MOTION\nFrames: {}\nFrame Time: {}\n", frames, 1.0 / 30);
  for (int i = 0; i < frames; ++i) {
    const Moment m = motion(i / 30.0);
    out += fmt::format("{} {} {} 0 0 0", m.hips.x * unit, m.hips.y * unit, m.hips.z * unit);
    out += fmt::format(" 0 {} 0 0 {} {} 0 0 0 0 0 0", m.bow / 2, m.bow / 2, m.turn);  // spine, chest, neck, head
    for (std::size_t s = 0; s < 2; ++s) {  // arms hang down from a T pose, then swing about y
      const double down = s == 0 ? -80 : 80, side = s == 0 ? -1 : 1;
      out += fmt::format(" 0 0 0 {} 0 {} 0 0 {} 0 0 0", down, side * m.arm[s], side * m.elbow[s]);
    }
    for (std::size_t s = 0; s < 2; ++s) {
      const double y = m.ankle[s].y - (m.hips.y - 3), z = m.ankle[s].z - m.hips.z;
      const double reach = std::min(std::hypot(y, z), kThigh + kShin - 0.01);
      const double bend = kPi - std::acos((kThigh * kThigh + kShin * kShin - reach * reach) / (2 * kThigh * kShin));
      const double thigh = std::atan2(-z, -y) - std::asin(kShin * std::sin(bend) / reach);
      const double degrees = 180 / kPi;
      out += fmt::format(" 0 {} 0 {} {} 0 0 {} 0 0 0 0", thigh * degrees, m.sway, bend * degrees,
                         -(thigh + bend) * degrees);
    }
    out += "\n";
  }
  return out;
}

/// Steps of 0.5 s and 60 cm. The feet are flat and do not move during stance.
Moment walk(double t) {
  Moment m;
  m.hips = {0, 86, 60 * t};
  for (std::size_t s = 0; s < 2; ++s) {
    const double phase = t + (s == 0 ? 0.0 : 0.5), whole = std::floor(phase), part = phase - whole;
    const double start = 60 * (whole - (s == 0 ? 0.0 : 0.5));
    const double swing = std::max(0.0, (part - 0.5) / 0.5), ease = swing * swing * (3 - 2 * swing);
    m.ankle[s] = {0, kAnkle + 8 * std::sin(kPi * swing), start + 15 + 60 * ease};
    m.arm[s] = 25 * std::sin(2 * kPi * t + (s == 0 ? kPi : 0)), m.elbow[s] = 20;
  }
  return m;
}
Moment stand(double) {
  Moment m;
  m.hips = {0, 90, 0};
  m.ankle[0] = m.ankle[1] = {0, kAnkle, 0};
  return m;
}
Moment squat(double t) {
  Moment m = stand(t);
  m.hips.y -= 18 * (1 - std::cos(2 * kPi * t)) / 2;
  m.hips.z -= 6 * (1 - std::cos(2 * kPi * t)) / 2;
  m.arm = {40, 40};
  return m;
}
Moment wave(double t) {
  Moment m = stand(t);
  m.arm = {90 + 30 * std::sin(4 * kPi * t), 10}, m.elbow = {40, 15};
  return m;
}
Moment bow(double t) {
  Moment m = stand(t);
  m.bow = 25 * (1 - std::cos(2 * kPi * t)), m.turn = 20 * std::sin(2 * kPi * t);
  return m;
}
/// The legs stretch completely, and the knees then move slightly sideways, as in captured motions.
Moment stretch(double t) {
  Moment m = squat(t);
  m.hips.y += 3, m.sway = 4 * std::sin(6 * kPi * t);
  return m;
}
Moment march(double t) {
  Moment m = walk(t);
  m.hips.z = 0;
  for (Vec3d& ankle : m.ankle) ankle.z = 0;
  return m;
}

struct Motion {
  const char* name;
  Moment (*at)(double);
};
constexpr Motion kMotions[] = {{"walk", walk}, {"squat", squat}, {"wave", wave}, {"bow", bow}, {"march", march}};

const Model& humanoid() {
  static const Model kModel = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml"));
  return kModel;
}

TEST(Retarget, FiftyFilesOfElevenConventionsMapByThemselvesAndTrack) {
  int files = 0, good = 0;
  for (const Convention& c : conventions()) {
    for (const Motion& motion : kMotions) {
      const std::string what = c.name + " " + motion.name;
      const double unit = files % 3 == 0 ? 1 : files % 3 == 1 ? 0.01 : 1 / 2.54;  // cm, m, inch
      const std::string bvh = bvh_text(c, unit, motion.at, 2);
      if (const char* folder = std::getenv("TARSUS_BVH_OUT"))  // for bench/retarget_report.py
        std::ofstream(std::filesystem::path(folder) / (c.name + "_" + motion.name + ".bvh")) << bvh;
      const MotionClip clip = parse_bvh(bvh, what + ".bvh");
      ++files;
      const ClipMapping mapping = choose_clip_mapping(humanoid(), clip, {});
      ASSERT_FALSE(mapping.points.empty()) << what;
      const Retargeted moved = retarget(humanoid(), clip, mapping);
      EXPECT_GE(confidence(mapping), c.name == "nameless" ? 0.4 : 0.95) << what;
      EXPECT_LT(moved.report.slide_max, 0.02) << what << ": " << text(moved.report);
      EXPECT_LT(moved.report.sink_max, 0.01) << what;
      EXPECT_LT(moved.report.direction_error, 12 * kPi / 180) << what << ": " << text(moved.report);
      EXPECT_GE(moved.report.stances, 1) << what;
      const ClipBinding binding = bind(humanoid(), clip, mapping);
      EXPECT_GE(binding.driven().size(), 11u) << what;
      TrackOptions options;
      options.dt = 1.0 / 30, options.duration = 2;
      const TrackReport report =
          track<double>(humanoid(), follow(humanoid(), binding), Drives::uniform(humanoid()), options, {});
      EXPECT_EQ(report.status, WorldStatus::ok) << what;
      EXPECT_LT(report.error_mean, 0.08) << what;
      good += report.error_mean < 0.08 && moved.report.slide_max < 0.02;
    }
  }
  EXPECT_GE(files, 50);
  EXPECT_GE(good, 0.8 * files);
}

/// The largest angle by which a joint turns between consecutive frames.
double largest_turn(const MotionClip& clip) {
  double most = 0;
  for (const ClipChannel& c : clip.channels) {
    for (int i = 1; i < clip.frame_count(); ++i) {
      const double *a = clip.frame(i - 1) + c.column, *b = clip.frame(i) + c.column;
      if (c.kind == ChannelKind::angle) most = std::max(most, std::abs(a[0] - b[0]));
      if (c.kind == ChannelKind::rotation)
        most = std::max(most, 2 * std::acos(std::min(1.0, a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3])));
    }
  }
  return most;
}

TEST(Retarget, StraightLegsDoNotTurnAboutThemselves) {
  const MotionClip clip = parse_bvh(bvh_text(conventions()[0], 1, stretch, 2), "stretch.bvh");
  const Retargeted moved = retarget(humanoid(), clip, map_skeleton(humanoid(), clip));
  EXPECT_LT(largest_turn(moved.clip), 1.25 * largest_turn(clip)) << text(moved.report);
  EXPECT_LT(moved.report.direction_error, kPi / 180) << text(moved.report);
}

/// Limbs that pass through the straight pose, feet that hang down, bodies that lie on the ground.
TEST(Retarget, JointsTurnAsFarAsTheirSourcesDo) {
  const std::filesystem::path shared = TARSUS_SOURCE_DIR "/../shared/data";
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"bvh_more", "deepmimic/data/motions"}) {
    if (!std::filesystem::is_directory(shared / folder)) GTEST_SKIP() << "no shared data";
    for (const auto& entry : std::filesystem::directory_iterator(shared / folder)) files.push_back(entry.path());
  }
  for (const char* more : {"11_01.amc", "subjects/02/02_01.amc", "subjects/02/02_03.amc"})
    files.push_back(shared / "cmu_mocap" / more);
  int tried = 0;
  for (const auto& file : files) {
    const std::string ending = file.extension().string();
    if (ending != ".bvh" && ending != ".amc" && file.filename().string().rfind("humanoid3d", 0) != 0) continue;
    SCOPED_TRACE(file);
    const MotionClip clip = read_clip(file);
    const Retargeted moved = retarget(humanoid(), clip, map_skeleton(humanoid(), clip));
    EXPECT_LE(largest_turn(moved.clip), 1.25 * largest_turn(clip));
    EXPECT_LT(moved.report.direction_error, 3 * kPi / 180) << text(moved.report);
    EXPECT_LT(moved.report.slide_max, 0.02) << text(moved.report);
    EXPECT_LT(moved.report.sink_max, 0.01) << text(moved.report);
    ++tried;
  }
  EXPECT_GE(tried, 24);
}

/// The same skeleton under another name. Quantities that the joint positions do not determine, the pelvis's pitch and
/// the twist of the limbs, come out as in the source.
TEST(Retarget, DeepMimicsMotionsComeOutAsTheMappingFilePutsThem) {
  const std::filesystem::path folder = TARSUS_SOURCE_DIR "/../shared/data/deepmimic/data/motions";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no shared data";
  for (const char* name : {"walk", "run", "backflip", "crawl", "dance_a", "getup_facedown"}) {
    SCOPED_TRACE(name);
    const MotionClip clip = read_clip(folder / (std::string("humanoid3d_") + name + ".txt"));
    const Retargeted moved = retarget(humanoid(), clip, map_skeleton(humanoid(), clip));
    const ClipBinding ours = bind(humanoid(), moved.clip, identity_mapping(humanoid(), moved.clip));
    const ClipBinding theirs =
        bind(humanoid(), clip, read_clip_mapping(TARSUS_SOURCE_DIR "/models/mappings/humanoid3d.json"));
    std::vector<double> a(std::size_t(humanoid().nq)), b(a), v(std::size_t(humanoid().nv));
    double sum = 0;
    int count = 0;
    for (double t = 0; t < clip.duration(); t += 0.05) {
      ours.sample(t, a, {}), theirs.sample(t, b, {});
      difference(humanoid(), a, b, v);
      for (const char* joint : {"root", "left_hip", "right_hip", "left_shoulder", "right_shoulder"}) {
        const Joint& j = humanoid().joints[std::size_t(humanoid().joint_id(joint))];
        const double* w = v.data() + j.qvel + (moves_freely(j.type) ? 3 : 0);
        sum += norm(Vec3d{w[0], w[1], w[2]}), ++count;
      }
    }
    EXPECT_LT(sum / count, 8 * kPi / 180);
  }
}

TEST(Retarget, LeftStaysLeftAndForwardForward) {
  const MotionClip clip = parse_bvh(bvh_text(conventions()[0], 1, wave, 1), "wave.bvh");
  const ClipBinding binding = bind(humanoid(), clip, choose_clip_mapping(humanoid(), clip, {}));
  Data data(humanoid());
  std::vector<double> qpos(std::size_t(humanoid().nq));
  binding.sample(0.1, qpos, {});
  kinematics(humanoid(), data, std::span<const double>(qpos));
  const auto at = [&](const char* body) { return body_pose(humanoid(), data, humanoid().body_id(body)).p; };
  const Vec3d left = at("left_thigh") - at("right_thigh"), reach = at("left_forearm") - at("left_upper_arm");
  EXPECT_GT(left.y, 0.1);   // facing x
  EXPECT_GT(reach.x, 0.2);  // the left arm is the raised one
  EXPECT_LT((at("right_forearm") - at("right_upper_arm")).z, -0.2);
}

TEST(Retarget, OnlyBvhFilesAreAskedWhereTheirUpIs) {
  MotionClip clip = parse_bvh(bvh_text(conventions()[0], 1, stand, 0.1), "stand.bvh");
  clip.up = {0, 0, 1};
  FoundPoints legs;
  for (std::size_t i = 0; i < clip.skeleton.size(); ++i) {
    const std::string& name = clip.skeleton[i].name;
    const std::string side = name.find("Left") != std::string::npos ? "left_" : "right_";
    if (name.ends_with("UpLeg")) legs[side + "hip"] = {int(i), false, 1};
    if (name.ends_with("Foot")) legs[side + "ankle"] = {int(i), false, 1};
  }
  EXPECT_EQ(detect_up(clip, legs).y, 1);
  clip.format = "humanoid3d";  // the format defines up, also for a lying body
  EXPECT_EQ(detect_up(clip, legs).z, 1);
}

TEST(Retarget, MappingsAreWrittenAndReadBack) {
  const MotionClip clip = parse_bvh(bvh_text(conventions()[3], 1, squat, 0.2), "squat.bvh");
  const ClipMapping mapping = map_skeleton(humanoid(), clip);
  const ClipMapping again = parse_clip_mapping(write_clip_mapping(mapping), "again.json");
  ASSERT_EQ(again.points.size(), mapping.points.size());
  EXPECT_EQ(again.format, "bvh");
  for (std::size_t i = 0; i < again.points.size(); ++i) {
    EXPECT_EQ(again.points[i].from, mapping.points[i].from);
    EXPECT_EQ(again.points[i].body, mapping.points[i].body);
    EXPECT_EQ(again.points[i].tip, mapping.points[i].tip);
  }
  EXPECT_TRUE(fits(again, humanoid(), clip));
  EXPECT_THROW(parse_clip_mapping(R"({"format": "tarsus-clip-mapping", "version": 1,
                                      "points": {"tail": {"from": "a", "body": "b"}}})",
                                  "bad.json"),
               InputError);
}

TEST(Retarget, WhatHasNoLegsIsRefusedWithItsJoints) {
  const MotionClip snake = parse_bvh(
      "HIERARCHY\nROOT base\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Xrotation Yrotation\nJOINT link\n{\nOFFSET 0 1 0\n"
      "CHANNELS 3 Zrotation Xrotation Yrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n}\n}\nMOTION\nFrames: 1\nFrame Time: 1\n"
      "0 0 0 0 0 0\n",
      "snake.bvh");
  try {
    choose_clip_mapping(humanoid(), snake, {});
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("no two legs"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("base, link"), std::string::npos) << e.what();
  }
}

TEST(Retarget, MappingsThatCannotBeSayWhy) {
  const MotionClip clip = parse_bvh(bvh_text(conventions()[3], 1, squat, 0.1), "squat.bvh");
  const auto expect = [&](const char* text, const std::function<void(ClipMapping&)>& spoil) {
    ClipMapping mapping = map_skeleton(humanoid(), clip);
    mapping.file = "mine.json";
    spoil(mapping);
    try {
      retarget(humanoid(), clip, mapping);
      FAIL() << text;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    }
  };
  const auto point = [](ClipMapping& m, const char* name) {
    return std::find_if(m.points.begin(), m.points.end(), [&](const PointMapping& p) { return p.point == name; });
  };
  expect("no joint 'thigh'; its joints: hip, abdomen", [&](ClipMapping& m) { point(m, "left_hip")->from = "thigh"; });
  expect("are both joint 'lThigh'", [&](ClipMapping& m) { point(m, "left_knee")->from = "lThigh"; });
  expect("there is no left_knee", [&](ClipMapping& m) { m.points.erase(point(m, "left_knee")); });
  expect("mine.json", [&](ClipMapping& m) { m.points.erase(point(m, "left_knee")); });
}

TEST(Retarget, NamesOfManyPrograms) {
  const auto expect = [](const char* name, int side, const char* core) {
    const PlainName plain = plain_name(name);
    EXPECT_EQ(plain.side, side) << name;
    EXPECT_EQ(plain.core, core) << name;
  };
  expect("mixamorig:LeftUpLeg", 1, "upleg");
  expect("rShldrBend", -1, "shldr");
  expect("lfemur", 1, "femur");
  expect("upperarm_l", 1, "upperarm");
  expect("thigh.R", -1, "thigh");
  expect("Bip01 L Toe0", 1, "toe");
  expect("Character1_RightForeArm", -1, "forearm");
  expect("LHipJoint", 1, "hip");
  expect("left_hip_yaw_link", 1, "hip");
  expect("head", 0, "head");
  expect("radius", 0, "radius");
}

TEST(Retarget, DeepMimicsHumanoidOnOthers) {
  const std::filesystem::path motion = TARSUS_SOURCE_DIR "/../shared/data/deepmimic/data/motions/humanoid3d_walk.txt";
  const std::filesystem::path file = TARSUS_SOURCE_DIR "/../shared/data/menagerie/unitree_g1/g1.xml";
  if (!std::filesystem::exists(motion) || !std::filesystem::exists(file)) GTEST_SKIP() << "no shared data";
  const Model g1 = compile(read_mjcf(file));
  const MotionClip clip = read_clip(motion);
  const Retargeted moved = retarget(g1, clip, map_skeleton(g1, clip));
  EXPECT_LT(moved.report.slide_max, 0.02) << text(moved.report);
  EXPECT_LT(moved.report.direction_error, 20 * kPi / 180) << text(moved.report);
}

/// G1's shoulders are three hinges in series, which a cartwheel and dances bring into alignment. Solved frame by frame
/// the hinges turn at up to 76, 62 and 65 rad/s, and the bones are no nearer to the source's.
TEST(Retarget, HingesInARowDoNotJump) {
  const std::filesystem::path folder = TARSUS_SOURCE_DIR "/../shared/data/deepmimic/data/motions";
  const std::filesystem::path file = TARSUS_SOURCE_DIR "/../shared/data/menagerie/unitree_g1/g1.xml";
  if (!std::filesystem::is_directory(folder) || !std::filesystem::exists(file)) GTEST_SKIP() << "no shared data";
  const Model g1 = compile(read_mjcf(file));
  for (const char* name : {"cartwheel", "dance_a", "dance_spin"}) {
    const MotionClip clip = read_clip(folder / (std::string("humanoid3d_") + name + ".txt"));
    const Retargeted moved = retarget(g1, clip, map_skeleton(g1, clip));
    const MotionClip& out = moved.clip;
    double fastest = 0;
    for (const ClipChannel& c : out.channels) {
      if (c.kind != ChannelKind::angle) continue;
      const auto at = [&](std::size_t frame) {
        return out.values[frame * std::size_t(out.width) + std::size_t(c.column)];
      };
      for (std::size_t i = 1; i < out.times.size(); ++i)
        fastest = std::max(fastest, std::abs(at(i) - at(i - 1)) / (out.times[i] - out.times[i - 1]));
    }
    std::printf("%s: %.1f rad/s at most; %s\n", name, fastest, text(moved.report).c_str());
    EXPECT_LT(fastest, 25) << name;
    EXPECT_LT(moved.report.direction_error, 8.5 * kPi / 180) << name;
    EXPECT_LT(moved.report.slide_max, 0.005) << name;
    EXPECT_LT(moved.report.sink_max, 0.002) << name;
  }
}

}  // namespace
}  // namespace tarsus
