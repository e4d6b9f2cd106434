#include "array.hpp"

namespace tarsus::python {

ArrayShapeError::ArrayShapeError(const char* argument, const Shape& got, const Shape& expected)
    : Error(std::string(argument) + ": has shape " + text(got) + ", expected " + text(expected)) {}

std::size_t count(const Shape& shape) {
  std::size_t n = 1;
  for (std::size_t s : shape) n *= s;
  return n;
}

std::string text(const Shape& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

namespace {

std::string scalar_name(nb::dlpack::dtype type) {
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  const char* kind = code == nb::dlpack::dtype_code::Float  ? "float"
                     : code == nb::dlpack::dtype_code::Int  ? "int"
                     : code == nb::dlpack::dtype_code::UInt ? "uint"
                     : code == nb::dlpack::dtype_code::Bool ? "bool"
                                                            : "another type of ";
  return kind + std::to_string(type.bits);
}

[[noreturn]] void wrong_type(const char* argument, const std::string& got, nb::dlpack::dtype type, const Shape& shape) {
  throw nb::type_error((std::string(argument) + ": is " + got + ", expected a C-contiguous NumPy array of " +
                        scalar_name(type) + ", shape " + text(shape))
                           .c_str());
}

template <class Array>
bool contiguous(const Array& a) {
  std::int64_t stride = 1;
  for (std::size_t i = a.ndim(); i-- > 0;) {
    if (a.shape(i) != 1 && a.stride(i) != stride) return false;
    stride *= std::int64_t(a.shape(i));
  }
  return true;
}

}  // namespace

void* checked_array(const char* argument, nb::handle object, nb::dlpack::dtype type, const Shape& shape,
                    bool writable) {
  nb::ndarray<nb::ro> a;
  if (!nb::try_cast(object, a, false)) {
    PyErr_Clear();
    wrong_type(argument, std::string("of type ") + nb::type_name(object.type()).c_str(), type, shape);
  }
  if (a.device_type() != nb::device::cpu::value) wrong_type(argument, "on another device", type, shape);
  if (a.dtype() != type) wrong_type(argument, "an array of " + scalar_name(a.dtype()), type, shape);
  Shape got(a.ndim());
  for (std::size_t i = 0; i < got.size(); ++i) got[i] = a.shape(i);
  check_size(argument, count(got), count(shape));
  if (got != shape) throw ArrayShapeError(argument, got, shape);
  if (count(shape) > 0 && !contiguous(a)) wrong_type(argument, "an array that is not contiguous", type, shape);
  if (writable) {
    nb::ndarray<> w;
    if (!nb::try_cast(object, w, false)) {
      PyErr_Clear();
      wrong_type(argument, "a read-only array", type, shape);
    }
  }
  return const_cast<void*>(static_cast<const void*>(a.data()));
}

}  // namespace tarsus::python
