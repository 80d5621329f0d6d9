"""Modules as functions of their parameters: `functional_call`, `stack_module_state` and batch norm replacement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.tensor import set_requires_grad


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None,
                    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Call a module with the given parameters and buffers instead of its own.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html

    Args:
        parameter_and_buffer_dicts: a dictionary of tensors by their names in the module, or several.
        args: the positional arguments; a single one need not be in a tuple.
        kwargs: the keyword arguments.
        tie_weights: replace all names that share a tensor in the module.
        strict: the names must be exactly those of the module's parameters and buffers.

    Raises:
        ValueError: an argument is not a dictionary, or a name is in several.
        RuntimeError: names are missing or unknown, under `strict`; the module is one of TorchScript or data parallel.
        TypeError: a value is not a tensor.

    >>> import flambeau as torch
    >>> double = torch.nn.Linear(1, 1, bias=False)
    >>> torch.func.functional_call(double, {"weight": torch.tensor([[2.]])}, torch.ones(1))
    tensor([2.])
    """
    tensors = _merged(parameter_and_buffer_dicts)
    if refusal := getattr(module, "_refuses_stateless_calls", None):
        raise RuntimeError(f"The stateless API can't be used with {refusal}")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with reparametrized(module, tensors, tie_weights=tie_weights, strict=strict):
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
def reparametrized(module: Any, tensors: dict[str, Any], *, tie_weights: bool = True,
                   strict: bool = False) -> Iterator[None]:
    """A block in which a module has the given parameters and buffers.

    Parameters and buffers that the module assigns in the block are stored in `tensors`.
    """
    values = dict(tensors)
    if tie_weights or strict:
        own = dict(module.named_parameters(remove_duplicate=False))
        own |= dict(module.named_buffers(remove_duplicate=False))
        if tie_weights:
            values = _tied(own, values)
        if strict:
            _check_names(module, sorted(own.keys() - values), sorted(values.keys() - own))
    swapped: list[tuple[Any, str, str, Any]] = []
    try:
        for name, value in values.items():
            owner, attribute = _owner(module, name), name.rpartition(".")[2]
            swapped.append((owner, attribute, name, _swap(owner, attribute, value)))
        yield
    finally:
        for owner, attribute, name, before in reversed(swapped):
            assigned = _swap(owner, attribute, before)
            if name in tensors:
                tensors[name] = assigned


_MISSING: Any = object()


def _swap(module: Any, attribute: str, value: Any) -> Any:
    """Set a parameter, a buffer or an attribute, or remove it; what was there before.

    Raises:
        TypeError: the value, or the one before, is neither a tensor nor None.
    """
    if not isinstance(value, Tensor) and value is not None and value is not _MISSING:
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for owner in (module._parameters, module._buffers):
        if attribute in owner:
            before = owner[attribute]
            if value is _MISSING:
                del owner[attribute]
            else:
                owner[attribute] = value
            return before
    before = getattr(module, attribute, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{attribute}`: {before} is not an instance of torch.Tensor")
    if value is not _MISSING:
        setattr(module, attribute, value)
    elif hasattr(module, attribute):
        delattr(module, attribute)
    return before


def _tied(own: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """`tensors`, extended by the names that share a tensor with one of them.

    Raises:
        ValueError: names that share a tensor have different replacements.
    """
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        groups.setdefault(id(tensor), []).append(name)
    values = dict(tensors)
    for names in groups.values():
        replaced = [name for name in names if name in tensors]
        if len(names) > 1 and replaced:
            if any(tensors[name] is not tensors[replaced[0]] for name in replaced):
                raise ValueError(f"functional_call got multiple values for keys {sorted(replaced)}, which are tied. "
                                 "Consider using tie_weights=False")
            for name in names:
                values[name] = tensors[replaced[0]]
    return values


def _check_names(module: Any, missing: list[str], unknown: list[str]) -> None:
    message = ""
    if unknown:
        message += "\n\tUnexpected key(s): " + ", ".join(map(repr, unknown)) + "."
    if missing:
        message += "\n\tMissing key(s): " + ", ".join(map(repr, missing)) + "."
    if message:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{message}")


def _owner(module: Any, name: str) -> Any:
    """The submodule that has the parameter, buffer or attribute of this name.

    Raises:
        AttributeError, TypeError: the name's path is not that of a submodule.
    """
    path = name.rpartition(".")[0]
    for part in path.split(".") if path else ():
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
        if not hasattr(module, "_parameters"):
            raise TypeError(f"submodule `{path}`: {module} is not an instance of torch.nn.Module")
    return module


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The stacked parameters and buffers of modules of one class: an ensemble for `vmap`.

    Args:
        models: modules of one class, all in training mode or all in evaluation mode.

    Returns:
        Two dictionaries, name -> tensor of shape (len(models), *shape).

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
    """The parameters of one name, stacked into a leaf that requires grad if they do.

    Raises:
        RuntimeError: some of them require grad and some do not.
    """
    needs = [x._requires_grad for x in leaves]
    if any(needs) and not all(needs):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stack: Tensor = fn.stack([x.detach() for x in leaves])
    return set_requires_grad(stack) if needs[0] else stack


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Remove the running statistics of all batch norms of a module, in place, so that it can run under `vmap`.

    See https://docs.pytorch.org/docs/stable/func.batch_norm.html

    >>> import flambeau as torch
    >>> model = torch.nn.Sequential(torch.nn.BatchNorm1d(3))
    >>> torch.func.replace_all_batch_norm_modules_(model)[0].running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "running_mean") and hasattr(module, "track_running_stats") and hasattr(module, "momentum"):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
