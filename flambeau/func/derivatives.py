"""`grad`, `vjp`, `jvp` and `linearize`: function transforms for derivatives.

Reverse mode records a graph above new inputs. If an outer transform or `backward` differentiates the result, the
gradient's computation is recorded, too, so transforms nest. Forward mode opens a new dual level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.dispatch.batched_tensor import BatchedTensor, active_levels, add_levels, repeated
from .._tensor.dispatch.dual_tensors import make_dual_at_level, unpack_dual_at_level
from .._tensor.dispatch.forward_mode import close_level, detach_keeping_tangents, open_level
from .._tensor.fastpath.levels import beside_levels
from .._tensor.shape.indexing import is_expanded
from .._tensor.tensor import set_requires_grad
from ..engine.api import grad as gradients
from ..engine.execution.accumulate_grad import AccumulateGrad
from ..engine.grad_mode import enable_grad, grad_mode, inference, inference_mode, no_grad
from ..engine.nodes.node import next_number
from ..engine.saved.saved_tensors import disable_hooks, disabled_message
from ..modes import Transform, active_transforms, forward_mode, result_modes_used, transform_stack
from ..trees import tree_flatten, tree_leaves, tree_map

Argnums = int | tuple[int, ...]


class transform:
    """A block that runs a function of `args` under a transform ("grad", "jvp", "vmap" or "functionalize").

    Tensors created in it record its depth; writes to captured tensors and `backward` raise an error.
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
        self._token = transform_stack.set((*transform_stack.get(), self.frame))
        result_modes_used[0] = True
        active_transforms[0] += 1
        return self.frame

    def __exit__(self, *exception: object) -> None:
        active_transforms[0] -= 1
        transform_stack.reset(self._token)
        if self.frame.kind == "grad":
            disable_hooks(self._before, fail_if_on=False)


_NO_HOOKS = ("torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with "
             "your use case.")


def outside_inference_mode(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a transformed function without inference mode, which derivatives do not know: its results are no inference
    tensors either."""
    def normal(x: Any) -> Any:
        return x.clone() if isinstance(x, Tensor) and x._inference else x

    with inference_mode(False), no_grad():
        return function(*tree_map(normal, args), **tree_map(normal, kwargs))


# ----- arguments -----

def check_argnums(argnums: Argnums, count: int) -> None:
    """Check argument indices.

    Raises:
        RuntimeError: not an int or a tuple of ints, out of range, or repeated.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for i in numbers:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    if len({i % count for i in numbers}) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(i % count for i in numbers)}")


def alias_arguments(args: Any) -> Any:
    """Aliases of the arguments: writes of the function reach the memory, but record no history on the originals."""
    return tree_map(_alias_of, args) if args else args


def arguments_with(argnums: Argnums, args: Sequence[Any], value: Any) -> list[Any]:
    """The arguments of the function: `value` for those at `argnums`, and aliases of the others."""
    count = len(args)
    chosen = {argnums % count: value} if isinstance(argnums, int) else {
        i % count: v for i, v in zip(argnums, value, strict=True)}
    return [chosen[i] if i in chosen else _alias_of(x) if isinstance(x, Tensor) else tree_map(_alias_of, x)
            for i, x in enumerate(args)]


def _alias_of(x: Any) -> Any:
    if not isinstance(x, Tensor) or x._requires_grad:
        return x
    alias = x.detach()
    if x._tangents:
        alias._tangents = x._tangents
    return alias


def select_arguments(argnums: Argnums, args: Sequence[Any]) -> Any:
    """The arguments to differentiate by."""
    return args[argnums] if isinstance(argnums, int) else tuple(args[i] for i in argnums)


def require_tensors(leaves: Sequence[Any]) -> None:
    """Check that inputs are tensors.

    Raises:
        ValueError: one is not.
    """
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")


def require_tensor_outputs(leaves: Sequence[Any], what: str) -> None:
    """Check that results are tensors.

    Raises:
        RuntimeError: one is not.
    """
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")


def split_aux(output: Any, what: str) -> tuple[Any, Any]:
    """A function's output and its auxiliary output.

    Raises:
        RuntimeError: it did not return a pair.
    """
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def detach_aux(aux: Any, outer: bool) -> Any:
    """The auxiliary output outside the transform, detached unless it has an outer graph.

    Raises:
        RuntimeError: a leaf of it is not a tensor.
    """
    def detach(x: Any) -> Any:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return x if outer else detach_keeping_tangents(x)

    return tree_map(detach, aux)


