// The terms of a hard step on a small model: its dense matrix (dynamics/dense_trees.hpp) with their tangents, and for
// sweeps the dense A = J M̂⁻¹ Jᵀ of those that act.
#pragma once

#include "tarsus/constraint/dense_rows.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/dense_trees.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// What moves a tree in a step besides its terms, and has not yet where x = v - v⁻, v⁻ the velocity at its start:
/// v⁰ = v⁻ + M̂⁻¹ (Q - Σ J_lᵀ p_l) (dynamics/stiffened.hpp). Where x = v - v⁰: nothing.
template <class R>
struct TreeForces {
  AlignedVector<R> joint, bias;  ///< Q [nv]; p [njoint][6], or empty
  bool any() const { return !bias.empty(); }
  void clear(int nv) { joint.assign(std::size_t(nv), R(0)), bias.clear(); }
};

template <class R>
class DenseTerms {
 public:
  explicit DenseTerms(const Model& model);

  /// A step. What is passed must live as long as this is used. @param held J_e [rows][nv] @param diagonal Σ [rows]
  /// @param forces what moves the tree besides the terms
  void begin(const BasicData<R>& data, In<R> joint_inertia, const TreeForces<R>& forces, std::span<const Term> terms,
             const RowGeometry& geometry, std::span<const double> held, std::span<const double> diagonal);
  /// H and Q of these tangents, or of none, and forces. @param whole with what moves the tree besides
  /// @return Q, with zeros where rows held have their demands
  std::span<const double> add_tangents(std::span<const Tangent> tangents, std::span<const double> force, bool whole);
  void solve(std::span<double> x);  ///< x = H⁻¹ x
  const DenseTrees& trees() const { return trees_; }

  /// The rows of these terms. @param terms ascending
  void write(std::span<const int> terms, WholeRows& rows);
  /// And what a DenseRows of them needs.
  DenseRows::Matrices matrices(WholeRows& rows) { return {rows, own_J_.data(), own_Jt_.data(), W_.data(), model_.nv}; }

 private:
  struct RowsOf {  ///< a term
    int at = -1;   ///< its first of J_, -1: not there yet
    int first_place = 0, places = 0;
  };
  const RowsOf& rows_of(int term);
  int pair_of(std::size_t contact);
  void write_contact(int term, double* J);
  void write_joint(const JointRows& joint, double* J);
  void write_path(const PathRow& path, double* J);

  const Model& model_;
  DenseTrees trees_;
  const BasicData<R>* data_ = nullptr;
  std::span<const Term> terms_;
  RowGeometry geometry_;
  std::vector<int> pair_;  ///< [contact] its pair of links in trees_, -1: not there yet
  std::vector<RowsOf> rows_of_;
  int rows_ = 0, dofs_;      ///< of J_; padded to eight
  AlignedVector<double> J_;  ///< [row][dofs] of terms as they are asked for
  std::vector<int> places_;  ///< at which rows have numbers
  std::vector<int> acting_;  ///< terms of add_tangents()
  std::vector<DenseTerm> acting_terms_;
  bool free_ = false;                     ///< add_tangents() had none
  std::vector<double> forces_, right_;    ///< what moves the tree besides the terms; with them
  AlignedVector<double> own_J_, own_Jt_;  ///< of write(): [row][dofs]; [place][row, padded]
  AlignedVector<double> W_;               ///< M̂⁻¹ Jᵀ [place][row, padded]
};

extern template class DenseTerms<double>;
extern template class DenseTerms<float>;

}  // namespace tarsus
