// Speed of collision detection, one JSON object per line. Times are minima over repeats of processor time, one core.
//   spheres: broad and narrow phase of equal spheres settled in a box (a jittered lattice with as many contacts)
//   boxes: broad phase of boxes that fill space, of equal and of mixed sizes, and its growth from 1,000 to 100,000
//   pairs: narrow phase of each pair of shapes that overlap a little
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <random>
#include <vector>

#include "tarsus/geometry/broad_phase.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/geometry/sphere_phase.hpp"
#include "tarsus/math/rotation.hpp"

namespace {

using namespace tarsus;
using Random = std::mt19937_64;

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Minimum time of one call [s] over repeats for about `budget` seconds.
template <class F>
double best_of(double budget, const F& call) {
  double best = 1e300;
  const double end = seconds() + budget;
  do {
    const double start = seconds();
    call();
    best = std::min(best, seconds() - start);
  } while (seconds() < end);
  return best;
}

double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

void bench_spheres() {
  for (const int side : {10, 20, 40}) {
    Random random(1);
    std::vector<double> x, y, z, r;
    // Spacing and jitter give about 3.3 contacts per sphere, as in a settled pile.
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) {
        for (int k = 0; k < side; ++k) {
          const double at[3] = {double(i), double(j), double(k)};
          x.push_back(0.91 * at[0] + uniform(random, -0.1, 0.1));
          y.push_back(0.91 * at[1] + uniform(random, -0.1, 0.1));
          z.push_back(0.91 * at[2] + uniform(random, -0.1, 0.1));
          r.push_back(0.5);
        }
      }
    }
    // Random order, because body numbers rarely follow positions.
    std::vector<std::size_t> order(x.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    auto shuffled = [&](std::vector<double> v) {
      std::vector<double> out(v.size());
      for (std::size_t i = 0; i < v.size(); ++i) out[i] = v[order[i]];
      return out;
    };
    x = shuffled(x), y = shuffled(y), z = shuffled(z);
    SpherePhase phase;
    std::size_t contacts = 0;
    const double t = best_of(0.5, [&] { contacts = phase.find(x, y, z, r, 0).size(); });
    fmt::print("{{\"bench\":\"spheres\",\"spheres\":{},\"contacts\":{},\"ms\":{:.3f},\"ns_per_sphere\":{:.1f}}}\n",
               x.size(), contacts, 1e3 * t, 1e9 * t / static_cast<double>(x.size()));
  }
}

std::vector<Aabb> fill(int n, double decades) {
  Random random(2);
  std::vector<Aabb> boxes;
  double volume = 0;
  for (int k = 0; k < n; ++k) {
    Aabb b;
    const double s = std::pow(10, -uniform(random, 0, decades));
    b.upper = {s * uniform(random, 0.5, 1), s * uniform(random, 0.5, 1), s * uniform(random, 0.5, 1)};
    volume += b.upper.x * b.upper.y * b.upper.z;
    boxes.push_back(b);
  }
  const double room = std::cbrt(2 * volume);
  for (Aabb& b : boxes) {
    const Vec3d at{uniform(random, 0, room), uniform(random, 0, room), uniform(random, 0, room)};
    b.lower += at, b.upper += at;
  }
  return boxes;
}

void bench_boxes() {
  for (const double decades : {0.0, 1.0, 2.0}) {
    for (const int n : {1000, 10000, 100000}) {
      const auto boxes = fill(n, decades);
      BroadPhase phase;
      std::size_t pairs = 0;
      const double t = best_of(0.5, [&] { pairs = phase.find(boxes).size(); });
      fmt::print(
          "{{\"bench\":\"boxes\",\"decades_of_size\":{},\"boxes\":{},\"pairs\":{},\"ms\":{:.3f},\"ns_per_box\":{:.1f},"
          "\"ns_per_pair\":{:.1f}}}\n",
          decades, n, pairs, 1e3 * t, 1e9 * t / n, 1e9 * t / static_cast<double>(std::max<std::size_t>(pairs, 1)));
    }
  }
}

/// Pairs in random poses that overlap by a few millimetres, or lie flat on each other.
void bench_pairs() {
  Random random(3);
  std::vector<Vec3d> points;
  for (int k = 0; k < 40; ++k) {
    Vec3d p{uniform(random, -1, 1), uniform(random, -1, 1), uniform(random, -1, 1)};
    points.push_back(p * (0.3 / norm(p)));
  }
  const ConvexHull hull(points);
  std::vector<double> heights;
  for (int k = 0; k < 41 * 41; ++k) heights.push_back(uniform(random, 0, 0.05));
  const HeightField field(41, 41, heights, 2, 2, 1);
  const Shape shapes[] = {{ShapeType::plane, {0, 0, 0}},
                          {ShapeType::sphere, {0.3, 0, 0}},
                          {ShapeType::capsule, {0.1, 0.3, 0}},
                          {ShapeType::ellipsoid, {0.3, 0.2, 0.1}},
                          {ShapeType::cylinder, {0.2, 0.3, 0}},
                          {ShapeType::box, {0.2, 0.3, 0.25}},
                          {ShapeType::convex, {0, 0, 0}, &hull, nullptr},
                          {ShapeType::height_field, {0, 0, 0}, nullptr, &field}};
  for (const Shape& b : shapes) {
    for (const Shape& a : shapes) {
      const bool ground = b.type == ShapeType::plane || b.type == ShapeType::height_field;
      if (a.type == ShapeType::plane || a.type == ShapeType::height_field || (!ground && a.type < b.type)) continue;
      std::vector<std::array<ShapePose, 2>> poses;
      for (int k = 0; k < 256; ++k) {
        const auto turn = [&] {
          return rotation(exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)}));
        };
        ShapePose pa{{0, 0, 0}, turn()}, pb{{0, 0, 0}, ground ? identity3<double>() : turn()};
        Vec3d d = ground ? Vec3d{0, 0, 1} : Vec3d{uniform(random, -1, 1), uniform(random, -1, 1), 1};
        d = d * (1 / norm(d));
        double low = 0, high = 2;  // bounds of the distance along d at which the shapes touch
        for (int step = 0; step < 30; ++step) {
          pa.position = d * ((low + high) / 2);
          ContactPoint point;
          (collide(a, pa, b, pb, 0, {&point, 1}) ? low : high) = (low + high) / 2;
        }
        pa.position = d * (low - 0.003);
        poses.push_back({pa, pb});
      }
      std::array<ContactPoint, kMaxManifold> out;
      int contacts = 0;
      const double t = best_of(0.02, [&] {
        contacts = 0;
        for (const auto& p : poses) contacts += collide(a, p[0], b, p[1], 0, out);
      });
      const double count = static_cast<double>(poses.size());
      fmt::print("{{\"bench\":\"pairs\",\"a\":\"{}\",\"b\":\"{}\",\"ns\":{:.0f},\"contacts\":{:.2f}}}\n", name(a.type),
                 name(b.type), 1e9 * t / count, contacts / count);
    }
  }
}

}  // namespace

int main() {
  bench_spheres();
  bench_boxes();
  bench_pairs();
  return 0;
}
