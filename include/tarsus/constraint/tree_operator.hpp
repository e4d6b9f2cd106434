// The operator of a step's solve (solver/step_newton.hpp) for one articulated world: M̂ and the terms' rows on a tree.
//
// Tangents of terms on joints are joint-space inertia. Those of contacts with the world are stiffness added to the
// links' articulated inertias (dynamics/loaded.hpp): one pair of ABA's passes an iteration, however many there are.
// What no link's own inertia can be goes as k extra rows through the factors of that loaded tree
// (dynamics/delassus.hpp), by their Schur complement at O(k d + k³): contacts between two links, paths of tendons,
// bilateral rows, and of a contact that slides on the world the coupling of friction to the normal force, u c nᵀ, which
// is not symmetric. Where contacts make many of them, all contacts are eliminated with the joints instead
// (dynamics/coupled.hpp, decision 511); on small models, where a step is hard, all of it is one dense matrix over the
// DoFs (constraint/dense_terms.hpp, decision 512).
//
// Bilateral rows J_e v + Σ_e λ_e = b_e may depend on one another, or be next to doing so. They are solved with Σ_e
// raised by a small share of their own inverse mass, and kProximalSteps proximal steps on the same factor: rows that
// can be moved hold to rounding, what cannot be moved gets a bounded impulse.
#pragma once

#include <functional>

#include "tarsus/constraint/dense_terms.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/constraint/tree_rows.hpp"
#include "tarsus/dynamics/coupled.hpp"
#include "tarsus/dynamics/loaded.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// Equality constraints as bilateral rows. q̈ of the step satisfies J q̈ - Σ x₂ = y₂ (constrained_dynamics.hpp).
template <class R>
struct BilateralRows {
  const EqualitySet* equalities = nullptr;  ///< null: none
  In<R> qpos{};                             ///< [nq]
  In<R> demand{};                           ///< [rows] y₂
  In<R> compliance{};                       ///< [rows] Σ

  int rows() const { return equalities ? equalities->rows() : 0; }
};

template <class R>
class TreeOperator final : public StepOperator {
 public:
  /// @param dense_dofs models with so many at most go to one dense matrix where a step is hard
  explicit TreeOperator(const Model& model, int dense_dofs = 64);

  /// A step of h seconds. data holds the factors of M̂ and the state of the solve that gave q̈⁰, as maba() leaves them;
  /// the factors are lost. What is passed must live until the solve is over.
  void begin(BasicData<R>& data, double h, In<R> joint_inertia, std::span<const Term> terms,
             const RowGeometry& geometry, const BilateralRows<R>& bilateral);
  /// Whether so many operations are enough to eliminate once these contacts, or those of them that act at y, as begin()
  /// and solve() then will. It gives up where it would take several times as many, or many times in all.
  bool eliminates(std::span<const Term> terms, std::span<const ContactRows> contacts, std::span<const double> y,
                  double operations);
  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  RowBlocks& row_blocks(std::span<const int> terms) override;  // tree_rows.cpp
  void move(double t) override;
  bool sweeps_are_cheap() const override { return small_; }
  void keep() override;

  In<R> change() const { return kept_.x; }                                       ///< [nv] v - v⁰ of the best iterate
  std::span<const double> bilateral_impulse() const { return kept_.bilateral; }  ///< [rows] λ_e with it
  /// |J_e v + Σ_e λ_e - b_e| of it, the largest, and what it is to be compared with [m/s | rad/s].
  double bilateral_miss() const { return kept_.miss; }
  double bilateral_size() const { return bilateral_size_; }

 private:
  struct Extra {  ///< a contact or a path among the k rows
    int term, first_row, first_unknown, nrow;
    double coupling = 0;  ///< c, of one that slides, turns or rolls on the world
  };
  struct Iterate {
    AlignedVector<R> x;
    std::vector<double> bilateral;
    double miss = 0;
  };
  void clear_loads();
  LinkLoad<R>& load_of(int link);
  void add_joint_loads(std::span<const Tangent> tangents, std::span<const double> force);
  void add_loads(std::span<const Tangent> tangents, std::span<const double> force);
  void add_contact_forces(std::span<const double> force);
  int coupled_unknowns(std::span<const Tangent> tangents, std::span<const double> force) const;
  template <class F>
  void find_pairs(std::span<const ContactRows> contacts, const F& counts);
  bool solve_coupled(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_coupled_extra(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_extra_system(std::span<const Tangent> tangents, std::span<const double> force);
  void begin_dense();
  void solve_dense(std::span<const Tangent> tangents, std::span<const double> force);
  void settle(const std::function<void(std::span<double>)>& solve, int first_held);
  void write_jacobian();
  void begin_extra_rows();
  void add_extra_rows(std::span<const Tangent> tangents, std::span<const double> force);
  void add_paths(std::span<const Tangent> tangents, std::span<const double> force);
  void write_extra(Extra& extra, const Tangent& tangent, const typename DelassusRows<R>::Block& block);
  void write_bilateral(DelassusRows<R>& rows);
  void begin_bilateral(double h);
  void solve_extra(std::span<const Tangent> tangents, std::span<const double> force);
  void extra_system(std::span<const Tangent> tangents, std::span<const double> force);
  void read(std::span<double> change);

  const Model& model_;
  bool small_;  ///< hard steps may be dense
  BasicData<R>* data_ = nullptr;
  In<R> joint_inertia_;
  std::span<const Term> terms_;
  std::span<const ContactRows> contacts_;
  std::span<const JointRows> joints_;
  std::span<const PathRow> paths_;
  BilateralRows<R> bilateral_;
  std::vector<double> bilateral_demand_, raised_;  ///< [bilateral row] b_e - J_e v⁰; what Σ_e is raised by
  double bilateral_size_ = 0;
  bool first_ = true;
  Iterate now_, next_, kept_;
  std::vector<int> load_of_link_;
  std::vector<LinkLoad<R>> loads_;
  int loads_used_ = 0;
  DelassusRows<R> rows_;  ///< bilateral ones first
  TreeRows<R> swept_;
  std::vector<Extra> extras_;
  std::vector<int> unknown_;  ///< [unknown] its row of rows_
  std::vector<int> path_joints_;
  DenseTerms<R> dense_;
  bool dense_begun_ = false;  ///< in this step
  int solves_ = 0;            ///< with tangents, of this step
  CoupledTrees coupled_;
  std::vector<CoupledTrees::LinkPair> pairs_;  ///< of contacts
  bool acting_only_ = false;                   ///< pairs_ are those of contacts that act, not of all that are near
  double operations_ = kUnbounded, operations_left_ = kUnbounded;  ///< as given to eliminates(); of this step's
  std::vector<double> jacobian_, joint_force_;                     ///< [extra row][nv]; [nv]
  AlignedVector<R> column_;
  AlignedVector<R> phi_, gram_, row_velocity_, row_impulse_, u_;
  std::vector<double> matrix_, right_, solution_, change_;
  std::vector<int> pivot_;
};

extern template class TreeOperator<double>;
extern template class TreeOperator<float>;

}  // namespace tarsus
