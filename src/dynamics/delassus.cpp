#include "tarsus/dynamics/delassus.hpp"

#include <algorithm>
#include <functional>

#include "dynamics/delassus_table.hpp"
#include "dynamics/pack_arrays.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

/// Index of a pair p <= q of blocks, column by column, so that the indices of earlier blocks do not change.
int pair(int p, int q) { return q * (q + 1) / 2 + p; }

}  // namespace

template <class R>
void inward(const Model& model, BasicData<R>& data, In<R> y, Out<R> u) {
  check_data(model, data);
  check_sizes(data, model.nv, "y", y, "u", u);
  each_pack(delassus_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.inward(view, s, p(y, model.nv), p(u, model.nv));
  });
}

template <class R>
void outward(const Model& model, BasicData<R>& data, In<R> u, Out<R> x) {
  check_data(model, data);
  check_sizes(data, model.nv, "u", u, "x", x);
  each_pack(delassus_table<R>(data.width()), model, data, [&](auto& k, const ModelView<R>& view, void* s, auto p) {
    k.outward(view, s, p(u, model.nv), p(x, model.nv));
  });
}

template <class R>
void read_u(const Model& model, const BasicData<R>& data, Out<R> u) {
  check_data(model, data);
  check_size("u", u.size(), data.size(model.nv));
  each_pack(delassus_table<R>(data.width()), model, data,
            [&](auto& k, const ModelView<R>& view, const void* s, auto p) { k.read_u(view, s, p(u, model.nv)); });
}

template <class R>
int row_width(int worlds_width) {
  return delassus_table<R>(worlds_width).row_width();
}

template <class R>
DelassusRows<R>::DelassusRows(const Model& model, int width)
    : model_(model), view_(model.view<R>()), width_(width), pad_(row_width<R>(width)) {}

template <class R>
void DelassusRows<R>::clear() {
  rows_ = 0;
  blocks_.clear(), links_.clear(), dofs_.clear();
  force_.clear(), joint_.clear(), used_ = 0;
}

template <class R>
void DelassusRows<R>::keep(int blocks) {
  if (blocks >= this->blocks()) return;
  const Entry& end = blocks_[blocks];
  rows_ = end.first_row;
  links_.resize(end.links), dofs_.resize(end.dofs);
  force_.resize(end.force), joint_.resize(end.joints), used_ = end.W;
  blocks_.resize(blocks);
}

/// Completes a block from the links that the caller appended to links_, and allocates its arrays.
template <class R>
int DelassusRows<R>::append(Entry entry) {
  if (entry.nrow < 1) throw ValueError("nrow", std::to_string(entry.nrow), "at least 1 row");
  entry.first_row = rows_;
  entry.stride = padded(entry.nrow, pad_);
  entry.nlink = int(links_.size() - entry.links);
  entry.dofs = dofs_.size();
  for (std::size_t k = entry.links; k < links_.size(); ++k) {
    const LinkConstants<R>& link = view_.link[links_[k]];
    for (int d = 0; d < qvel_count(link.joint); ++d) dofs_.push_back(link.qvel + d);
  }
  entry.ndof = int(dofs_.size() - entry.dofs);
  const std::size_t line = std::size_t(entry.stride) * width_;
  entry.force = force_.size(), entry.joints = joint_.size(), entry.W = used_;
  if (entry.pair) force_.resize(force_.size() + 12 * line, R(0));
  if (entry.joint) joint_.resize(joint_.size() + (entry.pair ? 2 : entry.ndof) * line, R(0));
  used_ += entry.ndof * line;
  if (W_.size() < used_) W_.resize(used_), DW_.resize(used_);
  rows_ += entry.nrow;
  blocks_.push_back(entry);
  const int index = blocks() - 1;
  if (index < known_) {
    const auto from = known_links_.begin();
    if (!std::equal(links_.begin() + std::ptrdiff_t(entry.links), links_.end(), from + known_start_[index],
                    from + known_start_[index + 1]))
      known_ = index;
  }
  return index;
}

template <class R>
void DelassusRows<R>::climb(int a, int b) {
  while (a >= 0 || b >= 0) {
    if (a == b) b = -1;
    const int i = std::max(a, b);
    links_.push_back(i);
    (a > b ? a : b) = view_.link[i].parent;
  }
}

template <class R>
int DelassusRows<R>::add_block(int a, int b, int nrow, bool joint) {
  check_index("link a", a, model_.njoint());
  if (b != -1) check_index("link b", b, model_.njoint());
  Entry entry{.a = a, .b = b, .nrow = nrow, .pair = true, .joint = joint, .links = links_.size()};
  climb(a, b);
  return append(entry);
}

