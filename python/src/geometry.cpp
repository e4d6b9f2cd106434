// Shapes and their contact points.
#include <nanobind/stl/string.h>

#include <cmath>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::python {

namespace {

OwnedShape primitive(ShapeType type, const Vec3d& size) {
  OwnedShape s;
  s.shape.type = type;
  s.shape.size = size;
  check_shape(s.shape);
  return s;
}

OwnedShape convex(nb::handle points) {
  const tarsus::python::Shape rows = shape_of("points", points);
  const std::size_t n = rows.empty() ? 0 : rows[0];
  const Input<double> in("points", points, {n, 3}, sizeof(double));
  std::vector<Vec3d> vertices;
  for (std::size_t k = 0; k < n; ++k)
    vertices.push_back({in.span()[3 * k], in.span()[3 * k + 1], in.span()[3 * k + 2]});
  OwnedShape s;
  s.hull = std::make_shared<ConvexHull>(vertices);
  s.shape.type = ShapeType::convex;
  s.shape.hull = s.hull.get();
  return s;
}

OwnedShape height_field(nb::handle heights, double half_x, double half_y, double base) {
  const tarsus::python::Shape shape = shape_of("heights", heights);
  if (shape.size() != 2)
    throw ValueError("heights", std::to_string(shape.size()) + "-dimensional", "an array rows x columns");
  const std::size_t rows = shape[0], columns = shape[1];
  const Input<double> in("heights", heights, {rows, columns}, sizeof(double));
  OwnedShape s;
  s.field =
      std::make_shared<HeightField>(static_cast<int>(rows), static_cast<int>(columns), in.span(), half_x, half_y, base);
  s.shape.type = ShapeType::height_field;
  s.shape.field = s.field.get();
  return s;
}

ShapePose pose(const char* position_name, nb::handle position, const char* rotation_name, nb::handle rotation) {
  const Input<double> p(position_name, position, {3}, sizeof(double)),
      r(rotation_name, rotation, {3, 3}, sizeof(double));
  ShapePose out;
  for (int i = 0; i < 3; ++i) out.position[i] = p.span()[static_cast<std::size_t>(i)];
  for (int i = 0; i < 9; ++i) out.rotation(i / 3, i % 3) = r.span()[static_cast<std::size_t>(i)];
  const double error = rotation_error(out.rotation);
  if (error > kRotationError)  // nan is accepted: it gives no contact
    throw ValueError(rotation_name, "off by " + number_text(error), "a rotation matrix");
  return out;
}

nb::dict contacts(const OwnedShape& a, nb::handle position_a, nb::handle rotation_a, const OwnedShape& b,
                  nb::handle position_b, nb::handle rotation_b, double margin) {
  if (!(margin >= 0) || std::isinf(margin)) throw ValueError("margin", number_text(margin), "a finite length >= 0");
  std::array<ContactPoint, kMaxManifold> points;
  const int n = collide(a.shape, pose("position_a", position_a, "rotation_a", rotation_a), b.shape,
                        pose("position_b", position_b, "rotation_b", rotation_b), margin, points);
  std::vector<double> position, normal, distance;
  std::vector<std::uint32_t> feature;
  for (int k = 0; k < n; ++k) {
    const ContactPoint& p = points[static_cast<std::size_t>(k)];
    position.insert(position.end(), {p.position.x, p.position.y, p.position.z});
    normal.insert(normal.end(), {p.normal.x, p.normal.y, p.normal.z});
    distance.push_back(p.distance);
    feature.push_back(p.feature);
  }
  const auto count = static_cast<std::size_t>(n);
  nb::dict out;
  out["position"] = new_array(position, {count, 3});
  out["normal"] = new_array(normal, {count, 3});
  out["distance"] = new_array(distance, {count});
  out["feature"] = new_array(feature, {count});
  return out;
}

}  // namespace

void bind_geometry(nb::module_& m) {
  using Class = nb::class_<OwnedShape>;
  Class shape(m, "Shape", "A collision shape in its own frame. Half-sizes in metres, as in MuJoCo.");
  shape.def("__repr__", [](const OwnedShape& s) {
    std::string sizes;
    for (int i = 0; i < 3; ++i) sizes += s.shape.size[i] > 0 ? " " + number_text(s.shape.size[i]) : "";
    return "<tarsus.Shape " + std::string(name(s.shape.type)) + sizes + ">";
  });
  shape.def_prop_ro("type", [](const OwnedShape& s) { return std::string(name(s.shape.type)); });
  shape.def_static(
      "plane",
      [] {
        return primitive(ShapeType::plane, {0, 0, 0});
      },
      "The half-space z <= 0.");
  shape.def_static(
      "sphere",
      [](double r) {
        return primitive(ShapeType::sphere, {r, 0, 0});
      },
      nb::arg("radius"));
  shape.def_static(
      "capsule",
      [](double r, double h) {
        return primitive(ShapeType::capsule, {r, h, 0});
      },
      nb::arg("radius"), nb::arg("half_length"), "Along z; the caps extend beyond the half length.");
  shape.def_static(
      "cylinder",
      [](double r, double h) {
        return primitive(ShapeType::cylinder, {r, h, 0});
      },
      nb::arg("radius"), nb::arg("half_length"), "Along z.");
  const auto three = [](ShapeType type) {
    return [type](double x, double y, double z) { return primitive(type, {x, y, z}); };
  };
  shape.def_static("ellipsoid", three(ShapeType::ellipsoid), nb::arg("x"), nb::arg("y"), nb::arg("z"));
  shape.def_static("box", three(ShapeType::box), nb::arg("x"), nb::arg("y"), nb::arg("z"));
  shape.def_static("convex", &convex, nb::arg("points"), nb::sig("def convex(points: numpy.ndarray) -> Shape"),
                   "The convex hull of points (n, 3).");
  shape.def_static(
      "height_field", &height_field, nb::arg("heights"), nb::arg("half_x"), nb::arg("half_y"), nb::arg("base"),
      nb::sig("def height_field(heights: numpy.ndarray, half_x: float, half_y: float, base: float) -> Shape"),
      "Height field (rows, columns) over a rectangle: columns along x, rows along y; solid down to -base.");
  m.def("collide", &contacts, nb::arg("shape_a"), nb::arg("position_a"), nb::arg("rotation_a"), nb::arg("shape_b"),
        nb::arg("position_b"), nb::arg("rotation_b"), nb::arg("margin") = 0.0,
        nb::sig("def collide(shape_a: Shape, position_a: numpy.ndarray, rotation_a: numpy.ndarray, shape_b: Shape, "
                "position_b: numpy.ndarray, rotation_b: numpy.ndarray, margin: float = 0.0) -> dict"),
        "At most 8 contact points with distance up to `margin`, as a dict of `position` (n, 3), midway "
        "between the surfaces,\n"
        "`normal` (n, 3), unit, from B to A, `distance` (n), negative for penetration, and `feature` (n). "
        "Positions are (3,),\n"
        "rotations (3, 3). Poses that are not finite give no contacts.");
}

}  // namespace tarsus::python
