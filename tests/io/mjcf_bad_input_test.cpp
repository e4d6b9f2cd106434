// Classes of bad input in MJCF: each is refused with the kind of error and the line, in under a second.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/bad_input.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

ModelSpec parse(const std::string& text, const ReadOptions& options = {}) {
  return parse_mjcf(text, "test.xml", "", options);
}

void refused(const std::string& text, int line, const std::string& words) {
  expect_refused([&] { parse(text); }, line, words, text.substr(0, 100));
}

/// A document with `elements` on line 3, in the first body.
std::string in_body(const std::string& elements) {
  return "<mujoco><worldbody>\n<body name='b'>\n" + elements + "\n<geom size='1'/></body></worldbody></mujoco>";
}

/// A document with `elements` on line 2, at the top level, and these bodies: b with the hinge j, the geom g and the
/// site s; c with the slide k; d with the free joint f.
std::string at_top(const std::string& elements) {
  return "<mujoco>\n" + elements +
         "\n<worldbody><body name='b'><joint name='j'/><geom name='g' size='1'/><site name='s'/></body>"
         "<body name='c'><joint name='k' type='slide'/><geom name='h' size='1'/></body>"
         "<body name='d'><freejoint name='f'/><geom size='1'/></body></worldbody></mujoco>";
}

bool warns(const ModelSpec& spec, int line, const std::string& words) {
  for (const Diagnostic& d : spec.diagnostics) {
    if (d.severity != Severity::note && d.where.line == line && d.message.find(words) != std::string::npos) return true;
  }
  return false;
}

bool notes(const ModelSpec& spec, const std::string& words) {
  for (const Diagnostic& d : spec.diagnostics) {
    if (d.severity == Severity::note && d.message.find(words) != std::string::npos) return true;
  }
  return false;
}

// A folder of files that is removed after the test.
class Folder {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  void refused(const std::string& name, int line, const std::string& words) const {
    expect_refused([&] { read_mjcf(path / name); }, line, words, name);
  }

 private:
  test::TemporaryFolder own_;

 public:
  const std::filesystem::path& path = own_.path();
};

TEST(MjcfBadInput, NotAModel) {
  refused("<robot/>", 1, "expected <mujoco>");
  refused("<mujoco>\n<body/></mujoco>", 2, "not a section");
  refused("<mujoco>\n<worldbody><body/><leg/></worldbody></mujoco>", 2, "not an element of <body>");
  refused("<mujoco modle='x'/>", 1, "no attribute 'modle'");
  refused(in_body("<geom sise='1'/>"), 3, "no attribute 'sise'");
  refused(in_body("<joint><geom/></joint>"), 3, "not an element of <joint>");
  refused(in_body("<geom size='1'><joint/></geom>"), 3, "not an element of <geom>");
  refused(at_top("<equality type='weld'/>"), 2, "no attribute 'type'");
  refused(at_top("<asset file='x'/>"), 2, "no attribute 'file'");
  refused("<mujoco>\n<worldbody pos='0 0 1'/></mujoco>", 2, "no attribute 'pos'");
  refused("<mujoco>\n<worldbody childclass='main'/></mujoco>", 2, "no attribute 'childclass'");
}

TEST(MjcfBadInput, EveryErrorOfAFileIsReported) {
  try {
    parse(in_body("<geom size='x'/>\n<geom size='-1'/>\n<joint axis='0 0 0'/>"));
    FAIL();
  } catch (const InputError& error) {
    ASSERT_GE(error.diagnostics().size(), 3u);
    EXPECT_EQ(error.diagnostics()[0].where.line, 3);
    EXPECT_EQ(error.diagnostics()[0].where.element, "mujoco/worldbody/body[b]/geom");
  }
}

