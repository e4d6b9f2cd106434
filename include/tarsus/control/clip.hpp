// Motion clips: recorded poses of some skeleton, named channel by channel, and their binding to a Model.
//
// A MotionClip is what a reader (io) makes of a file: cleaned values in the source's own axes. A ClipMapping says how
// its channels drive the joints of a model. bind() works the mapping out for every frame, once, and the ClipBinding
// then interpolates in the model's own coordinates:
//
// - Positions and scalars: cubic Hermite. Rotations: the cumulative cubic q0 Exp(b1 w1) Exp(b2 w2) Exp(b3 w3) of Kim,
//   Kim and Shin (1995). Both pass through every frame and have continuous velocity; the velocity returned is the exact
//   derivative of the position returned (no finite differences, no filter). Linear interpolation with slerp would
//   give a velocity that jumps at every frame, which is where a controller with a step of one frame samples it.
// - Frame velocities are three-point differences (second order for uneven frames too), one-sided at free ends.
// - A looping clip repeats with the root moved on by one cycle: the horizontal displacement and the turn about z from
//   the first frame to the last. What then still differs between the last frame and the first (real clips: up to 1 rad
//   in a joint) is spread over the last kSeamWindow seconds of the cycle, and reported.
// - A clip that does not loop holds its end poses, at rest, outside [0, duration].
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
  Vec3d axis{0, 0, 0};  ///< of an angle or a translation, source axes; zero: unknown, the target joint's own
};

/// A joint of the source's skeleton, with the channels of its name. Parents come first.
struct ClipBone {
  std::string name;
  int parent = -1;
  Vec3d offset{0, 0, 0};  ///< from the parent's joint, in the parent's axes at rest [source units]
};

struct MotionClip {
  std::string name;    ///< for people: the file's stem, or what the file says
  std::string format;  ///< layout that the reader recognised: "humanoid3d", "dog3d", "quadruped12", "bvh", "tarsus"
  std::string file;
  bool loop = false;
  bool cycle_position = true;           ///< looping moves the root on by one cycle's horizontal displacement
  bool cycle_heading = true;            ///< and by one cycle's turn about the vertical
  Vec3d up{0, 0, 1}, forward{1, 0, 0};  ///< of the source's axes, unit, perpendicular
  std::vector<ClipBone> skeleton;       ///< empty if the file does not say
  std::vector<ClipChannel> channels;
  int width = 0;               ///< numbers in a frame
  std::vector<double> times;   ///< [nframe] seconds, times[0] = 0, increasing
  std::vector<double> values;  ///< [nframe * width]
  Diagnostics diagnostics;     ///< what was repaired, and what in the file was not used

  int frame_count() const { return int(times.size()); }
  double duration() const { return times.empty() ? 0 : times.back(); }
  const ClipChannel* find(std::string_view channel) const;
  const double* frame(int index) const { return values.data() + std::size_t(index) * width; }
  /// Appends a channel to every frame, before there are any.  @return its column
  int add_channel(const std::string& channel, ChannelKind kind, const Vec3d& axis = {0, 0, 0});
  /// Appends the rotation vector v as the next rotation of the frame that is being written. Of its two quaternions, the
  /// one near the last frame's: rotation vectors jump at half a turn, which is no fault of the file.
  void push_rotation(const Vec3d& v);
};

/// Checks a clip and cleans it: quaternions to unit length, one sign along the clip; every repair is recorded.
/// @param where place in the file of a number, for messages
/// @throws InputError no frames, times not increasing, a number that is not finite, a quaternion whose length is off
///   by more than kMaxNormError (that is another layout, not a rounding)
void clean_clip(MotionClip& clip, const std::function<Location(int frame, int column)>& where);
inline constexpr double kMaxNormError = 0.5;

