// Constraint rows in terms of ABA's factors: Λ⁻¹ = J M̂⁻¹ Jᵀ without forming M̂⁻¹ Jᵀ.
//
// ABA factors M̂⁻¹ = L⁻ᵀ D⁻¹ L⁻¹. Its inward pass is u = L⁻¹ y and its outward pass is x = L⁻ᵀ D⁻¹ u. A row r is a
// force on one or two links (and possibly on joints). It needs only its inward pass, W_r = L⁻¹ J_rᵀ, which is zero off
// the branches between its links and the root:
//
//   Λ⁻¹_rs = W_rᵀ D⁻¹ W_s              over the joints that the branches of both rows share
//   J_r v  = W_rᵀ D⁻¹ u                for v = M̂⁻¹ y with u = L⁻¹ y: a row's velocity, at O(d)
//   u     += W_r λ                     effect of an impulse λ along the row, at O(d)
//   v      = L⁻ᵀ D⁻¹ u                 once, at the end: outward()
//
// A solver can therefore work in u space, where every row is sparse and M̂⁻¹ is block diagonal, without traversing the
// tree. DW = D⁻¹ W is stored beside W, so the solver does not need D. u is indexed like qvel, except that rotations of
// ball and free joints are in world axes. All of this holds for M̂ = M + K as well as for M.
//
// Data's workspace must hold the factors of the last aba(), maba() or factor() (dynamics.hpp).
// [Featherstone 2008, ch. 7; Featherstone 2010]
#pragma once

#include <span>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// u = L⁻¹ y, at O(nlink). M̂⁻¹ y is outward(inward(y)). Shapes and errors as in dynamics.hpp: y, u and x have nv
/// numbers per world.
template <class R>
void inward(const Model& model, BasicData<R>& data, In<R> y, Out<R> u);

/// x = L⁻ᵀ D⁻¹ u, at O(nlink). x may alias u.
template <class R>
void outward(const Model& model, BasicData<R>& data, In<R> u, Out<R> x);

/// Reads u = L⁻¹ (Q - C) of the last aba() or maba(); outward(u) is qacc.
template <class R>
void read_u(const Model& model, const BasicData<R>& data, Out<R> u);

/// The number of rows in a block is padded to a multiple of this width, so that adjacent rows fill SIMD vectors.
/// Returns 1 in a batch, where each number is a pack of worlds. @param worlds_width lanes of the data
template <class R>
int row_width(int worlds_width);

/// A run of DoFs that two blocks share: its start in the list of each block, and its length.
struct RowOverlap {
  int first, second, count;
};

/// Constraint rows in blocks; the rows of a block act on the same links. The list may be rebuilt each step; it
/// allocates nothing unless it grows beyond its earlier size. Arrays are [index][row], with `stride` numbers per index
/// (in a batch: packs of width() numbers).
template <class R>
class DelassusRows {
 public:
  /// Keeps a reference to the model. @param width lanes of the data: 1, or lanes<R>(isa_level()) for a batch
  explicit DelassusRows(const Model& model, int width = 1);

  struct Block {
    int first_row = 0, nrow = 0, stride = 0;
    int a = -1, b = -1;          ///< links; -1: the world
    std::span<const int> links;  ///< joints on the paths to the root(s), in descending order
    std::span<const int>
        dofs;  ///< [ndof] DoFs of those joints, in the order of W's indices; the rest of u is not affected
    R* force =
        nullptr;  ///< [12][stride], filled by the caller: (n, f) on a at a's origin, then on b at b's, world axes
    R* joint =
        nullptr;  ///< [2][stride] entries at the first DoF of joints a and b; or [ndof][stride]; null unless requested
    R *W = nullptr, *DW = nullptr;  ///< [ndof][stride], set by sweep(); padding rows are zero if their force is
  };

  void clear();
  void keep(int blocks);  ///< keeps only the first `blocks` blocks, unchanged
  /// Adds rows that are forces on one or two links. b may be -1; a and b may be equal or on the same branch. With
  /// `joint`, the rows also have entries at the first DoF of joint a and of joint b (not if a == b).
  /// @return the block's index. All pointers of earlier Blocks become invalid.
  /// @throws ValueError for a link out of range or nrow < 1
  int add_block(int a, int b, int nrow, bool joint = false);
  /// Adds rows in joint space for the given joints. Block::joint is [ndof][stride], in qvel's axes; force is null.
  /// @throws ValueError for a joint out of range or nrow < 1
  int add_joint_block(std::span<const int> joints, int nrow);

  int blocks() const { return int(blocks_.size()); }
  int rows() const { return rows_; }
  int width() const { return width_; }
  Block block(int index);
  /// Of blocks i <= j, what gram() sums over for each pair of their rows.
  std::span<const RowOverlap> overlaps(int i, int j);

  /// Computes W and DW of every block from the factors in data's workspace of that pack, at O(d) per row. The result
  /// for a block does not depend on the other blocks. @throws ValueError if data has another width or another model
  void sweep(const Model& model, const BasicData<R>& data, int pack = 0);
  /// J of one block: out [ndof][stride], in the layout of its W but in qvel's axes. Single world.
  void jacobian(const Model& model, const BasicData<R>& data, int index, R* out);
  /// Λ⁻¹ = J M̂⁻¹ Jᵀ, [rows][ld] in row-major order with ld >= leading_dimension(). Only the upper triangle is set;
  /// entries below it and beyond column rows() are undefined. O(d) for each pair of rows whose branches meet, nothing
  /// for others.
  void gram(R* A, int ld);
  int leading_dimension() const;  ///< rows() + one vector: room for a right side in column rows()
  /// Upper triangle of Λ⁻¹ among the rows of one block: [nrow][stride]. Single world.
  void own_gram(int block, R* A) const;
  void diagonal(Out<R> A) const;  ///< diagonal of Λ⁻¹ [rows]; single world
  /// J v from u, [rows].
  void velocity(const R* u, R* Jv);
  void velocity(int block, const R* u, R* Jv) const;  ///< of one block
  /// J v [rows] for v in qvel's axes. LinkState::a of data's links must hold the motion of v. Single world.
  void velocity_of(const BasicData<R>& data, In<R> v, Out<R> Jv) const;
  /// u += sign W λ.
  void push(const R* lambda, R* u, R sign = 1) const;
  void push(int block, const R* lambda, R* u, R sign = 1) const;  ///< of one block

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
  std::size_t used_ = 0;  ///< of W_ and DW_, which do not shrink: sweep() writes all of them
  std::vector<Entry> blocks_;
  std::vector<int> links_, dofs_;
  std::vector<char> found_;  ///< [link] scratch, zero before and after
  AlignedVector<R> force_, joint_, W_, DW_, scratch_;
  // Overlaps of the first known_ blocks, kept by clear() for the next list if it begins with blocks on the same links.
  int known_ = 0;
  std::vector<int> known_links_, known_start_{0};  // [known_ + 1]
  std::vector<RowOverlap> shared_;
  std::vector<int> shared_start_{0};  // [pairs + 1], pairs p <= q column by column
};

extern template class DelassusRows<double>;
extern template class DelassusRows<float>;

}  // namespace tarsus
