#include "tarsus/io/xyz.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <sstream>
#include <utility>

#include "io/md_text.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

struct Property {
  std::string name;
  char type;
  int columns;
};

struct Value {
  std::string_view key, text;
  std::size_t column;  // column of the text, from 1
};

// Splits a comment line into key=value and key="value with blanks". Bare words are skipped.
std::vector<Value> key_values(std::string_view line, const Location& where) {
  std::vector<Value> out;
  std::size_t at = 0;
  const auto blank = [&](std::size_t i) { return line[i] == ' ' || line[i] == '\t'; };
  while (at < line.size()) {
    while (at < line.size() && blank(at)) ++at;
    if (at >= line.size()) break;
    const std::size_t begin = at;
    while (at < line.size() && !blank(at) && line[at] != '=') ++at;
    const std::string_view key = line.substr(begin, at - begin);
    if (at >= line.size() || line[at] != '=') {
      if (at == begin) ++at;
      continue;  // a bare word: plain XYZ comments are free text
    }
    ++at;
    const bool quoted = at < line.size() && (line[at] == '"' || line[at] == '\'');
    const char quote_mark = quoted ? line[at++] : ' ';
    const std::size_t from = at;
    while (at < line.size() && (quoted ? line[at] != quote_mark : !blank(at))) ++at;
    if (quoted && at >= line.size()) {
      Location place = where;
      place.column = static_cast<int>(from);
      throw InputError(place, fmt::format("the quotation mark of {}= is not closed", key));
    }
    out.push_back({key, line.substr(from, at - from), from + 1});
    if (quoted) ++at;
  }
  return out;
}

std::vector<Property> properties(const Value& value, Location where) {
  where.column = static_cast<int>(value.column);
  std::vector<std::string> parts{""};
  for (const char c : value.text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() % 3 != 0) throw InputError(where, "Properties must be a list name:type:columns:name:type:columns…");
  std::vector<Property> out;
  for (std::size_t k = 0; k < parts.size(); k += 3) {
    const Parsed<int> columns = parse_integer(parts[k + 2]);
    const bool known = parts[k + 1] == "S" || parts[k + 1] == "R" || parts[k + 1] == "I" || parts[k + 1] == "L";
    if (!columns || columns.value < 1 || columns.value > 1000 || !known) {
      throw InputError(where, fmt::format("Properties: {}:{}:{} is not name:S|R|I|L:columns", quote(parts[k]),
                                          quote(parts[k + 1]), quote(parts[k + 2])));
    }
    out.push_back({parts[k], parts[k + 1][0], columns.value});
  }
  return out;
}

/// Reads pbc="T T F": whether each direction is periodic.
std::array<bool, 3> periodic_directions(const Value& value, Location where) {
  where.column = static_cast<int>(value.column);
  std::array<bool, 3> out{};
  std::istringstream words{std::string(value.text)};
  std::string word, rest;
  const auto truth = [&](bool& to) {
    if (!(words >> word)) return false;
    to = word == "T" || word == "1" || word == "True";
    return to || word == "F" || word == "0" || word == "False";
  };
  if (!truth(out[0]) || !truth(out[1]) || !truth(out[2]) || words >> rest)
    throw InputError(where, fmt::format("pbc is {}, expected three of T and F, as \"T T F\"", quote(value.text)));
  return out;
}

/// @param periodic whether each direction is periodic; an open direction gets length 0, whatever the cell says
Box lattice(const Value& value, const std::array<bool, 3>& periodic, Location where) {
  where.column = static_cast<int>(value.column);
  const auto numbers = parse_numbers(value.text, Count::exactly(9));
  if (!numbers) throw InputError(where, "Lattice: " + numbers.error);
  Box box;
  for (int a = 0; a < 3; ++a) {
    for (int c = 0; c < 3; ++c) {
      const double entry = numbers.value[3 * a + c];
      if (a != c && entry != 0)
        throw InputError(where, "Lattice is not rectangular: only boxes along x, y and z are supported");
      if (a != c || !periodic[std::size_t(c)]) continue;
      if (!(entry > 0))
        throw InputError(where, fmt::format("Lattice: a side is {}, expected a positive length", entry));
      box.length[c] = entry;
    }
  }
  return box;
}

std::string unit_name(const Value& value, Location where) {
  where.column = static_cast<int>(value.column);
  try {
    return units_by_name(value.text).name;
  } catch (const ValueError& error) {
    throw InputError(where, error.what());
  }
}

