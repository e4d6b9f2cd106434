// A bound clip (clip.hpp) as kernels see it: the numbers of a segment, the time between two frames, in one row.
#pragma once

namespace tarsus {

/// What of the state a clip drives, one by one, and what it has for it in the row of a segment between two frames.
/// scalar, vector: x(u) = a + b u + c u² + d u³, each a scalar or a vector. rotation: q0 and the vectors w1, w2, w3 of
/// q0 Exp(b1 w1) Exp(b2 w2) Exp(b3 w3).
enum class ClipPieceKind { scalar, vector, rotation };
inline constexpr int clip_numbers(ClipPieceKind kind) {
  return kind == ClipPieceKind::scalar ? 4 : kind == ClipPieceKind::vector ? 12 : 13;
}
template <class R>
struct ClipPiece {
  ClipPieceKind kind = ClipPieceKind::scalar;
  int qpos = 0, qvel = 0;  ///< first index in the state
  int at = 0;              ///< of its numbers in a row
  int cycle = -1;          ///< vector, rotation of a free joint: index of its ClipCycle
  R turn = 0;              ///< scalar: added each cycle (a wheel that goes on)
};
/// Root displacement of one cycle: p -> Rz(heading) p + shift, q -> Rz(heading) q.
template <class R>
struct ClipCycle {
  R heading = 0, shift_x = 0, shift_y = 0;
};

}  // namespace tarsus
