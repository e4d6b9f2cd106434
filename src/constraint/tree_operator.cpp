// The operator of a step's solve on a tree (tree_operator.hpp): chooses among the stiffened tree, the elimination graph
// and the dense matrix, and returns x and J x of each linear problem
//
//     (M̂ + Σ Jᵀ G J) x = Σ Jᵀ g.
//
// Cost of one solve, for n links, d levels and k extra rows: O(n + k d + k³) on the stiffened tree, O(nv³) dense; the
// elimination graph counts its operations before it starts. solve() fails only if that count exceeds the limit of the
// iteration or of the step.
#include "tarsus/constraint/tree_operator.hpp"

#include "constraint/contact_force.hpp"
#include "constraint/coupled_rows.inl"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr int kEasy = 2;  ///< iterations of a step that is not hard
/// A small model's step uses the dense matrix if it has more extra rows, bilateral rows counted twice, than DoFs. A
/// hard step uses it if kHardShare times the extra rows, or kActiveShare times the rows of all active contacts, exceed
/// the DoFs.
constexpr int kHardShare = 4, kActiveShare = 2;
constexpr int kTiny = 10;  ///< DoFs up to which a step with many active rows is dense from the first iteration on
/// Largest number of rows of active terms that are solved alone; the second if there are bilateral rows.
constexpr int kFewRows = 24, kFewBesideBilateral = 40;
constexpr int kCrowd = 24;         ///< unknowns of contacts at which the Schur complement costs as much as the graph
constexpr int kBetween = 8;        ///< contacts between two trees that make a crowd of them
constexpr double kOfBodies = 0.9;  ///< share of contacts of free bodies above which the others do not matter
/// Operations that a step may take, in units of eliminates()'s limit. With rows as nodes the limit is higher: sweeps of
/// large contact islands need one solve each.
constexpr double kMost = 10, kMostBesideNodes = 40;
constexpr double kWide = 2;  ///< mean number of DoFs a joint
/// With more rows a DoF than this, and more rows than this, a sweep over blocks costs less than one over one matrix.
constexpr int kWholePerDof = 8, kFewWhole = 512;

}  // namespace

template <class R>
TreeOperator<R>::TreeOperator(const Model& model, int dense_dofs, int many_trees, int whole_rows)
    : model_(model),
      small_(model.nv <= dense_dofs),
      wide_(model.nv >= kWide * model.njoint()),
      stiffness_(model.njoint()),
      extra_(model),
      swept_(model),
      dense_(model),
      graph_(model) {
  const auto roots =
      std::count_if(model.joints.begin(), model.joints.end(), [](const Joint& j) { return j.parent < 0; });
  whole_.most = std::min(whole_rows, std::max(kFewWhole, kWholePerDof * model.nv));
  graph_.many_trees = !small_ && roots >= many_trees, graph_.one_tree = roots <= 1;
  for (Iterate* i : {&iterates_.now, &iterates_.next, &iterates_.kept}) i->x.resize(model.nv);
  none_.clear(model.nv);
}

template <class R>
void TreeOperator<R>::begin(BasicData<R>& data, double h, In<R> joint_inertia, std::span<const Term> terms,
                            const RowGeometry& geometry, const BilateralRows<R>& bilateral, In<R> joint_force) {
  data_ = &data, joint_inertia_ = joint_inertia;
  terms_ = terms, geometry_ = geometry;
  of_step_.dense = of_step_.exact = graph_.free_factored = false;
  places_.three.clear();
  for (std::size_t c = 0; c < geometry.contacts.size(); ++c) {
    if (geometry.contacts[c].nrow == 3) places_.three.push_back({int(c), terms[c].first_row});
  }
  lay_out(terms, geometry, bilateral);
  extra_.begin(data, h);
  if (joint_force.empty()) {
    forces_.clear(model_.nv);
    prepare_stiffened<R>(model_, data);
  } else {
    forces_.joint.resize(joint_force.size()), forces_.bias.resize(6 * std::size_t(model_.njoint()));
    for (std::size_t i = 0; i < joint_force.size(); ++i) forces_.joint[i] = R(h) * joint_force[i];
    prepare_step<R>(model_, data, R(h), forces_.bias);
  }
  restart();
}

template <class R>
In<R> TreeOperator<R>::settle(std::span<double> change) {
  stiffness_.clear();
  AlignedVector<R>& x = iterates_.next.x;
  solve_stiffened<R>(model_, *data_, joint_inertia_, forces_.joint, forces_.bias, stiffness_.of_link(),
                     stiffness_.all(), x);
  if (!change.empty()) read(change);
  forces_.clear(model_.nv);
  return x;
}

