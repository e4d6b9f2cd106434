// Times Pinocchio's constrained forward dynamics on the trees that `aba_bench --trees FOLDER` writes, with 6-D
// constraints to the world. Not part of the build: bench/kkt_peers_bench.py compiles it against the headers of the
// `pin` wheel. usage: pinocchio_kkt FILE.tree LINK[,LINK…] …     prints JSON objects
#define PINOCCHIO_SUPPRESS_UNSUPPORTED_WARNINGS
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/pv.hpp>

#include "pinocchio_tree.hpp"

#include <sstream>

#if PINOCCHIO_MAJOR_VERSION >= 4
using Anchor = pinocchio::FrameAnchorConstraintModel;
#else
using Anchor = pinocchio::RigidConstraintModel;
#endif

namespace {

using Models = std::vector<pinocchio::RigidConstraintModel, Eigen::aligned_allocator<pinocchio::RigidConstraintModel>>;
using Datas = std::vector<pinocchio::RigidConstraintData, Eigen::aligned_allocator<pinocchio::RigidConstraintData>>;

void run(const std::string& file, const std::string& links) {
  pinocchio::Model model = read(file);
  model.lowerPositionLimit.setConstant(-1), model.upperPositionLimit.setConstant(1);
  std::srand(1);
  const Eigen::VectorXd q = pinocchio::randomConfiguration(model), v = Eigen::VectorXd::Zero(model.nv),
                        tau = Eigen::VectorXd::Random(model.nv);
  pinocchio::Data data(model);
  pinocchio::forwardKinematics(model, data, q);
  Models models;
  Datas datas;
  std::stringstream list(links);
  for (std::string item; std::getline(list, item, ',');) {
    const auto joint = pinocchio::JointIndex(std::stoi(item) + 1);
    models.emplace_back(pinocchio::CONTACT_6D, model, joint, pinocchio::SE3::Identity(), 0, data.oMi[joint],
                        pinocchio::LOCAL);
  }
  for (const auto& m : models) datas.emplace_back(m);
  std::vector<Anchor, Eigen::aligned_allocator<Anchor>> anchors;
  std::vector<Anchor::ConstraintData, Eigen::aligned_allocator<Anchor::ConstraintData>> anchor_datas;
  for (const auto& m : models) {
#if PINOCCHIO_MAJOR_VERSION >= 4
    anchors.emplace_back(model, m.joint1_id, m.joint1_placement, m.joint2_id, m.joint2_placement);
#else
    anchors.push_back(m);
#endif
  }
  for (const auto& m : anchors) anchor_datas.emplace_back(m);
  const std::string stem = file.substr(file.find_last_of('/') + 1), name = stem.substr(0, stem.find_last_of('.'));
  pinocchio::ProximalSettingsTpl<double> exact(1e-14, 0.0, 1);
#if PINOCCHIO_MAJOR_VERSION >= 4
  pinocchio::initConstraintDynamics(model, data, models, datas);
#else
  pinocchio::initConstraintDynamics(model, data, models);
#endif
  const Eigen::VectorXd reference = pinocchio::constraintDynamics(model, data, q, v, tau, models, datas, exact);
  const auto report = [&](const char* bench, const auto& call) {
    const Eigen::VectorXd a = call();
    const Timing t = time_calls(call);
    std::printf(
        "{\"bench\": \"%s\", \"engine\": \"pinocchio\", \"model\": \"%s\", \"nv\": %d, \"rows\": %d, \"ns\": %.1f, "
        "\"ns_median\": %.1f, \"error\": %.3g}\n",
        bench, name.c_str(), model.nv, int(6 * models.size()), t.best, t.median,
        (a - reference).cwiseAbs().maxCoeff() / reference.cwiseAbs().maxCoeff());
    std::fflush(stdout);
  };
  report("aba", [&]() -> const Eigen::VectorXd& {
    return pinocchio::aba(model, data, q, v, tau, pinocchio::Convention::LOCAL);
  });
  report("constraintDynamics", [&]() -> const Eigen::VectorXd& {
    return pinocchio::constraintDynamics(model, data, q, v, tau, models, datas, exact);
  });
  for (const int rounds : {1, 50}) {
    pinocchio::Data own(model);
    pinocchio::initPvSolver(model, own, anchors);
    pinocchio::ProximalSettingsTpl<double> settings(1e-12, rounds == 1 ? 1e-6 : 1e-5, rounds);
    report(rounds == 1 ? "constrainedABA, one round" : "constrainedABA, to 1e-12", [&]() -> const Eigen::VectorXd& {
      return pinocchio::constrainedABA(model, own, q, v, tau, anchors, anchor_datas, settings);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) run(argv[i], argv[i + 1]);
}
