// The warm-start cache of StepTerms: what each term carried at the end of the last step, found again by identity, and
// contacts also by place. It gives the first tangent of a solve, and the proximal points of rows that stick.
#include <algorithm>
#include <tuple>

#include "tarsus/constraint/step_terms.hpp"

namespace tarsus {

namespace {

/// |a|² of a tangent that may be scaled; 1 for one along which nothing acts.
double square_or_1(const Vec3d& a) {
  const double square = dot(a, a);
  return square > 0 ? square : 1;
}

}  // namespace

/// Puts this step's impulses away for the next one.
template <class R>
void StepTerms<R>::remember() {
  warm_.last.h = step_.h, warm_.last.entries.clear(), warm_.by_identity.clear();
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    TermMemory::Entry m{names_[i].kind, names_[i].identity, -1, -1, term.nrow, {}, {}, {}, {}};
    if (i < contacts_.size()) {
      m.a = contacts_[i].a, m.b = contacts_[i].b, m.position = contacts_[i].point.position;
      std::copy_n(geometry_.contacts[i].axis, 3, m.axis);
    }
    for (int k = 0; k < term.nrow; ++k) {
      const int row = term.first_row + k;
      m.impulse[k] = impulse_[row];
      m.excess[k] = rows_[row].compliance * (y_[row] - impulse_[row]);
    }
    warm_.last.entries.push_back(m);
  }
}

/// Both steps' terms come in one order but for those that came and went.
template <class R>
void StepTerms<R>::recall() {
  warm_.taken.assign(warm_.last.entries.size(), 0);
  warm_.lost.clear();
  int guess = 0;
  for (int i = 0; i < int(terms_.size()); ++i) {
    const bool touches = names_[i].kind == Kind::contact;
    const int last = !touches             ? find_last(names_[i].kind, names_[i].identity, guess)
                     : names_[i].identity ? find_last_contact(contacts_[i], guess)
                                          : -1;
    if (last >= 0) {
      take(i, last);
      guess = last + 1;
    } else if (names_[i].kind == Kind::contact) {
      warm_.lost.push_back(i);
    }
  }
  recall_near();
}

/// The last step's contact of this identity, -1 if there was none.
template <class R>
int StepTerms<R>::find_last_contact(const LinkContact& c, int guess) {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;  // contacts first, sorted as these are
  const auto is_it = [&](const TermMemory::Entry& m) { return m.kind == Kind::contact && m.identity == c.identity; };
  for (int k = guess; k < std::min(guess + 2, int(entries.size())); ++k) {
    if (is_it(entries[k])) return k;
  }
  const auto m =
      std::lower_bound(entries.begin(), entries.end(), c, [](const TermMemory::Entry& e, const LinkContact& x) {
        return e.kind == Kind::contact && std::tie(e.a, e.b, e.identity) < std::tie(x.a, x.b, x.identity);
      });
  const int k = int(m - entries.begin());
  return m != entries.end() && is_it(*m) && !warm_.taken[k] ? k : -1;
}

/// A contact that rolled on to another feature starts from where the nearest one between the same links was, if nobody
/// else does.
template <class R>
void StepTerms<R>::recall_near() {
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

/// y of this step's term from the last one's: γ + excess / R, γ that of a step of this length. Contacts' vectors keep
/// their direction in the world.
template <class R>
void StepTerms<R>::take(int index, int last) {
  const TermMemory::Entry& m = warm_.last.entries[last];
  const double scale = step_.h / warm_.last.h;
  const Term& term = terms_[index];
  warm_.taken[last] = 1;
  const int count = std::min(term.nrow, m.nrow);
  double impulse[kTermRows], excess[kTermRows];
  for (int k = 0; k < count; ++k) impulse[k] = scale * m.impulse[k], excess[k] = m.excess[k];
  if (names_[index].kind == Kind::contact) {
    const Vec3d* axis = geometry_.contacts[index].axis;
    // Axes are units but where friction depends on the direction: an impulse is a sum of them, a velocity is read by
    // them.
    const auto turn = [&](double* x, int first, bool velocity) {
      const Vec3d* from = velocity ? m.axis : axis;
      const double one = square_or_1(from[1]), two = square_or_1(from[2]);
      if (velocity) x[first] /= one, x[first + 1] /= two;
      const Vec3d world = m.axis[1] * x[first] + m.axis[2] * x[first + 1];
      x[first] = dot(axis[1], world), x[first + 1] = dot(axis[2], world);
      if (!velocity) x[first] /= one, x[first + 1] /= two;
    };
    for (int first = 1; first + 1 < count; first += 3) turn(impulse, first, false), turn(excess, first, true);
  }
  const bool sticks = names_[index].kind == Kind::contact || names_[index].kind == Kind::friction_loss;
  for (int k = 0; k < count; ++k) {
    const int row = term.first_row + k;
    y_[row] = impulse[k] + excess[k] / rows_[row].compliance;
    impulse_[row] = impulse[k];
    if (sticks && !(names_[index].kind == Kind::contact && k == 0)) rows_[row].centre = impulse[k];
  }
}

/// The last step's term of this identity, -1 if there was none.
template <class R>
int StepTerms<R>::find_last(Kind kind, std::uint64_t identity, int guess) {
  const std::vector<TermMemory::Entry>& entries = warm_.last.entries;
  const int n = int(entries.size());
  for (int k = guess; k < std::min(guess + 2, n); ++k) {
    if (entries[k].kind == kind && entries[k].identity == identity) return k;
  }
  const auto key = [&](int k) { return std::tuple(entries[k].kind, entries[k].identity); };
  if (warm_.by_identity.empty()) {
    for (int k = 0; k < n; ++k) warm_.by_identity.push_back(k);
    std::sort(warm_.by_identity.begin(), warm_.by_identity.end(), [&](int x, int y) { return key(x) < key(y); });
  }
  const auto at = std::lower_bound(warm_.by_identity.begin(), warm_.by_identity.end(), std::tuple(kind, identity),
                                   [&](int k, const auto& wanted) { return key(k) < wanted; });
  return at != warm_.by_identity.end() && key(*at) == std::tuple(kind, identity) && !warm_.taken[*at] ? *at : -1;
}

#define TARSUS_INSTANTIATE(R)                                            \
  template void StepTerms<R>::remember();                                \
  template void StepTerms<R>::recall();                                  \
  template void StepTerms<R>::recall_near();                             \
  template int StepTerms<R>::find_last_contact(const LinkContact&, int); \
  template void StepTerms<R>::take(int, int);                            \
  template int StepTerms<R>::find_last(Kind, std::uint64_t, int);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
