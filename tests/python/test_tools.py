"""The lint step finds the faults that it checks for: each test plants one fault in a small source tree."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import lint_includes  # noqa: E402
import check_skips  # noqa: E402
import docs_site  # noqa: E402
import lint_isa  # noqa: E402
import lint_text  # noqa: E402


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """Two rooms with one allowed arrow: solver -> math."""
    write(tmp_path / "include/tarsus/math/vec.hpp", "#pragma once\n")
    write(tmp_path / "include/tarsus/solver/dense.hpp", '#pragma once\n#include "tarsus/math/vec.hpp"\n')
    write(tmp_path / "src/solver/dense.cpp", '#include "tarsus/solver/dense.hpp"\n#include <Eigen/Dense>\n')
    return tmp_path


def test_allowed_includes_pass(tree):
    problems, _ = lint_includes.check(tree)
    assert problems == []


@pytest.mark.parametrize(
    "path, line, expected",
    [
        ("include/tarsus/math/up.hpp", '#include "tarsus/solver/dense.hpp"', "math may not include solver"),
        ("src/math/up.cpp", '#include "../solver/dense.cpp"', "math may not include solver"),
        ("include/tarsus/solver/eigen.hpp", "#include <Eigen/Dense>", "public headers include no library of others"),
        ("src/solver/kernel.inl", "#include <Eigen/Dense>", "kernels include no library of others"),
        ("src/math/read.cpp", "#include <pugixml.hpp>", "math may not include <pugixml.hpp>"),
        ("src/solver/lost.cpp", '#include "tarsus/math/nowhere.hpp"', "is not a file of this repository"),
        ("src/kitchen/stove.cpp", "", 'there is no room "kitchen"'),
        ("apps/tarsus/main.cpp", '#include "solver/dense.cpp"', "only tests and benchmarks may see src/"),
    ],
)
def test_a_forbidden_include_is_found(tree, path, line, expected):
    write(tree / path, line + "\n")
    problems, _ = lint_includes.check(tree)
    assert len(problems) == 1 and expected in problems[0]


def test_a_ring_is_found(tree):
    write(tree / "include/tarsus/math/vec.hpp", '#include "tarsus/math/mat.hpp"\n')
    write(tree / "include/tarsus/math/mat.hpp", '#include "tarsus/math/vec.hpp"\n')
    problems, _ = lint_includes.check(tree)
    assert len(problems) == 1 and "ring" in problems[0]


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_function_that_leaks_from_an_instruction_set_is_found(tmp_path):
    objects = tmp_path / "CMakeFiles/tarsus.dir/src"
    objects.mkdir(parents=True)
    source = """
      inline double leak(double x) {{ return x * 2; }}
      namespace tarsus {{ inline namespace isa_avx2 {{
      inline double kept(double x) {{ return x + 1; }}
      double (*table(int i))(double) {{ return i ? {first} : kept; }}
      }} }}
    """
    command = ["g++", "-O0", "-x", "c++", "-c", "-", "-o", objects / "kernels_avx2_double.cpp.o"]
    subprocess.run(command, input=source.format(first="leak"), text=True, check=True)
    problems, _ = lint_isa.check(tmp_path)
    assert len(problems) == 1 and "leak(double)" in problems[0]
    subprocess.run(command, input=source.format(first="kept"), text=True, check=True)
    assert lint_isa.check(tmp_path)[0] == []


def test_a_function_of_the_system_library_is_found(tree):
    subprocess.run(["git", "init", "-q", tree], check=True)
    write(tree / "src/math/use.cpp", "double f(double x) { return std::sin(x); }  // not std::cos(x)\n")
    write(tree / "src/control/gain_report.cpp", "const auto z = std::exp(Complex(0, w));\n")
    problems, _ = lint_text.check_elementary(tree)
    assert len(problems) == 1 and "use.cpp:1" in problems[0] and "sin" in problems[0]


def test_a_source_for_one_instruction_set_is_found():
    problems = lint_isa.check_sources(["src/dynamics/isa/aba.cpp", "src/solver/sweep_avx2_double.cpp", "src/math/cpu.cpp"])
    assert len(problems) == 2


def test_two_classes_of_one_name_are_found(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("a", "b"):
        write(tmp_path / f"src/math/{name}.hpp", "namespace tarsus {\nnamespace {\nstruct Own {\n};\n}  // namespace\n\n"
              "struct Rows final : Base {\n};\n}  // namespace tarsus\n")
    assert lint_text.check_definitions(tmp_path)[0] == ["tarsus::Rows is defined in src/math/a.hpp and src/math/b.hpp"]


JUNIT = """<testsuite><testcase classname="a" name="ran"/><testcase classname="a" name="b"><skipped message="{}"/></testcase></testsuite>"""


@pytest.mark.parametrize("reason, status", [("this processor has no AVX2", 0), ("no ../shared/data beside the repository", 1)])
def test_a_test_that_should_have_run_is_found(tmp_path, reason, status):
    file = tmp_path / "tests.xml"
    file.write_text(JUNIT.format(reason))
    assert check_skips.main([file]) == status


def test_no_test_at_all_is_a_failure(tmp_path):
    file = tmp_path / "tests.xml"
    file.write_text("<testsuite/>")
    assert check_skips.main([file]) == 1


def test_function_lengths_are_counted_as_a_reader_would():
    lines = """
