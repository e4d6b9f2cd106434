// Places of free bodies' contacts for sweeps (body_points.hpp), found by union-find over the places with room.
#include "solver/body_points.hpp"

#include <algorithm>

namespace tarsus {

BodyPoints::BodyPoints() : lanes_(relax_table().point_lanes()) {}

void BodyPoints::clear(std::size_t bodies) {
  next_.assign(bodies + 1, 0);
  room_.clear(), free_.clear(), body_.clear(), numbers_.clear();
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
  body_.resize(body_.size() + 2 * lanes_, -1), numbers_.resize(numbers_.size() + kPointNumbers * lanes_, 0.0);
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
  body_[2 * place * lanes_ + lane] = point.a, body_[(2 * place + 1) * lanes_ + lane] = point.b;
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

Relaxed BodyPoints::relax(std::vector<FreeBody>& bodies, int first, int end, bool back, const Extrapolation* by) {
  static_assert(sizeof(FreeBody) == 13 * sizeof(double));
  Relaxed out;
  relax_table().relax_points(numbers_.data(), body_.data(), back ? end - 1 : first, end - first, back ? -1 : 1,
                             reinterpret_cast<double*>(bodies.data()), by, out);
  return out;
}

}  // namespace tarsus
