"""Tensors print as PyTorch prints them: golden strings, then random tensors compared with PyTorch's output."""

from __future__ import annotations

import random
from math import inf, nan
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from flambeau import config, dtypes
from flambeau._tensor import printing
from flambeau._tensor.printing import parameter_str, printoptions, set_printoptions, tensor_format, tensor_str
from flambeau.backends.elementless_array import without_elements


class Device:
    def __init__(self, text: str) -> None:
        self.type, self.text = text.partition(":")[0], text

    def __str__(self) -> str:
        return self.text


class Node:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name


LEVEL = 1  # of forward mode, open in every test here


class Tensor:
    """The attributes that printing reads, and no operation at all."""

    __module__ = "flambeau"

    def __init__(self, values: Any, dtype: dtypes.dtype | None = None, *, device: str = "cpu",
                 requires_grad: bool = False, grad_fn: str | None = None, tangent: Any = None) -> None:
        if not isinstance(values, np.ndarray):
            values = np.array(values)
            if dtype is None:
                kind = {"f": dtypes.float32, "c": dtypes.complex64}
                dtype = kind.get(values.dtype.kind) or dtypes.of(values.dtype)
        if dtype is not None:
            with np.errstate(over="ignore"):
                values = dtypes.cast(values, dtype.numpy)
        self._array, self.shape, self.dtype = values, values.shape, dtypes.of(values.dtype)
        self.device = Device(device)
        if device == "meta":
            self._array = without_elements(values)
        self.requires_grad, self.is_leaf = requires_grad, grad_fn is None
        self.grad_fn = None if grad_fn is None else Node(grad_fn)
        self._tangents = None if tangent is None else {LEVEL: tangent}

    def __repr__(self) -> str:
        return tensor_str(self)

    def __format__(self, spec: str) -> str:
        return tensor_format(self, spec)


class Parameter(Tensor):
    __module__ = "flambeau.nn.parameter"

    def __repr__(self) -> str:
        return parameter_str(self)


@pytest.fixture(autouse=True)
def torch_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config, "module_name", "torch")
    monkeypatch.setattr(printing, "forward_levels", {LEVEL})
    yield
    set_printoptions(profile="default")
    dtypes.set_default_dtype(dtypes.float32)


def text(*args: Any, **kwargs: Any) -> str:
    return tensor_str(Tensor(*args, **kwargs))


# ----- golden strings: PyTorch 2.13's ----------------------------------------------------


@pytest.mark.parametrize(("values", "expected"), [
    (1.0, "tensor(1.)"),
    (-0.0, "tensor(-0.)"),
    (0.1, "tensor(0.1000)"),
    (1e-4, "tensor(1.0000e-04)"),  # just below, as a float32
    (inf, "tensor(inf)"),
    (3, "tensor(3)"),
    (True, "tensor(True)"),
    (1 - 2.5j, "tensor(1.-2.5000j)"),
    ([1.0, 2.0], "tensor([1., 2.])"),
    ([1.0, 2.5, -3.0], "tensor([ 1.0000,  2.5000, -3.0000])"),
    ([1.0, 1001.0], "tensor([1.0000e+00, 1.0010e+03])"),
    ([1.0, 1000.0], "tensor([   1., 1000.])"),
    ([1e-5, 1.5, -3.0], "tensor([ 1.0000e-05,  1.5000e+00, -3.0000e+00])"),
    ([1e8, 3e8], "tensor([1.0000e+08, 3.0000e+08])"),
    ([1e-45, 1.0], "tensor([1.4013e-45, 1.0000e+00])"),
    ([inf, nan, 0.0, -0.0], "tensor([inf, nan, 0., -0.])"),
    ([inf, 1.0], "tensor([inf, 1.])"),
    ([inf, 1.5, -0.0], "tensor([   inf, 1.5000, -0.0000])"),
    ([True, False], "tensor([ True, False])"),
    ([-(2**63), 2**63 - 1], "tensor([-9223372036854775808,  9223372036854775807])"),
    ([1.5 - 2j, 3 + 1e-6j], "tensor([1.5000-2.0000e+00j, 3.0000+1.0000e-06j])"),
    ([complex(nan, -inf)], "tensor([nan-infj])"),
    ([complex(1, -0.0)], "tensor([1.-0.j])"),
    ([[1, 2], [3, 40]], "tensor([[ 1,  2],\n        [ 3, 40]])"),
    ([[[0.0]], [[1.0]]], "tensor([[[0.]],\n\n        [[1.]]])"),
])
def test_values(values: Any, expected: str) -> None:
    assert text(values) == expected


