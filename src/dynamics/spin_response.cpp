#include "tarsus/dynamics/spin_response.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dynamics/kernel_table.hpp"

namespace tarsus {

constexpr double kRoundness = 1e-2;  ///< deviation from a round inertia, as a share of that about the axis

bool is_round(const RigidInertia<double>& link) {
  const auto& [mass, h, I] = link;
  const double most = kRoundness * I.zz;
  return mass > 0 && std::abs(I.xx - I.yy) <= most && std::abs(I.xy) <= most && std::abs(I.xz) <= most &&
         std::abs(I.yz) <= most && (h.x * h.x + h.y * h.y) / mass <= most * kRoundness;
}

/// Whether a free link's inertia about its centre of mass is that of a ball, so that it has no velocity products.
static bool is_ball(const LinkConstants<double>& link) {
  const double *const I = link.I, *const h = link.h, m = link.mass;
  const double xx = I[0] - (h[1] * h[1] + h[2] * h[2]) / m, yy = I[3] - (h[0] * h[0] + h[2] * h[2]) / m,
               zz = I[5] - (h[0] * h[0] + h[1] * h[1]) / m, most = 1e-9 * (xx + yy + zz);
  const double off[] = {xx - yy, xx - zz, I[1] + h[0] * h[1] / m, I[2] + h[0] * h[2] / m, I[4] + h[1] * h[2] / m};
  return std::all_of(std::begin(off), std::end(off), [&](double x) { return std::abs(x) <= most; });
}

std::vector<std::uint8_t> spinning_links(const Model& model) {
  std::vector<std::uint8_t> spins(std::size_t(model.njoint()));
  std::vector<char> carries(spins.size());
  for (const Joint& joint : model.joints) {
    if (joint.parent >= 0) carries[std::size_t(joint.parent)] = 1;
  }
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  for (std::size_t j = 0; j < spins.size(); ++j) {
    const LinkConstants<double>& link = model.view<double>().link[j];
    if (carries[j]) continue;
    if (link.parent < 0 && (turns_freely(link.joint) || (moves_freely(link.joint) && !is_ball(link))))
      spins[j] = kLoneLink;
    if (link.parent >= 0 && turns_on_axis(link.joint) && is_round(inertia[j])) spins[j] = kRoundLink;
  }
  return spins;
}

template <class R>
SpinResponse<R>::SpinResponse(const Model& model, const BasicData<R>& data, std::vector<std::uint8_t> spins)
    : spins_(std::move(spins)), elsewhere_(model, data.width()) {
  check_size("spins", spins_.size(), std::size_t(model.njoint()));
  const std::size_t w = std::size_t(data.width()), nlink = spins_.size();
  links_.resize(kernel_table<R>(data.width()).velocity_product_link_size() * nlink);
  scratch_.resize((3 * std::size_t(model.nv) + 36 * nlink + 1) * w), change_.resize(data.size(model.nv));
}

template <class R>
void SpinResponse<R>::begin() {
  if (some_) std::fill(change_.begin(), change_.end(), R(0));
  some_ = false;
}

template <class R>
bool SpinResponse<R>::correct(const Model& model, const BasicData<R>& data, double h, In<R> known, Out<R> free,
                              In<R> next, In<R> inertia) {
  check_size("known", known.size(), data.size(1));
  for (const In<R>& x : {In<R>(free), next, inertia}) check_size("velocity", x.size(), data.size(model.nv));
  const std::size_t w = std::size_t(data.width()), nq = std::size_t(model.nq) * w, nv = std::size_t(model.nv) * w;
  R* const moved = scratch_.data() + scratch_.size() - w;
  bool some = false;
  for (std::size_t p = 0; p < std::size_t(data.packs()); ++p) {
    const std::size_t v = p * nv;
    kernel_table<R>(data.width())
        .spin_response(data.view(model, int(p)), elsewhere_.state(0), links_.data(), spins_.data(), R(h),
                       &data.qpos[p * nq], &data.qvel[v], &free[v], &next[v], &inertia[v], &known[p * w],
                       scratch_.data(), &change_[v], moved);
    some = some || std::any_of(moved, moved + w, [](R x) { return x != 0; });
  }
  some_ = some_ || some;
  return some;
}

template class SpinResponse<double>;
template class SpinResponse<float>;

}  // namespace tarsus