class Reader {
 public:
  int short_one() const {
    return 1;
  }
};

void long_signature(int first,
                    int second) {
  if (first) {
    second = 1;
  }
}
""".splitlines()
    assert list(lint_text.functions(lines)) == [(4, 3), (9, 6)]


def test_a_comment_beyond_the_column_is_found(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    write(tmp_path / "src/math/wide.cpp", f"// {'Σ' * 117}\n// {'Σ' * 118}\nint long_code = {'1 + ' * 40}1;\n")
    problems, _ = lint_text.check_columns(tmp_path)
    assert len(problems) == 1 and problems[0].startswith("src/math/wide.cpp:2: a comment of 121 columns")


def test_the_sites_pages_have_the_documented_declarations():
    header = """// A header.
#pragma once

namespace tarsus {

/// Squares x [m].
/// @param x length   @throws ValueError if it is negative
double square(double x,
              int power = 2);

void undocumented();

/// A thing.
class Thing {
 public:
  /// Its size.
  int size() const { return size_; }

 private:
  int size_ = 0;
};

}  // namespace tarsus
"""
    (comment, code), (thing, shape) = docs_site.declarations(header.splitlines())
    assert code == "double square(double x,\n              int power = 2);" and comment.startswith("Squares x [m].")
    assert docs_site.escape(comment) == "Squares x \\[m\\].\n\n- `x` length  \n- throws `ValueError` if it is negative"
    assert thing == "A thing." and "int size() const" in shape and "private" not in shape and "size_ = 0" not in shape


def test_every_room_has_a_page_with_each_of_its_headers():
    for room in ("model", "control", "dynamics", "sim"):
        page = docs_site.cpp_api(room)
        for header in (ROOT / "include/tarsus" / room).glob("*.hpp"):
            if "\n///" in header.read_text():
                assert f"## `tarsus/{room}/{header.name}`" in page


def test_python_functions_have_their_signatures(tmp_path):
    stub = tmp_path / "core.pyi"
    stub.write_text('class Box:\n    """A box."""\n    @property\n    def size(self) -> float:\n        """[m]."""\n'
                    'def collide(a: Box, margin: float = 0.0) -> dict:\n    """Where\n    they touch."""\n')
    page = docs_site.python_api(stub)
    assert "## `Box`" in page and "**`size`**`: float`" in page and "collide(a: Box, margin: float=0.0) -> dict" in page
    assert "Where they touch." in page


def test_a_stage_is_timed_and_listed(tmp_path):
    stages, busy = tmp_path / "stages.tsv", "import time\nwhile time.process_time() < 0.2: pass"
    run = subprocess.run([ROOT / "tools/stage.sh", stages, "count", sys.executable, "-c", busy], check=False)
    assert run.returncode == 0
    name, start, end, used = stages.read_text().split("\t")
    assert name == "count" and float(end) - float(start) >= 0.15 and float(used) >= 0.15
    failed = subprocess.run([ROOT / "tools/stage.sh", stages, "fail", "false"], check=False)
    assert failed.returncode == 1
    table = subprocess.run([sys.executable, ROOT / "tools/times.py", stages], capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in table.splitlines()[1:4]] == ["count", "fail", "all"]
