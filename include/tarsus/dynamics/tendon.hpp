// Tendons: lengths and moment arms.
//
//   fixed     l = Σ c_i q_i                                         over hinges and slides
//   spatial   l = Σ |p_{k+1} - p_k| / divisor                       over the points of a path, with arcs around geoms
//
// A path goes through sites. Between two sites it may wrap around a sphere or a cylinder. It then runs straight where
// the line misses the geom, and otherwise tangentially around it, on the side of the side site. If the side site is
// inside the geom, the path touches the geom from within. A pulley divides all subsequent lengths. The moment arm is J
// = ∂l/∂q. Because the path is locally shortest, only the motion of its end points matters; the motion of the tangent
// points has no first-order effect. The definitions are MuJoCo's.
#pragma once

#include <functional>
#include <span>

#include "tarsus/dynamics/frame.hpp"

namespace tarsus {

struct Tendon {
  std::string name;
  struct Term {
    int qpos, dof;
    double coefficient;
  };
  std::vector<Term> terms;  ///< of a fixed tendon; at most one per DoF
  struct Point {
    TendonSpec::PathKind kind;
    LinkFrame frame;  ///< frame of the site or of the wrapped geom
    double radius = 0;
    bool cylinder = false, has_side = false;
    LinkFrame side;
    double divisor = 1;
  };
  std::vector<Point> path;  ///< of a spatial tendon
  std::vector<int> dofs;    ///< DoFs that the length depends on, ascending
  int first = 0;            ///< index of its first moment arm among those of all tendons
  // Passive law. Coefficients of disabled springs and dampers are zero. Units: N and m, or N m and rad.
  std::array<double, 3> stiffness{}, damping{};  ///< of x, x², x³ and of v, |v| v, |v|² v
  std::array<double, 2> spring_length{};         ///< dead band of the spring [m | rad]
  double armature = 0;                           ///< [kg | kg m²]
  bool limited = false;
  std::array<double, 2> range{};  ///< of the length [m | rad]
  double margin = 0;              ///< distance from the end of the range at which the range begins to act [m | rad]
  double friction_loss = 0;       ///< dry friction [N | N m]
  bool force_limited = false;
  std::array<double, 2> force_range{};  ///< limits on the total actuator force along it [N | N m]
  Location where;

  bool is_elastic() const { return stiffness != std::array<double, 3>{} || damping != std::array<double, 3>{}; }
  /// Force of spring and damper [N | N m], positive in the direction of increasing length.
  double passive_force(double length, double velocity) const;
  double spring_energy(double length) const;  ///< [J]
  /// -∂force/∂l and -∂force/∂l̇, clamped to be non-negative.
  double stiffness_at(double length) const;
  double damping_at(double velocity) const;
  bool passive() const;
};

/// The tendons of a model with all references resolved.
class TendonSet {
 public:
  /// Without tendons.
  TendonSet() = default;
  /// @throws InputError naming an object that a tendon refers to and that does not exist, or a geom that a path cannot
  /// wrap around
  static TendonSet of(const Model& model);

  int size() const { return int(tendons_.size()); }
  int arms() const { return arms_; }  ///< total over all tendons
  bool spatial() const { return spatial_; }
  const Tendon& operator[](int i) const { return tendons_[i]; }

 private:
  void add(const Model& model, const TendonSpec& spec);
  std::vector<Tendon> tendons_;
  int arms_ = 0;
  bool spatial_ = false;
};

/// Computes lengths [m | rad] and moment arms ∂l/∂q. Spatial tendons require kinematics(qpos) in `links`.
/// @param qpos [nq]  @param length out: [size]  @param arm out: [arms] tendon t's from its `first`, over its `dofs`
/// @param row [nv] scratch, zero before and after  @throws ShapeError
void tendon_lengths(const Model& model, const TendonSet& tendons, const LinkState<double>* links,
                    std::span<const double> qpos, std::span<double> length, std::span<double> arm,
                    std::span<double> row);

/// Σ |∂²l/∂q_i²| / inertia_i of a spatial tendon; zero for a fixed one. A tension T turns with the tendon and is a
/// spring across it; T times this bounds about the largest ω² [1/(m kg)]. `links` as after kinematics().
/// @param inertia [nv] that each DoF carries  @throws ShapeError
double tendon_bend(const Model& model, const Tendon& tendon, const LinkState<double>* links,
                   std::span<const double> inertia);

/// J̇ q̇ of each tendon: zero for fixed tendons; for spatial ones the central difference of J q̇ along q̇ (error near
/// 1e-9).
/// @param work a workspace of the model; afterwards it has the kinematics of other configurations
/// @param out [size] [m/s² | rad/s²]  @throws ShapeError
void tendon_bias(const Model& model, const TendonSet& tendons, Data& work, std::span<const double> qpos,
                 std::span<const double> qvel, std::span<double> out);

/// Of a change of a length, what the joints make of it if a force along the length moves them half of the way to the
/// pose in which the length is extremal (by the secant rule). All of it where no such pose is near: what is beyond the
/// extremum cannot be reached, and the joints stop there.
/// @param wanted change of the length  @param most_turn largest turn of a joint that is looked ahead [rad | m]
/// @param inertia [nv] that each DoF carries  @param slope [nv] ∂l/∂q; out: a turn of the joints
/// @param change_ahead change of the length by a turn [nv], to first order, at the pose that it leads to
double reachable_change(double wanted, double most_turn, std::span<const double> inertia, std::span<double> slope,
                        const std::function<double(std::span<const double>)>& change_ahead);

/// Change of a tendon's length by `turn` [nv] (to first order) at the pose qpos ⊞ turn.
/// @param work a workspace of the model; afterwards it has the kinematics of that pose  @throws ShapeError
double tendon_change_ahead(const Model& model, const Tendon& tendon, Data& work, std::span<const double> qpos,
                           std::span<const double> turn);

/// Path from x0 to x1 around a sphere or cylinder: the two tangent points, and the length between them along the
/// surface. A negative length means that the straight line misses the geom. All in the geom's frame. @param side null:
/// the shorter way around
struct WrapResult {
  double length = -1;
  Vec3d first, second;
};
WrapResult wrap_path(const Vec3d& x0, const Vec3d& x1, double radius, bool cylinder, const Vec3d* side);

}  // namespace tarsus
