// Writing a model and reading it back gives the same dynamics, bit for bit where text can express it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "support/random_model.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/io/urdf_writer.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

namespace fs = std::filesystem;

const ReadOptions kLenient = [] {
  ReadOptions options;
  options.lenient = true;
  return options;
}();

/// Numbers that only pass through text are equal to the bit. Reading normalises unit quaternions and axes again.
constexpr double kNormalised = 4e-16;

void expect_near(const Quatd& a, const Quatd& b) {
  EXPECT_NEAR(a.w, b.w, kNormalised);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(a.vec()[i], b.vec()[i], kNormalised);
}
void expect_equal(const Vec3d& a, const Vec3d& b) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a[i], b[i]);
}

void expect_same(const JointSpec& a, const JointSpec& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.type, b.type);
  if (a.type != JointType::free) expect_equal(a.position, b.position);
  if (a.type == JointType::hinge || a.type == JointType::slide) {
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(a.axis[i], b.axis[i], kNormalised);
    EXPECT_EQ(a.reference, b.reference);
    EXPECT_EQ(a.spring_reference, b.spring_reference);
  }
  EXPECT_EQ(a.stiffness, b.stiffness);
  EXPECT_EQ(a.damping, b.damping);
  EXPECT_EQ(a.armature, b.armature);
  EXPECT_EQ(a.friction_loss, b.friction_loss);
  EXPECT_EQ(a.limited, b.limited);
  if (a.limited) {
    EXPECT_EQ(a.range, b.range);
  }
  EXPECT_EQ(a.force_limited, b.force_limited);
  if (a.force_limited) {
    EXPECT_EQ(a.force_range, b.force_range);
  }
  EXPECT_EQ(a.solver_limit, b.solver_limit);
  EXPECT_EQ(a.solver_impedance, b.solver_impedance);
}

void expect_same(const BodySpec& a, const BodySpec& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.parent, b.parent);
  expect_equal(a.position, b.position);
  expect_near(normalized(a.orientation), normalized(b.orientation));
  EXPECT_EQ(a.mocap, b.mocap);
  EXPECT_EQ(a.gravity_compensation, b.gravity_compensation);
  ASSERT_EQ(a.joints.size(), b.joints.size());
  for (std::size_t i = 0; i < a.joints.size(); ++i) expect_same(a.joints[i], b.joints[i]);
  const InertialSpec none, &m = a.inertial ? *a.inertial : none, &n = b.inertial ? *b.inertial : none;
  EXPECT_EQ(m.mass, n.mass);
  expect_equal(m.com, n.com);
  // Principal axes are written for fluids and for sensors of their frame. Rotated back they give the tensor to
  // rounding.
  const double rounding = 1e-15 * (m.inertia.xx + m.inertia.yy + m.inertia.zz);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR((&m.inertia.xx)[i], (&n.inertia.xx)[i], rounding);
}

void expect_same_geoms(const ModelSpec& a, const ModelSpec& b) {
  const auto unread = [&](const GeomSpec& g) {  // made of a mesh that was never read: named in the text, not written
    return g.type == GeomType::mesh && std::any_of(a.meshes.begin(), a.meshes.end(), [&](const MeshSpec& m) {
             return m.name == g.mesh && m.vertices.empty();
           });
  };
  for (std::size_t i = 0; i < a.bodies.size(); ++i) {
    std::vector<GeomSpec> x, y;
    for (const GeomSpec& g : a.bodies[i].geoms) {
      if (!unread(g)) x.push_back(g);
    }
    for (const GeomSpec& g : b.bodies[i].geoms) {
      if (!unread(g)) y.push_back(g);
    }
    ASSERT_EQ(x.size(), y.size()) << a.bodies[i].name;
    for (std::size_t k = 0; k < x.size(); ++k) {
      EXPECT_EQ(x[k].type, y[k].type);
      if (x[k].type != GeomType::mesh && x[k].type != GeomType::height_field) expect_equal(x[k].size, y[k].size);
      expect_equal(x[k].position, y[k].position);
      expect_near(normalized(x[k].orientation), normalized(y[k].orientation));
      EXPECT_EQ(x[k].contype, y[k].contype);
      EXPECT_EQ(x[k].conaffinity, y[k].conaffinity);
      EXPECT_EQ(x[k].condim, y[k].condim);
      EXPECT_EQ(x[k].friction, y[k].friction);
      EXPECT_EQ(x[k].rgba, y[k].rgba);
      EXPECT_EQ(x[k].margin, y[k].margin);
    }
  }
}

