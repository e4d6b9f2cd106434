// Contacts of free bodies solved in SIMD lanes, in single precision, against a sweep in double precision over one after
// the other in the order in which they were added.
#include "solver/body_points.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tarsus::test {
namespace {

constexpr double kSingle = 1e-4;  ///< of numbers up to ten in single precision, over some hundred operations

struct Contact {
  ContactRows at;
  double target[3], compliance[2], rho[2], friction, felt[2], y[3], before[3] = {}, by[3] = {};
};

/// Projected Gauss-Seidel on one contact: its normal, then friction (sweeps.hpp).
void relax(Contact& c, std::vector<FreeBody>& bodies, const Extrapolation* by, double& moved, double& energy) {
  for (int k = 0; k < 3 && by; ++k) (*by)(c.y[k], c.before[k], c.by[k]);
  const auto velocity = [&](int body, const Vec3d& arm) {
    return body < 0 ? Vec3d{0, 0, 0} : bodies[body].v + cross(bodies[body].w, arm);
  };
  const Vec3d v = velocity(c.at.a, c.at.arm_a) - velocity(c.at.b, c.at.arm_b);
  double next[3];
  next[0] = std::max(0.0, c.y[0] - (dot(c.at.axis[0], v) + c.compliance[0] * c.y[0] - c.target[0]) / c.rho[0]);
  for (int k = 1; k < 3; ++k) {
    const double u = dot(c.at.axis[k], v) + (next[0] - c.y[0]) * c.felt[k - 1];
    next[k] = c.y[k] - (u + c.compliance[1] * c.y[k] - c.target[k]) / c.rho[1];
  }
  const double length = std::hypot(next[1], next[2]), bound = c.friction * next[0];
  for (int k = 1; k < 3 && length > bound; ++k) next[k] *= bound / length;
  Vec3d f{0, 0, 0};
  double change[3];
  for (int k = 0; k < 3; ++k) {
    change[k] = next[k] - c.y[k], energy += change[k] * change[k] * c.rho[k > 0];
    f += c.at.axis[k] * change[k], c.y[k] = next[k];
  }
  moved = std::max({moved, std::abs(change[0]) * c.rho[0], std::hypot(change[1], change[2]) * c.rho[1]});
  const auto push = [&](int body, const Vec3d& arm, const Vec3d& force) {
    if (body < 0) return;
    bodies[body].v += force * bodies[body].inverse_mass;
    bodies[body].w += bodies[body].inverse_inertia * cross(arm, force);
  };
  push(c.at.a, c.at.arm_a, f), push(c.at.b, c.at.arm_b, -f);
}

class Drawn {
 public:
  std::vector<FreeBody> bodies;
  std::vector<Contact> contacts;

  Drawn(int seed, int count, int points) : bodies(count), engine_(seed) {
    for (FreeBody& body : bodies) {
      body.inverse_mass = uniform(0.5, 2), body.w = vector(), body.v = vector();
      body.inverse_inertia = {uniform(1, 2), 0.1, -0.2, uniform(1, 2), 0.3, uniform(1, 2)};
    }
    for (int i = 0; i < points; ++i) contacts.push_back(contact());
  }
  /// Adds the contacts to `points` in their order.
  std::vector<int> add_to(BodyPoints& points) const {
    std::vector<int> at;
    points.clear(bodies), points.take_motions(bodies);
    for (const Contact& c : contacts) {
      const int i = at.emplace_back(points.add(c.at));
      const auto [n, t1, t2] = c.at.axis;
      const auto put = [&](int which, double x) { points.number(i, PointNumber(which)) = float(x); };
      points.put(i, kPointNormal, n), points.put(i, kPointArmA, c.at.arm_a), points.put(i, kPointArmB, c.at.arm_b);
      points.put(i, kPointTarget, n * c.target[0] + t1 * c.target[1] + t2 * c.target[2]);
      for (int k = 0; k < 2; ++k) {
        put(kPointCompliance + k, c.compliance[k]);
        put(kPointMetric + k, c.rho[k]), put(kPointInverse + k, 1 / c.rho[k]);
      }
      put(kPointFriction, c.friction), points.put(i, kPointFelt, t1 * c.felt[0] + t2 * c.felt[1]);
      points.put(i, kPointImpulse, n * c.y[0] + t1 * c.y[1] + t2 * c.y[2]);
    }
    return at;
  }

