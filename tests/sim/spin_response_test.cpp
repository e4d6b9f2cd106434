// What spins keeps spinning on contacts and loops: coins that roll, tops, gyroscopes, wheels in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"
#include "tarsus/sim/rigid_world.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

constexpr double kGravity = 9.81, kPi = 3.14159265358979323846;

Model spin_model(const std::string& text) { return compile(parse_mjcf(text, "spin.xml", ".")); }

/// Angle between the z axis of the orientation at `at` in qpos and the vertical.
template <class R>
double tilt(const AlignedVector<R>& qpos, std::size_t at) {
  const double x = double(qpos[at + 1]), y = double(qpos[at + 2]);
  return std::acos(std::clamp(1 - 2 * (x * x + y * y), -1.0, 1.0));
}

/// A disk of radius R and mass m that rolls in a circle: its axis is tilted by `tilt` from the vertical and turns about
/// it at `turn`. Its spin follows from dL/dt = -r × F about its centre, with r from the contact to the centre and
/// F = m (a + g z).
struct Coin {
  static constexpr double R = 0.05, m = 0.1, thin = 5e-4, across = m * R * R / 4, along = 2 * across;
  double tilt, turn;

  /// @param beside more bodies  @param after what follows the bodies
  Model model(const char* beside = "", const char* after = "") const {
    char text[3200];
    std::snprintf(text, sizeof text, R"(<mujoco><worldbody><geom type="plane" size="9 9 1" friction="1 0 0"/>
      <body><freejoint/><inertial pos="0 0 0" mass="%.17g" diaginertia="%.17g %.17g %.17g"/>
      <geom type="cylinder" size="%.17g %.17g" friction="1 0 0"/></body>%s</worldbody>%s</mujoco>)",
                  m, across, across, along, R, thin, beside, after);
    return spin_model(text);
  }
  void start(AlignedVector<double>& qpos, AlignedVector<double>& qvel) const {
    const Vec3d n = {std::sin(tilt), 0, std::cos(tilt)}, u = {-std::cos(tilt), 0, std::sin(tilt)}, z = {0, 0, 1};
    const Vec3d r = u * R + n * thin;  // from the contact to the centre
    const Vec3d e = cross(n, u);       // u, e, n: the body's axes
    const auto angular = [&](double spin) { return z * turn + n * spin; };
    const auto moment = [&](double spin) {  // the difference of the two sides
      const Vec3d w = angular(spin), a = cross(z * turn, cross(w, r)), F = (a + z * kGravity) * m;
      const double axial = dot(w, n);
      const Vec3d L = (w - n * axial) * across + n * (axial * along);
      return dot(cross(z * turn, L) - cross(-r, F), e);
    };
    const double at0 = moment(0), spin = -at0 / (moment(1) - at0);
    const Vec3d w = angular(spin), v = cross(w, r);
    const double half = (kPi / 2 - tilt) / 2;  // the body's x axis is u: z first turns to x, and x to -z
    const Quatd q = Quatd{std::cos(kPi / 4), 0, std::sin(kPi / 4), 0} * Quatd{std::cos(half), 0, -std::sin(half), 0} *
                    Quatd{0, 0, 0, 1};
    qpos = {r.x, r.y, r.z, q.w, q.x, q.y, q.z};
    qvel = {v.x, v.y, v.z, dot(w, u), dot(w, e), dot(w, n)};
  }
  static double energy(const AlignedVector<double>& qpos, const AlignedVector<double>& qvel) {
    const double* const v = qvel.data();
    return 0.5 * m * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) + 0.5 * across * (v[3] * v[3] + v[4] * v[4]) +
           0.5 * along * v[5] * v[5] + m * kGravity * qpos[2];
  }
};

TEST(SpinResponse, ACoinRollsInItsCircle) {
  const Coin coin{70 * kPi / 180, 4};
  const Model model = coin.model();
  for (const double h : {1.0 / 60, 1.0 / 240, 2e-3, 5e-4}) {
    Data data(model);
    coin.start(data.qpos, data.qvel);
    ASSERT_NEAR(tilt(data.qpos, 3), coin.tilt, 1e-12);
    StepOptions options{.dt = h};
    options.rows.contacts = true;
    Stepper<double> stepper(model, data, options);
    const double start = Coin::energy(data.qpos, data.qvel);
    double off = 0, least = 1, most = 1;
    for (int i = 0; i < int(10 / h); ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      off = std::max(off, std::abs(tilt(data.qpos, 3) - coin.tilt) * 180 / kPi);
      const double now = Coin::energy(data.qpos, data.qvel) / start;
      least = std::min(least, now), most = std::max(most, now);
      ASSERT_LE(stepper.rows_report(0)->residual, 1e-6);
    }
    std::printf("%.4f s: off by %.2f degrees, energy %.4f to %.4f of the start's\n", h, off, least, most);
    EXPECT_LT(off, 3) << h;
    EXPECT_GT(least, 0.975) << h;
    EXPECT_LT(most, 1.005) << h;
  }
}