@pytest.mark.parametrize(("values", "dtype", "expected"), [
    ([0.5, -65504.0], dtypes.float16, "tensor([ 5.0000e-01, -6.5504e+04], dtype=torch.float16)"),
    ([0.1, 1.0], dtypes.bfloat16, "tensor([0.1001, 1.0000], dtype=torch.bfloat16)"),
    ([1.0], dtypes.float64, "tensor([1.], dtype=torch.float64)"),
    ([1e308, 5e-324], dtypes.float64, "tensor([1.0000e+308, 4.9407e-324], dtype=torch.float64)"),
    ([1], dtypes.uint8, "tensor([1], dtype=torch.uint8)"),
    ([2**64 - 1], dtypes.uint64, "tensor([18446744073709551615], dtype=torch.uint64)"),
    ([1j], dtypes.complex128, "tensor([0.+1.j], dtype=torch.complex128)"),
    (np.zeros(0), dtypes.float32, "tensor([])"),
    (np.zeros(0), dtypes.int64, "tensor([], dtype=torch.int64)"),
    (np.zeros(0), dtypes.complex64, "tensor([], dtype=torch.complex64)"),
    (np.zeros((0, 3)), dtypes.float32, "tensor([], size=(0, 3))"),
    (np.zeros((4, 0, 3)), dtypes.bool_, "tensor([], size=(4, 0, 3), dtype=torch.bool)"),
])
def test_dtypes(values: Any, dtype: dtypes.dtype, expected: str) -> None:
    assert text(np.array(values), dtype) == expected


def test_the_default_dtype_is_omitted() -> None:
    one = np.ones(1)
    dtypes.set_default_dtype(dtypes.float64)
    assert text(one) == "tensor([1.])"
    assert text(one + 0j) == "tensor([1.+0.j])"
    assert text(one, dtypes.float32) == "tensor([1.], dtype=torch.float32)"
    assert text(one, dtypes.int64) == "tensor([1])"
    assert text(one[:0], dtypes.complex128) == "tensor([], dtype=torch.complex128)"
    dtypes.set_default_dtype(dtypes.bfloat16)
    assert text(one, dtypes.bfloat16) == "tensor([1.])"
    assert text(one, dtypes.complex64) == "tensor([1.+0.j])"


def test_dtypes_print_under_the_name_the_library_was_imported_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "module_name", "flambeau")
    assert text(np.ones(1)) == "tensor([1.], dtype=flambeau.float64)"


def test_long_rows_wrap() -> None:
    assert text(np.arange(22)) == (
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21])")


def test_large_tensors_are_summarized() -> None:
    assert text(np.arange(1001.0), dtypes.float32) == (
        "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])")
    assert text(np.arange(1100).reshape(11, 100)) == (
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [ 800,  801,  802,  ...,  897,  898,  899],\n"
        "        [ 900,  901,  902,  ...,  997,  998,  999],\n"
        "        [1000, 1001, 1002,  ..., 1097, 1098, 1099]])")
    with printoptions(threshold=5, edgeitems=1):
        assert text(np.zeros((3, 3, 3)), dtypes.float32) == (
            "tensor([[[0.,  ..., 0.],\n"
            "         ...,\n"
            "         [0.,  ..., 0.]],\n"
            "\n"
            "        ...,\n"
            "\n"
            "        [[0.,  ..., 0.],\n"
            "         ...,\n"
            "         [0.,  ..., 0.]]])")


def test_hidden_elements_do_not_affect_the_format() -> None:
    values = np.ones(2000)
    values[1000] = 1e-9
    assert text(values, dtypes.float32) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_without_edgeitems_the_size_is_printed() -> None:
    set_printoptions(edgeitems=0)
    assert text(1.5) == "tensor(1.5000, size=())"
    assert text([1.0]) == "tensor([1.], size=(1,))"
    assert text(np.zeros((11, 100)), dtypes.float32) == "tensor([...], size=(11, 100))"
    assert text(np.zeros(0), dtypes.float32) == "tensor([])"


