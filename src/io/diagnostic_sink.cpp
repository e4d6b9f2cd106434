#include "tarsus/io/diagnostic_sink.hpp"

#include <fmt/format.h>

namespace tarsus {

void DiagnosticSink::add(Severity severity, Location where, std::string message) {
  if (severity != Severity::error && ++repeats_[message] > kMaxRepeats) return;
  found_.push_back({severity, std::move(where), std::move(message)});
  if (severity == Severity::error && ++errors_ >= kMaxErrors) {
    found_.push_back({Severity::error, {}, fmt::format("reading stopped after {} errors", kMaxErrors)});
    throw_if_failed();
  }
}

void DiagnosticSink::throw_if_failed() const {
  if (failed()) throw InputError(found_);
}

Diagnostics DiagnosticSink::take() {
  Diagnostics out = std::move(found_);
  for (const auto& [message, count] : repeats_) {
    if (count <= kMaxRepeats) continue;
    Severity severity = Severity::note;
    for (const Diagnostic& d : out) {
      if (d.message == message) severity = d.severity;
    }
    out.push_back({severity, {}, fmt::format("{} more places: {}", count - kMaxRepeats, message)});
  }
  *this = {};
  return out;
}

}  // namespace tarsus
