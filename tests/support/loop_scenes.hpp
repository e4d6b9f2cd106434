// Scenes of many trees joined by equality constraints, with many contacts: chains in a heap, ropes, a net.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <vector>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::test {

/// Bodies and equality constraints of a world.
struct LoopScene {
  std::string bodies = "<geom type='plane' size='0 0 1'/>", equalities;

  Model model() const {
    return compile(parse_mjcf(
        "<mujoco><worldbody>" + bodies + "</worldbody><equality>" + equalities + "</equality></mujoco>", "loops", "."));
  }

  /// A free capsule for each edge of a polyline. Neighbours are connected at its vertices and do not touch there.
  void add_chain(const std::string& name, const std::vector<Vec3d>& vertices, double radius) {
    for (std::size_t i = 0; i + 1 < vertices.size(); ++i) {
      const Vec3d middle = (vertices[i] + vertices[i + 1]) * 0.5, half = (vertices[i + 1] - vertices[i]) * 0.5;
      const Vec3d end = half * (1 - 1.4 * radius / std::sqrt(dot(half, half)));
      bodies += fmt::format(
          "<body name='{}{}' pos='{} {} {}'><freejoint/><geom type='capsule' size='{}' fromto='{} {} {} {} {} {}' "
          "density='800'/></body>",
          name, i, middle.x, middle.y, middle.z, radius, -end.x, -end.y, -end.z, end.x, end.y, end.z);
      if (i + 2 < vertices.size())
        equalities += fmt::format("<connect body1='{}{}' body2='{}{}' anchor='{} {} {}'/>", name, i, name, i + 1,
                                  half.x, half.y, half.z);
    }
  }

  void add_box(const std::string& name, const Vec3d& at, double half) {
    bodies += fmt::format(
        "<body name='{}' pos='{} {} {}'><freejoint/><geom type='box' size='{} {} {}' density='500'/></body>", name,
        at.x, at.y, at.z, half, half, half);
  }

  void add_walls(double inside) {
    for (const double side : {-1.0, 1.0}) {
      bodies += fmt::format("<geom type='box' size='.1 {} 1' pos='{} 0 1'/>", inside + 0.2, side * (inside + 0.1));
      bodies += fmt::format("<geom type='box' size='{} .1 1' pos='0 {} 1'/>", inside + 0.2, side * (inside + 0.1));
    }
  }
};

/// Chains of five links that fall across one another into a box.
inline LoopScene heap_of_chains(int chains) {
  LoopScene scene;
  scene.add_walls(0.45);
  for (int c = 0; c < chains; ++c) {
    const int layer = c / 3;
    std::vector<Vec3d> vertices;
    for (int i = 0; i <= 5; ++i) {
      const double along = -0.4 + 0.16 * i, across = 0.25 * (c % 3 - 1) + (i % 2 ? 0.02 : -0.02);
      vertices.push_back(layer % 2 ? Vec3d{across, along, 0.1 + 0.1 * layer} : Vec3d{along, across, 0.1 + 0.1 * layer});
    }
    scene.add_chain(fmt::format("c{}_", c), vertices, 0.025);
  }
  return scene;
}

/// A rope that falls across boxes.
inline LoopScene rope_on_boxes(int links, int boxes) {
  LoopScene scene;
  const double pitch = 0.1, length = pitch * links;
  for (int i = 0; i < boxes; ++i)
    scene.add_box(fmt::format("box{}", i), {-length / 2 + length * (i + 0.5) / boxes, i % 2 ? 0.03 : -0.03, 0.1}, 0.1);
  std::vector<Vec3d> vertices;
  for (int i = 0; i <= links; ++i) vertices.push_back({-length / 2 + pitch * i, i % 2 ? 0.01 : -0.01, 0.3});
  scene.add_chain("rope", vertices, 0.02);
  return scene;
}

/// A rope that falls upon itself in turns of 0.3 m.
inline LoopScene coiled_rope(int links) {
  LoopScene scene;
  std::vector<Vec3d> vertices;
  const double radius = 0.3, step = 0.1 / radius;
  for (int i = 0; i <= links; ++i)
    vertices.push_back({radius * std::cos(step * i), radius * std::sin(step * i), 0.1 + 0.07 * step * i / (2 * M_PI)});
  scene.add_chain("rope", vertices, 0.02);
  return scene;
}

/// A square net of balls that are welded to their neighbours and fall on boxes: most of the rows are redundant.
inline LoopScene net_of_welds(int side, int boxes) {
  LoopScene scene;
  const double pitch = 0.1;
  for (int i = 0; i < boxes; ++i)
    scene.add_box(fmt::format("box{}", i), {0.25 * (i % 3 - 1), 0.25 * (i / 3 % 3 - 1), 0.1 + 0.2 * (i / 9)}, 0.09);
  const double height = 0.3 + 0.2 * ((boxes - 1) / 9);
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      scene.bodies += fmt::format(
          "<body name='n{}_{}' pos='{} {} {}'><freejoint/><geom type='sphere' size='.035' density='800'/></body>", i, j,
          pitch * (i - (side - 1) / 2.0), pitch * (j - (side - 1) / 2.0), height);
      if (i > 0) scene.equalities += fmt::format("<weld body1='n{}_{}' body2='n{}_{}'/>", i - 1, j, i, j);
      if (j > 0) scene.equalities += fmt::format("<weld body1='n{}_{}' body2='n{}_{}'/>", i, j - 1, i, j);
    }
  }
  return scene;
}

}  // namespace tarsus::test