def test_precision_and_notation() -> None:
    set_printoptions(precision=2)
    assert text([1.0, 2.125]) == "tensor([1.00, 2.12])"
    set_printoptions(precision=0)
    assert text([1.0, 2.75]) == "tensor([1, 3])"
    set_printoptions(profile="default", sci_mode=True)
    assert text([1.0, -0.0]) == "tensor([1.0000e+00, -0.0000e+00])"
    assert text([0.0, inf, nan]) == "tensor([0., inf, nan])"
    set_printoptions(sci_mode=False)
    assert text([1e10, 1.0]) == "tensor([10000000000.,           1.])"
    assert text([1e-5, 1.5, -3.0]) == "tensor([ 0.0000,  1.5000, -3.0000])"


def test_suffixes_for_device_dtype_and_grad() -> None:
    assert text([1.0], requires_grad=True) == "tensor([1.], requires_grad=True)"
    assert text([1.0], requires_grad=True, grad_fn="AddBackward0") == "tensor([1.], grad_fn=<AddBackward0>)"
    assert text([1.0], device="cuda:0") == "tensor([1.], device='cuda:0')"
    assert text(np.ones((1, 2)), device="cuda:1", requires_grad=True) == (
        "tensor([[1., 1.]], device='cuda:1', dtype=torch.float64, requires_grad=True)")
    assert text(np.ones((2, 12)), requires_grad=True, grad_fn="MulBackward0") == (
        "tensor([[1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],\n"
        "        [1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.]], dtype=torch.float64,\n"
        "       grad_fn=<MulBackward0>)")


def test_meta_tensors_have_no_values() -> None:
    assert text(np.zeros((2, 3)), dtypes.float32, device="meta") == "tensor(..., device='meta', size=(2, 3))"
    assert text(np.zeros(2), dtypes.int64, device="meta") == (
        "tensor(..., device='meta', size=(2,), dtype=torch.int64)")
    assert text(np.zeros(()), dtypes.float32, device="meta", requires_grad=True) == (
        "tensor(..., device='meta', size=(), requires_grad=True)")


def test_views_without_history() -> None:
    class Broken(Tensor):
        __module__ = "flambeau"

        @property
        def grad_fn(self) -> None:
            raise RuntimeError("Output 0 of UnbindBackward0 is a view and is being modified inplace.")

        @grad_fn.setter
        def grad_fn(self, value: object) -> None: ...

    Broken.__name__ = "Tensor"
    assert tensor_str(Broken([1.0], requires_grad=True)) == "tensor([1.], grad_fn=<Invalid>)"


def test_contents_can_be_given() -> None:
    empty = Tensor(np.zeros((0, 3)), dtypes.float32)
    recorded = Tensor([1.0], requires_grad=True, grad_fn="MulBackward0")
    long = "CONT" * 30
    assert tensor_str(Tensor([1.0]), tensor_contents="C") == "tensor(C)"
    assert tensor_str(empty, tensor_contents="C") == "tensor(C, size=(0, 3))"
    assert tensor_str(recorded, tensor_contents=long) == f"tensor({long},\n       grad_fn=<MulBackward0>)"


def test_parameters_and_subclasses() -> None:
    zeros = np.zeros((2, 2), np.float32)

    class S(Tensor): ...

    class P(Parameter): ...

    assert repr(Parameter(zeros, requires_grad=True)) == (
        "Parameter containing:\ntensor([[0., 0.],\n        [0., 0.]], requires_grad=True)")
    assert repr(Parameter(zeros)) == "Parameter containing:\ntensor([[0., 0.],\n        [0., 0.]])"
    assert repr(S(zeros)) == "S([[0., 0.],\n   [0., 0.]])"
    assert repr(P(zeros, requires_grad=True)) == (
        "Parameter containing:\nParameter(P([[0., 0.],\n   [0., 0.]], requires_grad=True))")
    marked = S(zeros)
    marked._is_param = True
    assert repr(marked) == "Parameter(S([[0., 0.],\n   [0., 0.]]))"
    assert repr(S(zeros, device="meta")) == "S(..., device='meta', size=(2, 2))"


