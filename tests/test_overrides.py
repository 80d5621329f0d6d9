"""`torch.overrides` and `__torch_function__`, compared with PyTorch: each program runs on both."""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import flambeau
from flambeau._tensor.overriding import entry_points

PROGRAMS: dict[str, str] = {
    "operators": """
        x, p = torch.ones(2, 2).as_subclass(Logged), torch.ones(2, 2)
        for f in (lambda: x + 1, lambda: 1 + x, lambda: p + x, lambda: p - x, lambda: 1 - x, lambda: 2 / x,
                  lambda: x @ p,
                  lambda: p @ x, lambda: -x, lambda: abs(x), lambda: x ** 2, lambda: 2 ** x, lambda: x % 2,
                  lambda: x // 2, lambda: x == p, lambda: x < 1, lambda: x[0], lambda: x.T, lambda: len(x),
                  lambda: x.shape, lambda: x.add(p), lambda: torch.add(p, x, alpha=2), lambda: x.sum(), lambda: x.dtype,
                  lambda: torch.nn.functional.relu(x), lambda: torch.nn.functional.linear(x, p), lambda: +x,
                  lambda: torch.cat([p, x]), lambda: torch.stack((x, p)), lambda: x.split(1), lambda: x.max(0),
                  lambda: x.requires_grad, lambda: x.is_leaf, lambda: torch.linalg.norm(x), lambda: x.float(),
                  lambda: x.to(torch.float64), lambda: torch.where(x > 0, x, p), lambda: x.detach(), lambda: x.clone()):
            r = f()
            out.append(kind(r))
        x += 1
        x *= p
        x[0] = 3
        out.append(kind(x))
    """,
    "gradients": """
        x = torch.ones(2, requires_grad=True).as_subclass(Logged)
        out.append(kind(torch.autograd.grad((x * 2).sum(), x)[0]))
        out.append(kind(torch.autograd.grad((x * 2).sum(), [x], allow_unused=True)[0]))

        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, func is torch.autograd.grad

        out.append(torch.autograd.grad(Other(), Other()))
        out.append(torch.autograd.grad(torch.ones(2, requires_grad=True).sum(), Other()))
    """,
    "sparse constructors ask modes": """
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func.__name__

        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        with Mode():
            out += [torch.sparse_coo_tensor(1, 1, 1), torch.sparse_coo_tensor(1, 1, (1, 1), check_invariants=False),
                    torch.sparse_csr_tensor(1, 1, 1), torch.sparse_bsc_tensor(1, 1, 1, (1, 1)),
                    torch.sparse_compressed_tensor(1, 1, 1, layout=torch.sparse_csr)]
        for arguments in ((Other(), Other()), (Other(), Other(), (2,))):
            try:
                out.append(torch.sparse_coo_tensor(*arguments))
            except Exception as error:
                out.append("refused")
    """,
    "functions of sparse tensors and others": """
        class Other:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__

        x, coo = Other(), torch.eye(2).to_sparse()
        out += [torch.indices_copy(x), torch.values_copy(x), torch.crow_indices_copy(x), torch.col_indices_copy(x),
                torch.ccol_indices_copy(x), torch.row_indices_copy(x), torch.hspmm(coo, x), torch.smm(x, coo),
                torch.sspaddmm(x, coo, coo), torch.lobpcg(x), torch.pixel_shuffle(x, 1), torch.pixel_unshuffle(x, 1),
                torch.channel_shuffle(x, 1), torch.resize_as_sparse_(x, coo), torch.native_norm(x), torch.sym_int(x),
                torch.sym_float(x), torch.sym_max(x, 1), torch.sym_min(1, x), torch.sym_not(x), torch.sym_sum([x, x]),
                torch.sym_ite(x, 1, 2)]
        out += [torch._softmax(x, 0, False), torch._log_softmax(x, 0, False), torch._weight_norm(x, x),
                torch._unsafe_masked_index(x, x, [x], 0), torch._embedding_bag(x, x, x), torch._cast_Float(x),
                torch._softmax_backward_data(x, x, 0, torch.float32), torch._assert_async(x), torch._to_cpu([x]),
                torch._foreach_add([x], 1), torch._foreach_abs_([x]), torch._shape_as_tensor(x)]
        for function in (torch.sparse.sum, torch.sparse.mm, torch.sparse.softmax, torch.sparse.addmm):
            out.append(isinstance(function(*(x,) * (3 if function is torch.sparse.addmm else 2)), str))
    """,
    "a block that enables overrides without a statement": """
        class Kept(torch.Tensor):
            pass

        x = torch.ones(2).as_subclass(Kept)
        with torch._C.DisableTorchFunctionSubclass():
            guard = torch._C._EnableTorchFunction()
            out.append(type(x.sum()).__name__)
            del guard
            out.append(type(x.sum()).__name__)
            with torch._C._EnableTorchFunction():
                out.append(type(x.sum()).__name__)
            out.append(type(x.sum()).__name__)
    """,
    "recurrent layers and attention": """
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func.__name__ not in ("dim", "size", "__get__", "_int", "__int__", "__index__"):
                    out.append(func.__name__)
                return func(*args, **(kwargs or {}))

        class Kept(torch.Tensor):
            pass

        nn = torch.nn
        torch.manual_seed(0)
        x = torch.randn(2, 5, 8)
        packed = nn.utils.rnn.pack_padded_sequence(x, [2, 2, 1, 1, 1])
        calls = [(nn.LSTM(8, 4, batch_first=True), x), (nn.LSTM(8, 4, 2, bidirectional=True, proj_size=2), x),
                 (nn.GRU(8, 4, batch_first=True), x[0]), (nn.RNN(8, 4), x), (nn.RNN(8, 4, nonlinearity="relu"), x),
                 (nn.LSTM(8, 4), packed), (nn.GRU(8, 4), packed), (nn.LSTMCell(8, 4), x[0]),
                 (nn.GRUCell(8, 4), x[0, 0]), (nn.RNNCell(8, 4), x[0]), (nn.RNNCell(8, 4, nonlinearity="relu"), x[0]),
                 (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), x)]
        with torch.no_grad():
            for module, value in calls:
                plain = module(value)
                with Mode():
                    asked = module(value)
                first, second = (each[0] if isinstance(each, tuple) else each for each in (plain, asked))
                first, second = (getattr(each, "data", each) for each in (first, second))
                out.append(torch.allclose(first, second, atol=1e-6))
                if value is not packed:
                    result = module(value.as_subclass(Kept))
                    out.append([kind(r) for r in result] if isinstance(result, tuple) else kind(result))
            with Mode():
                nn.Fold((4, 5), 2)(nn.Unfold(2)(x.view(2, 1, 4, 10)[..., :5]))
            attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
            with Mode():
                attention(x, x, x)
    """,
    "forms of einsum": """
        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out.append([a if isinstance(a, str) else kind(a) for a in args])
                return func(*args)

        class Argued(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                out.append([a if isinstance(a, str) else kind(a) for a in args])
                return super().__torch_function__(func, types, args)

        for x in (torch.ones(2, 2), torch.ones(2, 2).as_subclass(Argued)):
            with Mode() if type(x) is torch.Tensor else torch.no_grad():
                torch.einsum("ij,jk->ik", x, x)
                torch.einsum("ij,jk->ik", (x, x))
                torch.einsum(x, [0, 1], x, [1, 27], [0, 27])
                torch.einsum(x, [0, ...], x, [0, 1])
    """,
    "overloads": """
        aten, x, p = torch.ops.aten, torch.ones(2).as_subclass(Logged), torch.ones(2)

        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out.append(str(func))
                return func(*args, **(kwargs or {}))

        for f in (lambda: aten.alias.default(x), lambda: aten.alias(x), lambda: aten.add.Tensor(p, x, alpha=2),
                  lambda: aten.cat.default([x, p]), lambda: aten.add_.Tensor(p.clone(), x), lambda: aten.add(p, x),
                  lambda: aten.detach.default(x), lambda: aten.max.dim(x, 0)):
            out.append(kind(f()))
        with torch._C.DisableTorchFunctionSubclass():
            out.append(kind(aten.alias.default(x)))
        with Mode():
            out.append(kind(aten.sin.default(x)))
            aten.mul.Tensor(p, p)
    """,
    "precedence": """
        class A:
            def __init__(self, name): self.name = name
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                out.append((cls.__name__, [t.__name__ for t in types]))
                return NotImplemented if cls.result is None else cls.result
            result = None
        class B(A): result = 1
        class C(A): result = None
        class D:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                out.append((cls.__name__, [t.__name__ for t in types]))
                return 7
        for args in ((A(0), B(0)), (B(0), A(0)), (A(0), D()), (C(0), B(0)), (torch.ones(1), D()), (D(), torch.ones(1))):
            out.append(torch.add(*args))
        try: torch.mul(A(0), C(0))
        except TypeError as e: out.append(str(e).replace("__main__.", ""))
        try: torch.cat([A(0), torch.ones(1)])
        except TypeError as e: out.append(type(e).__name__)
    """,
    "modes": """
        class Outer(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out.append(("outer", torch.overrides.resolve_name(func)))
                return func(*args, **(kwargs or {}))
        class Inner(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                out.append(("inner", torch.overrides.resolve_name(func)))
                return func(*args, **(kwargs or {}))
        with Outer(), Inner():
            x = torch.ones(2)
            y = torch.nn.functional.softmax(x, 0)
            out.append(len(torch.overrides._get_current_function_mode_stack()))
            x.requires_grad = True
            (x * 2).sum()
            torch.rand(2), torch.tensor([1.]), torch.zeros_like(x), torch.eye(2), torch.arange(3), torch.cat([x, x])
            with torch._C.DisableTorchFunctionSubclass():
                torch.sin(x)
            with torch._C.DisableTorchFunction():
                torch.cos(x)
        torch.ones(2)
        out.append(torch.overrides._get_current_function_mode())
        with torch.overrides.BaseTorchFunctionMode():
            out.append(float(torch.ones(1) + 1))
        class Refusing(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return NotImplemented
            def __repr__(self): return "refusing"
        with Refusing():
            try: torch.ones(2)
            except TypeError as e: out.append(str(e))
    """,
    "subclasses": """
        class S(torch.Tensor): pass
        class T(S): pass
        class U(torch.Tensor): pass
        s, t, u = torch.ones(2).as_subclass(S), torch.ones(2).as_subclass(T), torch.ones(2).as_subclass(U)
        for f in (lambda: s + s, lambda: s + t, lambda: t + s, lambda: s + torch.ones(2), lambda: torch.ones(2) * t,
                  lambda: s.sum(), lambda: s.tolist(), lambda: torch.stack([s, t]), lambda: s.max(0), lambda: s[0],
                  lambda: s.unbind(), lambda: [type(e).__name__ for e in s], lambda: S([1.]), lambda: S(2, 2).shape,
                  lambda: repr(s), lambda: torch.nn.Parameter(s), lambda: s.data, lambda: s.new_ones(2),
                  lambda: torch.ones_like(s), lambda: s.numpy(), lambda: torch.split(s, 1), lambda: u + s):
            try: out.append(kind(f()))
            except Exception as e: out.append(type(e).__name__)
        a = torch.ones(2, requires_grad=True)
        b = a.as_subclass(S) * 3
        out.append((kind(b), type(b.grad_fn).__name__))
        b.sum().backward()
        out.append((kind(a.grad), a.grad.tolist()))
        import copy, pickle
        out.append(kind(copy.copy(s)))
        try: out.append(kind(copy.deepcopy(s)))
        except RuntimeError as e: out.append(str(e)[:60])
        m = torch.nn.Linear(2, 2)
        out.append(kind(m(s)))
        out.append(kind(torch.Tensor._make_subclass(S, torch.ones(2), True)))
        out.append(torch.Tensor._make_subclass(S, torch.ones(2), True).requires_grad)
    """,
    "plain method": """
        class P:
            def __torch_function__(self, func, types, args=(), kwargs=None): return 3
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out.append(torch.add(P(), 1))
            out.extend((w.category.__name__, str(w.message)[:40]) for w in caught)
    """,
    "own functions": """
        from torch.overrides import (handle_torch_function, has_torch_function, has_torch_function_unary,
                                     has_torch_function_variadic, wrap_torch_function, is_tensor_like)
        class F:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                out.append((func.__name__, len(args), [*kwargs]))
                return NotImplemented if func.__name__ == "refused" else -1
        def own(a, b=None):
            if has_torch_function((a, b)):
                return handle_torch_function(own, (a, b), a, b=b)
            return 1
        @wrap_torch_function(lambda a: (a,))
        def wrapped(a): return 2
        def refused(a): return handle_torch_function(refused, (a,), a)
        out.append([own(1), own(F()), own(1, b=F()), wrapped(1), wrapped(F())])
        try: refused(F())
        except TypeError as e: out.append(str(e).split("refused")[-1].replace("__main__.", ""))
        out.append([has_torch_function_unary(torch.ones(1)), has_torch_function_unary(F()),
                    has_torch_function_variadic(1, F()), is_tensor_like(F()), is_tensor_like(torch.ones(1)),
                    is_tensor_like(2), has_torch_function_unary(torch.nn.Parameter(torch.ones(1)))])
    """,
    "redispatch": """
        class L(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                out.append(func.__name__)
                return torch.overrides.redispatch_function(func, types, args, kwargs)
        def twice(a, b):
            if torch.overrides.has_torch_function((a, b)):
                return torch.overrides.handle_torch_function(twice, (a, b), a, b)
            return a * b + 1
        x = torch.ones(1).as_subclass(L)
        out.append(kind(twice(x, x)))
    """,
    "disabled": """
        class Off(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl
        x = torch.ones(2).as_subclass(Off)
        out.append([kind(x + 1), kind(x.add_(1)), kind(x[0]), torch.overrides.has_torch_function_unary(x)])
        class S(torch.Tensor): pass
        s = torch.ones(2).as_subclass(S)
        with torch._C.DisableTorchFunctionSubclass():
            out.append(kind(s + 1))
        with torch._C.DisableTorchFunction():
            out.append(kind(s + 1))
        out.append(kind(s + 1))
    """,
}
PRELUDE = """
import warnings
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out.append((torch.overrides.resolve_name(func), [t.__name__ for t in types], len(args)))
        return super().__torch_function__(func, types, args, kwargs)
def kind(r):
    if isinstance(r, (tuple, list)): return (type(r).__name__, [kind(e) for e in r])
    return type(r).__name__
"""


