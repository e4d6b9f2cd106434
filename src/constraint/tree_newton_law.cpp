// TreeNewton: what a row's velocity makes of its force.
#include <algorithm>
#include <cmath>

#include "tarsus/constraint/tree_newton.hpp"

namespace tarsus {

namespace {

double length2(double x, double y) { return std::sqrt(x * x + y * y); }

/// What two rows that a normal force bounds are made of.
struct DiscRows {
  const RowNumbers* numbers;
  const double *sigma, *centre, *w;
  double* lambda;
};

/// Two rows that pull against their velocity, at most as hard as `radius`, which changes by `by_normal` with -w of the
/// normal row.
inline DiscTangent disc_law(const DiscRows& rows, double radius, double by_normal) {
  const double s = 1 / rows.sigma[0];
  const double z1 = (rows.numbers[0].target - rows.w[0]) * s + rows.centre[0],
               z2 = (rows.numbers[1].target - rows.w[1]) * s + rows.centre[1];
  const double length = length2(z1, z2), shrink = length > radius ? radius / length : 1;
  rows.lambda[0] = shrink * z1, rows.lambda[1] = shrink * z2;
  if (!(radius > 0)) return {};
  if (shrink == 1) return {s, 0, s, 0, 0};
  const double u1 = z1 / length, u2 = z2 / length, across = shrink * s;
  return {across * u2 * u2, -across * u1 * u2, across * u1 * u1, by_normal * u1, by_normal * u2};
}

}  // namespace

template <class R>
void TreeNewton<R>::contact_law(std::size_t index, std::span<const double> w, bool tangents) {
  const TreeContact& contact = contacts_[index];
  const int i = contact.first_row;
  const double soft = numbers_[i].compliance + sigma_[i];
  const double z = (numbers_[i].target - w[i] + sigma_[i] * centre_[i]) / soft;
  lambda_[i] = std::max(0.0, z);
  const double normal = z > 0 ? 1 / soft : 0, bound = coupled_ ? lambda_[i] : bounding_[index];
  DiscTangent slide;
  if (contact.nrow >= 3) {
    slide = disc_law({&numbers_[i + 1], &sigma_[i + 1], &centre_[i + 1], &w[i + 1], &lambda_[i + 1]},
                     contact.friction * bound, coupled_ ? contact.friction * normal : 0);
  }
  if (tangents) tangent_[index] = {normal, slide};
  if (contact.nrow >= 4) moment_law(index, bound, normal, w, tangents);
}

/// Torsion and rolling, bounded by the normal force `bound`; normal: that row's tangent.
template <class R>
void TreeNewton<R>::moment_law(std::size_t index, double bound, double normal, std::span<const double> w,
                               bool tangents) {
  const TreeContact& contact = contacts_[index];
  const int i = contact.first_row + 3;
  const double by_normal = coupled_ ? normal : 0;
  MomentTangent b;
  const double s = 1 / sigma_[i], most = contact.torsional * bound;
  const double moment = (numbers_[i].target - w[i]) * s + centre_[i];
  lambda_[i] = std::clamp(moment, -most, most);
  if (std::abs(moment) < most)
    b.turn = s;
  else if (most > 0)
    b.turn_n = std::copysign(contact.torsional * by_normal, moment);
  if (contact.nrow >= 6) {
    b.roll = disc_law({&numbers_[i + 1], &sigma_[i + 1], &centre_[i + 1], &w[i + 1], &lambda_[i + 1]},
                      contact.rolling * bound, contact.rolling * by_normal);
  }
  if (tangents) moment_tangent_[index] = b;
}

/// λ(w), and B if asked for.
template <class R>
void TreeNewton<R>::law(std::span<const double> w, bool tangents) {
  for (std::size_t c = 0; c < contacts_.size(); ++c) contact_law(c, w, tangents);
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const int i = joints_[j].row;
    const double soft = numbers_[i].compliance + sigma_[i];
    const double z = (numbers_[i].target - w[i] + sigma_[i] * centre_[i]) / soft;
    lambda_[i] = std::clamp(z, numbers_[i].lower, numbers_[i].upper);
    if (tangents) tangent_[contacts_.size() + j] = {lambda_[i] == z ? 1 / soft : 0, {}};
  }
}

/// Multipliers within their bounds and discs.
template <class R>
void TreeNewton<R>::admit(std::span<double> multiplier) const {
  for (const TreeContact& contact : contacts_) {
    double* at = &multiplier[contact.first_row];
    at[0] = std::max(0.0, at[0]);
    const auto shorten = [&](double* two, double coefficient) {
      const double length = length2(two[0], two[1]), radius = coefficient * at[0];
      if (length > radius) two[0] *= radius / length, two[1] *= radius / length;
    };
    if (contact.nrow >= 3) shorten(at + 1, contact.friction);
    if (contact.nrow >= 4) at[3] = std::clamp(at[3], -contact.torsional * at[0], contact.torsional * at[0]);
    if (contact.nrow >= 6) shorten(at + 4, contact.rolling);
  }
  for (const OneJointRow& j : joints_)
    multiplier[j.row] = std::clamp(multiplier[j.row], numbers_[j.row].lower, numbers_[j.row].upper);
}

/// Natural residual of (λ, w) with the bounds that λ itself gives: [m/s], of moments [rad/s].
template <class R>
double TreeNewton<R>::natural(std::span<const double> multiplier) const {
  double worst = 0;
  const auto take = [&](double miss) { worst = miss <= worst ? worst : miss; };
  // λ and λ - r/d, both times d.
  const auto before = [&](int i) { return multiplier[i] * scale_[i]; };
  const auto after = [&](int i) {
    return before(i) - (w_[i] + numbers_[i].compliance * multiplier[i] - numbers_[i].target);
  };
  const auto disc = [&](int i, double radius) {
    const double z1 = after(i), z2 = after(i + 1);
    const double square = z1 * z1 + z2 * z2, shrink = square > radius * radius ? radius / std::sqrt(square) : 1;
    take(length2(before(i) - shrink * z1, before(i + 1) - shrink * z2));
  };
  for (const TreeContact& c : contacts_) {
    const int i = c.first_row;
    take(std::abs(before(i) - std::max(0.0, after(i))));
    if (c.nrow >= 3) disc(i + 1, c.friction * before(i));
    if (c.nrow < 4) continue;
    const double normal = multiplier[i] * scale_[i + 3], most = c.torsional * normal;
    take(std::abs(before(i + 3) - std::clamp(after(i + 3), -most, most)));
    if (c.nrow >= 6) disc(i + 4, c.rolling * normal);
  }
  for (const OneJointRow& j : joints_) {
    const int i = j.row;
    take(std::abs(before(i) - std::clamp(after(i), numbers_[i].lower * scale_[i], numbers_[i].upper * scale_[i])));
  }
  return worst;
}

#define TARSUS_INSTANTIATE(R)                                                                          \
  template void TreeNewton<R>::moment_law(std::size_t, double, double, std::span<const double>, bool); \
  template void TreeNewton<R>::contact_law(std::size_t, std::span<const double>, bool);                \
  template void TreeNewton<R>::law(std::span<const double>, bool);                                     \
  template void TreeNewton<R>::admit(std::span<double>) const;                                         \
  template double TreeNewton<R>::natural(std::span<const double>) const;
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
