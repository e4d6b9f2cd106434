// Gathers the few lanes that still iterate, from several packs, into one pack: a narrow pack if they fit into it, else
// one as wide as theirs. The numbers are the same, with less work.
#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <span>

namespace tarsus {
inline namespace TARSUS_ISA {

/// Calls f(pack, its contact, our contact, whether it is the first for ours) for the contacts of the iterating lanes.
/// The contacts of a link are matched in the order of each world; those between links follow.
template <class T>
template <class W, class F>
void LaneSolver<T>::match_contacts(std::span<LaneSolver<W>* const> packs, const F& f) {
  std::array<int, kTogether<W>> at{};
  s_.ncontact = s_.ncrossing = 0;
  for (int i = 0; i <= v_.nlink; ++i) {
    const int link = i < v_.nlink ? i : -1;
    for (bool some = true; some;) {
      int& count = link >= 0 ? s_.ncontact : s_.ncrossing;
      LaneContact<T>& to = (link >= 0 ? s_.contact : s_.crossing)[count];
      some = false;
      for (std::size_t k = 0; k < packs.size(); ++k) {
        const LaneSpace<W>& theirs = packs[k]->s_;
        if (at[k] == theirs.nactive || theirs.active[at[k]]->link != link) continue;
        f(int(k), *theirs.active[at[k]++], to, !some);
        some = true;
      }
      count += some;
    }
  }
}
/// The same for the rows on joints and along generalised directions.
template <class T>
template <class W, class F>
void LaneSolver<T>::match_rows(std::span<LaneSolver<W>* const> packs, const F& f) {
  std::array<int, kTogether<W>> at{};
  for (s_.nrow = 0;; ++s_.nrow) {
    const auto next = [&](std::size_t k) {
      const LaneSpace<W>& theirs = packs[k]->s_;
      return at[k] < theirs.nrow ? theirs.row[at[k]].place : INT_MAX;
    };
    int place = INT_MAX;
    for (std::size_t k = 0; k < packs.size(); ++k) place = std::min(place, next(k));
    if (place == INT_MAX) break;
    bool first = true;
    for (std::size_t k = 0; k < packs.size(); ++k) {
      if (next(k) != place) continue;
      f(int(k), packs[k]->s_.row[at[k]++], s_.row[s_.nrow], first);
      first = false;
    }
  }
  const auto by_elimination = [&](const LaneJointRow<T>& r) { return r.path >= m_.nalone; };
  s_.npath = int(std::count_if(s_.row, s_.row + s_.nrow, by_elimination));
}

/// Copies the iterating lanes of `packs`, which fit into this pack, iterates, and copies the results back.
template <class T>
template <class W>
void LaneSolver<T>::go_down_for(std::span<LaneSolver<W>* const> packs, T* K) {
  std::array<LaneChoice<W, T>, kTogether<W>> choice;
  int count = 0;
  for (std::size_t k = 0; k < packs.size(); ++k) {
    LaneChoice<W, T>& mine = choice[k];
    mine.first = count;
    for (int l = 0; l < kWidth<W>; ++l) {
      if (packs[k]->live_[l]) mine.here[count] = -1, mine.lane[count++] = l;
    }
    mine.count = count - mine.first;
  }
  LaneChoice<W, T>& last = choice[packs.size() - 1];
  for (int i = count; i < kLanes; ++i) last.here[i] = -1, last.lane[i] = last.lane[last.first];
  Descent& d = descent_;
  d.tolerance = packs[0]->descent_.tolerance, d.most = packs[0]->descent_.most, d.judged = packs[0]->descent_.judged;
  for (std::size_t k = 0; k < packs.size(); ++k) {
    const LaneSolver<W>& from = *packs[k];
    const LaneChoice<W, T>& mine = choice[k];
    for (int i = 0; i < v_.nlink; ++i) {
      mine.take(from.state_[i].R, state_[i].R), mine.take(from.state_[i].r, state_[i].r);
      mine.take(from.state_[i].Ic, state_[i].Ic);
      mine.take(from.s_.bias[i].n, s_.bias[i].n), mine.take(from.s_.bias[i].f, s_.bias[i].f);
    }
    for (int i = 0; i < v_.nv; ++i) {
      mine.take(from.linear_.K()[i], K[i]), mine.take(from.s_.joint_force[i], s_.joint_force[i]);
      mine.take(from.s_.x_now[i], s_.x_now[i]), mine.take(from.s_.x_best[i], s_.x_best[i]);
    }
    for (int i = 0; i < from.s_.nball; ++i) mine.take(from.s_.ball[i], s_.ball[i]);
    for (int i = 0; i < m_.path_numbers; ++i) mine.take(from.s_.path[i], s_.path_room[i]);
    mine.take(from.met_, met_), mine.take(from.linear_.slid, linear_.slid), mine.take(from.short_, short_);
    mine.take(from.discs_, discs_), mine.take(from.iterations_, iterations_);
    mine.take(from.best_residual_, best_residual_);
    mine.take(from.descent_.now, d.now), mine.take(from.descent_.count, d.count);
    mine.take(from.descent_.last, d.last), mine.take(from.descent_.last_but_one, d.last_but_one);
    mine.take(from.descent_.older, d.older);
  }
  s_.nball = packs[0]->s_.nball, s_.nspin = 0;
  const bool several = packs.size() > 1;  // a lane whose pack has no such term needs zeros
  match_contacts<W>(packs, [&](int k, const LaneContact<W>& from, LaneContact<T>& to, bool first) {
    if (first && several) to = LaneContact<T>{};
    if (first) to.link = from.link, to.spin = -1;
    choice[std::size_t(k)].take(from, to);
    if (from.spin < 0) return;
    if (to.spin < 0) {
      to.spin = s_.nspin++;
      if (several) s_.spin[to.spin] = LaneSpin<T>{};
      s_.spin[to.spin].contact = &to;
    }
    choice[std::size_t(k)].take(packs[std::size_t(k)]->s_.spin[from.spin], s_.spin[to.spin]);
  });
  match_rows<W>(packs, [&](int k, const LaneJointRow<W>& from, LaneJointRow<T>& to, bool first) {
    if (first && several) to = LaneJointRow<T>{};
    choice[std::size_t(k)].take(from, to);
  });
  for (int i = 0; i < s_.ncontact; ++i) s_.order[i] = &s_.contact[i];
  s_.every_contact([&](LaneContact<T>& c) {
    if (c.link < 0) links_.find_touches(c);
    c.no_tangent();
  });
  for (int i = 0; i < s_.nspin; ++i) s_.spin[i].no_tangent();
  for (int i = 0; i < s_.nrow; ++i) s_.row[i].no_tangent();
  for (int i = 0; i < s_.nball; ++i) s_.ball[i].no_tangent();
  Mask<T> live = no_lanes<T>();
  for (int i = 0; i < count; ++i) live[i] = -1;
  go_on(live);
  go_down();
  for (std::size_t k = 0; k < packs.size(); ++k) {
    LaneSolver<W>& to = *packs[k];
    const LaneChoice<W, T>& mine = choice[k];
    for (int i = 0; i < v_.nv; ++i) mine.put(s_.x_now[i], to.s_.x_now[i]), mine.put(s_.x_best[i], to.s_.x_best[i]);
    for (int i = 0; i < s_.nball; ++i) mine.put(s_.ball[i].at, to.s_.ball[i].at);
    mine.put(met_, to.met_), mine.put(linear_.slid, to.linear_.slid), mine.put(d.met, to.descent_.met);
    mine.put(iterations_, to.iterations_), mine.put(best_residual_, to.best_residual_);
  }
  match_contacts<W>(packs, [&](int k, LaneContact<W>& to, const LaneContact<T>& from, bool) {
    choice[std::size_t(k)].put(from.at, to.at);
    if (to.spin >= 0) choice[std::size_t(k)].put(s_.spin[from.spin].at, packs[std::size_t(k)]->s_.spin[to.spin].at);
  });
  match_rows<W>(packs, [&](int k, LaneJointRow<W>& to, const LaneJointRow<T>& from, bool) {
    choice[std::size_t(k)].put(from.at, to.at);
  });
}

/// Iterates for `packs` in a pack N that lies in `room`, with its own links and K, and uses their scratch.
template <class N, class W>
void go_down_in(std::byte* room, std::span<LaneSolver<W>* const> packs) {
  const LaneSolver<W>& first = *packs[0];
  LaneSpace<N> space;
  LaneMemory<N> none{};
  carve_scratch<N>(first.m_, first.s_.block, space);
  LaneCarver carve(room + carve_space<N>(first.m_, room, space));
  LinkState<N>* state = carve.take<LinkState<N>>(std::size_t(first.v_.nlink));
  N* K = carve.take<N>(std::size_t(first.v_.nv));
  LaneSolver<N> together(first.pack_, first.m_, first.step_, state, K, space, none);
  together.template go_down_for<W>(packs, K);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