template <class R>
void TreeOperator<R>::rates(In<R> v, std::span<double> rate) {
  spread_acceleration<R>(model_, *data_, v);
  std::copy(v.begin(), v.end(), iterates_.next.x.begin());
  read(rate);
}

template <class R>
void TreeOperator<R>::restart() {
  of_step_.solves = 0, of_step_.factors = Factors::none,
  operations_.left = (has_nodes() ? kMostBesideNodes : kMost) * operations_.given;
  iterates_.first = true;
  for (Iterate* i : {&iterates_.now, &iterates_.next, &iterates_.kept})
    i->bilateral.at.assign(extra_.bilateral().count(), 0.0);
}

template <class R>
bool TreeOperator<R>::solve(const TreeForces<R>& forces, std::span<const Tangent> tangents,
                            std::span<const double> force, std::span<double> change) {
  int coupled = 0;
  bool dense = of_step_.dense;
  of_step_.factors = Factors::none;
  if (!tangents.empty()) {
    find_active(tangents, force);
    const int extra = places_.unknowns + extra_.bilateral().count();
    of_step_.hard_is_dense = small_ && std::max(kHardShare * extra, kActiveShare * places_.rows) > model_.nv;
    const bool tiny = model_.nv <= kTiny && kActiveShare * places_.rows > model_.nv;
    const bool hard = of_step_.dense || ++of_step_.solves > kEasy || tiny;
    coupled = places_.unknowns,
    dense = hard ? of_step_.hard_is_dense : small_ && extra + extra_.bilateral().count() > model_.nv;
  }
  Factors factors = Factors::none;
  if (dense || of_step_.exact)
    solve_dense(forces, tangents, force), factors = Factors::dense;
  else if (coupled < kCrowd && !has_nodes())
    solve_tree(forces, tangents, force), factors = Factors::tree;
  else if (!solve_coupled(forces, tangents, force))
    return false;
  read(change);
  const bool keeps = sizeof(R) == sizeof(double) && (small_ || graph_.one_tree) && extra_.bilateral().count() == 0 &&
                     geometry_.paths.empty();
  if (!tangents.empty() && keeps) of_step_.factors = factors;
  return true;
}

/// From the contacts that acted in the last solve with tangents.
template <class R>
SweepKind TreeOperator<R>::sweeps() const {
  if (of_step_.hard_is_dense) return SweepKind::at_once;
  if (has_nodes()) return SweepKind::of_crowd;
  if (places_.unknowns < kCrowd) return SweepKind::of_trees;
  int of_bodies = 0, between = 0;
  for (const ContactPlace& place : places_.active) {
    const ContactRows& contact = geometry_.contacts[place.contact];
    of_bodies += is_of_bodies(contact), between += is_between(contact);
  }
  if (between < kBetween) return SweepKind::of_trees;
  return of_bodies > kOfBodies * double(places_.active.size()) ? SweepKind::of_bodies : SweepKind::of_crowd;
}

template <class R>
bool TreeOperator<R>::is_of_bodies(const ContactRows& contact) const {
  return swept_.is_alone(contact.a) && swept_.is_alone(contact.b);
}

template <class R>
bool TreeOperator<R>::is_between(const ContactRows& contact) const {
  return contact.b >= 0 && !swept_.one_tree(contact.a, contact.b);
}

template <class R>
double TreeOperator<R>::sliding_share() const {
  if (sizeof(R) != sizeof(double)) return 1;
  const auto between = std::count_if(geometry_.contacts.begin(), geometry_.contacts.end(),
                                     [&](const ContactRows& contact) { return is_between(contact); });
  return between < kBetween ? kSlidingShare : 1.0;
}

template <class R>
bool TreeOperator<R>::solve_change(std::span<const Tangent> tangents, std::span<const double> force,
                                   std::span<double> change) {
  if (!solve(none_, tangents, force, change)) return false;
  for (std::size_t i = 0; i < iterates_.now.x.size(); ++i) iterates_.next.x[i] += iterates_.now.x[i];
  return true;
}

/// Not in float, beside bilateral rows or paths, or in large models of several trees.
template <class R>
bool TreeOperator<R>::solve_again(std::span<const Tangent> tangents, std::span<const double> force,
                                  std::span<double> change) {
  if (of_step_.factors == Factors::none) return false;
  AlignedVector<R>& x = iterates_.next.x;
  if (of_step_.factors == Factors::dense) {
    const std::span<const double> right = dense_.right(force);
    solution_.assign(right.begin(), right.end());
    dense_.solve(solution_);
    dense_.trees().template finish<R>(solution_, *data_, x);
  } else {
    for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {  // those between two links are extra rows
      const double* y = &force[terms_[c].first_row];
      const int nrow = geometry_.contacts[c].nrow;
      if (geometry_.contacts[c].b >= 0 && std::any_of(y, y + nrow, [](double f) { return f != 0; }) &&
          !extra_.has(int(c)))
        return false;
    }
    stiffness_.clear();
    add_contact_forces(force, false), add_row_stiffness({}, force);
    const bool extra = extra_.rows() > 0;
    solve_factored<R>(model_, *data_, stiffness_.of_link(), stiffness_.all(), extra ? Out<R>() : Out<R>(x));
    if (extra) extra_.solve(tangents, force, iterates_.now.bilateral, iterates_.next.bilateral, x, true);
  }
  read(change);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += iterates_.now.x[i];
  return true;
}

