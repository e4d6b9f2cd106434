// The main job on real motions: every DeepMimic clip with the paper's gains at three steps, in double and float.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
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

/// Bound on the mean error. A drive at 1/30 s lags its target by about a step of the body's speed (m/s times s), and
/// real clips reach 3 m/s on average over bodies in flips: 0.1 m. Lost tracking shows as metres.
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
