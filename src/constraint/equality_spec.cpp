// The equalities of a model's spec (MJCF <equality>, URDF <mimic>) as an EqualitySet.
#include <algorithm>
#include <cmath>
#include <memory>

#include "math/dense_lu.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/constraint/equality.hpp"
#include "tarsus/dynamics/tendon.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/find_on_bodies.hpp"

namespace tarsus {

namespace {

/// A frame fixed to a body: the body's frame, or a site's.
struct Frame {
  int body = 0;
  Transformd X{identity3<double>(), {0, 0, 0}};  ///< in the body's frame
};

/// @return index
int found(int index, const EqualitySpec& spec, const char* kind, const std::string& name) {
  if (index >= 0) return index;
  throw InputError(spec.where, "equality \"" + spec.name + "\": there is no " + kind + " \"" + name + "\"");
}

Frame find_frame(const Model& model, const EqualitySpec& spec, const std::string& name) {
  if (!spec.sites) return {name.empty() ? 0 : found(model.find_body(name), spec, "body", name)};
  const auto [body, site] = find_on_bodies(model.spec, &BodySpec::sites, name);
  return {found(body, spec, "site", name), {rotation(normalized(site->orientation)), site->position}};
}

/// Length, moment arms and J̇ q̇ of tendons at one state, with scratch memory.
class TendonState {
 public:
  TendonState(const Model& model, TendonSet tendons)
      : model_(model),
        tendons_(std::move(tendons)),
        data_(model),
        length_(tendons_.size()),
        arm_(tendons_.arms()),
        row_(model.nv) {}

  const TendonSet& tendons() const { return tendons_; }
  double length(int tendon) const { return length_[tendon]; }
  std::span<const double> arm(int t) const { return {&arm_[tendons_[t].first], tendons_[t].dofs.size()}; }

  void place(std::span<const double> qpos) {
    if (tendons_.spatial()) kinematics<double>(model_, data_, qpos);
    tendon_lengths(model_, tendons_, data_.links(), qpos, length_, arm_, row_);
  }
  /// Places the tendons at the pose qpos ⊞ turn.
  void place_ahead(std::span<const double> qpos, std::span<const double> turn) {
    moved_.resize(qpos.size());
    integrate<double>(model_, data_, qpos, turn, 1.0, moved_);
    place(moved_);
  }
  double bend(int tendon, std::span<const double> inertia) const {
    return tendon_bend(model_, tendons_[tendon], data_.links(), inertia);
  }
  void bias(std::span<const double> qpos, std::span<const double> qvel, std::span<double> out) {
    tendon_bias(model_, tendons_, data_, qpos, qvel, out);
  }

