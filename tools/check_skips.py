#!/usr/bin/env python3
"""Lists skipped tests from JUnit files; exit status 1 if a test was skipped that should run.

usage: tools/check_skips.py JUNIT.xml ...

A test may be skipped because of the machine (a processor without AVX2), but not because something is missing that `make test`
or the checkout provides: packages, oracles, ../shared. `make test STRICT=1` calls this, as CI does.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

# Accepted reasons: properties of the machine or of the test case.
ALLOWED = [
    r"this processor has no",
    r"double only",
    r"run by tests/io/mjcf_against_mujoco\.py",  # the C++ half of a Python test, which runs it
    r"compared with MuJoCo alone",
]


def main(paths):
    skipped, unexpected, ran = 0, [], 0
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            skip = case.find("skipped")
            if skip is None:
                ran += 1
                continue
            skipped += 1
            output = case.findtext("system-out") or ""
            reason = " ".join([skip.get("message") or "", skip.text or "", output])
            if not any(re.search(allowed, reason) for allowed in ALLOWED):
                name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
                unexpected.append(f"{name}: {skip.get('message') or reason.strip()[:200]}")
    print(f"skipped tests: {skipped} of {ran + skipped}, of which {len(unexpected)} should have run")
    for line in unexpected:
        print(f"  {line}")
    if ran == 0:
        print("  no test ran at all")
    return 1 if unexpected or ran == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