template <class R>
int DelassusRows<R>::add_joint_block(std::span<const int> joints, int nrow) {
  Entry entry{.a = -1, .b = -1, .nrow = nrow, .pair = false, .joint = true, .links = links_.size()};
  for (const int joint : joints) check_index("joint", joint, model_.njoint());
  found_.resize(std::size_t(model_.njoint()), 0);
  for (const int joint : joints) {
    for (int i = joint; i >= 0 && !found_[i]; i = view_.link[i].parent) found_[i] = 1, links_.push_back(i);
  }
  const auto first = links_.begin() + std::ptrdiff_t(entry.links);
  if (joints.size() > 1) std::sort(first, links_.end(), std::greater<>());
  std::for_each(first, links_.end(), [&](int i) { found_[i] = 0; });
  return append(entry);
}

template <class R>
typename DelassusRows<R>::Block DelassusRows<R>::block(int index) {
  const Entry& e = blocks_[index];
  Block block;
  block.first_row = e.first_row, block.nrow = e.nrow, block.stride = e.stride;
  block.a = e.a, block.b = e.b;
  block.links = std::span<const int>(links_).subspan(e.links, e.nlink);
  block.dofs = std::span<const int>(dofs_).subspan(e.dofs, e.ndof);
  block.force = e.pair ? force_.data() + e.force : nullptr;
  block.joint = e.joint ? joint_.data() + e.joints : nullptr;
  block.W = W_.data() + e.W, block.DW = DW_.data() + e.W;
  return block;
}

template <class R>
void DelassusRows<R>::sweep(const Model& model, const BasicData<R>& data, int pack) {
  check_data(model, data);
  if (data.width() != width_)
    throw ValueError("data", std::to_string(data.width()) + " lanes wide",
                     std::to_string(width_) + " lanes, the width of these rows");
  const DelassusTable<R>& kernels = delassus_table<R>(width_);
  for (int i = 0; i < blocks(); ++i) {
    const RowBlockView<R> view = view_of<R>(block(i));
    if (view.force) {
      kernels.sweep_pair(view_, data.state(pack), view);
    } else {
      const std::size_t need = std::size_t(6) * view.nlink * pad_ * width_;
      if (scratch_.size() < need) scratch_.resize(need);
      kernels.sweep_joints(view_, data.state(pack), view, scratch_.data());
    }
  }
}

/// Finds the runs of DoFs that each pair of blocks shares. Both lists of links are descending, so one walk along both
/// is sufficient.
template <class R>
void DelassusRows<R>::find_shared() {
  if (known_ >= blocks()) return;
  shared_start_.resize(std::size_t(pair(0, known_)) + 1), shared_.resize(shared_start_.back());
  known_start_.resize(std::size_t(known_) + 1), known_links_.resize(known_start_.back());
  for (; known_ < blocks(); ++known_) {
    const Entry& y = blocks_[known_];
    const auto from = links_.begin() + std::ptrdiff_t(y.links);
    known_links_.insert(known_links_.end(), from, from + y.nlink);
    known_start_.push_back(int(known_links_.size()));
    for (int p = 0; p <= known_; ++p) {
      const Entry& x = blocks_[p];
      int i = 0, j = 0, at_i = 0, at_j = 0;
      while (i < x.nlink && j < y.nlink) {
        const int li = links_[x.links + i], lj = links_[y.links + j];
        const int ni = qvel_count(view_.link[li].joint), nj = qvel_count(view_.link[lj].joint);
        if (li == lj) {
          const bool extends = int(shared_.size()) > shared_start_.back() &&
                               shared_.back().first + shared_.back().count == at_i &&
                               shared_.back().second + shared_.back().count == at_j;
          if (extends)
            shared_.back().count += ni;
          else
            shared_.push_back({at_i, at_j, ni});
        }
        if (li >= lj) ++i, at_i += ni;
        if (lj >= li) ++j, at_j += nj;
      }
      shared_start_.push_back(int(shared_.size()));
    }
  }
}

template <class R>
std::span<const RowOverlap> DelassusRows<R>::overlaps(int i, int j) {
  find_shared();
  const int both = pair(i, j);
  return std::span(shared_).subspan(shared_start_[both], shared_start_[both + 1] - shared_start_[both]);
}

template <class R>
int DelassusRows<R>::leading_dimension() const {
  return rows_ + pad_;
}

