// Counts allocations of the whole program and the memory held. Include it in one source of a program only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
std::atomic<long> held_bytes{0};
}  // namespace

#ifdef TARSUS_SANITIZED  // sanitizers have operators of their own and report every block
extern "C" {
std::size_t __sanitizer_get_allocated_size(const volatile void* p);
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void*, std::size_t),
                                              void (*given)(const volatile void*));
}

namespace {
[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t size) { ++allocations, held_bytes += long(size); },
    [](const volatile void* p) { held_bytes -= p ? long(__sanitizer_get_allocated_size(p)) : 0; });
}  // namespace
#else
namespace {
void* take(std::size_t size, std::size_t alignment) {
  // The size is stored in front of the memory, in the room that `alignment` leaves.
  const std::size_t room = std::max(alignment, sizeof(std::max_align_t));
  void* whole = std::aligned_alloc(room, (size + 2 * room - 1) / room * room);
  if (!whole) throw std::bad_alloc();
  *static_cast<std::size_t*>(whole) = size;
  ++allocations, held_bytes += long(size);
  return static_cast<char*>(whole) + room;
}
void give(void* p, std::size_t alignment) noexcept {
  if (!p) return;
  void* whole = static_cast<char*>(p) - std::max(alignment, sizeof(std::max_align_t));
  held_bytes -= long(*static_cast<std::size_t*>(whole));
  std::free(whole);
}
}  // namespace

void* operator new(std::size_t size) { return take(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) { return take(size, std::size_t(alignment)); }
void operator delete(void* p) noexcept { give(p, 1); }
void operator delete(void* p, std::size_t) noexcept { give(p, 1); }
void operator delete(void* p, std::align_val_t alignment) noexcept { give(p, std::size_t(alignment)); }
void operator delete(void* p, std::size_t, std::align_val_t alignment) noexcept { give(p, std::size_t(alignment)); }
#endif
