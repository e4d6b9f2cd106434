// Tendons: lengths and moment arms.
//
//   fixed     l = Σ c_i q_i                                         over hinges and slides
//   spatial   l = Σ |p_{k+1} - p_k| / divisor                       over the points of a path, with arcs around geoms
//
// A path goes through sites. Between two of them it may wrap around a sphere or a cylinder: along a straight line where
// that does not meet the geom, else tangent to it, around the side that the side site names. A side site inside the
// geom makes the path touch it from within. A pulley divides all lengths that follow. The moment arm is J = ∂l/∂q; the
// path is a shortest one on its side, so that only the moving of its points counts, not that of the points of contact.
// MuJoCo's definitions, so that numbers compare.
#pragma once

#include "tarsus/dynamics/frame.hpp"

namespace tarsus {

struct Tendon {
  std::string name;
  struct Term {
    int qpos, dof;
    double coefficient;
  };
  std::vector<Term> terms;  ///< of a fixed tendon, at most one for each DoF
  struct Point {
    TendonSpec::PathKind kind;
    LinkFrame frame;  ///< of the site, or of the geom that it wraps around
    double radius = 0;
    bool cylinder = false, has_side = false;
    LinkFrame side;
    double divisor = 1;
  };
  std::vector<Point> path;  ///< of a spatial one
  std::vector<int> dofs;    ///< that its length depends on, ascending
  int first = 0;            ///< of its moment arms among all tendons'
  // Passive law: springs and dampers that are switched off are zero here. Units: N and m, or N m and rad.
  std::array<double, 3> stiffness{}, damping{};  ///< coefficients of x, x², x³ and of v, |v| v, |v|² v
  std::array<double, 2> spring_length{};         ///< dead band of the spring
  double armature = 0;
  bool limited = false;
  std::array<double, 2> range{};  ///< of the length
  double margin = 0;              ///< how far from its end a range acts already
  double friction_loss = 0;       ///< dry friction [N | N m]
  bool force_limited = false;
  std::array<double, 2> force_range{};
  Location where;

  bool is_elastic() const { return stiffness != std::array<double, 3>{} || damping != std::array<double, 3>{}; }
  /// Spring and damper, along growing length.
  double passive_force(double length, double velocity) const;
  double spring_energy(double length) const;
  /// -∂force/∂l and -∂force/∂l̇, where they are negative 0.
  double stiffness_at(double length) const;
  double damping_at(double velocity) const;
  bool passive() const;
};

/// A model's tendons, resolved.
class TendonSet {
 public:
  /// None.
  TendonSet() = default;
  /// @throws InputError naming what a tendon refers to and is not there
  static TendonSet of(const Model& model);

  int size() const { return int(tendons_.size()); }
  int arms() const { return arms_; }  ///< of all tendons
  bool spatial() const { return spatial_; }
  const Tendon& operator[](int i) const { return tendons_[i]; }

 private:
  void add(const Model& model, const TendonSpec& spec);
  std::vector<Tendon> tendons_;
  int arms_ = 0;
  bool spatial_ = false;
};

/// Lengths and moment arms; spatial ones need kinematics(qpos) in `links`.
/// @param length [size]  @param arm [arms] tendon t's from its `first`, over its `dofs`  @param row [nv] scratch, zero
///   before and after
void tendon_lengths(const Model& model, const TendonSet& tendons, const LinkState<double>* links,
                    std::span<const double> qpos, std::span<double> length, std::span<double> arm,
                    std::span<double> row);

/// J̇ q̇ of each tendon: zero of fixed ones, of paths by the central difference of J q̇ along q̇ (an error near 1e-9).
/// @param work kinematics of other configurations are left in it  @param out [size]
void tendon_bias(const Model& model, const TendonSet& tendons, Data& work, std::span<const double> qpos,
                 std::span<const double> qvel, std::span<double> out);

/// Where a path from x0 to x1 touches a sphere or cylinder: two points and the length between them along it; negative:
/// it goes past it in a straight line. All in the geom's frame. @param side null: the shorter way around
struct WrapResult {
  double length = -1;
  Vec3d first, second;
};
WrapResult wrap_path(const Vec3d& x0, const Vec3d& x1, double radius, bool cylinder, const Vec3d* side);

}  // namespace tarsus
