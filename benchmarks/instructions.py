"""Instructions of small operators, counted by Valgrind in two revisions: figures that a busy machine does not change.

    python -m benchmarks.instructions v0.1.0                             all operators on 8 x 8 matrices
    python -m benchmarks.instructions HEAD~20 --operators clone sort --sizes 8x8 64x64
    python -m benchmarks.instructions HEAD~20 --loaded                   in a program that has loaded kernels

Callgrind counts the machine instructions of `CALLS` calls of each operator, Python's and NumPy's included. A ratio is
the base's count over this checkout's: below 1 is slower. Two runs of the same code differ by less than 1 %. A count is
not a time: caches do not matter to it, and Valgrind's processor has no AVX-512. So this finds what the Python around a
kernel costs; `benchmarks.versions` times.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import limits, markdown
from .child_process import ROOT, log
from .versions import TOLERANCE, checkout_of, import_from

CALLS, WARM_UP = 100, 150
#: the C function whose calls Callgrind counts, and after which it writes the count to a file
COUNTED = "functools_reduce"


def child(checkout: str, size: str, mode: str, loaded: str, listed: str, *names: str) -> None:
    """Call each operator within `functools.reduce`, and write the names of those that ran to the file `listed`."""
    import_from(checkout)
    from . import operators
    from .operator_list import OPERATORS
    from .peers import library

    torch = library("flambeau")
    rows, columns = map(int, size.split("x"))
    if loaded:
        torch.rand(64, 64).exp()  # kernels are loaded with the first large array
    done: list[str] = []
    for name in names:
        with torch.set_grad_enabled(mode == operators.BOTH):
            try:
                call = operators.Call(torch, OPERATORS[name], (rows, columns), mode)
                if mode == operators.BOTH and not call.differentiable:
                    continue
                for _ in range(WARM_UP):
                    call.run()
            except (AttributeError, TypeError, NotImplementedError, RuntimeError):
                continue  # an older revision
            run = call.run
            gc.collect()
            gc.disable()
            functools.reduce(lambda _, __: run(), range(CALLS + 1))
            gc.enable()
        done.append(name)
    Path(listed).write_text(json.dumps(done))


def counts(checkout: Path, size: str, mode: str, names: Sequence[str], loaded: bool = False) -> dict[str, float]:
    """Instructions of one call, by operator.

    Args:
        loaded: whether kernels are loaded before.

    Raises:
        SystemExit: Valgrind is not installed, or the counts do not fit the operators that ran.
    """
    if shutil.which("valgrind") is None:
        raise SystemExit("Valgrind is not installed (apt install valgrind)")
    with tempfile.TemporaryDirectory() as folder:
        out, listed = Path(folder) / "callgrind", Path(folder) / "names.json"
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--toggle-collect={COUNTED}", f"--dump-after={COUNTED}",
             f"--callgrind-out-file={out}", sys.executable, "-m", "benchmarks.instructions", "--child",
             str(checkout), size, mode, "loaded" * loaded, str(listed), *names],
            cwd=ROOT, check=True, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "FLAMBEAU_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"})
        done = json.loads(listed.read_text())
        totals = []
        for number in range(1, 1 + len(list(Path(folder).glob("callgrind.*")))):
            found = re.search(r"^totals: (\d+)", out.with_suffix(f".{number}").read_text(), re.MULTILINE)
            assert found is not None
            totals.append(int(found[1]))
        # importing may call the function, too, but hardly as often
        totals = [total for total in totals if total > 1000 * CALLS]
        if len(totals) != len(done):
            raise SystemExit(f"{len(totals)} counts of {len(done)} operators")
        return {name: total / CALLS for name, total in zip(done, totals, strict=True)}


def main() -> None:
    """Parse the command line, count, print Markdown."""
    limits.apply()
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    from .operator_list import OPERATORS
    from .operators import MODES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="a revision of this repository, or the folder of a checkout")
    parser.add_argument("--operators", nargs="+", choices=OPERATORS, metavar="NAME", default=list(OPERATORS))
    parser.add_argument("--sizes", nargs="*", default=["8x8"], metavar="ROWSxCOLUMNS")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES)
    parser.add_argument("--loaded", action="store_true", help="load kernels first, as the first large array does")
    options = parser.parse_args()
    with checkout_of(options.base) as base:
        for size in options.sizes:
            for mode in options.modes:
                log(f"    {size}, {mode}")
                old, new = (counts(path, size, mode, options.operators, options.loaded) for path in (base, ROOT))
                ratios = sorted((old[name] / new[name], name) for name in old.keys() & new.keys())
                rows = [[name, f"{old[name]:,.0f}", f"{new[name]:,.0f}",
                         f"{ratio:.3f}" if ratio >= 1 - TOLERANCE else f"**{ratio:.3f}**"] for ratio, name in ratios]
                median = f"{statistics.median(ratio for ratio, _ in ratios):.3f}" if ratios else "-"
                heads = [f"{size}, {mode}", "base", "this checkout", f"base / this checkout (median {median})"]
                print("\n" + markdown.table(heads, rows), flush=True)


if __name__ == "__main__":
    main()
