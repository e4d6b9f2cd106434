// Constraint rows seen through ABA's factors: Λ⁻¹ = J M̂⁻¹ Jᵀ without M̂⁻¹ Jᵀ.
//
// ABA factors M̂⁻¹ = L⁻ᵀ D⁻¹ L⁻¹: its inward pass is u = L⁻¹ y, its outward pass x = L⁻ᵀ D⁻¹ u. A row r, a force on one
// or two links (and perhaps on joints), therefore needs its own inward pass only, W_r = L⁻¹ J_rᵀ, which is zero off the
// branches between its links and the root:
//
//   Λ⁻¹_rs = W_rᵀ D⁻¹ W_s              over the joints that both rows' branches share
//   J_r v  = W_rᵀ D⁻¹ u                for v = M̂⁻¹ y with u = L⁻¹ y: a row's velocity, read in O(d)
//   u     += W_r λ                     an impulse λ along the row, felt in O(d)
//   v      = L⁻ᵀ D⁻¹ u                 once, at the end: outward()
//
// So a solver may live in u space, where every row is sparse and M̂⁻¹ is block diagonal, and never touch the tree. DW =
// D⁻¹ W is kept beside W, so that it need not know D either. u is indexed as qvel, but rotations of ball and free
// joints are in world axes. All of it holds for M̂ = M + K as well as for M.
//
// A data's workspace must hold factors: those of the last aba(), maba() or factor() (dynamics.hpp). [Featherstone 2008,
// ch. 7; Featherstone 2010]
#pragma once

#include <span>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// u = L⁻¹ y, O(nlink). With it, M̂⁻¹ y is outward(inward(y)).
template <class R>
void inward(const Model& model, BasicData<R>& data, In<R> y, Out<R> u);

/// x = L⁻ᵀ D⁻¹ u, O(nlink). x may be u.
template <class R>
void outward(const Model& model, BasicData<R>& data, In<R> u, Out<R> x);

/// The u of the last aba() or maba(), L⁻¹ (Q - C): u with outward(u) = qacc.
template <class R>
void read_u(const Model& model, const BasicData<R>& data, Out<R> u);

/// Numbers that a block's rows are padded to a multiple of: rows side by side fill the processor's vectors. In a batch
/// a number is a pack of worlds, and nothing is padded.
template <class R>
int row_width(int worlds_width);

/// A run of DoFs that two blocks share: where it begins in the list of each.
struct RowOverlap {
  int first, second, count;
};

/// Rows in blocks; a block's rows act on the same links. The list may be made anew each step: nothing is
/// allocated once it has been as large before. Arrays are [index][row] with `stride` numbers from index to index (in a
/// batch: packs of width() numbers).
template <class R>
class DelassusRows {
 public:
  explicit DelassusRows(const Model& model, int width = 1);

  struct Block {
    int first_row = 0, nrow = 0, stride = 0;
    int a = -1, b = -1;          ///< links; -1: the world
    std::span<const int> links;  ///< the joints on the way to the root(s), descending
    std::span<const int>
        dofs;  ///< [ndof] of those joints, in the order of W's indices; all of u elsewhere is untouched
    R* force =
        nullptr;  ///< [12][stride] for the caller to fill: (n, f) on a at a's origin, then on b at b's, world axes
    R* joint =
        nullptr;  ///< [2][stride] entries at the first DoF of joints a and b; or [ndof][stride]; null if not asked for
    R *W = nullptr, *DW = nullptr;  ///< [ndof][stride] by sweep(); rows of padding are zero if their force is
  };

  void clear();
  void keep(int blocks);  ///< the first of them alone, as they are
  /// Rows that are forces on one link or on two. b may be -1; a and b may be equal, or on one branch. With `joint`:
  /// also entries at the first DoF of joint a and of joint b (not where a == b).
  /// @return the block's index. All pointers of earlier Blocks become invalid.
  int add_block(int a, int b, int nrow, bool joint = false);
  /// Rows in joint space that touch the given joints; Block::joint is [ndof][stride], in qvel's own axes, and force is
  /// null.
  int add_joint_block(std::span<const int> joints, int nrow);

  int blocks() const { return int(blocks_.size()); }
  int rows() const { return rows_; }
  int width() const { return width_; }
  Block block(int index);
  /// Of blocks i <= j, what gram() sums over for each pair of their rows.
  std::span<const RowOverlap> overlaps(int i, int j);

  /// W and DW of every block from the factors in data's workspace of that pack. O(d) a row. Block by block the same
  /// numbers whatever other blocks there are.
  void sweep(const Model& model, const BasicData<R>& data, int pack = 0);
  /// J itself, for inspection: out [ndof][stride] of one block, laid out as its W but in qvel's own axes. Single world.
  void jacobian(const Model& model, const BasicData<R>& data, int index, R* out) const;
  /// Λ⁻¹ = J M̂⁻¹ Jᵀ, [rows][ld] row by row with ld >= leading_dimension(); the upper triangle only, what lies below it
  /// and right of column rows() is undefined. O(d) a pair of rows whose branches meet, nothing for others.
  void gram(R* A, int ld);
  int leading_dimension() const;  ///< rows() + a vector: room for a right side in column rows()
  /// Λ⁻¹ of one block's own rows, the upper triangle likewise: [nrow][stride]. Single world.
  void own_gram(int block, R* A) const;
  void diagonal(Out<R> A) const;  ///< of Λ⁻¹ [rows]. Single world
  /// J v from u, [rows].
  void velocity(const R* u, R* Jv);
  void velocity(int block, const R* u, R* Jv) const;  ///< of one block [its rows]
  /// J v [rows] of v in qvel's axes, of which data's links have the motion, LinkState::a. Single world.
  void velocity_of(const BasicData<R>& data, In<R> v, Out<R> Jv) const;
  /// u += sign W λ.
  void push(const R* lambda, R* u, R sign = 1) const;
  void push(int block, const R* lambda, R* u, R sign = 1) const;  ///< of one block [its rows]

 private:
  struct Entry {
    int a = -1, b = -1, first_row = 0, nrow = 0, stride = 0, nlink = 0, ndof = 0;
    bool pair = false, joint = false;
    std::size_t links = 0, dofs = 0, force = 0, joints = 0, W = 0;  // offsets
  };
  int append(Entry entry);
  void climb(int a, int b);
  void find_shared();

  const Model& model_;
  ModelView<R> view_;
  int width_, pad_, rows_ = 0;
  std::vector<Entry> blocks_;
  std::vector<int> links_, dofs_, order_;
  AlignedVector<R> force_, joint_, W_, DW_, scratch_;
  // Of the first known_ blocks, which clear() keeps for the next list that begins with blocks on the same links.
  int known_ = 0;
  std::vector<int> known_links_, known_start_{0};  // [known_ + 1]
  std::vector<RowOverlap> shared_;
  std::vector<int> shared_start_{0};  // [pairs + 1], pairs p <= q column by column
};

extern template class DelassusRows<double>;
extern template class DelassusRows<float>;

}  // namespace tarsus
