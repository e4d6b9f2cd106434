// The response of spinning links against dense matrices, with derivatives of C from inverse dynamics.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <string>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/dynamics/spin_response.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus::test {
namespace {

using Dense = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Model spinning_model(const std::string& bodies) {
  return compile(
      parse_mjcf("<mujoco><option gravity='0 0 0'/><default><geom contype='0' conaffinity='0'/></default>"
                 "<worldbody>" +
                     bodies + "</worldbody></mujoco>",
                 "spin.xml", "."));
}

const char* const kCarriers = R"(<body><freejoint/><geom type="box" size=".1 .2 .05" pos=".02 .03 0" mass="2"/>
  <body pos=".1 0 0"><joint axis=".6 .8 0"/><geom type="cylinder" fromto="0 0 0 .006 .008 0" size=".1" mass="1"/></body>
  <body pos="0 .3 0" euler="10 20 30"><joint axis="1 0 0"/><geom type="capsule" fromto="0 0 0 0 .2 0" size=".03"/>
    <body pos="0 .2 0"><joint type="ball"/><geom type="box" size=".05 .03 .02"/>
      <body name="wheel" pos="0 0 .1"><joint axis="0 0 1"/><geom type="cylinder" size=".12 .01" mass=".8"/></body>
      <body pos="0 0 -.1"><joint axis="0 0 1"/><geom type="box" size=".12 .01 .01" mass=".1"/></body></body></body></body>)";

TEST(SpinResponse, SpinsAreRoundLinksOfTheirOwnAndBodiesAlone) {
  const Model model =
      spinning_model(std::string(kCarriers) +
                     "<body pos='1 0 0'><freejoint/><geom type='box' size='.1 .2 .3'/></body>"
                     "<body pos='2 0 0'><freejoint/><geom size='.1'/></body>"
                     "<body pos='3 0 0'><joint type='ball'/><geom size='.1' pos='0 0 .2'/></body>"
                     "<body pos='4 0 0'><joint axis='0 0 1'/><geom type='cylinder' size='.1 .1'/></body>");
  // The free base carries links; the bar is not round; a ball has no velocity products; a wheel on the world has no
  // carrier.
  const std::vector<std::uint8_t> expected = {0, kRoundLink, 0, 0, kRoundLink, 0, kLoneLink, 0, kLoneLink, 0};
  EXPECT_EQ(spinning_links(model), expected);
}

void turn_at_random(const Model& model, Random& random, Data& data) {
  AlignedVector<double> by(std::size_t(model.nv)), from(data.qpos);
  for (double& x : by) x = random.uniform(-2, 2);
  integrate<double>(model, data, from, by, 1, data.qpos);
}

/// C(v) of a model without gravity.
Vector products_of(const Model& model, Data& work, const AlignedVector<double>& qpos, const Vector& v) {
  AlignedVector<double> qvel(v.data(), v.data() + v.size()), out(v.size());
  bias_force<double>(model, work, qpos, qvel, out);
  return Eigen::Map<const Vector>(out.data(), v.size());
}

/// M̂ and ½ h ∂C/∂v of `spins` alone. C is quadratic: the part of the derivative that belongs to a spin s is
/// C(x + s) - C(x) - C(s).
struct Matrices {
  Dense M, B;
  Matrices(const Model& model, const Data& data, double h, const std::vector<Vector>& spins) {
    const int nv = model.nv;
    Data work(model);
    AlignedVector<double> mass(std::size_t(nv * nv));
    crba<double>(model, work, data.qpos, mass);
    M = Eigen::Map<const Dense>(mass.data(), nv, nv);
    for (int v = 0; v < nv; ++v) M(v, v) += data.joint_inertia[std::size_t(v)];
    B = Dense::Zero(nv, nv);
    const auto C = [&](const Vector& v) { return products_of(model, work, data.qpos, v); };
    for (const Vector& s : spins) {
      for (int v = 0; v < nv; ++v) {
        const Vector x = Vector::Unit(nv, v);
        B.col(v) += h / 2 * (C(x + s) - C(x) - C(s));
      }
    }
  }
  Vector response(const Vector& d) const { return (M + B).partialPivLu().solve(M * d) - d; }
};

