"""Trains a policy: ``python -m tarsus.learn walk`` shows progress and writes the policy and its curve."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import sys
import time

from .. import errors, tasks
from ..files import complete, names_file
from . import Policy, evaluate
from .evaluation import MOST_THREADS

#: Additional limits that end episodes, in training only. Without them the policies learn to stand instead of following the
#: motion.
LIMITS = {"tilt_limit": 1.0, "distance_limit": 0.7}
#: Argument of the command line: the task, its options, and deviations from Settings().
PRESETS = {
    "walk": ("HumanoidWalk", {"relative_action": True}, {}),
    "run": ("HumanoidRun", {"relative_action": True}, {}),
    "cartwheel": ("HumanoidCartwheel", {"relative_action": True, **LIMITS}, {}),
    "backflip": ("HumanoidBackflip", {"relative_action": True, **LIMITS}, {}),
    "pace": ("DogPace", {"relative_action": True}, {}),
    "canter": ("DogCanter", {"relative_action": True}, {}),
    "quadruped": ("QuadrupedVelocity", {}, {"worlds": 512, "steps": 24, "minibatches": 4, "hidden": (128, 128), "gamma": 0.99,
                                            "action_scale": 1.0, "noise": 0.5, "entropy": 0.002}),
    "cart-pole": ("CartPole", {}, {"worlds": 64, "steps": 32, "epochs": 5, "minibatches": 4, "hidden": (32, 32),
                                   "gamma": 0.99, "action_scale": 10.0, "noise": 0.3, "learning_rate": 3e-3,
                                   "desired_kl": 0.02}),
}
#: Changes of settings after a number of samples. The cartwheel stops improving when its updates reach their smallest size; larger
#: updates, from more samples, improve it further. After that, exploration noise is the main cause of falls.
LATER = {
    "cartwheel": [(9e6, {"worlds": 512, "minibatches": 4, "desired_kl": 0.03, "learning_rate": 3e-5}),
                  (24e6, {"worlds": 512, "minibatches": 4, "desired_kl": 0.02, "learning_rate": 3e-5, "largest_noise": 0.1})],
}
EVALUATE_EVERY = 500_000  #: samples; a run keeps the best of the policies evaluated at these times


def arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m tarsus.learn", description=__doc__)
    parser.add_argument("task", choices=PRESETS)
    parser.add_argument("--out", help="folder of the run (default: out/learn/TASK-SEED); a checkpoint of the same task and "
                        "seed in it is resumed")
    parser.add_argument("--samples", type=float, default=None, help="number of control steps to train on (default: 20e6; cartwheel: 34e6)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=min(max(1, os.cpu_count() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))), MOST_THREADS),
                        help=f"at most {MOST_THREADS} (default: all cores; under torchrun, this process's share of them)")
    parser.add_argument("--worlds", type=int, help="number of worlds; a resumed run may have another number than before, and reports it")
    parser.add_argument("--vary", type=float, metavar="SHARE", help="each world has its own masses, friction, damping, armature, gains and "
                        "force limits, by factors from 1 - SHARE to 1 + SHARE, and its own centres of mass; 0.2 is usual")
    parser.add_argument("--absolute", action="store_true", help="actions are the drives' targets, as in DeepMimic, instead of "
                        "offsets to the clip's pose; for tasks with a clip")
    given = parser.parse_args(argv)
    for name, least, most in (("samples", 1, float("inf")), ("seed", 0, 2**31 - 1), ("threads", 1, MOST_THREADS), ("worlds", 1, 2**31 - 1)):
        value = getattr(given, name)
        if value is not None and not least <= value < float("inf"):
            parser.error(f"--{name}: is {value}, expected a finite number, at least {least}")
        if value is not None and value > most:
            parser.error(f"--{name}: is {value}, expected at most {most}")
    if given.vary is not None and not 0 <= given.vary < 1:
        parser.error(f"--vary: is {given.vary}, expected a number from 0 to less than 1")
    if given.out == "":
        parser.error("--out: is empty, expected a folder")
    if not given.minutes > 0:
        parser.error(f"--minutes: is {given.minutes}, expected more than 0")
    with_clip = [task for task, (_, options, _) in PRESETS.items() if "relative_action" in options]
    if given.absolute and given.task not in with_clip:
        parser.error(f"--absolute: is given with {given.task}, which has no clip; expected one of {', '.join(with_clip)}")
    return given


@contextlib.contextmanager
def interruptible():
    """A list of the signals SIGINT (Ctrl-C) and SIGTERM (kill) so far. The first ends the training after its iteration; the
    same signal again ends the program at once."""
    asked = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number, _):
        asked.append(number)
        signal.signal(number, before[number])

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as when a shell starts it in the background
            signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv=None):
    a = arguments(argv)
    try:
        from . import training
    except ModuleNotFoundError as error:
        sys.exit(f"tarsus.learn needs {error.name}: pip install 'tarsus[learn]'")
    name, options, changes = PRESETS[a.task]
    if a.absolute:
        options = {**options, "relative_action": False}
    options_given = {"worlds": a.worlds, "varied": a.vary}
    given = {key: value for key, value in options_given.items() if value is not None}  # takes precedence over the task's settings, also the later ones
    task = tasks.make(name, **options)
    folder = pathlib.Path(a.out or f"out/learn/{a.task}-{a.seed}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"--out: {folder}: {error.strerror}")
    later, began = LATER.get(a.task, []), time.perf_counter()
    a.samples = a.samples or (later[-1][0] + 10e6 if later else 20e6)
    ends = [samples for samples, _ in later] + [float("inf")]
    with interruptible() as asked, names_file(folder):
        for end, new in zip(ends, [{}, *(new for _, new in later)]):
            try:
                training.check_outputs(folder, "policy.onnx", "result.json", "curve.png")
                run = training.Training(task, folder, training.Settings(**{**changes, **new, **given}), seed=a.seed,
                                        threads=a.threads, about={"task": name, **options}, tensorboard=True,
                                        evaluate_every=EVALUATE_EVERY)
            except errors.ValueError as error:
                sys.exit(f"{error} (--out)" if str(error).startswith("folder: ") else f"{error}")
            if run.samples >= end:  # the resumed run is past these settings
                continue
            run.run(min(a.samples, end), minutes=a.minutes - (time.perf_counter() - began) / 60, until=lambda row: bool(asked),
                    out=sys.stderr)
            if asked or run.samples < end:
                break
    if asked:
        print(f"stopped after {run.samples} samples: the same command resumes from there; {folder}", file=sys.stderr)
        return 128 + asked[0]
    if run.processes.rank:
        return 0
    policy = Policy.load(folder / "best.npz") if run.best["samples"] else run.policy()
    policy.save(folder / "policy.npz")
    policy.save_onnx(folder / "policy.onnx")
    falls = {key: value for key, value in options.items() if key not in LIMITS}
    # Initial states other than those that selected the policy.
    result = evaluate(tasks.make(name, **falls), policy, worlds=128, seed=2 * 10**6, threads=a.threads)
    if a.vary:
        result["varied"] = evaluate(tasks.make(name, **falls), policy, worlds=128, seed=2 * 10**6, threads=a.threads, varied=a.vary)
    result |= {"chosen_after": run.best["samples"], "samples": run.samples, "seconds": run.seconds, "bad_worlds": run.bad_worlds}
    if falls != options:
        result["within_limits"] = evaluate(task, policy, worlds=128, seed=2 * 10**6, threads=a.threads)
    with complete(folder / "result.json") as part:
        part.write_text(json.dumps(result, indent=1), encoding="utf-8")
    training.draw(run.curve, folder / "curve.png", title=f"{name}, seed {a.seed}")
    print(f"return {result['normalized_return']:.3f} of 1, episodes {result['episode_seconds']:.1f} s, "
          f"{100 * result['completed']:.0f} % to the end, {run.bad_worlds} worlds failed; {folder}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"error: {error}")