void expect_same_actuators(const ModelSpec& a, const ModelSpec& b) {
  ASSERT_EQ(a.actuators.size(), b.actuators.size());
  for (std::size_t i = 0; i < a.actuators.size(); ++i) {
    const ActuatorSpec &x = a.actuators[i], &y = b.actuators[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.transmission, y.transmission);
    EXPECT_EQ(x.target, y.target);
    EXPECT_EQ(x.reference, y.reference);
    EXPECT_EQ(x.dynamics, y.dynamics);
    EXPECT_EQ(x.muscle_gain, y.muscle_gain);
    EXPECT_EQ(x.gear, y.gear);
    EXPECT_EQ(x.gain, y.gain);
    EXPECT_EQ(x.bias, y.bias);
    ASSERT_EQ(bool(x.motor), bool(y.motor));
    if (x.motor) {
      EXPECT_TRUE(*x.motor == *y.motor);
      EXPECT_EQ(x.more_control_ranges, y.more_control_ranges);
    }
    EXPECT_EQ(x.control_limited, y.control_limited);
    if (x.control_limited) {
      EXPECT_EQ(x.control_range, y.control_range);
    }
    EXPECT_EQ(x.force_limited, y.force_limited);
    if (x.force_limited) {
      EXPECT_EQ(x.force_range, y.force_range);
    }
  }
}

void expect_same_constraints(const ModelSpec& a, const ModelSpec& b) {
  ASSERT_EQ(a.equalities.size(), b.equalities.size());
  for (std::size_t i = 0; i < a.equalities.size(); ++i) {
    const EqualitySpec &x = a.equalities[i], &y = b.equalities[i];
    EXPECT_EQ(x.type, y.type);
    EXPECT_EQ(x.first, y.first);
    EXPECT_EQ(x.second, y.second);
    EXPECT_EQ(x.active, y.active);
    EXPECT_EQ(x.polynomial, y.polynomial);
    expect_equal(x.anchor, y.anchor);
    EXPECT_EQ(x.has_relative_pose, y.has_relative_pose);
    if (x.has_relative_pose) expect_near(x.relative_orientation, y.relative_orientation);
    EXPECT_EQ(x.solver_reference, y.solver_reference);
  }
  EXPECT_EQ(a.contact_pairs.size(), b.contact_pairs.size());
  EXPECT_EQ(a.contact_excludes.size(), b.contact_excludes.size());
  ASSERT_EQ(a.keyframes.size(), b.keyframes.size());
  for (std::size_t i = 0; i < a.keyframes.size(); ++i) EXPECT_EQ(a.keyframes[i].qpos, b.keyframes[i].qpos);
  EXPECT_EQ(a.option.timestep, b.option.timestep);
  expect_equal(a.option.gravity, b.option.gravity);
  EXPECT_EQ(a.option.integrator, b.option.integrator);
  EXPECT_EQ(a.option.contact_enabled, b.option.contact_enabled);
  EXPECT_EQ(a.option.gravity_enabled, b.option.gravity_enabled);
}

void expect_same_tendons(const ModelSpec& a, const ModelSpec& b) {
  ASSERT_EQ(a.tendons.size(), b.tendons.size());
  for (std::size_t i = 0; i < a.tendons.size(); ++i) {
    const TendonSpec &x = a.tendons[i], &y = b.tendons[i];
    EXPECT_EQ(x.spatial, y.spatial);
    ASSERT_EQ(x.terms.size(), y.terms.size());
    for (std::size_t k = 0; k < x.terms.size(); ++k) {
      EXPECT_EQ(x.terms[k].joint, y.terms[k].joint);
      EXPECT_EQ(x.terms[k].coefficient, y.terms[k].coefficient);
    }
    ASSERT_EQ(x.path.size(), y.path.size());
    for (std::size_t k = 0; k < x.path.size(); ++k) {
      EXPECT_EQ(x.path[k].kind, y.path[k].kind);
      EXPECT_EQ(x.path[k].name, y.path[k].name);
      EXPECT_EQ(x.path[k].side_site, y.path[k].side_site);
      EXPECT_EQ(x.path[k].divisor, y.path[k].divisor);
    }
    EXPECT_EQ(x.stiffness, y.stiffness);
    EXPECT_EQ(x.limited, y.limited);
    EXPECT_EQ(x.spring_length, y.spring_length);
  }
}

