#include "tarsus/io/md_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "io/md_text.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

// Reads a row count. One larger than the text's number of bytes is an error, because a row takes at least two bytes.
int believable(const MdText& text, std::size_t word, const char* what, std::size_t bytes) {
  const int count = text.integer(word, what, 0, 1 << 29);
  if (static_cast<std::size_t>(count) > bytes) {
    text.fail(word, fmt::format("{} is {}, but the file has only {} bytes", what, count, bytes));
  }
  return count;
}

/// Words of a comment, in lower case.
std::vector<std::string> words_of(std::string_view comment) {
  std::vector<std::string> words(1);
  for (const unsigned char c : comment) {
    if (c >= 128 || std::isalnum(c) || c == '_')
      words.back() += static_cast<char>(c < 128 ? std::tolower(c) : c);
    else if (!words.back().empty())
      words.emplace_back();
  }
  return words;
}

/// The units that comments name. The format has no line for units, but the reference files name them in a comment, most
/// of them after the word "units": other comments count only if no comment has that word. What precedes the word, such
/// as a file's name, does not count.
class NamedUnits {
 public:
  void note(const MdText& text) {
    const std::vector<std::string> words = words_of(text.comment());
    auto from = words.begin();
    for (auto word = words.begin(); word != words.end(); ++word) {
      if (*word == "units") from = word + 1;
    }
    const auto has = [&](const char* word) { return std::find(from, words.end(), word) != words.end(); };
    const auto starts_with = [&](const char* word) { return from != words.end() && *from == word; };
    const bool after = from != words.begin();
    const auto add = [&](const Units& units) { (after ? after_ : without_).push_back({units, text.place(0)}); };
    if (has("angstrom") && has("fs")) add(units_angstrom_fs());
    if (has("nm") && has("ps")) add(units_nm_ps());
    if (after && starts_with("si")) add(units_si());
    if (after && starts_with("reduced")) add(units_reduced());
  }
  /// nm_ps if no comment names any.  @throws InputError if two comments contradict one another
  Units units() const {
    const std::vector<Found>& all = after_.empty() ? without_ : after_;
    for (const Found& found : all) {
      if (found.units.name != all[0].units.name) {
        throw InputError(found.place, fmt::format("the comment names the units {}, that of line {} {}{}",
                                                  found.units.name, all[0].place.line, all[0].units.name,
                                                  after_.empty() ? ": write the right ones after the word units" : ""));
      }
    }
    return all.empty() ? units_nm_ps() : all[0].units;
  }

 private:
  struct Found {
    Units units;
    Location place;
  };
  std::vector<Found> after_, without_;  // comments with the word, and others
};

struct Header {
  int atoms = -1, constraints = -1;
  bool box = false;
};

void read_box(MdText& text, ParticleSystem& system) {
  if (text.words().size() == 2 && text.words()[1] == "none") return;
  text.expect_words(4, "box Lx Ly Lz or box none");
  for (int c = 0; c < 3; ++c) {
    system.box.length[c] = text.number(c + 1, "box length");
    if (!(system.box.length[c] >= 0))
      text.fail(c + 1,
                fmt::format("box length is {}, expected a positive length, or 0 where open", system.box.length[c]));
  }
}

void read_atoms(MdText& text, int count, ParticleSystem& system) {
  std::vector<char> seen(count, 0);
  system.mass.assign(count, 0.0);
  system.position.assign(3 * static_cast<std::size_t>(count), 0.0), system.velocity = system.position;
  for (int row = 0; row < count; ++row) {
    if (!text.next_words('#')) text.fail(0, fmt::format("the file ends after {} of {} atoms", row, count));
    if (text.words()[0] == "constraints") text.fail(0, fmt::format("'constraints' after {} of {} atoms", row, count));
    text.expect_words(8, "an atom: index mass x y z vx vy vz");
    const int i = text.integer(0, "atom index", 0, count - 1);
    if (seen[i]) text.fail(0, fmt::format("atom {} is given twice", i));
    seen[i] = 1;
    system.mass[i] = text.number(1, "mass");
    if (!(system.mass[i] > 0)) text.fail(1, fmt::format("mass is {}, expected a positive number", system.mass[i]));
    for (int c = 0; c < 3; ++c) {
      system.position[3 * i + c] = text.number(2 + c, "position");
      system.velocity[3 * i + c] = text.number(5 + c, "velocity");
    }
  }
}

void read_constraints(MdText& text, int count, ParticleSystem& system) {
  const int atoms = system.particles();
  for (int row = 0; row < count; ++row) {
    if (!text.next_words('#')) text.fail(0, fmt::format("the file ends after {} of {} constraints", row, count));
    text.expect_words(3, "a constraint: i j length");
    const int i = text.integer(0, "particle", 0, atoms - 1), j = text.integer(1, "particle", 0, atoms - 1);
    if (i == j) text.fail(1, fmt::format("particle {} is constrained to itself", i));
    const double length = text.number(2, "length");
    if (!(length > 0)) text.fail(2, fmt::format("length is {}, expected a positive number", length));
    system.constraints.set_line(system.constraints.add_distance(i, j, length), text.line_number());
  }
}

}  // namespace

