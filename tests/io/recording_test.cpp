// Recordings: reading returns what was written, and refused input is named.
#include "tarsus/io/recording.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/random_model.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/io/npz.hpp"

namespace tarsus::test {
namespace {

struct Frames {
  std::vector<double> time, qpos, qvel, target;
};

Frames make_run(const Model& model, int frames, unsigned seed) {
  Random random(seed);
  Frames run;
  const auto append = [](std::vector<double>& to, const std::vector<double>& row) {
    to.insert(to.end(), row.begin(), row.end());
  };
  for (int i = 0; i < frames; ++i) {
    run.time.push_back(i / 30.0);
    append(run.qpos, random_qpos(random, model));
    append(run.qvel, random_vector(random, model.nv));
    append(run.target, random_qpos(random, model));
  }
  return run;
}

void write(const std::filesystem::path& file, const Model& model, const Frames& run, bool targets,
           const MetaPairs& extra = {}) {
  RecordingWriter writer(file, model);
  const auto row = [](const std::vector<double>& v, int i, int n) {
    return std::span(v).subspan(std::size_t(i) * n, std::size_t(n));
  };
  for (int i = 0; i < int(run.time.size()); ++i) {
    writer.frame(run.time[i], row(run.qpos, i, model.nq), row(run.qvel, i, model.nv),
                 targets ? row(run.target, i, model.nq) : std::span<const double>());
  }
  EXPECT_EQ(writer.frame_count(), int(run.time.size()));
  writer.finish(extra);
}

TEST(Recording, ReadsBackToTheBit) {
  const TemporaryFolder folder;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Model model = random_tree(seed);
    const int frames = seed == 0 ? 5000 : int(seed) - 1;  // several chunks, none, one, some
    const Frames run = make_run(model, frames, seed + 1000);
    const auto file = folder.path() / "run.npz";
    const bool targets = seed % 2 == 0;
    write(file, model, run, targets);
    const Recording r = read_recording(file, &model);
    EXPECT_EQ(r.time, run.time) << "seed " << seed;
    EXPECT_EQ(r.qpos, run.qpos) << "seed " << seed;
    EXPECT_EQ(r.qvel, run.qvel) << "seed " << seed;
    EXPECT_EQ(r.target, targets ? run.target : std::vector<double>{}) << "seed " << seed;
    EXPECT_EQ(r.frame_count(), frames);
    EXPECT_EQ(r.model, model.name);
    ASSERT_EQ(r.joints.size(), model.joints.size());
    for (std::size_t i = 0; i < r.joints.size(); ++i) EXPECT_EQ(r.joints[i], model.joints[i].name);
    EXPECT_TRUE(r.unused.empty());
    if (frames < 3) continue;
    EXPECT_NEAR(r.dt(), 1.0 / 30, 1e-12);
    EXPECT_EQ(r.target_at(2).empty(), !targets);
    if (targets && model.nq > 0) {
      EXPECT_EQ(r.target_at(2)[0], run.target[std::size_t(2) * model.nq]);
    }
  }
}

TEST(Recording, KeepsWhatTheProgramSays) {
  const TemporaryFolder folder;
  const Model model = random_tree(3);
  const auto file = folder.path() / "run.npz";
  write(file, model, make_run(model, 3, 1), false,
        {{"command", "run \"ü\" \xff"}, {"dt", 0.125}, {"seed", std::int64_t(7)}, {"stiff", true}});
  const Recording r = read_recording(file);
  const auto find = [&](const std::string& key) -> MetaValue {
    for (const auto& [k, v] : r.extra) {
      if (k == key) return v;
    }
    return "missing";
  };
  EXPECT_EQ(find("command"), MetaValue("run \"ü\" \xEF\xBF\xBD")) << "a byte that is no UTF-8 becomes U+FFFD";
  EXPECT_EQ(find("dt"), MetaValue(0.125));
  EXPECT_EQ(find("seed"), MetaValue(7.0));
  EXPECT_EQ(find("stiff"), MetaValue(true));
  EXPECT_EQ(nlohmann::json::parse(r.meta).at("frames"), 3);
}

TEST(Recording, WriterRefusesBadFrames) {
  const TemporaryFolder folder;
  const Model model = random_tree(1);
  ASSERT_GT(model.nv, 0);
  std::vector<double> q = model.qpos0, v(model.nv), nan_q = q, nan_v = v;
  nan_q.back() = std::nan(""), nan_v.back() = kInfinity;
  RecordingWriter w(folder.path() / "run.npz", model);
  EXPECT_THROW(w.frame(kInfinity, q, v), ValueError);
  w.frame(0, q, v);
  EXPECT_THROW(w.frame(1, v, v), ShapeError);
  EXPECT_THROW(w.frame(1, q, q), ShapeError);
  EXPECT_THROW(w.frame(1, q, v, v), ShapeError);
  EXPECT_THROW(w.frame(0, q, v), ValueError) << "time stands still";
  EXPECT_THROW(w.frame(1, nan_q, v), ValueError);
  EXPECT_THROW(w.frame(1, q, nan_v), ValueError);
  EXPECT_THROW(w.frame(1, q, v, q), ValueError) << "a target, but not in the first frame";
  w.frame(1, q, v);
  EXPECT_THROW(w.finish({{"nq", 3.0}}), ValueError);
  w.finish();
  EXPECT_EQ(read_recording(folder.path() / "run.npz", &model).frame_count(), 2);
  EXPECT_THROW(RecordingWriter(folder.path() / "no" / "run.npz", model), Error);
}

/// The parts of a valid recording. Each test spoils one of them.
struct Parts {
  std::vector<double> time{0, 1}, qpos{0.1, 0.2}, qvel{3, 4}, target;
  NpzShape qpos_shape{2, 1};
  std::string meta = R"({"format": "tarsus-recording", "version": 1, "model": "m", "nq": 1, "nv": 1,
                        "joints": ["a"], "joint_types": ["hinge"], "frames": 2})";
  bool has_qvel = true, int_time = false;
};

