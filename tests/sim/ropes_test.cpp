// Ropes of many links, and what hangs on them (tarsus/constraint/hanging.hpp).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

double total_energy(const Model& model, Data& workspace, const Data& data) {
  kinematics<double>(model, workspace, data.qpos, data.qvel);
  return energy<double>(model, workspace, data.qpos, data.qvel).total();
}

/// What a rope of rods is made of.
enum class Rope {
  tree,    ///< joints
  held,    ///< joints, its first rod a free body on a connect
  loaded,  ///< joints, its load a free body on a connect
  loose    ///< free bodies on connects
};

std::string inertial(double mass, double along, double across, double axial) {
  std::ostringstream out;
  out.precision(17);
  out << "<inertial pos='0 0 " << along << "' mass='" << mass << "' diaginertia='" << across << " " << across << " "
      << axial << "'/>";
  return out.str();
}

/// A metre of rope of 0.1 kg and a load [kg] that hangs from 3 m.
Model rope(int n, double load = 0, Rope kind = Rope::tree, const std::string& joint = "<joint type='ball'/>") {
  const double length = 1.0 / n, mass = 0.1 / n, across = mass * length * length / 12;
  const std::string rod = inertial(mass, -length / 2, across, 0.03 * across),
                    heavy = inertial(load, 0, 0.01 * load, 0.01 * load);
  std::ostringstream bodies, loops;
  bodies.precision(17);
  std::string end;
  for (int i = 0; i < n; ++i) {
    const bool free = kind == Rope::loose || (kind == Rope::held && i == 0);
    bodies << "<body name='rod" << i << "' pos='0 0 "
           << (i == 0                ? 3
               : kind == Rope::loose ? 3 - i * length
                                     : -length)
           << "'>" << (free ? "<freejoint/>" : joint) << rod << (kind == Rope::loose ? "</body>" : "");
    if (kind != Rope::loose) end += "</body>";
    if (!free) continue;
    loops << "<connect body1='rod" << i << "' anchor='0 0 0'";
    if (i > 0) loops << " body2='rod" << i - 1 << "'";
    loops << "/>";
  }
  const bool by_loop = kind == Rope::loaded || kind == Rope::loose;
  if (load > 0 && !by_loop) bodies << "<body pos='0 0 " << -length << "'>" << heavy << "</body>";
  bodies << end;
  if (load > 0 && by_loop) {
    bodies << "<body name='load' pos='0 0 2'><freejoint/>" << heavy << "</body>";
    loops << "<connect body1='load' body2='rod" << n - 1 << "' anchor='0 0 0'/>";
  }
  return compile(
      parse_mjcf("<mujoco><worldbody>" + bodies.str() + "</worldbody><equality>" + loops.str() + "</equality></mujoco>",
                 "rope", "."));
}

/// Turns the first joint, a ball's, by an angle from the vertical.
void tilt(Data& data, double angle) { data.qpos[0] = std::cos(angle / 2), data.qpos[2] = std::sin(angle / 2); }

Vec3d tip(const Model& model, Data& data) {
  kinematics<double>(model, data, data.qpos, data.qvel);
  const LinkState<double>& last = data.links()[std::size_t(model.njoint() - 1)];
  return last.o;
}

