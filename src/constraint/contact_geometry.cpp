// The shapes of a model and the pairs that may touch (contact_geometry.hpp): bounding spheres and capsules of the
// shapes, MuJoCo's filters, and the list of pairs, or for many pairs the kinds of surfaces.
#include "tarsus/constraint/contact_geometry.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "tarsus/base/index.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kListedPairs = 20000;  ///< for more pairs a broad phase is cheaper than the list

std::uint64_t pair_key(int i, int j) { return std::uint64_t(std::min(i, j)) << 32 | std::uint32_t(std::max(i, j)); }

ShapeType shape_type(GeomType type) {
  switch (type) {
    case GeomType::plane: return ShapeType::plane;
    case GeomType::sphere: return ShapeType::sphere;
    case GeomType::capsule: return ShapeType::capsule;
    case GeomType::ellipsoid: return ShapeType::ellipsoid;
    case GeomType::cylinder: return ShapeType::cylinder;
    case GeomType::box: return ShapeType::box;
    case GeomType::mesh: return ShapeType::convex;
    default: return ShapeType::height_field;
  }
}

/// Centre and radius of a bounding sphere, in the shape's frame.
std::pair<Vec3d, double> sphere_around(const Shape& s) {
  switch (s.type) {
    case ShapeType::plane: return {{0, 0, 0}, kInfinity};
    case ShapeType::sphere: return {{0, 0, 0}, s.size.x};
    case ShapeType::capsule: return {{0, 0, 0}, s.size.x + s.size.y};
    case ShapeType::cylinder: return {{0, 0, 0}, elementary::hypot(s.size.x, s.size.y)};
    case ShapeType::ellipsoid: return {{0, 0, 0}, std::max({s.size.x, s.size.y, s.size.z})};
    case ShapeType::box: return {{0, 0, 0}, norm(s.size)};
    default: break;
  }
  if (s.field) {
    const Aabb& box = s.field->box();
    return {(box.lower + box.upper) * 0.5, norm(box.upper - box.lower) / 2};
  }
  double radius = 0;
  for (const Vec3d& v : s.hull->vertices()) radius = std::max(radius, norm(v - s.hull->centre()));
  return {s.hull->centre(), radius};
}

/// A bounding capsule in the carrier's frame. It is the shape itself if that is a capsule; planes and fields have none.
CapsuleAround capsule_around(const ContactShape& shape) {
  const Shape& s = shape.shape;
  const auto in_shape = [&](const Vec3d& centre, const Vec3d& axis, double radius, double half) {
    const Mat3d& R = shape.pose.rotation;
    return CapsuleAround{shape.pose.position + R * centre, R * axis, radius, half, shape.carrier()};
  };
  const Vec3d middle{0, 0, 0}, z{0, 0, 1};
  switch (s.type) {
    case ShapeType::sphere: return in_shape(middle, z, s.size.x, 0);
    case ShapeType::capsule: return in_shape(middle, z, s.size.x, s.size.y);
    case ShapeType::plane:
    case ShapeType::height_field: return in_shape(middle, z, kInfinity, 0);
    default: break;
  }
  const Aabb box = bounds(s, {});
  const Vec3d centre = (box.lower + box.upper) * 0.5, size = (box.upper - box.lower) * 0.5;
  const int k = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;  // along its longest side
  Vec3d axis{0, 0, 0};
  axis[k] = 1;
  double radius = elementary::hypot(size[(k + 1) % 3], size[(k + 2) % 3]);
  if (s.hull) {
    double farthest = 0;
    for (const Vec3d& v : s.hull->vertices()) farthest = std::max(farthest, norm(cross(v - centre, axis)));
    radius = std::min(radius, farthest);
  }
  return in_shape(centre, axis, radius, size[k]);
}

std::unique_ptr<HeightField> height_field_of(const HeightFieldSpec& field) {
  std::vector<double> heights(std::size_t(field.rows) * std::size_t(field.columns), 0.0);
  for (std::size_t k = 0; k < field.elevation.size(); ++k) heights[k] = field.elevation[k] * field.size[2];
  return std::make_unique<HeightField>(field.rows, field.columns, heights, field.size[0], field.size[1], field.size[3]);
}

