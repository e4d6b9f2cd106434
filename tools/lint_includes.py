"""Checks every #include of the library against the table in include_rules.py, and the includes between files for cycles."""

import re
from pathlib import Path

from include_rules import KERNEL_EXCEPTIONS, MAY_INCLUDE, THIRD_PARTY, reachable

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SUFFIXES = {".hpp", ".cpp", ".inl"}
# Files outside the library may use all of it, but only through its public headers.
OUTSIDE = ["apps", "examples", "python/src"]


def library_files(root):
    for top in (root / "include" / "tarsus", root / "src"):
        for path in sorted(top.rglob("*")):
            if path.suffix in SUFFIXES:
                yield path, path.relative_to(top).parts[0]


def resolve(root, path, name):
    """The file of this repository that `#include "name"` in `path` means, or None."""
    for directory in (path.parent, root / "include", root / "src"):
        candidate = directory / name
        if candidate.is_file():
            return candidate.resolve()
    return None


def room_of(root, path):
    for top in (root / "include" / "tarsus", root / "src"):
        if path.is_relative_to(top):
            return path.relative_to(top).parts[0]
    return None


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def check_file(root, path, room, edges):
    text = path.read_text(encoding="utf-8")
    where = path.relative_to(root)
    if room not in MAY_INCLUDE:
        return [f"{where}: there is no room \"{room}\" in tools/include_rules.py"]
    problems = []
    public = path.is_relative_to(root / "include")
    for match in INCLUDE.finditer(text):
        name, place = match[2], f"{where}:{line_of(text, match)}"
        for prefix, rooms in THIRD_PARTY.items():
            if name.startswith(prefix) and public:
                problems.append(f"{place}: public headers include no library of others (<{name}>)")
            elif name.startswith(prefix) and path.suffix == ".inl" and (str(where), prefix) not in KERNEL_EXCEPTIONS:
                problems.append(f"{place}: kernels include no library of others (<{name}>)")
            elif name.startswith(prefix) and room not in rooms:
                problems.append(f"{place}: {room} may not include <{name}>; {', '.join(rooms)} may")
        if match[1] == "<":
            continue
        target = resolve(root, path, name)
        if target is None:
            problems.append(f"{place}: \"{name}\" is not a file of this repository")
            continue
        edges.setdefault(path.resolve(), []).append(target)
        if public and not target.is_relative_to(root / "include"):
            problems.append(f"{place}: a public header may not include the private \"{name}\"")
        other = room_of(root, target)
        if other and other not in reachable(room):
            problems.append(f"{place}: {room} may not include {other} (\"{name}\")")
    return problems


def find_cycle(edges):
    """A list of files that form a cycle of includes, or None."""
    state, trail = {}, []

    def visit(path):
        state[path] = "open"
        trail.append(path)
        for target in edges.get(path, []):
            if state.get(target) == "open":
                return trail[trail.index(target):] + [target]
            if target not in state:
                ring = visit(target)
                if ring:
                    return ring
        state[path] = "done"
        trail.pop()
        return None

    for path in sorted(edges):
        if path not in state:
            ring = visit(path)
            if ring:
                return ring
    return None


def check(root):
    problems, edges = [], {}
    count = 0
    for path, room in library_files(root):
        problems += check_file(root, path, room, edges)
        count += 1
    ring = find_cycle(edges)
    if ring:
        problems.append("a ring of includes: " + " -> ".join(str(p.relative_to(root)) for p in ring))
    for top in OUTSIDE:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            text = path.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                target = resolve(root, path, match[2]) if match[1] == '"' else None
                if target and target.is_relative_to(root / "src"):
                    problems.append(f"{path.relative_to(root)}:{line_of(text, match)}: only tests and benchmarks may see src/")
    return problems, f"{count} files, {sum(map(len, edges.values()))} includes"


def repository():
    return Path(__file__).resolve().parent.parent
