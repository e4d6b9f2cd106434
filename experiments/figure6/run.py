"""Figure 6: tracking error of the dog's right front toe, cantering; and why a dense factor diverges in float."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
import tracking

SOLVERS = {"dense": "DF", "dense_direct": "DF without the second solve", "maba_standalone": "MABA standalone", "maba": "MABA"}


def off(row):
    return f"diverged at {row['diverged_at']:.2f} s" if row["diverged_at"] >= 0 else f"{1000 * row['max']:.4g} mm"


def toes(context):
    found = {(r["mass"], r["solver"], r["scalar"]): r for r in context.bench("toes")}
    masses = sorted({m for m, _, _ in found}, reverse=True)
    rows = [[f"{m:g}", off(found[m, "dense", "double"]), *(off(found[m, s, "float"]) for s in SOLVERS)] for m in masses]
    return found, masses, common.table(["paws' mass, times ours", "DF, double", *(f"{label}, float" for label in SOLVERS.values())], rows)


def why(found, masses):
    """The paragraph that the run supports."""
    def gone(solver, scalar):
        return [m for m in masses if found[m, solver, scalar]["diverged_at"] >= 0]

    lost, direct = gone("dense", "float"), gone("dense_direct", "float")
    if not lost or direct or gone("maba", "float") or gone("dense", "double"):
        return "The table does not single out one cause."
    return (f"DF in float diverges once the paws have {lost[0]:g} of our dog's mass; in double it never does, and in float "
            "neither MABA nor the same dense factor does when its acceleration is used as it is. So the factorisation is not "
            "the cause. It is the second solve: DF forms the joint forces, rounded to float, and ABA divides "
            "that rounding by the bare inertia of the paw, which is thousands of times smaller than the Δt k_d that the first solve had "
            "beside it. MABA standalone, which hands its forces on in the same way, fails in the same way.")


def run(context):
    rows = context.bench("tracking")
    dense = tracking.errors(rows, "dog")[60, "dense", "float"]
    said = ("diverges on our dog at 1/60 s in float" if dense["diverged_at"] >= 0 else
            "does not diverge on our dog at 1/60 s, in double or in float")
    found, masses, light = toes(context)
    return f"""## Figure 6: the cantering dog's right front toe

The paper's DF diverges here at steps of 1/60 s and above, and its MABA does not. **Our DF {said}.**
{tracking.verdict(rows, 'dog')} Mean / largest error in mm (the
paper prints curves, no numbers):

{tracking.table(rows, 'dog')}
{tracking.panels(rows, 'dog', 'figure6', 'Tracking error of the right front toe over time for five steps, DF and MABA, double and float')}
### Why the paper's DF diverges

The paper computes in float. Our dog at 1/60 s with paws of less and less mass (largest error of the right front toe):

{light}
{why(found, masses)}
"""


if __name__ == "__main__":
    common.main(run)
