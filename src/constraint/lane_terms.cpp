// LaneTerms (lane_terms.hpp): tables of a model for the kernels, memory of the packs, and the kernels' reports. The
// kernels are in lane_newton.inl and the files that it includes.
#include "tarsus/constraint/lane_terms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "constraint/kernel_table.hpp"
#include "constraint/range_spring.hpp"
#include "constraint/term_constants.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/constraint/reference_mass.hpp"
#include "tarsus/geometry/meeting.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr int kReports = 10;  ///< numbers of LaneTermReport for each lane
constexpr int kMostIterations = 40;

/// Largest number of points, and so of slots, that one pair can have.
int most_points(ShapeType a, ShapeType b) {
  const auto is = [&](ShapeType x, ShapeType y) { return (a == x && b == y) || (a == y && b == x); };
  if (is(ShapeType::sphere, ShapeType::plane) || is(ShapeType::sphere, ShapeType::sphere) ||
      is(ShapeType::sphere, ShapeType::capsule))
    return 1;
  if (is(ShapeType::capsule, ShapeType::plane)) return 2;
  if (is(ShapeType::capsule, ShapeType::capsule)) return 3;
  return kMaxManifold;
}

template <class R>
R raise(R x, R power) {
  return R(elementary::pow(double(x), double(power)));
}

}  // namespace

template <class R>
struct LaneTerms<R>::Tables {
  const ContactGeometry* geometry = nullptr;
  std::vector<LaneShape<R>> shapes;
  std::vector<LanePair<R>> pairs;
  std::vector<LanePairGroup<R>> groups;
  std::vector<Vec3d> parting;  ///< [pair] for collide(), of the last world
  std::vector<int> limits, limit_laws, loss_dofs, loss_joints;
  std::vector<int> balls;   ///< of the limits
  std::vector<char> light;  ///< [ball] holds_light_link() of the model
  std::vector<R> ranges, losses, masses;
  std::vector<LanePath> paths;
  std::vector<int> path_dofs, path_of_slot;
  std::vector<std::uint8_t> spins;
  int nbilateral = 0;                 ///< of the paths, from LaneModel::nalone on
  std::vector<SolverParameters> own;  ///< parameters of these laws
  std::vector<LaneSolverLaw<R>> laws;
  double h = 0;  ///< step that they are for
  LaneModel<R> model{};
  std::vector<LanePack<R>> packs;

  void add_shape(const ContactShape& s) {
    LaneShape<R>& out = shapes.emplace_back();
    out.link = s.link, out.type = s.shape.type, out.radius = R(s.radius);
    const Aabb own = std::isinf(s.radius) ? Aabb{} : bounds(s.shape, {});  // in its own frame; planes need none
    const Vec3d centre = (own.lower + own.upper) * 0.5, box = (own.upper - own.lower) * 0.5;
    for (int k = 0; k < 3; ++k) {
      out.size[k] = R(s.shape.size[k]), out.position[k] = R(s.pose.position[k]), out.centre[k] = R(s.centre[k]);
      out.box_centre[k] = R(centre[k]), out.box[k] = R(box[k]);
    }
    for (int k = 0; k < 9; ++k) out.rotation[k] = R((&s.pose.rotation.xx)[k]);
  }

  void add_pair(const BodyPair& pair) {
    const ContactSurface surface = geometry->surface_of(pair);
    LanePair<R>& out = pairs.emplace_back();
    out.a = int(pair.first), out.b = int(pair.second);
    if (shapes[out.b].link > shapes[out.a].link) std::swap(out.a, out.b);
    out.condim = surface.dimension, out.margin = R(surface.margin), out.falls = geometry->fall_apart(pair);
    out.friction = R(std::max(surface.friction[0], surface.friction[1])), out.torsional = out.rolling = R(0);
    if (out.condim > 3) out.torsional = R(surface.friction[2]);
    if (out.condim > 4) out.rolling = R(std::max(surface.friction[3], surface.friction[4]));
    if (out.condim > 3) model.most_spins = 1;
    out.compliance = R(surface.spook.compliance), out.damping_time = R(surface.spook.damping_time);
    out.law = law_of(surface.solver);
    if (surface.solver) out.compliance = R(0);
    const int slots = most_points(shapes[out.a].type, shapes[out.b].type);
    if (shapes[out.b].link < 0) model.most_contacts += slots;
  }

