"""`torch._inductor.utils`: fresh caches, code of compiled functions and timings, for tests and benchmarks."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, ValuesView
from typing import Any

import flambeau as torch

from ...runtime import debug_output
from ...utils import _pytree as pytree
from ..api import reset
from .runtime.benchmarking import benchmarker as benchmarker

_registered_caches: list[Any] = []
#: calls of a function until its program is there: two traces that agree, and one that runs it
_CALLS_UNTIL_COMPILED = 3


def clear_on_fresh_cache(obj: Any) -> Any:
    """A decorator of what has `cache_clear`, which `fresh_cache` calls at its beginning and end.

    Raises:
        AttributeError: it has none.

    >>> import functools
    >>> calls = []
    >>> @clear_on_fresh_cache
    ... @functools.cache
    ... def f():
    ...     calls.append("f")
    >>> f(); f(); clear_caches(); f(); calls
    ['f', 'f']
    """
    if not callable(getattr(obj, "cache_clear", None)):
        raise AttributeError(f"{obj} does not have a cache_clear method")
    _registered_caches.append(obj)
    return obj


def clear_caches() -> None:
    """Empty the caches that `clear_on_fresh_cache` has registered."""
    for obj in _registered_caches:
        obj.cache_clear()


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def fresh_cache(cache_entries: dict[str, Any] | None = None, dir: str | None = None,
                delete: bool = True) -> Iterator[None]:
    """A `with` block whose persistent cache is a new empty folder.

    PyTorch's variable `TORCHINDUCTOR_CACHE_DIR` names the folder, too.

    Args:
        cache_entries: an empty dict, which is given the sizes of what PyTorch has in the cache of Triton: nothing.
        dir: where the folder is made; the system's folder of temporary files by default.
        delete: whether it is deleted at the end. After an exception it stays.

    Raises:
        AssertionError: `cache_entries` is not empty.

    >>> from flambeau.runtime import cache_store
    >>> before = cache_store.root()
    >>> with fresh_cache():
    ...     inside = cache_store.root()
    >>> inside != before == cache_store.root(), os.path.exists(inside)
    (True, False)
    """
    clear_caches()
    folder = tempfile.TemporaryDirectory(dir=dir, ignore_cleanup_errors=True)
    # the folder outlives an exception, and the end of the block without `delete`
    folder._finalizer.detach()  # type: ignore[attr-defined]
    try:
        with _environment(FLAMBEAU_CACHE_DIR=folder.name, TORCHINDUCTOR_CACHE_DIR=folder.name,
                          TRITON_CACHE_DIR=os.path.join(folder.name, "triton")):
            yield
        if isinstance(cache_entries, dict) and cache_entries:
            raise AssertionError("expected empty cache_entries dict")
        if delete:
            folder.cleanup()
    finally:
        clear_caches()


clear_on_fresh_inductor_cache = clear_on_fresh_cache
clear_inductor_caches = clear_caches
fresh_inductor_cache = fresh_cache


def _copied(x: Any) -> Any:
    return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x


def run_and_get_code(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """What a function returns, and the kernels of the programs that it compiles, one text for each program.

    All compiled functions are traced again. A program is made when two traces agree: where the first call makes none,
    the function is called again, with copies of the tensors among the arguments and with the same random numbers; the
    result is that of the first call.

    Args:
        fn: the function, compiled itself or calling compiled ones.
        args, kwargs: its arguments.

    >>> import flambeau as torch
    >>> y, (code,) = run_and_get_code(torch.compile(lambda x: x.sin() + 1), torch.zeros(3))
    >>> y, "sin" in code
    (tensor([1., 1., 1.]), True)
    """
    reset()
    copies = pytree.tree_map(_copied, (args, kwargs))
    state = torch.get_rng_state()
    with debug_output.collect("kernels") as codes:
        result = fn(*args, **kwargs)
        after = torch.get_rng_state()
        for _ in range(1, _CALLS_UNTIL_COMPILED):
            if codes:
                break
            again, named = pytree.tree_map(_copied, copies)
            torch.set_rng_state(state)
            fn(*again, **named)
        torch.set_rng_state(after)
    return result, list(dict.fromkeys(codes))


def run_fw_bw_and_get_code(fn: Callable[[], Any]) -> tuple[Any, list[str]]:
    """As `run_and_get_code`, of a function and the backward pass of the sum of its result.

    >>> import flambeau as torch
    >>> x = torch.zeros(3, requires_grad=True)
    >>> compiled = torch.compile(lambda x: x.sin())
    >>> y, codes = run_fw_bw_and_get_code(lambda: compiled(x))
    >>> y.detach(), len(codes) > 0
    (tensor([0., 0., 0.]), True)
    """
    def forward_and_backward() -> Any:
        result = fn()
        result.sum().backward()
        return result

    return run_and_get_code(forward_and_backward)


def do_bench_using_profiling(fn: Callable[[], Any], warmup: int = 25, rep: int = 100,
                             is_vetted_benchmarking: bool = False) -> float:
    """The time of a function's kernels on a CUDA device, in milliseconds.

    Raises:
        AssertionError: there is none; `runtime.benchmarking.benchmarker.benchmark_cpu` measures on a CPU.
    """
    del is_vetted_benchmarking
    return benchmarker.benchmark_gpu(fn, warmup=warmup, rep=rep)


def synchronize(device: str = "cuda") -> None:
    """Wait for a device, where there is one; the CPU computes at once."""
    if device == "cuda" and torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(model: Callable[..., Any], example_inputs: Sequence[Any], times: int = 1, device: str = "cuda") -> float:
    """The seconds of some calls. The seed of random numbers is set to 1337 first.

    >>> timed(lambda x: x + 1, (torch.ones(2),), times=2) > 0
    True
    """
    synchronize(device)
    torch.manual_seed(1337)
    start = time.perf_counter()
    for _ in range(times):
        result = model(*example_inputs)
        synchronize(device)
    end = time.perf_counter()
    assert result is not None
    return end - start


def print_performance(model: Callable[..., Any], example_inputs: Sequence[Any] = (), times: int = 10,
                      repeat: int = 10, baseline: float = 1.0, device: str = "cuda") -> float:
    """Print and return the median of the seconds of a call; the printed number is divided by `baseline`."""
    took = torch.median(torch.tensor([timed(model, example_inputs, times, device) for _ in range(repeat)])) / times
    print(f"{took / baseline:.6f}")
    return float(took.item())


def has_torchvision_roi_align() -> bool:
    """Whether torchvision has registered its operator `roi_align`."""
    try:
        from torchvision.ops import roi_align
    except ImportError:
        return False
    return roi_align is not None and hasattr(torch.ops.torchvision, "roi_align")


def argsort(seq: Sequence[Any], *, reverse: bool = False) -> list[int]:
    """The positions in the order of their elements; equal ones in reversed order, in order where it is descending.

    >>> argsort([32, 8, 8, 1]), argsort([32, 8, 8, 1], reverse=True)
    ([3, 2, 1, 0], [0, 1, 2, 3])
    """
    order = sorted(range(len(seq)), key=seq.__getitem__, reverse=True)
    return order if reverse else order[::-1]


def unique(it: Iterable[Any]) -> ValuesView[Any]:
    """The distinct objects, by identity.

    >>> list(unique([1, 2, 1]))
    [1, 2]
    """
    return {id(x): x for x in it}.values()


def ceildiv(number: int, denom: int) -> int:
    """The quotient, rounded up.

    >>> ceildiv(7, 2)
    4
    """
    return -(number // -denom)


def cmp(a: int, b: int) -> int:
    """-1, 0 or 1: how two numbers compare.

    >>> cmp(1, 2)
    -1
    """
    return int(a > b) - int(a < b)


def pad_listlike(x: int | Sequence[int], size: int) -> Sequence[int]:
    """A number, or a sequence of one, repeated; a longer sequence as it is.

    >>> pad_listlike(3, 2), pad_listlike((3,), 2), pad_listlike((1, 2), 2)
    ([3, 3], (3, 3), (1, 2))
    """
    if isinstance(x, int):
        return [x] * size
    return x if len(x) != 1 else type(x)(list(x) * size)  # type: ignore[call-arg]


def is_view(op: Any) -> bool:
    """Whether an argument of an operator may share memory with its results.

    >>> is_view(torch.ops.aten.view.default), is_view(torch.ops.aten.sin.default)
    (True, False)
    """
    return any(argument.alias_info is not None for argument in op._schema.arguments)


def is_pointwise_use(use: Any, is_pointwise_fn: Callable[[Any], bool] = lambda _: False) -> bool:
    """Whether a node of a graph computes elementwise; of a view, whether all that use it do.

    Args:
        use: a node of `torch.fx`.
        is_pointwise_fn: says it of operators that have no tag `pointwise`.
    """
    target: Any = use.target
    if use.op != "call_function" or not (isinstance(target, torch._ops.OpOverload) or target is operator.getitem):
        return False
    if target is operator.getitem or is_view(target):
        return all(is_pointwise_use(user, is_pointwise_fn) for user in use.users)
    return torch.Tag.pointwise in use.target.tags or is_pointwise_fn(target)


def precompute_method(obj: Any, method: str) -> None:
    """Replace a method of an object by a function that returns its present result.

    >>> from types import SimpleNamespace
    >>> obj = SimpleNamespace(value=[1]); obj.get = lambda: len(obj.value)
    >>> precompute_method(obj, "get"); obj.value = []; obj.get()
    1
    """
    result = getattr(obj, method)()
    setattr(obj, method, lambda: result)


def precompute_methods(obj: Any, methods: Iterable[str]) -> None:
    """`precompute_method` of several."""
    for method in methods:
        precompute_method(obj, method)


@functools.lru_cache(8)
def get_dtype_size(dtype: torch.dtype) -> int:
    """The bytes of an element.

    >>> get_dtype_size(torch.float64)
    8
    """
    return torch.empty((), dtype=dtype).element_size()


def is_linux() -> bool:
    """Whether the system is Linux."""
    return sys.platform == "linux"


def is_windows() -> bool:
    """Whether the system is Windows."""
    return sys.platform == "win32"


def is_cpu_device(inputs: Sequence[Any]) -> bool:
    """Whether all tensors of a sequence are on the CPU.

    >>> is_cpu_device([torch.ones(2), 3])
    True
    """
    return all(x.device == torch.device("cpu") for x in inputs if isinstance(x, torch.Tensor))


def is_gpu(device: str | None) -> bool:
    """Whether a device of this type is a GPU."""
    return device in ("cuda", "xpu", "mps", "mtia")


def parallel_num_threads() -> int:
    """The threads of compiled kernels: the setting `cpp.threads`, or `torch.get_num_threads()` where it is not set."""
    threads = torch._inductor.config.cpp.threads
    return torch.get_num_threads() if threads < 1 else threads


@contextlib.contextmanager
def maybe_profile(should_profile: bool) -> Iterator[Any]:
    """A profiler for a `with` block, or nothing."""
    with torch.profiler.profile() if should_profile else contextlib.nullcontext() as profile:
        yield profile
