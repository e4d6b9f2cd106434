// Reads data from Python's pickles without running code: numbers, text, lists, tuples, dicts and NumPy's arrays of
// numbers. Any other class or function that a pickle names is an error.  [PEP 3154, PEP 574]
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
  std::string text;                                 ///< text, bytes, or the name of a type or function
  std::vector<std::shared_ptr<PickleValue>> items;  ///< elements of a list or tuple; keys and values of a dict in turn
  std::vector<std::size_t> shape;                   ///< of an array
  std::vector<double> numbers;                      ///< elements of an array, C order

  /// The dict's value for a key, or null.
  const PickleValue* find(std::string_view key) const;
};

/// Whether the bytes begin like a pickle of protocol 2 to 5.
bool looks_like_pickle(std::string_view bytes);

/// @param file for messages   @throws InputError naming what cannot be read
std::shared_ptr<const PickleValue> read_pickle(std::string_view bytes, const std::string& file);

}  // namespace tarsus
