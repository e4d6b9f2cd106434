// Conservation in the mean over trajectories that differ by rounding.
#include "water_drift.hpp"

namespace tarsus::md_test {
namespace {

// The mean of eight runs has a standard error of 0.0013 kT/ns. Takes 90 s.
TEST(ConservationLong, WaterEnergyDriftsLessThanFiveThousandthsOfKtPerNanosecond) {
  TARSUS_NEEDS_REFERENCE("water216.sys");
  double mean = 0;
  for (int trajectory = 0; trajectory < 8; ++trajectory) mean += water_drift(trajectory).per_ns / 8;
  std::printf("mean drift of eight trajectories %.5f kT/ns per degree of freedom\n", mean);
  EXPECT_LT(std::abs(mean), 0.005);
}

}  // namespace
}  // namespace tarsus::md_test
