// Joint types: one table with the traits of each. Other code queries the traits instead of testing for types.
//
// A joint moves its link in one of four basic ways, for which kernels have code (jcalc.inl), or it is a chain of basic
// joints with massless links between them. compile() decomposes chains, so kernels, lanes and drives never see one.
#pragma once

#include <array>
#include <string_view>

#include "tarsus/math/isa.hpp"

namespace tarsus {

enum class JointType : int { free, ball, slide, hinge, planar, universal, cylindrical };

/// One joint of a chain.
struct JointPart {
  JointType type = JointType::hinge;
  int axis = 2;                  ///< 0: JointSpec::second_axis, 1: axis × second_axis, 2: JointSpec::axis
  const char* suffix = nullptr;  ///< suffix of its name
};

/// Layout: qpos holds `scalars` numbers, then for a rotation its unit quaternion w x y z. qvel holds the rates of the
/// scalars, then the angular velocity in the link's axes. After a time h the position is q + h v for scalars and q
/// exp(h ω) for rotations. The difference of two positions is q' - q, or log(q⁻¹ q'). A range bounds a scalar or the
/// angle of a rotation. A force limit bounds each scalar's force or the length of a rotation's torque.
struct JointTraits {
  JointType type = JointType::hinge;
  const char* name = "";  ///< in MJCF, recordings, reports and Python
  const char* urdf = "";  ///< in URDF, with the prefix `drake:` if <drake:joint> defines it
  int scalars = 0;        ///< number of scalar coordinates: translations [m] or angles [rad]
  int translations = 0;   ///< how many of these are translations; they come first
  bool rotation = false;  ///< has an unrestricted rotation in space
  int axes = 0;           ///< number of JointSpec's axes that it uses
  int part_count = 0;     ///< 0: not a chain
  std::array<JointPart, 3> parts{};

  constexpr int nq() const { return scalars + (rotation ? 4 : 0); }
  constexpr int nv() const { return scalars + (rotation ? 3 : 0); }
};

inline constexpr std::array<JointTraits, 7> kJointTraits{{
    {JointType::free, "free", "floating", 3, 3, true, 0},
    {JointType::ball, "ball", "spherical", 0, 0, true, 0},
    {JointType::slide, "slide", "prismatic", 1, 1, false, 1},
    {JointType::hinge, "hinge", "revolute", 1, 0, false, 1},
    // In the plane normal to `axis`: x along second_axis, y, then the angle.
    {JointType::planar,
     "planar",
     "planar",
     3,
     2,
     false,
     2,
     3,
     {{{JointType::slide, 0, "_x"}, {JointType::slide, 1, "_y"}, {JointType::hinge, 2, "_angle"}}}},
    // Two hinges at right angles: `axis` fixed in the parent, second_axis in the child.
    {JointType::universal,
     "universal",
     "drake:universal",
     2,
     0,
     false,
     2,
     2,
     {{{JointType::hinge, 2, "_first"}, {JointType::hinge, 0, "_second"}}}},
    // Along and about one axis; with a coupling equality it is a screw.
    {JointType::cylindrical,
     "cylindrical",
     "drake:cylindrical",
     2,
     1,
     false,
     1,
     2,
     {{{JointType::slide, 2, "_along"}, {JointType::hinge, 2, "_about"}}}},
}};

constexpr const JointTraits& traits(JointType type) { return kJointTraits[static_cast<unsigned>(type)]; }

// The four basic motions, on which kernels branch. Always inlined, so that they compile to comparisons.
/// All six DoFs relative to the world; only at the root.
TARSUS_INLINE constexpr bool moves_freely(JointType type) { return type == JointType::free; }
/// Unrestricted rotation about the origin: S = [R; 0].
TARSUS_INLINE constexpr bool turns_freely(JointType type) { return type == JointType::ball; }
/// Rotation about the link's z: S = [R e_z; 0].
TARSUS_INLINE constexpr bool turns_on_axis(JointType type) { return type == JointType::hinge; }
/// Translation along the link's z: S = [0; R e_z].
TARSUS_INLINE constexpr bool slides_on_axis(JointType type) { return type == JointType::slide; }
/// One DoF, about or along the link's z.
TARSUS_INLINE constexpr bool has_axis(JointType type) { return turns_on_axis(type) || slides_on_axis(type); }

/// Size of qpos of a basic joint.
TARSUS_INLINE constexpr int qpos_count(JointType type) { return moves_freely(type) ? 7 : turns_freely(type) ? 4 : 1; }
TARSUS_INLINE constexpr int qvel_count(JointType type) { return moves_freely(type) ? 6 : turns_freely(type) ? 3 : 1; }
/// Offset of the rotation within the joint's part of qpos and of qvel.
constexpr int scalar_count(JointType type) { return traits(type).scalars; }
constexpr bool has_rotation(JointType type) { return traits(type).rotation; }
constexpr const char* name(JointType type) { return traits(type).name; }

/// The traits of the named type; null if there is no such type.
constexpr const JointTraits* find_joint_type(std::string_view name) {
  for (const JointTraits& t : kJointTraits) {
    if (name == t.name) return &t;
  }
  return nullptr;
}
constexpr const JointTraits* find_urdf_joint_type(std::string_view name) {
  for (const JointTraits& t : kJointTraits) {
    if (name == t.urdf) return &t;
  }
  return nullptr;
}

/// Whether each row's index is its type, its parts add up, and qpos and qvel have the sizes that kernels assume.
constexpr bool joint_traits_agree() {
  for (unsigned i = 0; i < kJointTraits.size(); ++i) {
    const JointTraits& t = kJointTraits[i];
    if (static_cast<unsigned>(t.type) != i) return false;
    if (t.part_count == 0 && (qpos_count(t.type) != t.nq() || qvel_count(t.type) != t.nv())) return false;
    int scalars = 0, translations = 0;
    for (int k = 0; k < t.part_count; ++k) {
      const JointTraits& part = traits(t.parts[static_cast<unsigned>(k)].type);
      if (part.part_count > 0) return false;
      scalars += part.scalars, translations += part.translations;
    }
    if (t.part_count > 0 && (scalars != t.scalars || translations != t.translations)) return false;
  }
  return true;
}
static_assert(joint_traits_agree());

}  // namespace tarsus