void expect_recording_refused(const std::function<void(Parts&)>& spoil, const std::string& member,
                              const std::string& part, const Model* model = nullptr) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "run.npz";
  Parts p;
  spoil(p);
  NpzWriter npz(file);
  if (p.int_time)
    npz.add<std::int64_t>("time", std::vector<std::int64_t>{0, 1}, {2});
  else
    npz.add<double>("time", p.time, {p.time.size()});
  npz.add<double>("qpos", p.qpos, p.qpos_shape);
  if (p.has_qvel) npz.add<double>("qvel", p.qvel, {2, 1});
  if (!p.target.empty()) npz.add<double>("target", p.target, {2, 1});
  if (!p.meta.empty()) npz.add_text("meta", p.meta);
  npz.finish();
  try {
    read_recording(file, model);
    if (!part.empty()) ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const InputError& e) {
    const std::string what = e.what();
    if (part.empty()) {
      ADD_FAILURE() << what;
      return;
    }
    EXPECT_NE(e.diagnostics().at(0).where.file.find("run.npz"), std::string::npos) << what;
    EXPECT_NE(what.find(member), std::string::npos) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what << "\nexpected: " << part;
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(Recording, ReaderNamesFileAndMember) {
  expect_recording_refused([](Parts&) {}, "", "");  // valid without changes
  expect_recording_refused([](Parts& p) { p.meta.clear(); }, "meta", "not a recording");
  expect_recording_refused([](Parts& p) { p.has_qvel = false; }, "qvel", "no array of this name");
  expect_recording_refused([](Parts& p) { p.int_time = true; }, "time", "int64");
  expect_recording_refused([](Parts& p) { p.qpos_shape = {1, 2}; }, "qpos", "(1, 2); expected (2, 1)");
  expect_recording_refused([](Parts& p) { p.time = {0, 1, 2}; }, "time", "(3,); expected (2,)");
  expect_recording_refused([](Parts& p) { p.time = {1, 1}; }, "time", "frame 1 is at 1 s");
  expect_recording_refused([](Parts& p) { p.qvel[1] = std::nan(""); }, "qvel", "number 0 of frame 1 is nan");
  expect_recording_refused([](Parts& p) { p.target = {0, kInfinity}; }, "target", "frame 1 is inf");
  const auto meta = [](const char* from, const char* to) {
    return [=](Parts& p) { p.meta = replaced(p.meta, from, to); };
  };
  expect_recording_refused(meta("{", "["), "meta", ":1:");
  expect_recording_refused(meta("tarsus-recording", "other"), "meta/format", "tarsus-recording");
  expect_recording_refused(meta("tarsus-recording", "tarsus-capture"), "meta/format", "tarsus replay repeats its step");
  expect_recording_refused(meta("\"version\": 1", "\"version\": 2"), "meta/version", "the version is 2");
  expect_recording_refused(meta("\"nq\": 1", "\"nq\": -1"), "meta/nq", "whole number");
  expect_recording_refused(meta("\"nq\": 1", "\"nq\": 1.5"), "meta/nq", "whole number");
  expect_recording_refused(meta("\"frames\": 2", "\"frames\": 999999999"), "time", "expected (999999999,)");
  expect_recording_refused(meta("[\"a\"]", "[1]"), "meta/joints", "strings");
  expect_recording_refused(meta("[\"a\"]", "[\"a\", \"b\"]"), "meta/joint_types", "1 types for 2 joints");
}

TEST(Recording, AnotherModelIsRefused) {
  const auto hinge_model = [](const char* joint, JointType type) {
    ModelSpec spec;
    BodySpec body("b");
    body.parent = 0;
    JointSpec j;
    j.name = joint, j.type = type;
    body.joints.push_back(j);
    body.inertial = InertialSpec{1, {0, 0, 0}, {1, 0, 0, 1, 0, 1}, {}};
    spec.bodies.push_back(body);
    return compile(std::move(spec));
  };
  const Model same = hinge_model("a", JointType::hinge), other_name = hinge_model("z", JointType::hinge),
              other_type = hinge_model("a", JointType::slide), other_size = hinge_model("a", JointType::ball);
  expect_recording_refused([](Parts&) {}, "", "", &same);
  expect_recording_refused([](Parts&) {}, "meta/joints", "\"a\" (hinge)", &other_name);
  expect_recording_refused([](Parts&) {}, "meta/joints", "\"a\" (slide)", &other_type);
  expect_recording_refused([](Parts&) {}, "meta", "nq 4, nv 3", &other_size);
}

}  // namespace
}  // namespace tarsus::test