 private:
  const Model& model_;
  TendonSet tendons_;
  Data data_;
  std::vector<double> length_, arm_, row_, moved_;
};

constexpr double kLookAhead = 0.5;       ///< largest turn of a joint that is looked ahead [rad | m]
constexpr double kLengthClosed = 1e-5;   ///< smaller errors are not limited [m]
constexpr double kLengthsClosed = 1e-9;  ///< nor are smaller ones of several tendons
constexpr double kLeastDamping = 1e-9;   ///< of dependent rows, over their inverse mass

/// φ, or what the joints can take back of it (reachable_change).
/// @param inertia [nv] Model::carried_inertia, or a world's own
/// @param each_arm calls f(dof, its share of ∂φ/∂q) at the pose of `state`
template <class EachArm>
double within_reach(TendonState& state, std::span<const double> qpos, std::span<const double> inertia, double phi,
                    const EachArm& each_arm) {
  if (!(std::abs(phi) >= kLengthClosed) || std::isinf(phi)) return phi;
  std::vector<double> slope(inertia.size(), 0.0);
  state.place(qpos);
  each_arm([&](int dof, double arm) { slope[std::size_t(dof)] += arm; });
  return -reachable_change(-phi, kLookAhead, inertia, slope, [&](std::span<const double> turn) {
    state.place_ahead(qpos, turn);
    double change = 0;
    each_arm([&](int dof, double arm) { change += arm * turn[std::size_t(dof)]; });
    return change;
  });
}

}  // namespace

int EqualitySet::add_spec_pair(const EqualitySpec& spec) {
  const Frame a = find_frame(*model_, spec, spec.first), b = find_frame(*model_, spec, spec.second);
  Data data(*model_);
  kinematics<double>(*model_, data, model_->qpos0);  // what the file does not give is taken from its reference pose
  const Transformd X_AB = inverse(body_pose(*model_, data, a.body)) * body_pose(*model_, data, b.body);
  if (spec.type == EqualityType::connect) {
    if (spec.sites) return add_connect(spec.name, a.body, a.X.p, b.body, b.X.p);
    const Transformd X_BA = inverse(X_AB);
    return add_connect(spec.name, a.body, spec.anchor, b.body, X_BA.R * spec.anchor + X_BA.p);
  }
  if (spec.sites) return add_weld(spec.name, a.body, b.body, a.X * inverse(b.X), spec.torque_scale, b.X.p, b.X.R);
  if (!spec.has_relative_pose) return add_weld(spec.name, a.body, b.body, X_AB, spec.torque_scale, spec.anchor);
  const Mat3d R = rotation(normalized(spec.relative_orientation));
  return add_weld(spec.name, a.body, b.body, {R, spec.relative_position - R * spec.anchor}, spec.torque_scale,
                  spec.anchor);
}

/// l_a - r_a = Σ c_k (l_b - r_b)^k with the lengths r at qpos0; without a second tendon l_a - r_a = c_0.
int EqualitySet::add_spec_tendon(const EqualitySpec& spec) {
  const auto state = std::make_shared<TendonState>(*model_, TendonSet::of(*model_));
  const auto find = [&](const std::string& name) {
    return found(index_of(state->tendons(), name), spec, "tendon", name);
  };
  const int a = find(spec.first), b = spec.second.empty() ? -1 : find(spec.second);
  for (const int t : {a, b}) {
    for (std::size_t k = 0; t >= 0 && k < state->tendons()[t].path.size(); ++k) {
      if (state->tendons()[t].path[k].frame.mocap >= 0)
        throw InputError(spec.where, "equality \"" + spec.name +
                                         "\": tendons that run over a mocap body can move, but not be in an equality");
    }
  }
  state->place(model_->qpos0);
  const double rest_a = state->length(a), rest_b = b < 0 ? 0 : state->length(b);
  UserRows rows;
  std::vector<int> place(model_->nv, -1);  // index of a DoF among those of the rows' joints
  for (const int t : {a, b}) {
    if (t < 0) continue;
    for (const int v : state->tendons()[t].dofs) rows.joints.push_back(model_->dof_joint[v]);
  }
  std::sort(rows.joints.begin(), rows.joints.end());
  rows.joints.erase(std::unique(rows.joints.begin(), rows.joints.end()), rows.joints.end());
  int count = 0;
  for (const int joint : rows.joints) {
    for (int k = 0; k < model_->joints[joint].nv(); ++k) place[model_->joints[joint].qvel + k] = count++;
  }
  const auto slope = [state, b, rest_b, c = spec.polynomial] {
    const double x = b < 0 ? 0 : state->length(b) - rest_b;
    return c[1] + x * (2 * c[2] + x * (3 * c[3] + x * 4 * c[4]));
  };
  const auto slope_at = [state, slope](std::span<const double> q) { return state->place(q), slope(); };
  const auto each_arm = [state, slope, a, b](const auto& f) {  // f(dof, its share of J)
    const auto add = [&](int t, double scale) {
      const std::vector<int>& dofs = state->tendons()[t].dofs;
      for (std::size_t i = 0; i < dofs.size(); ++i) f(dofs[i], scale * state->arm(t)[i]);
    };
    add(a, 1);
    if (b >= 0) add(b, -slope());
  };
  rows.evaluate = [state, a, b, rest_a, rest_b, place, slope_at, each_arm, c = spec.polynomial](
                      std::span<const double> q, std::span<const double> v, std::span<double> phi, std::span<double> J,
                      std::span<double> Jdot_v) {
    std::vector<double> bias(state->tendons().size());
    if (!v.empty()) state->bias(q, v, bias);
    const double slope_here = slope_at(q);
    const double x = b < 0 ? 0 : state->length(b) - rest_b;
    const double value = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * c[4])));
    const double bend = 2 * c[2] + x * (6 * c[3] + x * 12 * c[4]);
    phi[0] = state->length(a) - rest_a - value;
    std::fill(J.begin(), J.end(), 0.0);
    double speed = 0;
    each_arm([&](int dof, double arm) { J[place[dof]] += arm; });
    if (v.empty()) return;
    for (std::size_t i = 0; b >= 0 && i < state->tendons()[b].dofs.size(); ++i)
      speed += state->arm(b)[i] * v[state->tendons()[b].dofs[i]];
    Jdot_v[0] = bias[a] - (b < 0 ? 0 : slope_here * bias[b] + bend * speed * speed);
  };
  const int index = add_user(spec.name, std::move(rows));
  equalities_[index].kind = EqualityKind::tendon;
  const auto reach = [state, each_arm](std::span<const double> q, std::span<const double> inertia, double phi) {
    return within_reach(*state, q, inertia, phi, each_arm);
  };
  const auto arms = [state, slope_at, each_arm, a, b](std::span<const double> q, std::span<const double> inertia,
                                                      std::span<double> arm) {
    const double ratio = slope_at(q);
    each_arm([&](int dof, double x) { arm[std::size_t(dof)] += x; });
    return state->bend(a, inertia) + (b < 0 ? 0 : std::abs(ratio) * state->bend(b, inertia));
  };
  const auto spatial = [&](int t) { return t >= 0 && !state->tendons()[t].path.empty(); };
  tendon_rows_.push_back({equalities_[index].first_row, a, b, spatial(a) || spatial(b), slope_at, reach, arms});
  return index;
}

