// Assembly and factorisation of J₁ M^-1 J₀ᵀ (delassus.hpp).
#include "solver/delassus.hpp"

#include <algorithm>
#include <cmath>

#include "tarsus/base/error.hpp"

namespace tarsus {

bool Delassus::analyze(const RowPattern& pattern, const MassOperator& mass, bool dense) {
  dense = dense || mass.inverse_diagonal().empty();
  if (mass_ == &mass && dense_ == dense && pattern_.start == pattern.start && pattern_.column == pattern.column)
    return false;
  mass_ = &mass, pattern_ = pattern, dense_ = dense;
  base_.assign(pattern.nonzeros(), 0.0);
  weighted_.assign(pattern.nonzeros(), 0.0);
  terms_.clear();
  if (dense_) return true;
  const std::span<const double> inverse = mass.inverse_diagonal();
  struct Touch {
    int row, entry;
  };
  std::vector<std::vector<Touch>> touching(mass.size());
  for (int k = 0; k < pattern.nrow(); ++k) {
    for (int p = pattern.start[k]; p < pattern.start[k + 1]; ++p) {
      if (inverse[pattern.column[p]] != 0) touching[pattern.column[p]].push_back({k, p});
    }
  }
  std::vector<std::vector<int>> neighbours(pattern.nrow());
  for (const auto& rows : touching) {
    for (const Touch a : rows) {
      for (const Touch b : rows) neighbours[a.row].push_back(b.row);
    }
  }
  std::vector<int> start{0}, column;
  for (auto& list : neighbours) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    column.insert(column.end(), list.begin(), list.end());
    start.push_back(static_cast<int>(column.size()));
  }
  sparse_.analyze(pattern.nrow(), start, column);
  for (const auto& rows : touching) {
    for (const Touch a : rows) {
      for (const Touch b : rows) terms_.push_back({sparse_.slot(a.row, b.row), a.entry, b.entry});
    }
  }
  std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.slot < b.slot; });
  return true;
}

void Delassus::set_base(std::span<const double> jacobian) {
  check_size("jacobian", jacobian.size(), base_.size());
  std::copy(jacobian.begin(), jacobian.end(), base_.begin());
  const std::span<const double> inverse = mass_->inverse_diagonal();
  if (!inverse.empty()) {
    for (std::size_t p = 0; p < base_.size(); ++p) weighted_[p] = base_[p] * inverse[pattern_.column[p]];
    return;
  }
  columns_.resize(mass_->size(), pattern_.nrow());
  std::vector<double> force(mass_->size());
  for (int k = 0; k < pattern_.nrow(); ++k) {
    std::fill(force.begin(), force.end(), 0.0);
    for (int p = pattern_.start[k]; p < pattern_.start[k + 1]; ++p) force[pattern_.column[p]] += base_[p];
    mass_->apply_inverse(force, {columns_.col(k).data(), force.size()});
  }
}

void Delassus::assemble(std::span<const double> jacobian, bool symmetric) {
  sparse_.clear();
  const std::span<double> values = sparse_.values();
  // The terms are sorted by slot; the lower triangle comes last and is not read in the symmetric case.
  const std::int64_t end = symmetric ? sparse_.size() + sparse_.fill() : static_cast<std::int64_t>(values.size());
  for (const Term& term : terms_) {
    if (term.slot >= end) break;
    values[term.slot] += jacobian[term.first] * weighted_[term.second];
  }
}

namespace {

Eigen::MatrixXd dense_product(const RowPattern& pattern, std::span<const double> jacobian,
                              const Eigen::MatrixXd& columns) {
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(pattern.nrow(), columns.cols());
  for (int k = 0; k < pattern.nrow(); ++k) {
    for (int p = pattern.start[k]; p < pattern.start[k + 1]; ++p)
      a.row(k) += jacobian[p] * columns.row(pattern.column[p]);
  }
  return a;
}

Eigen::MatrixXd weighted_transpose(const RowPattern& pattern, std::span<const double> weighted, int nv) {
  Eigen::MatrixXd columns = Eigen::MatrixXd::Zero(nv, pattern.nrow());
  for (int k = 0; k < pattern.nrow(); ++k) {
    for (int p = pattern.start[k]; p < pattern.start[k + 1]; ++p) columns(pattern.column[p], k) += weighted[p];
  }
  return columns;
}

PivotReport judge(const Eigen::VectorXd& pivots) {
  PivotReport report;
  const double largest = pivots.cwiseAbs().maxCoeff();
  for (int k = 0; k < pivots.size(); ++k) {
    const double ratio = std::abs(pivots[k]) / largest;
    if (!(ratio >= report.ratio)) report.ratio = std::isnan(ratio) ? 0.0 : ratio, report.worst = k;
  }
  return report;
}

}  // namespace

PivotReport Delassus::factor(std::span<const double> jacobian, bool symmetric) {
  symmetric_ = symmetric;
  if (!dense_) {
    assemble(jacobian, symmetric);
    return symmetric ? sparse_.factor_symmetric() : sparse_.factor();
  }
  if (pattern_.nrow() == 0) return {};
  if (!mass_->inverse_diagonal().empty()) columns_ = weighted_transpose(pattern_, weighted_, mass_->size());
  const Eigen::MatrixXd product = dense_product(pattern_, jacobian, columns_);
  if (symmetric) return judge(ldlt_.compute(product).vectorD());
  return judge(lu_.compute(product).matrixLU().diagonal());
}

PivotReport Delassus::factor_symmetric_dropping(double threshold) {
  symmetric_ = true;
  assemble(base_, true);
  return sparse_.factor_symmetric_dropping(threshold);
}

void Delassus::solve(std::span<double> rhs) const {
  if (!dense_) return sparse_.solve(rhs);
  if (rhs.empty()) return;
  Eigen::Map<Eigen::VectorXd> b(rhs.data(), static_cast<Eigen::Index>(rhs.size()));
  b = symmetric_ ? Eigen::VectorXd(ldlt_.solve(b)) : Eigen::VectorXd(lu_.solve(b));
}

void Delassus::displace(std::span<const double> multiplier, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  for (int k = 0; k < pattern_.nrow(); ++k) displace_row(k, multiplier[k], out);
}

double Delassus::diagonal(int row, std::span<const double> gradient) const {
  double sum = 0;
  const bool sparse = !mass_->inverse_diagonal().empty();
  for (int p = pattern_.start[row]; p < pattern_.start[row + 1]; ++p)
    sum += gradient[p - pattern_.start[row]] * (sparse ? weighted_[p] : columns_(pattern_.column[p], row));
  return sum;
}

void Delassus::displace_row(int row, double amount, std::span<double> out) const {
  if (mass_->inverse_diagonal().empty()) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += columns_(static_cast<Eigen::Index>(i), row) * amount;
    return;
  }
  for (int p = pattern_.start[row]; p < pattern_.start[row + 1]; ++p) out[pattern_.column[p]] += weighted_[p] * amount;
}

}  // namespace tarsus
