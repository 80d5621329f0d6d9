"""Ablations: what each special case is worth on the rows it was made for.

    python -m benchmarks.ablations                     all
    python -m benchmarks.ablations winograd one-hot    some

A special case is switched off in one process and left on in another, each with its own cache directory; they are timed
alternately. The ratio is the time without the special case over the time with it, the median of the rounds' ratios: a
special case whose ratio is near 1 on every row does not pay, and is to be removed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import limits, markdown, timing, turns
from .child_process import log
from .peers import COMPILED, EAGER
from .row import write_reference
from .turns import PeerProcess
from .workloads import ROWS

#: a special case with a ratio below this does not pay on a row
PAYS = 1.02


@dataclass(frozen=True)
class Ablation:
    """A special case and how it is switched off.

    Args:
        record: the number of its decision record.
        replacements: names in modules of flambeau -> what replaces them.
        rows: (row, peer) on which it should pay.
    """

    record: str
    replacements: dict[str, Any]
    rows: tuple[tuple[str, str], ...]


def _never(*_: Any, **__: Any) -> bool:
    return False


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _new_buffer(tensor: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    import numpy as np

    return np.empty(shape, dtype)


def _no_replacements(*_: Any) -> dict[Any, Any]:
    return {}


def _as_they_are(_: Any, a: Any, b: Any) -> tuple[Any, Any]:
    return a, b


def _on(peer: str, *rows: str) -> tuple[tuple[str, str], ...]:
    return tuple((row, peer) for row in rows)


ABLATIONS: dict[str, Ablation] = {
    "winograd": Ablation("011", {"codegen.convolution.convolution:pays": _never}, _on(EAGER, "conv", "cnn")),
    "winograd-gradient": Ablation("012", {"codegen.convolution.convolution:gradient_pays": _never},
                                  _on(EAGER, "conv-backward", "cnn")),
    "prefetch": Ablation("013", {"codegen.convolution.epilogue:prefetch": None}, _on(EAGER, "conv", "cnn")),
    "unrolled-epilogues": Ablation("013", {"codegen.convolution.epilogue:MAX_UNROLLED_COST": -1},
                                   _on(EAGER, "conv", "cnn") + _on(COMPILED, "cnn")),
    "non-temporal": Ablation("005", {"runtime.nontemporal_stores:are_faster": _never},
                             _on(EAGER, "chain", "log-softmax", "layer-norm") + _on(COMPILED, "layer-norm")),
    "takeover": Ablation("063", {"engine.execution.accumulate_grad:_SOLE_REFERENCE": -100},
                         _on(EAGER, "mlp-sgd", "chain")),
    "deferred": Ablation("065", {"_tensor.linalg.linear:MAX_DEFERRED_ROWS": -1,
                                 "_tensor.neural.recurrent_cell:MAX_DEFERRED_ROWS": -1}, _on(EAGER, "rnn")),
    "recurrent-steps": Ablation("066", {"nn.recurrent:rnn_steps": _nothing}, _on(EAGER, "rnn")),
    "one-hot": Ablation("067", {"_tensor.neural.losses:accepts_one_hot": _never}, _on(EAGER, "log-softmax")),
    "merged-matmuls": Ablation("029", {"ir.schedule.scheduler:merge_matmul_sums": _no_replacements},
                               _on(COMPILED, "rnn")),
    "strided-batches": Ablation("028", {"ir.graph.value:Graph._read_before_copy": _as_they_are},
                                _on(COMPILED, "gpt")),
    "column-sums": Ablation("026", {"ir.fusion.intervals:MIN_COLUMN_SUM": 1 << 60},
                            _on(COMPILED, "mlp-adam", "layer-norm", "gpt")),
    "donation": Ablation("027", {"compiler.execution.call_stub:allocate_or_reuse": _new_buffer,
                                 "compiler.execution.cache_entry:allocate_or_reuse": _new_buffer},
                         _on(COMPILED, "mlp-tiny", "mlp-sgd", "gpt")),
    "call-stubs": Ablation("034", {"compiler.execution.compiled_function:call_stub": _nothing},
                           _on(COMPILED, "formula", "forty", "mlp-tiny")),
}


def _without_prefetch() -> Any:
    """The compiled `prefetch` of convolutions, which does nothing."""
    from llvmlite import ir

    from flambeau.codegen.convolution import epilogue
    from flambeau.codegen.llvm import kernel_entry
    from flambeau.runtime import compilation

    def code() -> str:
        module = ir.Module("prefetch")
        _, b = kernel_entry.begin(module, "prefetch", epilogue.FLUSH)
        b.ret_void()
        return str(module)

    return compilation.load("convolution without prefetch", ("prefetch",), code, "few")


def switch_off(name: str) -> None:
    """Replace what the special case consists of, in this process.

    Raises:
        AttributeError: flambeau has no such name any more.
    """
    for place, replacement in ABLATIONS[name].replacements.items():
        module, _, path = place.partition(":")
        *outer, last = path.split(".")
        holder: Any = importlib.import_module(f"flambeau.{module}")
        for each in outer:
            holder = getattr(holder, each)
        getattr(holder, last)
        setattr(holder, last, _without_prefetch if name == "prefetch" else replacement)


def times_of(name: str, row: str, peer: str, number: int) -> dict[str, list[float]]:
    """Seconds of one call in each round, with the special case ("on") and without it ("off")."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        reference = Path(folder) / "reference"
        writing = multiprocessing.get_context("spawn").Process(target=write_reference, args=(row, reference))
        writing.start()
        writing.join()
        processes = {}
        for case in ("on", "off"):
            command = [sys.executable, "-m", "benchmarks.ablations", "--child", name if case == "off" else "-",
                       row, peer, str(reference)]
            environment = {**os.environ, "FLAMBEAU_CACHE_DIR": str(Path(folder) / case)}
            processes[case] = stack.enter_context(PeerProcess(row, peer, reference, command, environment))
            if not processes[case].runs:
                raise SystemExit(f"{name}, {row}, {peer}: " + "; ".join(processes[case].notes))
        times: dict[str, list[float]] = {case: [] for case in processes}
        for case in timing.order(list(processes), number):
            times[case].append(processes[case].turn())
        return times


def measure(names: Sequence[str], number: int, show: Callable[[str], None] = log) -> str:
    """The table of the special cases."""
    lines = []
    for name in names:
        for row, peer in ABLATIONS[name].rows:
            times = times_of(name, row, peer, number)
            ratio = statistics.median(off / on for on, off in zip(times["on"], times["off"], strict=True))
            on, off = (markdown.duration(statistics.median(times[case])) for case in ("on", "off"))
            shown = f"{ratio:.3f}" if ratio >= PAYS else f"**{ratio:.3f}**"
            column = peer.removeprefix("flambeau ")
            lines.append([name, ABLATIONS[name].record, ROWS[row].title, column, on, off, shown])
            show(f"    {name}, {row}, {peer}: {on}, without {off}, {shown}")
    return markdown.table(["special case", "record", "workload", "", "with", "without", "without / with"], lines)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        if sys.argv[2] != "-":
            switch_off(sys.argv[2])
        turns.main(sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ABLATIONS)}; default: all")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name in options.names:
        if name not in ABLATIONS:
            parser.error(f"no special case {name!r}; there are {', '.join(ABLATIONS)}")
    limits.apply()
    print(measure(options.names or list(ABLATIONS), options.rounds))


if __name__ == "__main__":
    main()
