// The k extra rows of a step's solve, which are not the inertia or stiffness of one link: bilateral rows, contacts
// between two links, paths of tendons, and the coupling of friction to the normal force u c nᵀ of a contact that slides
// on the world, which is not symmetric.
//
// They are solved by their Schur complement, through the factors of the stiffened tree at O(k d + k³)
// (dynamics/delassus.hpp), or through the elimination graph of all contacts (dynamics/coupled.hpp).
#pragma once

#include <algorithm>

#include "tarsus/constraint/bilateral_schur.hpp"
#include "tarsus/constraint/contact_place.hpp"
#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/coupled.hpp"
#include "tarsus/dynamics/dense_factors.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

template <class R>
class ExtraRows {
 public:
  explicit ExtraRows(const Model& model) : model_(model), rows_(model), u_(model.nv), column_(model.nv) {}

  /// Lays out the rows whose place does not depend on the step's forces: bilateral rows and paths.
  void lay_out(std::span<const Term> terms, const RowGeometry& geometry, const BilateralRows<R>& bilateral);
  /// As TreeOperator::begin(), after lay_out().
  void begin(BasicData<R>& data, double h);
  BilateralSchur<R>& bilateral() { return bilateral_; }

  void clear();  ///< keeps the bilateral rows alone
  /// @param active ascending; adds those marked `extra`
  void add_contacts(std::span<const ContactPlace> active, std::span<const Tangent> tangents);
  /// Adds the paths that do not act on one link alone.
  void add_paths(std::span<const Tangent> tangents, std::span<const double> force);
  int rows() const { return rows_.rows(); }
  /// Makes the bilateral rows and paths nodes of the elimination graph, instead of add_paths() and solve().
  void find_nodes(RowNodes& nodes);
  /// Writes the nodes' J and Σ: J x + Σ λ of bilateral rows, y + G J x of a path.
  void write_nodes(std::span<const Tangent> tangents, CoupledTrees& trees);
  void write_right(std::span<const double> force, std::span<double> right) const;  ///< [row]
  /// Subtracts J x + Σ λ from the right sides of bilateral rows, which leaves the rounding error of a solve.
  /// @param x [nv], whose motion the links of data have
  void take_bilateral(In<R> x, std::span<const double> impulse, std::span<double> right);
  /// Dense J of the bilateral rows [row][nv], valid until the next call.
  std::span<const double> jacobian();

  /// Corrects the solution without the extra rows, in data and x, to the one with them.
  /// @param now present bilateral impulses
  /// @param again with the factors of the last solve(), for other forces; without bilateral rows
  void solve(std::span<const Tangent> tangents, std::span<const double> force, const BilateralImpulse& now,
             BilateralImpulse& next, Out<R> x, bool again = false);
  /// Whether this term is among the rows.
  bool has(int term) const {
    return std::any_of(extras_.begin(), extras_.end(), [&](const Extra& extra) { return extra.term == term; });
  }
  /// The same through the factors of these trees. @param joint_force Q of the solution without the extra rows [nv]
  void solve(CoupledTrees& trees, std::span<const double> joint_force, std::span<const Tangent> tangents,
             std::span<const double> force, const BilateralImpulse& now, BilateralImpulse& next, Out<R> x);

 private:
  struct Extra {  ///< a contact or a path among the rows
    int term, first_row, first_unknown, nrow;
    double coupling = 0;  ///< c, of a contact that slides, turns or rolls on the world
  };
  void write_contact_rows(Extra& extra, const Tangent& tangent, const typename DelassusRows<R>::Block& block);
  template <class F>
  void each_coefficient(std::span<const Tangent> tangents, const F& f) const;
  void factor_system(std::span<const Tangent> tangents);
  void write_right_side(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_system(std::span<const Tangent> tangents, std::span<const double> force, const BilateralImpulse& now,
                    BilateralImpulse& next);

  const Model& model_;
  BasicData<R>* data_ = nullptr;
  std::span<const Term> terms_;
  RowGeometry geometry_;
  BilateralSchur<R> bilateral_;
  DelassusRows<R> rows_;  ///< bilateral ones first
  std::vector<Extra> extras_;
  std::vector<int> unknown_;  ///< [unknown] its row in rows_
  std::vector<int> path_joints_;
  AlignedVector<R> phi_, gram_, velocity_, impulse_;  ///< gram_: A; velocity_: J x; impulse_ [row]
  DenseFactors factors_;                              ///< of the system of the unknowns
  int leading_ = 0;                                   ///< leading dimension of its columns
  std::vector<double> right_;                         ///< right side, overwritten by the solution
  std::vector<double> solution_;                      ///< of the trees
  std::vector<double> jacobian_;
  AlignedVector<R> u_, column_;  ///< [nv]
};

extern template class ExtraRows<double>;
extern template class ExtraRows<float>;

}  // namespace tarsus
