// Every URDF of the shared data that Pinocchio loads, joint by joint: placements, axes and the inertia of everything
// welded to each moving link. Joint limits and names come from the same text; the tests of dynamics compare dynamics.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tarsus/io/urdf.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr double kTolerance = 1e-12;  // both sides round a few products of numbers of order one

std::string python() {
  if (const char* named = std::getenv("TARSUS_PYTHON")) return named;
  const fs::path local = TARSUS_SOURCE_DIR "/.venv/bin/python";
  return fs::exists(local) ? local.string() : "python3";
}

/// stdout of a command; `status` is its exit status.
std::string output_of(const std::string& command, int& status) {
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, n);
  status = pclose(pipe);
  return out;
}

struct Frame {
  Mat3d R = identity3<double>();
  Vec3d p{0, 0, 0};
};
Frame operator*(const Frame& a, const Frame& b) { return {a.R * b.R, a.R * b.p + a.p}; }

/// Mass properties summed about a common origin.
struct Sum {
  double mass = 0;
  Vec3d moment{0, 0, 0};
  Sym3d second{0, 0, 0, 0, 0, 0};  // about the origin

  static Sym3d point(double m, const Vec3d& c) {
    return Sym3d{c.y * c.y + c.z * c.z, -c.x * c.y, -c.x * c.z,
                 c.x * c.x + c.z * c.z, -c.y * c.z, c.x * c.x + c.y * c.y} *
           m;
  }
  void add(const InertialSpec& i, const Frame& X) {
    const Vec3d c = X.R * i.com + X.p;
    mass += i.mass;
    moment += c * i.mass;
    second += rotate(X.R, i.inertia) + point(i.mass, c);
  }
  void add(const Json& j) {
    const auto& I = j["inertia"];
    const Vec3d c{j["com"][0], j["com"][1], j["com"][2]};
    mass += double(j["mass"]);
    moment += c * double(j["mass"]);
    second += Sym3d{I[0][0], I[0][1], I[0][2], I[1][1], I[1][2], I[2][2]} + point(j["mass"], c);
  }
};

void expect_same(const Sum& ours, const Sum& theirs) {
  const double scale = std::max(1e-3, std::abs(theirs.mass));
  EXPECT_NEAR(ours.mass, theirs.mass, kTolerance * scale);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(ours.moment[i], theirs.moment[i], kTolerance * scale);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR((&ours.second.xx)[i], (&theirs.second.xx)[i], kTolerance * scale);
}

/// The mass properties that are rigidly attached to each moving link, and the placements of the moving links.
struct Folded {
  std::map<std::string, int> body_of_joint;
  std::vector<int> carrier;  // nearest body with joints, itself included; 0: the world
  std::vector<Frame> in_carrier;
  std::vector<Sum> sums;  // by carrier

  explicit Folded(const ModelSpec& spec)
      : carrier(spec.bodies.size(), 0), in_carrier(spec.bodies.size()), sums(spec.bodies.size()) {
    for (std::size_t i = 0; i < spec.bodies.size(); ++i) {
      const BodySpec& b = spec.bodies[i];
      for (const JointSpec& j : b.joints) body_of_joint[j.name] = int(i);
      if (i > 0 && b.joints.empty()) {
        carrier[i] = carrier[b.parent];
        in_carrier[i] = in_carrier[b.parent] * Frame{rotation(b.orientation), b.position};
      } else {
        carrier[i] = int(i);
      }
      if (b.inertial) sums[carrier[i]].add(*b.inertial, in_carrier[i]);
    }
  }
};

void compare_joint(const ModelSpec& spec, const Folded& folded, const Json& theirs) {
  const std::string name = theirs["name"];
  const auto found = folded.body_of_joint.find(name);
  ASSERT_NE(found, folded.body_of_joint.end());
  const BodySpec& body = spec.bodies[found->second];
  const int carrier = folded.carrier[body.parent];
  const std::string parent = carrier == 0 ? "universe" : spec.bodies[carrier].joints[0].name;
  EXPECT_EQ(parent, theirs["parent"]);
  const Frame X = folded.in_carrier[body.parent] * Frame{rotation(body.orientation), body.position};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(X.p[i], double(theirs["position"][i]), kTolerance);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(X.R(i, k), double(theirs["rotation"][i][k]), kTolerance);
  }
  ASSERT_EQ(body.joints.size(), 1u);
  const JointSpec& joint = body.joints[0];
  if (joint.type == JointType::hinge || joint.type == JointType::slide) {
    const Json& S = theirs["subspace"];
    ASSERT_EQ(S[0].size(), 1u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(double(S[i][0]), joint.type == JointType::slide ? joint.axis[i] : 0, kTolerance);
      EXPECT_NEAR(double(S[i + 3][0]), joint.type == JointType::hinge ? joint.axis[i] : 0, kTolerance);
    }
  }
  Sum sum;
  sum.add(theirs);
  expect_same(folded.sums[found->second], sum);
}

TEST(UrdfOracle, PinocchioAgreesOnEveryFileThatItLoads) {
  const fs::path data = TARSUS_SOURCE_DIR "/../shared/data";
  if (!fs::exists(data)) GTEST_SKIP() << "no shared data beside the repository";
  int status = 0;
  output_of("'" + python() + "' -c 'import pinocchio' 2>/dev/null", status);
  if (status != 0) GTEST_SKIP() << "no Pinocchio in " << python() << " (TARSUS_PYTHON names another)";
  std::string command = "'" + python() + "' '" TARSUS_SOURCE_DIR "/tests/io/pinocchio_urdf.py'";
  for (const auto& entry : fs::recursive_directory_iterator(data)) {
    if (entry.path().extension() == ".urdf") command += " '" + entry.path().string() + "'";
  }
  const Json theirs = Json::parse(output_of(command + " 2>/dev/null", status));
  ASSERT_EQ(status, 0);
  ReadOptions options;
  options.lenient = true;  // most meshes are missing
  int compared = 0;
  for (const auto& [file, model] : theirs.items()) {
    if (model.is_null()) continue;
    SCOPED_TRACE(file);
    const ModelSpec spec = read_urdf(file, options);
    const Folded folded(spec);
    int dofs = 0;
    for (const BodySpec& b : spec.bodies) {
      for (const JointSpec& j : b.joints) dofs += j.type == JointType::free ? 6 : j.type == JointType::ball ? 3 : 1;
    }
    EXPECT_EQ(dofs, int(model["nv"]));
    for (const Json& joint : model["joints"]) {
      SCOPED_TRACE(std::string(joint["name"]));
      compare_joint(spec, folded, joint);
    }
    Sum base;
    base.add(model["base"]);
    expect_same(folded.sums[0], base);
    ++compared;
  }
  EXPECT_GE(compared, 40);
  RecordProperty("files", compared);
  std::printf("%d files compared\n", compared);
}

}  // namespace
}  // namespace tarsus
