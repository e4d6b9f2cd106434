// What a viewer shows of a model and of a run, as text that a program in a browser reads. docs/viewer.md has the keys.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// A model as a viewer draws it: JSON with bodies, shapes (colours and materials resolved), meshes, joints, loops and
/// keyframes. SI units; shapes' poses in their bodies' frames; orientations w x y z; arrays as base64 of little-endian
/// float32 or int32.
std::string scene_json(const Model& model);

/// Where mocap bodies are, as in Data; empty: where the file has them.
struct MocapPoses {
  std::span<const double> position = {};     ///< [nmocap][3] [m]
  std::span<const double> orientation = {};  ///< [nmocap][4] w x y z, of any length
};

/// Poses of all bodies in the world, in n states: position [m] and orientation w x y z.
/// @param qpos [n][nq]   @param poses [n][nbody][7]   @param mocap of all states, or [n] of them   @throws ShapeError
void body_poses(const Model& model, std::span<const double> qpos, std::span<float> poses, const MocapPoses& mocap = {});

/// Spatial tendons of one state in straight segments, in the world [m]: from (3 numbers), to (3).  @throws ShapeError
std::vector<float> tendon_segments(const Model& model, std::span<const double> qpos, const MocapPoses& mocap = {});

/// Contacts of the step that led to a frame.
struct PageContacts {
  std::vector<float> rows =
      {};                  ///< [k][10]: position [m], force [N], normal (of what it acts on), friction coefficient
  double penetration = 0;  ///< deepest [m]
  double residual = 0;     ///< [m/s]
  int iterations = 0;
};

/// Collects a run and writes it into a page: one HTML file that plays the run in any browser, without a network.
class PageWriter {
 public:
  /// @param mocap of all frames  @throws ShapeError
  explicit PageWriter(const Model& model, const MocapPoses& mocap = {});
  ~PageWriter();

  /// Frames that follow the last one kept by less than 1/60 s are left out, but for the last of all.
  /// @param time [s], increasing   @param qpos [nq]   @param qvel [nv]
  /// @param target [nq] the reference's pose, drawn as a ghost, or empty: in all frames or in none
  /// @param tracking_error [m], plotted if there is a target
  /// @param contacts drawn, but for those of frames with more than 400, and plotted, or null: in all frames or in none
  /// @throws ShapeError
  void frame(double time, std::span<const double> qpos, std::span<const double> qvel,
             std::span<const double> target = {}, double tracking_error = 0, const PageContacts* contacts = nullptr);

  /// The recording as JSON: the scene, the times, the poses and the series to plot.
  std::string json();
  /// @param page the viewer's page, python/tarsus/view/page.html   @throws Error naming the file and the reason
  void write(const std::filesystem::path& file, std::string_view page);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarsus
