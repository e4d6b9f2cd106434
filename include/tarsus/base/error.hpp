// Errors and diagnostics: what is wrong, where in the user's text, and what is expected instead.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace tarsus {

/// A place in a user's file. `line` and `column` count from 1; 0 means unknown. `element` is the path of the
/// element, e.g. "mujoco/worldbody/body[torso]/joint[knee]".
struct Location {
  std::string file;
  int line = 0;
  int column = 0;
  std::string element;

  /// "file:line:column: element", without the unknown parts.
  std::string text() const;
};

enum class Severity { note, warning, error };

/// A finding about a user's input. A note reports a choice of the reader (a normalised axis), a warning something
/// unsupported or suspicious. An error stops the model from loading.
struct Diagnostic {
  Severity severity = Severity::warning;
  Location where;
  std::string message;
  /// The warning is about something that is computed, but by another law than that of the file's format. It is not
  /// specific to this file: commands that run a model do not print it, and check --strict accepts it.
  bool other_law = false;

  /// "file:line:column: severity: message (element)".
  std::string text() const;
};

using Diagnostics = std::vector<Diagnostic>;

/// Base class of every exception that the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A user's file cannot be used. Contains every error found, not only the first; what() lists them, one on each line.
class InputError : public Error {
 public:
  explicit InputError(Diagnostics diagnostics);
  InputError(Location where, const std::string& message);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

/// An argument has a wrong size. Names the argument, its size and the expected size.
class ShapeError : public Error {
 public:
  ShapeError(const char* argument, std::size_t got, std::size_t expected);
};

/// An argument's value is out of range. Names the argument, the value and what is expected.
class ValueError : public Error {
 public:
  ValueError(const std::string& argument, const std::string& value, const std::string& expected);
};

/// @throws ShapeError unless got == expected
inline void check_size(const char* argument, std::size_t got, std::size_t expected) {
  if (got != expected) throw ShapeError(argument, got, expected);
}

}  // namespace tarsus
