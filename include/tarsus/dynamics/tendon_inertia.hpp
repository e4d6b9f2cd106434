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
  /// qacc [nv] of the tree alone under some forces becomes that with the tendons, whose moving takes part of these. At
  /// rest M⁻¹ x of the tree becomes M⁻¹ x. (Woodbury's identity.)
  void correct(std::span<double> qacc);

 private:
  struct Answers {  ///< of the tree, [nv] to a unit of force of each tendon with armature; (1/a + J M₀⁻¹ Jᵀ), factored
    bool made = false;
    std::vector<int> tendons;
    std::vector<double> columns, schur, force;
    std::vector<int> pivot;
  };
  double along(const Tendon& tendon, std::span<const double> v) const;
  void make_answers();

  const Model& model_;
  TendonSet tendons_;
  Data work_;
  std::vector<double> qpos_, length_, arm_, bias_, row_;
  Answers answers_;
};

}  // namespace tarsus
