// The mass as the solvers use it: an operator from a generalised force to an acceleration.
#pragma once

#include <span>
#include <vector>

namespace tarsus {

/// M^-1 as an operator on velocity-space vectors of length size(). For particles it is diagonal; for an articulated
/// tree it applies ABA with stored factors. A zero inverse mass (a pinned coordinate) is allowed.
class MassOperator {
 public:
  virtual ~MassOperator() = default;
  virtual int size() const = 0;
  /// out = M^-1 in. `in` and `out` do not overlap.
  virtual void apply_inverse(std::span<const double> in, std::span<double> out) const = 0;
  /// The diagonal of M^-1 if M is diagonal, else empty. Solvers use sparse methods if it is not empty.
  virtual std::span<const double> inverse_diagonal() const { return {}; }
};

class DiagonalMass final : public MassOperator {
 public:
  explicit DiagonalMass(std::vector<double> inverse) : inverse_(std::move(inverse)) {}
  int size() const override { return static_cast<int>(inverse_.size()); }
  void apply_inverse(std::span<const double> in, std::span<double> out) const override {
    for (std::size_t i = 0; i < inverse_.size(); ++i) out[i] = inverse_[i] * in[i];
  }
  std::span<const double> inverse_diagonal() const override { return inverse_; }

 private:
  std::vector<double> inverse_;
};

}  // namespace tarsus
