"""Every operator's record compiled: traced with its values, replayed with others, compared with eager.

Values, dtypes, shapes and strides of results and gradients are compared, gradients taken inside the compiled function
and outside it, in-place forms too. The plans are looked at as well: they have to be legal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, dtypes
from flambeau.compiler.execution.cache_entry import GUARDS_FAILED, CacheEntry
from flambeau.compiler.execution.compiled_function import CompiledFunction
from tests.ir.legality import check
from tests.ops.spec import RECORDS, Sample, load, public
from tests.ops.test_batching import variations
from tests.ops.test_generic import in_place_name, samples_of, tensors_in, with_tensors

load()
Tensor = torch.Tensor

pytestmark = [
    pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0"),
    pytest.mark.slow, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("nothing_is_stored")]

#: samples of a record that are tried
SAMPLES = int(os.environ.get("FLAMBEAU_SAMPLES", "3"))
_BOOL = "its result is one of Python's"
_SIZES = "the size of the result depends on a tensor's numbers"
#: records of which a sample is not compiled, and why: this list may only become shorter
NOT_COMPILED: dict[str, str] = {
    "allclose": _BOOL, "equal": _BOOL,
    "argwhere": _SIZES, "bincount": _SIZES, "masked_select": _SIZES, "nonzero": _SIZES, "unique": _SIZES,
    "unique_consecutive": _SIZES,
    "combinations": "it selects with a mask",
    "index_put": "a mask is made into indices",
    "nn.functional.pdist": "it creates arrays outside operators",
}


def points(sample: Sample) -> list[Any]:
    """The tensors of a sample, by themselves; those of floats require grad."""
    found = tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values()))
    return [t.detach().clone().requires_grad_(t.is_floating_point()) for t in found]


def others(name: str, tensors: Sequence[Any]) -> list[Any]:
    """Tensors of the same kinds with other numbers."""
    return [variations(t, 3, name)[2].detach().requires_grad_(t.requires_grad) for t in tensors]


def applied(name: str, sample: Sample) -> Callable[..., list[Any]]:
    """The record's function of the sample's tensors."""
    call = public(torch, name)

    def run(*tensors: Any) -> list[Any]:
        left = iter(tensors)
        made = with_tensors(sample, lambda _: next(left))
        return tensors_in(call(*made.args, **made.kwargs))

    return run


def with_gradients(run: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The results and their gradients, as one function."""

    def both(*tensors: Any) -> list[Any]:
        out = run(*tensors)
        return [o.detach() for o in out] + gradients(out, tensors)

    return both


def gradients(out: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
    live = [o for o in out if o.requires_grad]
    if not live:
        return []
    seeds = [torch.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).reshape(o.shape) for o in live]
    found = torch.autograd.grad(live, [t for t in tensors if t.requires_grad], seeds, allow_unused=True)
    return [g for g in found if g is not None]


def seeded(run: Callable[..., Any], *tensors: Any) -> Any:
    torch.manual_seed(3)
    return run(*tensors)


def is_eager_error(run: Callable[..., Any], *tensors: Any) -> bool:
    """Whether a sample's other numbers are none for its operator."""
    try:
        seeded(run, *tensors)
    except (RuntimeError, ValueError, IndexError):
        return True
    return False


def same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert a.stride() == b.stride()
        x, y = (dtypes.widen(t.detach().resolve_conj().numpy()) for t in (a, b))
        tolerance = 1e-10 if x.dtype.itemsize >= 8 else 1e-5
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=1)) if y.dtype.kind in "fc" else 1
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def captured(run: Callable[..., Any], tensors: Sequence[Any]) -> tuple[CompiledFunction, CacheEntry | None]:
    """The compiled function after enough calls to have a program, if it gets one; each with new tensors."""
    made = torch.compile(run)
    for _ in range(3):
        seeded(made, *[t.detach().clone().requires_grad_(t.requires_grad) for t in tensors])
    [kind] = made._signatures.values()
    return made, kind.entries[0] if kind.entries else None


def replayed(made: CompiledFunction, replay: CacheEntry, tensors: Sequence[Any]) -> Any:
    """What the program gives; where its conditions do not hold, what the compiled function does then."""
    found = seeded(replay.run, tensors)
    assert found is not GUARDS_FAILED or replay.trace.data_guards or replay.trace.storage_offsets
    return seeded(made, *tensors) if found is GUARDS_FAILED else found


def samples(name: str) -> list[tuple[int, Sample]]:
    return [(k, s) for k, s in enumerate(samples_of(RECORDS[name])[:SAMPLES]) if points(s)]