TEST(MjcfBadInput, Includes) {
  Folder folder;
  const std::string end = "<worldbody><body><geom size='1'/></body></worldbody></mujoco>";
  folder.write("missing.xml", "<mujoco>\n<include file='none.xml'/>" + end);
  folder.refused("missing.xml", 2, "no such file");
  folder.write("self.xml", "<mujoco>\n\n<include file='self.xml'/>" + end);
  folder.refused("self.xml", 3, "is included twice");
  folder.write("a.xml", "<mujoco>\n<include file='b.xml'/>" + end);
  folder.write("b.xml", "<mujocoinclude>\n\n\n<include file='./sub/../a.xml'/></mujocoinclude>");
  folder.refused("a.xml", 4, "is included twice");
  folder.write("leaf.xml", "<mujocoinclude><worldbody/></mujocoinclude>");
  folder.write("left.xml", "<mujocoinclude>\n<include file='leaf.xml'/></mujocoinclude>");
  folder.write("right.xml", "<mujocoinclude>\n<include file='leaf.xml'/></mujocoinclude>");
  folder.write("diamond.xml", "<mujoco><include file='left.xml'/><include file='right.xml'/>" + end);
  folder.refused("diamond.xml", 2, "is included twice");
  folder.write("absolute.xml", "<mujoco>\n<include file='/etc/hostname'/>" + end);
  folder.refused("absolute.xml", 2, "not a path relative");
  folder.write("directory.xml", "<mujoco>\n<include file='.'/>" + end);
  folder.refused("directory.xml", 2, "is a directory");
  folder.write("device.xml", "<mujoco>\n<include file='../../../../../../../../../../dev/zero'/>" + end);
  folder.refused("device.xml", 2, "not a regular file");
  folder.write("nothing.xml", "<mujoco>\n<include/>" + end);
  folder.refused("nothing.xml", 2, "needs the attribute 'file'");
  folder.write("command.xml", "<mujoco>\n<include file='; touch here; $(touch here) |touch here'/>" + end);
  folder.refused("command.xml", 2, "no such file");
  EXPECT_FALSE(std::filesystem::exists("here"));
  folder.write("broken.xml", "<mujocoinclude>\n<worldbody></mujocoinclude>");
  folder.write("of_broken.xml", "<mujoco>\n\n<include file='broken.xml'/>" + end);
  folder.refused("of_broken.xml", 2, "does not match");
  folder.write("huge_part.xml", "");
  std::filesystem::resize_file(folder.path / "huge_part.xml", 100u << 20);
  folder.write("huge.xml", "<mujoco>\n<include file='huge_part.xml'/>" + end);
  folder.refused("huge.xml", 2, "has 104857600 bytes");
  for (int i = 0; i < 1'100; ++i) {
    folder.write(fmt::format("chain{}.xml", i), fmt::format("<mujoco>\n<include file='chain{}.xml'/></mujoco>", i + 1));
  }
  folder.refused("chain0.xml", 2, "more than 1000 included files");
}

TEST(MjcfBadInput, IncludesOutsideTheFolderAreNamed) {
  Folder folder;
  folder.write("part.xml", "<mujocoinclude><worldbody><body><geom size='1'/></body></worldbody></mujocoinclude>");
  folder.write("sub/main.xml", "<mujoco>\n<include file='../part.xml'/></mujoco>");
  EXPECT_TRUE(warns(read_mjcf(folder.path / "sub/main.xml"), 2, "outside of the model's folder"));
  ReadOptions strict;
  strict.disable_includes = true;
  expect_refused([&] { read_mjcf(folder.path / "sub/main.xml", strict); }, 2, "not allowed", "disabled includes");
}

TEST(MjcfBadInput, Numbers) {
  for (const char* text : {"nan", "inf", "1e400", "1e-400", "0x1", "1,0", "1.0f", "", "one"}) {
    refused(in_body(fmt::format("<geom size='1' density='{}'/>", text)), 3, "attribute 'density'");
    refused(in_body(fmt::format("<geom size='1' pos='0 0 {}'/>", text)), 3, "attribute 'pos'");
  }
  refused(in_body("<geom size='1' pos='0 0'/>"), 3, "has 2 numbers, expected 3");
  refused(in_body("<geom size='1' pos='0 0 0 0'/>"), 3, "has 4 numbers, expected 3");
  refused(in_body("<geom size='1 2 3 4'/>"), 3, "expected 1 to 3");
  refused(in_body("<geom size='1' quat='0 0 0 0'/>"), 3, "not a rotation");
  refused(in_body("<geom size='1' quat='1 0 0 0' euler='0 0 1'/>"), 3, "more than one of quat");
  refused(in_body("<geom size='1' xyaxes='1 0 0 2 0 0'/>"), 3, "parallel");
  refused(in_body("<geom size='1' zaxis='0 0 0'/>"), 3, "has length zero");
  refused(in_body("<geom size='1' axisangle='0 0 0 1'/>"), 3, "has length zero");
  const ModelSpec good = parse(in_body("<geom size='.5' pos='5. +1\n-.5e0'/>"));
  EXPECT_EQ(good.bodies[1].geoms[0].position.y, 1);
}

std::string inertial(const std::string& attributes) {
  return "<mujoco><worldbody>\n<body name='b'><freejoint/>\n<inertial pos='0 0 0' " + attributes +
         "/></body></worldbody></mujoco>";
}

