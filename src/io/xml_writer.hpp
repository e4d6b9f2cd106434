// Elements and attributes of a document being written; numbers in the shortest form that reads back to the same bits.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/math/vec.hpp"

namespace tarsus {

inline std::string to_text(const Vec3d& v) { return fmt::format("{} {} {}", v.x, v.y, v.z); }
inline std::string to_text(const Quatd& q) { return fmt::format("{} {} {} {}", q.w, q.x, q.y, q.z); }
template <class Range>
std::string join_numbers(const Range& values) {
  std::string out;
  for (const auto& v : values) fmt::format_to(std::back_inserter(out), "{}{}", out.empty() ? "" : " ", v);
  return out;
}

class XmlWriter {
 public:
  XmlWriter() = default;
  explicit XmlWriter(pugi::xml_node node) : node_(node) {}
  explicit operator bool() const { return bool(node_); }

  XmlWriter child(const char* name) const { return XmlWriter(pugi::xml_node(node_).append_child(name)); }
  void comment(std::string text) const {
    for (std::size_t i; (i = text.find("--")) != std::string::npos;) text[i] = '~';  // "--" would end the comment
    pugi::xml_node(node_).append_child(pugi::node_comment).set_value(text.c_str());
  }

  void set(const char* name, const std::string& value) const {
    pugi::xml_node(node_).append_attribute(name).set_value(value.c_str());
  }
  void set(const char* name, const char* value) const { set(name, std::string(value)); }
  void set(const char* name, double value) const { set(name, fmt::format("{}", value)); }
  void set(const char* name, int value) const { set(name, fmt::format("{}", value)); }
  void set(const char* name, bool value) const { set(name, std::string(value ? "true" : "false")); }
  void set(const char* name, const Vec3d& v) const { set(name, to_text(v)); }
  void set(const char* name, const Quatd& q) const { set(name, to_text(q)); }

  /// Sets the attribute unless its value is the one that readers assume.
  template <class T, class U>
  void set_unless(const char* name, const T& value, const U& usual) const {
    if (!(value == usual)) set(name, value);
  }
  void set_name(const std::string& value) const {
    if (!value.empty()) set("name", value);
  }
  template <class Range>
  void set_list(const char* name, const Range& values) const {
    if (std::size(values) > 0) set(name, join_numbers(values));
  }
  void set_place(const Vec3d& position, const Quatd& orientation) const {
    if (position.x != 0 || position.y != 0 || position.z != 0) set("pos", position);
    if (orientation.w != 1 || orientation.x != 0 || orientation.y != 0 || orientation.z != 0) set("quat", orientation);
  }

 private:
  pugi::xml_node node_;
};

/// Puts every element on a separate line, indented by two blanks a level up to a maximum depth. With unlimited
/// indentation a chain of n bodies would have n² blanks.
class XmlIndentation : public pugi::xml_tree_walker {
  bool for_each(pugi::xml_node& node) override {
    if (node.type() == pugi::node_pcdata || depth() == 0) return true;
    const auto line = [](int depth) { return "\n" + std::string(std::size_t(2 * std::min(depth, kDeepest)), ' '); };
    node.parent().insert_child_before(pugi::node_pcdata, node).set_value(line(depth()).c_str());
    if (!node.next_sibling()) node.parent().append_child(pugi::node_pcdata).set_value(line(depth() - 1).c_str());
    return true;
  }
  static constexpr int kDeepest = 20;
};

/// Name of a file with a full path as seen from a folder, if there is one; other names as they are.
inline std::string seen_from(const std::filesystem::path& folder, const std::string& file) {
  const std::filesystem::path path = file;
  return folder.empty() || !path.is_absolute() ? file : path.lexically_proximate(folder).generic_string();
}

/// Prefix of an entry that is written, although other readers may refuse it or need another file.
inline constexpr std::string_view kKeptPrefix = "kept: ";

/// Lists what a document lacks, and how often, in a comment at its top. Appends the same lines to `losses`, if given.
inline void write_losses(pugi::xml_document& document, const std::map<std::string, int>& lost,
                         std::vector<std::string>* losses) {
  std::string text;
  for (const auto& [what, count] : lost) {
    if (count == 0) continue;
    const std::string line = fmt::format("{}{} ({})", what.starts_with(kKeptPrefix) ? "" : "lost: ", what, count);
    text += "\n  " + line;
    if (losses) losses->push_back(line);
  }
  if (!text.empty()) document.prepend_child(pugi::node_comment).set_value(text.append("\n").c_str());
}

/// Indents the document in place and returns its text.
inline std::string to_text(pugi::xml_document& document) {
  XmlIndentation indentation;
  document.traverse(indentation);
  std::ostringstream out;
  document.save(out, "", 0, pugi::encoding_utf8);
  return out.str();
}

}  // namespace tarsus
