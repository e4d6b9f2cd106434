// Contacts of free bodies (tarsus/solver/body_contacts.hpp): greedy colouring, layout in batches of one kind and slot,
// and the parallel passes. O(contacts) a sweep.
#include "tarsus/solver/body_contacts.hpp"

#include <algorithm>
#include <cmath>

#include "solver/body_contact_kernels.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/math/larger.hpp"

namespace tarsus {

namespace {

constexpr int kMaxColours = 64;  // the last colour holds what fits in no other: one contact a batch

bool turning(int kind) { return kind >= 4; }
bool round_kind(int kind) { return kind < 4 && (kind & 1); }
int fields_of(int kind) {
  return turning(kind) ? int(kTurningFields) : round_kind(kind) ? int(kRoundFields) : int(kGeneralFields);
}

}  // namespace

template <class R>
int BodyContactSolver<R>::kind_of(const BodyContact<R>& c) const {
  if (!turns_.empty() && turns_[c.material]) return 4 + (c.body_b < 0 ? 1 : 0);
  return (c.round ? 1 : 0) + (c.body_b < 0 ? 2 : 0);
}

template <class R>
void BodyContactSolver<R>::resize(int bodies) {
  bodies_ = bodies;
  velocity_.clear(), inertia_.clear();
  set_groups(std::move(groups_));
}

template <class R>
void BodyContactSolver<R>::set_groups(std::vector<ContactGroup> groups) {
  groups_ = std::move(groups);
  group_of_.clear();
  for (std::size_t g = 0; g < groups_.size(); ++g) group_of_.insert(group_of_.end(), at(groups_[g].slots), int(g));
  given_slots_ = int(group_of_.size());
  // Records beyond the bodies, which empty lanes load and store: one for each kind and group, since groups run in
  // parallel.
  const std::size_t records = at(bodies_ + kKinds * (int(groups_.size()) + 1));
  velocity_.resize(8 * records, R(0));
  inertia_.resize(8 * records, R(0));
}

/// Colours the contacts without a slot: the lowest colour that neither body has yet.
template <class R>
void BodyContactSolver<R>::colour() {
  used_.resize(at(bodies_), 0);
  const auto each = [&](const auto& work) {
    for (const std::vector<int>& share : without_) {
      for (int i : share) work(i, contacts[at(i)]);
    }
  };
  each([&](int i, const BodyContact<R>& c) {
    std::uint64_t taken = used_[at(c.body_a)] | 1ull << (kMaxColours - 1);
    if (c.body_b >= 0) taken |= used_[at(c.body_b)];
    const int colour = ~taken ? __builtin_ctzll(~taken) : kMaxColours - 1;
    used_[at(c.body_a)] |= 1ull << colour;
    if (c.body_b >= 0) used_[at(c.body_b)] |= 1ull << colour;
    slot_[at(i)] = given_slots_ + colour;
    colours_ = std::max(colours_, colour + 1);
  });
  each([&](int, const BodyContact<R>& c) {
    used_[at(c.body_a)] = 0;
    if (c.body_b >= 0) used_[at(c.body_b)] = 0;
  });
}

/// Counts the contacts of each slot and kind in this thread's share.
template <class R>
void BodyContactSolver<R>::count(int thread, const ThreadTeam& team) {
  const int slots = (given_slots_ + colours_) * kKinds;
  int* own = count_.data() + at(thread * slots);
  std::fill_n(own, slots, 0);
  const ThreadTeam::Range range = team.share(int(slot_.size()), thread);
  for (int i = range.begin; i < range.end; ++i) {
    const BodyContact<R>& c = contacts[at(i)];
    if (c.slot >= 0) slot_[at(i)] = c.slot;
    ++own[slot_[at(i)] * kKinds + kind_of(c)];
  }
}

/// Lays out batches by slot; each thread's count becomes the place of its first contact.
template <class R>
void BodyContactSolver<R>::lay_out(int threads) {
  const int slots = given_slots_ + colours_, serial = given_slots_ + kMaxColours - 1;
  for (int kind = 0; kind < kKinds; ++kind) {
    Batches& b = batches_[kind];
    b.start.assign(at(slots + 1), 0);
    for (int slot = 0; slot < slots; ++slot) {
      int next = b.start[at(slot)] * lanes_;
      for (int t = 0; t < threads; ++t) {
        int& n = count_[at((t * slots + slot) * kKinds + kind)];
        const int first = next;
        next += n * (slot == serial ? lanes_ : 1);
        n = first;
      }
      b.start[at(slot + 1)] = (next + lanes_ - 1) / lanes_;
    }
    const std::size_t places = at(b.start.back() * lanes_);
    b.contact.resize(places);
    b.body_a.resize(places);
    b.body_b.resize(places);
    b.fields.resize(places * at(fields_of(kind)));
    b.restitution.resize(places);
    // Empty lanes: at the end of each slot, and all but the first lane of a batch of the last colour.
    for (int slot = 0; slot < slots; ++slot) {
      const int begin = b.start[at(slot)] * lanes_, end = b.start[at(slot + 1)] * lanes_;
      const int from = slot == serial ? begin : std::max(begin, end - lanes_);
      const int nobody = bodies_ + kind + (slot < given_slots_ ? kKinds * (1 + group_of_[at(slot)]) : 0);
      std::fill(b.contact.begin() + from, b.contact.begin() + end, -1);
      std::fill(b.body_a.begin() + from, b.body_a.begin() + end, nobody);
      std::fill(b.body_b.begin() + from, b.body_b.begin() + end, nobody);
    }
  }
  assign_groups(threads);
}

/// Assigns each phase's groups to threads, as evenly in batches as whole groups allow.
template <class R>
void BodyContactSolver<R>::assign_groups(int threads) {
  thread_of_.resize(groups_.size());
  const auto weight = [&](std::size_t g) {
    int n = 0;
    for (const Batches& b : batches_)
      n += b.start[at(groups_[g].first_slot + groups_[g].slots)] - b.start[at(groups_[g].first_slot)];
    return n;
  };
  for (std::size_t begin = 0, end = 0; begin < groups_.size(); begin = end) {
    long long total = 0, before = 0;
    for (end = begin; end < groups_.size() && groups_[end].phase == groups_[begin].phase; ++end) total += weight(end);
    for (std::size_t g = begin; g < end; ++g) {
      const int own = weight(g);
      thread_of_[g] = total > 0 ? int((2 * before + own) * threads / (2 * total)) : 0;
      before += own;
    }
  }
}

template <class R>
void BodyContactSolver<R>::place(int thread, const ThreadTeam& team) {
  const int slots = given_slots_ + colours_, serial = given_slots_ + kMaxColours - 1;
  int* own = count_.data() + at(thread * slots * kKinds);
  const ThreadTeam::Range range = team.share(int(slot_.size()), thread);
  for (int i = range.begin; i < range.end; ++i) {
    const BodyContact<R>& c = contacts[at(i)];
    const int kind = kind_of(c), slot = slot_[at(i)];
    Batches& b = batches_[kind];
    int& next = own[slot * kKinds + kind];
    const std::size_t place = at(next);
    next += slot == serial ? lanes_ : 1;
    b.contact[place] = i;
    b.body_a[place] = c.body_a;
    b.body_b[place] = c.body_b >= 0 ? c.body_b : bodies_ + kind;
  }
}

template <class R>
void BodyContactSolver<R>::fill(int kind, int batch_begin, int batch_end) {
  Batches& b = batches_[kind];
  const int fields = fields_of(kind), lanes = lanes_;
  for (int place = batch_begin * lanes; place < batch_end * lanes; ++place) {
    R* f = b.fields.data() + at(place / lanes) * at(fields * lanes) + place % lanes;
    const auto put = [&](int field, R x) { f[field * lanes] = x; };
    if (b.contact[at(place)] < 0) {
      for (int field = 0; field < fields; ++field) put(field, R(0));
      put(kTarget, R(1));  // an open contact
      b.restitution[at(place)] = 0;
      continue;
    }
    const BodyContact<R>& c = contacts[at(b.contact[at(place)])];
    const ContactMaterial& m = materials[at(c.material)];
    for (int k = 0; k < 3; ++k) put(kNormal + k, c.normal[k]);
    put(kTarget, c.distance);
    put(kCompliance, R(m.compliance));
    put(kFriction, R(m.friction));
    put(kInverseNormal, c.relative_compliance);
    put(kInverseTangent, R(m.damping_time));
    const ContactImpulse<R>& start = impulses[at(b.contact[at(place)])];
    put(kImpulseNormal, start.normal);
    for (int k = 0; k < 3; ++k) put(kImpulseTangent + k, start.tangent[k]);
    b.restitution[at(place)] = R(m.restitution);
    if (round_kind(kind)) {
      put(kArmA, c.arm_a[0]);
      put(kArmB, c.arm_b[0]);
      continue;
    }
    for (int k = 0; k < 3; ++k) {
      put(kArmA + k, c.round ? -c.arm_a[0] * c.normal[k] : c.arm_a[k]);
      put(kGeneralArmB + k, c.round ? c.arm_b[0] * c.normal[k] : c.arm_b[k]);
    }
    if (!turning(kind)) continue;
    put(kTorsional, R(m.torsional));
    put(kRolling, R(m.rolling));
    for (int k = 0; k < 3; ++k) put(kMoment + k, moments[at(b.contact[at(place)])].moment[k]);
  }
}

template <class R>
void BodyContactSolver<R>::write_back(int kind, int batch_begin, int batch_end) {
  const Batches& b = batches_[kind];
  const int fields = fields_of(kind), lanes = lanes_;
  for (int place = batch_begin * lanes; place < batch_end * lanes; ++place) {
    if (b.contact[at(place)] < 0) continue;
    const R* f = b.fields.data() + at(place / lanes) * at(fields * lanes) + place % lanes;
    ContactImpulse<R>& out = impulses[at(b.contact[at(place)])];
    out.normal = f[kImpulseNormal * lanes];
    for (int k = 0; k < 3; ++k) out.tangent[k] = f[(kImpulseTangent + k) * lanes];
    if (!turning(kind)) continue;
    for (int k = 0; k < 3; ++k) moments[at(b.contact[at(place)])].moment[k] = f[(kMoment + k) * lanes];
  }
}

template <class R>
ContactKernelArgs<R> BodyContactSolver<R>::args(int kind, int begin, int end, const BodyContactOptions& options) {
  Batches& b = batches_[kind];
  const std::size_t first = at(begin * lanes_);
  return {velocity_.data(),
          inertia_.data(),
          b.fields.data() + first * at(fields_of(kind)),
          b.body_a.data() + first,
          b.body_b.data() + first,
          b.restitution.data() + first,
          end - begin,
          R(options.dt),
          R(options.relaxation),
          R(options.restitution_threshold),
          R(options.deepest_step)};
}

template <class R>
void BodyContactSolver<R>::prepare(const BodyContactOptions& options, ThreadTeam& team) {
  lanes_ = kernels<ContactKernels<R>>().lanes;
  impulses.resize(contacts.size());
  turns_.clear();
  if (std::any_of(materials.begin(), materials.end(), [](const ContactMaterial& m) { return m.turns(); })) {
    for (const ContactMaterial& m : materials) turns_.push_back(m.turns());
  }
  moments.resize(turns_.empty() ? 0 : contacts.size());
  slot_.resize(active < 0 ? contacts.size() : at(active));
  colours_ = 0;
  without_.resize(at(team.size()));
  team.run([&](int thread) {
    std::vector<int>& without = without_[at(thread)];
    without.clear();
    const ThreadTeam::Range mine = team.share(int(slot_.size()), thread);
    for (int i = mine.begin; i < mine.end; ++i) {
      if (contacts[at(i)].slot < 0) without.push_back(i);
    }
    team.barrier();
    if (thread == 0) {
      colour();
      count_.resize(at(team.size() * (given_slots_ + colours_) * kKinds));
    }
    team.barrier();
    count(thread, team);
    team.barrier();
    if (thread == 0) lay_out(team.size());
    team.barrier();
    place(thread, team);
    team.barrier();
    for (int kind = 0; kind < kKinds; ++kind) {
      const ThreadTeam::Range r = team.share(batches_[kind].start.back(), thread);
      fill(kind, r.begin, r.end);
      kernels<ContactKernels<R>>().prepare[kind](args(kind, r.begin, r.end, options));
    }
  });
}

/// Visits all batches once: groups phase by phase, each on one thread; then the solver's own colours, each on all
/// threads.
template <class R>
template <class Work>
void BodyContactSolver<R>::pass(int thread, ThreadTeam& team, const BodyContactOptions& options, const Work& work) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (g > 0 && groups_[g].phase != groups_[g - 1].phase) team.barrier();
    if (thread_of_[g] != thread) continue;
    for (int slot = groups_[g].first_slot; slot < groups_[g].first_slot + groups_[g].slots; ++slot) {
      for (int kind = 0; kind < kKinds; ++kind) {
        const int first = batches_[kind].start[at(slot)], end = batches_[kind].start[at(slot + 1)];
        if (first < end) work(kind, args(kind, first, end, options));
      }
    }
  }
  team.barrier();
  for (int slot = given_slots_; slot < given_slots_ + colours_; ++slot) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const int first = batches_[kind].start[at(slot)], n = batches_[kind].start[at(slot + 1)] - first;
      ThreadTeam::Range r = team.share(n, thread);
      if (slot == given_slots_ + kMaxColours - 1) r = thread == 0 ? ThreadTeam::Range{0, n} : ThreadTeam::Range{0, 0};
      if (r.begin < r.end) work(kind, args(kind, first + r.begin, first + r.end, options));
    }
    team.barrier();
  }
}

