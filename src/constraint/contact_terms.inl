// Contacts as terms: forces along n, t₁, t₂ at the point, then moments about these axes. With Coulomb's law on γ
// (solver/law.hpp), the normal row of a contact with a force and the rows that stick obey
//
//     J v⁺ + R (γ - c) = b
//
//     normal     b, R of SPOOK for the gap g (spook.hpp); an open contact may just close its gap
//     tangents   b = 0, c the last step's impulse: sticking contacts do not creep
//
// A mocap body has no velocity. What it comes upon is pushed by the velocity from its last poses (push_by_mocap()).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "constraint/carried_bodies.inl"
#include "constraint/contact_force.hpp"
#include "constraint/kernel_table.hpp"
#include "constraint/term_constants.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/model/mujoco_minval.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

std::array<Vec3d, 2> contact_tangents(const Vec3d& n) {  // [Duff et al. 2017]: no square root, no branch
  const double sign = std::copysign(1.0, n.z), a = -1 / (sign + n.z), b = n.x * n.y * a;
  return {Vec3d{1 + sign * n.x * n.x * a, sign * b, -sign * n.x}, Vec3d{b, sign + n.y * n.y * a, -n.y}};
}

std::array<Vec3d, 2> frame_tangents(const Vec3d& n, const Vec3d& axis) {
  const auto along = [&](const Vec3d& x) { return x - n * dot(n, x); };
  Vec3d t = along(axis);
  if (!(norm(t) > kMujocoMinval)) {
    const bool upright = dot(axis, axis) > 0 && std::abs(n.x) < 0.5;  // a capsule: MuJoCo then takes x
    t = along(upright ? Vec3d{1, 0, 0} : std::abs(n.y) < 0.5 ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1});
  }
  const Vec3d first = t * (1 / norm(t));
  return {first, cross(n, first)};
}

static bool pair_before(const LinkContact& x, const LinkContact& y) { return x.a != y.a ? x.a < y.a : x.b < y.b; }

/// Order of contacts: by their links, then by identity, which suffices for most.
static bool comes_before(const LinkContact& x, const LinkContact& y) {
  if (x.a != y.a || x.b != y.b) return pair_before(x, y);
  if (x.identity != y.identity) return x.identity < y.identity;
  const Vec3d &p = x.point.position, &q = y.point.position;
  return std::tie(p.x, p.y, p.z) < std::tie(q.x, q.y, q.z);
}

/// If the links are in order already, as usual, only the contacts of each pair are sorted.
static void sort_contacts(std::vector<LinkContact>& contacts) {
  if (!std::is_sorted(contacts.begin(), contacts.end(), pair_before))
    return std::sort(contacts.begin(), contacts.end(), comes_before);
  for (auto first = contacts.begin(), last = first; first != contacts.end(); first = last) {
    while (last != contacts.end() && !pair_before(*first, *last)) ++last;
    if (!std::is_sorted(first, last, comes_before)) std::sort(first, last, comes_before);
  }
}

constexpr std::size_t kContactBlock = 256;  ///< contacts whose terms are built together

/// Whether contact_terms_kernel() computes the first three rows.
static bool is_usual(const LinkContact& c) { return c.dimension >= 3 && c.restitution == 0 && !c.directional; }

/// Lays out the rows of a block of contacts, and overwrites the last step's terms.
/// @return the contacts are in order, and none is of the world with itself
template <class R>
bool StepTerms<R>::lay_out_contacts(std::size_t first, std::size_t last) {
  geometry_.usual.clear(), geometry_.others.clear();
  const double deep = kSlowReturn * step_.h;
  int row = first == 0 ? 0 : terms_[first - 1].first_row + terms_[first - 1].nrow;
  for (std::size_t i = first; i < last; ++i) {
    LinkContact& c = contacts_[i];
    if (c.b > c.a) std::swap(c.a, c.b), c.point.normal = -c.point.normal;
    if (c.a < 0 || (i > 0 && comes_before(c, contacts_[i - 1]))) return false;
    ContactRows& rows = geometry_.contacts[i];
    rows.a = c.a, rows.b = c.b, rows.nrow = c.dimension;
    terms_[i] = {Law::contact, row, c.dimension, 0, kUnbounded, c.friction, c.torsional, c.rolling};
    names_[i] = {Kind::contact, c.identity};
    const double penetration = -c.point.distance;
    report_.penetration = std::max(report_.penetration, penetration);
    report_.between += c.b >= 0 && (penetration > 0 || mass_.is_between(rows));
    if (penetration > deep) slow_down(c);
    if (c.mocap >= 0) push_by_mocap(c);
    const bool usual = is_usual(c);
    if (usual) geometry_.usual.push_back({int(i), row, -1});
    if (!usual || c.dimension > 3) geometry_.others.push_back(int(i));
    row += c.dimension;
  }
  const auto hold = [row](auto& of_rows) {
    if (std::size_t(row) > of_rows.size()) of_rows.resize(std::size_t(row));
  };
  hold(rows_), hold(free_rows_), hold(y_), hold(impulse_);
  return true;
}

