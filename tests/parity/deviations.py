"""Known differences from PyTorch, read from `tests/torch_deviations.txt`.

    op-name | check | dtype-or-* | reason

`*` and `?` match in the operator's name. A line that matches no difference any more is reported.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from pathlib import Path

from .outcome import Outcome

LEDGER = Path(__file__).resolve().parent.parent / "torch_deviations.txt"


@dataclasses.dataclass(frozen=True)
class Deviation:
    """One line of the ledger."""

    op: str
    check: str
    dtype: str
    reason: str
    line: int

    def concerns(self, op: str) -> bool:
        return fnmatch.fnmatchcase(op, self.op)

    def excuses(self, outcome: Outcome) -> bool:
        return (
            self.concerns(outcome.op)
            and self.check in ("*", outcome.check)
            and self.dtype in ("*", outcome.dtype)
        )


def read(path: Path = LEDGER) -> list[Deviation]:
    """The ledger's lines; ValueError names one that does not parse."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        fields = [field.strip() for field in text.split("|", 3)]
        if len(fields) != 4 or not all(fields):
            raise ValueError(f"{path.name}:{number}: not 'op | check | dtype | reason': {text}")
        found.append(Deviation(*fields, number))
    return found
