#!/usr/bin/env python3
"""Checks the documentation against the repository. tools/docs_site.py makes a site of it.

usage: tools/docs.py     exit status 1 if anything is wrong

Checked: links and their anchors; names in notation.md's column "in code" occur in the sources; decisions have a number of their
own and their four parts; the rooms of architecture.md are those of include_rules.py; every `make TASK` exists; a code
block under <!-- file: PATH --> is part of that file; README's figures are on the page that README names for them;
spelling, everywhere (tools/words.txt has words of the field).
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from include_rules import MAY_INCLUDE

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
WRITTEN = (".md", ".py", ".hpp", ".cpp", ".inl", ".js", ".css", ".sh", ".txt", ".cmake", ".toml", ".xml", "")
NOT_WRITTEN = ("fuzz/corpus/", "python/tarsus/view/page.html", "tools/words.txt")
DECISION_PARTS = ["Context", "Choice", "Rejected", "How we would notice that it was wrong"]


def pages():
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return found + sorted(p for top in ("src", "models", "examples", "fuzz", "experiments") for p in (ROOT / top).rglob("*.md"))


def anchors(text):
    """GitHub's anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(page, text):
    for target in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name) if name else page
        if not path.exists():
            yield f"link to {target}, which does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"link to {target}: no such heading"


def check_tasks(page, text):
    tasks = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for task in re.findall(r"(?:`|^ *)make ([a-z0-9-]+)", text, re.M):
        if task not in tasks:
            yield f"names the task `make {task}`, which the Makefile does not have"


def check_quotes(page, text):
    for name, block in re.findall(r"<!-- file: (\S+) -->\s*```\w*\n(.*?)^```", text, re.M | re.S):
        path = ROOT / name
        if not path.is_file() or block not in path.read_text(encoding="utf-8"):
            yield f"quotes {name}, which does not hold those lines"


def table_rows(text, header):
    """Rows (lists of cells) of every table with a cell `header` in its first row, including the header row."""
    rows, head = [], None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            head = None
        elif head is None:
            head = cells
        elif header in head and not set(line) <= set("|-: "):
            rows.append(dict(zip(head, cells)))
    return rows


def check_figures(page, text):
    if page != ROOT / "README.md":
        return
    rows = table_rows(text, "measured, on one core")
    if not rows:
        yield "the table of figures was not found"
    for row in rows:
        measured, named = row["measured, on one core"], LINK.findall(row["by"])[-1]
        source = (page.parent / named).read_text(encoding="utf-8")
        for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-\d+)?", measured):
            if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", source):
                yield f"{number} of \"{measured}\" is not in {named}"


def check_notation(page, text):
    if page.name != "notation.md":
        return
    files = [p for top in ("include", "src") for p in (ROOT / top).rglob("*") if p.suffix in (".hpp", ".cpp", ".inl")]
    words = set()
    for path in files:
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    names = [name for row in table_rows(text, "in code") for name in re.findall(r"`([^`]+)`", row["in code"])]
    if len(names) < 20:
        yield "the tables with a column \"in code\" were not found"
    for name in names:
        if name not in words:
            yield f"`{name}` does not occur in the sources"


def check_rooms(page, text):
    if page.name != "architecture.md":
        return
    stated = {}
    for row in table_rows(text, "may include"):
        rooms = re.findall(r"`([^`]+)`", row["may include"])
        stated[row["room"].strip("`")] = rooms
    for room in sorted({*stated, *MAY_INCLUDE}):
        if stated.get(room) != MAY_INCLUDE.get(room):
            yield f"room {room}: the page says {stated.get(room)}, tools/include_rules.py {MAY_INCLUDE.get(room)}"


def check_decision(page, text):
    if page.parent.name != "decisions":
        return
    parts = re.findall(r"^## (.*)$", text, re.M)
    if parts != DECISION_PARTS:
        yield f"has the parts {parts}, wanted {DECISION_PARTS}"
    number = int(page.name[:4])  # by subject in hundreds: 3.. control, 4.. loops, 5.. contact, 6.. particles
    if len(list(page.parent.glob(f"{number:04}-*.md"))) != 1 or not text.startswith(f"# {number}. "):
        yield "shares its number, or its title does not begin with it"
    if page.name not in (ROOT / "docs/index.md").read_text(encoding="utf-8"):
        yield "is not listed in docs/index.md"


def check_spelling():
    """Misspellings in all text files of the repository, including comments, messages and names."""
    tracked = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
                             text=True, check=True)
    files = [name for name in tracked.stdout.splitlines() if Path(name).suffix in WRITTEN and (ROOT / name).is_file()]
    files = [name for name in files if not name.startswith(NOT_WRITTEN)]
    run = subprocess.run([sys.executable, "-m", "codespell_lib", "--ignore-words", ROOT / "tools/words.txt", *files], cwd=ROOT,
                         capture_output=True, text=True)
    if run.returncode not in (0, 65):  # 65: misspellings found
        raise RuntimeError(run.stderr or "codespell failed")
    return run.stdout.splitlines()


def main():
    argparse.ArgumentParser(description="Checks the documentation.").parse_args()
    problems, found = 0, pages()
    for page in found:
        text = page.read_text(encoding="utf-8")
        for check in (check_links, check_tasks, check_quotes, check_figures, check_notation, check_rooms, check_decision):
            for problem in check(page, text):
                print(f"{page.relative_to(ROOT)}: {problem}")
                problems += 1
    for problem in check_spelling():
        print(f"spelling: {problem}")
        problems += 1
    print(f"docs: {problems or 'no'} problems in {len(found)} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
