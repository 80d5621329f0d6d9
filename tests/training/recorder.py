"""Runs scripts and records the loss of each call of backward: `python recorder.py OUT LIMIT [SCRIPT ARGUMENT... ;]...`.

It is run by either library's interpreter, so it imports `torch` and the standard library only. The program ends when
LIMIT losses are recorded (0: when it ends by itself).
"""

from __future__ import annotations

import json
import os
import random
import runpy
import sys
import time
import traceback
from typing import Any


class _Enough(BaseException):
    """The limit is reached; no program catches this as an error of its own."""


def _patch(losses: list[float], limit: int) -> None:
    import torch

    original = torch.Tensor.backward

    def backward(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        losses.append(float(self.detach().sum()))
        if len(losses) == limit:
            raise _Enough

    torch.Tensor.backward = backward


def _seed() -> None:
    import numpy
    import torch

    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)


def record(scripts: list[list[str]], limit: int) -> dict[str, Any]:
    """Run scripts one after the other, each in its own folder: their losses, seconds, and the error that ended them."""
    losses: list[float] = []
    _patch(losses, limit)
    error = None
    began = time.perf_counter()
    for script, *arguments in scripts:
        _seed()
        sys.argv = [script, *arguments]
        sys.path[0] = os.path.dirname(os.path.abspath(script))
        try:
            runpy.run_path(script, run_name="__main__")
        except _Enough:
            break
        except SystemExit as end:
            if end.code:
                error = f"SystemExit: {end.code}"
                break
        except BaseException as raised:
            traceback.print_exc()
            error = f"{type(raised).__name__}: {raised}"
            break
    return {"losses": losses, "seconds": time.perf_counter() - began, "error": error}


def main() -> None:
    """The command line."""
    out, limit, *rest = sys.argv[1:]
    scripts: list[list[str]] = [[]]
    for word in rest:
        if word == ";":
            scripts.append([])
        else:
            scripts[-1].append(word)
    found = record([script for script in scripts if script], int(limit))
    with open(out, "w", encoding="utf-8") as file:
        json.dump(found, file)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