template <class R>
void TreeOperator<R>::solve_tree(const TreeForces<R>& forces, std::span<const Tangent> tangents,
                                 std::span<const double> force) {
  Iterate& next = iterates_.next;
  stiffness_.clear(), extra_.clear();
  if (tangents.empty()) {
    add_contact_forces(force);
  } else {
    add_stiffness(tangents, force);
    if (places_.unknowns > 0) extra_.add_contacts(places_.active, tangents);
  }
  add_row_stiffness(tangents, force);
  extra_.add_paths(tangents, force);
  const Out<R> x = extra_.rows() > 0 ? Out<R>() : Out<R>(next.x);
  solve_stiffened<R>(model_, *data_, joint_inertia_, forces.joint, forces.bias, stiffness_.of_link(), stiffness_.all(),
                     x);
  if (x.empty()) extra_.solve(tangents, force, iterates_.now.bilateral, next.bilateral, next.x);
}

template <class R>
void TreeOperator<R>::begin_dense() {
  if (of_step_.dense) return;
  of_step_.dense = true;
  std::span<const double> jacobian;
  if (extra_.bilateral().count() > 0) extra_.clear(), jacobian = extra_.jacobian();
  dense_.begin(*data_, joint_inertia_, forces_, terms_, geometry_, jacobian, extra_.bilateral().diagonal());
}

template <class R>
void TreeOperator<R>::solve_dense(const TreeForces<R>& forces, std::span<const Tangent> tangents,
                                  std::span<const double> force) {
  begin_dense();
  BilateralSchur<R>& held = extra_.bilateral();
  const std::span<const double> right = dense_.add_tangents(tangents, force, forces.any());
  const int first = dense_.trees().place_of_row(0);
  solution_.assign(right.begin(), right.end());
  std::copy(held.demand().begin(), held.demand().end(), solution_.begin() + first);
  held.refine([&](std::span<double> x) { dense_.solve(x); }, solution_, first, iterates_.now.bilateral,
              iterates_.next.bilateral);
  dense_.trees().template finish<R>(solution_, *data_, iterates_.next.x);
}

template <class R>
StepOperator* TreeOperator<R>::reduced(std::span<const int> terms) {
  int rows = 0;
  for (const int t : terms) rows += terms_[t].nrow;
  if (!small_ || rows > (extra_.bilateral().count() > 0 ? kFewBesideBilateral : kFewRows)) return nullptr;
  if (by_graph()) {
    write_whole(terms);
    whole_.reduced.begin({whole_.rows, nullptr, nullptr, nullptr, rows}, whole_.rows.counts);
  } else {
    begin_dense();
    dense_.write(terms, whole_.rows);
    whole_.reduced.begin(dense_.matrices(whole_.rows), whole_.rows.counts);
  }
  return &whole_.reduced;
}

template <class R>
RowBlocks& TreeOperator<R>::row_blocks(std::span<const int> terms) {
  of_step_.factors = Factors::none;
  int count = 0, of_bodies = 0;
  for (const int t : terms) {
    count += terms_[t].nrow;
    of_bodies += t < geometry_.first_joint() && is_of_bodies(geometry_.contacts[t]);
  }
  if (count <= whole_.most && (small_ || has_nodes() || of_bodies <= kOfBodies * double(terms.size()))) {
    if (by_graph())
      write_whole(terms);
    else
      begin_dense(), dense_.write(terms, whole_.rows);
    return whole_.rows;
  }
  stiffness_.clear();
  AlignedVector<R>& zero = iterates_.next.x;
  std::fill(zero.begin(), zero.end(), R(0));
  solve_stiffened<R>(model_, *data_, joint_inertia_, zero, {}, stiffness_.of_link(), stiffness_.all(),
                     {});  // the factors of M̂ alone
  DelassusRows<R>& rows = swept_.clear();
  BilateralSchur<R>& held = extra_.bilateral();
  if (held.count() > 0) {
    held.write(*data_, rows);
    swept_.hold(*data_, held.diagonal(), factor_free());
  }
  swept_.write(*data_, geometry_, terms);
  return swept_;
}

