// The warm-start cache of StepTerms: the impulses of each term at the end of the last step, looked up by identity, and
// for contacts also by place. They give the first tangent of a solve, and the proximal points of rows that stick. With
// primes for the last step, an impulse before projection starts at
//
//     y = s γ' + R' (y' - γ') / R,     s = h / h'
#pragma once

#include <algorithm>
#include <tuple>

#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

/// |a|² of a tangent that may be scaled; 1 for a tangent of length zero.
double square_or_1(const Vec3d& a) {
  const double square = dot(a, a);
  return square > 0 ? square : 1;
}

/// Whether the contact's axes are unit vectors, which they are unless friction depends on the direction. Impulses are
/// sums of the axes and velocities projections on them; the two agree for unit vectors.
bool of_units(const LinkContact& c) { return !c.directional; }

}  // namespace

/// Stores this step's impulses.
template <class R>
void StepTerms<R>::store_warm_start() {
  TermMemory& last = warm_.last;
  const std::size_t n = terms_.size(), contacts = contacts_.size();
  last.h = step_.h, last.entries.resize(n);
  last.numbers.resize(3 * (contacts + rows_.size()));  // as many at most
  int at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const bool touches = i < contacts;
    const ContactRows* const contact = touches ? &geometry_.contacts[i] : nullptr;
    const int first = terms_[i].first_row;
    TermMemory::Entry& m = last.entries[i];
    m = {names_[i].identity, touches ? contact->a : -1,    touches ? contact->b : -1, at,
         names_[i].kind,     std::uint16_t(terms_[i].nrow)};
    double* const to = last.numbers.data() + at;
    at += m.size();
    if (touches) {
      store_contact(i, m, to);
    } else {
      for (int k = 0; k < m.nrow; ++k) to[k] = impulse_[first + k], to[m.nrow + k] = excess(first + k);
    }
  }
  last.numbers.resize(std::size_t(at));
}

template <class R>
void StepTerms<R>::store_contact(std::size_t i, const TermMemory::Entry& m, double* to) const {
  const LinkContact& contact = contacts_[i];
  const Vec3d t1 = geometry_.contacts[i].axis[1], t2 = geometry_.contacts[i].axis[2];
  double* const over = to + m.impulses();
  for (int k = 0, at = 0; k < m.nrow; k += 3, at += 4) {  // forces, then moments
    const int row = terms_[i].first_row + k;
    to[at] = impulse_[row], over[at] = excess(row);
    if (k + 2 >= m.nrow) continue;
    double one = excess(row + 1), two = excess(row + 2);
    if (!of_units(contact)) one /= square_or_1(t1), two /= square_or_1(t2);
    put3(to + at + 1, t1 * impulse_[row + 1] + t2 * impulse_[row + 2]), put3(over + at + 1, t1 * one + t2 * two);
  }
  put3(over + m.impulses(), contact.point.position);
}

/// Initial values from the last solve of this step. Its terms come in the same order, apart from those that joined.
template <class R>
void StepTerms<R>::start_from_try() {
  auto from = warm_.tried.names.begin();
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const auto same = std::find(from, warm_.tried.names.end(), names_[i]);
    if (same == warm_.tried.names.end()) continue;
    const Term& last = warm_.tried.terms[std::size_t(same - warm_.tried.names.begin())];
    std::copy_n(&warm_.tried.y[std::size_t(last.first_row)], terms_[i].nrow, &y_[terms_[i].first_row]);
    from = same + 1;
  }
}

template <class R>
void StepTerms<R>::begin_warm_start() {
  warm_.taken.assign(warm_.last.entries.size(), 0), warm_.lost.clear(), warm_.next = 0;
}

/// Finds the cached entries of a block of contacts by merging: both lists are in the order of links and identities.
template <class R>
void StepTerms<R>::find_contacts(std::size_t first, std::size_t last) {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;
  const int row = terms_[first].first_row, end = terms_[last - 1].first_row + terms_[last - 1].nrow;
  std::fill(impulse_.begin() + row, impulse_.begin() + end, 0.0);
  int next = warm_.next;
  const int n = int(entries.size());
  for (std::size_t i = first; i < last; ++i) {
    const LinkContact& c = contacts_[i];
    const auto comes_before = [&](const TermMemory::Entry& m) {
      return m.kind == Kind::contact && std::tie(m.a, m.b, m.identity) < std::tie(c.a, c.b, c.identity);
    };
    while (next < n && comes_before(entries[next])) ++next;
    const bool found = next < n && c.identity != 0 && entries[next].kind == Kind::contact &&
                       entries[next].identity == c.identity && entries[next].a == c.a && entries[next].b == c.b;
    if (found)
      take(int(i), next++);
    else
      warm_.lost.push_back({int(i), next});
  }
  warm_.next = next;
}

