#include "tarsus/particles/constraint_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "particles/point.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

void check_finite(const char* what, double value) {
  if (!std::isfinite(value)) throw ValueError(what, number_text(value), "a finite number");
}

void check_positive(const char* what, double value) {
  if (!(std::isfinite(value) && value > 0)) throw ValueError(what, number_text(value), "a positive number");
}

void put(std::span<double> gradient, int slot, const Vec3d& g) {
  if (!gradient.empty()) gradient[3 * slot] = g.x, gradient[3 * slot + 1] = g.y, gradient[3 * slot + 2] = g.z;
}

double wrap(double angle) { return angle - 2 * kPi * std::round(angle / (2 * kPi)); }

}  // namespace

const char* row_kind_name(RowKind kind) {
  constexpr const char* kNames[] = {"distance", "angle", "dihedral", "plane", "sphere", "surface", "linear", "user"};
  return kNames[static_cast<int>(kind)];
}

double bond_angle(std::span<const double, 9> x, std::span<double> gradient) {
  const Vec3d u = point(x, 0) - point(x, 1), w = point(x, 2) - point(x, 1);
  const double uu = dot(u, u), ww = dot(w, w), uw = dot(u, w), sine = norm(cross(u, w));
  if (!gradient.empty()) {
    // dθ = -(d cosθ)/sinθ, with |u||w| sinθ = |u × w|.
    const Vec3d gi = (u * (uw / uu) - w) * (1 / sine), gk = (w * (uw / ww) - u) * (1 / sine);
    put(gradient, 0, gi);
    put(gradient, 1, -(gi + gk));
    put(gradient, 2, gk);
  }
  return elementary::atan2(sine, uw);
}

double torsion_angle(std::span<const double, 12> x, std::span<double> gradient) {
  const Vec3d b1 = point(x, 1) - point(x, 0), b2 = point(x, 2) - point(x, 1), b3 = point(x, 3) - point(x, 2);
  const Vec3d m = cross(b1, b2), n = cross(b2, b3);
  const double l2 = norm(b2), l22 = dot(b2, b2);
  if (!gradient.empty()) {
    const Vec3d gi = m * (-l2 / dot(m, m)), gl = n * (l2 / dot(n, n));
    const double p = dot(b1, b2) / l22, q = dot(b3, b2) / l22;
    put(gradient, 0, gi);
    put(gradient, 1, gl * q - gi * (1 + p));
    put(gradient, 2, gi * p - gl * (1 + q));
    put(gradient, 3, gl);
  }
  return elementary::atan2(l2 * dot(b1, n), dot(m, n));
}

int ConstraintSet::add(Row row) {
  for (std::size_t a = 0; a < row.particles.size(); ++a) {
    const int i = row.particles[a];
    if (i < 0 || i >= particles_) {
      throw ValueError(fmt::format("{} constraint's particle", row_kind_name(row.kind)), fmt::format("{}", i),
                       fmt::format("an index from 0 to {}", particles_ - 1));
    }
  }
  std::vector<int> sorted = row.particles;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    throw ValueError(fmt::format("{} constraint's particles", row_kind_name(row.kind)), fmt::format("{} twice", *twice),
                     "different particles");
  }
  append(row);
  rows_.push_back(std::move(row));
  return nrow() - 1;
}

void ConstraintSet::append(const Row& row) {
  const bool distance = row.kind == RowKind::distance;
  ends_.push_back(distance ? std::array{row.particles[0], row.particles[1]} : std::array{-1, -1});
  for (const int i : row.particles) {
    for (int c = 0; c < 3; ++c) pattern_.column.push_back(3 * i + c);
  }
  pattern_.start.push_back(static_cast<int>(pattern_.column.size()));
}

int ConstraintSet::add_distance(int i, int j, double length) {
  check_positive("distance constraint's length", length);
  return add({.kind = RowKind::distance, .particles = {i, j}, .value = length, .scale = length * length});
}

int ConstraintSet::add_angle(int i, int j, int k, double angle) {
  check_finite("angle constraint's angle", angle);
  if (!(angle > 0 && angle < kPi)) {
    throw ValueError("angle constraint's angle", number_text(angle),
                     "strictly between 0 and pi rad: a straight angle has no gradient, use distance or linear rows");
  }
  return add({.kind = RowKind::angle, .particles = {i, j, k}, .value = angle});
}

