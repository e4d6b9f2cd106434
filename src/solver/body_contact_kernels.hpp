// The inner loops of BodyContactSolver, compiled for each instruction set, on raw arrays.
#pragma once

#include "tarsus/math/kernels.hpp"

namespace tarsus {

/// Fields of one contact point in a batch, each stored for all lanes together. prepare() reads the ones in brackets
/// from the same places.
enum ContactField : int {
  kNormal = 0,          // 3
  kTarget = 3,          // b                 [distance g]
  kCompliance = 4,      // Σ                 [ε]
  kFriction = 5,        // μ
  kInverseNormal = 6,   // ω/d_n, 0: inactive  [relative ε]
  kInverseTangent = 7,  // ω/d_t               [τ]
  kImpulseNormal = 8,
  kImpulseTangent = 9,  // 3
  kArmA = 12,           // 3, or the length at kArmA for sphere contacts
  kArmB = 13,           // sphere contacts: the length
  kRoundFields = 14,
  kGeneralArmB = 15,  // 3
  kCoupling = 18,     // 3: K n
  kGeneralFields = 21,
  kTorsional = 21,         // μ_τ
  kRolling = 22,           // μ_ρ
  kInverseTorsional = 23,  // ω/d_τ
  kInverseRolling = 24,    // ω/d_ρ
  kMoment = 25,            // 3
  kTurningFields = 28,
};

template <class R>
struct ContactKernelArgs {
  R* velocity;       ///< [8 (bodies + spare)]
  const R* inertia;  ///< [8 (bodies + spare)]
  R* fields;         ///< of the first batch
  const int *body_a, *body_b;
  const R* restitution;  ///< [batch][lane], prepare() only
  int batches;
  R dt, relaxation, restitution_threshold, deepest_step;
};

/// Functions over a run of batches of one kind: [round + 2 static], then [4 + static] with a moment. sweep returns the
/// largest |ΔP| (1/m_A + 1/m_B), squared.
template <class R>
struct ContactKernels {
  using Real = R;
  int lanes = 0;
  void (*prepare[6])(const ContactKernelArgs<R>&);
  void (*warm[6])(const ContactKernelArgs<R>&);
  R (*sweep[6])(const ContactKernelArgs<R>&);
};

}  // namespace tarsus
