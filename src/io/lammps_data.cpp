#include "tarsus/io/lammps_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "io/md_text.hpp"
#include "io/whole_molecules.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

enum class AtomStyle { unknown, atomic, charge, molecular, full };

struct Counts {
  int atoms = -1, bonds = 0, angles = 0, dihedrals = 0, impropers = 0;
  int atom_types = 0, bond_types = 0, angle_types = 0, dihedral_types = 0, improper_types = 0;
};

class LammpsReader {
 public:
  LammpsReader(std::string_view content, const std::string& file, const Units& units)
      : text_(content, file), bytes_(content.size()), file_(file) {
    data_.system.units = units;
    data_.system.name = file;
  }
  LammpsData read();

 private:
  bool header_line();
  void section(const std::string& name, std::string_view hint);
  template <class Row>
  void rows(const std::string& name, int count, const Row& row);
  void atoms(int count, std::string_view hint);
  void place_atom(AtomStyle style);
  void topology(const std::string& name, int count, int types, int size, std::vector<LammpsTopology>& out);
  void title();
  void coefficients(const std::string& name, int types, std::string_view hint, std::vector<LammpsCoefficients>& out);
  int index_of(std::size_t word) const;
  void make_whole();

  MdText text_;
  std::size_t bytes_;
  std::string file_;
  LammpsData data_;
  Counts counts_;
  Vec3d low_ = zero3<double>();
  bool box_[3] = {false, false, false};
  std::vector<double> type_mass_;
  std::unordered_map<int, int> index_;  // atom id -> index
  std::set<std::string> sections_;
};

bool LammpsReader::header_line() {
  const auto& words = text_.words();
  const auto ends = [&](std::initializer_list<const char*> tail, std::size_t numbers) {
    if (words.size() != numbers + tail.size()) return false;
    std::size_t k = numbers;
    for (const char* word : tail) {
      if (words[k++] != word) return false;
    }
    return true;
  };
  const auto count = [&](const char* what, int& to) {
    to = text_.integer(0, what, 0, 1 << 29);
    if (static_cast<std::size_t>(to) > bytes_)
      text_.fail(0, fmt::format("{} {}, but the file has only {} bytes", to, what, bytes_));
    return true;
  };
  if (ends({"atoms"}, 1)) return count("atoms", counts_.atoms);
  if (ends({"bonds"}, 1)) return count("bonds", counts_.bonds);
  if (ends({"angles"}, 1)) return count("angles", counts_.angles);
  if (ends({"dihedrals"}, 1)) return count("dihedrals", counts_.dihedrals);
  if (ends({"impropers"}, 1)) return count("impropers", counts_.impropers);
  if (ends({"atom", "types"}, 1)) return count("atom types", counts_.atom_types);
  if (ends({"bond", "types"}, 1)) return count("bond types", counts_.bond_types);
  if (ends({"angle", "types"}, 1)) return count("angle types", counts_.angle_types);
  if (ends({"dihedral", "types"}, 1)) return count("dihedral types", counts_.dihedral_types);
  if (ends({"improper", "types"}, 1)) return count("improper types", counts_.improper_types);
  constexpr const char* kBox[3][2] = {{"xlo", "xhi"}, {"ylo", "yhi"}, {"zlo", "zhi"}};
  for (int c = 0; c < 3; ++c) {
    if (!ends({kBox[c][0], kBox[c][1]}, 2)) continue;
    low_[c] = text_.number(0, kBox[c][0]);
    data_.system.box.length[c] = text_.number(1, kBox[c][1]) - low_[c];
    if (!(data_.system.box.length[c] > 0)) text_.fail(1, fmt::format("{} is not above {}", kBox[c][1], kBox[c][0]));
    box_[c] = true;
    return true;
  }
  if (ends({"xy", "xz", "yz"}, 3)) {
    for (int k = 0; k < 3; ++k) {
      if (text_.number(k, "tilt") != 0) text_.fail(k, "a tilted box is not supported");
    }
    return true;
  }
  for (const char* extra : {"extra", "ellipsoids", "lines", "triangles", "bodies"}) {
    if (std::find(words.begin(), words.end(), extra) == words.end()) continue;
    data_.notes.push_back({Severity::warning, text_.place(0), fmt::format("header line of {} is not used", extra)});
    return true;
  }
  return false;
}

template <class Row>
void LammpsReader::rows(const std::string& name, int count, const Row& row) {
  for (int k = 0; k < count; ++k) {
    if (!text_.next_words('#')) text_.fail(0, fmt::format("the file ends after {} of {} rows of {}", k, count, name));
    row();
  }
}

int LammpsReader::index_of(std::size_t word) const {
  const int id = text_.integer(word, "atom id", 1, 2147483647);
  const auto found = index_.find(id);
  if (found == index_.end()) text_.fail(word, fmt::format("there is no atom {}", id));
  return found->second;
}

