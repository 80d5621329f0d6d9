"""Documents of others under both libraries: `python -m tests.packages.documents PATH ... [--path FOLDER] [--limit S]`.

A document is a Markdown page with blocks of Python, a notebook, or a script, which runs as `__main__`. Its blocks run
in order in one namespace, under flambeau and under PyTorch, each in a process of its own, with the same seed before
each block. After a block the tensors that its names hold (also in lists, dicts and modules, gradients included), what
it printed and its error are compared. Blocks that fail under PyTorch say nothing and are counted apart.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```\s*(?:python|py|\{\.python \.input[^}]*\})\s*$\n(.*?)^```\s*$", re.M | re.S)
_TAB = re.compile(r"^(?:#@tab|%%tab)\s+(.*)$", re.M)
#: relative difference of a tensor's sums that rounding in another order explains
TOLERANCE = 1e-3


def blocks_of(path: Path) -> list[str]:
    """The Python blocks of a document; shell lines and magics are left out."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".py":
        return [text]
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        blocks = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    else:
        blocks = [block for block in _FENCE.findall(text) if _is_for_pytorch(block)]
    return [re.sub(r"^(\s*)[%!].*$", r"\1pass", _TAB.sub("", block), flags=re.M) for block in blocks]


def _is_for_pytorch(block: str) -> bool:
    tabs = _TAB.search(block)
    return tabs is None or "pytorch" in tabs[1] or "all" in tabs[1].split()


def documents_below(folder: Path) -> list[Path]:
    """Pages, notebooks and scripts below a folder."""
    return sorted(file for kind in ("md", "ipynb", "py") for file in folder.rglob(f"*.{kind}"))


def run_blocks(blocks: list[str], name: str) -> Iterator[dict[str, Any]]:
    """Run blocks in one namespace; of each its error, what it printed, and the tensors that are new or changed."""
    import torch

    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": name, "__builtins__": __builtins__}
    before: dict[str, Any] = {}
    for block in blocks:
        random.seed(0)
        numpy.random.seed(0)
        torch.manual_seed(0)
        printed, error = io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(block, name, "exec"), namespace)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
        tensors = dict(_tensors(namespace, torch))
        yield {"error": error, "printed": printed.getvalue(),
               "tensors": {key: value for key, value in tensors.items() if before.get(key) != value}}
        before = tensors


def _tensors(values: Any, torch: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Dotted names and summaries of the tensors in a value."""
    if isinstance(values, torch.Tensor):
        yield prefix, _summary(values, torch)
        if values.is_leaf and values.grad is not None:
            yield f"{prefix}.grad", _summary(values.grad, torch)
    elif isinstance(values, torch.nn.Module):
        for name, parameter in list(values.named_parameters()) + list(values.named_buffers()):
            yield from _tensors(parameter, torch, f"{prefix}.{name}", depth + 1)
    elif isinstance(values, dict) and depth < 3:
        for key, value in list(values.items()):
            if not (isinstance(key, str) and key.startswith("_")):
                yield from _tensors(value, torch, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif isinstance(values, (list, tuple)) and depth < 3:
        for number, value in enumerate(values[:50]):
            yield from _tensors(value, torch, f"{prefix}[{number}]", depth + 1)


def _summary(tensor: Any, torch: Any) -> list[Any]:
    """Dtype, shape, `requires_grad`, name of the node, and sums of the values and of their magnitudes."""
    described = [str(tensor.dtype), list(tensor.shape), tensor.requires_grad, type(tensor.grad_fn).__name__]
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_nested:
        return [*described, None]
    with torch.no_grad():
        plain = tensor.detach()
        plain = torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain
        flat = plain.to(torch.float64).flatten()
        weights = torch.arange(1, flat.numel() + 1, dtype=torch.float64).sqrt()
        return [*described, [float(each.nan_to_num().mul(weights).sum()) for each in (flat, flat.abs())]]


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """What differs between two runs of a block, one line each."""
    found = []
    if ours["error"] != theirs["error"]:
        return [f"error {ours['error']!r}, not {theirs['error']!r}"]
    for name in theirs["tensors"].keys() | ours["tensors"].keys():
        a, b = ours["tensors"].get(name), theirs["tensors"].get(name)
        if a is None or b is None:
            found.append(f"{name}: {'new or changed' if a else 'not changed'}, otherwise under PyTorch")
        elif a[:4] != b[:4]:
            found.append(f"{name}: {a[:4]}, not {b[:4]}")
        elif a[4] and b[4] and abs(a[4][0] - b[4][0]) > TOLERANCE * max(b[4][1], 1e-6):
            found.append(f"{name}: weighted sums {a[4]}, not {b[4]}")
    if ours["printed"] != theirs["printed"]:
        lines = [f"printed {a!r}, not {b!r}"
                 for a, b in zip_longest(ours["printed"].splitlines(), theirs["printed"].splitlines(), fillvalue="")
                 if a != b and _without_numbers(a) != _without_numbers(b)]
        found.extend(lines[:2])
    return sorted(found)


def _without_numbers(line: str) -> str:
    """A printed line without digits, signs and spaces: times, addresses and the last digits of floats differ."""
    return re.sub(r"0x[0-9a-f]+|[-+\d.e\s]|flambeau|torch", "", line)


def run(path: Path, library: str, limit: float, search: list[Path]) -> list[dict[str, Any]]:
    """The observations of a document's blocks under `flambeau` or `torch` that end within `limit` seconds."""
    start = ["-m", "flambeau", "run"] if library == "flambeau" else []
    with tempfile.TemporaryDirectory() as folder:
        observations = Path(folder) / "observations.jsonl"
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*search, ROOT])), "MPLBACKEND": "agg"}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, *start, __file__, "--observe", str(observations), str(path.resolve())],
                           cwd=folder, env=environment, timeout=limit, capture_output=True, check=False,
                           stdin=subprocess.DEVNULL)
        if not observations.exists():
            return []
        return [json.loads(line) for line in observations.read_text("utf-8").splitlines()]


def observe(path: Path, file: Path) -> None:
    """Write the observations of a document's blocks, one line each, as soon as they are there."""
    warnings.simplefilter("ignore")
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.parent))
    with file.open("w", encoding="utf-8") as lines:
        for observation in run_blocks(blocks_of(path), str(path)):
            lines.write(json.dumps(observation) + "\n")
            lines.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, help="documents, or folders of them")
    parser.add_argument("--path", action="append", default=[], type=Path, help="a folder for imports")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a document under one library")
    parser.add_argument("--observe", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.observe:
        observe(options.paths[0], options.observe)
        return
    files = [file for path in options.paths for file in ([path] if path.is_file() else documents_below(path))]
    same = different = failed = unreached = 0
    for file in files:
        theirs = run(file, "torch", options.limit, options.path)
        ours = run(file, "flambeau", options.limit, options.path) if theirs else []
        for number, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            lines = differences(a, b)
            failed += bool(b["error"])
            different += bool(lines)
            same += not lines and not b["error"]
            for line in lines[:4]:
                print(f"{file} block {number}: {line[:400]}", flush=True)
        if len(ours) < len(theirs):
            unreached += len(theirs) - len(ours)
            print(f"{file} block {len(ours)}: not reached in time, or the process ended", flush=True)
    print(f"{len(files)} documents: blocks that agree {same}, differ {different}, fail under PyTorch {failed}, "
          f"not reached {unreached}")


if __name__ == "__main__":
    main()
