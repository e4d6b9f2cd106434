// A model and a run as text for the browser viewer. docs/viewer.md has the keys.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/model/model.hpp"

namespace tarsus {

/// A model for the viewer: JSON with bodies, shapes (colours and materials resolved), meshes, joints, loops and
/// keyframes. SI units; shapes' poses in their bodies' frames; orientations w x y z; arrays as base64 of little-endian
/// float32 or int32.
std::string scene_json(const Model& model);

/// Poses of the mocap bodies, as in Data. If empty, the bodies have the file's poses.
struct MocapPoses {
  std::span<const double> position = {};     ///< [nmocap][3] [m]
  std::span<const double> orientation = {};  ///< [nmocap][4] w x y z, of any length
};

/// World poses of all bodies in n states: position [m] and orientation w x y z.
/// @param qpos [n][nq]  @param poses [n][nbody][7]  @param mocap one set of poses for all states, or one for each state
///    @throws ShapeError
void body_poses(const Model& model, std::span<const double> qpos, std::span<float> poses, const MocapPoses& mocap = {});

/// Straight segments of the spatial tendons in one state, in the world [m]: start (3 numbers), end (3).
/// @throws ShapeError
std::vector<float> tendon_segments(const Model& model, std::span<const double> qpos, const MocapPoses& mocap = {});

/// Contacts of the step that ends at a frame.
struct PageContacts {
  std::vector<float> rows =
      {};                  ///< [k][10]: position [m], force [N], normal (of the body it acts on), friction coefficient
  double penetration = 0;  ///< deepest [m]
  double residual = 0;     ///< [m/s]
  int iterations = 0;
};

/// Collects a run and writes it as a page: one HTML file that plays the run in any browser, without a network.
class PageWriter {
 public:
  /// @param mocap for all frames  @throws ShapeError
  explicit PageWriter(const Model& model, const MocapPoses& mocap = {});
  ~PageWriter();

  /// Adds a frame. Frames less than 1/60 s after the last one kept are left out, except for the run's last frame.
  /// @param time [s], increasing   @param qpos [nq]   @param qvel [nv]
  /// @param target [nq] the reference's pose, drawn as a ghost, or empty. Given in all frames or in none
  /// @param tracking_error [m], plotted if there is a target
  /// @param contacts plotted, and drawn in frames with at most 400 contacts; or null. Given in all frames or in none
  /// @throws ShapeError
  void frame(double time, std::span<const double> qpos, std::span<const double> qvel,
             std::span<const double> target = {}, double tracking_error = 0, const PageContacts* contacts = nullptr);

  /// After frame() ran out of memory: drops the frame that was being added.
  void end_early();
  int frames() const;  ///< that are kept

  /// The recording as JSON: the scene, the times, the poses and the series to plot.
  std::string json();
  /// @param page the viewer's page, python/tarsus/view/page.html   @throws Error naming the file and the reason
  void write(const std::filesystem::path& file, std::string_view page);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarsus
