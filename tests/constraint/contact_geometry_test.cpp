// Which shapes of a model are searched for contacts, and up to which distance.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "support/random_model.hpp"
#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

std::vector<LinkContact> contacts_of(const std::string& text) {
  const Model model = compile(parse_mjcf(text, "contacts.xml", ""));
  ContactGeometry geometry(model);
  Data data(model);
  kinematics(model, data, data.qpos, data.qvel);
  std::vector<LinkContact> contacts;
  geometry.detect(data, 1e-3, contacts);
  return contacts;
}

/// Two balls of radius 0.1, 0.05 apart and at rest.
std::string balls(const std::string& margin, const std::string& pair) {
  return "<mujoco><worldbody>"
         "<body><freejoint/><geom name='a' size='.1' margin='" +
         margin +
         "'/></body>"
         "<body pos='.25 0 0'><freejoint/><geom name='b' size='.1'/></body></worldbody>"
         "<contact>" +
         pair + "</contact></mujoco>";
}

TEST(ContactGeometry, MarginsOfExplicitPairsReplaceThoseOfTheirShapes) {
  EXPECT_TRUE(contacts_of(balls("0", "")).empty());
  EXPECT_EQ(contacts_of(balls("0.06", "")).size(), 1u);
  const std::vector<LinkContact> wide = contacts_of(balls("0", "<pair geom1='a' geom2='b' margin='0.06'/>"));
  ASSERT_EQ(wide.size(), 1u);
  EXPECT_NEAR(wide[0].point.distance, 0.05 - 0.06, 1e-12) << "forces begin at the margin";
  EXPECT_TRUE(contacts_of(balls("0.06", "<pair geom1='a' geom2='b' margin='0.04'/>")).empty());
}

TEST(ContactGeometry, MarginsAddUpAndGapsDoNotShortenThem) {
  // MuJoCo 4: forces begin at the sum of both margins; a gap only widens the search.
  const auto two = [](const std::string& a, const std::string& b) {
    return "<mujoco><worldbody><body><freejoint/><geom size='.1' " + a + "/></body>" +
           "<body pos='.25 0 0'><freejoint/><geom size='.1' " + b + "/></body></worldbody></mujoco>";
  };
  for (const auto& [a, b] : {std::pair("margin='.02'", "margin='.04'"), std::pair("margin='.06' gap='.06'", ""),
                             std::pair("margin='.03' gap='.01'", "margin='.03' gap='.05'")}) {
    const std::vector<LinkContact> found = contacts_of(two(a, b));
    ASSERT_EQ(found.size(), 1u) << a << b;
    EXPECT_NEAR(found[0].point.distance, 0.05 - 0.06, 1e-12) << a << b;
  }
  EXPECT_EQ(contacts_of(balls("0", "<pair geom1='a' geom2='b' margin='.06' gap='.06'/>")).size(), 1u);
}

/// Pairs at rest, 5 µm apart. A freely falling body moves by 9.8 µm in the millisecond.
TEST(ContactGeometry, OnlyWhatMayFallApartMeetsByFalling) {
  const std::string a = "<geom name='a' size='.1'/>", b = "<geom name='b' size='.1'/>", free = "<freejoint/>";
  const std::string hinge = "<joint axis='0 1 0'/>", at = "<body pos='.200005 0 0'>";
  const auto world = [](const std::string& bodies) { return "<mujoco><worldbody>" + bodies + "</worldbody></mujoco>"; };
  const auto count = [&](const std::string& bodies) { return contacts_of(world(bodies)).size(); };
  EXPECT_EQ(count("<body>" + free + a + "</body>" + at + free + b + "</body>"), 1u) << "two that are free";
  EXPECT_EQ(count("<body>" + free + a + "</body>" + at + hinge + b + "</body>"), 1u) << "one of them";
  EXPECT_EQ(count(a + at + hinge + b + "</body>"), 1u) << "the world and what hangs on it";
  EXPECT_EQ(count("<body>" + hinge + a + "</body>" + at + hinge + b + "</body>"), 0u) << "two that hang on the world";
  const std::string between = "<body pos='0 0 .5'>" + hinge + "<geom size='.01'/>";
  EXPECT_EQ(count("<body>" + free + a + between + "<body pos='.200005 0 -.5'>" + hinge + b + "</body></body></body>"),
            0u)
      << "links of one tree";
}

