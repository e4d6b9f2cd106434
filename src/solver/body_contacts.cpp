#include "tarsus/solver/body_contacts.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "solver/body_contact_kernels.hpp"
#include "tarsus/math/cpu.hpp"

namespace tarsus {

namespace isa_baseline {
ContactKernels<float> contact_kernels_float();
ContactKernels<double> contact_kernels_double();
}  // namespace isa_baseline
namespace isa_avx2 {
ContactKernels<float> contact_kernels_float();
ContactKernels<double> contact_kernels_double();
}  // namespace isa_avx2

namespace {

template <class R>
const ContactKernels<R>& kernels() {
  static const ContactKernels<R> best = [] {
#if defined(__x86_64__)
    const bool wide = isa_level() >= IsaLevel::avx2;
    if constexpr (sizeof(R) == 4) {
      return wide ? isa_avx2::contact_kernels_float() : isa_baseline::contact_kernels_float();
    } else {
      return wide ? isa_avx2::contact_kernels_double() : isa_baseline::contact_kernels_double();
    }
#else
    if constexpr (sizeof(R) == 4)
      return isa_baseline::contact_kernels_float();
    else
      return isa_baseline::contact_kernels_double();
#endif
  }();
  return best;
}

constexpr int kMaxColours = 64;  // the last one holds what fits in no other: one contact a batch
std::size_t at(int i) { return static_cast<std::size_t>(i); }

template <class R>
int kind_of(const BodyContact<R>& c) {
  return (c.round ? 1 : 0) + (c.body_b < 0 ? 2 : 0);
}
int fields_of(int kind) { return kind & 1 ? int(kRoundFields) : int(kGeneralFields); }

}  // namespace

template <class R>
void BodyContactSolver<R>::resize(int bodies) {
  bodies_ = bodies;
  // Beyond the bodies: a record for each kind, which empty lanes load and store.
  velocity_.assign(8 * at(bodies + kKinds), R(0));
  inertia_.assign(8 * at(bodies + kKinds), R(0));
}

/// For contacts without a colour: the lowest that neither body has yet.
template <class R>
void BodyContactSolver<R>::colour() {
  const std::size_t used = colour_.size();
  used_.assign(at(bodies_), 0);
  const auto mark = [&](const BodyContact<R>& c, int colour) {
    used_[at(c.body_a)] |= 1ull << colour;
    if (c.body_b >= 0) used_[at(c.body_b)] |= 1ull << colour;
  };
  for (std::size_t i = 0; i < used; ++i) {
    if (contacts[i].colour >= 0) mark(contacts[i], contacts[i].colour);
  }
  for (std::size_t i = 0; i < used; ++i) {
    const BodyContact<R>& c = contacts[i];
    if (c.colour >= 0) continue;
    std::uint64_t taken = used_[at(c.body_a)] | 1ull << (kMaxColours - 1);
    if (c.body_b >= 0) taken |= used_[at(c.body_b)];
    const int colour = ~taken ? __builtin_ctzll(~taken) : kMaxColours - 1;
    mark(c, colour);
    colour_[i] = std::uint8_t(colour);
  }
}

/// How many contacts of each colour and kind this thread's share has.
template <class R>
void BodyContactSolver<R>::count(int thread, const ThreadTeam& team) {
  int* own = count_.data() + at(thread) * kMaxColours * kKinds;
  std::fill_n(own, kMaxColours * kKinds, 0);
  const ThreadTeam::Range range = team.share(int(colour_.size()), thread);
  for (int i = range.begin; i < range.end; ++i) {
    const BodyContact<R>& c = contacts[at(i)];
    if (c.colour >= 0) colour_[at(i)] = std::uint8_t(c.colour);
    ++own[colour_[at(i)] * kKinds + kind_of(c)];
  }
}

/// Batches by colour; each thread's count becomes the place of its first contact.
template <class R>
void BodyContactSolver<R>::lay_out(int threads) {
  constexpr int kSlots = kMaxColours * kKinds;
  colours_ = 0;
  for (int t = 0; t < threads; ++t) {
    for (int slot = kSlots - 1; slot >= colours_ * kKinds; --slot) {
      if (count_[at(t * kSlots + slot)] > 0) colours_ = slot / kKinds + 1;
    }
  }
  for (int kind = 0; kind < kKinds; ++kind) {
    Batches& b = batches_[kind];
    b.start.assign(at(colours_ + 1), 0);
    for (int colour = 0; colour < colours_; ++colour) {
      const int stride = colour == kMaxColours - 1 ? lanes_ : 1;
      int next = b.start[at(colour)] * lanes_;
      for (int t = 0; t < threads; ++t) {
        int& n = count_[at(t * kSlots + colour * kKinds + kind)];
        const int first = next;
        next += n * stride;
        n = first;
      }
      b.start[at(colour + 1)] = (next + lanes_ - 1) / lanes_;
    }
    const std::size_t places = at(b.start.back() * lanes_);
    b.contact.resize(places);
    b.body_a.resize(places);
    b.body_b.resize(places);
    b.fields.resize(places * at(fields_of(kind)));
    b.restitution.resize(places);
    // Empty lanes: at the end of each colour, and all but the first of a batch of the last colour.
    for (int colour = 0; colour < colours_; ++colour) {
      const int end = b.start[at(colour + 1)] * lanes_;
      const int from = colour == kMaxColours - 1 ? b.start[at(colour)] * lanes_
                                                 : std::max(b.start[at(colour)] * lanes_, end - lanes_);
      std::fill(b.contact.begin() + from, b.contact.begin() + end, -1);
      std::fill(b.body_a.begin() + from, b.body_a.begin() + end, bodies_ + kind);
      std::fill(b.body_b.begin() + from, b.body_b.begin() + end, bodies_ + kind);
    }
  }
}

template <class R>
void BodyContactSolver<R>::place(int thread, const ThreadTeam& team) {
  int* own = count_.data() + at(thread) * kMaxColours * kKinds;
  const ThreadTeam::Range range = team.share(int(colour_.size()), thread);
  for (int i = range.begin; i < range.end; ++i) {
    const BodyContact<R>& c = contacts[at(i)];
    const int kind = kind_of(c);
    Batches& b = batches_[kind];
    int& next = own[colour_[at(i)] * kKinds + kind];
    const std::size_t place = at(next);
    next += colour_[at(i)] == kMaxColours - 1 ? lanes_ : 1;
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
      put(kTarget, R(1));  // apart
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
    if (kind & 1) {
      put(kArmA, c.arm_a[0]);
      put(kArmB, c.arm_b[0]);
    } else {
      for (int k = 0; k < 3; ++k) put(kArmA + k, c.arm_a[k]), put(kGeneralArmB + k, c.arm_b[k]);
    }
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
          R(options.restitution_threshold)};
}

template <class R>
void BodyContactSolver<R>::prepare(const BodyContactOptions& options, ThreadTeam& team) {
  lanes_ = kernels<R>().lanes;
  impulses.resize(contacts.size());
  colour_.resize(active < 0 ? contacts.size() : at(active));
  count_.resize(at(team.size()) * kMaxColours * kKinds);
  std::atomic<bool> some_without = false;
  team.run([&](int thread) {
    const ThreadTeam::Range mine = team.share(int(colour_.size()), thread);
    for (int i = mine.begin; i < mine.end; ++i) {
      if (contacts[at(i)].colour < 0) some_without = true;
    }
    team.barrier();
    if (thread == 0 && some_without) colour();
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
      kernels<R>().prepare[kind](args(kind, r.begin, r.end, options));
    }
  });
}

