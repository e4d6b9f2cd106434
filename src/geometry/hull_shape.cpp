#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/convex_hull.hpp"

namespace tarsus {

namespace {

struct Plane {
  Vec3d normal;
  double offset, area;
};

Plane plane_of(const Vec3d& a, const Vec3d& b, const Vec3d& c) {
  const Vec3d n = cross(b - a, c - a);
  const double length = norm(n);
  const Vec3d unit = length > 0 ? n * (1 / length) : Vec3d{0, 0, 0};
  return {unit, dot(unit, (a + b + c) * (1.0 / 3)), length / 2};
}

using Twins = std::vector<std::array<int, 3>>;  // [triangle][edge] adjacent triangle, -1: none

Twins twins_of(const std::vector<Triangle>& triangles) {
  struct Edge {
    int from, to, triangle;
    bool operator<(const Edge& e) const { return std::tie(from, to, triangle) < std::tie(e.from, e.to, e.triangle); }
  };
  std::vector<Edge> edges;
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    for (std::size_t k = 0; k < 3; ++k)
      edges.push_back({triangles[t][k], triangles[t][(k + 1) % 3], static_cast<int>(t)});
  }
  std::sort(edges.begin(), edges.end());
  Twins twins(triangles.size(), {-1, -1, -1});
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    for (std::size_t k = 0; k < 3; ++k) {
      const int from = triangles[t][(k + 1) % 3], to = triangles[t][k];
      const auto behind = std::upper_bound(edges.begin(), edges.end(), Edge{from, to, std::numeric_limits<int>::max()});
      if (behind == edges.begin()) continue;
      const Edge& edge = *(behind - 1);
      if (edge.from == from && edge.to == to) twins[t][k] = edge.triangle;
    }
  }
  return twins;
}

/// The outline of a set of coplanar triangles; empty if it is not a single simple loop.
std::vector<int> outline(const std::vector<Triangle>& triangles, const std::vector<int>& members, const Twins& twins,
                         const std::vector<int>& face_of) {
  std::map<int, int> next;
  const int face = face_of[static_cast<std::size_t>(members[0])];
  for (const int t : members) {
    const Triangle& triangle = triangles[static_cast<std::size_t>(t)];
    for (std::size_t k = 0; k < 3; ++k) {
      const int from = triangle[k], to = triangle[(k + 1) % 3];
      const int twin = twins[static_cast<std::size_t>(t)][k];
      if (twin >= 0 && face_of[static_cast<std::size_t>(twin)] == face) continue;
      if (!next.emplace(from, to).second) return {};
    }
  }
  std::vector<int> loop;
  if (next.empty()) return {};
  const int start = next.begin()->first;
  int at = start;
  do {
    loop.push_back(at);
    const auto step = next.find(at);
    if (step == next.end() || loop.size() > next.size()) return {};
    at = step->second;
  } while (at != start);
  return loop.size() == next.size() ? loop : std::vector<int>{};
}

/// The triangles of a hull with their planes.
class Surface {
 public:
  std::span<const Vec3d> points;
  const std::vector<Triangle>& triangles;
  Twins twins;
  std::vector<Plane> planes;
  std::vector<int> order;  ///< large ones first: slivers have inaccurate planes and join others