/// Speed at which two links separate at a contact if each DoF between them moves at 1 rad/s or 1 m/s [m/s]. Unbounded
/// for a free joint.
template <class R>
static double parting_speed(const Model& model, const LinkState<R>* links, const LinkContact& c) {
  const Vec3d& n = c.point.normal;
  double sum = 0;
  for (int a = c.a, b = c.b; a != b;) {  // up to the common ancestor; the world is before all links
    int& link = a > b ? a : b;
    const Joint& joint = model.joints[link];
    if (moves_freely(joint.type)) return kUnbounded;
    const LinkState<R>& s = links[link];
    const Vec3d turn = cross(c.point.position - widen(s.o), n), axis = widen(s.R).column_z();
    sum += turns_on_axis(joint.type)    ? std::abs(dot(axis, turn))
           : slides_on_axis(joint.type) ? std::abs(dot(axis, n))
                                        : norm(turn);
    link = joint.parent;
  }
  return sum;
}

/// Limits the recovery speed of a deep contact to what slow joint motion gives.
template <class R>
void StepTerms<R>::slow_down(LinkContact& c) const {
  if (c.spook.compliance > 0 || c.solver.share > 0) return;
  const double gap = c.gap_share * c.point.distance;
  if (recoverable(c.spook, gap, step_.h, kSlowReturn) == gap) return;
  const double turn = kContactTurn * parting_speed(model_, step_.data->links(), c);
  const double time = c.mocap >= 0 ? 0 : c.spook.damping_time > 0 ? c.spook.damping_time : kReturnTime;
  c.fastest = std::clamp(std::min(turn, -gap / time), kSlowReturn, kContactReturn);
}

/// Axes and origin of a link or mocap body in the world.
template <class R>
static std::array<Vec3d, 4> frame_of(const LinkState<R>& link) {
  const Mat3d rotation = widen(link.R);
  return {rotation.column_x(), rotation.column_y(), rotation.column_z(), widen(link.o)};
}

/// Lets the late frames of mocap bodies follow them by that share of the way.
template <class R>
void StepTerms<R>::follow_mocap(double share) {
  for (std::size_t k = 0; k < warm_.last.mocap.size(); ++k) {
    const std::array<Vec3d, 4> now = frame_of(step_.data->links()[std::size_t(model_.njoint()) + k]);
    for (std::size_t i = 0; i < 4; ++i) warm_.last.mocap[k][i] += (now[i] - warm_.last.mocap[k][i]) * share;
  }
}

/// Sets the late frames at first, after a reset, and of a mocap body that is farther away than fast motion takes it: it
/// has jumped, and does not push.
template <class R>
void StepTerms<R>::find_jumps() {
  std::vector<std::array<Vec3d, 4>>& late = warm_.last.mocap;
  const std::size_t known = late.size();
  const double time = std::max(step_.h, kPushTime), way = kFastestPush * time, turn = kFastestPushTurn * time;
  late.resize(std::size_t(model_.nmocap()));
  for (std::size_t k = 0; k < late.size(); ++k) {
    const std::array<Vec3d, 4> now = frame_of(step_.data->links()[std::size_t(model_.njoint()) + k]);
    double square[4];
    for (std::size_t i = 0; i < 4; ++i) square[i] = dot(now[i] - late[k][i], now[i] - late[k][i]);
    // The squares of the axes' ways have the sum 2 θ² for a small angle θ.
    const bool near = square[3] <= way * way && square[0] + square[1] + square[2] <= 2 * turn * turn;
    if (k >= known || !near) late[k] = now;
  }
}