/// Normalises the quaternions of free bodies.
void make_units_of_quaternions(Data& data) {
  for (std::size_t at = 3; at < data.qpos.size(); at += 7) {
    double square = 0;
    for (std::size_t k = at; k < at + 4; ++k) square += data.qpos[k] * data.qpos[k];
    for (std::size_t k = at; k < at + 4; ++k) data.qpos[k] /= std::sqrt(square);
  }
}

/// Sphere and capsule contacts with planes are found side by side and must equal those that collide() finds
/// individually.
TEST(ContactGeometry, SpheresAndCapsulesOnPlanesTouchWhereCollideSays) {
  const double h = 1.0 / 60;
  std::string bodies =
      "<geom type='plane' size='1 1 1' euler='20 10 0' pos='0 0 -.1'/>"
      "<geom type='plane' size='1 1 1' euler='0 -30 0' pos='0 0 -.2' margin='.03'/>";
  for (int i = 0; i < 7; ++i) {
    bodies += "<body><freejoint/><geom pos='.1 .05 -.02' euler='30 40 50' size='.07 .2' type='";
    bodies += std::string(i % 3 ? "capsule" : "sphere") + "'/></body>";
  }
  const Model model = compile(parse_mjcf("<mujoco><worldbody>" + bodies + "</worldbody></mujoco>", "round.xml", ""));
  ContactGeometry geometry(model);
  Data data(model);
  test::Random random(5);
  std::vector<LinkContact> contacts;
  int touching = 0, coming = 0, passing = 0;
  for (int scene = 0; scene < 200; ++scene) {
    for (double& x : data.qpos) x = random.uniform(-0.4, 0.4);
    for (double& v : data.qvel) v = random.uniform(-3, 3);
    make_units_of_quaternions(data);
    kinematics(model, data, data.qpos, data.qvel);
    geometry.detect(data, h, contacts);
    std::size_t met = 0;
    for (const BodyPair& pair : geometry.pairs()) {
      const ContactShape &plane = geometry.shapes()[pair.first], &round = geometry.shapes()[pair.second];
      if (plane.shape.type != ShapeType::plane) continue;
      const LinkState<double>& link = data.links()[round.link];
      const ShapePose pose = {link.o + link.R * round.pose.position, link.R * round.pose.rotation};
      ContactPoint points[kMaxManifold];
      const int count = collide(plane.shape, plane.pose, round.shape, pose, 10, points);
      ASSERT_EQ(count, round.shape.type == ShapeType::sphere ? 1 : 2);
      for (int k = 0; k < count; ++k) {
        const ContactPoint& p = points[k];
        const auto same = [&](const LinkContact& c) {
          return ContactGeometry::shapes_of(c) == std::pair(int(pair.first), int(pair.second)) &&
                 (c.identity & 0x0fffffffu) == p.feature;
        };
        const auto found = std::find_if(contacts.begin(), contacts.end(), same);
        const double margin = geometry.surface_of(pair).margin, way = p.distance - margin - h * h * 9.81;
        const Vec3d speed = link.v.v + cross(link.v.w, p.position - link.o);
        if (found == contacts.end()) {
          EXPECT_GT(way, 0);
          EXPECT_TRUE(norm(speed) * h < way || dot(speed, p.normal) * h < way) << "it might have come";
          ++passing;
          continue;
        }
        ++met, touching += way <= 0, coming += way > 0;
        EXPECT_LE(way, norm(speed) * h + 1e-12);
        EXPECT_NEAR(found->point.distance, p.distance - margin, 1e-12);
        EXPECT_NEAR(norm(found->point.position - p.position) + norm(found->point.normal - p.normal), 0, 1e-12);
      }
    }
    const auto on_planes = [&](const LinkContact& c) { return c.a < 0 || c.b < 0; };
    EXPECT_EQ(long(met), std::count_if(contacts.begin(), contacts.end(), on_planes)) << "and no others";
  }
  EXPECT_GT(touching, 500);
  EXPECT_GT(coming, 100);
  EXPECT_GT(passing, 500);
}