template <class R>
void DelassusRows<R>::gram(R* A, int ld) {
  const DelassusTable<R>& kernels = delassus_table<R>(width_);
  const std::size_t w = width_;
  // Columns in ascending order: the padding that a block writes to its right is overwritten by the next block or lies
  // above the diagonal.
  for (std::size_t p = 0; p < blocks_.size(); ++p) {
    const Entry& x = blocks_[p];
    for (std::size_t q = p; q < blocks_.size(); ++q) {
      const Entry& y = blocks_[q];
      R* out = A + (std::size_t(x.first_row) * ld + y.first_row) * w;
      bool add = false;
      for (const RowOverlap& run : overlaps(int(p), int(q))) {
        kernels.gram(run.count, x.nrow, W_.data() + x.W + std::size_t(run.first) * x.stride * w, x.stride,
                     DW_.data() + y.W + std::size_t(run.second) * y.stride * w, y.stride, add, p == q, out, ld);
        add = true;
      }
      if (!add) {
        for (int i = 0; i < x.nrow; ++i) std::fill_n(out + std::size_t(i) * ld * w, y.nrow * w, R(0));
      }
    }
  }
}

template <class R>
void DelassusRows<R>::jacobian(const Model& model, const BasicData<R>& data, int index, R* out) {
  check_data(model, data);
  const Entry& e = blocks_[index];
  if (e.pair)
    delassus_table<R>(width_).pair_jacobian(view_, data.state(0), view_of<R>(block(index)), out);
  else
    std::copy_n(joint_.data() + e.joints, e.ndof * e.stride, out);
}

template <class R>
void DelassusRows<R>::own_gram(int block, R* A) const {
  const Entry& e = blocks_[block];
  const R *W = W_.data() + e.W, *DW = DW_.data() + e.W;
  delassus_table<R>(width_).gram(e.ndof, e.nrow, W, e.stride, DW, e.stride, false, true, A, e.stride);
}

template <class R>
void DelassusRows<R>::diagonal(Out<R> A) const {
  for (const Entry& e : blocks_) {
    for (int r = 0; r < e.nrow; ++r) {
      const R *W = W_.data() + e.W + r, *DW = DW_.data() + e.W + r;
      R sum = 0;
      for (int d = 0; d < e.ndof; ++d, W += e.stride, DW += e.stride) sum += *W * *DW;
      A[e.first_row + r] = sum;
    }
  }
}

template <class R>
void DelassusRows<R>::velocity(int block, const R* u, R* Jv) const {
  const Entry& e = blocks_[block];
  delassus_table<R>(width_).velocity(e.ndof, dofs_.data() + e.dofs, e.nrow, e.stride, DW_.data() + e.W, u, Jv);
}

template <class R>
void DelassusRows<R>::velocity(const R* u, R* Jv) {
  for (int b = 0; b < blocks(); ++b) velocity(b, u, Jv + std::size_t(blocks_[b].first_row) * width_);
}

template <class R>
void DelassusRows<R>::velocity_of(const BasicData<R>& data, In<R> v, Out<R> Jv) const {
  for (const Entry& e : blocks_) {
    const int n = e.stride;
    for (int r = 0; r < e.nrow; ++r) {
      R sum = 0;
      for (int side = 0; e.pair && side < 2; ++side) {
        const int link = side ? e.b : e.a;
        if (link < 0) continue;
        const Motion<R>& a = data.links()[link].a;
        const R* f = force_.data() + e.force + 6 * side * n + r;
        for (int k = 0; k < 3; ++k) sum += f[k * n] * a.w[k], sum += f[(3 + k) * n] * a.v[k];
        if (e.joint) sum += joint_[e.joints + side * n + r] * v[view_.link[link].qvel];
      }
      for (int d = 0; !e.pair && d < e.ndof; ++d) sum += joint_[e.joints + d * n + r] * v[dofs_[e.dofs + d]];
      Jv[e.first_row + r] = sum;
    }
  }
}

template <class R>
void DelassusRows<R>::push(int block, const R* lambda, R* u, R sign) const {
  const Entry& e = blocks_[block];
  delassus_table<R>(width_).push(e.ndof, dofs_.data() + e.dofs, e.nrow, e.stride, W_.data() + e.W, lambda, sign, u);
}

template <class R>
void DelassusRows<R>::push(const R* lambda, R* u, R sign) const {
  for (int b = 0; b < blocks(); ++b) push(b, lambda + std::size_t(blocks_[b].first_row) * width_, u, sign);
}

#define TARSUS_INSTANTIATE(R)                                           \
  template void inward<R>(const Model&, BasicData<R>&, In<R>, Out<R>);  \
  template void outward<R>(const Model&, BasicData<R>&, In<R>, Out<R>); \
  template void read_u<R>(const Model&, const BasicData<R>&, Out<R>);   \
  template int row_width<R>(int);                                       \
  template class DelassusRows<R>;
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
