// Rows of terms in the form that sweeps use (solver/sweeps.hpp).
//
// The motion of a free body is six numbers: v and ω about the point at which they are not coupled. A contact between
// such bodies is a block of its own. It reads the velocity at its point and adds M̂⁻¹ times its impulse to its two
// bodies; no row is stored.
//
// Rows on trees live in the u space of ABA's factors (dynamics/delassus.hpp), where a row has entries on its path to
// the root alone. It reads J x = D⁻¹ Wᵀ u, and an impulse λ adds W λ to u. A contact of a tree with a free body has
// both.
//
// Bilateral rows are restored after each sweep, through an elimination graph that has them as nodes.
#pragma once

#include <vector>

#include "tarsus/constraint/row_geometry.hpp"
#include "tarsus/dynamics/coupled.hpp"
#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/solver/sweeps.hpp"

namespace tarsus {

template <class R>
class TreeRows final : public RowBlocks {
 public:
  explicit TreeRows(const Model& model);

  /// Removes all rows. @return the list to which the bilateral rows are to be written
  DelassusRows<R>& clear();
  /// Keeps those bilateral rows satisfied. data has the factors of M̂.
  /// @param diagonal Σ
  /// @param trees graph with the rows as its first nodes, factored without terms; both must outlive their use
  void hold(const BasicData<R>& data, std::span<const double> diagonal, CoupledTrees& trees);
  /// Writes the rows of these terms, with x = 0. The arguments must outlive the rows' use. @param terms ascending
  void write(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms);

  /// Whether the link is the world, or a free body without children.
  bool is_alone(int link) const { return link < 0 || alone_[link]; }
  bool one_tree(int a, int b) const { return root_[a] == root_[b]; }

  int blocks() const override { return int(blocks_.size()); }
  int terms(int block) const override { return blocks_[block].terms; }
  const ContactRows* point(int block) const override {
    return blocks_[block].rows < 0 ? &points_[blocks_[block].point] : nullptr;
  }
  std::array<int, 2> bodies_of(int block) const override {
    if (blocks_[block].point < 0) return {-1, -1};
    return {points_[blocks_[block].point].a, points_[blocks_[block].point].b};
  }
  void own_mass(int block, double* A, int stride) override;
  void rest() override;
  void extrapolate(const Extrapolation& by) override;
  void velocity(int block, double* Jx) override;
  void push(int block, const double* change) override;
  bool holds() const override { return bilateral_.trees != nullptr; }
  void hold() override;
  /// Writes the bodies' motions, over their DoFs, to x [nv]; all others are at rest.
  void write_change(const BasicData<R>& data, Out<R> x) const;

 private:
  struct Block {
    int terms;
    int rows = -1;   ///< block of rows_, if it acts on trees
    int point = -1;  ///< index in points_, of a contact that acts on bodies
  };
  struct Extrapolated {  ///< the values before an extrapolation, and its increments
    AlignedVector<R> u, u_by;
  };
  struct Bilateral {  ///< bilateral rows, by a graph of trees
    CoupledTrees* trees = nullptr;
    std::span<const double> diagonal;  ///< Σ
    struct Block {
      typename DelassusRows<R>::Block rows;
      bool on_trees;  ///< it acts on more than free bodies
    };
    std::vector<Block> blocks;
    std::vector<double> solution;
    AlignedVector<R> rows, impulse, impulse_before,
        impulse_by;  ///< [row]; before an extrapolation, and its increments
  };
  void find_bodies(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms);
  void write_contacts(const RowGeometry& geometry, std::span<const int> terms);
  void write_contact(const ContactRows& contact);
  void write_joints(const BasicData<R>& data, const RowGeometry& geometry, std::span<const int> terms);
  void add_motions(const typename DelassusRows<R>::Block& block, double* Jx) const;
  bool take_body(const LinkState<R>& link, std::size_t i);

  const Model& model_;
  std::vector<int> root_;  ///< [link] of its tree
  std::vector<char> alone_,
      is_body_;  ///< [link] alone_: a free joint without children; is_body_: alone, with contacts as its only rows
  std::vector<Vec3d> centre_;  ///< [link] of a body, from its origin
  std::vector<Block> blocks_;
  std::vector<ContactRows> points_;
  DelassusRows<R> rows_;
  int bilateral_blocks_ = 0;
  Bilateral bilateral_;
  std::vector<int> joints_;
  AlignedVector<R> u_, row_;  ///< row_: scratch
  Extrapolated extrapolated_;
};

extern template class TreeRows<double>;
extern template class TreeRows<float>;

}  // namespace tarsus