TEST(MjcfBadInput, Inertia) {
  refused(inertial("mass='-1' diaginertia='1 1 1'"), 3, "the mass is -1");
  refused(inertial("mass='nan' diaginertia='1 1 1'"), 3, "'nan' is not a finite number");
  refused(inertial("mass='1e30' diaginertia='1 1 1'"), 3, "the mass is 1e+30");
  refused(inertial("mass='1' diaginertia='1e30 1e30 1e30'"), 3,
          "moment of inertia is 1e+30 kg m^2, expected 0 to 1e+18");
  refused(in_body("<freejoint/><geom size='2' density='1e12'/>"), 2, "kg, expected 0 to 1e+12");
  refused(in_body("<freejoint/><geom size='2000' mass='9e11'/>"), 2, "is 1.44e+18 kg m^2, expected 0 to 1e+18");
  refused(inertial("mass='1' diaginertia='1 1 -1'"), 3, "not positive");
  refused(inertial("mass='1' fullinertia='1 1 1 2 0 0'"), 3, "not positive");
  refused(inertial("mass='1' fullinertia='1 2 3 0 0'"), 3, "has 5 numbers, expected 6");
  refused(inertial("mass='1' diaginertia='1 1 1' fullinertia='1 1 1 0 0 0'"), 3, "exclude each other");
  refused(inertial("mass='1' fullinertia='1 1 1 0 0 0' quat='0 1 0 0'"), 3, "takes no orientation");
  refused(inertial("mass='1' diaginertia='1 1 3'"), 3, "the sum of the two smaller ones");
  refused(inertial("diaginertia='1 1 1'"), 3, "needs the attribute 'mass'");
  refused(in_body("<inertial pos='' mass='1' diaginertia='1 1 1'/>"), 3, "needs the attribute 'pos'");
  refused(inertial("mass='0' diaginertia='0 0 0'"), 2, "nor any body welded to it has mass and inertia");
  refused(inertial("mass='1' diaginertia='0 0 0'"), 2, "nor any body welded to it has mass and inertia");
  refused(inertial("mass='1'"), 2, "nor any body welded to it has mass and inertia");
  refused("<mujoco><worldbody>\n<body><joint/></body></worldbody></mujoco>", 2,
          "nor any body welded to it has mass and inertia");
  refused(
      in_body(
          "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"),
      3, "second <inertial>");
  refused("<mujoco><worldbody>\n<inertial pos='0 0 0' mass='1'/></worldbody></mujoco>", 2,
          "the world has no <inertial>");
  refused(in_body("<geom size='1' mass='-1'/>"), 3, "attribute 'mass' is -1");
  refused(in_body("<geom size='1' density='-1'/>"), 3, "attribute 'density' is -1");
  EXPECT_TRUE(warns(parse(inertial("mass='1' diaginertia='1 1 1e-12'")), 3, "differ by more than a factor"));
}

TEST(MjcfBadInput, FixBalanceMendsAndReports) {
  ReadOptions fix;
  fix.fix_balance = true;
  const ModelSpec balanced = parse(inertial("mass='1' diaginertia='1 1 4'"), fix);
  EXPECT_DOUBLE_EQ(balanced.bodies[1].inertial->inertia.zz, 2);
  EXPECT_TRUE(warns(balanced, 3, "repaired: principal moments 4 1 1"));
  const ModelSpec positive = parse(inertial("mass='1' fullinertia='1 1 1 2 0 0'"), fix);
  EXPECT_TRUE(warns(positive, 3, "were not positive"));
  const Sym3d& i = positive.bodies[1].inertial->inertia;
  EXPECT_GT(i.xx * i.yy - i.xy * i.xy, 0);
  const ModelSpec asked =
      parse("<mujoco><compiler balanceinertia='true'/>" + inertial("mass='1' diaginertia='1 1 4'").substr(8));
  EXPECT_DOUBLE_EQ(asked.bodies[1].inertial->inertia.xx, 2);
}

TEST(MjcfBadInput, Joints) {
  refused(in_body("<joint axis='0 0 0'/>"), 3, "no direction");
  refused(in_body("<joint axis='0 nan 0'/>"), 3, "not a finite number");
  refused(in_body("<joint range='2 1'/>"), 3, "expected low < high");
  refused(in_body("<joint range='1 1' limited='true'/>"), 3, "expected low < high");
  refused(in_body("<joint limited='true'/>"), 3, "expected low < high");
  refused(in_body("<joint limited='maybe'/>"), 3, "not one of 'true', 'false', 'auto'");
  refused(in_body("<joint type='ball' range='1 2'/>"), 3, "begins at 0");
  refused(
      "<mujoco><compiler autolimits='false'/>\n<worldbody><body>\n<joint range='0 1'/><geom "
      "size='1'/></body></worldbody></mujoco>",
      3, "autolimits is false");
  for (const char* attribute : {"damping", "armature", "stiffness", "frictionloss"}) {
    refused(in_body(fmt::format("<joint {}='-1'/>", attribute)), 3, fmt::format("'{}' is -1", attribute));
  }
  refused(in_body("<joint type='screw'/>"), 3, "'screw' is not one of");
  refused(in_body("<body><freejoint/><geom size='1'/></body>"), 3, "children of the world only");
  refused(in_body("<joint type='ball'/><joint/>"), 3, "another joint that turns");
  refused(in_body("<joint/><joint type='ball'/>"), 3, "another joint that turns");
  refused(in_body("<freejoint/><joint/>"), 3, "only joint");
  refused(in_body("<joint/><joint/><joint/><joint type='slide'/><joint type='slide'/><joint type='slide'/><joint/>"), 3,
          "more than 6");
  refused(in_body("<joint springdamper='1 0'/>"), 3, "both numbers must be positive");
  refused("<mujoco><worldbody>\n<joint/></worldbody></mujoco>", 2, "the world has no joints");
  refused("<mujoco><worldbody>\n<body mocap='true'><joint/><geom size='1'/></body></worldbody></mujoco>", 2,
          "mocap body has no joints");
  const ModelSpec spec = parse(in_body("<joint axis='0 0 2'/>"));
  EXPECT_EQ(spec.bodies[1].joints[0].axis.z, 1);
  EXPECT_TRUE(notes(spec, "normalised"));
}

