#include "tarsus/math/rotation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tarsus/math/elementary.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

namespace {

constexpr double kEigenRounding = 1e-14;  ///< relative: smaller off-diagonals or differences of moments are zero

}  // namespace

Quatd quaternion(const Mat3d& r) {
  const double t = r.xx + r.yy + r.zz;
  Quatd q;
  if (t >= r.xx && t >= r.yy && t >= r.zz) {
    q = {1 + t, r.zy - r.yz, r.xz - r.zx, r.yx - r.xy};
  } else if (r.xx >= r.yy && r.xx >= r.zz) {
    q = {r.zy - r.yz, 1 + r.xx - r.yy - r.zz, r.xy + r.yx, r.xz + r.zx};
  } else if (r.yy >= r.zz) {
    q = {r.xz - r.zx, r.xy + r.yx, 1 + r.yy - r.xx - r.zz, r.yz + r.zy};
  } else {
    q = {r.yx - r.xy, r.xz + r.zx, r.yz + r.zy, 1 + r.zz - r.xx - r.yy};
  }
  return normalized(q);
}

Quatd quaternion(const Mat3d& r, const Quatd& near) {
  const Quatd q = quaternion(r);
  return q.w * near.w + dot(q.vec(), near.vec()) < 0 ? Quatd{-q.w, -q.x, -q.y, -q.z} : q;
}

Quatd axis_angle(const Vec3d& axis, double angle) {
  const double s = elementary::sin(0.5 * angle) / norm(axis);
  return {elementary::cos(0.5 * angle), axis.x * s, axis.y * s, axis.z * s};
}

Quatd between(const Vec3d& from, const Vec3d& to) {
  const Vec3d a = from * (1 / norm(from)), b = to * (1 / norm(to));
  const double c = dot(a, b);
  if (!(c <= -0.999999)) {  // nan too
    const Vec3d v = cross(a, b);
    return normalized(Quatd{1 + c, v.x, v.y, v.z});
  }
  // Nearly opposite: half a turn about any axis perpendicular to `from`, then the small remainder.
  const Vec3d other = std::abs(a.x) < 0.5 ? Vec3d{1, 0, 0} : Vec3d{0, 1, 0};
  const Quatd half = axis_angle(cross(a, other), kPi);
  return normalized(between(rotate(half, a), b) * half);
}

Quatd exp_map(const Vec3d& v) {
  const double angle = norm(v);
  // sin(a/2)/a = 1/2 - a²/48 + … below the point where the next term is under rounding
  const double s = angle > 1e-4 ? elementary::sin(0.5 * angle) / angle : 0.5 - angle * angle / 48;
  return {elementary::cos(0.5 * angle), v.x * s, v.y * s, v.z * s};
}

Vec3d log_map(const Quatd& q) {
  const double sign = q.w < 0 ? -1 : 1;
  const Vec3d v = q.vec() * sign;
  const double s = norm(v), w = q.w * sign;
  const double factor = s > 1e-8 ? 2 * elementary::atan2(s, w) / s : 2 / w;
  return v * factor;
}

double rotation_error(const Mat3d& R) {
  const Mat3d square = transpose(R) * R;
  const double volume =
      R.xx * (R.yy * R.zz - R.yz * R.zy) + R.xy * (R.yz * R.zx - R.yx * R.zz) + R.xz * (R.yx * R.zy - R.yy * R.zx);
  double error = volume < 0 ? 2 : 0;
  for (int i = 0; i < 9; ++i) error += std::abs(square(i / 3, i % 3) - (i % 4 == 0));
  return error;
}

Eigen3 eigen(const Sym3d& s) {
  double a[3][3] = {{s.xx, s.xy, s.xz}, {s.xy, s.yy, s.yz}, {s.xz, s.yz, s.zz}};
  Mat3d v = identity3<double>();
  Quatd product{1, 0, 0, 0};
  const double scale = std::abs(s.xx) + std::abs(s.yy) + std::abs(s.zz);
  for (int rotations = 0; rotations < 200; ++rotations) {
    const double xy = std::abs(a[0][1]), xz = std::abs(a[0][2]), yz = std::abs(a[1][2]);
    const bool is_xy = xy > xz && xy > yz, is_yz = !is_xy && !(xz > yz);
    const int p = is_yz ? 1 : 0, q = is_xy ? 1 : 2;
    if (!(std::abs(a[p][q]) > kEigenRounding * scale)) break;
    const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + elementary::hypot(theta, 1.0));
    const double c = 1 / elementary::hypot(t, 1.0), sn = t * c;
    for (int k = 0; k < 3; ++k) {
      const double akp = a[k][p], akq = a[k][q];
      a[k][p] = c * akp - sn * akq, a[k][q] = sn * akp + c * akq;
    }
    for (int k = 0; k < 3; ++k) {
      const double apk = a[p][k], aqk = a[q][k];
      a[p][k] = c * apk - sn * aqk, a[q][k] = sn * apk + c * aqk;
      const double vkp = v(k, p), vkq = v(k, q);
      v(k, p) = c * vkp - sn * vkq, v(k, q) = sn * vkp + c * vkq;
    }
    a[p][q] = a[q][p] = 0;
    const double cos_half = std::sqrt((1 + c) / 2), sin_half = sn / (2 * cos_half);
    const Vec3d axis = is_yz ? Vec3d{-1, 0, 0} : is_xy ? Vec3d{0, 0, -1} : Vec3d{0, 1, 0};
    product = product * Quatd{cos_half, axis.x * sin_half, axis.y * sin_half, axis.z * sin_half};
  }
  Vec3d d{a[0][0], a[1][1], a[2][2]};
  for (const int j : {0, 1, 0}) {  // exchanged by a quarter turn about the third axis
    if (!(d[j + 1] - d[j] > kEigenRounding * scale)) continue;
    std::swap(d[j], d[j + 1]);
    for (int k = 0; k < 3; ++k) v(k, j) = std::exchange(v(k, j + 1), -v(k, j));
    product = product * Quatd{1, j == 1 ? 1.0 : 0.0, 0, j == 0 ? 1.0 : 0.0};
  }
  return {d, v, quaternion(v, product)};
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
