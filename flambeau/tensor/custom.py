"""`autograd.Function`: operators whose forward and backward the user writes.

The context that forward and backward share is the node itself, as in PyTorch: what forward
hangs on `ctx` is found on `y.grad_fn`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.modes import enable_grad, grad_mode, no_grad
from ..autograd.node import FREED_MESSAGE, Node, _modified, _modified_output, _NodeType, layer, next_number
from ..modes import special
from .apply import as_view, gradient_edge
from .inplace import check_writable, rebase
from .tensor import Tensor, wrap, wrap_output


class FunctionCtx:
    """What `forward` tells autograd: what to keep, what it wrote to, what has no gradient."""

    to_save: Sequence[Any]
    dirty_tensors: Sequence[Any]
    non_differentiable: Sequence[Any]
    saved_for_forward: Sequence[Any]

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where they are `ctx.saved_tensors`; their versions are checked then."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where they are `ctx.saved_tensors`."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise TypeError("save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                                "attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs were written to in place; they must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing gradients reach `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


class FunctionNode(Node, FunctionCtx):
    """The node, and context, of one application of a user's Function."""

    runs_undefined = True
    materializes = False  # done here, by the flag the user sets
    _forward_cls: Any = None
    to_save: Sequence[Any] = ()
    dirty_tensors: Sequence[Any] = ()
    non_differentiable: Sequence[Any] = ()
    saved_for_forward: Sequence[Any] = ()
    materialize_grads = True
    needs_input_grad: tuple[bool, ...] = ()
    _saved: Any = ()
    _freed = False
    _metas: tuple[tuple[tuple[int, ...], np.dtype], ...]  # of the outputs: shapes and dtypes
    _live: list[bool]  # which outputs have a gradient
    _n_args: int
    _positions: tuple[int, ...]  # of the tensors among the arguments
    _input_metas: tuple[tuple[tuple[int, ...], np.dtype], ...]

    def name(self) -> str:
        return type(self).__name__

    def release(self) -> None:
        if self._saved:
            self._saved = ()
            self._freed = True

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given."""
        if self._freed:
            raise RuntimeError(FREED_MESSAGE)
        found: list[Any] = []
        for kind, value, counter, version, number in self._saved:
            if kind == "none":
                found.append(None)
            elif kind == "out":
                if counter is not None and counter[0] != version:
                    raise RuntimeError(_modified_output(self, value, number, counter[0], version))  # type: ignore[arg-type]
                tensor = wrap_output(value, self, number, counter)
                tensor._requires_grad = self._live[number]
                if not tensor._requires_grad:
                    tensor._node = None
                found.append(tensor)
            else:
                current = value._version if not value._inference else version
                if current != version:
                    raise RuntimeError(_modified(value, current, version))
                found.append(value)
        return tuple(found)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        import warnings

        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    _raw_saved_tensors = saved_tensors

    def keep(self, outputs: Sequence[Any]) -> None:
        """Save what was asked for: outputs by their memory alone, lest node and output hold each other."""
        numbers = {id(out): k for k, out in enumerate(outputs) if isinstance(out, Tensor)}
        saved: list[Any] = []
        for x in self.to_save:
            if x is None:
                saved.append(("none", None, None, 0, 0))
            elif not isinstance(x, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {len(saved)} is of type "
                                f"{type(x).__name__}")
            elif id(x) in numbers:
                if x._counter is None:
                    x._counter = [0]
                saved.append(("out", x._array, x._counter, x._counter[0], numbers[id(x)]))
            else:
                saved.append(("tensor", x, None, 0 if x._counter is None else x._counter[0], 0))
        self._saved = tuple(saved)
        self.to_save = ()

    def vjp(self, cotangents: Any, tensors: bool) -> Any:
        metas = self._metas
        given = [None] * len(metas) if cotangents is None else cotangents if self.outputs is not None else [cotangents]
        shown: list[Any] = []
        for value, (shape, dtype) in zip(given, metas, strict=True):
            if value is None:
                shown.append(wrap(np.zeros(shape, dtype)) if self.materialize_grads else None)
            else:
                shown.append(value if tensors else wrap(np.asarray(value)))
        cls = self._forward_cls
        backward = cls.backward if cls.backward is not Function.backward else cls.vjp
        if backward is Function.vjp and cls.vjp is Function.vjp:
            raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                      "autograd.Function to use it with backward mode AD.")
        found = backward(self, *shown)
        if not isinstance(found, (tuple, list)):
            found = (found,)
        return self._checked(list(found), tensors)

    def _checked(self, found: list[Any], tensors: bool) -> list[Any]:
        n = self._n_args
        if len(found) > n and all(x is None for x in found[n:]):
            found = found[:n]
        if len(found) != n:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {n}, got "
                               f"{len(found)})")
        results: list[Any] = []
        for position, (edge, (shape, dtype)) in zip(self._positions, zip(self.edges, self._input_metas, strict=True),
                                                    strict=True):
            g = found[position]
            if g is None or edge is None:
                results.append(None)
                continue
            if not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
            if g._array.shape != shape:
                g = self._reduced(g, shape, len(results))
            if g._array.dtype != dtype:
                if g._array.dtype.kind == "c" and dtype.kind != "c":
                    g = layer.functions.real(g)
                from ..dtypes import of

                g = g.to(of(dtype))
            results.append(g if tensors else g._array)
        return results

    def _reduced(self, g: Tensor, shape: tuple[int, ...], index: int) -> Tensor:
        have = g._array.shape
        lead = len(have) - len(shape)
        if lead < 0 or any(s not in (1, have[i + lead]) for i, s in enumerate(shape)):
            raise RuntimeError(f"Function {self.name()} returned an invalid gradient at index {index} - got "
                               f"{list(have)} but expected shape compatible with {list(shape)}")
        return layer.functions.sum_to_size(g, shape)


class FunctionMeta(type):
    """Gives each Function the class of its nodes, `<name>Backward`."""

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        members = {"_forward_cls": cls, "__module__": cls.__module__}
        node = _NodeType(name + "Backward", (FunctionNode,), members)
        cls._backward_cls = node
        super().__init__(name, bases, namespace)


class Function(metaclass=FunctionMeta):
    """An operator of the user's own: subclass it, write `forward` and `backward`, call `apply`.

    See https://docs.pytorch.org/docs/stable/autograd.html#function

    >>> import flambeau as torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         x, = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = torch.tensor(3., requires_grad=True)
    >>> Square.apply(x)
    tensor(9., grad_fn=<SquareBackward>)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        import warnings

        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you "
                      "should invoke them on the class itself. Instantiating an autograd function will raise an error "
                      "in a future version of PyTorch.", DeprecationWarning, stacklevel=2)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use "
                           "new-style autograd function with static forward method. (Example: "
                           "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operator: `forward(ctx, *inputs)`, or `forward(*inputs)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """What `forward` would have told `ctx`, where forward takes none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The inputs' gradients from the outputs', one for each argument of `forward`."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom "
                                  "autograd.Function to use it with backward mode AD.")

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The outputs' tangents from the inputs'."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with "
                                  "forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The operator on batches."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap "
                                  "staticmethod or set generate_vmap_rule=True.")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it."""
        return _apply(cls, args, kwargs)


def _apply(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    node: FunctionNode = object.__new__(cls._backward_cls)
    tensors = [(i, x) for i, x in enumerate(args) if isinstance(x, Tensor)]
    node.needs_input_grad = tuple(isinstance(x, Tensor) and x._requires_grad for x in args)
    executable = grad_mode.get() and any(node.needs_input_grad)
    node.edges = tuple(gradient_edge(x) if x._requires_grad and executable else None for _, x in tensors)
    numbers = tuple(x._output_nr for _, x in tensors)
    node.edge_outputs = numbers if any(numbers) else None
    node.extra = node.outputs = node.run = None
    node.seq = next_number()
    node._positions = tuple(i for i, _ in tensors)
    node._n_args = len(args)
    node._input_metas = tuple((x._array.shape, x._array.dtype) for _, x in tensors)
    tangents = [x._tangent if isinstance(x, Tensor) else None for x in args] if special[0] else ()
    plain = args
    if any(t is not None for t in tangents):
        from .forward_mode import primal_of

        plain = tuple(primal_of(x) if isinstance(x, Tensor) and x._tangent is not None else x for x in args)
    with no_grad():
        if cls.setup_context is not Function.setup_context:
            output = cls.forward(*plain, **kwargs)
            cls.setup_context(node, plain, output)
        else:
            output = cls.forward(node, *plain, **kwargs)
    single = not isinstance(output, tuple)
    outputs = [output] if single else list(output)
    wrapped = _wrap_outputs(node, plain, outputs, executable)
    if executable:
        node.keep(wrapped)
    if any(t is not None for t in tangents):
        _push(cls, node, tangents, wrapped)
    return wrapped[0] if single else tuple(wrapped)


def _wrap_outputs(node: FunctionNode, args: Sequence[Any], outputs: list[Any], executable: bool) -> list[Any]:
    dirty = {id(x) for x in node.dirty_tensors}
    fixed = {id(x) for x in node.non_differentiable}
    given = {id(x): x for x in args if isinstance(x, Tensor)}
    returned = {id(x) for x in outputs if isinstance(x, Tensor)}
    for x in node.dirty_tensors:
        if not isinstance(x, Tensor):
            raise TypeError(f"mark_dirty only accepts variables, but argument is of type {type(x).__name__}")
        if id(x) not in returned:
            raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. "
                               "The inputs that are modified inplace must all be outputs of the Function.")
    tensors = [x for x in outputs if isinstance(x, Tensor)]
    metas = tuple((x._array.shape, x._array.dtype) for x in tensors)
    node._metas = metas
    node._live = []
    if len(tensors) > 1:
        node.outputs = metas
    results: list[Any] = []
    number = 0
    for out in outputs:
        if not isinstance(out, Tensor):
            results.append(out)
            continue
        live = executable and id(out) not in fixed and out._array.dtype.kind in "fcV"
        node._live.append(live)
        if id(out) in dirty and id(out) in given:
            if executable:
                check_writable(out, True)
            if out._counter is None or out._counter[0] == 0:
                out._bump_version()
            if live:
                rebase(out, node)
                out._output_nr = number
        else:
            if id(out) in given:
                alias: Tensor = wrap(out._array)
                out = as_view(alias, given[id(out)])
                out._creation = "custom"
                if live is False:
                    out._requires_grad = False
            elif out._base is not None and executable:
                out._creation = "custom"
            elif out._requires_grad or out._node is not None:
                alias = wrap(out._array)
                out = alias
            if live:
                out._requires_grad = True
                out._node = node
                out._output_nr = number
            elif executable and id(out) in fixed:
                out._requires_grad = False
                out._node = None
        results.append(out)
        number += 1
    return results


def _push(cls: Any, node: FunctionNode, tangents: Sequence[Any], outputs: Sequence[Any]) -> None:
    from .forward_mode import set_tangent

    saved = node._saved
    node._saved = tuple(("tensor", x, None, 0 if x._counter is None else x._counter[0], 0) if x is not None else
                        ("none", None, None, 0, 0) for x in node.saved_for_forward) or saved
    try:
        found = cls.jvp(node, *tangents)
    finally:
        node._saved = saved
    found = found if isinstance(found, tuple) else (found,)
    live = [x for x in outputs if isinstance(x, Tensor)]
    if len(found) != len(live):
        raise RuntimeError(f"Function {cls.__name__}Backward returned an incorrect number of forward gradients "
                           f"(expected {len(live)} got {len(found)})")
    for out, t in zip(live, found, strict=True):
        if t is not None:
            set_tangent(out, t)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """For a `backward` that cannot itself be differentiated: a second derivative is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if not grad_mode.get() or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        found = [outputs] if single else list(outputs)
        marked = []
        with enable_grad():
            for out in found:
                if isinstance(out, Tensor) and out._array.dtype.kind in "fcV":
                    marked.append(_Refuse.apply(out.detach().requires_grad_()))
                else:
                    marked.append(out)
        return marked[0] if single else tuple(marked)

    return wrapper


class _Refuse(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


__all__ = ["Function", "FunctionCtx", "FunctionNode", "once_differentiable"]
