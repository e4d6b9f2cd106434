// Mapping files, this project's clip format, and the built-in clips on the built-in models.
#include "tarsus/io/clip_mapping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "support/clip_checks.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/deepmimic.hpp"

namespace tarsus::test {
namespace {

const char* const kBuiltIn[][2] = {{"humanoid", "humanoid_walk"},
                                   {"humanoid", "humanoid_run"},
                                   {"humanoid", "humanoid_cartwheel"},
                                   {"humanoid", "humanoid_backflip"},
                                   {"dog", "dog_pace"},
                                   {"dog", "dog_trot"},
                                   {"dog", "dog_canter"},
                                   {"snake36", "snake36_slither"},
                                   {"snake72", "snake72_slither"},
                                   {"snake195", "snake195_slither"}};

MotionClip built_in_clip(const std::string& name) {
  return read_clip(source_folder() / "models/clips" / (name + ".json"));
}
ClipBinding built_in_binding(const Model& model, const std::string& name) {
  const MotionClip clip = built_in_clip(name);
  return bind(model, clip, choose_clip_mapping(model, clip));
}

TEST(BuiltIn, ModelsHaveThePapersSizes) {
  const struct {
    const char* name;
    int nv, depth;
    double least_mass, most_mass;
  } table[] = {{"humanoid", 34, 13, 45, 75},    {"dog", 72, 24, 20, 40},       {"snake36", 36, 36, 1, 20},
               {"snake72", 72, 72, 1, 20},      {"snake195", 195, 195, 1, 20}, {"pendulum", 1, 1, 1, 1},
               {"double_pendulum", 2, 2, 2, 2}, {"cart_pole", 2, 2, 1, 2},     {"quadruped", 18, 9, 10, 15}};
  for (const auto& row : table) {
    const Model model = built_in(row.name);
    EXPECT_EQ(model.nv, row.nv) << row.name;
    EXPECT_EQ(model.depth, row.depth) << row.name;
    EXPECT_GE(model.total_mass(), row.least_mass - 1e-9) << row.name;
    EXPECT_LE(model.total_mass(), row.most_mass + 1e-9) << row.name;
    for (const Diagnostic& d : model.spec.diagnostics) EXPECT_TRUE(d.other_law) << d.text();
  }
}

TEST(BuiltIn, EveryClipBindsAndSamples) {
  for (const auto& [model_name, clip_name] : kBuiltIn) {
    SCOPED_TRACE(clip_name);
    const Model model = built_in(model_name);
    const ClipBinding binding = built_in_binding(model, clip_name);
    EXPECT_EQ(binding.driven().size(), std::size_t(model.njoint()));
    EXPECT_TRUE(binding.loop());
    for (const Diagnostic& d : binding.diagnostics()) ADD_FAILURE() << d.text();  // built-in clips need no repair
    double worst = 0, speed = 0;
    for (double t = 0.0007; t < 2.5 * binding.duration(); t += 0.013) {
      const ClipState s = sample(binding, t);
      expect_sound(model, s);
      for (double v : s.v) speed = std::max(speed, std::abs(v));
      worst = std::max(worst, velocity_error(model, binding, t, 1e-6));
    }
    EXPECT_LT(worst, 1e-8 + 1e-6 * 300 * speed);  // as in deepmimic_test
    EXPECT_LT(speed, 50) << "rad/s; a real dog's canter reaches 42";
    EXPECT_LT(file_size(source_folder() / "models/clips" / (std::string(clip_name) + ".json")), 100'000u);
  }
}

/// A contact point must not slide while it bears weight. Records the largest displacement between samples below
/// `height`.
struct Ground {
  double lowest = 1, slip = 0, bearing = 0;
  Vec3d last{};
  bool bore = false;

  void see(const Vec3d& p, double height, double dt) {
    const bool bears = p.z < height;
    if (bears && bore) slip = std::max(slip, std::hypot(p.x - last.x, p.y - last.y) / dt);
    bearing += bears ? dt : 0;
    lowest = std::min(lowest, p.z), last = p, bore = bears;
  }
};

void check_gait(const char* model_name, const char* clip_name, const std::vector<std::string>& feet, double forward,
                double least_duty, double most_duty) {
  SCOPED_TRACE(clip_name);
  const Model model = built_in(model_name);
  const ClipBinding binding = built_in_binding(model, clip_name);
  Figure figure(model);
  const double dt = 1.0 / 480;
  double slip = 0, lowest = 1;
  for (const std::string& foot : feet) {
    Ground ground;
    // The middle of the sole, which is near the floor only while the foot stands flat.
    const Vec3d sole{0.02, 0, foot.find("paw") != std::string::npos ? -0.04 : -0.05};
    for (double t = 0; t < binding.duration(); t += dt) {
      figure.pose(sample(binding, t));
      lowest = std::min(lowest, figure.lowest_corner(foot).z);
      ground.see(figure.point(foot, sole), 0.003, dt);
    }
    slip = std::max(slip, ground.slip);
    EXPECT_GT(ground.bearing / binding.duration(), least_duty) << foot;
    EXPECT_LT(ground.bearing / binding.duration(), most_duty) << foot;
  }
  const double speed = (sample(binding, binding.duration()).q[0] - sample(binding, 0).q[0]) / binding.duration();
  fmt::print("{:16} {:.2f} m/s, lowest foot corner {:.4f} m, fastest slip of a standing foot {:.3f} m/s\n", clip_name,
             speed, lowest, slip);
  EXPECT_NEAR(speed, forward, 0.05 * forward);
  EXPECT_GT(lowest, -0.01);
  EXPECT_LT(slip, 0.15 * forward);
}

TEST(BuiltIn, FeetStandOnTheFloorAndDoNotSlide) {
  const std::vector<std::string> feet = {"left_foot", "right_foot"};
  const std::vector<std::string> paws = {"left_hind_paw", "right_hind_paw", "left_front_paw", "right_front_paw"};
  check_gait("humanoid", "humanoid_walk", feet, 1.15, 0.2, 0.6);
  check_gait("humanoid", "humanoid_run", feet, 2.9, 0.05, 0.35);
  check_gait("dog", "dog_pace", paws, 1.2, 0.2, 0.55);
  check_gait("dog", "dog_trot", paws, 1.87, 0.2, 0.5);
  check_gait("dog", "dog_canter", paws, 2.5, 0.15, 0.4);
}

TEST(BuiltIn, WalkersAlternateTheirLegs) {
  const Model model = built_in("humanoid");
  for (const char* name : {"humanoid_walk", "humanoid_run"}) {
    const ClipBinding binding = built_in_binding(model, name);
    Figure figure(model);
    // Half a cycle later the left foot is at the right foot's position, relative to the pelvis and mirrored.
    for (double t = 0; t < binding.duration(); t += 0.02) {
      figure.pose(sample(binding, t));
      const Vec3d left = figure.point("left_foot", {0, 0, 0}) - figure.point("pelvis", {0, 0, 0});
      figure.pose(sample(binding, t + 0.5 * binding.duration()));
      const Vec3d right = figure.point("right_foot", {0, 0, 0}) - figure.point("pelvis", {0, 0, 0});
      EXPECT_NEAR(norm(left - Vec3d{right.x, -right.y, right.z}), 0, 0.02) << name << " t = " << t;
    }
  }
}

TEST(BuiltIn, TheBackflipIsAFreeFlight) {
  const Model model = built_in("humanoid");
  const ClipBinding binding = built_in_binding(model, "humanoid_backflip");
  Data data(model);
  const auto at = [&](double t) {
    const ClipState s = sample(binding, t);
    kinematics<double>(model, data, s.q, s.v);
    return momentum<double>(model, data);
  };
  // From 0.84 to 1.47 s the centre of mass falls with g, by second differences over 0.1 s, and the angular momentum is
  // constant.
  double turned = 0;
  for (double t = 0.95; t < 1.36; t += 0.025) {
    const Momentum now = at(t);
    const Vec3d a = (at(t + 0.1).com + at(t - 0.1).com - now.com * 2.0) * (1 / 0.01);
    EXPECT_NEAR(a.z, -9.81, 0.4) << t;
    EXPECT_NEAR(a.x, 0, 0.4) << t;
    EXPECT_NEAR(at(t).angular.y, -29.9, 2) << t;
  }
  // The ground force, averaged over 1/30 s, in units of the weight. It pushes, and hardly pulls where the interpolation
  // rounds off a corner. The landing's impulse changes the velocity by 1.2 m/s.
  for (double t = 0.05; t + 0.08 < binding.duration(); t += 0.01) {
    const Momentum before = at(t), after = at(t + 1.0 / 30);
    const Vec3d push = (after.linear - before.linear) * (30 / (9.81 * before.mass)) + Vec3d{0, 0, 1};
    EXPECT_GT(push.z, -0.6) << t;
    EXPECT_LT(push.z, t < 1.4 ? 3.6 : 5) << t;
    EXPECT_LT(std::abs(push.x), 0.9) << t;
    EXPECT_LT(std::abs(after.angular.y - before.angular.y), 12) << t;
  }
  for (double t = 0; t < binding.duration(); t += 0.001) turned += 0.001 * sample(binding, t).v[4];
  EXPECT_NEAR(turned, -2 * kPi, 0.01) << "one turn, backward";
  Figure figure(model);
  figure.pose(sample(binding, 1.17));
  EXPECT_LT(figure.body("pelvis").R.zz, -0.8) << "upside down in mid-air";
  EXPECT_GT(figure.lowest_corner("left_foot").z, 0.5);
}

TEST(BuiltIn, TheCartwheelPutsBothHandsDown) {
  const Model model = built_in("humanoid");
  const ClipBinding binding = built_in_binding(model, "humanoid_cartwheel");
  Figure figure(model);
  double left = 1, right = 1, head = 1, inverted = 1, foot = 1;
  for (double t = 0; t < binding.duration(); t += 0.005) {
    figure.pose(sample(binding, t));
    // The hands' lowest points: spheres of 0.035 m.
    left = std::min(left, figure.point("left_forearm", {0, 0, -0.26}).z - 0.035);
    right = std::min(right, figure.point("right_forearm", {0, 0, -0.26}).z - 0.035);
    head = std::min(head, figure.point("head", {0.01, 0, 0.175}).z - 0.1);
    foot = std::min({foot, figure.lowest_corner("left_foot").z, figure.lowest_corner("right_foot").z});
    inverted = std::min(inverted, figure.body("torso").R.zz);
  }
  EXPECT_NEAR(left, 0, 0.01);
  EXPECT_NEAR(right, 0, 0.01);
  EXPECT_GT(head, 0.05);
  EXPECT_GT(foot, -0.02);
  EXPECT_LT(inverted, -0.95);
  const double aside = sample(binding, binding.duration()).q[1] - sample(binding, 0).q[1];
  EXPECT_NEAR(aside, 2.16, 0.01);
}

TEST(BuiltIn, TheSnakeFollowsItsHead) {
  // Without slip each link follows the path of the head's frame with a delay. The discretisation is a link's length.
  for (const char* name : {"snake36", "snake72", "snake195"}) {
    const Model model = built_in(name);
    const ClipBinding binding = built_in_binding(model, std::string(name) + "_slither");
    Figure figure(model);
    std::vector<Vec3d> path;
    for (double t = -3 * binding.duration(); t < binding.duration(); t += 0.002) {
      const ClipState s = sample(binding, t);
      path.push_back({s.q[0], s.q[1], s.q[2]});
    }
    figure.pose(sample(binding, 0.5));
    double worst = 0;
    for (int b = 1; b < model.nbody(); ++b) {
      const Vec3d p = figure.point(model.bodies[b].name, {0, 0, 0});
      double nearest = 1e9;
      for (const Vec3d& q : path) nearest = std::min(nearest, norm(p - q));
      worst = std::max(worst, nearest);
    }
    EXPECT_LT(worst, 0.03) << name << ": within its own radius of its track";
  }
}

TEST(ClipFile, WritesWhatItReads) {
  const MotionClip clip = built_in_clip("humanoid_walk");
  const MotionClip again = parse_clip(write_clip(clip), "again.json");
  EXPECT_EQ(again.times, clip.times);
  EXPECT_EQ(again.loop, clip.loop);
  ASSERT_EQ(again.values.size(), clip.values.size());
  // Reading normalises once more: one rounding error.
  for (std::size_t i = 0; i < clip.values.size(); ++i) EXPECT_NEAR(again.values[i], clip.values[i], 4e-16);
}

TEST(ClipFile, WritesWhatCanBeReadAgain) {
  // Numbers of one digit do not grow: no blanks, and no list of times.
  std::string text =
      "{\"format\": \"tarsus-clip\", \"version\": 1, \"frame_time\": "
      "0.1,\"channels\":[{\"name\":\"a\",\"kind\":\"angle\"},"
      "{\"name\":\"b\",\"kind\":\"angle\"}],\"frames\":[[0,1]";
  for (int i = 0; i < 1000; ++i) text += ",[0,1]";
  text += "]}";
  const MotionClip small = parse_clip(text, "small.json");
  const std::string written = write_clip(small);
  EXPECT_LT(written.size(), text.size() + 1001 + 300);  // a line for each frame, and defaults that are spelt out
  EXPECT_EQ(parse_clip(written, "again.json").times, small.times);
  EXPECT_EQ(parse_clip(written, "again.json").values, small.values);

  const auto refused = [](const MotionClip& clip, const std::string& words) {
    try {
      write_clip(clip);
      ADD_FAILURE() << "written";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  MotionClip large;  // 3,600,000 numbers of 20 characters
  for (int k = 0; k < 1000; ++k) large.add_channel("a" + std::to_string(k), ChannelKind::angle);
  for (int i = 0; i < 3600; ++i) large.times.push_back(i);
  large.values.assign(3'600'000, 0.12345678901234568);
  refused(large, "could not be read again: 7");  // more than 70,000,000 bytes
  MotionClip twice = small;
  twice.channels[1].name = "a";
  refused(twice, "could not be read again: two channels are called 'a'");
}

TEST(ClipFile, AWrittenClipBindsAsItsFile) {
  // The dog's mapping copies channels of other names; five of them have names of its joints.
  const auto file = shared_data() / "deepmimic_dog/data/motions/dog3d_trot.txt";
  if (!exists(file)) GTEST_SKIP() << file << " is not there";
  const Model dog = built_in("dog");
  const MotionClip clip = read_clip(file), again = parse_clip(write_clip(clip), "again.json");
  EXPECT_EQ(again.format, "dog3d");
  const ClipBinding one = bind(dog, clip, choose_clip_mapping(dog, clip)),
                    two = bind(dog, again, choose_clip_mapping(dog, again));
  EXPECT_EQ(two.driven().size(), std::size_t(dog.njoint()));
  for (double t = 0; t < clip.duration(); t += 0.01) {
    const ClipState a = sample(one, t), b = sample(two, t);
    for (std::size_t k = 0; k < a.q.size(); ++k) EXPECT_NEAR(a.q[k], b.q[k], 1e-14);  // quaternions to rounding
  }
}

TEST(ClipFile, BadInput) {
  const auto refuses = [](const std::string& text, const std::string& part) {
    SCOPED_TRACE(part);
    try {
      parse_clip(text, "bad.json");
      ADD_FAILURE() << "accepted";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      EXPECT_GT(e.diagnostics()[0].where.line, 0);
    }
  };
  const std::string a = "{\"format\": \"tarsus-clip\", \"version\": 1, ",
                    c = "\"channels\": [{\"name\": \"h\", \"kind\": \"angle\"}], ";
  EXPECT_EQ(parse_clip(a + c + "\"frame_time\": 1, \"frames\": [[1], [2]]}", "good").frame_count(), 2);
  refuses("{\"format\": \"tarsus-clip\", " + c + "\"frame_time\": 1, \"frames\": [[1]]}", "version 1 is expected");
  refuses(a + "\"frame_time\": 1, \"frames\": [[1]]}", "there is no \"channels\"");
  refuses(a + c + "\"frame_time\": 1}", "there is no \"frames\"");
  refuses(a + c + "\"frame_time\": 1, \"frames\": []}", "no frames");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1], [1, 2]]}", "1 numbers are expected");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1], [\"x\"]]}", "1 numbers are expected");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1], [null]]}", "not an array with null (frames[1])");
  refuses(a + c + "\"frame_time\": 0, \"frames\": [[1]]}", "must be positive");
  refuses(a + c + "\"frames\": [[1]]}", "exactly one of \"frame_time\" and \"times\"");
  refuses(a + c + "\"times\": [0, 1], \"frames\": [[1]]}", "array of 1 numbers");
  refuses(a + c + "\"times\": [0, 0], \"frames\": [[1], [2]]}", "increase");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1]], \"up\": \"w\"}", "is not an axis");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1]], \"up\": \"x\"}", "perpendicular");
  refuses(a + c + "\"frame_time\": 1, \"frames\": [[1]], \"Loop\": true}", "unknown key 'Loop'; known keys: ");
  refuses(a + "\"channels\": [{\"name\": \"h\", \"kind\": \"angel\"}], \"frame_time\": 1, \"frames\": [[1]]}",
          "'angel' is not a channel's kind");
  refuses(a + "\"channels\": [{\"kind\": \"angle\"}], \"frame_time\": 1, \"frames\": [[1]]}", "no name");
  refuses(a + "\"channels\": [], \"frame_time\": 1, \"frames\": [[1]]}", "expected");
}

