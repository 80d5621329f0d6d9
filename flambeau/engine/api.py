"""`backward` and `grad`: the public entry points of the engine, with PyTorch's argument checks and errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..backends.bit_views import resolve
from ..backends.elementless_array import any_without_elements, elementless_used
from ..backends.sparse_array import SparseArray
from ..devices import contiguous_format, preserve_format
from ..kernels.memory_format import is_dense
from ..modes import active_tracer, active_transforms, device_memory, dispatch_in_use, special, transform_stack
from ..shapes import Size
from .engine import run_backward
from .execution.accumulate_grad import AccumulateGrad, on_device_of
from .grad_mode import enable_grad
from .nodes.node import Node
from .tensor_interface import layer


class GradientEdge(NamedTuple):
    """A gradient edge: a node and the number of one of its outputs.

    >>> import flambeau as torch
    >>> edge = torch.autograd.graph.get_gradient_edge(torch.ones(2, requires_grad=True) * 2)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def _as_sequence(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (layer.tensor_class, GradientEdge)) or _overrides(value):
        return (value,)
    return tuple(value)


def _overrides(value: Any) -> bool:
    """Whether something that is no tensor overrides functions."""
    return hasattr(type(value), "__torch_function__") and not isinstance(value, layer.tensor_class)


def edge(x: Any) -> tuple[Node, int]:
    """The gradient edge of a tensor: its node and output number."""
    if isinstance(x, GradientEdge):
        return x[0], x[1]
    return layer.gradient_edge(x), x._output_nr


def _metadata_of(x: Any) -> tuple[tuple[int, ...], np.dtype] | None:
    """Shape and dtype of the cotangent of a root; None for an edge whose shape was not recorded."""
    if not isinstance(x, GradientEdge):
        try:
            return x._array.shape, x._array.dtype
        except AttributeError:
            raise AssertionError("Expected output to be a torch.Tensor") from None
    node, number = x[0], x[1]
    if isinstance(node, AccumulateGrad):
        return node.variable._array.shape, node.variable._array.dtype
    if node.outputs is not None:
        return node.outputs[number]
    return None if node.extra is None or node.extra.output_info is None else node.extra.output_info.get(number)


def _implicit_or_given(outputs: Sequence[Any], gradients: Sequence[Any], batched: bool = False) -> list[Any]:
    """One cotangent for each output: as given, checked; ones for a scalar."""
    found = []
    for i, (out, g) in enumerate(zip(outputs, gradients, strict=True)):
        known = _metadata_of(out)
        if isinstance(g, layer.tensor_class) and known is None:
            found.append(g)
        elif isinstance(g, layer.tensor_class):
            shape = g._array.shape[1:] if batched else g._array.shape
            expected, dtype = known  # type: ignore[misc]
            if shape != expected:
                if batched:  # PyTorch's message leaves out one dimension more
                    raise RuntimeError(
                        "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
                        "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
                        f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                        f"{Size(shape[1:])} and output[{i}] has a shape of {Size(expected)}. If you only want some "
                        "tensors in `grad_output` to be considered batched, consider using vmap.")
                raise RuntimeError(f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] "
                                   f"has a shape of {Size(expected)}.")
            if (dtype.kind == "c") != (g._array.dtype.kind == "c"):
                raise RuntimeError("For complex Tensors, both grad_output and output are required to have the same "
                                   f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and "
                                   f"output[{i}] has a dtype of {dtypes.of(dtype)}.")
            found.append(g)
        elif g is None:
            if isinstance(out, GradientEdge) or out._requires_grad:
                if known is None:
                    raise RuntimeError("grad can be implicitly created only for outputs whose shape is known: give "
                                       "grad_outputs, or the edge that get_gradient_edge() finds")
                if prod(known[0]) != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if known[1].kind == "c":
                    raise RuntimeError("grad can be implicitly created only for real scalar outputs but got "
                                       f"{dtypes.of(known[1])}")
                if isinstance(out, GradientEdge):
                    found.append(layer.functions.ones(known[0], dtype=dtypes.of(known[1])))
                elif out._array.__class__ is np.ndarray and out._array.dtype.kind == "f" and not special[0]:
                    found.append(layer.wrap(np.ones_like(out._array)))
                elif dispatch_in_use[0]:
                    found.append(layer.functions.ones_like(out, memory_format=preserve_format))
                else:
                    found.append(layer.functions.ones_like(out.detach()))
            else:
                found.append(None)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return found


