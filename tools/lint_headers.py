"""Checks that every public header compiles by itself, with warnings as errors."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++"]


def check(root, jobs):
    compiler = os.environ.get("CXX", "g++")
    headers = sorted((root / "include").rglob("*.hpp"))

    def compile_alone(header):
        source = f'#include "{header.relative_to(root / "include")}"\n'
        run = subprocess.run([compiler, *FLAGS, "-I", root / "include", "-"], input=source, capture_output=True, text=True)
        if run.returncode == 0:
            return None
        first_error = next((line for line in run.stderr.splitlines() if "error" in line), run.stderr)
        return f"{header.relative_to(root)}: does not compile on its own: {first_error}"

    with ThreadPoolExecutor(jobs) as pool:
        return [problem for problem in pool.map(compile_alone, headers) if problem], f"{len(headers)} headers"
