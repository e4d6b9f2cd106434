// A chain on a free base above a floor, for tendons and actuators.
#pragma once

#include "tarsus/io/mjcf.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::test {

/// The chain with the additions `joint`, `more` and `option`.
inline Model based_chain(const std::string& joint, const std::string& more, const std::string& height,
                         const std::string& option = "") {
  return compile(parse_mjcf("<mujoco>" + option + R"(<worldbody><geom type="plane" size="0 0 1"/>
    <body name="base" pos="0 0 )" +
                                height +
                                R"("><freejoint/><geom size=".1 .05 .05" type="box"/><site name="s"/>
    <body name="mid" pos=".2 0 0"><joint name="a" axis="0 1 0" )" +
                                joint + R"(/><geom size=".04" pos=".1 0 0"/>
    <body name="end" pos=".2 0 0"><joint name="b" axis="0 .6 .8"/><geom size=".05" pos=".1 0 .05"/><site name="e"/>
    </body></body></body></worldbody>)" +
                                more + "</mujoco>",
                            "m", "."));
}

}  // namespace tarsus::test