def _roots(tensors: Sequence[Any], cotangents: Sequence[Any]) -> tuple[list[tuple[Node, int]], list[Any]]:
    roots, seeds = [], []
    for i, (x, g) in enumerate(zip(tensors, cotangents, strict=True)):
        if not isinstance(x, GradientEdge) and (not x._requires_grad or edge(x)[0] is None):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        known = None if g is None else _metadata_of(x)
        if known is not None and g._array.dtype != known[1]:
            g = g.to(dtypes.of(known[1]))
        roots.append(edge(x))
        seeds.append(g)
    return roots, seeds


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Accumulate into the leaves' `.grad` the sum of the tensors' gradients, weighted by `grad_tensors`.

    A vector-Jacobian product: for leaf x, `x.grad += sum_k grad_tensors[k] . d tensors[k] / d x`.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html

    Args:
        tensors: the roots.
        grad_tensors: a cotangent for each, of its shape; None for a scalar.
        retain_graph: keep the saved tensors for another pass. Default: `create_graph`.
        create_graph: record the computation of the gradients, so that they can be differentiated.
        grad_variables: deprecated name of `grad_tensors`.
        inputs: the tensors that accumulate into `.grad`; default: all leaves.

    Raises:
        RuntimeError: a root is not a scalar and has no cotangent, or has no graph; the graph was freed.

    >>> import flambeau as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.backward(x ** 2)
    >>> x.grad
    tensor(6.)
    """
    if active_transforms[0] and transform_stack.get():
        raise RuntimeError("backward() called inside a functorch transform. This is not supported, please use "
                           "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
                           "transforms.")
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                               "`backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _as_sequence(inputs.values() if type(inputs) is dict else inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _as_sequence(tensors)
    given = _sequence_of_gradients(grad_tensors, len(tensors))
    cotangents = _implicit_or_given(tensors, given)
    if retain_graph is None:
        retain_graph = create_graph
    roots, seeds = _roots(tensors, cotangents)
    targets = None
    if inputs is not None:
        targets = []
        for x in inputs:
            if not isinstance(x, GradientEdge):
                x.grad_fn  # noqa: B018  # regenerates the history of a view, which decides whether it is a leaf
                x.retain_grad()
            if edge(x)[0] is not None:
                targets.append(edge(x))
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters to "
            "None after use to break the cycle and avoid the leak.", UserWarning, stacklevel=3)
    run_backward(roots, seeds, retain=bool(retain_graph), create=create_graph, targets=targets, accumulate=True)


def _sequence_of_gradients(given: Any, count: int) -> tuple[Any, ...]:
    if given is None:
        return (None,) * count
    if isinstance(given, layer.tensor_class):
        found: tuple[Any, ...] = (given,)
    else:
        found = tuple(given) or (None,) * count
    if len(found) != count:
        raise RuntimeError(f"got {count} tensors and {len(found)} gradients")
    return found


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Any, ...]:
    """The gradients of the outputs' weighted sum with respect to the inputs, without touching any `.grad`.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html

    Args:
        outputs: the roots.
        inputs: tensors of the graph, leaves or not, or a dictionary of them.
        grad_outputs: a cotangent for each output; None for a scalar.
        retain_graph: keep the saved tensors for another pass. Default: `create_graph`.
        create_graph: record the computation of the gradients.
        only_inputs: deprecated; must stay True.
        allow_unused: return None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dimension of the cotangents, and of the gradients, is a batch dimension.
        materialize_grads: zeros instead of None for unused inputs.

    Returns:
        One gradient per input; of a dictionary of inputs a dictionary.

    Raises:
        RuntimeError: an input is not in the graph; a root is not a scalar and has no cotangent; the graph was freed.
        TypeError: inputs are in another mapping than a dictionary.

    >>> import flambeau as torch
    >>> x = torch.tensor(3., requires_grad=True)
    >>> torch.autograd.grad(x ** 2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                         "allow_unused=False.")
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate "
                      "gradient for other parts of the graph, please use torch.autograd.backward.", FutureWarning,
                      stacklevel=2)
    if not isinstance(inputs, (layer.tensor_class, tuple, list)) and isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            raise TypeError(f"`inputs` argument to `grad()` must be a dict, not {type(inputs).__name__}. Other Mapping "
                            "types are not supported.")
        found = grad(outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                     allow_unused, is_grads_batched, materialize_grads)
        return dict(zip(inputs, found, strict=True))  # type: ignore[return-value]  # for dictionaries alone
    for x in (outputs, inputs):
        if _overrides(x) and layer.note_foreign(type(x)):  # from now on handlers are asked
            return grad(outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                        is_grads_batched, materialize_grads)
    outputs, inputs = _as_sequence(outputs), _as_sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    given = _sequence_of_gradients(grad_outputs, len(outputs))
    cotangents = _implicit_or_given(outputs, given, is_grads_batched)
    if retain_graph is None:
        retain_graph = create_graph
    if special[0] and layer.is_batched(*outputs, *inputs, *cotangents):
        return layer.batched_gradients(outputs, inputs, cotangents, bool(retain_graph), create_graph, allow_unused,
                                       materialize_grads)
    if is_grads_batched:
        return _batched(outputs, inputs, cotangents, retain_graph, create_graph, allow_unused, materialize_grads)
    return gradients_of(outputs, inputs, cotangents, bool(retain_graph), create_graph, allow_unused, materialize_grads)


