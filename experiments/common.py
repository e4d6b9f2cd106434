"""What the experiments share: running the programs that measure, plots, tables.

A program's lines are kept in out/experiments/ so that one run serves every table that reads it; `fresh` runs it again.
Programs that measure stay in C++ (build/bin/control_bench); nothing here is timed but other people's engines.
"""

import json
import math
import os
import pathlib
import platform
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLOTS = ROOT / "experiments" / "plots"
OUT = ROOT / "out" / "experiments"
TARSUS = pathlib.Path(os.environ.get("TARSUS", ROOT / "build" / "bin" / "tarsus"))
BINARIES = TARSUS.parent
COLOURS = {"dense": "#c0392b", "sparse": "#e08e0b", "pcg": "#8e44ad", "maba_standalone": "#5dade2", "maba": "#1f6fb2",
           "dense_direct": "#7f8c8d", "sparse_direct": "#2e8b57"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def wrapped(command):
    """WRAP is put before every program that measures, for machines where that takes a scheduler's word."""
    return shlex.split(os.environ.get("WRAP", "")) + [str(c) for c in command]


class Context:
    """One run of the experiments."""

    def __init__(self, quick=False, fresh=True):
        global PLOTS
        self.quick, self.fresh, self.lines = quick, fresh, {}
        if quick:  # never over the plots that the repository keeps
            PLOTS = OUT / "plots"
        OUT.mkdir(parents=True, exist_ok=True)
        PLOTS.mkdir(parents=True, exist_ok=True)

    def rows(self, name, command):
        """JSON lines that `command` prints."""
        if name in self.lines:
            return self.lines[name]
        file = OUT / f"{name}{'_quick' if self.quick else ''}.jsonl"
        if self.fresh or not file.exists():
            say(f"-- {name}")
            result = subprocess.run(wrapped(command), capture_output=True, text=True)
            if result.returncode:
                raise SystemExit(f"{' '.join(map(str, command))} failed with {result.returncode}:\n{result.stderr}")
            file.write_text(result.stdout)
        self.lines[name] = [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
        return self.lines[name]

    def bench(self, part):
        program = BINARIES / "control_bench"
        if not program.exists():
            raise SystemExit(f"{program} is not built: make build")
        return self.rows(part, [program, part] + (["--quick"] if self.quick else []))


def processor():
    """The processor's name alone: no host, no path."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def figure(width=7.2, height=4.0, columns=1, rows=1):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "svg.hashsalt": "tarsus", "figure.dpi": 110})
    return pyplot.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")


def save(fig, name, alt):
    """Writes NAME.svg and NAME.png; returns the Markdown that shows it."""
    for kind in ("svg", "png"):
        fig.savefig(PLOTS / f"{name}.{kind}", metadata={"Date": None} if kind == "svg" else None)
    return f"![{alt}](plots/{name}.png)\n\n([SVG](plots/{name}.svg))\n"


def table(head, rows):
    """A Markdown table; the first column is text, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(str(x) for x in row) + " |" for row in rows]) + "\n"


def slope(points):
    """Exponent b of y = a x^b by least squares on logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def number(x, digits=3):
    """Short, with thousands separated."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.{digits}g}"


def arguments():
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="shorter runs, noisier figures")
    parser.add_argument("--cached", action="store_true", help="use the last run's measurements in out/experiments/")
    return parser.parse_args()


def main(run):
    """One table or figure alone: its section on standard output."""
    args = arguments()
    print(run(Context(quick=args.quick, fresh=not args.cached)))
