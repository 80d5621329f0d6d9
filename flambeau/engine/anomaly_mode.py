"""Anomaly mode: nodes store the traceback of their creation, and a NaN gradient is an error.

While it is enabled, every operator takes the general path, which stores the traceback.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..backends.elementless_array import ElementlessArray
from ..backends.sparse_array import SparseArray
from ..modes import special
from ..warning_location import user_stacklevel
from .tensor_interface import layer

_TRACEBACK, _PARENT = "traceback_", "parent_"
#: the file of `flambeau run`
_RUNNER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "cli.py")

#: the node whose rules run in this thread: the parent of nodes that are created meanwhile
evaluated: ContextVar[Any] = ContextVar("evaluated_node", default=None)


class Anomaly:
    """The state of the mode, for all threads."""

    enabled = False
    check_nan = True


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is enabled.

    >>> import flambeau as torch
    >>> torch.is_anomaly_enabled()
    False
    """
    return Anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode checks gradients for NaN.

    >>> import flambeau as torch
    >>> torch.is_anomaly_check_nan_enabled()
    True
    """
    return Anomaly.check_nan


def _set(enabled: bool, check_nan: bool) -> None:
    if enabled != Anomaly.enabled:
        special[0] += 1 if enabled else -1
    Anomaly.enabled, Anomaly.check_nan = enabled, check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Enable or disable anomaly mode.

    >>> import flambeau as torch
    >>> torch.set_anomaly_enabled(False)
    """
    set_detect_anomaly(enabled, check_nan)


class set_detect_anomaly:
    """Enable or disable anomaly mode; as a context manager, until the end of the block.

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
    """A block in which a NaN in backward is an error that shows the forward call it comes from.

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


def store_traceback(node: Any) -> None:
    """Store the traceback of a node's creation, without this library's innermost frames, and its parent node.

    Of a script that `flambeau run` runs, it begins at the script.
    """
    import traceback  # 1 ms of `import flambeau`

    frames: list[Any] = [*traceback.extract_stack()]
    here = __file__.replace("\\", "/").rsplit("/", 2)[0]
    while len(frames) > 1 and frames[-1].filename.replace("\\", "/").startswith(here):
        frames.pop()
    runner = next((i for i, frame in enumerate(frames) if frame.name == "run_script"
                   and frame.filename == _RUNNER), -1)
    frames = frames[runner + 1:]
    node.metadata[_TRACEBACK] = traceback.format_list(frames)
    parent = evaluated.get()
    if parent is not None:
        node.metadata[_PARENT] = parent


def warn_with_traceback(node: Any) -> None:
    """Warn of an error in a node, with the tracebacks of its creation and of its parents' creation."""
    created = node.metadata.get(_TRACEBACK)
    if created is None:
        _warn(f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
              "forward pass for more information.")
    else:
        _warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n" + "".join(created))
    parent = node.metadata.get(_PARENT)
    while parent is not None:
        created = parent.metadata.get(_TRACEBACK)
        intro = f"\n\nPrevious calculation was induced by {parent.name()}. "
        if created is None:
            _warn(intro + "No forward pass information available.")
        else:
            _warn(intro + "Traceback of forward call that induced the previous calculation:\n" + "".join(created))
        parent = parent.metadata.get(_PARENT)


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print instead, so that the error in the node is raised."""
    try:
        warnings.warn(text, UserWarning, stacklevel=user_stacklevel())
    except UserWarning:
        print(f"UserWarning: {text}", file=sys.stderr)


def _has_nan(g: Any, array: Any) -> bool:
    if array is None:
        return False
    if getattr(array, "torch_device", None) is not None:  # in a device's memory; the host waits
        return array.dtype.kind in "fcV" and bool(layer.functions.isnan(g.detach()).any())
    return np.asarray(array).dtype.kind in "fc" and bool(np.isnan(array).any())


def check_nan(node: Any, grads: Any) -> None:
    """Check the gradients that a node computed for NaN.

    Raises:
        RuntimeError: one holds a NaN (PyTorch's text).
    """
    if not Anomaly.check_nan:
        return
    for i, g in enumerate(grads):
        array = getattr(g, "_array", g)
        if isinstance(array, SparseArray):
            array = array.values
        elif isinstance(array, ElementlessArray):
            array.item()  # which raises, as in PyTorch
        if _has_nan(g, array):
            warn_with_traceback(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]
