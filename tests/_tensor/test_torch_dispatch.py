"""`__torch_dispatch__`: modes and wrapper subclasses, compared with plain calls and with PyTorch."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.dispatch import public_functions
from flambeau._tensor.overriding import dispatch as handlers
from flambeau.modes import dispatch_in_use, level_count, special
from flambeau.utils._python_dispatch import TorchDispatchMode

from .test_fastpaths import NAMES, RECORDS, Make, public, tensors_in


class Redispatch(TorchDispatchMode):
    """Calls each operator again."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert isinstance(args, tuple)
        assert not handlers.dispatch_modes.get()
        return func(*args, **(kwargs or {}))


def _outputs_and_gradients(name: str, sample: Any) -> list[Any]:
    torch.manual_seed(0)
    outs = tensors_in(public(torch, name)(*sample.args, **sample.kwargs))
    leaves = [x for x in tensors_in((sample.args, sample.kwargs)) if x.requires_grad]
    recorded = [x for x in outs if x.requires_grad]
    gradients = torch.autograd.grad(recorded, leaves, [torch.ones_like(x) for x in recorded],
                                    allow_unused=True) if recorded and leaves else ()
    return [*outs, *gradients]


@pytest.mark.parametrize("name", [name for name in NAMES if RECORDS[name].floats])
def test_redispatched(name: str) -> None:
    """Every operator and derivative has the same result by way of a mode that calls it again."""
    def samples() -> Any:
        return list(RECORDS[name].samples(Make(torch, torch.float64, True)))[:2]

    for plain, handled in zip(samples(), samples(), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = _outputs_and_gradients(name, plain)
            except Exception:
                continue
            with Redispatch():
                found = _outputs_and_gradients(name, handled)
        assert len(found) == len(expected)
        for x, y in zip(expected, found, strict=True):
            if x is None or y is None:
                assert x is y
            else:
                assert (x.dtype, x.shape, x.requires_grad) == (y.dtype, y.shape, y.requires_grad)
                np.testing.assert_allclose(*(v.detach().resolve_conj().numpy() for v in (x, y)), 1e-12, 1e-12)


PRELUDE = """
from {0}.utils._python_dispatch import (BaseTorchDispatchMode, TorchDispatchMode, _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack, is_traceable_wrapper_subclass, return_and_correct_aliasing, transform_subclass)
from {0}.utils._pytree import tree_map
F = torch.nn.functional

class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func not in (torch.ops.aten.detach.default, torch.ops.aten.lift_fresh.default):
            out.append((str(func), shapes(args)))
        return func(*args, **(kwargs or {{}}))

def shapes(x):
    if isinstance(x, torch.Tensor): return list(x.shape)
    if isinstance(x, (list, tuple)): return [shapes(each) for each in x]
    return x if isinstance(x, (int, float, bool, type(None))) else str(x)

class Two(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.size(), strides=a.stride(), dtype=a.dtype, layout=a.layout,
                                                   device=a.device, requires_grad=a.requires_grad)
    def __init__(self, a, b): self.a, self.b = a, b
    def __tensor_flatten__(self): return ["a", "b"], None
    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride): return Two(inner["a"], inner["b"])
    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        def part(name):
            def take(x): return getattr(x, name) if isinstance(x, Two) else x
            return func(*tree_map(take, args), **tree_map(take, kwargs or {{}}))
        first, second = part("a"), part("b")
        if isinstance(first, torch.Tensor):
            result = Two(first, second)
        elif isinstance(first, (tuple, list)):
            result = type(first)(Two(*pair) if isinstance(pair[0], torch.Tensor) else pair[0]
                                 for pair in zip(first, second))
        else:
            return first
        return return_and_correct_aliasing(func, args, kwargs, result)

def show(x):
    out.append((type(x).__name__, list(x.shape), x.requires_grad))
    if isinstance(x, Two):
        out.extend(np.round(each.detach().numpy(), 5).tolist() for each in (x.a, x.b))
"""

PROGRAMS = {
    "operators": """
        x, w, b = torch.ones(3, 4, requires_grad=True), torch.ones(5, 4, requires_grad=True), torch.ones(5)
        image, kernel = torch.ones(1, 2, 6, 6, requires_grad=True), torch.ones(3, 2, 3, 3, requires_grad=True)
        with Log():
            for f in (lambda: x + 1, lambda: torch.add(x, x, alpha=2), lambda: x - 2 * x, lambda: x.sum(),
                      lambda: x.mean(1, True), lambda: F.linear(x, w, b), lambda: x @ w.T, lambda: F.softmax(x, 1),
                      lambda: F.cross_entropy(x, torch.tensor([1, 2, 0])), lambda: F.layer_norm(x, (4,)),
                      lambda: F.conv2d(image, kernel, stride=2), lambda: F.max_pool2d(image, 2), lambda: x.view(4, 3),
                      lambda: x[1:, None], lambda: torch.cat([x, x], 1), lambda: x.split(2), lambda: x.max(1),
                      lambda: torch.where(x > 1, x, x * 2), lambda: x.detach().clone().add_(1), lambda: x ** 2,
                      lambda: torch.bmm(x[None], w.T[None]), lambda: torch.einsum("ij,kj->ik", x, w),
                      lambda: x.sum().item(), lambda: torch.ones(2), lambda: torch.zeros_like(x),
                      lambda: torch.arange(3), lambda: bool((x > 0).all()), lambda: torch.empty(2).zero_(),
                      lambda: F.group_norm(image, 2), lambda: x.gather(1, torch.zeros(3, 1, dtype=torch.int64)),
                      lambda: F.linear(x, w, b).relu().sum().backward(), lambda: torch.full((2,), 1.)):
                f()
    """,
    "batch norm": """
        class Arguments(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                if "batch_norm" in str(func):
                    out.append((str(func), [type(x).__name__ for x in args], [x.tolist() for x in result[1:]]))
                return result
        x = torch.arange(24.).reshape(2, 3, 4)
        for affine, tracked, training in ((0, 1, 0), (1, 1, 0), (1, 0, 0), (0, 0, 1)):
            m = torch.nn.BatchNorm1d(3, affine=bool(affine), track_running_stats=bool(tracked)).train(bool(training))
            with Arguments(): y = m(x)
            out.append(np.round(y.detach().numpy(), 4).tolist())
    """,
    "wrapper": """
        t = Two(torch.ones(2, 3), torch.arange(6.).reshape(2, 3))
        for f in (lambda: t + 1, lambda: t.sum(), lambda: t.t(), lambda: t @ t.t(), lambda: torch.cat([t, t]),
                  lambda: t[0], lambda: F.relu(t), lambda: t.softmax(1), lambda: t.max(1)[0], lambda: t.split(1)[1]):
            show(f())
        w = Two(torch.ones(3, 3), torch.full((3, 3), 2.)).requires_grad_()
        y = F.linear(t, w).relu().sum()
        show(y)
        y.backward()
        show(w.grad)
        show(torch.autograd.grad((w * w * 3).sum(), w)[0])
        v = t.clone()
        v.add_(1); show(v); v.mul_(2); show(v); v[0] = 5; show(v)
        p = torch.nn.Parameter(t)
        out.append((type(p).__name__, isinstance(p, torch.nn.Parameter), p.requires_grad))
        out.append([is_traceable_wrapper_subclass(t), is_traceable_wrapper_subclass(torch.ones(1))])
        show(transform_subclass(t, lambda name, x: x * 2))
    """,
    "modes": """
        class Refusing(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): return NotImplemented
            def __repr__(self): return "refusing"
        with Log():
            with Log():
                torch.rand(1).sin()
                out.append(len(_get_current_dispatch_mode_stack()))
            with BaseTorchDispatchMode():
                torch.ones(1) + 1
        out.append(_get_current_dispatch_mode())
        try:
            with Refusing(): torch.ones(2)
        except TypeError as error: out.append(str(error))
        t = Two(torch.ones(2), torch.ones(2))
        with Log(): show(t * 2)
    """,
    "forward mode": """
        class InSlot(torch.Tensor):
            __slots__ = ["elem"]
            @staticmethod
            def __new__(cls, elem):
                made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, strides=elem.stride())
                made.elem = elem
                return made
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                inner = tree_map(lambda x: x.elem if isinstance(x, InSlot) else x, (args, kwargs or {}))
                return tree_map(lambda x: InSlot(x) if isinstance(x, torch.Tensor) else x, func(*inner[0], **inner[1]))
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            for start in (torch.arange(6.).reshape(2, 3), torch.ones(1, 0, 3)):
                for tangent in (InSlot(torch.ones(start.shape)), InSlot(torch.ones(start.shape).mT.clone().mT)):
                    x = forward_ad.make_dual(InSlot(start), tangent)
                    for y in (x.square(), x.mT, (x * x).sum(), x * torch.full((3,), 2.)):
                        primal, tangent = forward_ad.unpack_dual(y)
                        out.append((type(primal).__name__, primal.elem.tolist(), tangent.elem.tolist()))
    """,
    "batched cotangents": """
        class InSlot(torch.Tensor):
            __slots__ = ["elem"]
            @staticmethod
            def __new__(cls, elem):
                made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype, strides=elem.stride())
                made.elem = elem.detach()
                return made
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                inner = tree_map(lambda x: x.elem if isinstance(x, InSlot) else x, (args, kwargs or {}))
                return tree_map(lambda x: InSlot(x) if isinstance(x, torch.Tensor) else x, func(*inner[0], **inner[1]))
        x, v = InSlot(torch.arange(2.) + 1).requires_grad_(), InSlot(torch.arange(2.) + 3).requires_grad_()
        y = torch.autograd.functional.jvp(lambda x: 3 * x * x, x, v, create_graph=True)[1]
        g = torch.autograd.grad(y, (x, v), torch.stack([InSlot(torch.ones(2)), InSlot(torch.arange(2.))]),
                                is_grads_batched=True)
        out.append([each.elem.tolist() for each in g])
    """,
    "normal": """
        class Given(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out.append((str(func), shapes(args), shapes(list((kwargs or {}).values()))))
                return func(*args, **(kwargs or {}))
        m, s = torch.zeros(2), torch.ones(2)
        with Given():
            for f in (lambda: torch.normal(1., 2., (2, 3)), lambda: torch.normal(m, s), lambda: torch.normal(m, 2.),
                      lambda: torch.normal(mean=0., std=s), lambda: torch.normal(0., 1., size=[2], device="cpu")):
                out.append(list(f().shape))
    """,
    "overloads by dimension": """
        x = torch.arange(6.).reshape(2, 3)
        with Log():
            for y in (x.any(), x.any(1), x.any((0, 1)), x.all(1, True), x.all()): out.append(y.tolist())
    """,
}


def _run(module: Any, program: str) -> list[Any]:
    out: list[Any] = []
    scope = {"torch": module, "out": out, "np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(PRELUDE.format(module.__name__), scope)
        exec(inspect.cleandoc(program), scope)
    scope.clear()
    return out


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    pytorch = pytest.importorskip("torch")
    assert _run(torch, PROGRAMS[name]) == _run(pytorch, PROGRAMS[name])


def test_handlers_are_discounted() -> None:
    """Modes and instances raise the counters that exclude fast paths only while they exist."""
    before = dispatch_in_use[0], special[0]
    with Redispatch():
        assert (dispatch_in_use[0], special[0]) == (before[0] + 1, before[1] + 1)
    assert (dispatch_in_use[0], special[0]) == before


class Wrapper(torch.Tensor):
    """A tensor without memory of its own that holds another."""

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        out = torch.Tensor._make_wrapper_subclass(cls, inner.size(), strides=inner.stride(), dtype=inner.dtype)
        out.inner = inner
        return out

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*[x.inner if isinstance(x, Wrapper) else x for x in args], **(kwargs or {}))
        return Wrapper(found) if isinstance(found, torch.Tensor) else found


def test_tensors_without_memory_leave_others_on_the_fast_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """They count among the levels, and their arrays have no elements."""
    before = special[0], level_count[0]
    x = torch.arange(6.0).view(2, 3)
    wrapper = Wrapper(x)
    assert (special[0], level_count[0]) == (before[0] + 1, before[1] + 1)
    assert torch.equal((wrapper * 2 + x).t()[1].inner, (x * 3).t()[1])
    monkeypatch.setattr(public_functions, "apply", None)  # the general path's
    assert torch.equal(x + x, 2 * x)
    assert torch.softmax(x, 1).shape == torch.exp(x).shape == (2, 3)
    del wrapper
    assert (special[0], level_count[0]) == before


@pytest.mark.parametrize(("name", "args", "expected"), [
    ("pow_", (2,), "aten.pow_.Scalar"), ("pow_", (torch.full((3,), 2.0),), "aten.pow_.Tensor"),
    ("square_", (), "aten.pow_.Scalar"), ("xlogy_", (2,), "aten.xlogy_.Scalar_Other"),
    ("ldexp_", (torch.ones(3),), "aten.ldexp_.default"),
    ("floor_divide_", (torch.ones(3),), "aten.floor_divide_.Tensor"),
    ("bitwise_left_shift", (1,), "aten.bitwise_left_shift.Tensor_Scalar"),
    ("bitwise_right_shift_", (1,), "aten.bitwise_right_shift_.Tensor_Scalar")])
def test_overloads_whose_names_differ(name: str, args: tuple[Any, ...], expected: str) -> None:
    """Overloads of in-place operators, and of numbers, that are not called as the operator's own."""
    seen = []

    class Record(Redispatch):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    def sample() -> Any:
        return torch.arange(3, dtype=torch.int32 if "shift" in name else torch.float32)

    with Record():
        found = getattr(sample(), name)(*args)
    assert expected in seen
    assert torch.equal(found, getattr(sample(), name)(*args))


def _indexed_by_masks(library: str) -> list[str]:
    """What a wrapper's handler is given of indexing by masks that are wrappers, and the results' values."""
    lib = importlib.import_module(library)
    seen: list[str] = []

    class Wrapper(lib.Tensor):  # type: ignore[misc, name-defined]
        elements: Any

        @staticmethod
        def __new__(cls, elements: Any) -> Any:
            made = lib.Tensor._make_wrapper_subclass(cls, elements.size(), dtype=elements.dtype)
            made.elements = elements
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def kinds(value: Any) -> Any:
                return [kinds(x) for x in value] if isinstance(value, (list, tuple)) else type(value).__name__

            def bare(value: Any) -> Any:
                if isinstance(value, (list, tuple)):
                    return [bare(x) for x in value]
                return value.elements if isinstance(value, Wrapper) else value

            if "index" in str(func):
                seen.append(f"{func} {kinds(args)}")
            out = func(*bare(args), **(kwargs or {}))
            return Wrapper(out) if isinstance(out, lib.Tensor) else out

    x = Wrapper(lib.arange(6.0).reshape(2, 3))
    mask = x > 2
    for key in (mask, mask[:, 0], (0, mask[0])):
        seen.append(str(x[key].elements.tolist()))
    plain = lib.ones(2, 3)
    seen.append(str(plain[mask].elements.tolist()))
    x[mask] = 7.0
    plain[mask] = lib.tensor(5.0)
    return [*seen, str(x.elements.tolist()), str(plain.tolist())]


@pytest.mark.parity
def test_masks_that_only_a_handler_reads() -> None:
    pytest.importorskip("torch", reason="PyTorch is the oracle")
    assert _indexed_by_masks("flambeau") == _indexed_by_masks("torch")


def test_writes_of_numbers_through_fake_masks() -> None:
    from flambeau._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(2, 3)
        x[x > 2] = 0.0
    assert x.shape == (2, 3)
