"""`torch._dynamo.utils`: what packages ask of the compiler, counters, and comparison of results."""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ... import devices
from ...dtypes import widen
from ..counters import counters
from ..stance import policy

log = logging.getLogger(__name__)


def is_compile_supported(device_type: Any) -> bool:
    """Whether compiled functions run on a device: on the CPU only.

    Args:
        device_type: a device, or a string such as `"cuda:0"`.

    >>> import flambeau as torch
    >>> from flambeau.compiler.dynamo.utils import is_compile_supported
    >>> is_compile_supported("cpu"), is_compile_supported(torch.device("meta"))
    (True, False)
    """
    return devices.device(device_type).type == "cpu"


def ifdynstaticdefault(count1: Any, count2: Any) -> Any:
    """`count1` if sizes are fixed until they differ, which is the default; else `count2`.

    >>> ifdynstaticdefault(1, 2)
    1
    """
    return count1 if policy.assume_static_by_default else count2


def clone_input(x: Any, *, dtype: Any = None) -> Any:
    """A copy of a tensor with its strides, `requires_grad` and gradient, which is a leaf.

    >>> import flambeau as torch
    >>> clone_input(torch.ones(2, 3).t()).stride()
    (1, 3)
    """
    found = x.detach().clone()
    if dtype is not None:
        found = found.to(dtype)
    if found.stride() != x.stride():
        found = found.as_strided(x.shape, x.stride()) if not x.numel() else _with_strides(found, x)
    found.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        found.grad = clone_input(x.grad, dtype=dtype)
    return found


def _with_strides(values: Any, x: Any) -> Any:
    size = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    result = values.new_empty(size).as_strided(x.shape, x.stride())
    result.copy_(values)
    return result


def clone_inputs(example_inputs: Any) -> Any:
    """Copies of tensors in a list, or in a dictionary of tensors and sequences (`clone_input`).

    >>> import flambeau as torch
    >>> clone_inputs([torch.ones(1), 2])
    [tensor([1.]), 2]
    """
    from ..._tensor import Tensor

    def cloned(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(cloned, x))
        return clone_input(x) if isinstance(x, Tensor) else x

    if isinstance(example_inputs, dict):
        return {key: cloned(x) for key, x in example_inputs.items()}
    return [cloned(x) for x in example_inputs]


def rmse(ref: Any, res: Any) -> Any:
    """The root of the mean squared difference of two tensors.

    >>> import flambeau as torch
    >>> rmse(torch.zeros(4), torch.ones(4))
    tensor(1.)
    """
    return (ref - res).square().mean().sqrt()


def same(ref: Any, res: Any, fp64_ref: Any = None, cos_similarity: bool = False, tol: float = 1e-4,
         equal_nan: bool = False, exact_dtype: bool = True, relax_numpy_equality: bool = False,
         ignore_non_fp: bool = False, log_error: Callable[..., None] = log.error, **_: Any) -> bool:
    """Whether two results agree: tensors within tolerances, numbers, and containers and objects of these.

    Args:
        ref: the expected result.
        res: the other one.
        fp64_ref: the result in double; with it, tensors that differ more than `tol` agree if the error of `res` against
            it is not much larger than that of `ref`.
        cos_similarity: compare directions of flattened tensors.
        tol: relative and absolute tolerance.
        equal_nan: whether NaN equals NaN.
        exact_dtype: whether dtypes have to agree.
        relax_numpy_equality: compare NumPy arrays within tolerances.
        ignore_non_fp: do not compare integers.
        log_error: called with the reason where results differ.

    >>> import flambeau as torch
    >>> same([torch.ones(2), 1.0], [torch.ones(2) + 1e-6, 1.0])
    True
    >>> same(torch.ones(2), torch.zeros(2), log_error=lambda *_: None)
    False
    """
    from ..._tensor import Tensor

    options: dict[str, Any] = {
        "cos_similarity": cos_similarity, "tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype,
        "relax_numpy_equality": relax_numpy_equality, "ignore_non_fp": ignore_non_fp, "log_error": log_error}
    exact = ref if fp64_ref is None else fp64_ref
    if isinstance(ref, (list, tuple, collections.deque)) or type(ref).__name__ == "ParameterList":
        if not isinstance(res, (list, tuple, collections.deque)) and type(res) is not type(ref):
            raise AssertionError(f"type mismatch {type(ref)} {type(res)}")
        return len(ref) == len(res) and all(
            same(a, b, c, **options) for a, b, c in zip(ref, res, exact, strict=True))
    if isinstance(ref, dict):
        if not isinstance(res, dict):
            raise AssertionError(f"expected dict, got {type(res).__name__}")
        if set(ref) != set(res):
            raise AssertionError(f"keys mismatch {set(ref)} == {set(res)}")
        return all(same(ref[key], res[key], exact[key], **options) for key in sorted(ref))
    if isinstance(ref, set):
        if not isinstance(res, set):
            raise AssertionError(f"expected set, got {type(res).__name__}")
        return ref == res
    if isinstance(ref, Tensor):
        return isinstance(res, Tensor) and _same_tensors(ref, res, None if fp64_ref is None else exact, options)
    if isinstance(ref, (np.ndarray, np.generic)):
        limit = tol if relax_numpy_equality else 0
        return type(ref) is type(res) and bool(np.allclose(ref, res, atol=limit, rtol=limit, equal_nan=equal_nan))
    if isinstance(ref, float):
        agrees = math.isclose(ref, res, rel_tol=tol, abs_tol=tol) or (equal_nan and ref != ref and res != res)
        if not agrees:
            log_error("Accuracy failed (float): %s vs %s (within tol=%s)", ref, res, tol)
        return agrees
    if isinstance(ref, (str, int, type(None), bool)) or hasattr(ref, "__name__") or isinstance(ref, devices.device):
        agrees = bool(ref == res)
        if not agrees and not (ignore_non_fp and isinstance(ref, int)):
            log_error("Accuracy failed (%s): %s vs %s", type(ref), ref, res)
        return agrees or (ignore_non_fp and isinstance(ref, int))
    if hasattr(ref, "__dict__"):  # results of packages
        return type(ref) is type(res) and all(
            same(x, getattr(res, name), getattr(exact, name), **options) for name, x in vars(ref).items())
    raise RuntimeError(f"unsupported type: {type(ref).__name__}")


