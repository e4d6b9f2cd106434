// Equality constraints in the form that kernels read.
#pragma once

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

/// Constants of one constraint, R = double or float. Links are Model::carrier()s; -1: the world. Indices beyond the
/// model's links are mocap bodies, whose poses follow the links' in a workspace. Points and frames are in the links'
/// frames.
template <class R>
struct EqualityConstants {
  EqualityKind kind;
  int first_row, nrow;
  int a, b;        ///< links
  bool swapped;    ///< a is the world or a mocap body: the block's first link is b
  bool to_world;   ///< connect, weld: b is the world and F_b, if any, its axes
  bool in_group;   ///< also in an EqualityGroup
  R pa[3], pb[3];  ///< [m]
  R Ra[9], Rb[9];  ///< weld: frames that coincide when it holds
  R scale;         ///< weld: torquescale; distance: length [m]
  R share;         ///< connect, weld: ½ between two links of the model (the forces act half way), else 0
  R normal[3];     ///< point_on_plane: unit, in b's frame
  R polynomial[5];
  R reference_a, reference_b;
  int qa, qb, va, vb;  ///< joint: indices in qpos and qvel; -1: none
};

constexpr int kGroup = 4;

/// Connects or welds, all to the world (to_world) or all between two links, that a scalar world evaluates in SIMD
/// lanes. Arrays are [..][constraint]; those beyond `count` repeat the first.
template <class R>
struct EqualityGroup {
  bool weld, to_world;
  int count;
  int index[kGroup], first_row[kGroup], a[kGroup], b[kGroup];
  R pa[3][kGroup], pb[3][kGroup], Ra[9][kGroup], Rb[9][kGroup], scale[kGroup], share[kGroup];
};

template <class R>
struct EqualityList {
  const EqualityConstants<R>* all;
  int count;
  const EqualityGroup<R>* groups;
  int group_count;
};

/// Where a constraint's forces are written: its block of DelassusRows.
template <class R>
struct RowTarget {
  R* force;  ///< [12][stride]
  R* joint;  ///< [2][stride]
  int stride;
};

}  // namespace tarsus