int ConstraintSet::add_dihedral(int i, int j, int k, int l, double angle) {
  check_finite("dihedral constraint's angle", angle);
  return add({.kind = RowKind::dihedral, .particles = {i, j, k, l}, .value = angle});
}

int ConstraintSet::add_plane(int i, const Vec3d& point, const Vec3d& normal, double length) {
  check_positive("plane constraint's length", length);
  check_positive("norm of the plane constraint's normal", norm(normal));
  check_finite("norm of the plane constraint's point", norm(point));
  return add(
      {.kind = RowKind::plane, .particles = {i}, .scale = length, .vectors = {point, normal * (1 / norm(normal))}});
}

int ConstraintSet::add_sphere(int i, const Vec3d& centre, double radius) {
  check_positive("sphere constraint's radius", radius);
  check_finite("norm of the sphere constraint's centre", norm(centre));
  return add(
      {.kind = RowKind::sphere, .particles = {i}, .value = radius, .scale = radius * radius, .vectors = {centre}});
}

int ConstraintSet::add_surface(int i, RowFunction function, double scale) {
  check_positive("surface constraint's scale", scale);
  if (!function) throw ValueError("surface constraint's function", "none", "a function");
  return add({.kind = RowKind::surface, .particles = {i}, .scale = scale, .function = std::move(function)});
}

int ConstraintSet::add_linear(std::vector<int> particles, std::vector<Vec3d> coefficients, double value,
                              double length) {
  check_size("linear constraint's coefficients", coefficients.size(), particles.size());
  check_positive("linear constraint's length", length);
  check_finite("linear constraint's value", value);
  double size = 0;
  for (const Vec3d& a : coefficients) size += norm(a);
  check_positive("linear constraint's coefficients", size);
  return add({.kind = RowKind::linear,
              .particles = std::move(particles),
              .value = value,
              .scale = size * length,
              .vectors = std::move(coefficients)});
}

int ConstraintSet::add_centre_of_mass(std::span<const double> mass, const Vec3d& centre, double length) {
  check_size("mass", mass.size(), particles_);
  double total = 0;
  for (const double m : mass) total += m;
  check_positive("total mass", total);
  std::vector<int> all(particles_);
  for (int i = 0; i < particles_; ++i) all[i] = i;
  const int first = nrow();
  for (int c = 0; c < 3; ++c) {
    std::vector<Vec3d> coefficients(particles_, zero3<double>());
    for (int i = 0; i < particles_; ++i) coefficients[i][c] = mass[i] / total;
    add_linear(all, std::move(coefficients), centre[c], length);
  }
  return first;
}

int ConstraintSet::add_user(std::vector<int> particles, RowFunction function, double scale, std::string name) {
  check_positive("user constraint's scale", scale);
  if (!function) throw ValueError("user constraint's function", "none", "a function");
  if (particles.empty()) throw ValueError("user constraint's particles", "none", "at least one particle");
  return add({.kind = RowKind::user,
              .particles = std::move(particles),
              .scale = scale,
              .function = std::move(function),
              .name = std::move(name)});
}

void ConstraintSet::remove(std::span<const int> rows) {
  std::vector<char> gone(rows_.size(), 0);
  for (const int row : rows) check_index("row", row, nrow()), gone[std::size_t(row)] = 1;
  std::vector<Row> kept;
  pattern_ = {}, ends_.clear();
  for (std::size_t k = 0; k < rows_.size(); ++k) {
    if (gone[k]) continue;
    append(rows_[k]);
    kept.push_back(std::move(rows_[k]));
  }
  rows_ = std::move(kept);
}

