#!/usr/bin/env python3
"""The documentation as a site: guides, decisions and the API of both languages, with search, dark and light. `make site`.

usage: tools/docs_site.py [--build DIRECTORY]      build tree with Python's stub; the site is DIRECTORY/site/html/index.html

Pages keep their paths in the repository, so that the links between them stay valid. MkDocs runs in strict mode and fails on a broken
link or anchor. The API pages come from the comments of the headers and from the stub, which contains the docstrings of the bindings.
"""

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import docs

ROOT = docs.ROOT
GUIDES = {
    "Home": "README.md",
    "Start": ["docs/index.md", "docs/building.md", "docs/tutorial.md", "docs/python.md", "docs/viewer.md", "docs/coming_from.md", "docs/from_mujoco.md",
              "docs/from_pinocchio.md", "docs/from_drake.md", "CHANGELOG.md"],
    "Characters and robots": ["docs/models.md", "docs/clips.md", "docs/gains.md", "docs/force_limits.md", "docs/actuators.md",
                              "docs/ground.md"],
    "Worlds and learning": ["docs/many_worlds.md", "docs/learning.md"],
    "Constraints and contact": ["docs/constraints.md", "docs/contact.md", "docs/geometry.md"],
    "Particles": ["docs/particles.md"],
    "How it works": ["docs/architecture.md", "docs/notation.md", "docs/add_a_joint.md", "docs/add_a_constraint.md", "experiments/report.md", "src/io/README.md", "src/io/URDF.md"],
}


# -- API of Python --


def text_of(node, indent=0):
    """A docstring as a paragraph, with the line breaks of the source."""
    return re.sub(r"\s*\n\s*", " ", (ast.get_docstring(node) or "").replace("\n\n", "\0")).replace("\0", "\n\n")


def python_function(node, level):
    decorators = [ast.unparse(d) for d in node.decorator_list]
    if any(d.endswith(".setter") for d in decorators):
        return ""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if "property" in decorators:
        return f"**`{node.name}`**`{':' + result[3:] if result else ''}`  \n{text_of(node)}\n\n"
    return f"{'#' * level} `{node.name}`\n\n```text\n{node.name}({ast.unparse(node.args)}){result}\n```\n\n{text_of(node)}\n\n"


def python_class(node):
    out = f"## `{node.name}`\n\n{text_of(node)}\n\n"
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (member.name == "__init__" or not member.name.startswith("_")):
            out += python_function(member, 3)
    return out


def python_api(stub):
    modules = [("tarsus", stub)] + [(f"tarsus.{name}", ROOT / f"python/tarsus/{name.replace('.', '/')}.py")
                                    for name in ("kinematic_tools", "view.viewer", "view.page", "view.formats", "view.capture")]
    out = "# Python API\n\nEvery class and function of the package, with its docstring; `docs/python.md` is the introduction.\n\n"
    out = out.replace("`docs/python.md`", "[Python](../docs/python.md)")
    for module, path in modules:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        body = [n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and not n.name.startswith("_")]
        documented = [n for n in body if ast.get_docstring(n)]
        if module != "tarsus":
            out += f"# Module `{module}`\n\n"
        for node in sorted(documented, key=lambda n: isinstance(n, ast.FunctionDef)):
            out += python_class(node) if isinstance(node, ast.ClassDef) else python_function(node, 2)
    return out


# -- API of C++ --


def declarations(lines):
    """(comment, code) of each documented declaration at namespace level; of classes the public part."""
    comment, at = [], 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("///"):
            comment.append(line[3:].strip())
        elif line.startswith(("namespace", "}", "#", "//")) or not line.strip() or line[0] == " ":
            comment = [] if not line.startswith("//") else comment
        else:
            code = [line]
            opened = re.search(r"\b(class|struct|enum)\b", line) and not line.rstrip().endswith(";")
            end = (lambda l: l.startswith("}")) if opened and "}" not in line else (lambda l: l.rstrip().endswith((";", "{", "}")))
            while not (end(code[-1]) and (len(code) > 1 or not opened or "}" in line)) and at + 1 < len(lines):
                if opened and lines[at + 1].strip() == "private:":
                    while not lines[at + 1].startswith("}"):
                        at += 1
                at += 1
                code.append(lines[at])
            if comment or opened:
                yield " ".join(comment), "\n".join(code).rstrip(" {")
            comment = []
        at += 1


def cpp_api(room):
    out = f"# C++: `{room}`\n\n"
    for header in sorted((ROOT / "include/tarsus" / room).glob("*.hpp")):
        lines = header.read_text(encoding="utf-8").splitlines()
        head = [line[2:].strip() for line in lines[: next((i for i, line in enumerate(lines) if not line.startswith("//")), 0)]]
        entries = list(declarations(lines))
        if not entries:
            continue
        out += f"## `tarsus/{room}/{header.name}`\n\n```text\n" + "\n".join(head) + "\n```\n\n"
        for comment, code in entries:
            out += f"{escape(comment)}\n\n```cpp\n{code}\n```\n\n"
    return out


