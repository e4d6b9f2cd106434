"""Checks formatting, words that tie the repository to one machine or that only it uses, and lengths of files and functions."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

CPP = (".hpp", ".cpp", ".inl")
CLANG_FORMAT = "clang-format-14"  # Debian 12's; other versions format differently
# Spelled so that this file does not contain them.
MACHINE_WORDS = re.compile("|".join(["/wor" + "k/", "/tm" + "p/", "/opt" + "/pypi", "/opt" + "/wheels", "/roo" + "t/", "/hom" + "e/",
                                     "pyen" + "v", r"\blocalhost:\d{4,5}/simple\b"]))
#: Words that only this project would use, and the usual words of the field.
HOME_GROWN = {"held rows?": "bilateral rows", "dead rows?": "rows with zero Delassus entry", "bur(?:y|ies|ied)": "drop", "hand(?:s|ed) on": "propagate",
              "comes? to terms": "converge", "rescues?": "fallback", "told apart": "detected from", "rows? of one's own": "user-defined constraints",
              "round contacts?": "sphere contact", "(?:Newton|Newton's) rounds?": "iterations", "by a hair": "by a gap in metres",
              "link loads?|loads? on (?:a link|links)": "contact stiffness", "limb by limb": "branch by branch"}
READ_BY_PEOPLE = ("src/", "include/", "docs/", "python/", "apps/", "examples/", "README.md")
FILE_LINES = {".hpp": 300, ".inl": 600, ".cpp": 600, ".py": 600}
FUNCTION_LINES = 60
COLUMNS = 120
FIELDS = 20


def tracked(root):
    """Files that git knows or would add, so that a file is checked before its first commit."""
    command = ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [root / name for name in names if (root / name).is_file()]


def check_format(root, jobs):
    files = [path for path in tracked(root) if path.suffix in CPP]

    def bad(path):
        run = subprocess.run([CLANG_FORMAT, "--dry-run", "-Werror", path], capture_output=True, text=True)
        return None if run.returncode == 0 else path

    with ThreadPoolExecutor(jobs) as pool:
        wrong = [path for path in pool.map(bad, files) if path]
    return [f"{path.relative_to(root)}: not formatted (make format)" for path in wrong], f"{len(files)} files"


def check_words(root):
    problems, count = [], 0
    ours = re.compile(r"\b(?:" + "|".join(f"({word})" for word in HOME_GROWN) + r")\b", re.I)
    for path in tracked(root):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # binary
        count += 1
        for number, line in enumerate(text.splitlines(), 1):
            match = MACHINE_WORDS.search(line)
            if match and not line.startswith("#!"):
                problems.append(f"{path.relative_to(root)}:{number}: a path or host of one machine (\"{match[0]}\")")
            match = path.relative_to(root).as_posix().startswith(READ_BY_PEOPLE) and ours.search(line)
            if match:
                problems.append(f"{path.relative_to(root)}:{number}: \"{match[0]}\": the field says {list(HOME_GROWN.values())[match.lastindex - 1]}")
    return problems, f"{count} files"


# Functions whose rounding depends on the system's mathematical library; include/tarsus/math/elementary.hpp replaces them.
LIBRARY_FUNCTION = re.compile(r"\bstd::(a?(sin|cos|tan)h?|atan2|exp[2m]?1?|log(2|10|1p)?|pow|hypot|cbrt)\(")
# Uses complex numbers, for a report that does not affect runs.
MAY_USE_LIBRARY = {"src/control/gain_report.cpp"}


def check_elementary(root):
    """The library's results must not depend on the system's mathematical library (docs/decisions/0006)."""
    problems, count = [], 0
    for path in tracked(root):
        name = path.relative_to(root).as_posix()
        if not name.startswith(("src/", "include/")) or path.suffix not in CPP or name in MAY_USE_LIBRARY:
            continue
        count += 1
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = LIBRARY_FUNCTION.search(line.split("//")[0])
            if match:
                problems.append(f"{name}:{number}: {match[0]}: take elementary::{match[1]} (math/elementary.hpp)")
    return problems, f"{count} files"


def check_columns(root):
    """Checks comments only: the formatter breaks lines of code, and strings may be long."""
    problems, files = [], [path for path in tracked(root) if path.suffix in CPP]
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS and line.lstrip().startswith("//"):
                problems.append(f"{path.relative_to(root)}:{number}: a comment of {len(line)} columns (limit {COLUMNS})")
    return problems, f"{len(files)} files"


CLASS = re.compile(r"^(?:class|struct) (\w+)[^;{]*\{\n(.*?)^\};", re.S | re.M)
FIELD = re.compile(r"(?<![\w.>])([a-z]\w*_)\s*(?=[,;={\[])")


def check_fields(root):
    """Counts the fields of each class at the left margin, as formatted: names that end in _, before any parenthesis in their line."""
    problems, count = [], 0
    for path in tracked(root):
        name = path.relative_to(root).as_posix()
        if not name.startswith(("src/", "include/")) or path.suffix not in CPP:
            continue
        for match in CLASS.finditer(path.read_text(encoding="utf-8")):
            count += 1
            lines = [line.split("//")[0].split("(")[0] for line in match[2].splitlines() if re.match(r" {2,6}[A-Za-z]", line)]
            fields = {field for line in lines for field in FIELD.findall(line)}
            if len(fields) > FIELDS:
                problems.append(f"{name}: {match[1]} has {len(fields)} fields (limit {FIELDS})")
    return problems, f"{count} classes"


NAMESPACE = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
DEFINITION = re.compile(r"(?:template <.*> )?(?:class|struct) (\w+)(?: final)?(?: : .*)?\s*\{")


def check_definitions(root):
    """Classes of one name in two files and no anonymous namespace: the linker takes a function of either for both."""
    files = {}
    for path in tracked(root):
        if path.suffix not in CPP:
            continue
        namespaces = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := NAMESPACE.match(line):
                namespaces.append(match[1] or "")
            elif line.startswith("}  // namespace") and namespaces:
                namespaces.pop()
            elif (match := DEFINITION.match(line)) and "" not in namespaces:
                files.setdefault("::".join([*namespaces, match[1]]), set()).add(path.relative_to(root).as_posix())
    problems = [f"{name} is defined in {' and '.join(sorted(of))}" for name, of in sorted(files.items()) if len(of) > 1]
    return problems, f"{len(files)} classes"


NOT_A_FUNCTION = re.compile(r"(namespace|class|struct|enum|union|extern|using)\b|[^(]*=")


def functions(lines):
    """(first line, length) of each function at the left margin or inside a class, in formatted source."""
    statement = begin = None  # first line of the current statement; of the current function
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if begin is not None:
            if line.rstrip(";") == indentation + "}":
                yield begin, number - begin + 1
                begin = None
            continue
        if not text or text.startswith(("//", "#", "template <", "}")):
            continue
        if statement is None:
            statement, opening = number, line
        if text.endswith("{"):
            if ")" in text and not NOT_A_FUNCTION.match(opening.strip()):
                begin, indentation = statement, opening[: len(opening) - len(opening.lstrip())]
            statement = None
        elif text.endswith((";", "}", ":")):
            statement = None


def report_lengths(root):
    """Warnings, not problems: a file or a function that is too long to read at once."""
    warnings = []
    for path in tracked(root):
        limit = FILE_LINES.get(path.suffix)
        if limit is None:
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        where = path.relative_to(root)
        if len(lines) > limit:
            warnings.append(f"{where}: {len(lines)} lines (limit {limit})")
        if path.suffix in CPP:
            warnings += [f"{where}:{first}: a function of {length} lines (limit {FUNCTION_LINES})"
                         for first, length in functions(lines) if length > FUNCTION_LINES]
    return warnings
