// For the viewer: scenes of models, poses of many states in one call, motion clips.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/control/retarget.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/io/page.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

/// Poses of mocap bodies: of one state, or of n states if `many`.
class Mocap {
 public:
  Mocap(const Model& model, handle position, handle orientation, std::size_t n, bool many)
      : position_(read("mocap_pos", position, model, 3, n, many)),
        orientation_(read("mocap_quat", orientation, model, 4, n, many)) {}
  MocapPoses poses() const { return {position_.span(), orientation_.span()}; }

 private:
  static Input<double> read(const char* name, handle given, const Model& model, std::size_t numbers, std::size_t n,
                            bool many) {
    if (given.is_none()) return {};
    Shape shape{std::size_t(model.nmocap()), numbers};
    if (many && shape_of(name, given).size() == 3) shape.insert(shape.begin(), n);
    return Input<double>(name, given, shape, sizeof(double));
  }
  Input<double> position_, orientation_;
};

nb::object poses_of(const Model& model, handle qpos, handle mocap_pos, handle mocap_quat) {
  const Shape shape = shape_of("qpos", qpos);
  const bool many = shape.size() == 2;
  const std::size_t n = many ? shape[0] : 1, nq = std::size_t(model.nq);
  const Input<double> in("qpos", qpos, many ? Shape{n, nq} : Shape{nq}, sizeof(double));
  const Mocap mocap(model, mocap_pos, mocap_quat, n, many);
  AlignedVector<float> out(n * model.nbody() * 7);
  {
    const nb::gil_scoped_release release;
    body_poses(model, in.span(), out, mocap.poses());
  }
  return own_array(std::move(out), {n, std::size_t(model.nbody()), 7});
}

nb::object segments_of(const Model& model, handle qpos, handle mocap_pos, handle mocap_quat) {
  const Input<double> in("qpos", qpos, Shape{std::size_t(model.nq)}, sizeof(double));
  const std::vector<float> found =
      tendon_segments(model, in.span(), Mocap(model, mocap_pos, mocap_quat, 1, false).poses());
  return new_array(found, {found.size() / 6, 6});
}

using OptionalPath = std::optional<std::filesystem::path>;

/// The mapping of `file`, or else the mapping that fits.
ClipMapping mapping_for(const Model& model, const MotionClip& clip, const OptionalPath& file) {
  return file ? read_clip_mapping(*file) : choose_clip_mapping(model, clip);
}

/// @throws InputError for a mapping that drives under half of the joints, unless `partial`
std::unique_ptr<ClipBinding> bind_clip(const MotionClip& clip, const Model& model, const OptionalPath& mapping,
                                       bool partial) {
  auto bound = std::make_unique<ClipBinding>(bind(model, clip, mapping_for(model, clip, mapping)));
  const std::size_t driven = bound->driven().size();
  if (2 * driven < std::size_t(model.njoint()) && !partial) {
    throw InputError(Location{clip.file, 0, 0, {}},
                     "the mapping " + bound->mapping_name() + " drives " + std::to_string(driven) + " of " +
                         std::to_string(model.njoint()) + " joints of " + model.name +
                         ": probably the wrong mapping. Give another mapping or partial=True");
  }
  for (const Diagnostic& d : bound->diagnostics()) {
    if (d.severity == Severity::warning) nb::module_::import_("warnings").attr("warn")(text_of(d.text()));
  }
  return bound;
}

MotionClip load_motion(const std::filesystem::path& path, const OptionalPath& mapping_file) {
  std::optional<ClipMapping> mapping;
  if (mapping_file) mapping = read_clip_mapping(*mapping_file);
  return read_clip(path, mapping ? &*mapping : nullptr);
}

std::unique_ptr<ClipBinding> load_clip(const std::filesystem::path& path, const Model& model,
                                       const OptionalPath& mapping, bool partial) {
  return bind_clip(load_motion(path, mapping), model, mapping, partial);
}

nb::tuple retarget_clip(const MotionClip& clip, const Model& model, const OptionalPath& mapping_file) {
  const ClipMapping mapping = mapping_file ? read_clip_mapping(*mapping_file) : map_skeleton(model, clip);
  Retargeted moved;
  {
    const nb::gil_scoped_release release;
    moved = retarget(model, clip, mapping);
  }
  const RetargetReport& r = moved.report;
  nb::dict report;
  report["confidence"] = confidence(mapping), report["up"] = axis_name(r.up), report["scale"] = r.scale;
  report["direction_error"] = r.direction_error, report["direction_worst"] = r.direction_worst;
  report["worst_segment"] = r.worst, report["stances"] = r.stances;
  report["slide_mean"] = r.slide_mean, report["slide_max"] = r.slide_max, report["sink_max"] = r.sink_max;
  return nb::make_tuple(std::move(moved.clip), report);
}

