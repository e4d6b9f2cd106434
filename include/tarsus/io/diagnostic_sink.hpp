// Collects what a reader finds, so that a user sees every error of a file and not only the first.
#pragma once

#include <map>
#include <string>

#include "tarsus/base/error.hpp"

namespace tarsus {

class DiagnosticSink {
 public:
  /// After this many errors add() throws: the rest of such a file tells nobody anything.
  static constexpr int kMaxErrors = 100;
  /// The same warning or note is listed at this many places; beyond, one line says how many more there are.
  static constexpr int kMaxRepeats = 20;

  /// An error at the same place with the same words counts once: replicas repeat themselves.
  /// @throws InputError with all errors so far, at the kMaxErrors-th
  void add(Severity severity, Location where, std::string message);
  /// While the returned guard lives, whatever is graver than `most` is added as `most`: for parts of a file that only
  /// concern looks.
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
  /// While it lives, nothing is added: for a second look at what is read anyway.
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
  /// @throws InputError carrying everything found if there was an error
  void throw_if_failed() const;
  /// A warning about what is computed by another law (Diagnostic::other_law).
  void add_other_law(Location where, std::string message);
  /// Notes and warnings in the order found, with the repeats summed up.
  Diagnostics take();

 private:
  Diagnostics found_;
  int errors_ = 0;
  Severity most_ = Severity::error;
  bool muted_ = false;
  std::map<std::string, int> repeats_;
};

}  // namespace tarsus
