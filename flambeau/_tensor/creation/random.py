"""Random tensors of a shape or like another tensor: uniform and normal numbers, integers, permutations.

The samples come from `kernels.random` and equal PyTorch's bit for bit; the exceptions are listed there.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...dtypes import dtype as dtype_type
from ...kernels import random as kernels
from ...modes import special
from ..argument_errors.out_arguments import check_records_nothing
from ..meta import is_meta
from ..tensor import Tensor, wrap
from . import direct_draws
from .constants import device_for_new, empty_like
from .draws import draw_in_vmap, generator_on, in_vmap, new_sample, sample, sample_like, wrap_sample
from .factory_arguments import makes_meta, parse_sizes, refuse_pinned, refuse_sparse
from .generators import Generator, lock

__all__ = ["rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]


def _size(size: tuple[Any, ...], kwargs: dict[str, Any], name: str, out: Any) -> tuple[int, ...]:
    if not size and "size" in kwargs:
        size = (kwargs.pop("size"),)
    if not size or kwargs:
        types = [*(type(x).__name__ for x in size), *(f"{k}={type(x).__name__}" for k, x in kwargs.items())]
        got = ", ".join(types)
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
                        " * (tuple of ints size, *, torch.Generator generator, Tensor out = None, ...)")
    return parse_sizes(size, name, out)


@direct_draws.known_uniforms
def rand(*size: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
         layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
         names: Any = None, **kwargs: Any) -> Tensor:
    """Samples of the uniform distribution over [0, 1).

    Args:
        size: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    if size and generator is out is dtype is layout is device is None and not (requires_grad or pin_memory or kwargs):
        drawn = direct_draws.uniforms(size)
        if drawn is not None:
            return drawn
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    shape = _size(size, kwargs, "rand", out)
    if layout is not None:
        refuse_sparse(layout, "uniform_")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "rand")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if special[0] and in_vmap():
        return draw_in_vmap(lambda size: rand(size, generator=generator, dtype=d, requires_grad=requires_grad),
                             shape, out)
    return new_sample(kernels.uniform, shape, d, generator, out, dtype, device, requires_grad, "rand", d.numpy, 0.0,
                      1.0)


@direct_draws.known_normals
def randn(*size: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
          layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
          names: Any = None, **kwargs: Any) -> Tensor:
    """Samples of the standard normal distribution.

    Args:
        size: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(6)
    >>> torch.randn(2)
    tensor([-1.8744, -0.9937])
    """
    if size and generator is out is dtype is layout is device is None and not (requires_grad or pin_memory or kwargs):
        drawn = direct_draws.normals(size)
        if drawn is not None:
            return drawn
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    shape = _size(size, kwargs, "randn", out)
    if layout is not None:
        refuse_sparse(layout, "normal_")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randn")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if special[0] and in_vmap():
        return draw_in_vmap(lambda size: randn(size, generator=generator, dtype=d, requires_grad=requires_grad),
                             shape, out)
    if out is not None and out._requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    return new_sample(kernels.normal, shape, d, generator, out, dtype, device, requires_grad, "", d.numpy, 0.0, 1.0)


def _integer(value: Any) -> int:
    """A bound, which may be a tensor.

    Raises:
        TypeError: it is no integer; a guard says more.
    """
    if isinstance(value, float):
        raise TypeError("a bound must be int, not float")
    return int(value)


@direct_draws.known_integers
def randint(*args: Any, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
            **kwargs: Any) -> Tensor:
    """randint(low=0, high, size): integers of the uniform distribution over [low, high).

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([4, 9, 3])
    """
    if generator is out is dtype is layout is device is None and 1 < len(args) < 4 and not (
            requires_grad or pin_memory or kwargs):
        drawn = direct_draws.integers(*args) if len(args) == 3 else direct_draws.integers(0, *args)
        if drawn is not None:
            return drawn
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    arguments = list(args)
    size = kwargs.pop("size", None)
    if size is None:
        size = arguments.pop()
    high = kwargs.pop("high", None)
    low = kwargs.pop("low", None)
    if high is None:
        high = arguments.pop()
    if low is None:
        low = arguments.pop() if arguments else 0
    if kwargs or arguments:
        raise TypeError(f"randint() got unexpected arguments {[*arguments, *kwargs]}")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randint")
    d = dtype or (out.dtype if out is not None else dtypes.int64)
    shape = parse_sizes((size,) if isinstance(size, (tuple, list)) else size, "randint", out)
    if layout is not None:
        refuse_sparse(layout, "random_.from")
    if special[0] and in_vmap():
        return draw_in_vmap(lambda size: randint(low, high, size, generator=generator, dtype=d,
                                                  requires_grad=requires_grad), shape, out)
    return new_sample(kernels.randint, shape, d, generator, out, dtype, device, requires_grad, "randint", _integer(low),
                      _integer(high), d.numpy)