/// φ of several tendons, or the part W (W + R)⁻¹ φ of it that the joints can take back together: a Levenberg-Marquardt
/// step. Lengths that contradict one another have rows that nearly depend on one another, and only motions without
/// bound would meet all of φ. W is of the inertia that the DoFs carry, R of what the lengths' second derivatives add on
/// the way.
void EqualitySet::limit_together(std::span<const double> qpos, std::span<const double> inertia,
                                 std::span<double> phi) const {
  if (std::none_of(tendon_rows_.begin(), tendon_rows_.end(), [](const TendonRow& t) { return t.spatial; })) return;
  const std::size_t n = tendon_rows_.size(), nv = inertia.size();
  const double most =
      *std::max_element(phi.begin(), phi.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (n < 2 || !(std::abs(most) >= kLengthsClosed) || !std::isfinite(most)) return;
  std::vector<double> arms(n * nv), bend(n), A(n * n), W(n * n);
  for (std::size_t i = 0; i < n; ++i)
    bend[i] = tendon_rows_[i].arms(qpos, inertia, std::span(arms).subspan(i * nv, nv));
  if (*std::max_element(bend.begin(), bend.end()) == 0) return;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t v = 0; v < nv; ++v) W[i * n + j] += arms[i * nv + v] * arms[j * nv + v] / inertia[v];
    }
    A[i * n + i] = std::abs(most) * bend[i] + kLeastDamping * W[i * n + i];
  }
  for (std::size_t k = 0; k < n * n; ++k) A[k] += W[k];
  std::vector<int> pivot(n);
  if (!factor_lu(std::span(A), pivot)) return;
  std::vector<double> force(phi.begin(), phi.end());
  solve_lu(std::span<const double>(A), pivot, std::span(force));
  for (std::size_t i = 0; i < n; ++i) {
    phi[i] = 0;
    for (std::size_t j = 0; j < n; ++j) phi[i] += W[i * n + j] * force[j];
  }
}

template <class R>
void EqualitySet::limit_lengths(const WorldTable<R>* own, int width, In<R> qpos, Out<R> phi) const {
  std::vector<double> q(std::size_t(model_->nq)), lengths;
  for (int lane = 0; lane < width; ++lane) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = double(qpos[i * std::size_t(width) + std::size_t(lane)]);
    std::span<const double> inertia = model_->carried_inertia;
    if (own && !own->carried_inertia.empty())
      inertia = std::span(own->carried_inertia).subspan(std::size_t(lane * model_->nv), std::size_t(model_->nv));
    const auto of = [&](const TendonRow& t) -> R& { return phi[std::size_t(t.row * width + lane)]; };
    lengths.clear();
    for (const TendonRow& t : tendon_rows_) lengths.push_back(t.within_reach(q, inertia, double(of(t))));
    limit_together(q, inertia, lengths);
    for (std::size_t i = 0; i < lengths.size(); ++i) of(tendon_rows_[i]) = R(lengths[i]);
  }
}
template void EqualitySet::limit_lengths<double>(const WorldTable<double>*, int, In<double>, Out<double>) const;
template void EqualitySet::limit_lengths<float>(const WorldTable<float>*, int, In<float>, Out<float>) const;

void EqualitySet::add_tendon_forces(std::span<const double> qpos, std::span<const double> multipliers,
                                    std::span<double> along) const {
  for (const TendonRow& t : tendon_rows_) {
    const double force = -multipliers[std::size_t(t.row)];
    along[std::size_t(t.a)] += force;
    if (t.b >= 0) along[std::size_t(t.b)] -= t.slope(qpos) * force;
  }
}

int EqualitySet::add_from_spec(int index) {
  check_index("equality", index, int(model_->spec.equalities.size()));
  const EqualitySpec& spec = model_->spec.equalities[std::size_t(index)];
  int added = -1;
  const auto joint = [&](const std::string& name) { return found(model_->find_joint(name), spec, "joint", name); };
  try {
    switch (spec.type) {
      case EqualityType::connect:
      case EqualityType::weld: added = add_spec_pair(spec); break;
      case EqualityType::joint:
        added = add_joint(spec.name, joint(spec.first), spec.second.empty() ? -1 : joint(spec.second), spec.polynomial);
        break;
      case EqualityType::tendon: added = add_spec_tendon(spec); break;
      case EqualityType::distance:
        throw InputError(spec.where, "equality \"" + spec.name + "\": distance between shapes is not supported");
    }
  } catch (const ValueError& e) {
    throw InputError(spec.where, e.what());
  }
  equalities_[added].where = spec.where;
  return added;
}

EqualitySet EqualitySet::of(const Model& model) {
  EqualitySet set(model);
  if (!model.spec.option.equality_enabled) return set;  // <flag equality="disable"/>
  Diagnostics errors;
  for (std::size_t i = 0; i < model.spec.equalities.size(); ++i) {
    if (!model.spec.equalities[i].acts()) continue;
    try {
      set.add_from_spec(int(i));
    } catch (const InputError& e) {
      errors.insert(errors.end(), e.diagnostics().begin(), e.diagnostics().end());
    }
  }
  if (!errors.empty()) throw InputError(errors);
  return set;
}

}  // namespace tarsus
