// When a Newton iteration with an old matrix should take a new one.
#pragma once

namespace tarsus {

/// Whether more than two rounds, each of which contracts the residual by `contraction`, are missing: a new matrix takes
/// less time than they would.
inline bool wants_new_matrix(double residual, double tolerance, double contraction) {
  return !(contraction < 1) || tolerance < residual * contraction * contraction;
}

}  // namespace tarsus
