// A vector whose storage starts on a 64-byte boundary, so that packs of any width can be loaded from it.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tarsus {

template <class E>
struct AlignedAllocator {
  using value_type = E;
  static constexpr std::align_val_t kAlignment{64};

  AlignedAllocator() = default;
  template <class F>
  AlignedAllocator(const AlignedAllocator<F>&) {}
  E* allocate(std::size_t n) { return static_cast<E*>(::operator new(n * sizeof(E), kAlignment)); }
  void deallocate(E* p, std::size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const AlignedAllocator&) const { return true; }
};

template <class E>
using AlignedVector = std::vector<E, AlignedAllocator<E>>;

/// Grows a scratch buffer to at least `size`. It never shrinks: growing again would set the added elements to zero.
template <class V>
void at_least(V& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size);
}

}  // namespace tarsus
