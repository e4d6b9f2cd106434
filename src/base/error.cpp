#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

const char* name(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "error";
}

std::string place(const Location& where) {
  std::string out = where.file;
  if (where.line > 0) {
    out += (out.empty() ? "" : ":") + std::to_string(where.line);
    if (where.column > 0) out += ":" + std::to_string(where.column);
  }
  return out;
}

std::string join(const Diagnostics& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) {
    if (d.severity != Severity::error) continue;
    if (!out.empty()) out += '\n';
    out += d.text();
  }
  return out;
}

}  // namespace

std::string Location::text() const {
  std::string out = place(*this);
  if (!element.empty()) out += (out.empty() ? "" : ": ") + element;
  return out;
}

std::string Diagnostic::text() const {
  std::string out = place(where);
  if (!out.empty()) out += ": ";
  out += std::string(name(severity)) + ": " + message;
  if (!where.element.empty()) out += " (" + where.element + ")";
  return out;
}

InputError::InputError(Diagnostics diagnostics) : Error(join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

InputError::InputError(Location where, const std::string& message)
    : InputError(Diagnostics{Diagnostic{Severity::error, std::move(where), message}}) {}

ShapeError::ShapeError(const char* argument, std::size_t got, std::size_t expected)
    : Error(std::string(argument) + ": has size " + std::to_string(got) + ", expected " + std::to_string(expected)) {}

ValueError::ValueError(const std::string& argument, const std::string& value, const std::string& expected)
    : Error(argument + ": is " + value + ", expected " + expected) {}

}  // namespace tarsus