# ----- reverse mode -----

def make_grad_input(x: Tensor, frame: Transform) -> Any:
    """The input of a new graph for `x`, connected to the outer graph of `x` if it has one; grad mode is on."""
    if x._array.dtype.kind not in "fcV":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    levels = active_levels()
    if levels and x.__class__ is not BatchedTensor and not x._requires_grad and beside_levels(x):
        inner = set_requires_grad(repeated(x, levels))
    else:
        if levels:  # each element of a batch has its own gradient
            x = add_levels(x, levels)
        inner = fn.view_as(x, x) if x._requires_grad else set_requires_grad(detach_keeping_tangents(x))
    frame.inputs.add(id(inner._base))
    return inner


def has_outer_graph(outputs: Sequence[Any], inner: Sequence[Tensor]) -> bool:
    """Whether the graph of the outputs extends beyond the inner inputs, so that it is differentiated outside, too."""
    inside = set()
    for x in inner:
        value = x._value if type(x) is BatchedTensor else x
        if value._node is not None:
            return True  # a view of a tensor with a history
        reference = value._accumulator
        inside.add(None if reference is None else reference())
    pending = [o._node for o in outputs if o._node is not None]
    for o in outputs:
        if o._node is None and o._requires_grad and not any(o is x for x in inner):
            return True
    seen = set(pending)
    while pending:
        node = pending.pop()
        if isinstance(node, AccumulateGrad):
            if node not in inside:
                return True
            continue
        n = node.n_edges
        edges = (node.edge0,) if n == 1 else (node.edge0, node.edge1) if n == 2 else node.edges
        for other in edges:
            if other is not None and other not in seen:
                seen.add(other)
                pending.append(other)
    return False


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """A function that computes `func`'s gradient with respect to `argnums`, and its value.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad_and_value.html

    Args:
        func: returns a scalar tensor, or (scalar tensor, auxiliary tensors) if `has_aux`.
        argnums: the index, or a tuple of indices, of the arguments to differentiate by.
        has_aux: whether `func` returns auxiliary tensors, which are returned as they are.

    Raises:
        RuntimeError: `func` returns anything else; `argnums` is out of range.

    >>> import flambeau as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if inference.get():
            return outside_inference_mode(wrapper, *args, **kwargs)
        check_argnums(argnums, len(args))
        leaves, spec = tree_flatten(select_arguments(argnums, args))
        require_tensors(leaves)
        grad_enabled = grad_mode.get()
        aux = None
        with enable_grad(), transform("grad", args, kwargs) as frame:
            inner = [make_grad_input(x, frame) for x in leaves]
            output = func(*arguments_with(argnums, args, spec.unflatten(inner)),
                          **alias_arguments(kwargs))
            if has_aux:
                output, aux = split_aux(output, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got "
                                   f"{type(output)}")
            if output._array.ndim:
                raise RuntimeError("grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
                                   f"with {output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs "
                                   "instead?")
            outer = grad_enabled and has_outer_graph([output], inner)
            grads: Sequence[Any] = (None,) * len(inner)
            if output._requires_grad:
                grads = gradients(output, inner, create_graph=outer, allow_unused=True)
        result = spec.unflatten([g if g is not None and (outer or not g._requires_grad) else _gradient(x, g, outer)
                                 for x, g in zip(inner, grads, strict=True)])
        value = output if outer else detach_keeping_tangents(output)
        return (result, (value, detach_aux(aux, outer))) if has_aux else (result, value)

    return wrapper


def _gradient(x: Tensor, g: Tensor | None, outer: bool) -> Any:
    if g is None:
        return fn.zeros_like(x.detach())
    return g if outer else detach_keeping_tangents(g)


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Any:
    """A function that computes `func`'s gradient with respect to `argnums`.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html

    Args:
        func: returns a scalar tensor, or (scalar tensor, auxiliary tensors) if `has_aux`.
        argnums: the index, or a tuple of indices, of the arguments to differentiate by.
        has_aux: whether `func` returns auxiliary tensors, which are returned as they are.

    Raises:
        RuntimeError: `func` returns anything else; `argnums` is out of range.

    >>> import flambeau as torch
    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """
    transformed = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = transformed(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`func`'s value at `primals`, and the function that maps output cotangents to input cotangents.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html

    Raises:
        RuntimeError: `func` does not return tensors; the cotangents' structure or shapes differ from its result's.

    >>> import flambeau as torch
    >>> value, pull_back = torch.func.vjp(torch.sin, torch.tensor(0.))
    >>> pull_back(torch.tensor(2.))
    (tensor(2.),)
    """
    return vjp_of(func, primals, primals, has_aux)


