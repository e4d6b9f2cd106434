"""python -m tarsus.view WHAT …: the command that `tarsus view` runs."""

import sys

from .command import main

sys.exit(main(["view", *sys.argv[1:]]))
