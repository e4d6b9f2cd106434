// Contacts as terms: forces along n, t₁, t₂ at the point, then moments about them.
//
//     normal     b, R of SPOOK for the gap g (spook.hpp); closing the gap just so where it is open
//     tangents   b = 0, c the last step's impulse: what sticks does not creep
#include <algorithm>
#include <cmath>
#include <tuple>

#include "constraint/term_constants.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

/// One over the mean of the diagonal.
template <class R>
double inverse_mean(const Sym3<R>& m) {
  return 3 / std::max(double(m.xx + m.yy + m.zz), 1e-30);
}

/// Estimate of what a point contact on link a, and on b unless it is the world (-1), feels: by the articulated masses
/// that the last factors left [1/kg].
template <class R>
double contact_inverse_mass(const LinkState<R>* links, int a, int b) {
  return inverse_mean(links[a].IA.M) + (b >= 0 ? inverse_mean(links[b].IA.M) : 0);
}

/// The same for moments [1/(kg m²)].
template <class R>
double contact_inverse_inertia(const LinkState<R>* links, int a, int b) {
  return inverse_mean(links[a].IA.I) + (b >= 0 ? inverse_mean(links[b].IA.I) : 0);
}

}  // namespace

std::array<Vec3d, 2> contact_tangents(const Vec3d& n) {  // [Duff et al. 2017]: no root, no branch
  const double sign = std::copysign(1.0, n.z), a = -1 / (sign + n.z), b = n.x * n.y * a;
  return {Vec3d{1 + sign * n.x * n.x * a, sign * b, -sign * n.x}, Vec3d{b, sign + n.y * n.y * a, -n.y}};
}

std::array<Vec3d, 2> frame_tangents(const Vec3d& n) {
  const Vec3d y = std::abs(n.y) < 0.5 ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1}, t = y - n * dot(n, y);
  const Vec3d first = t * (1 / norm(t));
  return {first, cross(n, first)};
}

template <class R>
void StepTerms<R>::add_contacts(std::span<const LinkContact> contacts) {
  contacts_.assign(contacts.begin(), contacts.end());
  for (LinkContact& c : contacts_) {
    if (c.b <= c.a) continue;
    std::swap(c.a, c.b);
    c.point.normal = -c.point.normal;
  }
  std::erase_if(contacts_, [](const LinkContact& c) { return c.a < 0; });  // the world with itself
  const auto before = [](const LinkContact& x, const LinkContact& y) {
    const Vec3d &p = x.point.position, &q = y.point.position;
    return std::tie(x.a, x.b, x.identity, p.x, p.y, p.z) < std::tie(y.a, y.b, y.identity, q.x, q.y, q.z);
  };
  const auto pair_before = [](const LinkContact& x, const LinkContact& y) {
    return std::tie(x.a, x.b) < std::tie(y.a, y.b);
  };
  if (!std::is_sorted(contacts_.begin(), contacts_.end(), pair_before))
    std::sort(contacts_.begin(), contacts_.end(), before);
  for (auto first = contacts_.begin(), last = first; first != contacts_.end(); first = last) {
    while (last != contacts_.end() && !pair_before(*first, *last)) ++last;
    if (!std::is_sorted(first, last, before)) std::sort(first, last, before);
  }
  geometry_.contacts.resize(contacts_.size());
  for (std::size_t i = 0; i < contacts_.size(); ++i) add_contact(i);
}

template <class R>
void StepTerms<R>::add_contact(std::size_t index) {
  const LinkContact& c = contacts_[index];
  const LinkState<R>* links = step_.data->links();
  ContactRows& rows = geometry_.contacts[index];
  rows.a = c.a, rows.b = c.b, rows.nrow = c.dimension;
  rows.axis[0] = c.point.normal;
  if (c.friction_share == std::array<double, 2>{1, 1}) {
    const auto [t1, t2] = contact_tangents(c.point.normal);
    rows.axis[1] = t1, rows.axis[2] = t2;
  } else {  // ‖(γ₁, γ₂)‖ <= μ γ_n of scaled rows is the ellipse of forces
    const auto [t1, t2] = frame_tangents(c.point.normal);
    rows.axis[1] = t1 * c.friction_share[0], rows.axis[2] = t2 * c.friction_share[1];
  }
  rows.arm_a = c.point.position - widen(links[c.a].o);
  rows.arm_b = c.b >= 0 ? c.point.position - widen(links[c.b].o) : Vec3d{0, 0, 0};
  double speed[kTermRows], free[kTermRows];
  contact_velocities(index, speed, free);
  const double mass = contact_inverse_mass(links, c.a, c.b);
  const double inertia = c.dimension > 3 ? contact_inverse_inertia(links, c.a, c.b) : 0;
  Spook soft = c.spook;
  double gap = c.point.distance;
  if (soft.compliance == 0) {
    gap = recoverable(soft, gap, step_.h, kContactReturn);
    soft.compliance = c.relative_compliance * mass;
  }
  const SpookRow spook = spook_unilateral(soft, gap, speed[0], step_.h, c.restitution, options_.restitution_threshold);
  // Softness would swallow a bounce.
  const bool bounces = c.restitution > 0 && -speed[0] > options_.restitution_threshold;
  const double own = bounces ? 0 : spook_bilateral(soft, gap, speed[0], step_.h).compliance;
  TermRow numbers[kTermRows];
  for (int k = 0; k < c.dimension; ++k) {
    const double scale = k < 3 ? mass : inertia;
    numbers[k] = {compliance(k == 0 ? own : 0, scale), 0, 0, scale};
  }
  numbers[0].target = spook.target;
  if (c.solver.share > 0) {
    numbers[0].compliance = compliance(c.solver.relative_compliance * mass, mass);
    numbers[0].target = c.solver.target(speed[0], c.point.distance);
  }
  report_.penetration = std::max(report_.penetration, -c.point.distance);
  add_term(Kind::contact, c.identity, {Law::contact, 0, c.dimension, 0, kUnbounded, c.friction, c.torsional, c.rolling},
           numbers, speed, free);
}

/// J v at the start of the step, and J v⁰.
template <class R>
void StepTerms<R>::contact_velocities(std::size_t index, double* speed, double* free) const {
  const ContactRows& rows = geometry_.contacts[index];
  const LinkState<R>* links = step_.data->links();
  const auto read = [&](Motion<double> a, Motion<double> b, double* out) {
    const Vec3d w = a.w - b.w, v = a.v + cross(a.w, rows.arm_a) - b.v - cross(b.w, rows.arm_b);
    for (int k = 0; k < rows.nrow; ++k) out[k] = dot(rows.axis[k % 3], k < 3 ? v : w);
  };
  const auto later = [&](int link) {
    const Motion<double> v = widen(links[link].v), a = widen(links[link].a);
    return Motion<double>{v.w + a.w * step_.h, v.v + a.v * step_.h};
  };
  const Motion<double> still{{0, 0, 0}, {0, 0, 0}};
  read(widen(links[rows.a].v), rows.b >= 0 ? widen(links[rows.b].v) : still, speed);
  read(later(rows.a), rows.b >= 0 ? later(rows.b) : still, free);
}

#define TARSUS_INSTANTIATE(R)                                             \
  template void StepTerms<R>::add_contacts(std::span<const LinkContact>); \
  template void StepTerms<R>::add_contact(std::size_t);                   \
  template void StepTerms<R>::contact_velocities(std::size_t, double*, double*) const;
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
