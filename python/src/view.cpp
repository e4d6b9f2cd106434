// For the viewer: what a model looks like, poses of many states at once, motion clips.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "bindings.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/page.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

nb::object poses_of(const Model& model, handle qpos) {
  const Shape shape = shape_of("qpos", qpos);
  const std::size_t n = shape.size() == 2 ? shape[0] : 1;
  const Input<double> in(
      "qpos", qpos, shape.size() == 2 ? Shape{n, std::size_t(model.nq)} : Shape{std::size_t(model.nq)}, sizeof(double));
  AlignedVector<float> out(n * model.nbody() * 7);
  {
    const nb::gil_scoped_release release;
    body_poses(model, in.span(), out);
  }
  return own_array(std::move(out), {n, std::size_t(model.nbody()), 7});
}

std::unique_ptr<ClipBinding> load_clip(const std::filesystem::path& path, const Model& model,
                                       const std::optional<std::filesystem::path>& mapping_file) {
  std::optional<ClipMapping> mapping;
  if (mapping_file) mapping = read_clip_mapping(*mapping_file);
  const MotionClip clip = read_clip(path, mapping ? &*mapping : nullptr);
  return std::make_unique<ClipBinding>(bind(model, clip, mapping ? *mapping : choose_clip_mapping(model, clip)));
}

nb::object sample(const ClipBinding& clip, handle t) {
  const std::size_t nq = clip.nq(), nv = clip.nv();
  const bool many = PyObject_CheckBuffer(t.ptr()) && shape_of("t", t).size() == 1;
  const std::size_t n = many ? shape_of("t", t)[0] : 1;
  const std::vector<double> times = many ? numbers("t", t, {n}) : std::vector<double>{nb::cast<double>(t)};
  AlignedVector<double> qpos(n * nq), qvel(n * nv);
  {
    const nb::gil_scoped_release release;
    for (std::size_t i = 0; i < n; ++i)
      clip.sample(times[i], std::span(qpos).subspan(i * nq, nq), std::span(qvel).subspan(i * nv, nv));
  }
  return nb::make_tuple(own_array(std::move(qpos), many ? Shape{n, nq} : Shape{nq}),
                        own_array(std::move(qvel), many ? Shape{n, nv} : Shape{nv}));
}

}  // namespace

void bind_view(nb::module_& m) {
  m.def("scene_json", &scene_json, "model"_a,
        "What a viewer draws of a model: JSON with bodies, shapes, meshes, joints, loops and keyframes "
        "(docs/viewer.md).");
  m.def("poses_of", &poses_of, "model"_a, "qpos"_a,
        nb::sig("def poses_of(model: Model, qpos: numpy.ndarray) -> numpy.ndarray"),
        "Poses of all bodies in the states qpos [n][nq] (or [nq]): float32 [n][nbody][7], position [m] and orientation "
        "w, x, y, z\nin the world.");
  nb::class_<ClipBinding> c(m, "Clip", "A motion clip in a model's coordinates, to be sampled at any time.");
  c.def_static(
      "load", &load_clip, "path"_a, "model"_a, "mapping"_a = nb::none(),
      "A clip of DeepMimic, BVH or the project's own kind; the mapping is chosen by the clip's kind if none is "
      "named. Raises\nInputError.");
  c.def("sample", &sample, "t"_a,
        nb::sig("def sample(self, t: float | numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]"),
        "(qpos [nq], qvel [nv]) at time t [s], any finite value; of an array t [n], qpos [n][nq] and qvel [n][nv].");
  c.def_prop_ro("name", &ClipBinding::clip_name, "Name of the clip.");
  c.def_prop_ro("duration", &ClipBinding::duration, "[s].");
  c.def_prop_ro("loop", &ClipBinding::loop, "Whether it repeats.");
}

}  // namespace tarsus::python
