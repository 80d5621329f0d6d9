"""PyTorch's table of operators: which there are, which the candidate has, and their samples.

An operator's full name is PyTorch's: `name`, or `name.variant` where one name has several entries.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .bridge import Side
from .rebind import Missing, rebind, resolve

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core as opinfo_core
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, OpInfo, UnaryUfuncInfo

# For each list of samples PyTorch reads the sources of all frames, in search of a `unittest` method; here is none, and
# the search takes six times as long as all else.
common_utils.extract_test_fn = opinfo_core.extract_test_fn = lambda: None

# A sample with more elements than this is left out: it tests size, not behaviour.
LARGEST_SAMPLE = 100_000

# Results whose values mean nothing: only shape, dtype and layout are compared.
UNINITIALISED = frozenset((
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_",
))

# Factorisations that are unique only up to a sign or phase: compare what the sample's own
# `output_process_fn_grad` keeps of them.
GAUGE = frozenset((
    "svd", "linalg.svd", "svd_lowrank", "pca_lowrank", "linalg.eig", "linalg.eigh", "linalg.qr", "qr",
))

# Entries that exist for a compiler, a GPU or PyTorch's own internals, by how their names begin ...
INTERNAL = (
    *("jiterator", "torch.", "_", "bmm.triton", "max_pool2d_with_indices_backward"),
    *("native_dropout_backward", "nn.functional.batch_norm.without_cudnn"),
)
# ... and those with nothing to compare: sparse results, and `slice`, which is no function of PyTorch's.
INCOMPARABLE = frozenset(("sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse", "slice"))

# What the project promises first; a missing one is a failure, not a skip.
REQUIRED = tuple(
    """
    add sub mul div.no_rounding_mode div.trunc_rounding div.floor_rounding true_divide floor_divide
    remainder fmod
    neg pow float_power reciprocal square __radd__ __rdiv__ __rmul__ __rsub__ rsub __rpow__ __rmod__
    __rmatmul__
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt abs sign
    sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
    sigmoid nn.functional.relu erf clamp clamp_min clamp_max floor ceil
    round round.decimals_0 round.decimals_3 round.decimals_neg_3 trunc frac
    maximum minimum max.binary min.binary where lerp
    sum mean prod var var.unbiased std std.unbiased var_mean std_mean
    min.reduction_with_dim min.reduction_no_dim max.reduction_with_dim max.reduction_no_dim
    argmin argmax amin amax norm norm.fro norm.inf norm.nuc cumsum cumprod logsumexp all any
    reshape view view_as reshape_as flatten unflatten ravel squeeze squeeze.multiple unsqueeze transpose
    t permute
    movedim T mT expand expand_as repeat tile cat stack hstack vstack split split.list_args
    split_with_sizes chunk
    unbind flip fliplr flipud roll tril triu diag diagonal
    gather scatter scatter_add index_select index_add masked_fill masked_select take_along_dim nonzero
    __getitem__ index_put sort argsort topk unique bincount einsum matmul mm bmm mv dot outer addmm
    softmax softmax.with_dtype log_softmax log_softmax.with_dtype
    zeros ones full empty arange linspace eye randn randint zeros_like ones_like full_like empty_like
    randn_like
    rand_like randint_like new_zeros new_ones new_full new_empty bernoulli multinomial normal
    scalar_tensor
    clone contiguous to float double long int bool half bfloat16 item
    nn.functional.linear nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
    nn.functional.max_pool2d
    nn.functional.batch_norm nn.functional.layer_norm nn.functional.embedding nn.functional.dropout
    nn.functional.relu6 nn.functional.leaky_relu nn.functional.elu nn.functional.selu nn.functional.celu
    nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.hardtanh
    nn.functional.hardswish
    nn.functional.hardsigmoid nn.functional.softplus nn.functional.softsign nn.functional.logsigmoid
    nn.functional.tanhshrink nn.functional.softshrink nn.functional.hardshrink nn.functional.threshold
    nn.functional.glu nn.functional.prelu nn.functional.softmin
    nn.functional.mse_loss nn.functional.cross_entropy nn.functional.nll_loss
    nn.functional.binary_cross_entropy
    nn.functional.binary_cross_entropy_with_logits
    """.split()  # noqa: SIM905  (a page of names, not of quotes)
)


def full_name(op: OpInfo) -> str:
    """The name under which the operator is listed."""
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


@functools.cache
def operators() -> dict[str, OpInfo]:
    """Every operator of PyTorch's table that has a meaning outside PyTorch's own runtime."""
    return {full_name(op): op for op in op_db if not _internal(op)}


def _internal(op: OpInfo) -> bool:
    name = full_name(op)
    return name in INCOMPARABLE or (name.startswith(INTERNAL) and not name.startswith("__"))


def named(name: str) -> list[OpInfo]:
    """The operators called `name`: one full name, or all variants of a bare one."""
    table = operators()
    exact = [table[name]] if name in table else []
    return exact or [op for op in table.values() if op.name == name]


def function_of(op: OpInfo, side: Side) -> Callable:
    """The side's function for the operator; raises Missing, naming what is not there."""
    if absent := absence(op, side):
        raise Missing(absent)
    return rebind(op.op, side.module, op.name)


