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

#: a size that no other test has: views of known layouts are made without the function that notes them
N = 23
COLUMNS = np.ones((N, N), np.float32, order="F")


def _loaded(m: Any) -> Any:
    file = io.BytesIO()
    m.save(m.ones(N, N).permute(1, 0), file)
    layouts_seen[0] = False
    file.seek(0)
    return m.load(file)


def _unpickled(m: Any) -> Any:
    code = pickle.dumps(m.nn.Parameter(m.ones(N, N).permute(1, 0)))
    layouts_seen[0] = False
    return pickle.loads(code).detach()


ORIGINS = {
    "T": lambda m: m.ones(N, N).T, "mT": lambda m: m.ones(N, N).mT, "H": lambda m: m.ones(N, N).H,
    "t": lambda m: m.ones(N, N).t(), "t_": lambda m: m.ones(N, N).t_(), "movedim": lambda m: m.ones(N, N).movedim(0, 1),
    "swapdims_": lambda m: m.ones(N, N).swapdims_(0, 1), "aten": lambda m: m.ops.aten.permute(m.ones(N, N), [1, 0]),
    "diagonal": lambda m: m.ones(N, N, N).diagonal(0, 0, 1), "unfold": lambda m: m.ones(2 * N, N).unfold(0, N, N)[0],
    "as_strided": lambda m: m.ones(N * N).as_strided((N, N), (1, N)),
    "as_strided_": lambda m: m.ones(N * N).as_strided_((N, N), (1, N)),
    "set_": lambda m: m.empty(0).set_(m.ones(N * N).untyped_storage(), 0, (N, N), (1, N)),
    "empty_strided": lambda m: m.empty_strided((N, N), (1, N)).fill_(1),
    "empty_permuted": lambda m: m.empty_permuted((N, N), (1, 0)).fill_(1),
    "from_numpy": lambda m: m.from_numpy(COLUMNS), "as_tensor": lambda m: m.as_tensor(COLUMNS),
    "tensor": lambda m: m.tensor(COLUMNS), "from_dlpack": lambda m: m.from_dlpack(COLUMNS),
    "load": _loaded, "pickle": _unpickled, "einsum": lambda m: m.einsum("ij->ji", m.ones(N, N)),
    "qr": lambda m: m.linalg.qr(m.eye(N) + 1)[0], "inv": lambda m: m.linalg.inv(m.eye(N)),
    "fft": lambda m: m.fft.fft(m.ones(N, N), dim=0).real, "rot90": lambda m: m.rot90(m.ones(N, N)),
    "nonzero": lambda m: m.ones(1, N * N).nonzero().float().t().repeat(N, 1)[:N, :N].t(),
    "channels_last": lambda m: m.ones(1, N, N, 1).contiguous(memory_format=m.channels_last)[0, :, :, 0]}


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
    for m in (torch, flambeau):
        x = ORIGINS[name](m)
        y = m.ones(N, N)
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
