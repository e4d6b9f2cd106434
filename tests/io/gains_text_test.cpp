#include "tarsus/io/gains_text.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/random_model.hpp"
#include "support/temporary_folder.hpp"

namespace tarsus::test {
namespace {

Model two_joints() {
  ModelSpec spec;
  for (const char* name : {"root", "knee"}) {
    BodySpec body(name);
    body.parent = int(spec.bodies.size()) - 1;
    JointSpec joint;
    joint.name = name;
    joint.type = body.parent == 0 ? JointType::free : JointType::hinge;
    body.joints.push_back(joint);
    body.inertial = InertialSpec{1, {0, 0, 0}, diagonal3(1.0, 1.0, 1.0), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

std::string message(const Model& model, const std::string& text) {
  try {
    read_gains(model, text);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(GainsText, NumbersForAllJointsAndForTheRoot) {
  const Model model = two_joints();
  const Drives two = read_gains(model, "300,20");
  EXPECT_EQ(two.kp, std::vector<double>(7, 300.0));
  const Drives four = read_gains(model, "300,20,1000,1e2");
  EXPECT_EQ(four.kp[0], 1000);
  EXPECT_EQ(four.kd[5], 100);
  EXPECT_EQ(four.kp[6], 300);
  EXPECT_EQ(four.kd[6], 20);
}

TEST(GainsText, FileByJoint) {
  const Model model = two_joints();
  const test::TemporaryFolder own;
  const std::filesystem::path path = own.path() / "tarsus_gains_test.json";
  std::ofstream(path) << R"({"default": [1, 2], "root": [3, 4], "knee": [5, 6]})";
  const Drives drives = read_gains(model, path.string());
  EXPECT_EQ(drives.kp[0], 3);
  EXPECT_EQ(drives.kd[6], 6);
  std::ofstream(path) << R"({"elbow": [1, 2]})";
  EXPECT_NE(message(model, path.string()).find("json:1:11: error: the model has no joint named 'elbow'"),
            std::string::npos);
  std::ofstream(path) << R"({"knee": [1]})";
  EXPECT_NE(message(model, path.string()).find("expected [KP, KD]"), std::string::npos);
  std::ofstream(path) << R"({"knee": [1, 2], "knee": [3, 4]})";
  EXPECT_NE(message(model, path.string()).find("key 'knee' is given twice"), std::string::npos);
  std::ofstream(path) << R"({"knee": [1e400, 2]})";
  EXPECT_NE(message(model, path.string()).find("json:1:11: error: "), std::string::npos);
  std::ofstream(path) << R"({"knee": [-1, 2]})";
  EXPECT_NE(message(model, path.string()).find("kp of joint \"knee\""), std::string::npos);
  std::ofstream(path) << "{";
  EXPECT_NE(message(model, path.string()).find("json:1:"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(GainsText, WhatIsNotANumberIsNamed) {
  const Model model = two_joints();
  for (const char* bad : {"", "300", "300,", "300,x", "1,2,3", "nan,1", "no_such_file.json", "1e400,1", "-1,2"}) {
    EXPECT_NE(message(model, bad), "no error") << bad;
  }
}

}  // namespace
}  // namespace tarsus::test
