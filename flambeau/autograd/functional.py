"""`torch.autograd.functional`: products with and whole Jacobians and Hessians, by double backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..tensor import functions as fn
from .interface import grad
from .modes import enable_grad


def _tuple(x: Any, what: str) -> tuple[bool, tuple[Any, ...]]:
    single = not isinstance(x, tuple)
    values = (x,) if single else x
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            if single:
                raise TypeError(f"The {what} must be either a Tensor or a tuple of Tensors but the given {what} has "
                                f"type {type(v)}.")
            raise TypeError(f"The {what} must be either a Tensor or a tuple of Tensors but the value at index {i} has "
                            f"type {type(v)}.")
    return not single, tuple(values)


def _inputs(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    if create_graph:
        return tuple(fn.view_as(x, x) if x._requires_grad else x.detach().requires_grad_() for x in inputs)
    return tuple(x.detach().requires_grad_() for x in inputs)


def _check_strict(outputs: tuple[Tensor, ...]) -> None:
    for i, o in enumerate(outputs):
        if not o._requires_grad:
            raise RuntimeError(f"Output {i} of the user-provided function does not require gradients. The outputs must "
                               "be computed in a differentiable manner from the input when running in strict mode.")


def _finish(values: tuple[Any, ...], is_tuple: bool, create_graph: bool) -> Any:
    if not create_graph:
        values = tuple(v.detach() if isinstance(v, Tensor) else tuple(w.detach() for w in v) for v in values)
    return values if is_tuple else values[0]


def _gradients(outputs: Any, inputs: tuple[Tensor, ...], cotangents: Any, create_graph: bool,
               strict: str | None = None) -> tuple[Tensor, ...]:
    live = [(o, g) for o, g in zip(outputs, cotangents, strict=True) if o._requires_grad]
    found: Any = (None,) * len(inputs)
    if live:
        found = grad([o for o, _ in live], inputs, [g for _, g in live], retain_graph=True, create_graph=create_graph,
                     allow_unused=True)
    for i, g in enumerate(found):
        if g is None and strict:
            raise RuntimeError(strict.format(i))
    return tuple(fn.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True))


_INDEPENDENT = ("The output of the user-provided function is independent of input {}. This is not allowed in strict "
                "mode.")


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's value and its vector-Jacobian product with `v`.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.vjp.html

    >>> import flambeau as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    with enable_grad():
        is_tuple, given = _tuple(inputs, "inputs given to vjp")
        fresh = _inputs(given, create_graph)
        out_tuple, outputs = _tuple(func(*fresh), "outputs of the user-provided function given to vjp")
        if strict:
            _check_strict(outputs)
        if v is None:
            if len(outputs) != 1 or outputs[0]._array.size != 1:
                raise RuntimeError("The vector v can only be None if the user-provided function returns a single "
                                   "Tensor with a single element.")
            cotangents: tuple[Any, ...] = (fn.ones_like(outputs[0]),)
        else:
            _, cotangents = _tuple(v, "v given to vjp")
            _match(cotangents, outputs)
        found = _gradients(outputs, fresh, cotangents, create_graph, _INDEPENDENT if strict else None)
    return _finish(outputs, out_tuple, create_graph), _finish(found, is_tuple, create_graph)


def _match(v: tuple[Any, ...], wanted: tuple[Tensor, ...]) -> None:
    if len(v) != len(wanted):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(wanted)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, wanted, strict=True)):
        if a._array.shape != b._array.shape:
            prefix = f"Entry {i} in " if len(v) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {b.shape} but got {a.shape}.")


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The function's value and its Jacobian-vector product with `v`, by differentiating the vjp.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jvp.html

    >>> import flambeau as torch
    >>> torch.autograd.functional.jvp(torch.exp, torch.zeros(2), torch.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    with enable_grad():
        _, given = _tuple(inputs, "inputs given to jvp")
        fresh = _inputs(given, create_graph)
        if v is None:
            if len(given) != 1 or given[0]._array.size != 1:
                raise RuntimeError("The vector v can only be None if the input to the user-provided function is a "
                                   "single Tensor with a single element.")
            directions: tuple[Any, ...] = (fn.ones_like(given[0]),)
        else:
            _, directions = _tuple(v, "v given to jvp")
            _match(directions, given)
        out_tuple, outputs = _tuple(func(*fresh), "outputs of the user-provided function given to jvp")
        if strict:
            _check_strict(outputs)
        dummies = tuple(fn.zeros_like(o).requires_grad_() for o in outputs)
        back = _gradients(outputs, fresh, dummies, True, _INDEPENDENT if strict else None)
        found = _gradients(back, dummies, directions, create_graph)
    return _finish(outputs, out_tuple, create_graph), _finish(found, out_tuple, create_graph)


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """The function's Jacobian: [output][input] blocks of shape output.shape + input.shape.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.jacobian.html

    >>> import flambeau as torch
    >>> torch.autograd.functional.jacobian(torch.exp, torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
                             'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
                             'prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError("torch.autograd.functional.jacobian: `create_graph=True` and "
                                      "`strategy=\"forward-mode\"` are not supported together (yet). Please either set "
                                      "`create_graph=False` or `strategy=\"reverse-mode\"`.")
        from ..func.jacobians import jacfwd

        several, given = _tuple(inputs, "inputs given to jacobian")
        found = jacfwd(func, tuple(range(len(given))))(*given)
        if isinstance(found, tuple) and found and isinstance(found[0], tuple):
            return found if several else tuple(row[0] for row in found)
        return found if several else found[0]
    with enable_grad():
        is_tuple, given = _tuple(inputs, "inputs given to jacobian")
        fresh = _inputs(given, create_graph)
        out_tuple, outputs = _tuple(func(*fresh), "outputs of the user-provided function given to jacobian")
        if strict:
            _check_strict(outputs)
        blocks: list[tuple[Tensor, ...]] = []
        for out in outputs:
            rows: list[list[Tensor]] = [[] for _ in fresh]
            flat = out.reshape(-1)
            for k in range(out._array.size):
                found = _gradients((flat[k],), fresh, (fn.ones_like(flat[k]),), create_graph,
                                   _INDEPENDENT if strict else None)
                for row, g in zip(rows, found, strict=True):
                    row.append(g)
            blocks.append(tuple(
                fn.stack(row).reshape(*out.shape, *x.shape) if row else fn.zeros(*out.shape, *x.shape)
                for row, x in zip(rows, fresh, strict=True)))
    if not create_graph:
        blocks = [tuple(b.detach() for b in row) for row in blocks]
    if out_tuple:
        return tuple(row if is_tuple else row[0] for row in blocks)
    return blocks[0] if is_tuple else blocks[0][0]


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """The matrix of second derivatives of a scalar function.

    >>> import flambeau as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    is_tuple, _ = _tuple(inputs, "inputs given to hessian")

    def scalar(*x: Tensor) -> Tensor:
        out = func(*x)
        if not isinstance(out, Tensor):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if out._array.size != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze()

    def gradient(*x: Tensor) -> Any:
        found = jacobian(scalar, x, create_graph=True, strict=strict)
        return found if is_tuple else found[0]

    return jacobian(gradient, inputs, create_graph=create_graph, strict=strict)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A scalar function's value, and the product of `v` with its Hessian."""
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """A scalar function's value, and the product of its Hessian with `v`."""
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")


def _hessian_product(func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> Any:
    with enable_grad():
        is_tuple, given = _tuple(inputs, f"inputs given to {name}")
        fresh = _inputs(given, create_graph)
        if v is None:
            if len(given) != 1 or given[0]._array.size != 1:
                raise RuntimeError("The vector v can only be None if the input to the user-provided function is a "
                                   "single Tensor with a single element.")
            directions: tuple[Any, ...] = (fn.ones_like(given[0]),)
        else:
            _, directions = _tuple(v, f"v given to {name}")
            _match(directions, given)
        out_tuple, outputs = _tuple(func(*fresh), f"outputs of the user-provided function given to {name}")
        if out_tuple or outputs[0]._array.size != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        if strict:
            _check_strict(outputs)
        first = _gradients(outputs, fresh, (fn.ones_like(outputs[0]),), True, _INDEPENDENT if strict else None)
        found = _gradients(first, fresh, directions, create_graph)
    return _finish(outputs, False, create_graph), _finish(found, is_tuple, create_graph)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