void expect_same(const ModelSpec& a, const ModelSpec& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.bodies.size(), b.bodies.size());
  for (std::size_t i = 1; i < a.bodies.size(); ++i) {
    SCOPED_TRACE(a.bodies[i].name);
    expect_same(a.bodies[i], b.bodies[i]);
    if (testing::Test::HasFailure()) return;
  }
  expect_same_geoms(a, b);
  expect_same_constraints(a, b);
  if (std::all_of(a.actuators.begin(), a.actuators.end(), [](const ActuatorSpec& x) { return x.computed(); }))
    expect_same_actuators(a, b);
  expect_same_tendons(a, b);
}

/// True if the model contains something that the MJCF reader refuses and the URDF reader accepts; the writer's comment
/// says so.
bool refused_by_mjcf(const std::string& text) { return text.find("MJCF readers refuse them") != std::string::npos; }

TEST(MjcfWriter, EveryReadableModelOfTheSharedDataComesBackTheSame) {
  const fs::path data = TARSUS_SOURCE_DIR "/../shared/data";
  if (!fs::exists(data)) GTEST_SKIP() << "no shared data beside the repository";
  int mjcf = 0, urdf = 0, named = 0;
  for (const auto& entry : fs::recursive_directory_iterator(data)) {
    const fs::path& file = entry.path();
    if (file.extension() != ".xml" && file.extension() != ".urdf") continue;
    ModelSpec spec;
    try {
      spec = read_model(file, kLenient);
    } catch (const InputError&) {
      continue;  // refused files are tested elsewhere
    }
    SCOPED_TRACE(file.string());
    const std::string text = write_mjcf(spec);
    if (refused_by_mjcf(text)) {
      EXPECT_EQ(file.extension(), ".urdf");
      EXPECT_THROW(parse_mjcf(text, "written.xml", file.parent_path(), kLenient), InputError);
      ++named;
      continue;
    }
    if (text.size() > (4u << 20)) continue;  // meshes with millions of numbers test nothing more
    ModelSpec again;
    ASSERT_NO_THROW(again = parse_mjcf(text, "written.xml", file.parent_path(), kLenient));
    expect_same(spec, again);
    EXPECT_EQ(write_mjcf(again).size() > 0, true);
    if (HasFailure()) return;
    ++(file.extension() == ".urdf" ? urdf : mjcf);
  }
  EXPECT_GE(mjcf, 120);
  EXPECT_GE(urdf, 20);
  std::printf("%d MJCF and %d URDF files came back the same; %d URDF files hold what MJCF cannot\n", mjcf, urdf, named);
}

TEST(MjcfWriter, BuiltInModelsComeBackTheSame) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(TARSUS_SOURCE_DIR "/models")) {
    if (entry.path().extension() != ".xml") continue;
    SCOPED_TRACE(entry.path().string());
    const ModelSpec spec = read_mjcf(entry.path());
    expect_same(spec, parse_mjcf(write_mjcf(spec), "written.xml", "."));
    ++count;
  }
  if (count == 0) GTEST_SKIP() << "no built-in models yet";
}

TEST(MjcfWriter, RandomTreesComeBackTheSame) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    test::TreeOptions options;
    options.chain = 1;  // depth first, so that the order stays
    const ModelSpec spec = test::random_tree(seed, options).spec;
    expect_same(spec, parse_mjcf(write_mjcf(spec), "written.xml", "."));
  }
}

TEST(MjcfWriter, TextSurvives) {
  ModelSpec spec;
  spec.name = "a<b>&\"c'--";
  BodySpec body("тело \"1\" <&>");
  body.parent = 0;
  JointSpec joint;
  joint.velocity_limit = 3;
  body.joints = {joint};
  body.inertial = InertialSpec{0.1 + 0.2, {1e-300, 1. / 3, -5e300}, {1, 0, 0, 1, 0, 1}, {}};
  spec.bodies.push_back(body);
  const std::string text = write_mjcf(spec);
  EXPECT_NE(text.find("lost: velocity limits of joints (1)"), std::string::npos);
  expect_same(spec, parse_mjcf(text, "written.xml", "."));
}

TEST(MjcfWriter, RefusesKeyframesOfAnotherOrder) {
  ModelSpec spec;
  for (int parent : {0, 1, 1, 2}) {
    BodySpec body;
    body.parent = parent;
    spec.bodies.push_back(body);
  }
  EXPECT_NO_THROW(write_mjcf(spec));
  spec.keyframes.emplace_back();
  EXPECT_THROW(write_mjcf(spec), ValueError);
}

