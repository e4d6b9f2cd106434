#include "tarsus/sim/rigid_scene.hpp"

#include <charconv>
#include <cmath>
#include <random>
#include <system_error>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

namespace {

double uniform(std::mt19937& engine) { return double(engine()) / 4294967296.0; }

Quatd about_y(double angle) { return axis_angle({0, 1, 0}, angle); }

ShapeInertia unit_inertia(const Shape& shape) {
  if (shape.type != ShapeType::convex) return shape_inertia(shape.type, shape.size);
  const ConvexHull& hull = *shape.hull;
  std::vector<Triangle> triangles;
  for (const ConvexHull::Face& face : hull.faces()) {
    const std::span<const int> corners = hull.corners(face);
    for (std::size_t k = 2; k < corners.size(); ++k) triangles.push_back({corners[0], corners[k - 1], corners[k]});
  }
  return mesh_inertia(hull.vertices(), triangles, MeshInertia::exact);
}

/// Parses "name:1:2" into its numbers; returns false if the name differs.
bool matches(const std::string& text, const std::string& name, std::vector<double>& numbers, bool degrees = false) {
  if (text.compare(0, name.size(), name) != 0 || (text.size() > name.size() && text[name.size()] != ':')) return false;
  std::size_t k = 0, at = name.size();
  for (; at < text.size() && k < numbers.size(); ++k) {
    const char *from = text.data() + at + 1, *end = text.data() + text.size();
    const auto r = std::from_chars(from, end, numbers[k]);
    const bool good = degrees ? numbers[k] >= 0 && numbers[k] < 90
                              : numbers[k] >= 1 && numbers[k] <= 200 && numbers[k] == std::floor(numbers[k]);
    if (r.ec != std::errc() || !good)
      throw ValueError("scene", text,
                       name + (degrees ? " with degrees from 0 to below 90" : " with whole numbers from 1 to 200"));
    at = std::size_t(r.ptr - text.data());
  }
  if (at != text.size())
    throw ValueError("scene", text, name + " with at most " + std::to_string(numbers.size()) + " numbers");
  return true;
}

/// As named_scene(), without the text.
std::optional<RigidScene> built_in(const std::string& text) {
  std::vector<double> two = {10, 10}, one = {10};
  if (matches(text, "balls", two)) return ball_drop(int(two[0]), int(two[1]));
  if (matches(text, "ball_pyramid", one)) return ball_pyramid(int(one[0]));
  if (matches(text, "box_pyramid", one)) return box_pyramid(int(one[0]));
  if (matches(text, "box_stack", one)) return box_stack(int(one[0]));
  if (matches(text, "dominoes", one)) return domino_row(int(one[0]));
  if (matches(text, "slope", one, true)) return slope(one[0] * kPi / 180, 0.5);
  if (matches(text, "cards", one)) return card_house(int(one[0]));
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> named_scenes() {
  return {{"balls:SIDE:LAYERS", "SIDE² × LAYERS balls dropped into a box"},
          {"ball_pyramid:N", "N layers of balls, N(N + 1)(2N + 1)/6 in all"},
          {"box_pyramid:N", "a wall of cubes, N in the lowest row"},
          {"box_stack:N", "N cubes above one another"},
          {"dominoes:N", "a row of N, the first about to fall"},
          {"slope:DEGREES", "a cube on a slope; its friction decides whether it slides"},
          {"cards:N", "a house of cards with N storeys"}};
}

std::string scene_names() {
  std::string out;
  for (const auto& [name, what] : named_scenes()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::optional<RigidScene> scene_unless_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) return std::nullopt;
  return named_scene(path.string());
}

std::optional<RigidScene> named_scene(const std::string& text) {
  std::optional<RigidScene> scene = built_in(text);
  if (scene) scene->text = text;
  return scene;
}

PrincipalBody principal_body(double mass, const Vec3d& com, const Sym3d& inertia) {
  PrincipalBody out;
  out.body.mass = mass;
  out.frame.position = com;
  const Eigen3 principal = eigen(inertia);
  const double largest = principal.values.x;
  const auto nearly = [&](double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(largest); };
  out.body.inertia = {inertia.xx, inertia.yy, inertia.zz};
  if (!nearly(inertia.xy, 0) || !nearly(inertia.xz, 0) || !nearly(inertia.yz, 0))
    out.body.inertia = principal.values, out.frame.rotation = principal.vectors;
  // Makes a sphere's moments, which differ by rounding, equal, so that it counts as round.
  if (nearly(principal.values.x, principal.values.z)) {
    out.body.inertia = {largest, largest, largest};
    out.frame.rotation = identity3<double>();
  }
  return out;
}

PrincipalBody principal_body(double mass, const Shape& shape) {
  const ShapeInertia unit = unit_inertia(shape);
  if (!(unit.volume > 0)) throw ValueError("shape", std::string(name(shape.type)), "one with a volume");
  return principal_body(mass, unit.com, unit.inertia * (mass / unit.volume));
}

int RigidScene::add(const Shape& shape, double mass, const Vec3d& position, const Quatd& orientation, int surface) {
  PrincipalBody made = principal_body(mass, shape);
  const Mat3d back = transpose(made.frame.rotation);
  made.body.position = position + rotate(orientation, made.frame.position);
  made.body.orientation = orientation;
  if (shape.type == ShapeType::convex) made.body.orientation = quaternion(rotation(orientation) * made.frame.rotation);
  bodies.push_back(made.body);
  const int number = int(bodies.size()) - 1;
  shapes.push_back({number, shape, {back * -made.frame.position, back}, surface, 1, 1});
  return number;
}

void RigidScene::add_fixed(const Shape& shape, const ShapePose& pose, int surface) {
  shapes.push_back({-1, shape, pose, surface, 1, 1});
}

void RigidScene::add_floor(double half_width) {
  if (surfaces.empty()) surfaces.emplace_back();
  const Shape plane{ShapeType::plane, {}};
  add_fixed(plane, {});
  for (int side = 0; side < 4 && half_width > 0; ++side) {
    const double turn = 0.5 * kPi * side;
    const Vec3d inward = {-elementary::cos(turn), -elementary::sin(turn), 0};
    add_fixed(plane, {inward * -half_width, rotation(between({0, 0, 1}, inward))});
  }
}

void RigidScene::set_surfaces(std::optional<double> friction, std::optional<double> restitution,
                              std::optional<double> compliance) {
  for (Surface& s : surfaces) {
    if (restitution) s.restitution = *restitution;
    if (friction) s.friction = *friction;
    if (!compliance) continue;
    s.solver.reset();
    s.compliance = 0.5 * *compliance;  // the compliances of two surfaces add up
  }
}

template <class R>
RigidWorld<R> make_world(const RigidScene& scene) {
  RigidWorld<R> world(scene.options);
  for (const Surface& s : scene.surfaces) world.add_surface(s);
  for (const RigidBody& b : scene.bodies) world.add_body(b);
  for (const BodyShape& s : scene.shapes) world.add_shape(s);
  for (const auto& [a, b] : scene.excludes) world.exclude(a, b);
  for (const RigidScene::Pair& p : scene.pairs) world.pair(p.shape_a, p.shape_b, p.surface);
  return world;
}
template RigidWorld<float> make_world<float>(const RigidScene&);
template RigidWorld<double> make_world<double>(const RigidScene&);

/// A scene with a floor.
static RigidScene on_floor(const char* name, double half_width = 0) {
  RigidScene scene;
  scene.name = name;
  scene.add_floor(half_width);
  return scene;
}

RigidScene ball_drop(int side, int layers, double radius, double mass, unsigned seed) {
  const double pitch = 2.1 * radius;
  RigidScene scene = on_floor("ball_drop", 0.5 * side * pitch + 0.05 * radius);
  std::mt19937 engine(seed);
  const auto jitter = [&] { return 0.08 * radius * (uniform(engine) - 0.5); };
  for (int k = 0; k < layers; ++k) {
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) {
        const double x = (i - 0.5 * (side - 1)) * pitch, y = (j - 0.5 * (side - 1)) * pitch;
        const Vec3d p = {x + jitter(), y + jitter(), (k + 0.6) * pitch + jitter()};
        scene.add({ShapeType::sphere, {radius, 0, 0}}, mass, p);
      }
    }
  }
  return scene;
}

