"""Convolution kernels and their gradients, compared with NumPy in float64."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from flambeau.codegen.convolution import blocking, convolution, row_correlation
from flambeau.codegen.convolution import weight_gradient as convolution_gradient
from flambeau.codegen.convolution.geometry import forward, transposed
from flambeau.codegen.convolution.winograd.weight_gradient import WinogradWeightGradient
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.kernels import convolution as reference
from flambeau.kernels import threads as limits
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

TOLERANCE = {"float32": 2e-6, "float64": 1e-14}


@dataclass(frozen=True)
class Case:
    """Sizes of a convolution."""

    n: int
    c: int
    o: int
    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def how(self) -> dict[str, Any]:
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}

    @property
    def positions(self) -> tuple[int, ...]:
        return reference.output_size(self.spatial, self.kernel, self.stride, self.padding, self.dilation)

    def arrays(self, dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x, w, and a gradient of the output."""
        rng = np.random.default_rng(seed)
        shapes = ((self.n, self.c, *self.spatial), (self.o, self.c // self.groups, *self.kernel),
                  (self.n, self.o, *self.positions))
        x, w, gy = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
        return x, w, gy


def case(n: int, c: int, o: int, size: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1,
         groups: int = 1, rank: int = 2) -> Case:
    """A case of equal sizes along all dimensions."""
    return Case(n, c, o, *((each,) * rank for each in (size, kernel, stride, padding, dilation)), groups)


def laid_out(x: np.ndarray, layout: str) -> np.ndarray:
    """The same values in another layout."""
    if layout == "rows":
        return np.ascontiguousarray(x)
    if layout == "last":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    if layout == "gaps":  # every second element of a larger array, along every dimension
        big = np.full([2 * extent for extent in x.shape], np.nan, x.dtype)
        view = big[(slice(None, None, 2),) * x.ndim]
        view[...] = x
        return view
    if layout == "channels of more":  # some channels of images that have them last
        big = np.full((x.shape[0], *x.shape[2:], x.shape[1] + 3), np.nan, x.dtype)
        view = np.moveaxis(big[..., 1:-2], -1, 1)
        view[...] = x
        return view
    assert layout == "turned"
    return np.ascontiguousarray(x.T).T


def empty(shape: tuple[int, ...], dtype: Any, layout: str = "rows") -> np.ndarray:
    return laid_out(np.full(shape, np.nan, dtype), layout)


def run(make: Any, outputs: list[np.ndarray], *operands: np.ndarray, extras: tuple[np.ndarray, ...] = (),
        **how: Any) -> None:
    given = {"extras": list(map(Spec.of, extras))} if extras else {}
    launch.run(make(list(map(Spec.of, outputs)), *map(Spec.of, operands), **given, **how),
               [*outputs, *operands, *extras])


def close(found: np.ndarray, wanted: np.ndarray, dtype: str) -> None:
    assert found.dtype == dtype
    scale = max(1.0, float(abs(wanted).max())) if wanted.size else 1.0
    np.testing.assert_allclose(found / scale, wanted / scale, rtol=0, atol=TOLERANCE[dtype])


def check(one: Case, dtype: str, x_layout: str = "rows", y_layout: str = "rows", w_layout: str = "rows") -> None:
    """All three kernels."""
    x, w, gy = one.arrays(dtype)
    wide = x.astype("f8"), w.astype("f8"), gy.astype("f8")
    how = tuple(one.how.values())
    y = reference.conv_forward(wide[0], wide[1], *how)
    gx = reference.conv_input_grad(wide[2], wide[1], one.spatial, *how)
    gw = reference.conv_weight_grad(wide[2], wide[0], one.kernel, *how)
    x, w, gy = laid_out(x, x_layout), laid_out(w, w_layout), laid_out(gy, y_layout)

    found = empty(y.shape, dtype, y_layout)
    run(convolution.forward, [found], x, w, **one.how)
    close(found, y, dtype)
    found = empty(x.shape, dtype, x_layout)
    run(convolution.input_gradient, [found], gy, w, **one.how)
    close(found, gx, dtype)
    found = empty(w.shape, dtype, w_layout)
    run(convolution.weight_gradient, [found], x, gy, **one.how)
    close(found, gw, dtype)


CASES = {
    "3x3": case(2, 32, 64, 28, 3, padding=1),
    "3x3, odd": case(3, 24, 40, 15, 3, padding=1),
    "one channel": case(3, 1, 32, 28, 3),
    "rgb, 7x7, stride 2": case(1, 3, 20, 31, 7, 2, 3),
    "1x1": case(3, 20, 40, 7, 1),
    "1x1, stride 2": case(2, 20, 40, 9, 1, 2),
    "1x1, padded": case(2, 5, 3, 6, 1, 2, 1),
    "groups": case(2, 12, 18, 9, 3, 1, 1, 1, 3),
    "many small groups": case(2, 32, 32, 9, 3, 1, 1, 1, 8),
    "depthwise": case(2, 20, 20, 9, 3, 1, 1, 1, 20),
    "depthwise, stride 2": case(2, 33, 33, 10, 3, 2, 1, 1, 33),
    "depthwise, two outputs": case(2, 6, 12, 8, 3, 1, 1, 1, 6),
    "dilated": case(2, 5, 17, 15, 3, 1, 2, 2),
    "dilated and strided": Case(2, 4, 6, (13, 17), (3, 2), (2, 3), (1, 0), (1, 2), 2),
    "stride above the kernel": case(2, 3, 4, 11, 2, 3),
    "one position": case(4, 9, 50, 3, 3),
    "high": Case(2, 7, 9, (90, 1), (5, 1), (2, 1), (1, 0), (1, 1)),
    "high, and all in the margin": Case(2, 7, 9, (9, 1), (3, 1), (1, 3), (1, 1), (1, 1)),
    "kernel in the margin": Case(1, 4, 5, (1, 6), (2, 3), (3, 2), (2, 1), (1, 1)),
    "long": case(2, 7, 9, 700, 5, 2, 3, 2, rank=1),
    "1d, wide kernel": case(2, 1, 18, 300, 40, 4, 19, rank=1),
    "3d": Case(2, 4, 8, (5, 6, 7), (3, 2, 3), (1, 2, 2), (1, 0, 2), (1, 1, 2), 2),
    "many weights": case(3, 256, 256, 5, 3, padding=1),
    "wide images of many channels": case(1, 512, 8, 6, 3, padding=1),
    "few channels": Case(3, 2, 13, (19, 37), (3, 4), (2, 1), (1, 2), (2, 3)),
    "few channels, 1d": case(2, 3, 6, 70, 5, padding=2, rank=1),
    "no input": case(0, 3, 4, 5, 3),
}


@pytest.mark.parametrize("name", CASES)
def test_contiguous(name):
    check(CASES[name], "float32")


@pytest.mark.parametrize("name", ["3x3", "rgb, 7x7, stride 2", "1x1", "groups", "depthwise", "depthwise, stride 2",
                                  "one position", "long", "3d", "many weights"])
def test_channels_last(name):
    check(CASES[name], "float32", "last", "last")


@pytest.mark.parametrize("name", ["3x3", "depthwise, stride 2", "3d"])
def test_float64(name):
    check(CASES[name], "float64", "last", "rows")


@pytest.mark.parametrize("layout", ["gaps", "channels of more", "turned"])
@pytest.mark.parametrize("name", ["3x3", "rgb, 7x7, stride 2", "depthwise"])
def test_other_layouts(name, layout):
    check(CASES[name], "float32", layout, layout, "rows" if layout == "channels of more" else layout)


@pytest.mark.parametrize("layout", ["last", "gaps"])
def test_layouts_of_weights(layout):
    check(CASES["3x3"], "float32", w_layout=layout)
    check(CASES["groups"], "float32", w_layout=layout)


def drawn(rng: np.random.Generator) -> Case:
    rank = int(rng.integers(1, 4))
    groups = int(rng.choice([1, 1, 1, 2, 3, 19]))
    inside, outside = (1, 1) if groups == 19 else rng.integers(1, 40, 2)

    def sizes(low: int, high: int) -> tuple[int, ...]:
        return tuple(map(int, rng.integers(low, high, rank)))

    kernel, stride, padding, dilation = sizes(1, 4), sizes(1, 4), sizes(0, 4), sizes(1, 3)
    spatial = tuple(max(1, d * (k - 1) + 1 - 2 * p + int(extra)) for d, k, p, extra in zip(
        dilation, kernel, padding, rng.integers(0, (120, 30, 9)[rank - 1], rank), strict=True))
    return Case(int(rng.integers(1, 4)), int(inside) * groups, int(outside) * groups, spatial, kernel, stride, padding,
                dilation, groups)


@pytest.mark.parametrize("seed", range(14))
def test_random_sizes_in_small_blocks(seed, monkeypatch):
    """Blocks and buffers so small that images are divided along every dimension, and weights among chunks."""
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(blocking, "SOURCE_BYTES", int(rng.choice([1 << 9, 1 << 12, 1 << 18])))
    monkeypatch.setattr(blocking, "BUFFER_BYTES", int(rng.choice([1 << 9, 1 << 14])))
    monkeypatch.setattr(blocking, "LARGE_WEIGHTS_BYTES", int(rng.choice([1 << 8, 1 << 20])))
    monkeypatch.setattr(row_correlation, "SOURCE_BYTES", int(rng.choice([1 << 9, 1 << 14])))
    for module in (blocking, convolution_gradient, row_correlation):
        monkeypatch.setattr(module, "MIN_CHUNK_WORK", int(rng.choice([1, 1 << 20])))
    monkeypatch.setattr(convolution_gradient, "BLOCK_BYTES", int(rng.choice([1 << 9, 1 << 19])))
    monkeypatch.setattr(convolution_gradient, "PIECES_BYTES", int(rng.choice([1 << 10, 1 << 22])))
    convolution.clear_cache()
    layouts = ["rows", "last"]
    check(drawn(rng), "float32", str(rng.choice(layouts)), str(rng.choice(layouts)), str(rng.choice(layouts)))
    convolution.clear_cache()


def test_transposed_convolution_with_output_padding():
    """Output padding: input positions that are in no window."""
    one = Case(2, 5, 7, (12, 13), (3, 3), (3, 3), (1, 0), (1, 1))
    x, w, gy = one.arrays("float32")
    gy = gy[..., :-1, :-1]
    wanted = reference.conv_input_grad(gy.astype("f8"), w.astype("f8"), one.spatial, *one.how.values())
    found = empty(x.shape, "float32")
    run(convolution.input_gradient, [found], gy, w, **one.how)
    close(found, wanted, "float32")
    wanted = reference.conv_weight_grad(gy.astype("f8"), x.astype("f8"), one.kernel, *one.how.values())
    found = empty(w.shape, "float32")
    run(convolution.weight_gradient, [found], x, gy, **one.how)
    close(found, wanted, "float32")


# ----- Winograd ----------------------------------------------------------------------------

TILED = {
    "even": case(2, 32, 64, 28, 3, padding=1),
    "odd": case(3, 17, 19, 13, 3, padding=1),
    "all inside": case(2, 16, 24, 12, 3),
    "odd and all inside": Case(2, 9, 33, (11, 14), (3, 3), (1, 1), (0, 0), (1, 1)),
    "wide margins": Case(2, 5, 8, (6, 9), (3, 3), (1, 1), (2, 4), (1, 1)),
    "one column": Case(3, 12, 8, (20, 1), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one position": case(40, 20, 30, 3, 3),
    "wide": Case(1, 4, 20, (5, 301), (3, 3), (1, 1), (1, 0), (1, 1)),
    "groups": case(2, 36, 42, 9, 3, 1, 1, 1, 3),
    "planes": Case(2, 8, 16, (4, 7, 9), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
    "many channels": case(1, 150, 100, 10, 3, padding=1),
}


@pytest.fixture
def winograd(monkeypatch):
    """Use Winograd wherever it applies."""
    monkeypatch.setattr(convolution, "pays", lambda problem: True)
    monkeypatch.setattr(convolution, "gradient_pays", lambda problem: problem.groups == 1)
    convolution.clear_cache()
    yield
    convolution.clear_cache()


@pytest.mark.parametrize("layouts", [("rows", "rows", "rows"), ("last", "last", "last"), ("rows", "last", "gaps"),
                                     ("channels of more", "gaps", "turned")])
@pytest.mark.parametrize("name", TILED)
@pytest.mark.usefixtures("winograd")
def test_winograd(name, layouts):
    check(TILED[name], "float32", *layouts)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.usefixtures("winograd")
def test_winograd_in_small_blocks(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(blocking, "SOURCE_BYTES", int(rng.choice([1 << 9, 1 << 12, 1 << 18])))
    monkeypatch.setattr(blocking, "BUFFER_BYTES", int(rng.choice([1 << 9, 1 << 14])))
    monkeypatch.setattr(blocking, "MIN_CHUNK_WORK", int(rng.choice([1, 1 << 20])))
    high, wide = map(int, rng.integers(1, 60, 2))
    groups = int(rng.choice([1, 1, 2]))
    padding = max(1, 3 - high), max(1, 3 - wide)
    one = Case(int(rng.integers(1, 4)), groups * int(rng.integers(1, 40)), groups * int(rng.integers(1, 40)),
               (high, wide), (3, 3), (1, 1), padding, (1, 1), groups)
    check(one, "float32", *map(str, rng.choice(["rows", "last"], 3)))


def reached(x: np.ndarray, w: np.ndarray, one: Case) -> np.ndarray:
    """The convolution in float64 of possibly non-finite values, without warnings."""
    with np.errstate(all="ignore"):
        return reference.conv_forward(x.astype("f8"), w.astype("f8"), *one.how.values())


@pytest.mark.parametrize("layouts", [("rows", "rows"), ("last", "last"), ("last", "rows")])
@pytest.mark.parametrize("name", ["even", "odd", "groups", "planes"])
@pytest.mark.usefixtures("winograd")
def test_non_finite_inputs_only_affect_their_windows(name, layouts):
    one = TILED[name]
    x, w, gy = one.arrays("float32")
    for value, where in ((np.inf, 0.3), (-np.inf, 0.9), (np.nan, 0.6), (3e38, 0.1)):
        x.flat[int(where * x.size)] = value
    found = empty(gy.shape, "f4", layouts[1])
    total, before = e.variable(0, "float32"), e.variable(1, "float32")
    found[...] = gy
    run(convolution.forward, [found], laid_out(x, layouts[0]), w, extras=(found,), epilogue=[total + before], **one.how)
    wanted = reached(x, w, one) + gy
    some = np.isfinite(wanted) & (abs(wanted) < 1e30)
    assert 0.2 < some.mean() < 1
    assert (np.isnan(found) == np.isnan(wanted)).all()
    close(found[some], wanted[some], "float32")
    beyond = ~some & ~np.isnan(wanted)
    assert (np.sign(found[beyond]) == np.sign(wanted[beyond])).all()
    assert (abs(found[beyond]) > 1e30).all()


@pytest.mark.parametrize("layout", ["rows", "last"])
@pytest.mark.usefixtures("winograd")
def test_non_finite_weights(layout):
    one = TILED["odd"]
    x, w, gy = one.arrays("float32")
    x = np.sign(x)
    w[2, 3, 1, 1], w[18, 0, 2, 2] = np.inf, np.nan
    found = empty(gy.shape, "f4", layout)
    run(convolution.forward, [found], laid_out(x, layout), w, **one.how)
    wanted = reached(x, w, one)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in TILED if name != "groups"])
@pytest.mark.usefixtures("winograd")
def test_winograd_weight_gradient(name, monkeypatch):
    """Without the direct fallback for non-finite sums."""
    launches = WinogradWeightGradient.launches
    monkeypatch.setattr(WinogradWeightGradient, "launches", lambda self, *args: launches(self, *args)[:4])
    one = TILED[name]
    x, w, gy = one.arrays("float32")
    wanted = reference.conv_weight_grad(gy.astype("f8"), x.astype("f8"), one.kernel, *one.how.values())
    found = empty(w.shape, "f4")
    run(convolution.weight_gradient, [found], x, gy, **one.how)
    close(found, wanted, "float32")


@pytest.mark.parametrize("where", ["x", "gy"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.usefixtures("winograd")
def test_non_finite_weight_gradient(where, value):
    one = TILED["odd"]
    x, w, gy = one.arrays("float32")
    (x if where == "x" else gy)[0, 5, 0, 3] = value
    with np.errstate(all="ignore"):
        wanted = reference.conv_weight_grad(gy.astype("f8"), x.astype("f8"), one.kernel, *one.how.values())
    found = empty(w.shape, "f4")
    run(convolution.weight_gradient, [found], x, gy, **one.how)
    some = np.isfinite(wanted) & (abs(wanted) < 1e30)
    assert 0.5 < some.mean() < 1
    close(found[some], wanted[some], "float32")
    assert (np.isnan(found) == np.isnan(wanted)).all()
    beyond = ~some & ~np.isnan(wanted)
    assert (np.sign(found[beyond]) == np.sign(wanted[beyond])).all()


@pytest.mark.usefixtures("winograd")
def test_flagged_tiles_do_not_depend_on_threads(monkeypatch):
    one = TILED["even"]
    x, w, gy = one.arrays("float32")
    x[0, 3, 5, 5], x[1, 8, 20, 27] = np.inf, np.nan
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(limits, "_limit", count)
        convolution.clear_cache()
        y = empty(gy.shape, "f4")
        run(convolution.forward, [y], x, w, **one.how)
        found.append(y.tobytes())
    assert found[0] == found[1] == found[2]


# ----- epilogues ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["3x3", "3x3, odd", "1x1", "depthwise, stride 2", "3d"])
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("last", "last"), ("last", "rows")])
def test_epilogues(name, layouts):
    """relu(sum + bias) + residual, and where it is positive."""
    one = CASES[name]
    x, w, residual = one.arrays("float32")
    bias = np.linspace(-3, 3, one.o, dtype="f4").reshape(-1, *(1 for _ in one.spatial))
    x, residual = laid_out(x, layouts[0]), laid_out(residual, layouts[1])
    total, b, r = (e.variable(i, "float32") for i in range(3))
    relu = e.maximum(total + b, 0)
    y, positive = empty(residual.shape, "f4", layouts[1]), np.ones_like(residual, dtype=bool)
    run(convolution.forward, [y, positive], x, w, extras=(bias, residual), epilogue=[relu + r, relu > 0], **one.how)
    wanted = np.maximum(reference.conv_forward(x.astype("f8"), w.astype("f8"), *one.how.values()) + bias, 0)
    close(y, wanted + residual, "float32")
    assert (positive == (y - residual > 0))[abs(wanted) > 1e-5].all()


@pytest.mark.parametrize("layout", ["rows", "last"])
@pytest.mark.parametrize("name", ["3x3", "3x3, odd", "one position", "groups", "1x1, stride 2", "long"])
def test_epilogue_in_place(name, layout):
    """Each element is computed once, although an input of the epilogue is the output."""
    one = CASES[name]
    x, w, gy = one.arrays("float32")
    x, y = laid_out(x, layout), laid_out(gy.copy(), layout)
    total, before = e.variable(0, "float32"), e.variable(1, "float32")
    run(convolution.forward, [y], x, w, extras=(y,), epilogue=[total + before * 2], **one.how)
    wanted = reference.conv_forward(x.astype("f8"), w.astype("f8"), *one.how.values())
    close(y, wanted + 2.0 * gy, "float32")


def test_epilogue_of_the_input_gradient():
    one = Case(2, 20, 6, (12, 14), (4, 4), (2, 2), (1, 1), (1, 1))
    x, w, gy = one.arrays("float32")
    wanted = reference.conv_input_grad(gy.astype("f8"), w.astype("f8"), one.spatial, *one.how.values())
    bias = np.linspace(-1, 1, one.c, dtype="f4").reshape(-1, 1, 1)
    node = e.tanh(e.variable(0, "float32") + e.variable(1, "float32"))
    for layout in ("rows", "last"):
        found = empty(x.shape, "f4", layout)
        run(convolution.input_gradient, [found], gy, w, extras=(bias,), epilogue=[node], **one.how)
        close(found, np.tanh(wanted + bias), "float32")


# ----- determinism, vector widths, accuracy ---------------------------------------------------


@pytest.mark.parametrize("name", ["3x3", "depthwise", "many weights", "1d, wide kernel"])
def test_results_do_not_depend_on_threads(name, monkeypatch):
    one = CASES[name]
    x, w, gy = one.arrays("float32")
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(limits, "_limit", count)
        convolution.clear_cache()
        results = [empty(gy.shape, "f4"), empty(x.shape, "f4"), empty(w.shape, "f4")]
        run(convolution.forward, results[:1], x, w, **one.how)
        run(convolution.input_gradient, results[1:2], gy, w, **one.how)
        run(convolution.weight_gradient, results[2:], x, gy, **one.how)
        found.append([each.tobytes() for each in results])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width):
    code = "\n".join([
        "import sys", f"sys.path.insert(0, {os.path.dirname(__file__)!r})", "from test_convolution import CASES, check",
        "for name in ('groups', 'depthwise, stride 2', 'rgb, 7x7, stride 2'):",
        "    check(CASES[name], 'float32', 'rows', 'last')",
        "check(CASES['depthwise'], 'float64', 'last', 'rows')", "print('fine')"])
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          env=os.environ | {"FLAMBEAU_JIT_WIDTH": width})
    assert done.stdout == "fine\n", done.stderr