template <class R>
BodyContactReport BodyContactSolver<R>::solve(const BodyContactOptions& options, ThreadTeam& team) {
  BodyContactReport report;
  int most = 0;
  for (const ContactGroup& g : groups_) most = std::max(most, g.slots);
  report.colours = colours_ + most;
  const ContactKernels<R>& kernel = kernels<ContactKernels<R>>();
  struct alignas(64) Worst {
    R value = 0;
  };
  std::vector<Worst> worst(at(team.size()));
  team.run([&](int thread) {
    if (options.apply)
      pass(thread, team, options, [&](int kind, const ContactKernelArgs<R>& a) { kernel.warm[kind](a); });
    for (int k = 0; k < options.max_iterations; ++k) {
      R largest = 0;
      pass(thread, team, options, [&](int kind, const ContactKernelArgs<R>& a) {
        const R change = kernel.sweep[kind](a);
        largest = larger(largest, change);
      });
      worst[at(thread)].value = largest;
      team.barrier();
      R all = 0;  // the same on every thread
      for (const Worst& w : worst) all = larger(all, w.value);
      team.barrier();
      if (thread == 0) {
        report.iterations = k + 1;
        report.change = std::sqrt(double(all));
        if (k == 0) report.first_change = report.change;
      }
      if (std::sqrt(double(all)) <= options.tolerance || !std::isfinite(all)) break;
    }
    for (int kind = 0; kind < kKinds; ++kind) {
      const ThreadTeam::Range r = team.share(batches_[kind].start.back(), thread);
      write_back(kind, r.begin, r.end);
    }
  });
  return report;
}

template class BodyContactSolver<float>;
template class BodyContactSolver<double>;

}  // namespace tarsus
