// Rotations for model set-up and for poses outside kernels (double only, branches allowed).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kPi = 3.14159265358979323846;

/// Unit quaternion of a rotation matrix (Shepperd's choice of the largest component).
Quatd quaternion(const Mat3d& r);
/// Of the two quaternions of that rotation, the one nearer to `near`.
Quatd quaternion(const Mat3d& r, const Quatd& near);
/// Rotation by `angle` radians about `axis` (any length but zero).
Quatd axis_angle(const Vec3d& axis, double angle);
/// Shortest rotation that turns the direction of `from` into that of `to`; both non-zero.
Quatd between(const Vec3d& from, const Vec3d& to);
/// Exponential map: the rotation by the vector v, radians.
Quatd exp_map(const Vec3d& v);
/// Logarithm along the shorter arc: |result| <= pi.
Vec3d log_map(const Quatd& q);
inline Vec3d rotate(const Quatd& q, const Vec3d& v) { return rotation(q) * v; }

/// Distance of a matrix from a rotation: the sum of |RᵀR - 1|, plus 2 for a reflection; nan if an element is nan.
double rotation_error(const Mat3d& R);
inline constexpr double kRotationError = 1e-6;  ///< admits matrices that are written with few digits

/// Eigenvalues (descending, to rounding) and right-handed eigenvectors, as columns, of a symmetric tensor: s = V
/// diag(d) Vᵀ. Jacobi rotations of the largest pair, starting from the axes, then quarter turns to order the
/// eigenvalues. Signs and order are MuJoCo's.
struct Eigen3 {
  Vec3d values;
  Mat3d vectors;
  Quatd orientation;  ///< of the vectors; its sign is that of the product of the rotations
};
Eigen3 eigen(const Sym3d& s);

}  // namespace TARSUS_ISA
}  // namespace tarsus