  /// Adds a sphere around a link's shapes. @return its index, or that of the only shape
  int around(int link) {
    Vec3d lower{kUnbounded, kUnbounded, kUnbounded}, upper = -lower;
    std::vector<int> of;
    for (std::size_t i = 0; i < geometry->shapes().size(); ++i) {
      if (shapes[i].link != link || shapes[i].type == ShapeType::plane) continue;
      of.push_back(int(i));
      for (int k = 0; k < 3; ++k) {
        lower[k] = std::min(lower[k], double(shapes[i].centre[k]) - double(shapes[i].radius));
        upper[k] = std::max(upper[k], double(shapes[i].centre[k]) + double(shapes[i].radius));
      }
    }
    if (of.size() == 1) return of[0];
    const Vec3d centre = (lower + upper) * 0.5;
    double radius = 0;
    for (const int i : of) {
      const Vec3d at{double(shapes[i].centre[0]), double(shapes[i].centre[1]), double(shapes[i].centre[2])};
      radius = std::max(radius, norm(at - centre) + double(shapes[i].radius));
    }
    LaneShape<R> sphere{};
    sphere.link = link, sphere.type = ShapeType::sphere,
    sphere.radius = R(radius * (1 + 1e-5));  // with room for rounding
    for (int k = 0; k < 3; ++k) sphere.centre[k] = R(centre[k]);
    shapes.push_back(sphere);
    return int(shapes.size()) - 1;
  }

  /// Groups of pairs that one test of their links' bounding spheres can rule out.
  void add_groups() {
    constexpr int kWorthIt = 3;  ///< pairs
    const auto key = [&](const LanePair<R>& p) {
      return std::tuple(shapes[p.a].link, shapes[p.b].link, shapes[p.b].link < 0 ? p.b : -1);
    };
    std::vector<int> sphere(model.nlink, -1);
    const auto of = [&](int link) {
      if (sphere[link] < 0) sphere[link] = around(link);
      return sphere[link];
    };
    for (std::size_t first = 0, end = 0; first < pairs.size(); first = end) {
      LanePairGroup<R> group{int(first), 0, -1, -1, pairs[first].margin, false};
      bool planes = false;  // on a moving link: no test
      for (; end < pairs.size() && key(pairs[end]) == key(pairs[first]); ++end) {
        group.margin = std::max(group.margin, pairs[end].margin), group.falls |= pairs[end].falls;
        for (const int i : {pairs[end].a, pairs[end].b})
          planes |= shapes[i].link >= 0 && shapes[i].type == ShapeType::plane;
      }
      group.end = int(end);
      if (group.end - group.first >= kWorthIt && !planes) {
        const int link = shapes[pairs[first].b].link;
        group.b = link < 0 ? pairs[first].b : of(link), group.a = of(shapes[pairs[first].a].link);
      }
      groups.push_back(group);
    }
  }