TEST(ClipMapping, ErrorsNameFileAndPath) {
  const std::string head = "{\"format\": \"tarsus-clip-mapping\", \"version\": 1,\n";
  const auto refuses = [&](const std::string& rest, const std::string& part, const std::string& path) {
    SCOPED_TRACE(rest);
    try {
      parse_clip_mapping(head + rest, "map.json");
      ADD_FAILURE() << "accepted";
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      EXPECT_EQ(e.diagnostics()[0].where.file, "map.json");
      EXPECT_EQ(e.diagnostics()[0].where.element, path);
      EXPECT_EQ(e.diagnostics()[0].where.line, path.empty() ? 1 : 2);
    }
  };
  refuses("\"joints\": {\"knee\": {\"from\": 3}}}", "a string or an array of strings", "joints/knee/from");
  refuses("\"joints\": {\"knee\": {\"from\": \"a\", \"axsi\": [0, 0, 1]}}}", "unknown key 'axsi'", "joints/knee/axsi");
  refuses("\"joints\": {\"knee\": {}}}", "needs \"from\"", "joints/knee");
  refuses("\"joints\": {\"knee\": 1}}", "an object is expected", "joints/knee");
  refuses("\"joints\": {\"knee\": {\"from\": \"a\", \"axis\": [0, 0, 0]}}}", "must have a positive, finite length",
          "joints/knee/axis");
  refuses("\"joints\": {\"knee\": {\"from\": \"a\", \"pre\": {\"degrees\": 3}}}}", "a rotation is", "joints/knee/pre");
  refuses("\"joints\": {\"knee\": {\"from\": \"a\", \"pre\": {\"quaternion\": [1, 1, 0, 0]}}}}", "its length is",
          "joints/knee/pre/quaternion");
  refuses("\"joints\": {\"knee\": {\"from\": \"a\", \"sign\": 0}}}", "the sign is 0", "joints/knee/sign");
  refuses("\"joints\": [{}, \"a\"]}", "an object is expected", "joints");
  refuses("\"joints\": []}", "an object is expected", "joints");
  refuses("\"joints\": {}, \"source\": {\"up\": \"y\"}}", "must be given together", "source");
  refuses("\"joints\": {}, \"scale\": 0}", "the scale is 0", "scale");
  refuses("\"joints\": {}, \"scale\": -1}", "the scale is -1", "scale");
  refuses("\"jonts\": {}}", "needs \"joints\"", "");
}

