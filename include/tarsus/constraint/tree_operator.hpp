// The operator of a step's solve (solver/step_newton.hpp) for one articulated world: M̂ with the tangents of the terms'
// rows on a tree.
//
// Four solvers share the work:
//
// - Tangents of terms on joints are joint-space inertia. Tangents of contacts with the world are stiffness, added to
//   the links' articulated inertias (dynamics/stiffened.hpp). An iteration then costs one pair of ABA passes, whatever
//   the number of contacts.
// - k extra rows, which are not the inertia or stiffness of one link, are solved by their Schur complement through the
//   factors of the stiffened tree, at O(k d + k³) (constraint/extra_rows.hpp).
// - Where contacts make many extra rows, all contacts are eliminated together with the joints (dynamics/coupled.hpp,
//   decision 511). Bilateral rows and paths are eliminated as well where they join many trees.
// - In hard steps of small models, everything is one dense matrix over the DoFs (constraint/dense_terms.hpp,
//   decision 512).
#pragma once

#include <algorithm>

#include "tarsus/constraint/contact_place.hpp"
#include "tarsus/constraint/dense_terms.hpp"
#include "tarsus/constraint/extra_rows.hpp"
#include "tarsus/constraint/tree_rows.hpp"
#include "tarsus/dynamics/coupled.hpp"
#include "tarsus/dynamics/stiffened.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// Contact stiffness of the links that have one, as solve_stiffened() takes it.
template <class R>
class LinkStiffnesses {
 public:
  explicit LinkStiffnesses(int links) : of_link_(links, -1), stiffness_(links) {}
  void clear() { used_ = 0, std::fill(of_link_.begin(), of_link_.end(), -1); }
  /// Index of that link's stiffness.
  int at(int link) {
    int& stiffness = of_link_[link];
    if (stiffness < 0) stiffness_[stiffness = used_++].clear();
    return stiffness;
  }
  LinkStiffness<R>& operator[](int link) { return stiffness_[at(link)]; }
  LinkStiffness<R>* data() { return stiffness_.data(); }
  std::span<const int> of_link() const { return of_link_; }
  std::span<const LinkStiffness<R>> all() const { return stiffness_; }

 private:
  std::vector<int> of_link_;
  std::vector<LinkStiffness<R>> stiffness_;
  int used_ = 0;
};

inline constexpr int kDenseDofs = 64, kManyTrees = 32, kWholeRows = 2048;

template <class R>
class TreeOperator final : public StepOperator {
 public:
  /// @param dense_dofs models with at most this many DoFs use one dense matrix in hard steps
  /// @param many_trees with at least this many trees, bilateral rows are nodes of the elimination graph
  /// @param whole_rows at most this many rows are swept over one matrix
  explicit TreeOperator(const Model& model, int dense_dofs = kDenseDofs, int many_trees = kManyTrees,
                        int whole_rows = kWholeRows);

