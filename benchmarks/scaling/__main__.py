"""Measure, fit, and write the manual's page of scaling."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..child_process import ROOT
from .measure import measure
from .report import draw, page


def _with_numbers(measured: Any) -> Any:
    """JSON's keys are texts; those of measurements are numbers."""
    if isinstance(measured, dict):
        return {int(key) if key.isdigit() else key: _with_numbers(value) for key, value in measured.items()}
    return measured


def _read(path: Path) -> Any:
    return _with_numbers(json.loads(path.read_text(encoding="utf-8")))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--measured", type=Path, help="a file of measurements, in place of new ones")
    parser.add_argument("--keep", type=Path, help="a file to write the measurements to")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="the folder of the manual")
    options = parser.parse_args()
    if options.measured:
        measured = _read(options.measured)
    else:
        measured = measure(lambda text: print(text, flush=True))
    if options.keep:
        options.keep.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    others = [_read(path) for path in sorted((Path(__file__).parent / "measurements").glob("*.json"))]
    draw(measured, options.docs / "pictures")
    (options.docs / "scaling.md").write_text(page(measured, others), encoding="utf-8")


if __name__ == "__main__":
    main()
