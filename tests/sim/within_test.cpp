#include "sim/within.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tarsus::test {
namespace {

/// For every length and every position of the single number that is out of bounds.
template <class R>
void finds_each() {
  const R nan = std::numeric_limits<R>::quiet_NaN(), infinite = std::numeric_limits<R>::infinity();
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<R> values(n, R(-2));
    EXPECT_TRUE(within<R>(values, 2)) << n;
    EXPECT_TRUE(finite<R>(values)) << n;
    for (std::size_t at = 0; at < n; ++at) {
      for (const R bad : {nan, infinite, -infinite}) {
        values[at] = bad;
        EXPECT_FALSE(finite<R>(values)) << n << ", " << at;
        EXPECT_FALSE(within<R>(values, 2)) << n << ", " << at;
      }
      values[at] = R(2.5);
      EXPECT_TRUE(finite<R>(values)) << n << ", " << at;
      EXPECT_FALSE(within<R>(values, 2)) << n << ", " << at;
      values[at] = R(-2);
    }
  }
}

TEST(Within, FindsWhatIsBeyondInDouble) { finds_each<double>(); }
TEST(Within, FindsWhatIsBeyondInFloat) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  finds_each<float>();
}

}  // namespace
}  // namespace tarsus::test
