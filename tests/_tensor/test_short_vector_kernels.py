"""Kernels of losses by class, modes, distances, cross products and transforms: NumPy's bits and errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels, modes_of_rows
from flambeau.kernels import random
from flambeau.kernels.sorting import mode
from flambeau.runtime import object_layout
from tests._tensor.numpy_path import without_kernels

F = torch.nn.functional
MANY = CALLS + PROOFS + 12
FLOATS = [torch.float32, torch.float64]
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _same(found, expected):
    for x, y in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
        assert (x.dtype, x.shape, x.stride()) == (y.dtype, y.shape, y.stride())
        x, y = ((each.float() if each.dtype is torch.bfloat16 else each).numpy() for each in (x, y))
        assert x.tobytes() == y.tobytes()


def _check(call, make):
    """Compare results with those without kernels; `make(generator)` gives the tensors of a call."""
    for seed in range(MANY):
        given = make(np.random.default_rng(seed))
        _same(call(*given), without_kernels(lambda given=given: call(*given)))


def _normal(*shape, dtype=torch.float32):
    return lambda generator: torch.from_numpy(generator.standard_normal(shape)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 7, 130, 1100])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_classes(dtype, rows, reduction):
    def make(generator):
        classes = generator.integers(0, 70, rows)
        if rows > 1:
            classes[generator.integers(0, rows)] = 3
        return _normal(rows, 70, dtype=dtype)(generator), torch.from_numpy(classes)

    _check(lambda x, y: F.nll_loss(x, y, reduction=reduction), make)
    _check(lambda x, y: F.nll_loss(x, y, reduction=reduction, ignore_index=3), make)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_where_all_or_no_class_counts(dtype):
    x, ignored = _normal(4, 5, dtype=dtype)(np.random.default_rng(0)), torch.full((4,), -100)
    for _ in range(MANY):
        F.nll_loss(x, torch.tensor([1, 2, 3, 4]))
        assert F.nll_loss(x, ignored).isnan()
    for wrong in (5, -1):
        with pytest.raises(IndexError, match="out of bounds"):
            F.nll_loss(x, torch.tensor([0, 1, 2, wrong]))


def test_losses_of_large_matrices_read_few_elements():
    x, y = _normal(300, 400)(np.random.default_rng(0)), torch.arange(300)
    weight = _normal(3000, 40)(np.random.default_rng(1))
    for _ in range(MANY):
        _same(F.nll_loss(x, y), without_kernels(lambda: F.nll_loss(x, y)))
        for call in (lambda: x.gather(1, y[:, None]), lambda: x.index_select(0, y[:3]), lambda: x[y, y],
                     lambda: F.embedding(y, weight), lambda: x.trace(), lambda: x.index_select(1, y[:2])):
            _same(call(), without_kernels(call))
    with pytest.raises(IndexError):
        F.embedding(torch.tensor([3000] * 300), weight)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("side", [3, 100, 200, 300, 1000])
def test_traces(dtype, side):
    _check(lambda x: x.trace(), lambda generator: (_normal(side, side, dtype=dtype)(generator),))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("width", [1, 3, 8, 37, 128, 129])
def test_distances(dtype, width):
    def make(generator):
        return _normal(6, width, dtype=dtype)(generator), _normal(2, 5, width, dtype=dtype)(generator)

    _check(lambda x, y: (torch.pdist(x), torch.cdist(x, y[0]), torch.cdist(y, y)), make)
    _check(lambda x, y: (torch.pdist(x, 1), torch.cdist(x, x, 3.0)), make)


@pytest.mark.parametrize("shape", [(2, 3), (90, 128), (300, 5), (1, 4)])
def test_distances_of_many_pairs(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1))[np.triu_indices(len(x), 1)]
    np.testing.assert_allclose(torch.pdist(torch.from_numpy(x)).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.complex64])
def test_cross_products(dtype):
    def make(generator):
        return [(4 * _normal(5, 3, 3)(generator)).to(dtype) for _ in range(2)]

    _check(lambda x, y: (torch.cross(x, y, dim=-1), torch.cross(x, y, dim=1), torch.linalg.cross(x, y, dim=2),
                         torch.linalg.cross(x, y[:1])), make)
    _check(torch.linalg.cross, make)


TRANSFORMS = {
    "fft": torch.fft.fft, "ifft": torch.fft.ifft, "rfft": torch.fft.rfft, "hfft": torch.fft.hfft,
    "ihfft": torch.fft.ihfft, "irfft": torch.fft.irfft, "irfft, odd": lambda x: torch.fft.irfft(x, 7),
    "fft, longer": lambda x: torch.fft.fft(x, 12), "ortho": lambda x: torch.fft.fft(x, norm="ortho"),
    "forward": lambda x: torch.fft.ifft(x, norm="forward"), "dim": lambda x: torch.fft.fft(x, dim=0),
    "fft2": torch.fft.fft2, "irfft2": torch.fft.irfft2, "ifft2": lambda x: torch.fft.ifft2(x, norm="ortho"),
    "rfft2": torch.fft.rfft2, "other way": lambda x: torch.fft.fft2(x, dim=(1, 0))}
OF_SIGNALS = ("rfft", "ihfft", "rfft2")


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(4, 6), (3, 7), (1, 1), (64, 80)])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, shape, dtype):
    if (dtype.is_complex and name in OF_SIGNALS) or (shape == (1, 1) and "irfft" in name) or (
            shape == (1, 1) and name == "hfft"):
        return
    _check(lambda x: TRANSFORMS[name](x).resolve_conj(), lambda generator: (
        (_normal(*shape)(generator) + (1j * _normal(*shape)(generator) if dtype.is_complex else 0)).to(dtype),))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize("shape", [(4, 4), (5, 16), (3, 17), (2, 300), (40, 64)])
def test_modes(dtype, shape):
    def make(generator):
        return (torch.from_numpy(generator.integers(-4, 4, shape)).to(dtype),)

    _check(lambda x: (*x.mode(1), *x.mode(-1, keepdim=True), *x.mode(0)), make)
    _check(lambda x: tuple((x * 0.3 + 0.1).mode()), make)


@pytest.mark.parametrize("length", [1, 2, 16, 17, 100, 5000])
@pytest.mark.parametrize("kind", ["few", "sorted", "distinct", "equal", "zeros", "organ pipe"])
def test_modes_of_rows(length, kind):
    generator = np.random.default_rng(length)
    rows = {"few": lambda: generator.integers(0, 5, (3, length)),
            "sorted": lambda: np.arange(3 * length).reshape(3, -1),
            "distinct": lambda: generator.permutation(3 * length).reshape(3, -1),
            "equal": lambda: np.ones((3, length), np.int64),
            "zeros": lambda: generator.choice([0.0, -0.0, 1], (3, length)),
            "organ pipe": lambda: np.concatenate([np.arange(3 * length).reshape(3, -1) // 2,
                                                  np.arange(3 * length)[::-1].reshape(3, -1) // 2], 1)}[kind]()
    found, expected = modes_of_rows(rows), mode(rows, -1)
    if found is not None:  # else introsort would use a heap
        assert found[0].tobytes() == expected[0].tobytes()
        assert np.array_equal(found[1], expected[1])
    assert found is not None or kind == "organ pipe"


def test_modes_beside_pytorch():
    oracle = pytest.importorskip("torch")
    for seed in range(MANY):
        for shape in ((6, 9), (4, 90)):
            values = np.random.default_rng(seed).integers(-6, 6, shape)
            for x in (values, values.astype(np.float32)):
                found, expected = torch.from_numpy(x).mode(1), oracle.from_numpy(x).mode(1)
                assert np.array_equal(found[0].numpy(), expected[0].numpy())
                assert np.array_equal(found[1].numpy(), expected[1].numpy())
    x = torch.tensor([[1.0, float("nan"), float("nan")]])
    for _ in range(MANY):
        assert x.mode(1).indices.item() == 0


def test_numbers_beside_16_bits_have_float32():
    oracle = pytest.importorskip("torch")
    for name in ("add", "sub", "mul", "div"):
        for dtype in ("float16", "bfloat16"):
            found, expected = ([operator(lib.tensor(value).to(getattr(lib, dtype)), 0.9).item()
                                for value in np.linspace(0.1, 3, 40).tolist()]
                               for lib in (torch, oracle) for operator in (getattr(lib.ops.aten, name).Scalar,))
            assert found == expected


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize("tests", [1, 10, 64, 65])
def test_membership(dtype, tests):
    def make(generator):
        return (torch.from_numpy(generator.integers(-9, 9, (5, 7))).to(dtype),
                torch.from_numpy(generator.integers(-9, 9, tests)).to(dtype))

    _check(lambda x, y: (torch.isin(x, y), torch.isin(x, y, invert=True), torch.isin(x, 3),
                         torch.isin(x, y.int())), make)
    if dtype.is_floating_point:
        x = torch.tensor([float("nan"), -0.0, 1.0], dtype=dtype)
        for _ in range(MANY):
            assert torch.isin(x, torch.tensor([float("nan"), 0.0], dtype=dtype)).tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (4, 4), (20, 25), (30, 30), (3, 4, 5)])
def test_medians(dtype, shape):
    _check(lambda x: (x.median(), *x.median(0), *x.median(0, keepdim=True), *x.kthvalue(1, 0)),
           _only(_normal(*shape, dtype=dtype)))
    x = _normal(*shape, dtype=dtype)(np.random.default_rng(0))
    for _ in range(MANY):
        x.median()
    x.view(-1)[0] = float("nan")
    assert x.median().isnan()


def _only(make):
    return lambda generator: (make(generator),)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
def test_kronecker_products(dtype):
    _check(torch.kron, lambda generator: [(4 * _normal(2, 3)(generator)).to(dtype) for _ in range(2)])


class _WithoutKernels(random.Engine):
    def direct_draws(self, n):
        return None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_poisson_counts_are_those_of_the_loop(dtype):
    engine = random.Engine(3)
    for seed in range(60):
        generator = np.random.default_rng(seed)
        rates = generator.exponential(10.0 ** generator.integers(-1, 4), 50) * (generator.random(50) > 0.1)
        rates = np.minimum(rates, 60000).astype(dtype)
        other = _WithoutKernels(0)
        other.set_state(engine.get_state())
        found, expected = random.poisson(engine, rates), random.poisson(other, rates)
        assert np.array_equal(found, expected)
        assert found.dtype == dtype
        assert np.array_equal(engine.get_state(), other.get_state())
    assert engine.draws is not None
    with pytest.raises(RuntimeError, match="non-negative"):
        random.poisson(engine, np.array([1.0, np.nan]))


ALONG = {"sum": lambda x, d: x.sum(d), "keepdim": lambda x, d: x.sum(d, keepdim=True),
         "tuple": lambda x, d: x.sum((d,)),
         "mean": lambda x, d: x.mean(d), "amax": lambda x, d: x.amax(d), "amin": lambda x, d: x.amin(d, keepdim=True)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4, 4), (175, 4), (30, 50), (3, 5, 7), (1, 9), (2, 128, 3), (6, 200),
                                   (255, 3), (256, 3)])
@pytest.mark.parametrize("name", ALONG)
def test_reductions_along_a_dimension(name, shape, dtype):
    special = (float("nan"), float("inf"), -0.0, 0.0)

    def make(generator):
        x = _normal(*shape, dtype=dtype)(generator)
        if generator.random() < 0.4:
            x.view(-1)[generator.integers(0, x.numel(), 3)] = special[generator.integers(0, 4)]
        if generator.random() < 0.2:
            x *= -0.0
        return (x,)

    _check(lambda x: tuple(ALONG[name](x, d) for d in (*range(x.ndim), -1)), make)


def test_sizes_are_constants_of_calls():
    x, w = (_normal(4, 6)(np.random.default_rng(i)) for i in range(2))
    for _ in range(MANY):
        _same(F.layer_norm(x, w.shape, w), without_kernels(lambda: F.layer_norm(x, w.shape, w)))
        _same(F.layer_norm(x, w.shape[1:]), without_kernels(lambda: F.layer_norm(x, (6,))))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        F.layer_norm(x, w.shape[:1])