def test_errors_are_at_most_pytorchs():
    torch = pytest.importorskip("torch")
    one = case(2, 64, 64, 28, 3, padding=1)
    x, w, gy = one.arrays("float32")
    y, gx, gw = empty(gy.shape, "f4"), empty(x.shape, "f4"), empty(w.shape, "f4")
    run(convolution.forward, [y], x, w, **one.how)
    run(convolution.input_gradient, [gx], gy, w, **one.how)
    run(convolution.weight_gradient, [gw], x, gy, **one.how)
    tx, tw = (torch.tensor(each, requires_grad=True) for each in (x, w))
    ty = torch.conv2d(tx, tw, None, 1, 1)
    theirs = [ty.detach(), *torch.autograd.grad(ty, (tx, tw), torch.tensor(gy))]
    wide = [each.astype("f8") for each in (x, w, gy)]
    wanted = [reference.conv_forward(wide[0], wide[1], *one.how.values()),
              reference.conv_input_grad(wide[2], wide[1], one.spatial, *one.how.values()),
              reference.conv_weight_grad(wide[2], wide[0], one.kernel, *one.how.values())]
    for mine, other, exact in zip((y, gx, gw), theirs, wanted, strict=True):
        error, its = (float(np.sqrt(np.mean((each - exact) ** 2))) for each in (mine, other.numpy()))
        assert error <= 1.2 * its


