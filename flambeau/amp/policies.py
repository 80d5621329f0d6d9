"""Which operators autocast runs in which dtype on the CPU (`cuda_policies`: on CUDA devices), and the casts.

Under autocast, an operator of `LOWER_PRECISION` runs in the autocast dtype, one of `FULL_PRECISION` in float32, and one
of `WIDEST` in the widest dtype of its arguments. All others run as they are. Only floats are cast, and no float64.
While such an operator runs, autocast does not act on the operators that it is composed of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from .. import dtypes
from .._tensor import Tensor
from ..engine.grad_mode import grad_mode
from ..modes import active_autocasts, device_memory, special
from ..ops.declare import COMPOSITE, REGISTRY
from . import cuda_policies, state

LOWER_PRECISION = frozenset((
    "_addmm_activation", "_native_multi_head_attention", "addbmm", "addmm", "baddbmm", "bmm", "chain_matmul", "conv1d",
    "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "linalg_matmul", "linalg_multi_dot", "linalg_vecdot", "linear", "lstm", "matmul", "mm", "prelu", "rnn_relu",
    "rnn_tanh", "scaled_dot_product_attention",
))
FULL_PRECISION = frozenset((
    "adaptive_avg_pool3d", "adaptive_max_pool3d", "avg_pool3d", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cdist", "cholesky", "cholesky_inverse", "cholesky_solve",
    "cosine_embedding_loss", "cross_entropy", "ctc_loss", "fractional_max_pool2d", "fractional_max_pool3d", "geqrf",
    "grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "hinge_embedding_loss", "huber_loss",
    "inverse", "kl_div", "l1_loss", "linalg_cholesky", "linalg_cholesky_ex", "linalg_cond", "linalg_eig",
    "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh", "linalg_householder_product", "linalg_inv", "linalg_inv_ex",
    "linalg_lstsq", "linalg_matrix_rank", "linalg_qr", "linalg_solve", "linalg_svd", "linalg_svdvals",
    "linalg_tensorinv", "linalg_tensorsolve", "lu", "lu_solve", "margin_ranking_loss", "max_pool3d", "max_unpool2d",
    "max_unpool3d", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nanquantile", "nll_loss", "orgqr",
    "ormqr", "pinverse", "poisson_nll_loss", "polar", "prod", "qr", "quantile", "smooth_l1_loss", "soft_margin_loss",
    "stft", "svd", "trace", "triangular_solve", "triplet_margin_loss", "view_as_complex",
    *(f"fft_{name}" for name in ("fft", "fft2", "fftn", "hfft", "ifft", "ifft2", "ifftn", "ihfft", "irfft", "irfft2",
                                 "irfftn", "rfft", "rfft2", "rfftn")),
))
WIDEST = frozenset(("cat", "concat", "concatenate", "index_copy", "stack"))

#: operators of Python that are one operator
_OPERATORS_OF_PYTHON = frozenset(
    f"__{prefix}{name}__" for name in ("add", "sub", "mul", "truediv", "pow") for prefix in ("", "r", "i")) | {
    "__neg__", "__getitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}

#: prefix of a public function's name -> prefix of its operator's
_NAMESPACES = (("torch.nn.functional.", ""), ("torch.Tensor.", ""), ("torch.linalg.", "linalg_"),
               ("torch.fft.", "fft_"), ("torch._C._nn.", ""), ("torch.", ""))


@functools.cache
def operator_of(name: str) -> str:
    """The operator of a public function: `linalg_inv` of `torch.linalg.inv`."""
    for prefix, replacement in _NAMESPACES:
        if name.startswith(prefix):
            return replacement + name[len(prefix):]
    return name


def is_eligible(x: Any, kind: str = "cpu") -> bool:
    """Whether autocast on a type of device may cast a value: a tensor of floats there, not of float64."""
    return isinstance(x, Tensor) and x.dtype.is_floating_point and x.dtype is not dtypes.float64 and (
        not device_memory.count or x._device.type == kind)


def cast(x: Any, dtype: Any, kind: str = "cpu") -> Any:
    """A value in another dtype if it is eligible. The casts of float32 leaves that require grad are cached."""
    if isinstance(x, Tensor):
        if not is_eligible(x, kind) or x.dtype is dtype:
            return x
        if (x.dtype is not dtypes.float32 or not x.requires_grad or not x.is_leaf or x._is_view()
                or dtype is not state.dtype_of(kind) or not state.is_autocast_cache_enabled()):
            return x.to(dtype)
        cached = state.cast_leaves().get(id(x))
        if cached is None or (grad_mode.get() and not cached[1].requires_grad) or cached[1].dtype is not dtype:
            cached = state.cast_leaves()[id(x)] = (x, x.to(dtype))
        return cached[1]
    if isinstance(x, (list, tuple)):
        items = [cast(item, dtype, kind) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def _tensors(values: Any) -> list[Any]:
    found = []
    for x in values:
        if isinstance(x, Tensor):
            found.append(x)
        elif isinstance(x, (list, tuple)):
            found += _tensors(x)
    return found


def widest(values: Any, lower: Any, kind: str = "cpu") -> Any:
    """The widest of the autocast dtype and the dtypes of eligible tensors.

    Raises:
        RuntimeError: a narrow dtype that is not autocast's.
    """
    result = lower
    for x in _tensors(values):
        if is_eligible(x, kind) and x.dtype is not result:
            if dtypes.float32 not in (x.dtype, result):
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
            result = dtypes.float32
    return result


def _contracts(args: Sequence[Any]) -> bool:
    """Whether an einsum multiplies matrices: a label of two operands is summed over."""
    if not args or not isinstance(args[0], str):
        return len(_tensors(args)) > 1
    left, _, right = args[0].replace(" ", "").partition("->")
    labels = [set(part) for part in left.split(",")]
    return any(len([part for part in labels if label in part]) > 1 and label not in right
               for label in set(left) - set(",."))


def _free_elements(x: Any, operand: int, dims: Any) -> int:
    """The number of elements along the dimensions of an operand of `tensordot` that are not summed over."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        summed: Any = range(x.ndim - dims, x.ndim) if operand == 0 else range(dims)
    else:
        summed = dims[operand] if isinstance(dims[operand], (list, tuple)) else [dims[operand]]
    summed = {int(d) % max(x.ndim, 1) for d in summed}
    return prod(n for d, n in enumerate(x.shape) if d not in summed)