 private:
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine_); }
  Vec3d vector() { return {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)}; }
  Contact contact() {
    Contact c;
    c.at.a = int(uniform(0, double(bodies.size()))), c.at.b = int(uniform(-1, double(bodies.size())));
    if (c.at.b == c.at.a) c.at.b = -1;
    c.at.arm_a = vector(), c.at.arm_b = c.at.b < 0 ? Vec3d{0, 0, 0} : vector();
    auto& [n, t1, t2] = c.at.axis;
    n = vector(), n = n * (1 / norm(n)), t1 = cross(n, vector()), t1 = t1 * (1 / norm(t1)), t2 = cross(n, t1);
    for (int k = 0; k < 3; ++k) c.target[k] = uniform(-1, 1), c.y[k] = uniform(0, 0.3);
    for (int k = 0; k < 2; ++k) c.compliance[k] = uniform(0, 0.1), c.rho[k] = uniform(4, 8), c.felt[k] = uniform(-1, 1);
    c.friction = uniform(0, 1) < 0.2 ? 0 : uniform(0, 1);
    return c;
  }
  std::mt19937 engine_;
};

TEST(BodyPoints, SweepAsOneContactAfterTheOther) {
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Drawn one(seed, 2 + seed, seed % 7 == 0 ? 3 : 8 * seed);
    std::vector<FreeBody> bodies = one.bodies;
    BodyPoints points;
    const std::vector<int> at = one.add_to(points);
    for (int sweep = 0; sweep < 4; ++sweep) {
      const bool back = sweep % 2 == 1;
      const Extrapolation by{sweep == 1 ? 0 : 0.5, sweep == 1};
      double moved = 0, energy = 0;
      for (std::size_t k = 0; k < one.contacts.size(); ++k)
        relax(one.contacts[back ? one.contacts.size() - 1 - k : k], one.bodies, sweep > 0 ? &by : nullptr, moved,
              energy);
      const Relaxed found = points.relax(0, points.places(), back, sweep > 0 ? &by : nullptr);
      EXPECT_NEAR(found.moved, moved, kSingle * (1 + moved));
      EXPECT_NEAR(found.energy, energy, kSingle * (1 + energy));
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      const Vec3d y = points.vector(at[i], kPointImpulse);
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(dot(y, one.contacts[i].at.axis[k]), one.contacts[i].y[k], kSingle) << i;
    }
    points.give_motions(bodies);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      for (int k = 0; k < 3; ++k) {
        EXPECT_NEAR(bodies[i].v[k], one.bodies[i].v[k], kSingle);
        EXPECT_NEAR(bodies[i].w[k], one.bodies[i].w[k], kSingle);
      }
    }
  }
}

ContactRows between(int a, int b) {
  ContactRows point;
  point.a = a, point.b = b;
  return point;
}

/// Each contact takes a place after those that share a body with it: the first such place with room.
TEST(BodyPoints, FillPlaces) {
  const std::vector<FreeBody> bodies(40);
  BodyPoints points;
  points.clear(bodies);
  int lanes = -1;
  for (; points.places() < 2; ++lanes) points.add(between(lanes + 1, -1));
  ASSERT_GE(lanes, 1);
  const auto place_of = [&](int contact) { return contact / lanes; };
  points.clear(bodies);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(place_of(points.add(between(0, -1))), k);
  EXPECT_EQ(place_of(points.add(between(1, 0))), 3);
  EXPECT_EQ(points.add_other(1, -1), 4);
  EXPECT_EQ(points.add_other(-1, -1), 5);
  EXPECT_EQ(place_of(points.add(between(2, 1))), 5);
  for (int k = 3; k < 2 + lanes; ++k) EXPECT_EQ(place_of(points.add(between(k, -1))), 0);  // full now
  EXPECT_EQ(place_of(points.add(between(20, -1))), lanes > 1 ? 1 : 4);
}

}  // namespace
}  // namespace tarsus::test