/// Why the geom has no shape; empty: it has one.
std::string missing_part(const ModelSpec& spec, const GeomSpec& geom) {
  if (geom.type == GeomType::sdf) return "shapes of type sdf are not simulated";
  if (geom.type == GeomType::mesh) {
    const int mesh = index_of(spec.meshes, geom.mesh);
    if (mesh < 0 || spec.meshes[mesh].vertices.empty()) return "the mesh \"" + geom.mesh + "\" was not read";
  }
  if (geom.type == GeomType::height_field) {
    const int field = index_of(spec.height_fields, geom.height_field);
    if (field < 0 || spec.height_fields[field].rows == 0)
      return "the height field \"" + geom.height_field + "\" was not read";
  }
  return {};
}

bool takes_part(const GeomSpec& geom, bool in_pair) {
  return !geom.visual_only && (geom.contype != 0 || geom.conaffinity != 0 || in_pair);
}

}  // namespace

ContactGeometry::ContactGeometry(const Model& model) : gravity_(norm(model.gravity)) {
  if (!model.spec.option.contact_enabled) return;  // <flag contact="disable"/>
  for (int body = 0; body < model.nbody(); ++body) {
    const std::vector<GeomSpec>& geoms = model.spec.bodies[body].geoms;
    for (std::size_t g = 0; g < geoms.size(); ++g) add_shape(model, body, int(g));
  }
  for (const Surface& s : surfaces_) margin_.push_back(s.margin);
  for (const ContactShape& s : shapes_) around_.capsules.push_back(capsule_around(s));
  add_pairs(model);
  list_pairs();
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const ContactShape& s = shapes_[i];
    spheres_.add(s.carrier(), s.centre, s.radius, margin_[i]);
    poses_.at.push_back(s.pose), poses_.still.push_back(!moves(i));
    if (s.shape.type != ShapeType::plane) continue;
    spheres_.face(i, s.pose.rotation.column_z());
    if (moves(i)) poses_.planes.push_back(int(i));
  }
  crowd_.links = model.njoint();
  if (crowded_) {
    gather_crowd();
    return;
  }
  std::vector<unsigned char> apart;
  for (const auto [i, j] : pairs_) apart.push_back(stopped_apart(int(i), int(j)));
  spheres_.list(pairs_, apart);
}

Diagnostics contact_findings(const ModelSpec& spec) {
  Diagnostics out;
  if (!spec.option.contact_enabled) return out;
  const auto warn = [&](const Location& where, const std::string& what) {
    out.push_back({Severity::warning, where, what});
  };
  std::set<std::string> paired, acting;  // geoms of explicit pairs, and those of them that have a shape
  for (const ContactPairSpec& pair : spec.contact_pairs) paired.insert({pair.geom1, pair.geom2});
  constexpr char still = 0, mocap = 1, on_joints = 2;
  std::vector<char> moves(spec.bodies.size());
  std::vector<std::pair<std::size_t, const GeomSpec*>> surfaces;  // planes and height fields, with their bodies
  for (std::size_t b = 0; b < spec.bodies.size(); ++b) {
    const BodySpec& body = spec.bodies[b];
    moves[b] = !body.joints.empty() ? on_joints
               : body.mocap         ? mocap
               : body.parent >= 0   ? moves[std::size_t(body.parent)]
                                    : still;
    for (const GeomSpec& geom : body.geoms) {
      if (!takes_part(geom, !geom.name.empty() && paired.contains(geom.name))) continue;
      const std::string missing = missing_part(spec, geom);
      if (!missing.empty()) {
        warn(geom.where, "left out of contact: " + missing);
        continue;
      }
      acting.insert(geom.name);
      if (geom.type == GeomType::plane || geom.type == GeomType::height_field) surfaces.push_back({b, &geom});
      if (geom.type == GeomType::height_field && moves[b])
        warn(geom.where,
             "only the upper surface of a height field touches: on a moving body it falls through what is "
             "below it");
    }
  }
  for (const auto& [b, plane] : surfaces) {
    const auto elsewhere = [b = b](const auto& other) { return other.first != b; };
    if (plane->type == GeomType::plane && moves[b] == on_joints &&
        std::any_of(surfaces.begin(), surfaces.end(), elsewhere))
      warn(plane->where,
           "a plane touches neither planes nor height fields: on a moving body it falls through those of other bodies");
  }
  std::set<std::pair<std::string, std::string>> known;
  for (const ContactPairSpec& pair : spec.contact_pairs) {
    for (const std::string& name : {pair.geom1, pair.geom2}) {
      if (!acting.contains(name)) warn(pair.where, "left out of contact: \"" + name + "\" is no shape that takes part");
    }
    const ContactSurface surface = contact_surface(pair);
    if (surface.directional() && surface.dimension == 6)
      warn(pair.where, "friction that depends on the direction is not simulated with condim 6: the larger is taken");
    if (!known.insert(std::minmax(pair.geom1, pair.geom2)).second)
      warn(pair.where, "left out of contact: a second pair of the same two shapes");
  }
  return out;
}

