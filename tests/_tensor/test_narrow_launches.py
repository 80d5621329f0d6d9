"""Known calls of float16 and bfloat16: the bits and layouts of calls that Python runs."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, dtypes
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels
from flambeau.backends.compiled.thresholds import SMALL_KERNELS
from flambeau.runtime import object_layout

F = torch.nn.functional
MANY = CALLS + PROOFS + 10
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")
SPECIAL = [float("nan"), float("inf"), -float("inf"), -0.0, 65504.0, 1e-7, 6e-8, 3e38]

CALLS_ = {
    "mul": lambda x, y: x * y, "number": lambda x, y: x * 2, "0.1": lambda x, y: x + 0.1, "div": lambda x, y: x / y,
    "1 - x": lambda x, y: 1 - x, "row": lambda x, y: x * y[0], "pow": lambda x, y: x ** 2, "gt": lambda x, y: x > 0.1,
    "eq": lambda x, y: x == y, "maximum": torch.maximum, "exp": lambda x, y: x.exp(), "tanh": lambda x, y: x.tanh(),
    "neg": lambda x, y: -x, "abs": lambda x, y: x.abs(), "round": lambda x, y: x.round(),
    "isnan": lambda x, y: x.isnan(),
    "sqrt": lambda x, y: x.abs().sqrt(), "relu": lambda x, y: x.relu(), "gelu": lambda x, y: F.gelu(x),
    "gelu, tanh": lambda x, y: F.gelu(x, approximate="tanh"), "clamp": lambda x, y: x.clamp(-1, 1),
    "leaky": lambda x, y: F.leaky_relu(x, 0.3), "where": lambda x, y: torch.where(x > 0, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3), "softmax": lambda x, y: x.softmax(1), "log_softmax": lambda x, y: (
        x.log_softmax(0)), "sum": lambda x, y: x.sum(), "sum(0)": lambda x, y: x.sum(0), "mean": lambda x, y: x.mean(1),
    "var": lambda x, y: x.var(1), "amax": lambda x, y: x.amax(1), "max": lambda x, y: tuple(x.max(1)),
    "cumsum": lambda x, y: x.cumsum(0), "sort": lambda x, y: tuple(x.sort(1)), "norm": lambda x, y: x.norm(dim=1),
    "layer_norm": lambda x, y: F.layer_norm(x, (x.shape[1],)), "affine": lambda x, y: F.layer_norm(
        x, (x.shape[1],), y[0], y[1]), "rms_norm": lambda x, y: F.rms_norm(x, (x.shape[1],)),
    "mse_loss": lambda x, y: F.mse_loss(x, y), "matmul": lambda x, y: x @ y.t(),
    "transposed": lambda x, y: x.t() * y.t(),
    "cross_entropy": lambda x, y: F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long)),
    "smoothed": lambda x, y: F.cross_entropy(x, torch.arange(x.shape[0]) % x.shape[1], label_smoothing=0.1),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, -2.5), "divided": lambda x, y: x / torch.tensor(3),
    "int64": lambda x, y: x * torch.arange(x.shape[1]),
    "mixed": lambda x, y: x * y.float(), "pad": lambda x, y: F.pad(x, (1, 1)), "cat": lambda x, y: torch.cat([x, y]),
    "casts": lambda x, y: x.float().to(x.dtype), "glu": lambda x, y: F.glu(x), "prod": lambda x, y: x.prod(1)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(4, 4), (6, 32)])
@pytest.mark.parametrize("name", CALLS_)
def test_bits(name, shape, dtype):
    enable_kernels()
    call = CALLS_[name]
    for seed in range(MANY):
        rng = np.random.default_rng(seed)
        x, y = (torch.from_numpy(rng.standard_normal(shape).astype(np.float32) * 2).to(dtype) for _ in range(2))
        if seed > MANY - 9:
            x.view(-1)[seed % 7] = SPECIAL[seed % 8]
        found = call(x, y)
        SMALL_KERNELS[0] = False
        try:
            expected = call(x, y)
        finally:
            SMALL_KERNELS[0] = True
        for a, b in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
            assert (a.dtype, a.shape, a.stride(), a.requires_grad) == (b.dtype, b.shape, b.stride(), b.requires_grad)
            assert np.array_equal(a.float().numpy(), b.float().numpy(), equal_nan=True), seed
            assert np.array_equal(np.signbit(a.float().numpy()), np.signbit(b.float().numpy())) or a.isnan().any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_are_recorded(dtype):
    enable_kernels()
    x = torch.ones(4, 4, dtype=dtype)
    leaf = x.clone().requires_grad_()
    for call in (lambda a: a * 2, lambda a: a.exp(), lambda a: F.gelu(a), lambda a: a.softmax(1), lambda a: a.sum(1),
                 lambda a: F.layer_norm(a, (4,)), lambda a: torch.where(a > 0, a, 0.0)):
        for _ in range(MANY):
            call(x)
        result = call(leaf)
        assert result.grad_fn is not None
        result.sum().backward()
        assert leaf.grad.dtype is dtype
        leaf.grad = None
        with torch.no_grad():
            assert torch.equal(call(leaf), result)


def test_casts_of_few_elements():
    """One call of generated code has the bits of NumPy's passes, for any number, layout and not-a-number."""
    enable_kernels()
    bits = np.random.default_rng(0).integers(0, 1 << 32, 200, dtype=np.uint32)
    bits[:8] = [0x7F800001, 0xFF800001, 0x7F7FFFFF, 0xFFFFFFFF, 1, 0x80000000, 0x3F808000, 0x3F818000]
    single = bits.view(np.float32)
    narrow = np.arange(0, 1 << 16, 61, dtype=np.uint16).view(dtypes.BFLOAT16)
    arrays = [x[:n].reshape(shape) for x in (single, narrow) for n, shape in (
        (0, (0, 3)), (1, ()), (7, (7,)), (200, (8, 25)))]
    arrays += [single.reshape(8, 25).T, narrow[:200].reshape(8, 25)[:, ::2], single[3], np.broadcast_to(single[:1], 3)]

    def converted():
        return [(each.shape, each.strides, each.dtype, each.tobytes()) for x in arrays for each in (
            dtypes.cast(x, dtypes.BFLOAT16), dtypes.cast(x, np.dtype(np.float32)), dtypes.widen(x))]

    found = converted()
    SMALL_KERNELS[0] = False
    try:
        assert found == converted()
    finally:
        SMALL_KERNELS[0] = True
