// Arguments of the kernels of CoupledTrees: one step of factor() and of solve().
#pragma once

namespace tarsus {

/// Elimination of one link's joint. Blocks are [48], six rows of eight numbers.
template <class R>
struct Elimination {
  int dofs, count;                ///< of the joint; number of links that it is coupled to, the parent last
  bool child;                     ///< there is a parent
  const int* neighbour;           ///< [count][2] link, its block B_ik; B_ki is block ^ 1
  const int* pair;                ///< [count][count] B_xy
  int own, parent, parent_block;  ///< B_ii; B_pp; B_ip, -1: none
  R axis[3];                      ///< of a joint with one DoF
  int axis_at;                    ///< offset among a motion's numbers: 0 hinge, 3 slide
  R offset[3];                    ///< from the parent's origin
  const R* K;                     ///< [dofs][dofs]
  R* inverse;                     ///< [dofs][dofs] out: D⁻¹
  R *left, *right;                ///< [dofs][count][8] out: H_xq, D⁻¹ H_qy
};

/// Result of the elimination, for CoupledTrees::solve(). Forces and motions of links are rows of eight numbers, too.
template <class R>
struct CoupledJoint {
  int dofs, count;        ///< as above
  const int* neighbour;   ///< [count][2] the link, and its block
  const R* inverse;       ///< [dofs][dofs] D⁻¹
  const R *left, *right;  ///< [dofs][count][8] H_xq, D⁻¹ H_qy
};

/// The same for eight right sides at once: numbers of links are [number][8].
template <class R>
struct CoupledColumns {
  CoupledJoint<R> joint;
  int link, parent;  ///< parent -1: none
  R axis[3];         ///< as above
  int axis_at;
  R offset[3];
  R reduced[48];  ///< [dof][8] out: D⁻¹ Sᵀ f
};

}  // namespace tarsus
