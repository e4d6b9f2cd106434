// Equality constraints of a model as rows: φ(q) = 0, its Jacobian as forces on links, its rate J q̇ and its bias J̇ q̇.
//
//   kind             φ                                      rows   meaning
//   connect          p_a - p_b                              3      two points, of two bodies or of one and the world
//   weld             p_a - p_b;  s vec(q_b⁻¹ q_a q_rel)     6      position and orientation; vec: of the unit
//                                                                  quaternion, ½ angle; of sites b is the second site
//   joint            (q_a - r_a) - Σ c_k (q_b - r_b)^k      1      a polynomial between two hinges or slides, or of
//                                                                  one alone
//   tendon           (l_a - r_a) - Σ c_k (l_b - r_b)^k      1      the same between linear combinations of joints
//   distance         |p_a - p_b| - L                        1      a massless rod; singular where the points coincide
//   point_on_plane   n · (p_a - p_b), n fixed in b          1
//   screw            (x - x₀) - p/(2π) (θ - θ₀)             1      a slide that a hinge drives by a thread
//   user             any φ(q), J(q)                         any
//
// connect, weld, joint and tendon are MJCF's with its signs and scales, so that rows compare number for number. URDF's
// mimic is a joint. Rates of p_a - p_b between two links are taken in a frame that turns with the mean of the two: the
// forces act half way between the points, and momentum is conserved. r is qpos0. Units: m and rad. A row's name
// consists of its constraint's name and the row's: "knee loop (connect) y".
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "tarsus/constraint/hanging.hpp"
#include "tarsus/dynamics/delassus.hpp"

namespace tarsus {

enum class EqualityKind : int { connect, weld, joint, tendon, distance, point_on_plane, screw, user };
const char* name(EqualityKind kind);

/// SPOOK's softness of a row: ε is an inverse stiffness [m/N | rad/(N m) | …], τ_d the decay time of errors in steps.
struct Softness {
  double compliance = 0;
  double damping_steps = 4;  ///< τ_d / h; with compliance 0 it must be positive
  bool operator==(const Softness&) const = default;
};

/// User-defined rows. `joints` are the joints that φ depends on. `evaluate` fills phi [nrow], J [nrow][dofs] over these
/// joints' DoFs in ascending order and in qvel's axes, and Jdot_v [nrow] = J̇ q̇. Empty qvel and Jdot_v: not requested.
/// The threads of a Batch call it at the same time.
struct UserRows {
  int nrow = 1;
  std::vector<int> joints;
  std::function<void(std::span<const double> qpos, std::span<const double> qvel, std::span<double> phi,
                     std::span<double> J, std::span<double> Jdot_v)>
      evaluate;
};

/// Whether a link closes to another, and not only a joint's coordinate to another's.
inline bool joins_links(EqualityKind kind) {
  return kind == EqualityKind::connect || kind == EqualityKind::weld || kind == EqualityKind::distance ||
         kind == EqualityKind::point_on_plane;
}

struct Equality {
  std::string name{};
  EqualityKind kind = EqualityKind::connect;
  int body_a = 0, body_b = 0;  ///< bodies; 0: the world
  int first_row = 0, nrow = 0;
  double torque_scale = 1;  ///< of a weld
  Softness softness{};
  Location where{};
};

template <class R>
struct EqualityConstants;
template <class R>
struct EqualityGroup;
template <class R>
struct EqualityList;
template <class R>
struct RowTarget;

/// The equality constraints that act on a model.
class EqualitySet {
 public:
  /// No constraints.
  explicit EqualitySet(const Model& model);
  /// The active equalities of the model's spec.
  /// @throws InputError naming each that cannot be used: on the world only, between links that cannot move against each
  /// other, with unknown names or numbers that are not finite
  static EqualitySet of(const Model& model);
  ~EqualitySet();
  EqualitySet(EqualitySet&&) noexcept;
  EqualitySet& operator=(EqualitySet&&) noexcept;

  // Additions. Each returns the constraint's index. Points are in the body's frame; body 0 is the world.
  // @throws ValueError
  int add_connect(const std::string& name, int body_a, const Vec3d& point_a, int body_b, const Vec3d& point_b);
  /// X_AB: pose of b's frame in a's frame that the weld keeps. Position rows are about `anchor`, orientation rows along
  /// the columns of `axes`, both in b's frame.
  int add_weld(const std::string& name, int body_a, int body_b, const Transformd& X_AB, double torque_scale = 1,
               const Vec3d& anchor = {0, 0, 0}, const Mat3d& axes = identity3<double>());
  /// joint_b = -1: joint_a is held at the constant polynomial[0].
  int add_joint(const std::string& name, int joint_a, int joint_b, const std::array<double, 5>& polynomial);
  int add_distance(const std::string& name, int body_a, const Vec3d& point_a, int body_b, const Vec3d& point_b,
                   double length);
  int add_point_on_plane(const std::string& name, int body_a, const Vec3d& point_a, int body_b, const Vec3d& point_b,
                         const Vec3d& normal);
  /// The slide moves by `pitch` [m] for each turn of the hinge, measured from qpos0.
  int add_screw(const std::string& name, int slide, int hinge, double pitch);
  int add_user(const std::string& name, UserRows rows);
  /// Adds the equality of that index in the model's spec, active or not. @throws InputError; ValueError for the index
  int add_from_spec(int index);
  /// Adds to `along` [ntendon] the forces along tendons of their equalities, for these multipliers [rows] at qpos [nq].
  void add_tendon_forces(std::span<const double> qpos, std::span<const double> multipliers,
                         std::span<double> along) const;