TEST(MjcfBadInput, Trees) {
  refused("<mujoco><worldbody>\n<body name='a'/>\n<body name='a'/></worldbody></mujoco>", 3,
          "second body is named 'a'");
  refused("<mujoco><worldbody>\n<body name='world'/></worldbody></mujoco>", 2, "second body is named 'world'");
  refused(in_body("<joint name='x'/><joint name='x'/>"), 3, "second joint");
  refused(in_body("<geom class='none' size='1'/>"), 3, "default class 'none' is not defined");
  refused(in_body("<body childclass='none'/>"), 3, "default class 'none' is not defined");
  refused(at_top("<default><default><geom size='1'/></default></default>"), 2, "needs a name");
  refused(at_top("<default><default class='a'/><default class='a'/></default>"), 2, "is defined twice");
  refused(at_top("<default><leg/></default>"), 2, "not an element of <default>");
  refused(at_top("<default><geom/><geom/></default>"), 2, "second <geom> in one default class");
  refused("<mujoco><worldbody>\n<body><body mocap='true'/></body></worldbody></mujoco>", 2, "child of the world");
  const ModelSpec named = parse("<mujoco><worldbody><body name='" + std::string(100'000, 'x') +
                                "'/><body name='足 Fuß'/></worldbody></mujoco>");
  EXPECT_EQ(named.bodies[1].name.size(), 100'000u);
  EXPECT_EQ(named.bodies[2].name, "足 Fuß");
}

TEST(MjcfBadInput, DeepAndWideTreesLoad) {
  std::string deep = "<mujoco><worldbody>", wide = deep;
  for (int i = 0; i < 10'000; ++i) deep += "<body><joint/><geom size='.1'/>";
  for (int i = 0; i < 10'000; ++i) deep += "</body>";
  for (int i = 0; i < 100'000; ++i) wide += "<body/>";
  const ModelSpec chain = parse(deep + "</worldbody></mujoco>");
  ASSERT_EQ(chain.bodies.size(), 10'001u);
  EXPECT_EQ(chain.bodies.back().parent, 9'999);
  EXPECT_EQ(parse(wide + "</worldbody></mujoco>").bodies.size(), 100'001u);
}

TEST(MjcfBadInput, NestingAtAMillionIsRefused) {
  std::string text = "<mujoco><worldbody>";
  for (int i = 0; i < 1'000'000; ++i) text += "<body>";
  refused(text, 1, "deeper than");
  std::string defaults = "<mujoco>";
  for (int i = 0; i < 1'000'000; ++i) defaults += "<default class='a'>";
  refused(defaults, 1, "deeper than");
  defaults = "<mujoco><default>";
  for (int i = 0; i < 15'000; ++i) defaults += fmt::format("<default class='c{}'>", i);
  for (int i = 0; i < 15'000; ++i) defaults += "</default>";
  refused(defaults + "</default></mujoco>", 1, "more than 10000 default classes");
}

TEST(MjcfBadInput, Constraints) {
  const auto equality = [](const std::string& element, const std::string& words) {
    refused(at_top("<equality>" + element + "</equality>"), 2, words);
  };
  equality("<connect body1='none' anchor='0 0 0'/>", "no body named 'none'");
  equality("<connect body1='b' body2='b' anchor='0 0 0'/>", "constrained to itself");
  equality("<weld body1='world'/>", "constrained to itself");
  equality("<connect body1='b'/>", "needs the attribute 'anchor'");
  equality("<connect body1='b' anchor='0 nan 0'/>", "not a finite number");
  equality("<connect anchor='0 0 0'/>", "needs the attribute 'body1'");
  equality("<connect site1='s'/>", "needs the attribute 'site2'");
  equality("<connect site1='s' site2='none'/>", "no site named 'none'");
  equality("<connect site1='s' body2='b'/>", "cannot be combined with 'body1'");
  equality("<joint joint1='none'/>", "no joint named 'none'");
  equality("<joint joint1='j' joint2='j'/>", "constrained to itself");
  equality("<joint joint1='f'/>", "only hinges and slides");
  equality("<joint joint1='j' polycoef='1 2 3 4 5 6'/>", "expected 1 to 5");
  equality("<tendon tendon1='none'/>", "no tendon named 'none'");
  equality("<spring joint1='j'/>", "is not an element of <equality>");
  refused(at_top("<contact><pair geom1='g' geom2='none'/></contact>"), 2, "no geom named 'none'");
  refused(at_top("<contact><pair geom1='g'/></contact>"), 2, "needs the attribute 'geom2'");
  refused(at_top("<contact><exclude body1='b' body2='none'/></contact>"), 2, "no body named 'none'");
  refused(at_top("<tendon><fixed name='t'><joint joint='none' coef='1'/></fixed></tendon>"), 2,
          "no joint named 'none'");
  refused(at_top("<tendon><fixed name='t'/></tendon>"), 2, "has no joints");
  refused(at_top("<tendon><fixed><joint joint='f' coef='1'/></fixed></tendon>"), 2, "only hinges and slides");
  refused(at_top("<tendon><fixed range='1 0'><joint joint='j' coef='1'/></fixed></tendon>"), 2, "expected low < high");
}

TEST(MjcfBadInput, Actuators) {
  const auto actuator = [](const std::string& element, const std::string& words) {
    refused(at_top("<actuator>" + element + "</actuator>"), 2, words);
  };
  actuator("<motor joint='none'/>", "no joint named 'none'");
  actuator("<motor/>", "needs one of joint");
  actuator("<motor joint='j' site='s'/>", "is a second transmission");
  actuator("<engine joint='j'/>", "not an element of <actuator>");
  actuator("<motor joint='j' kp='1'/>", "no attribute 'kp'");
  actuator("<position joint='j' kp='-1'/>", "'kp' is -1");
  actuator("<position joint='j' kv='1' dampratio='1'/>", "exclude each other");
  actuator("<position joint='j' inheritrange='1'/>", "has no range");
  actuator("<motor joint='j' ctrlrange='1 0'/>", "expected low < high");
  actuator("<motor joint='j' ctrllimited='true'/>", "expected low < high");
  actuator("<general joint='j' gaintype='magic'/>", "'magic' is not one of");
  actuator("<general joint='j' dyntype='dcmotor'/>", "needs actearly='true'");
  actuator("<general joint='j' gaintype='dcmotor'/>", "needs dyntype 'dcmotor'");
  actuator("<general joint='j' dyntype='pid'/>", "needs gaintype 'pid'");
  actuator("<general joint='j' gaintype='pid'/>", "needs biastype 'affine'");
  actuator("<motor name='m' joint='j'/><motor name='m' joint='j'/>", "second actuator");
}

TEST(MjcfBadInput, Sensors) {
  const auto sensor = [](const std::string& element, const std::string& words) {
    refused(
        at_top("<tendon><fixed name='t'><joint joint='j' coef='1'/></fixed></tendon><sensor>" + element + "</sensor>"),
        2, words);
  };
  for (const char* what : {"pos", "vel", "frc"}) {
    sensor(fmt::format("<jointlimit{} joint='j'/>", what), "is for joints with a limit");
    sensor(fmt::format("<jointlimit{} joint='f'/>", what), "is for joints with a limit");
    sensor(fmt::format("<tendonlimit{} tendon='t'/>", what), "is for tendons with a limit");
  }
  sensor("<camprojection camera='none'/>", "needs the attribute 'site'");
  sensor("<camprojection site='s'/>", "needs the attribute 'camera'");
  sensor("<camprojection site='s' camera='none'/>", "no camera named 'none'");
  sensor("<tactile geom='g'/>", "needs the attribute 'mesh'");
  sensor("<tactile geom='g' mesh='none'/>", "no mesh named 'none'");
  sensor("<user/>", "needs the attribute 'dim'");
  for (const char* kind : {"distance", "normal", "fromto"}) {
    sensor(fmt::format("<{} geom1='g' body1='b' geom2='h'/>", kind), "has only one of 'geom1' or 'body1'");
    sensor(fmt::format("<{} geom1='g' geom2='h' body2='c'/>", kind), "has only one of 'geom2' or 'body2'");
    sensor(fmt::format("<{} geom2='h'/>", kind), "needs the attribute 'geom1' or 'body1'");
    sensor(fmt::format("<{} geom1='g' geom2='g'/>", kind), "names the same element twice");
    sensor(fmt::format("<{} body1='b' body2='b'/>", kind), "names the same element twice");
  }
  sensor("<contact geom1='g' site='s'/>", "has at most one of 'geom1' or 'body1' or 'subtree1' or 'site'");
  sensor("<contact geom1='g' num='0'/>", "must be positive");
  sensor("<contact geom1='g' data='force found'/>", "in this order");
  sensor("<contact geom1='g' data='forces'/>", "in this order");
  sensor("<contact geom1='g' reduce='most'/>", "'most' is not one of");
  sensor("<rangefinder site='s' data='dir dist'/>", "in this order");
  sensor("<jointpos joint='j' cutoff='-1'/>", "'cutoff' is negative");
  sensor("<jointpos joint='j' noise='x'/>", "attribute 'noise'");
  sensor("<framequat objtype='body' objname='b' cutoff='1'/>", "cannot have a 'cutoff'");
  sensor("<touch site='s' objname='b'/>", "no attribute 'objname'");
  sensor("<framelinacc objtype='body' objname='b' reftype='body' refname='c'/>", "no attribute 'refname'");
  sensor("<clock><x/></clock>", "not an element of <clock>");
}

TEST(MjcfBadInput, UnknownAttributesOfLooks) {
  refused(at_top("<asset><material name='m' shine='1'/></asset>"), 2, "no attribute 'shine'");
  refused(at_top("<asset><texture name='m' type='2d' size='1'/></asset>"), 2, "no attribute 'size'");
  refused(in_body("<camera fov='1'/>"), 3, "no attribute 'fov'");
  refused(in_body("<light colour='1 0 0'/>"), 3, "no attribute 'colour'");
  refused(at_top("<visual><quality shadow='1'/></visual>"), 2, "no attribute 'shadow'");
  refused(at_top("<visual><haze/></visual>"), 2, "not an element of <visual>");
  refused(at_top("<statistic middle='0 0 0'/>"), 2, "no attribute 'middle'");
  refused(at_top("<size nuser='1'/>"), 2, "no attribute 'nuser'");
  refused(at_top("<custom><numeric name='n' values='1'/></custom>"), 2, "no attribute 'values'");
  refused(at_top("<default><material shine='1'/></default>"), 2, "no attribute 'shine'");
}

TEST(MjcfBadInput, Shapes) {
  refused(in_body("<geom/>"), 3, "size of a sphere");
  refused(in_body("<geom size='0'/>"), 3, "size of a sphere");
  refused(in_body("<geom size='-1'/>"), 3, "size of a sphere is -1");
  refused(in_body("<geom size='nan'/>"), 3, "not a finite number");
  refused(in_body("<geom size='1e30'/>"), 3, "more than 1e10");
  refused(in_body("<geom type='box' size='1 1'/>"), 3, "expected 3 positive");
  refused(in_body("<geom type='capsule' size='1'/>"), 3, "expected 2 positive");
  refused(in_body("<geom type='capsule' size='1' fromto='0 0 1 0 0 1'/>"), 3, "the same point");
  refused(in_body("<geom size='1' fromto='0 0 1 0 0 2'/>"), 3, "not for a sphere");
  refused(in_body("<geom type='cone' size='1'/>"), 3, "'cone' is not a type");
  refused(in_body("<geom type='mesh'/>"), 3, "needs the attribute 'mesh'");
  refused(in_body("<geom type='mesh' mesh='none'/>"), 3, "no mesh named 'none'");
  refused(in_body("<geom type='hfield' hfield='none'/>"), 3, "no height field named 'none'");
  refused(in_body("<geom type='sdf' size='1'/>"), 3, "not supported");
  refused(in_body("<geom size='1' condim='2'/>"), 3, "expected 1, 3, 4 or 6");
  refused(in_body("<geom size='1' friction='-1'/>"), 3, "'friction' is negative");
  refused(in_body("<site size='-1'/>"), 3, "size of a sphere");
}

TEST(MjcfBadInput, Meshes) {
  const auto mesh = [](const std::string& attributes, const std::string& words) {
    refused(at_top("<asset><mesh name='m' " + attributes + "/></asset>"), 2, words);
  };
  mesh("file='none.stl'", "'none.stl' is missing");
  mesh("", "needs 'file' or 'vertex'");
  mesh("vertex='0 0 0 1 0 0'", "multiple of 3, at least 12");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 1' face='0 1 2 0 1'", "multiple of 3");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 1' face='0 1 4'", "index 4 is out of range");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 1' face='0 1 -1'", "index -1 is out of range");
  mesh("vertex='0 0 0 1 0 0 0 1 0 1 1 0'", "convex hull");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 nan'", "not a finite number");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 1' scale='1 0 1'", "'scale' contains zero");
  mesh("vertex='0 0 0 1 0 0 0 1 0 0 0 1' refquat='0 0 0 0'", "'refquat' has length zero");
  refused(
      "<mujoco>\n<asset><mesh name='m' builtin='sphere' params='2'/></asset><worldbody><body><joint/>\n"
      "<geom type='mesh' mesh='m'/></body></worldbody></mujoco>",
      3, "inertia needs it");
  const std::string flat = "<asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 1 1 0' face='0 1 2 1 3 2'/></asset>";
  refused("<mujoco>\n" + flat + "<worldbody><body><joint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>", 2,
          "mesh 'm'");
  Folder folder;
  folder.write("main.xml",
               "<mujoco>\n<asset><mesh file='x.stl'/></asset><worldbody><body><joint/>\n<geom type='mesh' "
               "mesh='x'/></body></worldbody></mujoco>");
  folder.refused("main.xml", 2, "'x.stl' is missing");
  ReadOptions lenient;
  lenient.lenient = true;
  expect_refused([&] { read_mjcf(folder.path / "main.xml", lenient); }, 3, "inertia needs it",
                 "lenient, but the inertia needs the mesh");
  folder.write("x.stl", "");
  folder.refused("main.xml", 0, "");
  folder.write("inertial.xml",
               "<mujoco>\n<asset><mesh file='y.stl'/></asset><worldbody><body><joint/><inertial pos='0 0 0' mass='1' "
               "diaginertia='1 1 1'/>"
               "<geom type='mesh' mesh='y'/></body></worldbody></mujoco>");
  folder.refused("inertial.xml", 2, "'y.stl' is missing");
  EXPECT_TRUE(warns(read_mjcf(folder.path / "inertial.xml", lenient), 2, "'y.stl' is missing"));
}

TEST(MjcfBadInput, HeightFields) {
  const auto field = [](const std::string& attributes, const std::string& words) {
    refused(at_top("<asset><hfield name='h' " + attributes + "/></asset>"), 2, words);
  };
  field("nrow='2' ncol='2'", "needs the attribute 'size'");
  field("size='1 1 0 1' nrow='2' ncol='2'", "must be positive");
  field("size='1 1 1 1' nrow='1000000' ncol='1000000'", "at most 2e7");
  field("size='1 1 1 1' nrow='-2' ncol='-2'", "at least 2 x 2");
  field("size='1 1 1 1' nrow='2' ncol='2' elevation='1 2 3'", "expected 2 x 2");
  field("size='1 1 1 1' file='none.png'", "missing");
  field("size='1 1 1 1' nrow='2' ncol='2' elevation='1 2 3 nan'", "not a finite number");
  field("size='1 1 1 1' nrow='2' ncol='2' elevation='1 2 3 1e60'", "larger than 1e30");
}

TEST(MjcfBadInput, HeightFieldFiles) {
  Folder folder;
  folder.write("field.xml",
               "<mujoco>\n<asset><hfield name='h' size='1 1 1 1' file='h.bin'/></asset><worldbody><geom type='hfield' "
               "hfield='h'/></worldbody></mujoco>");
  const auto bytes = [](std::vector<std::int32_t> counts, std::vector<float> heights) {
    std::string out(reinterpret_cast<const char*>(counts.data()), 4 * counts.size());
    return out.append(reinterpret_cast<const char*>(heights.data()), 4 * heights.size());
  };
  const auto refused_file = [&](const std::string& content, const std::string& words) {
    folder.write("h.bin", content);
    folder.refused("field.xml", 2, words);
  };
  refused_file("", "has 0 bytes, expected at least 8");
  refused_file("abc", "has 3 bytes");
  refused_file(bytes({2, 3}, {1, 2, 3, 4, 5}), "has 28 bytes, expected 32");
  refused_file(bytes({2, 3}, {1, 2, 3, 4, 5, 6, 7}), "has 36 bytes, expected 32");
  refused_file(bytes({1, 3}, {1, 2, 3}), "claims 1 x 3 points");
  refused_file(bytes({-2, -3}, {1, 2, 3, 4, 5, 6}), "claims -2 x -3 points");
  refused_file(bytes({2147483647, 2147483647}, {1}), "at most 2e7");
  refused_file(bytes({2, 2}, {1, 2, 3, std::numeric_limits<float>::quiet_NaN()}), "point 3 is nan");
  refused_file(bytes({2, 2}, {1, 2, std::numeric_limits<float>::infinity(), 4}), "point 2 is inf");
}

TEST(MjcfBadInput, Options) {
  const auto option = [](const std::string& attributes, const std::string& words) {
    refused(at_top("<option " + attributes + "/>"), 2, words);
  };
  for (const char* step : {"0", "-0.01", "1e9"}) option(fmt::format("timestep='{}'", step), "attribute 'timestep' is");
  option("timestep='nan'", "not a finite number");
  option("iterations='0'", "expected 1 to");
  option("iterations='2147483648'", "does not fit");
  option("gravity='0 0 nan'", "not a finite number");
  option("gravity='0 0 1e300'", "larger than");
  option("integrator='Verlet'", "'Verlet' is not one of");
  option("solver='Magic'", "'Magic' is not one of");
  option("speed='1'", "no attribute 'speed'");
  refused(at_top("<compiler angle='grad'/>"), 2, "not one of");
  refused(at_top("<compiler eulerseq='xyw'/>"), 2, "expected three of the letters");
  refused(at_top("<compiler coordinate='global'/>"), 2, "not supported");
  refused(at_top("<compiler boundmass='-1'/>"), 2, "negative");
}

TEST(MjcfBadInput, Counts) {
  for (const char* count : {"-1", "100000000", "1e30", "2.5", "x"}) {
    refused(in_body(fmt::format("<replicate count='{}'><geom size='1'/></replicate>", count)), 3, "attribute 'count'");
  }
  refused(in_body("<replicate><geom size='1'/></replicate>"), 3, "needs the attribute 'count'");
  refused(in_body("<replicate count='100000'><replicate count='100000'><geom size='1'/></replicate></replicate>"), 3,
          "more than 500000 elements");
  std::string nested = "<geom size='1'/>";
  for (int i = 0; i < 30; ++i) nested = "<replicate count='10'>" + nested + "</replicate>";
  refused(in_body(nested), 3, "more than 500000 elements");
  for (const char* attribute : {"nuser_body", "nuser_jnt", "nuser_geom", "nkey"}) {
    refused(at_top(fmt::format("<size {}='2000000000'/>", attribute)), 2, fmt::format("'{}' is 2000000000", attribute));
  }
  refused(at_top("<keyframe><key qpos='1 2 3 4 5 6 7 8 9 10'/></keyframe>"), 2, "has 10 numbers, expected 9 (nq)");
  refused(at_top("<keyframe><key qvel='1 2 3 4 5 6 7 8 9'/></keyframe>"), 2, "expected 8 (nv)");
  refused(at_top("<keyframe><key ctrl='1'/></keyframe>"), 2, "expected 0 (nu)");
  refused(at_top("<keyframe><key qpos='0 0 nan 0 0 0 0 0 0'/></keyframe>"), 2, "not a finite number");
  refused(at_top("<custom><numeric name='n' size='2000000000'/></custom>"), 2, "'size' is 2000000000");
}

TEST(MjcfBadInput, AttachedModels) {
  Folder folder;
  folder.write("a.xml",
               "<mujoco><asset>\n<model name='b' file='b.xml'/></asset><worldbody><body name='a'>\n<attach model='b' "
               "body='b' prefix='x'/></body></worldbody></mujoco>");
  folder.refused("a.xml", 2, "no such file");
  folder.write("b.xml",
               "<mujoco><asset>\n<model name='a' file='a.xml'/></asset><worldbody><body name='b'>\n<attach model='a' "
               "body='a' prefix='y'/></body></worldbody></mujoco>");
  folder.refused("a.xml", 3, "levels deep");
  folder.write("c.xml",
               "<mujoco><asset><model name='d' file='d.xml'/></asset><worldbody>\n<attach model='d' "
               "body='none'/></worldbody></mujoco>");
  folder.write("d.xml", "<mujoco><worldbody><body name='d'/></worldbody></mujoco>");
  folder.refused("c.xml", 2, "has no body named 'none'");
  refused(in_body("<attach model='none' body='x'/>"), 3, "no <model> named 'none'");
}

TEST(MjcfBadInput, WhatIsNotSupportedIsNamedWithItsLine) {
  refused(at_top("<tendon><spatial name='t'><site site='s'/></spatial></tendon>"), 2, "at least two sites");
  EXPECT_TRUE(warns(parse(at_top("<actuator><muscle joint='j'/></actuator>")), 2, "without 'lengthrange'"));
  EXPECT_TRUE(warns(parse(at_top("<extension><plugin plugin='x'/></extension>")), 2, "plugin 'x'"));
  EXPECT_TRUE(warns(parse(in_body("<flexcomp name='x'><contact/></flexcomp>")), 3, "<flexcomp> is not simulated"));
  EXPECT_TRUE(warns(parse(at_top("<deformable><flex/></deformable>")), 2, "<flex> is not supported"));
  EXPECT_TRUE(warns(parse(at_top("<equality><flex flex='x'/></equality>")), 2, "<flex> is not simulated"));
  EXPECT_TRUE(warns(parse(at_top("<asset><mesh name='m' builtin='sphere' params='2'/></asset>")), 2, "'builtin'"));
  EXPECT_TRUE(warns(parse(at_top("<asset><mesh name='m'><plugin plugin='x'/></mesh></asset>")), 2, "a plugin"));
  EXPECT_TRUE(notes(parse(at_top("<option solver='CG' tolerance='1e-9'/>")), "not used here: solver, tolerance"));
  refused(in_body("<composite/>"), 3, "is not supported, nor is it in MuJoCo 4");
}

}  // namespace
}  // namespace tarsus
