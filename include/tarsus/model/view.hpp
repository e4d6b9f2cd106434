// The Model as kernels see it: plain pointers and numbers in the kernel's precision. It has only links, one joint each;
// welded bodies are merged, and hinge and slide axes are along the link's z.
#pragma once

#include "tarsus/model/link_group.hpp"

namespace tarsus {

/// Constants of one link, R = double or float.
template <class R>
struct LinkConstants {
  int parent;  ///< link index, -1 for the world; always < own index
  int root;    ///< link index of the root of its tree
  JointType joint;
  int qpos, qvel;  ///< first index of this joint in qpos, qvel
  int massless;    ///< 1: no own inertia (an inner joint of a body with several)
  int alone;       ///< 1: a free body: moves freely and carries no other link
  int depth;       ///< DoFs on the path to the world, including its own
  R E0[9];         ///< orientation of the joint's frame at rest in the parent link's frame, row major
  R r0[3];         ///< origin of the joint's frame at rest in the parent link's frame [m]
  R reference;     ///< qpos at which the joint is at rest (hinge, slide)
  R stiffness;     ///< joint spring about qpos_spring [N m/rad | N/m]
  R spring_rate2;  ///< stiffness over the inertia that the joint carries at qpos0, the largest of its DoFs [1/s²]
  R damping;       ///< [N m s/rad | N s/m]
  R mass;          ///< [kg]
  R h[3];          ///< mass * centre of mass, link frame [kg m]
  R I[6];          ///< xx xy xz yy yz zz about the link's origin, link frame [kg m²]
};

template <class R>
struct ModelView {
  int nlink, nq, nv;
  const LinkConstants<R>* link;  ///< [nlink]
  const R* armature;             ///< [nv]
  const R* qpos_spring;          ///< [nq] rest positions of the joints' springs
  R gravity[3];                  ///< [m/s²]
  int ninward;                   ///< groups of links
  const LinkGroup* inward;       ///< [ninward] all links, tips first
  // Parameters per lane, which replace those above (world_table.hpp); null: the model's.
  const R* own_inertia = nullptr;       ///< [nlink][10][lane]
  const R* own_spring_rate2 = nullptr;  ///< [nlink][lane]
  const R* own_round = nullptr;         ///< [nlink][lane]
  const R* own_damping = nullptr;       ///< [nlink][lane]
  const R* own_armature = nullptr;      ///< [nv][lane]; for a single world `armature` has it
  const R* own_gravity = nullptr;       ///< [3][lane]; for a single world `gravity` has it
};

}  // namespace tarsus
