// Anderson's mixing: fixed points x = G(x) in fewer evaluations of G than iterating it takes. [Walker and Ni 2011]
#pragma once

#include <span>
#include <vector>

namespace tarsus {

class AndersonMixing {
 public:
  /// Forgets the iterates.
  void clear() { count_ = 0; }
  /// x becomes the next place to evaluate G at, from x and gx = G(x) and up to kMemory earlier pairs: the affine
  /// combination of the G(x_k) for which that of the G(x_k) - x_k is smallest. The first call, or one with nothing to
  /// learn from, takes gx.
  void next(std::span<double> x, std::span<const double> gx);

 private:
  static constexpr int kMemory = 4;
  int count_ = 0;
  std::vector<double> last_x_, last_f_, dx_[kMemory], df_[kMemory];
};

}  // namespace tarsus
