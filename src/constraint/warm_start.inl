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
  warm_.last.h = step_.h, warm_.last.entries.resize(terms_.size());
  const std::size_t contacts = contacts_.size();
  for (std::size_t i = 0; i < contacts; ++i) store_contact(i, warm_.last.entries[i]);
  for (std::size_t i = contacts; i < terms_.size(); ++i) {
    const int nrow = terms_[i].nrow, first = terms_[i].first_row;
    TermMemory::Entry& m = warm_.last.entries[i];
    m = {names_[i].kind, names_[i].identity, -1, -1, nrow, {}, {}, {}};
    for (int k = 0; k < nrow; ++k) m.impulse[k] = impulse_[first + k], m.excess[k] = excess(first + k);
  }
}

template <class R>
void StepTerms<R>::store_contact(std::size_t i, TermMemory::Entry& m) const {
  const LinkContact& contact = contacts_[i];
  const int nrow = contact.dimension;
  const bool units = of_units(contact);
  const Vec3d t1 = geometry_.contacts[i].axis[1], t2 = geometry_.contacts[i].axis[2];
  m.kind = Kind::contact, m.identity = contact.identity, m.a = contact.a, m.b = contact.b, m.nrow = nrow;
  m.position = contact.point.position;
  for (int k = 0, to = 0; to < 8; k += 3, to += 4) {  // forces, then moments
    const int row = terms_[i].first_row + k;
    Vec3d impulse{0, 0, 0}, over{0, 0, 0};
    if (k + 2 < nrow) {
      double one = excess(row + 1), two = excess(row + 2);
      if (!units) one /= square_or_1(t1), two /= square_or_1(t2);
      impulse = t1 * impulse_[row + 1] + t2 * impulse_[row + 2], over = t1 * one + t2 * two;
    }
    m.impulse[to] = k < nrow ? impulse_[row] : 0, m.excess[to] = k < nrow ? excess(row) : 0;
    put3(m.impulse + to + 1, impulse), put3(m.excess + to + 1, over);
  }
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

/// The terms of both steps have one order, apart from those that appeared or vanished.
template <class R>
void StepTerms<R>::find_warm_start() {
  warm_.taken.assign(warm_.last.entries.size(), 0);
  warm_.lost.clear();
  int guess = 0;
  for (int i = 0; i < int(terms_.size()); ++i) {
    const bool touches = names_[i].kind == Kind::contact;
    const bool known = !touches || names_[i].identity;
    const int last = known ? find_last(names_[i], touches ? &contacts_[i] : nullptr, guess) : -1;
    if (last >= 0) {
      take(i, last);
      guess = last + 1;
    } else if (touches) {
      warm_.lost.push_back(i);
    }
  }
  find_nearby();
}

/// A contact that moved to another feature starts from the nearest cached contact between the same links that no other
/// contact uses.
template <class R>
void StepTerms<R>::find_nearby() {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;  // contacts first, in the order of their links
  const auto comes_before = [](const TermMemory::Entry& m, const LinkContact& c) {
    return m.kind == Kind::contact && std::tie(m.a, m.b) < std::tie(c.a, c.b);
  };
  for (const int i : warm_.lost) {
    const LinkContact& c = contacts_[i];
    int nearest = -1;
    double least = kUnbounded;
    auto m = std::lower_bound(entries.begin(), entries.end(), c, comes_before);
    for (; m != entries.end() && m->kind == Kind::contact && m->a == c.a && m->b == c.b; ++m) {
      const int k = int(m - entries.begin());
      if (warm_.taken[k]) continue;
      const Vec3d d = m->position - c.point.position;
      if (dot(d, d) < least) nearest = k, least = dot(d, d);
    }
    if (nearest >= 0) take(i, nearest);
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
  for (int k = 0; k < std::min(terms_[index].nrow, m.nrow); ++k) {
    impulse_[first + k] = scale * m.impulse[k];
    y_[first + k] = impulse_[first + k] + m.excess[k] / rows_[first + k].compliance;
    if (names_[index].kind == Kind::friction_loss) rows_[first + k].centre = impulse_[first + k];
  }
}

/// Friction keeps its direction in the world, and its proximal point.
template <class R>
void StepTerms<R>::take_contact(int index, const TermMemory::Entry& m, double scale) {
  const int first = terms_[index].first_row, nrow = std::min(terms_[index].nrow, m.nrow);
  const Vec3d* axis = geometry_.contacts[index].axis;
  const bool units = of_units(contacts_[index]);
  const auto put = [&](int k, double impulse, double excess) {
    impulse_[first + k] = impulse, y_[first + k] = impulse + excess / rows_[first + k].compliance;
    if (k > 0) rows_[first + k].centre = impulse;
  };
  for (int k = 0, from = 0; k < nrow; k += 3, from += 4) {
    put(k, scale * m.impulse[from], m.excess[from]);
    if (k + 2 >= nrow) continue;
    const Vec3d impulse = get3(m.impulse + from + 1) * scale, excess = get3(m.excess + from + 1);
    for (int t = 1; t < 3; ++t)
      put(k + t, units ? dot(axis[t], impulse) : dot(axis[t], impulse) / square_or_1(axis[t]), dot(axis[t], excess));
  }
}

/// The cached entry of this name, -1 if there is none.  @param contact null for other terms
template <class R>
int StepTerms<R>::find_last(const Name& name, const LinkContact* contact, int guess) {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;
  const int n = int(entries.size());
  const auto is_it = [&](int k) { return entries[k].kind == name.kind && entries[k].identity == name.identity; };
  for (int k = guess; k < std::min(guess + 2, n); ++k) {
    if (is_it(k)) return k;
  }
  int at = n - 1;
  if (contact) {  // contacts are first, sorted as the present ones
    const auto before = [](const TermMemory::Entry& e, const LinkContact& x) {
      return e.kind == Kind::contact && std::tie(e.a, e.b, e.identity) < std::tie(x.a, x.b, x.identity);
    };
    at = int(std::lower_bound(entries.begin(), entries.end(), *contact, before) - entries.begin());
  } else {
    while (at >= 0 && entries[at].kind != Kind::contact && !is_it(at)) --at;
  }
  return at >= 0 && at < n && is_it(at) && !warm_.taken[at] ? at : -1;
}

}  // namespace tarsus
