"""Modules as functions of their parameters: `functional_call`, and the parameters of many modules stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.tensor import as_leaf


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Call a module with other parameters and buffers than its own.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html

    Args:
        parameter_and_buffer_dicts: tensors by their names in the module, or several such dictionaries.
        args: the arguments; one that is no tuple stands for a tuple of it.
        tie_weights: names that share one tensor in the module share the replacement too.
        strict: every parameter and buffer must be given, and nothing else.

    Raises:
        ValueError: not dictionaries, or a name is in several.
        RuntimeError: names are missing or unknown, under `strict`.
        TypeError: a value is no tensor.

    >>> import flambeau as torch
    >>> double = torch.nn.Linear(1, 1, bias=False)
    >>> torch.func.functional_call(double, {"weight": torch.tensor([[2.]])}, torch.ones(1))
    tensor([2.])
    """
    given = _merged(parameter_and_buffer_dicts)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with reparametrized(module, given, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
                         f"{type(dicts)}")
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


@contextmanager
def reparametrized(module: Any, given: dict[str, Any], *, tie_weights: bool = True,
                   strict: bool = False) -> Iterator[None]:
    """A block in which a module has other parameters and buffers; what it puts in their place goes into `given`."""
    own = dict(module.named_parameters(remove_duplicate=False))
    own |= dict(module.named_buffers(remove_duplicate=False))
    values = dict(given)
    if tie_weights:
        values = _tied(own, values)
    if strict:
        _refuse_names(module, [n for n in own if n not in values], [n for n in values if n not in own])
    swapped: list[tuple[dict[str, Any], str, str, Any]] = []
    try:
        for name, value in values.items():
            place = _place(module, name)
            if place is None:
                continue
            if not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            attribute = name.rpartition(".")[2]
            swapped.append((place, attribute, name, place[attribute]))
            place[attribute] = value
        yield
    finally:
        for place, attribute, name, value in reversed(swapped):
            if name in given:
                given[name] = place[attribute]
            place[attribute] = value


def _tied(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`given`, with what shares a tensor with one of its names.

    Raises:
        ValueError: names that share a tensor are given different ones.
    """
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        groups.setdefault(id(tensor), []).append(name)
    values = dict(given)
    for names in groups.values():
        found = [name for name in names if name in given]
        if len(names) > 1 and found:
            if any(given[name] is not given[found[0]] for name in found):
                raise ValueError(f"functional_call got multiple values for keys {sorted(found)}, which are tied. "
                                 "Consider using tie_weights=False")
            for name in names:
                values[name] = given[found[0]]
    return values


def _refuse_names(module: Any, missing: list[str], unknown: list[str]) -> None:
    said = ""
    if unknown:
        said += "\n\tUnexpected key(s): " + ", ".join(map(repr, unknown)) + "."
    if missing:
        said += "\n\tMissing key(s): " + ", ".join(map(repr, missing)) + "."
    if said:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{said}")


def _place(module: Any, name: str) -> dict[str, Any] | None:
    """The dictionary in which a module keeps the parameter or buffer of this name."""
    path, _, attribute = name.rpartition(".")
    for part in path.split(".") if path else ():
        module = module._modules.get(part)
        if module is None:
            return None
    for place in (module._parameters, module._buffers):
        if attribute in place:
            found: dict[str, Any] = place
            return found
    return None


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of modules of one class, each stacked: an ensemble for `vmap`.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.stack_module_state.html

    Raises:
        RuntimeError: no modules, or modules of different classes or modes.

    >>> import flambeau as torch
    >>> models = [torch.nn.Linear(2, 3) for _ in range(5)]
    >>> parameters, buffers = torch.func.stack_module_state(models)
    >>> parameters["weight"].shape
    flambeau.Size([5, 3, 2])
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {name: stacked(name, [dict(m.named_parameters())[name] for m in models])
                  for name in dict(models[0].named_parameters())}
    buffers = {name: stacked(name, [dict(m.named_buffers())[name] for m in models])
               for name in dict(models[0].named_buffers())}
    return parameters, buffers


def stacked(name: str, leaves: list[Tensor]) -> Tensor:
    """The parameters of one name, stacked; a leaf that requires grad if they do.

    Raises:
        RuntimeError: some of them do and some do not.
    """
    wants = [x._requires_grad for x in leaves]
    if any(wants) and not all(wants):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    whole: Tensor = fn.stack([x.detach() for x in leaves])
    return as_leaf(whole) if wants[0] else whole


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm in a module forget its running statistics, so that it can run under `vmap`.

    See https://docs.pytorch.org/docs/stable/func.batch_norm.html
    """
    for module in root.modules():
        if hasattr(module, "running_mean") and hasattr(module, "track_running_stats") and hasattr(module, "momentum"):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
