// The k rows of a step's solve that no link's own inertia can be: bilateral rows, contacts between two links, paths of
// tendons, and of a contact that slides on the world the coupling of friction to the normal force, u c nᵀ, which is not
// symmetric. They are solved by their Schur complement, through the factors of the stiffened tree at O(k d + k³)
// (dynamics/delassus.hpp), or of the graph of all contacts (dynamics/coupled.hpp).
#pragma once

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

  /// Where rows are that do not depend on the step's forces: bilateral ones and paths.
  void lay_out(std::span<const Term> terms, const RowGeometry& geometry, const BilateralRows<R>& bilateral);
  /// As TreeOperator::begin(), after lay_out().
  void begin(BasicData<R>& data, double h);
  BilateralSchur<R>& bilateral() { return bilateral_; }

  void clear();  ///< the bilateral rows alone
  /// @param acting ascending: those marked `extra` are added
  void add_contacts(std::span<const ContactPlace> acting, std::span<const Tangent> tangents);
  /// Those that are not on one link.
  void add_paths(std::span<const Tangent> tangents, std::span<const double> force);
  int rows() const { return rows_.rows(); }
  /// The bilateral rows and paths as nodes of the graph, in the place of add_paths() and solve().
  void find_nodes(RowNodes& nodes);
  /// Their J and Σ: J x + Σ λ of bilateral rows, y + G J x of a path.
  void write_nodes(std::span<const Tangent> tangents, CoupledTrees& trees);
  void write_right(std::span<const double> force, std::span<double> right) const;  ///< [row] out
  /// Takes J x + Σ λ of bilateral rows from their right sides: what rounding in a solve has left.
  /// @param x [nv], of which data's links have the motion
  void take_bilateral(In<R> x, std::span<const double> impulse, std::span<double> right);
  /// J of them, dense [row][nv], until the next call.
  std::span<const double> jacobian();

  /// The solution without them, in data and x, becomes that with them. @param now what bilateral rows hold by so far
  void solve(std::span<const Tangent> tangents, std::span<const double> force, const BilateralImpulse& now,
             BilateralImpulse& next, Out<R> x);
  /// The same through the factors of these trees. @param joint_force Q of the solution without them [nv]
  void solve(CoupledTrees& trees, std::span<const double> joint_force, std::span<const Tangent> tangents,
             std::span<const double> force, const BilateralImpulse& now, BilateralImpulse& next, Out<R> x);

 private:
  struct Extra {  ///< a contact or a path among the rows
    int term, first_row, first_unknown, nrow;
    double coupling = 0;  ///< c, of one that slides, turns or rolls on the world
  };
  void write_contact_rows(Extra& extra, const Tangent& tangent, const typename DelassusRows<R>::Block& block);
  void write_system(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_system(std::span<const Tangent> tangents, std::span<const double> force, const BilateralImpulse& now,
                    BilateralImpulse& next);

  const Model& model_;
  BasicData<R>* data_ = nullptr;
  std::span<const Term> terms_;
  RowGeometry geometry_;
  BilateralSchur<R> bilateral_;
  DelassusRows<R> rows_;  ///< bilateral ones first
  std::vector<Extra> extras_;
  std::vector<int> unknown_;  ///< [unknown] its row of rows_
  std::vector<int> path_joints_;
  AlignedVector<R> phi_, gram_, velocity_, impulse_;  ///< gram_: A; velocity_: J x; impulse_ [row]
  DenseFactors factors_;                              ///< of the unknowns' system
  int leading_ = 0;                                   ///< of its columns and its right side
  std::vector<double> right_;                         ///< becomes the solution
  std::vector<double> solution_;                      ///< of the trees
  std::vector<double> jacobian_;
  AlignedVector<R> u_, column_;  ///< [nv]
};

extern template class ExtraRows<double>;
extern template class ExtraRows<float>;

}  // namespace tarsus
