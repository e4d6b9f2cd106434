#!/usr/bin/env python3
"""Prints the Python example of README.md: its first block marked ```python."""

import re
import sys
from pathlib import Path

blocks = re.findall(r"```python\n(.*?)```", (Path(__file__).parent.parent / "README.md").read_text(), re.S)
if not blocks:
    sys.exit("README.md has no Python example")
print(blocks[0], end="")
