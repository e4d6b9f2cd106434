// The terms of a hard step on a small model: the dense matrix of the model (dynamics/dense_trees.hpp) with the terms'
// tangents, and for sweeps the dense A = J M̂⁻¹ Jᵀ of the terms that act.
#pragma once

#include "tarsus/base/index.hpp"
#include "tarsus/constraint/dense_rows.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/dense_trees.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// The forces besides the terms that move a tree from v⁻, the velocity at the step's start, to v⁰:
///
///     v⁰ = v⁻ + M̂⁻¹ (Q - Σ J_lᵀ p_l)     (dynamics/stiffened.hpp)
///
/// Empty where x = v - v⁰, since v⁰ then contains them.
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

  /// Starts a step. The arguments must outlive this object's use.
  /// @param held J_e of bilateral rows [rows][nv]  @param diagonal Σ [rows]
  /// @param forces the forces besides the terms
  void begin(const BasicData<R>& data, In<R> joint_inertia, const TreeForces<R>& forces, std::span<const Term> terms,
             const RowGeometry& geometry, std::span<const double> held, std::span<const double> diagonal);
  /// Forms H and Q of these tangents (empty: none) and forces. @param whole includes the forces besides the terms
  /// @return Q, with zeros in the places of the bilateral rows' demands
  std::span<const double> add_tangents(std::span<const Tangent> tangents, std::span<const double> force, bool whole);
  /// Q of these forces alone, for solve() with the H of the last tangents.
  std::span<const double> right(std::span<const double> force);
  void solve(std::span<double> x);  ///< x = H⁻¹ x
  const DenseTrees& trees() const { return trees_; }

  /// Writes the rows of these terms. Rows that were written before in this step are not computed again.
  /// @param terms ascending
  void write(std::span<const int> terms, WholeRows& rows);
  /// The matrices that a DenseRows of the rows of the last write() needs.
  DenseRows::Matrices matrices(WholeRows& rows);

 private:
  struct RowsOf {  ///< of a term
    int at = -1;   ///< its first row in J_; -1: not written yet
    int first_place = 0, places = 0;
  };
  struct Known {  ///< of the first `rows` rows of J_
    int leading() const { return padded(most + 7, 8); }
    int rows = 0, most = 0;         ///< there is room for `most`
    AlignedVector<double> W;        ///< M̂⁻¹ Jᵀ [place][leading()]
    AlignedVector<double> A;        ///< J M̂⁻¹ Jᵀ [row][leading()]
    AlignedVector<double> columns;  ///< M̂⁻¹ Jᵀ of the rows that were added last [place][row, padded]
    std::vector<double> packed;     ///< J of neighbouring rows at their places
  };
  struct Written {                   ///< of write()
    std::vector<int> rows;           ///< [row] its row in J_
    AlignedVector<double> J, Jt, W;  ///< [row][dofs]; [place][row, padded]
  };
  const RowsOf& rows_of(int term);
  std::span<const int> places_of(int term) const {
    return {places_.data() + rows_of_[term].first_place, std::size_t(rows_of_[term].places)};
  }
  void solve_new_rows();
  int pair_of(std::size_t contact);
  void write_contact(int term, double* J);
  void write_joint(const JointRows& joint, double* J);
  void write_path(const PathRow& path, double* J);

  const Model& model_;
  DenseTrees trees_;
  const BasicData<R>* data_ = nullptr;
  std::span<const Term> terms_;
  RowGeometry geometry_;
  std::vector<int> pair_;  ///< [contact] its pair of links in trees_; -1: not there yet
  std::vector<RowsOf> rows_of_;
  int rows_ = 0, dofs_;      ///< rows of J_; padded to eight
  AlignedVector<double> J_;  ///< [row][dofs] of the terms requested so far
  std::vector<int> places_;  ///< DoFs at which the rows have entries
  std::vector<int> active_;  ///< terms of add_tangents()
  std::vector<DenseTerm> active_terms_;
  bool free_ = false;                   ///< add_tangents() had no tangents
  std::vector<double> forces_, right_;  ///< forces besides the terms; right side with the terms
  std::vector<int> order_;              ///< terms whose rows J_ has, in its order
  Known known_;
  Written written_;
};

extern template class DenseTerms<double>;
extern template class DenseTerms<float>;

}  // namespace tarsus
