"""`grad`, `vjp`, `jvp` and `linearize`: derivatives of functions, as functions.

Reverse mode builds an ordinary graph below fresh inputs; a gradient that somebody outside
differentiates too keeps the graph of its own computation, so the transforms nest. Forward
mode opens a level of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.dispatch.batched_tensor import BatchedTensor, expanded, running
from .._tensor.dispatch.dual_tensors import dual, parts_of
from .._tensor.dispatch.forward_mode import close_level, open_level, ungraphed
from .._tensor.tensor import as_leaf
from ..engine.api import grad as gradients
from ..engine.execution.accumulate_grad import AccumulateGrad
from ..engine.grad_mode import enable_grad, grad_mode
from ..engine.nodes.node import next_number
from ..engine.saved.saved_tensors import disable_hooks, disabled_message
from ..modes import Transform, forward_mode, transforming, transforms
from ..trees import tree_flatten, tree_leaves, tree_map

Argnums = int | tuple[int, ...]


class transform:
    """A block that runs a function of `args` under a transform ("grad", "jvp", "vmap" or "functionalize").

    Tensors made in it can be told from others; writes to others, and what only makes sense outside, are refused.
    """

    __slots__ = ("_before", "_token", "frame")

    def __init__(self, kind: str, *args: Any) -> None:
        frame = self.frame = Transform(kind, next_number())
        for tree in args:
            for x in tree_leaves(tree):
                if isinstance(x, Tensor):
                    frame.inputs.add(id(x))
                    frame.inputs.add(id(x._base))

    def __enter__(self) -> Transform:
        if self.frame.kind == "grad":
            before = self._before = disabled_message()
            try:
                disable_hooks(_NO_HOOKS)
            except RuntimeError:
                disable_hooks(before, fail_if_on=False)
                raise
        self._token = transforming.set((*transforming.get(), self.frame))
        transforms[0] += 1
        return self.frame

    def __exit__(self, *exception: object) -> None:
        transforms[0] -= 1
        transforming.reset(self._token)
        if self.frame.kind == "grad":
            disable_hooks(self._before, fail_if_on=False)


_NO_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with "
             "your use case.")


# ----- arguments -----

def checked_argnums(argnums: Argnums, count: int) -> None:
    """Refuse argument numbers that are none.

    Raises:
        RuntimeError: not an int or a tuple of ints, out of range, or given twice.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if not all(isinstance(i, int) for i in numbers):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for i in numbers:
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    if len({i % count for i in numbers}) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def lent(args: Any) -> Any:
    """The arguments as a function under a transform gets them: it may write to them, but leaves no history on them."""
    if not args:
        return args

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor) or x._requires_grad:
            return x
        alias = x.detach()
        if x._tangents:
            alias._tangents = x._tangents
        return alias

    return tree_map(one, args)


def selected(argnums: Argnums, args: Sequence[Any]) -> Any:
    """The arguments to differentiate by."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def replaced(argnums: Argnums, args: Sequence[Any], value: Any) -> list[Any]:
    """The arguments, with others where it is differentiated."""
    found = list(args)
    if isinstance(argnums, int):
        found[argnums] = value
    else:
        for i, v in zip(argnums, value, strict=True):
            found[i] = v
    return found


def tensors_only(leaves: Sequence[Any]) -> None:
    """Refuse inputs that are no tensors.

    Raises:
        ValueError: one is something else.
    """
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")


def outputs_only(leaves: Sequence[Any], what: str) -> None:
    """Refuse results that are no tensors.

    Raises:
        RuntimeError: one is something else.
    """
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")


def with_aux(output: Any, what: str) -> tuple[Any, Any]:
    """A function's result and what it returned beside.

    Raises:
        RuntimeError: it did not return two things.
    """
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def released(aux: Any, outer: bool) -> Any:
    """What a function returned beside its result, outside the transform.

    Raises:
        RuntimeError: a leaf of it is no tensor.
    """
    def one(x: Any) -> Any:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return x if outer else ungraphed(x)

    return tree_map(one, aux)


# ----- reverse mode -----

def fresh(x: Tensor, frame: Transform) -> Any:
    """`x` as the input of a graph of its own, still joined to the graph it came from."""
    with enable_grad():
        if running():  # each element of a batch wants a gradient of its own
            x = expanded(x, running())
        made = fn.view_as(x, x) if x._requires_grad else as_leaf(ungraphed(x))
    frame.inputs.add(id(made._base))
    return made


def reaches_outside(outputs: Sequence[Any], inner: Sequence[Tensor]) -> bool:
    """Whether the graph of the outputs goes on beyond the inputs: somebody outside differentiates too."""
    inside = set()
    for x in inner:
        value = x._value if type(x) is BatchedTensor else x
        if value._node is not None:
            return True  # a view of what has a history
        reference = value._accumulator
        inside.add(None if reference is None else reference())
    found = [o._node for o in outputs if o._node is not None]
    for o in outputs:
        if o._node is None and o._requires_grad and not any(o is x for x in inner):
            return True
    seen = set(found)
    while found:
        node = found.pop()
        if isinstance(node, AccumulateGrad):
            if node not in inside:
                return True
            continue
        for other in node.edges:
            if other is not None and other not in seen:
                seen.add(other)
                found.append(other)
    return False


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """A function that gives `func`'s gradient with respect to `argnums`, and its value.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad_and_value.html

    Args:
        func: returns a scalar tensor, or (tensor, auxiliary tensors) if `has_aux`.
        argnums: the number, or numbers, of the arguments to differentiate by.

    Raises:
        RuntimeError: `func` returns something else; `argnums` are no arguments.

    >>> import flambeau as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        checked_argnums(argnums, len(args))
        leaves, spec = tree_flatten(selected(argnums, args))
        tensors_only(leaves)
        recording = grad_mode.get()
        aux = None
        with enable_grad(), transform("grad", args, kwargs) as frame:
            inner = [fresh(x, frame) for x in leaves]
            output = func(*replaced(argnums, lent(args), spec.build(inner)), **lent(kwargs))
            if has_aux:
                output, aux = with_aux(output, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                                   f"{type(output)}")
            if output._array.ndim:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                                   f"with {output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                                   "instead?")
            outer = recording and reaches_outside([output], inner)
            found: Sequence[Any] = (None,) * len(inner)
            if output._requires_grad:
                found = gradients(output, inner, create_graph=outer, allow_unused=True)
        parts = spec.build(_gradient(x, g, outer) for x, g in zip(inner, found, strict=True))
        value = output if outer else ungraphed(output)
        return (parts, (value, released(aux, outer))) if has_aux else (parts, value)

    return wrapper


