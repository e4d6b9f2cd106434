"""The command line: entry point of `tarsus` on the PATH and of `python -m tarsus`."""

import os
import pathlib
import signal
import sys


def main():
    program = pathlib.Path(__file__).parent / "bin" / "tarsus"
    if not program.is_file():
        sys.exit(f"tarsus: the command-line program is not installed ({program})")
    os.environ.setdefault("TARSUS_PYTHON", sys.executable)  # `tarsus view` runs this package with it
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for `tarsus … | head`: otherwise the program inherits Python's ignored SIGPIPE
    os.execv(program, ["tarsus", *sys.argv[1:]])


if __name__ == "__main__":
    main()
