// Articulated trees whose links bear on one another, as in piles, hands that hold and bodies that touch themselves.
//
//     (M̂ + Σ_l J_lᵀ B_ll J_l + Σ_ab J_aᵀ B_ab J_b) x = Q + Σ_l J_lᵀ f_l
//
// J_l is the motion of link l at its origin, each B 6 × 6. B_ab need not be B_baᵀ, nor B_ll symmetric.
//
// It is the articulated-body algorithm on a graph. ABA eliminates a joint and hands what its link carries to the
// parent; where links bear on one another, the joint's unknowns stand in their equations as well, and what is handed on
// goes to all of them. With v_i = X v_p + S q, D = Sᵀ B_ii S + K and H what couples q to the parent and the neighbours
// k (H_qk = Sᵀ B_ik, H_kq = B_ki S, and for the parent H_qp = Sᵀ (B_ii X + B_ip), H_pq = (Xᵀ B_ii + B_pi) S):
//
//     B_pp += Xᵀ B_ii X + Xᵀ B_ip + B_pi X,   B_pk += Xᵀ B_ik,   B_kp += B_ki X
//     B_xy -= H_xq D⁻¹ H_qy                   over all pairs x, y of the parent and the neighbours
//
// Tips come first, and of what is left the link with the fewest neighbours. Without neighbours it is ABA at O(nlink);
// free bodies are block elimination of a sparse matrix; between the two, the cost is that of the fill.
//
// Rows with an impulse of their own, as equality constraints have, are nodes of the same graph, beside the links that
// they act on:
//
//     [ H   -Jᵀ ] [ x ]   [ Q ]
//     [ J    Σ  ] [ λ ] = [ d ]
//
// A node of up to six rows is eliminated as a link of so many DoFs on the world, with Σ for K, B_el = J and B_le = -Jᵀ.
// Its pivot is Σ and J H⁻¹ Jᵀ of what is eliminated. Along no direction may that be Σ alone, which is next to nothing,
// while links that it couples are left: Σ⁻¹ would be their inertia. So each node has a floating tree to itself, one
// that is eliminated and that it, or nodes that are eliminated, join to it; others wait until there is one, or no links
// are left beside them. (To count directions is not enough: two points of a body have five, not six.)
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

/// Where rows act that are nodes beside links: up to six rows each, and the links of each.
class RowNodes {
 public:
  static constexpr int kRows = 6;
  void clear() { first_row_.assign(1, 0), first_link_.assign(1, 0), links_.clear(); }
  void add_link(int link);  ///< of the node that add() makes next; any number of times
  void add(int nrow);       ///< that node: the next rows
  int size() const { return int(first_row_.size()) - 1; }
  int rows() const { return first_row_.back(); }
  int first_row(int node) const { return first_row_[std::size_t(node)]; }
  int nrow(int node) const { return first_row(node + 1) - first_row(node); }
  int first_link(int node) const { return first_link_[std::size_t(node)]; }  ///< among all links of nodes
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
  /// From a motion (w, v) of one link's origin to the force (n, f) on another's, world axes: six rows of eight numbers,
  /// of which the last two are zero.
  using Block = std::array<double, 48>;

  explicit CoupledTrees(const Model& model);
  ~CoupledTrees();

