// URDF: the meaning of its elements, and the messages for bad files.
#include "tarsus/io/urdf.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/package_path.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/joint_parts.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus {
namespace {

const std::string kMass = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>";

std::string link(const std::string& name, const std::string& inside = kMass) {
  return "<link name='" + name + "'>" + inside + "</link>\n";
}
std::string joint(const std::string& name, const std::string& type, const std::string& parent, const std::string& child,
                  const std::string& inside = "") {
  return "<joint name='" + name + "' type='" + type + "'><parent link='" + parent + "'/><child link='" + child + "'/>" +
         inside + "</joint>\n";
}
std::string robot(const std::string& inside) { return "<robot name='r'>\n" + inside + "</robot>\n"; }

ModelSpec parse(const std::string& text, const ReadOptions& options = {}) {
  return parse_urdf(text, "r.urdf", ".", options);
}

/// Two links and a joint between them with this content.
std::string pair_of(const std::string& type, const std::string& inside) {
  return robot(link("a") + link("b") + joint("j", type, "a", "b", inside));
}

void expect_urdf_refused(const std::string& text, const std::string& words) {
  try {
    parse(text);
    ADD_FAILURE() << "accepted; expected '" << words << "'";
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << "expected '" << words << "' in:\n" << e.what();
    EXPECT_EQ(std::string(e.what()).rfind("r.urdf:", 0), 0u) << e.what();
    EXPECT_GT(e.diagnostics().at(0).where.line, 0) << e.what();
  }
}

void expect_told(const ModelSpec& spec, Severity severity, const std::string& words) {
  for (const Diagnostic& d : spec.diagnostics) {
    if (d.severity == severity && d.text().find(words) != std::string::npos && d.where.line > 0) return;
  }
  ADD_FAILURE() << "nobody said '" << words << "'";
  for (const Diagnostic& d : spec.diagnostics) std::printf("%s\n", d.text().c_str());
}

TEST(Urdf, JointTypes) {
  const auto only = [](const std::string& type, const std::string& inside) {
    return parse(pair_of(type, inside)).bodies.at(2);
  };
  const std::string limit = "<limit lower='-1' upper='2' effort='5' velocity='7'/>";
  const BodySpec revolute = only("revolute", "<axis xyz='0 0 2'/><dynamics damping='.5' friction='+1'/>" + limit);
  ASSERT_EQ(revolute.joints.size(), 1u);
  const JointSpec& j = revolute.joints[0];
  EXPECT_EQ(j.type, JointType::hinge);
  EXPECT_EQ(j.axis.z, 1);
  EXPECT_TRUE(j.limited);
  EXPECT_EQ(j.range[0], -1);
  EXPECT_EQ(j.range[1], 2);
  EXPECT_TRUE(j.force_limited);
  EXPECT_EQ(j.force_range[0], -5);
  EXPECT_EQ(j.velocity_limit, 7);
  EXPECT_EQ(j.damping, 0.5);
  EXPECT_EQ(j.friction_loss, 1);
  EXPECT_EQ(only("continuous", limit).joints[0].type, JointType::hinge);
  EXPECT_FALSE(only("continuous", limit).joints[0].limited);
  EXPECT_EQ(only("continuous", "").joints[0].axis.x, 1);  // URDF's default axis
  EXPECT_EQ(only("prismatic", limit).joints[0].type, JointType::slide);
  EXPECT_EQ(only("spherical", "").joints[0].type, JointType::ball);
  EXPECT_EQ(only("floating", "").joints[0].type, JointType::free);
  EXPECT_TRUE(only("fixed", "").joints.empty());
}

TEST(Urdf, PlanarIsTwoSlidesAndAHingeAboutTheNormal) {
  for (const std::string axis : {"0 0 1", "1 0 0", "1 2 3", "0 0 -1"}) {
    const BodySpec b = without_chains(parse(pair_of("planar", "<axis xyz='" + axis + "'/>"))).bodies.at(2);
    ASSERT_EQ(b.joints.size(), 3u);
    EXPECT_EQ(b.joints[0].name, "j_x");
    EXPECT_EQ(b.joints[1].type, JointType::slide);
    EXPECT_EQ(b.joints[2].type, JointType::hinge);
    const Vec3d n = cross(b.joints[0].axis, b.joints[1].axis) - b.joints[2].axis;
    EXPECT_LT(norm(n), 1e-15);
    EXPECT_LT(std::abs(dot(b.joints[0].axis, b.joints[1].axis)), 1e-15);
  }
  const BodySpec z = without_chains(parse(pair_of("planar", "<axis xyz='0 0 1'/>"))).bodies.at(2);
  EXPECT_EQ(z.joints[0].axis.x, 1);
  EXPECT_EQ(z.joints[1].axis.y, 1);
}

TEST(Urdf, OriginsAndInertiaFrames) {
  const std::string inertial =
      "<inertial><origin xyz='1 2 3' rpy='0 0 1.5707963267948966'/><mass value='2'/><inertia ixx='1' iyy='2' izz='2.5' "
      "ixy='.1'/></inertial>";
  const ModelSpec spec = parse(
      robot(link("a") + link("b", inertial) + joint("j", "fixed", "a", "b", "<origin xyz='4 5 6' rpy='.3 -.4 .5'/>")));
  const BodySpec& b = spec.bodies.at(2);
  EXPECT_EQ(b.position.y, 5);
  const Mat3d expected =
      rotation(axis_angle({0, 0, 1}, .5)) * rotation(axis_angle({0, 1, 0}, -.4)) * rotation(axis_angle({1, 0, 0}, .3));
  const Mat3d turned = rotation(b.orientation);
  for (int i = 0; i < 9; ++i) EXPECT_NEAR((&turned.xx)[i], (&expected.xx)[i], 1e-15);
  EXPECT_EQ(b.inertial->com.z, 3);
  EXPECT_NEAR(b.inertial->inertia.xx, 2, 1e-15);  // x and y are exchanged
  EXPECT_NEAR(b.inertial->inertia.yy, 1, 1e-15);
  EXPECT_NEAR(b.inertial->inertia.xy, -0.1, 1e-15);
}

TEST(Urdf, BasesAndFloatingJoints) {
  const std::string text = pair_of("continuous", "");
  EXPECT_TRUE(parse(text).bodies.at(1).joints.empty());
  ReadOptions floating;
  floating.floating_base = true;
  EXPECT_EQ(parse(text, floating).bodies.at(1).joints.at(0).type, JointType::free);
  // A root link named world is the world.
  const ModelSpec grounded = parse(robot(link("world", "") + link("b") + joint("j", "continuous", "world", "b")));
  EXPECT_EQ(grounded.bodies.size(), 2u);
  EXPECT_EQ(grounded.bodies[1].parent, 0);
  // A floating joint below welded links: its pose is in the world frame.
  const ModelSpec spec =
      parse(robot(link("a", "") + link("b", "") + link("c") +
                  joint("w", "fixed", "a", "b", "<origin xyz='1 0 0' rpy='0 0 1.5707963267948966'/>") +
                  joint("f", "floating", "b", "c", "<origin xyz='2 0 0'/>")));
  EXPECT_EQ(spec.bodies.at(3).parent, 0);
  EXPECT_NEAR(spec.bodies[3].position.x, 1, 1e-15);
  EXPECT_NEAR(spec.bodies[3].position.y, 2, 1e-15);
  EXPECT_NO_THROW(compile(spec));
  expect_urdf_refused(
      robot(link("a") + link("b") + link("c") + joint("j", "continuous", "a", "b") + joint("f", "floating", "b", "c")),
      "a floating joint below a link that moves");
}

TEST(Urdf, MimicIsALinearCoupling) {
  const std::string three = link("a") + link("b") + link("c") + link("d") + joint("j", "continuous", "a", "b");
  const ModelSpec spec =
      parse(robot(three + joint("k", "continuous", "b", "c", "<mimic joint='j' multiplier='-2' offset='.5'/>") +
                  joint("l", "continuous", "c", "d", "<mimic joint='k'/>")));
  ASSERT_EQ(spec.equalities.size(), 2u);  // a chain is two couplings
  EXPECT_EQ(spec.equalities[0].first, "k");
  EXPECT_EQ(spec.equalities[0].second, "j");
  EXPECT_EQ(spec.equalities[0].polynomial[0], 0.5);
  EXPECT_EQ(spec.equalities[0].polynomial[1], -2);
  expect_urdf_refused(pair_of("continuous", "<mimic joint='j'/>"), "mimics itself");
  expect_urdf_refused(pair_of("continuous", "<mimic joint='none'/>"), "no joint is named 'none'");
  expect_urdf_refused(pair_of("continuous", "<mimic/>"), "attribute 'joint' is missing");
  expect_urdf_refused(robot(three + joint("k", "continuous", "b", "c", "<mimic joint='l'/>") +
                            joint("l", "continuous", "c", "d", "<mimic joint='k'/>")),
                      "in a loop");
  expect_urdf_refused(
      robot(three + joint("k", "spherical", "b", "c", "<mimic joint='j'/>") + joint("l", "fixed", "c", "d")),
      "both need one axis");
}

TEST(Urdf, Shapes) {
  const std::string shapes =
      "<visual name='v'><origin xyz='1 0 0'/><geometry><box size='2 4 6'/></geometry><material name='red'/></visual>"
      "<collision><geometry><cylinder radius='1' length='3'/></geometry></collision>"
      "<collision><geometry><capsule radius='1' length='3'/></geometry></collision><collision><geometry><sphere "
      "radius='2'/></geometry></collision>";
  const ModelSpec spec = parse(robot(link("a", shapes) + "<material name='red'><color rgba='1 0 0 .5'/></material>"));
  const std::vector<GeomSpec>& g = spec.bodies.at(1).geoms;
  ASSERT_EQ(g.size(), 4u);
  EXPECT_TRUE(g[0].visual_only);
  EXPECT_EQ(g[0].contype + g[0].conaffinity, 0);
  EXPECT_EQ(g[0].size.z, 3);
  EXPECT_EQ(g[0].rgba[3], 0.5f);
  EXPECT_EQ(g[1].type, GeomType::cylinder);
  EXPECT_EQ(g[1].size.y, 1.5);
  EXPECT_EQ(g[2].type, GeomType::capsule);
  EXPECT_EQ(g[3].contype, 1);
  const auto geometry = [](const std::string& shape) {
    return robot(link("a", "<collision><geometry>" + shape + "</geometry></collision>"));
  };
  expect_urdf_refused(geometry("<box size='-1 1 1'/>"), "attribute 'size' is -1, expected a positive number");
  expect_urdf_refused(geometry("<box size='1 1'/>"), "'size'");
  expect_urdf_refused(geometry("<box/>"), "attribute 'size' is missing");
  expect_urdf_refused(geometry("<sphere radius='-1'/>"), "attribute 'radius' is -1, expected a positive number");
  expect_urdf_refused(geometry("<sphere radius='nan'/>"), "'radius'");
  expect_urdf_refused(geometry("<cylinder radius='1'/>"), "attribute 'length' is missing");
  expect_told(parse(geometry("<torus/>")), Severity::warning, "unknown shape 'torus': it takes no part in contact");
  EXPECT_TRUE(parse(geometry("<torus/>")).bodies.at(1).geoms.empty());
  const ModelSpec plane = parse(geometry("<plane normal='0 2 0'/>"));
  ASSERT_EQ(plane.bodies.at(1).geoms.size(), 1u);
  EXPECT_EQ(plane.bodies[1].geoms[0].type, GeomType::plane);
  EXPECT_NEAR(norm(rotate(plane.bodies[1].geoms[0].orientation, {0, 0, 1}) - Vec3d{0, 1, 0}), 0, 1e-15);
  expect_urdf_refused(geometry("<plane normal='0 0 0'/>"), "the normal has length zero");
  const ModelSpec scaled = parse(geometry("<mesh filename='none.stl' scale='2 3 4 1'/>"));
  expect_told(scaled, Severity::warning, "has more than three numbers");
  EXPECT_EQ(scaled.meshes.at(0).scale.z, 4);
  expect_urdf_refused(geometry(""), "without a shape");
}

/// A link with one shape of the given kind.
std::string with_shape(const std::string& kind, const std::string& shape) {
  return robot(link("a", "<" + kind + "><geometry>" + shape + "</geometry></" + kind + ">"));
}

TEST(Urdf, MeshesThatCannotBeReadAreNamed) {
  for (const auto& [shape, words] : std::vector<std::pair<std::string, std::string>>{
           {"<mesh filename='none.stl'/>", "no such file"},
           {"<mesh filename='package://nobody_has_this/none.stl'/>", "not found"},
           {"<mesh filename='package:///nobody_has_this/none.stl'/>", "package 'nobody_has_this'"},
           {"<mesh filename='http://example.com/a.stl'/>", "'http' addresses are not supported"},
           {"<mesh filename='/dev/zero'/>", "not an ordinary file"},
           {"<mesh filename='package://'/>", "does not name a package"}}) {
    // A missing collision hull touches nothing, so the user gets a warning; a missing visual mesh gets a note.
    expect_told(parse(with_shape("collision", shape)), Severity::warning, words);
    expect_told(parse(with_shape("visual", shape)), Severity::note, words);
    expect_told(parse(with_shape("visual", shape)), Severity::note, "mesh without a surface");
  }
  // The warning comes although <visual> named the same file before.
  const std::string both =
      "<mesh filename='none.stl'/></geometry></visual><collision><geometry><mesh "
      "filename='none.stl'/></geometry></collision><visual><geometry><sphere radius='1'/>";
  expect_told(parse(with_shape("visual", both)), Severity::warning, "takes no part in contact");
}

TEST(Urdf, NothingInVisualIsFatal) {
  for (const std::string& shape :
       {std::string("<torus/>"), std::string(), std::string("<sphere radius='nan'/>"), std::string("<box size='1 1'/>"),
        std::string("<box/>"), std::string("<sphere radius='-1'/>"), std::string("<cylinder radius='0' length='1'/>"),
        std::string("<mesh filename='a.glb'/>"), std::string("<mesh filename='a.dae' scale='0 1 1'/>"),
        std::string("<mesh/>")}) {
    const ModelSpec spec = parse(with_shape("visual", shape));
    for (const Diagnostic& d : spec.diagnostics) EXPECT_EQ(d.severity, Severity::note) << d.text();
    EXPECT_FALSE(spec.diagnostics.empty()) << shape;
  }
  EXPECT_FALSE(parse(robot(link("a", "<visual/>"))).diagnostics.empty());
  EXPECT_FALSE(parse(robot(link("a", "<visual><origin rpy='x'/></visual>"))).diagnostics.empty());
}

TEST(Urdf, ShapesOfNoSizeAreLeftOut) {
  for (const std::string& shape :
       {std::string("<box size='0 0 0'/>"), std::string("<sphere radius='0'/>"),
        std::string("<cylinder radius='0' length='0'/>"), std::string("<mesh scale='0 1 1' filename='a.stl'/>")}) {
    const ModelSpec spec = parse(with_shape("collision", shape));
    expect_told(spec, Severity::warning, "left out");
    EXPECT_TRUE(spec.bodies.at(1).geoms.empty()) << shape;
  }
}

TEST(Urdf, TheWorldNeedsNoLink) {
  const ModelSpec spec =
      parse(robot(link("a") + link("b") + joint("j", "prismatic", "world", "a") + joint("k", "continuous", "a", "b")));
  ASSERT_EQ(spec.bodies.size(), 3u);
  EXPECT_EQ(spec.bodies[1].name, "a");
  EXPECT_EQ(spec.bodies[1].parent, 0);
  EXPECT_EQ(spec.bodies[1].joints.size(), 1u);
  expect_told(spec, Severity::note, "is taken to be the world");
}

// Class 4.
TEST(UrdfBadInput, Inertia) {
  const auto with = [](const std::string& mass, const std::string& tensor) {
    return robot(link("a") + link("b", "<inertial>" + mass + tensor + "</inertial>") +
                 joint("j", "continuous", "a", "b"));
  };
  const std::string one = "<mass value='1'/>", good = "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>";
  expect_urdf_refused(with("<mass value='-1'/>", good), "r.urdf:3:32: error: the mass is negative: -1");
  expect_urdf_refused(with("<mass value='nan'/>", good), "'value'");
  expect_urdf_refused(with("<mass value='1e400'/>", good), "'value'");
  expect_urdf_refused(with("<mass value='1e30'/>", good), "larger than 1e+12 kg");
  expect_urdf_refused(with("<mass/>", good), "attribute 'value' is missing");
  expect_told(parse(with("", good)), Severity::warning, "<inertial> without <mass> is left out");
  EXPECT_FALSE(parse(with("", good)).bodies.at(2).inertial.has_value());
  expect_urdf_refused(with(one, "<inertia ixx='1' iyy='1'/>"), "attribute 'izz' is missing");
  expect_urdf_refused(with(one, "<inertia ixx='1' iyy='1' izz='inf'/>"), "'izz'");
  expect_urdf_refused(with(one, "<inertia ixx='1e30' iyy='1e30' izz='1e30'/>"), "larger than 1e+18");
  const std::string ship =
      "<mass value='1e12'/><inertia ixx='9e17' iyy='9e17' izz='9e17'/>";  // MJCF has the same limit
  EXPECT_EQ(parse(with(ship, "")).bodies.at(2).inertial->inertia.zz, 9e17);
  expect_urdf_refused(with(one, "<inertia ixx='-1' iyy='1' izz='1'/>"), "not positive definite");
  expect_urdf_refused(with(one, "<inertia ixx='-1' iyy='1' izz='1'/>"), "--fix balance");
  expect_urdf_refused(with(one, "<inertia ixx='1' iyy='1' izz='1' ixy='2'/>"),
                      "not positive definite");  // components in the wrong order
  expect_told(parse(with(one, "<inertia ixx='1' iyy='1' izz='3'/>")), Severity::warning, "triangle inequality");
  expect_told(parse(with(one, "<inertia ixx='1' iyy='1' izz='1e-13'/>")), Severity::warning, "singular");
  expect_told(parse(with(one, "<inertia ixx='0' iyy='0' izz='0'/>")), Severity::warning, "point mass");
  expect_told(parse(with(one, "")), Severity::warning, "point mass");
  expect_told(parse(with("<mass value='0'/>", "<inertia ixx='0' iyy='0' izz='0'/>")), Severity::warning,
              "forward dynamics are singular");
  expect_told(parse(robot(link("a") + link("b", "") + joint("j", "continuous", "a", "b"))), Severity::warning,
              "has no <inertial>");
  expect_told(parse(robot(link("a") + link("b", "") + link("c") + joint("j", "continuous", "a", "b") +
                          joint("k", "continuous", "b", "c"))),
              Severity::note, "has no <inertial>");
  const std::string heavy = "<inertial><mass value='7'/><inertia ixx='1' iyy='1' izz='1'/></inertial>";
  const ModelSpec twice = parse(robot(link("a", kMass + heavy)));
  expect_told(twice, Severity::warning, "a second <inertial> has no effect");
  EXPECT_EQ(twice.bodies.at(1).inertial->mass, 1);  // urdfdom and with it Pinocchio and ROS take the first
  expect_told(parse(pair_of("revolute", "<limit lower='-1' upper='1'/><limit lower='-2' upper='2'/>")),
              Severity::warning, "a second <limit> in one <joint>: only the first is used");
  ReadOptions fix;
  fix.fix_balance = true;
  const ModelSpec mended = parse(with(one, "<inertia ixx='1' iyy='1' izz='4'/>"), fix);
  EXPECT_NEAR(mended.bodies.at(2).inertial->inertia.zz, 2, 1e-15);
  expect_told(mended, Severity::warning, "balanced");
}

/// An inertia that no body can have may become valid together with the links that are fixed to it. tiago's files
/// contain such inertias.
TEST(Urdf, NegativeMomentsCountWithWhatIsFixedToThem) {
  const auto negative = [](double most) {
    return "<inertial><mass value='0.1'/><inertia ixx='-0.01' iyy='" + std::to_string(most) + "' izz='1'/></inertial>";
  };
  const auto robot_with = [&](const std::string& type, const std::string& inside) {
    return robot(link("a") + link("b") + link("c", inside) + joint("j", "continuous", "a", "b") +
                 joint("k", type, "b", "c", "<origin xyz='0 0 1' rpy='0.3 0.2 0.1'/>"));
  };
  expect_told(parse(robot_with("fixed", negative(1))), Severity::warning,
              "the total inertia with the links fixed to it is positive definite");
  expect_urdf_refused(robot_with("continuous", negative(1)), "--fix balance");
  // 1 of the link that it is fixed to, 0.1 · 1/1.1 of their distance, -2 of its own: still negative.
  expect_urdf_refused(
      robot_with("fixed", "<inertial><mass value='0.1'/><inertia ixx='-2' iyy='1' izz='1'/></inertial>"),
      "not positive definite");
  expect_told(parse(robot(link("a", negative(1)))), Severity::warning, "the link does not move");
}

// Class 5.
TEST(UrdfBadInput, Joints) {
  expect_urdf_refused(pair_of("continuous", "<axis xyz='0 0 0'/>"), "the axis has no direction");
  expect_urdf_refused(pair_of("continuous", "<axis xyz='nan 0 0'/>"), "'xyz'");
  expect_urdf_refused(pair_of("continuous", "<axis xyz='1 0'/>"), "'xyz'");
  expect_urdf_refused(pair_of("continuous", "<axis xyz='1,0,0'/>"), "'xyz'");
  expect_urdf_refused(pair_of("continuous", "<axis/>"), "attribute 'xyz' is missing");
  expect_urdf_refused(pair_of("hinge", ""), "unknown joint type 'hinge'");
  expect_urdf_refused(robot(link("a") + link("b") + "<joint name='j'><parent link='a'/><child link='b'/></joint>"),
                      "attribute 'type' is missing");
  expect_urdf_refused(robot(link("a") + "<joint name='j' type='fixed'><parent link='a'/></joint>"),
                      "<joint> without <child>");
  expect_urdf_refused(pair_of("continuous", "<dynamics damping='-1'/>"), "attribute 'damping' is -1");
  expect_urdf_refused(pair_of("continuous", "<dynamics friction='-1'/>"), "attribute 'friction' is -1");
  expect_urdf_refused(pair_of("continuous", "<limit effort='-1'/>"), "attribute 'effort' is -1");
  expect_urdf_refused(pair_of("continuous", "<limit velocity='-1'/>"), "attribute 'velocity' is -1");
  expect_urdf_refused(pair_of("revolute", "<limit lower='-1.57.' upper='1'/>"), "'-1.57.'");
  expect_urdf_refused(pair_of("revolute", "<origin rpy='1e30 0 0'/>"), "larger than 1e6 radians");
  const ModelSpec told =
      parse(pair_of("revolute", "<axis xyz='1 1 0'/><limit lower='1' upper='-1' effort='0' velocity='0'/>"));
  EXPECT_FALSE(told.bodies.at(2).joints[0].limited);
  EXPECT_FALSE(told.bodies[2].joints[0].force_limited);
  EXPECT_NEAR(norm(told.bodies[2].joints[0].axis), 1, 1e-15);
  expect_told(told, Severity::note, "the axis has length 1.41421 and was normalised");
  expect_told(told, Severity::warning, "lower 1 is not below upper -1");
  expect_told(told, Severity::warning, "effort 0");
  expect_told(parse(pair_of("revolute", "")), Severity::warning, "without <limit>");
  for (const char* name : {"effort", "velocity"})
    expect_told(parse(pair_of("continuous", "<limit/>")), Severity::note, "'" + std::string(name) + "' is missing");
  expect_told(parse(pair_of("continuous", "<gearing/>")), Severity::warning, "<gearing>");
  expect_told(parse(pair_of("continuous", "<dynamics K='7'/>")), Severity::warning, "'K'");
  expect_told(parse(pair_of("continuous", "<safety_controller k_velocity='1'/>")), Severity::note, "safety_controller");
}

// Class 6.
TEST(UrdfBadInput, Trees) {
  const std::string ab = link("a") + link("b"), abc = ab + link("c");
  expect_urdf_refused(robot(""), "the robot has no link");
  expect_urdf_refused(robot(ab + joint("j", "fixed", "a", "b") + joint("k", "fixed", "b", "a")),
                      "there is no root link: the links 'a' → 'b' → 'a' form a loop");
  expect_urdf_refused(robot(abc + link("d") + joint("j", "fixed", "b", "c") + joint("k", "fixed", "c", "b") +
                            joint("l", "fixed", "a", "d")),
                      "is not connected to the root");
  expect_urdf_refused(robot(ab + joint("j", "fixed", "a", "a")), "is its own parent");
  expect_urdf_refused(robot(abc + joint("j", "fixed", "a", "c") + joint("k", "fixed", "b", "c")),
                      "link 'c' has two parent joints: joint 'j' in line 5 is the other");
  expect_urdf_refused(robot(ab), "a second root: no joint has link 'b' as its child");
  expect_urdf_refused(robot(abc + joint("j", "fixed", "a", "b")), "a second root");
  expect_urdf_refused(robot(link("a") + joint("j", "fixed", "a", "ghost")),
                      "no link is named 'ghost', the joint's child");
  expect_urdf_refused(robot(link("a") + joint("j", "fixed", "ghost", "a")),
                      "no link is named 'ghost', the joint's parent");
  expect_urdf_refused(robot(link("a") + link("a")), "a second link named 'a'; the first is in line 2");
  expect_urdf_refused(robot(abc + joint("j", "fixed", "a", "b") + joint("j", "fixed", "a", "c")),
                      "a second joint named 'j'");
  expect_urdf_refused(robot(link("")), "attribute 'name' is missing or empty");
  expect_urdf_refused(robot(link("a") + link("world") + joint("j", "fixed", "a", "world")),
                      "only the root link may be named 'world'");
  const std::string long_name(100'000, 'x');
  EXPECT_EQ(parse(robot(link(long_name))).bodies.at(1).name, long_name);
  EXPECT_EQ(parse(robot(link("ноги_足"))).bodies.at(1).name, "ноги_足");
}

TEST(UrdfBadInput, AHundredThousandLinksInAChainLoadInTime) {
  std::string text = link("l0");
  for (int i = 1; i <= 100'000; ++i) {
    const std::string child = "l" + std::to_string(i);
    text += link(child) + joint("j" + std::to_string(i), "continuous", "l" + std::to_string(i - 1), child);
  }
  const std::clock_t start = std::clock();
  EXPECT_EQ(parse(robot(text)).bodies.size(), 100'002u);
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds,
            15);  // seconds of processor time: a release build takes 1, sanitizers 5, a quadratic walk hours
  // The same chain closed to a ring.
  expect_urdf_refused(robot(text + joint("last", "fixed", "l100000", "l0")), "there is no root link");
}

// Classes 1 and 2, as far as URDF has cases of its own.
TEST(UrdfBadInput, Documents) {
  const std::string good = robot(link("a"));
  EXPECT_EQ(parse(good + std::string(3, '\0')).bodies.size(), 2u);  // pybullet's humanoid ends like that
  EXPECT_EQ(parse("\xEF\xBB\xBF" + good).bodies.size(), 2u);
  for (const std::string& bad : {std::string(), std::string("hello"), good.substr(0, 40), good + good,
                                 std::string("<robot name='a' name='b'/>")}) {
    EXPECT_THROW(parse(bad), InputError) << bad;
  }
  expect_urdf_refused("<sdf version='1.6'/>", "SDF files are not supported");
  expect_urdf_refused("<mujoco/>", "the root element of a URDF is <robot>");
  expect_urdf_refused(robot("<xacro:macro name='m'/>"), "xacro FILE.xacro > FILE.urdf");
  expect_told(parse(robot(link("a") + "<gazebo/><gazebo/><transmission name='t'/>")), Severity::note,
              "<gazebo> has no effect here; the file has 2");
  expect_told(parse(robot(link("a") + "<velocity/>")), Severity::warning, "<velocity>");
}

struct Folder {
  test::TemporaryFolder own;
  std::filesystem::path path = own.path();
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path / file).parent_path());
    std::ofstream(path / file, std::ios::binary) << text;
  }
};