double ConstraintSet::evaluate_row(int k, std::span<const double> x, std::span<double> gradient) const {
  const Row& row = rows_[k];
  const std::vector<int>& p = row.particles;
  switch (row.kind) {
    case RowKind::distance: {
      const Vec3d e = point(x, p[0]) - point(x, p[1]);
      put(gradient, 0, e);
      put(gradient, 1, -e);
      return 0.5 * (dot(e, e) - row.scale);
    }
    case RowKind::plane: {
      put(gradient, 0, row.vectors[1]);
      return dot(row.vectors[1], point(x, p[0]) - row.vectors[0]);
    }
    case RowKind::sphere: {
      const Vec3d e = point(x, p[0]) - row.vectors[0];
      put(gradient, 0, e);
      return 0.5 * (dot(e, e) - row.scale);
    }
    case RowKind::linear: {
      double sum = -row.value;
      for (std::size_t a = 0; a < p.size(); ++a) {
        sum += dot(row.vectors[a], point(x, p[a]));
        put(gradient, static_cast<int>(a), row.vectors[a]);
      }
      return sum;
    }
    default: break;
  }
  // The other rows take the packed coordinates of their particles.
  double few[12];
  std::vector<double> many;
  double* packed = few;
  if (p.size() > 4) many.resize(3 * p.size()), packed = many.data();
  for (std::size_t a = 0; a < p.size(); ++a) {
    for (int c = 0; c < 3; ++c) packed[3 * a + c] = x[3 * p[a] + c];
  }
  if (row.kind == RowKind::angle) return bond_angle(std::span<const double, 9>(packed, 9), gradient) - row.value;
  if (row.kind == RowKind::dihedral)
    return wrap(torsion_angle(std::span<const double, 12>(packed, 12), gradient) - row.value);
  return row.function({packed, 3 * p.size()}, gradient);
}

void ConstraintSet::add_impulses(std::span<const double> x, std::span<const double> multiplier, double factor,
                                 std::span<const double> inverse_mass, std::span<double> v) const {
  std::vector<double> gradient;
  for (int turn = 0; turn < nrow(); ++turn) {
    const int k = impulse_row(turn);
    if (ends_[k][0] >= 0) {
      add_distance_impulse(k, x, multiplier, factor, inverse_mass, v);
      continue;
    }
    const double impulse = factor * multiplier[k];
    const int from = pattern_.start[k], to = pattern_.start[k + 1];
    gradient.resize(to - from);
    evaluate_row(k, x, gradient);
    for (int p = from; p < to; ++p)
      v[pattern_.column[p]] += impulse * inverse_mass[pattern_.column[p] / 3] * gradient[p - from];
  }
}

void ConstraintSet::add_distance_impulse(int k, std::span<const double> x, std::span<const double> multiplier,
                                         double factor, std::span<const double> inverse_mass,
                                         std::span<double> v) const {
  const auto [i, j] = ends_[k];
  const Vec3d kick = (point(x, i) - point(x, j)) * (factor * multiplier[k]);
  const double wi = inverse_mass[i], wj = inverse_mass[j];
  for (int c = 0; c < 3; ++c) v[3 * i + c] += wi * kick[c], v[3 * j + c] -= wj * kick[c];
}

double ConstraintSet::rounding_floor(int k, std::span<const double> x) const {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const Row& row = rows_[k];
  double size = 0;
  for (const int i : row.particles) size = std::max(size, norm(point(x, i)));
  if (row.kind == RowKind::distance || row.kind == RowKind::sphere) return 4 * kEpsilon * (1 + size / row.value);
  std::vector<double> gradient(3 * row.particles.size());
  evaluate_row(k, x, gradient);
  double slope = 0;
  for (const double g : gradient) slope += std::abs(g);
  return 8 * kEpsilon * (1 + slope * size / row.scale);
}

std::string ConstraintSet::describe(int k) const {
  const Row& row = rows_[k];
  std::string text = fmt::format("{} {}", row.name.empty() ? row_kind_name(row.kind) : row.name.c_str(), k);
  if (row.particles.size() <= 4) {
    text += fmt::format(" (particle{} {}", row.particles.size() > 1 ? "s" : "", fmt::join(row.particles, ", "));
  } else {
    text += fmt::format(" ({} particles", row.particles.size());
  }
  if (row.line > 0) text += fmt::format(", line {}", row.line);
  return text + ")";
}

double ConstraintSet::curvature(int k) const {
  return kind(k) == RowKind::distance || kind(k) == RowKind::sphere ? 1.0 : 0.0;
}

}  // namespace tarsus
