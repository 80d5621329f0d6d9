"""The observable state of a tensor: values, graph, view relations, gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

_MOST_NODES = 40


Recorded = list[tuple[int, int]]


def observe(shown: dict[str, Any], recorded: Recorded, births: dict[str, int]) -> dict[str, Any]:
    """The observable state of the tensors, by name.

    Args:
        recorded: ranges of birth numbers of nodes that backward created.
        births: the versions of the tensors when they were first seen.
    """
    names: dict[int, str] = {}
    for name, x in shown.items():
        names.setdefault(id(x), name)
    return {name: _of_tensor(x, names, recorded, births.get(name, 0)) for name, x in sorted(shown.items())}


def _of_tensor(x: Any, names: dict[int, str], recorded: Recorded, birth: int) -> dict[str, Any]:
    base = x._base
    seen: dict[str, Any] = {
        "dtype": str(x.dtype).rpartition(".")[2],
        "shape": tuple(x.shape),
        "strides": tuple(s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1) if x.numel() else (),
        "offset": x.storage_offset() if x.numel() else 0,
        "requires_grad": x.requires_grad,
        "output_nr": x.output_nr,
        "is_view": x._is_view(),
        "base": None if base is None else names.get(id(base), f"unnamed{tuple(base.shape)}"),
        "inference": x.is_inference(),
        "version": None if x.is_inference() else x._version - birth,
        "value": array_of(x),
    }
    try:
        seen["grad_fn"] = drawn(x.grad_fn, names, recorded)
    except RuntimeError as error:  # a view whose base was written to
        seen["grad_fn"] = str(error)
        return seen
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grad = x.grad
    seen |= {
        "is_leaf": x.is_leaf,
        "retains_grad": x.retains_grad,
        "grad warned": len(caught),
        "grad": None if grad is None else {
            "name": names.get(id(grad)), "requires_grad": grad.requires_grad,
            "grad_fn": drawn(grad.grad_fn, names, recorded), "value": array_of(grad)},
    }
    return seen


def array_of(x: Any) -> np.ndarray:
    """A tensor's values now."""
    x = x.detach()
    if x.is_meta:
        return np.zeros(())
    if hasattr(x, "resolve_conj"):
        x = x.resolve_conj().resolve_neg()
    if str(x.dtype).endswith("bfloat16"):  # NumPy has no such dtype
        x = x.float()
    return x.numpy(force=True).copy()  # zeros without memory too, in PyTorch


def snapshot(value: Any) -> Any:
    """A snapshot of something that a hook was given."""
    if isinstance(value, (tuple, list)):
        return [snapshot(v) for v in value]
    if hasattr(value, "detach"):
        return {"value": array_of(value), "requires_grad": value.requires_grad, "shape": tuple(value.shape)}
    return value


def described(value: Any) -> Any:
    """All that a call's result shows: types, dtypes, strides, values, nodes."""
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *[described(v) for v in value]]
    if hasattr(value, "untyped_storage"):
        if not str(value.layout).endswith("strided"):
            return ["sparse", described(value.to_dense())]
        strides = [s for s, n in zip(value.stride(), value.shape, strict=True) if n > 1] if value.numel() else []
        return {"dtype": str(value.dtype).rpartition(".")[2], "shape": tuple(value.shape), "device": str(value.device),
                "strides": tuple(strides), "value": None if value.is_meta else array_of(value),
                "requires_grad": value.requires_grad, "view": value._is_view(),
                "node": value.grad_fn.name() if value.grad_fn is not None else None}
    if isinstance(value, (float, complex)) and not isinstance(value, bool):
        return np.asarray(value)
    return repr(value).replace("flambeau.", "torch.")


def without_values(record: Any) -> Any:
    """What `described` returned, without the elements of tensors."""
    if isinstance(record, list):
        return [without_values(part) for part in record]
    return {key: value for key, value in record.items() if key != "value"} if isinstance(record, dict) else record


def numbers_of(record: Any) -> Any:
    """What `described` returned, without what depends on how a transform unwraps its results.

    PyTorch's constant second derivatives require grad where the input does; here they do not.
    """
    if isinstance(record, list):
        return [numbers_of(part) for part in record]
    return {key: value for key, value in record.items() if key in ("dtype", "shape", "device", "value")} if isinstance(
        record, dict) else record


def drawn(node: Any, names: dict[int, str], recorded: Recorded) -> list[Any] | None:
    """The graph below a node: each node's name and its edges, nodes numbered in the order of traversal.

    The nodes that backward makes are not followed: there PyTorch has operators of their own for
    derivatives (`TanhBackwardBackward0`), flambeau the formula's.
    """
    if node is None:
        return None
    numbers = {node: 0}
    order = [node]
    found: list[Any] = []
    for node in order:
        label = node.name()
        number = node._sequence_nr()
        if any(first <= number <= last for first, last in recorded):
            found.append("recorded")
            continue
        if hasattr(node, "variable"):
            label += f"({names.get(id(node.variable), 'unnamed')})"
        edges = []
        for child, output in node.next_functions:
            if child is not None and child not in numbers and len(order) < _MOST_NODES:
                numbers[child] = len(order)
                order.append(child)
            edges.append(None if child is None else (numbers.get(child, "..."), output))
        found.append((label, edges))
    return found
