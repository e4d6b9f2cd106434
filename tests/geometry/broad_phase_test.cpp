// The broad phases against a comparison of all pairs.
#include "tarsus/geometry/broad_phase.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/sphere_phase.hpp"

namespace tarsus {
namespace {

using test::uniform;

using Random = std::mt19937_64;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

std::vector<BodyPair> sorted(std::span<const BodyPair> pairs) {
  std::vector<BodyPair> out(pairs.begin(), pairs.end());
  std::sort(out.begin(), out.end(), [](const BodyPair& a, const BodyPair& b) {
    return std::tie(a.first, a.second) < std::tie(b.first, b.second);
  });
  return out;
}

std::vector<BodyPair> brute_force(const std::vector<Aabb>& boxes) {
  std::vector<BodyPair> out;
  for (std::uint32_t i = 0; i < boxes.size(); ++i) {
    for (std::uint32_t j = i + 1; j < boxes.size(); ++j) {
      if (overlap(boxes[i], boxes[j])) out.push_back({i, j});
    }
  }
  return out;
}

/// n boxes in a cube of side `room`, with sizes spread over `decades` powers of ten below `size`.
std::vector<Aabb> scatter(Random& random, int n, double room, double size, double decades) {
  std::vector<Aabb> boxes;
  for (int k = 0; k < n; ++k) {
    Aabb b;
    const double s = size * std::pow(10, -uniform(random, 0, decades));
    for (int i = 0; i < 3; ++i) {
      b.lower[i] = uniform(random, -room / 2, room / 2);
      b.upper[i] = b.lower[i] + s * uniform(random, 0.3, 1);
    }
    boxes.push_back(b);
  }
  return boxes;
}

void expect_brute_force(BroadPhase& phase, const std::vector<Aabb>& boxes) {
  EXPECT_EQ(sorted(phase.find(boxes)), brute_force(boxes));
}

TEST(BroadPhase, FindsWhatBruteForceFinds) {
  Random random(1);
  BroadPhase phase;
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    const int n = 1 + trial * 13;
    const double room = std::cbrt(n) * uniform(random, 0.3, 3);
    expect_brute_force(phase, scatter(random, n, room, 1, trial % 4));
  }
}

TEST(BroadPhase, AllInOnePlaceOnOneLineOnOneGrid) {
  BroadPhase phase;
  Random random(2);
  std::vector<Aabb> same(100, {{1, 1, 1}, {2, 2, 2}}), line, grid, points(80, {{3, 3, 3}, {3, 3, 3}});
  for (int k = 0; k < 300; ++k) {
    line.push_back({{0.5 * k, 0, 0}, {0.5 * k + 0.7, 1, 1}});
    const double x = k % 7, y = k / 7 % 7, z = k / 49;
    grid.push_back({{x, y, z}, {x + 1, y + 1, z + 1}});  // neighbours touch exactly: that counts
  }
  expect_brute_force(phase, same);
  expect_brute_force(phase, line);
  expect_brute_force(phase, grid);
  expect_brute_force(phase, points);
  expect_brute_force(phase, {});
  expect_brute_force(phase, {same[0]});
}

TEST(BroadPhase, PlanesGiantsAndBodiesFarAway) {
  Random random(3);
  BroadPhase phase;
  auto boxes = scatter(random, 500, 8, 1, 1);
  boxes.push_back({{-kInf, -kInf, -kInf}, {kInf, kInf, 0}});
  boxes.push_back({{-kInf, -kInf, -kInf}, {kInf, kInf, kInf}});
  boxes.push_back({{-1e300, -1e300, -1e300}, {1e300, 1e300, 1e300}});
  boxes.push_back({{-100, -100, -1}, {100, 100, 0}});
  boxes.push_back({{-kInf, -kInf, 0}, {kInf, -kInf, 1}});
  boxes.push_back({{0, kInf, 0}, {1, kInf, 1}});
  boxes.push_back({{-1.5e308, 0, 0}, {1.5e308, 1, 1}});
  for (const double far : {1e6, 1e12, 1e100, 1e300, -1e300}) {
    boxes.push_back({{far, far, far}, {far * (1 + 1e-9) + 1, far + 1, far + 1}});
    boxes.push_back({{far, 0, 0}, {far + 1, 1, 1}});
    boxes.push_back({{0, far, -far}, {1, far + 1, 1 - far}});
  }
  expect_brute_force(phase, boxes);
  // Boxes scattered over up to 200 powers of ten.
  std::vector<Aabb> blown;
  for (int k = 0; k < 400; ++k) {
    const double scale = std::pow(10, uniform(random, 0, 200));
    const Vec3d at{scale * uniform(random, -1, 1), scale * uniform(random, -1, 1), scale * uniform(random, -1, 1)};
    blown.push_back({at, at + Vec3d{1, 1, 1}});
  }
  expect_brute_force(phase, blown);
}

TEST(BroadPhase, SmallBoxesAllAroundAFewLargeOnes) {
  // The grid of the large class is much smaller than the world of the small class, whose rows extend beyond it.
  Random random(9);
  BroadPhase phase;
  for (int trial = 0; trial < 20; ++trial) {
    auto boxes = scatter(random, 300, 30, 0.5, 0);
    for (const Aabb& b : scatter(random, 40, 6, 4, 0)) boxes.push_back(b);
    for (const Aabb& b : scatter(random, 40, 3, 3e-3, 0)) boxes.push_back(b);
    // A distant box makes the bins of the small class wide.
    boxes.push_back({{1e7, 1e7, 1e7}, {1e7 + 0.4, 1e7 + 0.4, 1e7 + 0.4}});
    expect_brute_force(phase, boxes);
  }
}

TEST(BroadPhase, NanIsInNoPairAndEmptyBoxesOverlapNothing) {
  Random random(4);
  BroadPhase phase;
  auto boxes = scatter(random, 200, 4, 1, 0);
  boxes[7].lower.y = kNan;
  boxes[8].upper = {kNan, kNan, kNan};
  std::swap(boxes[9].lower, boxes[9].upper);  // lower and upper exchanged
  expect_brute_force(phase, boxes);
}

TEST(BroadPhase, GroupsKeepApart) {
  Random random(5);
  BroadPhase phase;
  const auto boxes = scatter(random, 300, 5, 1, 1);
  std::vector<int> groups;
  for (int k = 0; k < 300; ++k) groups.push_back(k % 3 - 1);
  auto expected = brute_force(boxes);
  std::erase_if(expected,
                [&](const BodyPair& p) { return groups[p.first] >= 0 && groups[p.first] == groups[p.second]; });
  EXPECT_EQ(sorted(phase.find(boxes, groups)), expected);
  EXPECT_THROW(phase.find(boxes, std::vector<int>(3)), ShapeError);
}

TEST(BroadPhase, SameBoxesSameOrder) {
  Random random(6);
  const auto boxes = scatter(random, 1000, 8, 1, 2);
  BroadPhase used, fresh;
  used.find(scatter(random, 3000, 9, 1, 1));
  const auto a = used.find(boxes), b = fresh.find(boxes);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
}

struct Spheres {
  std::vector<double> x, y, z, r;
};

Spheres scatter_spheres(Random& random, int n, double room, double decades) {
  Spheres s;
  for (int k = 0; k < n; ++k) {
    for (auto* v : {&s.x, &s.y, &s.z}) v->push_back(uniform(random, 0, room));
    s.r.push_back(0.5 * std::pow(10, -uniform(random, 0, decades)));
  }
  return s;
}

void expect_brute_force(SpherePhase& phase, const Spheres& s, double margin) {
  const SphereContacts& c = phase.find(s.x, s.y, s.z, s.r, margin);
  std::vector<BodyPair> got, expected;
  for (std::size_t k = 0; k < c.size(); ++k) {
    got.push_back({c.first[k], c.second[k]});
    const std::size_t i = c.first[k], j = c.second[k];
    const Vec3d d{s.x[i] - s.x[j], s.y[i] - s.y[j], s.z[i] - s.z[j]};
    const double length = norm(d);
    EXPECT_NEAR(c.distance[k], length - s.r[i] - s.r[j], 1e-13);
    const Vec3d n{c.normal_x[k], c.normal_y[k], c.normal_z[k]};
    if (length > 0) {
      EXPECT_NEAR(norm(n - d * (1 / length)), 0, 1e-13);
    } else {
      EXPECT_EQ(n.z, 1);
    }
  }
  for (std::uint32_t i = 0; i < s.x.size(); ++i) {
    for (std::uint32_t j = i + 1; j < s.x.size(); ++j) {
      const double length = norm(Vec3d{s.x[i] - s.x[j], s.y[i] - s.y[j], s.z[i] - s.z[j]});
      if (s.r[i] >= 0 && s.r[j] >= 0 && length <= s.r[i] + s.r[j] + margin) expected.push_back({i, j});
    }
  }
  EXPECT_EQ(sorted(got), expected);
  const std::span<const BodyPair> pairs = phase.pairs(s.x, s.y, s.z, s.r, margin);
  EXPECT_EQ(sorted({pairs.begin(), pairs.end()}), expected);
}

TEST(SpherePhase, FindsWhatBruteForceFinds) {
  Random random(7);
  SpherePhase phase;
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const int n = 1 + trial * 17;
    Spheres s = scatter_spheres(random, n, std::cbrt(n) * uniform(random, 0.5, 1.5), trial % 3);
    expect_brute_force(phase, s, trial % 2 * uniform(random, 0, 0.1));
  }
}

TEST(SpherePhase, BadSpheresHaveNoContacts) {
  Random random(8);
  SpherePhase phase;
  Spheres s = scatter_spheres(random, 300, 5, 0);
  s.x[3] = kNan, s.y[4] = kInf, s.r[5] = kNan, s.r[6] = -1, s.z[7] = 1e300;
  for (const int same : {10, 11, 12})
    s.x[static_cast<std::size_t>(same)] = s.y[static_cast<std::size_t>(same)] = s.z[static_cast<std::size_t>(same)] = 1;
  expect_brute_force(phase, s, 0.01);
  EXPECT_EQ(phase.find(s.x, s.y, s.z, s.r, kNan).size(), 0u);
  EXPECT_THROW(phase.find(s.x, s.y, s.z, {}, 0), ShapeError);
}

}  // namespace
}  // namespace tarsus
