"""Table 1: sizes of the built-in models."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
import paper


def run(context):
    rows = []
    for name, (n, d) in paper.MODELS.items():
        command = [common.TARSUS, "info", common.ROOT / "models" / f"{name}.xml", "--json"]
        info = json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout)
        rows.append([name, info["nv"], n, info["depth"], d, "same" if (info["nv"], info["depth"]) == (n, d) else "**differs**"])
    return ("## Table 1: the models\n\nn: degrees of freedom; d: the most on one branch, the root's included.\n\n" +
            common.table(["model", "n", "n in the paper", "d", "d in the paper", ""], rows))


if __name__ == "__main__":
    common.main(run)