std::vector<Property> read_comment(MdText& text, XyzFrame& frame) {
  const Location where = text.place(0);
  frame.comment = std::string(text.line());
  std::vector<Property> layout{{"species", 'S', 1}, {"pos", 'R', 3}};
  const std::vector<Value> values = key_values(text.line(), where);
  const auto find = [&](std::string_view key) {
    return std::find_if(values.begin(), values.end(), [&](const Value& v) { return v.key == key; });
  };
  const auto cell = find("Lattice"), pbc = find("pbc");
  std::array<bool, 3> periodic{true, true, true};
  if (pbc != values.end()) periodic = periodic_directions(*pbc, where);
  if (cell != values.end()) frame.box = lattice(*cell, periodic, where);
  if (cell == values.end() && pbc != values.end() && periodic != std::array<bool, 3>{})
    throw InputError(where, "pbc names periodic directions, but there is no Lattice");
  for (const Value& value : values) {
    if (value.key == "Properties") layout = properties(value, where);
    if (value.key == "units") frame.units = unit_name(value, where);
  }
  const auto has = [&](const char* name, char type, int columns) {
    return std::any_of(layout.begin(), layout.end(),
                       [&](const Property& p) { return p.name == name && p.type == type && p.columns == columns; });
  };
  if (!has("pos", 'R', 3)) throw InputError(where, "Properties has no pos:R:3");
  return layout;
}

void read_row(MdText& text, const std::vector<Property>& layout, XyzFrame& frame) {
  std::size_t word = 0, total = 0;
  for (const Property& p : layout) total += p.columns;
  text.expect_words(total, "a row with the columns of Properties");
  bool named = false;
  for (const Property& p : layout) {
    if (p.name == "species" && p.type == 'S') frame.species.emplace_back(text.words()[word]), named = true;
    if (p.name == "label" && p.type == 'S' && named && element_mass(frame.species.back()) == 0)
      frame.species.back() = text.words()[word];
    std::vector<double>* to = nullptr;
    if (p.name == "pos" && p.columns == 3) to = &frame.position;
    if ((p.name == "velo" || p.name == "vel") && p.columns == 3) to = &frame.velocity;
    if ((p.name == "masses" || p.name == "mass") && p.columns == 1) to = &frame.mass;
    const bool numbers = p.type == 'R' || p.type == 'I';
    for (int c = 0; to && numbers && c < p.columns; ++c) to->push_back(text.number(word + c, p.name.c_str()));
    if (to == &frame.mass && numbers && !(frame.mass.back() > 0))
      text.fail(word, fmt::format("mass is {}, expected a positive number", frame.mass.back()));
    const bool read = (to && numbers) || p.name == "species" || p.name == "label";
    if (!read && std::find(frame.skipped.begin(), frame.skipped.end(), p.name) == frame.skipped.end())
      frame.skipped.push_back(p.name);
    word += p.columns;
  }
  if (!named) frame.species.emplace_back("X");
}

}  // namespace

std::vector<XyzFrame> parse_xyz(std::string_view content, const std::string& file) {
  MdText text(content, file);
  std::vector<XyzFrame> frames;
  while (text.next_words(0)) {
    text.expect_words(1, "the number of particles");
    const int count = text.integer(0, "number of particles", 0, 1 << 29);
    if (static_cast<std::size_t>(count) > content.size())
      text.fail(0, fmt::format("{} particles, but the file has only {} bytes", count, content.size()));
    XyzFrame frame;
    if (!text.next_line(0)) text.fail(0, "the comment line is missing");
    const std::vector<Property> layout = read_comment(text, frame);
    for (int row = 0; row < count; ++row) {
      if (!text.next_line(0)) text.fail(0, fmt::format("the file ends after {} of {} particles", row, count));
      read_row(text, layout, frame);
    }
    for (const auto* list : {&frame.position, &frame.velocity}) {
      if (!list->empty() && list->size() != 3 * static_cast<std::size_t>(count))
        text.fail(0, "Properties names the same columns twice");
    }
    if (!frame.mass.empty() && frame.mass.size() != static_cast<std::size_t>(count))
      text.fail(0, "Properties names the same columns twice");
    frames.push_back(std::move(frame));
  }
  if (frames.empty()) throw InputError({file, 1, 0, ""}, "the file is empty");
  return frames;
}

