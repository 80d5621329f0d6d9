"""Whatever makes a tensor of another layout than row-major notes it: strides do not depend on what ran before.

Fast paths look at the layouts of operands once `layouts_seen` says that there is one that is not row-major.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.kernels.memory_format import layouts_seen
from flambeau.shapes import contiguous_strides
from tests.ops.spec import RECORDS, Make, load, public
from tests.ops.test_generic import tensors_in

load()

def _columns(n: int) -> np.ndarray:
    return np.ones((n, n), np.float32, order="F")


def _loaded(m: Any, n: int) -> Any:
    file = io.BytesIO()
    m.save(m.ones(n, n).permute(1, 0), file)
    layouts_seen[0] = False
    file.seek(0)
    return m.load(file)


def _unpickled(m: Any, n: int) -> Any:
    code = pickle.dumps(m.nn.Parameter(m.ones(n, n).permute(1, 0)))
    layouts_seen[0] = False
    return pickle.loads(code).detach()


ORIGINS = {
    "T": lambda m, n: m.ones(n, n).T, "mT": lambda m, n: m.ones(n, n).mT, "H": lambda m, n: m.ones(n, n).H,
    "t": lambda m, n: m.ones(n, n).t(), "t_": lambda m, n: m.ones(n, n).t_(),
    "movedim": lambda m, n: m.ones(n, n).movedim(0, 1),
    "swapdims_": lambda m, n: m.ones(n, n).swapdims_(0, 1),
    "aten": lambda m, n: m.ops.aten.permute(m.ones(n, n), [1, 0]),
    "diagonal": lambda m, n: m.ones(n, n, n).diagonal(0, 0, 1),
    "unfold": lambda m, n: m.ones(2 * n, n).unfold(0, n, n)[0],
    "as_strided": lambda m, n: m.ones(n * n).as_strided((n, n), (1, n)),
    "as_strided_": lambda m, n: m.ones(n * n).as_strided_((n, n), (1, n)),
    "set_": lambda m, n: m.empty(0).set_(m.ones(n * n).untyped_storage(), 0, (n, n), (1, n)),
    "empty_strided": lambda m, n: m.empty_strided((n, n), (1, n)).fill_(1),
    "empty_permuted": lambda m, n: m.empty_permuted((n, n), (1, 0)).fill_(1),
    "from_numpy": lambda m, n: m.from_numpy(_columns(n)),
    "as_tensor": lambda m, n: m.as_tensor(_columns(n)),
    "tensor": lambda m, n: m.tensor(_columns(n)), "from_dlpack": lambda m, n: m.from_dlpack(_columns(n)),
    "load": _loaded, "pickle": _unpickled, "einsum": lambda m, n: m.einsum("ij->ji", m.ones(n, n)),
    "qr": lambda m, n: m.linalg.qr(m.eye(n) + 1)[0], "inv": lambda m, n: m.linalg.inv(m.eye(n)),
    "fft": lambda m, n: m.fft.fft(m.ones(n, n), dim=0).real,
    "rot90": lambda m, n: m.rot90(m.ones(n, n)),
    "nonzero": lambda m, n: m.ones(1, n * n).nonzero().float().t().repeat(n, 1)[:n, :n].t(),
    "channels_last": lambda m, n: m.ones(1, n, n, 1).contiguous(memory_format=m.channels_last)[0, :, :, 0]}


@pytest.fixture(autouse=True)
def _nothing_seen() -> Iterator[None]:
    """As in a new process."""
    before = layouts_seen[0]
    layouts_seen[0] = False
    yield
    layouts_seen[0] = max(before, layouts_seen[0])


@pytest.mark.parity
@pytest.mark.parametrize("name", ORIGINS)
def test_results_follow_the_first_tensor_of_another_layout(name: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    # a size that no other test has: views of known layouts are made without the function that notes them
    n = 23 + list(ORIGINS).index(name)
    for m in (torch, flambeau):
        x = ORIGINS[name](m, n)
        y = m.ones(n, n)
        found.append([r.stride() for r in (x, x + y, y + x, x * y, m.eq(x, y), x.exp(), x * 2)])
    assert found[1] == found[0]


def _is_another_layout(a: np.ndarray) -> bool:
    strides = [s for s, n in zip(a.strides, a.shape, strict=True) if n != 1 and s]
    return bool(a.size) and (any(s < t for s, t in pairwise(strides)) or (
        a.flags.c_contiguous and a.strides != tuple(s * a.itemsize for s in contiguous_strides(a.shape))))


@pytest.mark.filterwarnings("ignore")
def test_every_operator_notes_results_of_another_layout() -> None:
    unnoted, others = [], 0
    for name, record in RECORDS.items():
        if name in ("Tensor.unfold", "as_strided"):  # views of known layouts, above
            continue
        for sample in islice(record.samples(Make(flambeau, flambeau.float64)), 3):
            layouts_seen[0] = False
            if any(_is_another_layout(x._array) for x in tensors_in((sample.args, list(sample.kwargs.values())))):
                continue
            try:
                result = public(flambeau, name)(*sample.args, **sample.kwargs)
            except (NotImplementedError, RuntimeError):
                continue
            layouts = [r.stride() for r in tensors_in(result) if isinstance(r._array, np.ndarray)
                       and _is_another_layout(r._array)]
            others += bool(layouts)
            if layouts and not layouts_seen[0]:
                unnoted.append((name, layouts))
    assert others > 50
    assert not unnoted
