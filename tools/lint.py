#!/usr/bin/env python3
"""Runs all static checks; exit status 1 if any finds a problem.

usage: tools/lint.py [--build DIRECTORY] [--only NAME ...]     names: includes format words columns fields definitions
  elementary headers isa lengths
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import lint_headers
import lint_includes
import lint_isa
import lint_text


def check_isa(root, build):
    tracked = subprocess.run(["git", "ls-files", "src", "include"], cwd=root, capture_output=True, text=True, check=True)
    problems, summary = lint_isa.check(build)
    return [*lint_isa.check_sources(tracked.stdout.splitlines()), *problems], summary


def main():
    parser = argparse.ArgumentParser(description="Static checks of the repository.")
    parser.add_argument("--build", type=Path, default=Path("build"), help="build tree whose objects are checked")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="includes format words columns fields definitions elementary headers isa lengths")
    arguments = parser.parse_args()

    root = lint_includes.repository()
    jobs = os.cpu_count() or 2
    checks = {
        "includes": lambda: lint_includes.check(root),
        "format": lambda: lint_text.check_format(root, jobs),
        "words": lambda: lint_text.check_words(root),
        "columns": lambda: lint_text.check_columns(root),
        "fields": lambda: lint_text.check_fields(root),
        "definitions": lambda: lint_text.check_definitions(root),
        "elementary": lambda: lint_text.check_elementary(root),
        "headers": lambda: lint_headers.check(root, jobs),
        "isa": lambda: check_isa(root, arguments.build),
    }
    wanted = arguments.only or [*checks, "lengths"]
    unknown = set(wanted) - {*checks, "lengths"}
    if unknown:
        parser.error(f"unknown check: {', '.join(sorted(unknown))}")

    failed = 0
    for name, check in checks.items():
        if name not in wanted:
            continue
        problems, summary = check()
        for problem in problems:
            print(problem)
        print(f"lint {name}: {len(problems) or 'no'} problem{'s' if len(problems) != 1 else ''} ({summary})")
        failed += len(problems)
    if "lengths" in wanted:
        for warning in lint_text.report_lengths(root):
            print(f"warning: {warning}")
    print(f"lint: {'FAILED, ' + str(failed) + ' problems' if failed else 'passed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