def absence(op: OpInfo, side: Side) -> str | None:
    """What the side lacks of the operator, or None."""
    module, name = side.module, op.name
    if name.startswith("__"):  # looked up as Python does: in the classes, not in their metaclass
        there = any(name in vars(base) for base in module.Tensor.__mro__ if base is not object)
    else:
        paths = [name] if "." in name else [name, f"Tensor.{name}", f"Tensor.{name}_"]
        there = any(map(functools.partial(_has, module), paths))
    if not there:
        return f"missing {name}"
    try:
        # A public function must be public here too: the method alone does not do.
        rebind(op.op, module, name)
    except Missing as missing:
        return str(missing)
    return None


def _has(module: Any, path: str) -> bool:
    try:
        found = resolve(module, path)
    except Missing:
        return False
    return callable(found) or path in ("Tensor.T", "Tensor.H", "Tensor.mT", "Tensor.mH")


def present(op: OpInfo, side: Side) -> bool:
    """Whether the side has the operator at all."""
    return absence(op, side) is None


def is_elementwise(op: OpInfo) -> bool:
    return isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo))


def dtype_names(op: OpInfo) -> list[str]:
    """The dtypes the operator takes on PyTorch's CPU, float32 first."""
    names = sorted(str(d).removeprefix("torch.") for d in op.supported_dtypes("cpu"))
    order = ["float32", "float64", "int64", "bool", "complex64"]
    return [n for n in order if n in names] + [n for n in names if n not in order]


def gradient_dtypes(op: OpInfo) -> list[str]:
    """The dtypes in which derivatives are compared: wide ones only, so that differences mean mistakes."""
    if not op.supports_autograd:
        return []
    names = {str(d).removeprefix("torch.") for d in op.supported_backward_dtypes("cpu")}
    return [n for n in ("float64", "complex128") if n in names]


def samples(op: OpInfo, dtype: str, *, requires_grad: bool = False, rich: bool = False) -> list[Any]:
    """PyTorch's samples for the operator; `rich`: its larger set."""
    make = op.reference_inputs if rich else op.sample_inputs
    return list(make("cpu", getattr(torch, dtype), requires_grad=requires_grad))


def spread(samples: list[Any], limit: int) -> Iterator[tuple[int, Any]]:
    """(index, sample) pairs: `limit` of them, from first to last at even distances."""
    last = len(samples) - 1
    if limit > last:
        chosen = range(last + 1)
    else:
        chosen = dict.fromkeys(round(k * last / max(limit - 1, 1)) for k in range(limit))
    for index in chosen:
        if _numel(samples[index]) <= LARGEST_SAMPLE:
            yield index, samples[index]


def _numel(sample: Any) -> int:
    pools = [sample.input, *sample.args, *sample.kwargs.values()]
    return max((t.numel() for t in Side.named("torch").tensors(pools)), default=0)
