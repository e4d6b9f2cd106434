// Errors and diagnostics: what went wrong, where in the user's text, and what was expected instead.
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

  /// "file:line:column: element", leaving out what is unknown.
  std::string text() const;
};

enum class Severity { note, warning, error };

/// One finding about a user's input. Notes are choices we made (a normalised axis), warnings are things not supported
/// or suspicious, errors stop the model from loading.
struct Diagnostic {
  Severity severity = Severity::warning;
  Location where;
  std::string message;
  /// Of a warning: what it names is computed, by another law than that of the file's format. It says nothing about this
  /// file in particular: commands that run a model do not print it, and check --strict lets it pass.
  bool other_law = false;

  /// "file:line:column: severity: message (element)".
  std::string text() const;
};

using Diagnostics = std::vector<Diagnostic>;

/// Root of every exception that the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A user's file cannot be used. Carries every error found, not only the first; what() lists them a line each.
class InputError : public Error {
 public:
  explicit InputError(Diagnostics diagnostics);
  InputError(Location where, const std::string& message);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

/// An argument's size does not fit: names the argument, the size it has and the size it should have.
class ShapeError : public Error {
 public:
  ShapeError(const char* argument, std::size_t got, std::size_t expected);
};

/// An argument's value is out of its range: names the argument, the value and what was expected.
class ValueError : public Error {
 public:
  ValueError(const std::string& argument, const std::string& value, const std::string& expected);
};

/// Throws ShapeError unless got == expected.
inline void check_size(const char* argument, std::size_t got, std::size_t expected) {
  if (got != expected) throw ShapeError(argument, got, expected);
}

}  // namespace tarsus