  /// Limits the errors of tendons' lengths to what the joints can take back before the length is extremal, so that a
  /// length that no pose has pulls them there and not past it; and to what they can take back of all of them together.
  /// @param own the lanes' own masses; null: the model's  @param phi [rows][lane]
  template <class R>
  void limit_lengths(const WorldTable<R>* own, int width, In<R> qpos, Out<R> phi) const;
  bool has_tendons() const { return !tendon_rows_.empty(); }

  int size() const { return int(equalities_.size()); }
  int rows() const { return rows_; }
  const Equality& operator[](int i) const { return equalities_[i]; }
  const Model& model() const { return *model_; }
  /// @throws ValueError for values that are negative, not finite, or both zero
  void set_softness(int index, const Softness& softness);
  std::string row_name(int row) const;
  /// [njoint] 1 at the root joint of each tree on which a row acts.
  std::vector<std::uint8_t> held_trees() const;
  /// Calls f(first, end) for the rows of one unit in constraints [begin, end): a weld's positions, then its angles.
  template <class F>
  void each_unit(int begin, int end, const F& f) const {
    for (int i = begin; i < end; ++i) {
      for (int row = 0; row < equalities_[i].nrow; row += 3)
        f(equalities_[i].first_row + row, equalities_[i].first_row + std::min(row + 3, equalities_[i].nrow));
    }
  }

  /// Adds the structure of all rows to `rows`, in order. Call it once, before other blocks.
  /// @throws ValueError if there are blocks already
  template <class R>
  void add_blocks(DelassusRows<R>& rows) const;

  /// Writes the rows' forces to the blocks, φ [nrow] and, unless qvel is empty, the rate J q̇ and the bias J̇ q̇
  /// [nrow]. Empty spans: not requested. The workspace must hold R, r, o of every link. For rate and bias it must also
  /// hold v and the velocity-dependent accelerations, gravity included, as kkt's prepare leaves them. Arrays of one
  /// pack: [n][lane].
  template <class R>
  void evaluate(const BasicData<R>& data, int pack, In<R> qpos, In<R> qvel, DelassusRows<R>& rows, Out<R> phi,
                Out<R> rate, Out<R> bias) const;

  /// Joint inertia for the part of the turning of the rows' forces with the links that a step of h seconds from qvel to
  /// `next` does not resolve (src/constraint/geometric_inertia.inl). data holds the poses and the step's joint_inertia;
  /// its factors are overwritten.
  /// @param multipliers x₂ of constrained_dynamics.hpp, of all worlds
  /// @param hanging null: of each joint by itself, as if the others stood still
  /// @param inertia of the step's last solve, which joint_inertia contains; corrected
  /// @return whether some world's is new
  template <class R>
  bool geometric_inertia(BasicData<R>& data, double h, In<R> multipliers, In<R> qvel, In<R> next,
                         const HangingLinks<R>* hanging, Out<R> inertia) const;

 private:
  int add(Equality equality, const EqualityConstants<double>& constants);
  void check_pair(const Equality& equality) const;
  void check_joint(const std::string& name, int joint) const;
  EqualityConstants<double> between(const Equality& equality, const Vec3d& point_a, const Vec3d& point_b) const;
  int add_spec_pair(const EqualitySpec& spec);
  int add_spec_tendon(const EqualitySpec& spec);
  template <class R>
  EqualityList<R> list() const;
  template <class R>
  void find_targets(DelassusRows<R>& rows, RowTarget<R>* targets) const;
  template <class R>
  void evaluate_users(int width, In<R> qpos, In<R> qvel, DelassusRows<R>& rows, Out<R> phi, Out<R> rate,
                      Out<R> bias) const;

  template <class R>
  struct Constants {
    std::vector<EqualityConstants<R>> all;
    std::vector<EqualityGroup<R>> groups;
    void add(const EqualityConstants<R>& constants);
  };
  struct TendonRow {
    int row, a, b;                                         ///< tendons; b -1: none
    bool spatial;                                          ///< one of them is
    std::function<double(std::span<const double>)> slope;  ///< of a's length over b's at qpos
    /// limit_lengths() of φ at qpos, of joints that carry `inertia` [nv]
    std::function<double(std::span<const double> qpos, std::span<const double> inertia, double phi)> within_reach;
    /// Adds ∂φ/∂q to `arm` [nv]; @return tendon_bend() of φ
    std::function<double(std::span<const double> qpos, std::span<const double> inertia, std::span<double> arm)> arms;
  };

  void limit_together(std::span<const double> qpos, std::span<const double> inertia, std::span<double> phi) const;

  const Model* model_;
  std::vector<Equality> equalities_;
  std::vector<TendonRow> tendon_rows_;
  std::vector<UserRows> users_;  // [size]; empty functions but for kind user
  std::tuple<Constants<double>, Constants<float>> constants_;
  int rows_ = 0;
  bool has_users_ = false;
};

}  // namespace tarsus