void LammpsReader::place_atom(AtomStyle style) {
  const int first = style == AtomStyle::full ? 4 : style == AtomStyle::atomic ? 2 : 3;  // index of the word with x
  const std::size_t words = text_.words().size(), bare = first + 3;
  if (words != bare && words != bare + 3) text_.expect_words(bare, "an atom of this style (and maybe 3 image flags)");
  const int id = text_.integer(0, "atom id", 1, 2147483647), index = static_cast<int>(index_.size());
  if (!index_.emplace(id, index).second) text_.fail(0, fmt::format("atom {} is given twice", id));
  const bool molecules = style == AtomStyle::full || style == AtomStyle::molecular;
  if (molecules) {
    const int molecule = text_.integer(1, "molecule", 0, 2147483647);
    data_.system.molecule.push_back(molecule != 0 ? molecule : -id);  // 0: the atom belongs to no molecule
  }
  data_.id.push_back(id);
  data_.type.push_back(text_.integer(molecules ? 2 : 1, "atom type", 1, counts_.atom_types));
  if (style == AtomStyle::full || style == AtomStyle::charge) data_.charge.push_back(text_.number(first - 1, "charge"));
  for (int c = 0; c < 3; ++c) {
    double x = text_.number(first + c, "position");
    if (words == bare + 3) x += text_.integer(bare + c, "image flag", -1000000, 1000000) * data_.system.box.length[c];
    data_.system.position.push_back(x);
  }
}

void LammpsReader::atoms(int count, std::string_view hint) {
  AtomStyle style = hint == "atomic"                                           ? AtomStyle::atomic
                    : hint == "charge"                                         ? AtomStyle::charge
                    : hint == "bond" || hint == "angle" || hint == "molecular" ? AtomStyle::molecular
                    : hint == "full"                                           ? AtomStyle::full
                                                                               : AtomStyle::unknown;
  if (style == AtomStyle::unknown && !hint.empty()) {
    text_.fail(0, fmt::format("atom style {} is not supported, expected atomic, charge, bond, angle, molecular or full",
                              quote(hint)));
  }
  rows("Atoms", count, [&] {
    if (style == AtomStyle::unknown) {
      const std::size_t words = text_.words().size();
      if (words == 5 || words == 8)
        style = AtomStyle::atomic;
      else if (words == 7 || words == 10)
        style = AtomStyle::full;
      else
        text_.fail(
            0, fmt::format("{} columns may be more than one atom style: write 'Atoms # charge' or 'Atoms # molecular'",
                           words));
    }
    place_atom(style);
  });
  data_.system.velocity.assign(data_.system.position.size(), 0.0);
}

void LammpsReader::topology(const std::string& name, int count, int types, int size, std::vector<LammpsTopology>& out) {
  rows(name, count, [&] {
    text_.expect_words(size + 2, "id type and the atoms");
    LammpsTopology term{text_.integer(1, "type", 1, types), {}};
    for (int a = 0; a < size; ++a) term.atoms.push_back(index_of(2 + a));
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < a; ++b) {
        if (term.atoms[a] == term.atoms[b]) text_.fail(2 + a, "the same atom twice in one row");
      }
    }
    out.push_back(std::move(term));
  });
}

// A title is free text, but write_data ends it with "units = NAME".
void LammpsReader::title() {
  const std::string_view line = text_.line();
  const std::size_t found = line.find("units =");
  if (found == std::string_view::npos) return;
  std::string_view name = trimmed(line.substr(found + 7));
  name = name.substr(0, name.find_first_of(" ,\t"));
  if (name == "real")
    data_.system.units = units_angstrom_fs();
  else if (name == "lj")
    data_.system.units = units_reduced();
  else if (name == "si")
    data_.system.units = units_si();
  else
    throw InputError(text_.place(0),
                     fmt::format("the title says units = {}, expected real, lj or si: convert the file", name));
}

// `hint` is the style that write_data puts after the section's name.
void LammpsReader::coefficients(const std::string& name, int types, std::string_view hint,
                                std::vector<LammpsCoefficients>& out) {
  out.assign(types, {});
  rows(name, types, [&] {
    const int type = text_.integer(0, "type", 1, types);
    LammpsCoefficients& to = out[type - 1];
    if (!to.numbers.empty()) text_.fail(0, fmt::format("type {} is given twice", type));
    std::size_t word = 1;
    if (word < text_.words().size() && !parse_number(text_.words()[word]))
      to.style = std::string(text_.words()[word++]);
    else
      to.style = std::string(hint);
    for (; word < text_.words().size(); ++word) to.numbers.push_back(text_.number(word, "coefficient"));
  });
}

