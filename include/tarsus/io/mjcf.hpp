// MJCF, MuJoCo's model format, to ModelSpec. What is supported, kept or refused: src/io/README.md.
//
// Two layers: XmlDocument gives a typed tree with places and no physics; the reader resolves includes, compiler
// settings, default classes, frames, replicas and attached models, and writes a ModelSpec in SI units and radians with
// every body's final mass properties. Nothing in the text is dropped in silence: what is known and not supported is a
// warning at its line in ModelSpec::diagnostics, what is unknown is an error.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// @throws InputError with every error found, each with file:line:column and the element's path
ModelSpec read_mjcf(const std::filesystem::path& file, const ReadOptions& options = {});

/// The same from memory. `name` stands for the file in messages; files that the text names are looked for in
/// `directory`.
ModelSpec parse_mjcf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options = {});

}  // namespace tarsus