  void add_path(int a, int b, std::span<const int> dofs, int unit) {
    paths.push_back({a, b, int(path_dofs.size()), int(dofs.size()), model.path_numbers, unit});
    model.path_numbers += kPathNumbers + 12 + int(dofs.size());
    path_dofs.insert(path_dofs.end(), dofs.begin(), dofs.end());
  }
  /// Adds rows along generalised directions: those on one hinge or slide each, equality constraints, the others.
  void add_paths(const Model& of, const EqualitySet* equalities, std::span<const ForceSlot> slots) {
    path_of_slot.assign(slots.size(), -1);
    const auto add_slots = [&](bool alone) {
      for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto [dofs, link, acts] = slots[i];
        if (!acts) continue;
        if (alone != (link < 0 && dofs.size() == 1 && of.joints[of.dof_joint[dofs[0]]].nv() == 1)) continue;
        path_of_slot[i] = int(paths.size());
        add_path(link, -1, link < 0 ? dofs : std::span<const int>(), -1);
      }
    };
    add_slots(true);
    model.nalone = int(paths.size());
    if (equalities) add_bilateral(of, *equalities), nbilateral = int(paths.size()) - model.nalone;
    add_slots(false);
    model.npath = int(paths.size()), model.path_dofs = int(path_dofs.size());
  }
  /// Adds the rows of equality constraints, on the links and joints that they act on.
  void add_bilateral(const Model& of, const EqualitySet& equalities) {
    DelassusRows<R> rows(of);
    equalities.add_blocks<R>(rows);
    for (int i = 0; i < equalities.size(); ++i) {
      const auto block = rows.block(i);
      std::vector<int> dofs;
      if (block.joint && block.force) {
        for (const int joint : {block.a, block.b}) {
          if (joint >= 0) dofs.push_back(of.joints[joint].qvel);
        }
      } else if (block.joint) {
        dofs.assign(block.dofs.begin(), block.dofs.end());
      }
      const bool pushes = !block.joint;  // links
      const int first = int(paths.size());
      for (int r = 0; r < block.nrow; ++r)  // a weld's positions, then its angles
        add_path(pushes ? block.a : -1, pushes ? block.b : -1, dofs, first + r / 3 * 3);
    }
  }

  int law_of(const std::optional<SolverParameters>& p) {
    if (!p) return -1;
    const auto at = std::find(own.begin(), own.end(), *p);
    if (at == own.end()) return own.push_back(*p), int(own.size()) - 1;
    return int(at - own.begin());
  }

  void set_laws(double step) {
    if (step == h) return;
    h = step;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const SolverLaw law = solver_law(own[i], h);
      const auto [low, high, width, midpoint, power] = law.impedance;
      const bool changes = width > 0;
      LaneSolverLaw<R>& out = laws[i];
      out.resolved = law.resolved, out.raise = &raise<R>;
      out.low = R(changes ? low : 0.5 * (low + high)), out.range = R(changes ? high - low : 0);
      out.rest = R(1 - (changes ? high : 0.5 * (low + high))), out.per_width = R(changes ? 1 / width : 0);
      out.midpoint = R(midpoint), out.power = R(power);
      out.share = R(law.resolved ? 1 - h * law.damping : 0), out.give = R(1 / law.stiffness),
      out.least = R(kTangentDamping * h);
      out.pull = R(law.resolved ? h * law.stiffness : law.damping / law.stiffness);
    }
  }

  /// Narrow phase of one pair. @param a, b its two shapes by index  @param reach margin of collide()
  static int collide_pair(void* self, int pair, const LaneMover& a, const LaneMover& b, double reach, double h,
                          ContactPoint* out) {
    Tables& t = *static_cast<Tables*>(self);
    const auto vector = [](const double* p) { return Vec3d{p[0], p[1], p[2]}; };
    const auto pose = [&](const LaneMover& of) {
      const double* r = of.rotation;
      return ShapePose{vector(of.position), {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8]}};
    };
    const auto motion = [&](const LaneMover& of) { return ShapeMotion{vector(of.velocity), vector(of.spin)}; };
    const std::span<const ContactShape> shapes = t.geometry->shapes();
    const auto [first, second] = std::minmax(t.pairs[pair].a, t.pairs[pair].b);
    const Shape &shape_a = shapes[first].shape, &shape_b = shapes[second].shape;
    const std::span<ContactPoint> points(out, std::size_t(kMaxManifold));
    const int count = collide(shape_a, pose(a), shape_b, pose(b), reach, points, &t.parting[pair]);
    const LanePair<R>& both = t.pairs[pair];
    const double margin = double(both.margin);
    if (both.law >= 0 && t.laws[both.law].resolved && all_apart(points, count, margin)) return 0;
    return meet(shape_a, pose(a), motion(a), shape_b, pose(b), motion(b), h, margin, points, count);
  }
};

