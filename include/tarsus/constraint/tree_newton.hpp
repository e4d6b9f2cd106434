// Contacts and rows on joints by Newton's method, in O(n) a round.
//
// The end of the step minimises ½ |v - v⁰|²_M̂ + Σ ψ_c(J_c v): contacts are springs that have not yet been told how
// stiff they are. A proximal term σ |λ - λ_k|²/2 stands in for stiffness where a row has no compliance; its centre λ_k
// moves to the answer, so that the limit is the rigid contact, whatever σ is. Each round puts the tangents of rows with
// the world and of rows on joints on the links as loads (loaded.hpp): one pair of ABA's passes, however many there are.
// The k rows between two links go through the factors of that loaded tree (delassus.hpp), at O(k d + k³) more.
//
// Coulomb's disc has the radius μ λ_n, which makes B unsymmetric where a contact slides, and that no link's load can
// be: of a contact that slides on the world, the coupling of friction to the normal force alone, u c nᵀ, goes with the
// k rows, which may be unsymmetric, and rounds converge as Newton's do. With many contacts, the radii stand still
// within a round and follow their normal forces from one to the next.
//
//   z = (b - w + σ λ_k)/(Σ + σ),  λ(w) = P(z),  B = ∂P/(Σ + σ),  w = J v
//   (M̂ + Jᵀ B J)(v' - v⁰) = Jᵀ g,  g = λ(w) + B (w - w⁰),  y' = g - B (w' - w⁰):  M̂ (v' - v⁰) = Jᵀ y'
//
// Equality constraints (held_rows.hpp) are k rows too, without a law: their forces are unknowns of each round's solve.
//
// A centre's problem takes a few rounds, and centres converge as fast as σ is small; but the smaller it is, the sharper
// are the kinks. So σ shrinks where centres come slowly, and where rounds lead nowhere they go back to where the centre
// was set, with a larger σ. What is returned is y, the impulses that made v', as soon as they obey the law.
//
// y - λ(w) is the gradient in the rows' own space, so that the line search costs nothing of the tree either. Without
// friction the problem is convex and the search makes it converge; Coulomb's friction has no such theorem: look at the
// report.
#pragma once

#include "tarsus/constraint/held_rows.hpp"
#include "tarsus/dynamics/loaded.hpp"
#include "tarsus/solver/anderson.hpp"
#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

/// A contact's rows: along the normal, the two tangents, then moments about the three: 1, 3, 4 or 6 of them.
struct TreeContact {
  int a = 0, b = -1;  ///< links; b -1: the world
  int first_row = 0, nrow = 3;
  Vec3d arm_a{}, arm_b{};             ///< from the links' origins, world axes [m]
  Vec3d axis[3] = {};                 ///< n, t₁, t₂
  double friction = 1;                ///< μ
  double torsional = 0, rolling = 0;  ///< [m]: moments' bounds are these times the normal force
  double inverse_mass = 0;            ///< that the point feels, by estimate [1/kg]
  double inverse_inertia = 0;         ///< that moments feel [1/(kg m²)]
  double speed[6] = {};               ///< of the rows now: a guess of what it will be [m/s, rad/s]
};

/// A row on one joint: e · q̇ (hinge, slide: e.x q̇; ball: e in world axes).
struct OneJointRow {
  int joint = 0, row = 0;
  Vec3d e{};
  double speed = 0;  ///< now, as a contact's
};

/// ∂λ/∂(-w) of two rows whose length a normal force bounds: of themselves, and by the normal row's w.
struct DiscTangent {
  double t11 = 0, t12 = 0, t22 = 0, n1 = 0, n2 = 0;
  bool symmetric() const { return n1 == 0 && n2 == 0; }
  bool idle() const { return t11 == 0 && t22 == 0; }
  /// out = base + B d, dn being the normal row's.
  void times(double dn, const double* d, const double* base, double* out) const {
    out[0] = base[0] + n1 * dn + t11 * d[0] + t12 * d[1];
    out[1] = base[1] + n2 * dn + t12 * d[0] + t22 * d[1];
  }
};

template <class R>
struct TreeNewtonProblem {
  std::span<const TreeContact> contacts;
  std::span<const OneJointRow> joints;
  std::span<const RowNumbers> numbers;  ///< [nrow] compliance, target and bounds; tangents: zero compliance
  std::span<const double> w0;           ///< [nrow] J v⁰
  HeldRows<R> held{};                   ///< equality constraints that v⁰ satisfies
};

template <class R>
class TreeNewton {
 public:
  explicit TreeNewton(const Model& model);

  /// @param joint_inertia K of M̂  @param multiplier in: where to start; out: λ
  /// @param change [nv] out: v - v⁰. data must hold the poses and the factors of M̂; these are lost
  RowSolveReport solve(BasicData<R>& data, In<R> joint_inertia, const TreeNewtonProblem<R>& problem,
                       std::span<double> multiplier, Out<R> change, const RowSolveOptions& options);
  /// Δλ_e of the last solve.
  std::span<const double> held_impulse() const { return held_best_; }