/// Neither the bounding spheres and capsules of two shapes nor a cached separating axis may hide a contact.
TEST(ContactGeometry, NothingThatTouchesIsSiftedOut) {
  std::string bodies = "<geom type='box' size='.5 .1 .05' euler='10 20 30'/><geom type='plane' size='1 1 1'/>";
  const std::string kinds[] = {"type='sphere' size='.1'",           "type='capsule' size='.05 .2'",
                               "type='cylinder' size='.04 .25'",    "type='cylinder' size='.2 .02'",
                               "type='ellipsoid' size='.2 .1 .05'", "type='box' size='.05 .25 .04'",
                               "type='box' size='.1 .1 .1'",        "type='mesh' mesh='wedge'"};
  for (const std::string& kind : kinds) {
    bodies += "<body><freejoint/><geom " + kind +
              " euler='30 40 50' pos='.05 0 .02'/>"
              "<geom " +
              kind + " pos='-.1 .1 0' euler='0 60 0'/></body>";
  }
  const Model model =
      compile(parse_mjcf("<mujoco><asset><mesh name='wedge' vertex='0 0 0  .4 0 0  0 .1 0  0 0 .08  .4 .02 .01'/>"
                         "</asset><worldbody>" +
                             bodies + "</worldbody></mujoco>",
                         "sifted.xml", ""));
  ContactGeometry geometry(model);
  Data data(model);
  test::Random random(11);
  std::vector<LinkContact> contacts;
  int touching = 0, apart = 0;
  for (int scene = 0; scene < 300; ++scene) {
    for (double& x : data.qpos) x += random.uniform(-0.2, 0.2) - 0.3 * x;  // moves a little from scene to scene
    make_units_of_quaternions(data);
    kinematics(model, data, data.qpos, data.qvel);
    geometry.detect(data, 1.0 / 60, contacts);
    for (const BodyPair& pair : geometry.pairs()) {
      const auto pose = [&](std::uint32_t k) {
        const ContactShape& s = geometry.shapes()[k];
        if (s.link < 0) return s.pose;
        const LinkState<double>& link = data.links()[s.link];
        return ShapePose{link.o + link.R * s.pose.position, link.R * s.pose.rotation};
      };
      ContactPoint points[kMaxManifold];
      const int count = collide(geometry.shapes()[pair.first].shape, pose(pair.first),
                                geometry.shapes()[pair.second].shape, pose(pair.second), 0, points);
      const auto is_it = [&](const LinkContact& c) {
        return ContactGeometry::shapes_of(c) == std::pair(int(pair.first), int(pair.second));
      };
      (count > 0 ? touching : apart) += 1;
      if (count == 0) continue;
      EXPECT_GE(std::count_if(contacts.begin(), contacts.end(), is_it), 1)
          << int(geometry.shapes()[pair.first].shape.type) << " " << int(geometry.shapes()[pair.second].shape.type)
          << " depth " << points[0].distance;
    }
  }
  EXPECT_GT(touching, 2000);
  EXPECT_GT(apart, 2000);
}

