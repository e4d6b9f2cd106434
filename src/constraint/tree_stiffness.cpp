// Tangents and forces of single terms as stiffness of a link, or inertia of a joint (tree_stiffness.hpp).
#include "constraint/tree_stiffness.hpp"

#include <cmath>

#include "constraint/contact_force.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

/// c += Σ g_ij a_i a_jᵀ over the axes [first, first + count) of a contact; g symmetric.
void add_outer(const Vec3d* axis, const Tangent& g, int row, int first, int count, Sym3d& c) {
  for (int i = first; i < first + count; ++i) {
    Vec3d column{0, 0, 0};
    for (int j = first; j < first + count; ++j) column += axis[j] * g.at[row + i][row + j];
    const Vec3d& a = axis[i];
    c += {column.x * a.x, column.x * a.y, column.x * a.z, column.y * a.y, column.y * a.z, column.z * a.z};
  }
}

template <class R>
Sym3<R> narrow(const Sym3d& m) {
  return {R(m.xx), R(m.xy), R(m.xz), R(m.yy), R(m.yz), R(m.zz)};
}
template <class R>
Vec3<R> narrow(const Vec3d& v) {
  return {R(v.x), R(v.y), R(v.z)};
}

}  // namespace

double coupling(const Tangent& tangent, int nrow) {
  double square = 0;
  for (int i = 1; i < nrow; ++i) square += tangent.at[i][0] * tangent.at[i][0];
  return std::sqrt(square);
}

/// Adds C = Σ G_ij a_i a_jᵀ against motion of the point. At the link's origin: M = C, H = [arm] C, I = -[arm] C [arm].
template <class R>
void add_contact_stiffness(const ContactRows& contact, const Tangent& g, const double* force,
                           LinkStiffness<R>& stiffness) {
  const Vec3d& arm = contact.arm_a;
  Sym3d C{};
  add_outer(contact.axis, g, 0, 0, 1, C);
  if (contact.nrow >= 3) add_outer(contact.axis, g, 0, 1, 2, C);
  const Vec3d hx = cross(arm, C.column_x()), hy = cross(arm, C.column_y()), hz = cross(arm, C.column_z());
  Sym3d I{arm.y * hz.x - arm.z * hy.x, arm.y * hz.y - arm.z * hy.y, arm.y * hz.z - arm.z * hy.z,
          arm.z * hx.y - arm.x * hz.y, arm.z * hx.z - arm.x * hz.z, arm.x * hy.z - arm.y * hx.z};
  const auto [moment, f] = contact_sum(contact, force);
  if (contact.nrow >= 4) add_outer(contact.axis, g, 3, 0, 1, I);
  if (contact.nrow >= 6) add_outer(contact.axis, g, 3, 1, 2, I);
  stiffness.M += narrow<R>(C), stiffness.I += narrow<R>(I);
  stiffness.H = stiffness.H + from_columns(narrow<R>(hx), narrow<R>(hy), narrow<R>(hz));
  stiffness.n += narrow<R>(moment + cross(arm, f)), stiffness.f += narrow<R>(f);
}

template <class R>
void add_joint_stiffness(const JointRows& rows, bool free_joint, const Tangent& g, const double* force,
                         LinkStiffness<R>& stiffness) {
  if (rows.part == JointRows::Part::axial) {
    stiffness.joint.xx += R(rows.e.x * g.at[0][0] * rows.e.x), stiffness.joint_force.x += R(rows.e.x * force[0]);
    return;
  }
  Sym3d C{};
  Vec3d f{};
  if (rows.nrow == 1) {
    const Vec3d& e = rows.e;
    add_outer(&e, g, 0, 0, 1, C);
    f = e * force[0];
  } else {
    C = {g.at[0][0], g.at[0][1], g.at[0][2], g.at[1][1], g.at[1][2], g.at[2][2]};
    f = {force[0], force[1], force[2]};
  }
  if (!free_joint) {
    stiffness.joint += narrow<R>(C), stiffness.joint_force += narrow<R>(f);
  } else if (rows.part == JointRows::Part::linear) {
    stiffness.M += narrow<R>(C), stiffness.f += narrow<R>(f);
  } else {
    stiffness.I += narrow<R>(C), stiffness.n += narrow<R>(f);
  }
}

template <class R>
void add_wrench_stiffness(const Force<double>& wrench, double g, double force, LinkStiffness<R>& stiffness) {
  const Vec3d &n = wrench.n, &f = wrench.f, gn = n * g, gf = f * g;
  stiffness.I += narrow<R>(Sym3d{gn.x * n.x, gn.x * n.y, gn.x * n.z, gn.y * n.y, gn.y * n.z, gn.z * n.z});
  stiffness.M += narrow<R>(Sym3d{gf.x * f.x, gf.x * f.y, gf.x * f.z, gf.y * f.y, gf.y * f.z, gf.z * f.z});
  stiffness.H = stiffness.H + from_columns(narrow<R>(gn * f.x), narrow<R>(gn * f.y), narrow<R>(gn * f.z));
  stiffness.n += narrow<R>(n * force), stiffness.f += narrow<R>(f * force);
}

template <class R>
JointArms joint_arms(const Model& model, const LinkState<R>* links, const JointRows& rows) {
  const Joint& joint = model.joints[rows.joint];
  if (rows.part == JointRows::Part::axial) return {joint.qvel, 1, {{rows.e.x}}};
  const bool angular = rows.part == JointRows::Part::angular;
  JointArms arms{joint.qvel + (angular ? scalar_count(joint.type) : 0), 3, {}};
  for (int i = 0; i < rows.nrow; ++i) {
    Vec3d e = rows.nrow == 1 ? rows.e : Vec3d{i == 0 ? 1.0 : 0.0, i == 1 ? 1.0 : 0.0, i == 2 ? 1.0 : 0.0};
    if (angular) e = transpose_mul(widen(links[rows.joint].R), e);
    for (int c = 0; c < 3; ++c) arms.at[i][c] = e[c];
  }
  return arms;
}

template <class R>
void turning_velocity(const Model& model, const LinkState<R>* links, const JointRows& rows, const R* qvel,
                      double* out) {
  const Joint& joint = model.joints[rows.joint];
  const R* at = qvel + joint.qvel;
  Vec3d v;
  if (rows.part == JointRows::Part::linear) {
    v = {double(at[0]), double(at[1]), double(at[2])};
  } else {
    at += scalar_count(joint.type);
    v = widen(links[rows.joint].R * Vec3<R>{at[0], at[1], at[2]});
  }
  if (rows.nrow == 1) {
    out[0] = dot(rows.e, v);
    return;
  }
  for (int k = 0; k < 3; ++k) out[k] = v[k];
}

#define TARSUS_INSTANTIATE(R)                                                                                     \
  template void add_contact_stiffness<R>(const ContactRows&, const Tangent&, const double*, LinkStiffness<R>&);   \
  template void add_joint_stiffness<R>(const JointRows&, bool, const Tangent&, const double*, LinkStiffness<R>&); \
  template void add_wrench_stiffness<R>(const Force<double>&, double, double, LinkStiffness<R>&);                 \
  template JointArms joint_arms<R>(const Model&, const LinkState<R>*, const JointRows&);                          \
  template void turning_velocity<R>(const Model&, const LinkState<R>*, const JointRows&, const R*, double*);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
