"""Traced functions and modules compared with PyTorch: graphs, tables of nodes, generated code, errors."""

from __future__ import annotations

import collections
import importlib
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

Pair = collections.namedtuple("Pair", ["left", "right"])


def many_arguments(t: Any) -> Any:
    def f(a, b=3, *rest, c=1, d=None, **more):
        return a + b, rest, c, d, more
    return f


def annotated(t: Any) -> Any:
    def f(x: t.Tensor, y: int, z: list[t.Tensor]) -> tuple[t.Tensor, int]:
        return x + y, z
    f.__annotations__ = {"x": t.Tensor, "y": int, "z": list[t.Tensor], "return": tuple[t.Tensor, int]}
    return f


def operators(t: Any) -> Any:
    def f(x, y):
        a = x + y, x - 1, 2 * x, x @ y, x / y, x // 2, x % 3, x ** 2, 2 ** x, 1 - x, 1 / x, 7 // x, 7 % x
        b = x & y, x | y, x ^ y, 1 << x, x >> 1, ~x, -x, +x, abs(x), x == y, x != 1, x < y, x > y, x <= 2, x >= 2
        return a, b, x[0], x[1:2, ..., None], x[::2], x[y]
    return f


def methods(t: Any) -> Any:
    def f(x):
        y = x.relu().view(-1, x.shape[0]).permute(0, 1).to(t.float16, non_blocking=True)
        x.add_(1)
        return y.size(0), y.T, y.dtype, x.device, x.max(dim=0).values, y.sum(-1, keepdim=True), x.is_cuda
    return f


def functions(t: Any) -> Any:
    def f(x, w):
        F = t.nn.functional
        return (t.relu(x), F.relu(x, inplace=True), F.gelu(x), F.linear(x, w), F.conv2d(x, w, stride=(1, 2)),
                t.cat([x, w], dim=1), t.einsum("ij,jk->ik", x, w), t.stack((x, w)), F.softmax(x, dim=-1),
                F.max_pool2d(x, 2), F.cross_entropy(x, w), F.dropout(x, 0.5, True), t.sum(x, dim=-1), t.max(x),
                t.linalg.norm(x), t.linalg.svd(x), t.fft.fft(x), t.special.entr(x), t.topk(x, 3), t.where(x > 0, x, w),
                F.layer_norm(x, (3,)), F.batch_norm(x, None, None), t.split(x, 2), F.pad(x, (1, 1)), t.norm(x),
                F.scaled_dot_product_attention(x, x, x), F.interpolate(x, scale_factor=2), t.chunk(x, 2), t.abs(x),
                t.matmul(x, w), t.bmm(x, w), t.add(x, w, alpha=2), t.flatten(x, 1), t.unbind(x), t.meshgrid(x, x),
                F.log_softmax(x, 1), F.silu(x), F.leaky_relu(x, 0.1), F.embedding(x, w), F.one_hot(x), F.mse_loss(x, w),
                F.adaptive_avg_pool2d(x, 1), F.avg_pool2d(x, 2), F.softplus(x), F.normalize(x), t.clamp(x, 0, 1),
                t.zeros_like(x), t.ones_like(x, dtype=t.float64), t.cdist(x, w), F.hardtanh(x), F.unfold(x, 2),
                F.elu(x), F.group_norm(x, 2), F.prelu(x, w), t.randn_like(x), F.glu(x))
    return f


def overloads(t: Any) -> Any:
    def f(x):
        return t.ops.aten.add.Tensor(x, 1), t.ops.aten.relu(x)
    return f


def wrapped(t: Any) -> Any:
    def f(x):
        return math.sqrt(x), math.floor(x) + operator.add(x, 1), getattr(x, "weird name")
    return f


def values(t: Any) -> Any:
    def f(x):
        return {"a": x, "b": [x, 1, "s", None, 2.5, float("inf"), t.float32, ..., slice(x, None, 2)], "c": (x,),
                "d": t.device("cpu"), "e": True, "f": 1j, "g": t.strided, "h": t.channels_last, "i": range(3)}
    return f


def unpacked(t: Any) -> Any:
    def f(x):
        a, b = x
        (c, d), e = t.sort(a), b
        return c + d + e
    return f


def unused(t: Any) -> Any:
    def f(x, _, self_, input, getattr, torch):
        t.relu(x)
        return x
    return f


def constants(t: Any) -> Any:
    one = t.ones(2)

    def f(x):
        return x + one + t.zeros(2) + one
    return f


def lambda_(t: Any) -> Any:
    return lambda x, *args, **kwargs: (x, args, kwargs)


