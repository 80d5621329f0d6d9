"""Complex numbers in ONNX, whose runtimes have none: a value is a pair of real tensors, its parts.

What only moves elements, or is linear with real factors, is translated twice, once for each part. Fourier transforms
are ONNX's DFT, whose operand has the parts in a last dimension of 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from .converter import COMPLEX_TRANSLATIONS, ComplexParts, Converter, translation_of
from .pointwise import quadrant_angle

#: PyTorch's numbers of normalizations: none, by the root of the number of elements, by the number
_NONE, _ROOT, _COUNT = 0, 1, 2

#: operators of which a part of the result is the operator of that part
_BY_PARTS = """add.Tensor sub.Tensor neg.default view.default reshape.default _unsafe_view.default flatten.using_ints
    unflatten.int permute.default transpose.int t.default movedim.int unsqueeze.default squeeze.dim squeeze.dims
    squeeze.default expand.default cat.default stack.default slice.Tensor select.int clone.default contiguous.default
    mT.default alias.default detach.default flip.default roll.default repeat.default unbind.int split.Tensor
    split_with_sizes.default index_select.default gather.default sum.dim_IntList sum.default mean.dim
    mean.default""".split()  # noqa: SIM905


def _translates(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        COMPLEX_TRANSLATIONS.update(dict.fromkeys((f"aten.{name}" for name in names), function))
        return function

    return decorate


@_translates(*_BY_PARTS)
def _by_parts(c: Converter, *args: Any, **named: Any) -> Any:
    function = translation_of(c.node.target)
    assert function is not None
    found = []
    for c.part in (0, 1):
        found.append(function(c, *args, **named))
    real, imaginary = found
    if isinstance(real, list):
        return [ComplexParts(*pair) for pair in zip(real, imaginary, strict=True)]
    return ComplexParts(real, imaginary)


def _real_dtype(c: Converter, x: Any) -> Any:
    dtype = c.dtype(x)
    return {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(dtype, dtype)


def _parts(c: Converter, x: Any, dtype: Any) -> tuple[Any, Any]:
    """The parts of an argument; the imaginary one of what is real is None."""
    if isinstance(x, complex):
        return c.const(x.real, dtype), c.const(x.imag, dtype)
    found = c.pair(x)
    return (found.real, found.imaginary) if isinstance(found, ComplexParts) else (c.x(x, dtype), None)


def _sum(c: Converter, kind: str, x: Any, y: Any) -> Any:
    if x is None or y is None:
        return x if y is None else c.op("Neg", y) if kind == "Sub" else y
    return c.op(kind, x, y)


def _product(c: Converter, kind: str, x: Any, y: Any, dtype: Any) -> ComplexParts:
    (a, b), (e, d) = _parts(c, x, dtype), _parts(c, y, dtype)

    def times(u: Any, v: Any) -> Any:
        return None if u is None or v is None else c.op(kind, u, v)

    return ComplexParts(_sum(c, "Sub", times(a, e), times(b, d)), _sum(c, "Add", times(a, d), times(b, e)))


@_translates("mul.Tensor", "mul.Scalar")
def _mul(c: Converter, x: Any, y: Any) -> ComplexParts:
    return _product(c, "Mul", x, y, _part_dtype(c))


@_translates("matmul.default", "mm.default", "bmm.default")
def _matmul(c: Converter, x: Any, y: Any) -> ComplexParts:
    return _product(c, "MatMul", x, y, _part_dtype(c))


def _part_dtype(c: Converter) -> Any:
    return torch.float64 if c.result.dtype == torch.complex128 else torch.float32


@_translates("div.Tensor")
def _div(c: Converter, x: Any, y: Any) -> ComplexParts:
    dtype = _part_dtype(c)
    (a, b), (e, d) = _parts(c, x, dtype), _parts(c, y, dtype)
    if d is None:
        return ComplexParts(c.op("Div", a, e), c.op("Div", b, e))
    size = c.op("Add", c.op("Mul", e, e), c.op("Mul", d, d))
    real = _sum(c, "Add", c.op("Mul", a, e), None if b is None else c.op("Mul", b, d))
    imaginary = _sum(c, "Sub", None if b is None else c.op("Mul", b, e), c.op("Mul", a, d))
    return ComplexParts(c.op("Div", real, size), c.op("Div", imaginary, size))


@_translates("conj.default", "_conj.default", "conj_physical.default", "_conj_physical.default")
def _conj(c: Converter, x: Any) -> ComplexParts:
    found = c.pair(x)
    return ComplexParts(found.real, c.op("Neg", found.imaginary))


_translates("resolve_conj.default")(lambda c, x: c.pair(x))
_translates("real.default")(lambda c, x: c.pair(x).real)
_translates("imag.default")(lambda c, x: c.pair(x).imaginary)
_translates("complex.default")(lambda c, real, imaginary: ComplexParts(c.x(real), c.x(imaginary)))


@_translates("abs.default")
def _abs(c: Converter, x: Any) -> Any:
    return c.op("ReduceL2", _joined(c, c.pair(x)), c.const([-1]), keepdims=0)


@_translates("angle.default")
def _angle(c: Converter, x: Any) -> Any:
    real, imaginary = c.pair(x)
    return quadrant_angle(c, imaginary, real, _real_dtype(c, x))


@_translates("polar.default")
def _polar(c: Converter, size: Any, angle: Any) -> ComplexParts:
    r, phi = c.x(size), c.x(angle)
    return ComplexParts(c.op("Mul", r, c.op("Cos", phi)), c.op("Mul", r, c.op("Sin", phi)))


@_translates("_to_copy.default", "to.dtype")
def _to(c: Converter, x: Any, *args: Any, **named: Any) -> Any:
    if not c.result.dtype.is_complex:
        raise c.fail("a complex number as a real one")
    dtype = _part_dtype(c)
    found = c.pair(x)
    if isinstance(found, ComplexParts):
        return found if c.dtype(x) == c.result.dtype else ComplexParts(*(c.cast(each, dtype) for each in found))
    real = c.x(x, dtype)
    return ComplexParts(real, c.op("Mul", real, c.const(0, dtype)))


# ----- pairs in a dimension -----


def _joined(c: Converter, parts: Sequence[Any]) -> Any:
    """The parts in a last dimension."""
    return c.op("Concat", *(c.op("Unsqueeze", each, c.const([-1])) for each in parts), axis=-1)


def _separate(c: Converter, name: Any) -> ComplexParts:
    return ComplexParts(*(c.op("Gather", name, c.const(i), axis=-1) for i in (0, 1)))


_translates("view_as_real.default")(lambda c, x: _joined(c, c.pair(x)))
_translates("view_as_complex.default")(lambda c, x: _separate(c, c.x(x)))


# ----- Fourier transforms -----


def _dft(c: Converter, name: Any, axis: int, **attributes: Any) -> Any:
    if c.opset < 20:
        return c.op("DFT", name, axis=axis, **attributes)
    return c.op("DFT", name, None, c.const(axis), **attributes)


def _scaled(c: Converter, name: Any, factor: float, dtype: Any) -> Any:
    return name if factor == 1 else c.op("Mul", name, c.const(factor, dtype))


def _factor(count: int, normalization: int, forward: bool) -> float:
    """What a DFT is multiplied by: ONNX divides the inverse one by the number of elements."""
    wanted = {_NONE: 1.0, _ROOT: 1 / math.sqrt(count), _COUNT: 1 / count}[normalization]
    return wanted if forward else wanted * count


@_translates("_fft_c2c.default")
def _fft_c2c(c: Converter, x: Any, dim: Sequence[int], normalization: int, forward: bool) -> ComplexParts:
    name = _transformed(c, _joined(c, c.pair(x)), x, dim, forward)
    count = math.prod(c.fixed(x, d) for d in dim)
    return _separate(c, _scaled(c, name, _factor(count, normalization, forward), _real_dtype(c, x)))


def _transformed(c: Converter, name: Any, x: Any, dim: Sequence[int], forward: bool) -> Any:
    for d in dim:
        name = _dft(c, name, d % c.rank(x), inverse=int(not forward))
    return name


@_translates("_fft_r2c.default")
def _fft_r2c(c: Converter, x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> ComplexParts:
    real = c.op("Unsqueeze", c.x(x), c.const([-1]))
    name = _dft(c, real, dim[-1] % c.rank(x), onesided=int(onesided))
    name = _transformed(c, name, x, dim[:-1], True)
    count = math.prod(c.fixed(x, d) for d in dim)
    return _separate(c, _scaled(c, name, _factor(count, normalization, True), _real_dtype(c, x)))


@_translates("_fft_c2r.default")
def _fft_c2r(c: Converter, x: Any, dim: Sequence[int], normalization: int, size: int) -> Any:
    last, dtype = dim[-1] % c.rank(x), _real_dtype(c, x)
    name = _transformed(c, _joined(c, c.pair(x)), x, dim[:-1], False)
    half = size // 2 + 1
    if c.fixed(x, last) != half:
        raise c.fail(f"{c.fixed(x, last)} elements as half of {size}")
    kept = ComplexParts(*_separate(c, name))
    if size > half:  # the other half mirrors it
        mirrored = [c.op("Gather", each, c.const(list(range(size - half, 0, -1))), axis=last) for each in kept]
        mirrored[1] = c.op("Neg", mirrored[1])
        kept = ComplexParts(*(c.op("Concat", *pair, axis=last) for pair in zip(kept, mirrored, strict=True)))
    name = _dft(c, _joined(c, kept), last, inverse=1)
    count = size * math.prod(c.fixed(x, d) for d in dim[:-1])
    return _scaled(c, _separate(c, name).real, _factor(count, normalization, False), dtype)
