// Joint types that compile() replaces by chains of other joints: the chains, refused input, and closed forms.
#include <gtest/gtest.h>

#include <cmath>

#include "support/random_model.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/model/joint_parts.hpp"

namespace tarsus::test {
namespace {

ModelSpec one_body(const JointSpec& joint) {
  ModelSpec spec;
  spec.bodies.emplace_back("plate");
  BodySpec& body = spec.bodies.back();
  body.parent = 0;
  body.joints = {joint};
  body.inertial = InertialSpec{2, {0.3, 0, 0}, {0.1, 0, 0, 0.2, 0, 0.3}, {}};
  return spec;
}
JointSpec chain(JointType type, const Vec3d& axis = {0, 0, 1}) {
  JointSpec joint;
  joint.name = "j", joint.type = type, joint.axis = axis;
  return joint;
}

TEST(JointTypes, AChainHasAsManyNumbersAsItsPartsTogether) {
  for (const JointTraits& t : kJointTraits) {
    JointSpec joint = chain(t.type);
    const Model model = compile(one_body(joint));
    EXPECT_EQ(model.nq, t.nq()) << t.name;
    EXPECT_EQ(model.nv, t.nv()) << t.name;
    EXPECT_EQ(model.njoint(), std::max(1, t.part_count)) << t.name;
    EXPECT_EQ(find_joint_type(t.name), &t);
    EXPECT_EQ(find_urdf_joint_type(t.urdf), &t);
    for (int k = 0; k < t.part_count; ++k)
      EXPECT_EQ(model.joints[k].name, std::string("j") + t.parts[std::size_t(k)].suffix);
    for (const Joint& j : model.joints) EXPECT_EQ(traits(j.type).part_count, 0);
  }
}

/// About the centre of mass c = p + R(θ) (0.3, 0): T = ½ m |ċ|² + ½ I θ̇².
TEST(JointTypes, PlanarHasTheMassMatrixOfAPlateInThePlane) {
  const Model model = compile(one_body(chain(JointType::planar)));
  Data data(model);
  const double angle = 0.7, s = std::sin(angle), c = std::cos(angle), m = 2, r = 0.3, I = 0.3;
  const std::vector<double> qpos{1, -2, angle}, qvel{0.5, 0.25, 3};
  std::vector<double> M(9), bias(3);
  crba<double>(model, data, qpos, M);
  bias_force<double>(model, data, qpos, qvel, bias);
  const double expected[9] = {m, 0, -m * r * s, 0, m, m * r * c, -m * r * s, m * r * c, I + m * r * r};
  for (int k = 0; k < 9; ++k) EXPECT_NEAR(M[std::size_t(k)], expected[k], 1e-14) << k;
  EXPECT_NEAR(bias[0], -m * r * c * 9, 1e-13);  // centripetal, m r θ̇²
  EXPECT_NEAR(bias[1], -m * r * s * 9, 1e-13);
  EXPECT_NEAR(bias[2], 0, 1e-13);  // gravity is along the plane's normal
}

/// With S = [R₂ᵀ a₁, a₂] in the child's axes, M = Sᵀ (I + m (r² 1 - r rᵀ)) S.
TEST(JointTypes, UniversalHasTheMassMatrixOfTwoCrossedHinges) {
  JointSpec joint = chain(JointType::universal, {1, 0, 0});
  joint.second_axis = {0, 1, 0};
  const Model model = compile(one_body(joint));
  Data data(model);
  const double second = -0.9;
  std::vector<double> M(4);
  crba<double>(model, data, std::vector<double>{0.4, second}, M);
  const Vec3d a1 = transpose_mul(rotation(axis_angle({0, 1, 0}, second)), Vec3d{1, 0, 0}), a2{0, 1, 0};
  const Sym3d I{0.1, 0, 0, 0.2 + 2 * 0.09, 0, 0.3 + 2 * 0.09};
  EXPECT_NEAR(M[0], dot(a1, I * a1), 1e-15);
  EXPECT_NEAR(M[1], dot(a1, I * a2), 1e-15);
  EXPECT_NEAR(M[3], dot(a2, I * a2), 1e-15);
}

TEST(JointTypes, WhatAChainCannotMeanIsAnErrorByName) {
  const auto says = [](const JointSpec& joint, const std::string& word) {
    try {
      compile(one_body(joint));
      ADD_FAILURE() << "no error about " << word;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  JointSpec joint = chain(JointType::planar, {0, 0, 2});
  says(joint, "unit");
  joint = chain(JointType::planar), joint.limited = true, joint.range = {-1, 1};
  says(joint, "cannot have a range");
  joint = chain(JointType::universal), joint.reference = 1;
  says(joint, "cannot have a reference");
  joint = chain(JointType::universal), joint.second_axis = {0, 0.6, 0.8};
  says(joint, "perpendicular");
  for (const JointTraits& t : kJointTraits) {
    joint = chain(t.type), joint.second_axis = {1, 0, 0};
    if (t.axes < 2) says(joint, "second axis");
  }
  joint = chain(JointType::universal), joint.limited = true, joint.range = {-1, 1};
  const Model model = compile(one_body(joint));  // two hinges, each with the range
  EXPECT_TRUE(model.joints[0].limited && model.joints[1].limited);
}

/// Random trees contain every joint type of the table.
TEST(JointTypes, RandomTreesHaveThemAll) {
  Random random(7);
  std::vector<int> seen(kJointTraits.size());
  for (int i = 0; i < 400; ++i) {
    BodySpec body("b");
    body.parent = i % 2;
    add_joints(random, body, 1, {});
    for (const JointSpec& joint : body.joints) ++seen[std::size_t(joint.type)];
  }
  for (const JointTraits& t : kJointTraits) EXPECT_GT(seen[std::size_t(t.type)], 0) << t.name;
}

}  // namespace
}  // namespace tarsus::test
