#include "tarsus/io/diagnostic_sink.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tarsus {

void DiagnosticSink::add(Severity severity, Location where, std::string message) {
  if (muted_) return;
  severity = std::min(severity, most_);
  if (severity != Severity::error && ++repeats_[message] > kMaxRepeats) return;
  if (severity == Severity::error) {
    const bool known = std::any_of(found_.begin(), found_.end(), [&](const Diagnostic& d) {
      return d.severity == severity && d.message == message && d.where.line == where.line &&
             d.where.column == where.column && d.where.file == where.file;
    });
    if (known) return;
  }
  found_.push_back({severity, std::move(where), std::move(message)});
  if (severity == Severity::error && ++errors_ >= kMaxErrors) {
    found_.push_back({Severity::error, {}, fmt::format("reading stopped after {} errors", kMaxErrors)});
    throw_if_failed();
  }
}

void DiagnosticSink::add_other_law(Location where, std::string message) {
  found_.push_back({Severity::warning, std::move(where), std::move(message), true});
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
