// Motion clips: recorded poses of a skeleton by named channels, and their binding to a Model.
//
// A MotionClip is what a reader (io) makes of a file: cleaned values in the source's own axes. A ClipMapping says how
// its channels drive the joints of a model. bind() evaluates the mapping once for every frame. The resulting
// ClipBinding interpolates in the model's coordinates:
//
// - Positions and scalars use cubic Hermite interpolation. Rotations use the cumulative cubic q0 Exp(b1 w1) Exp(b2 w2)
//   Exp(b3 w3) of Kim, Kim and Shin (1995). Both pass through every frame and have continuous velocity. The returned
//   velocity is the exact derivative of the returned position (no finite differences, no filter). With linear
//   interpolation and slerp the velocity would jump at every frame, which is where a controller with a step of one
//   frame samples it.
// - Velocities at frames are three-point differences (second order for uneven frames too), one-sided at free ends.
// - A looping clip repeats with its root displaced by one cycle: by the horizontal displacement and the turn about z
//   between the first frame and the last. The remaining difference between the last frame and the first (up to 1 rad in
//   a joint in real clips) is distributed over the last kSeamWindow seconds of the cycle and reported.
// - A clip that does not loop holds its end poses at rest outside [0, duration].
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/aligned.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/control/clip_piece.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus {

/// position: 3 numbers [source units]. rotation: 4, unit quaternion w x y z. angle: 1 [rad]. translation: 1.
enum class ChannelKind { position, rotation, angle, translation };
const char* name(ChannelKind kind);
inline constexpr int width(ChannelKind kind) {
  return kind == ChannelKind::position ? 3 : kind == ChannelKind::rotation ? 4 : 1;
}

/// One channel of a clip. The rotation of joint "chest" is the channel "chest", its position "chest.position".
struct ClipChannel {
  std::string name;
  ChannelKind kind = ChannelKind::angle;
  int column = 0;       ///< of its first number in a frame
  Vec3d axis{0, 0, 0};  ///< of an angle or a translation, source axes; zero: unknown, use the target joint's own
};

/// A joint of the source's skeleton; the channels of the same name drive it. Parents come first.
struct ClipBone {
  std::string name;
  int parent = -1;
  Vec3d offset{0, 0, 0};  ///< from the parent's joint, in the parent's axes at rest [source units]
};

struct MotionClip {
  std::string name;  ///< for display: the file's stem, or the name given in the file
  /// Layout recognised by the reader: "humanoid3d", "dog3d", "quadruped12", "bvh", "tarsus", … In a tarsus-clip that
  /// was made of another file, that file's.
  std::string format;
  std::string file;
  bool loop = false;
  bool cycle_position = true;           ///< looping displaces the root by one cycle's horizontal displacement
  bool cycle_heading = true;            ///< and turns it by one cycle's turn about the vertical
  Vec3d up{0, 0, 1}, forward{1, 0, 0};  ///< of the source's axes, unit, perpendicular
  std::vector<ClipBone> skeleton;       ///< empty if the file has no skeleton
  std::vector<ClipChannel> channels;
  int width = 0;               ///< numbers in a frame
  std::vector<double> times;   ///< [nframe] seconds, times[0] = 0, increasing
  std::vector<double> values;  ///< [nframe * width]
  Diagnostics diagnostics;     ///< repairs, and parts of the file that were not used

  int frame_count() const { return int(times.size()); }
  double duration() const { return times.empty() ? 0 : times.back(); }
  const ClipChannel* find(std::string_view channel) const;
  const double* frame(int index) const { return values.data() + std::size_t(index) * width; }
  /// Appends a channel to every frame. Call it before any frame exists.  @return its column
  int add_channel(const std::string& channel, ChannelKind kind, const Vec3d& axis = {0, 0, 0});
  /// Appends the rotation vector v as the next rotation of the frame being written. Of its two quaternions it stores
  /// the one closer to the last frame's, because rotation vectors jump legitimately at half a turn.
  void push_rotation(const Vec3d& v);
};

/// Checks a clip and cleans it: quaternions get unit length and a continuous sign along the clip. Every repair is
/// recorded, and every angle that turns by more than pi between two frames, which does not change.
/// @param where location of a number in the file, for messages
/// @throws InputError for no frames, two channels of one name, times that do not increase, a number that is not finite,
/// or a quaternion whose length deviates from 1 by more than kMaxNormError (that is a different layout, not rounding)
void clean_clip(MotionClip& clip, const std::function<Location(int frame, int column)>& where);
inline constexpr double kMaxNormError = 0.5;

/// How one joint of the model is driven.
struct JointMapping {
  std::string joint;
  /// Source channels. Ball, free and hinge: rotations and angles, composed in this order (parent first). Hinge and
  /// slide: a single angle or translation may be used directly; a slide may use a position along `axis`.
  std::vector<std::string> from;
  std::string position;   ///< free joint: channel of its position; empty: stays at qpos0
  Quatd pre{1, 0, 0, 0};  ///< fixed rotations in target axes: joint = pre * source * post
  Quatd post{1, 0, 0, 0};
  std::optional<Vec3d> axis;  ///< hinge: twist axis (default: the joint's own); slide: direction; target axes
  double sign = 1;            ///< hinge and slide: factor on the value
  double offset = 0;          ///< hinge and slide: added after `sign` [rad | m]
  Location where;
};

/// Associates a point of the source's skeleton with a body of the model; see retarget.hpp.
struct PointMapping {
  std::string point;  ///< one of skeleton_points()
  std::string from;   ///< bone of the source
  std::string body;   ///< of the model: the anchor of its first joint
  bool tip = false;   ///< use the far end of the body's shapes instead
  double sure = 1;    ///< confidence, 0 to 1
  Location where;
};

struct ClipMapping {
  std::string name, file;
  std::string format;                ///< clip format that the mapping is for; empty: any
  std::optional<Vec3d> up, forward;  ///< source axes, to override those of the clip
  double scale = 1;                  ///< factor on positions and translations
  Vec3d offset{0, 0, 0};             ///< added to the positions of free joints, target axes [m]
  std::vector<JointMapping> joints;
  std::vector<PointMapping> points;  ///< if not empty, the motion is retargeted and `joints` is not used
  std::vector<std::string> ignore;   ///< source channels that are omitted on purpose
  std::vector<ClipChannel> layout;   ///< columns of files that do not name them (DeepMimic); empty: a known layout
};

/// The joint's name, or "#N" with its index if it has no name. Mappings use these labels.
std::string joint_label(const Model& model, int joint);

/// Maps each channel to the joint of the same name (and a free joint's position to "NAME.position").
ClipMapping identity_mapping(const Model& model, const MotionClip& clip);

/// Whether the format matches the clip's, and all channels and joints that `mapping` names exist.
bool fits(const ClipMapping& mapping, const Model& model, const MotionClip& clip);

/// A clip in a model's coordinates that can be sampled at any time. Keeps no reference to the clip or the mapping.
class ClipBinding {
 public:
  static constexpr double kSeamWindow = 0.3;  ///< [s], at most half the cycle
  /// Cycles of a clip that loops, either way from 0. Beyond, a double does not tell the time within a cycle.
  static constexpr double kMostCycles = 0x1p53;

  /// Pose and velocity at time t.
  /// @param t seconds, any finite value, within kMostCycles; looping clips continue backwards below zero
  /// @param qpos [nq]  @param qvel [nv] MuJoCo's layout, or empty to skip it
  /// @throws ShapeError, ValueError
  void sample(double t, std::span<double> qpos, std::span<double> qvel) const;

  double duration() const { return times_.back(); }
  bool loop() const { return loop_; }
  int frame_count() const { return int(times_.size()); }
  int nq() const { return int(rest_.size()); }
  int nv() const { return nv_; }
  const std::string& clip_name() const { return name_; }
  /// Joints driven by the clip, as indices in Model::joints.
  const std::vector<int>& driven() const { return driven_; }
  const std::string& mapping_name() const { return mapping_name_; }
  /// Repairs of the clip, what the mapping omits, joints that stay at rest, and the gap at the seam.
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  friend ClipBinding bind(const Model&, const MotionClip&, const ClipMapping&);
  friend class ClipBinder;
  template <class R>
  friend class ClipLanes;
  /// Position of a time in the clip: segment, and number of whole cycles.
  struct Place {
    int segment = 0;
    double u = 0;     ///< fraction of the segment, 0 to 1
    double rate = 0;  ///< 1 / segment's duration [1/s]; 0 where the clip is at rest
    double cycles = 0;
  };
  Place place(double t) const;

  std::string name_, mapping_name_;
  bool loop_ = false;
  int nv_ = 0;
  std::vector<double> rest_;  ///< qpos0
  std::vector<double> times_;
  std::vector<ClipPiece<double>> pieces_;
  std::vector<ClipCycle<double>> cycles_;
  int row_ = 0;
  std::vector<double> segments_;  ///< [max(nframe - 1, 1)][row_]
  std::vector<int> driven_;
  Diagnostics diagnostics_;
};

/// ClipBinding::sample() for worlds in SIMD lanes, each at its own time.
template <class R>
class ClipLanes {
 public:
  /// Keeps a reference to the clip. @param width 1 or lanes<R>(isa_level())
  ClipLanes(const ClipBinding& clip, int width);

  /// @param t [lane] finite  @param qpos [nq][lane]  @param qvel [nv][lane], or empty to skip it
  void sample(std::span<const double> t, std::span<R> qpos, std::span<R> qvel);

 private:
  const ClipBinding& clip_;
  std::vector<R> rest_;
  std::vector<ClipPiece<R>> pieces_;
  std::vector<ClipCycle<R>> cycles_;
  std::vector<R> segments_;
  std::vector<const R*> rows_;                 // [lane]
  AlignedVector<R> u_, rate_, count_, space_;  // [lane], [row][lane]
};

/// Evaluates `mapping` for every frame of `clip`.
/// @throws InputError with every error found: unknown joint or channel (with the names that exist), a channel of the
/// wrong kind, a joint mapped twice, nothing mapped; and check_match()'s (retarget.hpp) for a mapping that was found,
/// whose file is the clip's
ClipBinding bind(const Model& model, const MotionClip& clip, const ClipMapping& mapping);

}  // namespace tarsus
