// Meshes: the formats against one another, and inconsistent files of every kind.
#include "tarsus/io/mesh_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/temporary_folder.hpp"
#include "tarsus/geometry/inertia.hpp"

namespace tarsus {
namespace {

const std::vector<Vec3d> kCorners{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
const std::vector<std::array<int, 3>> kFaces{{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};

void put(std::string& out, std::uint32_t x) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(x >> (8 * i)));
}
void put(std::string& out, float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  put(out, bits);
}
void put(std::string& out, const Vec3d& v) {
  for (int i = 0; i < 3; ++i) put(out, static_cast<float>(v[i]));
}

std::string binary_stl(const std::string& header = "", int count = 4) {
  std::string s = header;
  s.resize(80, header.empty() ? '\0' : ' ');
  put(s, static_cast<std::uint32_t>(count));
  for (const auto& f : kFaces) {
    put(s, Vec3d{0, 0, 0});
    for (int i : f) put(s, kCorners[i]);
    s += std::string(2, '\0');
  }
  return s;
}

std::string ascii_stl() {
  std::string s = "solid a b c\r\n";
  for (const auto& f : kFaces) {
    s += "  facet normal 0 0 0\n outer loop\n";
    for (int i : f)
      s += "vertex " + std::to_string(kCorners[i].x) + " " + std::to_string(kCorners[i].y) + "\t" +
           std::to_string(kCorners[i].z) + "\r\n";
    s += "endloop\nendfacet\n";
  }
  return s + "endsolid a b c\n";
}

const std::string kObj =
    "# comment\r\nmtllib x.mtl\no thing\nv 0 0 0 1 1 1\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nv 0 .0 1.\nf 1 3 2\nf 1//1 2//1 "
    "4//1 # end\n"
    "f -4/1/1 -1/1/1 -2/1/1\nf 2 \\\n 3 4\n";

std::string msh() {
  std::string s;
  for (std::uint32_t n : {4u, 4u, 4u, 4u}) put(s, n);
  for (const Vec3d& v : kCorners) put(s, v);
  for (const Vec3d& v : kCorners) put(s, v);
  for (int i = 0; i < 8; ++i) put(s, 0.5f);
  for (const auto& f : kFaces) {
    for (int i : f) put(s, static_cast<std::uint32_t>(i));
  }
  return s;
}

/// The message of the error, or "" if the file was accepted.
std::string refusal(const std::string& bytes, MeshFormat format) {
  try {
    parse_mesh(bytes, format, "m");
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

void expect_mesh_refused(const std::string& bytes, MeshFormat format, const std::string& words) {
  const std::string message = refusal(bytes, format);
  EXPECT_NE(message.find(words), std::string::npos) << "expected '" << words << "' in: " << message;
}

std::string with_ends(const std::string& end) {
  std::string out;
  for (const char c : std::string(kObj)) out += c == '\n' ? end : std::string(1, c);
  return out;
}

TEST(MeshFile, FormatsAgreeOnATetrahedron) {
  for (const auto& [bytes, format] :
       std::vector<std::pair<std::string, MeshFormat>>{{binary_stl(), MeshFormat::stl},
                                                       {binary_stl("solid pretending"), MeshFormat::stl},
                                                       {ascii_stl(), MeshFormat::stl},
                                                       {kObj, MeshFormat::obj},
                                                       {with_ends("\r"), MeshFormat::obj},
                                                       {with_ends("\r\n"), MeshFormat::obj},
                                                       {msh(), MeshFormat::msh}}) {
    SCOPED_TRACE(bytes.substr(0, 30));
    const MeshData mesh = parse_mesh(bytes, format, "m");
    EXPECT_EQ(mesh.vertices.size(), 4u);
    EXPECT_EQ(mesh.triangles.size(), 4u);
    EXPECT_TRUE(mesh_defects(mesh).empty());
    EXPECT_TRUE(mesh.diagnostics.empty());
    const ShapeInertia i = mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::exact);
    EXPECT_NEAR(i.volume, 1 / 6., 1e-15);
    EXPECT_NEAR(i.com.x, 0.25, 1e-15);
  }
}

TEST(MeshFile, PolygonsAreCutWithoutFlippedPieces) {
  // A prism over an L with six sides, concave at one corner: a fan from any other corner leaves the L.
  std::string obj;
  const double xy[6][2] = {{0, 0}, {2, 0}, {2, 1}, {1, 1}, {1, 2}, {0, 2}};
  for (int z = 0; z < 2; ++z) {
    for (const auto& p : xy)
      obj += "v " + std::to_string(p[0]) + " " + std::to_string(p[1]) + " " + std::to_string(z) + "\n";
  }
  for (int turn = 0; turn < 6; ++turn) {
    std::string top = "f", bottom = "f", text = obj;
    for (int i = 0; i < 6; ++i) {
      top += " " + std::to_string(7 + (i + turn) % 6);
      bottom += " " + std::to_string(6 - (i + turn) % 6);
    }
    text += top + "\n" + bottom + "\n";
    for (int i = 0; i < 6; ++i) {
      const int a = i + 1, b = (i + 1) % 6 + 1;
      text += "f " + std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(b + 6) + " " +
              std::to_string(a + 6) + "\n";
    }
    const MeshData mesh = parse_mesh(text, MeshFormat::obj, "m");
    EXPECT_TRUE(mesh_defects(mesh).empty());
    EXPECT_NEAR(mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::exact).volume, 3, 1e-14);
    EXPECT_NEAR(mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::shell).volume, 14, 1e-14);
  }
}

TEST(MeshFile, ScaleAndMirror) {
  MeshData mesh = parse_mesh(binary_stl(), MeshFormat::stl, "m");
  scale_mesh(mesh, {-2, 3, 1});
  EXPECT_NEAR(mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::exact).volume, 1, 1e-15);
}

