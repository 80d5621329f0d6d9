"""`FLAMBEAU_DEBUG`: prints the stages of compilation to stderr.

The variable is a comma-separated list of views:

    ir            the graph of each compiled function, as traced and divided into fusion groups
    graph_breaks  where a compiled function is divided, and why
    recompiles    why a call of a compiled function is traced although there are programs: the failed guard
    kernels       each kernel: its outputs and inputs, the number of chunks, and where its code came from
    llvm          LLVM IR after optimization
    asm           assembly

`TORCH_LOGS` and `torch._logging.set_logs` name PyTorch's artifacts, which select the same views (`ARTIFACTS`). `llvm`
and `asm` concern all generated code, the others compiled functions (`flambeau.compile`).
With `llvm` or `asm`, code is compiled even if the persistent cache has it, since object code has no text.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator

VIEWS = ("ir", "graph_breaks", "recompiles", "kernels", "llvm", "asm")
#: artifacts of PyTorch's compilers -> views
ARTIFACTS = {
    **dict.fromkeys(("recompiles", "recompiles_verbose"), ("recompiles",)),
    **dict.fromkeys(("graph", "graph_code", "graph_code_verbose", "aot_graphs", "aot_joint_graph", "pre_grad_graphs",
                     "post_grad_graphs", "ir_pre_fusion"), ("ir",)),
    **dict.fromkeys(("output_code", "kernel_code", "schedule", "fusion", "ir_post_fusion"), ("kernels",)),
    "graph_breaks": ("graph_breaks",)}
_enabled: set[str] = set()
#: where texts go instead of stderr
_collected: list[list[str]] = []


def enable(views: Iterable[str]) -> None:
    """Enable these views, and no others but those of the environment variables.

    >>> from flambeau.runtime import debug_output as debugging
    >>> debugging.enable(["recompiles"]); debugging.is_enabled("recompiles")
    True
    >>> debugging.enable([])
    """
    _enabled.clear()
    _enabled.update(views)


def torch_logs() -> str:
    """Return the environment variable `TORCH_LOGS`, "" if it is not set.

    >>> from flambeau.runtime import debug_output as debugging
    >>> debugging.torch_logs() == os.environ.get("TORCH_LOGS", "")
    True
    """
    return os.environ.get("TORCH_LOGS", "")


def is_enabled(*views: str) -> bool:
    """Whether one of these views is enabled.

    Raises:
        ValueError: the variable names an unknown view.

    >>> from flambeau.runtime import debug_output as debugging
    >>> debugging.is_enabled("asm") in (True, False)
    True
    """
    logs = torch_logs()
    if not _enabled.isdisjoint(views) or (logs and any(
            not set(ARTIFACTS.get(name.strip(), ())).isdisjoint(views) for name in logs.split(","))):
        return True
    value = os.environ.get("FLAMBEAU_DEBUG")
    if not value:
        return False
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in VIEWS:
            raise ValueError(f"FLAMBEAU_DEBUG={value}: there is no view {name!r}, only {', '.join(VIEWS)}")
    return any(view in names for view in views)


@contextlib.contextmanager
def collect(*views: str) -> Iterator[list[str]]:
    """Enable views inside a `with` block, and append to a list what is shown there.

    >>> from flambeau.runtime import debug_output as debugging
    >>> with debugging.collect("kernels") as texts:
    ...     debugging.show("kernel 0")
    >>> texts
    ['kernel 0']
    """
    texts: list[str] = []
    added = set(views) - _enabled
    _enabled.update(added)
    _collected.append(texts)
    try:
        yield texts
    finally:
        _collected.remove(texts)
        _enabled.difference_update(added)


def show(text: str) -> None:
    """Print a view's text to stderr, followed by an empty line, or append it to the list of `collect`."""
    if _collected:
        _collected[-1].append(text)
        return
    print(text, file=sys.stderr, end="\n\n", flush=True)


__all__ = ["ARTIFACTS", "VIEWS", "collect", "enable", "is_enabled", "show", "torch_logs"]