def module(t: Any) -> Any:
    class Inner(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = t.nn.Parameter(t.ones(3))
            self.list = t.nn.ParameterList([t.nn.Parameter(t.ones(3))])

        def forward(self, x: Any, scale: float = 2.0) -> Any:
            return x * self.w * scale + self.list[0]

    class Model(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = t.nn.Sequential(t.nn.Linear(3, 3), t.nn.ReLU(), Inner(), t.nn.Sequential(t.nn.Tanh()))
            self.inner = t.nn.ModuleDict({"a": Inner()})
            self.blocks = t.nn.ModuleList([t.nn.Linear(3, 3), t.nn.Dropout(0.1)])
            self.register_buffer("mean", t.zeros(3))
            self.plain = t.ones(3)
            self.number = 4

        def forward(self, x: Any, flag: bool = False) -> Any:
            for block in self.blocks:
                x = block(x)
            x = self.layers(x) - self.mean + self.plain + self.number
            x = self.inner["a"](x, scale=3.0)
            return {"out": self.layers[0](x) + self.layers[0].weight.sum()}

    return Model()


PROGRAMS: list[Callable[[Any], Any]] = [
    many_arguments, annotated, operators, methods, functions, overloads, wrapped, values, unpacked, unused, constants,
    lambda_, module]


def normal(text: str) -> str:
    """Text without addresses and the package's name."""
    return re.sub(r"0x[0-9a-f]+", "0x", text).replace("flambeau", "torch").replace("torch.fx.torch", "torch.fx")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_graphs_and_code_are_the_same(program: Callable[[Any], Any]) -> None:
    found = flambeau.fx.symbolic_trace(program(flambeau))
    expected = pytorch.fx.symbolic_trace(program(pytorch))
    assert normal(str(found.graph)) == normal(str(expected.graph))
    assert found.code == expected.code
    assert normal(str(found)) == normal(str(expected))
    assert found.print_readable(print_output=False) == expected.print_readable(print_output=False)


SPECIALIZED: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (lambda x, flag: x + 1 if flag else x, {"flag": True}),
    (lambda x, n: x * n, {"n": 3}),
    (lambda x, y: x if y is None else y, {"y": None}),
    (lambda x, d: x + d["a"] * d["b"][0], {"d": {"a": "PH", "b": ["PH", 2]}}),
    (lambda d: {"out": d[0] + d[1]}, {"d": ("PH", "PH")}),
]


def placeholders(t: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: placeholders(t, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(placeholders(t, item) for item in value)
    return t.fx.PH if value == "PH" else value


@pytest.mark.parametrize(("function", "given"), SPECIALIZED)
def test_concrete_arguments(function: Callable[..., Any], given: dict[str, Any]) -> None:
    found, expected = (t.fx.symbolic_trace(function, placeholders(t, given)) for t in (flambeau, pytorch))
    assert normal(str(found.graph)) == normal(str(expected.graph))
    assert found.code == expected.code


def fails_condition(t: Any, x: Any) -> Any:
    return x if x.sum() > 0 else -x


def fails_loop(t: Any, x: Any) -> Any:
    return [each for each in x]  # noqa: C416


def fails_stars(t: Any, x: Any) -> Any:
    return t.relu(*x)


def fails_length(t: Any, x: Any) -> Any:
    return len(x)


def fails_key(t: Any, x: Any) -> Any:
    return t.cat({x: 1})


def fails_argument(t: Any, x: Any) -> Any:
    return t.relu(x, object())


def fails_int(t: Any, x: Any) -> Any:
    return int(x)


def fails_factory(t: Any, x: Any) -> Any:
    return t.zeros(x.shape[0], 2)


def fails_range(t: Any, x: Any) -> Any:
    return range(x.shape[0])


@pytest.mark.parametrize("function", [
    fails_condition, fails_loop, fails_stars, fails_length, fails_key, fails_argument, fails_int, fails_range],
    ids=lambda f: f.__name__)
def test_errors_of_control_flow(function: Callable[..., Any]) -> None:
    texts = []
    for t in (flambeau, pytorch):
        with pytest.raises(Exception) as raised:
            t.fx.symbolic_trace(lambda x, t=t: function(t, x), concrete_args={"t": t})
        texts.append((type(raised.value).__name__, normal(str(raised.value))))
    assert texts[0] == texts[1]


def test_generated_code_computes_the_same() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    model = module(flambeau).eval()
    traced = flambeau.fx.symbolic_trace(model)
    expected = model(flambeau.tensor(x))["out"]
    assert flambeau.equal(traced(flambeau.tensor(x))["out"], expected)
    assert flambeau.equal(flambeau.fx.Interpreter(traced).run(flambeau.tensor(x))["out"], expected)
    transformed = flambeau.fx.Transformer(traced).transform()
    assert flambeau.equal(transformed(flambeau.tensor(x))["out"], expected)


@pytest.mark.parametrize("kind", ["ReLU", "Tanh", "Sigmoid"])
def test_the_forward_of_layers_calls_the_functions_of_pytorch(kind):
    def table(t: Any) -> str:
        tracer = t.fx.Tracer()
        tracer.is_leaf_module = lambda module, name: False
        return str(tracer.trace(t.nn.Sequential(getattr(t.nn, kind)(), t.nn.LayerNorm(2))))

    assert table(flambeau) == table(pytorch)


def test_other_names_of_an_operator_are_functions_of_their_own():
    codes = [t.fx.symbolic_trace(lambda x: t.atan(t.arctan(t.absolute(x)))).code for t in (flambeau, pytorch)]  # noqa: B023
    assert codes[0] == codes[1]
    assert flambeau.arctan is not flambeau.atan


@pytest.mark.parametrize("call", [
    "F.upsample(x, 2)", "F.upsample_nearest(x, scale_factor=2)", "F.upsample_bilinear(x, 2)",
    "torch._softmax_backward_data(x, x, 0, torch.float32)", "torch._softmax(x, 0, False)", "torch._weight_norm(x, x)",
    "torch._foreach_add(x, 1)", "torch._cast_Float(x)", "torch._assert_async(x)"])
@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_private_functions_and_those_that_call_others(call):
    codes = []
    for name in ("flambeau", "torch"):
        torch = pytest.importorskip(name)
        functional, fx = (importlib.import_module(f"{name}.{part}") for part in ("nn.functional", "fx"))
        traced = fx.symbolic_trace(eval(f"lambda x: {call}", {"torch": torch, "F": functional}))
        codes.append(traced.code.replace("flambeau", "torch"))
    assert codes[0] == codes[1]
