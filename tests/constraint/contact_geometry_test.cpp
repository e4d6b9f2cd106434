// Which shapes of a model are searched for contact, and how far.
#include <gtest/gtest.h>

#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

std::vector<LinkContact> contacts_of(const std::string& text) {
  const Model model = compile(parse_mjcf(text, "contacts.xml", ""));
  ContactGeometry geometry(model);
  Data data(model);
  kinematics(model, data, data.qpos, data.qvel);
  std::vector<LinkContact> contacts;
  geometry.detect(data, 1e-3, contacts);
  return contacts;
}

/// Two balls of radius 0.1, 0.05 apart and at rest.
std::string balls(const std::string& margin, const std::string& pair) {
  return "<mujoco><worldbody>"
         "<body><freejoint/><geom name='a' size='.1' margin='" +
         margin +
         "'/></body>"
         "<body pos='.25 0 0'><freejoint/><geom name='b' size='.1'/></body></worldbody>"
         "<contact>" +
         pair + "</contact></mujoco>";
}

TEST(ContactGeometry, MarginsOfExplicitPairsReplaceThoseOfTheirShapes) {
  EXPECT_TRUE(contacts_of(balls("0", "")).empty());
  EXPECT_EQ(contacts_of(balls("0.06", "")).size(), 1u);
  const std::vector<LinkContact> wide = contacts_of(balls("0", "<pair geom1='a' geom2='b' margin='0.06'/>"));
  ASSERT_EQ(wide.size(), 1u);
  EXPECT_NEAR(wide[0].point.distance, 0.05 - 0.06, 1e-12) << "forces begin at the margin";
  EXPECT_TRUE(contacts_of(balls("0.06", "<pair geom1='a' geom2='b' margin='0.04'/>")).empty());
}

TEST(ContactGeometry, MarginsAddUpAndGapsDoNotShortenThem) {
  // MuJoCo 4: forces begin at the sum of both margins; a gap only widens the search.
  const auto two = [](const std::string& a, const std::string& b) {
    return "<mujoco><worldbody><body><freejoint/><geom size='.1' " + a + "/></body>" +
           "<body pos='.25 0 0'><freejoint/><geom size='.1' " + b + "/></body></worldbody></mujoco>";
  };
  for (const auto& [a, b] : {std::pair("margin='.02'", "margin='.04'"), std::pair("margin='.06' gap='.06'", ""),
                             std::pair("margin='.03' gap='.01'", "margin='.03' gap='.05'")}) {
    const std::vector<LinkContact> found = contacts_of(two(a, b));
    ASSERT_EQ(found.size(), 1u) << a << b;
    EXPECT_NEAR(found[0].point.distance, 0.05 - 0.06, 1e-12) << a << b;
  }
  EXPECT_EQ(contacts_of(balls("0", "<pair geom1='a' geom2='b' margin='.06' gap='.06'/>")).size(), 1u);
}

TEST(ContactGeometry, TheContactFlagTurnsContactOff) {
  const std::string on = balls("0.06", "");
  EXPECT_EQ(contacts_of(on).size(), 1u);
  EXPECT_TRUE(contacts_of("<mujoco><option><flag contact='disable'/></option>" + on.substr(8)).empty());
}

TEST(ContactGeometry, PairsComeInTheOrderOfTheirLinks) {
  // Shapes in the order of bodies; a contact's rows in the order of the higher link, then of the lower.
  const Model model =
      compile(parse_mjcf("<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
                         "<body><freejoint/><geom size='.1'/></body>"
                         "<body><freejoint/><geom size='.1'/></body>"
                         "<body><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
                         "order.xml", ""));
  const ContactGeometry geometry(model);
  const std::vector<BodyPair> expected = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
  EXPECT_EQ(std::vector<BodyPair>(geometry.pairs().begin(), geometry.pairs().end()), expected);
}

TEST(ContactGeometry, ATimeConstantMayStandAlone) {
  EXPECT_EQ(spook_of(std::vector<double>{0.02}).damping_time, 0.02);
  EXPECT_THROW(spook_of(std::vector<double>{-100}), ValueError);
}

}  // namespace
}  // namespace tarsus