TEST(Urdf, PackagesAreFoundInEveryPlaceThatIsNamed) {
  const Folder folder;
  folder.put("ws/my_robot/meshes/a.stl", "x");
  folder.put("elsewhere/my_robot/meshes/b.stl", "x");
  folder.put("ws/my_robot/urdf/r.urdf", "x");
  const auto found = [&](const std::string& uri, const std::string& from,
                         std::vector<std::filesystem::path> paths = {}) {
    return resolve_uri(uri, folder.path / from, paths).file.lexically_relative(folder.path).string();
  };
  EXPECT_EQ(found("package://my_robot/meshes/a.stl", "ws/my_robot/urdf"), "ws/my_robot/meshes/a.stl");
  EXPECT_EQ(found("package://renamed/meshes/a.stl", "ws/my_robot/urdf"), "ws/my_robot/meshes/a.stl");
  EXPECT_EQ(found("../meshes/a.stl", "ws/my_robot/urdf"), "ws/my_robot/urdf/../meshes/a.stl");
  EXPECT_EQ(found("package://my_robot/meshes/b.stl", "ws/my_robot/urdf"), "");
  EXPECT_EQ(found("package://my_robot/meshes/b.stl", "ws", {folder.path / "elsewhere"}),
            "elsewhere/my_robot/meshes/b.stl");
  EXPECT_EQ(found("package://my_robot/meshes/b.stl", "ws", {folder.path / "elsewhere/my_robot"}),
            "elsewhere/my_robot/meshes/b.stl");
  // A package whose folder's name differs from the name in its manifest, some levels down. A package inside another one
  // is not found.
  folder.put("ros/src/group/folder/package.xml", "<package><name>described</name></package>");
  folder.put("ros/src/group/folder/meshes/c.stl", "x");
  folder.put("ros/src/group/folder/inner/package.xml", "<package><name>inner</name></package>");
  folder.put("ros/src/group/folder/inner/d.stl", "x");
  folder.put("prefix/share/installed/e.stl", "x");
  EXPECT_EQ(found("package://described/meshes/c.stl", "ws"), "");
  EXPECT_EQ(found("package://described/meshes/c.stl", "ros/src/group/folder/urdf"),
            "ros/src/group/folder/meshes/c.stl");
  EXPECT_EQ(found("package://described/meshes/c.stl", "ws", {folder.path / "ros"}),
            "ros/src/group/folder/meshes/c.stl");
  EXPECT_EQ(found("package:///described/meshes/c.stl", "ws", {folder.path / "ros"}),
            "ros/src/group/folder/meshes/c.stl");
  EXPECT_EQ(found("package://inner/d.stl", "ws", {folder.path / "ros"}), "");
  setenv("AMENT_PREFIX_PATH", (folder.path / "prefix").string().c_str(), 1);
  EXPECT_EQ(found("package://installed/e.stl", "ws"), "prefix/share/installed/e.stl");
  unsetenv("AMENT_PREFIX_PATH");
  setenv("ROS_PACKAGE_PATH", ("/nowhere:" + (folder.path / "elsewhere").string()).c_str(), 1);
  EXPECT_EQ(found("package://my_robot/meshes/b.stl", "ws"), "elsewhere/my_robot/meshes/b.stl");
  unsetenv("ROS_PACKAGE_PATH");
}