SolidShape solid_shape(const ModelSpec& spec, const GeomSpec& geom) {
  SolidShape out;
  out.missing = missing_part(spec, geom);
  if (!out.missing.empty()) return out;
  out.shape = {shape_type(geom.type), geom.size};
  if (geom.type == GeomType::mesh) {
    try {
      out.hull = shared_hull(spec.meshes[index_of(spec.meshes, geom.mesh)].vertices);
    } catch (const ValueError& e) {
      throw InputError(geom.where, "mesh \"" + geom.mesh + "\": " + e.what());
    }
    out.shape.hull = out.hull.get();
  }
  if (geom.type == GeomType::height_field) {
    out.field = height_field_of(spec.height_fields[index_of(spec.height_fields, geom.height_field)]);
    out.shape.field = out.field.get();
    out.shape.size = {0, 0, 0};  // the field has its own size
  }
  try {
    check_shape(out.shape);
  } catch (const ValueError& e) {
    throw InputError(geom.where, e.what());
  }
  return out;
}

void ContactGeometry::add_shape(const Model& model, int body, int index) {
  const GeomSpec& geom = model.spec.bodies[body].geoms[index];
  bool in_pair = false;
  for (const ContactPairSpec& pair : model.spec.contact_pairs)
    in_pair = in_pair || (!geom.name.empty() && (pair.geom1 == geom.name || pair.geom2 == geom.name));
  if (!takes_part(geom, in_pair)) return;
  SolidShape solid = solid_shape(model.spec, geom);
  if (!solid.missing.empty()) return;
  ContactShape shape;
  shape.shape = solid.shape;
  if (solid.hull) hulls_.push_back(std::move(solid.hull));
  if (solid.field) fields_.push_back(std::move(solid.field));
  const Body& at = model.bodies[body];
  shape.link = at.link, shape.body = body, shape.geom = index;
  if (at.mocap >= 0) shape.mocap = model.carrier(body);
  const Transformd& X = at.mocap >= 0 ? at.X_MB : at.X_LB;
  shape.pose = {X.R * geom.position + X.p, X.R * rotation(geom.orientation)};
  const auto [centre, radius] = sphere_around(shape.shape);
  shape.centre = shape.pose.position + shape.pose.rotation * centre, shape.radius = radius;

  shape.contype = geom.contype, shape.conaffinity = geom.conaffinity;

  for (int link = at.link; link >= 0; link = model.joints[link].parent)
    shape.tree = moves_freely(model.joints[link].type) ? link : ContactShape::kGrounded;
  int root = at.link;  // the first of the joints that move this link's body
  while (root >= 0 && model.joints[root].parent >= 0 &&
         model.joints[model.joints[root].parent].body == model.joints[root].body) {
    root = model.joints[root].parent;
  }
  shapes_.push_back(shape), surfaces_.push_back(tarsus::surface_of(geom));
  parent_.push_back(root >= 0 ? model.carrier(model.bodies[model.joints[root].body].parent) : -1);
}

