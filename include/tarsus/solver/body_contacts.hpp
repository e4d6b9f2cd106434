// Contacts of free rigid bodies: projected Gauss-Seidel in graph-coloured batches, one contact point a SIMD lane.
//
// The rows are those of docs/contact.md (a normal and a disc of friction), without row storage: a contact
// is a normal n, the arms r_A and r_B from the centres of mass, and an impulse P = λ_n n + λ_t, λ_t ⊥ n.
//
//   v = (v_A + ω_A × r_A) - (v_B + ω_B × r_B),   K = ∂v/∂P (3 × 3)
//   λ_n ← max(0, λ_n - ω (n·v + Σ λ_n - b)/d_n),            d_n = nᵀ K n + Σ
//   λ_t ← disc(μ λ_n, λ_t - ω v_t/d_t),                     d_t the larger eigenvalue of K's tangential block
//
// If a material has torsional or rolling friction, a moment M = τ n + ρ, ρ ⊥ n, acts against ω_A - ω_B, with
// I_A⁻¹ + I_B⁻¹ in the place of K:
//
//   τ ← [-μ_τ λ_n, μ_τ λ_n](τ - ω n·(ω_A - ω_B)/d_τ),   ρ ← disc(μ_ρ λ_n, ρ - ω (ω_A - ω_B)_t/d_ρ)
//
// Sphere contacts (`round`: spheres about their centres of mass) have
//
//   K = (1/m_A + 1/m_B) 1 + (r_A²/I_A + r_B²/I_B)(1 - n nᵀ).
//
// λ_n then does not change v_t, and the kernel loads only eight numbers a body. [theory.md: d_n and d_t of spheres]
//
// Contacts of one colour share no body, and their order does not matter. The result therefore does not depend on the
// number of threads or lanes, except for the rounding of fused multiply-adds, which not every instruction set has.
#pragma once

#include <cstdint>
#include <vector>

#include "tarsus/base/aligned.hpp"
#include "tarsus/base/thread_team.hpp"
#include "tarsus/math/vec.hpp"
#include "tarsus/solver/term.hpp"

namespace tarsus {

template <class R>
struct ContactKernelArgs;

/// Parameters of the contact of two surfaces.
struct ContactMaterial {
  double friction = 0.5;    ///< μ >= 0, isotropic
  double restitution = 0;   ///< e in [0, 1]: v_n⁺ >= -e v_n for approaches faster than the threshold
  double compliance = 0;    ///< ε >= 0 [m/N]
  double damping_time = 0;  ///< τ >= 0 [s]; ε + τ > 0 is required for SPOOK to be stable
  double torsional = 0;     ///< μ_τ >= 0 [m]
  double rolling = 0;       ///< μ_ρ >= 0 [m]
  bool turns() const { return torsional > 0 || rolling > 0; }
};

/// λ of a contact: along the normal, and in the tangent plane [N s].
template <class R>
struct ContactImpulse {
  R normal = 0, tangent[3] = {0, 0, 0};
};

/// Torsional and rolling friction: a moment on A, world [N m s].
template <class R>
struct ContactMoment {
  R moment[3] = {0, 0, 0};
};

/// One contact point. R: float or double. The struct is kept small, since memory bandwidth bounds large scenes.
template <class R>
struct BodyContact {
  int body_a = 0, body_b = -1;  ///< -1: the world, which does not move
  int slot = -1;                ///< of a ContactGroup; -1: none, the solver colours the contact
  bool round = false;  ///< arms are -|r_A| n and |r_B| n (lengths in arm_a[0], arm_b[0]), inertias multiples of 1
  std::uint16_t material = 0;
  R normal[3];            ///< from B to A
  R arm_a[3], arm_b[3];   ///< [m] from the centre of mass to the contact point
  R distance;             ///< g [m]
  R relative_compliance;  ///< [s²]: ε += this × (inverse effective mass), the same for light and heavy bodies
};

/// Contacts that the caller has sorted into slots. Contacts of one slot share no body but the world, and neither do
/// contacts of two groups of one phase. Groups are solved slot by slot. The groups of a phase run on several threads,
/// the phases one after another; contacts without a slot come last. If a group is compact in space, its bodies stay in
/// the cache.
struct ContactGroup {
  int phase = 0;  ///< ascending
  int first_slot = 0, slots = 0;
};

struct BodyContactOptions {
  double dt = 1.0 / 60;
  int max_iterations = 10;
  double tolerance = 0;  ///< [m/s] on the largest change of relative velocity of one contact in a sweep
  double relaxation = 1;
  double restitution_threshold = 0.5;  ///< [m/s]
  double deepest_step = kUnbounded;    ///< largest penetration that one step may add [m]
  bool apply = true;  ///< the velocities lack the contacts' initial impulses; false: they are those of the last sweep
};

struct BodyContactReport {
  int iterations = 0;
  double change = 0;        ///< of the last sweep: see BodyContactOptions::tolerance [m/s]
  double first_change = 0;  ///< of the first sweep [m/s]
  int colours = 0;
};

/// Velocities of bodies, eight numbers each: vx vy vz 1/m ωx ωy ωz 1/I. (Only sphere contacts use 1/I.)
template <class R>
class BodyContactSolver {
 public:
  /// Allocates; all velocities and inverse masses are zero.
  void resize(int bodies);
  int bodies() const { return bodies_; }
  R* velocity(int body) { return velocity_.data() + 8 * std::size_t(body); }
  const R* velocity(int body) const { return velocity_.data() + 8 * std::size_t(body); }
  /// Inverse inertia about the centre of mass in world axes: xx xy xz yy yz zz, two unused. Only contacts that are not
  /// `round` read it.
  R* inverse_inertia(int body) { return inertia_.data() + 8 * std::size_t(body); }

