// One world of a batch at one moment with all that its next step depends on, besides the model: to look at a bad step
// again, elsewhere.
#pragma once

#include <string>
#include <utility>

#include "tarsus/sim/batch.hpp"

namespace tarsus {

/// A capture as named arrays, for files.
struct CaptureArrays {
  std::string meta;  ///< JSON: {"format": "tarsus-capture", "version": 1, "model": …, options of the step, the fault}
  std::vector<std::pair<std::string, std::vector<double>>> arrays;
  std::vector<std::uint8_t> memory;  ///< what the step before left; empty: nothing
};

/// @throws ValueError for steps under equality constraints that are not the model's own, which no file has
CaptureArrays to_arrays(const Model& model, const WorldCapture& capture);
/// @throws InputError naming `file` for what is no capture, or one of another model
WorldCapture from_arrays(const Model& model, const CaptureArrays& arrays, const std::string& file);

/// The model's file as the capture's meta names it; empty if it has none. @throws InputError as from_arrays()
std::string model_file(const CaptureArrays& arrays, const std::string& file);
/// Whether `meta` is that of a capture.
bool is_capture(const std::string& meta);

/// How that world's step ends, taken once more in a batch of one. @throws as Batch
WorldFault step_again(const Model& model, const WorldCapture& capture);
/// The same status, array, index and bits. True of a world captured while it was ok, which had not taken the step.
bool same_fault(const WorldFault& captured, const WorldFault& again);

}  // namespace tarsus