def vjp_of(func: Callable[..., Any], primals: tuple[Any, ...], args: Any, has_aux: bool = False) -> Any:
    """`vjp`; `args` are all arguments of `func`, including those that it is not differentiated by."""
    if inference.get():
        return outside_inference_mode(vjp_of, func, primals, args, has_aux)
    leaves, spec = tree_flatten(primals)
    require_tensors(leaves)
    grad_enabled = grad_mode.get()
    aux = None
    with enable_grad(), transform("grad", args) as frame:
        inner = [make_grad_input(x, frame) for x in leaves]
        output = func(*spec.unflatten(inner))
    if has_aux:
        output, aux = split_aux(output, "vjp(f, *primals)")
    outputs, out_spec = tree_flatten(output)
    require_tensor_outputs(outputs, "vjp(f, *primals)")
    for o in outputs:
        if not (o.is_floating_point() or o.is_complex()):
            raise RuntimeError("vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor "
                               f"with dtype {o.dtype}")
    outside = has_outer_graph(outputs, inner)

    def wrapper(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if create_graph is None:
            create_graph = grad_mode.get()
        flat, structure = tree_flatten(cotangents)
        if structure != out_spec:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                               "to the function. cotangents: "
                               f"{structure.describe()}, primal output: {out_spec.describe()}")
        keep = create_graph and (outside or any(g._requires_grad for g in flat))
        live = [(o, g) for o, g in zip(outputs, flat, strict=True) if o._requires_grad]
        grads: Sequence[Any] = (None,) * len(inner)
        if live:
            with enable_grad():
                grads = gradients([o for o, _ in live], inner, [g for _, g in live], retain_graph=retain_graph,
                                  create_graph=keep, allow_unused=True)
        return spec.unflatten(_gradient(x, g, keep) for x, g in zip(inner, grads, strict=True))

    outer = grad_enabled and outside
    value = out_spec.unflatten(o if outer else detach_keeping_tangents(o) for o in outputs)
    if has_aux:
        return value, wrapper, detach_aux(aux, outer)
    return value, wrapper


# ----- forward mode -----

def jvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """`func`'s value at `primals` and its derivative in the direction `tangents`, in one forward pass.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html

    Raises:
        RuntimeError: primals and tangents are not tuples of the same structure and shapes; `func` does not return
            tensors; under `strict`, an output does not depend on the inputs.

    >>> import flambeau as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    return jvp_of(func, primals, tangents, primals, strict, has_aux)


def _have_one_layout(x: Tensor, t: Tensor) -> bool:
    """Whether a tangent has its primal's strides; else PyTorch copies it to memory with the primal's strides."""
    return x._array.strides == t._array.strides


def jvp_of(func: Callable[..., Any], primals: Any, tangents: Any, args: Any, strict: bool = False,
                   has_aux: bool = False) -> Any:
    """`jvp`; `args` are all arguments of `func`, including those that it is not differentiated by."""
    if inference.get():
        return outside_inference_mode(jvp_of, func, primals, tangents, args, strict, has_aux)
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, spec = tree_flatten(primals)
    directions, structure = tree_flatten(tangents)
    if spec != structure:
        raise RuntimeError(f"{what}: Expected primals and tangents to have the same python structure. For example, if "
                           "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
                           f"{spec} and tangents with structure {structure}")
    if not leaves:
        raise RuntimeError(f"{what}: Expected primals to contain at least one Tensor.")
    for name, tensors in (("primals", leaves), ("tangents", directions)):
        for x in tensors:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{what}: Expected {name} to only contain Tensors, got {type(x)}")
    for x, t in zip(leaves, directions, strict=True):
        if x._array.dtype.kind not in "fcV":
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
        if x._array.shape != t._array.shape:
            raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original "
                               f"Tensor, this is not supported. Tensor is of size {list(x.shape)} while the given "
                               f"forward gradient is of size {list(t.shape)}.")
        if is_expanded(x._array) and not _have_one_layout(x, t):
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a "
                               "single memory location. Please clone() the tensor before performing the operation.")
    aux = None
    level = open_level()
    enabled = forward_mode.set(True)
    try:
        with transform("jvp", args) as frame:
            duals = [make_dual_at_level(x, t, level) for x, t in zip(leaves, directions, strict=True)]
            frame.inputs.update(id(d._base) for d in duals)
            output = func(*spec.unflatten(duals))
        if has_aux:
            output, aux = split_aux(output, what)
        outputs, out_spec = tree_flatten(output)
        require_tensor_outputs(outputs, what)
        values, pushed = [], []
        for o in outputs:
            primal, tangent = unpack_dual_at_level(o, level)
            if tangent is None and strict:
                raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the "
                                   "inputs. This is not allowed with strict=True.")
            values.append(primal)
            pushed.append(fn.zeros_like(primal) if tangent is None else tangent)
        if has_aux:
            aux = tree_map(lambda x: unpack_dual_at_level(x, level).primal if isinstance(x, Tensor)
                           else _raise_unsupported(x), aux)
    finally:
        forward_mode.reset(enabled)
        close_level(level)
    if has_aux:
        return out_spec.unflatten(values), out_spec.unflatten(pushed), aux
    return out_spec.unflatten(values), out_spec.unflatten(pushed)


def _raise_unsupported(x: Any) -> Any:
    raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`func`'s value at `primals`, and its derivative there: a linear function of tangents.

    `func` runs once. Its derivative J is stored as the transpose of u -> J^T u, which is linear in u.
    See https://docs.pytorch.org/docs/stable/generated/torch.func.linearize.html

    Raises:
        RuntimeError: `func` does not return tensors; the tangents' structure, shapes or dtypes differ from those of the
            primals.

    >>> import flambeau as torch
    >>> value, push = torch.func.linearize(torch.sin, torch.tensor(0.))
    >>> value, push(torch.tensor(2.))
    (tensor(0.), tensor(2.))
    """
    if inference.get():
        return outside_inference_mode(linearize, func, *primals)
    leaves, spec = tree_flatten(primals)
    require_tensors(leaves)
    for x in leaves:
        if x._array.dtype.kind not in "fcV":
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    grad_enabled = grad_mode.get()
    with enable_grad(), transform("grad") as frame:
        inner = [make_grad_input(x, frame) for x in leaves]
        output = func(*spec.unflatten(inner))
        outputs, out_spec = tree_flatten(output)
        require_tensor_outputs(outputs, "linearize(f, *primals)")
        live = [o for o in outputs if o._requires_grad]
        cotangents = [set_requires_grad(fn.zeros_like(o.detach())) for o in live]
        back: Sequence[Any] = (None,) * len(inner)
        if live:
            back = gradients(live, inner, cotangents, create_graph=True, allow_unused=True)
    differentiable = [(i, b) for i, b in enumerate(back) if b is not None and b._requires_grad]
    outer = grad_enabled and has_outer_graph(outputs, inner)

    def push(*tangents: Any) -> Any:
        flat, structure = tree_flatten(tangents)
        if structure != spec:
            raise RuntimeError(f"Expected the tangents {structure} to have the same argspec as the primals {spec}")
        for i, (t, x) in enumerate(zip(flat, leaves, strict=True)):
            if t.shape != x.shape:
                raise RuntimeError(f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape "
                                   f"{x.shape} of the corresponding primal.")
            if t.dtype != x.dtype:
                raise RuntimeError(f"tangent:{i} with dtype {t.dtype} in flattened pytree doesn't match the dtype "
                                   f"{x.dtype} of the corresponding primal.")
        create = grad_mode.get() and (outer or any(t._requires_grad for t in flat))
        grads: Sequence[Any] = (None,) * len(cotangents)
        if differentiable:
            with enable_grad():
                grads = gradients([b for _, b in differentiable], cotangents, [flat[i] for i, _ in differentiable],
                                  retain_graph=True, create_graph=create, allow_unused=True)
        pushed = iter(grads)
        results = []
        for o in outputs:
            t = next(pushed) if o._requires_grad else None
            results.append(fn.zeros_like(o.detach()) if t is None else t if create else detach_keeping_tangents(t))
        return out_spec.unflatten(results)

    return out_spec.unflatten(o if outer else detach_keeping_tangents(o) for o in outputs), push


__all__ = ["grad", "grad_and_value", "jvp", "linearize", "vjp"]