def gradients_of(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], retain: bool, create: bool,
                 allow_unused: bool, materialize: bool, stops_at_inputs: bool = False) -> tuple[Any, ...]:
    """`grad` after its argument checks; `stops_at_inputs`: as if no input were computed from another."""
    roots, seeds = _roots(outputs, cotangents)
    targets = []
    for x in inputs:
        try:
            is_wanted = isinstance(x, GradientEdge) or x._requires_grad
        except AttributeError:
            raise RuntimeError("all inputs have to be Tensors or GradientEdges, but got "
                               f"{type(x).__name__}") from None
        if not is_wanted:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        targets.append(edge(x))
    tensors = create or (bool(special[0]) and (
        dispatch_in_use[0] > 0 or active_tracer.get() is not None or layer.has_tangents(outputs, cotangents))) or (
        elementless_used[0] and any_without_elements(seeds))
    captured = run_backward(roots, seeds, retain=retain, create=create, targets=targets, tensors=tensors,
                            stops_at_targets=stops_at_inputs)
    found = []
    for i, (x, target) in enumerate(zip(inputs, targets, strict=True)):
        g = captured.get(target)
        if g is not None:
            if not tensors:
                g = layer.wrap(_own(g))
            elif not create and special[0] and active_tracer.get() is not None and not is_dense(g._array):
                g = g.clone(memory_format=contiguous_format)
            found.append(g if not device_memory.count or isinstance(x, GradientEdge) else on_device_of(x, g))
        elif materialize and isinstance(x, GradientEdge):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        elif materialize:
            found.append(layer.functions.zeros_like(x.detach(), requires_grad=create))
        elif allow_unused:
            found.append(None)
        else:
            raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                               "Set allow_unused=True if this is the desired behavior.")
    return tuple(found)


def _own(g: Any) -> Any:
    """An array that the caller may write to; a captured gradient may be a broadcast view or a saved tensor's array."""
    if isinstance(g, SparseArray):
        return g
    a = np.asarray(resolve(g))
    if a.base is None and a.flags.owndata and a.flags.writeable:
        return a
    return np.array(a, order="K" if is_dense(a) else "C", copy=True)


def _batched(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any], retain: bool, create: bool,
             allow_unused: bool, materialize: bool) -> tuple[Any, ...]:
    """One backward pass for all cotangents of a batch: the first dimension of each is hidden from the rules."""
    def pull_back(*given: Any) -> tuple[Any, ...]:
        return layer.batched_gradients(outputs, inputs, given, retain, create, allow_unused, materialize)

    return layer.vmap_cotangents(pull_back, cotangents)


__all__ = ["AccumulateGrad", "GradientEdge", "backward", "edge", "enable_grad", "grad", "gradients_of"]
