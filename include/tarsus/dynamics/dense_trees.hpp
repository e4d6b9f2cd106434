// Dynamics of small models with one dense matrix over their degrees of freedom.
//
//     (M̂ + Σ_t J_tᵀ G_t J_t) x - J_eᵀ λ = Q,   J_e x + Σ λ = d
//
// G need not be symmetric. M̂ is assembled once per step; the J_tᵀ G_t J_t of the terms are added to a copy. Contacts
// take their rows from J_ab, the motion of link a minus the motion of link b at a's origin, or of a alone without b.
//
// The unknowns are in the order of elimination: tips first, bilateral rows last. Factoring M̂ therefore causes no fill,
// and zeros are skipped. The method is the sparse LᵀDL factorisation of a tree [Featherstone 2005] with columns as
// vectors, and dense where contacts couple branches.
#pragma once

#include <span>
#include <vector>

#include "tarsus/base/aligned.hpp"
#include "tarsus/dynamics/dense_factors.hpp"
#include "tarsus/dynamics/dense_term.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

class DenseTrees {
 public:
  explicit DenseTrees(const Model& model);

  /// Sets M̂ of this state and removes all pairs. Requires prepare_stiffened() on data. @param joint_inertia K of M̂
  /// [nv]
  /// @param rows J_e, [bilateral rows][nv] in qvel's axes @param diagonal Σ [bilateral rows]
  template <class R>
  void begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const double> rows,
             std::span<const double> diagonal);
  /// Adds Q - Σ J_lᵀ p_l. @param bias p_l [link][6], moment first @param right [leading]
  template <class R>
  void add_forces(In<R> joint_force, In<R> bias, std::span<double> right);
  int size() const { return size_; }        ///< unknowns: nv plus bilateral rows
  int leading() const { return leading_; }  ///< length of a right side or solution, padded with zeros
  int place(int dof) const { return model_.nv - 1 - dof; }
  int place_of_row(int row) const { return model_.nv + row; }

  /// Adds J_ab. @param b -1: J_a alone  @return its index
  int add_pair(int a, int b);
  /// The six rows of a pair, angular first, `leading` numbers each. places() lists their non-zero columns, ascending.
  const double* rows(int pair) const { return jacobian_.data() + pairs_[std::size_t(pair)].rows; }
  std::span<const int> places(int pair) const;

  /// Resets H to M̂ without terms.
  void clear();
  /// Adds Jᵀ G J to H and Jᵀ force to right, for each term. @param columns of each J, a multiple of eight @param right
  /// [leading]
  void add(std::span<const DenseTerm> terms, int columns, double* right);
  void factor();                                          ///< factors H, once it is complete
  void solve(std::span<double> x) const { H_.solve(x); }  ///< x = H⁻¹ x [leading]
  void solve_free(std::span<double> x);                   ///< x = M̂⁻¹ x, with the bilateral rows
  /// X = M̂⁻¹ X for `columns` right sides, a multiple of eight. @param X [size][columns], row-major
  void solve_free(std::span<double> X, int columns);

  /// Returns x in qvel's axes and sets data.links()[l].a = J_l x.
  template <class R>
  void finish(std::span<const double> solution, BasicData<R>& data, Out<R> x) const;

 private:
  struct Link {
    int parent, first_dof, dofs;
    Vec3d offset{};  ///< from the parent's origin
  };
  struct Pair {
    std::size_t rows = 0;  ///< offset in jacobian_
    int first_place = 0, places = 0;
  };
  double& mass(int row, int column) { return mass_[std::size_t(column) * std::size_t(leading_) + std::size_t(row)]; }
  void add_mass(std::size_t link);
  void write_branch(int link, double sign, Vec3d arm, double* rows);
  void factor_free();

  const Model& model_;
  int size_ = 0, leading_ = 0;
  std::vector<Link> links_;
  std::vector<Motion<double>> axis_;             ///< [dof] S at its link's origin
  std::vector<RigidInertia<double>> composite_;  ///< [link]
  std::vector<Vec3d> origin_;                    ///< [link] [m]
  std::vector<Force<double>> force_;             ///< [link] scratch of add_forces()
  AlignedVector<double> mass_, jacobian_, product_;
  DenseFactors H_, free_;
  bool free_factored_ = false;
  std::vector<Pair> pairs_;
  std::vector<int> places_;
  std::vector<char> seen_;
};

}  // namespace tarsus
