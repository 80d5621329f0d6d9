"""All checks by name: gating checks, which decide whether an operator passes, and informative ones."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from . import checks, derivatives  # noqa: F401  (they fill CHECKS)
from .bridge import Missing, Unsupported
from .outcome import Outcome, raised
from .runs import CHECKS, Run

GATING = ("forward", "context", "noncontig", "method", "inplace", "out", "operator", "alias", "dtypes",
          "errors")
GATING += ("grad", "inplace_grad", "gradgrad", "saved", "attributes", "fwad")
REPORTED = ("strides", "views", "grad_fn", "unsupported", "messages", "warnings", "fwrev", "packed", "create_graph")


def run_check(run: Run, name: str) -> Iterator[Outcome]:
    """The outcomes of one check; a name the candidate lacks is one failure."""
    try:
        yield from CHECKS[name](run)
    except Missing as missing:
        yield run.outcome(name, "-", "-", str(missing))
    except Unsupported:
        return
    except Exception as error:  # a candidate so broken that the check itself cannot go on
        yield run.outcome(name, "-", "-", f"check {raised(error)}", traceback.format_exc(limit=-8))
