// Joint types: the one table of what each of them is. Other code asks these traits, not for types.
//
// A joint moves its link in one of four ways, for which kernels have code (jcalc.inl), or is a chain of such joints
// with massless links between them, which compile() makes of it: kernels, lanes and drives never meet a chain.
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
  const char* suffix = nullptr;  ///< of its name
};

/// qpos holds `scalars` numbers, then, of a rotation, its unit quaternion w x y z; qvel the rates of the former, then
/// the angular velocity in the link's axes. A time h later the position is q + h v of scalars, q exp(h ω) of rotations;
/// the difference of two is q' - q, log(q⁻¹ q'). A range bounds a scalar, or the angle of a rotation; a force limit
/// bounds each scalar's force, or the length of a rotation's torque.
struct JointTraits {
  JointType type = JointType::hinge;
  const char* name = "";  ///< in MJCF, in recordings and reports, in Python
  const char* urdf = "";  ///< in URDF, `drake:` before it where <drake:joint> has it
  int scalars = 0;        ///< coordinates that each are a number: translations [m] or angles [rad]
  int translations = 0;   ///< of them, the first ones that are translations
  bool rotation = false;  ///< a rotation in space, at will
  int axes = 0;           ///< how many of JointSpec's axes it has
  int part_count = 0;     ///< 0: it is no chain
  std::array<JointPart, 3> parts{};

  constexpr int nq() const { return scalars + (rotation ? 4 : 0); }
  constexpr int nv() const { return scalars + (rotation ? 3 : 0); }
};

inline constexpr std::array<JointTraits, 7> kJointTraits{{
    {JointType::free, "free", "floating", 3, 3, true, 0},
    {JointType::ball, "ball", "spherical", 0, 0, true, 0},
    {JointType::slide, "slide", "prismatic", 1, 1, false, 1},
    {JointType::hinge, "hinge", "revolute", 1, 0, false, 1},
    // In the plane that `axis` is normal to: x along second_axis, y, then the angle.
    {JointType::planar,
     "planar",
     "planar",
     3,
     2,
     false,
     2,
     3,
     {{{JointType::slide, 0, "_x"}, {JointType::slide, 1, "_y"}, {JointType::hinge, 2, "_angle"}}}},
    // Two hinges that cross at right angles: `axis` fixed in the parent, second_axis in the child.
    {JointType::universal,
     "universal",
     "drake:universal",
     2,
     0,
     false,
     2,
     2,
     {{{JointType::hinge, 2, "_first"}, {JointType::hinge, 0, "_second"}}}},
    // Along and about one axis; with a coupling, a screw.
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

// The four ways of moving, as kernels branch on them; always inlined, so that they compile as comparisons do.
/// By all six DoFs, against the world: only at the root, so that nothing below feels it.
TARSUS_INLINE constexpr bool moves_freely(JointType type) { return type == JointType::free; }
/// By a rotation at will about its origin: S = [R; 0].
TARSUS_INLINE constexpr bool turns_freely(JointType type) { return type == JointType::ball; }
/// About the link's z: S = [R e_z; 0].
TARSUS_INLINE constexpr bool turns_on_axis(JointType type) { return type == JointType::hinge; }
/// Along the link's z: S = [0; R e_z].
TARSUS_INLINE constexpr bool slides_on_axis(JointType type) { return type == JointType::slide; }
/// One DoF, about or along the link's z.
TARSUS_INLINE constexpr bool has_axis(JointType type) { return turns_on_axis(type) || slides_on_axis(type); }

/// Of a link's joint, which is no chain.
TARSUS_INLINE constexpr int qpos_count(JointType type) { return moves_freely(type) ? 7 : turns_freely(type) ? 4 : 1; }
TARSUS_INLINE constexpr int qvel_count(JointType type) { return moves_freely(type) ? 6 : turns_freely(type) ? 3 : 1; }
/// Where a rotation begins, in the joint's part of qpos and of qvel alike.
constexpr int scalar_count(JointType type) { return traits(type).scalars; }
constexpr bool has_rotation(JointType type) { return traits(type).rotation; }
constexpr const char* name(JointType type) { return traits(type).name; }

/// The traits of that name, null if there are none.
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

/// Every row stands where its type points, its parts add up, and qpos and qvel have the sizes that kernels take.
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
