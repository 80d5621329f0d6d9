"""Samples of distributions whose parameters are tensors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...dtypes import dtype as dtype_type
from ...kernels import random as kernels
from ...modes import device_memory, grad_mode, special
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.handlers import handlers
from ..dispatch.write_checks import warn_of_resize
from ..meta import is_meta, meta_array, no_meta_kernel
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_created
from . import direct_draws
from .constants import empty_like
from .draws import (
    any_meta,
    draw_in_vmap,
    draw_in_vmap_from,
    fill,
    in_vmap,
    new_sample,
    own_part,
    sample,
    wrap_sample,
)
from .factory_arguments import parse_sizes, refuse_pinned, refuse_sparse
from .generators import Generator, lock

__all__ = ["_sample_dirichlet", "_standard_gamma", "bernoulli", "binomial", "multinomial", "normal", "poisson"]


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None, out: Any = None,
           dtype: dtype_type | None = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:
    """Samples of normal distributions with the given mean and standard deviation, scalars or tensors that broadcast.

    >>> import flambeau as torch
    >>> torch.normal(torch.zeros(3), 1.).shape
    flambeau.Size([3])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    if size is not None:
        shape = parse_sizes((size,) if isinstance(size, (tuple, list)) else size, "normal.size", out)
        if layout is not None:
            refuse_sparse(layout, "normal_")
        d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
        if special[0] and in_vmap():
            return draw_in_vmap(lambda size: normal(mean, std, size, generator=generator, dtype=d,
                                                     requires_grad=requires_grad), shape, out)
        return new_sample(kernels.normal, shape, d, generator, out, dtype, device, requires_grad, "normal.size",
                          d.numpy, float(mean), float(std))
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda *arguments: normal(*arguments, generator=generator), [mean, std], out)
    m = mean._array if isinstance(mean, Tensor) else float(mean)
    s = std._array if isinstance(std, Tensor) else float(std)
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        raise TypeError("normal() received an invalid combination of arguments: numbers for both mean and std need a "
                        "size, normal(mean, std, size)")
    if out is not None:
        check_records_nothing("normal", (mean, std), (out,))
        if isinstance(s, np.ndarray) and s.dtype.kind != "c" and s.size and s.min() < 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
    if out is not None and out._array.dtype.kind not in "fcV":
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{out.dtype.scalar_name}'")
    if out is not None and isinstance(m, np.ndarray) and not isinstance(std, Tensor):
        m = np.broadcast_to(m, broadcast_shapes(m.shape, out._array.shape))
    if isinstance(m, np.ndarray) and isinstance(s, np.ndarray):
        broadcast_shapes(m.shape, s.shape)
    with lock:
        array = _normals_on_meta(m, s) if any_meta(mean, std) else sample(kernels.normal_around, generator, m, s)
    if out is not None:
        if out._array.shape != array.shape:
            warn_of_resize(out._array.shape, array.shape)
        return wrap_sample(array, out, device, False)
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        return apply(REGISTRY["_normal_NormalBackward3"], [mean, std], {"values": array})
    node = "NormalBackward1" if isinstance(mean, Tensor) else "NormalBackward2"
    parameter = mean if isinstance(mean, Tensor) else std
    return apply(REGISTRY[f"_normal_{node}"], [parameter], {"values": array})


def _normals_on_meta(*parameters: Any) -> np.ndarray:
    """What stands for samples of normal distributions, of which a mean or a deviation has no elements."""
    arrays = [x for x in parameters if isinstance(x, np.ndarray)]
    return meta_array(broadcast_shapes(arrays[0].shape, arrays[-1].shape), arrays[0].dtype)