TEST(ClipMapping, AnUnknownSkeletonNeedsOnlyAMappingFile) {
  // Five columns of an unknown clip, for a pendulum's hinge: the mapping defines the layout.
  const ClipMapping mapping = parse_clip_mapping(
      "{\"format\": \"tarsus-clip-mapping\", \"version\": 1, \"source\": {\"up\": \"+z\", \"forward\": \"+x\", "
      "\"layout\": "
      "[{\"name\": \"arm\", \"kind\": \"rotation\"}]}, \"joints\": {\"hinge\": {\"from\": \"arm\", \"sign\": -1}}}",
      "pendulum.json");
  const MotionClip clip =
      parse_clip("{\"Loop\": \"none\", \"Frames\": [[0.5, 1, 0, 0, 0], [0, 0.8, 0, 0.6, 0]]}", "arm.txt", &mapping);
  const Model model = built_in("pendulum");
  const ClipBinding binding = bind(model, clip, mapping);
  EXPECT_NEAR(sample(binding, 0.5).q[0], -2 * std::asin(0.6), 1e-12);
  // Without a mapping the error lists both sides.
  try {
    choose_clip_mapping(model, clip);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("channels: arm; joints: hinge"), std::string::npos) << e.what();
  }
}

TEST(ClipMapping, ShippedOnesAreFoundByTheClipsChannels) {
  const Model humanoid = built_in("humanoid"), dog = built_in("dog");
  const auto clip_of = [](const char* format) {
    MotionClip clip;
    clip.format = format, clip.channels = deepmimic_layout(format);
    return clip;
  };
  EXPECT_EQ(choose_clip_mapping(humanoid, clip_of("humanoid3d")).name, "DeepMimic humanoid3d to the built-in humanoid");
  EXPECT_EQ(choose_clip_mapping(dog, clip_of("dog3d")).name, "DeepMimic dog3d to the built-in dog");
  EXPECT_EQ(choose_clip_mapping(humanoid, built_in_clip("humanoid_walk")).name, "identity");
  EXPECT_THROW(choose_clip_mapping(humanoid, clip_of("quadruped12")), InputError);
}

