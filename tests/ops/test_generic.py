"""Generic tests of every operator's record: values, derivatives of two orders, both modes, layouts, dtypes, in place.

Derivatives are compared with central differences along random directions: for f(x), a cotangent w
and a direction v, <w, f(x + hv) - f(x - hv)> / 2h = <J^T w, v>. Complex numbers count as pairs of
reals: <a, b> = Re Σ conj(a) b.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import forward_ad
from tests.ops.spec import RECORDS, Make, Record, Sample, load, public

load()
Tensor = torch.Tensor

ALL = sorted(RECORDS)
DIFFERENTIABLE = [name for name in ALL if RECORDS[name].differentiable]
FLOATING = [name for name in ALL if RECORDS[name].floats]
TWICE = [name for name in DIFFERENTIABLE if RECORDS[name].twice]
COMPLEX = [name for name in DIFFERENTIABLE if RECORDS[name].complex]


def in_place_name(record: Record) -> str | None:
    if record.inplace is not None:
        return record.inplace
    name = record.name.removeprefix("Tensor.") + "_"
    return name if "." not in name and hasattr(Tensor, name) and not name.startswith("__") else None


IN_PLACE = [name for name in ALL if in_place_name(RECORDS[name]) is not None]


# ----- samples as functions of their tensors -----

def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_in(item)]
    return []


def replaced(value: Any, new: Callable[[Any], Any]) -> Any:
    """`value` with every tensor in it replaced by `new(tensor)`."""
    if isinstance(value, Tensor):
        return new(value)
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(item, new) for item in value)
    return value


def with_tensors(sample: Sample, new: Callable[[Any], Any]) -> Sample:
    return Sample(replaced(sample.args, new), {k: replaced(v, new) for k, v in sample.kwargs.items()})


def samples_of(record: Record, dtype: Any = None, requires_grad: bool = False) -> list[Sample]:
    return list(record.samples(Make(torch, dtype or torch.float64, requires_grad)))


def wanted(sample: Sample) -> list[Any]:
    """The tensors of a sample that derivatives are taken by."""
    found = tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values()))
    return [t for t in found if t.requires_grad]


def outputs(value: Any) -> list[Any]:
    return [t for t in tensors_in(value) if t.is_floating_point() or t.is_complex()]


class Function:
    """A sample as a function from arrays (the tensors that require grad) to floating tensors."""

    def __init__(self, record: Record, sample: Sample) -> None:
        self.call, self.sample = public(torch, record.name), sample
        self.points = [t.detach().numpy().copy() for t in wanted(sample)]

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        left = iter(inputs)
        call = with_tensors(self.sample, lambda t: next(left) if t.requires_grad else t)
        return outputs(self.call(*call.args, **call.kwargs))

    def leaves(self, points: Sequence[np.ndarray] | None = None) -> list[Any]:
        return [torch.tensor(p).requires_grad_() for p in (self.points if points is None else points)]


def functions(name: str, dtype: Any = None) -> list[Function]:
    record = RECORDS[name]
    made = [Function(record, s) for s in samples_of(record, dtype, requires_grad=True)]
    return [f for f in made if f.points]


def inner(left: Sequence[Any], right: Sequence[Any]) -> float:
    """<left, right> over lists of arrays, None counting as 0."""
    return float(sum(np.real(np.vdot(a, b)) for a, b in zip(left, right, strict=True) if a is not None))


def like(arrays: Sequence[np.ndarray], random: np.random.Generator) -> list[np.ndarray]:
    found = []
    for a in arrays:
        values = random.standard_normal(a.shape)
        if a.dtype.kind == "c":
            values = values + 1j * random.standard_normal(a.shape)
        found.append(values.astype(a.dtype))
    return found


def arrays_of(tensors: Sequence[Any]) -> list[Any]:
    return [None if t is None else t.detach().numpy(force=True) for t in tensors]


def pulled_back(f: Function, leaves: Sequence[Any], w: Sequence[np.ndarray], **options: Any) -> list[Any]:
    """J^T w, by reverse mode."""
    outs = f(leaves)
    live = [(o, c) for o, c in zip(outs, w, strict=True) if o.requires_grad]
    if not live:
        return [None] * len(leaves)
    grads = torch.autograd.grad([o for o, _ in live], leaves, [torch.tensor(c) for _, c in live], allow_unused=True,
                                **options)
    return list(grads)


def close(found: float, expected: float, scale: float, tolerance: float, what: str) -> None:
    assert abs(found - expected) <= tolerance * (1 + scale), f"{what}: {found} by rule, {expected} by differences"


def differences(f: Callable[[Sequence[np.ndarray]], Sequence[Any]], points: Sequence[np.ndarray],
                v: Sequence[np.ndarray], w: Sequence[np.ndarray], h: float = 1e-5) -> float:
    """<w, (f(x + hv) - f(x - hv)) / 2h>."""
    ahead = f([p + h * d for p, d in zip(points, v, strict=True)])
    behind = f([p - h * d for p, d in zip(points, v, strict=True)])
    return inner(w, [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)])


def check_first(f: Function, seed: int) -> None:
    random = np.random.default_rng(seed)
    leaves = f.leaves()
    w = like(arrays_of(f(leaves)), random)
    grads = arrays_of(pulled_back(f, leaves, w))
    for g, p in zip(grads, f.points, strict=True):
        assert g is None or (g.shape == p.shape and g.dtype == p.dtype), "a gradient is like its input"
    for _ in range(2):
        v = like(f.points, random)
        expected = differences(lambda ps: arrays_of(f([torch.tensor(p) for p in ps])), f.points, v, w)
        close(inner(grads, v), expected, abs(expected), 1e-6, "first derivative")


# ----- the tests -----

@pytest.mark.parametrize("name", [n for n in ALL if RECORDS[n].reference is not None])
def test_value(name: str) -> None:
    record = RECORDS[name]
    dtypes = ([torch.float64] if record.floats else []) + ([torch.complex128] if record.complex else [])
    for dtype in dtypes or [torch.float64]:
        for sample in samples_of(record, dtype):
            found = public(torch, name)(*sample.args, **sample.kwargs)
            arrays = with_tensors(sample, lambda t: t.numpy())
            expected = record.reference(*arrays.args, **arrays.kwargs)
            many = isinstance(expected, (list, tuple))
            for have, want in zip(found if many else [found], expected if many else [expected], strict=True):
                have = have.numpy(force=True) if isinstance(have, Tensor) else np.asarray(have)
                assert have.shape == np.shape(want)
                np.testing.assert_allclose(have, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(name: str) -> None:
    found = functions(name)
    assert found, "a differentiable operator has a sample to differentiate"
    for seed, f in enumerate(found):
        check_first(f, seed)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradient(name: str) -> None:
    for seed, f in enumerate(functions(name, torch.complex128)):
        check_first(f, seed)


@pytest.mark.parametrize("name", TWICE)
def test_second_derivative(name: str) -> None:
    for seed, f in enumerate(functions(name)):
        random = np.random.default_rng(seed)
        leaves = f.leaves()
        w = like(arrays_of(f(leaves)), random)
        first = pulled_back(f, leaves, w, create_graph=True)
        u = [None if g is None else like([g.detach().numpy(force=True)], random)[0] for g in first]

        def gradient(points: Sequence[np.ndarray], f: Function = f, w: Any = w, u: Any = u) -> list[Any]:
            grads = arrays_of(pulled_back(f, f.leaves(points), w))
            return [np.zeros(1) if c is None else g for g, c in zip(grads, u, strict=True)]

        live = [(g, c) for g, c in zip(first, u, strict=True) if g is not None and g.requires_grad]
        second: Sequence[Any] = [None] * len(leaves)
        if live:
            second = torch.autograd.grad([g for g, _ in live], leaves, [torch.tensor(c) for _, c in live],
                                         allow_unused=True)
        v = like(f.points, random)
        filled = [np.zeros(1) if c is None else c for c in u]
        expected = differences(gradient, f.points, v, filled, h=1e-5)
        close(inner(arrays_of(second), v), expected, abs(expected), 2e-6, "second derivative")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_one_rule_serves_arrays_and_tensors(name: str) -> None:
    for seed, f in enumerate(functions(name)):
        leaves = f.leaves()
        w = like(arrays_of(f(leaves)), np.random.default_rng(seed))
        plain, recorded = pulled_back(f, leaves, w), pulled_back(f, leaves, w, create_graph=True)
        for g, h in zip(arrays_of(plain), arrays_of(recorded), strict=True):
            assert (g is None) == (h is None)
            if g is not None:
                np.testing.assert_allclose(g, h, rtol=1e-12, atol=1e-14)


def check_forward_mode(name: str, dtype: Any) -> None:
    for seed, f in enumerate(functions(name, dtype)):
        random = np.random.default_rng(seed)
        leaves = f.leaves()
        w = like(arrays_of(f(leaves)), random)
        grads = arrays_of(pulled_back(f, leaves, w))
        v = like(f.points, random)
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(torch.tensor(p), torch.tensor(d)) for p, d in zip(f.points, v, strict=True)]
            pushed = [forward_ad.unpack_dual(o).tangent for o in f(duals)]
        forward, backward = inner(arrays_of(pushed), w), inner(grads, v)
        close(forward, backward, abs(backward), 1e-9, "forward mode against reverse mode")


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_forward_mode_is_the_transpose(name: str) -> None:
    check_forward_mode(name, torch.float64)


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_forward_mode_is_the_transpose(name: str) -> None:
    check_forward_mode(name, torch.complex128)


def spread(t: Any) -> Any:
    """The same values, every second place of a larger tensor, its dimensions laid backwards."""
    a = t.detach().numpy(force=True)
    if a.dtype.kind == "V":
        return t
    room = np.zeros([2 * s for s in a.shape[::-1]], a.dtype)
    strided = room[(*(slice(None, None, 2) for _ in a.shape), ...)].T
    strided[...] = a
    out = torch.from_numpy(strided)
    return out.requires_grad_() if t.requires_grad else out


@pytest.mark.parametrize("name", [n for n in ALL if RECORDS[n].any_layout])
def test_layout_does_not_matter(name: str) -> None:
    call = public(torch, name)
    record = RECORDS[name]
    for plain in samples_of(record, requires_grad=record.differentiable):
        strided = with_tensors(plain, spread)
        one, other = call(*plain.args, **plain.kwargs), call(*strided.args, **strided.kwargs)
        for a, b in zip(tensors_in(one), tensors_in(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True), rtol=1e-13, atol=1e-14)
        grads = []
        for sample, result in ((plain, one), (strided, other)):
            live = [o for o in outputs(result) if o.requires_grad]
            if live:
                cotangents = [torch.ones_like(o) for o in live]
                grads.append(torch.autograd.grad(live, wanted(sample), cotangents, allow_unused=True))
        if grads:
            for g, h in zip(*grads, strict=True):
                if g is not None:
                    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-12, atol=1e-13)


TOLERANCES = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}


@pytest.mark.parametrize("name", FLOATING)
def test_narrower_floats(name: str) -> None:
    """float32, float16 and bfloat16 give float64's values, rounded, in the dtype that float64 gives for itself."""
    call = public(torch, name)
    record = RECORDS[name]
    for narrow_name, tolerance in TOLERANCES.items():
        narrow = getattr(torch, narrow_name)
        for sample in samples_of(record):
            # float64 at the very points that the narrow dtype can hold
            rounded = with_tensors(sample, lambda t, d=narrow: t.to(d) if t.dtype == torch.float64 else t)
            exact = with_tensors(rounded, lambda t, d=narrow: t.to(torch.float64) if t.dtype == d else t)
            try:
                found = call(*rounded.args, **rounded.kwargs)
            except NotImplementedError:
                assert narrow_name != "float32"  # some of PyTorch's kernels lack the narrow types
                continue
            except RuntimeError as error:
                lacking = any(text in str(error) for text in (
                    "Expected both inputs", "only supported for", "must be either float or double", "Low precision",
                    "types other than float and double", "Unsupported dtype", "MKL FFT doesn't support",
                    "of float, double, cfloat or cdouble types"))
                if narrow_name == "float32" or not lacking:
                    raise
                continue
            expected = call(*exact.args, **exact.kwargs)
            for have, want in zip(tensors_in(found), tensors_in(expected), strict=True):
                if want.dtype == torch.float64 and record.keeps_dtype:
                    assert have.dtype == narrow, f"{name} of {narrow} gave {have.dtype}"
                elif not want.is_complex():
                    assert have.dtype == want.dtype
                if not want.is_floating_point():
                    continue
                a, b = have.detach().to(torch.float64).numpy(), want.detach().to(torch.float64).numpy()
                scale = 1 + np.max(np.abs(b), initial=0, where=np.isfinite(b))
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", [n for n in FLOATING if RECORDS[n].differentiable])
def test_gradients_in_narrower_floats(name: str) -> None:
    """They have their inputs' dtypes, and are the same where they can be differentiated again."""
    for sample in samples_of(RECORDS[name])[:2]:
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 2e-2), (torch.bfloat16, 0.1)):
            def narrow(t: Any, dtype: Any = dtype) -> Any:
                return t.detach().to(dtype).requires_grad_() if t.is_floating_point() else t

            given = with_tensors(sample, narrow)
            inputs = [t for t in tensors_in((*given.args, *given.kwargs.values())) if t.requires_grad]
            try:
                torch.manual_seed(0)
                out = [t for t in tensors_in(public(torch, name)(*given.args, **given.kwargs)) if t.requires_grad]
            except (RuntimeError, NotImplementedError, ValueError):  # no sample has this dtype
                continue
            if not out:
                continue
            seeds = [torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype.to_real()).to(t.dtype).reshape(t.shape)
                     for t in out]
            if name in ("special.zeta", "igamma", "igammac"):  # which have no derivative by its order
                out, inputs = [public(torch, name)(given.args[0].detach(), given.args[1])], inputs[1:]
            plain = torch.autograd.grad(out, inputs, seeds, retain_graph=True, allow_unused=True)
            again = torch.autograd.grad(out, inputs, seeds, create_graph=True, allow_unused=True)
            for x, a, b in zip(inputs, plain, again, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    assert a.dtype is b.dtype is x.dtype
                    assert torch.allclose(a.double(), b.double(), tolerance, tolerance, equal_nan=True)


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    """The in-place form writes the same values, counts the write, and leaves the same gradient."""
    record = RECORDS[name]
    call = public(torch, name)
    for plain in samples_of(record, requires_grad=record.differentiable):
        first, rest = plain.args[0], plain.args[1:]
        if not isinstance(first, Tensor):
            continue
        expected = call(first, *rest, **plain.kwargs)
        if not isinstance(expected, Tensor) or expected.shape != first.shape or not torch.can_cast(
                expected.dtype, first.dtype):
            continue
        target = first.clone()
        before = target._version
        result = getattr(target, in_place_name(record))(*rest, **plain.kwargs)
        assert result is target
        assert target._version == before + 1
        assert target.dtype == first.dtype
        np.testing.assert_allclose(target.detach().numpy(), expected.detach().to(first.dtype).numpy(), rtol=1e-13)
        if expected.requires_grad:
            ones = torch.ones_like(expected)
            one = torch.autograd.grad(expected, wanted(plain), ones, allow_unused=True)
            other = torch.autograd.grad(target, wanted(plain), ones, allow_unused=True)
            for g, h in zip(one, other, strict=True):
                if g is not None:
                    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [n for n in ALL if RECORDS[n].integers and RECORDS[n].reference])
def test_integers(name: str) -> None:
    """Integer tensors give the reference's values: as integers, truth values or default floats."""
    record = RECORDS[name]
    for sample in samples_of(record):
        for dtype in (torch.int64, torch.int32, torch.uint8):
            def whole(t: Any, d: Any = dtype) -> Any:
                return (t.abs() + 1).to(d) if t.is_floating_point() else t

            integers = with_tensors(sample, whole)
            found = public(torch, name)(*integers.args, **integers.kwargs)
            arrays = with_tensors(integers, lambda t: t.numpy().astype(np.int64))
            expected = np.asarray(record.reference(*arrays.args, **arrays.kwargs))
            have = found.numpy() if isinstance(found, Tensor) else np.asarray(found)
            assert have.dtype in (np.bool_, np.float32, *(t.numpy().dtype for t in tensors_in(integers.args)))
            np.testing.assert_allclose(have, expected.astype(have.dtype), rtol=1e-5)