def _same_tensors(ref: Any, res: Any, exact: Any, options: dict[str, Any]) -> bool:
    log_error, tol = options["log_error"], options["tol"]
    if ref.is_sparse or res.is_sparse:
        ref, res = ref.to_dense(), res.to_dense()
    if options["exact_dtype"] and ref.dtype != res.dtype:
        log_error("dtype mismatch %s, %s", ref.dtype, res.dtype)
        return False
    if ref.shape != res.shape:
        log_error("shape mismatch %s, %s", ref.shape, res.shape)
        return False
    is_floating = ref.dtype.is_floating_point or ref.dtype.is_complex
    if not is_floating:
        return options["ignore_non_fp"] or bool((ref == res).all())
    a, b = (np.asarray(widen(x.detach().resolve_conj()._array)) for x in (ref, res))
    if options["cos_similarity"]:
        a, b = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
        length = float(np.linalg.norm(a) * np.linalg.norm(b))
        return bool(np.array_equal(a, b)) or (length > 0 and float(a @ b) / length >= 0.99)
    if np.allclose(a, b, atol=tol, rtol=tol, equal_nan=options["equal_nan"]):
        return True
    if exact is not None and exact.dtype.is_floating_point:
        c = np.asarray(exact.detach()._array, np.float64)
        errors = [float(np.sqrt(np.mean(np.square(x - c)))) for x in (a, b)]
        limit = max(2.0 * errors[0], tol / 10 if ref.numel() > 10 else tol)
        if errors[1] <= limit:
            return True
        log_error("RMSE (res-fp64): %.5f, (ref-fp64): %.5f and shape=%s", errors[1], errors[0], tuple(res.shape))
        return False
    log_error("Accuracy failed: allclose not within tol=%s", tol)
    return False


class CompileCounterInt(int):
    """A number of compilations: an int whose sums are such numbers, too.

    >>> CompileCounterInt(1) + 1
    2
    """

    def __add__(self, other: Any) -> CompileCounterInt:
        return CompileCounterInt(super().__add__(other))


def istype(obj: object, allowed_types: Any) -> bool:
    """Whether the class of an object is one of some classes; subclasses are others.

    >>> istype(True, int), istype(1, (int, str))
    (False, True)
    """
    if isinstance(allowed_types, (tuple, list, set, frozenset)):
        return type(obj) in allowed_types
    return type(obj) is allowed_types


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Give a warning the first time that it is asked for."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """A context without a limit on the number of programs of a compiled function."""
    before = policy.recompile_limit
    policy.change(recompile_limit=sys.maxsize)
    try:
        yield
    finally:
        policy.change(recompile_limit=before)


__all__ = ["CompileCounterInt", "clone_input", "clone_inputs", "counters", "disable_cache_limit", "ifdynstaticdefault",
           "is_compile_supported", "istype", "rmse", "same", "warn_once"]
