// The geometric stiffness of ball joints' ranges, and the detection of light links (holds_light_link).
#include "constraint/range_spring.hpp"

#include <gtest/gtest.h>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus::test {
namespace {

/// Along any motion the derivative of the rotation's angle gives the range's force, and its second derivative the
/// spring.
TEST(RangeSpring, IsTheSecondDerivativeOfTheAngle) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const Vec3d axis = random.direction(), rate = random.direction();
    const double angle = random.uniform(0.2, 3), step = 3e-4, force = 7;
    const Quatd turn = exp_map(axis * angle);
    const auto at = [&](double t) { return norm(log_map(turn * exp_map(rate * t))); };
    const RangeSpring spring(turn, force);
    EXPECT_NEAR(norm(spring.axis - axis), 0, 1e-12);
    const Vec3d across = spring.across(rate);
    EXPECT_NEAR(spring.stiffness * dot(across, across), force * (at(step) - 2 * at(0) + at(-step)) / (step * step),
                1e-4)
        << seed;
  }
}

Model three_links(const std::string& root, const char* const (&masses)[3]) {
  const auto link = [&](int i, const std::string& joint) {
    return "<body pos='0 0 -.3'>" + joint + "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03' mass='" +
           masses[i] + "'/>";
  };
  return compile(parse_mjcf("<mujoco><worldbody>" + link(0, root) + link(1, "<joint type='ball' range='0 1'/>") +
                                link(2, "<joint type='ball'/>") + "</body></body></body></worldbody></mujoco>",
                            "links", "."));
}

bool holds_light(const Model& model) { return holds_light_link(model, link_inertias(model), 1); }

TEST(RangeSpring, LightLinksAreBetweenHeavyOnes) {
  const char *light[3] = {"9", "1", "3"}, *end[3] = {"9", "3", "1"}, *start[3] = {"1", "3", "1"};
  EXPECT_TRUE(holds_light(three_links("<freejoint/>", light)));
  EXPECT_FALSE(holds_light(three_links("<freejoint/>", end)));
  EXPECT_FALSE(holds_light(three_links("<freejoint/>", start)));
  EXPECT_TRUE(holds_light(three_links("<joint axis='1 0 0'/>", start))) << "beyond the first is the world";
}

TEST(RangeSpring, GoesRoundTheEndOfTheRangeOnly) {
  const HalfTurn range(1.4);
  const Vec3d e{0, 0, 1}, along{0, 0, 3}, across{3, 0, 0}, slow{0.2, 0, 0};
  EXPECT_TRUE(goes_round(exp_map(e * 1.4), across, 1.0 / 60, range));
  EXPECT_FALSE(goes_round(exp_map(e * 1.4), along, 1.0 / 60, range));
  EXPECT_FALSE(goes_round(exp_map(e * 1.4), slow, 1.0 / 60, range));
  EXPECT_FALSE(goes_round(exp_map(e * 1.2), across, 1.0 / 60, range));
}

}  // namespace
}  // namespace tarsus::test