/// Joint forces by name for a state that is given by name.
std::map<std::string, std::vector<double>> forces(const Model& model,
                                                  const std::map<std::string, std::vector<double>>& state) {
  Data data(model);
  std::vector<double> qpos(model.nq), qvel(model.nv), qacc(model.nv), tau(model.nv);
  for (const Joint& j : model.joints) {
    const std::vector<double>& s = state.at(j.name);
    std::copy_n(s.begin(), j.nq(), qpos.begin() + j.qpos);
    std::copy_n(s.begin() + j.nq(), j.nv(), qvel.begin() + j.qvel);
    std::copy_n(s.begin() + j.nq() + j.nv(), j.nv(), qacc.begin() + j.qvel);
  }
  rnea<double>(model, data, qpos, qvel, qacc, tau);
  std::map<std::string, std::vector<double>> out;
  for (const Joint& j : model.joints) out[j.name].assign(tau.begin() + j.qvel, tau.begin() + j.qvel + j.nv());
  return out;
}

TEST(UrdfWriter, RandomTreesKeepTheirDynamics) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    test::TreeOptions options;
    options.armature = options.springs = false;
    ModelSpec spec = test::random_tree(seed, options).spec;
    spec.option.gravity = OptionSpec().gravity;
    const Model model = compile(spec), again = compile(parse_urdf(write_urdf(spec), "written.urdf", "."));
    ASSERT_EQ(model.nv, again.nv);
    test::Random random(seed + 1000);
    const test::State s = test::random_state(random, model);
    std::map<std::string, std::vector<double>> state;
    for (const Joint& j : model.joints) {
      std::vector<double>& x = state[j.name];
      x.insert(x.end(), s.qpos.begin() + j.qpos, s.qpos.begin() + j.qpos + j.nq());
      x.insert(x.end(), s.qvel.begin() + j.qvel, s.qvel.begin() + j.qvel + j.nv());
      x.insert(x.end(), s.qacc.begin() + j.qvel, s.qacc.begin() + j.qvel + j.nv());
    }
    const auto a = forces(model, state), b = forces(again, state);
    for (const auto& [name, tau] : a)
      EXPECT_LT(test::relative_error(b.at(name), tau), 1e-10) << name;  // angles pass through roll, pitch, yaw
  }
}

/// What the flags disable is left out, and the reference pose of a mesh goes into its origin.
TEST(UrdfWriter, ModelsMoveAsTheirOptionsSay) {
  const test::TemporaryFolder folder;
  const fs::path from = folder.path() / "from" / "assets", to = folder.path() / "to";
  fs::create_directories(from), fs::create_directories(to);
  std::ofstream(from / "m.obj") << "v 0 0 0\nv .3 0 0\nv 0 .2 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  std::ofstream(from.parent_path() / "m.xml") << R"(<mujoco>
    <compiler meshdir='assets'/>
    <option><flag spring='disable' damper='disable' frictionloss='disable' limit='disable' equality='disable'/></option>
    <asset><mesh name='m' file='m.obj' scale='2 2 2' refpos='.1 .2 .3' refquat='.8 .6 0 0'/>
           <mesh name='n' file='m.obj' scale='1 2 3' refpos='.1 .2 .3'/></asset>
    <worldbody><body name='b' pos='1 2 3'>
      <joint name='j' stiffness='20' damping='3 2' frictionloss='4' range='-1 1' margin='.1'/>
      <geom type='mesh' mesh='m' pos='.1 0 0' quat='.6 0 .8 0'/><geom type='mesh' mesh='n'/>
      <body><joint name='k'/><geom size='.1' pos='1 0 0'/></body>
    </body></worldbody>
    <equality><joint joint1='j' joint2='k' polycoef='0 1 1'/></equality></mujoco>)";
  const Model model = compile(read_model(from.parent_path() / "m.xml"));
  std::vector<std::string> losses;
  std::ofstream(to / "m.urdf") << write_urdf(model.spec, to, &losses);
  EXPECT_EQ(losses, std::vector<std::string>{});
  const Model again = compile(read_model(to / "m.urdf"));
  ASSERT_EQ(again.njoint(), 2);
  for (const Joint& j : again.joints) {
    EXPECT_EQ(j.damping, 0);
    EXPECT_EQ(j.friction_loss, 0);
    EXPECT_FALSE(j.limited);
  }
  EXPECT_TRUE(again.spec.equalities.empty());
  const auto surface = [](const Model& m) {  // each vertex in the body's frame
    std::vector<Vec3d> out;
    for (const GeomSpec& g : std::ranges::find(m.spec.bodies, "b", &BodySpec::name)->geoms) {
      for (const MeshSpec& mesh : m.spec.meshes) {
        for (const Vec3d& v : mesh.name == g.mesh ? mesh.vertices : std::vector<Vec3d>())
          out.push_back(g.position + rotate(g.orientation, v));
      }
    }
    return out;
  };
  const std::vector<Vec3d> a = surface(model), b = surface(again);
  ASSERT_EQ(a.size(), 8u);
  ASSERT_EQ(b.size(), 8u);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_LT(norm(a[i] - b[i]), 1e-15);
}

