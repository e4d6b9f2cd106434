// Spheres on moving bodies in SIMD lanes, against the scalar code.
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
  int near_planes = 0, far_planes = 0;
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
    std::vector<unsigned char> apart_pairs;  // of every second pair of carriers one may be stopped
    for (const auto [i, j] : pairs) apart_pairs.push_back((balls[i].carrier + balls[j].carrier) % 2 != 0);
    spheres.list(pairs, apart_pairs);
    const Vec3d normal = random.direction();
    for (std::size_t i = 0; i < balls.size(); ++i) {
      if (std::isinf(balls[i].radius)) spheres.face(i, normal);
    }
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
      const double still = std::max(0.0, balls[i].margin) + std::max(0.0, balls[j].margin) + fall;
      const double sizes = balls[i].radius + balls[j].radius;
      const Vec3d parting = velocity[i] - velocity[j];
      double most = sizes + still + h * (norm(parting) + turn[i] + turn[j]), way = norm(centre[i] - centre[j]);
      if (const bool plane_i = std::isinf(balls[i].radius); plane_i || std::isinf(balls[j].radius)) {
        const std::uint32_t plane = plane_i ? i : j, ball = plane_i ? j : i;
        most = balls[ball].radius + still +
               h * (std::max(0.0, dot(normal, velocity[plane] - velocity[ball])) + turn[ball]);
        way = dot(normal, centre[ball] - centre[plane]);
        near_planes += way <= most, far_planes += way > most;
      } else {  // points of the smaller one, in the frame of the other's carrier
        const Vec3d spin = spheres.spin(i) - spheres.spin(j);
        const auto [small, large] = balls[i].radius <= balls[j].radius ? std::pair(i, j) : std::pair(j, i);
        const Vec3d carried = velocity[large] + cross(spheres.spin(large), centre[small] - centre[large]);
        const double moved = still + h * (norm(velocity[small] - carried) + norm(spin) * balls[small].radius);
        EXPECT_NEAR(reach(spheres.moving(i), spheres.moving(j), h, still),
                    h * norm(spin) < 1 ? std::min(most - sizes, moved / (1 - h * norm(spin) / 2)) : most - sizes,
                    1e-13);
        if (apart_pairs[p]) {
          const double speed = std::max(norm(velocity[i]) + turn[i], norm(velocity[j]) + turn[j]);
          most = std::max(most, sizes + still + h * speed);
        }
      }
      const bool found = k < near.size() && near[k] == p;
      if (way <= most) {
        EXPECT_TRUE(found) << seed << ": " << i << ", " << j;
      }
      if (way > std::max(0.0, most) * (1 + 1e-8)) {
        EXPECT_FALSE(found) << seed << ": " << i << ", " << j;
      }
      k += found, apart += !found;
    }
    EXPECT_EQ(k, near.size());
    EXPECT_GT(apart, 0u);
    EXPECT_GT(k, 0u);
  }
  EXPECT_GT(near_planes, 100);
  EXPECT_GT(far_planes, 100);
}

}  // namespace
}  // namespace tarsus
