"""Anomaly mode: nodes remember where they were made, and the first NaN on the way back is an error.

While it is on, every operator takes the general way, which notes the caller's stack.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..modes import special
from ..warning_location import outside

_TRACEBACK, _PARENT = "traceback_", "parent_"

#: the node whose rules run in this thread: nodes that are made meanwhile are part of its gradient
evaluated: ContextVar[Any] = ContextVar("evaluated_node", default=None)


class Anomaly:
    """Whether the mode is on, for all threads."""

    enabled = False
    check_nan = True


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return Anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN."""
    return Anomaly.check_nan


def _set(enabled: bool, check_nan: bool) -> None:
    if enabled != Anomaly.enabled:
        special[0] += 1 if enabled else -1
    Anomaly.enabled, Anomaly.check_nan = enabled, check_nan


class set_detect_anomaly:
    """Switch anomaly mode at once; as a context manager, until the block's end.

    >>> import flambeau as torch
    >>> with torch.autograd.set_detect_anomaly(True):
    ...     torch.is_anomaly_enabled()
    True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = Anomaly.enabled, Anomaly.check_nan
        _set(bool(mode), check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _set(*self.prev)


class detect_anomaly:
    """A block in which a NaN in backward is an error that shows the forward line it comes from.

    >>> import warnings
    >>> import flambeau as torch
    >>> x = torch.tensor(-1., requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with torch.autograd.detect_anomaly():
    ...         torch.sqrt(x).backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.prev = Anomaly.enabled, Anomaly.check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", UserWarning, stacklevel=2)

    def __enter__(self) -> None:
        self.prev = Anomaly.enabled, Anomaly.check_nan
        _set(True, self.check_nan)

    def __exit__(self, *exception: object) -> None:
        _set(*self.prev)


def remember(node: Any) -> None:
    """Note where a node was made: the caller's stack, without this library's own last frames; and for which node."""
    frames = traceback.extract_stack()
    here = __file__.replace("\\", "/").rsplit("/", 2)[0]
    while len(frames) > 1 and frames[-1].filename.replace("\\", "/").startswith(here):
        frames.pop()
    node.metadata[_TRACEBACK] = traceback.format_list(frames)
    parent = evaluated.get()
    if parent is not None:
        node.metadata[_PARENT] = parent


def explain(node: Any) -> None:
    """Warn of an error in a node, showing where it was made, and where each node was whose gradient it is part of."""
    made = node.metadata.get(_TRACEBACK)
    if made is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
              "forward pass for more information.")
    else:
        _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n" + "".join(made))
    parent = node.metadata.get(_PARENT)
    while parent is not None:
        made = parent.metadata.get(_TRACEBACK)
        said = f"\n\nPrevious calculation was induced by {parent.name()}. "
        if made is None:
            _warn(said + "No forward pass information available.")
        else:
            _warn(said + "Traceback of forward call that induced the previous calculation:\n" + "".join(made))
        parent = parent.metadata.get(_PARENT)


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print it: the error that it explains is on its way."""
    try:
        warnings.warn(text, UserWarning, stacklevel=outside())
    except UserWarning:
        print(f"UserWarning: {text}", file=sys.stderr)


def check(node: Any, found: Any) -> None:
    """Refuse gradients that are not numbers.

    Raises:
        RuntimeError: one holds a NaN (PyTorch's text).
    """
    if not Anomaly.check_nan:
        return
    for i, g in enumerate(found):
        array = getattr(g, "_array", g)
        if array is not None and np.asarray(array).dtype.kind in "fc" and np.isnan(array).any():
            explain(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]
