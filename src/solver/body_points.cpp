// Places of free bodies' contacts for sweeps (body_points.hpp), found by union-find over the places with room.
#include "solver/body_points.hpp"

#include <algorithm>

namespace tarsus {

BodyPoints::BodyPoints() : lanes_(relax_table().point_lanes()) {}

void BodyPoints::clear(std::span<const FreeBody> bodies) {
  next_.assign(bodies.size() + 1, 0);
  room_.clear(), free_.clear(), body_.clear(), numbers_.clear();
  bodies_.assign((bodies.size() + 1) * kBodyNumbers, 0.0f);
  float* to = bodies_.data();
  for (const FreeBody& body : bodies) {
    to[0] = float(body.inverse_mass);
    const double* const I = &body.inverse_inertia.xx;
    for (int k = 0; k < 6; ++k) to[1 + k] = float(I[k]);
    to += kBodyNumbers;
  }
}

void BodyPoints::take_motion(const FreeBody& body, int index) {
  float* const to = &bodies_[std::size_t(index) * kBodyNumbers + kBodyMotion];
  for (int k = 0; k < 3; ++k) to[k] = float(body.w[k]), to[3 + k] = float(body.v[k]);
}

void BodyPoints::give_motion(int index, FreeBody& body) const {
  const float* const from = &bodies_[std::size_t(index) * kBodyNumbers + kBodyMotion];
  for (int k = 0; k < 3; ++k) body.w[k] = double(from[k]), body.v[k] = double(from[3 + k]);
}

void BodyPoints::take_motions(std::span<const FreeBody> bodies) {
  for (std::size_t i = 0; i < bodies.size(); ++i) take_motion(bodies[i], int(i));
}

void BodyPoints::give_motions(std::span<FreeBody> bodies) const {
  for (std::size_t i = 0; i < bodies.size(); ++i) give_motion(int(i), bodies[i]);
}

void BodyPoints::extrapolate(const Extrapolation& by) {
  const std::size_t count = bodies_.size() / kBodyNumbers - 1;
  before_.resize(8 * count), increment_.resize(8 * count);  // by.restart comes first, and sets them
  for (std::size_t i = 0; i < count; ++i) {
    float* const x = &bodies_[i * kBodyNumbers + kBodyMotion];
    for (std::size_t k = 0; k < 8; ++k) by(x[k], before_[8 * i + k], increment_[8 * i + k]);
  }
}

/// The first place from `place` on that has room.
int BodyPoints::find(int place) {
  while (place < places() && free_[place] != place) {
    if (free_[place] < places()) free_[place] = free_[free_[place]];
    place = free_[place];
  }
  return place;
}

/// The first place, not before `from`, after all contacts of these bodies.
int BodyPoints::take(int a, int b, int from) {
  for (const int body : {a, b}) {
    if (body >= 0) from = std::max(from, next_[body]);
  }
  return from;
}

void BodyPoints::add_place() {
  free_.push_back(places()), room_.push_back(lanes_);
  body_.resize(body_.size() + 2 * lanes_, world()), numbers_.resize(numbers_.size() + kPointNumbers * lanes_, 0.0f);
}

/// The next contacts of these bodies must come after that place.
void BodyPoints::come_after(int place, int a, int b) {
  for (const int body : {a, b}) {
    if (body >= 0) next_[body] = place + 1;
  }
}

int BodyPoints::add(const ContactRows& point) {
  const int place = find(take(point.a, point.b, 0));
  if (place == places()) add_place();
  const int lane = lanes_ - room_[place]--;
  if (room_[place] == 0) free_[place] = place + 1;
  const auto record = [&](int body) { return body < 0 ? world() : 2 * body; };
  body_[2 * place * lanes_ + lane] = record(point.a), body_[(2 * place + 1) * lanes_ + lane] = record(point.b);
  come_after(place, point.a, point.b);
  return place * lanes_ + lane;
}

int BodyPoints::add_other(int a, int b) {
  const int place = take(a, b, next_.back());
  while (places() <= place) add_place();
  next_.back() = place + 1;
  come_after(place, a, b);
  return place;
}

Relaxed BodyPoints::relax(int first, int end, bool back, const Extrapolation* by) {
  Relaxed out;
  relax_table().relax_points(numbers_.data(), body_.data(), back ? end - 1 : first, end - first, back ? -1 : 1,
                             bodies_.data(), by, out);
  return out;
}

}  // namespace tarsus