  Surface(std::span<const Vec3d> all, const std::vector<Triangle>& of)
      : points(all), triangles(of), twins(twins_of(of)), order(of.size()) {
    for (const Triangle& t : of) planes.push_back(plane_of(at(t[0]), at(t[1]), at(t[2])));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return planes[static_cast<std::size_t>(a)].area > planes[static_cast<std::size_t>(b)].area;
    });
  }
  const Vec3d& at(int v) const { return points[static_cast<std::size_t>(v)]; }
  /// Diagonal of the bounding box [m].
  double size() const {
    Vec3d lower = at(triangles[0][0]), upper = lower;
    for (const Triangle& t : triangles) {
      for (const int v : t) {
        for (int i = 0; i < 3; ++i) lower[i] = std::min(lower[i], at(v)[i]), upper[i] = std::max(upper[i], at(v)[i]);
      }
    }
    return norm(upper - lower);
  }
  double area() const {
    return std::accumulate(planes.begin(), planes.end(), 0.0, [](double sum, const Plane& p) { return sum + p.area; });
  }
  double volume() const {
    double sum = 0;
    for (const Plane& p : planes) sum += p.area * (p.offset - dot(p.normal, at(triangles[0][0]))) / 3;
    return sum;
  }

  /// Neighbouring triangles, the first of which is the largest, and their plane.
  struct Side {
    Plane plane;
    std::vector<int> members;
  };
  /// The sides of the hull: triangles whose corners are within `flat` [m] of a plane.
  /// @param side [triangle] the side's number, -1: a triangle without area
  /// @param fits how many times a plane is fitted to the triangles; otherwise it is that of the largest
  std::vector<Side> sides(double flat, int fits, std::vector<int>& side) const {
    std::vector<Side> all;
    side.assign(triangles.size(), -1);
    for (const int seed : order) {
      Side own{planes[static_cast<std::size_t>(seed)], {}};
      if (side[static_cast<std::size_t>(seed)] >= 0 || own.plane.area == 0) continue;
      const int number = static_cast<int>(all.size());
      std::size_t before = 0;
      for (int fit = 0;; ++fit) {
        grow(seed, flat, number, own, side);
        if (fit == fits || own.members.size() <= std::max<std::size_t>(before, 1)) break;
        before = own.members.size();
        own.plane = fitted(own);
        for (const int t : own.members) side[static_cast<std::size_t>(t)] = -1;
      }
      all.push_back(std::move(own));
    }
    return all;
  }

 private:
  void grow(int seed, double flat, int number, Side& own, std::vector<int>& side) const {
    own.members.clear();
    const auto join = [&](int t) {
      side[static_cast<std::size_t>(t)] = number;
      own.members.push_back(t);
    };
    join(seed);
    for (std::size_t k = 0; k < own.members.size(); ++k) {
      for (const int twin : twins[static_cast<std::size_t>(own.members[k])]) {
        if (twin < 0 || side[static_cast<std::size_t>(twin)] >= 0) continue;
        const Triangle& other = triangles[static_cast<std::size_t>(twin)];
        const bool in_plane = std::all_of(other.begin(), other.end(), [&](int v) {
          return std::abs(dot(own.plane.normal, at(v)) - own.plane.offset) <= flat;
        });
        if (in_plane) join(twin);
      }
    }
  }
  /// The plane of the triangles' mean normal, halfway between the lowest and the highest corner.
  Plane fitted(const Side& of) const {
    Vec3d sum{0, 0, 0};
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const int t : of.members)
      sum += planes[static_cast<std::size_t>(t)].normal * planes[static_cast<std::size_t>(t)].area;
    const Vec3d n = sum * (1 / norm(sum));
    for (const int t : of.members) {
      for (const int v : triangles[static_cast<std::size_t>(t)])
        low = std::min(low, dot(n, at(v))), high = std::max(high, dot(n, at(v)));
    }
    return {n, (low + high) / 2, norm(sum)};
  }
};

constexpr double kExact = 1e-10;       ///< corners are in a plane but for rounding within this, relative to the size
constexpr double kFlat = 1e-7;         ///< they count as in a plane within this, relative to the size
constexpr double kRough = 1e-4;        ///< and as in one that was meant to be flat within this, relative to the size,
constexpr int kFits = 4;               ///< of planes to such sides
constexpr double kThin = 1e-2;         ///< and this, relative to volume / area
constexpr double kCrease = 0.9987;     ///< cosine of the angle at an edge that was meant to be one: 3 degrees
constexpr double kFarthest = 3;        ///< planes that meet farther away, relative to that, are left as they are
constexpr std::size_t kMostNext = 32;  ///< next faces of a face, evenly chosen among more
constexpr double kLeaning = 0.97;      ///< cosine of the angle below which the next face leans little

