"""Run array-api-tests, the conformance suite of the array API standard, on `flambeau.interop.array_api`.

    python -m tests.interop.array_api_suite SOURCES                   # a checkout of data-apis/array-api-tests
    python -m tests.interop.array_api_suite SOURCES --examples 100 -k test_linalg

SOURCES has the submodule `array-api`. The suite needs hypothesis, ndindex and pytest-json-report. Tests that are in
`array_api_ledger.txt` may fail; the exit code is not zero if another one does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

LEDGER = Path(__file__).with_name("array_api_ledger.txt")
ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run the suite in a process of its own; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--examples", type=int, default=30, help="examples of each property (%(default)s)")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="pytest's selection of tests")
    options = parser.parse_args(arguments)
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "flambeau.interop.array_api", "ARRAY_API_TESTS_SKIP_DTYPES": "uint16,uint32,uint64",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    command = [sys.executable, "-m", "pytest", "array_api_tests", "-q", "-p", "no:cacheprovider", "-n", "0",
               "--disable-deadline", "--max-examples", str(options.examples), "--xfails-file", str(LEDGER),
               "-k", options.k]
    return subprocess.run(command, cwd=options.sources, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