 private:
  struct Tangent {  ///< ∂λ/∂(-w) of a contact's first three rows
    double normal = 0;
    DiscTangent slide;
  };
  struct MomentTangent {  ///< of the others
    double turn = 0, turn_n = 0;
    DiscTangent roll;
  };
  struct PairContact {
    int contact, first_row, nrow;  ///< rows of pairs_
    int first_unknown = 0;
    double coupling = 0;  ///< c, of one that slides, turns or rolls on the world
  };
  void begin(BasicData<R>& data, std::span<const double> multiplier);
  void law(std::span<const double> w, bool tangents);
  void contact_law(std::size_t index, std::span<const double> w, bool tangents);
  void moment_law(std::size_t index, double bound, double normal, std::span<const double> w, bool tangents);
  /// out = base + B d for one contact's rows.
  void times(std::size_t contact, const double* d, const double* base, double* out) const {
    const Tangent& b = tangent_[contact];
    out[0] = base[0] + b.normal * d[0];
    if (contacts_[contact].nrow >= 3) b.slide.times(d[0], d + 1, base + 1, out + 1);
    if (contacts_[contact].nrow > 3) moment_times(contact, d, base, out);
  }
  void moment_times(std::size_t contact, const double* d, const double* base, double* out) const;
  /// Neither slides nor turns nor rolls at its bound.
  bool symmetric(std::size_t contact) const {
    return tangent_[contact].slide.symmetric() && (contacts_[contact].nrow <= 3 || symmetric_moments(contact));
  }
  bool symmetric_moments(std::size_t contact) const;
  /// Open: no force, and none to come.
  bool idle(std::size_t contact) const {
    return tangent_[contact].normal == 0 && tangent_[contact].slide.idle() &&
           (contacts_[contact].nrow <= 3 || idle_moments(contact));
  }
  bool idle_moments(std::size_t contact) const;
  void centre();
  void admit(std::span<double> multiplier) const;
  double gap() const;
  double gap_at(double t);
  double backtrack();
  bool slides() const;
  bool in_pairs(std::size_t contact) const;
  double natural(std::span<const double> multiplier) const;
  void move(double t, bool first);
  void scale_sigma(double by);
  void solve_round(BasicData<R>& data, In<R> joint_inertia);
  void next_centre(double residual);
  bool lost(double open);
  void retreat();
  void load();
  void read(BasicData<R>& data, In<R> x);
  double slope(double t);
  double search();
  LinkLoad<R>& load_of(int link);
  void add_load(std::size_t contact);
  void add_moment_load(std::size_t contact);
  void choose_held(BasicData<R>& data);
  void add_pairs(const BasicData<R>& data);
  void write_pair(PairContact& pair, const typename DelassusRows<R>::Block& block);
  void solve_pairs(BasicData<R>& data, Out<R> x);

  const Model& model_;
  std::span<const TreeContact> contacts_;
  std::span<const OneJointRow> joints_;
  std::span<const RowNumbers> numbers_;
  std::span<const double> w0_;
  HeldRows<R> held_;
  std::vector<char> left_out_;         ///< [held row]
  std::vector<double> sigma_, scale_;  ///< [nrow] σ and d
  double relative_sigma_ = 0;          ///< σ/d
  std::vector<double> centre_, lambda_, w_, y_, next_w_, next_y_, between_, g_;
  std::vector<double> bounding_, asked_;  ///< [contact] normal forces that bound the others, of many contacts
  struct {
    std::vector<double> w, y, held;
    AlignedVector<R> x;
  } settled_at_;  ///< when the centre was set
  struct {
    bool settled = true;              ///< this centre's own problem is solved
    bool first = true;                ///< no (x, y) to go on from yet
    int rounds = 0;                   ///< with this centre and σ
    int calm = 0, wait = 0;           ///< centres since σ had to grow; as many before it may shrink
    double open = 0;                  ///< gap after the first of the rounds
    double last_settled = kInfinity;  ///< residual at the last centre
  } outer_;
  bool coupled_ = true;  ///< few contacts: radii follow at once
  AndersonMixing mixing_;
  std::vector<Tangent> tangent_;               ///< [contact], then [joint row] with normal alone
  std::vector<MomentTangent> moment_tangent_;  ///< [contact], of those with more than three rows
  std::vector<int> load_of_link_;
  std::vector<LinkLoad<R>> loads_;  ///< [njoint], the first loads_used_ of them this round's
  int loads_used_ = 0;
  AlignedVector<R> x_, next_x_;
  // Rows between two links, equality constraints first.
  DelassusRows<R> pairs_;
  std::vector<PairContact> pair_contacts_;
  std::vector<int> unknown_;  ///< [equation] row of pairs_ whose y is solved for
  AlignedVector<R> pair_gram_, pair_velocity_, pair_y_, u_;
  std::vector<double> pair_matrix_, pair_rhs_;
  std::vector<double> held_impulse_, next_held_, held_best_;
  AlignedVector<R> held_phi_;
};

extern template class TreeNewton<double>;
extern template class TreeNewton<float>;

}  // namespace tarsus
