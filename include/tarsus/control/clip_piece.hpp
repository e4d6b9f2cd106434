// The numbers of a bound clip (clip.hpp) as kernels read them: one row per segment, the time between two frames.
#pragma once

namespace tarsus {

/// One part of the state that a clip drives, and its coefficients in a segment's row. scalar, vector: x(u) = a + b u +
/// c u² + d u³. rotation: q0 and the vectors w1, w2, w3 of q0 Exp(b1 w1) Exp(b2 w2) Exp(b3 w3).
enum class ClipPieceKind { scalar, vector, rotation };
inline constexpr int clip_numbers(ClipPieceKind kind) {
  return kind == ClipPieceKind::scalar ? 4 : kind == ClipPieceKind::vector ? 12 : 13;
}
template <class R>
struct ClipPiece {
  ClipPieceKind kind = ClipPieceKind::scalar;
  int qpos = 0, qvel = 0;  ///< first index in the state
  int at = 0;              ///< offset of its coefficients in a row
  int cycle = -1;          ///< vector, rotation of a free joint: index of its ClipCycle
  R turn = 0;              ///< scalar: added each cycle (for a wheel that keeps turning)
};
/// Root displacement of one cycle: p -> Rz(heading) p + shift, q -> Rz(heading) q.
template <class R>
struct ClipCycle {
  R heading = 0, shift_x = 0, shift_y = 0;
};

}  // namespace tarsus
