// Writes models as JSON for tests/io/mjcf_against_mujoco.py, which compares them with MuJoCo's. It tests nothing by
// itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "io/spec_json.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

TEST(MjcfDump, WritesModelsAsJson) {
  const char* list = std::getenv("TARSUS_DUMP_LIST");
  const char* out_name = std::getenv("TARSUS_DUMP_OUT");
  if (!list || !out_name) GTEST_SKIP() << "run by tests/io/mjcf_against_mujoco.py";
  std::ifstream in(list);
  std::ofstream out(out_name);
  std::string file;
  while (std::getline(in, file)) {
    nlohmann::json json;
    try {
      json = to_json(read_mjcf(file));
    } catch (const InputError& error) {
      json["error"] = error.what();
    }
    json["file"] = file;
    out << json.dump() << '\n';
  }
}

}  // namespace
}  // namespace tarsus