void save_clip(const MotionClip& clip, const std::filesystem::path& path) {
  if (path.extension() != ".json")
    throw ValueError("path", path.string(), "a file that ends in .json: clips are written in this project's format");
  write_file(path, write_clip(clip));
  if (!clip.skeleton.empty()) {
    nb::module_::import_("warnings")
        .attr("warn")(
            text_of(path.string() + ": the format does not store the skeleton: call retarget() before save()"));
  }
}

nb::object frames_of(const MotionClip& clip) {
  AlignedVector<double> out(clip.values.begin(), clip.values.end());
  return own_array(std::move(out), {clip.times.size(), std::size_t(clip.width)});
}

nb::object sample(const ClipBinding& clip, handle t) {
  const std::size_t nq = clip.nq(), nv = clip.nv();
  double one = 0;
  // NumPy before 2.4 converts an array of one number to a number.
  const bool array = PyObject_CheckBuffer(t.ptr()) && !shape_of("t", t).empty(), many = array || !nb::try_cast(t, one);
  const std::size_t n = many && !shape_of("t", t).empty() ? shape_of("t", t)[0] : 1;
  const std::vector<double> times = many ? numbers("t", t, {n}) : std::vector<double>{one};
  AlignedVector<double> qpos(n * nq), qvel(n * nv);
  {
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < n; ++i)
      clip.sample(times[i], std::span(qpos).subspan(i * nq, nq), std::span(qvel).subspan(i * nv, nv));
  }
  return nb::make_tuple(own_array(std::move(qpos), many ? Shape{n, nq} : Shape{nq}),
                        own_array(std::move(qvel), many ? Shape{n, nv} : Shape{nv}));
}