def _gradient(x: Tensor, g: Tensor | None, outer: bool) -> Any:
    if g is None:
        return fn.zeros_like(x.detach())
    return g if outer else ungraphed(g)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """A function that gives `func`'s gradient with respect to `argnums`.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html

    Args:
        func: returns a scalar tensor, or (tensor, auxiliary tensors) if `has_aux`.
        argnums: the number, or numbers, of the arguments to differentiate by.

    Raises:
        RuntimeError: `func` returns something else; `argnums` are no arguments.

    >>> import flambeau as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found = both(*args, **kwargs)
        return (found[0], found[1][1]) if has_aux else found[0]

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`func`'s value at `primals`, and the function that maps cotangents of it to cotangents of them.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html

    Raises:
        RuntimeError: `func` returns something else than tensors; cotangents are not shaped as its result.

    >>> import flambeau as torch
    >>> value, pull_back = torch.func.vjp(torch.sin, torch.tensor(0.))
    >>> pull_back(torch.tensor(2.))
    (tensor(2.),)
    """
    return pulled_back(func, primals, primals, has_aux)


def pulled_back(func: Callable[..., Any], primals: tuple[Any, ...], args: Any, has_aux: bool = False) -> Any:
    """`vjp`; `args` are all the tensors that `func` was given, among them some that it is not differentiated by."""
    leaves, spec = tree_flatten(primals)
    tensors_only(leaves)
    recording = grad_mode.get()
    aux = None
    with enable_grad(), transform("grad", args) as frame:
        inner = [fresh(x, frame) for x in leaves]
        output = func(*spec.build(inner))
    if has_aux:
        output, aux = with_aux(output, "vjp(f, *primals)")
    outputs, out_spec = tree_flatten(output)
    outputs_only(outputs, "vjp(f, *primals)")
    for o in outputs:
        if not (o.is_floating_point() or o.is_complex()):
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                               f"with dtype {o.dtype}")
    outside = reaches_outside(outputs, inner)

    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if create_graph is None:
            create_graph = grad_mode.get()
        flat, given = tree_flatten(cotangents)
        if given != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               f"to the function. cotangents: {given.drawn()}, primal output: {out_spec.drawn()}")
        keep = create_graph and (outside or any(g._requires_grad for g in flat))
        live = [(o, g) for o, g in zip(outputs, flat, strict=True) if o._requires_grad]
        found: Sequence[Any] = (None,) * len(inner)
        if live:
            with enable_grad():
                found = gradients([o for o, _ in live], inner, [g for _, g in live], retain_graph=retain_graph,
                                  create_graph=keep, allow_unused=True)
        return spec.build(_gradient(x, g, keep) for x, g in zip(inner, found, strict=True))

    def of_one_argument(*cotangents: Any, **options: Any) -> Any:
        return pull_back(cotangents[0] if len(cotangents) == 1 else cotangents, **options)

    outer = recording and outside
    value = out_spec.build(o if outer else ungraphed(o) for o in outputs)
    if has_aux:
        return value, of_one_argument, released(aux, outer)
    return value, of_one_argument


# ----- forward mode -----

