// Articulated trees with stiff couplings between links, as in large contact islands, grasping hands and self-contact.
//
//     (M̂ + Σ_l J_lᵀ B_ll J_l + Σ_ab J_aᵀ B_ab J_b) x = Q + Σ_l J_lᵀ f_l
//
// J_l maps x to the motion of link l at its origin. Each B is 6 × 6. B_ab need not equal B_baᵀ, and B_ll need not be
// symmetric.
//
// The algorithm is the articulated-body algorithm on a graph. ABA eliminates a joint and propagates the articulated
// inertia of its link to the parent. Where links are coupled, the joint's unknowns also appear in the equations of the
// neighbours, and the elimination updates all of them. Let v_i = X v_p + S q and D = Sᵀ B_ii S + K. H denotes the
// coupling of q to the parent and to the neighbours k (H_qk = Sᵀ B_ik, H_kq = B_ki S, and for the parent H_qp = Sᵀ
// (B_ii X + B_ip), H_pq = (Xᵀ B_ii + B_pi) S):
//
//     B_pp += Xᵀ B_ii X + Xᵀ B_ip + B_pi X,   B_pk += Xᵀ B_ik,   B_kp += B_ki X
//     B_xy -= H_xq D⁻¹ H_qy                   over all pairs x, y of the parent and the neighbours
//
// Links at the tips are eliminated first, and among those that remain the link with the fewest neighbours. Without
// couplings the algorithm is ABA at O(nlink). For free bodies it is block elimination of a sparse matrix. Otherwise the
// cost depends on the fill.
//
// Rows with their own multiplier, such as equality constraints, are nodes of the same graph beside the links that they
// act on:
//
//     [ H   -Jᵀ ] [ x ]   [ Q ]
//     [ J    Σ  ] [ λ ] = [ d ]
//
// A node of up to six rows is eliminated like a link on the world with that many DoFs, with Σ for K, B_el = J and B_le
// = -Jᵀ. Its pivot is Σ + J H⁻¹ Jᵀ, where H⁻¹ covers the links eliminated so far. While links that the node couples
// remain, the pivot must not consist of the tiny Σ alone in any direction, because Σ⁻¹ would then act as the inertia of
// those links. Each node is therefore matched with its own floating tree: one that is eliminated and that is coupled to
// it directly or through eliminated nodes. Other nodes wait until there is such a tree or until no links remain beside
// them. (Counting directions is not sufficient: two points of a body constrain five directions, not six.)
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "tarsus/dynamics/coupled_place.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/link_rows.hpp"
#include "tarsus/dynamics/link_stiffness.hpp"

namespace tarsus {

template <class R>
struct CoupledJoint;

/// The nodes of rows: up to six rows per node, and the links that each node acts on.
class RowNodes {
 public:
  static constexpr int kRows = 6;
  void clear() { first_row_.assign(1, 0), first_link_.assign(1, 0), links_.clear(); }
  void add_link(int link);  ///< adds a link to the node that the next add() creates; may repeat
  void add(int nrow);       ///< creates a node with the next nrow rows
  int size() const { return int(first_row_.size()) - 1; }
  int rows() const { return first_row_.back(); }
  int first_row(int node) const { return first_row_[std::size_t(node)]; }
  int nrow(int node) const { return first_row(node + 1) - first_row(node); }
  int first_link(int node) const { return first_link_[std::size_t(node)]; }  ///< index among the links of all nodes
  std::span<const int> links(int node) const {
    return std::span<const int>(links_).subspan(std::size_t(first_link(node)),
                                                std::size_t(first_link(node + 1) - first_link(node)));
  }
  bool operator==(const RowNodes&) const = default;

 private:
  std::vector<int> first_row_{0}, first_link_{0}, links_;
};

class CoupledTrees {
 public:
  using LinkPair = std::array<int, 2>;
  /// Maps a motion (w, v) of one link's origin to the force (n, f) on another link's, world axes: six rows of eight
  /// numbers, the last two of which are zero.
  using Block = std::array<double, 48>;

  explicit CoupledTrees(const Model& model);
  ~CoupledTrees();

