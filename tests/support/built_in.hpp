// The built-in models, and the folders of data.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/io/model_file.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::test {

inline std::filesystem::path source_folder() { return TARSUS_SOURCE_DIR; }
inline std::filesystem::path shared_data() { return source_folder().parent_path() / "shared" / "data"; }
inline Model built_in(const std::string& name) {
  return compile(read_model(source_folder() / "models" / (name + ".xml")));
}

}  // namespace tarsus::test
