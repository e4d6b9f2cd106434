// Fluid forces on moving bodies: quadratic and linear drag, lift and added mass.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "dynamics/spatial_matrix.hpp"
#include "tarsus/dynamics/passive.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

namespace {

double squared(double x) { return x * x; }
double fourth(double x) { return squared(squared(x)); }
Vec3d times(const Vec3d& a, const Vec3d& b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

/// Carlson's symmetric integral R_D(x, y, z) = 3/2 ∫₀^∞ ds / ((s + z) √((s + x) (s + y) (s + z))) by duplication.
/// [Carlson 1995]
double carlson_rd(double x, double y, double z) {
  double sum = 0, factor = 1;
  for (int round = 0; round < 60; ++round) {
    const double mean = (x + y + 3 * z) / 5;
    const double X = (mean - x) / mean, Y = (mean - y) / mean, Z = (mean - z) / mean;
    if (std::max({std::abs(X), std::abs(Y), std::abs(Z)}) < 1e-3) {
      const double xy = X * Y, zz = Z * Z, e2 = xy - 6 * zz, e3 = (3 * xy - 8 * zz) * Z, e4 = 3 * (xy - zz) * zz,
                   e5 = xy * zz * Z;
      const double series = 1 - 3 * e2 / 14 + e3 / 6 + 9 * e2 * e2 / 88 - 3 * e4 / 22 - 9 * e2 * e3 / 52 + 3 * e5 / 26;
      return 3 * sum + factor * series / (mean * std::sqrt(mean));
    }
    const double root_x = std::sqrt(x), root_y = std::sqrt(y), root_z = std::sqrt(z);
    const double lambda = root_x * root_y + root_y * root_z + root_z * root_x;
    sum += factor / (root_z * (z + lambda));
    factor /= 4, x = (x + lambda) / 4, y = (y + lambda) / 4, z = (z + lambda) / 4;
  }
  return 3 * sum;
}

/// κ = a b c ∫₀^∞ ds / √((a² + s)³ (b² + s) (c² + s)), along a.
double kappa(double a, double b, double c) { return a * b * c * 2 / 3 * carlson_rd(b * b, c * c, a * a); }

}  // namespace

void added_mass(const Vec3d& a, Vec3d& mass, Vec3d& inertia) {
  const double volume = 4.0 / 3 * kPi * a.x * a.y * a.z;
  const Vec3d k{kappa(a.x, a.y, a.z), kappa(a.y, a.z, a.x), kappa(a.z, a.x, a.y)};
  for (int i = 0; i < 3; ++i) {
    mass[i] = volume * k[i] / std::max(kMujocoMinval, 2 - k[i]);
    const int j = (i + 1) % 3, l = (i + 2) % 3;
    const double sum = squared(a[j]) + squared(a[l]), difference = squared(a[j]) - squared(a[l]);
    inertia[i] = volume * squared(difference) * std::abs(k[l] - k[j]) / 5 /
                 std::max(kMujocoMinval, std::abs(2 * difference + sum * (k[j] - k[l])));
  }
}

Force<double> turning_over(std::span<const Immersion> shapes, const Vec3d& origin, const RigidInertia<double>& inertia,
                           const Motion<double>& velocity, double h) {
  using Matrix = Eigen::Matrix<double, 6, 6>;
  const auto crossed = [](const Vec3d& a) {
    return (Eigen::Matrix3d() << 0, -a.z, a.y, a.z, 0, -a.x, -a.y, a.x, 0).finished();
  };
  const Matrix body = spatial_matrix(inertia);
  Matrix turn = Matrix::Zero();
  for (const Immersion& shape : shapes) {
    const Mat3d& R = shape.pose.R;
    const Eigen::Matrix3d axes =
        (Eigen::Matrix3d() << R.xx, R.xy, R.xz, R.yx, R.yy, R.yz, R.zx, R.zy, R.zz).finished().transpose();
    Matrix to_shape = Matrix::Zero(), at_shape;  // of motions
    to_shape.topLeftCorner<3, 3>() = to_shape.bottomRightCorner<3, 3>() = axes;
    to_shape.bottomLeftCorner<3, 3>() = -axes * crossed(shape.pose.p - origin);
    at_shape << crossed(shape.fluid.spin), crossed(shape.fluid.momentum), crossed(shape.fluid.momentum),
        crossed(shape.fluid.lift);
    turn += to_shape.transpose() * at_shape * to_shape;
  }
  const Vec3d &w = velocity.w, &v = velocity.v;
  const Eigen::Matrix<double, 6, 1> start{w.x, w.y, w.z, v.x, v.y, v.z};
  Eigen::Matrix<double, 6, 1> mean = (body - 0.5 * h * turn).partialPivLu().solve(body * start);
  if (!mean.allFinite()) mean = start;  // no inertia about an axis
  const Eigen::Matrix<double, 6, 1> force = turn * mean;
  return {{force[0], force[1], force[2]}, {force[3], force[4], force[5]}};
}

FluidForce box_fluid_force(const Vec3d& size, const Motion<double>& v, double density, double viscosity) {
  FluidForce out;
  const double diameter = (size.x + size.y + size.z) / 3;
  for (int i = 0; i < 3; ++i) {
    const double b = size[(i + 1) % 3], c = size[(i + 2) % 3];
    out.growing.f[i] = 0.5 * density * b * c * std::abs(v.v[i]);
    out.growing.n[i] = density * size[i] * (fourth(b) + fourth(c)) * std::abs(v.w[i]) / 64;
    out.resistance.f[i] = 3 * kPi * diameter * viscosity + out.growing.f[i];  // Stokes' sphere
    out.resistance.n[i] = kPi * diameter * diameter * diameter * viscosity + out.growing.n[i];
  }
  return out;
}

FluidForce ellipsoid_fluid_force(const Vec3d& a, const std::array<double, 5>& coefficients, const Vec3d& virtual_mass,
                                 const Vec3d& virtual_inertia, const Motion<double>& v, double density,
                                 double viscosity) {
  const auto [blunt, slender, angular, kutta, magnus] = coefficients;
  const Vec3d &u = v.v, &w = v.w;
  // Added mass.
  const Vec3d momentum = times(virtual_mass, u) * density, spin = times(virtual_inertia, w) * density;
  FluidForce out;
  out.spin = spin, out.momentum = momentum;
  // Lift: Magnus' and Kutta's.
  const double volume = 4.0 / 3 * kPi * a.x * a.y * a.z, speed = norm(u);
  const Vec3d areas{squared(a.y * a.z), squared(a.z * a.x), squared(a.x * a.y)};
  const Vec3d along = speed > 0 ? u * (1 / speed) : Vec3d{1, 0, 0}, normal = times(areas, along);
  const double projected = dot(normal, along), denominator = dot(normal, normal);
  const double area = kPi * std::sqrt(denominator / projected);
  const Vec3d circulation = cross(normal, along) * (kutta * density * speed * projected / denominator * area);
  out.lift = w * (magnus * density * volume) + circulation;
  // Drag.
  const double largest = std::max({a.x, a.y, a.z}), least = std::min({a.x, a.y, a.z}),
               middle = a.x + a.y + a.z - largest - least;
  const double diameter = 2.0 / 3 * (a.x + a.y + a.z);
  const double pushed = density * speed * (area * blunt + slender * (kPi * largest * middle - area));
  const auto moment = [&](int i) { return 8.0 / 15 * kPi * a[i] * fourth(std::max(a[(i + 1) % 3], a[(i + 2) % 3])); };
  const double largest_moment = 8.0 / 15 * kPi * middle * fourth(largest);
  Vec3d resisted;
  for (int i = 0; i < 3; ++i) resisted[i] = w[i] * (angular * moment(i) + slender * (largest_moment - moment(i)));
  const double turned = density * norm(resisted), stokes = viscosity * kPi * diameter;
  out.growing = {{turned, turned, turned}, {pushed, pushed, pushed}};
  out.resistance = out.growing;
  for (int i = 0; i < 3; ++i) out.resistance.n[i] += stokes * squared(diameter), out.resistance.f[i] += 3 * stokes;
  return out;
}

}  // namespace tarsus