  /// Finds an order of elimination for these pairs of different links, each given once, and these rows. Does nothing if
  /// they have not changed.
  /// @param most upper bound on the multiplications of factor()
  /// @return false if factor() would exceed `most`; there is then no order
  bool analyze(std::span<const LinkPair> pairs, const RowNodes& rows = {},
               double most = std::numeric_limits<double>::infinity());
  double operations() const { return order_.operations; }  ///< approximate multiplications of factor()
  /// Sets B_ll to the links' inertias and stiffnesses and K to the joints'; everything else becomes zero. Requires
  /// prepare_stiffened() on data.
  template <class R>
  void begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const int> stiffness_of_link,
             std::span<const LinkStiffness<R>> stiffnesses);
  /// Place of the coupling of links a and b, or of a alone if b is -1. @param pair its index in analyze()'s pairs
  CoupledPlace place(int a, int b, int pair) const {
    return {a, b, b < 0 ? -1 : order_.block_of_pair[std::size_t(pair)]};
  }
  std::span<Block> blocks() { return blocks_; }  ///< blocks to add to; B_ll is block l
  double* forces() { return force_.data(); }     ///< [link][6] f_l, to add to
  /// Sets Σ of one row of a node. Call once after begin().
  void set_row(int node, int row, double sigma) { own_of(node)[std::size_t(row * (dofs_of(node) + 1))] = sigma; }
  /// Adds to a row's J its dependence on the motion of a link of its node.
  /// @param share scales the row as an equation (J); the reaction force (Jᵀ) is not scaled
  void add_to_row(int node, int row, int link, const Force<double>& wrench, double share = 1);
  /// As add_to_row(), for the row's dependence on a joint's DoFs, in qvel's axes. The node must also contain the
  /// parent.
  void add_joint_to_row(int node, int row, int link, const double* along, double share = 1);
  /// The same for a row that is not part of a node.
  void add_joint(LinkRows& rows, int link, const double* along) const;

  /// Factors the blocks, which are overwritten. Call once after the blocks are complete.
  void factor();
  /// Solves the factored system for one right side.
  /// @param with_forces include the forces that were added and those of the joints' stiffnesses
  /// @param joint_force Q [nv], or empty
  /// @param x [numbers()] in: d from first_row() on; out: each link's joint motion in world axes, angular before
  /// linear, and λ
  void solve(bool with_forces, std::span<const double> joint_force, std::span<double> x);
  /// A = J H⁻¹ Jᵀ with the factored blocks, computed eight columns at a time.
  /// @param A out: [row][stride], stride a multiple of eight
  void gram(const LinkRows& rows, double* A, int stride);
  int numbers() const { return first_row() + rows_.rows(); }
  int first_row() const { return 6 * links_; }
  /// Converts a solution to velocities and sets data.links()[l].a = J_l x.
  template <class R>
  void finish(std::span<const double> x, BasicData<R>& data, Out<R> velocity);

 private:
  struct Link {
    int parent, root, dofs, qvel;
    bool turns;      ///< about its axis; false: slides along it
    Vec3d axis{};    ///< of a hinge or a slide
    Vec3d offset{};  ///< from the parent's origin
    Mat3d R{};
  };
  struct Neighbour {
    int link, block;  ///< block B of (owning link, this link); the transpose pair is block ^ 1
  };
  struct Step {                ///< elimination of one link
    int link, first, count;    ///< range in order_.neighbour; the parent is last
    std::size_t pairs, panel;  ///< of order_.pair_block [count][count], and of left_ and right_ [dofs][count][8]
    int parent_block;          ///< B_ip, -1: the link has no coupling to its parent
  };
  struct Columns;
  std::size_t node_of(int node) const { return std::size_t(links_ + node); }
  int dofs_of(int node) const { return link_[node_of(node)].dofs; }
  std::array<double, 36>& own_of(int node) { return own_[node_of(node)]; }
  void add_nodes();
  int connect(int a, int b);
  const Neighbour* find(int a, int b) const;
  void eliminate(int link);
  std::array<double, 6> along_joint(std::size_t link, const double* f, bool with_forces, const double* Q) const;
  void inward(bool with_forces, std::span<const double> joint_force, std::span<const double> x);
  void move(std::size_t link, const double* q);
  CoupledJoint<double> coupled(const Step& step) const;
  template <class Add>
  void joint_forces(int link, const double* along, const Add& add) const;

  struct Order {  ///< elimination order, from analyze()
    bool known = false;
    double operations = 0;
    std::vector<int> block_of_pair, block_of_row;  ///< block_of_row: B_le of each link of a node
    std::vector<std::vector<Neighbour>> adjacent;  ///< of the remaining links
    std::vector<Step> steps;
    std::vector<Neighbour> neighbour;
    std::vector<int> pair_block;
    int blocks = 0;
    std::size_t panel_size = 0;
  };

  int links_;
  std::vector<LinkPair> pairs_;
  RowNodes rows_;
  Order order_;
  AlignedVector<Block> blocks_;                        ///< [link] B_ll; then pairs, in both directions
  std::vector<Link> link_;                             ///< links, then nodes of rows; so are the arrays below
  std::vector<std::array<double, 36>> own_, inverse_;  ///< [link] K and D⁻¹, [dofs][dofs]
  AlignedVector<double> left_, right_;                 ///< H_xq and D⁻¹ H_qy
  std::vector<double> force_, joint_force_, reduced_;  ///< [link][6]
  AlignedVector<double> motion_, work_;                ///< [link][8], the last two zero
  std::unique_ptr<Columns> columns_;                   ///< allocated by the first gram()
};

}  // namespace tarsus