TEST(ModelFile, ChoosesByContent) {
  const Folder folder;
  folder.put("a.xml", robot(link("a")));
  folder.put("b.urdf", "<mujoco model='m'><worldbody><body name='b'/></worldbody></mujoco>");
  EXPECT_EQ(read_model(folder.path / "a.xml").bodies.at(1).name, "a");
  EXPECT_EQ(read_model(folder.path / "b.urdf").name, "m");
  folder.put("c.sdf", "\n<sdf/>");
  folder.put("d.xml", "<mujocoinclude/>");
  folder.put("e.xml", "<html/>");
  folder.put("f.mjb", "x");
  for (const auto& [file, words] :
       std::vector<std::pair<std::string, std::string>>{{"c.sdf", "c.sdf:2:1: error: SDF files are not supported"},
                                                        {"d.xml", "part of an MJCF"},
                                                        {"e.xml", "neither <mujoco>"},
                                                        {"f.mjb", ".mjb files are not supported"},
                                                        {"none.xml", "no such file"},
                                                        {".", "directory"}}) {
    try {
      read_model(folder.path / file);
      ADD_FAILURE() << file;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  }
}

TEST(Urdf, SharedFilesLoadOrSayWhy) {
  const std::filesystem::path data = TARSUS_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no shared data beside the repository";
  ReadOptions lenient;
  lenient.lenient = true;
  int loaded = 0, refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    if (entry.path().extension() != ".urdf") continue;
    try {
      compile(read_urdf(entry.path(), lenient));
      ++loaded;
    } catch (const InputError& e) {
      EXPECT_FALSE(e.diagnostics().empty());
      EXPECT_GT(e.diagnostics().at(0).where.line, 0) << e.what();
      ++refused;
    }
  }
  EXPECT_GE(loaded, 60);
  std::printf("%d loaded and compiled, %d refused\n", loaded, refused);
}

}  // namespace
}  // namespace tarsus
