"""Objects of classes that handle operators, beside PyTorch: how they are made, relabelled, swapped and converted."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

import flambeau
from flambeau.utils import _python_dispatch as flambeau_dispatch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
BOTH = (flambeau, pytorch)


def classes(torch: Any) -> dict[str, Any]:
    """A class of wrappers, one derived from it, one that calls the default handler, and one without a handler."""
    class Wrapper(torch.Tensor):  # type: ignore[name-defined,misc]
        @staticmethod
        def __new__(cls: type, elem: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = cls(func(*[x.elem if isinstance(x, Wrapper) else x for x in args], **kwargs or {}))
            made.tag = str(func)
            return made

    class Derived(Wrapper):
        pass

    class Default(torch.Tensor):  # type: ignore[name-defined,misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Plain(torch.Tensor):  # type: ignore[name-defined,misc]
        pass

    return {each.__name__: each for each in (Wrapper, Derived, Default, Plain)}


def outcome(call: Any, *args: Any) -> tuple[Any, ...]:
    """The class, shape and mark of a result, or the error."""
    try:
        made = call(*args)
    except Exception as error:
        return type(error).__name__, str(error).replace("flambeau", "torch")
    return type(made).__name__, tuple(made.shape), getattr(made, "tag", None)


@pytest.mark.parametrize("target", ["Tensor", "Parameter", "Wrapper", "Derived", "Default", "Plain"])
@pytest.mark.parametrize("source", ["Wrapper", "Derived", "Default", "Plain"])
def test_what_a_handler_makes_keeps_its_class(source, target):
    results = []
    for torch in BOTH:
        made = classes(torch)
        cls = {**made, "Tensor": torch.Tensor, "Parameter": torch.nn.Parameter}[target]
        x = made[source](torch.rand(2))
        results.append([outcome(torch.Tensor._make_subclass, cls, x), outcome(x.as_subclass, cls), outcome(cls, x),
                        outcome(torch.Tensor._make_wrapper_subclass, cls, (2, 2))])
    assert results[0] == results[1]


@pytest.mark.parametrize(("size", "options"), [((10**12,), {}), ((10**6, 10**6), {"strides": (1, 10**6)}),
                                           ((10**6, 10**6), {"strides": (10**6, 1), "storage_offset": 5})])
def test_wrappers_of_any_size_take_no_memory(size, options):
    results = []
    for torch in BOTH:
        x = torch.Tensor._make_wrapper_subclass(classes(torch)["Wrapper"], size, **options)
        results.append((tuple(x.shape), x.stride(), x.storage_offset(), x.numel(), x.is_contiguous(), str(x.device)))
    assert results[0] == results[1]


LIKE = {
    "randint_like, high": lambda t, x: t.randint_like(x, high=3),
    "randint_like, low and high": lambda t, x: t.randint_like(x, low=1, high=3),
    "randint_like, by position": lambda t, x: t.randint_like(x, 1, 3),
    "randint_like, one number": lambda t, x: t.randint_like(x, 3),
    "full_like": lambda t, x: t.full_like(x, fill_value=1.0),
    "full_like, by position": lambda t, x: t.full_like(x, 1.0),
    "zeros_like": lambda t, x: t.zeros_like(x, dtype=t.float64),
}


@pytest.mark.parametrize("case", LIKE)
def test_factories_like_a_tensor_reach_the_handler_by_keyword_too(case):
    results = []
    for torch in BOTH:
        calls = []

        class Noting(torch.Tensor):  # type: ignore[name-defined,misc]
            @classmethod
            def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None,
                                   calls: Any = calls) -> Any:
                calls.append((str(func), args[1:], sorted(kwargs or {})))
                return cls(3)

        LIKE[case](torch, Noting(2))
        results.append(calls)
    assert results[0] == results[1]


def test_a_mode_whose_handler_is_a_class_method_is_refused():
    results = []
    for torch, dispatch in ((flambeau, flambeau_dispatch), (pytorch, pytorch.utils._python_dispatch)):
        class Operators(dispatch.TorchDispatchMode):  # type: ignore[name-defined,misc]
            @classmethod
            def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return func(*args, **kwargs or {})

        class Functions(torch.overrides.TorchFunctionMode):  # type: ignore[name-defined,misc]
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return func(*args, **kwargs or {})

        x = torch.ones(2)
        for mode in (Operators, Functions):
            with mode():
                results.append((mode.__name__, *outcome(x.add, x)))
    assert results[:2] == results[2:]


@pytest.mark.parametrize(("first", "second"), [("Tensor", "Wrapper"), ("Wrapper", "Derived"), ("Default", "Wrapper"),
                                           ("Tensor", "Default")])
def test_tensors_of_handler_classes_are_swapped(first, second):
    results = []
    for torch in BOTH:
        made = {**classes(torch), "Tensor": lambda x: x}
        a, b = made[first](torch.ones(2)), made[second](torch.ones(3))
        before, dictionaries = (a._cdata, b._cdata), (a.__dict__, b.__dict__)
        torch.utils.swap_tensors(a, b)
        assert (a._cdata, b._cdata) == before[::-1]
        assert (a.__dict__, b.__dict__) == dictionaries[::-1]
        results.append([(type(x).__name__, tuple(x.shape), *outcome(x.add, 1)) for x in (a, b)])
        kept = weakref.ref(a)
        with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref associated with it"):
            torch.utils.swap_tensors(a, b)
        assert kept() is a
    assert results[0] == results[1]


def test_a_swap_leaves_unset_slots_unset():
    for torch in BOTH:
        class Slotted(torch.Tensor):  # type: ignore[name-defined,misc]
            __slots__ = ("first", "second")

        a, b = Slotted(torch.ones(1)), Slotted(torch.zeros(1))
        a.first, b.second = 1, 2
        torch.utils.swap_tensors(a, b)
        assert [getattr(x, name, None) for x in (a, b) for name in ("first", "second")] == [None, 2, 1, None]


def test_a_module_converted_to_another_layout_has_new_parameters():
    results = []
    for torch in BOTH:
        module = torch.nn.Linear(3, 2)
        weight = module.weight
        weight.grad = gradient = torch.ones(2, 3)
        module._apply(lambda t, torch=torch: t.to_sparse() if t.dim() == 2 else t)
        results.append((str(module.weight.layout)[-10:], str(module.weight.grad.layout)[-10:], module.weight is weight,
                        module.weight.grad is gradient, str(weight.layout)[-7:], type(module.weight).__name__))
    assert results[0] == results[1]