/// Moves the corners of sides that are nearly flat into a plane, or to where such planes meet. Mesh files are written
/// to a few digits, so that the triangles of a flat side differ by less than a body turns in one step: it would rock
/// from one to the other.
/// @return whether any of them was off by more than rounding
bool flatten(std::vector<Vec3d>& points, const std::vector<Triangle>& triangles) {
  struct Move {
    Sym3d planes{0, 0, 0, 0, 0, 0};  ///< sum of n nᵀ
    Vec3d away{0, 0, 0};             ///< sum of n times the way to the plane
    int last = -1;                   ///< side
  };
  const Surface surface(points, triangles);
  const double size = surface.size(), rough = std::min(kRough * size, kThin * surface.volume() / surface.area());
  std::vector<int> side;
  std::vector<Move> moves(points.size());
  double farthest = 0;
  const std::vector<Surface::Side> sides = surface.sides(rough, kFits, side);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const auto& [plane, members] = sides[s];
    const Vec3d n = plane.normal;
    const auto goes_on = [&](int t) {
      const auto& twins = surface.twins[static_cast<std::size_t>(t)];
      return std::any_of(twins.begin(), twins.end(), [&](int twin) {
        return twin >= 0 && side[static_cast<std::size_t>(twin)] != static_cast<int>(s) &&
               dot(n, surface.planes[static_cast<std::size_t>(twin)].normal) > kCrease;
      });
    };
    if (members.size() == 1 || std::any_of(members.begin(), members.end(), goes_on)) continue;
    for (const int t : members) {
      for (const int v : triangles[static_cast<std::size_t>(t)]) {
        Move& move = moves[static_cast<std::size_t>(v)];
        if (move.last == static_cast<int>(s)) continue;
        move.last = static_cast<int>(s);
        const double way = sides[s].plane.offset - dot(n, surface.at(v));
        farthest = std::max(farthest, std::abs(way));
        move.away += n * way;
        move.planes.xx += n.x * n.x, move.planes.xy += n.x * n.y, move.planes.xz += n.x * n.z;
        move.planes.yy += n.y * n.y, move.planes.yz += n.y * n.z, move.planes.zz += n.z * n.z;
      }
    }
  }
  if (farthest <= kExact * size) return false;
  for (std::size_t v = 0; v < points.size(); ++v) {
    Move& move = moves[v];
    if (move.last < 0) continue;
    constexpr double kLeast = 1e-10;  // of the motions that do it the least
    move.planes.xx += kLeast, move.planes.yy += kLeast, move.planes.zz += kLeast;
    const Vec3d by = inverse(move.planes) * move.away;
    if (norm(by) <= kFarthest * rough) points[v] += by;
  }
  return true;
}

}  // namespace

ConvexHull::ConvexHull(std::span<const Vec3d> cloud) {
  std::vector<Vec3d> points(cloud.begin(), cloud.end());
  std::vector<Triangle> triangles = convex_hull(points);
  if (flatten(points, triangles)) triangles = convex_hull(points);
  std::vector<int> renumbered(points.size(), -1);
  for (Triangle& t : triangles) {
    for (int& index : t) {
      int& to = renumbered[static_cast<std::size_t>(index)];
      if (to < 0) {
        to = static_cast<int>(vertices_.size());
        vertices_.push_back(points[static_cast<std::size_t>(index)]);
      }
      index = to;
    }
  }
  box_ = {vertices_[0], vertices_[0]};
  for (const Vec3d& v : vertices_) {
    centre_ += v * (1.0 / static_cast<double>(vertices_.size()));
    for (int i = 0; i < 3; ++i) {
      box_.lower[i] = std::min(box_.lower[i], v[i]);
      box_.upper[i] = std::max(box_.upper[i], v[i]);
    }
  }
  flat_ = kFlat * norm(box_.upper - box_.lower);
  find_farthest(triangles);
  find_faces(triangles);
  if (faces_.empty()) throw ValueError("convex hull", "made of faces without area", "points that span a volume");
}

void ConvexHull::find_faces(const std::vector<Triangle>& triangles) {
  const Surface surface(vertices_, triangles);
  const auto add_face = [&](const Plane& plane, const std::vector<int>& loop) {
    faces_.push_back({plane.normal, plane.offset, static_cast<int>(corners_.size()), static_cast<int>(loop.size())});
    corners_.insert(corners_.end(), loop.begin(), loop.end());
  };
  std::vector<int> side;
  for (const auto& [plane, members] : surface.sides(flat_, 0, side)) {
    const std::vector<int> loop = outline(triangles, members, surface.twins, side);
    if (!loop.empty()) {
      add_face(plane, loop);
      continue;
    }
    for (const int t : members) {
      const Triangle& own = triangles[static_cast<std::size_t>(t)];
      const Plane& own_plane = surface.planes[static_cast<std::size_t>(t)];
      if (own_plane.area > 0) add_face(own_plane, {own[0], own[1], own[2]});
    }
  }
  std::vector<std::vector<int>> around(vertices_.size());
  for (std::size_t f = 0; f < faces_.size(); ++f) {
    for (const int v : corners(faces_[f])) around[static_cast<std::size_t>(v)].push_back(static_cast<int>(f));
  }
  face_first_.push_back(0);
  for (const auto& list : around) {
    vertex_faces_.insert(vertex_faces_.end(), list.begin(), list.end());
    face_first_.push_back(static_cast<int>(vertex_faces_.size()));
  }
  find_next_faces();
}