TEST(ClipMapping, OneEqualNameIsAMatchUnlessItIsRoot) {
  const Model humanoid = built_in("humanoid");
  const auto clip_of = [](std::initializer_list<const char*> channels) {
    MotionClip clip;
    clip.format = "tarsus";
    for (const char* name : channels) clip.add_channel(name, ChannelKind::rotation);
    return clip;
  };
  EXPECT_EQ(choose_clip_mapping(humanoid, clip_of({"left_knee"}), {}).joints.size(), 1u);
  EXPECT_THROW(choose_clip_mapping(humanoid, clip_of({"root"}), {}), InputError);
  EXPECT_EQ(choose_clip_mapping(humanoid, clip_of({"root", "neck"}), {}).joints.size(), 2u);
}

TEST(ClipMapping, AFileThatFitsIsPreferredToAFewEqualNames) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "own.json")
      << R"({"format": "tarsus-clip-mapping", "version": 1, "name": "own", "joints": {"left_knee": {"from": "knee_l"}}})";
  const Model humanoid = built_in("humanoid");
  MotionClip clip;
  clip.format = "tarsus";
  for (const char* name : {"neck", "chest", "knee_l"}) clip.add_channel(name, ChannelKind::rotation);
  EXPECT_EQ(choose_clip_mapping(humanoid, clip, {folder.path()}).name, "own");
  for (const char* name : {"root", "left_hip", "right_hip", "left_ankle"})
    clip.add_channel(name, ChannelKind::rotation);
  EXPECT_EQ(choose_clip_mapping(humanoid, clip, {folder.path()}).name, "own") << "6 of 13";
  clip.add_channel("right_ankle", ChannelKind::rotation);
  EXPECT_EQ(choose_clip_mapping(humanoid, clip, {folder.path()}).name, "identity") << "7 of 13";
}

}  // namespace
}  // namespace tarsus::test
