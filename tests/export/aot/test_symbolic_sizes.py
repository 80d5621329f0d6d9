"""One plan for many sizes: results at every size, and what a plan serves."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export
from flambeau.export.aot.sizes.expressions import SizeFunction
from flambeau.export.aot.sizes.templates import templates
from flambeau.runtime.symbolic_integers import PlannedSizes, SymbolicInteger
from tests.export.aot.javascript import NODE, node
from tests.export.aot.results import agree, eager


class Attention(nn.Module):
    """Attention and a norm over sequences of any length."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(x).chunk(3, -1)
        weights = (q @ k.transpose(-1, -2) / 4).softmax(-1)
        return self.norm(x + self.outer(weights @ v))[:, -1]


def images() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 20, 3, padding=1), nn.Tanh(),
                         nn.AvgPool2d(3, 2, 1), nn.Flatten(), nn.Linear(180, 5)).eval()


def batch(low: int, high: int) -> Any:
    return ({0: Dim("batch", min=low, max=high)},)


class Library:
    """A shared library whose functions have sizes first, an input, and an output."""

    def __init__(self, path: Path) -> None:
        self._library, self._name = ctypes.CDLL(str(path)), path.stem
        self._size = getattr(self._library, f"{path.stem}_arena_size")
        self._size.restype = ctypes.c_size_t

    def __call__(self, sizes: tuple[int, ...], x: np.ndarray, y: np.ndarray) -> int:
        numbers = [ctypes.c_int64(n) for n in sizes]
        arena = np.full(self._size(*numbers) + 3, 255, np.uint8)[3:]  # of any address, and not zeroed
        addresses = [ctypes.c_void_p(a.ctypes.data) for a in (x, y, arena)]
        status: int = getattr(self._library, f"{self._name}_run")(*numbers, *addresses, ctypes.c_size_t(arena.nbytes))
        return status


@pytest.mark.parametrize("threads", [1, 2])
def test_every_size_of_a_range(threads, tmp_path):
    module = images()
    program = export(module, (torch.randn(4, 1, 14, 14),), dynamic_shapes=batch(1, 40))
    report = program.save(tmp_path / "net.so", target="native", **({"threads": 2} if threads > 1 else {}))
    assert len(report.arenas) == 40
    if threads > 1:
        return  # the same plans; a pool is an argument that this call lacks
    library = Library(tmp_path / "net.so")
    for n in range(1, 41):
        x = torch.randn(n, 1, 14, 14)
        expected = eager(module, (x,))
        y = np.zeros_like(expected[0])
        assert library((n,), x.numpy(), y) == 0
        agree([y], expected)
    assert library((41,), x.numpy(), y) == 3


def test_two_sizes(tmp_path):
    torch.manual_seed(1)
    module = Attention().eval()
    shapes = ({0: Dim("batch", max=7), 1: Dim("length", max=12)},)
    export(module, (torch.randn(3, 5, 16),), dynamic_shapes=shapes).save(tmp_path / "att.so", target="native")
    library = Library(tmp_path / "att.so")
    for n in range(1, 8):
        for t in range(1, 13):
            x = torch.randn(n, t, 16)
            expected = eager(module, (x,))
            y = np.zeros_like(expected[0])
            assert library((n, t), x.numpy(), y) == 0
            agree([y], expected)


def test_a_large_range_takes_few_plans(tmp_path):
    torch.manual_seed(2)
    module, x = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 4)).eval(), torch.randn(3, 20)
    program = export(module, (x,), dynamic_shapes=({0: Dim("batch")},))
    report = program.save(tmp_path / "net.so", target="native", sizes={"batch": range(1, 3001)})
    assert len(report.arenas) == 3000
    with pytest.warns(UserWarning, match=r"code for batch from 1 to 64 only.*Dim\('batch'\) a maximum"):
        assert len(program.save(tmp_path / "first.so", target="native").arenas) == 64
    assert report.files[tmp_path / "net.so"] < 80_000
    library = Library(tmp_path / "net.so")
    for n in (1, 2, 6, 7, 31, 500, 2999, 3000):
        x = torch.randn(n, 20)
        expected = eager(module, (x,))
        y = np.zeros_like(expected[0])
        assert library((n,), x.numpy(), y) == 0
        agree([y], expected)