template <class R>
std::string LaneTerms<R>::refusal(const Model& model, const ContactGeometry* geometry, const TermOptions& options) {
  if (!options.user_limits.empty()) return "user-defined limits are not supported in SIMD lanes";
  for (const Joint& joint : model.joints) {
    if (options.joints && moves_freely(joint.type) && joint.friction_loss > 0)
      return "dry friction of a free joint is not supported in SIMD lanes";
  }
  if (!geometry) return {};
  if (geometry->crowded())
    return "models with so many pairs of shapes that contacts need a broad phase are not supported in SIMD lanes";
  for (const BodyPair& pair : geometry->pairs()) {
    const ContactSurface surface = geometry->surface_of(pair);
    if (surface.directional() && surface.dimension < 6)
      return "friction that depends on the direction is not supported in SIMD lanes";
  }
  return {};
}

template <class R>
int packs_together(int width) {
  return std::max(1, width * int(sizeof(R)) / 16);  // kTogether: number of narrow packs of 128 bits in a wide one
}

template <class R>
LaneTerms<R>::LaneTerms(const Model& model, const BasicData<R>& data, const ContactGeometry* geometry,
                        const EqualitySet* equalities, std::span<const ForceSlot> slots,
                        std::span<const std::uint8_t> spins, const TermOptions& options)
    : model_(model),
      width_(data.width()),
      together_(std::min(packs_together<R>(data.width()), data.packs())),
      options_(options),
      tables_(std::make_unique<Tables>()) {
  const std::string why = refusal(model, geometry, options);
  if (!why.empty()) throw ValueError("lanes", std::to_string(width_), why);
  Tables& t = *tables_;
  LaneModel<R>& m = t.model;
  t.geometry = geometry;
  if (geometry) {
    for (const ContactShape& s : geometry->shapes()) t.add_shape(s);
    for (const BodyPair& pair : geometry->pairs()) t.add_pair(pair);
    t.parting.resize(t.pairs.size());
    m.nlink = model.njoint();
    t.add_groups();
  }
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    if (joint.limited && !moves_freely(joint.type)) {
      if (turns_freely(joint.type))
        t.balls.push_back(int(t.limits.size())), t.light.push_back(holds_light_link(model, inertia, i));
      t.limits.push_back(i);
      const HalfTurn half(joint.upper());
      t.ranges.insert(t.ranges.end(), {R(joint.lower()), R(joint.upper()), R(half.cosine), R(half.sine)});
      t.limit_laws.push_back(t.law_of(limit_parameters(model, i)));
    }
    for (int k = 0; joint.friction_loss > 0 && k < joint.nv(); ++k)
      t.loss_dofs.push_back(joint.qvel + k), t.loss_joints.push_back(i), t.losses.push_back(R(joint.friction_loss));
  }
  t.masses = reference_numbers<R>(reference_masses(model));
  m.mass = t.masses.data();
  m.nlink = model.njoint(), m.nv = model.nv, m.nplaced = int(t.shapes.size()), m.ngroup = int(t.groups.size());
  m.nlimit = options.joints ? int(t.limits.size()) : 0, m.nloss = options.joints ? int(t.losses.size()) : 0;
  m.most_crossings = geometry ? 64 : 0;  // in each world; with more it is crowded
  if (m.most_spins > 0) m.most_spins = m.most_contacts + m.most_crossings;
  t.laws.resize(t.own.size()), m.law = t.laws.data(), m.limit_law = t.limit_laws.data();
  m.shape = t.shapes.data(), m.pair = t.pairs.data(), m.group = t.groups.data();
  m.limit = t.limits.data(), m.range = t.ranges.data();
  m.loss_dof = t.loss_dofs.data(), m.loss_joint = t.loss_joints.data(), m.loss = t.losses.data();
  t.add_paths(model, equalities, slots);
  m.path = t.paths.data(), m.path_dof = t.path_dofs.data(), m.dof_link = model.dof_joint.data();
  path_.assign(data.size(m.path_numbers), R(0)), path_impulse_.assign(data.size(m.npath), R(0));
  m.parting = t.parting.data(), m.geometry = &t, m.collide = &Tables::collide_pair;
  t.spins.assign(spins.begin(), spins.end()), m.spins = spins.empty() ? nullptr : t.spins.data();
  LaneSizes sizes{};
  constraint_table<R>(width_).lane_sizes(m, &sizes);
  memory_.assign(std::size_t(data.packs()), AlignedVector<R>(sizes.memory / sizeof(R)));
  work_.resize(sizes.scratch + std::size_t(together_) * sizes.pack + (together_ > 1 ? sizes.together : 0));
  drive_force_.assign(data.size(model.nv), R(0)), ground_.assign(data.size(3 * model.njoint()), R(0));
  report_.assign(data.size(kReports), R(0));
  R* at = report_.data();
  t.packs.resize(std::size_t(data.packs()));
  for (std::size_t p = 0; p < t.packs.size(); ++p) {
    LaneTermReport<R>& report = t.packs[p].report;
    for (R** to : {&report.iterations, &report.residual, &report.penetration, &report.contacts, &report.touching,
                   &report.between, &report.limits, &report.saturated, &report.missed, &report.unmet})
      *to = at, at += width_;
    report.ground = ground_.data() + p * 3 * std::size_t(model.njoint() * width_);
    report.path = path_impulse_.data() + p * std::size_t(m.npath * width_);
    t.packs[p].path = path_.data() + p * std::size_t(m.path_numbers * width_);
    t.packs[p].drive_force = drive_force_.data() + p * std::size_t(model.nv * width_);
  }
  if (options.joints && !t.balls.empty()) write_limits();
}

