// Data out of Python's pickles without running anything: numbers, text, lists, tuples, dicts and NumPy's arrays of
// numbers. Every other class or function that a pickle names is refused by its name.  [PEP 3154, PEP 574]
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"

namespace tarsus {

struct PickleValue {
  enum class Kind { none, number, text, bytes, list, tuple, dict, array, type, function } kind = Kind::none;
  double number = 0;
  std::string text;                                 ///< also bytes, and the name of a type or function
  std::vector<std::shared_ptr<PickleValue>> items;  ///< of a list or tuple; of a dict: key, value, key, value, …
  std::vector<std::size_t> shape;                   ///< of an array
  std::vector<double> numbers;                      ///< of an array, C order

  /// The dict's value for a key, or null.
  const PickleValue* find(std::string_view key) const;
};

/// Whether bytes begin as a pickle of protocol 2 to 5 does.
bool looks_like_pickle(std::string_view bytes);

/// @param file for messages   @throws InputError naming what cannot be read
std::shared_ptr<const PickleValue> read_pickle(std::string_view bytes, const std::string& file);

}  // namespace tarsus
