// Sampling of a bound clip: finds the segment of a time. The interpolation itself is a kernel (clip.inl).

#include <algorithm>
#include <cmath>

#include "control/kernel_table.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/control/clip.hpp"

namespace tarsus {

ClipBinding::Place ClipBinding::place(double t) const {
  if (!std::isfinite(t)) throw ValueError("t", number_text(t), "a finite time in seconds");
  const double total = duration();
  Place out;
  if (!(total > 0)) return out;
  double local = t;
  if (loop_) {
    out.cycles = std::floor(t / total);
    if (std::abs(out.cycles) > kMostCycles)
      throw ValueError("t", number_text(t),
                       "at most 2^53 cycles of the clip, " + number_text(kMostCycles * total) + " s");
    local = t - out.cycles * total;
  }
  const bool moving = loop_ || (local >= 0 && local <= total);
  local = std::clamp(local, 0.0, total);
  const auto after = std::upper_bound(times_.begin(), times_.end(), local);
  out.segment = std::clamp(int(after - times_.begin()) - 1, 0, frame_count() - 2);
  const double h = times_[out.segment + 1] - times_[out.segment];
  out.u = (local - times_[out.segment]) / h;
  if (moving) out.rate = 1 / h;
  return out;
}

void ClipBinding::sample(double t, std::span<double> qpos, std::span<double> qvel) const {
  check_size("qpos", qpos.size(), rest_.size());
  if (!qvel.empty()) check_size("qvel", qvel.size(), std::size_t(nv_));
  const Place p = place(t);
  const double* row = &segments_[std::size_t(p.segment) * row_];
  const ClipView<double> view{nq(), nv_, int(pieces_.size()), row_, rest_.data(), pieces_.data(), cycles_.data()};
  control_table<double>(1).clip_pose(view, &row, &p.u, &p.rate, &p.cycles, nullptr, qpos.data(),
                                     qvel.empty() ? nullptr : qvel.data());
}

template <class R>
ClipLanes<R>::ClipLanes(const ClipBinding& clip, int width)
    : clip_(clip),
      rest_(clip.rest_.begin(), clip.rest_.end()),
      segments_(clip.segments_.begin(), clip.segments_.end()),
      rows_(width),
      u_(width),
      rate_(width),
      count_(width),
      space_(std::size_t(clip.row_) * width) {
  for (const auto& p : clip.pieces_) pieces_.push_back({p.kind, p.qpos, p.qvel, p.at, p.cycle, R(p.turn)});
  for (const auto& c : clip.cycles_) cycles_.push_back({R(c.heading), R(c.shift_x), R(c.shift_y)});
}

template <class R>
void ClipLanes<R>::sample(std::span<const double> t, std::span<R> qpos, std::span<R> qvel) {
  const std::size_t width = rows_.size();
  check_size("t", t.size(), width), check_size("qpos", qpos.size(), width * rest_.size());
  if (!qvel.empty()) check_size("qvel", qvel.size(), width * std::size_t(clip_.nv()));
  for (std::size_t lane = 0; lane < width; ++lane) {
    const ClipBinding::Place p = clip_.place(t[lane]);
    rows_[lane] = &segments_[std::size_t(p.segment) * clip_.row_];
    u_[lane] = R(p.u), rate_[lane] = R(p.rate), count_[lane] = R(p.cycles);
  }
  const ClipView<R> view{clip_.nq(),   clip_.nv(),     int(pieces_.size()), clip_.row_,
                         rest_.data(), pieces_.data(), cycles_.data()};
  control_table<R>(int(width))
      .clip_pose(view, rows_.data(), u_.data(), rate_.data(), count_.data(), space_.data(), qpos.data(),
                 qvel.empty() ? nullptr : qvel.data());
}

template class ClipLanes<double>;
template class ClipLanes<float>;

}  // namespace tarsus
