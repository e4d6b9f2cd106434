"""Figure 7's runs: skills learned with the dense factor and with MABA, at a large step and at 1/240 s.

usage: train.py [--tasks walk,pace] [--seeds 5] [--substeps 2,8] [--jobs N] [--quick]

One run a core, the two methods side by side. What was stopped goes on from its last checkpoint, in out/experiments/figure7/. Curves
of runs that are done, thinned, are in curves.csv beside this file: run.py draws from there; what is there is not run again.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common

HERE = pathlib.Path(__file__).resolve().parent
#: Millions of samples.
TASKS = {"walk": 1.4, "run": 2.0, "pace": 1.6, "cartwheel": 6.0, "spin-kick": 6.0}
#: DeepMimic's own, where it is.
SPIN_KICK = common.ROOT.parent / "shared" / "data" / "deepmimic" / "data" / "motions" / "humanoid3d_spinkick.txt"
COLUMNS = ("task", "drives", "substeps", "seed", "samples", "seconds", "simulation_seconds", "normalized_return", "reward", "bad_worlds")


def folder_of(name, drives, substeps, seed, quick):
    return common.OUT / ("figure7_quick" if quick else "figure7") / f"{name}-{drives}-{substeps}-{seed}"


def task_of(name, substeps):
    """(task, its name, its options, what differs from Settings())"""
    import tarsus.tasks
    from tarsus.learn.__main__ import PRESETS

    if name != "spin-kick":
        task_name, options, changes = PRESETS[name]
        return tarsus.tasks.make(task_name, **options, substeps=substeps), task_name, options, changes
    _, options, changes = PRESETS["cartwheel"]
    table = tarsus.MODELS / "tasks" / "humanoid.json"
    return tarsus.tasks.motion_task(tarsus.MODELS / "humanoid.xml", SPIN_KICK, table, **options, substeps=substeps), SPIN_KICK.name, options, changes


def train(name, drives, substeps, seed, samples, folder):
    """One run, in this process."""
    from tarsus.learn import training

    task, task_name, options, changes = task_of(name, substeps)
    run = training.Training(task, folder, training.Settings(**{**changes, "drives": drives}), seed=seed,
                            about={"task": task_name, **options, "substeps": substeps})
    file = folder / "processor.json"  # [samples, seconds of the processor, of these in the simulation] after each iteration
    clock = [row for row in json.loads(file.read_text()) if row[0] <= run.samples] if file.exists() else []
    total, simulation = clock[-1][1:] if clock else (0.0, 0.0)
    saved = time.monotonic()
    while run.samples < samples:
        began, wall, inside = time.process_time(), time.perf_counter(), run.worlds.seconds["simulation"]
        run.iterate()
        spent = time.process_time() - began
        total += spent
        simulation += spent * (run.worlds.seconds["simulation"] - inside) / (time.perf_counter() - wall)
        clock.append([run.samples, total, simulation])
        if time.monotonic() - saved > 30 or run.samples >= samples:
            run.save()
            file.write_text(json.dumps(clock))
            saved = time.monotonic()
    (folder / "done").touch()


def rows_of(plan, quick):
    """What curves.csv says of the runs that are done, some 60 rows of each: means over what lies between."""
    for name, drives, substeps, seed, _ in plan:
        folder = folder_of(name, drives, substeps, seed, quick)
        if not (folder / "done").exists():
            continue
        with open(folder / "curve.csv", encoding="utf-8") as file:
            curve = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
        clock = {row[0]: row[1:] for row in json.loads((folder / "processor.json").read_text())}
        group = max(1, len(curve) // 60)
        for first in range(0, len(curve) - group + 1, group):
            part = curve[first : first + group]
            ended = [row["normalized_return"] for row in part if row["normalized_return"] == row["normalized_return"]]
            last = part[-1]
            yield dict(task=name, drives=drives, substeps=substeps, seed=seed, samples=int(last["samples"]),
                       seconds=round(clock[int(last["samples"])][0], 1), simulation_seconds=round(clock[int(last["samples"])][1], 1),
                       normalized_return=round(sum(ended) / len(ended), 4) if ended else "",
                       reward=round(sum(row["reward"] for row in part) / group, 4), bad_worlds=int(last["bad_worlds"]))


def write(plan, quick, target):
    """Those of the plan that are done here, and what the file already has of others."""
    rows = list(rows_of(plan, quick))
    mine = {(r["task"], r["drives"], str(r["substeps"]), str(r["seed"])) for r in rows}
    if target.exists():
        with open(target, encoding="utf-8") as file:
            rows += [r for r in csv.DictReader(file) if (r["task"], r["drives"], r["substeps"], r["seed"]) not in mine]
    rows.sort(key=lambda r: (r["task"], r["drives"], int(r["substeps"]), int(r["seed"]), int(r["samples"])))
    new = target.with_suffix(".new")
    with open(new, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    new.replace(target)


def plan_of(tasks, seeds, substeps, quick):
    """(task, drives, substeps, seed, samples) in the order in which they run: a seed of all before the next."""
    if quick:
        return [("walk", drives, k, 0, 160_000) for k in (2, 8) for drives in ("dense", "maba")]
    return [(name, drives, k, seed, int(1e6 * TASKS[name])) for seed in range(seeds) for name in tasks for k in substeps
            for drives in ("dense", "maba")]


def run_all(plan, jobs, quick, target):
    write(plan, quick, target)
    with open(target, encoding="utf-8") as file:
        done = {(r["task"], r["drives"], int(r["substeps"]), int(r["seed"])) for r in csv.DictReader(file)}
    waiting = [p for p in plan if p[:4] not in done]
    common.say(f"-- figure7: {len(plan) - len(waiting)} of {len(plan)} runs are done")

    def one(p):
        subprocess.run([sys.executable, __file__, "--one", *map(str, p), *(["--quick"] if quick else [])], check=True)
        return p

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, future in enumerate(concurrent.futures.as_completed([pool.submit(one, p) for p in waiting]), 1):
            name, drives, substeps, seed, _ = future.result()
            write(plan, quick, target)
            common.say(f"-- figure7: {name}, {drives}, 1/{30 * substeps} s, seed {seed}: {number} of {len(waiting)}")
    write(plan, quick, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="walk,pace", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--substeps", default="2,8", help="simulation steps of an action's 1/30 s (2,8)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs side by side")
    parser.add_argument("--quick", action="store_true", help="minutes: the walk, one seed, 160,000 samples")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, drives, substeps, seed, samples = args.one
        folder = folder_of(name, drives, int(substeps), int(seed), args.quick)
        folder.mkdir(parents=True, exist_ok=True)
        train(name, drives, int(substeps), int(seed), int(samples), folder)
        return
    tasks = args.tasks.split(",")
    if unknown := sorted(set(tasks) - set(TASKS)):
        parser.error(f"--tasks has {', '.join(unknown)}; expected some of {', '.join(TASKS)}")
    if "spin-kick" in tasks and not SPIN_KICK.exists():
        parser.error(f"--tasks has spin-kick, whose clip {SPIN_KICK} is not here")
    target = common.OUT / "figure7_quick.csv" if args.quick else HERE / "curves.csv"
    common.OUT.mkdir(parents=True, exist_ok=True)
    run_all(plan_of(tasks, args.seeds, [int(k) for k in args.substeps.split(",")], args.quick), args.jobs, args.quick, target)


if __name__ == "__main__":
    main()