void ContactGeometry::add_pairs(const Model& model) {
  for (const ContactExcludeSpec& exclude : model.spec.contact_excludes) {
    const int a = model.find_body(exclude.body1), b = model.find_body(exclude.body2);
    if (a < 0 || b < 0)
      throw InputError(exclude.where, "there is no body \"" + (a < 0 ? exclude.body1 : exclude.body2) + "\"");
    excluded_.push_back(pair_key(a, b));
  }
  std::sort(excluded_.begin(), excluded_.end());
  const auto shape_named = [&](const std::string& name) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      if (model.spec.bodies[shapes_[i].body].geoms[shapes_[i].geom].name == name) return int(i);
    }
    return -1;
  };
  for (const ContactPairSpec& pair : model.spec.contact_pairs) {
    const int i = shape_named(pair.geom1), j = shape_named(pair.geom2);
    if (i < 0 || j < 0 || shapes_[i].link == shapes_[j].link) continue;  // no effect: both on one link, or none moves
    const ContactSurface surface = contact_surface(pair);
    explicit_pairs_.push_back(
        {std::min(i, j), std::max(i, j), surface, pair.where, directional_friction(i, j, surface)});
    for (const int k : {i, j}) margin_[k] = std::max(margin_[k], surface.margin);
  }
  const auto before = [](const ContactPair& x, const ContactPair& y) {
    return std::tie(x.first, x.second) < std::tie(y.first, y.second);
  };
  std::stable_sort(explicit_pairs_.begin(), explicit_pairs_.end(), before);
  const auto same = [&](const ContactPair& x, const ContactPair& y) { return !before(x, y); };
  explicit_pairs_.erase(std::unique(explicit_pairs_.begin(), explicit_pairs_.end(), same), explicit_pairs_.end());
}

std::uint64_t ContactGeometry::in_order(int a, int b) {
  return std::uint64_t(std::max(a, b) + 1) << 32 | std::uint32_t(std::min(a, b) + 1);
}

ContactGeometry::Found ContactGeometry::found(const BodyPair& pair) const {
  return {in_order(shapes_[pair.first].link, shapes_[pair.second].link), pair, 0};
}

/// What pairs of a crowd need of the shapes that does not change.
void ContactGeometry::gather_crowd() {
  find_kinds();
  crowd_.members.resize(shapes_.size()), crowd_.boxes.resize(shapes_.size()), crowd_.groups.assign(shapes_.size(), -1);
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const ContactShape& s = shapes_[i];
    Crowd::Member& m = crowd_.members[i];
    m.link = s.link, m.tree = s.tree, m.contype = s.contype, m.conaffinity = s.conaffinity, m.moves = moves(i);
    m.kind = crowd_.kinds.of.empty() ? 0 : crowd_.kinds.of[i];
    m.plain = parent_[i] < 0 && s.shape.type != ShapeType::plane && s.shape.type != ShapeType::height_field;
    m.ball = s.shape.type == ShapeType::sphere, m.plane = s.shape.type == ShapeType::plane;
    m.centred = s.pose.position.x == 0 && s.pose.position.y == 0 && s.pose.position.z == 0;
    if (m.ball) crowd_.balls.push_back(std::uint32_t(i));
    if (m.plane) crowd_.planes.push_back(std::uint32_t(i));
    if (m.ball || m.plane)
      crowd_.groups[i] = 0;
    else
      crowd_.others = true;
  }
  for (const ContactPair& pair : explicit_pairs_) {
    for (const int k : {pair.first, pair.second}) crowd_.members[std::size_t(k)].plain = false;
  }
  for (const std::uint64_t bodies : excluded_) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const auto body = std::uint32_t(shapes_[i].body);
      if (body == bodies >> 32 || body == std::uint32_t(bodies)) crowd_.members[i].plain = false;
    }
  }
  for (auto& column : crowd_.spheres) column.resize(crowd_.balls.size());
}

