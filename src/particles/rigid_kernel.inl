// Constraint stages of single bonds and triangles, kLanes molecules at a time.
//
// One bond: |e' + W g λ|² = d² is a quadratic in λ; the root nearest to 0 is taken.
// Triangle: Newton with the 3 x 3 matrix A_kl = e_k·g_l (inverse masses), solved by cofactors. g are the bonds at x0, e
// the present bonds.
#pragma once

#include "particles/kernels.hpp"
#include "particles/lanes.inl"
#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

using LaneVec = Vec3<Lanes>;

TARSUS_INLINE LaneVec gather3(const double* x, const int* particle) {
  LaneVec r = zero3<Lanes>();
  for (int i = 0; i < kLanes; ++i) {
    const double* p = x + 3 * static_cast<std::int64_t>(particle[i]);
    r.x.set(i, p[0]), r.y.set(i, p[1]), r.z.set(i, p[2]);
  }
  return r;
}
TARSUS_INLINE void scatter3(double* x, const int* particle, const LaneVec& r) {
  for (int i = 0; i < kLanes; ++i) {
    double* p = x + 3 * static_cast<std::int64_t>(particle[i]);
    p[0] = r.x[i], p[1] = r.y[i], p[2] = r.z[i];
  }
}

/// Merges the worst lane into the report; a NaN is kept.
TARSUS_INLINE void report_residual(LaneReport& report, Lanes residual, const int* row) {
  for (int i = 0; i < kLanes; ++i) {
    const bool known = report.residual == report.residual;
    if (known && !(residual[i] <= report.residual)) report.residual = residual[i], report.worst_row = row[i];
  }
}

/// The residual due to rounding of the coordinates: some ulps of the largest coordinate, relative to the smallest
/// length.
TARSUS_INLINE Lanes rounding_floor(const LaneVec* x, int count, Lanes largest_inverse_length2) {
  Lanes size2(0.0);
  for (int a = 0; a < count; ++a) size2 = maximum(size2, dot(x[a], x[a]));
  return Lanes(8.9e-16) * (Lanes(1.0) + square_root(size2 * largest_inverse_length2));
}

struct Triangle {
  LaneVec g01, g02, g12;
  Lanes w0, w1, w2;
};

/// Rows e_k against columns g_l; returns |det| / |product of the diagonal|.
TARSUS_INLINE Lanes triangle_solve(const Triangle& t, const LaneVec& e01, const LaneVec& e02, const LaneVec& e12,
                                   const Lanes s[3], Lanes delta[3]) {
  const Lanes a00 = (t.w0 + t.w1) * dot(e01, t.g01), a01 = t.w0 * dot(e01, t.g02), a02 = -t.w1 * dot(e01, t.g12);
  const Lanes a10 = t.w0 * dot(e02, t.g01), a11 = (t.w0 + t.w2) * dot(e02, t.g02), a12 = t.w2 * dot(e02, t.g12);
  const Lanes a20 = -t.w1 * dot(e12, t.g01), a21 = t.w2 * dot(e12, t.g02), a22 = (t.w1 + t.w2) * dot(e12, t.g12);
  const Lanes c00 = a11 * a22 - a12 * a21, c01 = a12 * a20 - a10 * a22, c02 = a10 * a21 - a11 * a20;
  const Lanes det = a00 * c00 + a01 * c01 + a02 * c02;
  const Lanes c10 = a02 * a21 - a01 * a22, c11 = a00 * a22 - a02 * a20, c12 = a01 * a20 - a00 * a21;
  const Lanes c20 = a01 * a12 - a02 * a11, c21 = a02 * a10 - a00 * a12, c22 = a00 * a11 - a01 * a10;
  const Lanes inverse = Lanes(1.0) / det;
  delta[0] = (c00 * s[0] + c10 * s[1] + c20 * s[2]) * inverse;
  delta[1] = (c01 * s[0] + c11 * s[1] + c21 * s[2]) * inverse;
  delta[2] = (c02 * s[0] + c12 * s[1] + c22 * s[2]) * inverse;
  return absolute(det) / absolute(a00 * a11 * a22);
}

