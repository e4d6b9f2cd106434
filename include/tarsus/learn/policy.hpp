// A trained policy that maps observations to actions: dense layers with max(0, x) between them, on a normalised input:
//
//   action = offset + gain * (W_n relu(… relu(W_0 ((x - mean) * scale) + b_0) …) + b_n)
#pragma once

#include <span>
#include <vector>

namespace tarsus {

struct DensePolicy {
  struct Layer {
    std::vector<double> weight;  ///< [bias.size()][inputs]
    std::vector<double> bias;
  };
  std::vector<double> mean, scale;   ///< [observation_size]
  std::vector<Layer> layers;         ///< at least one
  std::vector<double> offset, gain;  ///< [action_size]

  /// @throws ValueError without layers; ShapeError for arrays whose sizes do not match
  void check() const;
  /// Computes the action [action_size] for an observation [observation_size]. Requires check().
  /// @throws ShapeError for an observation or action of another size
  void act(std::span<const double> observation, std::span<double> action) const;
};

}  // namespace tarsus
