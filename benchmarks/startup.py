"""Time to the first result of a compiled step, with nothing kept on disk and in the next process.

    python -m benchmarks.startup gpt jax.jit        seconds, in this process

From the imported library to the first step's result, with the model built on the way.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
import warnings

from . import limits, markdown, peers
from .fresh import found_by, say
from .workloads import ROWS

NAMES = ("mlp-tiny", "gpt")
COMPILERS = ("torch.compile", "jax.jit", peers.COMPILED)


def first_result(name: str, peer: str) -> float:
    """Seconds to the first result in this process."""
    workload = ROWS[name]
    arrays = workload.data(workload.sizes)
    makers = peers.ways(peer, workload, arrays, workload.sizes)
    if peer == "jax.jit":
        import jax
        jax.devices()  # which starts it
    started = time.perf_counter()
    next(iter(makers.values()))().run()
    return time.perf_counter() - started


def caches(folder: str) -> dict[str, str]:
    """Environment in which all compilers keep what they compile in that folder."""
    return {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "FLAMBEAU_CACHE_DIR": f"{folder}/flambeau",
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def section(rounds: int) -> str:
    """Medians over as many fresh caches, at most three, as Markdown."""
    repeats = min(rounds, 3)
    rows = []
    for name in NAMES:
        for cache in ("cold", "warm"):
            rows.append([f"{ROWS[name].title}, {'first process' if cache == 'cold' else 'second process'}"])
        for peer in COMPILERS:
            cold, warm = [], []
            for _ in range(repeats if peers.available(peer) else 0):
                with tempfile.TemporaryDirectory() as folder:
                    for times in (cold, warm):
                        found = found_by("startup", name, peer, environment=caches(folder))
                        times += [] if found is None else [found]
            for row, times in zip(rows[-2:], (cold, warm), strict=True):
                row.append(markdown.duration(statistics.median(times) if times else None))
            say(f"first result, {name}, {peer}: {rows[-2][-1]}, then {rows[-1][-1]}")
    return ("## Time to the first result\n\nFrom the imported library to the result of the first compiled step, "
            "building the model included, in\nfresh processes: the first finds an empty folder for compiled code, "
            "the second what the first left there.\n\n" + markdown.table(["", *COMPILERS], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("peer", choices=COMPILERS)
    options = parser.parse_args()
    limits.apply()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps(first_result(options.row, options.peer)))


if __name__ == "__main__":
    main()