/// p -= M^-1 Gᵀ delta.
TARSUS_INLINE void triangle_move(const Triangle& t, const Lanes delta[3], LaneVec p[3]) {
  const LaneVec f01 = t.g01 * delta[0], f02 = t.g02 * delta[1], f12 = t.g12 * delta[2];
  p[0] -= (f01 + f02) * t.w0;
  p[1] -= (f12 - f01) * t.w1;
  p[2] += (f02 + f12) * t.w2;
}

TARSUS_INLINE Triangle triangle_at(const double* x, const TriangleBatch& batch, int lane) {
  const LaneVec p0 = gather3(x, &batch.particle[0][lane]), p1 = gather3(x, &batch.particle[1][lane]);
  const LaneVec p2 = gather3(x, &batch.particle[2][lane]);
  return {p0 - p1,
          p0 - p2,
          p1 - p2,
          load(&batch.inverse_mass[0][lane]),
          load(&batch.inverse_mass[1][lane]),
          load(&batch.inverse_mass[2][lane])};
}

TARSUS_INLINE void triangle_position(const TriangleBatch& batch, int lane, const StageArgs& args, LaneReport& report) {
  const Triangle t = triangle_at(args.x0, batch, lane);
  LaneVec p[3];
  for (int a = 0; a < 3; ++a) p[a] = gather3(args.x, &batch.particle[a][lane]);
  Lanes length2[3], inverse_length2[3], total[3], s[3], delta[3];
  for (int k = 0; k < 3; ++k) {
    length2[k] = load(&batch.length2[k][lane]), inverse_length2[k] = load(&batch.inverse_length2[k][lane]);
    total[k] = Lanes(0.0);
  }
  const Lanes half(0.5), zero(0.0), tolerance(args.tolerance);
  const Lanes floor =
      rounding_floor(p, 3, maximum(maximum(inverse_length2[0], inverse_length2[1]), inverse_length2[2]));
  Lanes previous(1e300), residual, pivots(1.0);
  LaneVec e01, e02, e12;
  unsigned running = (1u << kLanes) - 1;
  int round = 0;
  for (;; ++round) {
    e01 = p[0] - p[1], e02 = p[0] - p[2], e12 = p[1] - p[2];
    s[0] = half * (dot(e01, e01) - length2[0]), s[1] = half * (dot(e02, e02) - length2[1]);
    s[2] = half * (dot(e12, e12) - length2[2]);
    residual = maximum(maximum(absolute(s[0]) * inverse_length2[0], absolute(s[1]) * inverse_length2[1]),
                       absolute(s[2]) * inverse_length2[2]);
    if (round == 0 && largest_of(residual) > report.start_residual) report.start_residual = largest_of(residual);
    // A lane is done at the tolerance, or at the rounding floor when the last iteration gained nothing. NaN keeps
    // running.
    const unsigned stalled = bits(residual <= floor) & ~bits(residual < previous * half);
    running &= ~(bits(residual <= tolerance) | stalled);
    if (!running || round >= args.max_iterations) break;
    previous = residual;
    pivots = minimum(pivots, triangle_solve(t, e01, e02, e12, s, delta));
    Lanes::Mask mask;
    for (int i = 0; i < kLanes; ++i) mask[i] = (running >> i & 1u) ? -1 : 0;
    for (int k = 0; k < 3; ++k) delta[k] = select(mask, delta[k], zero), total[k] += delta[k];
    triangle_move(t, delta, p);
  }
  if (round > report.iterations) report.iterations = round;
  if (running) report.failed = true;
  const Lanes turned = minimum(minimum(dot(e01, t.g01), dot(e02, t.g02)), dot(e12, t.g12));
  if (bits(turned <= zero)) report.wrong_root = true;
  for (int i = 0; i < kLanes; ++i) report.pivot_ratio = pivots[i] < report.pivot_ratio ? pivots[i] : report.pivot_ratio;
  for (int k = 0; k < 3; ++k) report_residual(report, absolute(s[k]) * inverse_length2[k], &batch.row[k][lane]);
  for (int a = 0; a < 3; ++a) scatter3(args.x, &batch.particle[a][lane], p[a]);
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < kLanes; ++i) args.multiplier[batch.row[k][lane + i]] = -total[k][i];
  }
}

