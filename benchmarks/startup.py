"""Time to the first result of compiled code, with nothing kept on disk and in the next process.

    python -m benchmarks.startup gpt jax.jit        seconds, in this process

From the imported library to the result of the first step that compiled code computes, with the model built on the
way. flambeau runs the first steps eagerly while it writes them down; their time is part of it. In the next process
that is the first step already.
"""

from __future__ import annotations

import compileall
import statistics
import tempfile
import time

from . import markdown, peers
from .fresh import ROOT, answer, found_by, say
from .workloads import ROWS

NAMES = ("mlp-tiny", "gpt")
COMPILERS = ("torch.compile", "jax.jit", peers.COMPILED)
#: calls of which one must be replayed
CALLS = 8


def is_compiled(runner: peers.Runner) -> bool:
    """Whether flambeau's last step was replayed."""
    return any(replay.has_run for kind in runner.step._signatures.values() for replay in kind.entries)


def first_result(name: str, peer: str) -> float:
    """Seconds to the first compiled result in this process.

    Raises:
        RuntimeError: flambeau does not compile the step.
    """
    workload = ROWS[name]
    arrays = workload.data(workload.sizes)
    makers = peers.ways(peer, workload, arrays, workload.sizes)
    if peer == "jax.jit":
        import jax
        jax.devices()  # which starts it
    started = time.perf_counter()
    runner = next(iter(makers.values()))()
    runner.run()
    if peer == peers.COMPILED:
        for _ in range(CALLS):
            if is_compiled(runner):
                break
            runner.run()
        else:
            raise RuntimeError(f"{name} is not compiled")
    return time.perf_counter() - started


def caches(folder: str) -> dict[str, str]:
    """Environment in which all compilers keep what they compile in that folder, and Python its bytecode."""
    return {"PYTHONDONTWRITEBYTECODE": "",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "FLAMBEAU_CACHE_DIR": f"{folder}/flambeau",
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def section(rounds: int) -> str:
    """Medians over as many fresh caches, at most three, as Markdown."""
    repeats = min(rounds, 3)
    compileall.compile_dir(ROOT / "flambeau", quiet=2)  # as it is with installed packages
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
    return ("## Time to the first compiled result\n\nFrom the imported library to the result of the first step that "
            "compiled code computes, building the model\nincluded, and the steps that flambeau runs eagerly before: "
            "two, from the second process on none; in fresh processes:\nthe first finds an empty folder for compiled "
            "code, the second what the first left there.\n\n" + markdown.table(["", *COMPILERS], rows))


if __name__ == "__main__":
    answer((__doc__ or "").splitlines()[0], ROWS, COMPILERS, first_result)