RigidScene ball_pyramid(int layers, double radius, double mass) {
  RigidScene scene = on_floor("ball_pyramid", layers * radius);
  for (int k = 0; k < layers; ++k) {
    const int side = layers - k;
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) {
        const double x = (2 * i - (side - 1)) * radius, y = (2 * j - (side - 1)) * radius;
        scene.add({ShapeType::sphere, {radius, 0, 0}}, mass, {x, y, radius * (1 + k * std::sqrt(2.0))});
      }
    }
  }
  return scene;
}

RigidScene box_stack(int n, double edge, double mass) {
  RigidScene scene = on_floor("box_stack");
  for (int i = 0; i < n; ++i)
    scene.add({ShapeType::box, {0.5 * edge, 0.5 * edge, 0.5 * edge}}, mass, {0, 0, (i + 0.5) * edge});
  return scene;
}

RigidScene box_pyramid(int base, double edge, double mass) {
  RigidScene scene = on_floor("box_pyramid");
  for (int row = 0; row < base; ++row) {
    for (int i = 0; i < base - row; ++i) {
      const double x = (i - 0.5 * (base - row - 1)) * 1.05 * edge;
      scene.add({ShapeType::box, {0.5 * edge, 0.5 * edge, 0.5 * edge}}, mass, {x, 0, (row + 0.5) * edge});
    }
  }
  return scene;
}

