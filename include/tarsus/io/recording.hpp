// Recordings: the states of a run, frame by frame, in a NumPy .npz file with
//
//   time   float64 [n]        seconds, increasing
//   qpos   float64 [n][nq]    Model's layout (MuJoCo's): metres, radians, unit quaternions w x y z
//   qvel   float64 [n][nv]
//   target float64 [n][nq]    the drives' targets; only if the run had targets
//   hash   uint64 [n]         frame_hash() of each frame; for a run in double, state_hash() (sim/step.hpp)
//   meta   uint8 [bytes]      JSON: {"format": "tarsus-recording", "version": 1, "model": "humanoid",
//                             "nq": 43, "nv": 34, "joints": ["root", …], "joint_types": ["free", …], "frames": n,
//                             "dt": mean spacing [s], and the keys of the program that wrote it}
//
// A frame takes 8 (2 + nq + nv [+ nq]) bytes. The 34-DoF humanoid at 60 frames a second with targets takes 3.5 MB a
// minute.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// Keys and values that the writing program adds to the meta JSON, in order.
using MetaValue = std::variant<std::string, double, std::int64_t, bool>;
using MetaPairs = std::vector<std::pair<std::string, MetaValue>>;

/// Collects frames in memory (in chunks, so that growing copies nothing) and writes them all in finish(). Until then
/// the file is FILE.partial, which the destructor removes if finish() was not reached.
class RecordingWriter {
 public:
  /// Creates FILE.partial at once, so that a missing or read-only folder is an error before the run.
  /// @throws Error naming the file and the system's reason
  RecordingWriter(std::filesystem::path file, const Model& model);
  ~RecordingWriter();
  RecordingWriter(RecordingWriter&&) noexcept;
  RecordingWriter& operator=(RecordingWriter&&) noexcept;

  /// @param time [s], larger than the last frame's   @param qpos [nq]   @param qvel [nv]
  /// @param target [nq], or empty; given in all frames or in none
  /// @throws ShapeError, ValueError for a number that is not finite, a time that does not increase, or targets in some
  ///   frames only; std::bad_alloc, and the frames so far are kept
  void frame(double time, std::span<const double> qpos, std::span<const double> qvel,
             std::span<const double> target = {});
  int frame_count() const;

  /// Writes the file. No further call is allowed.
  /// @param extra e.g. {{"command", "tarsus run …"}, {"kp", 75000.0}}
  /// @throws Error naming the file and the reason (disk full, …), ValueError for a reserved key
  void finish(const MetaPairs& extra = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 64-bit FNV-1a over the bits of qpos, then qvel.
std::uint64_t frame_hash(std::span<const double> qpos, std::span<const double> qvel);

struct Recording {
  std::string file;
  std::string model;  ///< name of the recorded model
  int nq = 0, nv = 0;
  std::vector<std::string> joints, joint_types;
  std::vector<double> time;         ///< [n]
  std::vector<double> qpos, qvel;   ///< [n * nq], [n * nv]
  std::vector<double> target;       ///< [n * nq] or empty
  std::vector<std::uint64_t> hash;  ///< [n], or empty if the file has none
  std::string meta;                 ///< the whole JSON text
  MetaPairs extra;                  ///< the other strings, numbers and flags of meta (nested values are in `meta` only)
  std::vector<std::string> unused;  ///< other members of the file

  int frame_count() const { return int(time.size()); }
  double duration() const { return time.empty() ? 0 : time.back() - time.front(); }
  /// Mean spacing of the frames [s]; 0 for fewer than two.
  double dt() const { return time.size() < 2 ? 0 : duration() / double(time.size() - 1); }
  std::span<const double> qpos_at(int frame) const { return {qpos.data() + std::size_t(frame) * nq, std::size_t(nq)}; }
  std::span<const double> qvel_at(int frame) const { return {qvel.data() + std::size_t(frame) * nv, std::size_t(nv)}; }
  /// First frame whose numbers do not match its hash, -1 if there is none. Precondition: the recording has hashes.
  int first_changed() const;
  /// Empty if the recording has no targets.
  std::span<const double> target_at(int frame) const;
};

/// Reads a recording. If `model` is given, checks sizes, names and types of the joints against it.
/// @throws InputError naming file and member: not a zip, a member missing, another type or shape, numbers that are not
///   finite, times that do not increase, another model
Recording read_recording(const std::filesystem::path& file, const Model* model = nullptr);
/// The same from memory; `name` stands for the file in messages.
Recording parse_recording(std::string bytes, const std::string& name, const Model* model = nullptr);

}  // namespace tarsus