/// The responses of a step with loops are solved with the loops' rows.
TEST(SpinResponse, ACoinRollsBesideALoopAsItDoesAlone) {
  const Coin coin{70 * kPi / 180, 4};
  const char* const bars =
      R"(<body pos="0 0 3"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".01"/>
    <body name="a" pos=".2 0 0"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 -.1" size=".01"/></body></body>
    <body name="b" pos=".4 0 2.7"><joint axis="0 1 0" range="-20 20" limited="true"/>
    <geom type="capsule" fromto="0 0 0 0 0 .2" size=".01"/></body>)";
  const char* const joined = R"(<equality><connect body1="a" body2="b" anchor=".2 0 -.1"/></equality>)";
  const Model alone = coin.model(), beside = coin.model(bars, joined);
  StepOptions options{.dt = 1.0 / 120};
  options.rows.contacts = options.rows.joints = true, options.rows.solve.tolerance = 1e-11;
  Data one(alone), both(beside);
  coin.start(one.qpos, one.qvel);
  std::copy(one.qpos.begin(), one.qpos.end(), both.qpos.begin());
  std::copy(one.qvel.begin(), one.qvel.end(), both.qvel.begin());
  Stepper<double> without(alone, one, options), with(beside, both, options);
  double swings = 0;
  for (int i = 0; i < 240; ++i) {
    ASSERT_EQ(without.step(one) + with.step(both), 0);
    for (std::size_t k = 0; k < 7; ++k) ASSERT_NEAR(one.qpos[k], both.qpos[k], 1e-8) << i;
    ASSERT_LT(with.loops()->error(0).position, 1e-3) << i;
    ASSERT_LE(with.rows_report(0)->residual, 1e-11) << i;
    swings = std::max(swings, std::abs(both.qvel[6]));
  }
  EXPECT_GT(swings, 0.5);  // the loop moves
}

/// A coin, a box with a wheel and rolling friction, a gyroscope on a loop, and an arm with a weak drive that meets the
/// end of its range: every kind of row responds in lanes as in one world.
TEST(SpinResponse, LanesRespondAsOneWorldDoes) {
  const Coin coin{70 * kPi / 180, 4};
  const char* const more = R"(
    <body pos="1 0 .06"><freejoint/><geom type="box" size=".1 .08 .05" condim="6" friction=".8 .01 .001"/>
      <body pos="0 0 .12"><joint axis=".2 0 1"/><geom type="cylinder" fromto="0 0 0 .002 0 .01" size=".06" mass=".5"/></body></body>
    <body name="top" pos="4 0 1"><freejoint/><geom type="capsule" fromto="0 0 0 0 0 .2" size=".01"/>
      <body pos="0 0 .2"><joint axis="0 0 1"/><geom type="cylinder" size=".08 .01" mass=".5"/></body></body>
    <body pos="2 0 .5"><joint name="swing" axis="0 1 0" range="-10 10" limited="true" frictionloss=".01"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body>)";
  const char* const driven = R"(<equality><connect body1="top" anchor="0 0 0"/></equality>
    <actuator><position joint="swing" kp="5" forcerange="-.1 .1"/></actuator>)";
  const Model model = coin.model(more, driven);
  StepOptions options{.dt = 1.0 / 240};
  options.rows.contacts = options.rows.joints = true, options.rows.solve.tolerance = 1e-11;
  const int worlds = 9;
  Batch<double> batch(model, worlds, {.step = options});
  std::vector<Data> data(worlds, Data(model));
  std::vector<std::unique_ptr<Stepper<double>>> alone;
  Random random(5);
  const std::size_t nq = std::size_t(model.nq), nv = std::size_t(model.nv);
  for (int world = 0; world < worlds; ++world) {
    Data& d = data[std::size_t(world)];
    AlignedVector<double> qpos, qvel;
    coin.start(qpos, qvel);
    std::copy(qpos.begin(), qpos.end(), d.qpos.begin()), std::copy(qvel.begin(), qvel.end(), d.qvel.begin());
    for (std::size_t v = 6; v < nv; ++v) d.qvel[v] = random.uniform(-0.5, 0.5);
    d.qvel[12] = random.uniform(100, 200), d.qvel[19] = random.uniform(100, 200), d.ctrl[0] = random.uniform(-1, 1);
    std::copy(d.qpos.begin(), d.qpos.end(), batch.qpos().begin() + std::ptrdiff_t(nq) * world);
    std::copy(d.qvel.begin(), d.qvel.end(), batch.qvel().begin() + std::ptrdiff_t(nv) * world);
    batch.ctrl()[std::size_t(world)] = d.ctrl[0];
    alone.push_back(std::make_unique<Stepper<double>>(model, d, options));
  }
  for (int i = 0; i < 120; ++i) {
    ASSERT_EQ(batch.step(), 0);
    for (int world = 0; world < worlds; ++world) {
      Data& d = data[std::size_t(world)];
      ASSERT_EQ(alone[std::size_t(world)]->step(d), 0);
      for (std::size_t v = 0; v < nv; ++v)
        ASSERT_NEAR(batch.qvel()[nv * std::size_t(world) + v], d.qvel[v], 1e-7 * (1 + std::abs(d.qvel[v])))
            << "world " << world << ", step " << i << ", dof " << v;
    }
  }
}