/// A mesh that was found and could not be read is known by its file alone.
TEST(MjcfWriter, TheHashDoesNotDependOnTheFolder) {
  const test::TemporaryFolder folder;
  std::vector<std::uint64_t> hashes;
  for (const char* name : {"here", "there"}) {
    const fs::path at = folder.path() / name;
    fs::create_directories(at);
    std::ofstream(at / "m.stl") << "no mesh";
    std::ofstream(at / "r.urdf") << R"(<robot name='r'><link name='a'>
      <inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>
      <collision><geometry><mesh filename='m.stl'/></geometry></collision></link></robot>)";
    hashes.push_back(model_hash(read_model(at / "r.urdf")));
    const std::string text = write_mjcf(read_model(at / "r.urdf"), folder.path());
    EXPECT_NE(text.find(std::string("file=\"") + name + "/m.stl\""), std::string::npos) << text;
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(UrdfWriter, SaysWhatOfContactsIsLost) {
  const auto losses = [](const std::string& top, const std::string& geom) {
    std::vector<std::string> out;
    write_urdf(parse_mjcf("<mujoco>" + top + "<worldbody><geom size='.1'/><body><freejoint/><geom size='.1' " + geom +
                              "/></body></worldbody></mujoco>",
                          "m.xml", "."),
               {}, &out);
    return out;
  };
  EXPECT_TRUE(losses("", "").empty());
  const std::pair<const char*, const char*> geoms[] = {{"friction='.1'", "friction"},
                                                       {"condim='1'", "friction"},
                                                       {"margin='.1'", "margins"},
                                                       {"solref='1 1'", "softness"},
                                                       {"contype='2' conaffinity='2'", "masks"}};
  for (const auto& [geom, lost] : geoms) {
    const std::vector<std::string> said = losses("", geom);
    ASSERT_EQ(said.size(), 1u) << geom;
    EXPECT_NE(said[0].find(lost), std::string::npos) << said[0];
  }
  EXPECT_EQ(losses("<option timestep='.01'/>", "").size(), 1u);
  EXPECT_EQ(losses("<option><flag contact='disable'/></option>", "").size(), 1u);
}

TEST(UrdfWriter, NamesWhatUrdfCannotSay) {
  const auto refusal = [](const std::string& mjcf) -> std::string {
    try {
      write_urdf(parse_mjcf("<mujoco>" + mjcf + "</mujoco>", "m.xml", "."));
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const auto body = [](const std::string& joint) {
    return "<worldbody><body name='b'><geom size='.1'/>" + joint + "</body></worldbody>";
  };
  EXPECT_NE(refusal(body("<joint stiffness='2'/>")).find("m.xml:1:"), std::string::npos);
  EXPECT_NE(refusal(body("<joint damping='2 1'/>")).find("damping is linear"), std::string::npos);
  EXPECT_NE(refusal(body("<joint limited='true' range='0 1' margin='.1'/>")).find("no margin"), std::string::npos);
  for (const char* fluid : {"density='1'", "viscosity='1'"})
    EXPECT_NE(refusal("<option " + std::string(fluid) + "/>" + body("<joint/>")).find("no fluid"), std::string::npos);
  EXPECT_NE(refusal(body("<joint armature='2'/>")).find("no armature"), std::string::npos);
  EXPECT_NE(refusal(body("<joint type='ball' range='0 1'/>")).find("ball joint"), std::string::npos);
  EXPECT_NE(refusal("<option gravity='0 0 -1'/>" + body("<joint/>")).find("0 0 -1 cannot"), std::string::npos);
  EXPECT_NE(refusal("<option><flag gravity='disable'/></option>" + body("<joint/>")).find("disabled gravity"),
            std::string::npos);
  EXPECT_NE(
      refusal(body("<joint name='j'/>") + "<equality><connect body1='b' anchor='0 0 0'/></equality>").find("equality"),
      std::string::npos);
  EXPECT_EQ(refusal(body("<joint name='j'/><site/>") + "<actuator><motor joint='j'/></actuator>"), "");
}

}  // namespace
}  // namespace tarsus