# ----- errors, and geometry -----------------------------------------------------------------


def test_mismatched_arguments_raise():
    x, w, y = (Spec.dense(shape, np.dtype("f4")) for shape in ((2, 4, 8, 8), (6, 4, 3, 3), (2, 6, 6, 6)))
    how = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1}
    with pytest.raises(TypeError, match="float32 or float64"):
        convolution.forward([y], x._replace(dtype=np.dtype("i4")), w, **how)
    with pytest.raises(ValueError, match="groups"):
        convolution.forward([y], x, w, **how | {"groups": 2})
    with pytest.raises(ValueError, match="spatial dimensions"):
        convolution.forward([y], x, w, **how | {"stride": (1,)})
    with pytest.raises(ValueError, match="an output of shape"):
        convolution.forward([y._replace(shape=(2, 7, 6, 6))], x, w, **how)
    with pytest.raises(ValueError, match="2 outputs"):
        convolution.forward([y, y], x, w, **how)
    with pytest.raises(TypeError, match="expression of bool"):
        convolution.forward([y], x, w, epilogue=[e.variable(0, "float32") > 0], **how)


def test_geometry_of_a_convolution():
    found = forward(2, 1, 3, 4, (1, 5, 6), (1, 5, 3), (1, 3, 3), (1, 1, 2), (0, 1, 1), (1, 1, 1))
    assert len(found.phases) == 1
    assert found.phases[0].offsets[:3] == ((0, -1, -1), (0, -1, 0), (0, -1, 1))
    assert found.multiplications == 2 * 3 * 4 * 5 * 3 * 9
    assert not found.inside


def test_geometry_of_a_transpose():
    found = transposed(1, 1, 1, 1, (1, 1, 4), (1, 1, 8), (1, 1, 3), (1, 1, 2), (0, 0, 1), (1, 1, 1))
    assert [(phase.start[2], phase.counts[2]) for phase in found.phases] == [(0, 4), (1, 4)]
    # the kernel's middle reads x[0] at position 0; its ends read x[1], at positions 0 and 1
    assert [phase.offsets for phase in found.phases] == [((0, 0, 0),), ((0, 0, 0), (0, 0, 1))]
    assert [phase.kernel for phase in found.phases] == [(1,), (2, 0)]
