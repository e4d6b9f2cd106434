"""Measures the share of third-party model files that tarsus loads.

Looks for MJCF and URDF files in folders and installed Python packages, asks MuJoCo (MJCF) or Pinocchio (URDF) whether the
file is a model, and `tarsus check` whether it loads here. Prints the share for each kind, and every other file with the
first error. The other loaders run in child processes, so that a file that crashes one is reported as a row.

    .venv/bin/python tools/load_share.py ../shared/data
    .venv/bin/python tools/load_share.py ../shared/data --before OTHER/build/bin/tarsus   # which files another build loads
    .venv/bin/python tools/load_share.py --package robosuite --package dm_control --least-mjcf 0.98 --least-urdf 0.97
"""

import argparse
import concurrent.futures
import contextlib
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = re.compile(r"<\s*(mujoco|robot)[\s>/]")


def kind_of(file):
    """"mjcf", "urdf" or None, by the file's root element."""
    try:
        text = file.read_bytes()[:200_000].decode("utf-8", "replace")
    except OSError:
        return None
    text = re.sub(r"<!--.*?(-->|$)|<\?.*?\?>", "", text, flags=re.S)
    first = re.search(r"<[^!?]", text)
    found = ROOT.match(text, first.start()) if first else None
    return {"mujoco": "mjcf", "robot": "urdf"}[found.group(1)] if found else None


def models_below(folder):
    for file in sorted(folder.rglob("*")):
        if file.suffix.lower() in (".xml", ".urdf", ".mjcf") and file.is_file():
            kind = kind_of(file)
            if kind:
                yield kind, file


def package_folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(list(places)[0]) if places else None


def load_outside(kind, file, connection):
    """Runs in a child process: whether MuJoCo or Pinocchio loads the file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.dup2(2, 1)
    try:
        if kind == "mjcf":
            import mujoco

            mujoco.MjModel.from_xml_path(str(file))
        else:
            import pinocchio

            pinocchio.buildModelFromUrdf(str(file))
        connection.send("")
    except BaseException as error:  # noqa: BLE001: any exception is the result
        connection.send((str(error).strip().splitlines() or [type(error).__name__])[0])


def ask_outside(kind, file, seconds):
    mine, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.Process(target=load_outside, args=(kind, file, theirs))
    child.start()
    theirs.close()
    try:
        answer = mine.recv() if mine.poll(seconds) else f"took more than {seconds} s"
    except EOFError:
        answer = "ended the process"
    child.kill()
    child.join()
    return answer


def ask_tarsus(program, options, file, seconds):
    """The first error, or "" if the file loads. Exit statuses other than 0 and 1 are crashes."""
    start = time.monotonic()
    try:
        done = subprocess.run([program, "check", str(file), "--json", *options], capture_output=True, text=True,
                              timeout=seconds, errors="replace")
    except subprocess.TimeoutExpired:
        return f"HANG: took more than {seconds} s", seconds
    took = time.monotonic() - start
    if done.returncode == 0:
        return "", took
    if done.returncode != 1:
        return f"CRASH: exit status {done.returncode}: {done.stderr.strip()[-200:]}", took
    try:
        errors = [d for d in json.loads(done.stdout)["diagnostics"] if d["severity"] == "error"]
        return f"line {errors[0]['line']}: {errors[0]['message']}" + (
            f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""), took
    except (ValueError, IndexError):
        return f"exit status 1 without an error: {done.stdout[:200]} {done.stderr[:200]}", took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--package", action="append", default=[], help="an installed Python package that carries models")
    parser.add_argument("--tarsus", default="build/bin/tarsus", help="the command line to ask (%(default)s)")
    parser.add_argument("--before", help="the command line of another build: what loads there and here, by name")
    parser.add_argument("--lenient", action="store_true", help="let tarsus read with --lenient")
    parser.add_argument("--seconds", type=float, default=60, help="longest for one file and reader (%(default)s)")
    parser.add_argument("--known", type=Path, help="keep the outside loaders' answers in this JSON file between runs")
    parser.add_argument("--least-mjcf", type=float, default=0, help="exit with 1 below this share")
    parser.add_argument("--least-urdf", type=float, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()

    folders = list(args.folders)
    for name in args.package:
        folder = package_folder(name)
        if folder:
            folders.append(folder)
        else:
            print(f"SKIPPED: package {name} is not installed")
    files = {}
    for folder in folders:
        if not folder.is_dir():
            print(f"SKIPPED: no folder {folder}")
            continue
        files.update({file.resolve(): (kind, file) for kind, file in models_below(folder)})
    known = json.loads(args.known.read_text()) if args.known and args.known.exists() else {}
    for module in ("mujoco", "pinocchio"):  # imported once: the child processes are forks of this one
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    options = ["--lenient"] if args.lenient else []
    bad = False

    def both(item):
        real, (kind, file) = item
        if str(real) not in known:
            known[str(real)] = ask_outside(kind, file, args.seconds)
            if args.known and len(known) % 50 == 0:
                args.known.write_text(json.dumps(dict(known), indent=0))
        before = ask_tarsus(args.before, options, file, args.seconds)[0] if args.before else None
        return kind, file, known[str(real)], *ask_tarsus(args.tarsus, options, file, args.seconds), before

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(both, sorted(files.items())))
    if args.known:
        args.known.write_text(json.dumps(known, indent=0))
    for kind, oracle, least in (("mjcf", "MuJoCo", args.least_mjcf), ("urdf", "Pinocchio", args.least_urdf)):
        mine = [r for r in rows if r[0] == kind]
        good = [r for r in mine if r[2] == ""]
        loaded = [r for r in good if r[3] == ""]
        share = len(loaded) / len(good) if good else 1
        print(f"\n{kind}: {len(loaded)} of the {len(good)} files that {oracle} loads ({share:.1%}); "
              f"{len(mine)} files in all, {sum(r[3] == '' for r in mine)} of them load here; "
              f"slowest {max((r[4] for r in mine), default=0):.1f} s")
        if args.before:
            then = [r for r in mine if r[5] == ""]
            print(f"  before: {sum(r[5] == '' for r in good)} of them, {len(then)} of all")
            for heading, rows_of in (("loads now, did not before", [r for r in mine if r[3] == "" and r[5]]),
                                     ("loaded before, does not now", [r for r in then if r[3]])):
                print(f"  {heading}: {len(rows_of)}")
                for r in rows_of:
                    print(f"    {r[1]}\n      {r[3] or r[5]}")
        for _, file, _, error, *_ in good:
            if error:
                print(f"  {file}\n      {error}")
        for _, file, outside, error, *_ in mine:
            if error.startswith(("CRASH", "HANG")):
                print(f"  {error}  {file}")
                bad = True
        bad = bad or share < least
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