def test_dual_tensors_show_their_tangent() -> None:
    assert text(1.0, tangent=Tensor(2.0)) == "tensor(1., tangent=2.0)"
    assert text([1.0], tangent=Tensor([2.0])) == "tensor([1.], tangent=tensor([2.]))"
    ones = np.ones((2, 2), np.float32)
    assert text(ones, tangent=Tensor(ones / 2)) == (
        "tensor([[1., 1.],\n        [1., 1.]],\n"
        "       tangent=tensor([[0.5000, 0.5000],\n        [0.5000, 0.5000]]))")


def test_format() -> None:
    assert f"{Tensor(3.7)}" == "3.700000047683716"
    assert f"{Tensor(3.7):.2f}" == "3.70"
    assert f"{Tensor(0.1, dtypes.bfloat16)}" == "0.10009765625"
    assert f"{Tensor(3):>4}" == "   3"
    assert f"{Tensor(True)}" == "True"
    assert f"{Tensor(1 + 2j):.2f}" == "1.00+2.00j"
    assert f"{Tensor([1.0, 2.0])}" == "tensor([1., 2.])"
    assert f"{Parameter(2.0)}" == "Parameter containing:\ntensor(2.)"
    assert f"{Tensor(0.0, device='meta')}" == "tensor(..., device='meta', size=())"
    with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
        format(Tensor(3.7), "d")
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Tensor.__format__$"):
        format(Tensor([3.7]), ".2f")
    with pytest.raises(TypeError, match=r"^unsupported format string passed to Parameter.__format__$"):
        format(Parameter(3.7), ".2f")


def test_only_printed_elements_are_converted() -> None:
    fetched = []

    class DeviceArray:
        def __init__(self, host: np.ndarray) -> None:
            self.host, self.shape, self.size, self.ndim = host, host.shape, host.size, host.ndim

        def __getitem__(self, index: Any) -> DeviceArray:
            return DeviceArray(self.host[index])

        def get(self) -> np.ndarray:
            fetched.append(self.size)
            return self.host

    t = Tensor(np.ones((2000, 2000), np.float32), device="cuda:0")
    expected = tensor_str(t)
    t._array = DeviceArray(t._array)
    assert tensor_str(t) == expected
    assert fetched == [36]


def test_printing_does_not_record() -> None:
    import flambeau

    x = flambeau.ones(2, 2, dtype=flambeau.float64, requires_grad=True)
    y = x * 2
    node, version = y.grad_fn, y._version
    assert repr(x) == (
        "tensor([[1., 1.],\n        [1., 1.]], dtype=torch.float64, requires_grad=True)")
    assert repr(y) == "tensor([[2., 2.],\n        [2., 2.]], dtype=torch.float64, grad_fn=<MulBackward0>)"
    assert f"{y.sum():.1f}" == "8.0"
    assert y.grad_fn is node
    assert y._version == version
    assert x.grad is None


# ----- the options -----------------------------------------------------------------------


def test_profiles() -> None:
    start = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    assert printing.get_printoptions() == start
    set_printoptions(profile="short", sci_mode=True)
    assert printing.get_printoptions() == start | {"precision": 2, "edgeitems": 2, "sci_mode": True}
    set_printoptions(linewidth=100)  # forgets sci_mode, nothing else
    assert printing.get_printoptions() == start | {"precision": 2, "edgeitems": 2, "linewidth": 100}
    set_printoptions(profile="full", precision=7)
    assert printing.get_printoptions() == start | {"threshold": inf, "precision": 7}
    set_printoptions(profile="unheard of")
    assert printing.get_printoptions() == start | {"threshold": inf, "precision": 7}


def test_options_are_restored_after_the_block() -> None:
    before = printing.get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1, sci_mode=True):
        assert printing.PRINT_OPTS.precision == 1
        raise KeyError
    assert printing.get_printoptions() == before


# ----- limits of the dtypes --------------------------------------------------------------


