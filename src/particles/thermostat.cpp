#include "tarsus/particles/thermostat.hpp"

#include <cmath>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

Thermostat::Thermostat(double target, int degrees, double relaxation, std::uint64_t seed)
    : target_(target), relaxation_(relaxation), degrees_(degrees), generator_(seed) {
  if (degrees <= 0) throw ValueError("thermostat's degrees of freedom", std::to_string(degrees), "a positive number");
  if (!(std::isfinite(target) && target > 0))
    throw ValueError("thermostat's kinetic energy", number_text(target), "a positive number");
  if (!(std::isfinite(relaxation) && relaxation > 0))
    throw ValueError("thermostat's time constant", number_text(relaxation), "a positive time");
}

double Thermostat::gauss() {
  const auto uniform = [&] { return (static_cast<double>(generator_() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * elementary::log(uniform()));
  return radius * elementary::cos(2 * kPi * uniform());
}

double Thermostat::factor(double kinetic, double timestep) {
  if (!(kinetic > 0)) return 1.0;
  const double decay = elementary::exp(-std::abs(timestep) / relaxation_), first = gauss();
  double rest = 0;
  for (int k = 1; k < degrees_; ++k) {
    const double r = gauss();
    rest += r * r;
  }
  // Equation A7: K' = c K + (1 - c) (K̄/N_f) Σ R_i² + 2 R_1 sqrt(c (1 - c) K K̄/N_f)
  const double share = target_ / degrees_, c = decay;
  const double fresh =
      c * kinetic + (1 - c) * share * (first * first + rest) + 2 * first * std::sqrt(c * (1 - c) * kinetic * share);
  exchanged_ += kinetic - fresh;
  return std::sqrt(fresh / kinetic);
}

}  // namespace tarsus