template <class R>
BodyContactReport BodyContactSolver<R>::solve(const BodyContactOptions& options, ThreadTeam& team) {
  BodyContactReport report;
  report.colours = colours_;
  const ContactKernels<R>& kernel = kernels<R>();
  struct alignas(64) Worst {
    R value = 0;
  };
  std::vector<Worst> worst(at(team.size()));
  team.run([&](int thread) {
    // This thread's share of a colour, rounded to whole batches, of each kind.
    const auto each = [&](int colour, const auto& work) {
      for (int kind = 0; kind < kKinds; ++kind) {
        const Batches& b = batches_[kind];
        const int first = b.start[at(colour)], n = b.start[at(colour + 1)] - first;
        if (n == 0) continue;
        ThreadTeam::Range r = team.share(n, thread);
        if (colour == kMaxColours - 1) r = thread == 0 ? ThreadTeam::Range{0, n} : ThreadTeam::Range{0, 0};
        if (r.begin < r.end) work(kind, args(kind, first + r.begin, first + r.end, options));
      }
      team.barrier();
    };
    for (int colour = 0; colour < colours_; ++colour) {
      each(colour, [&](int kind, const ContactKernelArgs<R>& a) { kernel.warm[kind](a); });
    }
    for (int k = 0; k < options.max_iterations; ++k) {
      R largest = 0;
      for (int colour = 0; colour < colours_; ++colour) {
        each(colour, [&](int kind, const ContactKernelArgs<R>& a) {
          const R change = kernel.sweep[kind](a);
          if (!(change <= largest)) largest = change;
        });
      }
      worst[at(thread)].value = largest;
      team.barrier();
      R all = 0;  // the same on every thread
      for (const Worst& w : worst) {
        if (!(w.value <= all)) all = w.value;
      }
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
  report.finite = std::isfinite(report.change);
  return report;
}

template class BodyContactSolver<float>;
template class BodyContactSolver<double>;

}  // namespace tarsus