/// Of the next faces, a step turns the hull onto those that lean little.
void ConvexHull::find_next_faces() {
  const auto at = [&](int v) -> const Vec3d& { return vertices_[static_cast<std::size_t>(v)]; };
  std::vector<std::size_t> corner_seen(vertices_.size()), face_seen(faces_.size());  // one more than the last face
  for (std::size_t f = 0; f < faces_.size(); ++f) {
    Face& face = faces_[f];
    const Vec3d n = face.normal;
    face.first_next = static_cast<int>(next_faces_.size());
    std::vector<int> around, near, rim;
    const auto add = [f](std::vector<std::size_t>& seen, std::vector<int>& all, int value) {
      std::size_t& by = seen[static_cast<std::size_t>(value)];
      if (by == f + 1) return;
      by = f + 1;
      all.push_back(value);
    };
    for (const int v : corners(face)) {
      add(corner_seen, near, v);
      for (int k = face_first_[static_cast<std::size_t>(v)]; k < face_first_[static_cast<std::size_t>(v) + 1]; ++k) {
        const int g = vertex_faces_[static_cast<std::size_t>(k)];
        const bool leans = dot(faces_[static_cast<std::size_t>(g)].normal, n) < kLeaning;
        if (static_cast<std::size_t>(g) != f && !leans) add(face_seen, around, g);
      }
    }
    const std::size_t step = (around.size() + kMostNext - 1) / kMostNext;
    for (std::size_t k = 0; k < around.size(); k += step) {
      next_faces_.push_back(around[k]);
      for (const int w : corners(faces_[static_cast<std::size_t>(around[k])])) add(corner_seen, near, w);
    }
    face.next = static_cast<int>(next_faces_.size()) - face.first_next;
    face.first_near = face.first, face.rim = face.near = face.count;
    if (face.next == 0) continue;
    // The rim by its two chains along u.
    const Vec3d u = std::abs(n.x) < 0.6 ? cross(n, Vec3d{1, 0, 0}) : cross(n, Vec3d{0, 1, 0});
    std::vector<int> along = near;
    std::sort(along.begin(), along.end(), [&](int p, int q) {
      const double a = dot(u, at(p)), b = dot(u, at(q));
      return a != b ? a < b : dot(cross(n, u), at(p)) < dot(cross(n, u), at(q));
    });
    const auto right_turn = [&](int p, int q, int r) { return dot(n, cross(at(q) - at(p), at(r) - at(p))) <= 0; };
    for (int chain = 0; chain < 2; ++chain) {
      const std::size_t first = rim.size();
      for (const int p : along) {
        while (rim.size() >= first + 2 && right_turn(rim[rim.size() - 2], rim.back(), p)) rim.pop_back();
        rim.push_back(p);
      }
      rim.pop_back();
      std::reverse(along.begin(), along.end());
    }
    face.first_near = static_cast<int>(corners_.size()), face.rim = static_cast<int>(rim.size());
    for (const int v : rim) corner_seen[static_cast<std::size_t>(v)] = 0;
    for (const int v : near) {
      if (corner_seen[static_cast<std::size_t>(v)] != 0) rim.push_back(v);
    }
    face.near = static_cast<int>(rim.size());
    corners_.insert(corners_.end(), rim.begin(), rim.end());
  }
}

