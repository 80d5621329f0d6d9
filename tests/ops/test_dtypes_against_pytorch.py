"""Every operator's samples in every dtype, compared with PyTorch: both raise the same error, or neither does.

Results have the same dtypes and shapes and, up to rounding, the same values. Known differences are in
`tests/torch_deviations.txt`, under the checks `dtypes` and `dtypes.values`.
"""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau
from tests.ops.spec import Make, Sample, load, public
from tests.ops.test_generic import tensors_in, with_tensors
from tests.parity import deviations

pytestmark = [pytest.mark.parity, pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                                     reason="PyTorch is the oracle")]

RECORDS = load()
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128")
#: relative and absolute: the two round in another order
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-4, "complex64": 1e-4}
#: samples of a record in each dtype
SAMPLES = 12


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch, which the tests must not need to be collected."""
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def ledger() -> list[deviations.Deviation]:
    return [line for line in deviations.read() if line.check in ("dtypes", "dtypes.values")]


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def arrays_of(sample: Sample, dtype: str) -> list[tuple[np.ndarray, str]]:
    """The sample's tensors and the dtypes that they are to have: `dtype` in place of float32."""
    found = []
    for t in tensors_in(sample.args) + tensors_in(tuple(sample.kwargs.values())):
        a, kind = np.array(t.detach().numpy()), name_of(t.dtype)
        if t.dtype == flambeau.float32:
            kind = dtype
            if not dtype.startswith(("float", "bfloat", "complex")):
                a = np.abs(np.round(a * 2))  # so that few of them are alike, and none is negative
        found.append((a, kind))
    return found


def outcome(module: Any, call: Callable[..., Any], sample: Sample, arrays: list[tuple[np.ndarray, str]]) -> Any:
    """(the exception's name, its text), or the list of what came out."""
    left = iter(arrays)

    def tensor(_: Any) -> Any:
        array, kind = next(left)
        return module.from_numpy(np.array(array)).to(getattr(module, kind))

    def own(value: Any) -> Any:
        return getattr(module, name_of(value)) if isinstance(value, flambeau.dtype) else value

    made = with_tensors(sample, tensor)
    module.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(*map(own, made.args), **{key: own(value) for key, value in made.kwargs.items()})
        except Exception as error:  # the other must raise the same
            return type(error).__name__, str(error).replace("flambeau.", "torch.")
    return list(found) if isinstance(found, (list, tuple)) else [found]


def numbers(module: Any, x: Any) -> np.ndarray:
    wide = module.complex128 if x.is_complex() else module.float64
    return np.asarray(x.detach().to(wide).resolve_conj().numpy())


def difference(torch: Any, want: Any, have: Any) -> tuple[str, str] | None:
    """The check that fails, and why; None if the outcomes are alike."""
    if isinstance(want, tuple) or isinstance(have, tuple):
        return ("dtypes", f"PyTorch: {want}, flambeau: {have}") if want != have else None
    for w, h in itertools.zip_longest(want, have):
        if not isinstance(w, torch.Tensor) or not isinstance(h, flambeau.Tensor):
            continue  # sizes, numbers: the families' own tests
        theirs, ours = ((name_of(x.dtype), tuple(x.shape)) for x in (w, h))
        if theirs != ours:
            return "dtypes", f"PyTorch: {theirs}, flambeau: {ours}"
        tolerance = TOLERANCE.get(theirs[0], 1e-8)
        a, b = numbers(torch, w), numbers(flambeau, h)
        with np.errstate(all="ignore"):
            if not np.allclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True):
                return "dtypes.values", f"PyTorch: {a}, flambeau: {b}"
    return None


@pytest.mark.parametrize("name", RECORDS)
def test_errors_and_result_dtypes_equal_pytorchs(name: str, torch: Any, ledger: list[deviations.Deviation]) -> None:
    try:
        theirs = public(torch, name)
    except AttributeError:
        pytest.skip("PyTorch has no such function")
    ours = public(flambeau, name)
    lines = [line for line in ledger if line.concerns(name)]
    excused, new = [], []
    samples = RECORDS[name].samples(Make(flambeau, flambeau.float32, False, 3))
    for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
        for dtype in DTYPES:
            arrays = arrays_of(sample, dtype)
            found = difference(torch, outcome(torch, theirs, sample, arrays), outcome(flambeau, ours, sample, arrays))
            if found is None:
                continue
            reasons = [d.reason for d in lines if d.check == found[0] and d.dtype in ("*", dtype)]
            excused += reasons
            if not reasons:
                new.append(f"{found[0]} {dtype} #{number}: {found[1]}")
    if new:
        pytest.fail("\n".join(new), pytrace=False)
    if excused:
        pytest.xfail("; ".join(dict.fromkeys(excused)))
