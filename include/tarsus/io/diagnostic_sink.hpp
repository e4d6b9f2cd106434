// Collects a reader's findings, so that a user sees every error of a file and not only the first.
#pragma once

#include <map>
#include <string>

#include "tarsus/base/error.hpp"

namespace tarsus {

class DiagnosticSink {
 public:
  /// After this many errors add() throws.
  static constexpr int kMaxErrors = 100;
  /// The same warning or note is listed for at most this many places. One line counts the rest.
  static constexpr int kMaxRepeats = 20;

  /// Equal errors at the same place count once, because replicas repeat them.
  /// @throws InputError with all errors so far, at the kMaxErrors-th
  void add(Severity severity, Location where, std::string message);
  /// While this guard lives, findings more severe than `most` are added as `most`: for parts of a file that affect only
  /// its appearance.
  class Cap {
   public:
    Cap(DiagnosticSink& sink, Severity most) : sink_(sink), before_(sink.most_) { sink.most_ = most; }
    ~Cap() { sink_.most_ = before_; }
    Cap(const Cap&) = delete;
    Cap& operator=(const Cap&) = delete;

   private:
    DiagnosticSink& sink_;
    Severity before_;
  };
  /// While this guard lives, nothing is added: for reading a part of a file a second time.
  class Mute {
   public:
    explicit Mute(DiagnosticSink& sink) : sink_(sink), before_(sink.muted_) { sink.muted_ = true; }
    ~Mute() { sink_.muted_ = before_; }
    Mute(const Mute&) = delete;
    Mute& operator=(const Mute&) = delete;

   private:
    DiagnosticSink& sink_;
    bool before_;
  };
  bool failed() const { return errors_ > 0; }
  /// @throws InputError with all findings if there was an error
  void throw_if_failed() const;
  /// Adds a warning that something is computed by another law than that of the file's format (Diagnostic::other_law).
  void add_other_law(Location where, std::string message);
  /// Notes and warnings in the order found, with a count of the repeats.
  Diagnostics take();

 private:
  Diagnostics found_;
  int errors_ = 0;
  Severity most_ = Severity::error;
  bool muted_ = false;
  std::map<std::string, int> repeats_;
};

}  // namespace tarsus