void LammpsReader::section(const std::string& name, std::string_view hint) {
  const bool after_atoms = name != "Masses" && name != "Atoms" && !name.ends_with("Coeffs");
  if (!sections_.insert(name).second) text_.fail(0, fmt::format("section {} is given twice", name));
  if (after_atoms && index_.empty() && counts_.atoms > 0) text_.fail(0, fmt::format("{} before Atoms", name));
  if (name == "Masses") {
    type_mass_.assign(counts_.atom_types, 0.0);
    rows(name, counts_.atom_types, [&] {
      text_.expect_words(2, "type mass");
      const int type = text_.integer(0, "atom type", 1, counts_.atom_types);
      if (type_mass_[type - 1] > 0) text_.fail(0, fmt::format("type {} is given twice", type));
      type_mass_[type - 1] = text_.number(1, "mass");
      if (!(type_mass_[type - 1] > 0))
        text_.fail(1, fmt::format("mass is {}, expected a positive number", type_mass_[type - 1]));
    });
  } else if (name == "Atoms") {
    atoms(counts_.atoms, hint);
  } else if (name == "Velocities") {
    std::vector<char> seen(index_.size(), 0);
    rows(name, counts_.atoms, [&] {
      text_.expect_words(4, "id vx vy vz");
      const int i = index_of(0);
      if (seen[i]++) text_.fail(0, fmt::format("atom {} is given twice", data_.id[i]));
      for (int c = 0; c < 3; ++c) data_.system.velocity[3 * i + c] = text_.number(1 + c, "velocity");
    });
  } else if (name == "Bonds") {
    topology(name, counts_.bonds, counts_.bond_types, 2, data_.bonds);
  } else if (name == "Angles") {
    topology(name, counts_.angles, counts_.angle_types, 3, data_.angles);
  } else if (name == "Dihedrals") {
    topology(name, counts_.dihedrals, counts_.dihedral_types, 4, data_.dihedrals);
  } else if (name == "Pair Coeffs") {
    coefficients(name, counts_.atom_types, hint, data_.pair_coefficients);
  } else if (name == "Bond Coeffs") {
    coefficients(name, counts_.bond_types, hint, data_.bond_coefficients);
  } else if (name == "Angle Coeffs") {
    coefficients(name, counts_.angle_types, hint, data_.angle_coefficients);
  } else if (name == "Dihedral Coeffs") {
    coefficients(name, counts_.dihedral_types, hint, data_.dihedral_coefficients);
  } else {
    const int count = name == "Impropers" ? counts_.impropers : name == "Improper Coeffs" ? counts_.improper_types : -1;
    if (count < 0) text_.fail(0, fmt::format("section {} is not supported", quote(name)));
    data_.notes.push_back({Severity::warning, text_.place(0), fmt::format("section {} is not used", name)});
    rows(name, count, [] {});
  }
}

// A molecule that crosses a face of the box may be cut. It may be so even with image flags, if they are all zero. Its
// atoms are moved to the nearest images along the bonds. A whole molecule stays as it is.
void LammpsReader::make_whole() {
  const int n = data_.system.particles();
  std::vector<std::vector<int>> bonded(n);
  for (const LammpsTopology& bond : data_.bonds)
    bonded[bond.atoms[0]].push_back(bond.atoms[1]), bonded[bond.atoms[1]].push_back(bond.atoms[0]);
  make_molecules_whole(data_.system, bonded);
}

LammpsData LammpsReader::read() {
  if (!text_.next_line('#')) throw InputError({file_, 1, 0, ""}, "the file is empty");
  title();
  bool in_header = true;
  while (text_.next_words('#')) {
    if (in_header && header_line()) continue;
    std::string name;
    for (const auto& word : text_.words()) name += (name.empty() ? "" : " ") + std::string(word);
    if (in_header) {
      if (counts_.atoms < 0) text_.fail(0, fmt::format("{} before 'N atoms'", quote(name)));
      if (!box_[0] || !box_[1] || !box_[2])
        text_.fail(0, fmt::format("{} before the box (xlo xhi, ylo yhi, zlo zhi)", quote(name)));
      in_header = false;
    }
    section(name, trimmed(text_.comment()));
  }
  if (counts_.atoms < 0) throw InputError({file_, text_.line_number(), 0, ""}, "the header has no 'N atoms'");
  if (index_.size() != static_cast<std::size_t>(counts_.atoms))
    throw InputError({file_, text_.line_number(), 0, ""}, "the section Atoms is missing");
  if (type_mass_.empty() && counts_.atoms > 0)
    throw InputError({file_, text_.line_number(), 0, ""}, "the section Masses is missing");
  for (std::size_t i = 0; i < data_.type.size(); ++i) {
    data_.system.mass.push_back(type_mass_[data_.type[i] - 1]);
    data_.system.species.push_back(fmt::format("{}", data_.type[i]));
    if (data_.system.mass.back() == 0)
      throw InputError({file_, 0, 0, "Masses"}, fmt::format("atom type {} has no mass", data_.type[i]));
  }
  data_.system.constraints = ConstraintSet(data_.system.particles());
  make_whole();
  return std::move(data_);
}

}  // namespace

LammpsData parse_lammps_data(std::string_view text, const std::string& file, const Units& units) {
  return LammpsReader(text, file, units).read();
}

LammpsData read_lammps_data(const std::string& path, const Units& units) {
  return parse_lammps_data(read_file(path, kMostBytes), path, units);
}

}  // namespace tarsus
