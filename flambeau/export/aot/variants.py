"""Compilation of all variants of a program, in several processes.

Code for another processor is compiled in a process of its own: kernels, plans and choices of the code generators are
cached per process, for one target.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence

from ... import config
from ...runtime import target as compilation_target
from .errors import ExportError
from .jobs import VariantCode, VariantJob
from .targets import Variant
from .variant_code import compile_variant


def compile_variants(
    variants: Sequence[Variant], jobs: Sequence[VariantJob], progress: Callable[[int], None] = lambda done: None
) -> list[VariantCode]:
    """Compile programs, each for its processor: in this process if it is this machine's, else in others at once.

    Args:
        variants: the processors.
        jobs: for each, the program.
        progress: called with the number of programs that are compiled.

    Raises:
        ExportError: a program has no compiled form.
    """
    running = {}
    for i, (variant, job) in enumerate(zip(variants, jobs, strict=True)):
        if variant.host != compilation_target.host():
            running[i] = _start(variant, job)
    results = []
    try:
        for i, job in enumerate(jobs):
            progress(i)
            results.append(_finish(running.pop(i)) if i in running else compile_variant(job))
        progress(len(jobs))
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    return results


def _start(variant: Variant, job: VariantJob) -> subprocess.Popen[bytes]:
    environment = os.environ | {"FLAMBEAU_TARGET": json.dumps(variant.host)}
    # where `import torch` means flambeau, classes have names of torch, also in pickles
    alias = [] if config.prepare_child is None else ["alias"]
    process = subprocess.Popen(
        [sys.executable, "-m", "flambeau.export.aot.worker", *alias],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(job))
    process.stdin.close()
    process.stdin = None
    return process


def _finish(process: subprocess.Popen[bytes]) -> VariantCode:
    output, errors = process.communicate()
    if process.returncode:
        raise ExportError("the compiler's process failed:\n" + errors.decode(errors="replace"))
    result = pickle.loads(output)
    if isinstance(result, ExportError):
        raise result
    assert isinstance(result, VariantCode)
    return result


__all__ = ["compile_variants"]