/// In lanes too, and beside coins that lie or are thrown.
template <class R>
void coins_in_lanes() {
  const Coin coin{70 * kPi / 180, 4};
  const Model model = coin.model();
  const int worlds = 21;
  StepOptions options{.dt = 1.0 / 120};
  options.rows.contacts = true;
  Batch<R> batch(model, worlds, {.step = options}), alone(model, 1, {.step = options});
  AlignedVector<double> qpos, qvel;
  coin.start(qpos, qvel);
  const auto put = [&](Batch<R>& into, int world, double share) {
    const std::size_t q = std::size_t(7 * world), v = std::size_t(6 * world);
    for (std::size_t k = 0; k < 7; ++k) into.qpos()[q + k] = R(qpos[k]);
    for (std::size_t k = 0; k < 6; ++k) into.qvel()[v + k] = R(qvel[k] * share);
  };
  for (int world = 0; world < worlds; ++world) put(batch, world, world % 3 ? 0.5 * (world % 5) : 1);
  put(alone, 0, 1);
  for (int i = 0; i < 480; ++i) {
    ASSERT_EQ(batch.step() + alone.step(), 0);
    for (int world = 0; world < worlds; world += 3) {
      for (std::size_t k = 0; k < 7; ++k)
        ASSERT_EQ(batch.qpos()[std::size_t(7 * world) + k], alone.qpos()[k]) << "world " << world << ", step " << i;
    }
    const AlignedVector<R> now(alone.qpos().begin(), alone.qpos().end());
    ASSERT_NEAR(tilt(now, 3), coin.tilt, 0.06) << i;
  }
}
TEST(SpinResponse, CoinsRollInLanesAsAlone) {
  coins_in_lanes<double>();
#ifndef TARSUS_DOUBLE_ONLY
  coins_in_lanes<float>();
#endif
}

TEST(SpinResponse, ACoinRollsInAWorldOfRigidBodies) {
  const Coin coin{70 * kPi / 180, 4};
  AlignedVector<double> qpos, qvel;
  coin.start(qpos, qvel);
  RigidWorldOptions options;
  options.dt = 1.0 / 240, options.iterations = 100, options.tolerance = 1e-9;
  RigidWorld<double> world(options);
  RigidBody body;
  body.mass = Coin::m, body.inertia = {Coin::across, Coin::across, Coin::along};
  body.position = {qpos[0], qpos[1], qpos[2]}, body.orientation = {qpos[3], qpos[4], qpos[5], qpos[6]};
  body.velocity = {qvel[0], qvel[1], qvel[2]};
  body.angular_velocity = rotation(body.orientation) * Vec3d{qvel[3], qvel[4], qvel[5]};
  Surface surface;
  surface.friction = 1;
  world.add_surface(surface);
  world.add_body(body);
  BodyShape shape;
  shape.shape.type = ShapeType::plane;
  world.add_shape(shape);
  shape.body = 0, shape.shape.type = ShapeType::cylinder, shape.shape.size = {Coin::R, Coin::thin, 0};
  world.add_shape(shape);
  double off = 0;
  for (int i = 0; i < 4 * 240; ++i) {
    ASSERT_EQ(world.step().status, WorldStatus::ok);
    const Quatd q = world.bodies()[0].orientation;
    off = std::max(off, std::abs(tilt(AlignedVector<double>{q.w, q.x, q.y, q.z}, 0) - coin.tilt) * 180 / kPi);
  }
  std::printf("off by %.2f degrees\n", off);
  EXPECT_LT(off, 3);
}

/// A heavy top whose rotor turns on a hinge of its frame. The frame's origin, 0.1 m from its centre of mass, is held.
struct Top {
  static constexpr double m = 1, l = 0.1, spin = 150, along = 5e-3;
  static constexpr double across = 3e-3 + m * l * l;  ///< about the held point
  std::string before, after, joint = "<freejoint/>";

  Model model() const {
    return spin_model("<mujoco><worldbody>" + before + "<body name='top'>" + joint +
                      "<inertial pos='0 0 .1' mass='.1' diaginertia='1e-4 1e-4 1e-4'/><body pos='0 0 .1'><joint "
                      "axis='0 0 1'/><inertial pos='0 0 0' mass='.9' diaginertia='.0029 .0029 .005'/></body>" +
                      after);
  }
};