namespace {

constexpr int kGridDepth = 3;
constexpr int kGrid = 1 << kGridDepth;   ///< cells along each edge of the cube of directions
constexpr int kQuarters = 5;             ///< largest number of subdivisions of a cell
constexpr std::size_t kFewVertices = 8;  ///< up to this many vertices, subdivision is not worthwhile
constexpr int kFinest = kGrid << kQuarters;
/// Size of the table above which cells are not subdivided: coincident vertices cannot be separated.
constexpr std::size_t most_numbers(std::size_t vertices) { return 16384 + 32 * vertices; }

/// The point of the cube's surface that a direction passes through: face, and position in finest cells.
struct Through {
  int face, u, v;
  explicit Through(const Vec3d& d) {
    const double x = std::abs(d.x), y = std::abs(d.y), z = std::abs(d.z);
    const int axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    const double most = std::abs(d[axis]), scale = most > 0 ? 0.5 * kFinest / most : 0;
    const auto along = [&](int k) {  // a direction with NaN maps to a corner
      return static_cast<int>(std::min(std::max(0.0, (d[k] + most) * scale), kFinest - 0.5));
    };
    face = 2 * axis + (d[axis] < 0), u = along((axis + 1) % 3), v = along((axis + 2) % 3);
  }
};

}  // namespace

/// A square of a cube's face, from u to u + size.
struct ConvexHull::Square {
  int face;
  double u, v, size;  ///< relative to the face's edge
  int depth;          ///< number of subdivisions, 0 in the grid

  /// Index in the grid.
  std::size_t cell() const {
    return static_cast<std::size_t>((face * kGrid + int(u * kGrid)) * kGrid + int(v * kGrid));
  }
  Square quarter(int k) const { return {face, u + size / 2 * (k / 2), v + size / 2 * (k % 2), size / 2, depth + 1}; }
  /// Slightly beyond its corners, so that rounding cannot move a direction out of it.
  Vec3d direction(double along_u, double along_v) const {
    constexpr double kWider = 1e-6;
    const auto at = [&](double from, double along) {
      return 2 * (from + size * (along + kWider * (2 * along - 1))) - 1;
    };
    Vec3d d{0, 0, 0};
    const int axis = face / 2;
    d[axis] = face % 2 ? -1 : 1, d[(axis + 1) % 3] = at(u, along_u), d[(axis + 2) % 3] = at(v, along_v);
    return d;
  }
};

/// Builds the table. Vertices are renumbered in its order, so that those of a cell share cache lines.
void ConvexHull::find_farthest(std::vector<Triangle>& triangles) {
  cells_.resize(6 * kGrid * kGrid);
  std::vector<int> all(vertices_.size());
  std::iota(all.begin(), all.end(), 0);
  for (int face = 0; face < 6; ++face) fill(0, {face, 0, 0, 1, -kGridDepth}, all);

  std::vector<int> number(vertices_.size(), -1);
  std::vector<Vec3d> old = std::move(vertices_);
  vertices_.clear();
  const auto renumber = [&](int i) {
    int& n = number[static_cast<std::size_t>(i)];
    if (n < 0) n = static_cast<int>(vertices_.size()), vertices_.push_back(old[static_cast<std::size_t>(i)]);
    return n;
  };
  for (int& i : farthest_) i = renumber(i);
  for (Triangle& t : triangles) {
    for (int& i : t) i = renumber(i);
  }
}

/// Fills a cell; squares larger than those of the grid have no cell. A vertex is excluded from a square if another
/// vertex is farther along all four corners, and hence along all directions between them. The vertices farthest along
/// the corners and the middle are tried as such others.
void ConvexHull::fill(std::size_t cell, const Square& square, const std::vector<int>& among) {
  using Along = std::array<double, 5>;  // the four corners and the middle
  const Vec3d corners[] = {square.direction(0, 0), square.direction(0, 1), square.direction(1, 0),
                           square.direction(1, 1), square.direction(0.5, 0.5)};
  const double slack = 1e-12 * norm(box_.upper - box_.lower);
  std::vector<Along> along(among.size());
  std::array<std::size_t, 5> best{};
  for (std::size_t i = 0; i < among.size(); ++i) {
    for (std::size_t k = 0; k < 5; ++k) {
      along[i][k] = dot(vertices_[static_cast<std::size_t>(among[i])] - centre_, corners[k]);
      if (along[i][k] > along[best[k]][k]) best[k] = i;
    }
  }
  std::vector<int> kept;
  for (std::size_t i = 0; i < among.size(); ++i) {
    const bool behind = std::any_of(best.begin(), best.end(), [&, own = along[i]](std::size_t j) {
      const Along& other = along[j];
      return other[0] - own[0] > slack && other[1] - own[1] > slack && other[2] - own[2] > slack &&
             other[3] - own[3] > slack;
    });
    if (!behind) kept.push_back(among[i]);
  }
  const bool worth_it =
      kept.size() > kFewVertices && square.depth < kQuarters && farthest_.size() < most_numbers(vertices_.size());
  if (square.depth >= 0 && !worth_it) {
    cells_[cell] = {static_cast<int>(farthest_.size()), static_cast<int>(kept.size())};
    farthest_.insert(farthest_.end(), kept.begin(), kept.end());
    return;
  }
  std::size_t quarters = 0;
  if (square.depth >= 0) {
    quarters = cells_.size();
    cells_.resize(quarters + 4);
    cells_[cell] = {static_cast<int>(quarters), 0};
  }
  for (std::size_t k = 0; k < 4; ++k) {
    const Square quarter = square.quarter(int(k));
    fill(quarter.depth == 0 ? quarter.cell() : quarters + k, quarter, kept);
  }
}