TEST(MeshFile, DefectsAreNamed) {
  MeshData mesh = parse_mesh(binary_stl(), MeshFormat::stl, "m");
  MeshData open = mesh, turned = mesh, inside_out = mesh;
  open.triangles.pop_back();
  EXPECT_NE(mesh_defects(open).at(0).find("not closed: 3 edges"), std::string::npos);
  std::swap(turned.triangles[0][0], turned.triangles[0][1]);
  EXPECT_NE(mesh_defects(turned).back().find("at 3 edges have opposite orientations"), std::string::npos);
  for (auto& t : inside_out.triangles) std::swap(t[0], t[1]);
  EXPECT_NE(mesh_defects(inside_out).at(0).find("inside out"), std::string::npos);
}

TEST(MeshFile, RefusesBadStl) {
  expect_mesh_refused("", MeshFormat::stl, "empty");
  expect_mesh_refused("hello", MeshFormat::stl, "neither");
  expect_mesh_refused(binary_stl("", 5), MeshFormat::stl, "counts 5 triangles");
  expect_mesh_refused(binary_stl("", 3), MeshFormat::stl, "counts 3 triangles");
  expect_mesh_refused(binary_stl("", -1), MeshFormat::stl, "counts 4294967295");
  expect_mesh_refused(binary_stl("", 0), MeshFormat::stl, "counts 0");
  expect_mesh_refused(binary_stl().substr(0, 84 + 75), MeshFormat::stl, "counts 4");
  std::string nan = binary_stl();
  nan[84 + 12 + 3] = '\x7f', nan[84 + 12 + 2] = '\xc0';
  expect_mesh_refused(nan, MeshFormat::stl, "triangle 1 has a corner that is not finite");
  std::string none(84, '\0');
  expect_mesh_refused(none, MeshFormat::stl, "has neither triangles nor vertices");
  expect_mesh_refused("solid\nendsolid", MeshFormat::stl, "has neither triangles nor vertices");
  expect_mesh_refused("solid\nfacet\nouter loop\nvertex 1 2\n", MeshFormat::stl, "m:4: error: 'vertex' has 2 numbers");
  expect_mesh_refused("solid\nfacet\nouter loop\nvertex 1 2 x\n", MeshFormat::stl, "m:4: error:");
  expect_mesh_refused("solid\nfacet\nouter loop\nvertex 1 2 nan\n", MeshFormat::stl, "m:4: error:");
  expect_mesh_refused("solid\nfacet\nouter loop\nvertex 1 2 1e39\n", MeshFormat::stl, "single precision");
  expect_mesh_refused("solid\nfacet\nvertex 1 2 3\n", MeshFormat::stl, "m:3: error: a vertex is outside");
  expect_mesh_refused("solid\nfacet\nouter loop\nvertex 1 2 3\nendloop\n", MeshFormat::stl, "m:5: error: a loop of 1");
  expect_mesh_refused("solid\nfacet\nouter loop\nouter loop\n", MeshFormat::stl, "m:4: error: a loop inside");
  expect_mesh_refused("solid\nfazet\n", MeshFormat::stl, "m:2: error: unknown word 'fazet'");
  expect_mesh_refused(ascii_stl().substr(0, ascii_stl().find("endsolid")), MeshFormat::stl, "without 'endsolid'");
}