  /// Starts a step of h seconds with x = v - v⁰. data holds the factors of M̂, qacc = q̈⁰ and the links' motion under
  /// it, as maba() leaves them; solves overwrite both. The arguments must live until the solve is over.
  /// @param joint_force if not empty [nv]: x = v - v⁻ with the velocity v⁻ at the step's start. data is then as
  /// VelocityProducts::begin_step() leaves it, without the effect of its bias forces and of joint_force. Not with
  /// bilateral rows
  void begin(BasicData<R>& data, double h, In<R> joint_inertia, std::span<const Term> terms,
             const RowGeometry& geometry, const BilateralRows<R>& bilateral, In<R> joint_force = {});
  void restart();  ///< the same problem from x = 0
  /// Moves x = 0 from v⁻ to v⁰. @param change J (v⁰ - v⁻), or empty  @return v⁰ - v⁻
  In<R> settle(std::span<double> change);
  /// Writes J v of the terms for a velocity v [nv] to `rate`. Overwrites the links' a.
  void rates(In<R> v, std::span<double> rate);
  /// Whether `operations` are enough to eliminate these contacts once, or those that act at y, together with the
  /// bilateral rows, as begin() and solve() then will. solve() refuses an elimination that takes several times as many
  /// operations, and further ones once a step has taken many times as many in all.
  bool eliminates(std::span<const Term> terms, const RowGeometry& geometry, const BilateralRows<R>& bilateral,
                  std::span<const double> y, double operations);
  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override {
    return solve(forces_, tangents, force, change);
  }
  bool takes_changes() const override { return bilateral().at.empty(); }
  bool may_drift() const override { return sizeof(R) != sizeof(double); }
  void has_drifted() override { of_step_.exact = true; }
  bool solve_change(std::span<const Tangent> tangents, std::span<const double> force,
                    std::span<double> change) override;
  bool solve_again(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  RowBlocks& row_blocks(std::span<const int> terms) override;
  StepOperator* reduced(std::span<const int> terms) override;
  void take_bodies() override { swept_.write_change(*data_, iterates_.next.x), iterates_.move(1); }
  SweepKind sweeps() const override;
  double sliding_share() const override;
  void move(double t) override { iterates_.move(t); }
  void keep() override { iterates_.kept = iterates_.now; }

  In<R> change() const { return iterates_.kept.x; }                               ///< [nv] x of the best iterate
  const BilateralImpulse& bilateral() const { return iterates_.kept.bilateral; }  ///< of the best iterate
  bool is_between(const ContactRows& contact) const;                              ///< of two trees

 private:
  struct Iterate {
    AlignedVector<R> x;
    BilateralImpulse bilateral;
  };
  struct Places {                        ///< of contacts
    std::vector<ContactPlace> three;     ///< with three rows
    std::vector<ContactPlace> active;    ///< not idle, by find_active()
    std::vector<ContactPlace> on_links;  ///< active ones with three rows, on the world
    std::vector<CoupledPlace> coupled;   ///< of active ones
    int unknowns = 0;                    ///< number of extra rows that the active ones would make
    int rows = 0;                        ///< number of rows of active ones
  };
  struct Operations {
    double given = kUnbounded, left = kUnbounded;  ///< limit of eliminates(); what is left in this step
  };
  struct Graph {
    CoupledTrees all, still;                    ///< still: without contacts, for solves without tangents
    CoupledTrees free;                          ///< without terms, to read their rows
    bool free_factored = false;                 ///< in this step
    std::vector<CoupledTrees::LinkPair> pairs;  ///< of contacts
    bool active_only = false;                   ///< pairs: of contacts that act, not of all that are near
    bool many_trees = false, one_tree = false;
    RowNodes nodes;                   ///< bilateral rows and paths, where there are many trees
    RowNodes of_free;                 ///< bilateral rows and paths, for any number of trees
    LinkRows rows;                    ///< of terms that are swept
    std::vector<double> joint_force;  ///< [nv]
    std::vector<double> left;         ///< residual of a right side
    explicit Graph(const Model& model) : all(model), still(model), free(model) {}
  };
  struct Iterates {
    Iterate now, next, kept;
    bool first = true;  ///< no iterate yet
    void move(double t);
  };
  void add_row_stiffness(std::span<const Tangent> tangents, std::span<const double> force);
  void add_stiffness(std::span<const Tangent> tangents, std::span<const double> force);
  void add_contact_forces(std::span<const double> force, bool between_links = true);
  void find_active(std::span<const Tangent> tangents, std::span<const double> force);
  template <class F>
  void find_pairs(std::span<const ContactRows> contacts, const F& counts);
  void lay_out(std::span<const Term> terms, const RowGeometry& geometry, const BilateralRows<R>& bilateral);
  bool has_nodes() const { return graph_.nodes.size() > 0; }
  void add_contact_blocks(std::span<const Tangent> tangents, std::span<const double> force);
  CoupledTrees& factor_free();
  bool is_of_bodies(const ContactRows& contact) const;
  /// Whether the matrix of rows comes from the graph. If not, it comes from the dense matrix, whose solves lose no
  /// digits in float.
  bool by_graph() const { return !small_ || (wide_ && sizeof(R) == sizeof(double) && bilateral().at.empty()); }
  void add_rows(int term, const CoupledTrees& trees);
  void write_whole(std::span<const int> terms);
  bool find_order(std::span<const Tangent> tangents, std::span<const double> force);
  bool solve(const TreeForces<R>& forces, std::span<const Tangent> tangents, std::span<const double> force,
             std::span<double> change);
  bool solve_coupled(const TreeForces<R>& forces, std::span<const Tangent> tangents, std::span<const double> force);
  void solve_tree(const TreeForces<R>& forces, std::span<const Tangent> tangents, std::span<const double> force);
  void begin_dense();
  void solve_dense(const TreeForces<R>& forces, std::span<const Tangent> tangents, std::span<const double> force);
  void read(std::span<double> change);

  const Model& model_;
  bool small_;  ///< hard steps may be dense
  bool wide_;   ///< joints have two DoFs or more on average
  BasicData<R>* data_ = nullptr;
  In<R> joint_inertia_;
  std::span<const Term> terms_;
  RowGeometry geometry_;
  Places places_;
  Iterates iterates_;
  LinkStiffnesses<R> stiffness_;
  ExtraRows<R> extra_;
  TreeRows<R> swept_;
  DenseTerms<R> dense_;
  struct {
    int most;           ///< largest number of rows with one matrix
    WholeRows rows;     ///< the rows of that matrix
    DenseRows reduced;  ///< the operator on these rows alone
  } whole_;
  enum class Factors { none, tree, dense };
  struct {
    Factors factors = Factors::none;  ///< of the last solve's tangents, for solve_again()
    bool dense = false;               ///< this step uses the dense matrix
    bool exact = false;               ///< this step must use it at any size: elimination in R has lost digits
    int solves = 0;                   ///< number of solves with tangents
    bool hard_is_dense = false;       ///< as the last of these solves decided
  } of_step_;
  TreeForces<R> forces_, none_;  ///< none_: no forces
  std::vector<double> solution_;
  Graph graph_;
  Operations operations_;
};

extern template class TreeOperator<double>;
extern template class TreeOperator<float>;

}  // namespace tarsus