  std::vector<BodyContact<R>> contacts;
  /// [contact] in: initial values; out: the solution. Missing ones count as zero.
  std::vector<ContactImpulse<R>> impulses;
  /// [contact] moments in and out, if any material turns(); else empty.
  std::vector<ContactMoment<R>> moments;
  int active = -1;  ///< only the first `active` contacts take part, the others keep their impulses; -1: all
  std::vector<ContactMaterial> materials;
  /// Sets the groups of the contacts' slots, which are numbered from 0 on, group by group. Call it before setting the
  /// velocities.
  void set_groups(std::vector<ContactGroup> groups);

  /// Colours the contacts and computes b, Σ and d from the velocities at the step's start. The caller then adds forces
  /// to the velocities and calls solve().
  void prepare(const BodyContactOptions& options, ThreadTeam& team);
  /// Sweeps from the contacts' initial impulses; writes velocities and impulses.
  BodyContactReport solve(const BodyContactOptions& options, ThreadTeam& team);

  /// Kinds: round or not × with the world or not; then those with a moment, with a body or with the world.
  static constexpr int kKinds = 6;

 private:
  struct Batches {                      // of one kind
    AlignedVector<R> fields;            // [batch][field][lane]
    AlignedVector<int> body_a, body_b;  // [batch][lane]
    std::vector<int> contact;           // [batch][lane], -1: empty
    AlignedVector<R> restitution;       // [batch][lane]
    std::vector<int> start;             // [slot + 1], in batches
  };
  int kind_of(const BodyContact<R>& c) const;
  void colour();
  void count(int thread, const ThreadTeam& team);
  void lay_out(int threads);
  void place(int thread, const ThreadTeam& team);
  void fill(int kind, int batch_begin, int batch_end);
  void write_back(int kind, int batch_begin, int batch_end);
  void assign_groups(int threads);
  template <class Work>
  void pass(int thread, ThreadTeam& team, const BodyContactOptions& options, const Work& work);
  ContactKernelArgs<R> args(int kind, int begin, int end, const BodyContactOptions& options);

  int bodies_ = 0, colours_ = 0, lanes_ = 1;
  int given_slots_ = 0;  // slots of groups; the solver's own colours follow
  std::vector<ContactGroup> groups_;
  std::vector<int> group_of_;   // [given slot]
  std::vector<int> thread_of_;  // [group]
  AlignedVector<R> velocity_, inertia_;
  std::vector<std::uint64_t> used_;        // [body] colours taken, all zero between calls
  std::vector<std::vector<int>> without_;  // [thread] contacts without a slot
  std::vector<char> turns_;                // [material], empty if none does
  std::vector<int> slot_;                  // [contact]
  std::vector<int> count_;                 // [thread][slot][kind] contacts; then where the thread's next one goes
  Batches batches_[kKinds];
};

extern template class BodyContactSolver<float>;
extern template class BodyContactSolver<double>;

}  // namespace tarsus