  /// The order of elimination for these pairs of different links, each given once, and these rows; nothing where they
  /// are as before.
  /// @param most multiplications of factor() that are not too many  @return false: it would take more, and there is no
  /// order
  bool analyze(std::span<const LinkPair> pairs, const RowNodes& rows = {},
               double most = std::numeric_limits<double>::infinity());
  double operations() const { return order_.operations; }  ///< multiplications of factor(), about
  /// B_ll = the links' inertias and stiffnesses, K and the joints' stiffnesses; all else zero. data: after
  /// prepare_stiffened().
  template <class R>
  void begin(const BasicData<R>& data, In<R> joint_inertia, std::span<const int> stiffness_of_link,
             std::span<const LinkStiffness<R>> stiffnesses);
  /// Of links a and b, or of a alone where b is -1. @param pair its place in what was given to analyze()
  CoupledPlace place(int a, int b, int pair) const {
    return {a, b, b < 0 ? -1 : order_.block_of_pair[std::size_t(pair)]};
  }
  std::span<Block> blocks() { return blocks_; }  ///< to be added to; B_ll is block l
  double* forces() { return force_.data(); }     ///< [link][6] f_l, to be added to
  /// Σ of row `row` of a node, once after begin().
  void set_row(int node, int row, double sigma) { own_of(node)[std::size_t(row * (dofs_of(node) + 1))] = sigma; }
  /// Adds to a row's J what it is of the motion of a link of its node. @param share of it, that is looked at; what it
  /// pulls with is all of it
  void add_to_row(int node, int row, int link, const Force<double>& wrench, double share = 1);
  /// The same of what it is along a joint's DoFs, in qvel's axes; its node has the parent as well.
  void add_joint_to_row(int node, int row, int link, const double* along, double share = 1);
  /// The same of a row that is no node.
  void add_joint(LinkRows& rows, int link, const double* along) const;

  /// Once after the blocks are complete; they are lost.
  void factor();
  /// What the blocks that were factored make of a right side.
  /// @param with_forces with the forces that were added and those of the joints' stiffnesses @param joint_force Q [nv]
  /// or empty
  /// @param x [numbers()] in: d from first_row() on; out: each link's numbers along its joint, world axes, angular
  ///   before linear, and λ
  void solve(bool with_forces, std::span<const double> joint_force, std::span<double> x);
  /// A = J H⁻¹ Jᵀ of the blocks that were factored, eight columns at a time. @param A out: [row][stride], stride a
  /// multiple of eight
  void gram(const LinkRows& rows, double* A, int stride);
  int numbers() const { return first_row() + rows_.rows(); }
  int first_row() const { return 6 * links_; }
  /// Such numbers as velocities; data.links()[l].a = J_l of them.
  template <class R>
  void finish(std::span<const double> x, BasicData<R>& data, Out<R> velocity);

 private:
  struct Link {
    int parent, root, dofs, qvel;
    bool turns;      ///< about its axis, or slides along it
    Vec3d axis{};    ///< of a hinge or a slide
    Vec3d offset{};  ///< from the parent's origin
    Mat3d R{};
  };
  struct Neighbour {
    int link, block;  ///< B of (link that has it, this one); the other way round: block ^ 1
  };
  struct Step {                ///< the elimination of one link
    int link, first, count;    ///< of order_.neighbour; the parent comes last
    std::size_t pairs, panel;  ///< of order_.pair_block [count][count], and of left_ and right_ [dofs][count][8]
    int parent_block;          ///< B_ip, -1: the link does not bear on its parent
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
  Force<double> joint_force(const Link& joint, const double* along) const;

  struct Order {  ///< of the elimination, as analyze() found it
    bool known = false;
    double operations = 0;
    std::vector<int> block_of_pair, block_of_row;  ///< block_of_row: of a node's link, B_le
    std::vector<std::vector<Neighbour>> adjacent;  ///< of links that are left
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
  AlignedVector<Block> blocks_;                        ///< [link] B_ll; then pairs, both ways
  std::vector<Link> link_;                             ///< then nodes of rows, here and below
  std::vector<std::array<double, 36>> own_, inverse_;  ///< [link] K and D⁻¹, [dofs][dofs]
  AlignedVector<double> left_, right_;                 ///< H_xq and D⁻¹ H_qy
  std::vector<double> force_, joint_force_, reduced_;  ///< [link][6]
  AlignedVector<double> motion_, work_;                ///< [link][8], the last two zero
  std::unique_ptr<Columns> columns_;                   ///< once gram() was asked for
};

}  // namespace tarsus