@direct_draws.known_permutations
def randperm(n: int, *, generator: Generator | None = None, out: Any = None, dtype: dtype_type | None = None,
             layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A random permutation of the integers from 0 to n - 1.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randperm(4)
    tensor([0, 1, 3, 2])
    """
    if generator is out is dtype is layout is device is None and not (requires_grad or pin_memory):
        drawn = direct_draws.permutation(n)
        if drawn is not None:
            return drawn
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if n < 0:
        if out is not None:
            check_records_nothing("randperm", (), (out,))
            raise RuntimeError(f"n must be non-negative, got{n}")
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if layout is not None:
        refuse_sparse(layout, "randperm.generator_out")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randperm")
    d = dtype or (out.dtype if out is not None else dtypes.int64)
    if special[0] and in_vmap():
        return draw_in_vmap(lambda size: _permutations(size, generator, d), (int(n),), out)
    return new_sample(kernels.randperm, (int(n),), d, generator, out, dtype, device, requires_grad, "randperm",
                      d.numpy)


def _permutations(size: tuple[int, ...], generator: Generator | None, d: dtype_type) -> Tensor:
    """A permutation for each row, drawn in order."""
    *front, n = size
    with lock:
        rows = [sample(kernels.randperm, generator, n, d.numpy) for _ in range(prod(tuple(front)))]
    return wrap(np.array(rows, d.numpy).reshape(size))


def _check_rank(input: Tensor, memory_format: Any) -> None:
    """Raise PyTorch's error unless a tensor has as many dimensions as a memory format."""
    rank = {"channels_last": 4, "channels_last_3d": 5}.get(memory_format.name)
    if rank is not None and input._array.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


@direct_draws.known_uniforms_like
def rand_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype_type | None = None,
              layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
              memory_format: Any = None) -> Tensor:
    """`rand` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.rand_like(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """
    if generator is layout is dtype is device is memory_format is None and not (requires_grad or pin_memory):
        drawn = direct_draws.uniforms_like(input)
        if drawn is not None:
            return drawn
    if pin_memory:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "rand_like")
    d = dtype or input.dtype
    if special[0] and in_vmap():
        return rand(input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    device = device_for_new(input, device)
    if makes_meta(device) if device is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None:
        generator = generator_on(device, generator)
    array = sample_like(input, d, memory_format,
                         lambda n, _: sample(kernels.uniform, generator, n, d.numpy, 0.0, 1.0), "uniform_")
    return wrap_sample(array, None, device, requires_grad)


@direct_draws.known_normals_like
def randn_like(input: Tensor, *, generator: Generator | None = None, dtype: dtype_type | None = None,
               layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
               memory_format: Any = None) -> Tensor:
    """`randn` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.randn_like(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """
    if generator is layout is dtype is device is memory_format is None and not (requires_grad or pin_memory):
        drawn = direct_draws.normals_like(input)
        if drawn is not None:
            return drawn
    if pin_memory:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randn_like")
    d = dtype or input.dtype
    if special[0] and in_vmap():
        return randn(input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    device = device_for_new(input, device)
    if makes_meta(device) if device is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None:
        generator = generator_on(device, generator)
    array = sample_like(input, d, memory_format,
                         lambda n, c: sample(kernels.normal, generator, n, d.numpy, 0.0, 1.0, c))
    return wrap_sample(array, None, device, requires_grad)


def randint_like(input: Tensor, low: int | None = None, high: int | None = None, *, generator: Generator | None = None,
                 dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                 requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """`randint` with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.randint_like(torch.ones(2), 1)
    tensor([0., 0.])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if low is None or high is None:
        low, high = 0, low if high is None else high
        if high is None:
            raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    if layout is not None:
        refuse_sparse(layout, "empty_strided")
    if memory_format is not None:
        _check_rank(input, memory_format)
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "randint_like")
    d = dtype or input.dtype
    for name, bound in (("low", low), ("high", high)):
        if isinstance(bound, Tensor) and bound._array.ndim:
            raise RuntimeError(f"{name} must be a scalar tensor and on CPU")
    first, last = _integer(low), _integer(high)
    if special[0] and in_vmap():
        return randint(first, last, input._array.shape, generator=generator, dtype=d, requires_grad=requires_grad)
    device = device_for_new(input, device)
    if makes_meta(device) if device is not None else is_meta(input):
        return empty_like(input, dtype=d, device=device, requires_grad=requires_grad, memory_format=memory_format)
    if device is not None:
        generator = generator_on(device, generator)
    array = sample_like(input, d, memory_format,
                         lambda n, _: sample(kernels.randint, generator, n, first, last, d.numpy), "random_.from")
    return wrap_sample(array, None, device, requires_grad)
