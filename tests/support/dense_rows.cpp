#include "support/dense_rows.hpp"

namespace tarsus::test {

Eigen::MatrixXd dense_jacobian(const Model& model, const Data& data, DelassusRows<double>& rows) {
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(rows.rows(), model.nv);
  std::vector<double> part;
  for (int b = 0; b < rows.blocks(); ++b) {
    const auto block = rows.block(b);
    part.resize(block.dofs.size() * block.stride);
    rows.jacobian(model, data, b, part.data());
    for (std::size_t k = 0; k < block.dofs.size(); ++k) {
      for (int r = 0; r < block.nrow; ++r) J(block.first_row + r, block.dofs[k]) += part[k * block.stride + r];
    }
  }
  return J;
}

}  // namespace tarsus::test
