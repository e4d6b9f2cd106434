// What the readers of models note about how they were called.
#pragma once

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// @param file empty: the model is read from text
ModelOrigin model_origin(const std::filesystem::path& file, const ReadOptions& options);

}  // namespace tarsus