/// Near the vertical the inertia is no less than h²/4 times the second derivatives of the potential, in any direction
/// of the joints' space, and in some direction at most six times as much.
TEST(Ropes, TheInertiaIsNoLessThanTheStiffnessOfGravity) {
  const double h = 1.0 / 30, by = 1e-3;
  for (const std::string& joint :
       {std::string("<joint type='ball'/>"),
        std::string("<joint type='hinge' axis='1 0 0'/><joint type='hinge' axis='0 1 0'/>")}) {
    for (const double load : {0.0, 0.1, 10.0}) {
      const Model model = rope(12, load, Rope::tree, joint);
      const std::size_t nv = std::size_t(model.nv);
      Data data(model), workspace(model);
      HangingLinks<double> hanging(model, h, nullptr);
      ASSERT_TRUE(hanging.any());
      Random random(3);
      std::vector<double> turn(nv), moved(std::size_t(model.nq)), still(nv);
      for (double& x : turn) x = random.uniform(-0.02, 0.02);
      integrate<double>(model, data, data.qpos, turn, 1, moved);
      std::copy(moved.begin(), moved.end(), data.qpos.begin());
      AlignedVector<double> inertia;
      hanging.find(model, data, inertia);
      ASSERT_EQ(inertia.size(), nv);
      const auto potential = [&](const std::vector<double>& x, double scale) {
        std::vector<double> to(nv);
        for (std::size_t i = 0; i < nv; ++i) to[i] = scale * x[i];
        integrate<double>(model, workspace, data.qpos, to, 1, moved);
        kinematics<double>(model, workspace, moved, still);
        return energy<double>(model, workspace, moved, still).potential;
      };
      double least = 1e9;
      for (int sample = 0; sample < 400; ++sample) {
        std::vector<double> x(nv);
        double with = 0;
        for (std::size_t i = 0; i < nv; ++i) {
          // All joints at once, one of them, and alternating ones, as the fastest vibration has them.
          const int k = sample % 3;
          x[i] = k == 0      ? random.uniform(-1, 1)
                 : k == 1    ? double(i == std::size_t(sample / 3) % nv)
                 : i % 4 < 2 ? 1
                             : -1;
          with += inertia[i] * x[i] * x[i];
        }
        const double stiffness = (potential(x, by) - 2 * potential(x, 0) + potential(x, -by)) / (by * by);
        ASSERT_GE(with, 0.97 * h * h / 4 * stiffness) << joint << ", " << load << " kg, sample " << sample;
        if (stiffness > 0) least = std::min(least, with / (h * h / 4 * stiffness));
      }
      std::printf("%g kg: at least %.2f times the stiffness\n", load, least);
      EXPECT_LT(least, 6);
    }
  }
}

/// The rods vibrate under their own weight at up to 2 √(n g/l), 250 rad/s for 40 rods. With the gravity of the step's
/// start alone ten of ten ropes of 20 rods fail at 30 Hz and eight at 60 Hz, and all ropes of 40 rods.
TEST(Ropes, LimpRopesThatFallGainNoEnergy) {
  for (const double rate : {30.0, 60.0}) {
    for (const int n : {10, 20, 40}) {
      const Model model = rope(n);
      double most = 0;
      for (unsigned seed = 0; seed < 10; ++seed) {
        Data data(model), workspace(model);
        Random random(seed);
        for (double& v : data.qvel) v = random.uniform(-0.5, 0.5);
        tilt(data, M_PI / 2);
        Stepper<double> stepper(model, data, {.dt = 1 / rate});
        const double start = total_energy(model, workspace, data);
        for (int i = 0; i < 8 * rate; ++i) {
          ASSERT_EQ(stepper.step(data), 0) << n << ", seed " << seed << ", step " << i;
          most = std::max(most, total_energy(model, workspace, data) - start);
        }
      }
      const double weight = 0.1 * 9.81 / 2;  // energy released until the rope hangs straight [J]
      std::printf("%g Hz, %d rods: energy rises by %.3g of their fall's at most\n", rate, n, most / weight);
      EXPECT_LT(most, 0.05 * weight);
    }
  }
}