std::vector<XyzFrame> read_xyz(const std::string& path) { return parse_xyz(read_file(path, kMostBytes), path); }

ParticleSystem system_from_xyz(const std::vector<XyzFrame>& frames, const std::string& file, const Units& units) {
  const XyzFrame& frame = frames.at(frames.size() - 1);
  ParticleSystem system;
  system.name = file, system.box = frame.box, system.species = frame.species;
  system.units = frame.units.empty() ? units : units_by_name(frame.units);
  system.position = frame.position;
  system.velocity = frame.velocity.empty() ? std::vector<double>(frame.position.size(), 0.0) : frame.velocity;
  system.mass = frame.mass;
  for (std::size_t i = 0; frame.mass.empty() && i < frame.species.size(); ++i) {
    system.mass.push_back(element_mass(frame.species[i]));
    if (system.mass.back() == 0) {
      throw InputError({file, 0, 0, fmt::format("particle {}", i)},
                       fmt::format("{} is not the symbol of an element, and there is no masses:R:1 column",
                                   quote(frame.species[i])));
    }
  }
  system.constraints = ConstraintSet(system.particles());
  return system;
}

void write_xyz_frame(std::ostream& out, const ParticleSystem& system, std::string_view extra) {
  check_masses(system.mass, "XYZ");
  out << fmt::format("{}\n", system.particles());  // `<<` would group digits as the global locale does
  const Vec3d& box = system.box.length;
  if (system.box.periodic()) {
    out << fmt::format("Lattice=\"{:.17g} 0 0 0 {:.17g} 0 0 0 {:.17g}\" ", box.x, box.y, box.z);
    const auto mark = [](double length) { return length > 0 ? 'T' : 'F'; };
    if (box.x == 0 || box.y == 0 || box.z == 0)
      out << fmt::format("pbc=\"{} {} {}\" ", mark(box.x), mark(box.y), mark(box.z));
  }
  // Other programs look a species up, so it must be a chemical symbol. For any other name the species is X and the name
  // goes into the column label.
  const auto is_element = [](const std::string& name) { return element_mass(name) > 0; };
  const bool labels = !std::all_of(system.species.begin(), system.species.end(), is_element);
  out << "Properties=species:S:1:pos:R:3:velo:R:3:masses:R:1" << (labels ? ":label:S:1" : "");
  out << " units=" << system.units.name;
  if (!extra.empty()) out << ' ' << extra;
  out << '\n';
  for (int i = 0; i < system.particles(); ++i) {
    const double *x = &system.position[3 * i], *v = &system.velocity[3 * i];
    const bool symbol = !system.species.empty() && is_element(system.species[i]);
    out << fmt::format("{} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g}{}\n",
                       symbol ? system.species[i] : "X", x[0], x[1], x[2], v[0], v[1], v[2], system.mass[i],
                       labels ? " " + system.species[i] : "");
  }
}

double element_mass(std::string_view symbol) {
  static constexpr std::array<std::pair<std::string_view, double>, 38> kMasses = {{
      {"H", 1.008},   {"He", 4.0026}, {"Li", 6.94},   {"Be", 9.0122}, {"B", 10.81},   {"C", 12.011},  {"N", 14.007},
      {"O", 15.999},  {"F", 18.998},  {"Ne", 20.18},  {"Na", 22.99},  {"Mg", 24.305}, {"Al", 26.982}, {"Si", 28.085},
      {"P", 30.974},  {"S", 32.06},   {"Cl", 35.45},  {"Ar", 39.95},  {"K", 39.098},  {"Ca", 40.078}, {"Ti", 47.867},
      {"Cr", 51.996}, {"Mn", 54.938}, {"Fe", 55.845}, {"Co", 58.933}, {"Ni", 58.693}, {"Cu", 63.546}, {"Zn", 65.38},
      {"Br", 79.904}, {"Kr", 83.798}, {"Mo", 95.95},  {"Ag", 107.87}, {"I", 126.9},   {"Xe", 131.29}, {"W", 183.84},
      {"Pt", 195.08}, {"Au", 196.97}, {"Pb", 207.2},
  }};
  const auto found =
      std::find_if(kMasses.begin(), kMasses.end(), [&](const auto& entry) { return entry.first == symbol; });
  return found == kMasses.end() ? 0.0 : found->second;
}

}  // namespace tarsus
