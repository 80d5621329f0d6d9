"""`torch.library` and `torch.ops` compared with PyTorch: each program runs on both."""

from __future__ import annotations

import inspect
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import flambeau

_numbers = itertools.count()

PRELUDE = """
from typing import List, Optional, Sequence, Tuple, Union
from {module}.utils._python_dispatch import TorchDispatchMode
lib = torch.library
NS = "{namespace}"
OPS = getattr(torch.ops, NS)
def show(x): out.append(str(x))
def error(f, length=200):
    try: f()
    except Exception as e: out.append((type(e).__name__, str(e)[:length]))
"""

PROGRAMS = {
    "questions about operators": """
        import importlib
        utils = importlib.import_module(torch.__name__ + "._library.utils")
        for schema in ("(Tensor x) -> Tensor", "(Tensor(a!) x) -> Tensor", "(Tensor(a) x) -> Tensor(a)",
                       "(Tensor x) -> ()", "(Tensor x) -> (Tensor, int)", "(int x) -> int"):
            out.append(utils.is_functional_schema("a::b" + schema))
        show(utils.lookup_op("aten::sin")); show(utils.parse_namespace("a::b"))
        error(lambda: utils.lookup_op("aten::nope")); error(lambda: utils.lookup_op("sin"), 300)
    """,
    "below autograd": """
        scope = lib.Library(NS, "FRAGMENT")
        scope.define("below(Tensor x) -> Tensor")
        scope.impl("below", lambda x: x.sin(), "CPU")
        op = OPS.below.default
        class Op(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                with torch._C._AutoDispatchBelowAutograd():
                    y = op(x)
                    out.append((y.requires_grad, (x * 2).requires_grad, torch.is_grad_enabled()))
                    return y
            @staticmethod
            def backward(ctx, g): return g * 7
        scope.impl("below", lambda x: Op.apply(x), "Autograd")
        x = torch.ones(2, requires_grad=True)
        y = op(x)
        y.sum().backward()
        show(y); show(x.grad)
    """,
    "types in schemas": """
        scope = lib.Library(NS, "FRAGMENT")
        for i, types in enumerate((
                "(Tensor x,  asdf y) -> Tensor", "(Tensor a) -> (Tensor, asdf)", "(Tensor a,asdf b) -> ()",
                "(*, asdf b) -> ()", "(asdf[] b) -> ()", "(Tensor a) ->   asdf", "(Tensor(a!) x, asdf y) -> Tensor",
                "(int x=3, asdf y) -> Tensor", "(double x) -> ()", "(Tensor x, int64_t[] y) -> ()",
                "(Tensor(a!)[] x, str s='b, c', int[2] y=[1, 2], float? z=None) -> (Tensor(a!)[], Tensor out)",
                "(Device d, Layout l, MemoryFormat m, Generator? g, complex c, ScalarType t, SymBool sb) -> Tensor?")):
            error(lambda: show(scope.define(f"f{i}{types}")), 400)
        for device_type in ("somethingsomething", "cuda:0", "cuda-x", ("cpu", "nope"), ""):
            error(lambda: lib.impl(f"{NS}::f10", device_type)(lambda *x: None), 400)
    """,
    "sizes that depend on data": """
        import importlib, re
        fakes = importlib.import_module(torch.__name__ + "._subclasses.fake_tensor")
        @lib.custom_op(f"{NS}::places", mutates_args=())
        def places(x: torch.Tensor) -> torch.Tensor: return x.nonzero().clone()
        @places.register_fake
        def _(x):
            context = lib.get_ctx()
            out.append(type(context).__name__)
            return x.new_empty((context.new_dynamic_size(min=1, max=3), x.dim()), dtype=torch.int64)
        show(lib.get_ctx()); show(places(torch.tensor([0, 1, 1])))
        try: places(torch.ones(2, device="meta"))
        except RuntimeError as e: out.append(re.sub(r"\\(.*?\\):", ":", str(e), count=1))
        with fakes.FakeTensorMode() as mode:
            error(lambda: places(torch.ones(2)))
        error(lambda: places(mode.from_tensor(torch.ones(2))))
    """,
    "hints of schemas": """
        import collections.abc, typing
        T = torch.Tensor
        for hint in (T, Optional[T], List[T], Sequence[Optional[T]], list[T], list[T | None], Optional[List[T]],
                     List[Optional[int]], Tuple[int, int], typing.Callable, int | None,
                     Optional[Union[int, float, bool]], Union[float, bool, int], List[str], List[torch.dtype],
                     Sequence[Union[int, float, bool]],
                     Optional[Sequence[float]], list[int] | None, Union[int, float], dict, torch.device,
                     Optional[torch.dtype], "torch.Tensor", collections.abc.Sequence[int], List[List[int]],
                     torch.types.Number, torch.Size, tuple[int, ...], str, Optional[str]):
            def f(x, y): pass
            for annotations in ({"x": T, "y": hint, "return": T}, {"x": T, "y": T, "return": hint}):
                f.__annotations__ = annotations
                try: show(lib.infer_schema(f, mutates_args=()))
                except ValueError as e: out.append(str(e).partition("The valid types")[0])
    """,
    "the deprecated interface": """
        import importlib
        ops = importlib.import_module(torch.__name__ + "._custom_ops")
        deprecated = importlib.import_module(torch.__name__ + "._custom_op.impl")
        @ops.custom_op(f"{NS}::twice")
        def twice(x: torch.Tensor, ys: Sequence[torch.Tensor], by: int) -> Tuple[torch.Tensor, List[torch.Tensor]]: ...
        @ops.impl(f"{NS}::twice", device_types="cpu")
        def _(x, ys, by): return x * by, [y * by for y in ys]
        op = deprecated.get_op(f"{NS}::twice")
        x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3., requires_grad=True)
        show(op(x.detach(), [y.detach()], 2))
        with torch.no_grad(): show(op(x, [y], 2))
        error(lambda: op(x, [y], 2))
        error(lambda: ops.impl_backward(f"{NS}::twice", [True])(print), 400)
        @ops.impl_backward(f"{NS}::twice", [True, False])
        def _(ctx, saved, g, gs):
            out.append(saved)
            return GRADIENTS[0](g, *saved)
        error(lambda: op(x, [y], 2), 60)
        @ops.impl_save_for_backward(f"{NS}::twice")
        def _(inputs, output):
            out.append((type(inputs).__name__, inputs._fields, len(output)))
            return inputs.x.detach(), {"by": inputs.by}
        GRADIENTS = [lambda g, x, more: {"x": g * more["by"] + x, "ys": [None]}]
        a, (b,) = op(x, [y], 2)
        out.append((a.requires_grad, b.requires_grad, type(a.grad_fn).__name__))
        a.sum().backward()
        show(x.grad); show(y.grad)
        for gradients in (None, {"x": None}, {"x": None, "ys": None}, {"x": None, "ys": []},
                          {"x": None, "ys": [3]}, {"x": 1, "ys": [None]}, {"x": None, "ys": [None], "by": None}):
            GRADIENTS[0] = lambda *_: gradients
            try: op(x, [y], 2)[0].sum().backward()
            except RuntimeError as e: out.append(str(e).partition("using the")[2][:90])
        error(lambda: ops.custom_op(f"{NS}::twice", "(Tensor x) -> Tensor"), 120)
        error(lambda: ops.custom_op(f"{NS}::other", "(Tensor(a!) x) -> Tensor"), 300)
        error(lambda: ops.custom_op(f"{NS}::other", "(Tensor self) -> Tensor"), 300)
        error(lambda: ops.custom_op(f"{NS}::other", "("), 300)
        error(lambda: ops.custom_op("aten::other", "(Tensor x) -> Tensor"), 300)
        error(lambda: ops.custom_op("other", "(Tensor x) -> Tensor"), 300)
        error(lambda: ops.custom_op(f"{NS}::other.a", "(Tensor x) -> Tensor"), 300)
        error(lambda: ops.custom_op(f"{NS}::other")(twice), 300)
        error(lambda: ops.impl(f"{NS}::twice", device_types="hip")(print), 300)
        error(lambda: ops.impl(f"{NS}::twice", device_types="cpu")(print), 90)
        error(lambda: ops.impl(f"{NS}::nope", device_types="cpu")(print), 300)
        ops._destroy(f"{NS}::twice")
        error(lambda: ops._destroy(f"{NS}::twice"), 300)
        error(lambda: deprecated.CustomOp(None, None, None, None, None))
        @deprecated.custom_op(f"{NS}::old", "(Tensor x, *, int by) -> Tensor")
        def old(x, *, by): ...
        old.impl("cpu")(lambda x, by: x * by)
        show(old); show(old(torch.ones(1), by=3))
        error(lambda: old(x, by=3))
        def old(x, *, by): ...
        for schema in ("(Tensor y) -> Tensor", "(Tensor x, int by) -> Tensor", "(Tensor x, *, int by=1) -> Tensor"):
            error(lambda: deprecated.custom_op(f"{NS}::old", schema)(old), 400)
    """,
    "refused definitions": """
        def keyword(x: torch.Tensor, *, y: Optional[torch.Tensor]) -> torch.Tensor: return x
        error(lambda: lib.custom_op(f"{NS}::keyword", keyword, mutates_args=()), 400)
        def write(x): x.sin_()
        error(lambda: lib.custom_op(f"{NS}::write", write, mutates_args=(), schema="(Tensor(a!) x) -> ()"), 400)
        with lib._scoped_library(NS, "FRAGMENT") as scope:
            scope.define("low(Tensor x, *, Tensor y) -> Tensor")
            error(lambda: lib.register_autograd(f"{NS}::low", lambda ctx, g: g), 400)
            error(lambda: lib.register_vmap(f"{NS}::low", lambda info, dims, x: x), 400)
    """,
    "custom operators": """
        @lib.custom_op(f"{NS}::f", mutates_args=())
        def f(x: torch.Tensor, s: float = 2.0, n: Optional[int] = None) -> torch.Tensor: return x * s
        x = torch.ones(2, requires_grad=True)
        y = f(x)
        show(y); show(f); show(OPS.f); show(OPS.f.default); show(OPS.f.default._schema)
        error(lambda: y.sum().backward())
        f.register_autograd(lambda ctx, g: (g * ctx.s, None, None),
                            setup_context=lambda ctx, inputs, output: setattr(ctx, "s", inputs[1]))
        y = f(x, 3.)
        show(y)
        y.sum().backward()
        show(x.grad)
        out.append(torch.autograd.gradcheck(f, (torch.rand(3, dtype=torch.double, requires_grad=True),)))
        show(lib.opcheck(f, (torch.ones(2, requires_grad=True),), test_utils="test_schema"))
        error(lambda: f("a")); error(lambda: f(x, 1., 2, 3)); error(lambda: f(x, t=1))
        error(lambda: f()); error(lambda: OPS.nope); error(lambda: OPS.f.nope)
        error(lambda: lib.custom_op(f"{NS}::h", lambda x: x, mutates_args=()))
    """,
    "lists and keywords": """
        @lib.custom_op(f"{NS}::parts", mutates_args=())
        def parts(x: torch.Tensor, sizes: List[int], dim: int) -> List[torch.Tensor]:
            return [t.clone() for t in x.split(list(sizes), dim)]
        parts.register_autograd(lambda ctx, gs: (torch.cat(gs, ctx.dim), None, None),
                                setup_context=lambda ctx, inputs, output: setattr(ctx, "dim", inputs[2]))
        a = torch.arange(6.).reshape(3, 2).requires_grad_()
        r = parts(a, [1, 2], 0)
        out.append(type(r).__name__)
        (r[0].sum() + 2 * r[1].sum()).backward()
        show(a.grad)
        @lib.custom_op(f"{NS}::join", mutates_args=())
        def join(xs: Sequence[torch.Tensor], k: float) -> torch.Tensor: return torch.cat(list(xs)) * k
        def sizes(ctx, inputs, output): ctx.n = [len(t) for t in inputs[0]]
        join.register_autograd(lambda ctx, g: (list(g.split(ctx.n)), None), setup_context=sizes)
        b, c = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
        join([b, c], 2.).sum().backward()
        show(b.grad); show(c.grad)
        @lib.custom_op(f"{NS}::two", mutates_args=())
        def two(x: torch.Tensor, *, k: int = 1) -> Tuple[torch.Tensor, torch.Tensor]: return x + k, x * k
        def setup(ctx, inputs, keyword_only_inputs, output):
            ctx.k = keyword_only_inputs["k"]
            out.append(ctx.needs_input_grad)
        two.register_autograd(lambda ctx, g, h: g + h * ctx.k, setup_context=setup)
        p, q = two(b, k=4)
        b.grad = None
        (p + q).sum().backward()
        show(b.grad)
        @lib.custom_op(f"{NS}::inc_", mutates_args=("x",))
        def inc_(x: torch.Tensor, y: torch.Tensor) -> None: x.add_(y)
        z = torch.ones(2)
        version = z._version
        show(inc_(z, torch.ones(2))); show(z); out.append(z._version - version); show(OPS.inc_.default._schema)
        error(lambda: inc_.register_autograd(lambda ctx, g: g))
    """,
    "vmap and modes": """
        @lib.custom_op(f"{NS}::product", mutates_args=())
        def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.detach().numpy() * y.detach().numpy())
        @product.register_vmap
        def _(info, in_dims, x, y):
            out.append((info.batch_size, in_dims))
            return x * y, 0
        show(torch.vmap(product, in_dims=(0, None))(torch.ones(3, 2), torch.ones(2) * 2))
        class M(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                show(func)
                return func(*args, **(kwargs or {}))
        class Special(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))
        a, b = torch.ones(1), torch.ones(1)
        with M(): product(a, b)
        @lib.register_torch_dispatch(f"{NS}::product", Special)
        def _(mode, func, types, args, kwargs):
            out.append("special")
            return func(*args, **kwargs)
        with Special(): show(product(a, b))
    """,
    "libraries": """
        L = lib.Library(NS, "DEF")
        show(L)
        out.append(L.define("op1(Tensor x, *, int k=1) -> (Tensor, Tensor)"))
        error(lambda: OPS.op1(torch.ones(2)), 40)
        L.impl("op1", lambda x, *, k=1: (x + k, x * k), "CPU")
        show(OPS.op1(torch.ones(2), k=3)); out.append(OPS.op1.overloads()); show(OPS.op1.default)
        show(OPS.op1(torch.ones(2, requires_grad=True), k=3))
        L.define("op2(Tensor x) -> Tensor")
        L.impl("op2", lambda x: x.sin(), "CompositeImplicitAutograd")
        show(OPS.op2(torch.ones(2, requires_grad=True)))
        lib.define(f"{NS}::op3", "(Tensor x, int[] n) -> Tensor")
        @lib.impl(f"{NS}::op3", "cpu")
        def _(x, n): return x.reshape(n)
        show(OPS.op3(torch.ones(4), [2, 2]))
        def fn(x: torch.Tensor, y: Optional[torch.Tensor], z: List[int], w: str = "a",
               d: torch.dtype = torch.float32, *, b: bool = True,
               s: Union[int, float, bool] = 1) -> Tuple[torch.Tensor, int]: ...
        out.append(lib.infer_schema(fn, mutates_args={"x"}, op_name="fn"))
        out.append(lib.infer_schema(fn, mutates_args="unknown"))
        error(lambda: lib.define("q::nope", "Tensor x -> Tensor")); error(lambda: lib.Library("zz", "X"))
        error(lambda: lib.register_fake("q::none", lambda x: x))
    """,
    "operators of PyTorch": """
        aten = torch.ops.aten
        x = torch.arange(4.)
        for r in (aten.add(x, 2, alpha=3), aten.sum(x), aten.sum(torch.ones(2, 2), [1], True), aten.cat.default([x, x]),
                  aten.native_layer_norm.default(x, [4], None, None, 1e-5), aten._softmax.default(x, 0, False),
                  aten.convolution.default(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0],
                                           1),
                  aten.max_pool2d_with_indices.default(torch.arange(16.).reshape(1, 1, 4, 4), [2, 2], [2, 2]),
                  aten.nll_loss_forward.default(torch.ones(2, 3), torch.tensor([0, 1]), None, 1, -100),
                  aten.index.Tensor(x, [torch.tensor([1, 2])]), aten.slice.Tensor(x, 0, 1, 3),
                  aten.clamp.default(x, 0, 1), aten.threshold_backward.default(x, x - 1, 0), aten.t.default(x[None]),
                  aten.view.default(x, [2, 2]), aten.var.correction(x), aten.topk.default(x, 2),
                  aten.relu_.default(-1 - x),
                  aten.scalar_tensor.default(3.), aten.empty.memory_format([2]).shape, aten.full.default([2], 1.)):
            show(r)
        o = aten.add.Tensor
        out.append([o.name(), str(o.overloadpacket), o.namespace, str(o._schema), aten.add.overloads()[:2], repr(o)])
        error(lambda: aten.no_such_operator)
    """,
}