void ContactGeometry::list_pairs() {
  const int n = int(shapes_.size());
  for (int i = 0; i < n && !crowded_; ++i) {
    for (int j = i + 1; j < n; ++j) {
      if (may_touch(i, j)) pairs_.push_back({std::uint32_t(i), std::uint32_t(j)});
    }
    crowded_ = pairs_.size() > kListedPairs;
  }
  if (crowded_) return pairs_.clear();
  std::sort(pairs_.begin(), pairs_.end(), [this](const BodyPair& x, const BodyPair& y) { return found(x) < found(y); });
  for (const BodyPair& p : pairs_) {
    const int i = int(p.first), j = int(p.second);
    Listed& listed = listed_.emplace_back();
    listed.surface = surface_of(p), listed.usual = usual_contact(i, j, listed.surface);
    listed.capsule = add_capsule_on_plane(i, j, listed.surface.margin),
    listed.slender = listed.capsule < 0 && slender(i, j);
  }
}

const ContactPair* ContactGeometry::explicit_pair(int i, int j) const {
  if (explicit_pairs_.empty()) return nullptr;
  const std::pair key = std::minmax(i, j);
  const auto at = std::lower_bound(
      explicit_pairs_.begin(), explicit_pairs_.end(), key,
      [](const ContactPair& p, auto k) { return std::tie(p.first, p.second) < std::tie(k.first, k.second); });
  return at != explicit_pairs_.end() && at->first == key.first && at->second == key.second ? &*at : nullptr;
}

bool ContactGeometry::may_touch(int i, int j) const {
  const ContactShape &a = shapes_[i], &b = shapes_[j];
  const auto ground = [](const Shape& s) { return s.type == ShapeType::plane || s.type == ShapeType::height_field; };
  if (ground(a.shape) && ground(b.shape)) return false;
  if (a.link == b.link) return false;
  if (explicit_pair(i, j)) return true;
  if (!masks_meet(a, b)) return false;
  if (parent_[i] >= 0 && parent_[i] == b.carrier()) return false;
  if (parent_[j] >= 0 && parent_[j] == a.carrier()) return false;
  return !std::binary_search(excluded_.begin(), excluded_.end(), pair_key(a.body, b.body));
}

ContactSurface ContactGeometry::surface_of(BodyPair pair) const {
  const int i = int(pair.first), j = int(pair.second);
  if (const ContactPair* own = explicit_pair(i, j)) return own->surface;
  return mix(surfaces_[i], surfaces_[j]);
}

double ContactGeometry::separation(const LinkContact& contact) const {
  const auto [i, j] = shapes_of(contact);
  return contact.point.distance + surface_of({std::uint32_t(i), std::uint32_t(j)}).margin;
}

void ContactGeometry::find_kinds() {
  constexpr std::size_t kMost = 64;
  std::vector<Surface>& all = crowd_.kinds.all;
  for (const Surface& surface : surfaces_) {
    const std::size_t kind = std::size_t(std::find(all.begin(), all.end(), surface) - all.begin());
    if (kind == all.size()) all.push_back(surface);
    if (all.size() > kMost) return crowd_.kinds.of.clear();
    crowd_.kinds.of.push_back(int(kind));
  }
  for (const Surface& a : all) {
    for (const Surface& b : all) {
      crowd_.kinds.mixed.push_back(mix(a, b));
      crowd_.kinds.usual.push_back(usual_contact(crowd_.kinds.mixed.back()));
    }
  }
}

/// As surface_of(), in a crowd; valid until the next call.
const ContactSurface& ContactGeometry::surface_at(BodyPair pair) {
  const Crowd::Member &a = crowd_.members[pair.first], &b = crowd_.members[pair.second];
  if (const ContactPair* own = a.plain || b.plain ? nullptr : explicit_pair(int(pair.first), int(pair.second)))
    return own->surface;
  if (crowd_.kinds.mixed.empty()) return crowd_.kinds.last = mix(surfaces_[pair.first], surfaces_[pair.second]);
  return crowd_.kinds.mixed[std::size_t(a.kind) * crowd_.kinds.all.size() + std::size_t(b.kind)];
}