/// A contact that moved to another feature starts from the nearest cached contact between the same links that no other
/// contact uses.
template <class R>
void StepTerms<R>::find_nearby() {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;
  for (const auto& [i, place] : warm_.lost) {
    const LinkContact& c = contacts_[i];
    const auto alike = [&](int k) {
      return k >= 0 && k < int(entries.size()) && entries[k].kind == Kind::contact && entries[k].a == c.a &&
             entries[k].b == c.b;
    };
    int k = place, nearest = -1;
    double least = kUnbounded;
    while (alike(k - 1)) --k;
    for (; alike(k); ++k) {
      if (warm_.taken[k]) continue;
      const Vec3d d = get3(&warm_.last.numbers[entries[k].first + 2 * entries[k].impulses()]) - c.point.position;
      if (dot(d, d) < least) nearest = k, least = dot(d, d);
    }
    if (nearest >= 0) take(i, nearest);
  }
}

/// Initial values of the terms after the contacts. Those of both steps have one order, apart from those that appeared
/// or vanished.
template <class R>
void StepTerms<R>::find_warm_start() {
  int guess = warm_.next;
  for (std::size_t i = contacts_.size(); i < terms_.size(); ++i) {
    const int last = find_last(names_[i], guess);
    if (last >= 0) take(int(i), last), guess = last + 1;
  }
}

/// y of this step's term from the cached one: γ + excess / R, with γ scaled to this step's length.
template <class R>
void StepTerms<R>::take(int index, int last) {
  const TermMemory::Entry& m = warm_.last.entries[last];
  const double scale = step_.h / warm_.last.h;
  warm_.taken[last] = 1;
  if (names_[index].kind == Kind::contact) return take_contact(index, m, scale);
  const int first = terms_[index].first_row;
  const double* from = warm_.last.numbers.data() + m.first;
  for (int k = 0; k < std::min(terms_[index].nrow, int(m.nrow)); ++k) {
    impulse_[first + k] = scale * from[k];
    y_[first + k] = impulse_[first + k] + from[m.nrow + k] / rows_[first + k].compliance;
    if (names_[index].kind == Kind::friction_loss) rows_[first + k].centre = impulse_[first + k];
  }
}

/// Friction keeps its direction in the world, and its proximal point.
template <class R>
void StepTerms<R>::take_contact(int index, const TermMemory::Entry& m, double scale) {
  const int first = terms_[index].first_row, nrow = std::min(terms_[index].nrow, int(m.nrow));
  const double *from = warm_.last.numbers.data() + m.first, *over = from + m.impulses();
  const Vec3d* axis = geometry_.contacts[index].axis;
  const bool units = of_units(contacts_[index]);
  const auto put = [&](int k, double impulse, double excess) {
    impulse_[first + k] = impulse, y_[first + k] = impulse + excess / rows_[first + k].compliance;
    if (k > 0) rows_[first + k].centre = impulse;
  };
  for (int k = 0, at = 0; k < nrow; k += 3, at += 4) {
    put(k, scale * from[at], over[at]);
    if (k + 2 >= nrow) continue;
    const Vec3d impulse = get3(from + at + 1) * scale, excess = get3(over + at + 1);
    for (int t = 1; t < 3; ++t)
      put(k + t, units ? dot(axis[t], impulse) : dot(axis[t], impulse) / square_or_1(axis[t]), dot(axis[t], excess));
  }
}

/// The cached entry of the name of a term after the contacts, -1 if there is none.
template <class R>
int StepTerms<R>::find_last(const Name& name, int guess) const {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;
  const int n = int(entries.size());
  const auto is_it = [&](int k) { return entries[k].kind == name.kind && entries[k].identity == name.identity; };
  for (int k = guess; k < std::min(guess + 2, n); ++k) {
    if (is_it(k)) return k;
  }
  int at = n - 1;
  while (at >= 0 && entries[at].kind != Kind::contact && !is_it(at)) --at;
  return at >= 0 && is_it(at) && !warm_.taken[at] ? at : -1;
}

}  // namespace tarsus
