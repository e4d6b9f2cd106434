// The viewer's scene and page: shapes, colours, poses, and that no name can inject code into a page.
#include "tarsus/io/page.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/base64.hpp"
#include "support/grouped_digits.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/data.hpp"

namespace tarsus {
namespace {

using nlohmann::json;
using test::decode;

Model from_text(const std::string& body) {
  return compile(parse_mjcf("<mujoco model='m'>" + body + "</mujoco>", "test", ".", {}));
}

TEST(Scene, ShapesHaveTheirMaterialsColoursAndMeshes) {
  const Model model = from_text(R"(
    <asset>
      <texture type='skybox' builtin='gradient' rgb1='.3 .5 .7' rgb2='0 0 0' width='8' height='8'/>
      <texture name='checks' type='2d' builtin='checker' rgb1='.5 1 0' rgb2='0 0 0' width='8' height='8'/>
      <material name='red' rgba='1 0 0 .5'/> <material name='checked' texture='checks' rgba='1 .5 1 1'/>
      <mesh name='tetra' vertex='0 0 0  1 0 0  0 1 0  0 0 1'/>
    </asset>
    <worldbody>
      <geom type='plane' size='0 0 1'/>
      <body name='b' pos='0 0 1'> <freejoint/>
        <geom type='box' size='1 2 3' material='red'/>
        <geom type='sphere' size='.5' material='red' rgba='0 0 1 1'/>
        <geom type='capsule' size='.1 .2' material='checked' group='3'/>
        <geom type='mesh' mesh='tetra'/> <geom type='mesh' mesh='tetra'/>
      </body>
    </worldbody>)");
  const json scene = json::parse(scene_json(model));
  const json& shapes = scene["shapes"];
  ASSERT_EQ(shapes.size(), 6u);
  EXPECT_EQ(shapes[0]["type"], "plane");
  EXPECT_EQ(shapes[1]["rgba"], json({1, 0, 0, .5}));   // the material's
  EXPECT_EQ(shapes[2]["rgba"], json({0, 0, 1, 1}));    // its own takes precedence
  EXPECT_EQ(shapes[3]["rgba"], json({.5, .5, 0, 1}));  // material's times texture's
  EXPECT_EQ(shapes[1]["size"], json({1, 2, 3}));
  EXPECT_TRUE(shapes[3].value("hidden", false));
  EXPECT_FALSE(shapes[1].contains("hidden"));
  ASSERT_EQ(scene["meshes"].size(), 1u);  // two geoms, one mesh
  EXPECT_EQ(shapes[4]["mesh"], 0);
  EXPECT_EQ(decode<float>(scene["meshes"][0]["vertices"]).size() % 3, 0u);
  for (const std::int32_t corner : decode<std::int32_t>(scene["meshes"][0]["triangles"])) EXPECT_LT(corner, 4);
}

TEST(Scene, HeightFieldsAreMeshesOfTheirHeights) {
  const Model model = from_text(R"(
    <asset><hfield name='hills' nrow='2' ncol='3' size='3 2 .5 .1' elevation='0 1 0  1 0 1'/></asset>
    <worldbody><geom type='hfield' hfield='hills'/></worldbody>)");
  const json scene = json::parse(scene_json(model));
  const std::vector<float> v = decode<float>(scene["meshes"][0]["vertices"]);
  ASSERT_EQ(v.size(), 18u);
  const HeightFieldSpec& field = model.spec.height_fields[0];
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(v[3 * i + 2], 0.5f * field.elevation[i]);
  EXPECT_EQ((std::vector<float>{v[3], v[4], v[15], v[16]}), (std::vector<float>{0, -2, 3, 2}));
  EXPECT_EQ(decode<std::int32_t>(scene["meshes"][0]["triangles"]).size(), 12u);  // two cells of two triangles
}

TEST(Scene, LoopsAreHeldAtOnePointOfBothBodies) {
  const Model model = compile(read_model(TARSUS_SOURCE_DIR "/models/loops/four_bar.xml", {}));
  const json scene = json::parse(scene_json(model));
  ASSERT_FALSE(scene["loops"].empty());
  Data data(model);
  kinematics<double>(model, data, model.qpos0);
  for (const json& loop : scene["loops"]) {
    Vec3d world[2];
    for (int k = 0; k < 2; ++k) {
      const Transformd X = body_pose<double>(model, data, loop["bodies"][k]);
      const json& p = loop["points"][k];
      world[k] = X.R * Vec3d{p[0], p[1], p[2]} + X.p;
    }
    EXPECT_LT(norm(world[0] - world[1]), 1e-12);
  }
}

TEST(Page, PosesAreThoseOfTheBodies) {
  const Model model = compile(read_model(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  Data data(model);
  std::vector<double> qpos = model.qpos0, qvel(std::size_t(model.nv), 0.0);
  PageWriter page(model);
  for (int i = 0; i < 10; ++i) {
    qpos[0] = 0.1 * i, qpos[std::size_t(model.joints[std::size_t(model.joint_id("left_knee"))].qpos)] = -0.05 * i;
    page.frame(i / 30.0, qpos, qvel, model.qpos0, 0.01 * i);
  }
  const json out = json::parse(page.json());
  ASSERT_EQ(out["frames"], 10);
  const std::vector<float> poses = decode<float>(out["poses"]), ghost = decode<float>(out["ghost"]);
  ASSERT_EQ(poses.size(), std::size_t(10 * 7 * model.nbody()));
  ASSERT_EQ(ghost.size(), poses.size());
  kinematics<double>(model, data, qpos);
  for (int b = 0; b < model.nbody(); ++b) {
    const Transformd X = body_pose<double>(model, data, b);
    const float* p = poses.data() + 7 * (9 * model.nbody() + b);
    EXPECT_LT(norm(Vec3d{p[0], p[1], p[2]} - X.p), 1e-6);
    const Mat3d R = rotation(normalized(Quatd{p[3], p[4], p[5], p[6]}));
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) EXPECT_NEAR(R(i, j), X.R(i, j), 1e-6);
    }
  }
  EXPECT_EQ(out["series"][0]["name"], "tracking error");
  EXPECT_NEAR(decode<float>(out["series"][0]["values"])[7], 0.07, 1e-6);
}

TEST(Page, ContactsAreDrawnAndPlotted) {
  const Model model =
      from_text("<worldbody><body><joint type='hinge'/><geom type='sphere' size='1'/></body></worldbody>");
  PageWriter page(model);
  const double zero = 0;
  std::vector<float> one{1, 2, 3, 0, 3, 4, 0, 0, 1, 0.5f}, many;
  for (int i = 0; i < 401; ++i) many.insert(many.end(), one.begin(), one.end());
  const PageContacts none, some{one, 0.25, 1e-9, 3}, crowd{many, 0, 0, 1};
  page.frame(0, {&zero, 1}, {&zero, 1}, {}, 0, &none);
  page.frame(1, {&zero, 1}, {&zero, 1}, {}, 0, &some);
  page.frame(2, {&zero, 1}, {&zero, 1}, {}, 0, &crowd);
  const json out = json::parse(page.json());
  EXPECT_EQ(decode<float>(out["contacts"]), one);  // of 401 none is drawn
  EXPECT_EQ(decode<std::int32_t>(out["contact_start"]), (std::vector<std::int32_t>{0, 0, 1, 1}));
  const auto series = [&](const std::string& name) {
    for (const json& s : out["series"]) {
      if (s["name"] == name) return decode<float>(s["values"]);
    }
    return std::vector<float>();
  };
  EXPECT_EQ(series("contact force"), (std::vector<float>{0, 5, 5 * 401}));
  EXPECT_EQ(series("penetration"), (std::vector<float>{0, 0.25f, 0}));
  EXPECT_EQ(series("contact residual"), (std::vector<float>{0, 1e-9f, 0}));
  EXPECT_EQ(series("contact iterations"), (std::vector<float>{0, 3, 1}));
  const PageContacts odd{{1, 2, 3}};
  EXPECT_THROW(page.frame(3, {&zero, 1}, {&zero, 1}, {}, 0, &odd), ShapeError);
}

TEST(Page, FramesCloserThanASixtiethAreLeftOutButForTheLast) {
  const Model model =
      from_text("<worldbody><body><joint type='hinge'/><geom type='sphere' size='1'/></body></worldbody>");
  PageWriter page(model);
  const double zero = 0;
  for (int i = 0; i <= 1000; ++i) page.frame(i / 1000.0, {&zero, 1}, {&zero, 1});
  const int frames = json::parse(page.json())["frames"];
  EXPECT_GE(frames, 55);
  EXPECT_LE(frames, 61);
  const std::vector<float> time = decode<float>(json::parse(page.json())["time"]);
  EXPECT_EQ(time.front(), 0);
  EXPECT_EQ(time.back(), 1);
}

TEST(Page, DoesNotFollowTheGlobalLocale) {
  const test::GroupedDigits locale;
  const Model model = compile(read_model(TARSUS_SOURCE_DIR "/models/pendulum.xml", {}));
  PageWriter writer(model);
  const std::vector<double> qpos(model.nq), qvel(model.nv);
  for (int i = 0; i < 1234; ++i) writer.frame(i / 50.0, qpos, qvel);
  EXPECT_EQ(json::parse(writer.json())["frames"], 1234);
}

TEST(Page, IsWrittenIntoItsRoomAndNoNameEndsTheScript) {
  Model model = from_text("<worldbody><body><joint type='hinge'/><geom type='sphere' size='1'/></body></worldbody>");
  model.name = "</script><script>alert(1)</script><!--<script>";
  PageWriter page(model);
  const double zero = 0;
  page.frame(0, {&zero, 1}, {&zero, 1});
  const std::string before = "<script id=\"recording\" type=\"application/json\">", after = "</script> tail";
  const std::string file = testing::TempDir() + "page_test.html";
  page.write(file, before + "null" + after);
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  ASSERT_TRUE(text.starts_with(before));
  ASSERT_TRUE(text.ends_with(after));
  const std::string inner = text.substr(before.size(), text.size() - before.size() - after.size());
  EXPECT_EQ(inner.find('<'), std::string::npos);
  EXPECT_EQ(json::parse(inner)["scene"]["name"], model.name);
  EXPECT_THROW(page.write(file, "<p>no room"), ValueError);
  EXPECT_THROW(page.write("no/such/folder/page.html", before + "null" + after), Error);
}

TEST(Page, TheCheckedInPageHasRoom) {
  std::ifstream in(TARSUS_SOURCE_DIR "/python/tarsus/view/page.html");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_NE(text.str().find("<script id=\"recording\" type=\"application/json\">null</script>"), std::string::npos);
  EXPECT_LT(text.str().size(), 6u << 20);
}

}  // namespace
}  // namespace tarsus