void bind_motion(nb::module_& m) {
  nb::class_<MotionClip> c(m, "MotionClip", "A motion as stored in its file, of any skeleton (docs/clips.md).");
  copies_are_itself(c);
  c.def_static(
      "load", &load_motion, "path"_a, "mapping"_a = nb::none(),
      "Reads a clip: BVH, AMC (with its ASF in the same folder), AMASS (.npz), DeepMimic or this project's format. "
      "For DeepMimic files of\n"
      "unknown width, a mapping names the columns. Raises InputError.");
  c.def("bind", &bind_clip, "model"_a, "mapping"_a = nb::none(), "partial"_a = false,
        "The motion in a model's coordinates. mapping is a file; by default it is chosen by the clip's "
        "format. Raises InputError, also\n"
        "if the mapping drives under half of the joints, unless partial is true, and if it was found but the skeletons "
        "do not seem to match.");
  c.def(
      "retarget", &retarget_clip, "model"_a, "mapping"_a = nb::none(),
      nb::sig("def retarget(self, model: Model, mapping: str | os.PathLike | None = None) -> tuple[MotionClip, dict]"),
      "Retargets the motion to a humanoid model. Returns it with a report: confidence of the mapping (0 to "
      "1), up (the\n"
      "source's vertical, such as \"+y\"), scale, direction_error and direction_worst of the segments [rad], "
      "worst_segment, stances,\n"
      "slide_mean and slide_max of the feet and sink_max [m]. By default the mapping is found from names and "
      "positions. Raises InputError.");
  c.def("save", &save_clip, "path"_a,
        "Writes the clip in this project's format (.json). load() reads the same numbers; rotations are "
        "equal to rounding. The file\n"
        "does not contain the skeleton, which retarget() needs; a warning says so. Raises InputError, and leaves the "
        "file alone, if the clip\n"
        "is too large to be read again.");
  c.def_prop_ro(
      "name", [](const MotionClip& self) { return text_of(self.name); }, nb::sig("def name(self) -> str"),
      "Name of the clip.");
  c.def_prop_ro(
      "format", [](const MotionClip& self) { return self.format; },
      "Format of the clip's file; for a saved clip, that of the file it was read from.");
  c.def_prop_ro("duration", &MotionClip::duration, "[s].");
  c.def_prop_ro(
      "loop", [](const MotionClip& self) { return self.loop; }, "Whether the clip repeats.");
  c.def_prop_ro(
      "diagnostics", [](const MotionClip& self) { return to_python(self.diagnostics); },
      nb::sig("def diagnostics(self) -> list[Diagnostic]"),
      "What was repaired, and what the file contains but is not used.");
  c.def_prop_ro(
      "times", [](const MotionClip& self) { return self.times; }, "Times of the frames [s].");
  c.def_prop_ro(
      "channels",
      [](const MotionClip& self) {
        nb::list out;
        for (const ClipChannel& channel : self.channels)
          out.append(nb::make_tuple(text_of(channel.name), name(channel.kind), channel.column));
        return out;
      },
      nb::sig("def channels(self) -> list[tuple[str, str, int]]"), "Name, kind and first column of each channel.");
  c.def_prop_ro("frames", &frames_of, nb::sig("def frames(self) -> numpy.ndarray"),
                "Values of the channels [n][width], a copy. Rotations are quaternions w, x, y, z.");
  c.def(
      "__repr__",
      [](const MotionClip& self) {
        return text_of("<tarsus.MotionClip '" + self.name + "' (" + self.format + ") " +
                       std::to_string(self.times.size()) + " frames, " + std::to_string(self.channels.size()) +
                       " channels, " + number_text(self.duration()) + " s>");
      },
      nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void bind_view(nb::module_& m) {
  m.def("scene_json", &scene_json, "model"_a,
        "JSON of what a viewer draws of a model: bodies, shapes, meshes, joints, loops and keyframes "
        "(docs/viewer.md).");
  m.def("poses_of", &poses_of, "model"_a, "qpos"_a, "mocap_pos"_a = nb::none(), "mocap_quat"_a = nb::none(),
        nb::sig("def poses_of(model: Model, qpos: numpy.ndarray, mocap_pos: numpy.ndarray | None = None, mocap_quat: "
                "numpy.ndarray | None = None) -> numpy.ndarray"),
        "Poses of all bodies in the states qpos [n][nq] (or [nq]): float32 [n][nbody][7], position [m] and "
        "orientation w, x, y, z\n"
        "in the world. mocap_pos [nmocap][3] and mocap_quat [nmocap][4], or n of them, are the poses of "
        "mocap bodies (None: those of\n"
        "the file).");
  m.def("tendon_segments", &segments_of, "model"_a, "qpos"_a, "mocap_pos"_a = nb::none(), "mocap_quat"_a = nb::none(),
        nb::sig("def tendon_segments(model: Model, qpos: numpy.ndarray, mocap_pos: numpy.ndarray | None = None, "
                "mocap_quat: numpy.ndarray | None = None) -> numpy.ndarray"),
        "Straight segments of the spatial tendons in the state qpos [nq]: float32 [n][6], both ends of each "
        "in the world [m]. Arcs around\n"
        "geoms are divided into chords of at most 15 degrees. mocap_pos and mocap_quat are those of poses_of.");
  nb::class_<ClipBinding> c(m, "Clip", "A motion clip in a model's coordinates, which can be sampled at any time.");
  bind_motion(m);
  copies_are_itself(c);
  c.def_static("load", &load_clip, "path"_a, "model"_a, "mapping"_a = nb::none(), "partial"_a = false,
               "Same as MotionClip.load(path, mapping).bind(model, mapping, partial).");
  c.def_prop_ro(
      "driven", [](const ClipBinding& self) { return std::vector<int>(self.driven().begin(), self.driven().end()); },
      "Indices of the model's joints that the clip drives.");
  c.def("sample", &sample, "t"_a,
        nb::sig("def sample(self, t: float | numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(qpos [nq], qvel [nv]) at any finite time t [s], up to 2^53 cycles of a clip that loops. For an array t [n]: "
        "qpos [n][nq] and qvel [n][nv].");
  c.def_prop_ro(
      "name", [](const ClipBinding& self) { return text_of(self.clip_name()); }, nb::sig("def name(self) -> str"),
      "Name of the clip.");
  c.def_prop_ro("duration", &ClipBinding::duration, "[s].");
  c.def_prop_ro("loop", &ClipBinding::loop, "Whether the clip repeats.");
  c.def_prop_ro(
      "diagnostics", [](const ClipBinding& self) { return to_python(self.diagnostics()); },
      nb::sig("def diagnostics(self) -> list[Diagnostic]"),
      "What was repaired, is not used or is not driven, as in Model.diagnostics. Warnings are also issued "
      "as Python warnings.");
  c.def(
      "__repr__",
      [](const ClipBinding& self) {
        return text_of("<tarsus.Clip '" + self.clip_name() + "' " + number_text(self.duration()) + " s" +
                       (self.loop() ? ", loops" : "") + ", drives " + std::to_string(self.driven().size()) +
                       " joints>");
      },
      nb::sig("def __repr__(self) -> str"));
}

}  // namespace tarsus::python
