"""Figure 5: tracking error of the humanoid's right ankle, running."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import common
import tracking


def run(context):
    rows = context.bench("tracking")
    return f"""## Figure 5: the running humanoid's right ankle

Distance between the vector from root to right ankle in the simulation and in the clip. The paper's figure shows that DF and MABA
give nearly the same curves and are stable up to 1/30 s. {tracking.verdict(rows, 'humanoid')} Mean / largest error in mm (the
paper prints curves, no numbers):

{tracking.table(rows, 'humanoid')}
{tracking.panels(rows, 'humanoid', 'figure5', 'Tracking error of the right ankle over time for five steps, DF and MABA, double and float')}"""


if __name__ == "__main__":
    common.main(run)
