// A model's height field as one of its contact shapes.
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

Model slope(const std::string& attributes) {
  return compile(parse_mjcf(
      "<mujoco><asset><hfield name='h' size='2 2 1 .5' " + attributes +
          "/></asset><worldbody><geom type='hfield' hfield='h' pos='0 0 .25'/><geom type='plane' "
          "size='1 1 1' pos='0 0 -9'/><body pos='0 0 .84'><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
      "slope.xml", ""));
}

TEST(TerrainContact, ABallTouchesTheHeightFieldOfItsModel) {
  // Rows of the text run from +y to -y. Heights rise from 0 at x = -2 to 1 at x = 2, so the middle of the world has
  // 0.75.
  const Model model = slope("nrow='2' ncol='2' elevation='0 1 0 1'");
  ContactGeometry geometry(model);
  ASSERT_EQ(geometry.shapes().size(), 3u);
  EXPECT_FALSE(geometry.may_touch(0, 1)) << "the terrain and the plane";
  Data data(model);
  kinematics(model, data, data.qpos, data.qvel);
  std::vector<LinkContact> contacts;
  geometry.detect(data, 1e-3, contacts);
  ASSERT_EQ(contacts.size(), 1u);
  const double cosine = 4 / std::sqrt(17.0);
  EXPECT_NEAR(std::abs(contacts[0].point.normal.z), cosine, 1e-9);
}

TEST(TerrainContact, ATerrainThatWasNotReadIsNamed) {
  ModelSpec spec = slope("nrow='2' ncol='2'").spec;
  spec.height_fields[0].rows = 0;
  EXPECT_EQ(ContactGeometry(compile(spec)).shapes().size(), 2u);
  const Diagnostics found = contact_findings(spec);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].message.find("was not read"), std::string::npos);
}

TEST(TerrainContact, APlaneOnAMovingBodyThatFallsThroughPlanesIsNamed) {
  const auto found = [](const std::string& below, const std::string& joint, const std::string& mocap = "") {
    return contact_findings(
        parse_mjcf("<mujoco><worldbody>" + below + "<body" + mocap + ">" + joint +
                       "<geom type='sphere' size='1'/><geom type='plane' size='1 1 1'/></body></worldbody>"
                       "</mujoco>",
                   "planes", "."));
  };
  const std::string plane = "<geom type='plane' size='1 1 1'/>", free = "<freejoint/>";
  ASSERT_EQ(found(plane, free).size(), 1u);
  EXPECT_NE(found(plane, free)[0].message.find("falls through"), std::string::npos);
  EXPECT_EQ(found("<geom type='box' size='1 1 1'/>", free).size(), 0u);
  EXPECT_EQ(found(plane, "").size(), 0u);
  EXPECT_EQ(found(plane, "", " mocap='true'").size(), 0u);
}

}  // namespace
}  // namespace tarsus
