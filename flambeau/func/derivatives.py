"""`grad`, `vjp` and `jvp`: derivatives of functions, as functions.

Reverse mode builds an ordinary graph below fresh inputs; a gradient that is itself to be
differentiated keeps the graph of its own computation, so the transforms nest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.interface import grad as gradients
from ..autograd.modes import enable_grad, grad_mode
from ..modes import special
from ..tensor import Tensor
from ..tensor import functions as fn
from ..tensor.forward_mode import dual_level, make_dual, ungraphed, unpack_dual
from .trees import flatten, tensors_only


def fresh(x: Tensor) -> Tensor:
    """`x` as the input of a graph of its own, still joined to the graph it came from."""
    with enable_grad():
        return fn.view_as(x, x) if x._requires_grad else ungraphed(x).requires_grad_()


def tracked(inputs: list[Tensor]) -> bool:
    """Whether somebody outside differentiates too, so that gradients must keep their graph."""
    return grad_mode.get() and any(x._requires_grad for x in inputs)


def _selected(argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> Any:
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def _replaced(argnums: int | tuple[int, ...], args: tuple[Any, ...], value: Any) -> list[Any]:
    found = list(args)
    if isinstance(argnums, int):
        found[argnums] = value
    else:
        for i, v in zip(argnums, value, strict=True):
            found[i] = v
    return found


def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Any:
    """A function that gives `func`'s gradient with respect to `argnums`, and its value.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad_and_value.html

    >>> import flambeau as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, build = flatten(_selected(argnums, args))
        tensors_only(leaves, "grad")
        outer = tracked(leaves)
        inner = [fresh(x) for x in leaves]
        with enable_grad():
            output = func(*_replaced(argnums, args, build(inner)), **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError("grad_and_value(f)(*args): output of function f should be a tuple: (output, "
                                       "aux) if has_aux is True")
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a tensor, got "
                                   f"{type(output)}")
            if output._array.ndim:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor "
                                   f"with {output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                                   "instead?")
            if output._requires_grad:
                found = gradients(output, inner, create_graph=True, allow_unused=True)
            else:
                found = (None,) * len(inner)
        parts = [fn.zeros_like(x) if g is None else g if outer else ungraphed(g)
                 for x, g in zip(leaves, found, strict=True)]
        value = output if outer else ungraphed(output)
        return (build(parts), (value, aux)) if has_aux else (build(parts), value)

    return wrapper


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Any:
    """A function that gives `func`'s gradient with respect to `argnums`.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html

    >>> import flambeau as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = both(*args, **kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`func`'s value at `primals`, and the function that maps cotangents of it to cotangents of them.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html

    >>> import flambeau as torch
    >>> value, pull_back = torch.func.vjp(torch.sin, torch.tensor(0.))
    >>> pull_back(torch.tensor(2.))
    (tensor(2.),)
    """
    leaves, build = flatten(primals)
    tensors_only(leaves, "vjp(f, *primals)")
    outer = tracked(leaves)
    inner = [fresh(x) for x in leaves]
    with enable_grad():
        output = func(*build(inner))
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError("vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is "
                               "True")
        output, aux = output
    outputs, rebuild = flatten(output)
    tensors_only(outputs, "vjp(f, *primals)")

    def pull_back(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 and not isinstance(output, tuple) else cotangents
        if len(cotangents) == 1 and isinstance(cotangents[0], tuple) and isinstance(output, tuple):
            given = cotangents[0]
        flat, _ = flatten(given)
        if len(flat) != len(outputs):
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               "to the function.")
        keep = grad_mode.get() and (outer or any(isinstance(g, Tensor) and g._requires_grad for g in flat))
        live = [(o, g) for o, g in zip(outputs, flat, strict=True) if o._requires_grad]
        if not live:
            return build([fn.zeros_like(x) for x in leaves])
        with enable_grad():
            found = gradients([o for o, _ in live], inner, [g for _, g in live], retain_graph=True,
                              create_graph=keep or bool(special[0]), allow_unused=True)
        return build([fn.zeros_like(x) if g is None else g if keep else ungraphed(g)
                      for x, g in zip(leaves, found, strict=True)])

    value = rebuild([o if outer else ungraphed(o) for o in outputs])
    return (value, pull_back, aux) if has_aux else (value, pull_back)


def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """`func`'s value at `primals` and its derivative in the direction `tangents`, in one forward pass.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html

    Raises:
        RuntimeError: primals and tangents are not tuples alike.

    >>> import flambeau as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call "
                           "f(*primals).")
    leaves, build = flatten(primals)
    directions, _ = flatten(tangents)
    if len(leaves) != len(directions):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to have the same python "
                           "structure.")
    tensors_only(leaves, "jvp(f, primals, tangents)")
    with dual_level():
        duals = [make_dual(x, t) for x, t in zip(leaves, directions, strict=True)]
        output = func(*build(duals))
        aux = None
        if has_aux:
            output, aux = output
        outputs, rebuild = flatten(output)
        tensors_only(outputs, "jvp(f, primals, tangents)")
        values, pushed = [], []
        for o in outputs:
            primal, tangent = unpack_dual(o)
            if tangent is None and strict:
                raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                                   "inputs. This is not allowed with strict=True.")
            values.append(primal)
            pushed.append(fn.zeros_like(primal) if tangent is None else tangent)
    return (rebuild(values), rebuild(pushed), aux) if has_aux else (rebuild(values), rebuild(pushed))