/// The slow precession of a top whose axis is tilted: along spin Ω - (across - along) Ω² cos tilt = m g l. The spin is
/// relative to the frame.
double precession(double at) {
  const double a = (Top::along - Top::across) * std::cos(at), b = Top::along * Top::spin;
  return 2 * Top::m * kGravity * Top::l / (b + std::sqrt(b * b + 4 * a * Top::m * kGravity * Top::l));
}

struct TopMotion {
  double least, most, rate;  ///< tilts, precession [rad/s]
};
TopMotion turn_top(const Top& top, double at, double h, double seconds) {
  const Model model = top.model();
  Data data(model);
  const double rate = precession(at);
  const std::size_t q = model.joints[0].nv() == 6 ? 3 : 0, v = q;
  if (q > 0 && !top.before.empty()) data.qpos[2] = 1e-3;  // on the sphere that touches the floor
  data.qpos[q] = std::cos(at / 2), data.qpos[q + 1] = std::sin(at / 2), data.qpos[q + 2] = data.qpos[q + 3] = 0;
  data.qvel[v] = 0, data.qvel[v + 1] = rate * std::sin(at), data.qvel[v + 2] = rate * std::cos(at);
  data.qvel[v + 3] = Top::spin;
  StepOptions options{.dt = h};
  options.rows.contacts = !top.before.empty();
  Stepper<double> stepper(model, data, options);
  TopMotion out{at, at, 0};
  double last = 0, turned = 0;
  for (int i = 0; i < int(seconds / h); ++i) {
    EXPECT_EQ(stepper.step(data), 0);
    const double now = tilt(data.qpos, q);
    out.least = std::min(out.least, now), out.most = std::max(out.most, now);
    const double w = data.qpos[q], x = data.qpos[q + 1], y = data.qpos[q + 2], z = data.qpos[q + 3];
    const double azimuth = std::atan2(2 * (y * z - w * x), 2 * (x * z + w * y));
    if (i > 0) turned += std::remainder(azimuth - last, 2 * kPi);
    last = azimuth;
  }
  out.rate = turned / (seconds - h);
  return out;
}

const Top kOnLoop{"", "</body></worldbody><equality><connect body1='top' anchor='0 0 0'/></equality></mujoco>"};
const Top kOnFloor{"<geom type='plane' size='3 3 1' friction='5 0 0'/>",
                   "<geom size='.001' mass='0' friction='5 0 0'/></body></worldbody></mujoco>"};
const Top kOnBall{"", "</body></worldbody></mujoco>", "<joint type='ball'/>"};

TEST(SpinResponse, GyroscopesDoNotSink) {
  for (const auto& [top, at, name] :
       {std::tuple{kOnLoop, 1.2, "connect"}, {kOnFloor, 0.5, "floor"}, {kOnBall, 1.2, "ball"}}) {
    for (const double h : {1.0 / 240, 2e-3, 5e-4}) {
      const TopMotion p = turn_top(top, at, h, 4);
      std::printf("%s, %.4f s: tilt %.4f to %.4f, precession %.4f (%.4f)\n", name, h, p.least, p.most, p.rate,
                  precession(at));
      EXPECT_NEAR(p.least, at, 0.03) << name << ", " << h;
      EXPECT_NEAR(p.most, at, 0.03) << name << ", " << h;
      EXPECT_NEAR(p.rate, precession(at), 0.03 * precession(at)) << name << ", " << h;
    }
  }
}

/// A satellite with a wheel of 300 rad/s nutates. The wheel's spin does not count in θ.
TEST(SpinResponse, ASatelliteWithAWheelNutates) {
  const Model model = spin_model(R"(<mujoco><option gravity="0 0 0"/><worldbody><body><freejoint/>
    <inertial pos="0 0 0" mass="5" diaginertia=".05 .05 .05"/><body><joint axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".001 .001 .002"/></body></body></worldbody></mujoco>)");
  for (const auto& [h, kept] : {std::pair{1.0 / 60, 0.8}, {1.0 / 240, 0.98}, {2e-3, 0.995}}) {
    Data data(model);
    data.qvel = {0, 0, 0, 0.5, 0.3, 0.1, 300};
    Stepper<double> stepper(model, data, {.dt = h});
    const double start = std::hypot(0.5, 0.3);
    for (int i = 0; i < int(10 / h); ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      const double now = std::hypot(data.qvel[3], data.qvel[4]);
      ASSERT_LT(now, 1.01 * start) << h << ", step " << i;
      ASSERT_GT(now, kept * start) << h << ", step " << i;
    }
    EXPECT_NEAR(data.qvel[6], 300, 0.5);
  }
}

}  // namespace
}  // namespace tarsus::test