/// Spheres of mixed sizes, planes, boxes and capsules, of free bodies with several geoms, of links on them and of the
/// world, with masks, margins, excluded bodies and explicit pairs.
std::string crowd() {
  std::mt19937 random(11);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto three = [&](double size) {
    return fmt::format("{} {} {}", between(-size, size), between(-size, size), between(-size, size));
  };
  int geoms = 0;
  const auto geom = [&](const std::string& pos) {
    const double r = between(0.05, 0.1) * (geoms % 9 ? 1 : 2);
    const std::string shape = geoms % 5 == 3   ? fmt::format("type='box' size='{} {} {}'", r, r / 2, r)
                              : geoms % 7 == 6 ? fmt::format("type='capsule' size='{} {}'", r / 2, r)
                                               : fmt::format("size='{}'", r);
    const std::string masks = geoms % 6 == 5 ? "contype='2' conaffinity='3'" : geoms % 8 == 7 ? "contype='4'" : "";
    const std::string text =
        fmt::format("<geom name='g{}' {} {} pos='{}' euler='{}' margin='{}' friction='{}'/>", geoms, shape, masks, pos,
                    three(90), geoms % 4 ? 0.0 : 0.02, geoms % 3 ? 0.5 : 0.8);
    ++geoms;
    return text;
  };
  std::string world =
      "<geom name='floor' type='plane' size='1 1 1' pos='0 0 -.5'/>"
      "<geom name='wall' type='plane' size='1 1 1' pos='-.6 0 0' euler='0 80 0' margin='.01'/>";
  for (int k = 0; k < 10; ++k) world += geom(three(0.6));
  for (int k = 0; k < 80; ++k) {
    world += fmt::format("<body name='b{}' pos='{}'><freejoint/>", k, three(0.6)) + geom(k % 2 ? "0 0 0" : three(0.1));
    if (k % 3) world += geom(three(0.2));
    if (k % 4 == 3)
      world += fmt::format("<body pos='{}'><joint axis='0 1 0'/>", three(0.2)) + geom("0 0 0") + geom(three(0.1)) +
               "</body>";
    world += geom("0 0 0") + "</body>";
  }
  std::string contact;
  for (int k = 0; k < 60; ++k)
    contact += fmt::format("<pair geom1='g{}' geom2='g{}' margin='.03' friction='.9 .9 .1 .1 .1'/>", k, 70 + 2 * k);
  for (int k = 0; k < 40; ++k) contact += fmt::format("<exclude body1='b{}' body2='b{}'/>", k, 79 - k);
  return "<mujoco><worldbody>" + world + "</worldbody><contact>" + contact + "</contact></mujoco>";
}

TEST(ContactGeometry, CrowdsHaveTheContactsOfTheirPairs) {
  const ModelSpec spec = parse_mjcf(crowd(), "crowd.xml", "");
  using Key = std::array<int, 5>;  // body and geom of both, feature
  const auto contacts = [&](const ModelSpec& of, bool crowded, std::map<Key, LinkContact>& out) {
    const Model model = compile(of);
    ContactGeometry geometry(model);
    EXPECT_EQ(geometry.crowded(), crowded);
    Data data(model);
    std::mt19937 random(3);
    for (double& v : data.qvel) v = std::uniform_real_distribution<double>(-3, 3)(random);
    kinematics(model, data, data.qpos, data.qvel);
    std::vector<LinkContact> found;
    for (int k = 0; k < 2; ++k) geometry.detect(data, 5e-3, found);  // the second with used memory
    std::array<std::int64_t, 2> last{-1, -1};
    for (const LinkContact& c : found) {
      const auto [i, j] = ContactGeometry::shapes_of(c);
      const ContactShape &a = geometry.shapes()[std::size_t(i)], &b = geometry.shapes()[std::size_t(j)];
      EXPECT_EQ(a.link, c.a);
      EXPECT_EQ(b.link, c.b);
      const std::array<std::int64_t, 2> links{std::max(c.a, c.b), std::min(c.a, c.b)};
      EXPECT_LE(last, links);
      last = links;
      out.insert({{a.body, a.geom, b.body, b.geom, int(c.point.feature)}, c});
    }
    return found.size();
  };
  std::map<Key, LinkContact> all, pairs;
  const std::size_t count = contacts(spec, true, all);
  EXPECT_EQ(count, all.size()) << "each once";
  for (int out = 0; out < 4; ++out) {  // without one of four parts of the shapes: each pair is in some of these models
    ModelSpec some = spec;
    int geoms = 0;
    for (BodySpec& body : some.bodies) {
      for (GeomSpec& geom : body.geoms) geom.visual_only = geoms++ % 4 == out;
    }
    contacts(some, false, pairs);
  }
  int balls = 0, planes = 0, ways = 0;
  for (const auto& [key, c] : all) {
    const auto& [body_a, geom_a, body_b, geom_b, feature] = key;
    const auto type = [&](int body, int geom) { return spec.bodies[std::size_t(body)].geoms[std::size_t(geom)].type; };
    const GeomType a = type(body_a, geom_a), b = type(body_b, geom_b);
    balls += a == GeomType::sphere && b == GeomType::sphere;
    planes += (a == GeomType::plane && b == GeomType::sphere), ways += c.point.distance > 0;
    const auto same = pairs.find(key);
    ASSERT_NE(same, pairs.end()) << body_a << ", " << geom_a << " and " << body_b << ", " << geom_b;
    const LinkContact& d = same->second;
    EXPECT_NEAR(norm(c.point.position - d.point.position), 0, 1e-10);
    EXPECT_NEAR(norm(c.point.normal - d.point.normal), 0, 1e-10);
    EXPECT_NEAR(c.point.distance, d.point.distance, 1e-10);
    EXPECT_EQ(std::tuple(c.dimension, c.friction, c.torsional, c.rolling, c.spook.compliance, c.spook.damping_time),
              std::tuple(d.dimension, d.friction, d.torsional, d.rolling, d.spook.compliance, d.spook.damping_time));
    EXPECT_NEAR(c.relative_compliance, d.relative_compliance, 1e-8 * d.relative_compliance);
  }
  EXPECT_EQ(all.size(), pairs.size());
  EXPECT_GT(balls, 100);
  EXPECT_GT(planes, 10);
  EXPECT_GT(ways, 50);
}