@direct_draws.known_events
def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """Samples of Bernoulli distributions, 0 or 1, with the probabilities `input` (or `p`).

    >>> import flambeau as torch
    >>> torch.bernoulli(torch.ones(2))
    tensor([1., 1.])
    """
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda *arguments: bernoulli(*arguments, generator=generator),
                                 [input] if p is None else [input, p], out)
    if p is not None and is_meta(input):
        return bernoulli_(empty_like(input), p, generator=generator)
    if p is not None:
        result: Tensor = wrap(np.empty(input._array.shape, input._array.dtype))
        if special[0]:
            notify_created(result._array, True)
        return bernoulli_(result, p, generator=generator)
    if input._array.dtype.kind not in "fV":
        kind = "self" if input.dtype.is_complex else "p"
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_{kind}_\" not implemented for '{input.dtype.scalar_name}'")
    a = resolve(own_part(input)._array)
    drawn = direct_draws.events(a) if generator is out is None else None
    if drawn is not None:
        if not (input._requires_grad and grad_mode.get()):
            return direct_draws.new(drawn)
        return apply(REGISTRY["_bernoulli_BernoulliBackward0"], [input], {"values": drawn})
    with lock:
        values = a.copy() if is_meta(input) else sample(kernels.bernoulli_each, generator, a, a.dtype)
    values = values.reshape(a.shape)
    if out is not None:
        check_records_nothing("bernoulli", (input,), (out,))
        return wrap_sample(dtypes.cast(values, out._array.dtype), out, None, False)
    return apply(REGISTRY["_bernoulli_BernoulliBackward0"], [input], {"values": values})


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with samples of a Bernoulli distribution: 1 with probability `p`, else 0.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.empty(5).bernoulli_(0.3)
    tensor([0., 0., 0., 0., 0.])
    """
    d = self._array.dtype
    if isinstance(p, Tensor):
        if special[0] and in_vmap():
            from ..dispatch.vmap_random import fill_batched_from

            return fill_batched_from(self, p, lambda probabilities: bernoulli(probabilities, generator=generator))
        shape, each = own_part(self)._array.shape, own_part(p)
        probabilities = resolve(each.expand(shape)._array) if prod(shape) else np.empty(shape, each._array.dtype)
        return fill(self, "_bernoulli_BernoulliBackward1",
                     lambda n, _: sample(kernels.bernoulli_each, generator, probabilities, d).reshape(-1),
                    (p,), "Tensor", (p,), generator)
    return fill(self, "_bernoulli_BernoulliBackward2",
                 lambda n, _: sample(kernels.bernoulli, generator, n, float(p), d), (), "float", (p,), generator)


def bernoulli_array(shape: tuple[int, ...], p: float, dtype: np.dtype) -> np.ndarray:
    """What `bernoulli_` writes into a contiguous tensor, by the default generator."""
    with lock:
        samples = sample(kernels.bernoulli, None, prod(shape), p, dtype)
    return samples.reshape(shape)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of Poisson distributions with the rates `input`.

    >>> import flambeau as torch
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])
    """
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda rates: poisson(rates, generator), [input])
    with lock:
        values = input._array.copy() if is_meta(input) else sample(
            kernels.poisson, generator, resolve(own_part(input)._array))
    return apply(REGISTRY["_poisson_PoissonBackward0"], [input], {"values": values})


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of binomial distributions: the successes among `count` trials of probability `prob`.

    >>> import flambeau as torch
    >>> torch.binomial(torch.tensor([3.]), torch.ones(1))
    tensor([3.])
    """
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda count, prob: binomial(count, prob, generator), [count, prob])
    if any_meta(count, prob):
        raise no_meta_kernel("binomial")
    with lock:
        values = sample(kernels.binomial, generator, count._array, prob._array)
    return apply(REGISTRY["_not_differentiable"], [count, prob], {"value": values, "of": "binomial"})


def _generator_and_array(generator: Generator | None, input: Tensor) -> tuple[Generator | None, np.ndarray]:
    """The generator that draws for a tensor, None for the CPU's default one, and its elements."""
    if device_memory.count:
        generator = handlers.generator_of(generator, input)
    return generator, own_part(input)._array


def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of gamma distributions of the concentrations `input` and rate 1, differentiable by `input`.

    >>> import flambeau as torch
    >>> torch._standard_gamma(torch.zeros(2)) > 0
    tensor([True, True])
    """
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda alpha: _standard_gamma(alpha, generator), [input])
    with lock:
        values = input._array.copy() if is_meta(input) else sample(
            kernels.standard_gamma, *_generator_and_array(generator, input))
    return apply(REGISTRY["_standard_gamma"], [input], {"values": values})


def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Samples of Dirichlet distributions of the concentrations `input`, (..., k).

    >>> import flambeau as torch
    >>> torch._sample_dirichlet(torch.ones(1))
    tensor([1.0000])
    """
    if special[0] and in_vmap():
        return draw_in_vmap_from(lambda alpha: _sample_dirichlet(alpha, generator), [input])
    if is_meta(input):
        raise no_meta_kernel("_sample_dirichlet")
    with lock:
        values = sample(kernels.dirichlet, *_generator_and_array(generator, input))
    return apply(REGISTRY["_not_differentiable"], [input], {"value": values, "of": "_sample_dirichlet"})


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
                out: Any = None) -> Tensor:
    """Indices sampled with the weights of each row of `input`, (n) or (m, n).

    >>> import flambeau as torch
    >>> torch.multinomial(torch.tensor([0., 1.]), 1)
    tensor([1])
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{input.dtype.scalar_name}")
    if not 1 <= input._array.ndim <= 2 and not (special[0] and in_vmap()):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    if special[0] and in_vmap():
        def rows(weights: Tensor) -> Tensor:
            *front, n = weights._array.shape
            matrix = weights.reshape(prod(tuple(front)), n)
            indices = multinomial(matrix, num_samples, replacement, generator=generator)
            return indices.reshape(*front, num_samples)

        return draw_in_vmap_from(rows, [input], out)
    if special[0] and getattr(type(input), "_has_parts", False):
        drawn: Tensor = input._by_rows(
            lambda rows: multinomial(rows, num_samples, replacement, generator=generator), num_samples)
        return drawn
    with lock:
        result = meta_array((*input._array.shape[:-1], num_samples), dtypes.int64.numpy) if is_meta(input) else sample(
            kernels.multinomial, generator, input._array, num_samples, replacement)
    return wrap_sample(result, out, None, False)


METHODS: dict[str, Any] = {"bernoulli": bernoulli, "bernoulli_": bernoulli_, "multinomial": multinomial}
