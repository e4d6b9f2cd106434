// NumPy arrays as the library's spans, without copies, checked on entry.
//
// An argument must be C-contiguous and have Data's scalar type and the exact shape; otherwise an error names the
// argument. Assigned values are copied, and may have any type of number. Batches of worlds are loaded in packs, which
// must be aligned to their size. Arrays made here are aligned. An unaligned array from elsewhere is copied in, and
// copied out if it is a result.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tarsus/base/aligned.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus::python {

namespace nb = nanobind;
using Shape = std::vector<std::size_t>;

/// The buffer protocol's letter for a scalar type.
template <class R>
constexpr char kFormat = sizeof(R) == 8 ? 'd' : 'f';
template <class R>
constexpr const char* kScalarName = sizeof(R) == 8 ? "float64" : "float32";

/// The shape of an array is wrong although its number of elements is right. Python sees tarsus.ShapeError.
class ArrayShapeError : public Error {
 public:
  ArrayShapeError(const char* argument, const Shape& got, const Shape& expected);
};

std::size_t count(const Shape& shape);
std::string text(const Shape& shape);

/// The shape of an array. @throws nb::type_error naming the argument if it is not an array
Shape shape_of(const char* argument, nb::handle object);

/// Address of the array behind a Python object. Checks type, layout and shape.
/// @throws nb::type_error, ShapeError, ArrayShapeError naming the argument
void* checked_array(const char* argument, nb::handle object, char format, const Shape& shape, bool writable);

/// A new NumPy array that owns `values`; read-only for const elements E.
template <class R, class E = R>
nb::object own_array(AlignedVector<R> values, const Shape& shape) {
  auto* kept = new AlignedVector<R>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<AlignedVector<R>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, E>(kept->data(), shape.size(), shape.data(), owner));
}
template <class Values>
nb::object new_array(const Values& values, const Shape& shape) {
  using E = std::decay_t<decltype(*values.begin())>;
  return own_array(AlignedVector<E>(values.begin(), values.end()), shape);
}

/// A NumPy view of memory that `owner` keeps alive; read-only for const elements.
template <class E>
nb::object view_array(E* values, const Shape& shape, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, E>(values, shape.size(), shape.data(), owner));
}

/// A C-contiguous array of type `format` with the numbers of an array, a list or a tuple; `object` itself if it is such
/// an array.
/// @throws nb::type_error naming the argument if its elements are neither integers nor floats
nb::object as_numbers(const char* argument, nb::handle object, char format, const Shape& shape);

/// An input argument as a span.
template <class R>
class Input {
 public:
  Input(const char* argument, nb::handle object, const Shape& shape, std::size_t alignment) : argument_(argument) {
    const R* p = static_cast<const R*>(checked_array(argument, object, kFormat<R>, shape, false));
    values_ = {p, count(shape)};
    if (reinterpret_cast<std::uintptr_t>(p) % alignment == 0) return;
    copy_.assign(values_.begin(), values_.end());
    values_ = copy_;
  }
  /// An argument that is not given.
  Input() = default;
  /// Refers to `values` without checks, for Data's arrays.
  explicit Input(std::span<const R> values) : values_(values) {}

  operator std::span<const R>() const { return values_; }
  std::span<const R> span() const { return values_; }
  const char* argument() const { return argument_; }

 private:
  const char* argument_ = "";
  std::span<const R> values_;
  AlignedVector<R> copy_;
};

/// A copy of an argument's numbers.
inline std::vector<double> numbers(const char* argument, nb::handle object, const Shape& shape) {
  const Input<double> in(argument, object, shape, 1);
  return {in.span().begin(), in.span().end()};
}

/// to[:] = value, which may have any type of number. @throws as checked_array(), also for another shape
template <class R>
void assign(const char* argument, nb::handle value, const Shape& shape, R* to) {
  const nb::object array = as_numbers(argument, value, kFormat<R>, shape);
  const Input<R> in(argument, array, shape, 1);
  std::memmove(to, in.span().data(), in.span().size_bytes());
}

/// A result: the caller's `out` array, or a new one if that is None.
template <class R>
class Output {
 public:
  Output(const char* argument, nb::handle out, const Shape& shape, std::size_t alignment) : argument_(argument) {
    const std::size_t n = count(shape);
    if (out.is_none()) {
      object_ = own_array(AlignedVector<R>(n), shape);
      target_ = {static_cast<R*>(checked_array(argument, object_, kFormat<R>, shape, true)), n};
    } else {
      object_ = nb::borrow(out);
      target_ = {static_cast<R*>(checked_array(argument, out, kFormat<R>, shape, true)), n};
    }
    values_ = target_;
    if (reinterpret_cast<std::uintptr_t>(target_.data()) % alignment == 0) return;
    scratch_.resize(n);
    values_ = scratch_;
  }

  operator std::span<R>() const { return values_; }

  /// Algorithms read their inputs while they write their results. @throws ValueError if the two share memory
  void keep_apart(const Input<R>& input) const { keep_apart(values_, input.span(), input.argument()); }
  /// The same, but the result may overwrite exactly the input.
  void keep_apart_or_in_place(const Input<R>& input) const {
    const auto in = input.span();
    if (in.data() != values_.data() || in.size() != values_.size()) keep_apart(input);
  }
  void keep_apart(const Output& other) const { keep_apart(target_, other.target_, other.argument_); }

  /// The array to return.
  nb::object take() {
    if (!scratch_.empty()) std::memcpy(target_.data(), scratch_.data(), scratch_.size() * sizeof(R));
    return std::move(object_);
  }

 private:
  void keep_apart(std::span<const R> mine, std::span<const R> others, const char* argument) const {
    if (others.empty() || mine.empty() || others.data() + others.size() <= mine.data() ||
        mine.data() + mine.size() <= others.data())
      return;
    throw ValueError(argument_, std::string("in the same memory as ") + argument, "a separate array");
  }

  const char* argument_;
  nb::object object_;
  std::span<R> target_, values_;
  AlignedVector<R> scratch_;
};

}  // namespace tarsus::python
