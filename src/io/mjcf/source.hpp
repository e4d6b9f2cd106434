// One MJCF model as text: its main file, the files that it includes, its compiler settings and default classes. A model
// that attaches others has one Source for each.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/mjcf/states.hpp"
#include "tarsus/io/read_options.hpp"

namespace tarsus::mjcf {

class Source {
 public:
  /// Reads the includes, the compiler settings and the default classes.
  Source(XmlDocument main, std::filesystem::path directory, const ReadOptions& options, DiagnosticSink& sink);

  /// What an attached model takes from the main one's compiler, as in MuJoCo.
  void follow(const Compiler& main) {
    compiler_.fit_bounding_box = main.fit_bounding_box, compiler_.strip_path = main.strip_path;
  }

  XmlElement root() const { return documents_.front().root(); }
  const std::filesystem::path& directory() const { return directory_; }
  const Compiler& compiler() const { return compiler_; }
  /// Canonical paths of its main file and of those that it includes.
  const std::set<std::string>& files() const { return files_; }
  const Defaults& main_defaults() const { return *classes_.find("")->second; }

  /// Child elements, with every <include> replaced by its file's contents.
  std::vector<XmlElement> items(const XmlElement& parent) const;
  /// The contents of all top-level elements of one name, in order.
  std::vector<XmlElement> section(std::string_view name) const;

  bool has_section(std::string_view name) const;

  /// The class named by `attribute` ("class" or "childclass"), or `otherwise` if the element names none.
  const Defaults& defaults(const XmlElement& e, const Defaults& otherwise, const char* attribute = "class") const;

  /// The path of a mesh or texture. It is searched in the compiler's folder relative to the main file, then as in
  /// MuJoCo beside the file that names it, then in the compiler's folder relative to that file, then beside the main
  /// file.
  std::filesystem::path asset_path(const std::string& file, const std::string& folder, const Location& used_at) const;
  /// The path of an attached model: beside the file that names it, as in MuJoCo, else relative to the main file.
  std::filesystem::path model_path(const std::string& file, const Location& used_at) const;

 private:
  std::filesystem::path folder_of(const Location& used_at) const;
  void load_includes(const ReadOptions& options, DiagnosticSink& sink);
  void load_include(const XmlElement& e, const ReadOptions& options, DiagnosticSink& sink);
  void read_defaults(const XmlElement& top);
  void read_default_element(const XmlElement& e, Defaults& defaults);
  Defaults* open_class(const XmlElement& e, Defaults* parent);

  std::filesystem::path directory_;
  std::vector<XmlDocument> documents_;
  std::set<std::string> files_;                 ///< canonical paths already read
  std::map<const void*, XmlElement> included_;  ///< <include> element → root of its file
  std::size_t included_bytes_ = 0;
  Compiler compiler_;
  std::map<std::string, std::unique_ptr<Defaults>, std::less<>> classes_;  ///< "" is the top class, whatever its name
};

}  // namespace tarsus::mjcf
