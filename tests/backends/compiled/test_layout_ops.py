"""Permuted copies, concatenations, repeats and padding of large arrays against NumPy, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled import copy_with_layout, new_copy
from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.scalar.scalar_ir import variable

F = torch.nn.functional
DTYPES = ["float32", "float64", "int64", "bool", "uint8", "float16", "bfloat16", "complex64", "complex128"]
LAYOUTS = {
    "rows": lambda x: x, "columns": lambda x: x.t(), "cut": lambda x: x[3:, 1:-2], "steps": lambda x: x[::2, ::3],
    "expanded": lambda x: x[:, :1].expand(-1, 20), "expanded rows": lambda x: x[:1].expand(20, -1),
    "empty": lambda x: x[:0], "narrow": lambda x: x[:, :3], "turned narrow": lambda x: x[:, :3].t(),
}
MOVES = {
    "contiguous": lambda x: x.contiguous(), "clone": lambda x: x.clone(),
    "clone by rows": lambda x: x.clone(memory_format=torch.contiguous_format),
    "reshape": lambda x: x.reshape(-1), "reshape to halves": lambda x: x.reshape(2, -1) if x.numel() % 2 == 0 else x,
    "images": lambda x: x[:2, :3, None, None].expand(-1, 3, 5, 4).contiguous(memory_format=torch.channels_last),
    "flip columns": lambda x: x.flip(1), "flip rows": lambda x: x.flip(0), "flip both": lambda x: x.flip(0, 1),
    "rot90": lambda x: torch.rot90(x), "roll": lambda x: x.roll(3, 1), "roll all": lambda x: x.roll(-5),
    "roll both": lambda x: x.roll((2, -3), (0, 1)), "roll twice": lambda x: x.roll((2, 1), (1, 1)),
    "roll none": lambda x: x.roll(0, 0),
    "cat": lambda x: torch.cat([x, x], 1), "cat rows": lambda x: torch.cat([x, x[:1], x]),
    "cat with nothing": lambda x: torch.cat([x, torch.zeros(0, dtype=x.dtype), x], -1),
    "stack": lambda x: torch.stack([x, x, x]), "stack last": lambda x: torch.stack([x, x], -1),
    "stack between": lambda x: torch.stack([x, x], 1), "unbound": lambda x: torch.stack(x.unbind(1)[::-1]),
    "chunks": lambda x: torch.cat(x.chunk(3, 1)[::-1], 1), "repeat": lambda x: x.repeat(2, 3),
    "repeat more": lambda x: x.repeat(2, 1, 2), "repeat never": lambda x: x.repeat(0, 2),
    "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=1), "pad rows": lambda x: F.pad(x, (0, 0, 1, 1)),
    "cut": lambda x: F.pad(x, (-1, 2)), "cut away": lambda x: F.pad(x, (2, -x.shape[1])),
    "slice": lambda x: x[1:-1, ::2] * 1 if x.is_floating_point() else x[1:-1, ::2],
    "tril": lambda x: x.tril(), "triu": lambda x: x.triu(3), "tril far": lambda x: x.tril(-2),
    "select": lambda x: x[:, 1],
}


def bits(x):
    a = np.ascontiguousarray(x.detach()._array)
    return x.shape, x.stride(), x.dtype, a.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MOVES)
def test_layout_operations(dtype, name, impls):
    kind = getattr(torch, dtype)
    x = (torch.arange(37 * 30).view(37, 30) % 97).to(kind)
    for layout, of in LAYOUTS.items():
        by_numpy, by_kernels = impls.both(lambda of=of: bits(MOVES[name](of(x))))
        assert by_numpy == by_kernels, layout


@pytest.mark.parametrize("name", MOVES)
def test_gradients_of_layout_operations(name, impls):
    def run(of):
        x = torch.arange(37 * 30.0).view(37, 30).requires_grad_()
        y = MOVES[name](of(x))
        g = torch.arange(float(y.numel())).view(y.shape)
        y.backward(g)
        return bits(x.grad)

    for layout, of in LAYOUTS.items():
        by_numpy, by_kernels = impls.both(lambda of=of: run(of))
        assert by_numpy == by_kernels, layout


def test_errors_equal_those_of_small_arrays(impls):
    x, y = torch.zeros(40, 30), torch.zeros(30, 40)
    for f in (lambda: torch.cat([x, y]), lambda: torch.stack([x, y]), lambda: torch.cat([x, x], 2),
              lambda: torch.stack([x, x], 3)):
        texts = []
        for way in (impls.numpy, impls.kernels):
            with pytest.raises((RuntimeError, IndexError)) as error:
                way(f)
            texts.append(str(error.value))
        assert texts[0] == texts[1]


@pytest.mark.parametrize("shape", [(3, 5, 49), (2, 16, 196), (4, 33, 8), (1, 70, 70), (5, 2, 300), (2, 3, 1)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u2", "u1"])
def test_copies_of_transposed_arrays(shape, dtype, impls):
    x = np.random.default_rng(0).integers(0, 200, shape).astype(dtype)
    for order in ((0, 2, 1), (2, 1, 0), (1, 0, 2), (1, 2, 0)):
        for view in (x.transpose(order), x.transpose(order)[..., ::-1], x[:, ::-1, ::-1].transpose(order)):
            assert (impls.kernels(lambda view=view: new_copy(view)) == view).all()
            same = impls.kernels(lambda view=view: new_copy(view, "K"))
            assert (same == view).all()
            assert same.strides == view.copy(order="K").strides
            like = np.empty(view.shape, dtype, order="F")
            found = impls.kernels(lambda view=view, like=like: copy_with_layout(view, like))
            assert (found == view).all()
            assert found.strides == like.strides


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 64, 1000])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?", "i8"])
def test_negative_strides(n, dtype):
    x = np.random.default_rng(0).integers(0, 2, (3, 2 * n)).astype(dtype)
    kernel = elementwise.kernel([variable(0, dtype)], [dtype])
    for view in (x[:, ::-1], x[::-1, ::-1], x[:, n - 1::-1], x[1, ::-1], x[:, ::-2]):
        assert (kernel(view) == view).all()
        out = np.zeros((view.shape[0], 4 * n) if view.ndim == 2 else 4 * n, dtype)
        kernel(view, out=out[..., :2 * view.shape[-1]:2])
        assert (out[..., :2 * view.shape[-1]:2] == view).all()
        assert not out[..., 1::2].any()


@pytest.mark.skipif(not codegen.available(), reason="there is no compiler")
def test_large_arrays_use_kernels(monkeypatch):
    from flambeau.backends.compiled.families import copying

    seen = []
    original = copying.copy
    monkeypatch.setattr(copying, "copy", lambda *args: seen.append(1) or original(*args))
    x = torch.zeros(2000, 1100)
    for f in (lambda: x.t().contiguous(), lambda: x.flip(1), lambda: torch.cat([x, x], 1), lambda: x.roll(3, 1),
              lambda: x.repeat(2, 1), lambda: F.pad(x, (1, 1)), lambda: torch.stack([x, x])):
        seen.clear()
        f()
        assert seen
