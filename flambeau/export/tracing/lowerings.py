"""Lowerings: the operator that PyTorch calls for a public function, with the arguments in its schema's order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...ops.schemas import aten_overloads
from .calls import Lowering, generic, name_of
from .indexing_lowerings import INDEXING
from .neural_lowerings import NEURAL, NEURAL_METADATA
from .tensor_lowerings import PROPERTIES, TENSOR_METADATA, TENSORS

_BINARY = {
    **{f"__{name}__": name for name in ("add", "mul", "sub", "pow", "matmul", "eq", "ne", "lt", "le", "gt", "ge", "neg",
                                        "abs")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "mul", "sub", "pow")},
    "__radd__": "add", "__rmul__": "mul", "__truediv__": "div", "__div__": "div", "__itruediv__": "div_",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__invert__": "bitwise_not",
    "__rsub__": "rsub", "true_divide": "div",
    "divide": "div",
    "multiply": "mul", "subtract": "sub", "negative": "neg", "absolute": "abs", "concat": "cat", "concatenate": "cat",
    "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le", "not_equal": "ne", "clip": "clamp",
    "swapaxes": "swapaxes", "swapdims": "swapdims", "logsigmoid": "log_sigmoid", "bitwise_not": "bitwise_not",
    "special_expit": "sigmoid",
    "fix": "trunc", "ger": "outer", "arctan2": "atan2",
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
#: names of operators whose functions are made of others in PyTorch too, or return no tensors
_NOT_LOWERED = frozenset((
    "size", "stride", "dim", "numel", "item", "is_floating_point", "is_complex", "equal", "is_nonzero", "is_same_size",
    "data", "requires_grad_", "storage_offset", "is_contiguous", "result_type", "can_cast", "promote_types",
    "retain_grad", "output_nr", "is_leaf", "names", "rename", "sparse_dim", "dense_dim", "is_pinned", "allclose",
    "is_coalesced", "is_signed", "is_inference", "is_conj", "is_neg", "norm", "mse_loss", "l1_loss", "smooth_l1_loss",
    "huber_loss", "normalize", "interpolate", "backward", "set_", "qscheme", "tensor_split", "nonzero",
    "layout", "device", "dtype", "grad", "requires_grad", "get_device", "is_distributed", "cpu", "stft", "istft",
    "block_diag", "cartesian_prod", "lu", "unique", "unique_consecutive", "atleast_1d", "atleast_2d",
    "atleast_3d", "nll_loss_", "register_hook", "share_memory_", "is_shared", "element_size", "nelement",
    "ndimension", "is_set_to", "untyped_storage", "storage", "data_ptr", "tolist", "numpy", "manual_seed",
))
_LOWERINGS: dict[str, Lowering] = {**TENSORS, **NEURAL, **INDEXING}
#: operators that are not run on fake tensors -> what has their results' metadata
METADATA: dict[str, Callable[..., Any]] = {**TENSOR_METADATA, **NEURAL_METADATA}


def lowering_of(func: Any) -> Lowering | None:
    """What lowers a public function; None where its calls are recorded one by one."""
    try:
        name = name_of(func)
    except TypeError:
        return None
    if name.endswith(".__get__"):
        return PROPERTIES.get(name.split(".")[-2])
    short = name.rpartition(".")[2]
    if ".linalg." in name or ".special." in name or ".fft." in name:
        short = "_".join(name.split(".")[-2:])
    found = _LOWERINGS.get(short)
    if found is not None:
        return found
    if short in _NOT_LOWERED or ".init." in name:
        return None
    target = _BINARY.get(short, short)
    return functools.partial(generic, target) if aten_overloads(target) else None


__all__ = ["METADATA", "lowering_of"]
