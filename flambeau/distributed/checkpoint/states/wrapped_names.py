"""Names of parameters without those of wrappers: `DistributedDataParallel`, compiled modules, FSDP, checkpointing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ....nn import Module
from ....nn.modules.base.state_dict import EXTRA_STATE
from ....nn.parallel import DistributedDataParallel

_CHECKPOINT_PREFIX = "_checkpoint_wrapped_module."
_WRAPPED = "_fsdp_wrapped_module"


def _is_compiled(module: Any) -> bool:
    from ....compiler.module import OptimizedModule  # imports the compiler

    return isinstance(module, OptimizedModule)


def plain_name(model: Module, name: str, modifiers: str = "_fqn_modifiers") -> str:
    """A name in a model without the names of wrappers.

    Args:
        model: the model.
        name: the name of a parameter, a buffer or a module.
        modifiers: the method of modules of programs that maps names of children to attributes that take their place.
    """
    parts = []
    place: Any = model
    for part in name.replace(_CHECKPOINT_PREFIX, "").split("."):
        wrapper = (part == "module" and isinstance(place, DistributedDataParallel)) or part == _WRAPPED or (
            part == "_orig_mod" and _is_compiled(place))
        if not wrapper:
            replaced = getattr(place, modifiers)().get(part) if hasattr(place, modifiers) else None
            if replaced and hasattr(place, replaced):
                place = getattr(place, replaced)
            parts.append(part)
        if part != EXTRA_STATE:
            place = getattr(place, part, None)
    return ".".join(parts)


def states(model: Module) -> Iterator[tuple[str, Any]]:
    """Each name of the model's state dict, with its parameter or buffer; a module in two places is visited once."""
    seen = set()
    pending = [("", model)]
    while pending:
        prefix, module = pending.pop()
        if module in seen:
            continue
        seen.add(module)
        for name, value in chain(module.named_buffers(recurse=False), module.named_parameters(recurse=False)):
            if name not in module._non_persistent_buffers_set:
                yield prefix + name, value
        if type(module).get_extra_state is not Module.get_extra_state:
            yield prefix + EXTRA_STATE, None
        pending += [(f"{prefix}{name}.", child) for name, child in module.named_children()][::-1]


def names_of_parameters(model: Module) -> dict[Any, list[str]]:
    """Parameter -> its plain names, of which shared parameters have several."""
    names: dict[Any, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        plain = plain_name(model, name)
        found = names.setdefault(parameter, [])
        if plain not in found:
            found.append(plain)
    return names


__all__ = ["names_of_parameters", "plain_name", "states"]