template <class R>
LaneTerms<R>::~LaneTerms() = default;

template <class R>
void LaneTerms<R>::solve(BasicData<R>& data, double h, In<R> joint_force, In<R> joint_inertia,
                         const LimitedDrives<R>* drives, In<R> push, In<R> found, bool responds, Out<R> velocity) {
  check_sizes(data, model_.nv, "velocity", velocity, "joint_force", joint_force, "joint_inertia", joint_inertia);
  check_sizes(data, 1, "found", found);
  check_size("packs", tables_->packs.size(), std::size_t(data.packs()));
  tables_->set_laws(h);
  LaneStep<R> step{};
  step.h = R(h), step.gravity = R(norm(model_.gravity));
  step.limit_compliance = R(options_.limit_spook.compliance);
  step.limit_damping_time = R(options_.limit_spook.damping_time);
  step.relative_compliance = R(options_.relative_compliance), step.restitution = R(options_.restitution);
  step.restitution_threshold = R(options_.restitution_threshold);
  step.tolerance = R(std::max(options_.solve.tolerance, sizeof(R) == 8 ? 0 : 1e-4));
  step.all_iterations = options_.solve.max_iterations;
  step.most_iterations = std::min(step.all_iterations, kMostIterations);
  step.contacts = tables_->geometry != nullptr, step.responds = responds;
  if (drives) {
    check_sizes(data, model_.nv, "push", push);
    step.nlimited = int(drives->joints.size()), step.limited = drives->joints.data();
    step.force_low = drives->low.data(), step.force_high = drives->high.data();
    step.drive_kp = drives->kp.data(), step.drive_kd = drives->kd.data(), step.plain = drives->plain;
  }
  if (tables_->nbilateral > 0) before_ = memory_;
  const auto get = [](const AlignedVector<R>& array) { return array.empty() ? nullptr : array.data(); };
  for (int p = 0; p < data.packs(); ++p) {
    const std::size_t v = std::size_t(p) * model_.nv * width_, q = std::size_t(p) * model_.nq * width_;
    LanePack<R>& pack = tables_->packs[std::size_t(p)];
    pack.view = data.view(model_, p), pack.state = data.state(p);
    pack.qpos = data.qpos.data() + q, pack.qvel = data.qvel.data() + v;
    pack.Q = joint_force.data() + v, pack.K = joint_inertia.data() + v, pack.given = &found[std::size_t(p) * width_];
    pack.push = drives ? push.data() + v : nullptr, pack.velocity = velocity.data() + v;
    pack.memory = reinterpret_cast<std::byte*>(memory_[std::size_t(p)].data());
    const WorldTable<R>* own = data.own ? &data.own[p] : nullptr;
    pack.own_mass = own ? get(own->row_mass) : nullptr;
    pack.own_friction = own ? get(own->friction) : nullptr, pack.own_loss = own ? get(own->friction_loss) : nullptr;
    pack.kp_scale = own ? get(own->kp) : nullptr, pack.kd_scale = own ? get(own->kd) : nullptr;
    pack.force_scale = own ? get(own->force) : nullptr;
  }
  for (int p = 0; p < data.packs(); p += together_)
    constraint_table<R>(width_).lane_solve(tables_->model, step, &tables_->packs[std::size_t(p)],
                                           std::min(together_, data.packs() - p), work_.data());
  rows_ = step.nlimited;
  if (limit_.empty()) return;
  for (int world = 0; world < data.worlds(); ++world) {
    R& missed = tables_->packs[std::size_t(world / width_)].report.missed[world % width_];
    if (missed == R(0) && turns_ranges(data, h, world, joint_inertia, velocity)) missed = R(1);
  }
}