def escape(text):
    """A comment as Markdown, with @param and @throws as a list."""
    text = re.sub(r"([*_<>\[\]])", r"\\\1", text)
    text = re.sub(r" ?@(param|return|throws) ([\w-]+)", lambda m: f"\n- {'' if m[1] == 'param' else m[1] + ' '}`{m[2]}`", text)
    return text.replace("\n-", "\n\n-", 1)


# -- the site --


def linked_files(page, text):
    """Files of the repository, other than pages, that a page shows or links to."""
    for target in docs.LINK.findall(docs.FENCED.sub("", text)):
        path = (page.parent / target.partition("#")[0]).resolve()
        if not re.match(r"[a-z]+:", target) and path.is_file() and path.suffix != ".md":
            yield path


def lay_out(source, stub):
    shutil.rmtree(source, ignore_errors=True)
    for page in docs.pages():
        text = page.read_text(encoding="utf-8")
        for path in [page, *linked_files(page, text)]:
            target = source / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    api = source / "api"
    api.mkdir()
    (api / "python.md").write_text(python_api(stub), encoding="utf-8")
    rooms = [room for room in docs.MAY_INCLUDE if (ROOT / "include/tarsus" / room).is_dir()]
    for room in rooms:
        (api / f"cpp_{room}.md").write_text(cpp_api(room), encoding="utf-8")
    return rooms


def configuration(folder, rooms):
    version = re.search(r"project\(tarsus VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    decisions = [f"docs/decisions/{path.name}" for path in sorted((ROOT / "docs/decisions").glob("*.md"))]
    nav = [{title: pages} for title, pages in GUIDES.items()]
    nav += [{"Reference": ["api/python.md", *(f"api/cpp_{room}.md" for room in rooms)]}, {"Decisions": decisions}]
    listed = {page for group in nav for pages in group.values() for page in ([pages] if isinstance(pages, str) else pages)}
    others = [str(page.relative_to(ROOT)) for page in docs.pages() if str(page.relative_to(ROOT)) not in listed]
    if others:
        nav.append({"More": others})
    toggles = [{"media": f"(prefers-color-scheme: {scheme})", "scheme": name, "toggle": {"icon": icon, "name": label}}
               for scheme, name, icon, label in (("light", "default", "material/weather-night", "dark"),
                                                 ("dark", "slate", "material/weather-sunny", "light"))]
    return {
        "site_name": f"tarsus {version}", "docs_dir": str(folder / "source"), "site_dir": str(folder / "html"),
        "use_directory_urls": False,  # so that the site opens from disk
        "theme": {"name": "material", "font": False, "palette": toggles, "features": ["navigation.tabs", "content.code.copy"]},
        "plugins": ["search", "offline"],
        "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True, "toc_depth": 3}},
                                {"pymdownx.highlight": {"use_pygments": True}}, "pymdownx.superfences"],
        "validation": {"links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"},
                       "nav": {"omitted_files": "warn", "not_found": "warn"}},
        "nav": nav,
    }


SHIM = "https://unpkg.com/iframe-worker/shim"  # needed by the theme's search when a page is opened from disk
SHIM_PACKAGE = "iframe-worker@1.0.4"


def bring_shim(folder):
    """Adds the script that the theme would fetch, from an npm package, so that search works from disk without a network."""
    if not shutil.which("npm"):
        print("site: npm is not here, so search in pages that are opened from disk needs a network", file=sys.stderr)
        return
    made = folder / "npm"
    subprocess.run(["npm", "install", "--prefix", made, "--no-audit", "--no-fund", "--silent", SHIM_PACKAGE], check=True)
    html = folder / "html"
    shutil.copy(made / "node_modules/iframe-worker/shim/index.js", html / "assets/javascripts/iframe-worker.js")
    for page in html.rglob("*.html"):
        up = "../" * (len(page.relative_to(html).parts) - 1)
        page.write_text(page.read_text(encoding="utf-8").replace(SHIM, f"{up}assets/javascripts/iframe-worker.js"), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Builds the documentation's site.")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    arguments = parser.parse_args()
    stub = arguments.build / "python/_core.pyi"
    if not stub.exists():
        parser.error(f"{stub} is not there: `make build` makes it")
    folder = (arguments.build / "site").resolve()
    rooms = lay_out(folder / "source", stub)
    (folder / "mkdocs.yml").write_text(json.dumps(configuration(folder, rooms), indent=1), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", folder / "mkdocs.yml"]
    run = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if run.returncode == 0:
        bring_shim(folder)
        print(f"site: {folder / 'html/index.html'}")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