ParticleSystem parse_md_system(std::string_view content, const std::string& file) {
  MdText text(content, file);
  ParticleSystem system;
  NamedUnits named;
  Header header;
  bool atoms_read = false, constraints_read = false;
  while (text.next_line('#')) {
    if (!text.comment().empty()) named.note(text);
    if (text.words().empty()) continue;
    const std::string_view key = text.words()[0];
    if (constraints_read)
      text.fail(0, fmt::format("{} after the last constraint: more rows than nconstraints says", quote(key)));
    if (key == "natoms" || key == "nconstraints") {
      text.expect_words(2, key == "natoms" ? "natoms N" : "nconstraints K");
      int& count = key == "natoms" ? header.atoms : header.constraints;
      if (count >= 0) text.fail(0, fmt::format("{} is given twice", key));
      count = believable(text, 1, key == "natoms" ? "natoms" : "nconstraints", content.size());
    } else if (key == "box") {
      if (header.box) text.fail(0, "box is given twice");
      header.box = true;
      read_box(text, system);
    } else if (key == "atoms") {
      text.expect_words(1, "atoms alone on its line");
      if (header.atoms < 0) text.fail(0, "atoms before natoms");
      if (atoms_read) text.fail(0, "atoms is given twice");
      atoms_read = true;
      read_atoms(text, header.atoms, system);
      system.constraints = ConstraintSet(header.atoms);
    } else if (key == "constraints") {
      text.expect_words(1, "constraints alone on its line");
      if (header.constraints < 0) text.fail(0, "constraints before nconstraints");
      if (!atoms_read) text.fail(0, "constraints before atoms");
      constraints_read = true;
      read_constraints(text, header.constraints, system);
    } else if (atoms_read) {
      text.fail(0, fmt::format("{} after {} atoms, expected 'constraints'", quote(key), header.atoms));
    } else {
      text.fail(0, fmt::format("{} is unknown, expected natoms, nconstraints, box, atoms or constraints", quote(key)));
    }
  }
  const Location end{file, text.line_number(), 0, ""};
  if (header.atoms < 0) throw InputError(end, "natoms is missing");
  if (!header.box) throw InputError(end, "box is missing (box Lx Ly Lz, or box none)");
  if (!atoms_read) throw InputError(end, "atoms is missing");
  if (header.constraints > 0 && !constraints_read) throw InputError(end, "constraints is missing");
  system.units = named.units();
  return system;
}

ParticleSystem read_md_system(const std::string& path) {
  ParticleSystem system = parse_md_system(read_file(path, kMostBytes), path);
  system.name = path;
  return system;
}

void check_md_system(const ParticleSystem& system) {
  const ConstraintSet& set = system.constraints;
  for (int k = 0; k < set.nrow(); ++k) {
    if (set.kind(k) != RowKind::distance)
      throw ValueError("constraints", set.describe(k), "only distance constraints: the .sys format has no others");
  }
  check_masses(system.mass, ".sys");
}

void write_md_system(std::ostream& out, const ParticleSystem& system) {
  check_md_system(system);
  const ConstraintSet& set = system.constraints;
  const std::string& units = system.units.name;
  out << fmt::format("# {}; units {}\n", system.name,
                     units == "nm_ps"         ? "nm, ps, g/mol"
                     : units == "angstrom_fs" ? "Angstrom, fs, g/mol"
                                              : units);
  out << fmt::format("natoms {}\nnconstraints {}\n", system.particles(), set.nrow());
  const Vec3d& box = system.box.length;
  if (system.box.periodic())
    out << fmt::format("box {:.17g} {:.17g} {:.17g}\n", box.x, box.y, box.z);
  else
    out << "box none\n";
  out << "atoms  # index mass x y z vx vy vz\n";
  for (int i = 0; i < system.particles(); ++i) {
    const double *x = &system.position[3 * i], *v = &system.velocity[3 * i];
    out << fmt::format("{} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g}\n", i, system.mass[i], x[0], x[1],
                       x[2], v[0], v[1], v[2]);
  }
  out << "constraints  # i j length\n";
  for (int k = 0; k < set.nrow(); ++k) {
    out << fmt::format("{} {} {:.17g}\n", set.row_particles(k)[0], set.row_particles(k)[1], set.value(k));
  }
}

std::vector<MdFrame> parse_md_frames(std::string_view content, const std::string& file, int particles) {
  MdText text(content, file);
  std::vector<MdFrame> frames;
  const auto complete = [&] {
    if (frames.empty()) return;
    const std::size_t rows = frames.back().position.size() / 3;
    if (rows != static_cast<std::size_t>(particles))
      text.fail(0, fmt::format("frame {} has {} rows, expected {}", frames.back().step, rows, particles));
  };
  while (text.next_words('#')) {
    if (text.words()[0] == "frame") {
      text.expect_words(2, "frame STEP");
      complete();
      frames.push_back({text.integer(1, "step", 0, 2147483647), {}, {}});
      continue;
    }
    if (frames.empty()) text.fail(0, "a row before the first 'frame STEP'");
    MdFrame& frame = frames.back();
    const std::size_t words = text.words().size(), expected = frame.position.empty()   ? words
                                                              : frame.velocity.empty() ? 3
                                                                                       : 6;
    if (words != expected || (words != 3 && words != 6))
      text.expect_words(expected == 3 ? 3 : 6, "x y z or x y z vx vy vz, the same in every row of a frame");
    for (int c = 0; c < 3; ++c) frame.position.push_back(text.number(c, "position"));
    for (int c = 3; c < static_cast<int>(words); ++c) frame.velocity.push_back(text.number(c, "velocity"));
  }
  complete();
  return frames;
}

std::vector<MdFrame> read_md_frames(const std::string& path, int particles) {
  return parse_md_frames(read_file(path, kMostBytes), path, particles);
}

void write_md_frame(std::ostream& out, long step, const ParticleSystem& system) {
  out << fmt::format("frame {}\n", step);
  for (int i = 0; i < system.particles(); ++i) {
    const double *x = &system.position[3 * i], *v = &system.velocity[3 * i];
    out << fmt::format("{:.17g} {:.17g} {:.17g} {:.17g} {:.17g} {:.17g}\n", x[0], x[1], x[2], v[0], v[1], v[2]);
  }
}

}  // namespace tarsus