def test_limits_print() -> None:
    assert repr(dtypes.finfo(dtypes.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
        "tiny=6.10352e-05, dtype=float16)")
    assert repr(dtypes.iinfo(dtypes.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    assert dtypes.finfo(float) == dtypes.finfo(dtypes.complex128) != dtypes.finfo(dtypes.float32)


# ----- compared with PyTorch --------------------------------------------------------------------

SPECIAL = [
    0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 1e-5, 1e-4, 1e5, 1e8, 100000001.0, 5e-324, 1e-45, 1e-310, 1.7e308,
    3.4e38, 65504.0, 6e-8, 0.99999, 9.99996, -9.99995, 999.99999, 1e100, -1e-100, 9.99999e99, 1e-99, 1000.0,
    1000.5, 1001.0, -12345.678,
]


def random_reals(r: random.Random, n: int) -> list[float]:
    scale = 10 ** r.uniform(-6, 9)
    some = r.sample(SPECIAL, r.randint(1, 4))
    draw = r.choice([
        lambda: r.gauss(0, 1),
        lambda: r.gauss(0, 1) * scale,
        lambda: r.gauss(0, 1) * 10 ** r.randint(-8, 8),
        lambda: float(r.randint(-20, 20)),
        lambda: float(r.randint(0, 2000)),
        lambda: r.choice(some),
        lambda: r.choice(some) if r.random() < 0.3 else r.gauss(0, 3),
    ])
    return [draw() for _ in range(n)]


def random_array(r: random.Random) -> np.ndarray:
    # float4_e2m1fn_x2 has no conversion; PyTorch shows the smallest float8_e8m0fnu, a subnormal float32, as 0
    with_values = tuple(d for d in dtypes.ALL if d not in (dtypes.float4_e2m1fn_x2, dtypes.float8_e8m0fnu))
    d = r.choice(with_values + (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64) * 2
                 + (dtypes.complex64, dtypes.complex128) * 2)
    shape = [r.choice([1, 1, 2, 2, 3, 4, 5, 7]) for _ in range(r.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4]))]
    if shape and r.random() < 0.3:
        shape[r.randrange(len(shape))] = r.choice([0, 9, 30, 60])
    if len(shape) in (1, 2) and r.random() < 0.1:
        shape[0] = r.randint(900, 1500)
    n = int(np.prod(shape))
    with np.errstate(all="ignore"):
        if d.is_complex:
            array = np.empty(n, np.complex128)
            array.real, array.imag = random_reals(r, n), random_reals(r, n)
            array = dtypes.cast(array, d.numpy)
        elif d.is_floating_point:
            array = dtypes.cast(np.array(random_reals(r, n), np.float64), d.numpy)
        else:
            info = np.iinfo(d.numpy) if d is not dtypes.bool_ else None
            low, high = (info.min, info.max) if info else (0, 1)
            if r.random() < 0.5:
                low, high = max(low, -1234), min(high, 1234)
            array = np.array([r.randint(low, high) for _ in range(n)], d.numpy)
    array = array.reshape(shape)
    return array.swapaxes(0, -1) if len(shape) > 1 and r.random() < 0.3 else array


def random_options(r: random.Random) -> dict[str, Any]:
    options = {
        "precision": r.randint(0, 12),
        "threshold": r.choice([0, 1, 5, 20, 100, inf]),
        "edgeitems": r.choice([0, 1, 2, 3, 5, 8]),
        "linewidth": r.choice([0, 10, 20, 40, 60, 81, 120, 200]),
        "sci_mode": r.choice([True, False, None]),
        "profile": r.choice(["default", "short", "full", "?"]),
    }
    return {name: options[name] for name in options if r.random() < 0.25}


def to_torch(torch: Any, array: np.ndarray) -> Any:
    if array.dtype == dtypes.BFLOAT16:
        bits = np.ascontiguousarray(array).view(np.uint16).copy()
        return torch.from_numpy(bits).view(torch.bfloat16).reshape(array.shape)
    if array.dtype == dtypes.COMPLEX32:
        bits = np.ascontiguousarray(array).reshape(-1).view(np.int32).copy()
        return torch.from_numpy(bits).view(torch.complex32).reshape(array.shape)
    if array.dtype.kind == "V":  # a float of eight bits
        codes = np.ascontiguousarray(array).view(np.uint8).copy()
        return torch.from_numpy(codes).view(getattr(torch, dtypes.of(array.dtype).name)).reshape(array.shape)
    return torch.from_numpy(array.copy()) if array.ndim else torch.from_numpy(array.reshape(1).copy())[0]


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("seed", range(20))
def test_random_tensors_print_as_in_pytorch(torch: Any, seed: int) -> None:
    r = random.Random(seed)
    for _ in range(40):
        array, options = random_array(r), random_options(r)
        default = r.choice(["float32", "float32", "float64", "float16", "bfloat16"])
        torch.set_default_dtype(getattr(torch, default))
        dtypes.set_default_dtype(getattr(dtypes, default))
        theirs = to_torch(torch, array)
        flags: dict[str, Any] = {}
        if array.dtype.kind in "fcV" and r.random() < 0.4:
            theirs.requires_grad_()
            flags["requires_grad"] = True
            if r.random() < 0.6:
                keep = r.choice([lambda t: t.clone(), lambda t: t[None].squeeze(0), lambda t: t.view_as(t)])
                theirs = keep(theirs)
                flags["grad_fn"] = theirs.grad_fn.name()
        torch.set_printoptions(profile="default")
        set_printoptions(profile="default")
        torch.set_printoptions(**options)
        set_printoptions(**options)
        assert text(array, **flags) == repr(theirs), (array.dtype, array.shape, options)


@pytest.mark.parametrize("seed", range(5))
def test_random_dual_tensors_print_as_in_pytorch(torch: Any, seed: int) -> None:
    import torch.autograd.forward_ad as forward

    r = np.random.default_rng(seed)
    with forward.dual_level():
        for shape in [(), (1,), (3,), (40,), (2, 3), (2, 30), (0, 3), (2, 2, 2), (50, 50)]:
            for dtype in (np.float32, np.float64, np.complex64):
                primal, tangent = r.normal(size=shape).astype(dtype), r.normal(size=shape).astype(dtype)
                primal, tangent = np.asarray(primal), np.asarray(tangent)
                theirs = forward.make_dual(to_torch(torch, primal), to_torch(torch, tangent))
                assert text(primal, tangent=Tensor(tangent)) == repr(theirs)


def test_formats_as_in_pytorch(torch: Any) -> None:
    def attempt(value: Any, spec: str) -> str:
        try:
            return format(value, spec)
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    for array in map(np.asarray, (np.float32(3.7), np.float16(0.1), np.int64(-3), np.bool_(True), 1 + 2j,
                                  np.float64(inf), np.uint8(200), np.ones(2))):
        for spec in ("", ".2f", "d", ">10", "s", "e", "x", "%", ",", ".2f "):
            assert attempt(Tensor(array), spec) == attempt(to_torch(torch, array), spec)


def test_limits_are_pytorchs(torch: Any) -> None:
    of_floats = ("eps", "max", "min", "tiny", "smallest_normal", "resolution")
    for d in dtypes.ALL[1:]:
        if d is dtypes.float4_e2m1fn_x2:  # neither library knows its limits
            continue
        kind, names = ("iinfo", ("max", "min")) if d.category == dtypes.INTEGER else ("finfo", of_floats)
        ours, theirs = getattr(dtypes, kind)(d), getattr(torch, kind)(getattr(torch, d.name))
        assert repr(ours) == repr(theirs)
        for name in (*names, "bits", "dtype"):
            assert getattr(ours, name) == getattr(theirs, name)
            assert type(getattr(ours, name)) is type(getattr(theirs, name))


def test_limits_raise_as_in_pytorch(torch: Any) -> None:
    def attempt(call: Any, argument: Any) -> str:
        try:
            return repr(call(argument))
        except TypeError as error:
            return str(error)

    for kind in ("finfo", "iinfo"):
        for name in ("bool", "int8", "uint16", "float16", "complex64"):
            assert attempt(getattr(dtypes, kind), getattr(dtypes, name.replace("bool", "bool_"))) == attempt(
                getattr(torch, kind), getattr(torch, name))
        for other in (None, 3, "float32", bool, int, float, complex, str):
            assert attempt(getattr(dtypes, kind), other) == attempt(getattr(torch, kind), other)


def test_the_cost_depends_on_the_printed_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    original = printing._texts
    monkeypatch.setattr(printing, "_texts", lambda array: written.append(array.size) or original(array))
    start = perf_counter()
    text(np.broadcast_to(np.float32(1), (100_000, 100_000)))
    print(f"{(perf_counter() - start) * 1e6:.0f} us")
    assert written == [36]