/// Calls f(index among the limits, turn, rate) for the ball ranges of a world.
template <class R>
template <class F>
void LaneTerms<R>::each_ball(const BasicData<R>& data, int world, In<R> qvel, const F& f) const {
  const Tables& t = *tables_;
  const std::size_t w = std::size_t(width_);
  for (std::size_t i = 0; i < t.balls.size(); ++i) {
    const Joint& joint = model_.joints[std::size_t(t.limits[std::size_t(t.balls[i])])];
    const R* const q = &data.qpos[batch_index(width_, model_.nq, joint.qpos, world)];
    const R* const v = &qvel[batch_index(width_, model_.nv, joint.qvel, world)];
    f(i, Quat<R>{q[0], q[w], q[2 * w], q[3 * w]}, Vec3<R>{v[0], v[w], v[2 * w]});
  }
}

template <class R>
void LaneTerms<R>::turning_ranges(const BasicData<R>& data, double h, AlignedVector<R>& turning) const {
  const Tables& t = *tables_;
  turning.clear();
  for (int world = 0; world < data.worlds() && !limit_.empty(); ++world) {
    each_ball(data, world, data.qvel, [&](std::size_t i, const Quat<R>& turn, const Vec3<R>& rate) {
      const std::size_t limit = std::size_t(t.balls[i]);
      const bool light = holds_light_link(data, world, t.limits[limit], t.light[i]);
      if (!light || !goes_round<R>(turn, rate, h, HalfTurn(double(t.ranges[4 * limit + 1])))) return;
      if (turning.empty()) turning.assign(data.size(model_.nv), R(0));
      const int dof = model_.joints[std::size_t(t.limits[limit])].qvel;
      turning[batch_index(width_, model_.nv, dof, world)] = R(1);
    });
  }
}

/// Whether the scalar path must take the world's step, as StepTerms::stiffen_ranges() decides.
template <class R>
bool LaneTerms<R>::turns_ranges(const BasicData<R>& data, double h, int world, In<R> joint_inertia, In<R> next) const {
  const Tables& t = *tables_;
  bool needed = false;
  each_ball(data, world, next, [&](std::size_t i, const Quat<R>& turn, const Vec3<R>& rate) {
    const double force = double(limit_[batch_index(width_, t.model.nlimit, t.balls[i], world)]);
    if (needed || !(force > 0)) return;
    const RangeSpring spring({double(turn.w), double(turn.x), double(turn.y), double(turn.z)}, force);
    const int joint = t.limits[std::size_t(t.balls[i])], dof = model_.joints[std::size_t(joint)].qvel;
    const double K = double(joint_inertia[batch_index(width_, model_.nv, dof, world)]);
    needed = spring.is_needed(model_, data, world, joint, K, widen(rate), h);
  });
  return needed;
}

