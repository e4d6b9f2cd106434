// Specs that compile() refuses, and bodies that do not exist.
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/dynamics/frame.hpp"
#include "tarsus/model/held_point.hpp"

namespace tarsus::test {
namespace {

ModelSpec swing() {
  ModelSpec spec;
  spec.bodies.emplace_back("arm");
  BodySpec& body = spec.bodies.back();
  body.parent = 0;
  body.joints.emplace_back().name = "elbow";
  body.geoms.emplace_back().name = "hand", body.geoms[0].size = {0.1, 0, 0};
  body.inertial = InertialSpec{2, {0.3, 0, 0}, {0.1, 0, 0, 0.2, 0, 0.3}, {}};
  return spec;
}

TEST(BadModel, MessagesOfCompileNameWhoseFieldItIsAndItsValue) {
  using Change = void (*)(ModelSpec&);
  const std::pair<Change, std::string> cases[] = {
      {[](ModelSpec& s) {
         s.bodies[1].joints[0].axis = {0, 0, 2};
       },
       "joint \"elbow\": axis is 0 0 2, expected "},
      {[](ModelSpec& s) {
         s.bodies[1].joints[0].position = {0, NAN, 0};
       },
       "joint \"elbow\": position is 0 nan 0, "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].stiffness = -1; }, "joint \"elbow\": stiffness is -1, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].damping = kInfinity; }, "joint \"elbow\": damping is inf, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].armature = -0.5; }, "joint \"elbow\": armature is -0.5, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].friction_loss = NAN; }, "joint \"elbow\": frictionloss is nan, "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].reference = NAN; }, "joint \"elbow\": reference is nan, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].spring_reference = NAN; }, "joint \"elbow\": springref is nan, "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].margin = -kInfinity; }, "joint \"elbow\": margin is -inf, expected "},
      {[](ModelSpec& s) {
         s.bodies[1].joints[0].limited = true, s.bodies[1].joints[0].range = {1, -1};
       },
       "joint \"elbow\": range is 1 -1, expected low < high"},
      {[](ModelSpec& s) {
         s.bodies[1].joints[0].force_limited = true, s.bodies[1].joints[0].force_range = {2, 2};
       },
       "joint \"elbow\": actuatorfrcrange is 2 2, expected low < high"},
      {[](ModelSpec& s) { s.bodies[1].joints[0].name = "", s.bodies[1].joints[0].damping = -2; },
       "a joint of body \"arm\": damping is -2, "},
      {[](ModelSpec& s) {
         s.bodies[1].joints[0].second_axis = {1, 0, 0};
       },
       "joint \"elbow\": a hinge joint cannot "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].stiffness_polynomial[0] = NAN; },
       "joint \"elbow\": stiffness polynomial is nan, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].damping_polynomial[1] = NAN; },
       "joint \"elbow\": damping polynomial is nan, expected "},
      {[](ModelSpec& s) { s.bodies[1].gravity_compensation = NAN; }, "body \"arm\": gravcomp is nan, expected "},
      {[](ModelSpec& s) {
         s.bodies[1].orientation = {0, 0, 0, 0};
       },
       "body \"arm\": orientation is 0 0 0 0, expected a quaternion that is not zero"},
      {[](ModelSpec& s) {
         s.bodies[1].geoms[0].orientation = {NAN, 0, 0, 0};
       },
       "geom \"hand\": orientation is nan 0 0 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].position.z = NAN; }, "geom \"hand\": position is 0 0 nan, expected "},
      {[](ModelSpec& s) { s.bodies[1].position.x = 1e200; }, "body \"arm\": position is 1e+200 0 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].joints[0].position.x = -1e11; },
       "joint \"elbow\": position is -1e+11 0 0, expected numbers within 1e10 m"},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].size.x = -1; }, "geom \"hand\": size is -1 0 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].name = "", s.bodies[1].geoms[0].size.y = NAN; },
       "a geom of body \"arm\": size is 0.1 nan 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].friction[1] = -1; }, "geom \"hand\": friction is 1 -1 1e-04, "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].condim = 2; }, "geom \"hand\": condim is 2, expected 1, 3, 4 or 6"},
      {[](ModelSpec& s) {
         s.bodies[1].geoms[0].solver_reference = {NAN, 1};
       },
       "geom \"hand\": solref is nan 1, expected "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].margin = NAN; }, "geom \"hand\": solmix, margin, gap is 1 nan 0, "},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].type = GeomType::mesh, s.bodies[1].geoms[0].mesh = "none"; },
       "geom \"hand\": mesh is \"none\", expected the name of a mesh"},
      {[](ModelSpec& s) { s.bodies[1].geoms[0].type = GeomType::height_field; },
       "geom \"hand\": height field is \"\", expected the name of a height field"},
      {[](ModelSpec& s) { s.bodies[1].sites.emplace_back().position.x = NAN; },
       "a site of body \"arm\": position is nan 0 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].inertial->mass = -3; }, "body \"arm\": mass is -3, expected "},
      {[](ModelSpec& s) { s.bodies[1].name = "", s.bodies[1].inertial->mass = NAN; }, "body 1: mass is nan, expected "},
      {[](ModelSpec& s) {
         s.bodies[1].inertial->com = {NAN, 0, 0};
       },
       "body \"arm\": centre of mass is nan 0 0, "},
      {[](ModelSpec& s) { s.bodies[1].inertial->inertia.yy = NAN; },
       "body \"arm\": inertia (xx yy zz xy xz yz) is 0.1 nan"},
      {[](ModelSpec& s) { s.bodies[1].inertial->inertia.xx = -1; },
       "body \"arm\": inertia is that of principal moments "},
      {[](ModelSpec& s) { s.bodies[1].position.z = NAN; }, "body \"arm\": position is 0 0 nan, expected "},
      {[](ModelSpec& s) { s.bodies[1].orientation.w = NAN; }, "body \"arm\": orientation is nan 0 0 0, expected "},
      {[](ModelSpec& s) { s.bodies[1].parent = 7; }, "body \"arm\": parent is 7, expected "},
      {[](ModelSpec& s) { s.option.timestep = 0; }, "option: timestep is 0, expected "},
      {[](ModelSpec& s) {
         s.option.gravity = {0, 0, NAN};
       },
       "option: gravity is 0 0 nan, expected "},
  };
  for (const auto& [change, message] : cases) {
    ModelSpec spec = swing();
    change(spec);
    try {
      compile(spec);
      ADD_FAILURE() << "no error; expected " << message;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what() << "\nexpected " << message;
    }
  }
}

