// Rows of DelassusRows as a dense matrix.
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "tarsus/dynamics/delassus.hpp"

namespace tarsus::test {

/// J [nrow][nv] of all blocks, at the poses in `data`'s workspace.
Eigen::MatrixXd dense_jacobian(const Model& model, const Data& data, DelassusRows<double>& rows);

}  // namespace tarsus::test
