#include "geometry/ellipsoid.hpp"

namespace tarsus::narrow {

namespace {

constexpr int kSteps = 12;
constexpr double kRoot = 2e-15;  // tolerance of zᵀ Q z at convergence

Sym3d square(const Vec3d& a) { return {a.x * a.x, a.x * a.y, a.x * a.z, a.y * a.y, a.y * a.z, a.z * a.z}; }

/// Projects vectors onto the space perpendicular to the edges between the corners.
struct Across {
  Vec3d u{0, 0, 0}, v{0, 0, 0};

  Vec3d operator()(const Vec3d& p) const { return p - u * dot(p, u) - v * dot(p, v); }
  Sym3d operator()(const Sym3d& m) const {
    const Across& self = *this;
    const Mat3d half = transpose(from_columns(self(m.column_x()), self(m.column_y()), self(m.column_z())));
    const Vec3d x = self(half.column_x()), y = self(half.column_y()), z = self(half.column_z());
    return {x.x, x.y, x.z, y.y, y.z, z.z};
  }
};

bool within(std::span<const Vec3d> corners, const Vec3d& p) {
  if (corners.size() == 1) return true;
  const Vec3d d = p - corners[0], e = corners[1] - corners[0];
  const double ee = dot(e, e), de = dot(d, e);
  if (corners.size() == 2) return de >= 0 && de <= ee;
  const Vec3d f = corners[2] - corners[0];
  const double ef = dot(e, f), ff = dot(f, f), df = dot(d, f);
  const double area = ee * ff - ef * ef, one = de * ff - df * ef, two = df * ee - de * ef;
  return area > 0 && one >= 0 && two >= 0 && one + two <= area;
}

}  // namespace

Ellipsoid::Ellipsoid(const Core& core) : centre_(core.pose.position) {
  const Mat3d& R = core.pose.rotation;
  shape_ = square(R.column_x() * core.size.x) + square(R.column_y() * core.size.y) + square(R.column_z() * core.size.z);
}

/// Solves the problem perpendicular to the corners' edges. With c the ellipsoid's centre relative to the corners and Q
/// its shape, the nearest point is c - Q z where (Q + t) z = c and zᵀ Q z = 1; its distance vector is t z. Newton's
/// method is applied to 1/√(zᵀ Q z), which is nearly linear in t. Along the edges Q is zero and t may be tiny, so Q is
/// filled up there to keep the inverse accurate.
bool Ellipsoid::nearest(std::span<const Vec3d> corners, Vec3d& apart, Vec3d& theirs) const {
  double length = 0;
  Across across;
  if (corners.size() > 1) across.u = direction(corners[1] - corners[0], {0, 0, 0}, length);
  if (corners.size() > 2) across.v = direction(across(corners[2] - corners[0]), {0, 0, 0}, length);
  const Sym3d Q = across(shape_),
              filled = Q + (square(across.u) + square(across.v)) * (shape_.xx + shape_.yy + shape_.zz);
  const Vec3d c = across(centre_ - corners[0]), start = across(apart);
  double t = std::sqrt(dot(start, Q * start));
  Vec3d z{0, 0, 0};
  for (int step = 0; step < kSteps; ++step) {
    const Sym3d inverted = inverse(filled + diagonal3<double>(t, t, t));
    z = across(inverted * c);
    const Vec3d Qz = Q * z;
    const double square = dot(z, Qz), slope = -2 * dot(Qz, inverted * z);
    if (std::abs(square - 1) <= kRoot) break;
    if (!(square > 0 && slope < 0)) return false;
    t += 2 * square * (1 - std::sqrt(square)) / slope;
    if (!(t > 0)) return false;
  }
  const Vec3d Qz = shape_ * z;
  apart = z * t;
  theirs = centre_ - Qz * (1 / std::sqrt(dot(z, Qz))) - apart;
  return within(corners, theirs);
}

}  // namespace tarsus::narrow