/// A load vibrates the rods faster still: h ω = 90 at 60 kg and 60 Hz. Without the inertia a rope with 1 kg turns at
/// 70 rad/s and gains 85 J, one with 60 kg gains 4,000 J, at 240 Hz too.
TEST(Ropes, LoadsHangStill) {
  for (const double load : {1.0, 60.0}) {
    for (const double rate : {30.0, 60.0, 240.0}) {
      for (const Rope kind : {Rope::tree, Rope::held, Rope::loaded}) {
        const Model model = rope(20, load, kind);
        Data data(model), workspace(model);
        Random random(1);
        for (double& v : data.qvel) v = random.uniform(-0.02, 0.02);
        Stepper<double> stepper(model, data, {.dt = 1 / rate});
        const double start = total_energy(model, workspace, data);
        double fastest = 0, most = 0;
        for (int i = 0; i < 4 * rate; ++i) {
          ASSERT_EQ(stepper.step(data), 0);
          for (const double v : data.qvel) fastest = std::max(fastest, std::abs(v));
          most = std::max(most, total_energy(model, workspace, data) - start);
        }
        std::printf("%g kg, %g Hz, kind %d: %.2g rad/s, %.2g J\n", load, rate, int(kind), fastest, most);
        EXPECT_LT(fastest, 2) << load << " kg, " << rate << " Hz, kind " << int(kind);
        EXPECT_LT(most, 1e-4 * load * 9.81) << load << " kg, " << rate << " Hz, kind " << int(kind);
      }
    }
  }
}

/// Loads that swing, and rods that are pushed at random.
TEST(Ropes, LoadsSwingAndGainNoEnergy) {
  for (const double load : {1.0, 60.0}) {
    for (const double rate : {60.0, 240.0}) {
      const Model model = rope(20, load);
      for (const double angle : {0.5, 1.5}) {
        Data data(model), workspace(model);
        Random random(1);
        for (double& v : data.qvel) v = random.uniform(-0.5, 0.5);
        tilt(data, angle);
        Stepper<double> stepper(model, data, {.dt = 1 / rate});
        const double start = total_energy(model, workspace, data), fall = load * 9.81 * (1 - std::cos(angle));
        for (int i = 0; i < 4 * rate; ++i) {
          ASSERT_EQ(stepper.step(data), 0);
          ASSERT_LT(total_energy(model, workspace, data) - start, 0.05 * fall)
              << load << " kg, " << rate << " Hz, " << angle << " rad, step " << i;
        }
      }
    }
  }
}

/// Loads on a `<connect>` at the end of ten links of 50 g, pushed at 1 m/s, at rates below, around and above those that
/// resolve the chain's vibrations. While the forces' inertia came and went from step to step they rose by up to 4 m.
TEST(Ropes, LoadsOnConnectsSwingAtAllRates) {
  for (const char* const joint : {"<joint type='ball'/>", "<joint axis='0 1 0'/>"}) {
    for (const double load : {4.0, 40.0, 200.0}) {
      std::string links, ends;
      for (int i = 0; i < 10; ++i) {
        links += "<body name='l" + std::to_string(i) + "' pos='0 0 " + (i ? "-.2" : "3") + "'>" + joint +
                 "<inertial pos='0 0 -.1' mass='.05' diaginertia='1.7e-4 1.7e-4 2.5e-6'/>";
        ends += "</body>";
      }
      const Model model = compile(parse_mjcf(
          "<mujoco><worldbody><body name='load' pos='0 0 1'><freejoint/><inertial pos='0 0 0' mass='" +
              std::to_string(load) + "' diaginertia='.3 .3 .3'/></body>" + links + ends +
              "</worldbody><equality><connect body1='l9' body2='load' anchor='0 0 -.2'/></equality></mujoco>",
          "load", "."));
      for (const double rate : {30.0, 60.0, 120.0, 200.0, 240.0, 340.0, 400.0, 500.0, 2000.0}) {
        Data data(model);
        data.qvel[0] = 1;
        Stepper<double> stepper(model, data, {.dt = 1 / rate});
        double highest = 0;
        for (int i = 0; i < 3 * rate; ++i) {
          ASSERT_EQ(stepper.step(data), 0);
          highest = std::max(highest, data.qpos[2]);
        }
        EXPECT_NEAR(highest, 1 + 1 / (2 * 9.81), 0.01) << joint << ", " << load << " kg, " << rate << " Hz";
      }
    }
  }
}

