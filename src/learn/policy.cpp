#include "tarsus/learn/policy.hpp"

#include <algorithm>

#include "tarsus/base/error.hpp"

namespace tarsus {

void DensePolicy::check() const {
  if (layers.empty()) throw ValueError("layers", "empty", "at least one layer");
  check_size("scale", scale.size(), mean.size());
  std::size_t inputs = mean.size();
  for (const Layer& layer : layers) {
    check_size("weight", layer.weight.size(), layer.bias.size() * inputs);
    inputs = layer.bias.size();
  }
  check_size("action_offset", offset.size(), inputs);
  check_size("action_scale", gain.size(), inputs);
}

void DensePolicy::act(std::span<const double> observation, std::span<double> action) const {
  check_size("observation", observation.size(), mean.size());
  check_size("action", action.size(), offset.size());
  std::vector<double> x(observation.begin(), observation.end()), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - mean[i]) * scale[i];
  for (const Layer& layer : layers) {
    y = layer.bias;
    const double* weight = layer.weight.data();
    for (double& out : y) {
      for (double in : x) out += *weight++ * in;
      if (&layer != &layers.back()) out = std::max(out, 0.0);
    }
    x.swap(y);
  }
  for (std::size_t i = 0; i < action.size(); ++i) action[i] = offset[i] + gain[i] * x[i];
}

}  // namespace tarsus
