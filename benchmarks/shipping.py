"""Compiled programs beside onnxruntime: `python -m benchmarks.shipping`.

Each model is exported to a shared library and to ONNX. Both run on one thread, by turns; times are medians of processor
time. The columns are the model, the batch, microseconds of both and their ratio, and the bytes of the files: the shared
library has code for one processor, and onnxruntime's own library is not counted.
"""

from __future__ import annotations

import argparse
import ctypes
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import nn
from flambeau.export import export

BATCHES = 1, 32


def mlp() -> tuple[Any, tuple[int, ...]]:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)), (784,)


def cnn() -> tuple[Any, tuple[int, ...]]:
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10)), (1, 28, 28)


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels), nn.ReLU(),
                                  nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels))

    def forward(self, x: Any) -> Any:
        return torch.relu(x + self.body(x))


def resnet() -> tuple[Any, tuple[int, ...]]:
    return nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), Block(32), Block(32), nn.Conv2d(32, 64, 3, 2, 1), Block(64),
                         Block(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (3, 32, 32)


def transformer() -> tuple[Any, tuple[int, ...]]:
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, activation="relu")
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (64, 128)


def lstm() -> tuple[Any, tuple[int, ...]]:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(64, 128, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0][:, -1]

    return Last(), (32, 64)


MODELS: list[Callable[[], tuple[Any, tuple[int, ...]]]] = [mlp, cnn, resnet, transformer, lstm]


def compiled(path: Path, x: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    """A call of a shared library."""
    library = ctypes.CDLL(str(path))
    size = getattr(library, f"{path.stem}_arena_size")
    size.restype = ctypes.c_size_t
    arena = np.zeros(size(), np.uint8)
    arguments = [*(ctypes.c_void_p(a.ctypes.data) for a in (x, y, arena)), ctypes.c_size_t(arena.nbytes)]
    run = getattr(library, f"{path.stem}_run")

    def call(memory: tuple[np.ndarray, ...] = (x, y, arena)) -> None:  # which must live as long as the call
        if run(*arguments):
            raise RuntimeError("the program failed")

    return call


def medians(calls: list[Callable[[], None]], seconds: float) -> list[float]:
    """The median processor times of calls that are made by turns, in microseconds."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for call, mine in zip(calls, times, strict=True):
            start = time.process_time_ns()
            call()
            call()
            mine.append((time.process_time_ns() - start) / 2000)
    return [float(np.median(each)) for each in times]


def main() -> None:
    """Print the table."""
    import onnxruntime

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="names of models")
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    print("| model | batch | compiled | onnxruntime | ratio | .so | .onnx |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for make in MODELS:
            if options.models and make.__name__ not in options.models:
                continue
            for batch in BATCHES:
                torch.manual_seed(0)
                model, shape = make()
                x = torch.randn(batch, *shape)
                program = export(model.eval(), (x,))
                path = Path(folder) / f"{make.__name__}{batch}.so"
                program.save(path, target="native")
                program.save(path.with_suffix(".onnx"))
                session = onnxruntime.InferenceSession(str(path.with_suffix(".onnx")), settings)
                given = {session.get_inputs()[0].name: x.numpy()}
                [expected] = session.run(None, given)
                y = np.zeros_like(expected)
                call = compiled(path, x.numpy(), y)
                mine, theirs = medians([call, lambda: session.run(None, given)], options.seconds)  # noqa: B023
                np.testing.assert_allclose(y, expected, 1e-3, 1e-4)
                print(f"| {make.__name__} | {batch} | {mine:.1f} | {theirs:.1f} | {theirs / mine:.2f} | "
                      f"{path.stat().st_size:,} | {path.with_suffix('.onnx').stat().st_size:,} |", flush=True)


if __name__ == "__main__":
    main()
