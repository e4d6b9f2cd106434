"""The command line: what the `tarsus` on the PATH and `python -m tarsus` start."""

import os
import pathlib
import signal
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin" / "tarsus"
    if not program.is_file():
        sys.exit(f"tarsus: this installation lacks the command line ({program})")
    os.environ.setdefault("TARSUS_PYTHON", sys.executable)  # for `tarsus view`, which hands over to this package
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `tarsus … | head`: Python ignores it, and so would the program
    os.execv(program, ["tarsus", *sys.argv[1:]])


if __name__ == "__main__":
    main()
