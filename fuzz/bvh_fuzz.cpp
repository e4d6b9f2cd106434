// BVH: any bytes give a clip or an InputError; what was accepted can be bound to a model and sampled.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "tarsus/io/bvh.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tarsus::Model model = [] {
    tarsus::ModelSpec spec;
    tarsus::BodySpec body("body");
    body.parent = 0;
    tarsus::JointSpec joint;
    joint.name = "root", joint.type = tarsus::JointType::free;
    body.joints.push_back(joint);
    body.inertial = tarsus::InertialSpec{1, {0, 0, 0}, {1, 0, 0, 1, 0, 1}, {}};
    spec.bodies.push_back(body);
    return tarsus::compile(spec);
  }();
  try {
    tarsus::MotionClip clip = tarsus::parse_bvh({reinterpret_cast<const char*>(data), size}, "fuzz.bvh");
    clip.loop = true;
    tarsus::JointMapping item;
    item.joint = "root";
    for (const tarsus::ClipChannel& c : clip.channels) {
      if (c.kind == tarsus::ChannelKind::rotation) item.from.push_back(c.name);
      if (c.kind == tarsus::ChannelKind::position) item.position = c.name;
    }
    tarsus::ClipMapping mapping;
    mapping.joints.push_back(item);
    const tarsus::ClipBinding binding = tarsus::bind(model, clip, mapping);
    double q[7], v[6];
    binding.sample(0.37 * binding.duration(), q, v);
    for (int k = 3; k < 7; ++k) {
      if (!(std::abs(q[k]) <= 1 + 1e-9)) __builtin_trap();
    }
  } catch (const tarsus::InputError&) {
  }
  return 0;
}
