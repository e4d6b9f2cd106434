// The laws of all terms of a problem at once (term.hpp). Contacts that may slide are evaluated in SIMD lanes, the other
// terms one by one.
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/term.hpp"

namespace tarsus {

struct StepProblem;

/// A contact with three rows and the same R along both tangents.
struct SlidingTerm {
  int term, first_row;
};

/// Natural residuals [m/s | rad/s].
struct TermResidual {
  double all = 0, contacts = 0;
};

class TermLaws {
 public:
  /// Sorts the problem's terms. The functions below then accept it and any problem with terms of the same kinds and
  /// rows.
  void sort(const StepProblem& problem);
  /// G at the impulses before projection y, and g = γ + G J (v - v⁰).
  void law(const StepProblem& problem, std::span<const double> y, std::span<Tangent> tangents,
           std::span<double> g) const;
  /// Σ ρ² N² of the natural map at this velocity and impulse, and G of Newton's step on it.
  /// @param changes true: `carried` is γ̄; false: it is g = γ̄ + G J (v - v⁰)
  double tangents(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse,
                  bool changes, std::span<Tangent> tangents, std::span<double> carried) const;
  /// Σ ρ² N² alone.
  double map(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) const;
  TermResidual residual(const StepProblem& problem, std::span<const double> velocity,
                        std::span<const double> impulse) const;
  /// impulse = carried - G x.
  void impulses(const StepProblem& problem, std::span<const Tangent> tangents, std::span<const double> carried,
                std::span<const double> x, std::span<double> impulse) const;

 private:
  std::vector<SlidingTerm> sliding_;
  std::vector<int> others_;
};

}  // namespace tarsus