double ContactGeometry::friction_of(BodyPair pair, double first_scale, double second_scale) const {
  const int i = int(pair.first), j = int(pair.second);
  if (const ContactPair* own = explicit_pair(i, j))
    return std::max(own->surface.friction[0], own->surface.friction[1]) * std::max(first_scale, second_scale);
  Surface first = surfaces_[i], second = surfaces_[j];
  first.friction *= first_scale, second.friction *= second_scale;
  return mix(first, second).friction[0];
}

/// The ellipse of sliding friction; null: a circle. MuJoCo's contact frame follows a capsule on a plane.
std::shared_ptr<const DirectionalFriction> ContactGeometry::directional_friction(int i, int j,
                                                                                 const ContactSurface& surface) const {
  if (!surface.directional() || surface.dimension == 6) return nullptr;
  DirectionalFriction out;
  const double most = std::max(surface.friction[0], surface.friction[1]);
  out.share = {surface.friction[0] / most, surface.friction[1] / most};
  for (const auto& [of, other] : {std::pair{i, j}, std::pair{j, i}}) {
    const ContactShape& capsule = shapes_[of];
    if (capsule.shape.type == ShapeType::capsule && shapes_[other].shape.type == ShapeType::plane)
      out.carrier = capsule.carrier(), out.axis = capsule.pose.rotation.column_z();
  }
  return std::make_shared<const DirectionalFriction>(out);
}

/// A contact without its point, and without what it has of its two shapes.
LinkContact ContactGeometry::usual_contact(const ContactSurface& both) {
  LinkContact usual;
  usual.dimension = both.dimension;
  usual.friction = std::max(both.friction[0], both.friction[1]), usual.torsional = both.friction[2];
  usual.rolling = std::max(both.friction[3], both.friction[4]);
  usual.spook = both.spook;
  return usual;
}

/// A contact of these two shapes without its point.
LinkContact ContactGeometry::usual_contact(int i, int j, const ContactSurface& both) const {
  LinkContact usual = usual_contact(both);
  usual.a = shapes_[i].link, usual.b = shapes_[j].link, usual.identity = identity(i, j);
  usual.mocap = std::max(shapes_[i].mocap, shapes_[j].mocap);
  if (const ContactPair* own = explicit_pair(i, j)) usual.directional = own->directional.get();
  return usual;
}

/// Adds a pair of a link's sphere or capsule and a plane of the world.
/// @return its index in capsules_.pairs; -1: another kind of pair
int ContactGeometry::add_capsule_on_plane(int i, int j, double margin) {
  const bool first = shapes_[i].shape.type == ShapeType::plane;
  const ContactShape &plane = shapes_[first ? i : j], &round = shapes_[first ? j : i];
  if (plane.shape.type != ShapeType::plane || plane.carrier() >= 0 || round.link < 0 ||
      (round.shape.type != ShapeType::capsule && round.shape.type != ShapeType::sphere))
    return -1;
  const Vec3d n = plane.pose.rotation.column_z();
  const double may_fall = fall_apart({std::uint32_t(i), std::uint32_t(j)}) ? 1 : 0;
  capsules_.pairs.push_back(
      {around_.capsules[std::size_t(first ? j : i)], n, dot(n, plane.pose.position), margin, may_fall});
  return int(capsules_.pairs.size()) - 1;
}

/// Whether bounding capsules are worth a test if the bounding spheres are near.
bool ContactGeometry::slender(int i, int j) const {
  constexpr double kShare = 0.75;  // of the sphere's radius
  const auto radius = [&](int k) { return around_.capsules[std::size_t(k)].radius; };
  return std::isfinite(radius(i)) && std::isfinite(radius(j)) &&
         (radius(i) < kShare * shapes_[i].radius || radius(j) < kShare * shapes_[j].radius);
}

}  // namespace tarsus
