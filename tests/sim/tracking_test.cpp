// Tracking of real motions: every DeepMimic clip with the paper's gains at three step sizes, in double and float.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tarsus/control/retarget.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/track.hpp"

namespace tarsus::test {
namespace {

const std::filesystem::path kSource = TARSUS_SOURCE_DIR;
const std::filesystem::path kShared = kSource / ".." / "shared" / "data";

std::vector<std::filesystem::path> clips_in(const std::filesystem::path& folder, const std::string& beginning) {
  std::vector<std::filesystem::path> found;
  if (!std::filesystem::is_directory(folder)) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.starts_with(beginning)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Bound on the mean error. A drive at 1/30 s lags its target by about the body's speed times a step, and real clips
/// reach a mean speed of 3 m/s over the bodies in flips: 0.1 m. If tracking fails the error is metres.
constexpr double kMeanError = 0.15;

template <class R>
void follow_clip(const Model& model, const std::filesystem::path& path, double dt) {
  const MotionClip clip = read_clip(path);
  const ClipBinding binding = bind(model, clip, choose_clip_mapping(model, clip));
  TrackOptions options;
  options.dt = dt, options.duration = std::max(3.0, 2 * binding.duration());
  const TrackReport report = track<R>(model, follow(model, binding), Drives::uniform(model), options);
  fmt::print("  {:<34} {:>6} dt 1/{:<4.0f} error mean {:.4f} m, max {:.4f} m\n", path.filename().string(),
             sizeof(R) == 8 ? "double" : "float", 1 / dt, report.error_mean, report.error_max);
  EXPECT_EQ(report.status, WorldStatus::ok) << path << " dt " << dt;
  EXPECT_FALSE(report.nan) << path << " dt " << dt;
  EXPECT_LT(report.error_mean, kMeanError) << path << " dt " << dt;
}

void follow_all(const char* model_file, const std::vector<std::filesystem::path>& clips) {
  const Model model = compile(read_model(kSource / "models" / model_file, {}));
  for (const auto& clip : clips) {
    for (const double dt : {1.0 / 30, 1.0 / 60, 1.0 / 240}) {
      follow_clip<double>(model, clip, dt);
#ifndef TARSUS_DOUBLE_ONLY
      follow_clip<float>(model, clip, dt);
#endif
    }
  }
}

/// Impulses in closed form, with steps that begin and end within the pushes.
TEST(Tracking, PushesAreImpulses) {
  const auto model_of = [](const std::string& bodies) {
    return compile(
        parse_mjcf("<mujoco><option gravity='0 0 0'/><worldbody>" + bodies + "</worldbody></mujoco>", "m.xml", "."));
  };
  const Model ball = model_of("<body name='ball' pos='0 0 1'><freejoint/><geom size='0.1' mass='2'/></body>");
  const auto run = [](const Model& model, std::vector<Push> pushes, std::vector<double>& qvel) {
    TrackOptions options;
    options.dt = 0.03, options.duration = 0.6, options.pushes = std::move(pushes);
    return track<double>(model, hold(model.qpos0), Drives::none(model), options,
                         [&](const TrackFrame& f) { qvel.assign(f.qvel.begin(), f.qvel.end()); });
  };
  std::vector<double> v;
  const TrackReport report = run(ball, {{0.1, 1, {3, 0, -4}, 0.25}, {0.2, 1, {0, 1, 0}, 0.001}}, v);
  EXPECT_NEAR(v[0], 3 * 0.25 / 2, 1e-14);
  EXPECT_NEAR(v[1], 0.001 / 2, 1e-15);
  EXPECT_NEAR(v[2], -4 * 0.25 / 2, 1e-14);
  EXPECT_NEAR(v[3] * v[3] + v[4] * v[4] + v[5] * v[5], 0, 1e-24);  // at the centre of mass: no rotation
  EXPECT_NEAR(report.push_impulse.x, 0.75, 1e-14);
  // A push that outlasts the run acts until its end.
  run(ball, {{0.5, 1, {2, 0, 0}, 100}}, v);
  EXPECT_NEAR(v[0], 0.1, 1e-14);
  // A rod of 1 kg and 1 m on a hinge at its end, pushed across its middle: ω = F t (l/2) / (m l² / 3).
  const Model rod = model_of(
      "<body name='rod'><joint type='hinge' axis='0 0 1'/><inertial pos='0.5 0 0' mass='1' diaginertia='0.001 "
      "0.08333333333333333 0.08333333333333333'/></body>");
  run(rod, {{0, 1, {0, 0.01, 0}, 0.03}}, v);
  EXPECT_NEAR(v[0], 0.01 * 0.03 * 0.5 * 3, 1e-12);
  TrackOptions bad;
  bad.pushes = {{0, 0, {1, 0, 0}, 1}};
  EXPECT_THROW(track<double>(ball, hold(ball.qpos0), Drives::none(ball), bad), ValueError);
  bad.pushes = {{0, 1, {1, 0, 0}, 0}};
  EXPECT_THROW(track<double>(ball, hold(ball.qpos0), Drives::none(ball), bad), ValueError);
}

/// Published skeletons of Biovision, Mixamo, CMU, FAIR, MASS and others, without a mapping file.
TEST(Tracking, MotionsOfOtherSkeletonsMapByThemselves) {
  if (!std::filesystem::is_directory(kShared / "bvh_more")) GTEST_SKIP() << kShared << " is not there";
  const Model model = compile(read_model(kSource / "models/humanoid.xml", {}));
  std::vector<std::filesystem::path> files = clips_in(kShared / "bvh_more", "");
  for (const char* more : {"bvh/cmu1/jumping_jacks.bvh", "11_01.amc", "subjects/02/02_01.amc", "subjects/02/02_03.amc"})
    files.push_back(kShared / "cmu_mocap" / more);
  ASSERT_GE(files.size(), 11u);
  for (const auto& file : files) {
    SCOPED_TRACE(file);
    const MotionClip clip = read_clip(file);
    const ClipMapping mapping = map_skeleton(model, clip);
    EXPECT_GE(confidence(mapping), 0.9);
    const Retargeted moved = retarget(model, clip, mapping);
    const ClipBinding binding = bind(model, moved.clip, identity_mapping(model, moved.clip));
    EXPECT_EQ(binding.driven().size(), std::size_t(model.njoint()));
    TrackOptions options;
    options.dt = 1.0 / 60, options.duration = 2;
    const TrackReport report = track<double>(model, follow(model, binding), Drives::uniform(model), options);
    fmt::print("  {:<34} confidence {:.2f}, {}\n  {:<34} error mean {:.4f} m\n", file.filename().string(),
               confidence(mapping), text(moved.report), "", report.error_mean);
    EXPECT_EQ(report.status, WorldStatus::ok);
    EXPECT_LT(report.error_mean, 0.08);
    EXPECT_LT(moved.report.slide_max, 0.02);
    EXPECT_LT(moved.report.sink_max, 0.01);
    EXPECT_LT(moved.report.direction_error, 5 * kPi / 180);
  }
}

TEST(Tracking, HumanoidFollowsEveryDeepMimicClip) {
  const auto clips = clips_in(kShared / "deepmimic" / "data" / "motions", "humanoid3d_");
  if (clips.empty()) GTEST_SKIP() << "../shared/data/deepmimic is not here";
  EXPECT_GE(clips.size(), 14u);
  follow_all("humanoid.xml", clips);
}

TEST(Tracking, DogFollowsItsDeepMimicClips) {
  const auto clips = clips_in(kShared / "deepmimic_dog", "dog3d_");
  if (clips.empty()) GTEST_SKIP() << "../shared/data/deepmimic_dog is not here";
  EXPECT_GE(clips.size(), 3u);
  follow_all("dog.xml", clips);
}

TEST(Tracking, BuiltInModelsFollowBuiltInClips) {
  for (const auto& [model, prefix] : std::vector<std::pair<const char*, std::string>>{{"humanoid.xml", "humanoid_"},
                                                                                      {"dog.xml", "dog_"},
                                                                                      {"snake36.xml", "snake36_"},
                                                                                      {"snake72.xml", "snake72_"},
                                                                                      {"snake195.xml", "snake195_"}}) {
    const auto clips = clips_in(kSource / "models" / "clips", prefix);
    EXPECT_FALSE(clips.empty()) << prefix;
    follow_all(model, clips);
  }
}

}  // namespace
}  // namespace tarsus::test
