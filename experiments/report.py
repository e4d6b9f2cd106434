"""All tables and figures, in one report: experiments/report.md, with its plots in experiments/plots/; --quick: out/experiments/.

usage: report.py [--quick] [--cached]
"""

import importlib
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common

SECTIONS = ("table1", "table2", "table3", "figure5", "figure6", "growth", "engines", "force_limits", "figure7")


def main():
    args = common.arguments()
    start = time.monotonic()
    context = common.Context(quick=args.quick, fresh=not args.cached)
    sections = []
    for name in SECTIONS:
        began = time.monotonic()
        sections.append(importlib.import_module(f"{name}.run").run(context))
        common.say(f"-- {name}: {time.monotonic() - began:.0f} s")
    kernels = context.bench("frames")[0]["isa"]
    command = "make experiments" + (" QUICK=1" if args.quick else "")
    head = f"""# Experiments: stable PD in linear time

Made by `experiments/report.py`, which `{command}` runs, in {(time.monotonic() - start) / 60:.1f} minutes; nothing here is typed in but the paper's own figures
([paper.py](paper.py)). Each table or figure alone: `python experiments/NAME/run.py` (NAME: {', '.join(SECTIONS)}).

Machine: {common.processor()}, one core, {kernels} kernels. Ratios come first: absolute times depend on the machine, and every ratio is measured
within one run, its sides taking turns. The paper: Z. Yin, K. Yin, *Linear Time Stable PD Controllers for Physics-based
Character Animation*, Computer Graphics Forum, 2020; its own figures are on an Intel Xeon Gold 6128 with PhysX.
**Every figure below but the last section's is without ground contact.**
"""
    target = (common.OUT if args.quick else common.ROOT / "experiments") / "report.md"
    target.write_text("\n".join([head, *sections]))
    common.say(f"-- {target.relative_to(common.ROOT)}")


if __name__ == "__main__":
    main()