def _run(module: Any, program: str, namespace: str) -> list[str]:
    out: list[Any] = []
    scope: dict[str, Any] = {"torch": module, "out": out, "np": np, "__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(PRELUDE.format(module=module.__name__, namespace=namespace), scope)
        exec(inspect.cleandoc(program), scope)
    return [repr(each).replace("flambeau", "torch") for each in out]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    torch = pytest.importorskip("torch")
    namespace = f"tested{next(_numbers)}"
    assert _run(flambeau, PROGRAMS[name], namespace) == _run(torch, PROGRAMS[name], namespace)


def test_opcheck_finds_writes() -> None:
    """An operator that writes to an argument against its schema fails the check."""
    @flambeau.library.custom_op("tested_writes::f", mutates_args=())
    def f(x: flambeau.Tensor) -> flambeau.Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(flambeau.library.OpCheckError, match="not defined as mutable"):
        flambeau.library.opcheck(f, (flambeau.ones(2),), test_utils="test_schema")


def test_unsupported() -> None:
    """What flambeau lacks raises: Triton, fallback kernels, kernels for other keys of PyTorch's operators."""
    with pytest.raises(RuntimeError, match="Triton"):
        flambeau.library.triton_op("x::y", mutates_args=())
    library = flambeau.library.Library("tested_unsupported", "FRAGMENT")
    with pytest.raises(NotImplementedError):
        library.fallback(print)
    with pytest.raises(NotImplementedError, match="for the dispatch keys Autograd, AutogradCPU, CPU, not for Meta"):
        flambeau.library.Library("aten", "IMPL").impl("add.Tensor", print, "Meta")


def test_schemas_with_spaces() -> None:
    """Spaces around a default and between a type and its name do not matter."""
    with flambeau.library._scoped_library("spaces_of_schemas", "FRAGMENT") as lib:
        lib.define("scale(Tensor  x, int by = 2, *, float f = 2.0, int z) -> Tensor")
        lib.impl("scale", lambda x, by=2, *, f=2.0, z: x * by * f * z, "CPU")
        seen = []
        flambeau.library.register_autograd(
            "spaces_of_schemas::scale", lambda ctx, g: g, lib=lib,
            setup_context=lambda ctx, inputs, keyword_only_inputs, output: seen.append(keyword_only_inputs))
        scale = flambeau.ops.spaces_of_schemas.scale
        assert str(scale.default._schema) == (
            "spaces_of_schemas::scale(Tensor x, int by=2, *, float f=2., int z) -> Tensor")
        assert scale(flambeau.ones(1, requires_grad=True), by=3, z=5).item() == 30
        assert seen == [{"f": 2.0, "z": 5}]


def test_opcheck_of_a_declared_operator() -> None:
    """The checks pass for an operator that no library defines."""
    found = flambeau.library.opcheck(flambeau.ops.aten.sin.default, (flambeau.ones(2, requires_grad=True),))
    assert set(found.values()) == {"SUCCESS"}


def test_a_kernel_of_an_operator_that_is_replaced() -> None:
    kernel = flambeau.library.get_kernel("aten::sin", "CPU")
    library = flambeau.library.Library("aten", "IMPL")

    def zero_of_positive(keys: Any, x: Any) -> Any:
        assert keys.has(flambeau.DispatchKey.CPU)
        return kernel.call_boxed(keys, x) if (x < 0).any() else flambeau.zeros_like(x)

    library.impl("sin", zero_of_positive, "CPU", with_keyset=True)
    try:
        assert flambeau.sin(flambeau.ones(2)).tolist() == [0, 0]
        assert flambeau.sin(-flambeau.ones(1)).item() == pytest.approx(-0.84147098)
    finally:
        library._destroy()
    assert flambeau.sin(flambeau.ones(1)).item() == pytest.approx(0.84147098)


def test_kernels_that_there_are_not() -> None:
    with pytest.raises(ValueError, match=r"get_kernel\(3\): got unexpected type for op: <class 'int'>"):
        flambeau.library.get_kernel(3, "CPU")
    with pytest.raises(RuntimeError, match="operator aten::add does not exist"):
        flambeau.library.get_kernel("aten::add", "CPU")


FALLBACKS = {
    "no history": ("foo(Tensor a, Tensor b) -> Tensor", lambda t, a, b: a.detach() + b.detach()),
    "own history": ("foo(Tensor a, Tensor b) -> Tensor", lambda t, a, b: a * 2 + b),
    "both": ("foo(Tensor a, Tensor b) -> (Tensor, Tensor)", lambda t, a, b: (a * b, b.detach() * 3)),
    "list": ("foo(Tensor a, Tensor b) -> Tensor[]", lambda t, a, b: [a.detach() * 3, b * 2]),
    "integers": ("foo(Tensor a, Tensor b) -> Tensor", lambda t, a, b: (a > b).long()),
}


@pytest.mark.parametrize("mode", ["warn", "nothing"])
@pytest.mark.parametrize("name", FALLBACKS)
def test_operators_without_a_derivative_warn_in_backward(name, mode):
    torch = pytest.importorskip("torch")
    seen = []
    schema, kernel = FALLBACKS[name]
    for t in (flambeau, torch):
        before = t._C._get_autograd_fallback_mode()
        assert before == "warn"
        t._C._set_autograd_fallback_mode(mode)
        library = t.library.Library("without_a_derivative", "FRAGMENT")
        try:
            library.define(schema)
            library.impl("foo", lambda a, b, t=t: kernel(t, a, b), "CPU")
            a, b = t.tensor([1., 2.], requires_grad=True), t.tensor([3., 1.], requires_grad=True)
            with t.no_grad():
                quiet = t.ops.without_a_derivative.foo(a, b)
            results = t.ops.without_a_derivative.foo(a, b)
            noted = []
            for x, plain in zip(*[r if isinstance(r, (list, tuple)) else [r] for r in (results, quiet)], strict=True):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        x.sum().backward()
                        error = ""
                    except RuntimeError as raised:
                        error = str(raised)
                noted.append((x.tolist(), x.requires_grad, plain.requires_grad, error,
                              sorted(str(each.message).partition(". If your")[0] for each in caught)))
            grads = [None if x.grad is None else x.grad.tolist() for x in (a, b)]
        finally:
            t._C._set_autograd_fallback_mode(before)
            del library.m
        seen.append((noted, grads))
    assert seen[0] == seen[1]


def test_a_mode_of_the_fallback_is_warn_or_nothing():
    with pytest.raises(RuntimeError, match="Unsupported AutogradFallbackMode: x"):
        flambeau._C._set_autograd_fallback_mode("x")