@pytest.fixture(autouse=True)
def _handlers_gone() -> Iterator[None]:
    yield
    gc.collect()


def _run(module: Any, program: str) -> list[Any]:
    out: list[Any] = []
    scope = {"torch": module, "out": out, "__name__": "__main__"}
    exec(PRELUDE, scope)
    source = inspect.cleandoc(program).replace("from torch.", f"from {module.__name__}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(source, scope)
    scope.clear()
    return [_neutral(each) for each in out]


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("flambeau", "torch")
    if isinstance(value, (list, tuple)):
        return [_neutral(each) for each in value]
    return value


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert _run(flambeau, PROGRAMS[name]) == _run(torch, PROGRAMS[name])


def test_code_is_restored() -> None:
    """The code of public functions is replaced only while a handler exists."""
    class Subclass(flambeau.Tensor):
        pass

    before = entry_points.in_use[0]
    x = flambeau.ones(2).as_subclass(Subclass)
    assert entry_points.in_use[0] == before + 1
    assert "ask" in flambeau.add.__code__.co_varnames
    assert type(flambeau.add(x, 1)) is Subclass
    del x
    gc.collect()
    assert entry_points.in_use[0] == before


def test_testing_overrides() -> None:
    """Every overridable function has a stand-in of its parameters, and asks handlers."""
    class Everything:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func

    class Subclass(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func

    overrides = flambeau.overrides
    x = flambeau.ones(2).as_subclass(Subclass)
    for func, stand_in in overrides.get_testing_overrides().items():
        value = x if overrides.is_tensor_method_or_property(func) else Everything()
        parameters = inspect.signature(stand_in).parameters.values()
        args = [value] * max(1, sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters))
        assert stand_in(*args) == -1
        asked = func(*args)
        assert overrides.resolve_name(asked) is not None, func
    entry_points.forget_foreign(Everything)
