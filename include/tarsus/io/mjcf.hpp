// Reads MJCF, MuJoCo's model format, into a ModelSpec. src/io/README.md says what is supported.
//
// There are two layers. XmlDocument gives a typed tree with lines and columns. It knows no physics. The reader resolves
// includes, compiler settings, default classes, frames, replicas and attached models. It writes a ModelSpec in SI units
// and radians with every body's final mass properties. Nothing is dropped silently: known but unsupported parts get a
// warning at their line in ModelSpec::diagnostics, unknown parts are errors.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// @throws InputError with every error found, each with file:line:column and the element's path
ModelSpec read_mjcf(const std::filesystem::path& file, const ReadOptions& options = {});

/// The same from memory. `name` stands for the file in messages; `directory` is searched for files that the text names.
ModelSpec parse_mjcf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options = {});

}  // namespace tarsus
