// Clips: cleaning, binding, and velocities that are the derivatives of the positions, also across a loop's seam.
#include "tarsus/control/clip.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/clip_checks.hpp"

namespace tarsus::test {
namespace {

/// A free root, a ball, a hinge about (0, -1, 0), a slide, and a hinge that nothing drives.
Model small_model() {
  ModelSpec spec;
  spec.name = "small";
  const auto add = [&](const char* name, int parent, JointType type, Vec3d axis) {
    BodySpec body{std::string(name) + "_body"};
    body.parent = parent;
    body.position = {0.1, 0, 0.2};
    JointSpec joint;
    joint.name = name, joint.type = type, joint.axis = axis;
    body.joints.push_back(joint);
    body.inertial = InertialSpec{1, {0, 0, 0.1}, {0.1, 0, 0, 0.1, 0, 0.1}, {}};
    spec.bodies.push_back(body);
  };
  add("root", 0, JointType::free, {0, 0, 1});
  add("ball", 1, JointType::ball, {0, 0, 1});
  add("hinge", 2, JointType::hinge, {0, -1, 0});
  add("slide", 3, JointType::slide, {1, 0, 0});
  add("idle", 4, JointType::hinge, {0, 0, 1});
  return compile(spec);
}

void add_channel(MotionClip& clip, const char* name, ChannelKind kind) {
  ClipChannel channel;
  channel.name = name, channel.kind = kind, channel.column = clip.width;
  clip.channels.push_back(channel);
  clip.width += width(kind);
}
Location nowhere(int frame, int column) { return {"test", frame + 1, column + 1, {}}; }

void push(MotionClip& clip, std::initializer_list<double> numbers) { clip.values.insert(clip.values.end(), numbers); }
void push(MotionClip& clip, const Quatd& q) { push(clip, {q.w, q.x, q.y, q.z}); }

/// Channels for small_model() with uneven frame times: a smooth motion whose end differs from its beginning.
MotionClip moving_clip(bool loop, int frames = 24, double length = 1.7) {
  MotionClip clip;
  clip.name = "moving", clip.format = "tarsus", clip.loop = loop;
  add_channel(clip, "root.position", ChannelKind::position), add_channel(clip, "root", ChannelKind::rotation);
  add_channel(clip, "ball", ChannelKind::rotation), add_channel(clip, "hinge", ChannelKind::angle);
  add_channel(clip, "slide", ChannelKind::translation);
  for (int i = 0; i < frames; ++i) {
    const double x = double(i) / (frames - 1), t = length * (x + 0.03 * std::sin(2 * kPi * x));
    clip.times.push_back(t);
    push(clip, {1.3 * t, 0.2 * std::sin(3 * t), 0.9 + 0.05 * std::cos(4 * t)});
    push(clip, exp_map({0.1 * std::sin(2 * t), 0.2 * std::sin(3 * t), 0.4 * t}));
    push(clip, exp_map({0.8 * std::sin(3 * t), 0.5 * std::cos(2 * t), 0.3 * t}) * exp_map({0, 0.4, 0.1 * t}));
    push(clip, {0.7 * std::sin(5 * t), 0.1 * std::cos(t)});
  }
  clean_clip(clip, nowhere);
  return clip;
}

ClipBinding bind_same(const Model& model, const MotionClip& clip) {
  return bind(model, clip, identity_mapping(model, clip));
}

TEST(Clip, VelocityIsTheDerivativeOfPosition) {
  const Model model = small_model();
  std::mt19937 random(1);
  for (bool loop : {false, true}) {
    const ClipBinding binding = bind_same(model, moving_clip(loop));
    const double total = binding.duration();
    std::uniform_real_distribution<double> anywhere(loop ? -3 * total : 1e-3, loop ? 7 * total : total - 1e-3);
    for (int i = 0; i < 500; ++i) {
      const double t = anywhere(random);
      // Central differences: h² x'''/6 with x''' under 5e3 here (and its jumps at frames), plus rounding 1e-15/h.
      EXPECT_LT(velocity_error(model, binding, t), 2e-6 + 1e-7) << "t = " << t << " loop " << loop;
      expect_sound(model, sample(binding, t));
    }
  }
}

TEST(Clip, VelocityHasNoJumpAtFramesAndAtTheSeam) {
  const Model model = small_model();
  const MotionClip clip = moving_clip(true);
  const ClipBinding binding = bind_same(model, clip);
  constexpr double kStep = 1e-9;
  for (double knot : clip.times) {
    for (double cycle : {0.0, 1.0, 5.0}) {
      const double t = knot + cycle * binding.duration();
      const ClipState a = sample(binding, t - kStep), b = sample(binding, t + kStep);
      for (int i = 0; i < model.nv; ++i) EXPECT_NEAR(a.v[i], b.v[i], 1e-5) << "t = " << t << " v" << i;
      for (int i = 0; i < model.nq; ++i)
        EXPECT_NEAR(std::abs(a.q[i]), std::abs(b.q[i]), 1e-7) << "t = " << t << " q" << i;
    }
  }
}

TEST(Clip, IntegratingTheVelocityGivesThePositions) {
  const Model model = small_model();
  const ClipBinding binding = bind_same(model, moving_clip(true));
  // The midpoint rule over two cycles: halving the step must divide the error by at least four.
  double last = 0;
  for (int n : {2000, 4000}) {
    const double h = 2 * binding.duration() / n;
    Data data(model);
    std::vector<double> q = sample(binding, 0).q, d(model.nv);
    for (int i = 0; i < n; ++i) integrate<double>(model, data, q, sample(binding, (i + 0.5) * h).v, h, q);
    difference(model, sample(binding, 2 * binding.duration()).q, q, d);
    double error = 0;
    for (double x : d) error = std::max(error, std::abs(x));
    EXPECT_LT(error, 1e-3);
    if (last > 0) {
      EXPECT_GT(last / error, 3.5);
    }
    last = error;
  }
}

template <class R>
void expect_lanes_as_alone(const ClipBinding& binding, double close) {
  const int width = lanes<R>(isa_level());
  ClipLanes<R> clip(binding, width);
  std::mt19937 random(3);
  const double total = binding.duration();
  AlignedVector<R> q(std::size_t(width) * binding.nq()), v(std::size_t(width) * binding.nv()), alone = q;
  std::vector<double> t(width);
  for (int i = 0; i < 100; ++i) {
    for (double& x : t) x = std::uniform_real_distribution<double>(-3 * total, 7 * total)(random);
    t[0] = 0, t[1] = total;
    clip.sample(t, q, v);
    clip.sample(t, alone, {});
    ASSERT_EQ(q, alone);
    for (int lane = 0; lane < width; ++lane) {
      const ClipState s = sample(binding, t[lane]);
      for (int k = 0; k < binding.nq(); ++k) ASSERT_NEAR(q[k * width + lane], s.q[k], close) << "t = " << t[lane];
      for (int k = 0; k < binding.nv(); ++k) ASSERT_NEAR(v[k * width + lane], s.v[k], 4 * close) << "t = " << t[lane];
    }
  }
}

TEST(Clip, WorldsInLanesAreAsAlone) {
  const Model model = small_model();
  for (bool loop : {false, true}) {
    const ClipBinding binding = bind_same(model, moving_clip(loop));
    expect_lanes_as_alone<double>(binding, 0);
#ifndef TARSUS_DOUBLE_ONLY
    expect_lanes_as_alone<float>(binding, 1e-5);  // 20 rounding errors of numbers up to 10
#endif
  }
}

TEST(Clip, FramesAreMet) {
  const Model model = small_model();
  const MotionClip clip = moving_clip(false);
  const ClipBinding binding = bind_same(model, clip);
  for (int i = 0; i < clip.frame_count(); ++i) {
    const ClipState s = sample(binding, clip.times[i]);
    for (int k = 0; k < clip.width; ++k) EXPECT_NEAR(s.q[k], clip.frame(i)[k], 1e-13);
  }
}

TEST(Clip, InterpolationConverges) {
  // Halving the distance between frames: third order in position (Hermite with second-order slopes), second in
  // velocity.
  const Model model = small_model();
  const auto errors = [&](int frames) {
    const ClipBinding fine = bind_same(model, moving_clip(false, 3201)),
                      coarse = bind_same(model, moving_clip(false, frames));
    double position = 0, velocity = 0;
    for (double t = 0.3; t < 1.4; t += 0.0037) {
      const ClipState a = sample(fine, t), b = sample(coarse, t);
      std::vector<double> d(model.nv);
      difference(model, a.q, b.q, d);
      for (int i = 0; i < model.nv; ++i) {
        position = std::max(position, std::abs(d[i])), velocity = std::max(velocity, std::abs(a.v[i] - b.v[i]));
      }
    }
    return std::pair(position, velocity);
  };
  const auto [p1, v1] = errors(41);
  const auto [p2, v2] = errors(81);
  EXPECT_GT(std::log2(p1 / p2), 2.7) << p1 << " " << p2;
  EXPECT_GT(std::log2(v1 / v2), 1.8) << v1 << " " << v2;
}

TEST(Clip, LoopMovesTheRootOnWithHeading) {
  const Model model = small_model();
  const ClipBinding binding = bind_same(model, moving_clip(true));
  const double total = binding.duration();
  // The cycle's displacement, from two passes through the same phase…
  const auto root = [&](double t) { return sample(binding, t).q; };
  const auto heading = [](const std::vector<double>& q) { return 2 * std::atan2(q[6], q[3]); };
  for (double phase : {0.0, 0.31, 1.2}) {
    const std::vector<double> a = root(phase), b = root(phase + total);
    const Quatd qa{a[3], a[4], a[5], a[6]}, qb{b[3], b[4], b[5], b[6]};
    const Vec3d turn = log_map(qb * conjugate(qa));
    EXPECT_NEAR(turn.x, 0, 1e-12);
    EXPECT_NEAR(turn.y, 0, 1e-12);
    EXPECT_GT(turn.z, 0.3);
    EXPECT_NEAR(a[2], b[2], 1e-12) << "height does not add up";
    for (int k = 7; k < model.nq; ++k) EXPECT_NEAR(a[k], b[k], 1e-12);
    // …repeated: cycle k is cycle 0 displaced k times, by plain iteration.
    const Quatd qz = exp_map({0, 0, turn.z});
    const Vec3d pa{a[0], a[1], a[2]}, pb{b[0], b[1], b[2]};
    const Vec3d shift = pb - rotate(qz, pa);
    Vec3d p = pa;
    for (int k = 1; k <= 50; ++k) {
      p = rotate(qz, p) + shift;
      const std::vector<double> c = root(phase + k * total);
      EXPECT_NEAR(norm(Vec3d{c[0], c[1], c[2]} - p), 0, 1e-9);
    }
  }
  EXPECT_GT(heading(root(total)), 0.3);
}

TEST(Clip, LoopsAsOftenAsOneLikes) {
  const Model model = small_model();
  MotionClip clip = moving_clip(true);
  clip.cycle_heading = false;
  const ClipBinding binding = bind_same(model, clip);
  const double step = sample(binding, binding.duration()).q[0] - sample(binding, 0).q[0];
  const ClipState far = sample(binding, 1e6 * binding.duration() + 0.5);
  expect_sound(model, far);
  EXPECT_NEAR(far.q[0], 1e6 * step + sample(binding, 0.5).q[0], 1e-4);  // 1e-10 s of rounding at 1e6 s, 1 m/s
  EXPECT_THROW(sample(binding, std::nan("")), ValueError);
  EXPECT_THROW(sample(binding, kInfinity), ValueError);
}

TEST(Clip, WithoutLoopTheEndsHold) {
  const Model model = small_model();
  const ClipBinding binding = bind_same(model, moving_clip(false));
  for (auto [outside, end] : {std::pair(-5.0, 0.0), std::pair(binding.duration() + 5, binding.duration())}) {
    const ClipState a = sample(binding, outside), b = sample(binding, end);
    EXPECT_EQ(a.q, b.q);
    for (double v : a.v) EXPECT_EQ(v, 0);
  }
}

TEST(Clip, UndrivenJointsStayAndAreNamed) {
  Model model = small_model();
  model.qpos0[13] = 0.25;
  const ClipBinding binding = bind_same(model, moving_clip(true));
  const ClipState s = sample(binding, 0.4);
  EXPECT_EQ(s.q[13], 0.25);
  EXPECT_EQ(s.v[model.nv - 1], 0);
  bool named = false;
  for (const Diagnostic& d : binding.diagnostics()) named |= d.message.find("stay at rest: idle") != std::string::npos;
  EXPECT_TRUE(named);
}

TEST(Clip, OneFrameIsAPose) {
  const Model model = small_model();
  for (bool loop : {false, true}) {
    MotionClip clip = moving_clip(loop);
    clip.times.resize(1), clip.values.resize(clip.width);
    const ClipBinding binding = bind_same(model, clip);
    const ClipState s = sample(binding, 12.3);
    for (int k = 0; k < clip.width; ++k) EXPECT_NEAR(s.q[k], clip.frame(0)[k], 1e-13);
    for (double v : s.v) EXPECT_EQ(v, 0);
  }
}

TEST(Clip, CleaningNormalisesAndKeepsOneSign) {
  MotionClip clip;
  clip.name = "dirty";
  add_channel(clip, "ball", ChannelKind::rotation);
  const double scales[] = {1, 0.58, 1.42, 1, 1};
  for (int i = 0; i < 5; ++i) {
    const Quatd q = exp_map({0.1 * i, 0, 0});
    const double s = scales[i] * (i >= 2 && i < 4 ? -1 : 1);
    clip.times.push_back(0.1 * i);
    push(clip, {s * q.w, s * q.x, s * q.y, s * q.z});
  }
  clean_clip(clip, nowhere);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(clip.frame(i)[0], std::cos(0.05 * i), 1e-15);
    EXPECT_NEAR(clip.frame(i)[1], std::sin(0.05 * i), 1e-15);
  }
  ASSERT_EQ(clip.diagnostics.size(), 2u);
  EXPECT_NE(clip.diagnostics[0].message.find("2 of 5"), std::string::npos) << clip.diagnostics[0].text();
  EXPECT_NE(clip.diagnostics[0].message.find("0.42"), std::string::npos) << clip.diagnostics[0].text();
  EXPECT_NE(clip.diagnostics[1].message.find("2 times, first in frame 2"), std::string::npos)
      << clip.diagnostics[1].text();
}

TEST(Clip, AnAngleThatJumpsIsSaidAndKept) {
  // A hinge that turns at 4 rad/s, written in one turn: at 50 frames a second it jumps at 0.785 s and 2.356 s.
  for (const bool in_one_turn : {true, false}) {
    MotionClip clip;
    clip.name = "turning";
    add_channel(clip, "root", ChannelKind::rotation), add_channel(clip, "hinge", ChannelKind::angle);
    for (int i = 0; i < 150; ++i) {
      clip.times.push_back(0.02 * i);
      push(clip, Quatd{1, 0, 0, 0}), push(clip, {in_one_turn ? std::remainder(0.08 * i, 2 * kPi) : 0.08 * i});
    }
    const std::vector<double> before = clip.values;
    clean_clip(clip, nowhere);
    EXPECT_EQ(clip.values, before);
    ASSERT_EQ(clip.diagnostics.size(), in_one_turn ? 1u : 0u);
    if (!in_one_turn) continue;
    const std::string said = clip.diagnostics[0].text();
    EXPECT_EQ(clip.diagnostics[0].severity, Severity::warning);
    EXPECT_NE(said.find("test:41:5"), std::string::npos) << said;  // frame 40, at 3.2 rad
    EXPECT_NE(said.find("angle 'hinge' turns by -6.2 rad from frame 39 to frame 40 (the first of 2 jumps)"),
              std::string::npos)
        << said;
  }
}

TEST(Clip, CleaningRefusesWhatIsNoClip) {
  const MotionClip good = moving_clip(false);
  const auto refuses = [&](auto spoil) {
    MotionClip clip = good;
    spoil(clip);
    EXPECT_THROW(clean_clip(clip, nowhere), Error);
  };
  refuses([](MotionClip& c) { c.times.clear(), c.values.clear(); });
  refuses([](MotionClip& c) { c.times[3] = c.times[2]; });
  refuses([](MotionClip& c) { c.times[3] = std::nan(""); });
  refuses([](MotionClip& c) { c.times[0] = 1; });
  refuses([](MotionClip& c) { c.values[20] = kInfinity; });
  refuses([](MotionClip& c) { c.values.pop_back(); });
  refuses([](MotionClip& c) { std::fill_n(&c.values[c.width + 3], 4, 0.0); });
  refuses([](MotionClip& c) { c.values[c.width + 3] = 1e200; });
  refuses([](MotionClip& c) { c.up = c.forward; });
  refuses([](MotionClip& c) { c.channels[3].name = c.channels[2].name; });
}

TEST(Clip, TwistOfABallDrivesAHinge) {
  const Model model = small_model();
  MotionClip clip;
  clip.name = "twist", clip.format = "tarsus";
  add_channel(clip, "source", ChannelKind::rotation);
  // Three turns about the hinge's axis (0, -1, 0) and a tilt across it, which is dropped and reported.
  for (int i = 0; i <= 60; ++i) {
    clip.times.push_back(0.1 * i);
    push(clip, exp_map({0, -2 * kPi * 3 * i / 60.0, 0}) * exp_map({0.2, 0, 0}));
  }
  clean_clip(clip, nowhere);
  ClipMapping mapping;
  JointMapping item;
  item.joint = "hinge", item.from = {"source"}, item.sign = 1, item.offset = 0.1;
  mapping.joints = {item};
  const ClipBinding binding = bind(model, clip, mapping);
  for (double t : {0.0, 0.5, 3.3, 6.0}) EXPECT_NEAR(sample(binding, t).q[11], 2 * kPi * 3 * t / 6 + 0.1, 1e-9);
  bool told = false;
  for (const Diagnostic& d : binding.diagnostics())
    told |= d.message.find("0.2 rad about other axes are lost") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(Clip, AxesPreAndPostAndAnglesOfSeveralChannels) {
  const Model model = small_model();
  MotionClip clip;
  clip.name = "axes", clip.format = "tarsus", clip.up = {0, 1, 0}, clip.forward = {1, 0, 0};  // z to the right
  add_channel(clip, "a", ChannelKind::angle), add_channel(clip, "b", ChannelKind::angle);
  add_channel(clip, "p", ChannelKind::position);
  clip.channels[0].axis = {0, 0, 1}, clip.channels[1].axis = {1, 0, 0};
  clip.times = {0, 1};
  push(clip, {0.3, 0.5, 1, 2, 3}), push(clip, {0.4, 0.6, 1, 2, 3});
  clean_clip(clip, nowhere);
  ClipMapping mapping;
  mapping.scale = 2, mapping.offset = {0, 0, 0.5};
  JointMapping root, ball, hinge;
  root.joint = "root", root.position = "p";
  ball.joint = "ball", ball.from = {"a", "b"}, ball.pre = exp_map({0.1, 0, 0}), ball.post = exp_map({0, 0, 0.2});
  hinge.joint = "hinge", hinge.from = {"a"};
  mapping.joints = {root, ball, hinge};
  const ClipState s = sample(bind(model, clip, mapping), 0);
  EXPECT_NEAR(norm(Vec3d{s.q[0], s.q[1], s.q[2]} - Vec3d{2, -6, 4.5}), 0, 1e-12);
  // Source z is target -y, source x is target x.
  const Quatd expected = exp_map({0.1, 0, 0}) * exp_map({0, -0.3, 0}) * exp_map({0.5, 0, 0}) * exp_map({0, 0, 0.2});
  const Quatd got{s.q[7], s.q[8], s.q[9], s.q[10]};
  EXPECT_NEAR(norm(log_map(conjugate(expected) * got)), 0, 1e-12);
  EXPECT_NEAR(s.q[11], 0.3, 1e-12);  // the hinge's axis is -y too
}

TEST(Clip, AWheelRollsOnOverTheSeam) {
  const Model model = small_model();
  MotionClip clip;
  clip.name = "wheel", clip.format = "tarsus", clip.loop = true;
  add_channel(clip, "hinge", ChannelKind::angle);
  for (int i = 0; i <= 20; ++i) clip.times.push_back(0.05 * i), push(clip, {4 * kPi * i / 20.0});
  clean_clip(clip, nowhere);
  const ClipBinding binding = bind_same(model, clip);
  for (double t : {0.2, 1.0, 1.7, 33.4}) {
    EXPECT_NEAR(sample(binding, t).q[11], 4 * kPi * t, 1e-9);
    EXPECT_NEAR(sample(binding, t).v[9], 4 * kPi, 1e-9);
  }
}

TEST(Clip, BindingNamesWhatIsWrong) {
  const Model model = small_model();
  const MotionClip clip = moving_clip(false);
  const auto message = [&](const std::function<void(ClipMapping&)>& spoil) {
    ClipMapping mapping = identity_mapping(model, clip);
    spoil(mapping);
    try {
      bind(model, clip, mapping);
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  std::string text = message([](ClipMapping& m) { m.joints[1].joint = "bal"; });
  EXPECT_TRUE(has(text, "no joint 'bal'") && has(text, "root, ball, hinge, slide, idle")) << text;
  text = message([](ClipMapping& m) { m.joints[1].from = {"chest"}; });
  EXPECT_TRUE(has(text, "channel 'chest'") && has(text, "root.position, root, ball")) << text;
  text = message([](ClipMapping& m) { m.joints[2].joint = "ball"; });
  EXPECT_TRUE(has(text, "mapped twice")) << text;
  text = message([](ClipMapping& m) { m.joints[1].from = {"root.position"}; });
  EXPECT_TRUE(has(text, "is a position")) << text;
  text = message([](ClipMapping& m) { m.joints[1].from = {"hinge"}; });
  EXPECT_TRUE(has(text, "axis of angle channel 'hinge' is not known")) << text;
  text = message([](ClipMapping& m) { m.joints[3].from = {"ball"}; });
  EXPECT_TRUE(has(text, "slide joint 'slide': channel 'ball' is a rotation")) << text;
  text = message([](ClipMapping& m) { m.joints[1].position = "root.position"; });
  EXPECT_TRUE(has(text, "only a free joint has a position")) << text;
  text = message([](ClipMapping& m) { m.joints.clear(); });
  EXPECT_TRUE(has(text, "drives no joint")) << text;
  text = message([](ClipMapping& m) { m.format = "dog3d"; });
  EXPECT_TRUE(has(text, "for clips of format 'dog3d'")) << text;
  // All errors are reported, not only the first.
  text = message([](ClipMapping& m) { m.joints[1].joint = "x", m.joints[2].joint = "y"; });
  EXPECT_TRUE(has(text, "'x'") && has(text, "'y'")) << text;
  EXPECT_THROW(bind_same(model, clip).sample(0, std::span<double>(), {}), ShapeError);
}

}  // namespace
}  // namespace tarsus::test
