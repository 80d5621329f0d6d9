"""Time to the first result of compiled code: with an empty persistent cache, and in the next process.

    python -m benchmarks.startup gpt jax.jit        seconds, in this process

The time from the imported library to the result of the first compiled step, construction of the model included.
flambeau runs the first steps eagerly while it traces them; their time is included. In the next process the first step
is replayed.
"""

from __future__ import annotations

import compileall
import statistics
import tempfile
import time

from . import markdown, peers
from .child_process import ROOT, child_main, log, run_child
from .workloads import WORKLOADS

NAMES = ("mlp-tiny", "gpt", "gpt2", "resnet50")
COMPILERS = ("torch.compile", "jax.jit", peers.COMPILED)
#: the number of calls within which one must be replayed
CALLS = 8


def is_compiled(runner: peers.Runner) -> bool:
    """Whether a compiled step of flambeau has been replayed."""
    return any(replay.has_run for kind in runner.step._signatures.values() for replay in kind.entries)


def first_result(name: str, peer: str) -> float:
    """Seconds to the first compiled result in this process.

    Raises:
        RuntimeError: flambeau does not compile the step.
    """
    workload = WORKLOADS[name]
    arrays = workload.data(workload.sizes)
    makers = peers.variants(peer, workload, arrays, workload.sizes)
    if peer == "jax.jit":
        import jax
        jax.devices()  # starts the backend
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
    """Environment variables: all compilers cache in `folder`, and Python writes bytecode."""
    return {"PYTHONDONTWRITEBYTECODE": "",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/torch", "FLAMBEAU_CACHE_DIR": f"{folder}/flambeau",
            "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def section(rounds: int) -> str:
    """The section as Markdown: medians over `rounds` empty caches, at most three."""
    repeats = min(rounds, 3)
    compileall.compile_dir(ROOT / "flambeau", quiet=2)  # as in an installed package
    rows = []
    for name in NAMES:
        for cache in ("cold", "warm"):
            rows.append([f"{WORKLOADS[name].title}, {'first process' if cache == 'cold' else 'second process'}"])
        for peer in COMPILERS:
            cold, warm = [], []
            for _ in range(repeats if peers.available(peer) else 0):
                with tempfile.TemporaryDirectory() as folder:
                    for times in (cold, warm):
                        seconds = run_child("startup", name, peer, environment=caches(folder))
                        times += [] if seconds is None else [seconds]
            for row, times in zip(rows[-2:], (cold, warm), strict=True):
                row.append(markdown.duration(statistics.median(times) if times else None))
            log(f"first result, {name}, {peer}: {rows[-2][-1]}, then {rows[-1][-1]}")
    return ("## Time to the first compiled result\n\nThe time from the imported library to the result of the first "
            "compiled step, in new processes. Included are the\nconstruction of the model and the steps that flambeau "
            "runs eagerly before: two in the first process, none in the second.\nThe first process has an empty cache "
            "of compiled code, the second the cache of the first.\n\n" + markdown.table(["", *COMPILERS], rows))


if __name__ == "__main__":
    child_main((__doc__ or "").splitlines()[0], WORKLOADS, COMPILERS, first_result)