TARSUS_INLINE void triangle_velocity(const TriangleBatch& batch, int lane, const StageArgs& args, LaneReport& report) {
  const Triangle t = triangle_at(args.x0, batch, lane);
  LaneVec v[3];
  for (int a = 0; a < 3; ++a) v[a] = gather3(args.x, &batch.particle[a][lane]);
  Lanes total[3] = {Lanes(0.0), Lanes(0.0), Lanes(0.0)}, s[3], delta[3];
  const Lanes dt(args.timestep < 0 ? -args.timestep : args.timestep);
  // The solve is direct; a second one removes the rounding error of the cofactors.
  for (int round = 0; round < 2; ++round) {
    s[0] = dot(t.g01, v[0] - v[1]), s[1] = dot(t.g02, v[0] - v[2]), s[2] = dot(t.g12, v[1] - v[2]);
    const Lanes left = maximum(maximum(absolute(s[0]) * load(&batch.inverse_length2[0][lane]),
                                       absolute(s[1]) * load(&batch.inverse_length2[1][lane])),
                               absolute(s[2]) * load(&batch.inverse_length2[2][lane])) *
                       dt;
    if (round == 0 && largest_of(left) > report.start_residual) report.start_residual = largest_of(left);
    if (round == 1 && largest_of(left) < args.tolerance * 1e-3) break;
    const Lanes ratio = triangle_solve(t, t.g01, t.g02, t.g12, s, delta);
    for (int i = 0; i < kLanes; ++i) report.pivot_ratio = ratio[i] < report.pivot_ratio ? ratio[i] : report.pivot_ratio;
    for (int k = 0; k < 3; ++k) total[k] += delta[k];
    triangle_move(t, delta, v);
  }
  s[0] = dot(t.g01, v[0] - v[1]), s[1] = dot(t.g02, v[0] - v[2]), s[2] = dot(t.g12, v[1] - v[2]);
  for (int k = 0; k < 3; ++k) {
    report_residual(report, absolute(s[k]) * load(&batch.inverse_length2[k][lane]) * dt, &batch.row[k][lane]);
    for (int i = 0; i < kLanes; ++i) args.multiplier[batch.row[k][lane + i]] = -total[k][i];
  }
  for (int a = 0; a < 3; ++a) scatter3(args.x, &batch.particle[a][lane], v[a]);
}

