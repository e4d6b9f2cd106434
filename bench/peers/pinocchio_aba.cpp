// Times Pinocchio's aba() on the trees that `aba_bench --trees FOLDER` writes. Not part of the build:
// bench/aba_peers_bench.py compiles it twice against the headers and library of the `pin` wheel. The build "headers"
// compiles aba() here; the build "wheel" (PEER_WHEEL) uses the aba() compiled in the wheel. The build "headers" also
// times three ways to solve (M + K) a = tau - C, as in stable PD: aba() with K as armature, and the bias force with
// crba() and either Pinocchio's sparse factor or Eigen's dense factor. usage:
// pinocchio_aba FILE.tree...     prints JSON objects
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/cholesky.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody/joint.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "pinocchio_tree.hpp"

using Argument = Eigen::Ref<const Eigen::VectorXd>;

#ifdef PEER_WHEEL
constexpr const char* kBuild = "wheel";
// The only instance of aba() that the wheel's library exports.
namespace pinocchio {
extern template const Data::TangentVectorType& aba<double, 0, JointCollectionDefaultTpl, Argument, Argument, Argument>(
    const Model&, Data&, const Eigen::MatrixBase<Argument>&, const Eigen::MatrixBase<Argument>&,
    const Eigen::MatrixBase<Argument>&, const Convention);
}
#else
constexpr const char* kBuild = "headers";
#endif

namespace {

void run(const std::string& file, pinocchio::Convention convention) {
  const char* const name = convention == pinocchio::Convention::LOCAL ? "local" : "world";
  pinocchio::Model model = read(file);
  pinocchio::Data data(model);
  model.lowerPositionLimit.setConstant(-1), model.upperPositionLimit.setConstant(1);
  std::srand(1);
  const Eigen::VectorXd q = pinocchio::randomConfiguration(model), v = Eigen::VectorXd::Random(model.nv),
                        tau = Eigen::VectorXd::Random(model.nv);
  const Argument q_in(q), v_in(v), tau_in(tau);
  const Eigen::VectorXd a = pinocchio::aba(model, data, q_in, v_in, tau_in, convention);
  pinocchio::Data other(model);
  const double residual = (pinocchio::rnea(model, other, q, v, a) - tau).cwiseAbs().maxCoeff();
  const Timing t = time_calls([&] { pinocchio::aba(model, data, q_in, v_in, tau_in, convention); });
  const std::string stem = file.substr(file.find_last_of('/') + 1);
  std::printf(
      "{\"bench\": \"aba\", \"engine\": \"pinocchio\", \"build\": \"%s\", \"convention\": \"%s\", \"model\": \"%s\", "
      "\"nv\": %d, \"ns\": %.1f, \"ns_median\": %.1f, \"residual\": %.3g}\n",
      kBuild, name, stem.substr(0, stem.find_last_of('.')).c_str(), model.nv, t.best, t.median, residual);
  std::fflush(stdout);
}

#ifndef PEER_WHEEL
/// Solves (M + K) a = tau - C in three ways, with K = 4000 / 30 from the paper's gains.
void run_drives(const std::string& file, pinocchio::Convention convention) {
  pinocchio::Model model = read(file);
  model.lowerPositionLimit.setConstant(-1), model.upperPositionLimit.setConstant(1);
  model.armature.setConstant(4000.0 / 30);
  pinocchio::Data data(model);
  std::srand(1);
  const Eigen::VectorXd q = pinocchio::randomConfiguration(model), v = Eigen::VectorXd::Random(model.nv),
                        tau = Eigen::VectorXd::Random(model.nv);
  Eigen::VectorXd a(model.nv);
  Eigen::LLT<Eigen::MatrixXd> dense(model.nv);
  Eigen::MatrixXd upper(model.nv, model.nv);
  const auto by_aba = [&] { a = pinocchio::aba(model, data, q, v, tau, convention); };
  const auto form = [&] {
    pinocchio::nonLinearEffects(model, data, q, v);
    pinocchio::crba(model, data, q, convention);
    a = tau - data.nle;
  };
  const auto by_sparse = [&] {
    form();
    pinocchio::cholesky::decompose(model, data);
    pinocchio::cholesky::solve(model, data, a);
  };
  const auto by_dense = [&] {
    form();
    upper = data.M.transpose();  // crba() fills the upper triangle, the factor reads the lower
    dense.compute(upper);
    dense.solveInPlace(a);
  };
  const char* const name = convention == pinocchio::Convention::LOCAL ? "local" : "world";
  const std::string stem = file.substr(file.find_last_of('/') + 1);
  const auto report = [&](const char* bench, const auto& call) {
    const Timing t = time_calls(call);
    pinocchio::Data other(model);
    const double residual = (pinocchio::rnea(model, other, q, v, a) - tau).cwiseAbs().maxCoeff();
    std::printf(
        "{\"bench\": \"%s\", \"engine\": \"pinocchio\", \"build\": \"%s\", \"convention\": \"%s\", "
        "\"model\": \"%s\", \"nv\": %d, \"ns\": %.1f, \"ns_median\": %.1f, \"residual\": %.3g}\n",
        bench, kBuild, name, stem.substr(0, stem.find_last_of('.')).c_str(), model.nv, t.best, t.median, residual);
    std::fflush(stdout);
  };
  report("armature_aba", by_aba);
  report("crba_sparse", by_sparse);
  report("crba_dense", by_dense);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    run(argv[i], pinocchio::Convention::LOCAL);
    run(argv[i], pinocchio::Convention::WORLD);
#ifndef PEER_WHEEL
    run_drives(argv[i], pinocchio::Convention::LOCAL);
    run_drives(argv[i], pinocchio::Convention::WORLD);
#endif
  }
}
