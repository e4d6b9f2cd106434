// Shared by the Pinocchio benchmark programs: the clock, and the reader of trees that `aba_bench --trees` writes.
#pragma once

// The program includes an algorithm of Pinocchio first, because each version arranges its headers differently.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

inline double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

struct Timing {
  double best = 1e300, median = 0;
};

/// Time of a call [ns]: minimum and median over repeats of about 2 ms.
template <class F>
Timing time_calls(const F& call) {
  int calls = 1;
  for (double spent = 0; spent < 2e-3; calls *= 2) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) call();
    spent = seconds() - start;
  }
  std::vector<double> all;
  for (int repeat = 0; repeat < 40; ++repeat) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) call();
    all.push_back((seconds() - start) / calls * 1e9);
  }
  std::sort(all.begin(), all.end());
  return {all.front(), all[all.size() / 2]};
}

/// Reads a tree. Each line is one link: parent, type, orientation (row-major) and position of its frame in the parent's
/// frame, mass, centre of mass, and the inertia about it (xx xy xz yy yz zz). Hinges and slides act along z.
inline pinocchio::Model read(const std::string& file) {
  pinocchio::Model model;
  std::ifstream in(file);
  std::string type;
  for (int parent = 0, link = 1; in >> parent >> type; ++link) {
    double n[22];
    for (double& x : n) in >> x;
    if (!in) std::fprintf(stderr, "%s: cannot be read\n", file.c_str()), std::exit(1);
    Eigen::Matrix3d R, inertia;
    R << n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8];
    inertia << n[16], n[17], n[18], n[17], n[19], n[20], n[18], n[20], n[21];
    const pinocchio::SE3 place(R, Eigen::Vector3d(n[9], n[10], n[11]));
    const std::string name = "j" + std::to_string(link);
    const auto add = [&](const auto& joint) { model.addJoint(pinocchio::JointIndex(parent + 1), joint, place, name); };
    if (type == "free")
      add(pinocchio::JointModelFreeFlyer());
    else if (type == "ball")
      add(pinocchio::JointModelSpherical());
    else if (type == "slide")
      add(pinocchio::JointModelPZ());
    else
      add(pinocchio::JointModelRZ());
    model.appendBodyToJoint(pinocchio::JointIndex(link),
                            pinocchio::Inertia(n[12], Eigen::Vector3d(n[13], n[14], n[15]), inertia),
                            pinocchio::SE3::Identity());
  }
  if (model.nv == 0) std::fprintf(stderr, "%s: no links\n", file.c_str()), std::exit(1);
  return model;
}