TEST(ContactGeometry, TheContactFlagTurnsContactOff) {
  const std::string on = balls("0.06", "");
  EXPECT_EQ(contacts_of(on).size(), 1u);
  EXPECT_TRUE(contacts_of("<mujoco><option><flag contact='disable'/></option>" + on.substr(8)).empty());
}

TEST(ContactGeometry, PairsComeInTheOrderOfTheirLinks) {
  // Shapes in the order of bodies; a contact's rows in the order of the higher link, then of the lower.
  const Model model =
      compile(parse_mjcf("<mujoco><worldbody><geom type='plane' size='1 1 1'/>"
                         "<body><freejoint/><geom size='.1'/></body>"
                         "<body><freejoint/><geom size='.1'/></body>"
                         "<body><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
                         "order.xml", ""));
  const ContactGeometry geometry(model);
  const std::vector<BodyPair> expected = {{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}};
  EXPECT_EQ(std::vector<BodyPair>(geometry.pairs().begin(), geometry.pairs().end()), expected);
}

TEST(ContactGeometry, SolverParametersOfAFileAreCompletedAndChecked) {
  EXPECT_EQ(solver_parameters(std::vector<double>{0.05}, {}).reference, (std::array<double, 2>{0.05, 1}));
  EXPECT_EQ(solver_parameters({}, std::vector<double>{0.5}).impedance,
            (std::array<double, 5>{0.5, 0.95, 0.001, 0.5, 2}));
  for (const std::vector<double>& solref :
       std::vector<std::vector<double>>{{-100}, {0.02, -1}, {0, 1}, {0, 0}, {-100, 5}, {0.02, std::nan("")}, {1, 1, 1}})
    EXPECT_THROW(solver_parameters(solref, {}), ValueError);
}

TEST(ContactGeometry, AnExplicitPairHasItsOwnSurfaceAndNothingOfItsGeoms) {
  const std::string geoms =
      "<mujoco><worldbody><geom name='f' type='plane' size='1 1 1' friction='.2' condim='1' solref='.1 1'/>"
      "<body pos='0 0 .1'><freejoint/><geom name='b' size='.1' friction='.3' condim='6' "
      "margin='.1'/></body></worldbody>";
  const auto surface = [&](const std::string& pair) {
    const ContactGeometry geometry(compile(parse_mjcf(geoms + pair + "</mujoco>", "pair.xml", "")));
    EXPECT_EQ(geometry.pairs().size(), 1u);
    return geometry.surface_of(geometry.pairs()[0]);
  };
  const ContactSurface mixed = surface("");
  EXPECT_EQ(mixed.dimension, 6);
  EXPECT_EQ(mixed.friction[0], 0.3);
  EXPECT_EQ(mixed.margin, 0.1);
  ASSERT_TRUE(mixed.solver);
  EXPECT_DOUBLE_EQ(mixed.solver->reference[0], 0.06);
  const ContactSurface own = surface("<contact><pair geom1='b' geom2='f' friction='.7 .5'/></contact>");
  EXPECT_EQ(own.dimension, 3);
  EXPECT_EQ(own.friction, (std::array<double, 5>{0.7, 0.5, 0.005, 0.0001, 0.0001}));
  EXPECT_EQ(own.margin, 0);
  EXPECT_FALSE(own.solver) << "MJCF's defaults: the default softness";
  EXPECT_TRUE(own.directional());
}