def compiled_is_eager(name: str) -> list[str]:
    """Compare all samples; those that are not compiled, with reasons."""
    missing = []
    for k, sample in samples(name):
        run = applied(name, sample)
        inside, given, other = with_gradients(run), points(sample), others(name, points(sample))
        if is_eager_error(inside, *given) or is_eager_error(inside, *other):
            continue
        made, replay = captured(inside, given)
        if replay is None:
            assert torch.compile.explain(inside)(*given).break_reasons
            for tensors in (given, other):  # and it is eager's
                same(seeded(made, *tensors), seeded(inside, *tensors))
            [kind] = made._signatures.values()
            missing.append(f"{k}: {kind.skip_reason or kind.mismatch}")
            continue
        check(replay.program.schedule)
        same(replayed(made, replay, other), seeded(inside, *other))
        if k > 1:  # two samples show how the backward graph is cut from the forward one
            continue
        outside, replay = captured(run, given)
        if replay is not None and replay.backward is not None:
            check(replay.backward.program.schedule)
            got, want = replayed(outside, replay, other), seeded(run, *other)
            same(got, want)
            same(gradients(got, other), gradients(want, other))
    return missing


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_record(name: str) -> None:
    missing = compiled_is_eager(name)
    if name in NOT_COMPILED:
        assert missing, f"{name} is compiled now: take it off the list"
    else:
        assert not missing


#: dtypes that samples are not of
DTYPES = (torch.float32, torch.bfloat16, torch.complex128, torch.int64, torch.bool)


def as_dtype(t: Any, dtype: Any) -> Any:
    """A tensor's numbers in another dtype, if they are floats."""
    x = t.detach().clone()
    if not x.is_floating_point():
        return x
    if dtype.is_complex:
        return torch.complex(x, x.flip(0) if x.ndim else x * 0.5).to(dtype).requires_grad_()
    if dtype == torch.bool:
        return x > 0
    return x.to(dtype).requires_grad_() if dtype.is_floating_point else (x * 3).to(dtype)


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_other_dtypes(name: str) -> None:
    """Compiled, a sample gives what it gives eagerly, and refuses what is refused eagerly, in other dtypes as well."""
    for _, sample in samples(name)[:1]:
        run = with_gradients(applied(name, sample))
        for dtype in DTYPES:
            given = [as_dtype(t, dtype) for t in points(sample)]
            made = torch.compile(run)
            for tensors in (given, given, given, [as_dtype(t, dtype) for t in others(name, points(sample))]):
                found, expected = (outcome(each, tensors) for each in (made, run))
                if isinstance(found, type) or isinstance(expected, type):
                    assert found is expected
                    break
                for a, b in zip(found, expected, strict=True):
                    assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
                    x, y = (dtypes.widen(t.detach().resolve_conj().resolve_neg()._array) for t in (a, b))
                    precision = a.dtype.itemsize // (2 if a.dtype.is_complex else 1)
                    tolerance = {2: 0.05, 4: 3e-5}.get(precision, 1e-10)
                    scale = float(np.abs(y[np.isfinite(y)]).max(initial=1)) if y.dtype.kind in "fc" else 1
                    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def outcome(run: Callable[..., list[Any]], tensors: Sequence[Any]) -> Any:
    """What a function gives for copies of tensors, or the class of what it raises."""
    try:
        return seeded(run, *[t.detach().clone().requires_grad_(t.requires_grad) for t in tensors])
    except Exception as error:
        return type(error)


IN_PLACE = [name for name in sorted(RECORDS) if in_place_name(RECORDS[name]) is not None]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place(name: str) -> None:
    """The in-place form writes to an argument, and to something that was computed and is differentiated."""
    method = in_place_name(RECORDS[name])
    for _, sample in samples(name)[:2]:
        if not isinstance(sample.args[0], Tensor):
            continue
        keep = with_tensors(sample, lambda t: t)

        def call(target: Any, rest: Sequence[Any], sample: Sample = keep) -> Any:
            left = iter([target, *rest])
            made = with_tensors(sample, lambda _: next(left))
            return getattr(target, method)(*made.args[1:], **made.kwargs)

        def on_argument(x: Any, *rest: Any) -> list[Any]:
            return [call(x, rest) * 1]

        def on_copy(x: Any, *rest: Any) -> list[Any]:
            y = x.clone()
            call(y, rest)
            return [y]

        given = points(sample)
        plain = [t.detach() for t in given]
        other = [t.detach() for t in others(name, given)]
        if not is_eager_error(on_argument, *[t.clone() for t in other]) and not is_eager_error(
                on_argument, *[t.clone() for t in plain]):
            made, replay = captured(on_argument, plain)
            if replay is not None:
                check(replay.program.schedule)
                mine, theirs = [t.clone() for t in other], [t.clone() for t in other]
                same(replayed(made, replay, mine), seeded(on_argument, *theirs))
                same(mine, theirs)
                assert mine[0]._version == theirs[0]._version
        inside = with_gradients(on_copy)
        other = others(name, given)
        if not is_eager_error(inside, *given) and not is_eager_error(inside, *other):
            made, replay = captured(inside, given)
            if replay is not None:
                check(replay.program.schedule)
                same(replayed(made, replay, other), seeded(inside, *other))
