// Spheres on moving bodies, beside the same by single numbers.
#include "tarsus/geometry/carried_spheres.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/random_model.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

struct Ball {
  int carrier;
  Vec3d own;
  double radius, margin;
};

TEST(CarriedSpheres, PlacesThemAndFindsTheNear) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    test::Random random(seed);
    const auto vector = [&](double size) {
      return Vec3d{random.uniform(-size, size), random.uniform(-size, size), random.uniform(-size, size)};
    };
    CarriedSpheres spheres;
    std::vector<Ball> balls;
    for (int carrier = -1; carrier < 9; ++carrier) {
      for (int k = 1 + int(random.uniform(0, carrier % 2 ? 7 : 1)); k > 0; --k) {
        balls.push_back({carrier, vector(0.5), random.uniform(0, 0.2), random.uniform(-0.1, 0.1)});
        if (carrier < 0 && k == 1) balls.back().radius = std::numeric_limits<double>::infinity();
        spheres.add(carrier, balls.back().own, balls.back().radius, balls.back().margin);
      }
    }
    std::vector<BodyPair> pairs;  // in both orders, and with gaps
    for (std::uint32_t i = 0; i < balls.size(); ++i) {
      for (std::uint32_t j = 0; j < i; ++j) {
        if (balls[i].carrier != balls[j].carrier && random.uniform(0, 1) < 0.9) pairs.push_back({j, i});
      }
      for (std::uint32_t j = i + 1; j < balls.size(); ++j) {
        if (balls[i].carrier != balls[j].carrier && random.uniform(0, 1) < 0.9) pairs.push_back({i, j});
      }
    }
    spheres.list(pairs);
    for (SphereGroup& group : spheres.groups()) {
      if (group.carrier < 0) continue;
      group.rotation = rotation(random.rotation()), group.position = vector(1);
      group.velocity = vector(3), group.spin = vector(20);
    }
    spheres.place();

    const double h = 0.01, fall = 1e-3;
    std::vector<Vec3d> centre, velocity;
    std::vector<double> turn;
    std::uint32_t at = 0;
    for (const SphereGroup& group : spheres.groups()) {
      for (; at < group.last; ++at) {
        const Vec3d arm = group.rotation * balls[at].own;
        centre.push_back(group.position + arm), velocity.push_back(group.velocity + cross(group.spin, arm));
        turn.push_back(std::isinf(balls[at].radius) ? 0 : norm(group.spin) * balls[at].radius);
        EXPECT_LT(norm(spheres.centre(at) - centre[at]), 1e-14);
        EXPECT_LT(norm(spheres.velocity(at) - velocity[at]), 1e-13);
        EXPECT_EQ(spheres.spin(at).x, group.spin.x);
        EXPECT_NEAR(spheres.turn(at), turn[at], 1e-13);
      }
    }
    ASSERT_EQ(at, balls.size());
    const std::span<const std::uint32_t> near = spheres.near(h, fall);
    std::size_t k = 0, apart = 0;
    for (std::uint32_t p = 0; p < pairs.size(); ++p) {
      const auto [i, j] = pairs[p];
      const double most = balls[i].radius + balls[j].radius + std::max(0.0, balls[i].margin) +
                          std::max(0.0, balls[j].margin) + fall +
                          h * (norm(velocity[i] - velocity[j]) + turn[i] + turn[j]);
      const double way = norm(centre[i] - centre[j]);
      const bool found = k < near.size() && near[k] == p;
      if (way <= most) {
        EXPECT_TRUE(found) << seed << ": " << i << ", " << j;
      }
      if (way > most * (1 + 1e-8)) {
        EXPECT_FALSE(found) << seed << ": " << i << ", " << j;
      }
      k += found, apart += !found;
    }
    EXPECT_EQ(k, near.size());
    EXPECT_GT(apart, 0u);
    EXPECT_GT(k, 0u);
  }
}

}  // namespace
}  // namespace tarsus