TEST(MeshFile, RefusesBadObj) {
  const std::string v = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
  expect_mesh_refused(v + "f 1 2 4\n", MeshFormat::obj, "m:4: error: vertex index 4 is out of range: 3");
  expect_mesh_refused(v + "f 1 2 0\n", MeshFormat::obj, "m:4: error: vertex index 0");
  expect_mesh_refused(v + "f -1 -2 -4\n", MeshFormat::obj, "m:4: error: vertex index -4");
  expect_mesh_refused(v + "f 1 2 99999999999999999999\n", MeshFormat::obj, "m:4: error:");
  expect_mesh_refused(v + "f 1 2 x\n", MeshFormat::obj, "m:4: error: 'x' is not a vertex index");
  expect_mesh_refused(v + "f 1 2 /3\n", MeshFormat::obj, "m:4: error:");
  expect_mesh_refused(v + "f 1 2\n", MeshFormat::obj, "m:4: error: a face of 2");
  expect_mesh_refused("v 1 2\n", MeshFormat::obj, "m:1: error: 'v' has 2");
  expect_mesh_refused("v 1 2 1e400\n", MeshFormat::obj, "m:1: error:");
  expect_mesh_refused("v 1,2 3 4\n", MeshFormat::obj, "m:1: error:");
  expect_mesh_refused("\n\n", MeshFormat::obj, "no vertex");
  expect_mesh_refused(
      v + "v 1 1 0\n", MeshFormat::obj,
      "has no triangles, and its vertices have no hull: convex hull points: is in a plane or on a line");
  expect_mesh_refused("v 1 1 1\nv 1 1 1\nv 1 1 1\nv 1 1 1\n", MeshFormat::obj, "has no triangles, and its");
  expect_mesh_refused(v + "f 1 1 2\n", MeshFormat::obj, "every triangle has two equal corners");
  expect_mesh_refused(v + "f 1 2 3 \\", MeshFormat::obj, "continued");
}

TEST(MeshFile, SaysWhatItChose) {
  const MeshData cloud = parse_mesh("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n", MeshFormat::obj, "m");
  EXPECT_EQ(cloud.triangles.size(), 4u);
  EXPECT_NE(cloud.diagnostics.at(0).message.find("convex hull"), std::string::npos);
  const MeshData odd = parse_mesh(kObj + "f 1 1 2\no second\ncurv 1 2\nsurf 3\n", MeshFormat::obj, "m");
  ASSERT_EQ(odd.diagnostics.size(), 2u);  // the second object has no triangle
  EXPECT_NE(odd.diagnostics[0].message.find("'curv' and 1 other"), std::string::npos);
  EXPECT_NE(odd.diagnostics[1].message.find("1 triangles with two equal corners"), std::string::npos);
  const MeshData two = parse_mesh(kObj + "o second\nf 1 3 2\n", MeshFormat::obj, "m");
  EXPECT_NE(two.diagnostics.at(0).message.find("2 objects"), std::string::npos);
  const MeshData grouped = parse_mesh("g first\n" + kObj + "g second\nf 1 3 2\n", MeshFormat::obj, "m");
  EXPECT_NE(grouped.diagnostics.at(0).message.find("2 objects or groups"), std::string::npos);
}

TEST(MeshFile, RefusesBadMsh) {
  expect_mesh_refused("$MeshFormat\n4.1 0 8\n", MeshFormat::msh, "Gmsh");
  expect_mesh_refused("abc", MeshFormat::msh, "too short");
  expect_mesh_refused(msh().substr(0, 100), MeshFormat::msh, "the file has 100");
  std::string lie = msh();
  lie[3] = '\x7f';
  expect_mesh_refused(lie, MeshFormat::msh, "counts 2130706436 vertices");
  std::string index = msh();
  index[index.size() - 4] = '\x04';
  expect_mesh_refused(index, MeshFormat::msh, "uses vertex 4");
}

TEST(MeshFile, DoorsOfTheFileSystem) {
  const test::TemporaryFolder own;
  const std::filesystem::path folder = own.path() / "tarsus_mesh_file_test";
  std::filesystem::create_directories(folder / "folder.stl");
  std::ofstream(folder / "a.STL", std::ios::binary) << binary_stl();
  EXPECT_EQ(read_mesh(folder / "a.STL").triangles.size(), 4u);
  const Location used{"model.xml", 3, 7, "mesh[a]"};
  for (const auto& [file, words] :
       std::vector<std::pair<std::string, std::string>>{{"none.stl", "no such file"},
                                                        {"folder.stl", "directory"},
                                                        {"a.dae", "Collada is not supported"},
                                                        {"a", "without extension"},
                                                        {"a.ply", "'.ply' is not supported"}}) {
    try {
      read_mesh(folder / file, used);
      ADD_FAILURE() << file;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).substr(0, 13), "model.xml:3:7") << e.what();
    }
  }
  EXPECT_THROW(read_mesh("/dev/zero.stl"), InputError);
  std::filesystem::remove_all(folder);
}

TEST(MeshFile, EveryMeshOfTheSharedDataIsReadOrNamed) {
  const std::filesystem::path data = TARSUS_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no shared data beside the repository";
  int read = 0;
  std::vector<std::string> refused;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".stl" && extension != ".STL" && extension != ".obj" && extension != ".msh") continue;
    try {
      const MeshData mesh = read_mesh(entry.path());
      EXPECT_GT(mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::convex).volume, 0) << entry.path();
      ++read;
    } catch (const InputError&) {
      refused.push_back(entry.path().filename().string());
    }
  }
  EXPECT_GT(read, 200);
  for (const std::string& name : refused) EXPECT_EQ(name.substr(0, 10), "malformed_") << name;
}

}  // namespace
}  // namespace tarsus