RigidScene domino_row(int n) {
  RigidScene scene = on_floor("domino_row");
  const Vec3d half = {0.05, 0.25, 0.5};
  for (int i = 0; i < n; ++i) {
    const double lean = i == 0 ? 0.2 : 0;
    // The first domino stands on its lower edge and leans towards the others.
    const Vec3d centre = {elementary::cos(lean) * -half.x + elementary::sin(lean) * half.z + half.x, 0,
                          elementary::sin(lean) * half.x + elementary::cos(lean) * half.z};
    scene.add({ShapeType::box, half}, 1, {0.4 * i + (i == 0 ? centre.x : 0), 0, i == 0 ? centre.z : half.z},
              about_y(lean));
  }
  return scene;
}

RigidScene slope(double angle, double friction) {
  RigidScene scene;
  scene.name = "slope";
  scene.surfaces.emplace_back();
  scene.surfaces[0].friction = friction;
  const Quatd tilt = about_y(angle);
  scene.add_fixed({ShapeType::plane, {}}, {{0, 0, 0}, rotation(tilt)});
  scene.add({ShapeType::box, {0.5, 0.5, 0.5}}, 1, rotate(tilt, {0, 0, 0.5}), tilt);
  return scene;
}

RigidScene card_house(int storeys) {
  RigidScene scene = on_floor("card_house");
  scene.surfaces[0].friction = 0.7;
  // Leaning pairs of cards, and flat cards that bridge neighbouring pairs. The cards are as large as planks.
  const Vec3d half = {0.01, 0.3, 0.5};
  const double lean = 0.35, up = elementary::cos(lean), out = elementary::sin(lean);
  const double foot = half.x * elementary::cos(lean), rise = half.z * up + half.x * out,
               width = 2 * (half.z * out + foot);
  const double pitch = 2 * width, storey = 2 * rise + 2 * half.x;
  for (int level = 0; level < storeys; ++level) {
    const int pairs = storeys - level;
    const double base = level * storey;
    for (int i = 0; i < pairs; ++i) {
      const double x = (i - 0.5 * (pairs - 1)) * pitch;
      for (int side : {-1, 1})
        scene.add({ShapeType::box, half}, 0.1, {x + side * 0.5 * width, 0, base + rise}, about_y(-side * lean));
    }
    for (int i = 0; i + 1 < pairs; ++i) {
      const double x = (i - 0.5 * (pairs - 2)) * pitch;
      scene.add({ShapeType::box, {0.5 * pitch - 0.001, half.y, half.x}}, 0.1, {x, 0, base + 2 * rise + half.x});
    }
  }
  return scene;
}

}  // namespace tarsus
