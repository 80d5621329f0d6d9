"""The names of instruction counts by Callgrind, which are left out."""

from __future__ import annotations

from collections import namedtuple

from ...environment.left_out import refusing_class, refusing_function

_REASON = "flambeau counts no instructions of C++; use Timer.timeit"


#: how many instructions a function ran
FunctionCount = namedtuple("FunctionCount", ["count", "function"])
FunctionCount.__doc__ = """How many instructions a function ran.

>>> from flambeau.utils.benchmark import FunctionCount
>>> FunctionCount(3, "f").count
3
"""


def _left_out(name: str, members: str) -> type:
    """A class without instances, with functions that refuse."""
    full = f"torch.utils.benchmark.{name}"
    result = refusing_class(full, _REASON)
    for each in members.split():
        setattr(result, each, refusing_function(f"{full}.{each}", _REASON))
    result.__doc__ = f"""Left out: {_REASON}.

>>> from flambeau.utils import benchmark
>>> isinstance(0, benchmark.{name})
False
"""
    return result


CallgrindStats = _left_out("CallgrindStats", "as_standardized counts delta stats")
CopyIfCallgrind = _left_out("CopyIfCallgrind", "serialization setup unwrap_all")
FunctionCounts = _left_out("FunctionCounts", "denoise filter sum transform truncate_rows")

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]