template <class R>
void TreeOperator<R>::Iterates::move(double t) {
  if (first) t = 1;
  for (std::size_t i = 0; i < now.x.size(); ++i)
    now.x[i] = first ? next.x[i] : now.x[i] + R(t) * (next.x[i] - now.x[i]);
  for (std::size_t i = 0; i < now.bilateral.at.size(); ++i)
    now.bilateral.at[i] += t * (next.bilateral.at[i] - now.bilateral.at[i]);
  now.bilateral.miss = t == 1 ? next.bilateral.miss : std::max(now.bilateral.miss, next.bilateral.miss);
  first = false;
}

/// Adds the symmetric part of the contacts' tangents, and their forces, to links.
template <class R>
void TreeOperator<R>::add_stiffness(std::span<const Tangent> tangents, std::span<const double> force) {
  places_.on_links.clear();
  for (ContactPlace place : places_.active) {
    const ContactRows& contact = geometry_.contacts[place.contact];
    if (contact.b >= 0) continue;
    if (contact.nrow != 3) {
      add_contact_stiffness(contact, tangents[place.contact], &force[place.first_row], stiffness_[contact.a]);
      continue;
    }
    place.stiffness = stiffness_.at(contact.a);
    places_.on_links.push_back(place);
  }
  constraint_table<R>(1).contact_stiffness(geometry_.contacts.data(), places_.on_links.data(),
                                           int(places_.on_links.size()), tangents.data(), force.data(),
                                           stiffness_.data());
}

/// Adds forces alone.
template <class R>
void TreeOperator<R>::add_contact_forces(std::span<const double> force, bool between_links) {
  for (std::size_t c = 0; c < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    if (contact.b >= 0 && !between_links) continue;
    const double* y = &force[terms_[c].first_row];
    if (std::all_of(y, y + contact.nrow, [](double x) { return x == 0; })) continue;
    const auto [n, f] = contact_sum(contact, y);
    const auto add = [&](int link, const Vec3d& moment, const Vec3d& push) {
      LinkStiffness<R>& stiffness = stiffness_[link];
      for (int k = 0; k < 3; ++k) stiffness.n[k] += R(moment[k]), stiffness.f[k] += R(push[k]);
    };
    add(contact.a, n + cross(contact.arm_a, f), f);
    if (contact.b >= 0) add(contact.b, -(n + cross(contact.arm_b, f)), -f);
  }
}

/// Adds the rows on joints, and the paths on one link.
template <class R>
void TreeOperator<R>::add_row_stiffness(std::span<const Tangent> tangents, std::span<const double> force) {
  static constexpr Tangent kNone{};
  for (std::size_t j = 0; j < geometry_.joints.size(); ++j) {
    const std::size_t t = geometry_.first_joint() + j;
    add_joint_stiffness(geometry_.joints[j], moves_freely(model_.joints[geometry_.joints[j].joint].type),
                        tangents.empty() ? kNone : tangents[t], &force[terms_[t].first_row],
                        stiffness_[geometry_.joints[j].joint]);
  }
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p) {
    const PathRow& path = geometry_.paths[p];
    const std::size_t t = geometry_.first_path() + p;
    if (path.on_link >= 0)
      add_wrench_stiffness(path.wrench, tangents.empty() ? 0 : tangents[t].at[0][0], force[terms_[t].first_row],
                           stiffness_[path.on_link]);
  }
}

/// J x of the last solve, from the links' J x in data and x in iterates_.next.
template <class R>
void TreeOperator<R>::read(std::span<double> change) {
  const LinkState<R>* links = data_->links();
  constraint_table<R>(1).contact_velocities(geometry_.contacts.data(), places_.three.data(), int(places_.three.size()),
                                            links, change.data());
  for (std::size_t c = 0; c < geometry_.contacts.size() && places_.three.size() < geometry_.contacts.size(); ++c) {
    const ContactRows& contact = geometry_.contacts[c];
    if (contact.nrow == 3) continue;
    Motion<double> motion = at_arm(widen(links[contact.a].a), contact.arm_a);
    if (contact.b >= 0) motion = motion - at_arm(widen(links[contact.b].a), contact.arm_b);
    for (int k = 0; k < contact.nrow; ++k) change[terms_[c].first_row + k] = along_contact(contact, motion, k);
  }
  for (std::size_t j = 0; j < geometry_.joints.size(); ++j)
    joint_velocity(model_, links, geometry_.joints[j], iterates_.next.x.data(),
                   &change[terms_[geometry_.first_joint() + j].first_row]);
  for (std::size_t p = 0; p < geometry_.paths.size(); ++p)
    change[terms_[geometry_.first_path() + p].first_row] = along(geometry_.paths[p], iterates_.next.x);
}

template class TreeOperator<double>;
template class TreeOperator<float>;

}  // namespace tarsus
