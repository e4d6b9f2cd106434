// Stiff drives in float: maba() and minv() of characters with ball joints against a dense solve in double, for one
// world and in lanes. K ranges from the inertia of a limb to far above all inertias of the model.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/model_file.hpp"

#ifndef TARSUS_DOUBLE_ONLY
namespace tarsus::test {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
constexpr int kPostures = 30;

std::vector<float> narrow(const std::vector<double>& v) { return {v.begin(), v.end()}; }
/// The values rounded to float, as double: both sides get the same numbers.
std::vector<double> rounded(const std::vector<double>& v) {
  const std::vector<float> f = narrow(v);
  return {f.begin(), f.end()};
}
/// The largest error relative to the largest entry.
double error(const AlignedVector<float>& x, const Vector& expected, const DataFloat& data, int world) {
  std::vector<float> mine(std::size_t(expected.size()));
  data.get(x, int(expected.size()), world, mine);
  const Vector wide = Eigen::Map<const Eigen::VectorXf>(mine.data(), expected.size()).cast<double>();
  return (wide - expected).lpNorm<Eigen::Infinity>() / expected.lpNorm<Eigen::Infinity>();
}

/// The same K for all joints but the root. The forces are those of drives: as large as K where they demand an
/// acceleration.
struct Stiff {
  Model model;
  std::vector<double> K;
  Random random{11};

  Stiff(const std::string& file, double k)
      : model(compile(read_model(TARSUS_SOURCE_DIR "/models/" + file, {}))), K(std::size_t(model.nv), k) {
    for (const Joint& joint : model.joints) {
      if (joint.type == JointType::free) std::fill_n(K.begin() + joint.qvel, 6, 0.0);
    }
  }

  struct Posture {
    std::vector<double> qpos, qvel, Q;
    Vector qacc, minv;  ///< by dense factors in double
  };
  Posture draw(Data& data) {
    const State s = random_state(random, model);
    Posture p{rounded(s.qpos), rounded(s.qvel), s.tau, {}, {}};
    for (int i = 0; i < model.nv; ++i) p.Q[i] += K[i] * random.uniform();
    p.Q = rounded(p.Q);
    Matrix M(model.nv, model.nv);
    crba<double>(model, data, p.qpos, {M.data(), std::size_t(M.size())});
    M.diagonal() -= Eigen::Map<const Vector>(model.armature.data(), model.nv);  // maba() takes K alone
    M.diagonal() += Eigen::Map<const Vector>(K.data(), model.nv);
    Vector bias(model.nv);
    bias_force<double>(model, data, p.qpos, p.qvel, {bias.data(), std::size_t(model.nv)});
    const Vector Q = Eigen::Map<const Vector>(p.Q.data(), model.nv);
    p.qacc = spd_solve(M, Q - bias), p.minv = spd_solve(M, Q);
    return p;
  }

  /// The largest error over all postures, in batches of `worlds` worlds; the neighbours have other postures.
  double worst(int worlds) {
    Data wide(model);
    DataFloat data(model, worlds);
    AlignedVector<float> qpos(data.size(model.nq)), qvel(data.size(model.nv)), Q(data.size(model.nv)),
        inertia(data.size(model.nv)), qacc(data.size(model.nv)), x(data.size(model.nv));
    double most = 0;
    for (int done = 0; done < kPostures; done += worlds) {
      std::vector<Posture> postures;
      for (int lane = 0; lane < data.packs() * data.width(); ++lane) {  // spare lanes too
        postures.push_back(draw(wide));
        const Posture& p = postures.back();
        data.set(qpos, model.nq, lane, narrow(p.qpos)), data.set(qvel, model.nv, lane, narrow(p.qvel));
        data.set(Q, model.nv, lane, narrow(p.Q)), data.set(inertia, model.nv, lane, narrow(K));
      }
      maba<float>(model, data, qpos, qvel, Q, inertia, qacc);
      minv<float>(model, data, Q, x);
      for (int world = 0; world < worlds; ++world) {
        most = std::max(most, error(qacc, postures[world].qacc, data, world));
        most = std::max(most, error(x, postures[world].minv, data, world));
      }
    }
    return most;
  }
};

TEST(StiffDrives, FloatKeepsItsPrecisionWhateverTheDrives) {
  for (const char* file : {"humanoid.xml", "dog.xml"}) {
    for (const double k : {0.0, 0.01, 0.1, 1.0, 10.0, 133.0, 1e4, 1e6}) {
      for (const int worlds : {1, 6}) {
        const double worst = Stiff(file, k).worst(worlds);
        EXPECT_LT(worst, 1e-5) << file << ", K = " << k << ", " << worlds << " worlds at once";
      }
    }
  }
}

}  // namespace
}  // namespace tarsus::test
#endif
