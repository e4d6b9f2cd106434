// Armature of tendons: a mass a that moves with the length l(q) of each,
//
//     M += Σ a Jᵀ J,   C += Σ a Jᵀ J̇ q̇                                                  [MuJoCo, "Tendon armature"]
//
// It joins branches that no joint joins, so that it is in no tree's passes: dynamics.hpp's functions are without it,
// and steps take it as rows (sim/servo.hpp). What is here adds it to their results, for one world, in double.
#pragma once

#include <vector>

#include "tarsus/dynamics/tendon.hpp"

namespace tarsus {

class TendonInertia {
 public:
  /// Keeps a reference to the model. @throws InputError as TendonSet::of
  explicit TendonInertia(const Model& model);
  /// Some tendon of the model has armature.
  static bool any(const Model& model);

  /// Moment arms at qpos [nq] and, unless qvel [nv] is empty, J̇ q̇, with that world's mocap bodies.
  template <class R>
  void evaluate(const BasicData<R>& data, int world, std::span<const double> qpos, std::span<const double> qvel);

  /// M [nv][nv] of the last evaluate().
  void add_mass(std::span<double> mass_matrix) const;
  /// a (J q̈ + J̇ q̇) of one tendon [N]: what its own inertia takes of the pull.
  double force(int tendon, std::span<const double> qacc) const;
  /// tau [nv] += Σ a Jᵀ (J q̈ + J̇ q̇); qacc [nv], or empty: zero.
  void add_force(std::span<const double> qacc, std::span<double> tau) const;
  /// x [nv] becomes M⁻¹ x at the last evaluate() by Woodbury's identity. M may be regular through tendons alone, as
  /// where two hinges have one axis.
  void minv(std::span<double> x);
  /// aba() of the tree with its tendons, qacc [nv], likewise. @param external as aba()
  void accelerate(std::span<const double> qvel, std::span<const double> tau, std::span<const double> external,
                  std::span<double> qacc);

 private:
  /// What a tree with the inertia K in its joints lacks along J: a tendon's armature, or -K of a DoF.
  struct Lack {
    double inertia;
    std::span<const int> dofs;
    std::span<const double> arm;
    double bias;  ///< J̇ q̇
  };
  struct Answers {  ///< of that tree, [nv] to a unit of force along each lack; (1/a + J W Jᵀ), factored
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
  Answers answers_;         ///< without lacks: to be made
};

}  // namespace tarsus