/// Slow swings are those of short steps.
TEST(Ropes, SlowSwingsAreThoseOfShortSteps) {
  for (const double load : {1.0, 60.0}) {
    const Model model = rope(20, load);
    std::vector<Vec3d> reference;
    for (const int rate : {3840, 240, 60}) {
      Data data(model);
      tilt(data, 0.1);
      Stepper<double> stepper(model, data, {.dt = 1.0 / rate});
      double most = 0;
      for (int i = 1; i <= rate; ++i) {
        ASSERT_EQ(stepper.step(data), 0);
        if (i % (rate / 60)) continue;
        const Vec3d at = tip(model, data);
        if (rate == 3840)
          reference.push_back(at);
        else
          most = std::max(most, norm(at - reference[std::size_t(i / (rate / 60) - 1)]));
      }
      if (rate == 3840) continue;
      std::printf("%g kg, %d Hz: off by %.2g m of 0.1 m at most\n", load, rate, most);
      EXPECT_LT(most, rate == 60 ? 4e-3 : 1e-3);
    }
  }
}

/// Free bodies on connects, limp under their own weight and with as much as a load. Without the inertia they come off
/// and turn at 4,000 rad/s.
TEST(Ropes, FreeBodiesOnConnectsHang) {
  for (const double load : {0.0, 0.1}) {
    for (const double rate : {60.0, 240.0}) {
      const Model model = rope(20, load, Rope::loose);
      Data data(model), workspace(model);
      Random random(1);
      for (double& v : data.qvel) v = random.uniform(-0.05, 0.05);
      Stepper<double> stepper(model, data, {.dt = 1 / rate});
      double fastest = 0, open = 0;
      for (int i = 0; i < 4 * rate; ++i) {
        ASSERT_EQ(stepper.step(data), 0);
        for (const double v : data.qvel) fastest = std::max(fastest, std::abs(v));
        open = std::max(open, stepper.loops()->error(0).position);
      }
      std::printf("%g kg, %g Hz: %.2g rad/s, open by %.2g m\n", load, rate, fastest, open);
      EXPECT_LT(fastest, 10);
      EXPECT_LT(open, 1e-3);
    }
  }
}

/// A chain of rods of half a kilogram, 1.2 m long, from one post by a joint to another, a metre away, by a `<connect>`,
/// with a load on its middle rod. It starts as an arc.
Model cable(int n, double load, bool hinges, double damping) {
  const double length = 1.2 / n, mass = 0.5 / n, across = mass * length * length / 12;
  double low = 0, high = M_PI, arc = 0;
  const auto span = [&](double half) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += length * std::cos(half * (1 - (2 * i + 1.0) / n));
    return sum;
  };
  while (high - low > 1e-12) arc = (low + high) / 2, (span(arc) > 1 ? low : high) = arc;
  std::ostringstream rods;
  rods.precision(17);
  std::string ends;
  double last = 0;
  for (int i = 0; i < n; ++i) {
    const double angle = arc * (1 - (2 * i + 1.0) / n);
    rods << "<body pos='" << (i ? length : 0) << " 0 0' euler='0 " << angle - last << " 0'><joint type='"
         << (hinges ? "hinge' axis='0 1 0" : "ball") << "' damping='" << damping << "'/><inertial pos='" << length / 2
         << " 0 0' mass='" << mass << "' diaginertia='" << 0.1 * across << " " << across << " " << across << "'/>";
    if (i == n / 2) rods << "<body pos='0 0 -.1'>" << inertial(load, 0, 1e-3 * load, 1e-3 * load) << "</body>";
    ends += "</body>", last = angle;
  }
  rods << "<site name='end' pos='" << length << " 0 0'/>";
  return compile(parse_mjcf("<mujoco><compiler angle='radian'/><worldbody><site name='post' pos='1 0 0'/>" +
                                rods.str() + ends + "</worldbody><equality><connect site1='end' site2='post'/>" +
                                "</equality></mujoco>",
                            "cable", "."));
}