/// Lets a mocap body that moves push what it has come upon. With its speed u along the normal, the gap before it moved,
/// g + h u, and the relative speed, SPOOK's row is that of the depth -g + (τ - h) u. If this step's motion alone made
/// the depth, the row just closes the gap.
template <class R>
void StepTerms<R>::push_by_mocap(LinkContact& c) const {
  const double h = step_.h, time = std::max(h, kPushTime), depth = -c.gap_share * c.point.distance;
  if (c.solver.share > 0 || !(depth > 0)) return;
  const std::array<Vec3d, 4> now = frame_of(step_.data->links()[c.mocap]);
  const std::array<Vec3d, 4>& late = warm_.last.mocap[std::size_t(c.mocap - model_.njoint())];
  Vec3d moved = now[3] - late[3];
  for (std::size_t i = 0; i < 3; ++i) moved += (now[i] - late[i]) * dot(now[i], c.point.position - now[3]);
  const double push = dot(c.point.normal, moved) / time, wait = std::max(0.0, damping_time(c.spook, h) - h);
  if (!(push > 0)) return;
  c.gap_share *= 1 + std::min(wait * push / depth, wait / h + 0.25);
  c.fastest = std::max(c.fastest, kOvertakes * push);
}

template <class R>
void StepTerms<R>::take_contacts(std::vector<LinkContact>& contacts) {
  std::swap(contacts_, contacts);
  if (model_.nmocap() == 0 && add_contacts()) return;  // push_by_mocap() must see a contact once
  for (LinkContact& c : contacts_) {
    if (c.b > c.a) std::swap(c.a, c.b), c.point.normal = -c.point.normal;
  }
  std::erase_if(contacts_, [](const LinkContact& c) { return c.a < 0; });
  sort_contacts(contacts_);
  report_.between = 0;
  add_contacts();
}

/// Builds the terms of the contacts and finds their warm start, in blocks that stay in the cache.
/// @return false, with some of them built, if the contacts have to be sorted first
template <class R>
bool StepTerms<R>::add_contacts() {
  const std::size_t n = contacts_.size();
  geometry_.contacts.resize(n), terms_.resize(n), names_.resize(n);
  begin_warm_start();
  for (std::size_t first = 0, last = 0; first < n; first = last) {
    last = std::min(first + kContactBlock, n);
    if (!lay_out_contacts(first, last)) return false;
    static_assert(offsetof(ContactPoint, distance) == 6 * sizeof(double) && sizeof(LinkContact) % sizeof(double) == 0);
    const LinkContact& c = contacts_[0];
    const ContactNumbers numbers{&c.point.position.x, &c.spook.compliance, sizeof(LinkContact) / sizeof(double)};
    constraint_table<R>(1).contact_terms(
        numbers, geometry_.usual.data(), int(geometry_.usual.size()), step_.data->links(),
        {step_.h, step_.ahead(), kRelative * options_.relative_compliance, masses_.now().data()},
        geometry_.contacts.data(), rows_.data(), free_rows_.data(), y_.data());
    for (const int i : geometry_.others) add_contact(std::size_t(i), is_usual(contacts_[i]) ? 3 : 0);
    find_contacts(first, last);
  }
  const int row = n == 0 ? 0 : terms_.back().first_row + terms_.back().nrow;
  rows_.resize(row), free_rows_.resize(row), y_.resize(row), impulse_.resize(row);
  find_nearby();
  return true;
}

/// Inverse mass that a contact feels, for forces [1/kg] or moments [1/(kg m²)].
template <class R>
double StepTerms<R>::contact_inverse_mass(const LinkContact& c, double ReferenceMass::*part) const {
  const std::vector<ReferenceMass>& mass = masses_.now();
  return mass[c.a].*part + (c.b >= 0 ? mass[c.b].*part : 0);
}

/// R and b along the normal at that speed.
template <class R>
TermRow StepTerms<R>::normal_row(const LinkContact& c, double mass, double speed) const {
  const double weight = contact_inverse_mass(c, &ReferenceMass::weight);
  if (c.solver.share > 0)
    return {compliance(c.solver.relative_compliance * weight, mass), c.solver.target(speed, c.point.distance), 0, mass};
  Spook soft = c.spook;
  double gap = c.gap_share * c.point.distance;
  if (soft.compliance == 0) {
    gap = recoverable(soft, gap, step_.h, c.fastest);
    soft.compliance = c.relative_compliance * weight;
  }
  const SpookRow spook = spook_unilateral(soft, gap, speed, step_.h, c.restitution, options_.restitution_threshold);
  // A soft row would absorb the bounce.
  const bool bounces = c.restitution > 0 && -speed > options_.restitution_threshold;
  const double own = bounces ? kLeastCompliance<R> * mass : spook_bilateral(soft, gap, speed, step_.h).compliance;
  return {compliance(own, mass), spook.target, 0, mass};
}