def _pads_in_full_precision(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a padding is one of the operators that run in float32."""
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
    pad = kwargs.get("pad", args[1] if len(args) > 1 else ())
    return (mode == "reflect" and len(pad) <= 4) or mode == "replicate"


def target_dtype(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The dtype that autocast casts the arguments of a public function to; None if it does not.

    False: it does not, nor those of the operators that the function is composed of.
    """
    lower = state.dtype_of("cpu")
    if name in LOWER_PRECISION:
        return lower
    if name in FULL_PRECISION:
        return dtypes.float32
    if name in WIDEST:
        return widest((*args, *kwargs.values()), lower)
    if name == "einsum":
        return lower if _contracts(args) else None
    if name == "tensordot":
        tensors, dims = _tensors(args), kwargs.get("dims", args[2] if len(args) > 2 else 2)
        return lower if any(_free_elements(x, i, dims) > 1 for i, x in enumerate(tensors)) else False
    if name == "inner":
        return lower if all(x.ndim for x in _tensors(args)) and any(x.ndim > 1 for x in _tensors(args)) else None
    if name == "pad":
        return dtypes.float32 if _pads_in_full_precision(args, kwargs) else None
    return None


def target_dtype_on_cuda(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`target_dtype` on a CUDA device.

    Raises:
        RuntimeError: an operator that is unsafe in low precision (PyTorch's text).
    """
    lower = state.dtype_of("cuda")
    if name.endswith("_") and not name.endswith("__"):  # in-place operators keep their dtype
        return None
    if name in cuda_policies.LOWER_PRECISION:
        return lower
    if name in cuda_policies.FULL_PRECISION:
        return None if kwargs.get("dtype") is not None else dtypes.float32
    if name in cuda_policies.WIDEST:
        return widest((*args, *kwargs.values()), lower, "cuda")
    if name == "einsum":
        return lower if _contracts(args) else None
    if name in cuda_policies.BANNED:
        raise RuntimeError(cuda_policies.UNSAFE)
    return None


def _kind_of(args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """The type of device that a call's tensors are on."""
    if not device_memory.count:
        return "cpu"
    return "cuda" if any(x._device.type == "cuda" for x in _tensors((*args, *kwargs.values()))) else "cpu"


@functools.cache
def _is_primitive(name: str) -> bool:
    """Whether a public function is one operator, so that autocast has nothing to cast within it."""
    if name.startswith("torch.Tensor.__"):
        return name.removeprefix("torch.Tensor.") in _OPERATORS_OF_PYTHON
    op = REGISTRY.get(operator_of(name).removesuffix("_"))
    return op is not None and op.kind != COMPOSITE


def call(name: str, implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a public function under autocast, if that is on in this thread.

    Args:
        name: the function's qualified name, `torch.mm`.
        implementation: the function.
    """
    kind = _kind_of(args, kwargs)
    if not state.acts(kind) or kwargs.get("out") is not None:
        return implementation(*args, **kwargs)
    dtype = (target_dtype_on_cuda if kind == "cuda" else target_dtype)(operator_of(name), args, kwargs)
    if dtype is None and not (_is_primitive(name) and special[0] == active_autocasts[0] + (
            kind == "cuda")):
        return implementation(*args, **kwargs)
    with state.excluded():
        if dtype:
            args = tuple([cast(x, dtype, kind) for x in args])
            kwargs = {key: cast(x, dtype, kind) for key, x in kwargs.items()}
        return implementation(*args, **kwargs)


state.run_function[0] = call