TEST(ContactGeometry, WhoWritesTheDefaultsOutSaysNoMore) {
  for (const std::string& text : {std::string(), std::string("solref='.02 1' solimp='.9 .95 .001 .5 2'")}) {
    const ContactGeometry geometry(
        compile(parse_mjcf("<mujoco><worldbody><geom type='plane' size='1 1 1' " + text +
                               "/><body><freejoint/><geom size='.1' solref='.02'/></body></worldbody></mujoco>",
                           "default.xml", "")));
    EXPECT_FALSE(geometry.surface_of(geometry.pairs()[0]).solver);
  }
}

TEST(ContactGeometry, SoftnessAtRestIsMujocosFormula) {
  // a + d (B v + K r) = (1 - d) a₀ at rest: r = (1 - d) g/(d K'), K' = K d_max⁻² ζ⁻² t⁻² [MuJoCo's documentation].
  ContactSurface s;
  s.solver = SolverParameters{{0.05, 0.8}, {0.5, 0.9, 0.01, 0.3, 3}};
  const double K = 1 / (0.9 * 0.9 * 0.05 * 0.05 * 0.8 * 0.8);
  for (const double x : {0.0, 0.1, 0.3, 0.6, 0.9999, 1.0, 3.0}) {
    const double y = x >= 1     ? 1
                     : x <= 0.3 ? std::pow(x, 3) / std::pow(0.3, 2)
                                : 1 - std::pow(1 - x, 3) / std::pow(0.7, 2);
    const double d = 0.5 + 0.4 * y;
    const auto force = [&](double depth) {
      const ContactSoftness at = s.softness(-depth, 1e-3);
      return depth * at.gap_share / at.relative_compliance;
    };
    const ContactSoftness soft = s.softness(-0.01 * x, 1e-3);
    EXPECT_NEAR(soft.relative_compliance / soft.gap_share, (1 - d) / (d * d * K), 1e-13) << x;
    if (x == 0 || x == 1) continue;  // its slope jumps
    const double slope = (force(0.01 * x + 1e-8) - force(0.01 * x - 1e-8)) / 2e-8;
    EXPECT_NEAR(slope * soft.relative_compliance, 1, 1e-5) << x;
    // The damper is the law's, B d/(1 - d), and τ is at least one step.
    EXPECT_NEAR(soft.spook.damping_time / soft.relative_compliance, 2 / (0.9 * 0.05) * d / (1 - d), 1e-9) << x;
  }
  s.solver = SolverParameters{{0.004, 1}, {0.015, 1, 0.036, 0.5, 2}};  // of a foot, at 30 Hz
  EXPECT_EQ(s.softness(-0.034, 1.0 / 30).spook.damping_time, 1.0 / 30);
  s.solver = SolverParameters{{0.05, 0.8}, {0.9, 0.5, 0.01, 0.5, 2}};  // decreases: no tangent
  EXPECT_EQ(s.softness(-0.005, 1e-3).gap_share, 1);
  // 1 - h B is the factor on the speed: zero where it would be negative, in rows as in laws.
  const SolverParameters weak{{0.2, 1}, {0.9, 0.3, 0.01, 0.5, 2}};
  EXPECT_FALSE(solver_law(weak, 1.0 / 30).resolved);
  EXPECT_EQ(solver_row(weak, -0.001, 1.0 / 30).share, 0);
  s.solver->impedance = {0.5, 0.9, 0.01, 0.3, 3};
  s.solver->reference = {-4000, -100};
  EXPECT_NEAR(s.softness(0, 1e-3).relative_compliance, 0.5 / (0.25 * 4000 / 0.81), 1e-13);
  EXPECT_NEAR(s.softness(0, 1e-3).spook.damping_time, (100 / 0.9) / (4000 / 0.81 * 0.5), 1e-13);
}

}  // namespace
}  // namespace tarsus
