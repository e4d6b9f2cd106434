// Convex hull of points, by qhull's reentrant library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" {
#include <libqhull_r/qhull_ra.h>
}

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/geometry/inertia.hpp"

namespace tarsus {

namespace {

// qhull's state with its message stream; the destructor frees both. qhull reports errors to us by return codes (its own
// longjmp stays inside qh_new_qhull), so no C++ frame is skipped.
struct Qhull {
  qhT state;
  char* text = nullptr;
  std::size_t text_size = 0;
  std::FILE* messages = open_memstream(&text, &text_size);

  Qhull() { qh_zero(&state, messages); }
  ~Qhull() {
    qh_freeqhull(&state, !qh_ALL);
    int current = 0, total = 0;
    qh_memfreeshort(&state, &current, &total);
    std::fclose(messages);
    std::free(text);
  }
  Qhull(const Qhull&) = delete;
  Qhull& operator=(const Qhull&) = delete;
};

constexpr double kLargest = 1e50;  // largest coordinate [m]: beyond, areas and volumes overflow

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::vector<Triangle> convex_hull(std::span<const Vec3d> points) {
  for (const Vec3d& p : points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y) || !std::isfinite(p.z)) {
      throw ValueError("convex hull point", "nan or inf", "finite coordinates [m]");
    }
  }
  if (points.size() < 4) {
    throw ValueError("convex hull points", std::to_string(points.size()), "at least 4 points that span a volume");
  }
  if (std::ranges::all_of(points, [&](const Vec3d& p) { return norm(p - points[0]) == 0; }))
    throw ValueError("convex hull points", "all the same", "points that span a volume");
  double largest = 0;
  for (const Vec3d& p : points) largest = std::max({largest, std::abs(p.x), std::abs(p.y), std::abs(p.z)});
  if (largest > kLargest) {
    throw ValueError("convex hull point", number_text(largest), "coordinates of at most 1e50 m");
  }
  // qhull reads through a null pointer if its determinants overflow or vanish. Coordinates are therefore scaled to
  // about 1 by an exact power of two.
  const int exponent = largest > 0 ? -std::ilogb(largest) : 0;
  std::vector<coordT> coordinates;
  coordinates.reserve(3 * points.size());
  for (const Vec3d& p : points) {
    for (int i = 0; i < 3; ++i) coordinates.push_back(std::ldexp(p[i], exponent));
  }

  Qhull hull;
  qhT* qh = &hull.state;
  char command[] = "qhull Qt";  // Qt: triangulated facets
  const int status =
      qh_new_qhull(qh, 3, static_cast<int>(points.size()), coordinates.data(), False, command, nullptr, hull.messages);
  if (status == qh_ERRsingular)
    throw ValueError("convex hull points", "in a plane or on a line", "points that span a volume");
  if (status != 0) {
    std::fflush(hull.messages);
    throw ValueError("convex hull", first_line(std::string(hull.text, hull.text_size)), "points that span a volume");
  }
  std::vector<Triangle> triangles;
  facetT* facet;
  FORALLfacets {
    Triangle t{};
    int n = 0;
    vertexT *vertex, **vertexp;
    FOREACHvertex_(facet->vertices) {
      if (n < 3) t[n] = qh_pointid(qh, vertex->point);
      ++n;
    }
    if (n != 3)
      throw Error("convex hull: expected triangles from qhull, but it returned a facet with " + std::to_string(n) +
                  " vertices");
    const auto corner = [&](int i) {
      const auto k = 3 * static_cast<std::size_t>(i);
      return Vec3d{coordinates[k], coordinates[k + 1], coordinates[k + 2]};
    };
    const Vec3d a = corner(t[0]), b = corner(t[1]), c = corner(t[2]);
    const Vec3d outward{facet->normal[0], facet->normal[1], facet->normal[2]};
    if (dot(cross(b - a, c - a), outward) < 0) std::swap(t[1], t[2]);
    triangles.push_back(t);
  }
  return triangles;
}

}  // namespace tarsus