TARSUS_INLINE void bond_position(const BondBatch& batch, int lane, const StageArgs& args, LaneReport& report) {
  const LaneVec g = gather3(args.x0, &batch.particle[0][lane]) - gather3(args.x0, &batch.particle[1][lane]);
  LaneVec p[2] = {gather3(args.x, &batch.particle[0][lane]), gather3(args.x, &batch.particle[1][lane])};
  const Lanes w0 = load(&batch.inverse_mass[0][lane]), w1 = load(&batch.inverse_mass[1][lane]), w = w0 + w1;
  const Lanes length2 = load(&batch.length2[lane]), inverse_length2 = load(&batch.inverse_length2[lane]);
  const Lanes floor = rounding_floor(p, 2, inverse_length2), tolerance(args.tolerance), half(0.5), zero(0.0);
  Lanes total = zero, residual = zero;
  LaneVec e = p[0] - p[1];
  // One iteration is exact but for rounding; a second removes the rounding error of the subtraction of large
  // coordinates.
  for (int round = 0; round < 3; ++round) {
    const Lanes c = dot(e, e) - length2;
    residual = absolute(c) * half * inverse_length2;
    if (round == 0 && largest_of(residual) > report.start_residual) report.start_residual = largest_of(residual);
    if (largest_of(residual) <= args.tolerance && round > 0) break;
    if (round > report.iterations) report.iterations = round;
    const Lanes b = w * dot(e, g), a = w * w * dot(g, g);
    // Without a real root the bond cannot be satisfied along g. The nearest point is taken and its residual is
    // reported.
    const Lanes square = b * b - a * c, root = square_root(select(square < zero, zero, square));
    const Lanes step = select(residual <= tolerance, zero, -c / (b + select(b < zero, -root, root)));
    total += step;
    p[0] += g * (w0 * step);
    p[1] -= g * (w1 * step);
    e = p[0] - p[1];
  }
  residual = absolute(dot(e, e) - length2) * half * inverse_length2;
  if (bits(residual <= maximum(tolerance, floor)) != (1u << kLanes) - 1) report.failed = true;
  if (bits(dot(e, g) <= zero)) report.wrong_root = true;
  report_residual(report, residual, &batch.row[lane]);
  scatter3(args.x, &batch.particle[0][lane], p[0]);
  scatter3(args.x, &batch.particle[1][lane], p[1]);
  for (int i = 0; i < kLanes; ++i) args.multiplier[batch.row[lane + i]] = total[i];
}

TARSUS_INLINE void bond_velocity(const BondBatch& batch, int lane, const StageArgs& args, LaneReport& report) {
  const LaneVec g = gather3(args.x0, &batch.particle[0][lane]) - gather3(args.x0, &batch.particle[1][lane]);
  LaneVec v0 = gather3(args.x, &batch.particle[0][lane]), v1 = gather3(args.x, &batch.particle[1][lane]);
  const Lanes w0 = load(&batch.inverse_mass[0][lane]), w1 = load(&batch.inverse_mass[1][lane]);
  const Lanes dt(args.timestep < 0 ? -args.timestep : args.timestep);
  const Lanes start = absolute(dot(g, v0 - v1)) * load(&batch.inverse_length2[lane]) * dt;
  if (largest_of(start) > report.start_residual) report.start_residual = largest_of(start);
  const Lanes step = -dot(g, v0 - v1) / ((w0 + w1) * dot(g, g));
  v0 += g * (w0 * step);
  v1 -= g * (w1 * step);
  report_residual(report, absolute(dot(g, v0 - v1)) * load(&batch.inverse_length2[lane]) * dt, &batch.row[lane]);
  scatter3(args.x, &batch.particle[0][lane], v0);
  scatter3(args.x, &batch.particle[1][lane], v1);
  for (int i = 0; i < kLanes; ++i) args.multiplier[batch.row[lane + i]] = step[i];
}

inline LaneReport triangle_positions_kernel(const TriangleBatch* batches, int count, const StageArgs& args) {
  LaneReport report;
  for (int b = 0; b < count; ++b) {
    for (int lane = 0; lane < batches[b].used; lane += kLanes) triangle_position(batches[b], lane, args, report);
  }
  return report;
}
inline LaneReport triangle_velocities_kernel(const TriangleBatch* batches, int count, const StageArgs& args) {
  LaneReport report;
  for (int b = 0; b < count; ++b) {
    for (int lane = 0; lane < batches[b].used; lane += kLanes) triangle_velocity(batches[b], lane, args, report);
  }
  return report;
}
inline LaneReport bond_positions_kernel(const BondBatch* batches, int count, const StageArgs& args) {
  LaneReport report;
  for (int b = 0; b < count; ++b) {
    for (int lane = 0; lane < batches[b].used; lane += kLanes) bond_position(batches[b], lane, args, report);
  }
  return report;
}
inline LaneReport bond_velocities_kernel(const BondBatch* batches, int count, const StageArgs& args) {
  LaneReport report;
  for (int b = 0; b < count; ++b) {
    for (int lane = 0; lane < batches[b].used; lane += kLanes) bond_velocity(batches[b], lane, args, report);
  }
  return report;
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