template <class R>
void LaneTerms<R>::hold(int pack, DelassusRows<R>& rows, In<R> target, In<R> compliance) {
  const LaneModel<R>& m = tables_->model;
  const std::size_t w = std::size_t(width_);
  check_size("target", target.size(), std::size_t(rows.rows()) * w);
  check_size("compliance", compliance.size(), target.size());
  R* const numbers = path_.data() + std::size_t(pack) * std::size_t(m.path_numbers) * w;
  for (int i = 0, row = 0; row < rows.rows(); ++i) {
    const auto block = rows.block(i);
    for (int r = 0; r < block.nrow; ++r, ++row) {
      const LanePath& to = m.path[m.nalone + row];
      R* at = numbers + std::size_t(to.first) * w;
      const auto put = [&](const R* from) { std::copy_n(from, w, at), at += w; };
      put(&target[std::size_t(row) * w]), put(&compliance[std::size_t(row) * w]);
      at += w * (kPathNumbers - 2);
      const auto of_row = [&](const R* all, int k) {
        return all + (std::size_t(k) * block.stride + std::size_t(r)) * w;
      };
      for (int k = 0; k < 12; ++k) {
        if ((k < 6 ? to.a : to.b) >= 0)
          put(of_row(block.force, k));
        else
          at += w;
      }
      for (int k = 0; k < to.ndof; ++k) put(of_row(block.joint, k));
    }
  }
}

template <class R>
In<R> LaneTerms<R>::bilateral_impulse(int pack) const {
  const Tables& t = *tables_;
  const std::size_t first = std::size_t(pack * t.model.npath + t.model.nalone), w = std::size_t(width_);
  return In<R>(path_impulse_).subspan(first * w, std::size_t(t.nbilateral) * w);
}

template <class R>
In<R> LaneTerms<R>::bilateral_miss(int pack) const {
  return {tables_->packs[std::size_t(pack)].report.unmet, std::size_t(width_)};
}

template <class R>
void LaneTerms<R>::push(int world, std::span<const ForceRow> rows) {
  const LaneModel<R>& m = tables_->model;
  const std::size_t w = std::size_t(width_), lane = std::size_t(world) % w;
  R* const numbers = path_.data() + std::size_t(world) / w * std::size_t(m.path_numbers) * w + lane;
  // Rows that a world does not have are zero in its lane, whatever the lane's last world left there.
  for (const int path : tables_->path_of_slot) {
    if (path < 0) continue;
    R* const first = numbers + std::size_t(m.path[path].first) * w;
    if (first[kPathLive * w] == R(0)) continue;
    for (int k = 0; k < kPathNumbers + 12 + m.path[path].ndof; ++k) first[std::size_t(k) * w] = R(0);
  }
  for (const ForceRow& row : rows) {
    const LanePath& to = m.path[tables_->path_of_slot[std::size_t(row.slot)]];
    R* const at = numbers + std::size_t(to.first) * w;
    const auto put = [&](int k, double x) { at[std::size_t(k) * w] = R(x); };
    put(kPathLive, 1), put(kPathRigid, row.rigid), put(kPathTarget, row.target), put(kPathForce, row.force);
    put(kPathCompliance, row.compliance), put(kPathSlope, row.slope), put(kPathLow, row.low), put(kPathHigh, row.high);
    for (int k = 0; k < 3 && to.a >= 0; ++k)
      put(kPathNumbers + k, row.wrench.n[k]), put(kPathNumbers + 3 + k, row.wrench.f[k]);
    for (int k = 0; k < to.ndof; ++k) put(kPathNumbers + 12 + k, row.arm[std::size_t(k)]);
  }
}

template <class R>
double LaneTerms<R>::impulse(int world, int slot) const {
  const int path = tables_->path_of_slot[std::size_t(slot)];
  return double(path_impulse_[batch_index(width_, tables_->model.npath, path, world)]);
}

template <class R>
void LaneTerms<R>::feel() {
  if (!touch_.empty()) return;
  const LaneModel<R>& m = tables_->model;
  const std::size_t packs = tables_->packs.size(), width = std::size_t(width_),
                    touch = std::size_t(m.most_contacts + m.most_crossings + 1) * kTouchNumbers * width;
  touch_.resize(packs * touch), ntouch_.assign(packs, 0);
  for (std::size_t p = 0; p < packs; ++p) {
    LaneTermReport<R>& report = tables_->packs[p].report;
    report.touch = touch_.data() + p * touch, report.ntouch = &ntouch_[p];
  }
  write_limits();
}