/// Sets a contact's rows from row `from` on: all rows if the contact bounces, has no friction or direction-dependent
/// friction; otherwise rows three to five, torsion and rolling.
template <class R>
void StepTerms<R>::add_contact(std::size_t index, int from) {
  const LinkContact& c = contacts_[index];
  ContactRows& rows = geometry_.contacts[index];
  if (from == 0) {
    const LinkState<R>* links = step_.data->links();
    const DirectionalFriction* f = c.directional;
    const auto capsule = [&] { return f->carrier >= 0 ? widen(links[f->carrier].R) * f->axis : f->axis; };
    const auto [t1, t2] = f ? frame_tangents(c.point.normal, capsule()) : contact_tangents(c.point.normal);
    const std::array<double, 2> share = f ? f->share : std::array<double, 2>{1, 1};
    // ‖(γ₁, γ₂)‖ <= μ γ_n of scaled rows is the ellipse of forces
    rows.axis[0] = c.point.normal, rows.axis[1] = t1 * share[0], rows.axis[2] = t2 * share[1];
    rows.arm_a = c.point.position - widen(links[c.a].o);
    rows.arm_b = c.b >= 0 ? c.point.position - widen(links[c.b].o) : Vec3d{0, 0, 0};
  }
  const ContactMotion at = motion(index);
  for (int k = from; k < c.dimension; ++k) {
    const double mass = contact_inverse_mass(c, k < 3 ? &ReferenceMass::linear : &ReferenceMass::angular);
    const double speed = along_contact(rows, at.speed, k);
    const TermRow numbers = k == 0 ? normal_row(c, mass, speed) : TermRow{compliance(0, mass), 0, 0, mass};
    set_row(terms_[index].first_row + k, numbers, speed, along_contact(rows, at.free, k));
  }
}

/// Takes the rows of friction of bodies that a link carries half a step ahead (carried_bodies.inl).
template <class R>
void StepTerms<R>::carry_bodies() {
  const ModelView<R> view = step_.data->view(model_, 0);
  const auto may_be_carried = [&](const ContactRows& rows) {
    return rows.a >= 0 && rows.b >= 0 &&
           (view.link[rows.a].alone || view.link[rows.b].alone || floats(view, rows.a) != floats(view, rows.b));
  };
  const std::span<const ContactRows> contacts(geometry_.contacts.data(), contacts_.size());
  if (std::none_of(contacts.begin(), contacts.end(), may_be_carried)) return;
  const LinkState<R>* const links = step_.data->links();
  if (!constraint_table<R>(1).bias_accelerations(view, links, R(step_.h), step_.qvel.data(), geometry_.bias.data()))
    return;
  const auto* const bias = reinterpret_cast<const Motion<R>*>(geometry_.bias.data());
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const ContactRows& rows = contacts[i];
    if (terms_[i].nrow < 3 || !may_be_carried(rows)) continue;
    const Motion<double> a = widen(links[rows.a].v), b = widen(links[rows.b].v);
    const Vec3d spin = a.w - b.w;
    const double alike = floats(view, rows.a) && floats(view, rows.b) ? kAlikeAfloat : kAlikeOnGround;
    const double share = carried_share(dot(spin, spin), std::max(dot(a.w, a.w), dot(b.w, b.w)), alike);
    if (share == 0) continue;
    const Vec3d apart =
        point_acceleration(a, widen(bias[rows.a]), rows.arm_a) - point_acceleration(b, widen(bias[rows.b]), rows.arm_b);
    for (int k = 0; k < 2; ++k) {
      TermRow& row = rows_[terms_[i].first_row + 1 + k];
      row.centre -= 0.5 * step_.h * share * dot(rows.axis[1 + k], apart) / row.compliance;  // b / R, as part of c
    }
  }
}

/// Relative motion of the two links at a contact.
template <class R>
typename StepTerms<R>::ContactMotion StepTerms<R>::motion(std::size_t index) const {
  const ContactRows& rows = geometry_.contacts[index];
  const double ahead = step_.ahead();
  const auto side = [&](int link, const Vec3d& arm) {
    const LinkState<R>& state = step_.data->links()[link];
    const Motion<double> v = widen(state.v), a = widen(state.a);
    return ContactMotion{at_arm(v, arm), at_arm({v.w + a.w * ahead, v.v + a.v * ahead}, arm)};
  };
  const ContactMotion a = side(rows.a, rows.arm_a);
  if (rows.b < 0) return a;
  const ContactMotion b = side(rows.b, rows.arm_b);
  return {a.speed - b.speed, a.free - b.free};
}

}  // namespace tarsus
