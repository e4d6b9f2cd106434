// Captures: the complete state of one world of a batch on which its next step depends, apart from the model. A capture
// reproduces a bad step elsewhere.
#pragma once

#include <string>
#include <utility>

#include "tarsus/sim/batch.hpp"

namespace tarsus {

/// A capture as named arrays, for storage in files.
struct CaptureArrays {
  /// JSON: {"format": "tarsus-capture", "version": kBytesVersion, "model": …, how it was read, options of the step, the
  /// fault}
  std::string meta;
  std::vector<std::pair<std::string, std::vector<double>>> arrays;
  std::vector<std::uint8_t> memory;  ///< carried over from the previous step; empty: nothing
};

/// @throws ValueError for steps under equality constraints that are not the model's own, because no file contains them
CaptureArrays to_arrays(const Model& model, const WorldCapture& capture);
/// @throws InputError naming `file` if the arrays are not a capture or belong to another model
WorldCapture from_arrays(const Model& model, const CaptureArrays& arrays, const std::string& file);

/// How the captured world's model was read.  @throws InputError as from_arrays()
ModelOrigin captured_model(const CaptureArrays& arrays, const std::string& file);
/// Whether `meta` belongs to a capture.
bool is_capture(const std::string& meta);

/// Repeats the captured world's step in a batch of one world and returns its outcome.
/// @throws as Batch
WorldFault step_again(const Model& model, const WorldCapture& capture);
/// Whether status, array, index and bits of the value agree. Always true for a world captured while it was ok, which
/// had not taken the step.
bool same_fault(const WorldFault& captured, const WorldFault& again);

}  // namespace tarsus