@pytest.mark.parametrize("runtime", NODE)
def test_in_webassembly(runtime, tmp_path):
    module = images()
    program = export(module, (torch.randn(4, 1, 14, 14),), dynamic_shapes=batch(1, 20))
    program.save(tmp_path / "net.wasm")
    x = torch.linspace(-1, 1, 20 * 14 * 14).reshape(20, 1, 14, 14)
    expected = eager(module, (x,))[0]
    sums = node(tmp_path, """
import { readFileSync } from "node:fs";
import { load } from "./net.mjs";
const model = await load(readFileSync("./net.wasm"));
const x = Float32Array.from({ length: 3920 }, (_, i) => -1 + 2 * i / 3919);
const results = [];
for (let n = 1; n <= 20; n += 1) results.push(Array.from(model(x.slice(0, 196 * n))));
console.log(JSON.stringify(results));
""")
    for n, each in enumerate(sums, 1):
        agree([np.float32(each).reshape(n, 5)], [eager(module, (x[:n],))[0]], 1e-4)
    assert len(sums) == len(expected)


def test_sizes_that_change_the_operations_have_captures_of_their_own():
    """A function that does something else for each size has no template."""
    captured: list[tuple[int, ...]] = []

    def capture(sizes: tuple[int, ...]) -> Any:
        from flambeau.export.aot.capture import capture as capture_call

        captured.append(sizes)
        with torch.no_grad():
            return capture_call(lambda x: x.exp() if sizes[0] % 2 else x.sin(), (torch.ones(sizes[0]),))

    found, captures = templates([(n,) for n in range(1, 11)], capture)
    assert len(found) == len(captures) == len(set(captured)) == 10


def test_expressions_are_pythons(tmp_path):
    """Quotients are rounded down, for any sign."""
    sizes = PlannedSizes([np.arange(-9, 10), np.tile([3, -4, 7, -1, 2], 4)[:19]], 0)
    n, m = sizes.symbols()
    body = SizeFunction()
    each = [-(-n // m), n % m, n - 2 * m, 5 // m, (n * n + 3) % 4 - 1]
    places = [body.value(x) for x in each]
    stores = [f"  %p{i} = getelementptr i64, ptr %out, i64 {i}\n  store i64 {v}, ptr %p{i}"
              for i, v in enumerate(places)]
    text = "define void @f(ptr %sizes, ptr %out) {\n" + "\n".join([*body.lines, *stores]) + "\n  ret void\n}"
    from flambeau.runtime import object_emission, object_loader

    address = object_loader.load(object_emission.emit_object(text, "few"), ("f",))["f"]
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)
    for i, pair in enumerate(zip(*sizes.columns, strict=True)):
        given, out = np.array(pair, np.int64), np.zeros(len(each), np.int64)
        function(given.ctypes.data, out.ctypes.data)
        assert out.tolist() == [int(x.values[i]) for x in each if isinstance(x, SymbolicInteger)]


def test_what_needs_a_number_serves_that_number_only():
    sizes = PlannedSizes([np.arange(1, 9)], 5)
    (n,) = sizes.symbols()
    assert n > 2
    assert sizes.served.tolist() == [False, False, *[True] * 6]
    assert [*range(n)] == [0, 1, 2, 3, 4, 5]
    assert sizes.served.nonzero()[0].tolist() == [5]
    assert (n == PlannedSizes([np.arange(1, 9)], 5).symbols()[0]) is False
    with pytest.raises(ZeroDivisionError):
        _ = 3 // (n - 6)