TEST(BadModel, QuaternionsOfAnyLengthAreRotations) {
  ModelSpec spec = swing();
  BodySpec& arm = spec.bodies[1];
  arm.sites.emplace_back();
  for (Quatd* q : {&arm.orientation, &arm.geoms[0].orientation, &arm.sites[0].orientation}) *q = {2, 0, 0, 2};
  const Model model = compile(spec);
  const BodySpec& made = model.spec.bodies[1];
  for (const Quatd* q : {&made.orientation, &made.geoms[0].orientation, &made.sites[0].orientation}) {
    EXPECT_NEAR(q->w, std::sqrt(0.5), 1e-15);
    EXPECT_NEAR(q->z, std::sqrt(0.5), 1e-15);
  }
}

TEST(BadModel, FramesOfBodiesThatDoNotExistAreErrors) {
  const Model model = compile(swing());
  const Transformd X{identity3<double>(), {0, 0, 0}};
  Data data(model);
  std::vector<double> J(6);
  for (const int body : {-1, 2, 1000000000}) {
    EXPECT_THROW(frame_on(model, body, X), ValueError) << body;
    EXPECT_THROW(body_frame(model, body), ValueError) << body;
    EXPECT_THROW(principal_axes(model, body), ValueError) << body;
    EXPECT_THROW(inertial_frame(model, body), ValueError) << body;
    EXPECT_THROW(movable_frame(model, body), ValueError) << body;
    EXPECT_THROW(joints_hold(model, body, {0, 0, 0}, 0), ValueError) << body;
    EXPECT_THROW(joints_hold(model, 0, {0, 0, 0}, body), ValueError) << body;
    EXPECT_THROW(body_pose(model, data, body), ValueError) << body;
    EXPECT_THROW(body_velocity(model, data, body), ValueError) << body;
    EXPECT_THROW(jacobian<double>(model, data, body, std::vector<double>(3), J), ValueError) << body;
  }
}

}  // namespace
}  // namespace tarsus::test
