// A pendulum written as a ModelSpec and compiled. Returns 1 when the model is not what was written.
#include <cstdio>
#include <utility>

#include "tarsus/model/model.hpp"

int main() {
  tarsus::JointSpec hinge;
  hinge.name = "pivot";
  hinge.axis = {0, 1, 0};

  tarsus::BodySpec rod("rod");
  rod.parent = 0;
  rod.joints.push_back(hinge);
  rod.inertial =
      tarsus::InertialSpec{.mass = 2, .com = {0, 0, -0.5}, .inertia = {0.1, 0, 0, 0.1, 0, 0.01}, .where = {}};

  tarsus::ModelSpec spec;
  spec.bodies.push_back(rod);
  const tarsus::Model model = tarsus::compile(std::move(spec));

  std::printf("nq %d, nv %d, mass %g kg, joint \"%s\"\n", model.nq, model.nv, model.total_mass(),
              model.joints[0].name.c_str());
  return model.nv == 1 && model.total_mass() == 2 && model.find_body("rod") == 1 ? 0 : 1;
}
