// Armature of tendons: a mass a that moves with the tendon's length l(q),
//
//     M += Σ a Jᵀ J,   C += Σ a Jᵀ J̇ q̇                                                  [MuJoCo, "Tendon armature"]
//
// It couples branches that no joint connects, so the passes over a tree cannot include it. The functions of
// dynamics.hpp omit it, and steps treat it as rows (sim/servo.hpp). TendonInertia adds it to their results, for one
// world, in double.
#pragma once

#include <vector>

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

class TendonInertia {
 public:
  /// Keeps a reference to the model. @throws InputError as TendonSet::of
  explicit TendonInertia(const Model& model);
  /// Whether a tendon of the model has armature.
  static bool any(const Model& model);

  /// Computes moment arms at qpos [nq] and, unless qvel [nv] is empty, J̇ q̇, with the mocap bodies of this world of
  /// data. The following functions refer to this state.
  template <class R>
  void evaluate(const BasicData<R>& data, int world, std::span<const double> qpos, std::span<const double> qvel);

  /// Adds Σ a Jᵀ J of the last evaluate() to M [nv][nv].
  void add_mass(std::span<double> mass_matrix) const;
  /// a (J q̈ + J̇ q̇) of one tendon [N]: the part of its force that accelerates its armature.
  double force(int tendon, std::span<const double> qacc) const;
  /// tau [nv] += Σ a Jᵀ (J q̈ + J̇ q̇).  @param qacc [nv], or empty: zero
  void add_force(std::span<const double> qacc, std::span<double> tau) const;
  /// Replaces x [nv] by M⁻¹ x at the last evaluate(), using Woodbury's identity. M may be regular only because of the
  /// tendons, for example where two hinges share an axis.
  void minv(std::span<double> x);
  /// aba() of the tree with its tendons, at the last evaluate(): computes qacc [nv]. @param external as in aba()
  void accelerate(std::span<const double> qvel, std::span<const double> tau, std::span<const double> external,
                  std::span<double> qacc);

 private:
  /// Difference along J between M and a tree with the inertia K in its joints: a tendon's armature, or -K of a DoF.
  struct Lack {
    double inertia;
    std::span<const int> dofs;
    std::span<const double> arm;
    double bias;  ///< J̇ q̇
  };
  struct Answers {  ///< accelerations of that tree, [nv] per unit force along each lack; (1/a + J W Jᵀ), factored
    std::vector<double> K;
    std::vector<Lack> lacks;
    std::vector<double> columns, schur, force;
    std::vector<int> pivot;
  };
  static double along(std::span<const int> dofs, std::span<const double> arm, std::span<const double> v);
  std::vector<double> tree_inertia() const;
  void make_answers();
  void correct(bool biased, std::span<double> qacc);

  const Model& model_;
  TendonSet tendons_;
  Data work_;
  std::vector<double> qpos_, length_, arm_, bias_, row_;
  std::vector<int> every_;  ///< 0 to nv - 1
  Answers answers_;         ///< no lacks: not computed yet
};

}  // namespace tarsus
