// Checks that XML is well-formed before a tree is built. It loops over the bytes with a stack of open tags, without
// recursion.
#pragma once

#include <string_view>

#include "tarsus/io/xml.hpp"

namespace tarsus {

/// @param text without byte order mark and trailing NULs
/// @throws InputError at the first fault, `file` with its line and column
void scan_xml(std::string_view text, const std::string& file, const XmlLimits& limits);

}  // namespace tarsus
