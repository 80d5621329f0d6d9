"""Elementwise kernels against NumPy: values, dtypes, shapes, layouts, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import dtypes
from flambeau.backends.compiled import compiled_operators
from flambeau.backends.compiled.operators import Operators
from flambeau.ops.declare import REGISTRY
from tests.ops.spec import Make, load, public

F32 = np.dtype(np.float32)
RECORDS = load()
ELEMENTWISE = sorted(name for name in RECORDS if (op := REGISTRY.get(name.rsplit(".", 1)[-1])) is not None
                     and op.kind == "elementwise")
#: records of operators composed of elementwise ones
MADE_OF_THEM = ["clamp", "addcmul", "addcdiv", "lerp", "nn.functional.prelu", "nn.functional.rrelu", "float_power",
                "nn.functional.relu6", "special.xlog1py", "special.ndtr", "nn.functional.tanhshrink", "rsub", "square"]

#: operators without a kernel, and why
WITHOUT = {
    "_div_rounded_twice": "trunc_divide_narrow has no expression",
    "gcd": "gcd has no expression", "lcm": "lcm has no expression", "nextafter": "nextafter has no expression",
    "complex": "complex has no expression", "polar": "polar has no expression", "frexp": "several results",
    "bitwise_left_shift": "bitwise_left_shift has no expression",
    "bitwise_right_shift": "bitwise_right_shift has no expression",
    "special_erfcx": "erfcx has no expression", "special_log_ndtr": "log_ndtr has no expression",
    "special_ndtri": "ndtri has no expression",
    "_polygamma": "polygamma has no expression",
    **dict.fromkeys(("special_zeta", "_special_zeta_first_scalar", "_special_zeta_second_scalar"),
                    "zeta has no expression"), "i0": "i0 has no expression",
    "special_i0e": "i0e has no expression", "special_i1": "i1 has no expression",
    "special_i1e": "i1e has no expression", "conj_physical": "the result is the input",
    "igamma": "gammainc has no expression", "igammac": "gammaincc has no expression",
    "special_modified_bessel_i0": "i0 has no expression", "special_modified_bessel_i1": "i1 has no expression",
    "special_modified_bessel_k0": "bessel_k0 has no expression",
    "special_modified_bessel_k1": "bessel_k1 has no expression",
    "special_scaled_modified_bessel_k0": "bessel_k0e has no expression",
    "special_scaled_modified_bessel_k1": "bessel_k1e has no expression",
    **{f"special_{name}": f"{name} has no expression" for name in (
        "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "airy_ai",
        *(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"),
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p")},
    "_standard_gamma_grad": "standard_gamma_grad has no expression",
    "_dirichlet_grad": "dirichlet_grad has no expression",
}
PARAMETERS = {"threshold": 0.1, "negative_slope": 0.01, "min_val": -1.0, "max_val": 1.0, "lambd": 0.5, "alpha": 2.0,
              "value": 2.0, "lower": 0.1, "upper": 0.3, "training": True, "other": 2.0, "rounding_mode": "trunc",
              "exponent": 2.5, "base": 3.0, "decimals": 2, "min": 0.1, "max": 0.5, "weight": 0.3, "n": 1, "p": 2,
              "input": 2.0}


def test_operators_without_kernel_are_listed():
    operators = Operators(REGISTRY)
    found = {}
    for key, op in REGISTRY.items():
        if op.kind != "elementwise":
            continue
        params = {name: PARAMETERS[name] if op.defaults.get(name) is None else op.defaults[name]
                  for name in op.params if name in PARAMETERS or op.defaults.get(name) is not None}
        dtype = np.dtype(np.int64) if key.startswith("bitwise") else F32
        if operators.kernel_for(op, [dtype] * len(op.inputs), params) is None:
            [found[key]] = operators.forwards(op).failures()
    assert found == WITHOUT


def distance(a, b):
    """The largest difference in units in the last place."""
    if a.dtype.kind not in "fV":
        return 0.0 if np.array_equal(a, b) else np.inf
    narrow = a.dtype in dtypes.NARROW
    wide_a, wide_b = dtypes.widen(a), dtypes.widen(b)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    with np.errstate(all="ignore"):
        apart = np.abs(wide_a.astype("f8") - wide_b) / np.spacing(np.maximum(np.abs(wide_a), np.abs(wide_b)))
    largest = float(np.max(np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)), initial=0))
    return largest / (2**13 if a.dtype == np.float16 else 2**16) if narrow else largest


def alike(a, b, ulps):
    """Whether gradients differ by no more than so many units in the last place of the largest: some are sums."""
    if a.dtype.kind not in "fV":
        return np.array_equal(a, b)
    wide_a, wide_b = dtypes.widen(a).astype("f8"), dtypes.widen(b).astype("f8")
    eps = dtypes.finfo(dtypes.of(a.dtype)).eps
    scale = np.max(np.abs(wide_a), initial=0, where=np.isfinite(wide_a))
    return np.allclose(wide_a, wide_b, rtol=ulps * eps, atol=ulps * eps * scale, equal_nan=True)


def laid_out(x, layout):
    if layout == "turned" and x.ndim > 1:
        return x.t().contiguous().t() if x.ndim == 2 else x
    if layout == "gaps" and x.ndim and x.numel():
        wide = torch.empty(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x


def outcome(name, dtype, number, layout="rows", grad=True):
    """The results of one sample; and the gradients of the tensors that its record differentiates by."""
    samples = list(RECORDS[name].samples(Make(torch, dtype, grad, 3)))
    sample, leaves = samples[number], []
    # whether any tensor of the sample asks for a gradient; where none does, the record does not choose
    differentiable = any(x.requires_grad for x in (*sample.args, *sample.kwargs.values())
                         if isinstance(x, torch.Tensor))

    def prepared(x):
        if not isinstance(x, torch.Tensor):
            return x
        wanted = x.requires_grad or (x.dtype.is_floating_point and not differentiable)
        x = laid_out(x.detach(), layout)
        if grad and wanted:
            leaves.append(x.requires_grad_())
        return x

    found = public(torch, name)(*map(prepared, sample.args), **{k: prepared(v) for k, v in sample.kwargs.items()})
    outs = list(found) if isinstance(found, (tuple, list)) else [found]
    results = [out.detach() for out in outs]
    gradients = []
    loss = [out for out in outs if out.requires_grad]
    if loss and RECORDS[name].differentiable:
        seeds = [torch.linspace(0.5, 1.5, out.numel(), dtype=torch.float32).to(out.dtype).reshape(out.shape)
                 for out in loss]
        gradients += torch.autograd.grad(loss, leaves, seeds, allow_unused=True)
    return results, gradients


def compare(impls, name, dtype, number, layout):
    (expected, gradients), (found, ours) = impls.both(lambda: outcome(name, dtype, number, layout))
    for x, y in zip(expected, found, strict=True):
        same_form(x, y)
        assert distance(x._array, y._array) <= LOOSE.get(name, 4), (x, y)
    for x, y in zip(gradients, ours, strict=True):
        if x is None or y is None:
            assert x is y
        else:
            same_form(x, y)
            assert alike(x._array, y._array, 8), (x, y)


def same_form(x, y):
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    # NumPy's bfloat16 results are row-major for any layout of the operands
    assert x.stride() == y.stride() or x.dtype is torch.bfloat16


def count(name, dtype):
    return len(list(RECORDS[name].samples(Make(torch, dtype, False, 3))))


#: differences of what is nearly the same, and several functions deep
LOOSE = {"nn.functional.tanhshrink": 1024, "nn.functional.gelu": 8, "special.ndtr": 8, "float_power": 8,
         "logaddexp2": 32}  # near 0 it is a difference, and NumPy releases differ in the parts


@pytest.mark.parametrize("name", dict.fromkeys([*ELEMENTWISE, *(name for name in MADE_OF_THEM if name in RECORDS)]))
def test_records(impls, name):
    dtype = torch.float32 if RECORDS[name].floats else torch.int64
    for number in range(min(2, count(name, dtype))):
        compare(impls, name, dtype, number, "rows")


SOME = ["add", "div", "exp", "maximum", "where", "nn.functional.gelu", "nn.functional.leaky_relu", "pow", "clamp"]


@pytest.mark.parametrize("layout", ["turned", "gaps"])
@pytest.mark.parametrize("name", [name for name in SOME if name in RECORDS])
def test_layouts(impls, name, layout):
    for number in range(min(3, count(name, torch.float32))):
        compare(impls, name, torch.float32, number, layout)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", [name for name in SOME if name in RECORDS])
def test_dtypes(impls, name, dtype):
    for number in range(min(2, count(name, dtype))):
        compare(impls, name, dtype, number, "rows")


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8], ids=str)
@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "abs", "sign"])
def test_integers(impls, name, dtype):
    if RECORDS[name].integers:
        for number in range(count(name, dtype)):
            compare(impls, name, dtype, number, "rows")


# ----- what no record says --------------------------------------------------------------------


def test_mixed_dtypes_are_promoted_in_the_kernel(impls):
    tensors = [torch.arange(6), torch.arange(6, dtype=torch.uint8), torch.linspace(-2, 3, 6).half(),
               torch.linspace(-2, 3, 6), torch.linspace(-2, 3, 6).double(), torch.tensor([True, False] * 3),
               torch.tensor(2.5), torch.tensor(2), 2.5, 3]
    for k, x in enumerate(tensors[:6]):
        for y in [*tensors[:k], *tensors[6:]]:
            expected, found = impls.both(lambda x=x, y=y: torch.mul(x, y))
            assert expected.dtype is found.dtype
            assert distance(expected._array, found._array) <= 1, (x, y)
    x, y = torch.linspace(-2, 3, 6).bfloat16(), torch.linspace(1, 2, 6).half()
    for f in (torch.add, torch.eq, torch.div, lambda x, y: torch.where(x > 0, x, y)):
        expected, found = impls.both(lambda f=f: f(x, y))
        assert expected.dtype is found.dtype
        assert distance(expected._array, found._array) <= 1, f


def test_a_new_scalar_compiles_no_kernel(everything_large):
    x = torch.linspace(0.1, 1, 50)
    for op, f in ((REGISTRY["mul"], lambda c: x * c), (REGISTRY["leaky_relu"], lambda c: torch.nn.functional.leaky_relu(
            x - 0.5, c)), (REGISTRY["_add_scaled"], lambda c: x.add(x, alpha=c)),
            (REGISTRY["_clamp_scalars"], lambda c: x.clamp(0.0, c)), (REGISTRY["_pow_scalar"], lambda c: x**c)):
        f(0.3)
        forwards = compiled_operators(REGISTRY).forwards(op)
        before = sum(map(len, forwards._formulas.values()))
        for c in (0.31, 0.75, 0.9):
            f(c)
        assert sum(map(len, forwards._formulas.values())) == before, op
        np.testing.assert_allclose(f(0.75).numpy(), f(0.75).numpy())
    np.testing.assert_allclose((x * 0.7).numpy(), x.numpy() * np.float32(0.7))


def test_parameters_that_select_the_formula_compile_a_kernel(impls):
    x = torch.linspace(-2, 2, 40)
    for exponent in (2, 3, 0.5, -1, 2.5, 0, 1):
        expected, found = impls.both(lambda e=exponent: x.abs() ** e)
        assert distance(expected._array, found._array) <= 2
    for approximate in ("none", "tanh"):
        expected, found = impls.both(lambda a=approximate: torch.nn.functional.gelu(x, approximate=a))
        assert distance(expected._array, found._array) <= 8
    with pytest.raises(RuntimeError, match="approximate argument"):
        impls.kernels(lambda: torch.nn.functional.gelu(x, approximate="fast"))
    with pytest.raises(RuntimeError, match="alpha cannot be 0"):
        impls.kernels(lambda: torch.celu(x, 0.0))
    with pytest.raises(RuntimeError, match=r"lambda must be in range .* but found -0\.5"):
        impls.kernels(lambda: torch.nn.functional.softshrink(x, -0.5))


def test_errors_are_those_of_small_arrays(impls):
    def said(function):
        try:
            function()
        except Exception as error:
            return type(error), str(error)
        raise AssertionError("no error")

    x, y, b = torch.ones(3, 4), torch.ones(5, 4), torch.ones(6, dtype=torch.bool)
    for f in (lambda: x + y, lambda: torch.where(x > 0, x, y), lambda: -b, lambda: b - b,
              lambda: torch.bitwise_and(x, x), lambda: torch.arange(6) // 0, lambda: x.add_(torch.ones(7)),
              lambda: torch.arange(6).add_(0.5),
              lambda: torch.lerp(x, x.double(), 0.5), lambda: x.expand(2, 3, 4).mul_(2)):
        expected, found = impls.both(lambda f=f: said(f))
        assert expected == found


# ----- in place --------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [
    lambda x, y: x.add_(y), lambda x, y: x.mul_(2.5), lambda x, y: x.sub_(y, alpha=0.5), lambda x, y: x.exp_(),
    lambda x, y: x.addcmul_(y, y, value=0.1), lambda x, y: x.clamp_(-0.5, 0.5), lambda x, y: x.div_(y[0]),
    lambda x, y: x.copy_(y).relu_(), lambda x, y: x.t().mul_(y.t()), lambda x, y: x[:, ::2].add_(1),
    lambda x, y: x.mul_(x), lambda x, y: x.add_(x.t()) if x.shape[0] == x.shape[1] else x.neg_(),
    lambda x, y: x[1:].add_(x[:-1].clone()),
])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
def test_writes(impls, write, dtype):
    def run():
        x, y = (torch.tensor(np.random.default_rng(k).integers(1, 9, (6, 8))).to(dtype) for k in (0, 1))
        try:
            write(x, y)
        except RuntimeError as error:
            return str(error)
        return x

    expected, found = impls.both(run)
    if isinstance(expected, str):
        assert found == expected
    else:
        assert found.dtype is expected.dtype
        assert found._version == expected._version
        assert distance(expected._array, found._array) <= 1


def test_writes_are_recorded(impls):
    def run():
        x = torch.linspace(-1, 1, 30, requires_grad=True)
        y = x * 1
        y.mul_(2.0)
        y.sin_()
        y[::2].add_(x[::2])
        y.sum().backward()
        return x.grad

    expected, found = impls.both(run)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)
