// Interpolation of a bound clip: position and its exact derivative.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/clip_numbers.hpp"
#include "tarsus/control/clip.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

/// Cubic Hermite segment, u in [0, 1] over h seconds, from x0 with rate m0 to x1 with rate m1.
struct Hermite {
  double a0, a1, b0, b1;  ///< value = x0 a0 + x1 a1 + h (m0 b0 + m1 b1)
  double da, d0, d1;      ///< rate = (x1 - x0) da / h + m0 d0 + m1 d1

  explicit Hermite(double u)
      : a0((1 + 2 * u) * (1 - u) * (1 - u)),
        a1(u * u * (3 - 2 * u)),
        b0(u * (1 - u) * (1 - u)),
        b1(u * u * (u - 1)),
        da(6 * u * (1 - u)),
        d0((1 - u) * (1 - 3 * u)),
        d1(u * (3 * u - 2)) {}
};

/// q(u) = q0 Exp(B1 w1) Exp(B2 w2) Exp(B3 w3) with the cumulative Bernstein basis, w1 = h m0/3, w3 = h m1/3 and w2 what
/// reaches q1, which is found when the clip is bound. Each factor turns about a fixed vector, so the body rate is the
/// sum of B' w, each carried through the factors to its right.
void rotation_segment(const Quatd& q0, const Vec3d& w2, const Vec3d& m0, const Vec3d& m1, double h, double u, Quatd& q,
                      Vec3d& rate) {
  const Vec3d w1 = m0 * (h / 3), w3 = m1 * (h / 3);
  const double v = 1 - u;
  const double b1 = 1 - v * v * v, b2 = u * u * (3 - 2 * u), b3 = u * u * u;
  const double db1 = 3 * v * v / h, db2 = 6 * u * v / h, db3 = 3 * u * u / h;
  const Quatd e1 = exp_map(w1 * b1), e2 = exp_map(w2 * b2), e3 = exp_map(w3 * b3);
  q = normalized(q0 * e1 * e2 * e3);
  rate = rotate(conjugate(e3), rotate(conjugate(e2), w1 * db1) + w2 * db2) + w3 * db3;
}

/// sum of Rz(j heading) shift over j = 0 … count-1, and Rz(count heading): a geometric series, so that a clip may run
/// for any number of cycles.
struct Repeated {
  double c, s;  ///< cos, sin of the whole turn
  Vec3d shift;

  Repeated(double heading, const Vec3d& shift_of_one, double count) {
    c = elementary::cos(count * heading), s = elementary::sin(count * heading);
    const double half = elementary::sin(0.5 * heading);
    // sum of exp(i j heading) = exp(i (count-1) heading/2) sin(count heading/2) / sin(heading/2)
    const double gain = std::abs(half) < 1e-12 ? count : elementary::sin(0.5 * count * heading) / half;
    const double middle = 0.5 * (count - 1) * heading;
    const double re = gain * elementary::cos(middle), im = gain * elementary::sin(middle);
    shift = {re * shift_of_one.x - im * shift_of_one.y, im * shift_of_one.x + re * shift_of_one.y, 0};
  }
  Vec3d turn(const Vec3d& v) const { return {c * v.x - s * v.y, s * v.x + c * v.y, v.z}; }
};

}  // namespace

void ClipBinding::sample(double t, std::span<double> qpos, std::span<double> qvel) const {
  check_size("qpos", qpos.size(), rest_.size());
  if (!qvel.empty()) check_size("qvel", qvel.size(), std::size_t(nv_));
  if (!std::isfinite(t)) throw ValueError("t", fmt::format("{}", t), "a finite time in seconds");
  std::copy(rest_.begin(), rest_.end(), qpos.begin());
  std::fill(qvel.begin(), qvel.end(), 0.0);

  const double total = duration();
  double cycles = 0, local = t;
  if (loop_ && total > 0) {
    cycles = std::floor(t / total);
    local = t - cycles * total;
  }
  const bool moving = total > 0 && (loop_ || (local >= 0 && local <= total));
  local = std::clamp(local, 0.0, total);
  const int last = std::max(0, frame_count() - 2);
  const int i = std::clamp(int(std::upper_bound(times_.begin(), times_.end(), local) - times_.begin()) - 1, 0, last);
  const int j = std::min(i + 1, frame_count() - 1);
  const double h = total > 0 ? times_[j] - times_[i] : 1;
  const double u = (local - times_[i]) / h;
  const Hermite hermite(u);
  const double *k0 = &knots_[std::size_t(i) * knot_width_], *k1 = &knots_[std::size_t(j) * knot_width_];
  const double *r0 = &rates_[std::size_t(i) * rate_width_], *r1 = &rates_[std::size_t(j) * rate_width_];

  for (const Piece& piece : pieces_) {
    const double *x0 = k0 + piece.knot, *x1 = k1 + piece.knot, *m0 = r0 + piece.rate, *m1 = r1 + piece.rate;
    double rate[3] = {0, 0, 0};
    int rates = 1;
    if (piece.kind == PieceKind::rotation) {
      Quatd q;
      Vec3d w;
      rotation_segment(load4(x0), load3(x0 + kBend), load3(m0), load3(m1), h, u, q, w);
      if (piece.cycle >= 0 && cycles != 0) {
        q = normalized(axis_angle({0, 0, 1}, cycles * cycles_[piece.cycle].heading) * q);
      }
      qpos[piece.qpos] = q.w, qpos[piece.qpos + 1] = q.x, qpos[piece.qpos + 2] = q.y, qpos[piece.qpos + 3] = q.z;
      rate[0] = w.x, rate[1] = w.y, rate[2] = w.z, rates = 3;
    } else {
      const int count = piece.kind == PieceKind::vector ? 3 : 1;
      double value[3] = {0, 0, 0};
      for (int c = 0; c < count; ++c) {
        value[c] = x0[c] * hermite.a0 + x1[c] * hermite.a1 + h * (m0[c] * hermite.b0 + m1[c] * hermite.b1);
        rate[c] = (x1[c] - x0[c]) * hermite.da / h + m0[c] * hermite.d0 + m1[c] * hermite.d1;
      }
      if (piece.kind == PieceKind::vector && piece.cycle >= 0 && cycles != 0) {
        const Repeated moved(cycles_[piece.cycle].heading, cycles_[piece.cycle].shift, cycles);
        const Vec3d p = moved.turn(load3(value)) + moved.shift, v = moved.turn(load3(rate));
        value[0] = p.x, value[1] = p.y, value[2] = p.z, rate[0] = v.x, rate[1] = v.y, rate[2] = v.z;
      }
      value[0] += cycles * piece.turn;
      std::copy(value, value + count, &qpos[piece.qpos]);
      rates = count;
    }
    if (!qvel.empty() && moving) std::copy(rate, rate + rates, &qvel[piece.qvel]);
  }
}

}  // namespace tarsus
