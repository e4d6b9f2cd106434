// Mass properties of bodies: from <inertial> or from geoms by MuJoCo's rules, then bounds, checks and repairs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/mjcf/builder.hpp"

namespace tarsus::mjcf {
namespace {

constexpr double kLeast = 1e-15;       // MuJoCo's mjMINVAL
constexpr double kMostMass = 1e12;     // [kg]
constexpr double kMostInertia = 1e18;  // [kg m²] kMostMass at a distance of 1 km
constexpr double kRounding = 1e-6;     // relative, of the triangle inequality: numbers in files have few digits
constexpr double kWorstRatio = 1e8;    // ratio of principal moments from which on there is a warning

Sym3d from_principal(const Eigen3& e, const Vec3d& values) {
  return rotate(e.vectors, diagonal3(values.x, values.y, values.z));
}

std::optional<ShapeType> shape_type(GeomType type) {
  switch (type) {
    case GeomType::sphere: return ShapeType::sphere;
    case GeomType::capsule: return ShapeType::capsule;
    case GeomType::cylinder: return ShapeType::cylinder;
    case GeomType::ellipsoid: return ShapeType::ellipsoid;
    case GeomType::box: return ShapeType::box;
    default: return std::nullopt;
  }
}

}  // namespace

/// Mass properties of a geom by its mass or density, in the geom's frame. `volume` is the mass.
std::optional<ShapeInertia> Builder::geom_mass(const GeomSpec& geom) {
  ShapeInertia shape;
  if (geom.mass ? *geom.mass == 0 : geom.density == 0) return std::nullopt;
  if (geom.type == GeomType::mesh) {
    const int mesh = find(Kind::mesh, geom.mesh);
    const MeshSpec& spec = spec_.meshes[static_cast<std::size_t>(mesh)];
    if (spec.vertices.empty()) {
      sink_.add(Severity::error, geom.where,
                fmt::format("mesh {} is missing, but the body's inertia needs it", quote(geom.mesh)));
      return std::nullopt;
    }
    const ShapeInertia* found = mesh_mass(mesh, nullptr);
    if (!found) return std::nullopt;
    shape = *found;
  } else if (const auto type = shape_type(geom.type)) {
    shape = shape_inertia(*type, geom.size, geom.shell_inertia);
  } else if (geom.type ==
             GeomType::height_field) {  // as in MuJoCo: a box of half the height and base, at the geom's position
    const auto& size = spec_.height_fields[static_cast<std::size_t>(find(Kind::height_field, geom.height_field))].size;
    shape = shape_inertia(ShapeType::box, {size[0], size[1], size[2] / 4 + size[3] / 2}, geom.shell_inertia);
  } else {
    return std::nullopt;
  }
  if (!(shape.volume > 0) || !std::isfinite(shape.volume)) return std::nullopt;
  const double density = geom.mass ? *geom.mass / shape.volume : geom.density;
  shape.volume *= density;
  shape.inertia = shape.inertia * density;
  return shape;
}

std::optional<InertialSpec> Builder::from_geoms(int body) {
  const Compiler& compiler = *body_compiler_[static_cast<std::size_t>(body)];
  const BodySpec& spec = spec_.bodies[static_cast<std::size_t>(body)];
  struct Part {
    double mass;
    Vec3d com;
    Sym3d inertia;
  };
  std::vector<Part> parts;
  InertialSpec sum;
  sum.where = spec.where;
  for (const GeomSpec& geom : spec.geoms) {
    if (geom.group < compiler.inertia_groups[0] || geom.group > compiler.inertia_groups[1]) continue;
    const auto shape = geom_mass(geom);
    if (!shape) continue;
    const Mat3d r = rotation(geom.orientation);
    if (parts.empty()) {  // axes of the only geom; of a mesh its principal axes
      sum.axes = geom.orientation;
      if (geom.type == GeomType::mesh) *sum.axes = *sum.axes * eigen(shape->inertia).orientation;
    }
    parts.push_back({shape->volume, geom.position + r * shape->com, rotate(r, shape->inertia)});
    sum.mass += parts.back().mass;
    sum.com += parts.back().com * parts.back().mass;
  }
  if (parts.empty()) return std::nullopt;
  if (parts.size() > 1) sum.axes.reset();
  sum.com = sum.com * (1 / sum.mass);
  for (const Part& part : parts) sum.inertia += shifted_inertia(part.inertia, part.mass, part.com - sum.com);
  return sum;
}

void Builder::check_inertia(int index) {
  BodySpec& body = spec_.bodies[static_cast<std::size_t>(index)];
  const Compiler& compiler = *body_compiler_[static_cast<std::size_t>(index)];
  InertialSpec& inertial = *body.inertial;
  const auto report = [&](Severity severity, std::string message) {
    sink_.add(severity, inertial.where, std::move(message));
  };
  if (inertial.mass < 0 || inertial.mass > kMostMass) {
    return report(Severity::error, fmt::format("the mass is {:.6g} kg, expected 0 to {:g}", inertial.mass, kMostMass));
  }
  if (compiler.bound_mass > 0) inertial.mass = std::max(inertial.mass, compiler.bound_mass);
  const Eigen3 principal = eigen(inertial.inertia);
  Vec3d values = principal.values;  // in descending order
  if (!std::isfinite(values.z) || !(values.x <= kMostInertia)) {
    return report(Severity::error,
                  fmt::format("the largest principal moment of inertia is {:.6g} kg m^2, expected 0 to {:g}", values.x,
                              kMostInertia));
  }
  const std::string shown = fmt::format("{:.6g} {:.6g} {:.6g}", values.x, values.y, values.z);
  bool changed = false;
  if (compiler.bound_inertia > 0) {
    for (int i = 0; i < 3; ++i) {
      if (values[i] < compiler.bound_inertia) values[i] = compiler.bound_inertia, changed = true;
    }
  }
  if (values.z < -1e-12 * std::abs(values.x)) {
    if (!options_.fix_balance)
      return report(Severity::error, fmt::format("the inertia is not positive: principal moments {}", shown));
    for (int i = 0; i < 3; ++i) values[i] = std::max(values[i], 1e-3 * std::max(values.x, kLeast));
    changed = true;
    report(Severity::warning,
           fmt::format("repaired: principal moments {} were not positive, they are now {:.6g} {:.6g} {:.6g}", shown,
                       values.x, values.y, values.z));
  }
  if (values.y + values.z < values.x * (1 - kRounding)) {
    const bool asked = compiler.balance_inertia || options_.fix_balance;
    if (!asked) {
      return report(
          Severity::error,
          fmt::format(
              "no body can have the principal moments {}: the sum of the two smaller ones must not be below the "
              "largest (balanceinertia, or --fix balance, repairs this)",
              shown));
    }
    const double mean = (values.x + values.y + values.z) / 3;
    values = {mean, mean, mean};
    changed = true;
    report(options_.fix_balance ? Severity::warning : Severity::note,
           fmt::format("repaired: principal moments {} violate the triangle inequality, all three are now {:.6g}",
                       shown, mean));
  }
  if (changed) {
    inertial.inertia = from_principal(principal, values);
    if (!inertial.axes) inertial.axes = principal.orientation;
  }
  if (values.z > 0 && values.x > kWorstRatio * values.z) {
    report(Severity::warning,
           fmt::format("the principal moments {} differ by more than a factor {:g}", shown, kWorstRatio));
  }
}

void Builder::settle_inertias() {
  double total = 0;
  const BodySpec* fixed = nullptr;  // to the world, with mass
  std::vector<bool> moves(spec_.bodies.size(), false);
  for (std::size_t i = 1; i < spec_.bodies.size(); ++i) {
    BodySpec& body = spec_.bodies[i];
    moves[i] = moves[std::size_t(body.parent)] || body.mocap || !body.joints.empty();
    const Compiler& compiler = *body_compiler_[i];
    const bool infer = compiler.inertia_from_geom.value_or(!explicit_inertia_[i]);
    if (infer) {
      if (auto inertial = from_geoms(static_cast<int>(i))) {
        body.inertial = std::move(inertial);
        body.inertial_from_geoms = true;
      }
    }
    if (!body.inertial && (compiler.bound_mass > 0 || compiler.bound_inertia > 0)) {
      body.inertial.emplace();
      body.inertial->where = body.where;
    }
    if (!body.inertial) continue;
    check_inertia(static_cast<int>(i));
    total += body.inertial->mass;
    if (!moves[i] && body.inertial->mass > 0) fixed = &body;
  }
  if (sink_.failed()) return;  // the checks below would only repeat the errors
  const double wanted = body_compiler_.front() ? body_compiler_.front()->total_mass : -1;
  if (wanted > 0 && total > 0) {
    if (body_compiler_.front()->fuse_static && fixed)
      sink_.add(Severity::warning, fixed->where,
                "settotalmass counts the mass of this body, which is fixed to the world; MuJoCo leaves it out where "
                "fusestatic makes it part of the world");
    for (BodySpec& body : spec_.bodies) {
      if (!body.inertial) continue;
      body.inertial->mass *= wanted / total;
      body.inertial->inertia = body.inertial->inertia * (wanted / total);
    }
  }
  check_moving_bodies();
}

/// Reports moving bodies that, with the bodies welded to them, have no mass or no inertia.
void Builder::check_moving_bodies() {
  std::vector<bool> heavy(spec_.bodies.size(), false);
  for (std::size_t i = spec_.bodies.size(); i-- > 1;) {
    const BodySpec& body = spec_.bodies[i];
    if (body.inertial && body.inertial->mass >= kLeast) {
      const Vec3d values = eigen(body.inertial->inertia).values;
      if (values.z >= kLeast) heavy[i] = true;
    }
    if (!body.joints.empty() && !heavy[i]) {
      sink_.add(Severity::error, body.where,
                "this body moves, but neither it nor any body welded to it has mass and inertia");
    }
    if (body.joints.empty() && heavy[i] && body.parent > 0) heavy[static_cast<std::size_t>(body.parent)] = true;
  }
}

}  // namespace tarsus::mjcf
