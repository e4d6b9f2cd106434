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

const char* scalar_name(char format) {
  switch (format) {
    case 'd': return "float64";
    case 'f': return "float32";
    case '?': return "bool";
    case 'L': return "uint64";
    default: return "int64";
  }
}

[[noreturn]] void wrong_type(const char* argument, const std::string& got, char format, const Shape& shape) {
  throw nb::type_error((std::string(argument) + ": is " + got + ", expected a C-contiguous NumPy array of " +
                        scalar_name(format) + ", shape " + text(shape))
                           .c_str());
}

/// A view of an object's memory through Python's buffer protocol, held while the object is checked.
struct Buffer {
  Py_buffer view;
  bool open;
  explicit Buffer(nb::handle object) : open(PyObject_GetBuffer(object.ptr(), &view, PyBUF_RECORDS_RO) == 0) {
    if (!open) PyErr_Clear();
  }
  ~Buffer() {
    if (open) PyBuffer_Release(&view);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
};

/// "an array of int64", "of type list".
std::string kind_of(nb::handle object) {
  if (nb::hasattr(object, "dtype") && nb::hasattr(object, "shape")) {
    const nb::object dtype = object.attr("dtype");
    const std::string kind = nb::str(nb::handle(dtype)).c_str();  // str() of it; nb::str of an accessor would borrow
    const bool foreign = nb::hasattr(object, "__dlpack__") && !PyObject_CheckBuffer(object.ptr());
    return "an array of " + kind + (foreign ? ", not NumPy's (numpy.from_dlpack() shares its memory)" : "");
  }
  return std::string("of type ") + nb::type_name(object.type()).c_str();
}

}  // namespace

Shape shape_of(const char* argument, nb::handle object) {
  const Buffer buffer(object);
  if (!buffer.open) {
    throw nb::type_error(
        (std::string(argument) + ": is " + kind_of(object) + ", expected a C-contiguous NumPy array").c_str());
  }
  return Shape(buffer.view.shape, buffer.view.shape + buffer.view.ndim);
}

void* checked_array(const char* argument, nb::handle object, char format, const Shape& shape, bool writable) {
  const Buffer buffer(object);
  const Py_buffer& view = buffer.view;
  // NumPy calls the same 64-bit type long or long long.
  const auto plain = [](char c) { return c == 'q' ? 'l' : c == 'Q' ? 'L' : c; };
  if (!buffer.open || plain(view.format[0]) != format || view.format[1] != 0) {
    wrong_type(argument, kind_of(object), format, shape);
  }
  bool same = std::size_t(view.ndim) == shape.size();
  for (std::size_t i = 0; same && i < shape.size(); ++i) same = std::size_t(view.shape[i]) == shape[i];
  if (!same) {
    const Shape got(view.shape, view.shape + view.ndim);
    if (got.size() == 1 && shape.size() == 1) check_size(argument, got[0], shape[0]);
    throw ArrayShapeError(argument, got, shape);
  }
  if (!PyBuffer_IsContiguous(&view, 'C')) wrong_type(argument, "an array that is not contiguous", format, shape);
  if (writable && view.readonly) wrong_type(argument, "a read-only array", format, shape);
  return view.buf;
}

nb::object as_numbers(const char* argument, nb::handle object, char format, const Shape& shape) {
  {
    const Buffer buffer(object);
    if (buffer.open && buffer.view.format[0] == format && buffer.view.format[1] == 0 &&
        PyBuffer_IsContiguous(&buffer.view, 'C'))
      return nb::borrow(object);
  }
  const auto no_numbers = [&](const std::string& with) {
    return nb::type_error((std::string(argument) + ": is " + kind_of(object) + with +
                           ", expected an array or a list of real numbers, shape " + text(shape))
                              .c_str());
  };
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array;
  try {
    array = numpy.attr("asarray")(object);
  } catch (nb::python_error&) {
    throw no_numbers(" with rows of different lengths");
  }
  const nb::object dtype = array.attr("dtype");
  const std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  if (kind != "f" && kind != "i" && kind != "u") {
    const bool list = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
    throw no_numbers(list ? std::string(" with ") + nb::str(nb::handle(dtype)).c_str() + " in it" : "");
  }
  return numpy.attr("asarray")(array, scalar_name(format), "C");
}

}  // namespace tarsus::python
