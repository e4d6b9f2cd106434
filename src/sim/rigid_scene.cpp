#include "tarsus/sim/rigid_scene.hpp"

#include <cmath>
#include <random>

namespace tarsus {

namespace {

double uniform(std::mt19937& engine) { return double(engine()) / 4294967296.0; }

Quatd about_y(double angle) { return axis_angle({0, 1, 0}, angle); }

}  // namespace

int RigidScene::add(const Shape& shape, double mass, const Vec3d& position, const Quatd& orientation, int surface) {
  const ShapeInertia unit = shape_inertia(shape.type, shape.size);
  const double density = mass / unit.volume;
  RigidBody body;
  body.mass = mass;
  body.inertia = {unit.inertia.xx * density, unit.inertia.yy * density, unit.inertia.zz * density};
  body.position = position;
  body.orientation = orientation;
  bodies.push_back(body);
  const int number = int(bodies.size()) - 1;
  shapes.push_back({number, shape, {}, surface, 1, 1});
  return number;
}

void RigidScene::add_fixed(const Shape& shape, const ShapePose& pose, int surface) {
  shapes.push_back({-1, shape, pose, surface, 1, 1});
}

void RigidScene::add_floor(double half_width) {
  if (surfaces.empty()) surfaces.emplace_back();
  Shape plane;
  plane.type = ShapeType::plane;
  add_fixed(plane, {});
  for (int side = 0; side < 4 && half_width > 0; ++side) {
    const double turn = 0.5 * kPi * side;
    const Vec3d inward = {-std::cos(turn), -std::sin(turn), 0};
    add_fixed(plane, {inward * -half_width, rotation(between({0, 0, 1}, inward))});
  }
}

template <class R>
RigidWorld<R> make_world(const RigidScene& scene) {
  RigidWorld<R> world(scene.options);
  for (const Surface& s : scene.surfaces) world.add_surface(s);
  for (const RigidBody& b : scene.bodies) world.add_body(b);
  for (const BodyShape& s : scene.shapes) world.add_shape(s);
  for (const PointJoint& j : scene.joints) world.add_joint(j);
  for (const auto& [a, b] : scene.excludes) world.exclude(a, b);
  return world;
}
template RigidWorld<float> make_world<float>(const RigidScene&);
template RigidWorld<double> make_world<double>(const RigidScene&);

RigidScene ball_drop(int side, int layers, double radius, double mass, unsigned seed) {
  RigidScene scene;
  scene.name = "ball_drop";
  const double pitch = 2.1 * radius;
  scene.add_floor(0.5 * side * pitch + 0.05 * radius);
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
  RigidScene scene;
  scene.name = "ball_pyramid";
  scene.add_floor(layers * radius);
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
  RigidScene scene;
  scene.name = "box_stack";
  scene.add_floor();
  for (int i = 0; i < n; ++i) {
    scene.add({ShapeType::box, {0.5 * edge, 0.5 * edge, 0.5 * edge}}, mass, {0, 0, (i + 0.5) * edge});
  }
  return scene;
}

RigidScene box_pyramid(int base, double edge, double mass) {
  RigidScene scene;
  scene.name = "box_pyramid";
  scene.add_floor();
  for (int row = 0; row < base; ++row) {
    for (int i = 0; i < base - row; ++i) {
      const double x = (i - 0.5 * (base - row - 1)) * 1.05 * edge;
      scene.add({ShapeType::box, {0.5 * edge, 0.5 * edge, 0.5 * edge}}, mass, {x, 0, (row + 0.5) * edge});
    }
  }
  return scene;
}

RigidScene domino_row(int n) {
  RigidScene scene;
  scene.name = "domino_row";
  scene.add_floor();
  const Vec3d half = {0.05, 0.25, 0.5};
  for (int i = 0; i < n; ++i) {
    const double lean = i == 0 ? 0.2 : 0;
    // The first stands on its lower edge, leaning towards the others.
    const Vec3d centre = {std::cos(lean) * -half.x + std::sin(lean) * half.z + half.x, 0,
                          std::sin(lean) * half.x + std::cos(lean) * half.z};
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
  Shape plane;
  plane.type = ShapeType::plane;
  scene.add_fixed(plane, {{0, 0, 0}, rotation(tilt)});
  scene.add({ShapeType::box, {0.5, 0.5, 0.5}}, 1, rotate(tilt, {0, 0, 0.5}), tilt);
  return scene;
}

RigidScene card_house(int storeys) {
  RigidScene scene;
  scene.name = "card_house";
  scene.add_floor();
  scene.surfaces[0].friction = 0.7;
  // Leaning pairs of cards, and flat cards that bridge neighbouring pairs: lengths in metres, cards as big as planks.
  const Vec3d half = {0.01, 0.3, 0.5};
  const double lean = 0.35, up = std::cos(lean), out = std::sin(lean);
  const double foot = half.x * std::cos(lean), rise = half.z * up + half.x * out, width = 2 * (half.z * out + foot);
  const double pitch = 2 * width, storey = 2 * rise + 2 * half.x;
  for (int level = 0; level < storeys; ++level) {
    const int pairs = storeys - level;
    const double base = level * storey;
    for (int i = 0; i < pairs; ++i) {
      const double x = (i - 0.5 * (pairs - 1)) * pitch;
      for (int side : {-1, 1}) {
        scene.add({ShapeType::box, half}, 0.1, {x + side * 0.5 * width, 0, base + rise}, about_y(-side * lean));
      }
    }
    for (int i = 0; i + 1 < pairs; ++i) {
      const double x = (i - 0.5 * (pairs - 2)) * pitch;
      scene.add({ShapeType::box, {0.5 * pitch - 0.001, half.y, half.x}}, 0.1, {x, 0, base + 2 * rise + half.x});
    }
  }
  return scene;
}

}  // namespace tarsus