/// Enables the forces of limits from the next step on.
template <class R>
void LaneTerms<R>::write_limits() {
  const std::size_t limit = std::size_t(tables_->model.nlimit * width_);
  limit_.resize(tables_->packs.size() * limit);
  for (std::size_t p = 0; p < tables_->packs.size(); ++p) tables_->packs[p].report.limit = limit_.data() + p * limit;
}

template <class R>
void LaneTerms<R>::each_touch(int world, const std::function<void(const LaneTouched&)>& f) const {
  const std::size_t pack = std::size_t(world / width_);
  const R* at = tables_->packs[pack].report.touch + world % width_;
  for (int i = 0; i < ntouch_[pack]; ++i, at += kTouchNumbers * width_) {
    if (at[0] == 0) continue;
    const LanePair<R>& pair = tables_->pairs[std::size_t(at[0]) - 1];
    const auto vector = [&](int k) {
      return Vec3d{double(at[k * width_]), double(at[(k + 1) * width_]), double(at[(k + 2) * width_])};
    };
    const double margin = double(pair.margin);
    f({pair.a, pair.b, vector(1), vector(4), double(at[7 * width_]) + margin, margin, vector(8), vector(11)});
  }
}

template <class R>
double LaneTerms<R>::limit_force(int world, int joint) const {
  const Tables& t = *tables_;
  const auto found = std::find(t.limits.begin(), t.limits.begin() + t.model.nlimit, joint);
  if (found == t.limits.begin() + t.model.nlimit) return 0;
  return double(limit_[batch_index(width_, t.model.nlimit, int(found - t.limits.begin()), world)]);
}

template <class R>
bool LaneTerms<R>::fits(const RowsReport& report) {
  return 4 * report.between <= 3 * kMostBetween<R>;  // fewer, so that it does not change places often
}

template <class R>
RowsReport LaneTerms<R>::report(int world) const {
  const int lane = world % width_;
  const LaneTermReport<R>& r = tables_->packs[std::size_t(world / width_)].report;
  RowsReport out;
  out.iterations = int(r.iterations[lane]), out.residual = double(r.residual[lane]);
  out.penetration = double(r.penetration[lane]), out.contacts = int(r.contacts[lane]);
  out.touching = int(r.touching[lane]), out.limits = int(r.limits[lane]), out.saturated = int(r.saturated[lane]);
  out.between = int(r.between[lane]);
  out.drives = rows_;
  const bool spent = out.iterations >= options_.solve.max_iterations && out.residual <= NewtonOptions::kLost;
  out.status = r.missed[lane] == 0   ? StepStatus::converged
               : r.missed[lane] == 1 ? (spent ? StepStatus::cut_short : StepStatus::too_many_iterations)
               : r.missed[lane] == 2 ? StepStatus::crowded
                                     : StepStatus::not_finite;
  out.rows = 3 * out.contacts + out.limits + out.drives;
  return out;
}

template <class R>
void LaneTerms<R>::exchange(AlignedVector<R>& memory, int pack) {
  AlignedVector<R>& mine = memory_[std::size_t(pack)];
  if (memory.empty()) memory.assign(mine.size(), R(0));
  check_size("lane_terms", memory.size(), mine.size());
  for (int lane = 0; lane < width_; ++lane) {  // the first word: number of contacts
    std::conditional_t<sizeof(R) == 8, std::int64_t, std::int32_t> count;
    std::memcpy(&count, &memory[lane], sizeof count);
    if (count < 0 || count > tables_->model.most_contacts + tables_->model.most_crossings)
      throw ValueError("lane_terms", std::to_string(count) + " contacts", "what a batch of this model saved");
  }
  mine.swap(memory);
}

template <class R>
void LaneTerms<R>::forget(AlignedVector<R>& memory, int lane, int width) {
  // The first word is the number of cached contacts, the same for all lanes.
  for (std::size_t i = std::size_t(width + lane); i < memory.size(); i += std::size_t(width)) memory[i] = R(0);
}

template int packs_together<double>(int);
template int packs_together<float>(int);
template class LaneTerms<double>;
template class LaneTerms<float>;

}  // namespace tarsus
