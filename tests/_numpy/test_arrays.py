"""`torch._numpy`: results, dtypes and errors are those of PyTorch's package."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import numpy
import pytest

import flambeau
import flambeau._numpy as tnp

#: expressions over `np`, `x` (2 x 3, float64), `i` (2 x 3, int64), `b` (bool), `z` (complex), `v` (float32 vector)
EXPRESSIONS = """
x + 1; i + 1.5; i + True; v + 1; v + 1.5; v + 1j; b + b; 1 / i; i // 2; 7 // i; x % 2; divmod(i, 2); i ** 2; -x
abs(z); ~b; np.add(x, i, dtype="float32"); np.add(x, 1, out=np.zeros((2, 3))); np.add(x, i, casting="no")
np.uint8(3) + 300; np.add(x, i, out=np.zeros((2, 3), dtype=int)); np.sqrt(i); np.square(i); np.exp(i, dtype="float32")
np.rint(x); np.fix(x); np.floor(i); np.sign(x); np.conj(z); np.cbrt(x); np.positive(b); np.absolute(b); np.isnan(x)
np.logical_not(i); np.float_power(i, 2); np.maximum(i, 2); np.fmax(v, 1.0); np.copysign(v, -1.0); np.equal(x, i)
np.ldexp(v, 2); np.ldexp(v, 2.0); np.modf(x); np.matmul(i, i.T); np.matmul(b, b.T); i @ x.T; np.left_shift(i, 1)
np.gcd(i, 4); np.hypot(v, 3.0); np.add(x, 1, where=b); np.add(x, 1, order="C"); np.add(x, 1, casting="other"); x.sum()
x.sum(0); x.sum((0, 1)); x.sum(()); b.sum(); i.sum(dtype=bool); x.sum(axis=0, keepdims=True); x.sum(2); x.sum((0, 0))
x.mean(); i.mean(1); i.std(); x.var(ddof=1); x.std(0, keepdims=True); x.prod(0); x.prod((0, 1)); x.max(); x.min(1)
x.ptp(0); x.argmax(); x.argmax(1, keepdims=True); b.argmin(); z.argmax(); z.max(); x.any(0); x.all(); x.cumsum()
i.cumsum(1); b.cumprod(); np.count_nonzero(i); np.count_nonzero(i, axis=0, keepdims=True); np.median(x)
np.median(i, axis=0); np.percentile(x, 30); np.percentile(i, [10, 90], axis=1); np.quantile(x, 0.5, out=np.zeros(()))
np.average(x); np.average(x, axis=0, weights=[1, 2]); np.average(x, axis=0, weights=[1, 2], returned=True)
np.average(x, weights=[1, 2]); np.average(x, axis=0, weights=[1, 2, 3]); np.sum(x, out=np.zeros(3))
np.sum(x, initial=2); np.cumprod(i); np.product(i); np.alltrue(b); np.sometrue(b); x[0]; x[..., 0]; x[:, [0, 2]]
x[1, [0, 1]]; x[[0, 1], ..., [0, 1]]; x[::-1]; x[:, ::-1]; x[b]; x[b[:, 0]]; x[None]; x[i[0] % 2]; x[np.int8(1)]
x[1, 1]; x[5]; x[True]; x[0, b[0]]; x[:, None, [0, 1]]; x[-1, -1]; x[[True, False]]
np.arange(24).reshape(2, 3, 4)[0, :, [1, 2]]; np.arange(24).reshape(2, 3, 4)[[0, 1], :, [1, 2]]
np.arange(24).reshape(2, 3, 4)[:, 0, [1, 2]]; np.arange(24).reshape(2, 3, 4)[[0], 1, ..., [0, 2]]; np.array([1, 2])
np.array([[1, 2.5]]); np.array([True]); np.array(1j); np.array([x[0], x[1]]); np.array(3, ndmin=2)
np.array([1, 2], dtype="i4"); np.array(x, dtype=int); np.array([1, [2, 3]]); np.array("a"); np.array([1], subok=True)
np.asarray(x); np.arange(5); np.arange(1, 2, 0.5); np.arange(3, 0, -1); np.arange(3, 0); np.arange(0, 3, 0)
np.arange(3.0); np.arange(3, dtype="c8"); np.arange(); np.linspace(0, 1, 5); np.linspace(0, 1, endpoint=False)
np.logspace(0, 2, 3); np.geomspace(1.0, 8.0, 4); np.zeros(2); np.ones((2, 1), dtype=int); np.empty(0); np.full(2, 3)
np.full((2,), 1.5, dtype=int); np.zeros_like(i); np.ones_like(x, dtype=bool); np.full_like(i, 7, shape=(3, 2))
np.eye(2, 3, 1); np.identity(2); np.tri(2, 3); np.vander([1, 2, 3]); np.meshgrid([1, 2], [3, 4, 5])
np.meshgrid([1, 2], [3], indexing="ij", sparse=True); np.indices((2, 2)); np.indices((2,), sparse=True)
np.meshgrid([1], indexing="no"); np.hamming(4); np.hanning(4); np.blackman(4); np.bartlett(4); np.kaiser(4, 2.0)
np.concatenate((x, i)); np.concatenate((x, i), axis=None); np.concatenate(())
np.concatenate((x, i), dtype="f4", casting="no"); np.concatenate((x, i), 1, out=np.zeros((2, 6))); np.vstack((x, i))
np.hstack((x, i)); np.dstack((x, i)); np.stack((x, i), -1); np.column_stack((v, v)); np.append(i, 5)
np.append(x, i, axis=0); np.split(i, 2); np.split(i, 2, 1); np.array_split(v, 2); np.array_split(v, [1, 5])
np.hsplit(x, 3); np.vsplit(x, 2); np.dsplit(x, 2); np.hsplit(np.array(1), 2); np.split(v, [1, 2]); x.reshape(3, 2)
x.reshape((6,)); x.reshape(-1); x.T; x.transpose(1, 0); x.ravel(); x.flatten(); x.swapaxes(0, 1)
np.moveaxis(x, 0, -1); np.rollaxis(x, 5); np.gradient(v, np.array([0, 1, 3]))
np.gradient(v, np.array([0, 1, 3]), edge_order=2); np.roll(x, 1); np.roll(x, (1, 2), (0, 1))
np.squeeze(np.zeros((1, 2, 1))).shape; np.expand_dims(x, (0, -1)).shape; np.flip(x); np.flip(x, 1); np.flipud(x)
np.fliplr(x); np.rot90(x); np.broadcast_to(v, (2, 3)); np.broadcast_arrays(x, v); np.broadcast_shapes((2, 1), (3,))
np.repeat(v, 2); np.repeat(x, [1, 2], axis=0); np.tile(v, 2); np.tile(v, (2, 1)); np.resize(v, (2, 2))
np.resize(v, -1); np.pad(i, 1); np.pad(i, ((1, 0), (0, 2)), constant_values=9); np.pad(i, 1, mode="edge")
np.atleast_2d(3); np.atleast_3d(v, x); np.ndim(x); np.size(x, 1); np.shape(x); np.where(b, x, 0); np.where(b)
np.where(b, x); np.take(x, [0, 1], axis=1); np.take(x, 3); np.sort(-x); np.argsort(-x, axis=0); np.sort(x, axis=None)
np.sort(z); np.searchsorted(v, 1.5); np.unique(i % 2); np.unique(i, return_counts=True); np.nonzero(i); np.argwhere(b)
np.flatnonzero(b); np.take_along_axis(x, np.argsort(x, 1), 1); np.choose([0, 1], [v[:2], v[1:3]]); np.tril(x)
np.triu(x, 1); np.tril_indices(2); np.triu_indices(2, 1, 3); np.tril_indices_from(x); np.triu_indices_from(v)
np.diagonal(x); np.trace(i); np.trace(i, dtype="f4"); np.diag(v); np.diag(x); np.diagflat(x); np.diag_indices(2)
np.diag_indices_from(x); np.diag_indices_from(np.zeros((2, 2))); np.fill_diagonal(np.zeros((5, 2)), 4, wrap=True)
np.fill_diagonal(np.zeros((3, 2)), [4, 5]); np.fill_diagonal(np.zeros((2, 2, 2)), 1); np.fill_diagonal(v, 1)
np.bincount([0, 1, 1]); np.bincount([0, 1], weights=[0.5, 2]); np.bincount([]); np.dot(x, i.T); np.dot(x, 2)
np.dot(b, b.T); np.inner(v, v); np.inner(b, b); np.outer(v, v); np.vdot(z, z); np.vdot(b, b)
np.tensordot(x, i, axes=2); np.tensordot(x, i, axes=(1, 1)); np.kron(x, i); np.cross(v, v + 1)
np.cross([1, 2], [3, 4, 5]); np.cross([1, 2], [3, 4]); np.cross([1], [2]); np.cross(x, x[::-1], axisc=0)
np.einsum("ij,kj->ik", x, i); np.einsum("ij", i); np.einsum(x, [0, 1], [1, 0]); np.einsum("ij->i", x, out=np.zeros(2))
np.einsum("i,i", v, v, optimize=True); np.cov(x); np.cov(x, x, rowvar=False); np.cov(v, ddof=0); np.corrcoef(x)
np.corrcoef(x, bias=True); np.convolve(v, [1, 2]); np.convolve(v, [1, 2, 1], mode="same"); np.correlate(v, [1, 2])
np.correlate(v, [1, 2], mode="same"); np.isclose(x, i); np.allclose(x, x); np.array_equal(x, x); np.array_equal(x, v)
np.array_equiv(x, x[None]); np.nan_to_num([np.nan, np.inf]); np.clip(x, 1, 2); np.clip(i, None, 2); x.clip(1, 2)
np.diff(x); np.diff(x, 2, axis=0); np.diff(v, prepend=0); np.diff(x, n=-1); np.angle(z); np.angle(z, deg=True)
np.sinc(v); np.round(x, 1); np.round(i); np.round(z, 1); np.around(x); np.real_if_close(z); np.real_if_close([1 + 0j])
np.real(z); np.imag(x); np.imag(z); np.iscomplex(z); np.isreal(x); np.iscomplexobj(z); np.isscalar(3); np.isscalar(x)
np.isposinf(x); np.common_type(x, v); np.common_type(v, z); np.common_type(i); np.min_scalar_type(300)
np.min_scalar_type(-1); np.min_scalar_type(1e300); np.min_scalar_type(x); np.min_scalar_type(1j); np.histogram(x, 3)
np.histogram(i); np.histogram(i, bins=[0, 2, 4]); np.histogram(x, range=(0, 10), density=True)
np.histogram(x, weights=x); np.histogram2d(v, v, 2); np.histogramdd((v, v), bins=3)
np.histogramdd(x, bins=2, density=True); np.gradient(v); np.gradient(x); np.gradient(x, axis=0)
np.gradient(v, 2.0, edge_order=2); np.gradient(i[0]); np.gradient(x, 1, 2, 3); np.gradient(v[:1])
np.gradient(v, edge_order=3); np.gradient(x, 2.0, [0, 1, 4]); np.fft.fft(v); np.fft.rfft(i); np.fft.irfft(v)
np.fft.fft2(x); np.fft.ifftn(z); np.fft.fftshift(v); np.fft.fftfreq(3); np.fft.hfft(v, norm="ortho")
np.linalg.inv([[2, 0], [0, 4]]); np.linalg.solve([[2, 0], [0, 4]], [2, 2]); np.linalg.det(x[:, :2])
np.linalg.inv(np.zeros((2, 2))); np.linalg.norm(x); np.linalg.norm(i, axis=1, keepdims=True); np.linalg.matrix_rank(x)
np.linalg.matrix_rank(v); np.linalg.cond(x[:, :2]); np.linalg.cond(np.zeros((0, 0)))
np.linalg.eigvals([[2, 0], [0, 3]]); np.linalg.eigvals([[0, 1], [-1, 0]]); np.linalg.eigvalsh([[2, 0], [0, 3]])
np.linalg.svd(x, compute_uv=False); np.linalg.cholesky([[4, 0], [0, 9]]); np.linalg.slogdet([[4, 0], [0, 9]])
np.linalg.matrix_power(i[:, :2], 2); np.linalg.multi_dot([x, x.T, x]); np.linalg.pinv(x)
np.linalg.qr([[1, 0], [0, 1]], mode="r"); np.linalg.tensorinv(np.eye(4).reshape(2, 2, 2, 2)); x.dtype
i.dtype.itemsize; v.dtype.kind; np.dtype("f4"); np.dtype(float); np.dtype(None); np.dtype("no")
np.dtype(np.int8) == "i1"; np.float32(3); np.int8([1, 2]); np.float64("inf"); np.bool_(3); np.uint8(np.array([1.5]))
np.issubdtype("f4", np.floating); np.issubdtype(int, np.inexact); np.can_cast("i4", "f8")
np.can_cast("f8", "i8", "same_kind"); np.can_cast(x, int); np.result_type("i4", "f4"); np.result_type(x, v, 3)
np.finfo("f4").max; np.iinfo("i2").min; x.shape; x.size; x.ndim; x.strides; x.T.strides; x.itemsize; x.flags["C"]
x.T.flags["F"]; x.flags.owndata; x.flags["no"]; x.flags["A"]; x.astype(int); x.astype("f4", copy=False)
x.view("i8").dtype; x.tolist(); len(x); len(np.array(1)); list(v); 2.0 in x; x == x; x == "a"; x != i
bool(np.array(1)); bool(x); int(np.array(2.5)); float(np.array(2)); complex(np.array(1)); np.array(3).__index__()
np.array(2.5).__index__(); x.item(); np.array(3).item(); x.item(2); x.item(1, 1); x.is_integer()
np.array(2.0).is_integer(); str(x); repr(v); x.copy() is x; x.real; z.imag; x.flat; np.s_[1:2, 0]; np.index_exp[1]
np.array([1, 2], order="F"); np.ascontiguousarray(x.T).flags["C"]
"""

STATEMENTS = [
    "y = x.copy(); y[0] = 5", "y = x.copy(); y[:, [0, 1]] = i[:, :2]", "y = i.copy(); y[1, 1] = 2.7",
    "y = x.copy(); y += 1", "y = i.copy(); y += 1.5", "y = x.copy(); y[b] = 0", "y = x.copy(); y.sort(0)",
    "y = x.copy(); y.fill(3)", "y = x.copy(); y.resize(3, 3)", "y = x.copy(); y.resize((2,))",
    "y = x.copy(); np.put(y, [0, 1], [7])", "y = x.copy(); y.put([0, 5], [1, 2, 3])",
    "y = x.copy(); np.put_along_axis(y, np.array([[0], [1]]), 9, 1)", "y = x.copy(); np.copyto(y, i)",
    "y = i.copy(); np.copyto(y, x)", "y = z.copy(); y.real = 5", "y = x.copy(); y.real = 2",
    "y = np.zeros((2, 3)); x.sum(0, out=y[0])", "y = x.copy(); y[[0], ..., [1]] = 4",
    "y = x.copy(); x[0].flags.owndata = False", "np.random.seed(3); y = np.random.rand(2)",
    "np.random.seed(3); y = np.random.randint(5, size=3)", "np.random.seed(3); y = np.random.normal(1, 2, (2,))",
    "np.random.seed(3); y = np.random.choice(5, 3)", "np.random.seed(3); y = np.random.uniform()",
    "np.random.seed(3); y = x.copy(); np.random.shuffle(y)",
    "np.random.seed(3); y = np.random.choice([1, 2, 3], (2,), p=[0.5, 0.2, 0.2])", "np.random.shuffle([1, 2])",
]


def _scope(library: str) -> dict[str, Any]:
    np = importlib.import_module(f"{library}._numpy")
    return {"np": np, "x": np.array([[3.5, 1.0, 2.0], [0.5, 4.25, 1.5]]), "i": np.array([[1, 2, 3], [4, 5, 6]]),
            "b": np.array([[True, False, True], [False, True, True]]), "z": np.array([[1 + 2j, 3, -1j]]),
            "v": np.array([0.5, 2.0, 4.0], dtype="float32")}


def _described(x: Any, ndarray: type) -> Any:
    if isinstance(x, ndarray):
        return ("array", x.dtype.name, x.shape, numpy.round(numpy.asarray(x.tensor.resolve_conj()), 6).tolist())  # type: ignore[attr-defined]
    if isinstance(x, (list, tuple)):
        return tuple(_described(each, ndarray) for each in x)
    return str(x).replace("flambeau.", "torch.")


def _outcome(library: str, statement: str, evaluated: bool) -> Any:
    scope = _scope(library)
    try:
        if evaluated:
            return _described(eval(statement, scope), scope["np"].ndarray)
        exec(statement, scope)
        return _described(scope["y"], scope["np"].ndarray)
    except Exception as error:
        return type(error).__name__


def _expressions() -> list[str]:
    return [each.strip() for line in EXPRESSIONS.strip().splitlines() for each in line.split(";")]


@pytest.mark.parity
@pytest.mark.parametrize("expression", _expressions())
def test_expressions(expression: str) -> None:
    assert str(_outcome("flambeau", expression, True)) == str(_outcome("torch", expression, True))


@pytest.mark.parity
@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements(statement: str) -> None:
    assert str(_outcome("flambeau", statement, False)) == str(_outcome("torch", statement, False))


@pytest.mark.parity
def test_names() -> None:
    theirs = importlib.import_module("torch._numpy")
    public = {name for name in dir(theirs) if not name.startswith("_")} - {"testing"}
    assert not public - set(dir(tnp))
    assert sorted(tnp._ufuncs._binary) == sorted(theirs._ufuncs._binary)
    assert sorted(tnp._ufuncs._unary) == sorted(theirs._ufuncs._unary)


@pytest.mark.parity
@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
def test_tables_of_casts_and_promotion(casting: str) -> None:
    theirs = importlib.import_module("torch._numpy")
    names = [each.name for kinds in tnp.sctypes.values() for each in kinds]
    for a in names:
        for b in names:
            assert tnp.can_cast(a, b, casting) == theirs.can_cast(a, b, casting), (a, b)
            arrays = [[np.dtype(name).torch_dtype for name in (a, b)] for np in (tnp, theirs)]
            promoted = [np._dtypes_impl.result_type_impl(*(type("T", (), {"dtype": d}) for d in dtypes))
                        for np, dtypes in zip((tnp, theirs), arrays, strict=True)]
            assert str(promoted[0]).split(".")[1] == str(promoted[1]).split(".")[1]


def test_defaults_and_pickles() -> None:
    try:
        tnp.set_default_dtype("pytorch", "int32")
        assert tnp.zeros(2).dtype == "float32"
        assert tnp.arange(2).dtype == "int32"
        assert tnp.sqrt([1, 2]).dtype == "float32"
    finally:
        tnp.set_default_dtype()
    assert pickle.loads(pickle.dumps(tnp.dtype("int8"))) == "int8"


def test_slices_of_negative_steps_are_numpys() -> None:
    for index in (numpy.s_[5:2:-1], numpy.s_[::-2], numpy.s_[2:8:-1], numpy.s_[..., -1:-5:-3]):
        assert tnp.arange(10)[index].tolist() == numpy.arange(10)[index].tolist()
    x = numpy.arange(24).reshape(2, 3, 4)
    assert tnp.asarray(x)[1, ::-1, 3:0:-2].tolist() == x[1, ::-1, 3:0:-2].tolist()


def test_what_fails_in_pytorch_is_numpys() -> None:
    x = numpy.arange(24.0).reshape(2, 3, 4)
    assert tnp.rollaxis(x, 2).tolist() == numpy.rollaxis(x, 2).tolist()
    assert tnp.rollaxis(x, 0, 3).tolist() == numpy.rollaxis(x, 0, 3).tolist()
    assert tnp.reshape(x, 24).shape == (24,)
    for edge_order in (1, 2):
        found = tnp.gradient(x[0, 0], [0, 1, 3, 3.5], edge_order=edge_order)
        numpy.testing.assert_allclose(found.tensor, numpy.gradient(x[0, 0], [0, 1, 3, 3.5], edge_order=edge_order))
    with pytest.raises(ValueError, match="when 1d, distances must match"):
        tnp.gradient(x[0, 0], [1, 2])


def test_gradients_flow_through_arrays() -> None:
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    (tnp.asarray(x) ** 2).sum().tensor.backward()
    assert x.grad.tolist() == [2.0, 4.0]