/// correct() beside the dense solution. @param spin_of joints whose rates, of `rate`, are the spins
/// @param others largest other rate @param change largest change of a rate by the terms
void expect_dense_response(const Model& model, const std::vector<int>& spin_of, double rate, double others,
                           double change) {
  const double h = 2e-3;
  const int nv = model.nv;
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Data data(model);
    turn_at_random(model, random, data);
    Vector d(nv);
    for (int v = 0; v < nv; ++v) data.qvel[v] = random.uniform(-others, others), d[v] = random.uniform(-change, change);
    std::vector<Vector> spins;
    for (const int j : spin_of) {
      const Joint& joint = model.joints[std::size_t(j)];
      Vector s = Vector::Zero(nv);
      for (int k = std::max(joint.nv() - 3, 0); k < joint.nv(); ++k)
        data.qvel[joint.qvel + k] = s[joint.qvel + k] = random.uniform(0.5, 1) * rate;
      spins.push_back(s);
    }
    for (const Joint& joint : model.joints) {
      const double angular = random.uniform(0, 0.01);
      for (int k = 0; k < joint.nv(); ++k)
        data.joint_inertia[joint.qvel + k] = joint.nv() == 6 && k < 3 ? random.uniform(0, 0.1) : angular;
    }
    Vector free(nv), next(nv);
    for (int v = 0; v < nv; ++v) free[v] = data.qvel[v] + random.uniform(-1, 1);
    next = free + d;
    SpinResponse<double> response(model, data, spinning_links(model));
    response.begin();
    const double known = 1;
    const auto span = [](Vector& x) { return Out<double>(x.data(), std::size_t(x.size())); };
    const Vector before = free;
    ASSERT_TRUE(response.correct(model, data, h, {&known, 1}, span(free), span(next), data.joint_inertia));
    const Vector expected = Matrices(model, data, h, spins).response(d);
    const Vector found = Eigen::Map<const Vector>(response.change().data(), nv);
    EXPECT_GT(expected.norm(), 1e-3 * d.norm());
    EXPECT_LT((found - expected).norm(), 1e-12 * d.norm()) << "seed " << seed;
    EXPECT_EQ((before + found - free).norm(), 0);
    // With the change in v⁰ the terms give the same impulse: nothing is left to correct.
    Vector after = next + found;
    EXPECT_FALSE(response.correct(model, data, h, {&known, 1}, span(free), span(after), data.joint_inertia));
    EXPECT_LT((Eigen::Map<const Vector>(response.change().data(), nv) - found).norm(), 1e-15);
    response.begin();
    EXPECT_TRUE(response.change().empty());
    const double unknown = 0;
    EXPECT_FALSE(response.correct(model, data, h, {&unknown, 1}, span(free), span(next), data.joint_inertia));
  }
}

TEST(SpinResponse, RotorsMatchTheDenseMatrix) {
  const Model model = spinning_model(kCarriers);
  expect_dense_response(model, {1, 4}, 200, 3, 0.1);
}

TEST(SpinResponse, BodiesAloneMatchTheDenseMatrix) {
  expect_dense_response(spinning_model("<body><freejoint/><geom type='box' size='.1 .2 .3'/></body>"), {0}, 30, 1, 3);
  expect_dense_response(
      spinning_model("<body><joint type='ball'/><geom type='box' size='.1 .2 .3' pos='.1 .3 .2'/></body>"), {0}, 30, 1,
      3);
}

/// The couple on a free body whose origin is not its centre of mass leaves its momentum as it is.
TEST(SpinResponse, LinearMomentumStays) {
  const Model model =
      spinning_model("<body><freejoint/><geom type='box' size='.1 .2 .3' pos='.2 -.1 .05' mass='3'/></body>");
  Random random(1);
  Data data(model);
  turn_at_random(model, random, data);
  for (int k = 3; k < 6; ++k) data.qvel[k] = random.uniform(10, 20);
  AlignedVector<double> next(data.qvel), mass(36);
  for (double& v : next) v += random.uniform(-0.5, 0.5);
  SpinResponse<double> response(model, data, spinning_links(model));
  const double known = 1;
  ASSERT_TRUE(response.correct(model, data, 2e-3, {&known, 1}, data.qvel, next, data.joint_inertia));
  crba<double>(model, data, data.qpos, mass);
  const Vector p = Eigen::Map<const Dense>(mass.data(), 6, 6) * Eigen::Map<const Vector>(response.change().data(), 6);
  EXPECT_LT(p.head(3).norm(), 1e-12);
  EXPECT_GT(p.tail(3).norm(), 1e-4);
}

}  // namespace
}  // namespace tarsus::test
