"""One program run on `flambeau` and on PyTorch: results, warnings, errors and random states are compared."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import flambeau


def plain(value: Any, torch: Any) -> Any:
    """A value as built-in types, with the names of types and dtypes."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, value.dtype.str, value.tolist()
    if isinstance(value, Mapping):
        return type(value).__name__, [(key, plain(each, torch)) for key, each in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | range):
        return type(value).__name__, [plain(each, torch) for each in value]
    return value


def _text(error: BaseException) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", str(error).replace("flambeau", "torch"))
    text = re.sub(r"\(pid(\(s\))? \d+\)", "(pid)", text)
    return text.partition("\n")[0] if "Traceback" in text else text  # the frames are those of each package


def outcome(program: Callable[[Any], Any], torch: Any) -> Any:
    """What the program returns or raises, its warnings, and the next random numbers."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(torch), torch)
        except Exception as error:
            result = type(error).__name__, _text(error)
    told = [(w.category.__name__, re.sub(r"<.*?>", "", str(w.message))) for w in caught
            if "multi-threaded" not in str(w.message)]
    return result, told, (torch.rand(1).item(), random.random(), np.random.rand())


def assert_same(program: Callable[[Any], Any]) -> None:
    """Run the program on both and compare."""
    import torch

    ours, theirs = outcome(program, flambeau), outcome(program, torch)
    assert ours == theirs