int ConvexHull::support(const Vec3d& direction) const {
  const Through at(direction);
  const int grid = (at.face * kGrid + (at.u >> kQuarters)) * kGrid + (at.v >> kQuarters);
  const Cell* cell = &cells_[static_cast<std::size_t>(grid)];
  for (int bit = kQuarters - 1; cell->count == 0; --bit)
    cell = &cells_[static_cast<std::size_t>(cell->first + 2 * (at.u >> bit & 1) + (at.v >> bit & 1))];
  const int *next = &farthest_[static_cast<std::size_t>(cell->first)], *end = next + cell->count;
  int best = *next;
  double most = dot(vertices_[static_cast<std::size_t>(best)], direction);
  while (++next < end) {
    const double here = dot(vertices_[static_cast<std::size_t>(*next)], direction);
    const bool farther = here > most;
    most = farther ? here : most;
    best = farther ? *next : best;
  }
  return best;
}

int ConvexHull::face_at(int vertex, const Vec3d& direction) const {
  int best = 0;
  double most = -2 * norm(direction);
  const auto look = [&](int f) {
    const double here = dot(faces_[static_cast<std::size_t>(f)].normal, direction);
    if (here > most) most = here, best = f;
  };
  const auto v = static_cast<std::size_t>(vertex);
  for (int k = face_first_[v]; k < face_first_[v + 1]; ++k) look(vertex_faces_[static_cast<std::size_t>(k)]);
  if (most < -norm(direction)) {  // a vertex inside a flat face has no face of its own
    for (std::size_t f = 0; f < faces_.size(); ++f) look(static_cast<int>(f));
  }
  return best;
}

std::shared_ptr<const ConvexHull> shared_hull(std::span<const Vec3d> points) {
  struct Kept {
    std::vector<Vec3d> points;
    std::shared_ptr<const ConvexHull> hull;
  };
  constexpr std::size_t kMost = 512;
  static std::mutex mutex;
  static std::unordered_multimap<std::size_t, Kept> all;
  static_assert(sizeof(Vec3d) == 3 * sizeof(double));
  const std::string_view bytes(reinterpret_cast<const char*>(points.data()), points.size_bytes());
  const std::size_t key = std::hash<std::string_view>()(bytes);
  const auto find = [&]() -> std::shared_ptr<const ConvexHull> {
    for (auto [it, end] = all.equal_range(key); it != end; ++it) {
      const std::vector<Vec3d>& own = it->second.points;
      if (own.size() == points.size() && std::memcmp(own.data(), bytes.data(), bytes.size()) == 0)
        return it->second.hull;
    }
    return nullptr;
  };
  {
    const std::lock_guard lock(mutex);
    if (auto hull = find()) return hull;
  }
  auto made = std::make_shared<const ConvexHull>(points);
  const std::lock_guard lock(mutex);
  if (auto hull = find()) return hull;
  if (all.size() >= kMost) std::erase_if(all, [](const auto& kept) { return kept.second.hull.use_count() == 1; });
  all.emplace(key, Kept{{points.begin(), points.end()}, made});
  return made;
}

}  // namespace tarsus
