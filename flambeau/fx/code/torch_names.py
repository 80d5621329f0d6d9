"""The names of functions, classes and values in generated code: PyTorch's, whatever module defines them here."""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ...ops.function_operators import HigherOrderOperator
from ...ops.overloads import OpOverload, OpOverloadPacket

_ROOT = __name__.partition(".")[0]

#: functions of `torch` that PyTorch defines in Python modules -> that module
_ELSEWHERE = {name: f"torch.{module}" for module, names in {
    "functional": ("atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
                   "cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique unique_consecutive "
                   "unravel_index"),
    "random": "get_rng_state initial_seed manual_seed seed set_rng_state",
    "serialization": "load save",
    "_lobpcg": "lobpcg",
    "func": "vmap",
    "_tensor_str": "set_printoptions",
}.items() for name in names.split()}

#: functions of `torch.nn.functional` that PyTorch defines in its extension
_COMPILED_NN = frozenset((
    "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot",
    "scaled_dot_product_attention", "softplus", "softshrink"))
#: functions of `torch.nn.functional` that are those of `torch`
_OF_TORCH = frozenset((
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink",
    "native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_",
    "rrelu_", "selu_", "threshold_"))
#: node names that differ from the function's name
_RENAMED = {"logsigmoid": "torch._C._nn.log_sigmoid", "threshold": "torch.nn.functional.threshold"}


@functools.cache
def _table() -> dict[int, str]:
    """The id of a public function -> its name in PyTorch."""
    functional = torch.nn.functional
    names: dict[int, str] = {}

    def add(value: Any, name: str) -> None:
        if isinstance(value, (types.FunctionType, type)):
            names.setdefault(id(value), name)
            kept.append(value)

    for prefix in ("linalg", "fft", "special"):
        module = getattr(torch, prefix)
        for name in dir(module):
            value = getattr(module, name, None)
            if getattr(value, "__name__", "").startswith(f"{prefix}_"):
                add(value, f"torch._C._{prefix}.{prefix}_{name}")
    for name in dir(functional):
        if name.startswith("__"):
            continue
        value = getattr(functional, name)
        if not isinstance(value, types.FunctionType) or not value.__module__.startswith(_ROOT):
            continue
        if name in _OF_TORCH:
            add(value, f"torch.{name}")
        elif name in _COMPILED_NN:
            add(value, f"torch._C._nn.{name}")
        elif value is not getattr(torch, name, None):
            add(value, _RENAMED.get(name, f"torch.nn.functional.{name}"))
    for name in dir(torch):
        if name.startswith("__"):
            continue
        value = getattr(torch, name, None)
        if isinstance(value, types.FunctionType) and value.__module__.startswith(_ROOT):
            add(value, f"{_ELSEWHERE.get(name, 'torch')}.{name}")
    for name in dir(torch.nn.init):
        value = getattr(torch.nn.init, name)
        if isinstance(value, types.FunctionType) and value.__module__.startswith(_ROOT) and not name.startswith("__"):
            add(value, f"torch.nn.init.{name}")
    for name in dir(torch.special):  # the functions that are also in `torch` have their names there
        if not name.startswith("_"):
            add(getattr(torch.special, name), f"torch._C._special.special_{name}")
    add(torch.nn.Parameter, "torch.nn.parameter.Parameter")
    add(torch.autograd.set_grad_enabled, "torch.autograd.grad_mode.set_grad_enabled")
    add(torch.no_grad, "torch.autograd.grad_mode.no_grad")
    add(torch.enable_grad, "torch.autograd.grad_mode.enable_grad")
    return names


kept: list[Any] = []  # the functions whose ids are in the table


def find(obj: Any) -> str | None:
    """The name of a public function or class in PyTorch; None: it has no other name than its own."""
    if isinstance(obj, type):
        return _table().get(id(obj))
    if isinstance(obj, types.FunctionType):
        return _method_names().get(id(obj)) or _table().get(id(obj))
    return None


@functools.cache
def _method_names() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in sorted(dir(torch.Tensor), key=lambda name: (name.startswith("_"), name)):
        value = inspect.getattr_static(torch.Tensor, name)
        if isinstance(value, types.FunctionType) and value is not getattr(torch, name, None):
            found.setdefault(id(value), f"torch.Tensor.{name}")
            kept.append(value)
    return found


def method_name(method: Any) -> str:
    """The name by which a method of tensors is called."""
    own = "pow" if method.__name__ == "__pow__" else method.__name__
    if getattr(torch.Tensor, own, None) is method:
        return own
    return (_method_names().get(id(method)) or own).rpartition(".")[2]


def module_of(obj: Any) -> str | None:
    """The module of an object, as PyTorch names it."""
    module = getattr(obj, "__module__", None)
    if isinstance(module, str) and (module == _ROOT or module.startswith(f"{_ROOT}.")):
        return "torch" + module[len(_ROOT):]
    return module


def is_from_torch(obj: Any) -> bool:
    """Whether generated code names an object by its path below `torch`, instead of by a global of its own."""
    module = getattr(obj, "__module__", None)
    if module is not None:
        parts = str(module).split(".")
        return parts[0] in (_ROOT, "torch") and not any(
            name in parts[1:] for name in ("_dynamo", "_inductor", "compiler"))
    name = getattr(obj, "__name__", None)
    return name is not None and name != "torch" and any(
        getattr(guess, name, None) is obj for guess in (torch, torch.nn.functional))


def qualified_name(func: Callable[..., Any]) -> str:
    """The name of a function in generated code: `torch.relu`, `torch.nn.functional.relu`, `torch.ops.aten.mm.default`.

    Raises:
        RuntimeError: a lambda whose source is not known, or a function of no module.
    """
    if getattr(builtins, func.__name__, None) is func:
        return func.__name__
    if isinstance(func, OpOverloadPacket):
        return f"torch.ops.{func.namespace}.{func.__name__}"
    if isinstance(func, OpOverload):
        return f"torch.ops.{func}"
    if isinstance(func, HigherOrderOperator):
        return f"torch.ops.{func.namespace}.{func.name()}"
    known = find(func)
    if known is not None:
        return known
    name = func.__name__
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = module_of(func)
    if module is None:
        for guess in (torch, torch.nn.functional):
            if getattr(guess, name, None) is func:
                return f"{module_of(guess) or guess.__name__.replace(_ROOT, 'torch', 1)}.{name}"
        raise RuntimeError(f"cannot find module for {func}")
    return f"{module.replace('torch._ops', 'torch.ops')}.{name}"


def type_name(obj: Any) -> str:
    """The name of a type in an annotation: a short one for classes, otherwise its repr."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return find(obj) or f"{module_of(obj)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


#: values whose repr begins with the name of this package
_PREFIXED = (torch.dtype, torch.layout, torch.memory_format)


def value_repr(value: Any) -> str:
    """The repr of a value in generated code."""
    if type(value) is dict or type(value).__name__ == "immutable_dict":
        return "{" + ", ".join(f"{value_repr(key)}: {value_repr(item)}" for key, item in value.items()) + "}"
    if type(value) is list or type(value).__name__ == "immutable_list":
        return f"[{', '.join(map(value_repr, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(value_repr, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    if isinstance(value, _PREFIXED) and text.startswith(f"{_ROOT}."):
        return "torch" + text[len(_ROOT):]
    return text


__all__ = ["find", "is_from_torch", "method_name", "module_of", "qualified_name", "type_name", "value_repr"]