def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """`func`'s value at `primals` and its derivative in the direction `tangents`, in one forward pass.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html

    Raises:
        RuntimeError: primals and tangents are not tuples alike; `func` returns something else than tensors.

    >>> import flambeau as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    return pushed_forward(func, primals, tangents, primals, strict, has_aux)


def pushed_forward(func: Callable[..., Any], primals: Any, tangents: Any, args: Any, strict: bool = False,
                   has_aux: bool = False) -> Any:
    """`jvp`; `args` are all the tensors that `func` was given, among them some that it is not differentiated by."""
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = tree_flatten(primals)
    directions, given = tree_flatten(tangents)
    if spec != given:
        raise RuntimeError(f"{what}: Expected primals and tangents to have the same python structure. For example, if "
                           "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           f"{spec} and tangents with structure {given}")
    if not leaves:
        raise RuntimeError(f"{what}: Expected primals to contain at least one Tensor.")
    for name, given_leaves in (("primals", leaves), ("tangents", directions)):
        for x in given_leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{what}: Expected {name} to only contain Tensors, got {type(x)}")
    for x, t in zip(leaves, directions, strict=True):
        if x._array.shape != t._array.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                               f"Tensor, this is not supported. Tensor is of size {list(x.shape)} while the given "
                               f"forward gradient is of size {list(t.shape)}.")
    aux = None
    level = open_level()
    enabled = forward_mode.set(True)
    try:
        with transform("jvp", args) as frame:
            duals = [dual(x, t, level) for x, t in zip(leaves, directions, strict=True)]
            frame.inputs.update(id(d._base) for d in duals)
            output = func(*spec.build(duals))
        if has_aux:
            output, aux = with_aux(output, what)
        outputs, out_spec = tree_flatten(output)
        outputs_only(outputs, what)
        values, pushed = [], []
        for o in outputs:
            primal, tangent = parts_of(o, level)
            if tangent is None and strict:
                raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                                   "inputs. This is not allowed with strict=True.")
            values.append(primal)
            pushed.append(fn.zeros_like(primal) if tangent is None else tangent)
        if has_aux:
            aux = tree_map(lambda x: parts_of(x, level).primal if isinstance(x, Tensor) else _refused(x), aux)
    finally:
        forward_mode.reset(enabled)
        close_level(level)
    if has_aux:
        return out_spec.build(values), out_spec.build(pushed), aux
    return out_spec.build(values), out_spec.build(pushed)


def _refused(x: Any) -> Any:
    raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`func`'s value at `primals`, and its derivative there: a linear function of tangents that can be used often.

    `func` is run once. Its derivative J is kept as the transpose of u -> J^T u, which is linear in u.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.linearize.html

    Raises:
        RuntimeError: `func` returns something else than tensors; the tangents are not like the primals.

    >>> import flambeau as torch
    >>> value, push = torch.func.linearize(torch.sin, torch.tensor(0.))
    >>> value, push(torch.tensor(2.))
    (tensor(0.), tensor(2.))
    """
    leaves, spec = tree_flatten(primals)
    tensors_only(leaves)
    recording = grad_mode.get()
    with enable_grad(), transform("grad") as frame:
        inner = [fresh(x, frame) for x in leaves]
        output = func(*spec.build(inner))
        outputs, out_spec = tree_flatten(output)
        outputs_only(outputs, "linearize(f, *primals)")
        live = [o for o in outputs if o._requires_grad]
        cotangents = [as_leaf(fn.zeros_like(o.detach())) for o in live]
        back: Sequence[Any] = (None,) * len(inner)
        if live:
            back = gradients(live, inner, cotangents, create_graph=True, allow_unused=True)
    kept = [(i, b) for i, b in enumerate(back) if b is not None and b._requires_grad]
    outer = recording and reaches_outside(outputs, inner)

    def push(*tangents: Any) -> Any:
        flat, given = tree_flatten(tangents)
        if given != spec:
            raise RuntimeError(f"Expected the tangents {given} to have the same argspec as the primals {spec}")
        for i, (t, x) in enumerate(zip(flat, leaves, strict=True)):
            if t.shape != x.shape:
                raise RuntimeError(f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape "
                                   f"{x.shape} of the corresponding primal.")
            if t.dtype != x.dtype:
                raise RuntimeError(f"tangent:{i} with dtype {t.dtype} in flattened pytree doesn't match the dtype "
                                   f"{x.dtype} of the corresponding primal.")
        create = grad_mode.get() and (outer or any(t._requires_grad for t in flat))
        found: Sequence[Any] = (None,) * len(cotangents)
        if kept:
            with enable_grad():
                found = gradients([b for _, b in kept], cotangents, [flat[i] for i, _ in kept], retain_graph=True,
                                  create_graph=create, allow_unused=True)
        pushed = iter(found)
        results = []
        for o in outputs:
            t = next(pushed) if o._requires_grad else None
            results.append(fn.zeros_like(o.detach()) if t is None else t if create else ungraphed(t))
        return out_spec.build(results)

    return out_spec.build(o if outer else ungraphed(o) for o in outputs), push


__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]