/// How one joint of the model is driven.
struct JointMapping {
  std::string joint;
  /// Source channels. Ball, free and hinge: rotations and angles, composed in this order (parent first). Hinge and
  /// slide: one angle or translation may be taken as it is; a slide may take a position along `axis`.
  std::vector<std::string> from;
  std::string position;   ///< free joint: the channel of its position; empty: it stays at qpos0
  Quatd pre{1, 0, 0, 0};  ///< fixed rotations in target axes: joint = pre * source * post
  Quatd post{1, 0, 0, 0};
  std::optional<Vec3d> axis;  ///< hinge: twist axis (default: the joint's own); slide: direction; target axes
  double sign = 1;            ///< hinge and slide: factor on the value
  double offset = 0;          ///< hinge and slide: then added [rad | m]
  Location where;
};

/// A point of the source's skeleton and the model's that belongs to it; retarget.hpp.
struct PointMapping {
  std::string point;  ///< one of skeleton_points()
  std::string from;   ///< bone of the source
  std::string body;   ///< of the model: the anchor of its first joint, or
  bool tip = false;   ///< the far end of its shapes
  double sure = 1;    ///< 0 to 1
  Location where;
};

struct ClipMapping {
  std::string name, file;
  std::string format;                ///< clip format that it is for; empty: any
  std::optional<Vec3d> up, forward;  ///< source axes, where the clip's own are to be overruled
  double scale = 1;                  ///< on positions and translations
  Vec3d offset{0, 0, 0};             ///< added to free joints' positions, target axes [m]
  std::vector<JointMapping> joints;
  std::vector<PointMapping> points;  ///< if there are some, the motion is retargeted, and `joints` is not used
  std::vector<std::string> ignore;   ///< source channels left out on purpose
  std::vector<ClipChannel> layout;   ///< columns of files that do not name them (DeepMimic); empty: a known one
};

/// The joint's name; "#N" with its number for one without a name. Mappings use these.
std::string joint_label(const Model& model, int joint);

/// Joints that have the name of a channel, driven by it (and a free joint's position by "NAME.position").
ClipMapping identity_mapping(const Model& model, const MotionClip& clip);

/// The channels and joints that `mapping` names all exist, and its format is the clip's.
bool fits(const ClipMapping& mapping, const Model& model, const MotionClip& clip);

/// A clip in a model's coordinates, to be sampled at any time. Keeps no reference to what it was made from.
class ClipBinding {
 public:
  static constexpr double kSeamWindow = 0.3;  ///< [s], at most half the cycle

  /// Pose and velocity at time t.
  /// @param t seconds, any finite value; looping clips run backwards below zero
  /// @param qpos [nq]   @param qvel [nv] MuJoCo's layout, or empty when it is not wanted
  /// @throws ShapeError, ValueError
  void sample(double t, std::span<double> qpos, std::span<double> qvel) const;

  double duration() const { return times_.back(); }
  bool loop() const { return loop_; }
  int frame_count() const { return int(times_.size()); }
  int nq() const { return int(rest_.size()); }
  int nv() const { return nv_; }
  const std::string& clip_name() const { return name_; }
  /// Joints driven by the clip, as indices into Model::joints.
  const std::vector<int>& driven() const { return driven_; }
  const std::string& mapping_name() const { return mapping_name_; }
  /// Repairs of the clip, what the mapping drops, joints that stay at rest, the seam's gap.
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  friend ClipBinding bind(const Model&, const MotionClip&, const ClipMapping&);
  friend class ClipBinder;
  template <class R>
  friend class ClipLanes;
  /// Where a time lies: in which segment, after how many whole cycles.
  struct Place {
    int segment = 0;
    double u = 0;     ///< share of the segment that is over, 0 to 1
    double rate = 0;  ///< 1 / segment's duration [1/s]; 0 where the clip stands still
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

/// ClipBinding::sample() for worlds in lanes, each at a time of its own.
template <class R>
class ClipLanes {
 public:
  /// Keeps a reference to the clip. @param width 1 or lanes<R>(isa_level())
  ClipLanes(const ClipBinding& clip, int width);

  /// @param t [lane] finite  @param qpos [nq][lane]  @param qvel [nv][lane], or empty when it is not wanted
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

/// Works `mapping` out for every frame of `clip`.
/// @throws InputError with every error found: unknown joint or channel (with the names that exist), a channel of the
///   wrong kind, a joint mapped twice, nothing mapped
ClipBinding bind(const Model& model, const MotionClip& clip, const ClipMapping& mapping);

}  // namespace tarsus