/// From rest under the load, pushed at random. While only joints that turned far had the forces' inertia, cables
/// with 20 kg gained 15 to 640 J.
TEST(Ropes, CablesBetweenTwoPointsHang) {
  for (const bool hinges : {false, true}) {
    for (const int n : {5, 10, 20}) {
      for (const double load : {1.0, 20.0}) {
        const Model model = cable(n, load, hinges, 0), braked = cable(n, load, hinges, 0.3 + 0.3 * load);
        Data rest(braked), workspace(model);
        Stepper<double> settles(braked, rest, {.dt = 0.002});
        for (int i = 0; i < 4000; ++i) ASSERT_EQ(settles.step(rest), 0);
        double most = -1;
        for (const double rate : {30.0, 60.0, 120.0, 240.0, 500.0}) {
          Data data(model);
          data.qpos = rest.qpos;
          Random random(1);
          for (double& v : data.qvel) v = random.uniform(-0.3, 0.3);
          Stepper<double> stepper(model, data, {.dt = 1 / rate});
          const double start = total_energy(model, workspace, data);
          for (int i = 0; i < 8 * rate; ++i) {
            const double before = energy<double>(model, workspace, data.qpos, data.qvel).potential;
            ASSERT_EQ(stepper.step(data), 0) << hinges << ", " << n << " rods, " << load << " kg, " << rate << " Hz";
            const double now = total_energy(model, workspace, data);
            const double after = energy<double>(model, workspace, data.qpos, data.qvel).potential;
            most = std::max(most, now + (before - after) / 2 - start);  // the potential of half way
          }
        }
        std::printf("%s, %d rods, %g kg: gains %.2g J\n", hinges ? "hinges" : "balls", n, load, most);
        EXPECT_LT(most, 4e-3 * load * 9.81 * 1.2) << hinges << ", " << n << " rods, " << load << " kg";
      }
    }
  }
}

/// In lanes as alone.
TEST(Ropes, HangInLanesAsAlone) {
  for (const Rope kind : {Rope::tree, Rope::held, Rope::loaded}) {
    const Model model = rope(20, 1, kind);
    const int worlds = 5;
    Data many(model, worlds);
    Random random(2);
    std::vector<std::vector<double>> starts;
    for (int world = 0; world < worlds; ++world) {
      starts.push_back(random_vector(random, model.nv, world == 2 ? 0.0 : 0.1));
      many.set(many.qvel, model.nv, world, starts.back());
    }
    Stepper<double> stepper(model, many, {.dt = 1.0 / 60});
    for (int i = 0; i < 60; ++i) ASSERT_EQ(stepper.step(many), 0);
    for (int world = 0; world < worlds; ++world) {
      Data one(model);
      std::copy(starts[std::size_t(world)].begin(), starts[std::size_t(world)].end(), one.qvel.begin());
      Stepper<double> single(model, one, {.dt = 1.0 / 60});
      for (int i = 0; i < 60; ++i) ASSERT_EQ(single.step(one), 0);
      std::vector<double> v(std::size_t(model.nv));
      many.get(many.qvel, model.nv, world, v);
      for (int i = 0; i < model.nv; ++i)
        ASSERT_NEAR(v[std::size_t(i)], one.qvel[std::size_t(i)], 1e-6) << "kind " << int(kind) << ", world " << world;
    }
  }
}

/// Characters and robots are far from it, and what stands upright does not hang.
TEST(Ropes, OnlyWhatHangsHasTheInertia) {
  for (const char* name : {"humanoid", "dog", "snake72"}) {
    const Model model = compile(read_model(std::string(TARSUS_SOURCE_DIR) + "/models/" + name + ".xml"));
    EXPECT_FALSE(HangingLinks<double>(model, 1.0 / 60, nullptr).any()) << name;
  }
  const Model model = rope(40);
  Data data(model);
  HangingLinks<double> hanging(model, 1.0 / 60, nullptr);
  AlignedVector<double> inertia;
  hanging.find(model, data, inertia);
  EXPECT_FALSE(inertia.empty());
  tilt(data, M_PI);
  hanging.find(model, data, inertia);
  EXPECT_TRUE(inertia.empty());  // upright
}

}  // namespace
}  // namespace tarsus::test
